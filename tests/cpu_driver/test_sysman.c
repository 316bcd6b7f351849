/* SPDX-License-Identifier: Apache-2.0 */
/* test_sysman.c: devices and their memory as tools see them. */
#include <unistd.h>

#include "harness.h"

static void devices(void) {
  zes_driver_handle_t system;
  zes_device_handle_t found;
  uint32_t one = 1;
  OK(zesDriverGet(&one, &system));
  OK(zesDeviceGet(system, &one, &found));
  zes_device_ext_properties_t more = {.stype = ZES_STRUCTURE_TYPE_DEVICE_EXT_PROPERTIES};
  zes_device_properties_t properties = {.stype = ZES_STRUCTURE_TYPE_DEVICE_PROPERTIES, .pNext = &more};
  OK(zesDeviceGetProperties(found, &properties));
  CHECK(strcmp(properties.core.name, "l0rt CPU device") == 0);
  CHECK(strcmp(properties.modelName, properties.core.name) == 0);
  CHECK(properties.numSubdevices == 0 && properties.driverVersion[0] != '\0' && more.type == ZES_DEVICE_TYPE_GPU);
  zes_device_handle_t same;
  ze_bool_t on_subdevice;
  uint32_t subdevice;
  OK(zesDriverGetDeviceByUuidExp(system, more.uuid, &same, &on_subdevice, &subdevice));
  CHECK(same == found && !on_subdevice);
  more.uuid.id[0] ^= 1;
  GIVES(ERROR_INVALID_ARGUMENT, zesDriverGetDeviceByUuidExp(system, more.uuid, &same, &on_subdevice, &subdevice));
  ze_pci_ext_properties_t core_pci = {.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES};
  zes_pci_properties_t pci = {.stype = ZES_STRUCTURE_TYPE_PCI_PROPERTIES};
  OK(zeDevicePciGetPropertiesExt(found, &core_pci));
  OK(zesDevicePciGetProperties(found, &pci));
  CHECK(pci.address.domain == core_pci.address.domain && pci.address.bus == core_pci.address.bus);
  uint32_t fans = 7;
  OK(zesDeviceEnumFans(found, &fans, NULL));
  CHECK(fans == 0);
  GIVES(ERROR_INVALID_NULL_HANDLE, zesDeviceGetProperties(NULL, &properties));
  GIVES(ERROR_INVALID_NULL_POINTER, zesDeviceGetProperties(found, NULL));
}

static void memory(void) {
  begin();
  uint32_t count = 0;
  zes_mem_handle_t module;
  OK(zesDeviceEnumMemoryModules(device, &count, NULL));
  CHECK(count == 1);
  OK(zesDeviceEnumMemoryModules(device, &count, &module));
  zes_mem_properties_t properties = {.stype = ZES_STRUCTURE_TYPE_MEM_PROPERTIES};
  zes_mem_state_t before = {.stype = ZES_STRUCTURE_TYPE_MEM_STATE}, after = before;
  OK(zesMemoryGetProperties(module, &properties));
  OK(zesMemoryGetState(module, &before));
  CHECK(properties.physicalSize == before.size && before.free == before.size);
  ze_device_properties_t core = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
  OK(zeDeviceGetProperties(device, &core));
  bool integrated = (core.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED) != 0;
  CHECK(properties.location == (integrated ? ZES_MEM_LOC_SYSTEM : ZES_MEM_LOC_DEVICE));
  enum { SIZE = 1 << 20 };
  void *block = device_memory(SIZE);
  OK(zesMemoryGetState(module, &after));
  CHECK(after.free == before.free - SIZE);
  OK(zeMemFree(context, block));
  OK(zesMemoryGetState(module, &after));
  CHECK(after.free == before.free);
}

static zes_process_state_t processes(void) {
  zes_process_state_t found[2] = {{.stype = ZES_STRUCTURE_TYPE_PROCESS_STATE}, {.processId = 77}};
  uint32_t count = 0;
  OK(zesDeviceProcessesGetState(device, &count, NULL));
  CHECK(count == 1);
  count = 2;
  OK(zesDeviceProcessesGetState(device, &count, found));
  CHECK(count == 1 && found[0].processId == (uint32_t)getpid() && found[1].processId == 77);
  CHECK(found[0].stype == ZES_STRUCTURE_TYPE_PROCESS_STATE && found[0].sharedSize == 0);
  CHECK(found[0].engines == (ZES_ENGINE_TYPE_FLAG_COMPUTE | ZES_ENGINE_TYPE_FLAG_DMA));
  GIVES(ERROR_INVALID_NULL_HANDLE, zesDeviceProcessesGetState(NULL, &count, NULL));
  GIVES(ERROR_INVALID_NULL_POINTER, zesDeviceProcessesGetState(device, NULL, found));
  return found[0];
}

static void this_process(void) {
  enum { SIZE = 3 << 20 };
  CHECK(processes().memSize == 0);
  void *block = device_memory(SIZE);
  CHECK(processes().memSize == SIZE);
  OK(zeMemFree(context, block));
  CHECK(processes().memSize == 0);
}

