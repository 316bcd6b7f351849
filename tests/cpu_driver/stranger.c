/* SPDX-License-Identifier: Apache-2.0 */
/* stranger.c: what a program does that knows Level Zero only by the official headers and the loader: it finds the
 * device, copies, fills, chains events over two lists and two devices, measures a timestamp, maps virtual memory, and
 * shares memory and an event pool with a second process. `stranger` starts itself again as that process. */
#include <fcntl.h>
#include <level_zero/ze_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define OK(call) CHECK((call) == ZE_RESULT_SUCCESS)

enum { SIZE = 1 << 20, PAGE = 2 << 20 };

static ze_driver_handle_t driver;
static ze_device_handle_t devices[2];
static ze_context_handle_t context;

/* What goes from one process to the other, through a pipe. */
typedef struct {
  ze_ipc_mem_handle_t memory;
  ze_ipc_event_pool_handle_t pool;
} message;

static void find_devices(void) {
  uint32_t count = 0;
  OK(zeInit(ZE_INIT_FLAG_GPU_ONLY));
  OK(zeDriverGet(&count, NULL));
  CHECK(count >= 1);
  count = 1;
  OK(zeDriverGet(&count, &driver));
  count = 0;
  OK(zeDeviceGet(driver, &count, NULL));
  CHECK(count == 2);
  OK(zeDeviceGet(driver, &count, devices));
  for (int i = 0; i < 2; i++) {
    ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    OK(zeDeviceGetProperties(devices[i], &properties));
    CHECK(properties.type == ZE_DEVICE_TYPE_GPU && properties.timerResolution != 0);
  }
  ze_bool_t peers = 0;
  OK(zeDeviceCanAccessPeer(devices[0], devices[1], &peers));
  CHECK(peers);
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  OK(zeContextCreate(driver, &desc, &context));
}

static ze_command_list_handle_t list_on(int device) {
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                  .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
  ze_command_list_handle_t list;
  OK(zeCommandListCreateImmediate(context, devices[device], &desc, &list));
  return list;
}

static ze_event_pool_handle_t pool_of(uint32_t count, ze_event_pool_flags_t flags) {
  ze_event_pool_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .count = count, .flags = flags};
  ze_event_pool_handle_t pool;
  OK(zeEventPoolCreate(context, &desc, 2, devices, &pool));
  return pool;
}

static ze_event_handle_t event_of(ze_event_pool_handle_t pool, uint32_t index) {
  ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                          .index = index,
                          .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                          .wait = ZE_EVENT_SCOPE_FLAG_HOST};
  ze_event_handle_t event;
  OK(zeEventCreate(pool, &desc, &event));
  return event;
}

static unsigned char *memory_of(int device, size_t size) {
  ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
  ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
  void *pointer = NULL;
  if (device < 0) OK(zeMemAllocHost(context, &on_host, size, 64, &pointer));
  else OK(zeMemAllocDevice(context, &on_device, size, 64, devices[device], &pointer));
  return pointer;
}

/* A fill on the first device, a copy on the second, and back: each step waits for the one before, and was appended
 * after it or, the last one, before. */
