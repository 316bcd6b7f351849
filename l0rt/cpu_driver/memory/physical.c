/* SPDX-License-Identifier: Apache-2.0 */
/* physical.c: physical memory for virtual addresses. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/gate.h"
#include "lists/work.h"
#include "memory/external.h"
#include "memory/reservation.h"
#include "memory/share.h"
#include "memory/usm.h"
#include "simulate/latency.h"
#include "simulate/quirk.h"

enum { AHEAD = 1 << 30, HOST_PAGE = 4096 };

int cpu_physical_file = -1;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t end_of_file; /* only grows: what is free is a hole, which costs nothing */
static int64_t file_size;   /* as holes cost nothing, ahead of the end: growing takes as long as half a mapping */

bool cpu_physical_take(size_t size, int64_t *offset) {
  pthread_mutex_lock(&lock);
  if (cpu_physical_file < 0) cpu_physical_file = memfd_create("l0rt-physical-memory", MFD_CLOEXEC);
  if (end_of_file + (int64_t)size > file_size) {
    int64_t ahead = end_of_file + (int64_t)size + AHEAD;
    if (cpu_physical_file >= 0 && ftruncate(cpu_physical_file, ahead) == 0) file_size = ahead;
  }
  bool good = end_of_file + (int64_t)size <= file_size;
  *offset = end_of_file;
  if (good) end_of_file += (int64_t)size;
  pthread_mutex_unlock(&lock);
  return good;
}

CPU_EXPORT ze_result_t zeVirtualMemQueryPageSize(ze_context_handle_t context, ze_device_handle_t device, size_t size,
                                                 size_t *page_size) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL || cpu_device_cast(device) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(page_size == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(size == 0, ERROR_UNSUPPORTED_SIZE);
  *page_size = cpu_virtual_page(size);
  return ZE_RESULT_SUCCESS;
}

/* Its part of the common file is empty, and another's. */
static void leave_file(cpu_physical *physical) {
  if (physical->offset < 0) return;
  fallocate(cpu_physical_file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, physical->offset, (off_t)physical->size);
  cpu_reservation_vacate(physical);
  physical->offset = -1;
}

static bool copy_out(const cpu_physical *physical, int file) {
  if (physical->offset < 0) return true;
  char *from = mmap(NULL, physical->size, PROT_READ, MAP_SHARED, cpu_physical_file, physical->offset);
  if (from == MAP_FAILED) return false;
  bool good = cpu_share_fill(file, from, physical->size);
  munmap(from, physical->size);
  return good;
}

bool cpu_physical_share(cpu_physical *physical) {
  static pthread_mutex_t sharing = PTHREAD_MUTEX_INITIALIZER;
  uintptr_t low, high;
  pthread_mutex_lock(&sharing);
  int file = physical->file != 0 ? -1 : cpu_share_make(physical->size, physical->on_host);
  if (file >= 0) {
    cpu_reservation_places(physical, &low, &high);
    cpu_engines_hold(low, high);
    if (copy_out(physical, file) && cpu_reservation_move(physical, file)) leave_file(physical);
    else close(file);
    cpu_engines_go();
  }
  pthread_mutex_unlock(&sharing);
  return physical->file != 0;
}

static void end(cpu_physical *physical) {
  leave_file(physical);
  if (physical->file != 0) close(physical->file);
  if (physical->charged) cpu_device_refund(physical->device, physical->size);
  if (physical->listed) {
    atomic_fetch_sub(&physical->device->listed, physical->size);
    atomic_fetch_sub(&physical->device->pieces, 1);
  }
  cpu_context *context = physical->context;
  cpu_delete(physical);
  cpu_context_let_go(context);
}

