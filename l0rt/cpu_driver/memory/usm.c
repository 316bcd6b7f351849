/* SPDX-License-Identifier: Apache-2.0 */
/* usm.c: allocating, freeing and asking about device, host and shared memory. */
#include "memory/usm.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/gate.h"
#include "base/invariant.h"
#include "lists/work.h"
#include "memory/bounds.h"
#include "memory/cache.h"
#include "memory/external.h"
#include "memory/import.h"
#include "memory/share.h"
#include "simulate/fault.h"
#include "simulate/latency.h"
#include "simulate/profile.h"
#include "simulate/quirk.h"

static _Atomic uint32_t deferred; /* blocks that wait for the device before they go */

static size_t charged(size_t size) { return (size + CPU_PAGE - 1) & ~(size_t)(CPU_PAGE - 1); }

static cpu_found find_in_state(const void *pointer, uint32_t state) {
  cpu_found found = cpu_heap_find(&cpu_device_heap, pointer);
  if (found.block == NULL) found = cpu_heap_find(&cpu_host_heap, pointer);
  if (found.block == NULL || atomic_load_explicit(&found.block->state, memory_order_acquire) != state ||
      (uintptr_t)pointer - found.base >= found.block->size)
    return (cpu_found){NULL, 0};
  return found;
}

cpu_found cpu_usm_find(const void *pointer) { return find_in_state(pointer, CPU_BLOCK_LIVE); }

/* Places of allocations are whole pages: one that ends so near is where the pointer is, or a page before. */
bool cpu_usm_is_behind(const void *pointer) {
  for (uintptr_t before = 0; before <= CPU_PAGE; before += CPU_PAGE)
    for (int host = 0; host < 2; host++) {
      cpu_found found = cpu_heap_find(host ? &cpu_host_heap : &cpu_device_heap, (const char *)pointer - before);
      if (found.block == NULL || atomic_load_explicit(&found.block->state, memory_order_acquire) != CPU_BLOCK_LIVE)
        continue;
      const uintptr_t end = found.base + found.block->size;
      if ((uintptr_t)pointer >= end && (uintptr_t)pointer - end < CPU_PAGE) return true;
    }
  return false;
}

ze_kernel_indirect_access_flags_t cpu_usm_access(const cpu_context *context, const void *pointer) {
  cpu_mapping import;
  cpu_found found = cpu_heap_find(&cpu_device_heap, pointer);
  if (found.block == NULL) found = cpu_heap_find(&cpu_host_heap, pointer);
  if (found.block == NULL) return cpu_import_find(context, pointer, &import) ? ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST : 0;
  if (found.block->context != context || found.block->is_image) return 0;
  return found.block->type == ZE_MEMORY_TYPE_DEVICE ? ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE
         : found.block->type == ZE_MEMORY_TYPE_HOST ? ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST
                                                    : ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED;
}

ze_result_t cpu_memory_check(const void *pointer, size_t size, bool written) {
  cpu_found found = cpu_heap_find(&cpu_device_heap, pointer);
  if (found.block == NULL) found = cpu_heap_find(&cpu_host_heap, pointer);
  if (found.block == NULL) return cpu_reservation_check(pointer, size, written);
  size_t offset = (uintptr_t)pointer - found.base;
  if (atomic_load_explicit(&found.block->state, memory_order_acquire) != CPU_BLOCK_LIVE || offset > found.block->size ||
      size > found.block->size - offset || (written && found.block->read_only))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the range leaves its allocation, is freed, or cannot be written");
  return found.block->bad ? CPU_REFUSED(ERROR_OUT_OF_DEVICE_MEMORY, "L0RT_CPU_FAIL lets its first use fail")
                          : ZE_RESULT_SUCCESS;
}

bool cpu_memory_is_device(const void *pointer) {
  return cpu_heap_find(&cpu_device_heap, pointer).block != NULL || cpu_reservation_holds(pointer);
}

