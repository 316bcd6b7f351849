/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c: the ranges and blocks of allocators, and when they were allocated. */
#include "memory/bounds.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sync/failure.h"

enum {
  CHUNK = 128,   /* blocks in one piece of the list */
  FREED = 16384, /* so many freed blocks are known at least, for messages, and all that pending launches may reach */
};
#define NEVER UINT64_MAX

typedef struct {
  uint64_t base, end, limit; /* `requested` bytes end at `end`, all bytes at `limit` */
  uint64_t born, died;       /* numbers of marks */
  bool is_kept;              /* freed, and still reachable */
} block;

/* A part of the list of blocks, in the order of their bases. Blocks of different times overlap. */
typedef struct {
  uint32_t count;
  uint64_t furthest; /* no block ends behind it */
  block blocks[CHUNK];
} chunk;

typedef struct {
  uint64_t begin, end;
} range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t number = 1;
static range *ranges; /* in the order of their addresses; no two overlap */
static uint32_t range_count, range_capacity;
static chunk **chunks;
static uint32_t chunk_count, chunk_capacity;
static uint64_t dead, dead_most = 2 * FREED;
static cpu_bounds_time *earliest, *latest;
static bool is_incomplete; /* there was no memory for a mark: nothing is refused any more */

/* ---- Times ------------------------------------------------------------------------------------------------------- */

void cpu_bounds_enter(cpu_bounds_time *time) {
  pthread_mutex_lock(&lock);
  *time = (cpu_bounds_time){.number = number, .earlier = latest};
  if (latest != NULL) latest->later = time;
  else earliest = time;
  latest = time;
  pthread_mutex_unlock(&lock);
}

void cpu_bounds_leave(cpu_bounds_time *time) {
  pthread_mutex_lock(&lock);
  if (time->earlier != NULL) time->earlier->later = time->later;
  else earliest = time->later;
  if (time->later != NULL) time->later->earlier = time->earlier;
  else latest = time->earlier;
  time->number = 0;
  pthread_mutex_unlock(&lock);
}

/* ---- The list of blocks, with the lock held ---------------------------------------------------------------------- */

static bool is_alive(const block *b, uint64_t time) { return b->born <= time && time < b->died; }

/* The last chunk whose first block begins at or before the address; 0 if none does. */
static uint32_t chunk_of(uint64_t address) {
  uint32_t low = 0, high = chunk_count;
  while (high - low > 1) {
    uint32_t middle = (low + high) / 2;
    if (chunks[middle]->blocks[0].base <= address) low = middle;
    else high = middle;
  }
  return low;
}

static bool add_chunk(uint32_t at) {
  if (chunk_count == chunk_capacity) {
    uint32_t more = chunk_capacity == 0 ? 64 : chunk_capacity * 2;
    chunk **larger = realloc(chunks, more * sizeof(*chunks));
    if (larger == NULL) return false;
    chunks = larger;
    chunk_capacity = more;
  }
  chunk *added = malloc(sizeof(*added));
  if (added == NULL) return false;
  added->count = 0;
  added->furthest = 0;
  memmove(chunks + at + 1, chunks + at, (chunk_count++ - at) * sizeof(*chunks));
  chunks[at] = added;
  return true;
}

static void look_furthest(chunk *c) {
  c->furthest = 0;
  for (uint32_t i = 0; i < c->count; i++)
    if (c->blocks[i].limit > c->furthest) c->furthest = c->blocks[i].limit;
}

/* Half of a full chunk goes to a new one behind it. */
static bool split(uint32_t at) {
  if (!add_chunk(at + 1)) return false;
  chunk *low = chunks[at], *high = chunks[at + 1];
  high->count = CHUNK / 2;
  low->count = CHUNK - CHUNK / 2;
  memcpy(high->blocks, low->blocks + low->count, high->count * sizeof(block));
  look_furthest(low);
  look_furthest(high);
  return true;
}

static bool add_block(block added) {
  if (chunk_count == 0 && !add_chunk(0)) return false;
  uint32_t at = chunk_of(added.base);
  if (chunks[at]->count == CHUNK) {
    if (!split(at)) return false;
    at = chunk_of(added.base);
  }
  chunk *c = chunks[at];
  uint32_t i = c->count;
  while (i > 0 && c->blocks[i - 1].base > added.base) i--;
  memmove(c->blocks + i + 1, c->blocks + i, (c->count++ - i) * sizeof(block));
  c->blocks[i] = added;
  if (added.limit > c->furthest) c->furthest = added.limit;
  return true;
}

