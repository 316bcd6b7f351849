/* SPDX-License-Identifier: Apache-2.0 */
/* reset.c: devices that need a reset: listening for that event, which is the only one that occurs here, and resets. */
#include "base/device.h"
#include "base/driver.h"
#include "base/gate.h"
#include "l0rt/ze_sysman.h"
#include "lists/engine.h"

enum { ALL_EVENTS = 0x7fff };

CPU_EXPORT ze_result_t zesDeviceEventRegister(zes_device_handle_t handle, zes_event_type_flags_t events) {
  CPU_ENTER();
  cpu_device *device = cpu_device_cast(handle);
  CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(events > ALL_EVENTS, ERROR_INVALID_ENUMERATION);
  atomic_store(&device->listened, events);
  return ZE_RESULT_SUCCESS;
}

static bool awaits_loss(const cpu_device *device) {
  return (atomic_load(&device->listened) & ZES_EVENT_TYPE_FLAG_DEVICE_RESET_REQUIRED) != 0 &&
         !atomic_load(&device->lost);
}

/* Each loss is an event once; a wait for events that do not occur lasts as long as the caller says. */
static ze_result_t listen(zes_driver_handle_t driver, uint64_t nanoseconds, uint32_t count,
                          zes_device_handle_t *devices, uint32_t *number, zes_event_type_flags_t *events) {
  static cpu_latch never;
  CPU_REFUSE_IF(cpu_driver_cast(driver) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(devices == NULL || number == NULL || events == NULL, ERROR_INVALID_NULL_POINTER);
  bool registered = false, awaited = false;
  for (uint32_t i = 0; i < count; i++) {
    const cpu_device *device = cpu_device_cast(devices[i]);
    CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_HANDLE);
    registered |= atomic_load(&device->listened) != 0;
    awaited |= awaits_loss(device);
  }
  *number = 0;
  bool lost = registered && cpu_latch_wait(awaited ? &cpu_failure_lost : &never, nanoseconds) == ZE_RESULT_SUCCESS;
  for (uint32_t i = 0; i < count; i++) {
    cpu_device *device = cpu_device_cast(devices[i]);
    bool first = lost && awaits_loss(device) && !atomic_exchange(&device->lost, true);
    events[i] = first ? ZES_EVENT_TYPE_FLAG_DEVICE_RESET_REQUIRED : 0;
    *number += first;
  }
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDriverEventListen(zes_driver_handle_t driver, uint32_t milliseconds, uint32_t count,
                                            zes_device_handle_t *devices, uint32_t *number,
                                            zes_event_type_flags_t *events) {
  CPU_ENTER();
  uint64_t nanoseconds = milliseconds == UINT32_MAX ? UINT64_MAX : milliseconds * UINT64_C(1000000);
  return listen(driver, nanoseconds, count, devices, number, events);
}

CPU_EXPORT ze_result_t zesDriverEventListenEx(zes_driver_handle_t driver, uint64_t milliseconds, uint32_t count,
                                              zes_device_handle_t *devices, uint32_t *number,
                                              zes_event_type_flags_t *events) {
  CPU_ENTER();
  uint64_t nanoseconds = milliseconds > UINT64_MAX / 1000000 ? UINT64_MAX : milliseconds * 1000000;
  return listen(driver, nanoseconds, count, devices, number, events);
}

/* A device is of this process alone, which a reset by force would have to kill: it frees its memory and waits first. */
static ze_result_t reset(zes_device_handle_t handle) {
  const cpu_device *device = cpu_device_cast(handle);
  CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_HANDLE);
  if (atomic_load(&device->used) != 0 || cpu_engines_activity(device).is_running)
    return CPU_REFUSED(ERROR_HANDLE_OBJECT_IN_USE, "this process has memory of the device, or work there");
  cpu_latch_clear(&cpu_failure_lost);
  for (uint32_t i = 0; i < cpu_device_count; i++) atomic_store(&cpu_devices[i]->lost, false);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDeviceReset(zes_device_handle_t handle, ze_bool_t force) {
  CPU_ENTER();
  (void)force;
  return reset(handle);
}

CPU_EXPORT ze_result_t zesDeviceResetExt(zes_device_handle_t handle, zes_reset_properties_t *properties) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(properties == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF((uint32_t)properties->resetType > ZES_RESET_TYPE_FLR, ERROR_INVALID_ENUMERATION);
  return reset(handle);
}
