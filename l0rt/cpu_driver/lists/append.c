/* SPDX-License-Identifier: Apache-2.0 */
/* append.c: how a command gets into a list; appending those that move no data, such as barriers, and closed lists. */
#include <stdlib.h>

#include "base/gate.h"
#include "graphs/capture.h"
#include "graphs/mutation.h"
#include "lists/launch.h"
#include "lists/list.h"
#include "lists/submit.h"
#include "memory/usm.h"
#include "simulate/fault.h"
#include "simulate/latency.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

ze_result_t cpu_list_record(cpu_list *list, const cpu_command *command) {
  if (list->count == list->capacity) {
    uint32_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
    cpu_command *recorded = realloc(list->recorded, capacity * sizeof(*recorded));
    CPU_REFUSE_IF(recorded == NULL, ERROR_OUT_OF_HOST_MEMORY);
    list->recorded = recorded;
    list->capacity = capacity;
  }
  list->recorded[list->count] = *command;
  if (command->op == CPU_OP_LAUNCH) cpu_launch_hold(command->launch.launch);
  list->recorded[list->count++].barrier |= list->in_order;
  return ZE_RESULT_SUCCESS;
}

/* Puts a command that waits for these events, as many as fit one. */
static ze_result_t put(cpu_list *list, cpu_command *command, uint32_t count, ze_event_handle_t *waits) {
  command->wait_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    cpu_event *event = cpu_event_cast(waits[i]);
    if (event != NULL) command->waits[command->wait_count++] = event;
  }
  return list->immediate ? cpu_submit(&list->fifo, command) : cpu_list_record(list, command);
}

ze_result_t cpu_list_check_context(const cpu_list *list, const cpu_event *event) {
  return cpu_contexts_agree(cpu_event_context(event), list->context)
             ? ZE_RESULT_SUCCESS
             : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event is of another context than the list");
}

static ze_result_t check_event(const cpu_list *list, ze_event_handle_t handle, bool signal) {
  const cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_SYNCHRONIZATION_OBJECT);
  ze_result_t result = cpu_list_check_context(list, event);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (!cpu_event_is_counter_based(event)) return ZE_RESULT_SUCCESS;
  uint32_t needed = list->immediate ? ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE : ZE_EVENT_COUNTER_BASED_FLAG_NON_IMMEDIATE;
  if ((event->counter_flags & needed) == 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event was made for another kind of list");
  return signal && !list->in_order
             ? CPU_REFUSED(ERROR_INVALID_ARGUMENT,
                           "the lists can signal an event at their end only if this list is in order")
             : ZE_RESULT_SUCCESS;
}

ze_result_t cpu_list_check(const cpu_list *list, ze_event_handle_t signal, uint32_t wait_count,
                           ze_event_handle_t *waits) {
  CPU_REFUSE_IF(waits == NULL && wait_count > 0, ERROR_INVALID_SIZE);
  if (list->closed) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is closed");
  ze_result_t result = signal == NULL ? ZE_RESULT_SUCCESS : check_event(list, signal, true);
  for (uint32_t i = 0; i < wait_count && result == ZE_RESULT_SUCCESS; i++) result = check_event(list, waits[i], false);
  return result;
}

static ze_result_t put_all(cpu_list *list, cpu_command *command, uint32_t wait_count, ze_event_handle_t *waits) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (; wait_count > CPU_WAITS && result == ZE_RESULT_SUCCESS; wait_count -= CPU_WAITS, waits += CPU_WAITS) {
    cpu_command wait = {.op = CPU_OP_NONE};
    result = put(list, &wait, CPU_WAITS, waits);
  }
  return result == ZE_RESULT_SUCCESS ? put(list, command, wait_count, waits) : result;
}

/* What an append costs the host, but for what a copy's own checks do. */
static void pay(const cpu_list *list, const cpu_command *command, ze_event_handle_t signal) {
  cpu_latency_append();
  if (command->op == CPU_OP_LAUNCH) cpu_latency(CPU_COST_APPEND_LAUNCH, 1);
  if (!list->immediate) return;
  double pieces = atomic_load(&list->device->pieces);
  cpu_latency(CPU_COST_SUBMIT, 1);
  cpu_latency(CPU_COST_SUBMIT_PER_PIECE, pieces * pieces);
  const void *last = atomic_exchange(&list->fifo.engine->last_list, list);
  if (last != NULL && last != list) cpu_latency(CPU_COST_LIST_SWITCH, 1);
  /* A copy, a fill or a launch signals with its own submission. */
  if (signal == NULL || (command->op != CPU_OP_NONE && command->op != CPU_OP_CLOCK)) return;
  const cpu_event *event = cpu_event_cast(signal);
  cpu_latency(!cpu_event_is_counter_based(event)                      ? CPU_COST_RECORD_PLAIN
              : (event->signal_scope & ZE_EVENT_SCOPE_FLAG_HOST) != 0 ? CPU_COST_RECORD_HOST
                                                                      : CPU_COST_RECORD_SCOPE0,
              1);
}

