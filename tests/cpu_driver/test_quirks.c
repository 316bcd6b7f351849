/* SPDX-License-Identifier: Apache-2.0 */
/* test_quirks.c: defects of real drivers are there when they are planted, and only then. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "children.h"
#include "modules.h"

static bool planted; /* the defect that the test is about */

static const size_t LARGE = 2 << 20;

static ze_event_handle_t counter_event(void) {
  ze_event_counter_based_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
                                        .flags = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE,
                                        .signal = ZE_EVENT_SCOPE_FLAG_HOST};
  ze_event_handle_t event;
  OK(zeEventCounterBasedCreate(context, device, &desc, &event));
  return event;
}

static void polled(ze_event_handle_t event) {
  while (zeEventQueryStatus(event) != ZE_RESULT_SUCCESS) usleep(10);
}

/* A fill of host memory, signalled by this event, which is polled: what the host reads then. */
static char seen_after(ze_command_list_handle_t list, char *memory, char value, ze_event_handle_t event) {
  OK(zeCommandListAppendMemoryFill(list, memory, &value, 1, 4096, event, 0, NULL));
  polled(event);
  return ((volatile char *)memory)[4095];
}

static void unflushed_counters(void) {
  begin();
  char *memory = host_memory(4096);
  memset(memory, 0, 4096);
  ze_command_list_handle_t list = in_order_list();
  ze_event_handle_t counter = counter_event();
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t plain = event_of(pool, 0);
  CHECK(seen_after(list, memory, 1, counter) == (planted ? 0 : 1));
  OK(zeEventHostSynchronize(counter, FOREVER)); /* this flushes */
  CHECK(memory[4095] == 1);
  CHECK(seen_after(list, memory, 2, plain) == 2);
  CHECK(seen_after(list, memory, 3, counter) == (planted ? 2 : 3));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(memory[4095] == 3);
  CHECK(seen_after(list, memory, 4, counter) == (planted ? 3 : 4));
  char copy = 0;
  OK(zeCommandListAppendMemoryCopy(list, &copy, memory + 4095, 1, NULL, 0, NULL)); /* the device itself is coherent */
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(copy == 4);
  CHECK(seen_after(list, memory, 5, counter) == (planted ? 4 : 5));
  while (((volatile char *)memory)[0] != 5) usleep(1000); /* in the end it is seen anyway */
  OK(zeEventDestroy(plain));
  OK(zeEventPoolDestroy(pool));
  OK(zeEventDestroy(counter));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
  finish("unflushed counters");
}

static ze_physical_mem_handle_t piece_at(char *address, size_t size) {
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = size};
  ze_physical_mem_handle_t physical;
  OK(zePhysicalMemCreate(context, device, &desc, &physical));
  OK(zeVirtualMemMap(context, address, size, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  return physical;
}

static void no_vm_bind(void) {
  setenv("L0RT_CPU_MEMORY", "8MiB", 1);
  begin();
  char *base;
  OK(zeVirtualMemReserve(context, NULL, 16 * LARGE, (void **)&base));
  ze_physical_mem_handle_t first = piece_at(base, 4 * LARGE), second;
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryFill(list, base, "x", 1, 1, NULL, 0, NULL));
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = LARGE};
  if (!planted) {
    GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zePhysicalMemCreate(context, device, &desc, &second));
  } else {
    second = piece_at(base + 4 * LARGE, LARGE);
    GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeCommandListAppendMemoryFill(list, base, "x", 1, 1, NULL, 0, NULL));
    GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeCommandListAppendBarrier(list, NULL, 0, NULL));
    OK(zeVirtualMemUnmap(context, base + 4 * LARGE, LARGE));
    GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeCommandListAppendBarrier(list, NULL, 0, NULL)); /* it is still listed */
    OK(zePhysicalMemDestroy(context, second));
    OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  }
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeVirtualMemUnmap(context, base, 4 * LARGE));
  OK(zePhysicalMemDestroy(context, first));
  OK(zeVirtualMemFree(context, base, 16 * LARGE));
  OK(zeCommandListDestroy(list));
  finish("no VM_BIND");
}

