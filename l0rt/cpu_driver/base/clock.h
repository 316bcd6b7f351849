/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: the host's clock in nanoseconds, and the device's in ticks. */
#ifndef L0RT_CPU_CLOCK_H
#define L0RT_CPU_CLOCK_H

#include <stdint.h>
#include <time.h>

#define CPU_NEVER UINT64_MAX

/* The clock that the specification names for host timestamps on Linux. */
static inline uint64_t cpu_host_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The clock that futex timeouts count in. */
static inline uint64_t cpu_wait_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* When a timeout from now ends; the sum saturates, so that UINT64_MAX stays "for ever". */
static inline uint64_t cpu_deadline(uint64_t timeout) {
  uint64_t end;
  return __builtin_add_overflow(cpu_wait_ns(), timeout, &end) ? CPU_NEVER : end;
}

/* Device ticks of a host time, all bits of it. */
uint64_t cpu_ticks(uint64_t host_ns);

/* The bits of a tick count that a timestamp holds. */
uint64_t cpu_tick_mask(void);

#endif
