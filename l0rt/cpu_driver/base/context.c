/* SPDX-License-Identifier: Apache-2.0 */
/* context.c: making and ending contexts. */
#include "base/context.h"

#include <pthread.h>

#include "base/driver.h"
#include "base/gate.h"

static ze_result_t create(ze_driver_handle_t driver, const ze_context_desc_t *desc, uint64_t devices,
                          ze_context_handle_t *out) {
  CPU_REFUSE_IF(cpu_driver_cast(driver) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0x1, ERROR_INVALID_ENUMERATION);
  cpu_context *context = cpu_new(CPU_CONTEXT);
  CPU_REFUSE_IF(context == NULL, ERROR_OUT_OF_HOST_MEMORY);
  context->devices = devices;
  atomic_store(&context->holds, 1);
  *out = (ze_context_handle_t)context;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeContextCreate(ze_driver_handle_t driver, const ze_context_desc_t *desc,
                                       ze_context_handle_t *out) {
  CPU_ENTER();
  return create(driver, desc, UINT64_MAX, out);
}

CPU_EXPORT ze_result_t zeContextCreateEx(ze_driver_handle_t driver, const ze_context_desc_t *desc, uint32_t count,
                                         ze_device_handle_t *devices, ze_context_handle_t *out) {
  CPU_ENTER();
  CPU_REFUSE_IF(devices == NULL && count > 0, ERROR_INVALID_SIZE);
  uint64_t set = count == 0 ? UINT64_MAX : 0;
  for (uint32_t i = 0; i < count; i++) {
    cpu_device *device = cpu_device_cast(devices[i]);
    CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_HANDLE);
    set |= (uint64_t)1 << device->index;
  }
  return create(driver, desc, set, out);
}

/* Made when it is asked for, and again after its end. */
CPU_EXPORT ze_context_handle_t zeDriverGetDefaultContext(ze_driver_handle_t driver) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static ze_context_handle_t of_all_devices;
  if (atomic_load(&cpu_gate) != 0 && cpu_gate_ask(__func__) != ZE_RESULT_SUCCESS) return NULL;
  if (cpu_driver_cast(driver) == NULL) return NULL;
  const ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  pthread_mutex_lock(&lock);
  if (cpu_context_cast(of_all_devices) == NULL &&
      create(driver, &desc, UINT64_MAX, &of_all_devices) != ZE_RESULT_SUCCESS)
    of_all_devices = NULL;
  ze_context_handle_t context = of_all_devices;
  pthread_mutex_unlock(&lock);
  return context;
}

/* Its memory goes with it. Other things made in it stay until they are destroyed, as long as the device is not at work
 * for any of them. */
CPU_EXPORT ze_result_t zeContextDestroy(ze_context_handle_t handle) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  for (const cpu_context_part *p = cpu_context_parts; p->end != NULL; p++)
    CPU_REFUSE_IF(p->is_busy != NULL && p->is_busy(context), ERROR_HANDLE_OBJECT_IN_USE);
  CPU_REFUSE_IF(!cpu_retire(context), ERROR_INVALID_NULL_HANDLE);
  for (const cpu_context_part *p = cpu_context_parts; p->end != NULL; p++) p->end(context);
  cpu_context_let_go(context);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeContextGetStatus(ze_context_handle_t handle) {
  CPU_ENTER();
  return cpu_context_cast(handle) == NULL ? CPU_REFUSED(ERROR_INVALID_NULL_HANDLE, NULL) : ZE_RESULT_SUCCESS;
}

/* The host's caches are the device's own: nothing to do. */
CPU_EXPORT ze_result_t zeContextSystemBarrier(ze_context_handle_t handle, ze_device_handle_t device) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_context_cast(handle) == NULL || cpu_device_cast(device) == NULL, ERROR_INVALID_NULL_HANDLE);
  return ZE_RESULT_SUCCESS;
}
