/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c: command queues. A queue is a fifo that copies of recorded commands go into, list after list. */
#include "queue.h"

#include "failure.h"
#include "gate.h"
#include "knobs.h"
#include "quirk.h"
#include "submit.h"

ze_result_t cpu_queue_desc_check(const ze_command_queue_desc_t *desc) {
  /* The driver of the profile takes any bit, and leaves out what it does not know. */
  CPU_REFUSE_IF(desc->flags > 0x7 && !cpu_knobs.neo_22_43, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF((uint32_t)desc->mode > ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF((uint32_t)desc->priority > ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH, ERROR_INVALID_ENUMERATION);
  return ZE_RESULT_SUCCESS;
}

bool cpu_queue_desc_in_order(const ze_command_queue_desc_t *desc) {
  return (desc->flags & ZE_COMMAND_QUEUE_FLAG_IN_ORDER) != 0 && !cpu_knobs.neo_22_43 &&
         !cpu_has_quirk(CPU_QUIRK_UNORDERED_LISTS);
}

CPU_EXPORT ze_result_t zeCommandQueueCreate(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
                                            const ze_command_queue_desc_t *desc, ze_command_queue_handle_t *out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = cpu_queue_desc_check(desc);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (!cpu_context_has(context, device) || desc->index >= cpu_group_queues(desc->ordinal))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context, or has no queue of this index");
  cpu_engine *engine = cpu_engine_get(device, desc->ordinal, desc->index);
  cpu_queue *queue = engine == NULL ? NULL : cpu_new(CPU_QUEUE);
  CPU_REFUSE_IF(queue == NULL, ERROR_OUT_OF_HOST_MEMORY);
  queue->context = context;
  queue->device = device;
  queue->ordinal = desc->ordinal;
  queue->index = desc->index;
  queue->flags = desc->flags;
  queue->mode = (uint8_t)desc->mode;
  queue->priority = (uint8_t)desc->priority;
  queue->synchronous = desc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
  cpu_fifo_init(&queue->fifo, engine, context, desc->priority, cpu_queue_desc_in_order(desc));
  pthread_mutex_init(&queue->submitting, NULL);
  cpu_context_hold(context);
  *out = (ze_command_queue_handle_t)queue;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandQueueDestroy(ze_command_queue_handle_t handle) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  CPU_REFUSE_IF(queue == NULL, ERROR_INVALID_NULL_HANDLE);
  uint64_t last = cpu_fifo_last(&queue->fifo);
  CPU_REFUSE_IF(atomic_load(&queue->fences) != 0 ||
                    (!cpu_fifo_reached(&queue->fifo, last) && !cpu_fifo_stop(&queue->fifo, 1, last)),
                ERROR_HANDLE_OBJECT_IN_USE);
  cpu_context *context = queue->context;
  cpu_failure_end(queue->fifo.serial);
  cpu_delete(queue);
  cpu_context_let_go(context);
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
  ze_result_t result = cpu_lists_check(queue->context, queue->device, queue->ordinal, count, lists);
  if (result != ZE_RESULT_SUCCESS) return result;
  pthread_mutex_lock(&queue->submitting);
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++)
    result = cpu_submit_list(queue, &queue->fifo, cpu_list_cast(lists[i]));
  if (result == ZE_RESULT_SUCCESS && fence != NULL) result = push_fence(queue, fence);
  pthread_mutex_unlock(&queue->submitting);
  cpu_engine_ring(queue->fifo.engine);
  return result == ZE_RESULT_SUCCESS && queue->synchronous ? cpu_fifo_wait(&queue->fifo, CPU_NEVER) : result;
}

CPU_EXPORT ze_result_t zeCommandQueueSynchronize(ze_command_queue_handle_t handle, uint64_t timeout) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  return queue == NULL ? CPU_REFUSED(ERROR_INVALID_NULL_HANDLE, NULL) : cpu_fifo_wait(&queue->fifo, timeout);
}

CPU_EXPORT ze_result_t zeCommandQueueGetOrdinal(ze_command_queue_handle_t handle, uint32_t *ordinal) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  CPU_REFUSE_IF(queue == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(ordinal == NULL, ERROR_INVALID_NULL_POINTER);
  *ordinal = queue->ordinal;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandQueueGetIndex(ze_command_queue_handle_t handle, uint32_t *index) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  CPU_REFUSE_IF(queue == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(index == NULL, ERROR_INVALID_NULL_POINTER);
  *index = queue->index;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandQueueGetFlags(ze_command_queue_handle_t handle, ze_command_queue_flags_t *flags) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  CPU_REFUSE_IF(queue == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(flags == NULL, ERROR_INVALID_NULL_POINTER);
  *flags = queue->flags;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandQueueGetMode(ze_command_queue_handle_t handle, ze_command_queue_mode_t *mode) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  CPU_REFUSE_IF(queue == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(mode == NULL, ERROR_INVALID_NULL_POINTER);
  *mode = (ze_command_queue_mode_t)queue->mode;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandQueueGetPriority(ze_command_queue_handle_t handle,
                                                 ze_command_queue_priority_t *priority) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  CPU_REFUSE_IF(queue == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(priority == NULL, ERROR_INVALID_NULL_POINTER);
  *priority = (ze_command_queue_priority_t)queue->priority;
  return ZE_RESULT_SUCCESS;
}
