/* SPDX-License-Identifier: Apache-2.0 */
/* device.c: the devices, their clock, and what they can do with each other. */
#include "base/device.h"

#include <time.h>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/knobs.h"
#include "lists/engine.h"
#include "memory/cache.h"
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

/* Waits for what every queue was given by now: others may go on submitting. Rarely called, and for long waits: so it
 * looks now and then, and costs commands next to nothing. */
CPU_EXPORT ze_result_t zeDeviceSynchronize(ze_device_handle_t handle) {
  CPU_ENTER();
  cpu_device *device = cpu_device_cast(handle);
  CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_HANDLE);
  for (int i = 0; i < CPU_GROUPS_MAX * CPU_QUEUES_MAX; i++) {
    cpu_engine *engine = atomic_load(&device->engines[i / CPU_QUEUES_MAX][i % CPU_QUEUES_MAX]);
    if (engine == NULL) continue;
    uint64_t last = cpu_engine_last(engine);
    while (!cpu_engine_reached(engine, last)) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
  cpu_cache_flush();
  return ZE_RESULT_SUCCESS;
}
