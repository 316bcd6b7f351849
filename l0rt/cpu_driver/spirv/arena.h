/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h: memory that is freed as a whole, and the way out when a module is refused. */
#ifndef L0RT_CPU_SPIRV_ARENA_H
#define L0RT_CPU_SPIRV_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPIRV_ARENA_LIMIT = 256 << 20 }; /* no module may make more of it: it is hostile */

typedef struct spirv_chunk spirv_chunk;

typedef struct {
  spirv_chunk *chunks;
  char *next, *end;
  size_t total;
  jmp_buf out;     /* where spirv_refuse goes: set it before the first allocation */
  uint32_t offset; /* bytes from the module's begin: what was refused */
  bool exhausted;  /* the host's memory was, no module's fault */
  char text[192];
} spirv_arena;

void *spirv_alloc(spirv_arena *arena, uint64_t count, uint64_t size); /* zeroed; never NULL */
char *spirv_copy_text(spirv_arena *arena, const char *text);
void spirv_arena_free(spirv_arena *arena);

/* Leaves through arena->out. `word` is the offset of the instruction in words. */
_Noreturn void spirv_refuse(spirv_arena *arena, uint32_t word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define SPIRV_NEW(arena, type) ((type *)spirv_alloc(arena, 1, sizeof(type)))
#define SPIRV_ARRAY(arena, type, count) ((type *)spirv_alloc(arena, count, sizeof(type)))

/* An array that grows: `items` has capacity for one more afterwards. */
void *spirv_grow(spirv_arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size);

#endif
