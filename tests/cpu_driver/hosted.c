/* SPDX-License-Identifier: Apache-2.0 */
/* hosted.c: the driver inside the official loader: found, used, and its answers understood. */
#include "modules.h"

/* The loader does not export these. */
uint64_t l0rt_cpu_live(int kind) { return (uint64_t)kind * 0; }
const char *l0rt_cpu_kind_name(int kind) { return kind < 0 ? "" : NULL; }

/* The loader's own: the driver's handle behind its wrapping, if there is one. */
ze_result_t zelLoaderTranslateHandle(int type, void *handle, void **translated);

/* A function fetched by its address is the driver's, past the loader: it takes the driver's own handles only. With
 * several drivers a loader hands out others, unless it calls through the tables in the handles, as newer ones do. */
static void extension_functions_take_translated_handles(void) {
  ze_result_t (*version)(ze_driver_handle_t, char *, size_t *);
  OK(zeDriverGetExtensionFunctionAddress(driver, "zeIntelGetDriverVersionString", (void **)&version));
  size_t size = 0;
  ze_driver_handle_t own;
  enum { DRIVER = 0 };
  OK(zelLoaderTranslateHandle(DRIVER, driver, (void **)&own));
  CHECK(version(driver, NULL, &size) == (own != driver ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : ZE_RESULT_SUCCESS));
  char text[64];
  OK(version(own, NULL, &size));
  CHECK(size > 1 && size <= sizeof(text));
  OK(version(own, text, &size));
  CHECK(strlen(text) + 1 == size);
}

/* With several drivers, structures and arrays name the loader's handles: this is what it must get right. */
static void kernels_run(ze_command_list_handle_t list) {
  ze_module_handle_t module = module_of("launch");
  ze_kernel_handle_t add = kernel_of(module, "add");
  int *to = shared_memory(64 * sizeof(int)), *from = shared_memory(64 * sizeof(int)), more = 5;
  for (int i = 0; i < 64; i++) from[i] = i;
  SET(add, 0, to);
  SET(add, 1, from);
  SET(add, 2, more);
  OK(zeKernelSetGroupSize(add, 16, 1, 1));
  ze_group_count_t groups = {4, 1, 1};
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t done = event_of(pool, 0);
  OK(zeCommandListAppendLaunchKernel(list, add, &groups, done, 0, NULL));
  OK(zeEventHostSynchronize(done, FOREVER));
  for (int i = 0; i < 64; i++) CHECK(to[i] == i + 5);
  OK(zeKernelDestroy(add));
  OK(zeModuleDestroy(module));
  OK(zeMemFree(context, to));
  OK(zeMemFree(context, from));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(pool));
}

static void work_on(ze_driver_handle_t a_driver) {
  driver = a_driver;
  extension_functions_take_translated_handles();
  uint32_t one = 1;
  OK(zeDeviceGet(driver, &one, &device));
  ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
  OK(zeDeviceGetProperties(device, &properties));
  CHECK(strcmp(properties.name, "l0rt CPU device") == 0);
  CHECK(properties.type == ZE_DEVICE_TYPE_GPU);
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  OK(zeContextCreate(driver, &desc, &context));

  enum { SIZE = 1 << 20 };
  ze_command_list_handle_t a = loose_list(), b = immediate_on(1, 0, 0);
  ze_event_pool_handle_t pool = pool_of(4, ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
  ze_event_handle_t filled = event_of(pool, 0), copied = event_of(pool, 1), stamped = event_of(pool, 2);
  unsigned char *target = host_memory(SIZE), *between = device_memory(SIZE), pattern = 0x5a;
  uint64_t *stamp = host_memory(sizeof(*stamp));
  OK(zeCommandListAppendMemoryCopy(b, target, between, SIZE, copied, 1, &filled));
  OK(zeCommandListAppendMemoryFill(a, between, &pattern, 1, SIZE, filled, 0, NULL));
  OK(zeCommandListAppendWriteGlobalTimestamp(a, stamp, stamped, 1, &copied));
  OK(zeEventHostSynchronize(stamped, FOREVER));
  for (int i = 0; i < SIZE; i++) CHECK(target[i] == pattern);
  ze_kernel_timestamp_result_t times;
  OK(zeEventQueryKernelTimestamp(copied, &times));
  CHECK(times.global.kernelEnd <= *stamp && *stamp != 0);
  uint64_t host_time, device_time;
  OK(zeDeviceGetGlobalTimestamps(device, &host_time, &device_time));
  CHECK(device_time >= *stamp);

  ze_memory_allocation_properties_t what = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  ze_device_handle_t owner;
  OK(zeMemGetAllocProperties(context, between + 5, &what, &owner));
  CHECK(what.type == ZE_MEMORY_TYPE_DEVICE && owner == device);
  kernels_run(a);
  ze_command_list_handle_t lists[] = {a, b};
  ze_event_handle_t events[] = {filled, copied, stamped};
  for (int i = 0; i < 2; i++) OK(zeCommandListDestroy(lists[i]));
  for (int i = 0; i < 3; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, target));
  OK(zeMemFree(context, between));
  OK(zeMemFree(context, stamp));
  OK(zeContextDestroy(context));
}

int main(void) {
  ze_driver_handle_t drivers[8];
  uint32_t count = 8;
  OK(zeInit(0));
  OK(zeDriverGet(&count, drivers));
  CHECK(count >= 1);
  for (uint32_t i = 0; i < count; i++) work_on(drivers[i]);
  printf("hosted: %u driver(s) ok\n", count);
  return 0;
}