bool cpu_usm_end(cpu_found found, uint32_t state) {
  cpu_cache_flush(); /* nothing may be written there later */
  if (!atomic_compare_exchange_strong(&found.block->state, &state, CPU_BLOCK_FREE)) return false;
  if (CPU_UNLIKELY(cpu_knobs.bounds)) cpu_bounds_mark(CPU_MARK_NO_RANGE, (void *)found.base, found.block->size, 0);
  if (found.block->file != 0) {
    cpu_heap_unmap_file(cpu_heap_of(found.block), found);
    close(found.block->file);
  }
  free(atomic_load(&found.block->atomic_access));
  if (found.block->device != NULL && found.block->origin == CPU_BLOCK_ALLOCATED) {
    cpu_device_refund(found.block->device, charged(found.block->size));
    atomic_fetch_sub(&found.block->device->pieces, 1);
    cpu_latency(CPU_COST_FREE, 1);
  }
  cpu_count(CPU_USM, -1);
  cpu_heap_give(cpu_heap_of(found.block), found);
  return true;
}

static bool in_use(cpu_found found) { return cpu_engines_touch(found.base, found.base + found.block->size); }

static void end_if_deferred_and_idle(cpu_heap *heap, cpu_found found, void *argument) {
  (void)heap, (void)argument;
  if (atomic_load(&found.block->state) != CPU_BLOCK_DEFERRED || in_use(found)) return;
  if (cpu_usm_end(found, CPU_BLOCK_DEFERRED)) atomic_fetch_sub(&deferred, 1);
}

/* Frees what could not be freed when it was asked for. */
static void retry_deferred(void) {
  if (CPU_LIKELY(atomic_load_explicit(&deferred, memory_order_relaxed) == 0)) return;
  cpu_heap_each(&cpu_device_heap, end_if_deferred_and_idle, NULL);
  cpu_heap_each(&cpu_host_heap, end_if_deferred_and_idle, NULL);
}

static void end_if_of_context(cpu_heap *heap, cpu_found found, void *context) {
  (void)heap;
  if (found.block->context != context) return;
  if (cpu_usm_end(found, CPU_BLOCK_DEFERRED)) atomic_fetch_sub(&deferred, 1);
  cpu_usm_end(found, CPU_BLOCK_LIVE);
}

void cpu_usm_free_all(const cpu_context *context) {
  cpu_ranges_end(context);
  cpu_heap_each(&cpu_device_heap, end_if_of_context, (void *)context);
  cpu_heap_each(&cpu_host_heap, end_if_of_context, (void *)context);
}

static ze_result_t check_host_flags(ze_host_mem_alloc_flags_t flags) {
  CPU_REFUSE_IF(flags > (cpu_knobs.neo_22_43 ? 0xf : 0x1f), ERROR_INVALID_ENUMERATION);
  uint32_t either = ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY | ZE_HOST_MEM_ALLOC_FLAG_BIAS_WRITE_COMBINED;
  return (flags & either) == either ? CPU_REFUSED(ERROR_INVALID_ARGUMENT, "flags that exclude each other")
                                    : ZE_RESULT_SUCCESS;
}

/* The program's own memory, as which no device has memory; unknown structures are skipped, this must not be. */
static bool is_from_program(const ze_base_desc_t *d) {
  while (d != NULL && d->stype != ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC) d = d->pNext;
  return d != NULL;
}

/* What says which memory of the program is to be imported; older drivers know no such structure. */
static const ze_external_memmap_sysmem_ext_desc_t *import_in(const ze_base_desc_t *d) {
  while (d != NULL && d->stype != ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC) d = d->pNext;
  return cpu_knobs.neo_22_43 ? NULL : (const ze_external_memmap_sysmem_ext_desc_t *)d;
}

