/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c: memory that is freed as a whole, and the jump that ends the work on a module that is refused. */
#include "spirv/decode/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spirv/spirv.h"

enum { CHUNK = 64 << 10, LONG = CHUNK / 4 }; /* what is longer than LONG has a chunk of its own */

struct spirv_chunk {
  spirv_chunk *next, **place; /* `place` points to the pointer to this chunk */
  uint64_t size;
  _Alignas(16) char bytes[];
};

static _Atomic uint64_t limit = SPIRV_BUILD_MEMORY;

void spirv_limit_memory(uint64_t bytes) { atomic_store(&limit, bytes); }

static _Noreturn void exhausted(spirv_arena *arena) {
  arena->exhausted = true;
  spirv_refuse(arena, 0, "out of memory");
}

static _Noreturn void too_much(spirv_arena *arena) {
  spirv_unsupported(
      arena, 0, "it takes more than %llu MiB of memory to build: raise L0RT_CPU_BUILD_MEMORY, or call fewer functions",
      (unsigned long long)(atomic_load(&limit) >> 20));
}

/* Returns the bytes of so many items; none have an address too. */
static uint64_t bytes_of(spirv_arena *arena, uint64_t count, uint64_t size) {
  uint64_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > atomic_load(&limit)) too_much(arena);
  return bytes == 0 ? 16 : (bytes + 15) & ~(uint64_t)15;
}

static spirv_chunk *chunk_of(void *items) { return (spirv_chunk *)((char *)items - offsetof(spirv_chunk, bytes)); }

/* A new chunk, or a longer one in the place of `old`. What it has more is zeroed. */
static void *chunk_new(spirv_arena *arena, spirv_chunk *old, uint64_t size) {
  uint64_t before = old == NULL ? 0 : old->size;
  uint64_t beside = arena->beside == NULL ? 0 : arena->beside->total;
  if (arena->total + beside - before + size > atomic_load(&limit)) too_much(arena);
  spirv_chunk *chunk = old == NULL ? calloc(1, sizeof(*chunk) + size) : realloc(old, sizeof(*chunk) + size);
  if (chunk == NULL) exhausted(arena);
  if (old != NULL) {
    memset(chunk->bytes + before, 0, size - before);
  } else {
    chunk->next = arena->chunks;
    chunk->place = &arena->chunks;
  }
  arena->total += size - before;
  chunk->size = size;
  *chunk->place = chunk;
  if (chunk->next != NULL) chunk->next->place = &chunk->next;
  return chunk->bytes;
}

void *spirv_alloc_alone(spirv_arena *arena, uint64_t count, uint64_t size) {
  return chunk_new(arena, NULL, bytes_of(arena, count, size));
}

void spirv_free(spirv_arena *arena, void *items) {
  spirv_chunk *chunk = chunk_of(items);
  arena->total -= chunk->size;
  *chunk->place = chunk->next;
  if (chunk->next != NULL) chunk->next->place = chunk->place;
  free(chunk);
}

void *spirv_alloc(spirv_arena *arena, uint64_t count, uint64_t size) {
  uint64_t bytes = bytes_of(arena, count, size);
  if (bytes > LONG) return chunk_new(arena, NULL, bytes);
  if ((uint64_t)(arena->end - arena->next) < bytes) {
    arena->next = chunk_new(arena, NULL, CHUNK);
    arena->end = arena->next + CHUNK;
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
  if (*capacity > UINT32_MAX / 2) too_much(arena);
  bool is_long = bytes_of(arena, *capacity, size) > LONG;
  *capacity = *capacity == 0 ? 4 : is_long ? *capacity + *capacity / 8 : *capacity * 2; /* a long one moves cheaply */
  if (is_long) return chunk_new(arena, chunk_of(items), bytes_of(arena, *capacity, size));
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