/* Goes from the blocks of the highest bases to those of the lowest. */
typedef struct {
  uint32_t chunk, index; /* behind the next block */
} cursor;

/* Before the first block that begins at or behind `high`. */
static cursor cursor_at(uint64_t high) {
  cursor c = {0, 0};
  if (chunk_count == 0) return c;
  c.chunk = chunk_of(high);
  while (c.chunk > 0 && chunks[c.chunk]->blocks[0].base >= high) c.chunk--;
  c.index = chunks[c.chunk]->count;
  while (c.index > 0 && chunks[c.chunk]->blocks[c.index - 1].base >= high) c.index--;
  return c;
}

/* The next block whose limit is behind `low`; NULL past the last. */
static block *next_over(cursor *c, uint64_t low) {
  for (;;) {
    while (c->index > 0) {
      block *b = &chunks[c->chunk]->blocks[--c->index];
      if (b->limit > low) return b;
    }
    do {
      if (c->chunk == 0) return NULL;
      c->chunk--;
    } while (chunks[c->chunk]->furthest <= low);
    c->index = chunks[c->chunk]->count;
  }
}

/* Forgets freed blocks that no launch may reach and no message needs, and all blocks that begin in [low, high). */
static void forget_blocks(uint64_t low, uint64_t high) {
  uint64_t horizon = number > FREED ? number - FREED : 0;
  if (earliest != NULL && earliest->number < horizon) horizon = earliest->number;
  uint32_t left = 0;
  dead = 0;
  for (uint32_t i = 0; i < chunk_count; i++) {
    chunk *c = chunks[i];
    uint32_t count = 0;
    for (uint32_t k = 0; k < c->count; k++) {
      const block *b = &c->blocks[k];
      if (b->died <= horizon || (b->base >= low && b->base < high)) continue;
      dead += b->died != NEVER;
      c->blocks[count++] = *b;
    }
    c->count = count;
    look_furthest(c);
    if (count == 0) free(c);
    else chunks[left++] = c;
  }
  chunk_count = left;
  dead_most = dead + 2 * FREED;
}

static void end_block(block *b) {
  b->died = number;
  dead++;
}

/* ---- Ranges, with the lock held ---------------------------------------------------------------------------------- */

