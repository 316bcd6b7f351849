/* SPDX-License-Identifier: Apache-2.0 */
/* test_submit.c: closed lists: cloned, appended to immediate ones, signalling counter-based events; host functions;
 * waits for a device. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "harness.h"

static ze_command_list_handle_t recording(uint32_t flags) {
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .flags = flags};
  ze_command_list_handle_t list;
  OK(zeCommandListCreate(context, device, &desc, &list));
  return list;
}

static ze_event_handle_t counter_event(uint32_t flags) {
  ze_event_counter_based_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC, .flags = flags};
  ze_event_handle_t event;
  OK(zeEventCounterBasedCreate(context, device, &desc, &event));
  return event;
}

static void count_up(void *data) { ++*(int *)data; }

static void clones_are_lists_of_their_own(void) {
  int *number = shared_memory(sizeof(int));
  *number = 0;
  ze_command_list_handle_t list = recording(ZE_COMMAND_LIST_FLAG_EXP_CLONEABLE | ZE_COMMAND_LIST_FLAG_IN_ORDER), clone;
  ze_command_list_handle_t plain = recording(0), immediate = in_order_list();
  for (int i = 0; i < 20; i++) OK(zeCommandListAppendHostFunction(list, count_up, number, NULL, NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListCreateCloneExp(list, &clone)); /* not closed */
  OK(zeCommandListClose(list));
  OK(zeCommandListClose(plain));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListCreateCloneExp(plain, &clone)); /* not made for it */
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListCreateCloneExp(list, NULL));
  OK(zeCommandListCreateCloneExp(list, &clone));
  OK(zeCommandListReset(list));
  OK(zeCommandListImmediateAppendCommandListsExp(immediate, 1, &clone, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(immediate, FOREVER));
  CHECK(*number == 20);
  ze_command_list_handle_t all[] = {list, clone, plain, immediate};
  for (int i = 0; i < 4; i++) OK(zeCommandListDestroy(all[i]));
  OK(zeMemFree(context, number));
}

static void lists_wait_and_signal_as_one(void) {
  ze_event_pool_handle_t pool = pool_of(2, 0);
  ze_event_handle_t go = event_of(pool, 0), done = event_of(pool, 1);
  int *data = shared_memory(4 * sizeof(int));
  memset(data, 0, 4 * sizeof(int));
  ze_command_list_handle_t lists[] = {recording(0), recording(0)}, immediate = loose_list();
  for (int i = 0; i < 2; i++) {
    int value = i + 1;
    OK(zeCommandListAppendMemoryFillWithParameters(lists[i], data + i, &value, 4, 4, NULL, NULL, 0, NULL));
    OK(zeCommandListAppendBarrier(lists[i], NULL, 0, NULL));
    OK(zeCommandListAppendMemoryCopyWithParameters(lists[i], data + 2 + i, data + i, 4, NULL, NULL, 0, NULL));
  }
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListImmediateAppendCommandListsExp(immediate, 2, lists, done, 1, &go));
  for (int i = 0; i < 2; i++) OK(zeCommandListClose(lists[i]));
  GIVES(ERROR_UNSUPPORTED_FEATURE,
        zeCommandListImmediateAppendCommandListsWithParameters(immediate, 2, lists, data, done, 1, &go));
  GIVES(ERROR_INVALID_COMMAND_LIST_TYPE,
        zeCommandListImmediateAppendCommandListsExp(lists[0], 1, lists, NULL, 0, NULL));
  OK(zeCommandListImmediateAppendCommandListsWithParameters(immediate, 2, lists, NULL, done, 1, &go));
  GIVES(NOT_READY, zeEventHostSynchronize(done, 1000000));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandListDestroy(lists[0]));
  CHECK(data[2] == 0);
  OK(zeEventHostSignal(go));
  OK(zeEventHostSynchronize(done, FOREVER));
  CHECK(data[2] == 1 && data[3] == 2);
  OK(zeDeviceSynchronize(device));
  for (int i = 0; i < 2; i++) OK(zeCommandListDestroy(lists[i]));
  OK(zeCommandListDestroy(immediate));
  OK(zeEventDestroy(go));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, data));
}

/* Each execution of a list signals its counter-based event again. */
static void recorded_signals_are_points(void) {
  ze_event_pool_handle_t pool = pool_of(2, 0);
  ze_event_handle_t gates[] = {event_of(pool, 0), event_of(pool, 1)};
  ze_event_handle_t event = counter_event(ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP);
  ze_command_list_handle_t list = recording(ZE_COMMAND_LIST_FLAG_IN_ORDER), immediate = in_order_list();
  OK(zeCommandListAppendSignalEvent(list, event));
  OK(zeCommandListClose(list));
  for (int i = 0; i < 2; i++) {
    OK(zeCommandListAppendWaitOnEvents(immediate, 1, &gates[i]));
    OK(zeCommandListImmediateAppendCommandListsExp(immediate, 1, &list, NULL, 0, NULL));
    GIVES(NOT_READY, zeEventQueryStatus(event));
    if (i == 0) {
      OK(zeEventHostSignal(gates[i]));
      OK(zeEventHostSynchronize(event, FOREVER));
    }
  }
  GIVES(NOT_READY, zeEventHostSynchronize(event, 1000000)); /* the second signal is another one */
  OK(zeEventHostSignal(gates[1]));
  OK(zeEventHostSynchronize(event, FOREVER));
  ze_kernel_timestamp_result_t times;
  uint32_t one = 1;
  OK(zeEventQueryTimestampsExp(event, device, &one, &times));
  CHECK(one == 1 && times.global.kernelStart <= times.global.kernelEnd);
  OK(zeCommandListHostSynchronize(immediate, FOREVER));
  OK(zeEventDestroy(event));
  CHECK(live("point") == 0);
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(immediate));
  for (int i = 0; i < 2; i++) OK(zeEventDestroy(gates[i]));
  OK(zeEventPoolDestroy(pool));
}

