/* SPDX-License-Identifier: Apache-2.0 */
/* test_objects.c: a handle that is none is an error code, whatever it points to. */
#include "harness.h"

static void strangers_are_refused(void) {
  uint64_t stack[64] = {0};
  void *heap = malloc(4096);
  ze_event_pool_handle_t pool = pool_of(1, 0);
  char *inside = (char *)pool + 8, *another = (char *)context;
  void *strangers[] = {NULL, stack, heap, inside, another, (void *)1, (void *)UINTPTR_MAX, (void *)&zeInit};
  for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
    void *s = strangers[i];
    uint32_t number = 0;
    void *out;
    ze_bool_t yes;
    uint64_t time;
    ze_event_handle_t event;
    ze_event_desc_t event_desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC};
    ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES};
    ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
    GIVES(ERROR_INVALID_NULL_HANDLE, zeDeviceGet(s, &number, NULL));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeDriverGetExtensionProperties(s, &number, NULL));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeDriverGetExtensionFunctionAddress(s, "x", &out));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeDeviceGetProperties(s, &properties));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeDeviceCanAccessPeer(device, s, &yes));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeDeviceGetGlobalTimestamps(s, &time, &time));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeEventCreate(s == (void *)pool ? NULL : s, &event_desc, &event));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeEventQueryStatus(s));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeEventHostSignal(s));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeEventDestroy(s));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeEventPoolDestroy(s));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListDestroy(s));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListHostSynchronize(s, 0));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListAppendBarrier(s, NULL, 0, NULL));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandQueueDestroy(s));
    GIVES(ERROR_INVALID_NULL_HANDLE, zeFenceDestroy(s));
    GIVES(ERROR_INVALID_NULL_HANDLE, zePhysicalMemDestroy(context, s));
    if (s != another) {
      GIVES(ERROR_INVALID_NULL_HANDLE, zeContextDestroy(s));
      GIVES(ERROR_INVALID_NULL_HANDLE, zeMemFree(s, heap));
      GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListCreate(s, device, &list_desc, (ze_command_list_handle_t *)&out));
    }
    GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListCreate(context, s, &list_desc, (ze_command_list_handle_t *)&out));
  }
  OK(zeEventPoolDestroy(pool));
  free(heap);
}

static void a_hundred_thousand_objects_are_no_burden(void) {
  enum { N = 100000 };
  ze_event_pool_handle_t pool = pool_of(N, 0);
  ze_event_handle_t *events = malloc(N * sizeof(*events));
  for (uint32_t i = 0; i < N; i++) events[i] = event_of(pool, i);
  CHECK(live("event") == N);
  for (uint32_t i = 0; i < N; i++) GIVES(NOT_READY, zeEventQueryStatus(events[(i * 7919u) % N]));
  for (uint32_t i = 0; i < N; i++) OK(zeEventDestroy(events[i]));
  for (uint32_t i = 0; i < N; i++) GIVES(ERROR_INVALID_NULL_HANDLE, zeEventQueryStatus(events[i]));
  CHECK(live("event") == 0);
  free(events);
  OK(zeEventPoolDestroy(pool));
}

int main(void) {
  uint32_t number = 0;
  GIVES(ERROR_UNINITIALIZED, zeDriverGet(&number, NULL));
  begin();
  OK(zeInit(0));
  strangers_are_refused();
  a_hundred_thousand_objects_are_no_burden();
  CHECK(l0rt_cpu_live(-1) == 0 && l0rt_cpu_kind_name(1000) == NULL);
  finish("objects");
  return 0;
}
