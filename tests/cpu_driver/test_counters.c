/* SPDX-License-Identifier: Apache-2.0 */
/* test_counters.c: counter-based events: signalled again and again, each wait bound to the signal before it. */
#include "harness.h"

static ze_event_pool_handle_t counter_pool(uint32_t count, uint32_t flags) {
  ze_event_pool_counter_based_exp_desc_t counter = {.stype = ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC,
                                                    .flags = ZE_EVENT_POOL_COUNTER_BASED_EXP_FLAG_IMMEDIATE};
  ze_event_pool_desc_t desc = {
      .stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC, .pNext = &counter, .flags = flags, .count = count};
  ze_event_pool_handle_t pool;
  OK(zeEventPoolCreate(context, &desc, 0, NULL, &pool));
  return pool;
}

static void rules(void) {
  ze_event_pool_handle_t pool = counter_pool(1, 0);
  ze_event_handle_t event = event_of(pool, 0);
  ze_command_list_handle_t in_order = in_order_list(), loose = loose_list(), recording;
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  OK(zeCommandListCreate(context, device, &desc, &recording));
  OK(zeEventQueryStatus(event)); /* complete before its first signal */
  OK(zeEventHostSynchronize(event, FOREVER));
  GIVES(ERROR_INVALID_ARGUMENT, zeEventHostSignal(event));
  GIVES(ERROR_INVALID_ARGUMENT, zeEventHostReset(event));
  GIVES(ERROR_INVALID_SYNCHRONIZATION_OBJECT, zeCommandListAppendEventReset(in_order, event));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendSignalEvent(loose, event));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendSignalEvent(recording, event)); /* made for immediate ones */
  OK(zeCommandListAppendWaitOnEvents(loose, 1, &event));
  OK(zeCommandListHostSynchronize(loose, FOREVER));
  OK(zeCommandListDestroy(in_order));
  OK(zeCommandListDestroy(loose));
  OK(zeCommandListDestroy(recording));
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
}

/* A wait keeps to the signal that was the last when it was appended, whatever comes later. */
static void stamps_are_in_one_time_domain(void) {
  ze_event_counter_based_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC,
                                        .flags = ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP |
                                                 ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP};
  ze_event_handle_t event;
  GIVES(ERROR_INVALID_ARGUMENT, zeEventCounterBasedCreate(context, device, &desc, &event));
}

static void waits_are_bound(void) {
  ze_event_pool_handle_t pool = counter_pool(1, 0), plain = pool_of(2, 0);
  ze_event_handle_t event = event_of(pool, 0), first = event_of(plain, 0), second = event_of(plain, 1);
  ze_command_list_handle_t signals = in_order_list(), waits = in_order_list();
  OK(zeCommandListAppendBarrier(signals, event, 1, &first));
  GIVES(NOT_READY, zeEventQueryStatus(event));
  OK(zeCommandListAppendWaitOnEvents(waits, 1, &event));
  OK(zeCommandListAppendBarrier(signals, event, 1, &second));
  GIVES(NOT_READY, zeCommandListHostSynchronize(waits, 1000000));
  OK(zeEventHostSignal(first));
  OK(zeCommandListHostSynchronize(waits, FOREVER)); /* though the event is not complete again: */
  GIVES(NOT_READY, zeEventHostSynchronize(event, 1000000));
  OK(zeCommandListAppendWaitOnEvents(waits, 1, &event));
  OK(zeEventDestroy(event)); /* nobody has to wait before destroying it */
  GIVES(NOT_READY, zeCommandListHostSynchronize(waits, 1000000));
  OK(zeEventHostSignal(second));
  OK(zeCommandListHostSynchronize(waits, FOREVER));
  OK(zeCommandListHostSynchronize(signals, FOREVER));
  CHECK(live("point") == 0);
  OK(zeCommandListDestroy(signals));
  OK(zeCommandListDestroy(waits));
  OK(zeEventDestroy(first));
  OK(zeEventDestroy(second));
  OK(zeEventPoolDestroy(pool));
  OK(zeEventPoolDestroy(plain));
}

static void two_lists_take_turns(void) {
  ze_event_pool_handle_t pool = counter_pool(2, ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
  ze_event_handle_t events[] = {event_of(pool, 0), event_of(pool, 1)};
  ze_command_list_handle_t lists[] = {in_order_list(), immediate_on(1, 0, ZE_COMMAND_QUEUE_FLAG_IN_ORDER)};
  enum { TURNS = 3000 };
  int *data = shared_memory((TURNS + 1) * sizeof(int));
  data[0] = 77;
  for (int i = 0; i < TURNS; i++)
    OK(zeCommandListAppendMemoryCopy(lists[i & 1], &data[i + 1], &data[i], sizeof(int), events[i & 1], 1,
                                     &events[!(i & 1)]));
  OK(zeEventHostSynchronize(events[!(TURNS & 1)], FOREVER));
  CHECK(data[TURNS] == 77);
  ze_kernel_timestamp_result_t time;
  OK(zeEventQueryKernelTimestamp(events[0], &time));
  for (int i = 0; i < 2; i++) {
    OK(zeCommandListHostSynchronize(lists[i], FOREVER));
    OK(zeEventDestroy(events[i]));
    OK(zeCommandListDestroy(lists[i]));
  }
  CHECK(live("point") == 0);
  OK(zeMemFree(context, data));
  OK(zeEventPoolDestroy(pool));
}

int main(void) {
  begin();
  rules();
  stamps_are_in_one_time_domain();
  waits_are_bound();
  two_lists_take_turns();
  finish("counters");
  return 0;
}
