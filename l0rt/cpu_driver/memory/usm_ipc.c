/* SPDX-License-Identifier: Apache-2.0 */
/* usm_ipc.c: memory of devices and of the host between processes. An allocation moves into a file when it is exported for
 * the first time, so that the others pay nothing for the possibility. */
#include <unistd.h>

#include "base/driver.h"
#include "base/gate.h"
#include "lists/work.h"
#include "memory/reservation.h"
#include "memory/share.h"
#include "memory/usm.h"
#include "memory/usm_range.h"

/* The whole of it, wherever and in how many parts it is mapped. */
static ze_result_t get_handle_of_physical(const cpu_context *context, cpu_physical *physical,
                                          ze_ipc_mem_handle_t *ipc) {
  if (physical->context != context) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the memory is of another context");
  return cpu_physical_share(physical) && cpu_share_export(CPU_USM, physical->file, physical->size, 0, 1, ipc->data)
             ? ZE_RESULT_SUCCESS
             : CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
}

static ze_result_t get_handle(ze_context_handle_t context_handle, const void *pointer, ze_ipc_mem_handle_t *ipc) {
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL || ipc == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_physical *physical = cpu_physical_cast((ze_physical_mem_handle_t)pointer);
  cpu_mapping mapping;
  if (physical == NULL && cpu_reservation_find(context, pointer, &mapping)) physical = mapping.physical;
  if (physical != NULL) return get_handle_of_physical(context, physical, ipc);
  cpu_found found = cpu_usm_find(pointer);
  if (found.block == NULL || found.block->context != context || found.block->type == ZE_MEMORY_TYPE_SHARED ||
      found.block->origin == CPU_BLOCK_OPENED)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "it is no device or host memory that this context has allocated");
  bool good = cpu_usm_share(found) &&
              cpu_share_export(CPU_USM, found.block->file, cpu_share_size(found.block->file), 0, 1, ipc->data);
  return good ? ZE_RESULT_SUCCESS : CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
}

CPU_EXPORT ze_result_t zeMemGetIpcHandle(ze_context_handle_t context, const void *pointer, ze_ipc_mem_handle_t *ipc) {
  CPU_ENTER();
  return get_handle(context, pointer, ipc);
}

/* Of the sorts of handles there is one: for processes of this machine. */
CPU_EXPORT ze_result_t zeMemGetIpcHandleWithProperties(ze_context_handle_t context, const void *pointer, void *next,
                                                       ze_ipc_mem_handle_t *ipc) {
  CPU_ENTER();
  const ze_ipc_phys_mem_handle_range_ext_desc_t *range = NULL;
  for (const ze_base_desc_t *d = next; d != NULL; d = d->pNext) {
    if (d->stype == ZE_STRUCTURE_TYPE_IPC_PHYS_MEM_HANDLE_RANGE_EXT_DESC) range = (const void *)d;
    if (d->stype != ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC) continue;
    uint32_t flags = ((const ze_ipc_mem_handle_type_ext_desc_t *)d)->typeFlags;
    CPU_REFUSE_IF(flags > 0x3, ERROR_INVALID_ENUMERATION);
    CPU_REFUSE_IF(flags & ZE_IPC_MEM_HANDLE_TYPE_FLAG_FABRIC_ACCESSIBLE, ERROR_UNSUPPORTED_FEATURE);
  }
  if (range == NULL) return get_handle(context, pointer, ipc);
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL || ipc == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(!cpu_driver_shares_ranges(), ERROR_UNSUPPORTED_FEATURE);
  return cpu_range_export(cpu_context_cast(context), pointer, range->size, ipc);
}

/* A file descriptor for the memory of a handle; it is the caller's to close. */
CPU_EXPORT ze_result_t zeMemGetFileDescriptorFromIpcHandleExp(ze_context_handle_t context, ze_ipc_mem_handle_t ipc,
                                                              uint64_t *descriptor) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(descriptor == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_share_record record;
  int file = cpu_share_import(CPU_USM, ipc.data, &record);
  if (file >= 0 && cpu_is_range(&record)) { /* it has no one descriptor */
    close(file);
    file = -1;
  }
  if (file < 0) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the handle is none that another process has exported");
  *descriptor = (uint64_t)file;
  return ZE_RESULT_SUCCESS;
}

/* A handle for the memory behind a descriptor that came from another process; good while the descriptor is open. */
CPU_EXPORT ze_result_t zeMemGetIpcHandleFromFileDescriptorExp(ze_context_handle_t context, uint64_t descriptor,
                                                              ze_ipc_mem_handle_t *ipc) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(ipc == NULL, ERROR_INVALID_NULL_POINTER);
  size_t size = descriptor <= INT32_MAX ? cpu_share_size((int)descriptor) : 0;
  if (size == 0 || !cpu_share_export(CPU_USM, (int)descriptor, size, 0, 1, ipc->data))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the file descriptor is none of exported memory");
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeMemPutIpcHandle(ze_context_handle_t context, ze_ipc_mem_handle_t ipc) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL, ERROR_INVALID_NULL_HANDLE);
  cpu_share_record record; /* of an allocation it holds nothing: the file goes with that */
  if (cpu_share_describe(CPU_USM, ipc.data, &record)) cpu_range_put(&record);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeMemOpenIpcHandle(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
                                          ze_ipc_mem_handle_t ipc, ze_ipc_memory_flags_t flags, void **out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(flags > 0x3, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  if (!cpu_context_has(context, device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
  cpu_share_record record;
  int file = cpu_share_import(CPU_USM, ipc.data, &record);
  if (file < 0) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the handle is none that another process has exported");
  if (cpu_is_range(&record)) return cpu_range_open(context, device, &record, file, out);
  cpu_found found = cpu_share_is_on_host(file)
                        ? cpu_usm_add_file(context, NULL, ZE_MEMORY_TYPE_HOST, record.size, file, CPU_BLOCK_OPENED)
                        : cpu_usm_add_file(context, device, ZE_MEMORY_TYPE_DEVICE, record.size, file, CPU_BLOCK_OPENED);
  CPU_REFUSE_IF(found.block == NULL, ERROR_OUT_OF_HOST_MEMORY);
  *out = (void *)found.base;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeMemCloseIpcHandle(ze_context_handle_t context_handle, const void *pointer) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_found found = cpu_usm_find_own(context, pointer);
  if (found.block == NULL || found.block->origin != CPU_BLOCK_OPENED || !cpu_usm_end(found, CPU_BLOCK_LIVE))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "no imported memory of this context begins there");
  return ZE_RESULT_SUCCESS;
}
