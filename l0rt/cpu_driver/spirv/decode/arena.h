/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h: memory that is freed as a whole, and the jump that ends the work on a module that is refused. */
#ifndef L0RT_CPU_SPIRV_ARENA_H
#define L0RT_CPU_SPIRV_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct spirv_chunk spirv_chunk;

typedef struct spirv_arena {
  spirv_chunk *chunks;
  char *next, *end;
  uint64_t total; /* bytes of its chunks; spirv_limit_memory sets how many there may be */
  const struct spirv_arena *beside; /* whose bytes count too; or NULL */
  jmp_buf out;     /* where spirv_refuse jumps to; set it before the first allocation */
  uint32_t offset; /* of what was refused, in bytes from the beginning of the module */
  bool exhausted;  /* the host has no memory left; the module is not at fault */
  const struct spirv_module *decoding; /* the module that is decoded last; NULL: none yet */
  bool unsupported; /* what was refused is valid, but nothing here can do it */
  char text[192];
} spirv_arena;

void *spirv_alloc(spirv_arena *arena, uint64_t count, uint64_t size); /* zeroed; never NULL */
char *spirv_copy_text(spirv_arena *arena, const char *text);
void spirv_arena_free(spirv_arena *arena);

/* Jumps to arena->out. `word` is the offset of the instruction in words. */
_Noreturn void spirv_refuse(spirv_arena *arena, uint32_t word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for what is valid, but not supported. */
_Noreturn void spirv_unsupported(spirv_arena *arena, uint32_t word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same in a chunk of its own, which spirv_free may free before the others. */
void *spirv_alloc_alone(spirv_arena *arena, uint64_t count, uint64_t size);
void spirv_free(spirv_arena *arena, void *items);

#define SPIRV_NEW(arena, type) ((type *)spirv_alloc(arena, 1, sizeof(type)))
#define SPIRV_ARRAY(arena, type, count) ((type *)spirv_alloc(arena, count, sizeof(type)))
#define SPIRV_TEMPORARY(arena, type, count) ((type *)spirv_alloc_alone(arena, count, sizeof(type)))

/* Grows an array, so that `items` has capacity for one more. A long array moves, and its old memory is freed: pointers into
 * it end. */
void *spirv_grow(spirv_arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size);

#endif