/* With that defect, work that signals an event of a pool is left out of the list's count. What a copy of rows signals
 * behind such work is there when that work is done: here a command in front of the copy signals it. */
static ze_result_t put_counted(cpu_list *list, cpu_command *command, uint32_t wait_count, ze_event_handle_t *waits) {
  bool skips = command->signal != NULL && !cpu_event_is_counter_based(command->signal);
  bool is_region = command->op == CPU_OP_REGION, is_behind = cpu_list_skips(list);
  if (!is_behind) list->counted = cpu_fifo_last(&list->fifo);
  ze_result_t result = ZE_RESULT_SUCCESS;
  if (skips && is_region && is_behind) {
    cpu_command early = {.op = CPU_OP_NONE, .signal = command->signal};
    command->signal = NULL;
    result = put_all(list, &early, 0, NULL);
  }
  if (result == ZE_RESULT_SUCCESS) result = put_all(list, command, wait_count, waits);
  bool is_work = command->op == CPU_OP_COPY || command->op == CPU_OP_FILL || command->op == CPU_OP_LAUNCH;
  if (skips && (is_work || (is_region && is_behind))) list->skipped = cpu_fifo_last(&list->fifo);
  return result;
}

ze_result_t cpu_list_append(cpu_list *list, cpu_command *command, ze_event_handle_t signal, uint32_t wait_count,
                            ze_event_handle_t *waits) {
  ze_result_t result = cpu_list_check(list, signal, wait_count, waits);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(CPU_UNLIKELY(cpu_device_is_over(list->device)), ERROR_OUT_OF_DEVICE_MEMORY);
  if (cpu_capture_any()) {
    bool captured;
    result = cpu_capture_append(list, command, signal, wait_count, waits, &captured);
    if (result != ZE_RESULT_SUCCESS || captured) return result;
  }
  if (CPU_UNLIKELY(cpu_latency_on)) pay(list, command, signal);
  command->hangs = cpu_fault_any() && cpu_fault_take() == CPU_FAULT_HANG;
  command->signal = signal == NULL ? NULL : cpu_event_cast(signal);
  if (list->mutations != NULL) result = cpu_mutations_bind(list, command, signal, wait_count, waits);
  if (result != ZE_RESULT_SUCCESS) return result;
  bool counts = list->immediate && list->in_order && cpu_has_quirk(CPU_QUIRK_UNCOUNTED_SIGNALS);
  result = counts ? put_counted(list, command, wait_count, waits) : put_all(list, command, wait_count, waits);
  if (!list->immediate) return result;
  cpu_engine_ring(list->fifo.engine);
  return result == ZE_RESULT_SUCCESS && list->synchronous ? cpu_fifo_wait(&list->fifo, CPU_NEVER) : result;
}

CPU_EXPORT ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t handle, ze_event_handle_t signal,
                                                  uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  cpu_command command = {.op = CPU_OP_NONE, .barrier = true};
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

/* Memory is coherent, so the ranges ask for nothing more than a barrier does. */
CPU_EXPORT ze_result_t zeCommandListAppendMemoryRangesBarrier(ze_command_list_handle_t handle, uint32_t range_count,
                                                              const size_t *sizes, const void **ranges,
                                                              ze_event_handle_t signal, uint32_t wait_count,
                                                              ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(sizes == NULL || ranges == NULL, ERROR_INVALID_NULL_POINTER);
  (void)range_count;
  cpu_command command = {.op = CPU_OP_NONE, .barrier = true};
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendSignalEvent(ze_command_list_handle_t handle, ze_event_handle_t event) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL || event == NULL, ERROR_INVALID_NULL_HANDLE);
  cpu_command command = {.op = CPU_OP_NONE};
  return cpu_list_append(list, &command, event, 0, NULL);
}

CPU_EXPORT ze_result_t zeCommandListAppendWaitOnEvents(ze_command_list_handle_t handle, uint32_t count,
                                                       ze_event_handle_t *events) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(events == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_command command = {.op = CPU_OP_NONE};
  return cpu_list_append(list, &command, NULL, count, events);
}

CPU_EXPORT ze_result_t zeCommandListAppendEventReset(ze_command_list_handle_t handle, ze_event_handle_t event) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL || event == NULL, ERROR_INVALID_NULL_HANDLE);
  cpu_command command = {.op = CPU_OP_RESET};
  command.reset.event = cpu_event_cast(event);
  CPU_REFUSE_IF(command.reset.event == NULL || cpu_event_is_counter_based(command.reset.event),
                ERROR_INVALID_SYNCHRONIZATION_OBJECT);
  ze_result_t result = cpu_list_check_context(list, command.reset.event);
  return result == ZE_RESULT_SUCCESS ? cpu_list_append(list, &command, NULL, 0, NULL) : result;
}