/* What the specification says of sizes and alignments; `*size` becomes one that can be had. */
static ze_result_t check_extent(const void *next, size_t *size, size_t *alignment) {
  if (cpu_knobs.neo_22_43) {
    *alignment = 0;
    if (*size == 0) *size = 1;
  }
  CPU_REFUSE_IF(*size == 0, ERROR_UNSUPPORTED_SIZE);
  CPU_REFUSE_IF((*alignment & (*alignment - 1)) != 0, ERROR_UNSUPPORTED_ALIGNMENT);
  CPU_REFUSE_IF(is_from_program(next), ERROR_UNSUPPORTED_ENUMERATION);
  bool relaxed = false;
  for (const ze_base_desc_t *d = next; d != NULL; d = d->pNext)
    if (d->stype == ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC)
      relaxed = (((const ze_relaxed_allocation_limits_exp_desc_t *)d)->flags &
                 ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE) != 0;
  return *size > cpu_max_alloc() && !relaxed
             ? CPU_REFUSED(ERROR_UNSUPPORTED_SIZE, "more than one allocation may have without the relaxed limits")
             : ZE_RESULT_SUCCESS;
}

cpu_found cpu_usm_add(cpu_context *context, cpu_device *device, ze_memory_type_t type, size_t size, size_t alignment) {
  static _Atomic uint64_t last_id;
  cpu_heap *heap = type == ZE_MEMORY_TYPE_DEVICE ? &cpu_device_heap : &cpu_host_heap;
  cpu_found found = cpu_heap_take(heap, size, alignment);
  if (found.block == NULL) return found;
  found.block->type = type;
  found.block->read_only = found.block->bad = false;
  found.block->context = context;
  found.block->device = device;
  found.block->size = size;
  found.block->id = atomic_fetch_add(&last_id, 1) + 1;
  found.block->file = 0;
  found.block->origin = CPU_BLOCK_ALLOCATED;
  found.block->is_image = false;
  found.block->exports = 0;
  atomic_store(&found.block->atomic_access, NULL);
  cpu_count(CPU_USM, 1);
  atomic_store_explicit(&found.block->state, CPU_BLOCK_LIVE, memory_order_release);
  return found;
}

cpu_found cpu_usm_add_file(cpu_context *context, cpu_device *device, ze_memory_type_t type, size_t size, int file,
                           uint8_t origin) {
  cpu_found found = cpu_usm_add(context, device, type, size, 0);
  if (found.block == NULL) {
    close(file);
    return found;
  }
  found.block->origin = origin;
  found.block->file = file;
  if (cpu_heap_map_file(cpu_heap_of(found.block), found, file)) return found;
  cpu_usm_end(found, CPU_BLOCK_LIVE);
  return (cpu_found){NULL, 0};
}

bool cpu_usm_share(cpu_found found) {
  cpu_engines_hold(found.base, found.base + found.block->size); /* nothing writes while the pages move */
  int file = found.block->file != 0 ? -1 : cpu_share_make(found.block->size, found.block->type == ZE_MEMORY_TYPE_HOST);
  if (file >= 0) {
    if (cpu_share_fill(file, cpu_usm_engine_view((void *)found.base), found.block->size) &&
        cpu_heap_map_file(cpu_heap_of(found.block), found, file))
      found.block->file = file;
    else close(file);
  }
  cpu_engines_go();
  return found.block->file != 0;
}

/* The host may write into its memory at any time, so what can be exported is in a file from the beginning. */
static bool begin_in_file(cpu_found found, const cpu_external *external) {
  found.block->exports = external->exports;
  if (found.block->type != ZE_MEMORY_TYPE_HOST || (external->exports == 0 && !external->is_for_ipc)) return true;
  int file = cpu_share_make(found.block->size, true);
  if (file < 0) return false;
  found.block->file = file;
  return cpu_heap_map_file(&cpu_host_heap, found, file);
}

