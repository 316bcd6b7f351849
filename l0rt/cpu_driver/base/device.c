/* SPDX-License-Identifier: Apache-2.0 */
/* device.c: the devices, their clock, and what they can do with each other. */
#include "base/device.h"

#include "base/affinity.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/invariant.h"
#include "base/knobs.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

cpu_device *cpu_devices[CPU_DEVICES_MAX];
uint32_t cpu_device_count;

bool cpu_device_is_visible(const cpu_device *device) { return cpu_affinity_shows(device->index); }

bool cpu_devices_make(void) {
  while (cpu_device_count < cpu_knobs.devices) {
    cpu_device *device = cpu_new(CPU_DEVICE);
    if (device == NULL) return false;
    device->index = cpu_device_count;
    cpu_devices[cpu_device_count++] = device;
  }
  return true;
}

bool cpu_device_is_over(const cpu_device *device) {
  return cpu_has_quirk(CPU_QUIRK_NO_VM_BIND) &&
         atomic_load(&device->used) + atomic_load(&device->listed) > cpu_knobs.memory;
}

bool cpu_device_charge(cpu_device *device, size_t size) {
  uint64_t used = atomic_fetch_add(&device->used, size) + size;
  if (size <= cpu_knobs.memory && used <= cpu_knobs.memory) return true;
  atomic_fetch_sub(&device->used, size);
  return false;
}

void cpu_device_refund(cpu_device *device, size_t size) {
  uint64_t used = atomic_fetch_sub(&device->used, size);
  CPU_INVARIANT(used >= size);
  (void)used;
}

uint64_t cpu_ticks(uint64_t host_ns) {
  return (uint64_t)((unsigned __int128)host_ns * cpu_knobs.timestamp_hz / 1000000000u);
}

uint64_t cpu_tick_mask(void) { return UINT64_MAX >> (64 - cpu_knobs.timestamp_bits); }

CPU_EXPORT ze_result_t zeDeviceGetSubDevices(ze_device_handle_t handle, uint32_t *count, ze_device_handle_t *devices) {
  CPU_ENTER();
  (void)devices;
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  *count = 0;
  return ZE_RESULT_SUCCESS;
}

/* A device that is not a sub-device has no root device: NULL. */
CPU_EXPORT ze_result_t zeDeviceGetRootDevice(ze_device_handle_t handle, ze_device_handle_t *root) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(root == NULL, ERROR_INVALID_NULL_POINTER);
  *root = NULL;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceGetP2PProperties(ze_device_handle_t handle, ze_device_handle_t peer,
                                                ze_device_p2p_properties_t *properties) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL || cpu_device_cast(peer) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(properties == NULL, ERROR_INVALID_NULL_POINTER);
  properties->flags = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS | ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceCanAccessPeer(ze_device_handle_t handle, ze_device_handle_t peer, ze_bool_t *value) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL || cpu_device_cast(peer) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(value == NULL, ERROR_INVALID_NULL_POINTER);
  *value = 1;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceGetStatus(ze_device_handle_t handle) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  return cpu_latch_is_set(&cpu_failure_lost)
             ? CPU_REFUSED(ERROR_DEVICE_LOST, "a launch failed, and L0RT_CPU_FAULT=lost makes that a lost device")
             : ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceGetGlobalTimestamps(ze_device_handle_t handle, uint64_t *host, uint64_t *device) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(host == NULL || device == NULL, ERROR_INVALID_NULL_POINTER);
  *host = cpu_host_ns();
  *device = cpu_ticks(*host) & cpu_tick_mask();
  return ZE_RESULT_SUCCESS;
}
