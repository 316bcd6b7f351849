/* SPDX-License-Identifier: Apache-2.0 */
/* context.h: a context: a set of devices, and the owner of what is made in it. */
#ifndef L0RT_CPU_CONTEXT_H
#define L0RT_CPU_CONTEXT_H

#include "device.h"

typedef struct {
  cpu_object base;
  uint64_t devices;          /* a bit for each device index */
  _Atomic uint32_t children; /* lists, queues, pools, reservations, physical memory: they must go first */
} cpu_context;

static inline cpu_context *cpu_context_cast(ze_context_handle_t handle) { return cpu_cast(handle, CPU_CONTEXT); }

static inline bool cpu_context_has(const cpu_context *context, const cpu_device *device) {
  return (context->devices >> device->index & 1) != 0;
}

#endif
