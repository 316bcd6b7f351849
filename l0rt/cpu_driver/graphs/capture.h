/* SPDX-License-Identifier: Apache-2.0 */
/* capture.h: lists in capture mode, whose commands are recorded into a graph. */
#ifndef L0RT_CPU_CAPTURE_H
#define L0RT_CPU_CAPTURE_H

#include "lists/list.h"

/* Captures under way: usually none, so that an append asks nothing more. */
extern _Atomic uint32_t cpu_captures;

static inline bool cpu_capture_any(void) {
  return CPU_UNLIKELY(atomic_load_explicit(&cpu_captures, memory_order_relaxed) != 0);
}

/* A command that is about to be appended, checked but for this: is it recorded instead? A wait for an event that a
 * captured list has signalled makes a list part of that capture. */
ze_result_t cpu_capture_append(cpu_list *list, const cpu_command *command, ze_event_handle_t signal,
                               uint32_t wait_count, ze_event_handle_t *waits, bool *captured);

/* The same of what a closed list has recorded, for a list in capture mode. */
ze_result_t cpu_capture_list(cpu_list *list, const cpu_list *closed, bool *captured);

/* Is the list in capture mode? Would one of these events put it into that mode? */
bool cpu_capture_has(const cpu_list *list);
bool cpu_capture_forks(uint32_t wait_count, ze_event_handle_t *waits);

/* The list is about to end. */
void cpu_capture_forget(cpu_list *list);

#endif
