/* SPDX-License-Identifier: Apache-2.0 */
/* object.h: what every handle of this driver is. A handle is the address of a slot in one reserved range of
 * addresses that is never given back, so looking at any pointer that falls into the range is safe: a stranger's
 * or destroyed handle is recognised by arithmetic and one load, without a lock or a hash. */
#ifndef L0RT_CPU_OBJECT_H
#define L0RT_CPU_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "l0rt/ze.h"

#define CPU_EXPORT __attribute__((visibility("default")))
#define CPU_LIKELY(x) __builtin_expect(!!(x), 1)
#define CPU_UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef enum {
  CPU_DRIVER,
  CPU_DEVICE,
  CPU_CONTEXT,
  CPU_QUEUE,
  CPU_LIST,
  CPU_FENCE,
  CPU_EVENT_POOL,
  CPU_EVENT,
  CPU_POINT,
  CPU_PHYSICAL,
  CPU_RESERVATION,
  CPU_USM,
  CPU_MODULE,
  CPU_KERNEL,
  CPU_BUILD_LOG,
  CPU_GRAPH,
  CPU_EXECUTABLE,
  CPU_IMAGE,
  CPU_SAMPLER,
  CPU_KINDS,
} cpu_kind;

/* First in every object. From version 1.17 on a loader dispatches through tables that it finds at the start of a
 * handle: core, tools, system management, runtime. They outlive the object, so that a stale handle comes this far and
 * is recognised here. */
typedef struct {
  const void *tables[4];
  _Atomic uint32_t live; /* the kind plus one; 0 in a free slot */
  uint32_t next_free;
} cpu_object;

enum { CPU_SLOT = 256 }; /* bytes; every object fits one slot */

extern struct cpu_slots {
  uintptr_t base;
  _Atomic uintptr_t size; /* bytes handed out so far: 0 before the first object */
} cpu_slots;

/* Returns the live object of this kind behind a handle, or NULL. */
static inline void *cpu_cast(const void *handle, cpu_kind kind) {
  uintptr_t size = atomic_load_explicit(&cpu_slots.size, memory_order_acquire);
  uintptr_t offset = (uintptr_t)handle - cpu_slots.base;
  if (offset >= size || offset % CPU_SLOT != 0) return NULL;
  cpu_object *object = (cpu_object *)handle;
  return atomic_load_explicit(&object->live, memory_order_acquire) == (uint32_t)kind + 1 ? object : NULL;
}

/* Returns a zeroed object, or NULL when addresses or memory have run out. */
void *cpu_new(cpu_kind kind);
void cpu_delete(void *object);

/* The two halves of cpu_delete, for an object that others still refer to: its handle ends now (false: it has already),
 * its slot is used again later. */
bool cpu_retire(void *object);
void cpu_recycle(void *object);

/* Calls `visit` for every live object of a kind. */
void cpu_each(cpu_kind kind, void (*visit)(void *object, void *argument), void *argument);

/* The ledger also counts what lives outside the slots, such as allocations. */
void cpu_count(cpu_kind kind, int change);

#endif
