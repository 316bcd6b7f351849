/* SPDX-License-Identifier: Apache-2.0 */
/* atomic_access.c: which atomics a program announces for a shared allocation. All atomics work in all memory here, so the
 * attributes are kept and change nothing. Their granule is the allocation. */
#include <stdlib.h>

#include "base/gate.h"
#include "memory/usm.h"

enum {
  NO_ATOMICS = ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_ATOMICS,
  ALLOWED = ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_HOST_ATOMICS | ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_DEVICE_ATOMICS |
      ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_SYSTEM_ATOMICS,
  DENIED = ALLOWED >> 1, /* each kind is denied by the bit below the one that allows it */
};

/* The allocation, or a refusal: the call is for shared memory, and every byte of the range must be there. */
static ze_result_t find(const cpu_context *context, const cpu_device *device, const void *pointer, size_t size,
                        cpu_found *found) {
  *found = cpu_usm_find(pointer);
  if (found->block == NULL || found->block->context != context || found->block->type != ZE_MEMORY_TYPE_SHARED ||
      size > found->block->size - ((uintptr_t)pointer - found->base))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the range is no part of a shared allocation of this context");
  if (device != NULL && !cpu_context_has(context, device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
  return ZE_RESULT_SUCCESS;
}

/* The attributes of all devices; NULL without memory. */
static uint8_t *attributes(cpu_block *block) {
  uint8_t *there = atomic_load(&block->atomic_access), *fresh;
  if (there != NULL) return there;
  fresh = calloc(cpu_device_count, sizeof(*fresh));
  if (fresh == NULL || atomic_compare_exchange_strong(&block->atomic_access, &there, fresh)) return fresh;
  free(fresh);
  return there;
}

CPU_EXPORT ze_result_t zeMemSetAtomicAccessAttributeExp(ze_context_handle_t context_handle,
                                                        ze_device_handle_t device_handle, const void *pointer,
                                                        size_t size, ze_memory_atomic_attr_exp_flags_t flags) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle); /* NULL: all devices */
  CPU_REFUSE_IF(context == NULL || (device == NULL && device_handle != NULL), ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(flags > (NO_ATOMICS | ALLOWED | DENIED), ERROR_INVALID_ENUMERATION);
  cpu_found found;
  ze_result_t result = find(context, device, pointer, size, &found);
  if (result != ZE_RESULT_SUCCESS) return result;
  const uint32_t denied = (flags & NO_ATOMICS) != 0 ? DENIED : flags & DENIED;
  if ((flags & ALLOWED & denied << 1) != 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the same atomics are allowed and not allowed");
  uint8_t *all = attributes(found.block);
  CPU_REFUSE_IF(all == NULL, ERROR_OUT_OF_HOST_MEMORY);
  for (uint32_t i = 0; i < cpu_device_count; i++)
    if (device == NULL || device->index == i) all[i] = (uint8_t)flags;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeMemGetAtomicAccessAttributeExp(ze_context_handle_t context_handle,
                                                        ze_device_handle_t device_handle, const void *pointer,
                                                        size_t size, ze_memory_atomic_attr_exp_flags_t *flags) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL || flags == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_found found;
  ze_result_t result = find(context, device, pointer, size, &found);
  if (result != ZE_RESULT_SUCCESS) return result;
  const uint8_t *all = atomic_load(&found.block->atomic_access);
  *flags = all == NULL ? 0 : all[device->index];
  return ZE_RESULT_SUCCESS;
}