/* The first range that ends behind the address. */
static uint32_t range_behind(uint64_t address) {
  uint32_t low = 0, high = range_count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (ranges[middle].end <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Cuts [begin, end) out of the ranges; then, if `is_added`, it is one of them. */
static bool set_range(uint64_t begin, uint64_t end, bool is_added) {
  if (range_count + 2 > range_capacity) {
    uint32_t more = range_capacity == 0 ? 64 : range_capacity * 2;
    range *larger = realloc(ranges, more * sizeof(*ranges));
    if (larger == NULL) return false;
    ranges = larger;
    range_capacity = more;
  }
  uint32_t first = range_behind(begin), last = first, count = 0;
  range pieces[3];
  while (last < range_count && ranges[last].begin < end) last++;
  if (first < last && ranges[first].begin < begin) pieces[count++] = (range){ranges[first].begin, begin};
  if (is_added) pieces[count++] = (range){begin, end};
  if (first < last && ranges[last - 1].end > end) pieces[count++] = (range){end, ranges[last - 1].end};
  memmove(ranges + first + count, ranges + last, (range_count - last) * sizeof(range));
  memcpy(ranges + first, pieces, count * sizeof(range));
  range_count = range_count - (last - first) + count;
  return true;
}

/* ---- Marks ------------------------------------------------------------------------------------------------------- */

static bool mark_block(uint64_t base, size_t size, size_t requested, bool is_kept) {
  cursor c = cursor_at(base + size);
  for (block *b; !is_kept && (b = next_over(&c, base)) != NULL;)
    if (b->is_kept && b->died == NEVER) end_block(b);
  return add_block((block){base, base + requested, base + size, number, NEVER, false});
}

static void mark_freed(uint64_t base, bool is_kept) {
  cursor c = cursor_at(base + 1);
  block *freed = NULL, *kept = NULL;
  for (block *b; (b = next_over(&c, base)) != NULL && b->base == base;) {
    if (b->died != NEVER) continue;
    if (b->is_kept) kept = b;
    else freed = b;
  }
  if (freed == NULL) return; /* it was allocated before anything was marked */
  if (!is_kept) {
    end_block(freed);
  } else if (kept == NULL || kept->end < freed->end) { /* of what a capture allocates there, the longest stays */
    freed->is_kept = true;
    if (kept != NULL) end_block(kept);
  } else {
    end_block(freed);
  }
}

ze_result_t cpu_bounds_mark(uint32_t mark, const void *pointer, size_t size, size_t requested) {
  uint64_t base = (uintptr_t)pointer;
  CPU_REFUSE_IF(mark > CPU_MARK_KEPT_FREED, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(size == 0 || size > UINT64_MAX - base || requested > size, ERROR_INVALID_SIZE);
  pthread_mutex_lock(&lock);
  number++;
  bool good = true;
  switch ((cpu_mark)mark) {
    case CPU_MARK_RANGE:
    case CPU_MARK_NO_RANGE:
      forget_blocks(base, base + size);
      good = set_range(base, base + size, mark == CPU_MARK_RANGE);
      break;
    case CPU_MARK_BLOCK:
    case CPU_MARK_KEPT_BLOCK: good = mark_block(base, size, requested, mark == CPU_MARK_KEPT_BLOCK); break;
    case CPU_MARK_FREED:
    case CPU_MARK_KEPT_FREED: mark_freed(base, mark == CPU_MARK_KEPT_FREED); break;
  }
  if (dead > dead_most) forget_blocks(0, 0);
  is_incomplete = is_incomplete || !good;
  pthread_mutex_unlock(&lock);
  return good ? ZE_RESULT_SUCCESS : CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
}

/* ---- Questions of launches --------------------------------------------------------------------------------------- */

static bool narrow(uint64_t time, uint64_t address, uint64_t *begin, uint64_t *end) {
  uint32_t i = range_behind(address);
  if (i > 0 && ranges[i - 1].end > *begin) *begin = ranges[i - 1].end;
  if (i == range_count) return true;
  if (address < ranges[i].begin) {
    if (ranges[i].begin < *end) *end = ranges[i].begin;
    return true;
  }
  cursor c = cursor_at(address + 1);
  const block *widest = NULL;
  for (const block *b; (b = next_over(&c, address)) != NULL;)
    if (is_alive(b, time) && address < b->end && (widest == NULL || b->end - b->base > widest->end - widest->base))
      widest = b;
  if (widest == NULL) return false;
  if (widest->base > *begin) *begin = widest->base;
  if (widest->end < *end) *end = widest->end;
  return true;
}

bool cpu_bounds_narrow(uint64_t time, uint64_t address, uint64_t *begin, uint64_t *end) {
  pthread_mutex_lock(&lock);
  bool good = is_incomplete || narrow(time, address, begin, end);
  pthread_mutex_unlock(&lock);
  return good;
}

/* The block alive at that time which begins behind the address first. */
static const block *first_behind(uint64_t time, uint64_t address) {
  for (uint32_t i = chunk_count == 0 ? 0 : chunk_of(address); i < chunk_count; i++)
    for (uint32_t k = 0; k < chunks[i]->count; k++)
      if (chunks[i]->blocks[k].base > address && is_alive(&chunks[i]->blocks[k], time)) return &chunks[i]->blocks[k];
  return NULL;
}

bool cpu_bounds_nearest(uint64_t time, uint64_t address, cpu_bounds_meant is_meant, const void *context,
                        cpu_bounds_block *out) {
  pthread_mutex_lock(&lock);
  const block *behind = NULL, *freed = NULL, *before = first_behind(time, address), *chosen = NULL;
  cursor c = cursor_at(address + 1);
  for (const block *b; (b = next_over(&c, 0)) != NULL && behind == NULL;) {
    if (is_alive(b, time)) behind = b;
    else if (b->died <= time && address < b->limit && (freed == NULL || b->died > freed->died)) freed = b;
  }
  const block *places[3] = {behind, before, freed};
  for (int i = 0; i < 3 && chosen == NULL; i++)
    if (places[i] != NULL && is_meant(context, places[i]->base, places[i]->end - places[i]->base)) chosen = places[i];
  if (chosen == NULL && behind != NULL && address < behind->limit) chosen = behind;
  if (chosen == NULL) chosen = freed;
  if (chosen != NULL) *out = (cpu_bounds_block){chosen->base, chosen->end - chosen->base, chosen == freed};
  pthread_mutex_unlock(&lock);
  return chosen != NULL;
}
