/* SPDX-License-Identifier: Apache-2.0 */
/* fence.h: a fence: the end of what one call handed to a queue. */
#ifndef L0RT_CPU_FENCE_H
#define L0RT_CPU_FENCE_H

#include "base/object.h"
#include "sync/latch.h"

typedef struct {
  cpu_object base;
  const void *queue;        /* borrowed: a queue with fences can't be destroyed; */
  _Atomic uint32_t *fences; /* their number there, */
  uint64_t serial;          /* and its fifo's */
  cpu_latch latch;
  _Atomic uint32_t users; /* submissions under way that will signal it */
} cpu_fence;

static inline cpu_fence *cpu_fence_cast(ze_fence_handle_t handle) { return cpu_cast(handle, CPU_FENCE); }

#endif
