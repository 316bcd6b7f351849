/* SPDX-License-Identifier: Apache-2.0 */
/* failure.h: failed launches, and what the thread's last error was. The first wait for a failed launch returns the failure,
 * once. */
#ifndef L0RT_CPU_FAILURE_H
#define L0RT_CPU_FAILURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "l0rt/ze.h"
#include "sync/latch.h"

struct cpu_event;

/* failures that no wait has returned yet: usually none, so that a wait needs no search */
extern _Atomic uint32_t cpu_failures;

/* A launch of this fifo failed; it is about to signal this event, if any. */
void cpu_failure_add(uint64_t serial, const struct cpu_event *event, const char *text);

/* A fifo signals an event behind a launch of its own that failed without one: who waits for it learns of the failure,
 * unless an event that the fifo signals later takes its place. */
void cpu_failure_follow(uint64_t serial, const struct cpu_event *event);

/* The failures of a fifo, or of what signalled an event: SUCCESS, or the error, whose description is this thread's. It
 * is told once of all of them. */
ze_result_t cpu_failure_of_fifo(uint64_t serial);
ze_result_t cpu_failure_of_event(const struct cpu_event *event);

static inline ze_result_t cpu_fifo_failure(uint64_t serial) {
  if (__builtin_expect(atomic_load_explicit(&cpu_failures, memory_order_acquire) == 0, 1)) return ZE_RESULT_SUCCESS;
  return cpu_failure_of_fifo(serial);
}

static inline ze_result_t cpu_event_failure(const struct cpu_event *event) {
  if (__builtin_expect(atomic_load_explicit(&cpu_failures, memory_order_acquire) == 0, 1)) return ZE_RESULT_SUCCESS;
  return cpu_failure_of_event(event);
}

/* The event ends or is reset: an earlier failure no longer belongs to it. */
void cpu_failure_forget(const struct cpu_event *event);

/* The fifo ends: only events still tell of its failures. */
void cpu_failure_end(uint64_t serial);

/* The call is refused with this result: what zeDriverGetLastErrorDescription says is the result in words, and a copy of
 * `why`. */
ze_result_t cpu_refuse(ze_result_t result, const char *why) __attribute__((cold));
#define CPU_REFUSED(result, why) cpu_refuse(ZE_RESULT_##result, why)
/* In a function whose result is that of a call. The condition is the reason. */
#define CPU_REFUSE_IF(condition, result)                                                                               \
  do {                                                                                                                 \
    if (__builtin_expect(!!(condition), 0)) return cpu_refuse(ZE_RESULT_##result, #condition);                         \
  } while (0)

/* What zeDriverGetLastErrorDescription says in this thread, once. An empty text changes nothing. */
void cpu_failure_describe(const char *text);
const char *cpu_failure_description(void);

/* What a launch that this thread ran failed of, until the next one. */
void cpu_failure_keep(const char *text);
const char *cpu_failure_kept(void);

/* Raised when a launch has failed where L0RT_CPU_FAULT=lost asks for lost devices, until one is reset. */
extern cpu_latch cpu_failure_lost;

#endif