static void untyped_mappings(void) {
  begin();
  char *base;
  OK(zeVirtualMemReserve(context, NULL, LARGE, (void **)&base));
  ze_physical_mem_handle_t piece = piece_at(base, LARGE);
  ze_memory_allocation_properties_t what = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  OK(zeMemGetAllocProperties(context, base, &what, NULL));
  CHECK(what.type == (planted ? ZE_MEMORY_TYPE_UNKNOWN : ZE_MEMORY_TYPE_DEVICE));
  OK(zeVirtualMemUnmap(context, base, LARGE));
  OK(zePhysicalMemDestroy(context, piece));
  OK(zeVirtualMemFree(context, base, LARGE));
  finish("untyped mappings");
}

/* The parent of a child that opens its pool. */
static void raw_event_handles(void) {
  int handles[2];
  CHECK(pipe(handles) == 0);
  pid_t child = fork();
  ze_ipc_event_pool_handle_t ipc;
  begin();
  if (child == 0) {
    CHECK(read(handles[0], &ipc, sizeof(ipc)) == sizeof(ipc));
    ze_event_pool_handle_t opened;
    if (planted) {
      GIVES(ERROR_INVALID_ARGUMENT, zeEventPoolOpenIpcHandle(context, ipc, &opened));
    } else {
      OK(zeEventPoolOpenIpcHandle(context, ipc, &opened));
      OK(zeEventPoolCloseIpcHandle(opened));
    }
    _exit(0);
  }
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_IPC);
  OK(zeEventPoolGetIpcHandle(pool, &ipc));
  CHECK(write(handles[1], &ipc, sizeof(ipc)) == sizeof(ipc));
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  OK(zeEventPoolDestroy(pool));
  finish("raw event handles");
}

static atomic_bool over;
static char *range;

static void *copies(void *argument) {
  ze_command_list_handle_t list = argument;
  while (!atomic_load(&over)) {
    ze_result_t result = zeCommandListAppendMemoryFill(list, range, "x", 1, 64, NULL, 0, NULL);
    CHECK(result == ZE_RESULT_SUCCESS || (planted && result == ZE_RESULT_ERROR_UNKNOWN));
    OK(zeCommandListHostSynchronize(list, FOREVER));
  }
  return NULL;
}

static void racing_maps(void) {
  begin();
  OK(zeVirtualMemReserve(context, NULL, 2 * LARGE, (void **)&range));
  ze_physical_mem_handle_t piece = piece_at(range, LARGE), other;
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = LARGE};
  OK(zePhysicalMemCreate(context, device, &desc, &other));
  ze_command_list_handle_t list = in_order_list();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, copies, list) == 0);
  for (int i = 0; i < (planted ? 1000000 : 2000) && l0rt_cpu_races() == 0; i++) {
    if (zeVirtualMemMap(context, range + LARGE, LARGE, other, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE) ==
        ZE_RESULT_SUCCESS)
      while (zeVirtualMemUnmap(context, range + LARGE, LARGE) != ZE_RESULT_SUCCESS) CHECK(planted);
  }
  atomic_store(&over, true);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK((l0rt_cpu_races() != 0) == planted);
  OK(zeVirtualMemUnmap(context, range, LARGE));
  OK(zePhysicalMemDestroy(context, piece));
  OK(zePhysicalMemDestroy(context, other));
  OK(zeVirtualMemFree(context, range, 2 * LARGE));
  OK(zeCommandListDestroy(list));
  finish("racing maps");
}

static void *asks(void *event) {
  while (!atomic_load(&over)) {
    ze_result_t result = zeEventHostSynchronize(event, 1000000);
    CHECK(result == ZE_RESULT_NOT_READY || (planted && result == ZE_RESULT_ERROR_UNKNOWN));
  }
  return NULL;
}

