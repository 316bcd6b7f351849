/* SPDX-License-Identifier: Apache-2.0 */
/* test_faults.c: failures on request. */
#include "children.h"

static void second_allocation(void) {
  begin();
  ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
  void *p;
  OK(zeMemFree(context, device_memory(64)));
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeMemAllocDevice(context, &desc, 64, 0, device, &p));
  OK(zeMemFree(context, device_memory(64)));
  GIVES(ERROR_DEVICE_LOST, zeDeviceGetStatus(device));
  OK(zeDeviceGetStatus(device));
  OK(zeContextDestroy(context));
}

static void late(void) {
  begin();
  char *good = device_memory(64), *bad = device_memory(64), plain[64];
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryCopy(list, good, plain, 64, NULL, 0, NULL));
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeContextMakeMemoryResident(context, device, bad, 64));
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeCommandListAppendMemoryCopy(list, bad, plain, 64, NULL, 0, NULL));
  OK(zeMemFree(context, bad));
  bad = device_memory(64); /* the same block again, now a good one */
  OK(zeCommandListAppendMemoryCopy(list, bad, plain, 64, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
}

static void hanging(void) {
  begin();
  ze_command_list_handle_t list = in_order_list(), other = in_order_list();
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL)); /* never completes */
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  OK(zeCommandListAppendBarrier(other, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(other, FOREVER));
  GIVES(NOT_READY, zeCommandListHostSynchronize(list, SOON));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandListDestroy(list));
}

static void slow(void) {
  begin();
  uint64_t before, after, ticks;
  OK(zeDeviceGetGlobalTimestamps(device, &before, &ticks));
  OK(zeContextGetStatus(context));
  OK(zeDeviceGetGlobalTimestamps(device, &after, &ticks));
  CHECK(after - before >= 100000000u);
}

static void init_itself(void) {
  GIVES(ERROR_UNINITIALIZED, zeInit(0));
  OK(zeInit(0));
}

static void with(const char *rules, void (*body)(void)) { CHECK(in_child("L0RT_CPU_FAIL", rules, body, NULL, 0) == 0); }

int main(void) {
  with("zeMemAllocDevice:2:ERROR_OUT_OF_DEVICE_MEMORY,zeDeviceGetStatus:1:ERROR_DEVICE_LOST", second_allocation);
  with("zeMemAllocDevice:2:late_oom", late);
  with("zeCommandListAppendBarrier:2:hang", hanging);
  with("zeContextGetStatus:1:slow=100", slow);
  with("zeInit:1:ERROR_UNINITIALIZED", init_itself);
  printf("faults: ok\n");
  return 0;
}
