/* SPDX-License-Identifier: Apache-2.0 */
/* context.h: a context: a set of devices, and the owner of what is made in it. */
#ifndef L0RT_CPU_CONTEXT_H
#define L0RT_CPU_CONTEXT_H

#include "base/device.h"
#include "base/knobs.h"

typedef struct {
  cpu_object base;
  uint64_t devices;      /* a bit for each device index */
  _Atomic uint32_t holds; /* the handle's own, and one for each object made in it: the last one ends it */
  atomic_bool quiet;      /* its user reports failed launches, so the driver prints nothing of them */
} cpu_context;

static inline cpu_context *cpu_context_cast(ze_context_handle_t handle) { return cpu_cast(handle, CPU_CONTEXT); }

/* What is made in a context holds it, so that either may be destroyed first. */
static inline void cpu_context_hold(cpu_context *context) { atomic_fetch_add(&context->holds, 1); }
static inline void cpu_context_let_go(cpu_context *context) {
  if (atomic_fetch_sub(&context->holds, 1) == 1) cpu_recycle(context);
}

static inline bool cpu_context_has(const cpu_context *context, const cpu_device *device) {
  return (context->devices >> device->index & 1) != 0;
}

/* May an object of one context be used with one of the other? The specification forbids it; Intel's driver does not look,
 * so L0RT_CPU_LENIENT lets it pass. */
static inline bool cpu_contexts_agree(const cpu_context *one, const cpu_context *other) {
  return one == other || cpu_knobs.lenient;
}

/* What else a context has to do with, in the order of its end, and NULLs behind the last: packages that come later in the
 * order of includes do it (start.c). */
typedef struct {
  bool (*is_busy)(const cpu_context *context); /* then the context cannot end; NULL: never */
  void (*end)(const cpu_context *context);
} cpu_context_part;
extern const cpu_context_part cpu_context_parts[];

#endif