static uint64_t active(zes_engine_handle_t group) {
  zes_engine_stats_t stats;
  OK(zesEngineGetActivity(group, &stats));
  return stats.activeTime;
}

static zes_mem_bandwidth_t bytes(void) {
  zes_mem_bandwidth_t found;
  OK(zesMemoryGetBandwidth((zes_mem_handle_t)device, &found));
  return found;
}

/* Each part is there once, and says what the engines have done meanwhile. */
static void sensors(void) {
  void *parts[4];
  uint32_t count[4] = {0, 1, 7, 1};
  OK(zesDeviceEnumEngineGroups(device, &count[0], NULL));
  CHECK(count[0] == 1);
  OK(zesDeviceEnumEngineGroups(device, &count[0], &parts[0]));
  OK(zesDeviceEnumFrequencyDomains(device, &count[1], &parts[1]));
  OK(zesDeviceEnumPowerDomains(device, &count[2], &parts[2]));
  OK(zesDeviceEnumTemperatureSensors(device, &count[3], &parts[3]));
  CHECK(count[0] == 1 && count[1] == 1 && count[2] == 1 && count[3] == 1);
  zes_engine_handle_t group = parts[0];
  zes_engine_properties_t engine = {.stype = ZES_STRUCTURE_TYPE_ENGINE_PROPERTIES};
  zes_freq_properties_t clocks = {.stype = ZES_STRUCTURE_TYPE_FREQ_PROPERTIES};
  zes_freq_state_t clock = {.stype = ZES_STRUCTURE_TYPE_FREQ_STATE};
  zes_freq_range_t range;
  zes_power_properties_t power = {.stype = ZES_STRUCTURE_TYPE_POWER_PROPERTIES};
  zes_temp_properties_t sensor = {.stype = ZES_STRUCTURE_TYPE_TEMP_PROPERTIES};
  zes_power_energy_counter_t before, after;
  double celsius;
  OK(zesEngineGetProperties(group, &engine));
  OK(zesFrequencyGetProperties(parts[1], &clocks));
  OK(zesFrequencyGetRange(parts[1], &range));
  OK(zesFrequencyGetState(parts[1], &clock));
  OK(zesPowerGetProperties(parts[2], &power));
  OK(zesPowerGetEnergyCounter(parts[2], &before));
  OK(zesTemperatureGetProperties(parts[3], &sensor));
  OK(zesTemperatureGetState(parts[3], &celsius));
  CHECK(engine.type == ZES_ENGINE_GROUP_ALL && !engine.onSubdevice);
  CHECK(clocks.type == ZES_FREQ_DOMAIN_GPU && clocks.min == range.min && clocks.max == range.max);
  CHECK(clock.actual == range.min); /* nothing runs */
  CHECK(power.maxLimit > 0 && celsius > 0 && celsius < sensor.maxTemperature);
  enum { SIZE = 8 << 20 };
  void *target = device_memory(SIZE), *source = device_memory(SIZE);
  ze_command_list_handle_t list = in_order_list();
  uint64_t worked = active(group);
  zes_mem_bandwidth_t moved = bytes();
  OK(zeCommandListAppendMemoryFill(list, source, "x", 1, SIZE, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, target, source, SIZE, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, UINT64_MAX));
  CHECK(bytes().readCounter == moved.readCounter + SIZE && bytes().writeCounter == moved.writeCounter + 2 * SIZE);
  CHECK(bytes().maxBandwidth > 0 && active(group) > worked);
  OK(zesPowerGetEnergyCounter(parts[2], &after));
  CHECK(after.energy > before.energy && after.timestamp >= before.timestamp);
  GIVES(ERROR_INVALID_NULL_HANDLE, zesEngineGetActivity(NULL, &(zes_engine_stats_t){0}));
  GIVES(ERROR_INVALID_NULL_POINTER, zesTemperatureGetState(parts[3], NULL));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, target));
  OK(zeMemFree(context, source));
}