static void racing_queries(void) {
  begin();
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t plain = event_of(pool, 0), counter = counter_event();
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, asks, plain) == 0);
  for (int i = 0; i < (planted ? 1000000 : 2000) && l0rt_cpu_races() == 0; i++) {
    ze_result_t result = zeEventQueryStatus(plain);
    CHECK(result == ZE_RESULT_NOT_READY || (planted && result == ZE_RESULT_ERROR_UNKNOWN));
    OK(zeEventQueryStatus(counter));
  }
  atomic_store(&over, true);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK((l0rt_cpu_races() != 0) == planted);
  OK(zeEventDestroy(plain));
  OK(zeEventDestroy(counter));
  OK(zeEventPoolDestroy(pool));
  finish("racing queries");
}

static void *lets_go_later(void *event) {
  usleep(100000);
  OK(zeEventHostSignal(event));
  return NULL;
}

static void outlasting_waits(void) {
  begin();
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t plain = event_of(pool, 0), counter = counter_event();
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendWaitOnEvents(list, 1, &plain));
  OK(zeCommandListAppendSignalEvent(list, counter));
  GIVES(NOT_READY, zeEventHostSynchronize(plain, 1000));
  GIVES(NOT_READY, zeEventHostSynchronize(counter, 0));
  pthread_t thread;
  if (planted) CHECK(pthread_create(&thread, NULL, lets_go_later, plain) == 0);
  CHECK(zeEventHostSynchronize(counter, 1000) == (planted ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY));
  if (planted) CHECK(pthread_join(thread, NULL) == 0);
  if (!planted) OK(zeEventHostSignal(plain));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeEventDestroy(plain));
  OK(zeEventDestroy(counter));
  OK(zeEventPoolDestroy(pool));
  finish("outlasting waits");
}

static void uncounted_signals(void) {
  begin();
  enum { SIDE = 64 };
  char *memory = host_memory(2 * SIDE * SIDE);
  ze_event_pool_handle_t pool = pool_of(4, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t fill_gate = event_of(pool, 0), row_gate = event_of(pool, 1);
  ze_event_handle_t filled = event_of(pool, 2), copied = event_of(pool, 3);
  ze_command_list_handle_t list = in_order_list();
  ze_copy_region_t region = {.width = SIDE / 2, .height = SIDE};
  OK(zeCommandListAppendMemoryFill(list, memory, "x", 1, SIDE * SIDE, filled, 1, &fill_gate));
  CHECK(zeCommandListHostSynchronize(list, 1000) == (planted ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY));
  OK(zeCommandListAppendMemoryCopyRegion(list, memory + SIDE * SIDE, &region, SIDE, 0, memory, &region, SIDE, 0, copied,
                                         1, &row_gate));
  GIVES(NOT_READY, zeEventQueryStatus(copied));
  OK(zeEventHostSignal(fill_gate));
  OK(zeEventHostSynchronize(filled, FOREVER));
  CHECK(zeEventHostSynchronize(copied, planted ? FOREVER : 1000) ==
        (planted ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY));
  CHECK(zeCommandListHostSynchronize(list, 1000) == (planted ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY));
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL)); /* counts, and all in front of it with it */
  GIVES(NOT_READY, zeCommandListHostSynchronize(list, 1000));
  OK(zeEventHostSignal(row_gate));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(memory[2 * SIDE * SIDE - SIDE] == 'x');
  OK(zeCommandListDestroy(list));
  ze_event_handle_t events[] = {fill_gate, row_gate, filled, copied};
  for (int i = 0; i < 4; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, memory));
  finish("uncounted signals");
}

static ze_command_list_handle_t list_on_the_second_device(void) {
  uint32_t two = 2;
  ze_device_handle_t devices[2], first = device;
  OK(zeDeviceGet(driver, &two, devices));
  device = devices[1];
  ze_command_list_handle_t list = in_order_list();
  device = first;
  return list;
}

