/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.h: which bytes of an allocator's memory are allocated, for L0RT_CPU_BOUNDS.
 *
 * An allocator that cuts its blocks from large pieces of memory marks these pieces as ranges, and each block in them.
 * What is in a range and in no block is not for kernels: it is behind a block, was freed, or was never allocated.
 *
 * A program frees in the order of a stream, so a launch may run when its memory has been freed, and given to others. So
 * each mark has a number, and a launch may reach what was allocated when it was submitted. */
#ifndef L0RT_CPU_BOUNDS_H
#define L0RT_CPU_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "l0rt/ze.h"

typedef enum {
  CPU_MARK_RANGE,      /* nothing of these `size` bytes is allocated yet */
  CPU_MARK_NO_RANGE,   /* they are not the allocator's any more */
  CPU_MARK_BLOCK, /* the first `requested` of these `size` bytes are allocated; a block of the range ends behind them */
  CPU_MARK_FREED, /* the block that begins here */
  CPU_MARK_KEPT_BLOCK, /* the same two where a graph keeps the memory: its launches may reach all blocks */
  CPU_MARK_KEPT_FREED, /* that there were */
} cpu_mark;

/* The number of the last mark when a launch was submitted, among those of all launches that have not ended. */
typedef struct cpu_bounds_time {
  uint64_t number; /* 0: it is not among them */
  struct cpu_bounds_time *earlier, *later;
} cpu_bounds_time;

void cpu_bounds_enter(cpu_bounds_time *time);
void cpu_bounds_leave(cpu_bounds_time *time);

/* What the extension function does that l0rt's allocator calls. */
ze_result_t cpu_bounds_mark(uint32_t mark, const void *base, size_t size, size_t requested);

/* Makes accessible memory around the address smaller, to what a launch of that time may reach. Returns false if it may
 * not reach the address. */
bool cpu_bounds_narrow(uint64_t time, uint64_t address, uint64_t *begin, uint64_t *end);

/* Which block an address was meant for that is in none: the first for which `is_meant` of the one that it is behind, the
 * one that it is before, and the one that was freed there last. Without any it is the first or the last. */
typedef struct {
  uint64_t base;
  size_t size;
  bool is_freed;
} cpu_bounds_block;
typedef bool (*cpu_bounds_meant)(const void *context, uint64_t base, size_t size);
bool cpu_bounds_nearest(uint64_t time, uint64_t address, cpu_bounds_meant is_meant, const void *context,
                        cpu_bounds_block *block);

#endif
