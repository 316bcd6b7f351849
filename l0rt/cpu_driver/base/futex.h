/* SPDX-License-Identifier: Apache-2.0 */
/* futex.h: sleeping on a 32-bit word. The words may lie in memory shared with another process. */
#ifndef L0RT_CPU_FUTEX_H
#define L0RT_CPU_FUTEX_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* Sleeps while the word has this value, until `deadline` (CLOCK_MONOTONIC) at the latest; may wake early. */
static inline void cpu_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t deadline) {
  struct timespec end = {.tv_sec = (time_t)(deadline / 1000000000u), .tv_nsec = (long)(deadline % 1000000000u)};
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, deadline == CPU_NEVER ? NULL : &end, NULL, FUTEX_BITSET_MATCH_ANY);
}

static inline void cpu_futex_wake(_Atomic uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static inline void cpu_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

#endif