CPU_EXPORT ze_result_t zePhysicalMemCreate(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
                                           ze_physical_mem_desc_t *desc, ze_physical_mem_handle_t *out) {
  static _Atomic uint64_t last_id;
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || (device == NULL && device_handle != NULL), ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  bool on_host = (desc->flags & ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST) != 0;
  CPU_REFUSE_IF(device == NULL && !on_host, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc->flags > (cpu_knobs.neo_22_43 ? 0x1 : 0x3), ERROR_INVALID_ENUMERATION);
  size_t page = on_host ? HOST_PAGE : cpu_virtual_page(desc->size);
  CPU_REFUSE_IF(desc->size == 0 || desc->size % page != 0, ERROR_UNSUPPORTED_SIZE);
  if (device != NULL && !cpu_context_has(context, device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
  if (desc->size > CPU_VIRTUAL_MAX)
    return on_host ? CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL) : CPU_REFUSED(ERROR_OUT_OF_DEVICE_MEMORY, NULL);
  const size_t size = (desc->size + CPU_VIRTUAL_SMALL - 1) & ~(size_t)(CPU_VIRTUAL_SMALL - 1);
  cpu_external external;
  ze_result_t result = cpu_external_read(desc->pNext, true, &external);
  if (result == ZE_RESULT_SUCCESS && external.file >= 0) result = cpu_external_check(&external, size);
  if (result != ZE_RESULT_SUCCESS) return result;
  bool imported = external.file >= 0;
  bool charged = !on_host && !imported && !cpu_has_quirk(CPU_QUIRK_NO_VM_BIND);
  CPU_REFUSE_IF(charged && !cpu_device_charge(device, desc->size), ERROR_OUT_OF_DEVICE_MEMORY);
  cpu_physical *physical = cpu_new(CPU_PHYSICAL);
  if (physical == NULL) {
    if (charged) cpu_device_refund(device, desc->size);
    return on_host ? CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL) : CPU_REFUSED(ERROR_OUT_OF_DEVICE_MEMORY, NULL);
  }
  physical->context = context;
  physical->device = device;
  physical->on_host = on_host;
  physical->imported = imported;
  physical->charged = charged;
  physical->asked = desc->size;
  physical->size = size;
  physical->offset = -1;
  physical->exports = external.exports;
  physical->id = ((uint64_t)1 << 63) + atomic_fetch_add(&last_id, 1);
  cpu_context_hold(context);
  /* The host may write into its memory at any time, so what can be exported is in a file from the beginning. */
  bool is_in_file = imported || (on_host && (external.exports != 0 || external.is_for_ipc));
  if (imported) physical->file = cpu_external_take(&external);
  else if (is_in_file) cpu_physical_share(physical);
  if (is_in_file && physical->file <= 0) {
    physical->file = 0;
    end(physical);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  cpu_latency(CPU_COST_PHYS_CREATE, 1);
  *out = (ze_physical_mem_handle_t)physical;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zePhysicalMemDestroy(ze_context_handle_t context_handle, ze_physical_mem_handle_t handle) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_physical *physical = cpu_physical_cast(handle);
  CPU_REFUSE_IF(context == NULL || physical == NULL, ERROR_INVALID_NULL_HANDLE);
  if (physical->context != context) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the memory is of another context");
  CPU_REFUSE_IF(atomic_load(&physical->mapped) != 0, ERROR_HANDLE_OBJECT_IN_USE);
  end(physical);
  cpu_latency(CPU_COST_PHYS_DESTROY, 1);
  return ZE_RESULT_SUCCESS;
}

static void end_if_of_context(void *physical, void *context) {
  if (((cpu_physical *)physical)->context == context) end(physical);
}

void cpu_physical_end_all(const cpu_context *context) { cpu_each(CPU_PHYSICAL, end_if_of_context, (void *)context); }

CPU_EXPORT ze_result_t zePhysicalMemGetProperties(ze_context_handle_t context, ze_physical_mem_handle_t handle,
                                                  ze_physical_mem_properties_t *properties) {
  CPU_ENTER();
  cpu_physical *physical = cpu_physical_cast(handle);
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL || physical == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(properties == NULL, ERROR_INVALID_NULL_POINTER);
  properties->id = physical->id;
  properties->size = physical->asked;
  ze_external_memory_export_fd_t *export = cpu_external_export_in(properties->pNext);
  if (export == NULL) return ZE_RESULT_SUCCESS;
  ze_result_t result = cpu_external_check_export(export, physical->exports);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(!cpu_physical_share(physical), ERROR_OUT_OF_HOST_MEMORY);
  return cpu_external_export(export, physical->file);
}
