/* SPDX-License-Identifier: Apache-2.0 */
/* test_knobs.c: what the environment asks for is done, or refused in one line that says what there is. */
#include "children.h"
#include "modules.h"

static void is_refused(void) { CHECK(zeInit(0) == ZE_RESULT_ERROR_INVALID_ARGUMENT); }

static void is_taken(void) { OK(zeInit(0)); }

static void refuses(const char *name, const char *value) {
  char text[1024];
  CHECK(in_child(name, value, is_refused, text, sizeof(text)) == 0);
  CHECK(strstr(text, name) != NULL);
  CHECK(strchr(text, '\n') == text + strlen(text) - 1); /* one line */
}

static void takes(const char *name, const char *value) {
  char text[1024];
  CHECK(in_child(name, value, is_taken, text, sizeof(text)) == 0);
  CHECK(text[0] == '\0');
}

static void three_devices(void) {
  begin();
  uint32_t count = 0;
  ze_device_handle_t devices[8];
  OK(zeDeviceGet(driver, &count, NULL));
  CHECK(count == 3);
  count = 8;
  OK(zeDeviceGet(driver, &count, devices));
  CHECK(count == 3 && devices[1] != devices[2]);
  ze_device_properties_t a = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES}, b = a;
  ze_pci_ext_properties_t p = {.stype = ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES}, q = p;
  OK(zeDeviceGetProperties(devices[0], &a));
  OK(zeDeviceGetProperties(devices[1], &b));
  CHECK(memcmp(a.uuid.id, b.uuid.id, sizeof(a.uuid.id)) != 0);
  /* llama.cpp takes 16 for a core, and divides by the number of cores. */
  CHECK(a.numSlices * a.numSubslicesPerSlice * a.numEUsPerSubslice >= 16);
  OK(zeDevicePciGetPropertiesExt(devices[0], &p));
  OK(zeDevicePciGetPropertiesExt(devices[1], &q));
  CHECK(p.address.bus != q.address.bus);
  /* A context of one device knows no other. */
  ze_context_handle_t narrow;
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  OK(zeContextCreateEx(driver, &desc, 1, &devices[1], &narrow));
  ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
  void *x;
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocDevice(narrow, &on_device, 64, 0, devices[0], &x));
  OK(zeMemAllocDevice(narrow, &on_device, 64, 0, devices[1], &x));
  OK(zeMemFree(narrow, x));
  OK(zeContextDestroy(narrow));
}

static void one_mebibyte(void) {
  begin();
  uint32_t one = 1;
  ze_device_memory_properties_t memory = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES};
  OK(zeDeviceGetMemoryProperties(device, &one, &memory));
  CHECK(memory.totalSize == 1 << 20);
  void *all = device_memory(1 << 20), *more;
  ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeMemAllocDevice(context, &on_device, 1, 0, device, &more));
  OK(zeMemFree(context, all));
}

__attribute__((unused)) static void four_tebibytes(void) {
  begin();
  char *p = device_memory((size_t)300 << 30);
  p[(size_t)299 << 30] = 1;
  OK(zeMemFree(context, p));
}

/* What ZE_extension_device_ip_version reports, or `before` where there is none. */
static uint32_t architecture(uint32_t before) {
  struct {
    uint32_t stype;
    const void *next;
    uint32_t version;
  } ip = {.stype = 0x1000f, .version = before};
  ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, .pNext = &ip};
  OK(zeDeviceGetProperties(device, &p));
  CHECK(ip.stype == 0x1000f && ip.next == NULL);
  return ip.version;
}

/* Gen9's: the kernels of libraries that have one for each architecture are SPIR-V there. */
static void an_architecture(void) {
  begin();
  CHECK(architecture(77) == (9 << 22 | 9));
  finish("architecture");
}