static void limits(void) {
  uint32_t count = 1;
  void *clock, *power;
  OK(zesDeviceEnumFrequencyDomains(device, &count, &clock));
  OK(zesDeviceEnumPowerDomains(device, &count, &power));
  zes_freq_range_t range;
  OK(zesFrequencyGetRange(clock, &range));
  double clocks[64] = {0};
  count = 0;
  OK(zesFrequencyGetAvailableClocks(clock, &count, NULL));
  uint32_t all = count;
  CHECK(all > 2 && all < 64);
  count = 64;
  OK(zesFrequencyGetAvailableClocks(clock, &count, clocks));
  CHECK(count == all && clocks[0] == range.min && clocks[all - 1] == range.max && clocks[all] == 0);
  for (uint32_t i = 1; i < all; i++) CHECK(clocks[i] > clocks[i - 1]);
  clocks[2] = 0;
  count = 2;
  OK(zesFrequencyGetAvailableClocks(clock, &count, clocks));
  CHECK(count == 2 && clocks[2] == 0);
  GIVES(ERROR_INVALID_NULL_HANDLE, zesFrequencyGetAvailableClocks(NULL, &count, clocks));
  GIVES(ERROR_INVALID_NULL_POINTER, zesFrequencyGetAvailableClocks(clock, NULL, clocks));

  zes_power_properties_t properties = {.stype = ZES_STRUCTURE_TYPE_POWER_PROPERTIES};
  zes_power_sustained_limit_t sustained;
  zes_power_burst_limit_t burst;
  zes_power_peak_limit_t peak;
  zes_power_limit_ext_desc_t found[2] = {{.stype = ZES_STRUCTURE_TYPE_POWER_LIMIT_EXT_DESC}, {.limit = 77}};
  OK(zesPowerGetProperties(power, &properties));
  OK(zesPowerGetLimits(power, NULL, NULL, NULL));
  OK(zesPowerGetLimits(power, &sustained, &burst, &peak));
  CHECK(sustained.enabled && sustained.power == properties.maxLimit && !burst.enabled && peak.powerAC == -1);
  count = 0;
  OK(zesPowerGetLimitsExt(power, &count, NULL));
  CHECK(count == 1);
  count = 2;
  OK(zesPowerGetLimitsExt(power, &count, found));
  CHECK(count == 1 && found[0].limit == properties.maxLimit && found[0].limitValueLocked && found[1].limit == 77);
  CHECK(found[0].level == ZES_POWER_LEVEL_SUSTAINED && found[0].limitUnit == ZES_LIMIT_UNIT_POWER);
  GIVES(ERROR_INVALID_NULL_HANDLE, zesPowerGetLimits(NULL, &sustained, &burst, &peak));
  GIVES(ERROR_INVALID_NULL_POINTER, zesPowerGetLimitsExt(power, NULL, found));

  zes_pci_stats_t bus = {.rxCounter = 77}, later;
  OK(zesDevicePciGetStats(device, &bus));
  OK(zesDevicePciGetStats(device, &later));
  CHECK(bus.timestamp > 0 && later.timestamp >= bus.timestamp && bus.rxCounter == 0 && bus.speed.gen == -1);
  GIVES(ERROR_INVALID_NULL_POINTER, zesDevicePciGetStats(device, NULL));
}

/* Nothing happens here; test_failures.c listens to the loss of a device. */
static void events(void) {
  zes_event_type_flags_t events[2] = {77, 77};
  uint32_t number = 77;
  zes_device_handle_t pair[2] = {device, device};
  OK(zesDriverEventListenEx(driver, UINT64_MAX, 2, pair, &number,
                            events)); /* nothing is registered: nothing to wait for */
  CHECK(number == 0 && events[0] == 0 && events[1] == 0);
  OK(zesDeviceEventRegister(device, ZES_EVENT_TYPE_FLAG_FREQ_THROTTLED | ZES_EVENT_TYPE_FLAG_DEVICE_RESET_REQUIRED));
  OK(zesDriverEventListen(driver, 0, 1, pair, &number, events));
  OK(zesDriverEventListen(driver, 20, 1, pair, &number, events));
  CHECK(number == 0 && events[0] == 0);
  OK(zesDeviceEventRegister(device, 0));
  GIVES(ERROR_INVALID_ENUMERATION, zesDeviceEventRegister(device, 0x8000));
  GIVES(ERROR_INVALID_NULL_HANDLE, zesDeviceEventRegister(NULL, 0));
  GIVES(ERROR_INVALID_NULL_HANDLE, zesDriverEventListen(NULL, 0, 1, pair, &number, events));
  GIVES(ERROR_INVALID_NULL_POINTER, zesDriverEventListen(driver, 0, 1, pair, NULL, events));
  pair[1] = NULL;
  GIVES(ERROR_INVALID_NULL_HANDLE, zesDriverEventListenEx(driver, 0, 2, pair, &number, events));
}

static void resets(void) {
  zes_reset_properties_t how = {.resetType = ZES_RESET_TYPE_FLR};
  OK(zesDeviceReset(device, 0));
  void *block = device_memory(4096);
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zesDeviceReset(device, 0));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zesDeviceReset(device, 1));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zesDeviceResetExt(device, &how));
  OK(zeMemFree(context, block));
  OK(zesDeviceResetExt(device, &how));
  how.resetType = 3;
  GIVES(ERROR_INVALID_ENUMERATION, zesDeviceResetExt(device, &how));
  GIVES(ERROR_INVALID_NULL_POINTER, zesDeviceResetExt(device, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zesDeviceReset(NULL, 0));
}

int main(void) {
  uint32_t count = 0;
  GIVES(ERROR_UNINITIALIZED, zesDriverGet(&count, NULL));
  GIVES(ERROR_INVALID_ENUMERATION, zesInit(2));
  OK(zesInit(0)); /* without zeInit */
  devices();
  memory();
  this_process();
  sensors();
  limits();
  events();
  resets();
  finish("sysman");
  return 0;
}
