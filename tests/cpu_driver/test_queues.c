/* SPDX-License-Identifier: Apache-2.0 */
/* test_queues.c: regular lists, queues and fences. */
#include <dirent.h>

#include "children.h"
#include "harness.h"

static ze_command_list_handle_t regular(uint32_t flags) {
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .flags = flags};
  ze_command_list_handle_t list;
  OK(zeCommandListCreate(context, device, &desc, &list));
  return list;
}

static ze_command_queue_handle_t queue_of(uint32_t ordinal, ze_command_queue_mode_t mode) {
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = ordinal, .mode = mode};
  ze_command_queue_handle_t queue;
  OK(zeCommandQueueCreate(context, device, &desc, &queue));
  return queue;
}

static ze_fence_handle_t fence_of(ze_command_queue_handle_t queue, uint32_t flags) {
  ze_fence_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC, .flags = flags};
  ze_fence_handle_t fence;
  OK(zeFenceCreate(queue, &desc, &fence));
  return fence;
}

static void count_up(void *data) { ++*(int *)data; }

static void a_closed_list_runs_again_and_again(void) {
  ze_command_queue_handle_t queue = queue_of(0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
  ze_command_list_handle_t list = regular(ZE_COMMAND_LIST_FLAG_IN_ORDER);
  ze_fence_handle_t fence = fence_of(queue, 0);
  int *from = shared_memory(64 * sizeof(int)), *to = shared_memory(64 * sizeof(int));
  for (int i = 0; i < 63; i++) /* more commands than a list has space for at first */
    OK(zeCommandListAppendMemoryCopy(list, to + i + 1, i == 0 ? from : to + i, sizeof(int), NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandQueueExecuteCommandLists(queue, 1, &list, fence)); /* not closed */
  OK(zeCommandListClose(list));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendBarrier(list, NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListHostSynchronize(list, 0));
  for (int round = 1; round <= 100; round++) {
    from[0] = round;
    OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
    OK(zeFenceHostSynchronize(fence, FOREVER));
    CHECK(to[63] == round);
    OK(zeFenceQueryStatus(fence));
    OK(zeFenceReset(fence));
    GIVES(NOT_READY, zeFenceQueryStatus(fence));
  }
  OK(zeCommandQueueSynchronize(queue, FOREVER));
  OK(zeCommandListReset(list));
  OK(zeCommandListAppendMemoryCopy(list, to, from, sizeof(int), NULL, 0, NULL));
  OK(zeCommandListClose(list));
  OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
  OK(zeCommandQueueSynchronize(queue, FOREVER));
  CHECK(to[0] == 100);
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandQueueDestroy(queue)); /* its fence is alive */
  OK(zeFenceDestroy(fence));
  OK(zeCommandQueueDestroy(queue));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, from));
  OK(zeMemFree(context, to));
}

static void lists_wait_for_events_of_other_queues(void) {
  ze_command_queue_handle_t one = queue_of(0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
  ze_command_queue_handle_t two = queue_of(0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t event = event_of(pool, 0);
  ze_command_list_handle_t waits = regular(0), signals = regular(0);
  OK(zeCommandListAppendBarrier(waits, NULL, 1, &event));
  OK(zeCommandListAppendSignalEvent(signals, event));
  OK(zeCommandListClose(waits));
  OK(zeCommandListClose(signals));
  ze_fence_handle_t fence = fence_of(one, 0);
  OK(zeCommandQueueExecuteCommandLists(one, 1, &waits, fence));
  GIVES(NOT_READY, zeCommandQueueSynchronize(one, 1000000));
  GIVES(NOT_READY, zeFenceHostSynchronize(fence, 0));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandListReset(waits));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandListDestroy(waits));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeFenceDestroy(fence));
  OK(zeCommandQueueExecuteCommandLists(two, 1, &signals, NULL));
  OK(zeFenceHostSynchronize(fence, FOREVER));
  OK(zeCommandQueueSynchronize(one, FOREVER));
  OK(zeCommandQueueSynchronize(two, FOREVER));
  OK(zeEventDestroy(event)); /* recorded, but no longer in use: executing it again is an error, not a crash */
  GIVES(ERROR_INVALID_SYNCHRONIZATION_OBJECT, zeCommandQueueExecuteCommandLists(one, 1, &waits, NULL));
  OK(zeEventPoolDestroy(pool));
  OK(zeFenceDestroy(fence));
  OK(zeCommandListDestroy(waits));
  OK(zeCommandListDestroy(signals));
  OK(zeCommandQueueDestroy(one));
  OK(zeCommandQueueDestroy(two));
}

