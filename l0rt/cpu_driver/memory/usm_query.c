/* SPDX-License-Identifier: Apache-2.0 */
/* usm_query.c: what a pointer is, and residency. */
#include "base/gate.h"
#include "memory/external.h"
#include "memory/import.h"
#include "memory/usm.h"
#include "simulate/quirk.h"

CPU_EXPORT ze_result_t zeMemGetAllocProperties(ze_context_handle_t context_handle, const void *pointer,
                                               ze_memory_allocation_properties_t *properties,
                                               ze_device_handle_t *device) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL || properties == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_found found = cpu_usm_find(pointer);
  cpu_mapping mapping;
  properties->type = ZE_MEMORY_TYPE_UNKNOWN;
  properties->id = properties->pageSize = 0;
  if (device != NULL) *device = NULL;
  if (found.block != NULL && found.block->context == context) {
    properties->type = found.block->type;
    properties->id = found.block->id;
    properties->pageSize = CPU_PAGE;
    if (device != NULL) *device = (ze_device_handle_t)found.block->device;
  } else if (cpu_reservation_find(context, pointer, &mapping)) {
    properties->type = cpu_has_quirk(CPU_QUIRK_UNTYPED_MAPPINGS) ? ZE_MEMORY_TYPE_UNKNOWN
                       : mapping.on_host                         ? ZE_MEMORY_TYPE_HOST
                                                                 : ZE_MEMORY_TYPE_DEVICE;
    properties->id = mapping.id;
    properties->pageSize = CPU_PAGE;
    if (device != NULL) *device = mapping.on_host ? NULL : (ze_device_handle_t)mapping.device;
  } else if (cpu_import_find(context, pointer, &mapping)) {
    properties->type = ZE_MEMORY_TYPE_HOST_IMPORTED;
    properties->id = mapping.id;
    properties->pageSize = CPU_IMPORT_PAGE;
  }
  ze_external_memory_export_fd_t *export = cpu_external_export_in(properties->pNext);
  if (export == NULL) return ZE_RESULT_SUCCESS;
  bool is_own = found.block != NULL && found.block->context == context;
  ze_result_t result = cpu_external_check_export(export, is_own ? found.block->exports : 0);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(!cpu_usm_share(found), ERROR_OUT_OF_HOST_MEMORY);
  return cpu_external_export(export, found.block->file);
}

CPU_EXPORT ze_result_t zeMemGetAddressRange(ze_context_handle_t context_handle, const void *pointer, void **base,
                                            size_t *size) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_found found = cpu_usm_find(pointer);
  cpu_mapping mapping;
  if (found.block != NULL && found.block->context == context) {
    mapping.base = found.base;
    mapping.size = found.block->size;
  } else if (!cpu_reservation_find(context, pointer, &mapping) && !cpu_import_find(context, pointer, &mapping)) {
    return cpu_knobs.neo_22_43 ? CPU_REFUSED(ERROR_UNKNOWN, "it is no memory of this driver")
                               : CPU_REFUSED(ERROR_ADDRESS_NOT_FOUND, NULL);
  }
  if (base != NULL) *base = (void *)mapping.base;
  if (size != NULL) *size = mapping.size;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t check_residency(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
                                   const void *pointer, size_t size) {
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  if (!cpu_context_has(context, device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
  cpu_mapping mapping;
  if (cpu_usm_find(pointer).block == NULL && !cpu_reservation_find(context, pointer, &mapping) &&
      !cpu_import_find(context, pointer, &mapping))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "it is no memory that the driver knows");
  return cpu_memory_check(pointer, size, false);
}

/* Memory is committed at first touch and never moves, so residency is true of all of it; only the arguments count,
 * and an injected shortage, which a device would notice here. */
CPU_EXPORT ze_result_t zeContextMakeMemoryResident(ze_context_handle_t context, ze_device_handle_t device,
                                                   void *pointer, size_t size) {
  CPU_ENTER();
  return check_residency(context, device, pointer, size);
}

CPU_EXPORT ze_result_t zeContextEvictMemory(ze_context_handle_t context, ze_device_handle_t device, void *pointer,
                                            size_t size) {
  CPU_ENTER();
  return check_residency(context, device, pointer, size);
}
