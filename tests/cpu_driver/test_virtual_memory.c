/* SPDX-License-Identifier: Apache-2.0 */
/* test_virtual_memory.c: reserving, mapping, unmapping. */
#include "harness.h"

static const size_t SMALL = 64 << 10, LARGE = 2 << 20;

static ze_physical_mem_handle_t physical(size_t size) {
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = size};
  ze_physical_mem_handle_t handle;
  OK(zePhysicalMemCreate(context, device, &desc, &handle));
  return handle;
}

static void sizes_are_whole_pages(void) {
  size_t page;
  void *p;
  ze_physical_mem_handle_t handle;
  OK(zeVirtualMemQueryPageSize(context, device, 1, &page));
  CHECK(page == SMALL);
  OK(zeVirtualMemQueryPageSize(context, device, 3 * LARGE, &page));
  CHECK(page == LARGE);
  GIVES(ERROR_UNSUPPORTED_SIZE, zeVirtualMemQueryPageSize(context, device, 0, &page));
  GIVES(ERROR_UNSUPPORTED_SIZE, zeVirtualMemReserve(context, NULL, 0, &p));
  GIVES(ERROR_UNSUPPORTED_SIZE, zeVirtualMemReserve(context, NULL, 1000, &p));
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeVirtualMemReserve(context, NULL, (size_t)1 << 62, &p));
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeVirtualMemReserve(context, NULL, SIZE_MAX, &p));
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = LARGE + SMALL};
  GIVES(ERROR_UNSUPPORTED_SIZE, zePhysicalMemCreate(context, device, &desc, &handle));
  desc.size = (size_t)32 << 30;
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zePhysicalMemCreate(context, device, &desc, &handle));
}