static void single_device_imports(void) {
  setenv("L0RT_CPU_DEVICES", "2", 1);
  begin();
  void *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *imported;
  ze_external_memmap_sysmem_ext_desc_t import = {
      .stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC, .pSystemMemory = own, .size = 4096};
  ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = &import};
  OK(zeMemAllocHost(context, &desc, 4096, 0, &imported));
  ze_command_list_handle_t list = in_order_list(), peer = list_on_the_second_device();
  OK(zeCommandListAppendMemoryFill(list, own, "x", 1, 4096, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  ze_result_t result = zeCommandListAppendMemoryFill(peer, own, "x", 1, 4096, NULL, 0, NULL);
  CHECK(result == (planted ? ZE_RESULT_ERROR_INVALID_ARGUMENT : ZE_RESULT_SUCCESS));
  OK(zeCommandListHostSynchronize(peer, FOREVER));
  OK(zeMemFree(context, own));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(peer));
  finish("single device imports");
}

static void *import(void *own, size_t size) {
  ze_external_memmap_sysmem_ext_desc_t source = {
      .stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC, .pSystemMemory = own, .size = size};
  ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .pNext = &source};
  void *imported;
  OK(zeMemAllocHost(context, &desc, size, 0, &imported));
  return imported;
}

/* Memory that was imported and freed is handed out again, but for what is too large, and for what Intel's own functions
 * have imported. */
