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

int main(void) {
  uint32_t count = 0;
  GIVES(ERROR_UNINITIALIZED, zesDriverGet(&count, NULL));
  GIVES(ERROR_INVALID_ENUMERATION, zesInit(2));
  OK(zesInit(0)); /* without zeInit */
  devices();
  memory();
  this_process();
  finish("sysman");
  return 0;
}
