/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h: failures on request (L0RT_CPU_FAIL). */
#ifndef L0RT_CPU_FAULT_H
#define L0RT_CPU_FAULT_H

#include <stdbool.h>

#include "l0rt/ze.h"

typedef enum {
  CPU_FAULT_NONE,
  CPU_FAULT_LATE_OOM, /* the allocation succeeds, its first use does not */
  CPU_FAULT_HANG,     /* the appended command never completes */
} cpu_fault;

bool cpu_fault_read(const char *text);
bool cpu_fault_any(void);

/* Counts a call and returns the result to inject, or SUCCESS. */
ze_result_t cpu_fault_call(const char *function);

/* The effect that this thread's current call was given; asking takes it. */
cpu_fault cpu_fault_take(void);

#endif