static void events_without_a_pool(void) {
  ze_event_counter_based_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC};
  ze_event_handle_t event = counter_event(ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE);
  ze_event_pool_handle_t pool;
  uint32_t flags;
  OK(zeEventGetCounterBasedFlags(event, &flags));
  CHECK(flags == ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE);
  GIVES(ERROR_INVALID_ARGUMENT, zeEventGetEventPool(event, &pool));
  GIVES(ERROR_INVALID_NULL_POINTER, zeEventCounterBasedCreate(context, device, NULL, &event));
  desc.flags = 0x80;
  GIVES(ERROR_INVALID_ENUMERATION, zeEventCounterBasedCreate(context, device, &desc, &event));
  desc.flags = ZE_EVENT_COUNTER_BASED_FLAG_IPC;
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeEventCounterBasedCreate(context, device, &desc, &event));
  ze_base_desc_t own = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_SYNC_ALLOCATION_DESC};
  desc.flags = 0, desc.pNext = &own;
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeEventCounterBasedCreate(context, device, &desc, &event));
  OK(zeEventDestroy(event));
}

static void lists_and_queues_say_what_they_are(void) {
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                  .flags = 3,
                                  .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS,
                                  .priority = ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW};
  ze_command_list_handle_t immediate, list = recording(ZE_COMMAND_LIST_FLAG_RELAXED_ORDERING);
  ze_command_queue_handle_t queue;
  OK(zeCommandListCreateImmediate(context, device, &desc, &immediate));
  OK(zeCommandQueueCreate(context, device, &desc, &queue));
  uint32_t flags;
  ze_command_queue_mode_t mode;
  ze_command_queue_priority_t priority;
  ze_bool_t yes = 1;
  OK(zeCommandListGetFlags(list, &flags));
  CHECK(flags == ZE_COMMAND_LIST_FLAG_RELAXED_ORDERING);
  OK(zeCommandListImmediateGetFlags(immediate, &flags));
  OK(zeCommandListImmediateGetMode(immediate, &mode));
  OK(zeCommandListImmediateGetPriority(immediate, &priority));
  CHECK(flags == desc.flags && mode == desc.mode && priority == desc.priority);
  OK(zeCommandQueueGetFlags(queue, &flags));
  OK(zeCommandQueueGetMode(queue, &mode));
  OK(zeCommandQueueGetPriority(queue, &priority));
  CHECK(flags == desc.flags && mode == desc.mode && priority == desc.priority);
  OK(zeCommandListIsMutableExp(list, &yes));
  CHECK(!yes);
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListGetFlags(immediate, &flags));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListImmediateGetMode(list, &mode));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(immediate));
  OK(zeCommandQueueDestroy(queue));
  ze_context_handle_t everywhere = zeDriverGetDefaultContext(driver);
  CHECK(everywhere != NULL && everywhere == zeDriverGetDefaultContext(driver));
  CHECK(zeDriverGetDefaultContext((ze_driver_handle_t)device) == NULL);
  OK(zeContextDestroy(everywhere));
}

static void *synchronize_device(void *over) {
  OK(zeDeviceSynchronize(device));
  atomic_store((atomic_bool *)over, true);
  return NULL;
}

/* The device is never idle while the wait for it lasts: each command is given before the one in front of it can end. */
static void a_busy_device_is_waited_for(void) {
  enum { GATES = 16, MOST = 1000000 };
  ze_event_pool_handle_t pool = pool_of(GATES, 0);
  ze_event_handle_t gates[GATES];
  for (int i = 0; i < GATES; i++) gates[i] = event_of(pool, i);
  ze_command_list_handle_t list = in_order_list();
  atomic_bool over = false;
  pthread_t thread;
  OK(zeCommandListAppendWaitOnEvents(list, 1, &gates[0]));
  CHECK(pthread_create(&thread, NULL, synchronize_device, &over) == 0);
  int i = 0;
  for (; i < MOST && !atomic_load(&over); i++) {
    ze_event_handle_t passed = gates[i % GATES], next = gates[(i + 1) % GATES];
    OK(zeEventHostReset(next));
    OK(zeCommandListAppendWaitOnEvents(list, 1, &next));
    OK(zeEventHostSignal(passed));
    sched_yield();
  }
  CHECK(i < MOST);
  for (int g = 0; g < GATES; g++) OK(zeEventHostSignal(gates[g]));
  CHECK(pthread_join(thread, NULL) == 0);
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  for (int g = 0; g < GATES; g++) OK(zeEventDestroy(gates[g]));
  OK(zeEventPoolDestroy(pool));
}

int main(void) {
  begin();
  clones_are_lists_of_their_own();
  lists_wait_and_signal_as_one();
  recorded_signals_are_points();
  events_without_a_pool();
  lists_and_queues_say_what_they_are();
  a_busy_device_is_waited_for();
  finish("submit");
  return 0;
}