/* Executes a list whose first execution is held up, through every entry point; how often did it run in the end? */
static int run_while_running(ze_result_t expected) {
  ze_command_queue_handle_t one = queue_of(0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
  ze_command_queue_handle_t two = queue_of(0, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS);
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t go = event_of(pool, 0);
  ze_command_list_handle_t list = regular(ZE_COMMAND_LIST_FLAG_IN_ORDER), other = regular(0), immediate = loose_list();
  int *runs = shared_memory(sizeof(int)), *others = shared_memory(sizeof(int));
  *runs = *others = 0;
  OK(zeCommandListAppendWaitOnEvents(list, 1, &go));
  OK(zeCommandListAppendHostFunction(list, count_up, runs, NULL, NULL, 0, NULL));
  OK(zeCommandListAppendHostFunction(other, count_up, others, NULL, NULL, 0, NULL));
  OK(zeCommandListClose(list));
  OK(zeCommandListClose(other));
  ze_command_list_handle_t both[] = {other, list};
  OK(zeCommandQueueExecuteCommandLists(one, 1, &list, NULL));
  CHECK(zeCommandQueueExecuteCommandLists(one, 2, both, NULL) == expected);
  CHECK(zeCommandQueueExecuteCommandLists(two, 1, &list, NULL) == expected);
  CHECK(zeCommandListImmediateAppendCommandListsExp(immediate, 1, &list, NULL, 0, NULL) == expected);
  CHECK(zeCommandListImmediateAppendCommandListsWithParameters(immediate, 1, &list, NULL, NULL, 0, NULL) == expected);
  const char *text;
  OK(zeDriverGetLastErrorDescription(driver, &text));
  CHECK((strstr(text, "may still run") != NULL) == (expected != ZE_RESULT_SUCCESS));
  OK(zeEventHostSignal(go));
  OK(zeDeviceSynchronize(device));
  CHECK(*others == (expected == ZE_RESULT_SUCCESS)); /* nothing of a refused call was executed */
  int found = *runs;
  OK(zeCommandQueueExecuteCommandLists(two, 2, both, NULL));
  OK(zeCommandQueueSynchronize(two, FOREVER));
  CHECK(*runs == found + 1);
  both[0] = list;
  CHECK(zeCommandQueueExecuteCommandLists(two, 2, both, NULL) == expected); /* the same list twice */
  OK(zeCommandQueueSynchronize(two, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(other));
  OK(zeCommandListDestroy(immediate));
  OK(zeCommandQueueDestroy(one));
  OK(zeCommandQueueDestroy(two));
  OK(zeEventDestroy(go));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, runs));
  OK(zeMemFree(context, others));
  return found;
}

static void a_list_that_may_still_run_is_refused(void) {
  CHECK(run_while_running(ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE) == 1);
}

static void the_setting_executes_it(void) {
  begin();
  CHECK(run_while_running(ZE_RESULT_SUCCESS) == 5);
  finish("lists that may still run");
}

