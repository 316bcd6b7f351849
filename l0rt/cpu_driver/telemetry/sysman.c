/* SPDX-License-Identifier: Apache-2.0 */
/* sysman.c: system management: devices and their memory, as tools ask for them. Handles are those of the core; a device
 * has one memory module, whose handle is the device's own. telemetry.c has the sensors; of other parts it has none. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/device.h"
#include "base/driver.h"
#include "base/gate.h"
#include "base/knobs.h"
#include "l0rt/ze_sysman.h"

#define CLEAR(p) memset((char *)(p) + sizeof(ze_base_properties_t), 0, sizeof(*(p)) - sizeof(ze_base_properties_t))

#define CHECK_ARGUMENTS(handle, pointer)                                                                               \
  CPU_ENTER();                                                                                                         \
  CPU_REFUSE_IF(cpu_cast(handle, CPU_DEVICE) == NULL, ERROR_INVALID_NULL_HANDLE);                                      \
  CPU_REFUSE_IF((pointer) == NULL, ERROR_INVALID_NULL_POINTER)

CPU_EXPORT ze_result_t zesInit(zes_init_flags_t flags) {
  return flags > 0x1 ? CPU_REFUSED(ERROR_INVALID_ENUMERATION, "flags") : cpu_driver_open(__func__);
}

CPU_EXPORT ze_result_t zesDriverGet(uint32_t *count, zes_driver_handle_t *drivers) {
  CPU_ENTER();
  return count == NULL ? CPU_REFUSED(ERROR_INVALID_NULL_POINTER, "count") : cpu_driver_list(count, drivers);
}

CPU_EXPORT ze_result_t zesDeviceGet(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *devices) {
  CPU_ENTER();
  return cpu_driver_devices(driver, true, count, devices);
}

CPU_EXPORT ze_result_t zesDriverGetExtensionProperties(zes_driver_handle_t driver, uint32_t *count, void *properties) {
  CPU_ENTER();
  (void)properties;
  CPU_REFUSE_IF(cpu_driver_cast(driver) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  *count = 0;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDriverGetExtensionFunctionAddress(zes_driver_handle_t driver, const char *name,
                                                            void **address) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(driver) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(name == NULL || address == NULL, ERROR_INVALID_NULL_POINTER);
  return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "there are no extension functions");
}

CPU_EXPORT ze_result_t zesDriverGetDeviceByUuidExp(zes_driver_handle_t driver, zes_uuid_t uuid,
                                                   zes_device_handle_t *out, ze_bool_t *on_subdevice,
                                                   uint32_t *subdevice) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(driver) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL || on_subdevice == NULL || subdevice == NULL, ERROR_INVALID_NULL_POINTER);
  for (uint32_t i = 0; i < cpu_device_count; i++) {
    ze_device_properties_t core = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    cpu_device_describe(cpu_devices[i], &core);
    if (memcmp(core.uuid.id, uuid.id, sizeof(uuid.id)) != 0) continue;
    *out = (zes_device_handle_t)cpu_devices[i];
    *on_subdevice = 0;
    *subdevice = 0;
    return ZE_RESULT_SUCCESS;
  }
  return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "no device has this UUID");
}

CPU_EXPORT ze_result_t zesDeviceGetProperties(zes_device_handle_t handle, zes_device_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  void *core_next = p->core.pNext;
  CLEAR(p);
  p->core.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES;
  p->core.pNext = core_next;
  cpu_device_describe(cpu_device_cast(handle), &p->core);
  snprintf(p->serialNumber, sizeof(p->serialNumber), "unknown");
  snprintf(p->boardNumber, sizeof(p->boardNumber), "unknown");
  snprintf(p->brandName, sizeof(p->brandName), "l0rt");
  snprintf(p->modelName, sizeof(p->modelName), "l0rt CPU device");
  snprintf(p->vendorName, sizeof(p->vendorName), "l0rt");
  snprintf(p->driverVersion, sizeof(p->driverVersion), "%s", cpu_driver_version());
  for (zes_device_ext_properties_t *e = p->pNext; e != NULL; e = e->pNext) {
    if (e->stype != ZES_STRUCTURE_TYPE_DEVICE_EXT_PROPERTIES) continue;
    memcpy(e->uuid.id, p->core.uuid.id, sizeof(e->uuid.id));
    e->type = ZES_DEVICE_TYPE_GPU;
    e->flags = 0;
  }
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDeviceGetState(zes_device_handle_t handle, zes_device_state_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->reset = cpu_latch_is_set(&cpu_failure_lost) ? ZES_RESET_REASON_FLAG_WEDGED : 0;
  return ZE_RESULT_SUCCESS;
}

/* A device is a process's own: no other process uses it, however many have one of the same name. */
CPU_EXPORT ze_result_t zesDeviceProcessesGetState(zes_device_handle_t handle, uint32_t *count, zes_process_state_t *p) {
  CHECK_ARGUMENTS(handle, count);
  if (*count != 0 && p != NULL) {
    CLEAR(p);
    p->processId = (uint32_t)getpid();
    p->memSize = cpu_knobs.memory - cpu_device_free(cpu_device_cast(handle));
    p->engines = ZES_ENGINE_TYPE_FLAG_COMPUTE | ZES_ENGINE_TYPE_FLAG_DMA;
  }
  *count = 1;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDeviceGetSubDevicePropertiesExp(zes_device_handle_t handle, uint32_t *count, void *p) {
  CHECK_ARGUMENTS(handle, count);
  (void)p;
  *count = 0;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDevicePciGetProperties(zes_device_handle_t handle, zes_pci_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->address = (zes_pci_address_t){.domain = CPU_PCI_DOMAIN, .bus = cpu_device_cast(handle)->index + 1};
  p->maxSpeed = (zes_pci_speed_t){.gen = -1, .width = -1, .maxBandwidth = -1};
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDevicePciGetState(zes_device_handle_t handle, zes_pci_state_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->speed = (zes_pci_speed_t){.gen = -1, .width = -1, .maxBandwidth = -1};
  return ZE_RESULT_SUCCESS;
}

/* Nothing crosses a bus, and nothing is counted there, as the properties say. */
CPU_EXPORT ze_result_t zesDevicePciGetStats(zes_device_handle_t handle, zes_pci_stats_t *p) {
  CHECK_ARGUMENTS(handle, p);
  *p = (zes_pci_stats_t){.timestamp = cpu_host_ns() / 1000, .speed = {.gen = -1, .width = -1, .maxBandwidth = -1}};
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDeviceEnumMemoryModules(zes_device_handle_t handle, uint32_t *count,
                                                  zes_mem_handle_t *modules) {
  CHECK_ARGUMENTS(handle, count);
  if (*count != 0 && modules != NULL) modules[0] = (zes_mem_handle_t)handle;
  *count = 1;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesMemoryGetProperties(zes_mem_handle_t handle, zes_mem_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->type = ZES_MEM_TYPE_DDR;
  ze_device_properties_t core = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
  cpu_device_describe(cpu_cast(handle, CPU_DEVICE), &core);
  p->location = core.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED ? ZES_MEM_LOC_SYSTEM : ZES_MEM_LOC_DEVICE;
  p->physicalSize = cpu_knobs.memory;
  p->busWidth = 64;
  p->numChannels = -1;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesMemoryGetState(zes_mem_handle_t handle, zes_mem_state_t *p) {
  CHECK_ARGUMENTS(handle, p);
  const cpu_device *device = cpu_cast(handle, CPU_DEVICE);
  p->health = ZES_MEM_HEALTH_OK;
  p->free = cpu_device_free(device);
  p->size = cpu_knobs.memory;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t no(zes_device_handle_t handle, ze_bool_t *answer) {
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(answer == NULL, ERROR_INVALID_NULL_POINTER);
  *answer = 0;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zesDeviceEccAvailable(zes_device_handle_t handle, ze_bool_t *available) {
  CPU_ENTER();
  return no(handle, available);
}

CPU_EXPORT ze_result_t zesDeviceEccConfigurable(zes_device_handle_t handle, ze_bool_t *configurable) {
  CPU_ENTER();
  return no(handle, configurable);
}

/* Parts that a device has none of. */
#define NONE(name)                                                                                                     \
  CPU_EXPORT ze_result_t name(zes_device_handle_t handle, uint32_t *count, void *parts) {                              \
    CHECK_ARGUMENTS(handle, count);                                                                                    \
    (void)parts;                                                                                                       \
    *count = 0;                                                                                                        \
    return ZE_RESULT_SUCCESS;                                                                                          \
  }

NONE(zesDevicePciGetBars)
NONE(zesDeviceEnumActiveVFExp)
NONE(zesDeviceEnumEnabledVFExp)
NONE(zesDeviceEnumDiagnosticTestSuites)
NONE(zesDeviceEnumFabricPorts)
NONE(zesDeviceEnumFans)
NONE(zesDeviceEnumFirmwares)
NONE(zesDeviceEnumLeds)
NONE(zesDeviceEnumPerformanceFactorDomains)
NONE(zesDeviceEnumPsus)
NONE(zesDeviceEnumRasErrorSets)
NONE(zesDeviceEnumSchedulers)
NONE(zesDeviceEnumStandbyDomains)
NONE(zesDeviceEnumOverclockDomains)
