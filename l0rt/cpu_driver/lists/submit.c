/* SPDX-License-Identifier: Apache-2.0 */
/* submit.c: from a program's command, or a closed list of them, to those in a fifo. */
#include "lists/submit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/gate.h"
#include "graphs/mutation.h"
#include "lists/queue.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

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

cpu_fifo *cpu_list_place(const cpu_list *list) {
  cpu_queue *queue = cpu_cast(list->place, CPU_QUEUE);
  cpu_list *other = cpu_cast(list->place, CPU_LIST);
  cpu_fifo *fifo = queue != NULL ? &queue->fifo : other != NULL ? &other->fifo : NULL;
  return fifo != NULL && fifo->serial == list->serial ? fifo : NULL;
}

bool cpu_list_is_closed(const cpu_list *list) {
  return list->closed && (list->mutations == NULL || !list->mutations->updated);
}

bool cpu_list_is_busy(cpu_list *list) {
  if (list->immediate) return !cpu_fifo_reached(&list->fifo, cpu_fifo_last(&list->fifo));
  cpu_fifo *fifo = cpu_list_place(list);
  return fifo != NULL && !cpu_fifo_reached(fifo, list->last);
}

/* Real drivers write into a list when it is executed: its last execution must be over. */
static ze_result_t check_idle(uint32_t count, ze_command_list_handle_t *lists) {
  if (cpu_knobs.executes_running) return ZE_RESULT_SUCCESS;
  for (uint32_t i = 0; i < count; i++) {
    bool again = false;
    for (uint32_t k = 0; k < i && !again; k++) again = lists[k] == lists[i];
    if (!again && !cpu_list_is_busy(cpu_list_cast(lists[i]))) continue;
    return CPU_REFUSED(ERROR_HANDLE_OBJECT_IN_USE,
                       again ? "a command list is executed twice by one call"
                             : "a command list is executed while its last execution may still run");
  }
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_lists_check(const cpu_context *context, const cpu_device *device, uint32_t ordinal, uint32_t count,
                            ze_command_list_handle_t *lists, bool recorded) {
  CPU_REFUSE_IF(CPU_UNLIKELY(cpu_device_is_over(device)), ERROR_OUT_OF_DEVICE_MEMORY);
  for (uint32_t i = 0; i < count; i++) {
    const cpu_list *list = cpu_list_cast(lists[i]);
    CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
    CPU_REFUSE_IF(list->immediate || list->ordinal != ordinal, ERROR_INVALID_COMMAND_LIST_TYPE);
    if (!cpu_list_is_closed(list) || !cpu_contexts_agree(list->context, context) || list->device != device)
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a list is open, or of another context or device than the queue");
    for (uint32_t k = 0; k < list->count; k++) {
      CPU_REFUSE_IF(!cpu_command_valid(&list->recorded[k]), ERROR_INVALID_SYNCHRONIZATION_OBJECT);
      ze_result_t result = cpu_command_memory(&list->recorded[k]);
      if (result == ZE_RESULT_SUCCESS) result = cpu_command_walk(&list->recorded[k]);
      if (result != ZE_RESULT_SUCCESS) return result;
    }
  }
  return recorded ? ZE_RESULT_SUCCESS : check_idle(count, lists);
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

static ze_result_t push_fence(cpu_queue *queue, cpu_fence *fence) {
  cpu_command end = {.op = CPU_OP_NONE, .barrier = true, .fence = fence};
  atomic_fetch_add(&fence->users, 1);
  ze_result_t result = cpu_fifo_push(&queue->fifo, &end);
  if (result != ZE_RESULT_SUCCESS) atomic_fetch_sub(&fence->users, 1);
  return result;
}

CPU_EXPORT ze_result_t zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t handle, uint32_t count,
                                                         ze_command_list_handle_t *lists,
                                                         ze_fence_handle_t fence_handle) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  CPU_REFUSE_IF(queue == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(lists == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(count == 0, ERROR_INVALID_SIZE);
  cpu_fence *fence = fence_handle == NULL ? NULL : cpu_fence_cast(fence_handle);
  CPU_REFUSE_IF(fence_handle != NULL && (fence == NULL || fence->queue != queue), ERROR_INVALID_SYNCHRONIZATION_OBJECT);
  ze_result_t result = cpu_lists_check(queue->context, queue->device, queue->ordinal, count, lists, false);
  if (result != ZE_RESULT_SUCCESS) return result;
  pthread_mutex_lock(&queue->submitting);
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++)
    result = cpu_submit_list(queue, &queue->fifo, cpu_list_cast(lists[i]));
  if (result == ZE_RESULT_SUCCESS && fence != NULL) result = push_fence(queue, fence);
  pthread_mutex_unlock(&queue->submitting);
  cpu_engine_ring(queue->fifo.engine);
  return result == ZE_RESULT_SUCCESS && queue->synchronous ? cpu_fifo_wait(&queue->fifo, CPU_NEVER) : result;
}