static void twelve_bits_at_a_megahertz(void) {
  setenv("L0RT_CPU_TIMESTAMP_HZ", "1000000", 1);
  begin();
  ze_device_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
  OK(zeDeviceGetProperties(device, &p));
  CHECK(p.timestampValidBits == 12 && p.kernelTimestampValidBits == 12 && p.timerResolution == 1000);
  p.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
  OK(zeDeviceGetProperties(device, &p));
  CHECK(p.timerResolution == 1000000);
  uint64_t host, ticks, last = 0;
  bool wrapped = false;
  for (int i = 0; i < 1000 && !wrapped; i++, last = ticks) {
    OK(zeDeviceGetGlobalTimestamps(device, &host, &ticks));
    CHECK(ticks < 4096);
    wrapped = ticks < last; /* every 4.1 ms */
    usleep(500);
  }
  CHECK(wrapped);
}

/* What Intel's driver of Debian 12 does, as far as its version goes. */
static void an_old_driver(void) {
  begin();
  ze_api_version_t version;
  OK(zeDriverGetApiVersion(driver, &version));
  CHECK(version == 0x10003);
  uint32_t count = 0;
  ze_init_driver_type_desc_t drivers = {.stype = ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC, .flags = ~0u};
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeInitDrivers(&count, NULL, &drivers));
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeDeviceGetStatus(device));
  CHECK(architecture(77) == 77);
  ze_command_list_handle_t list = immediate_on(0, 0, 0xff);
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeCommandListHostSynchronize(list, 0));
  OK(zeCommandListDestroy(list));
  void *p;
  size_t page;
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeVirtualMemReserve(context, NULL, 2 << 20, &p));
  OK(zeVirtualMemQueryPageSize(context, device, 2 << 20, &page));
  ze_base_desc_t unknown = {.stype = ZE_STRUCTURE_TYPE_EU_COUNT_EXT};
  ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC, .pNext = &unknown};
  GIVES(ERROR_UNSUPPORTED_ENUMERATION, zeMemAllocDevice(context, &desc, 64, 0, device, &p));
  desc.pNext = NULL;
  OK(zeMemAllocDevice(context, &desc, 0, 3, device, &p));
  ze_memory_free_ext_desc_t defer = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                     .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE};
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeMemFreeExt(context, &defer, p));
  OK(zeMemFree(context, p));
  OK(zeContextDestroy(context));
}

