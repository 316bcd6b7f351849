/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c: from a program's command to one in a fifo. */
#include "submit.h"

#include <stdio.h>
#include <stdlib.h>

#include "capture.h"
#include "gate.h"
#include "quirk.h"
#include "usm.h"

/* Intel's driver stops the process when the counter's address is not the one it expects on the waiting device. */
static void refuse_peer(const cpu_fifo *fifo, cpu_event *event) {
  if (!cpu_event_is_point(event) || event->device == fifo->engine->device) return;
  fprintf(stderr, "l0rt CPU driver: aborting: a wait for another device's counter-based event (peer_counters)\n");
  abort();
}

ze_result_t cpu_submit(cpu_fifo *fifo, cpu_command *command) {
  cpu_event *signal = command->signal, *point = NULL;
  if (signal != NULL && cpu_event_is_counter_based(signal)) {
    CPU_REFUSE_IF((point = cpu_event_new_point(signal)) == NULL, ERROR_OUT_OF_HOST_MEMORY);
    point->device = fifo->engine->device;
    command->signal = point;
  }
  uint8_t count = 0;
  for (uint8_t i = 0; i < command->wait_count; i++) {
    cpu_event *event = cpu_event_take(command->waits[i]);
    if (event != NULL && cpu_has_quirk(CPU_QUIRK_PEER_COUNTERS)) refuse_peer(fifo, event);
    if (event != NULL) command->waits[count++] = event;
  }
  command->wait_count = count;
  ze_result_t result = cpu_fifo_push(fifo, command);
  /* Taken for the moment only: a command in a fifo holds its events itself. */
  for (uint8_t i = 0; i < count; i++) cpu_event_put_back(command->waits[i]);
  if (point == NULL) return result;
  if (result == ZE_RESULT_SUCCESS) {
    cpu_event_set_point(signal, point);
  } else {
    cpu_event_let_go(point);
  }
  return result;
}

ze_result_t cpu_lists_check(const cpu_context *context, const cpu_device *device, uint32_t ordinal, uint32_t count,
                            ze_command_list_handle_t *lists) {
  CPU_REFUSE_IF(CPU_UNLIKELY(cpu_usm_is_over(device)), ERROR_OUT_OF_DEVICE_MEMORY);
  for (uint32_t i = 0; i < count; i++) {
    const cpu_list *list = cpu_list_cast(lists[i]);
    CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
    CPU_REFUSE_IF(list->immediate || list->ordinal != ordinal, ERROR_INVALID_COMMAND_LIST_TYPE);
    if (!cpu_list_is_closed(list) || list->context != context || list->device != device)
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a list is open, or of another context or device than the queue");
    for (uint32_t k = 0; k < list->count; k++) {
      CPU_REFUSE_IF(!cpu_command_valid(&list->recorded[k]), ERROR_INVALID_SYNCHRONIZATION_OBJECT);
      ze_result_t result = cpu_command_memory(&list->recorded[k]);
      if (result == ZE_RESULT_SUCCESS) result = cpu_command_walk(&list->recorded[k]);
      if (result != ZE_RESULT_SUCCESS) return result;
    }
  }
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_submit_list(void *place, cpu_fifo *fifo, cpu_list *list) {
  for (uint32_t i = 0, end; i < list->count; i = end) {
    const cpu_command *first = &list->recorded[i];
    ze_result_t result;
    for (end = i; end < list->count && cpu_command_is_alone(&list->recorded[end]);) end++;
    if (end != i) {
      result = cpu_fifo_push_run(fifo, first, sizeof(*first), end - i, 0);
    } else {
      cpu_command command;
      cpu_command_copy(&command, first);
      result = cpu_submit(fifo, &command);
      end++;
    }
    if (result != ZE_RESULT_SUCCESS) return result;
  }
  list->place = place;
  list->serial = fifo->serial;
  list->last = cpu_fifo_last(fifo);
  return ZE_RESULT_SUCCESS;
}

/* The waits come first, as a command of their own; the signal is a barrier's, after all the lists. */
static ze_result_t append_lists(ze_command_list_handle_t handle, uint32_t count, ze_command_list_handle_t *lists,
                                ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(lists == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(!list->immediate, ERROR_INVALID_COMMAND_LIST_TYPE);
  ze_result_t result = cpu_list_check(list, signal, wait_count, waits);
  if (result == ZE_RESULT_SUCCESS) result = cpu_lists_check(list->context, list->device, list->ordinal, count, lists);
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
