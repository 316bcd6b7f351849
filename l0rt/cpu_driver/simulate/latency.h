/* SPDX-License-Identifier: Apache-2.0 */
/* latency.h: what calls cost on a simulated device: waited for, or only counted. */
#ifndef L0RT_CPU_LATENCY_H
#define L0RT_CPU_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/object.h"

/* In microseconds, but for those that say otherwise. */
typedef enum {
  CPU_COST_PHYS_CREATE,
  CPU_COST_PHYS_DESTROY,
  CPU_COST_MAP_FRESH, /* physical memory is mapped for the first time */
  CPU_COST_MAP_MOVED,
  CPU_COST_UNMAP,
  CPU_COST_MAP_PER_PIECE,  /* for each piece of the reservation */
  CPU_COST_CLEAR,          /* milliseconds a GiB of new device memory */
  CPU_COST_ALLOC_RESIDENT, /* of device memory */
  CPU_COST_FREE,
  CPU_COST_APPEND_LAUNCH,
  CPU_COST_APPEND_COPY, /* or fill */
  CPU_COST_COPY_PER_PIECE,
  CPU_COST_SUBMIT,           /* every append */
  CPU_COST_SUBMIT_PER_PIECE, /* for each piece that a submission lists, times as many */
  CPU_COST_RECORD_SCOPE0,    /* a signal of a counter-based event that the host does not see, */
  CPU_COST_RECORD_HOST,      /* of one that it sees, */
  CPU_COST_RECORD_PLAIN,     /* and of any other event */
  CPU_COST_LIST_SWITCH,      /* an append to another list than the engine's last */
  CPU_COST_WAKE_UP,          /* a wait of the host's that had to wait */
  CPU_COST_QUERY_PENDING,    /* a query that says not yet */
  CPU_COST_MAP_BLOCKS,       /* 1: mapping and unmapping hold up the appends of other threads */
  CPU_COST_H2D_GBPS,         /* 10^9 bytes a second: the device's time, not the host's */
  CPU_COST_D2H_GBPS,
  CPU_COSTS,
} cpu_cost;

extern bool cpu_latency_on; /* something costs something */

/* Reads L0RT_CPU_LATENCY: name=value with commas between them, and the word `virtual`: count, and wait for nothing. */
bool cpu_latency_read(const char *text);

/* Takes over the figures of the device that is simulated. */
void cpu_latency_of_profile(void);

/* A cost is due, so many times: spun below 50 us, slept above, and counted. */
void cpu_latency_spend(cpu_cost cost, double times);
static inline void cpu_latency(cpu_cost cost, double times) {
  if (CPU_UNLIKELY(cpu_latency_on)) cpu_latency_spend(cost, times);
}

/* The same for mapping and unmapping, which may hold up appends; what an append does before it begins. */
void cpu_latency_map(cpu_cost cost, size_t pieces);
void cpu_latency_append(void);

/* A copy of so many bytes has taken so many nanoseconds: the rest of what it would take is waited for. */
void cpu_latency_copied(cpu_cost rate, size_t size, uint64_t spent_ns);

#endif