static ze_result_t allocate(cpu_context *context, cpu_device *device, ze_memory_type_t type, size_t size,
                            size_t alignment, const cpu_external *external, void **out) {
  ze_result_t full = device != NULL ? ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  cpu_fault fault = cpu_fault_any() ? cpu_fault_take() : CPU_FAULT_NONE;
  retry_deferred();
  if (device != NULL && (charged(size) < size || !cpu_device_charge(device, charged(size))))
    return cpu_refuse(full, NULL);
  cpu_found found = cpu_usm_add(context, device, type, size, alignment);
  if (found.block == NULL) {
    if (device != NULL) cpu_device_refund(device, charged(size));
    return cpu_refuse(full, NULL);
  }
  if (!begin_in_file(found, external)) {
    cpu_usm_end(found, CPU_BLOCK_LIVE);
    return cpu_refuse(full, NULL);
  }
  found.block->bad = fault == CPU_FAULT_LATE_OOM;
  if (device != NULL) {
    atomic_fetch_add(&device->pieces, 1);
    cpu_latency(CPU_COST_ALLOC_RESIDENT, 1);
    cpu_latency(CPU_COST_CLEAR, (double)size);
  }
  /* New memory has undefined contents: programs must not rely on zeros. */
  if (cpu_knobs.chaos) memset(cpu_usm_engine_view((void *)found.base), 0xa5, size < CPU_PAGE ? size : CPU_PAGE);
  *out = (void *)found.base;
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_usm_allocate(cpu_context *context, cpu_device *device, ze_memory_type_t type, size_t size,
                             size_t alignment, void **out) {
  cpu_external external = {.file = -1};
  return allocate(context, device, type, size, alignment, &external, out);
}

/* A new allocation of what is imported, which takes over the descriptor; device NULL for host memory. */
static ze_result_t import_file(cpu_context *context, cpu_device *device, ze_memory_type_t type, size_t size,
                               const cpu_external *external, void **out) {
  ze_result_t result = cpu_external_check(external, size);
  if (result != ZE_RESULT_SUCCESS) return result;
  int file = cpu_share_copy(external->file);
  CPU_REFUSE_IF(file < 0, ERROR_OUT_OF_HOST_MEMORY);
  cpu_found found = cpu_usm_add_file(context, device, type, size, file, CPU_BLOCK_IMPORTED);
  CPU_REFUSE_IF(found.block == NULL, ERROR_OUT_OF_HOST_MEMORY);
  found.block->exports = external->exports;
  close(external->file);
  *out = (void *)found.base;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeMemAllocDevice(ze_context_handle_t context_handle, const ze_device_mem_alloc_desc_t *desc,
                                        size_t size, size_t alignment, ze_device_handle_t device_handle, void **out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0x7, ERROR_INVALID_ENUMERATION);
  if (desc->ordinal != 0 || !cpu_context_has(context, device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the ordinal is not 0, or the device is none of the context");
  if (cpu_knobs.neo_22_43)
    for (const ze_base_desc_t *d = desc->pNext; d != NULL; d = d->pNext)
      if (d->stype != ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC)
        return CPU_REFUSED(ERROR_UNSUPPORTED_ENUMERATION, "this driver knows no such extension of an allocation");
  cpu_external external;
  ze_result_t result = cpu_external_read(desc->pNext, true, &external);
  if (result == ZE_RESULT_SUCCESS) result = check_extent(desc->pNext, &size, &alignment);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (external.file >= 0) return import_file(context, device, ZE_MEMORY_TYPE_DEVICE, size, &external, out);
  return allocate(context, device, ZE_MEMORY_TYPE_DEVICE, size, alignment, &external, out);
}

CPU_EXPORT ze_result_t zeMemAllocHost(ze_context_handle_t context_handle, const ze_host_mem_alloc_desc_t *desc,
                                      size_t size, size_t alignment, void **out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = check_host_flags(desc->flags);
  const ze_external_memmap_sysmem_ext_desc_t *import = import_in(desc->pNext);
  if (result == ZE_RESULT_SUCCESS && import != NULL) return cpu_import_add(context, import, size, out);
  cpu_external external;
  if (result == ZE_RESULT_SUCCESS) result = cpu_external_read(desc->pNext, true, &external);
  if (result == ZE_RESULT_SUCCESS) result = check_extent(desc->pNext, &size, &alignment);
  if (result == ZE_RESULT_SUCCESS && external.file >= 0)
    return import_file(context, NULL, ZE_MEMORY_TYPE_HOST, size, &external, out);
  if (result == ZE_RESULT_SUCCESS && external.exports == 0 && cpu_has_quirk(CPU_QUIRK_CACHED_IMPORTS)) {
    void *cached = cpu_import_reuse(context, size);
    if (cached != NULL) {
      *out = cached;
      return ZE_RESULT_SUCCESS;
    }
  }
  if (result == ZE_RESULT_SUCCESS)
    result = allocate(context, NULL, ZE_MEMORY_TYPE_HOST, size, alignment, &external, out);
  if (result == ZE_RESULT_SUCCESS)
    cpu_usm_find(*out).block->read_only = (desc->flags & ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY) != 0;
  return result;
}

CPU_EXPORT ze_result_t zeMemAllocShared(ze_context_handle_t context_handle,
                                        const ze_device_mem_alloc_desc_t *device_desc,
                                        const ze_host_mem_alloc_desc_t *host_desc, size_t size, size_t alignment,
                                        ze_device_handle_t device_handle, void **out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle); /* optional */
  CPU_REFUSE_IF(context == NULL || (device == NULL && device_handle != NULL), ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(device_desc == NULL || host_desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(device_desc->flags > 0x7, ERROR_INVALID_ENUMERATION);
  ze_result_t result = check_host_flags(host_desc->flags);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (device_desc->ordinal != 0 || (device != NULL && !cpu_context_has(context, device)))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the ordinal is not 0, or the device is none of the context");
  cpu_external external;
  result = cpu_external_read(device_desc->pNext, false, &external);
  if (result == ZE_RESULT_SUCCESS) result = cpu_external_read(host_desc->pNext, false, &external);
  if (result == ZE_RESULT_SUCCESS) result = check_extent(device_desc->pNext, &size, &alignment);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(is_from_program(host_desc->pNext), ERROR_UNSUPPORTED_ENUMERATION);
  return allocate(context, device, ZE_MEMORY_TYPE_SHARED, size, alignment, &external, out);
}

cpu_found cpu_usm_find_own(const cpu_context *context, const void *pointer) {
  cpu_found found = cpu_usm_find(pointer);
  if (found.block == NULL || found.block->context != context || found.base != (uintptr_t)pointer)
    return (cpu_found){NULL, 0};
  return found;
}

CPU_EXPORT ze_result_t zeMemFree(ze_context_handle_t context_handle, void *pointer) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  retry_deferred();
  if (cpu_import_end(context, pointer)) return ZE_RESULT_SUCCESS;
  cpu_found found = cpu_usm_find_own(context, pointer);
  if (found.block == NULL || found.block->origin == CPU_BLOCK_OPENED || !cpu_usm_end(found, CPU_BLOCK_LIVE))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "no allocation of this context begins there");
  return ZE_RESULT_SUCCESS;
}

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL); }