CPU_EXPORT ze_result_t zeCommandListAppendWriteGlobalTimestamp(ze_command_list_handle_t handle, uint64_t *target,
                                                               ze_event_handle_t signal, uint32_t wait_count,
                                                               ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(target == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = cpu_memory_check(target, sizeof(*target), true);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_command command = {.op = CPU_OP_CLOCK};
  command.clock.target = target;
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

/* A command for each event, so that none needs storage of its own; the last one waits for the others, then signals. */
CPU_EXPORT ze_result_t zeCommandListAppendQueryKernelTimestamps(ze_command_list_handle_t handle, uint32_t count,
                                                                ze_event_handle_t *events, void *target,
                                                                const size_t *offsets, ze_event_handle_t signal,
                                                                uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(events == NULL || target == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(cpu_mutations_wait(list->mutations), ERROR_UNSUPPORTED_FEATURE); /* it would be of several */
  enum { RESULT = sizeof(ze_kernel_timestamp_result_t) };
  for (uint32_t i = 0; i < count; i++) {
    cpu_event *event = cpu_event_cast(events[i]);
    CPU_REFUSE_IF(event == NULL || !event->timed || cpu_event_is_counter_based(event),
                  ERROR_INVALID_SYNCHRONIZATION_OBJECT);
    ze_result_t result = cpu_list_check_context(list, event);
    if (result == ZE_RESULT_SUCCESS)
      result = cpu_memory_check((char *)target + (offsets ? offsets[i] : (size_t)i * RESULT), RESULT, true);
    if (result != ZE_RESULT_SUCCESS) return result;
  }
  cpu_command begin = {.op = CPU_OP_NONE};
  ze_result_t result = cpu_list_append(list, &begin, NULL, wait_count, waits);
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++) {
    cpu_command command = {.op = CPU_OP_QUERY};
    command.query.target = (char *)target + (offsets ? offsets[i] : (size_t)i * RESULT);
    command.query.event = cpu_event_cast(events[i]);
    result = cpu_list_append(list, &command, NULL, 0, NULL);
  }
  if (result != ZE_RESULT_SUCCESS || signal == NULL) return result;
  cpu_command end = {.op = CPU_OP_NONE, .barrier = true};
  return cpu_list_append(list, &end, signal, 0, NULL);
}

/* The engine's own thread calls it, without any lock: the function may call this driver, but must not wait for what
 * stands behind it in the queue. */
CPU_EXPORT ze_result_t zeCommandListAppendHostFunction(ze_command_list_handle_t handle,
                                                       ze_host_function_callback_t function, void *data,
                                                       const void *next, ze_event_handle_t signal, uint32_t wait_count,
                                                       ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(function == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  cpu_command command = {.op = CPU_OP_CALL};
  command.call.function = function;
  command.call.data = data;
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

/* The waits come first, as a command of their own; the signal is a barrier's, after all the lists. */
static ze_result_t append_lists(ze_command_list_handle_t handle, uint32_t count, ze_command_list_handle_t *lists,
                                ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(lists == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(!list->immediate, ERROR_INVALID_COMMAND_LIST_TYPE);
  ze_result_t result = cpu_list_check(list, signal, wait_count, waits);
  if (result == ZE_RESULT_SUCCESS)
    result = cpu_lists_check(list->context, list->device, list->ordinal, count, lists, cpu_capture_has(list));
  cpu_command begin = {.op = CPU_OP_NONE}, end = {.op = CPU_OP_NONE, .barrier = signal != NULL};
  if (result == ZE_RESULT_SUCCESS && wait_count != 0) result = cpu_list_append(list, &begin, NULL, wait_count, waits);
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++) {
    cpu_list *closed = cpu_list_cast(lists[i]);
    bool captured = cpu_capture_any();
    if (captured) result = cpu_capture_list(list, closed, &captured);
    if (result == ZE_RESULT_SUCCESS && !captured) result = cpu_submit_list(list, &list->fifo, closed);
  }
  return result == ZE_RESULT_SUCCESS ? cpu_list_append(list, &end, signal, 0, NULL) : result;
}

CPU_EXPORT ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t list, uint32_t count,
                                                                   ze_command_list_handle_t *lists,
                                                                   ze_event_handle_t signal, uint32_t wait_count,
                                                                   ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_lists(list, count, lists, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListImmediateAppendCommandListsWithParameters(
    ze_command_list_handle_t list, uint32_t count, ze_command_list_handle_t *lists, const void *next,
    ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  return append_lists(list, count, lists, signal, wait_count, waits);
}
