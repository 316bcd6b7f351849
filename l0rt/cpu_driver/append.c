/* SPDX-License-Identifier: Apache-2.0 */
/* append.c: appending commands that move no data: barriers, waits, signals, timestamps. */
#include "gate.h"
#include "list.h"
#include "mutation.h"
#include "usm.h"

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
  return cpu_list_append(list, &command, NULL, 0, NULL);
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
    ze_result_t result = cpu_memory_check((char *)target + (offsets ? offsets[i] : (size_t)i * RESULT), RESULT, true);
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