/* The host may not touch device memory; the device may. */
static void hidden_memory(void) {
  begin();
  enum { SIZE = 3 << 20 };
  char *hidden = device_memory(SIZE), *mapped, *plain = malloc(SIZE), *back = malloc(SIZE);
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = 2 << 20};
  ze_physical_mem_handle_t piece;
  OK(zePhysicalMemCreate(context, device, &desc, &piece));
  OK(zeVirtualMemReserve(context, NULL, 8 << 20, (void **)&mapped));
  OK(zeVirtualMemMap(context, mapped, 2 << 20, piece, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  for (int i = 0; i < SIZE; i++) plain[i] = (char)(i * 11);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryCopy(list, hidden, plain, SIZE, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, mapped, hidden + 4096, 2 << 20, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, back, mapped, 2 << 20, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(memcmp(back, plain + 4096, 2 << 20) == 0);
  int ends[2];
  CHECK(pipe(ends) == 0);
  for (int i = 0; i < SIZE; i += 4096) CHECK(write(ends[1], hidden + i, 1) == -1);
  CHECK(write(ends[1], mapped, 1) == -1);
  CHECK(write(ends[1], plain, 1) == 1);
  OK(zeVirtualMemUnmap(context, mapped, 2 << 20));
  OK(zePhysicalMemDestroy(context, piece));
  OK(zeVirtualMemFree(context, mapped, 8 << 20));
  OK(zeMemFree(context, hidden));
  OK(zeCommandListDestroy(list));
  free(plain);
  free(back);
  ze_physical_mem_desc_t own = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .flags = 2, .size = 2 << 20};
  ze_physical_mem_handle_t of_host;
  char *seen;
  OK(zePhysicalMemCreate(context, device, &own, &of_host));
  OK(zeVirtualMemReserve(context, NULL, own.size, (void **)&seen));
  OK(zeVirtualMemMap(context, seen, own.size, of_host, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  ze_command_list_handle_t filler = in_order_list();
  OK(zeCommandListAppendMemoryFill(filler, seen, "y", 1, own.size, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(filler, FOREVER));
  CHECK(seen[0] == 'y' && seen[own.size - 1] == 'y');
  OK(zeCommandListDestroy(filler));
  OK(zeVirtualMemUnmap(context, seen, own.size));
  OK(zeVirtualMemFree(context, seen, own.size));
  OK(zePhysicalMemDestroy(context, of_host));
  finish("hidden memory");
}

/* It says what the real one says, and that it is none; all of it works as ever. */
static void a_simulated_device(void) {
  begin();
  ze_device_properties_t it = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
  OK(zeDeviceGetProperties(device, &it));
  CHECK(it.vendorId == 0x8086 && it.deviceId == 0x7d55 && (it.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED) != 0);
  CHECK(strstr(it.name, "simulated") != NULL && it.timestampValidBits == 36 && it.kernelTimestampValidBits == 32);
  ze_driver_properties_t build = {.stype = ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES};
  OK(zeDriverGetProperties(driver, &build));
  CHECK((build.driverVersion & 0xffff) == 33578);
  CHECK(architecture(77) == (12 << 22 | 71 << 14 | 4));
  ze_api_version_t api;
  OK(zeDriverGetApiVersion(driver, &api));
  CHECK(api == (1 << 16 | 6));
  const char *(*kernel_driver)(void) = NULL;
  OK(zeDriverGetExtensionFunctionAddress(driver, "l0rtCpuKernelDriver", (void **)&kernel_driver));
  CHECK(strcmp(kernel_driver(), "i915") == 0);
  OK(zeMemFree(context, device_memory(1 << 20)));
}

static void does(const char *name, const char *value, void (*body)(void)) {
  CHECK(in_child(name, value, body, NULL, 0) == 0);
}

static void launches(void) {
  begin();
  ze_command_list_handle_t list = in_order_list();
  ze_module_handle_t module = module_of("races");
  int *out = shared_memory(4096), *in = shared_memory(4096);
  memset(in, 0, 4096);
  ze_group_count_t groups = {3, 1, 1};
  static const char *const names[] = {"flag_mended", "flag_racy"};
  for (int i = 0; i < 2; i++) {
    ze_kernel_handle_t kernel = kernel_of(module, names[i]);
    OK(zeKernelSetGroupSize(kernel, 32, 1, 1));
    SET(kernel, 0, out);
    SET(kernel, 1, in);
    OK(zeCommandListAppendLaunchKernel(list, kernel, &groups, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
    OK(zeKernelDestroy(kernel));
  }
  OK(zeModuleDestroy(module));
}

static void kernels_are_watched(void) {
  static char text[1 << 16];
  CHECK(in_child("L0RT_CPU_RACES", "1", launches, text, sizeof(text)) == 0);
  CHECK(strstr(text, "race in kernel flag_racy, global memory") == text);
  CHECK(strchr(text, '\n') == text + strlen(text) - 1);
  CHECK(in_child("L0RT_CPU_RACES", "0", launches, text, sizeof(text)) == 0 && text[0] == '\0');
  CHECK(in_child("L0RT_CPU_TRACE", "flag_racy:40", launches, text, sizeof(text)) == 0);
  CHECK(strstr(text, "kernel flag_racy, work-item (40, 0, 0)\n") == text);
  CHECK(strstr(text, "OpStore") != NULL && strstr(text, "i32 40") != NULL && strstr(text, "flag_mended") == NULL);
  CHECK(in_child("L0RT_CPU_TRACE", "flag", launches, text, sizeof(text)) == 0 && text[0] == '\0');
  static const char *const wrong[] = {":", ":3", "a:", "a:x", "a:1,", "a:1,2,3,4", "a:1;2"};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) refuses("L0RT_CPU_TRACE", wrong[i]);
  takes("L0RT_CPU_TRACE", "a:1,2,3");
  refuses("L0RT_CPU_RACES", "2");
  refuses("L0RT_CPU_RUNNING_LISTS", "1");
}

/* Adds 7 to so many numbers of one allocation, into another; they have so many bytes. */
static ze_result_t adds(uint32_t count, size_t from_bytes, size_t to_bytes, int **out) {
  ze_module_handle_t module = module_of("launch");
  ze_command_list_handle_t list = in_order_list();
  ze_kernel_handle_t kernel = kernel_of(module, "add");
  int *from = shared_memory(from_bytes), more = 7;
  *out = shared_memory(to_bytes);
  for (size_t i = 0; i < from_bytes / sizeof(*from); i++) from[i] = (int)i + 1;
  SET(kernel, 0, *out);
  SET(kernel, 1, from);
  SET(kernel, 2, more);
  OK(zeKernelSetGroupSize(kernel, 32, 1, 1));
  OK(zeCommandListAppendLaunchKernel(list, kernel, &(ze_group_count_t){count / 32, 1, 1}, NULL, 0, NULL));
  ze_result_t result = zeCommandListHostSynchronize(list, FOREVER);
  OK(zeKernelDestroy(kernel));
  OK(zeModuleDestroy(module));
  OK(zeMemFree(context, from));
  return result;
}

static void a_long_argument(ze_result_t expected) {
  ze_module_handle_t module = module_of("launch");
  ze_kernel_handle_t kernel = kernel_of(module, "add");
  ze_command_list_handle_t list = in_order_list();
  int *data = shared_memory(128);
  const uint64_t more = UINT64_C(5) << 32 | 7;
  memset(data, 0, 128);
  SET(kernel, 0, data);
  SET(kernel, 1, data);
  OK(zeKernelSetArgumentValue(kernel, 2, sizeof(int), NULL));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(kernel, 2, 3, &more));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(kernel, 2, 0, &more));
  CHECK(zeKernelSetArgumentValue(kernel, 2, sizeof(more), &more) == expected);
  OK(zeKernelSetGroupSize(kernel, 32, 1, 1));
  OK(zeCommandListAppendLaunchKernel(list, kernel, &(ze_group_count_t){1, 1, 1}, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int i = 0; i < 32; i++) CHECK(data[i] == (expected == ZE_RESULT_SUCCESS ? 7 : 0));
  OK(zeKernelDestroy(kernel));
  OK(zeModuleDestroy(module));
}

enum { PLACE = 1 << 16 }; /* of an allocation */

static void leniency(void) {
  begin();
  int *out;
  a_long_argument(ZE_RESULT_SUCCESS);
  /* The end is that of the place, within it, and within a page. What is read there is 0, for the size of
   * a place, in whole pages. */
  static const size_t sizes[] = {PLACE, 400, 4096 + 4};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    const size_t count = sizes[i] / sizeof(int), all = (sizes[i] + PLACE) / sizeof(int) / 32 * 32;
    OK(adds((uint32_t)all, sizes[i], 4 * PLACE, &out));
    for (size_t k = 0; k < all; k++) CHECK(out[k] == (k < count ? (int)k + 8 : 7));
    GIVES(ERROR_UNKNOWN, adds((uint32_t)all + 1056, sizes[i], 4 * PLACE, &out));
  }
  GIVES(ERROR_UNKNOWN, adds(128, 4096, 400, &out)); /* a store */
}

static void no_leniency(void) {
  begin();
  int *out;
  a_long_argument(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
  OK(adds(96, 384, PLACE, &out));
  GIVES(ERROR_UNKNOWN, adds(128, 384, PLACE, &out));
}

int main(void) {
  kernels_are_watched();
  refuses("L0RT_CPU_LENIENT", "2");
  /* clang-format off */
  static const char *const wrong[][2] = {
      {"L0RT_CPU_DEVICES", "0"},         {"L0RT_CPU_DEVICES", "two"},        {"L0RT_CPU_DEVICES", "65"},
      {"L0RT_CPU_MEMORY", "16GB"},       {"L0RT_CPU_MEMORY", "-1"},          {"L0RT_CPU_MEMORY", "0"},
      {"L0RT_CPU_MEMORY", "GiB"},        {"L0RT_CPU_MEMORY", "1 GiB"},       {"L0RT_CPU_MEMORY", "99999999999TiB"},
      {"L0RT_CPU_TIMESTAMP_BITS", "0"},  {"L0RT_CPU_TIMESTAMP_BITS", "65"},  {"L0RT_CPU_TIMESTAMP_HZ", "19.2e6"},
      {"L0RT_CPU_CHAOS", "yes"},         {"L0RT_CPU_STRICT", "on"},          {"L0RT_CPU_PROFILE", "neo"},
      {"L0RT_CPU_PROFILE", "pvc,"},      {"L0RT_CPU_PROFILE", "pvc,pvc"},    {"L0RT_CPU_PROFILE", "neo-25.18,neo-22.43"},
      {"L0RT_CPU_PROFILE", "pvc,neo-22.43"}, {"L0RT_CPU_QUIRKS", "vm_bind"}, {"L0RT_CPU_QUIRKS", "no_vm_bind,"},
      {"L0RT_CPU_PROFILE", "timing"}, {"L0RT_CPU_LATENCY", "map=1"}, {"L0RT_CPU_LATENCY", "unmap="},
      {"L0RT_CPU_LATENCY", "unmap=-1"}, {"L0RT_CPU_LATENCY", "unmap=1,"}, {"L0RT_CPU_LATENCY", "unmap=1.2.3"},
      {"L0RT_CPU_FAIL", "zeMemFree"},    {"L0RT_CPU_FAIL", "zeMemFree:0:NOT_READY"},
      {"L0RT_CPU_FAIL", "zeInit:1:BOO"}, {"L0RT_CPU_FAIL", "zeInit:1:slow="}, {"L0RT_CPU_FAIL", "zeInit:1:NOT_READY,"},
      {"L0RT_CPU_FAIL", "zeInit:1:hang"}, {"L0RT_CPU_FAIL", "zeMemFee:1:NOT_READY"},   {"L0RT_CPU_" "NONE", "1"},
  };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) refuses(wrong[i][0], wrong[i][1]);
  static const char *const right[][2] = {
      {"L0RT_CPU_DEVICES", ""},           {"L0RT_CPU_DEVICES", "64"},        {"L0RT_CPU_MEMORY", "4096"},
      {"L0RT_CPU_MEMORY", "64TiB"},       {"L0RT_CPU_TIMESTAMP_BITS", "64"}, {"L0RT_CPU_STRICT", "0"},
      {"L0RT_CPU_CHAOS", "0"},            {"L0RT_CPU_PROFILE", "neo-22.43"},
      {"L0RT_CPU_QUIRKS", "no_vm_bind,racing_maps"}, {"L0RT_CPU_QUIRKS", ""},
      {"L0RT_CPU_PROFILE", "timing,pvc,neo-25.18"}, {"L0RT_CPU_LATENCY", "virtual,unmap=0.5,h2d_gbps=12"},
      {"L0RT_CPU_PROFILE", "arc-b580"},   {"L0RT_CPU_PROFILE", "neo-25.18,lunar-lake"},
      {"L0RT_CPU_FAIL",
       "zeMemFree:1:NOT_READY,zeMemAllocHost:2:late_oom,zeCommandListAppendBarrier:3:hang,zeInit:9:slow=0"},
  };
  /* clang-format on */
  for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++) takes(right[i][0], right[i][1]);
  does("L0RT_CPU_DEVICES", "3", three_devices);
  does("L0RT_CPU_MEMORY", "1MiB", one_mebibyte);
#ifndef __SANITIZE_THREAD__ /* which leaves too few addresses for it */
  does("L0RT_CPU_MEMORY", "4TiB", four_tebibytes);
#endif
  does("L0RT_CPU_TIMESTAMP_BITS", "12", twelve_bits_at_a_megahertz);
  does("L0RT_CPU_PROFILE", "neo-22.43", an_old_driver);
  does("L0RT_CPU_PROFILE", "meteor-lake,neo-25.18", a_simulated_device);
  does(NULL, NULL, an_architecture);
  does("L0RT_CPU_STRICT", "1", hidden_memory);
  does("L0RT_CPU_LENIENT", "1", leniency);
  does("L0RT_CPU_LENIENT", "0", no_leniency);
  printf("knobs: ok\n");
  return 0;
}
