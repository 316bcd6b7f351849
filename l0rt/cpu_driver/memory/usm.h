/* SPDX-License-Identifier: Apache-2.0 */
/* usm.h: allocations: device, host and shared memory. */
#ifndef L0RT_CPU_USM_H
#define L0RT_CPU_USM_H

#include "memory/heap.h"
#include "memory/reservation.h"

/* The live allocation that contains a pointer; block NULL if there is none. */
cpu_found cpu_usm_find(const void *pointer);

/* Is it behind the end of a live allocation, by less than a page? */
bool cpu_usm_is_behind(const void *pointer);

/* May a command read or write these bytes? Plain host memory may always be used; of an allocation every byte must be
 * there. */
ze_result_t cpu_memory_check(const void *pointer, size_t size, bool written);

/* Is it memory of a device, allocated or mapped? */
bool cpu_memory_is_device(const void *pointer);

/* A new live allocation that counts for no device; block NULL without memory. */
cpu_found cpu_usm_add(cpu_context *context, cpu_device *device, ze_memory_type_t type, size_t size, size_t alignment);

/* A new live allocation that shows a file, which then belongs to it; block NULL without memory, and the file is closed. */
cpu_found cpu_usm_add_file(cpu_context *context, cpu_device *device, ze_memory_type_t type, size_t size, int file,
                           uint8_t origin);

/* Moves an allocation into a file that other processes can open, unless it is in one. */
bool cpu_usm_share(cpu_found found);

/* A new live allocation that counts for its device, if it has one. */
ze_result_t cpu_usm_allocate(cpu_context *context, cpu_device *device, ze_memory_type_t type, size_t size,
                             size_t alignment, void **out);

/* Ends an allocation in this state; false when another thread was first. */
bool cpu_usm_end(cpu_found found, uint32_t state);

/* The allocation that begins at this pointer and belongs to this context. */
cpu_found cpu_usm_find_own(const cpu_context *context, const void *pointer);

/* Which of a kernel's indirect accesses reach what a context has allocated or imported there; 0: none. */
ze_kernel_indirect_access_flags_t cpu_usm_access(const cpu_context *context, const void *pointer);

/* Ends the handles of ranges that a context has made. */
void cpu_ranges_end(const cpu_context *context);

/* Frees all that is left of a context. */
void cpu_usm_free_all(const cpu_context *context);

/* Where an engine finds what a pointer points to. */
static inline char *cpu_usm_engine_view(const void *pointer) {
  if (CPU_LIKELY(!cpu_device_heap.hidden)) return (char *)pointer;
  char *view = cpu_heap_view(&cpu_device_heap, pointer);
  return view != pointer ? view : cpu_reservation_view(pointer);
}

#endif