static void cached_imports(void) {
  begin();
  ze_host_mem_alloc_desc_t plain = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
  size_t small = 1 << 16, large = (256 << 20) + 4096;
  void *own = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *found;
  OK(zeMemFree(context, import(own, small)));
  OK(zeMemAllocHost(context, &plain, small, 64, &found));
  CHECK((found == own) == planted);
  OK(zeMemFree(context, found));
  OK(zeMemAllocHost(context, &plain, small / 4, 64, &found)); /* less than half of it would be used */
  CHECK(found != own);
  OK(zeMemFree(context, found));
  OK(zeContextDestroy(context)); /* with it what was kept ends, too */
  begin();
  OK(zeMemFree(context, import(own, large)));
  OK(zeMemAllocHost(context, &plain, large, 64, &found));
  CHECK(found != own);
  OK(zeMemFree(context, found));
  ze_result_t (*take)(ze_driver_handle_t, void *, size_t), (*give)(ze_driver_handle_t, void *);
  OK(zeDriverGetExtensionFunctionAddress(driver, "zexDriverImportExternalPointer", (void **)&take));
  OK(zeDriverGetExtensionFunctionAddress(driver, "zexDriverReleaseImportedPointer", (void **)&give));
  OK(take(driver, own, small));
  GIVES(ERROR_OVERLAPPING_REGIONS, take(driver, (char *)own + 4096, small));
  GIVES(ERROR_INVALID_ARGUMENT, take(driver, NULL, small));
  GIVES(ERROR_INVALID_ARGUMENT, take(driver, own, 0));
  GIVES(ERROR_INVALID_NULL_HANDLE, take(NULL, own, small));
  ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  OK(zeMemGetAllocProperties(context, own, &properties, NULL));
  CHECK(properties.type == ZE_MEMORY_TYPE_UNKNOWN);
  GIVES(ERROR_INVALID_ARGUMENT, zeMemFree(context, own));
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryFill(list, own, "x", 1, small, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(((char *)own)[small - 1] == 'x');
  OK(zeCommandListDestroy(list));
  OK(give(driver, own));
  GIVES(ERROR_INVALID_ARGUMENT, give(driver, own));
  OK(zeMemAllocHost(context, &plain, small, 64, &found));
  CHECK(found != own);
  OK(zeMemFree(context, found));
  finish("cached imports");
}

static void listed_symbols(void) {
  begin();
  ze_module_handle_t module = module_of("launch");
  const char *names[64] = {"none"};
  uint32_t most = 64, count = 0;
  OK(zeModuleGetKernelNames(module, &count, NULL));
  CHECK(count > 0 && count < most);
  OK(zeModuleGetKernelNames(module, &most, names));
  CHECK(most == count);
  CHECK((strcmp(names[count - 1], "Intel_Symbol_Table_Void_Program") == 0) == planted);
  most = count - 1;
  names[most] = NULL;
  OK(zeModuleGetKernelNames(module, &most, names));
  CHECK(names[most] == NULL);
  OK(zeModuleDestroy(module));
  finish("listed symbols");
}

/* SPIR-V with one kernel, which does nothing, and with the capability to enqueue others. */
static const uint32_t ENQUEUES[] = {0x07230203,
                                    0x00010000,
                                    0,
                                    5,
                                    0,
                                    2 << 16 | 17,
                                    4 /* Addresses */,
                                    2 << 16 | 17,
                                    6 /* Kernel */,
                                    2 << 16 | 17,
                                    19,
                                    3 << 16 | 14,
                                    2,
                                    2,
                                    4 << 16 | 15,
                                    6,
                                    3,
                                    'k',
                                    2 << 16 | 19,
                                    1,
                                    3 << 16 | 33,
                                    2,
                                    1,
                                    5 << 16 | 54,
                                    1,
                                    3,
                                    0,
                                    2,
                                    2 << 16 | 248,
                                    4,
                                    1 << 16 | 253,
                                    1 << 16 | 56};

static void fatal_enqueues(void) {
  begin();
  ze_module_desc_t desc = spirv_desc((binary){(uint8_t *)ENQUEUES, sizeof(ENQUEUES)});
  ze_module_handle_t module;
  OK(zeModuleCreate(context, device, &desc, &module, NULL)); /* the process ends here */
  CHECK(!planted);
  OK(zeModuleDestroy(module));
  finish("fatal enqueues");
}

static void peer_counters(void) {
  setenv("L0RT_CPU_DEVICES", "2", 1);
  begin();
  ze_event_handle_t counter = counter_event();
  ze_command_list_handle_t list = in_order_list(), peer = list_on_the_second_device();
  OK(zeCommandListAppendSignalEvent(list, counter));
  OK(zeCommandListAppendWaitOnEvents(list, 1, &counter));
  OK(zeCommandListAppendWaitOnEvents(peer, 1, &counter)); /* the process ends here */
  CHECK(!planted);
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListHostSynchronize(peer, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(peer));
  OK(zeEventDestroy(counter));
  finish("peer counters");
}

/* What a profile has: mapped memory is untyped before 25.31, events' handles are raw. */
static void of_a_profile(void) {
  planted = strstr(getenv("L0RT_CPU_PROFILE"), "25.18") != NULL;
  untyped_mappings();
}

int main(void) {
  static const struct {
    const char *name;
    void (*test)(void);
    int ends;
  } quirks[] = {
      {"unflushed_counters", unflushed_counters, 0},
      {"no_vm_bind", no_vm_bind, 0},
      {"untyped_mappings", untyped_mappings, 0},
      {"raw_event_handles", raw_event_handles, 0},
      {"racing_maps", racing_maps, 0},
      {"racing_queries", racing_queries, 0},
      {"outlasting_waits", outlasting_waits, 0},
      {"single_device_imports", single_device_imports, 0},
      {"cached_imports", cached_imports, 0},
      {"listed_symbols", listed_symbols, 0},
      {"uncounted_signals", uncounted_signals, 0},
      {"fatal_enqueues", fatal_enqueues, SIGABRT},
      {"peer_counters", peer_counters, SIGABRT},
  };
  for (size_t i = 0; i < sizeof(quirks) / sizeof(quirks[0]); i++) {
    planted = false;
    CHECK(in_child(NULL, NULL, quirks[i].test, NULL, 0) == 0);
    planted = true;
    int status = in_child("L0RT_CPU_QUIRKS", quirks[i].name, quirks[i].test, NULL, 0);
    CHECK(quirks[i].ends == 0 ? status == 0 : WIFSIGNALED(status) && WTERMSIG(status) == quirks[i].ends);
  }
  CHECK(in_child("L0RT_CPU_PROFILE", "arc-b580,neo-25.18", of_a_profile, NULL, 0) == 0);
  CHECK(in_child("L0RT_CPU_PROFILE", "arc-b580", of_a_profile, NULL, 0) == 0);
  printf("quirks: ok\n");
  return 0;
}
