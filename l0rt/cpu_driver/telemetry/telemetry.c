/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.c: what the sensors of a device say, as tools ask for them. A device has one part of each kind, whose handle
 * is the device's own.
 *
 * Activity and bytes are measured: the processor time of the engines of this process, and what they copied and filled.
 * The rest follows from that, as for a card with the figures below. */
#include <string.h>

#include "base/clock.h"
#include "base/device.h"
#include "base/gate.h"
#include "l0rt/ze_sysman.h"
#include "lists/engine.h"

enum { IDLE_WATTS = 10, MORE_WATTS = 65 }; /* what it draws, and what it draws more while an engine runs */
enum { LIMIT_MILLIWATTS = (IDLE_WATTS + MORE_WATTS) * 1000 };
enum { IDLE_MHZ = 300, FULL_MHZ = 2400 };
enum { IDLE_CELSIUS = 40, FULL_CELSIUS = 65, MOST_CELSIUS = 100 };
#define MOST_BYTES UINT64_C(20000000000) /* a second */

#define CLEAR(p) memset((char *)(p) + sizeof(ze_base_properties_t), 0, sizeof(*(p)) - sizeof(ze_base_properties_t))

#define CHECK_ARGUMENTS(handle, pointer)                                                                               \
  CPU_ENTER();                                                                                                         \
  const cpu_device *device = cpu_cast(handle, CPU_DEVICE);                                                             \
  CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_HANDLE);                                                            \
  CPU_REFUSE_IF((pointer) == NULL, ERROR_INVALID_NULL_POINTER)

#define ONE(name)                                                                                                      \
  CPU_EXPORT ze_result_t name(zes_device_handle_t handle, uint32_t *count, void **parts) {                             \
    CHECK_ARGUMENTS(handle, count);                                                                                    \
    if (*count != 0 && parts != NULL) parts[0] = (void *)device;                                                       \
    *count = 1;                                                                                                        \
    return ZE_RESULT_SUCCESS;                                                                                          \
  }

ONE(zesDeviceEnumEngineGroups)
ONE(zesDeviceEnumFrequencyDomains)
ONE(zesDeviceEnumPowerDomains)
ONE(zesDeviceEnumTemperatureSensors)

CPU_EXPORT ze_result_t zesEngineGetProperties(zes_engine_handle_t handle, zes_engine_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->type = ZES_ENGINE_GROUP_ALL;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesEngineGetActivity(zes_engine_handle_t handle, zes_engine_stats_t *p) {
  CHECK_ARGUMENTS(handle, p);
  p->activeTime = cpu_engines_activity(device).active_ns / 1000;
  p->timestamp = cpu_host_ns() / 1000;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesFrequencyGetProperties(zes_freq_handle_t handle, zes_freq_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->type = ZES_FREQ_DOMAIN_GPU;
  p->min = IDLE_MHZ;
  p->max = FULL_MHZ;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesFrequencyGetRange(zes_freq_handle_t handle, zes_freq_range_t *p) {
  CHECK_ARGUMENTS(handle, p);
  *p = (zes_freq_range_t){.min = IDLE_MHZ, .max = FULL_MHZ};
  return ZE_RESULT_SUCCESS;
}

/* In steps of what cards of Intel have. */
CPU_EXPORT ze_result_t zesFrequencyGetAvailableClocks(zes_freq_handle_t handle, uint32_t *count, double *clocks) {
  enum { STEP = 50, ALL = (FULL_MHZ - IDLE_MHZ) / STEP + 1 };
  CHECK_ARGUMENTS(handle, count);
  if (*count == 0 || *count > ALL) *count = ALL;
  for (uint32_t i = 0; clocks != NULL && i < *count; i++) clocks[i] = IDLE_MHZ + i * STEP;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesFrequencyGetState(zes_freq_handle_t handle, zes_freq_state_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->currentVoltage = -1;
  p->tdp = FULL_MHZ;
  p->efficient = IDLE_MHZ;
  p->request = p->actual = cpu_engines_activity(device).is_running ? FULL_MHZ : IDLE_MHZ;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesPowerGetProperties(zes_pwr_handle_t handle, zes_power_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->defaultLimit = p->maxLimit = LIMIT_MILLIWATTS;
  p->minLimit = -1;
  return ZE_RESULT_SUCCESS;
}

/* One limit, which nobody can change: that of sustained power. */
CPU_EXPORT ze_result_t zesPowerGetLimits(zes_pwr_handle_t handle, zes_power_sustained_limit_t *sustained,
                                         zes_power_burst_limit_t *burst, zes_power_peak_limit_t *peak) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_cast(handle, CPU_DEVICE) == NULL, ERROR_INVALID_NULL_HANDLE);
  if (sustained != NULL) *sustained = (zes_power_sustained_limit_t){.enabled = 1, .power = LIMIT_MILLIWATTS};
  if (burst != NULL) *burst = (zes_power_burst_limit_t){0};
  if (peak != NULL) *peak = (zes_power_peak_limit_t){.powerAC = -1, .powerDC = -1};
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesPowerGetLimitsExt(zes_pwr_handle_t handle, uint32_t *count, zes_power_limit_ext_desc_t *p) {
  CHECK_ARGUMENTS(handle, count);
  if (*count != 0 && p != NULL) {
    CLEAR(p);
    p->level = ZES_POWER_LEVEL_SUSTAINED;
    p->source = ZES_POWER_SOURCE_ANY;
    p->limitUnit = ZES_LIMIT_UNIT_POWER;
    p->enabled = p->enabledStateLocked = p->intervalValueLocked = p->limitValueLocked = 1;
    p->limit = LIMIT_MILLIWATTS;
  }
  *count = 1;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesPowerGetEnergyCounter(zes_pwr_handle_t handle, zes_power_energy_counter_t *p) {
  CHECK_ARGUMENTS(handle, p);
  uint64_t active = cpu_engines_activity(device).active_ns / 1000;
  p->timestamp = cpu_host_ns() / 1000;
  p->energy = p->timestamp * IDLE_WATTS + active * MORE_WATTS;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesTemperatureGetProperties(zes_temp_handle_t handle, zes_temp_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->type = ZES_TEMP_SENSORS_GPU;
  p->maxTemperature = MOST_CELSIUS;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesTemperatureGetState(zes_temp_handle_t handle, double *celsius) {
  CHECK_ARGUMENTS(handle, celsius);
  *celsius = cpu_engines_activity(device).is_running ? FULL_CELSIUS : IDLE_CELSIUS;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesMemoryGetBandwidth(zes_mem_handle_t handle, zes_mem_bandwidth_t *p) {
  CHECK_ARGUMENTS(handle, p);
  cpu_activity done = cpu_engines_activity(device);
  *p = (zes_mem_bandwidth_t){done.bytes_read, done.bytes_written, MOST_BYTES, cpu_host_ns() / 1000};
  return ZE_RESULT_SUCCESS;
}
