/* SPDX-License-Identifier: Apache-2.0 */
/* test_events.c: what events order, and how hosts wait for them. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

static void states(void) {
  ze_event_pool_handle_t pool = pool_of(4, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t event = event_of(pool, 3);
  ze_event_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = 4};
  ze_event_handle_t none;
  GIVES(ERROR_INVALID_ARGUMENT, zeEventCreate(pool, &desc, &none));
  ze_event_pool_handle_t its_pool;
  ze_event_pool_flags_t flags;
  ze_event_scope_flags_t scope;
  ze_context_handle_t its_context;
  OK(zeEventGetEventPool(event, &its_pool));
  OK(zeEventPoolGetFlags(pool, &flags));
  OK(zeEventPoolGetContextHandle(pool, &its_context));
  OK(zeEventGetSignalScope(event, &scope));
  CHECK(its_pool == pool && its_context == context && flags == ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  CHECK(scope == ZE_EVENT_SCOPE_FLAG_HOST);
  GIVES(NOT_READY, zeEventQueryStatus(event));
  GIVES(NOT_READY, zeEventHostSynchronize(event, 0));
  GIVES(NOT_READY, zeEventHostSynchronize(event, 1000000));
  OK(zeEventHostSignal(event));
  OK(zeEventHostSignal(event));
  OK(zeEventQueryStatus(event));
  OK(zeEventHostSynchronize(event, FOREVER));
  OK(zeEventHostReset(event));
  GIVES(NOT_READY, zeEventQueryStatus(event));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeEventPoolDestroy(pool));
  OK(zeEventDestroy(event));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeEventQueryStatus(event));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeEventPoolDestroy(pool));
}

/* A list that waits never holds up the one that signals, though one engine serves both. */
static void a_waiting_list_holds_up_no_other(void) {
  ze_event_pool_handle_t pool = pool_of(2, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t first = event_of(pool, 0), second = event_of(pool, 1);
  ze_command_list_handle_t a = in_order_list(), b = in_order_list();
  int *data = shared_memory(8), one = 1, two = 2;
  data[0] = 0;
  OK(zeCommandListAppendMemoryCopy(a, data, &two, 4, second, 1, &first));
  GIVES(NOT_READY, zeCommandListHostSynchronize(a, 1000000));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandListDestroy(a));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeEventDestroy(first));
  CHECK(data[0] == 0);
  OK(zeCommandListAppendMemoryCopy(b, data, &one, 4, first, 0, NULL));
  OK(zeEventHostSynchronize(second, FOREVER));
  CHECK(data[0] == 2);
  OK(zeCommandListHostSynchronize(a, FOREVER));
  OK(zeCommandListHostSynchronize(b, FOREVER));
  OK(zeCommandListDestroy(a));
  OK(zeCommandListDestroy(b));
  OK(zeEventDestroy(first));
  OK(zeEventDestroy(second));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, data));
}

static void long_wait_lists_wait_for_all(void) {
  enum { N = 37 };
  ze_event_pool_handle_t pool = pool_of(N, 0);
  ze_event_handle_t events[N];
  for (int i = 0; i < N; i++) events[i] = event_of(pool, (uint32_t)i);
  ze_command_list_handle_t list = loose_list();
  OK(zeCommandListAppendBarrier(list, NULL, N, events));
  for (int i = 0; i < N; i++) {
    GIVES(NOT_READY, zeCommandListHostSynchronize(list, 0));
    OK(zeEventHostSignal(events[(i * 5) % N]));
  }
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListAppendEventReset(list, events[0]));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  GIVES(NOT_READY, zeEventQueryStatus(events[0]));
  OK(zeCommandListAppendWaitOnEvents(list, N - 1, events + 1));
  OK(zeCommandListAppendSignalEvent(list, events[0]));
  OK(zeEventHostSynchronize(events[0], FOREVER));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int i = 0; i < N; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
  OK(zeCommandListDestroy(list));
}

static void *signal_later(void *event) {
  usleep(2000);
  OK(zeEventHostSignal(event));
  return NULL;
}

static void a_host_wakes_a_host_and_a_device(void) {
  ze_event_pool_handle_t pool = pool_of(2, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t event = event_of(pool, 0), done = event_of(pool, 1);
  ze_command_list_handle_t list = in_order_list();
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    OK(zeCommandListAppendBarrier(list, done, 1, &event));
    pthread_create(&thread, NULL, signal_later, event);
    OK(zeEventHostSynchronize(event, FOREVER));
    OK(zeEventHostSynchronize(done, FOREVER));
    pthread_join(thread, NULL);
    OK(zeCommandListHostSynchronize(list, FOREVER));
    OK(zeEventHostReset(event));
    OK(zeEventHostReset(done));
  }
  OK(zeEventDestroy(event));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(pool));
  OK(zeCommandListDestroy(list));
}

/* As soon as its event is seen, everything that a command used may go. */
static void what_a_signalled_command_used_may_go_at_once(void) {
  ze_event_pool_handle_t pool = pool_of(1, 0);
  for (int i = 0; i < 2000; i++) {
    ze_event_handle_t event = event_of(pool, 0);
    ze_command_list_handle_t list = in_order_list();
    OK(zeCommandListAppendBarrier(list, event, 0, NULL));
    while (zeEventQueryStatus(event) != ZE_RESULT_SUCCESS) continue;
    if (i & 1) OK(zeEventDestroy(event));
    OK(zeCommandListDestroy(list));
    if (!(i & 1)) OK(zeEventDestroy(event));
  }
  OK(zeEventPoolDestroy(pool));
}

static void idle_engines_burn_nothing(void) {
  struct timespec before, after;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  usleep(100000);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  CHECK((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec < 20000000L);
}

int main(void) {
  begin();
  states();
  a_waiting_list_holds_up_no_other();
  long_wait_lists_wait_for_all();
  a_host_wakes_a_host_and_a_device();
  what_a_signalled_command_used_may_go_at_once();
  idle_engines_burn_nothing();
  finish("events");
  return 0;
}