static void wrong_arguments_are_refused(void) {
  ze_command_queue_handle_t queue = queue_of(1, ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS);
  ze_command_queue_handle_t other = queue_of(1, ZE_COMMAND_QUEUE_MODE_DEFAULT);
  ze_command_list_handle_t compute = regular(0), immediate = loose_list();
  ze_fence_handle_t fence = fence_of(other, ZE_FENCE_FLAG_SIGNALED);
  OK(zeFenceQueryStatus(fence));
  OK(zeCommandListClose(compute));
  GIVES(ERROR_INVALID_COMMAND_LIST_TYPE, zeCommandQueueExecuteCommandLists(queue, 1, &compute, NULL));
  GIVES(ERROR_INVALID_COMMAND_LIST_TYPE, zeCommandQueueExecuteCommandLists(queue, 1, &immediate, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandQueueExecuteCommandLists(queue, 0, &compute, NULL));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandQueueExecuteCommandLists(queue, 1, NULL, NULL));
  GIVES(ERROR_INVALID_SYNCHRONIZATION_OBJECT, zeCommandQueueExecuteCommandLists(queue, 1, &compute, fence));
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = 2};
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandQueueCreate(context, device, &desc, &queue));
  desc.ordinal = 1, desc.index = 1;
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandQueueCreate(context, device, &desc, &queue));
  desc.index = 0, desc.mode = 3;
  GIVES(ERROR_INVALID_ENUMERATION, zeCommandQueueCreate(context, device, &desc, &queue));
  OK(zeFenceDestroy(fence));
  OK(zeCommandQueueDestroy(queue));
  OK(zeCommandQueueDestroy(other));
  OK(zeCommandListDestroy(compute));
  OK(zeCommandListDestroy(immediate));
}

static void a_synchronous_list_has_done_it_already(void) {
  ze_command_queue_desc_t desc = {
      .stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .index = 1, .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS};
  ze_command_list_handle_t list;
  OK(zeCommandListCreateImmediate(context, device, &desc, &list));
  int from = 0, to = 0;
  for (from = 1; from < 200; from++) {
    OK(zeCommandListAppendMemoryCopy(list, &to, &from, sizeof(int), NULL, 0, NULL));
    CHECK(to == from);
  }
  ze_bool_t immediate;
  uint32_t index;
  OK(zeCommandListIsImmediate(list, &immediate));
  OK(zeCommandListImmediateGetIndex(list, &index));
  CHECK(immediate && index == 1);
  OK(zeCommandListDestroy(list));
}

static int threads(void) {
  int n = 0;
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks != NULL);
  for (struct dirent *task; (task = readdir(tasks)) != NULL;) n += task->d_name[0] != '.';
  closedir(tasks);
  return n;
}

/* Barriers, signals, resets and waits for what is set need no engine where they stand behind nothing: none is started
 * for them. What moves data has one. */
static void what_has_nothing_to_do_is_done_at_once(void) {
  ze_event_pool_handle_t pool = pool_of(3, ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
  ze_event_handle_t first = event_of(pool, 0), second = event_of(pool, 1), unset = event_of(pool, 2);
  ze_command_list_handle_t list = immediate_on(0, 1, 0);
  int before = threads();
  OK(zeCommandListAppendSignalEvent(list, first));
  OK(zeEventQueryStatus(first));
  OK(zeCommandListAppendWaitOnEvents(list, 1, &first));
  OK(zeCommandListAppendBarrier(list, second, 1, &first));
  OK(zeEventQueryStatus(second));
  ze_kernel_timestamp_result_t stamps;
  OK(zeEventQueryKernelTimestamp(second, &stamps));
  CHECK(stamps.global.kernelStart <= stamps.global.kernelEnd);
  OK(zeCommandListAppendEventReset(list, first));
  GIVES(NOT_READY, zeEventQueryStatus(first));
  OK(zeCommandListHostSynchronize(list, 0));
  CHECK(threads() == before);
  OK(zeCommandListAppendWaitOnEvents(list, 1, &unset));
  OK(zeCommandListAppendSignalEvent(list, first)); /* it stands behind the wait */
  CHECK(threads() > before); /* a sanitizer may have added its own */
  GIVES(NOT_READY, zeEventHostSynchronize(first, 1000000));
  OK(zeEventHostSignal(unset));
  OK(zeEventHostSynchronize(first, FOREVER));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  ze_event_handle_t all[] = {first, second, unset};
  for (int i = 0; i < 3; i++) OK(zeEventDestroy(all[i]));
  OK(zeEventPoolDestroy(pool));
}

/* An immediate list need not be closed or reset; one that is behaves as any closed or reset list. */
static void immediate_lists_close_and_reset(void) {
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t go = event_of(pool, 0);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendBarrier(list, NULL, 1, &go));
  OK(zeCommandListClose(list));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendBarrier(list, NULL, 0, NULL));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandListReset(list));
  OK(zeEventHostSignal(go));
  OK(zeCommandListHostSynchronize(list, FOREVER)); /* what was appended before is done */
  OK(zeCommandListReset(list));
  OK(zeCommandListAppendEventReset(list, go));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  GIVES(NOT_READY, zeEventQueryStatus(go));
  OK(zeCommandListReset(list)); /* an open one, too */
  OK(zeCommandListDestroy(list));
  OK(zeEventDestroy(go));
  OK(zeEventPoolDestroy(pool));
}