static void chain_events_over_lists_and_devices(void) {
  ze_command_list_handle_t lists[2] = {list_on(0), list_on(1)};
  ze_event_pool_handle_t pool = pool_of(4, ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
  ze_event_handle_t events[4];
  for (uint32_t i = 0; i < 4; i++) events[i] = event_of(pool, i);
  unsigned char *first = memory_of(0, SIZE), *second = memory_of(1, SIZE), *back = memory_of(-1, SIZE), byte = 0x5a;
  uint64_t *stamp = (uint64_t *)(void *)memory_of(-1, sizeof(uint64_t)), host, ticks;
  memset(back, 0, SIZE);
  OK(zeCommandListAppendMemoryCopy(lists[0], back, second, SIZE, events[2], 1, &events[1]));
  OK(zeCommandListAppendMemoryCopy(lists[1], second, first, SIZE, events[1], 1, &events[0]));
  ze_command_list_handle_t third = list_on(0);
  OK(zeCommandListAppendMemoryFill(third, first, &byte, 1, SIZE, events[0], 0, NULL));
  OK(zeCommandListAppendWriteGlobalTimestamp(third, stamp, events[3], 1, &events[2]));
  OK(zeEventHostSynchronize(events[3], UINT64_MAX));
  for (int i = 0; i < SIZE; i++) CHECK(back[i] == byte);
  ze_kernel_timestamp_result_t copied;
  OK(zeEventQueryKernelTimestamp(events[2], &copied));
  OK(zeDeviceGetGlobalTimestamps(devices[0], &host, &ticks));
  CHECK(copied.global.kernelStart <= copied.global.kernelEnd && copied.global.kernelEnd <= *stamp && *stamp <= ticks);
  for (int i = 0; i < 4; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
  OK(zeCommandListDestroy(third));
  for (int i = 0; i < 2; i++) OK(zeCommandListDestroy(lists[i]));
  OK(zeMemFree(context, first));
  OK(zeMemFree(context, second));
  OK(zeMemFree(context, back));
  OK(zeMemFree(context, stamp));
}

static void map_virtual_memory(void) {
  ze_command_list_handle_t list = list_on(0);
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = PAGE};
  ze_physical_mem_handle_t physical;
  size_t granule;
  void *place;
  OK(zeVirtualMemQueryPageSize(context, devices[0], PAGE, &granule));
  CHECK(PAGE % granule == 0);
  void *anywhere = (void *)(uintptr_t)PAGE; /* a hint only; without one Debian 12's validation layer refuses the call */
  OK(zeVirtualMemReserve(context, anywhere, 2 * PAGE, &place));
  OK(zePhysicalMemCreate(context, devices[0], &desc, &physical));
  OK(zeVirtualMemMap(context, (char *)place + PAGE, PAGE, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  uint32_t pattern = 0x01020304, *read_back = (uint32_t *)(void *)memory_of(-1, PAGE);
  ze_event_pool_handle_t pool = pool_of(2, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t filled = event_of(pool, 0), copied = event_of(pool, 1);
  OK(zeCommandListAppendMemoryFill(list, (char *)place + PAGE, &pattern, 4, PAGE, filled, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, read_back, (char *)place + PAGE, PAGE, copied, 1, &filled));
  OK(zeEventHostSynchronize(copied, UINT64_MAX));
  for (int i = 0; i < PAGE / 4; i++) CHECK(read_back[i] == pattern);
  OK(zeEventDestroy(filled));
  OK(zeEventDestroy(copied));
  OK(zeEventPoolDestroy(pool));
  OK(zeCommandListDestroy(list));
  OK(zeVirtualMemUnmap(context, (char *)place + PAGE, PAGE));
  OK(zePhysicalMemDestroy(context, physical));
  OK(zeVirtualMemFree(context, place, 2 * PAGE));
  OK(zeMemFree(context, read_back));
}

/* The other process: waits for the first event, doubles every byte, signals the second one. */
static void be_the_other(void) {
  message said;
  CHECK(read(0, &said, sizeof(said)) == sizeof(said));
  find_devices();
  ze_event_pool_handle_t pool;
  void *shared;
  OK(zeEventPoolOpenIpcHandle(context, said.pool, &pool));
  OK(zeMemOpenIpcHandle(context, devices[0], said.memory, 0, &shared));
  ze_event_handle_t ready = event_of(pool, 0), done = event_of(pool, 1);
  unsigned char *bytes = memory_of(-1, SIZE);
  ze_command_list_handle_t list = list_on(0);
  ze_event_pool_handle_t own = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t read_in = event_of(own, 0);
  OK(zeCommandListAppendMemoryCopy(list, bytes, shared, SIZE, read_in, 1, &ready));
  OK(zeEventHostSynchronize(read_in, UINT64_MAX));
  for (int i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(2 * bytes[i]);
  OK(zeCommandListAppendMemoryCopy(list, shared, bytes, SIZE, done, 0, NULL));
  OK(zeEventHostSynchronize(done, UINT64_MAX));
  OK(zeCommandListDestroy(list));
  OK(zeEventDestroy(read_in));
  OK(zeEventDestroy(ready));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(own));
  OK(zeEventPoolCloseIpcHandle(pool));
  OK(zeMemCloseIpcHandle(context, shared));
  OK(zeMemFree(context, bytes));
  OK(zeContextDestroy(context));
}

static void share_with_another_process(void) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t other = fork();
  CHECK(other >= 0);
  if (other == 0) {
    dup2(ends[0], 0);
    close(ends[1]);
    execl("/proc/self/exe", "stranger", "other", (char *)NULL);
    _exit(1);
  }
  close(ends[0]);
  ze_event_pool_handle_t pool = pool_of(2, ZE_EVENT_POOL_FLAG_HOST_VISIBLE | ZE_EVENT_POOL_FLAG_IPC);
  ze_event_handle_t ready = event_of(pool, 0), done = event_of(pool, 1);
  unsigned char *shared = memory_of(0, SIZE), *bytes = memory_of(-1, SIZE);
  message said;
  OK(zeMemGetIpcHandle(context, shared, &said.memory));
  OK(zeEventPoolGetIpcHandle(pool, &said.pool));
  CHECK(write(ends[1], &said, sizeof(said)) == sizeof(said));
  for (int i = 0; i < SIZE; i++) bytes[i] = (unsigned char)i;
  ze_command_list_handle_t list = list_on(0);
  OK(zeCommandListAppendMemoryCopy(list, shared, bytes, SIZE, ready, 0, NULL));
  OK(zeEventHostSynchronize(ready, UINT64_MAX)); /* implied by the other, which a thread sanitizer can't see */
  OK(zeEventHostSynchronize(done, UINT64_MAX));
  memset(bytes, 0xff, SIZE);
  ze_event_pool_handle_t own = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t read_in = event_of(own, 0);
  OK(zeCommandListAppendMemoryCopy(list, bytes, shared, SIZE, read_in, 0, NULL));
  OK(zeEventHostSynchronize(read_in, UINT64_MAX));
  for (int i = 0; i < SIZE; i++) CHECK(bytes[i] == (unsigned char)(2 * i));
  int status;
  CHECK(waitpid(other, &status, 0) == other && status == 0);
  OK(zeCommandListDestroy(list));
  OK(zeEventDestroy(read_in));
  OK(zeEventDestroy(ready));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(own));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, shared));
  OK(zeMemFree(context, bytes));
}

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "other") == 0) {
    be_the_other();
    return 0;
  }
  find_devices();
  chain_events_over_lists_and_devices();
  map_virtual_memory();
  share_with_another_process();
  OK(zeContextDestroy(context));
  printf("stranger: ok\n");
  return 0;
}