CPU_EXPORT ze_result_t zeMemFreeExt(ze_context_handle_t context_handle, const ze_memory_free_ext_desc_t *desc,
                                    void *pointer) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || pointer == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->freePolicy > 0x3, ERROR_INVALID_ENUMERATION);
  bool defer = (desc->freePolicy & ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE) != 0;
  CPU_REFUSE_IF(defer && cpu_knobs.neo_22_43, ERROR_UNSUPPORTED_FEATURE);
  retry_deferred();
  bool blocks = (desc->freePolicy & ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE) != 0;
  cpu_mapping import;
  if (cpu_import_find(context, pointer, &import) && import.base == (uintptr_t)pointer) {
    while (blocks && cpu_engines_touch(import.base, import.base + import.size)) nap();
    return cpu_import_end(context, pointer)
               ? ZE_RESULT_SUCCESS
               : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "no allocation of this context begins there");
  }
  cpu_found found = cpu_usm_find_own(context, pointer);
  if (found.block == NULL || found.block->origin == CPU_BLOCK_OPENED)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "no allocation of this context begins there");
  if (defer && in_use(found)) {
    uint32_t live = CPU_BLOCK_LIVE;
    if (!atomic_compare_exchange_strong(&found.block->state, &live, CPU_BLOCK_DEFERRED))
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "another thread frees it");
    atomic_fetch_add(&deferred, 1);
    return ZE_RESULT_SUCCESS;
  }
  while (blocks && in_use(found)) nap();
  return cpu_usm_end(found, CPU_BLOCK_LIVE) ? ZE_RESULT_SUCCESS
                                            : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "another thread frees it");
}