static char order[8];

static void told(void *name) { order[strlen(order)] = *(const char *)name; }

static void wait_for_go(void *go) { zeEventHostSynchronize((ze_event_handle_t)go, FOREVER); }

static ze_command_list_handle_t urgent(ze_command_queue_priority_t priority) {
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                  .priority = priority,
                                  .flags = ZE_COMMAND_QUEUE_FLAG_IN_ORDER,
                                  .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS};
  ze_command_list_handle_t list;
  OK(zeCommandListCreateImmediate(context, device, &desc, &list));
  return list;
}

/* While the engine is busy, work of all priorities becomes ready: the most urgent is done first. */
static void priorities_order_what_is_ready(void) {
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t go = event_of(pool, 0);
  ze_command_list_handle_t lists[] = {urgent(ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW),
                                      urgent(ZE_COMMAND_QUEUE_PRIORITY_NORMAL),
                                      urgent(ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH)};
  OK(zeCommandListAppendHostFunction(lists[0], wait_for_go, go, NULL, NULL, 0, NULL));
  for (int i = 0; i < 6; i++)
    OK(zeCommandListAppendHostFunction(lists[i % 3], told, &"LNH"[i % 3], NULL, NULL, 0, NULL));
  OK(zeEventHostSignal(go));
  for (int i = 0; i < 3; i++) OK(zeCommandListHostSynchronize(lists[i], FOREVER));
  CHECK(strcmp(order, "HHNNLL") == 0);
  for (int i = 0; i < 3; i++) OK(zeCommandListDestroy(lists[i]));
  OK(zeEventDestroy(go));
  OK(zeEventPoolDestroy(pool));
}

static void a_group_computes_and_cooperates(void) {
  uint32_t count = 8;
  ze_command_queue_group_properties_t groups[8] = {{.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES}};
  OK(zeDeviceGetCommandQueueGroupProperties(device, &count, groups));
  uint32_t both = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE |
                  ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS;
  CHECK((groups[0].flags & both) == both && (groups[1].flags & both) == 0);
}

int main(void) {
  CHECK(in_child("L0RT_CPU_RUNNING_LISTS", "execute", the_setting_executes_it, NULL, 0) == 0);
  begin();
  what_has_nothing_to_do_is_done_at_once();
  a_closed_list_runs_again_and_again();
  lists_wait_for_events_of_other_queues();
  a_list_that_may_still_run_is_refused();
  wrong_arguments_are_refused();
  a_synchronous_list_has_done_it_already();
  immediate_lists_close_and_reset();
  priorities_order_what_is_ready();
  a_group_computes_and_cooperates();
  finish("queues");
  return 0;
}
