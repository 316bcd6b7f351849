/* usm.h: allocations: device, host and shared memory. */
#ifndef L0RT_CPU_USM_H
#define L0RT_CPU_USM_H

#include "heap.h"
#include "reservation.h"

extern cpu_heap cpu_device_heap; /* a heap of its own, so that it can be hidden from the host */
extern cpu_heap cpu_host_heap;   /* host and shared memory */

/* The live allocation that a pointer falls into; block NULL for a stranger. */
cpu_found cpu_usm_find(const void *pointer);

/* May a command read or write these bytes? Plain host memory may always be used; of an allocation every byte must be
 * there. */
ze_result_t cpu_memory_check(const void *pointer, size_t size, bool written);

/* Frees all that is left of a context. */
void cpu_usm_free_all(cpu_context *context);

/* Takes bytes of a device's memory, or says that there are none left; gives them back. */
bool cpu_usm_charge(cpu_device *device, size_t size);
void cpu_usm_refund(cpu_device *device, size_t size);

/* Where an engine finds what a pointer points to. */
static inline char *cpu_usm_engine_view(const void *pointer) {
  if (CPU_LIKELY(!cpu_device_heap.hidden)) return (char *)pointer;
  char *view = cpu_heap_view(&cpu_device_heap, pointer);
  return view != pointer ? view : cpu_reservation_view(pointer);
}

#endif
