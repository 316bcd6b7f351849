/* SPDX-License-Identifier: Apache-2.0 */
/* latch.h: a flag that threads can sleep on: the state of an event or a fence. */
#ifndef L0RT_CPU_LATCH_H
#define L0RT_CPU_LATCH_H

#include <stdbool.h>

#include "base/futex.h"
#include "l0rt/ze.h"

typedef struct {
  _Atomic uint32_t set;
  _Atomic uint32_t waiters; /* sleeping hosts; without any, raising costs no system call */
} cpu_latch;

static inline bool cpu_latch_is_set(cpu_latch *latch) {
  return atomic_load_explicit(&latch->set, memory_order_acquire) != 0;
}

static inline void cpu_latch_clear(cpu_latch *latch) { atomic_store_explicit(&latch->set, 0, memory_order_release); }

/* Sets the flag. Returns whether a thread sleeps, so that cpu_futex_wake(&latch->set) must be called. */
static inline bool cpu_latch_raise(cpu_latch *latch) {
  atomic_store(&latch->set, 1);
  return atomic_load(&latch->waiters) != 0;
}

/* SUCCESS once the flag is set, NOT_READY when `timeout` nanoseconds have passed first. */
ze_result_t cpu_latch_wait(cpu_latch *latch, uint64_t timeout);

#endif