static void a_range_grows_piece_by_piece(void) {
  enum { PIECES = 40 };
  char *base;
  OK(zeVirtualMemReserve(context, NULL, (size_t)18 << 30, (void **)&base));
  CHECK((uintptr_t)base % LARGE == 0);
  ze_physical_mem_handle_t pieces[PIECES];
  ze_command_list_handle_t list = in_order_list();
  char one = 1, two = 2;
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryFill(list, base, &one, 1, 1, NULL, 0, NULL));
  for (int i = 0; i < PIECES; i++) {
    pieces[i] = physical(LARGE);
    OK(zeVirtualMemMap(context, base + (size_t)i * LARGE, LARGE, pieces[i], 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  }
  GIVES(ERROR_INVALID_ARGUMENT,
        zeVirtualMemMap(context, base, LARGE, pieces[0], 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  GIVES(ERROR_UNSUPPORTED_ALIGNMENT,
        zeVirtualMemMap(context, base + SMALL, LARGE, pieces[0], 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeCommandListAppendMemoryFill(list, base, &one, 1, PIECES * LARGE, NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryFill(list, base, &one, 1, PIECES * LARGE + 1, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(base[PIECES * LARGE - 1] == 1);
  ze_memory_allocation_properties_t what = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  ze_device_handle_t owner;
  OK(zeMemGetAllocProperties(context, base + LARGE + 5, &what, &owner));
  CHECK(what.type == ZE_MEMORY_TYPE_DEVICE && owner == device);
  OK(zeContextMakeMemoryResident(context, device, base, LARGE));

  /* What is mapped cannot go; what is unmapped keeps its content and can be mapped elsewhere. */
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zePhysicalMemDestroy(context, pieces[0]));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeVirtualMemFree(context, base, (size_t)18 << 30));
  GIVES(ERROR_INVALID_ARGUMENT, zeVirtualMemUnmap(context, base, SMALL));
  OK(zeVirtualMemUnmap(context, base, LARGE));
  OK(zeVirtualMemMap(context, base + 100 * LARGE, LARGE, pieces[0], 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY));
  CHECK(base[100 * LARGE] == 1);
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryFill(list, base + 100 * LARGE, &two, 1, 1, NULL, 0, NULL));
  ze_memory_access_attribute_t access;
  size_t same;
  OK(zeVirtualMemGetAccessAttribute(context, base + 100 * LARGE, LARGE, &access, &same));
  CHECK(access == ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY && same == LARGE);
  OK(zeVirtualMemSetAccessAttribute(context, base + 100 * LARGE, SMALL, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeVirtualMemGetAccessAttribute(context, base + 100 * LARGE, LARGE, &access, &same));
  CHECK(access == ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE && same == SMALL);
  OK(zeCommandListAppendMemoryFill(list, base + 100 * LARGE, &two, 1, 1, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(base[100 * LARGE] == 2);
  OK(zeVirtualMemUnmap(context, base + 100 * LARGE, LARGE));
  OK(zeVirtualMemUnmap(context, base + LARGE, (PIECES - 1) * LARGE)); /* several pieces at once */
  for (int i = 0; i < PIECES; i++) OK(zePhysicalMemDestroy(context, pieces[i]));
  GIVES(ERROR_INVALID_ARGUMENT, zeVirtualMemFree(context, base, LARGE));
  OK(zeVirtualMemFree(context, base, (size_t)18 << 30));
  OK(zeCommandListDestroy(list));
}

static void what_is_in_use_stays_mapped(void) {
  void *base;
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t go = event_of(pool, 0);
  ze_command_list_handle_t list = in_order_list();
  OK(zeVirtualMemReserve(context, NULL, LARGE, &base));
  ze_physical_mem_handle_t piece = physical(SMALL);
  OK(zeVirtualMemMap(context, base, SMALL, piece, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeCommandListAppendMemoryFill(list, base, "x", 1, SMALL, NULL, 1, &go));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeVirtualMemUnmap(context, base, SMALL));
  OK(zeEventHostSignal(go));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeVirtualMemUnmap(context, base, SMALL));
  OK(zePhysicalMemDestroy(context, piece));
  OK(zeVirtualMemFree(context, base, LARGE));
  OK(zeCommandListDestroy(list));
  OK(zeEventDestroy(go));
  OK(zeEventPoolDestroy(pool));
}

/* A list outlives the memory that its commands name: executing it is refused, as appending would be. */
static void recorded_commands_need_their_memory(void) {
  ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = 64 << 10};
  ze_physical_mem_handle_t physical;
  ze_command_list_handle_t on_mapped, on_freed, immediate = in_order_list();
  void *place, *block = device_memory(64);
  char bytes[64] = {0};
  OK(zeVirtualMemReserve(context, NULL, 64 << 10, &place));
  OK(zePhysicalMemCreate(context, device, &desc, &physical));
  ze_physical_mem_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES};
  OK(zePhysicalMemGetProperties(context, physical, &properties));
  CHECK(properties.size == 64 << 10 && properties.id != 0);
  OK(zeVirtualMemMap(context, place, 64 << 10, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeCommandListCreate(context, device, &list_desc, &on_mapped));
  OK(zeCommandListCreate(context, device, &list_desc, &on_freed));
  OK(zeCommandListAppendMemoryCopy(on_mapped, place, bytes, 64, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(on_freed, block, bytes, 64, NULL, 0, NULL));
  OK(zeCommandListClose(on_mapped));
  OK(zeCommandListClose(on_freed));
  OK(zeCommandListImmediateAppendCommandListsExp(immediate, 1, &on_mapped, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(immediate, FOREVER));
  OK(zeVirtualMemSetAccessAttribute(context, place, 64 << 10, ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListImmediateAppendCommandListsExp(immediate, 1, &on_mapped, NULL, 0, NULL));
  OK(zeVirtualMemUnmap(context, place, 64 << 10));
  OK(zeMemFree(context, block));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListImmediateAppendCommandListsExp(immediate, 1, &on_mapped, NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListImmediateAppendCommandListsExp(immediate, 1, &on_freed, NULL, 0, NULL));
  OK(zePhysicalMemDestroy(context, physical));
  OK(zeVirtualMemFree(context, place, 64 << 10));
  OK(zeCommandListDestroy(on_mapped));
  OK(zeCommandListDestroy(on_freed));
  OK(zeCommandListDestroy(immediate));
}

/* Of the host's memory: it counts against no device, and is what it says. */
static void physical_memory_may_be_the_hosts(void) {
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .flags = 4, .size = LARGE};
  ze_physical_mem_handle_t memory;
  GIVES(ERROR_INVALID_ENUMERATION, zePhysicalMemCreate(context, device, &desc, &memory));
  desc.flags = ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST;
  desc.size = (size_t)20 << 30; /* more than the device has */
  OK(zePhysicalMemCreate(context, device, &desc, &memory));
  OK(zePhysicalMemDestroy(context, memory));
  desc.size = SIZE_MAX & ~(SMALL - 1);
  GIVES(ERROR_OUT_OF_HOST_MEMORY, zePhysicalMemCreate(context, device, &desc, &memory));
  desc.size = 4096; /* the system's page is enough for the host's memory */
  OK(zePhysicalMemCreate(context, NULL, &desc, &memory));
  ze_physical_mem_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES};
  OK(zePhysicalMemGetProperties(context, memory, &properties));
  CHECK(properties.size == 4096);
  OK(zePhysicalMemDestroy(context, memory));
  desc.size = LARGE;
  desc.flags = 0; /* only the host's memory needs no device */
  GIVES(ERROR_INVALID_NULL_HANDLE, zePhysicalMemCreate(context, NULL, &desc, &memory));
  desc.flags = ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST;
  GIVES(ERROR_INVALID_NULL_HANDLE, zePhysicalMemCreate(context, (ze_device_handle_t)context, &desc, &memory));
  OK(zePhysicalMemCreate(context, NULL, &desc, &memory));
  char *base, pattern = 3;
  OK(zeVirtualMemReserve(context, NULL, LARGE, (void **)&base));
  OK(zeVirtualMemMap(context, base, LARGE, memory, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  ze_memory_allocation_properties_t what = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  ze_device_handle_t owner = device;
  OK(zeMemGetAllocProperties(context, base, &what, &owner));
  CHECK(what.type == ZE_MEMORY_TYPE_HOST && owner == NULL);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryFill(list, base, &pattern, 1, LARGE, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(base[0] == 3 && base[LARGE - 1] == 3);
  OK(zeCommandListDestroy(list));
  OK(zeVirtualMemUnmap(context, base, LARGE));
  OK(zeVirtualMemFree(context, base, LARGE));
  OK(zePhysicalMemDestroy(context, memory));
}

/* What moves takes its content along, and what is made next where it was is zero. */
static void places_are_used_again(void) {
  char *base;
  OK(zeVirtualMemReserve(context, NULL, 4 * LARGE, (void **)&base));
  ze_physical_mem_handle_t first = physical(SMALL), second = physical(2 * SMALL), third = physical(SMALL);
  OK(zeVirtualMemMap(context, base, SMALL, first, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  base[0] = 1;
  OK(zeVirtualMemUnmap(context, base, SMALL));
  OK(zeVirtualMemMap(context, base + LARGE, SMALL, first, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeVirtualMemMap(context, base, 2 * SMALL, second, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  CHECK(base[0] == 0 && base[LARGE] == 1);
  base[0] = base[SMALL] = 2;
  CHECK(base[LARGE] == 1);
  OK(zeVirtualMemUnmap(context, base, 2 * SMALL));
  OK(zeVirtualMemUnmap(context, base + LARGE, SMALL));
  OK(zePhysicalMemDestroy(context, first));
  OK(zeVirtualMemMap(context, base, SMALL, third, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeVirtualMemMap(context, base + LARGE, 2 * SMALL, second, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  CHECK(base[0] == 0 && base[LARGE] == 2 && base[LARGE + SMALL] == 2);
  OK(zeVirtualMemUnmap(context, base, SMALL));
  OK(zeVirtualMemUnmap(context, base + LARGE, 2 * SMALL));
  OK(zeVirtualMemFree(context, base, 4 * LARGE));
  OK(zePhysicalMemDestroy(context, second));
  OK(zePhysicalMemDestroy(context, third));
}

/* Read-only memory is told to be so, and is: an append that writes it is refused. */
static void read_only_is_enforced(void) {
  ze_device_readonly_memory_ext_properties_t enforced = {
      .stype = ZE_STRUCTURE_TYPE_DEVICE_READONLY_MEMORY_EXT_PROPERTIES};
  ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, .pNext = &enforced};
  OK(zeDeviceGetProperties(device, &properties));
  CHECK(enforced.readonlyCapability == ZE_DEVICE_READONLY_MEMORY_CAPABILITY_ENFORCED);
  uint32_t count = 64;
  ze_driver_extension_properties_t extensions[64];
  OK(zeDriverGetExtensionProperties(driver, &count, extensions));
  bool named = false;
  for (uint32_t i = 0; i < count; i++)
    named |= strcmp(extensions[i].name, "ZE_extension_virtual_mem_readonly_properties") == 0;
  CHECK(named);
  void *base;
  OK(zeVirtualMemReserve(context, NULL, SMALL, &base));
  ze_physical_mem_handle_t piece = physical(SMALL);
  ze_command_list_handle_t list = in_order_list();
  OK(zeVirtualMemMap(context, base, SMALL, piece, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryFill(list, base, "x", 1, 1, NULL, 0, NULL));
  OK(zeVirtualMemUnmap(context, base, SMALL));
  OK(zePhysicalMemDestroy(context, piece));
  OK(zeVirtualMemFree(context, base, SMALL));
  OK(zeCommandListDestroy(list));
}

int main(void) {
  begin();
  read_only_is_enforced();
  physical_memory_may_be_the_hosts();
  recorded_commands_need_their_memory();
  sizes_are_whole_pages();
  a_range_grows_piece_by_piece();
  what_is_in_use_stays_mapped();
  places_are_used_again();
  finish("virtual_memory");
  return 0;
}
