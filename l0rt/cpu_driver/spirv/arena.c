/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c: memory that is freed as a whole, and the jump that ends the work on a module that is refused. */
#include "arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 64 << 10 };

struct spirv_chunk {
  spirv_chunk *next;
  _Alignas(16) char bytes[];
};

static _Noreturn void exhausted(spirv_arena *arena) {
  arena->exhausted = true;
  spirv_refuse(arena, 0, "out of memory");
}

void *spirv_alloc(spirv_arena *arena, uint64_t count, uint64_t size) {
  if (count > SPIRV_ARENA_LIMIT || size > SPIRV_ARENA_LIMIT || count * size > SPIRV_ARENA_LIMIT)
    spirv_refuse(arena, 0, "the module needs too much memory to decode");
  size_t bytes = (size_t)((count * size + 15) & ~(uint64_t)15);
  if (bytes == 0) bytes = 16; /* zero bytes have an address too */
  if ((size_t)(arena->end - arena->next) < bytes) {
    size_t capacity = bytes > CHUNK / 4 ? bytes : CHUNK;
    if (arena->total + capacity > SPIRV_ARENA_LIMIT)
      spirv_refuse(arena, 0, "the module needs too much memory to decode");
    spirv_chunk *chunk = calloc(1, sizeof(spirv_chunk) + capacity);
    if (chunk == NULL) exhausted(arena);
    arena->total += capacity;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    if (capacity == bytes) return chunk->bytes; /* a chunk of its own; the current chunk stays the current one */
    arena->next = chunk->bytes;
    arena->end = chunk->bytes + capacity;
  }
  void *p = arena->next;
  arena->next += bytes;
  return p;
}

char *spirv_copy_text(spirv_arena *arena, const char *text) {
  size_t size = strlen(text) + 1;
  return memcpy(spirv_alloc(arena, size, 1), text, size);
}

void *spirv_grow(spirv_arena *arena, void *items, uint32_t count, uint32_t *capacity, size_t size) {
  if (count < *capacity) return items;
  *capacity = *capacity == 0 ? 8 : *capacity * 2;
  void *larger = spirv_alloc(arena, *capacity, size);
  if (count != 0) memcpy(larger, items, count * size);
  return larger;
}

void spirv_arena_free(spirv_arena *arena) {
  while (arena->chunks != NULL) {
    spirv_chunk *next = arena->chunks->next;
    free(arena->chunks);
    arena->chunks = next;
  }
  arena->next = arena->end = NULL;
  arena->total = 0;
}

static _Noreturn void leave(spirv_arena *arena, uint32_t word, const char *format, va_list list) {
  vsnprintf(arena->text, sizeof(arena->text), format, list);
  arena->offset = word * 4;
  longjmp(arena->out, 1);
}

void spirv_refuse(spirv_arena *arena, uint32_t word, const char *format, ...) {
  va_list list;
  va_start(list, format);
  leave(arena, word, format, list);
}

void spirv_unsupported(spirv_arena *arena, uint32_t word, const char *format, ...) {
  va_list list;
  va_start(list, format);
  arena->unsupported = true;
  leave(arena, word, format, list);
}
