/* SPDX-License-Identifier: Apache-2.0 */
/* harness.h: what every C test uses: the entry points, CHECK, and one device ready for work. */
#ifndef L0RT_CPU_TEST_HARNESS_H
#define L0RT_CPU_TEST_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "entry_points.h"

#define OK(call) GIVES(SUCCESS, call)

#define FOREVER UINT64_MAX
#define SOON 50000000u /* 50 ms: long enough for anything that will happen */

static ze_driver_handle_t driver;
static ze_device_handle_t device;
static ze_context_handle_t context;

/* Says the driver why it refused a call? Those are left out whose text tests read themselves: it is told once. */
static inline void check_description(const char *call, ze_result_t result) {
  const char *text = NULL;
  if (result < 0x70000000 || result == ZE_RESULT_ERROR_UNKNOWN || result == ZE_RESULT_ERROR_MODULE_BUILD_FAILURE ||
      result == ZE_RESULT_ERROR_MODULE_LINK_FAILURE || result == ZE_RESULT_ERROR_INVALID_NATIVE_BINARY ||
      result == ZE_RESULT_ERROR_DEVICE_LOST || driver == NULL)
    return;
  if (result == ZE_RESULT_QUERY_TRUE || result == ZE_RESULT_QUERY_FALSE) return; /* answers */
  if (zeDriverGetLastErrorDescription(driver, &text) != ZE_RESULT_SUCCESS)
    return; /* some profiles have no such function */
  if (text[0] == '\0') fprintf(stderr, "%s gave 0x%x without a description\n", call, (unsigned)result);
  CHECK(text[0] != '\0');
}

#define GIVES(result, call)                                                                                            \
  do {                                                                                                                 \
    ze_result_t got_ = (call);                                                                                         \
    if (got_ != ZE_RESULT_##result) {                                                                                  \
      fprintf(stderr, "%s:%d: %s gave 0x%x, expected %s\n", __FILE__, __LINE__, #call, (unsigned)got_, #result);       \
      exit(1);                                                                                                         \
    }                                                                                                                  \
    check_description(#call, got_);                                                                                    \
  } while (0)

static inline void begin(void) {
  uint32_t one = 1;
  setenv("L0RT_CPU_QUIET", "1", 0); /* a test that fails a launch expects it to fail */
  OK(zeInit(0));
  OK(zeDriverGet(&one, &driver));
  one = 1;
  OK(zeDeviceGet(driver, &one, &device));
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  OK(zeContextCreate(driver, &desc, &context));
}

/* Destroys the context and demands that nothing is left over. */
static inline void finish(const char *test) {
  OK(zeContextDestroy(context));
  for (int kind = 0; l0rt_cpu_kind_name(kind) != NULL; kind++) {
    const char *name = l0rt_cpu_kind_name(kind);
    if (strcmp(name, "driver") == 0 || strcmp(name, "device") == 0) continue;
    if (l0rt_cpu_live(kind) != 0) {
      fprintf(stderr, "%s: %llu of kind %s left\n", test, (unsigned long long)l0rt_cpu_live(kind), name);
      exit(1);
    }
  }
  printf("%s: ok\n", test);
}

static inline uint64_t live(const char *name) {
  for (int kind = 0; l0rt_cpu_kind_name(kind) != NULL; kind++)
    if (strcmp(l0rt_cpu_kind_name(kind), name) == 0) return l0rt_cpu_live(kind);
  CHECK(!"no such kind");
  return 0;
}

static inline ze_command_list_handle_t immediate_on(uint32_t ordinal, uint32_t index, uint32_t flags) {
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                  .ordinal = ordinal,
                                  .index = index,
                                  .flags = flags,
                                  .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
  ze_command_list_handle_t list;
  OK(zeCommandListCreateImmediate(context, device, &desc, &list));
  return list;
}

static inline ze_command_list_handle_t in_order_list(void) {
  return immediate_on(0, 0, ZE_COMMAND_QUEUE_FLAG_IN_ORDER);
}
static inline ze_command_list_handle_t loose_list(void) { return immediate_on(0, 0, 0); }

static inline ze_event_pool_handle_t pool_of(uint32_t count, uint32_t flags) {
  ze_event_pool_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .flags = flags, .count = count};
  ze_event_pool_handle_t pool;
  OK(zeEventPoolCreate(context, &desc, 0, NULL, &pool));
  return pool;
}

static inline ze_event_handle_t event_of(ze_event_pool_handle_t pool, uint32_t index) {
  ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC,
                          .index = index,
                          .signal = ZE_EVENT_SCOPE_FLAG_HOST,
                          .wait = ZE_EVENT_SCOPE_FLAG_HOST};
  ze_event_handle_t event;
  OK(zeEventCreate(pool, &desc, &event));
  return event;
}

static inline void *device_memory(size_t size) {
  ze_device_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
  void *pointer;
  OK(zeMemAllocDevice(context, &desc, size, 0, device, &pointer));
  return pointer;
}

static inline void *host_memory(size_t size) {
  ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
  void *pointer;
  OK(zeMemAllocHost(context, &desc, size, 0, &pointer));
  return pointer;
}

static inline void *shared_memory(size_t size) {
  ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
  ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
  void *pointer;
  OK(zeMemAllocShared(context, &on_device, &on_host, size, 0, device, &pointer));
  return pointer;
}

#endif
