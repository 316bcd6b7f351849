/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c: command queues, and their fences. A queue is a fifo that copies of recorded commands go into, list after list
 * (submit.c). */
#include "lists/queue.h"

#include "base/gate.h"
#include "base/knobs.h"
#include "memory/cache.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

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

CPU_EXPORT ze_result_t zeFenceCreate(ze_command_queue_handle_t handle, const ze_fence_desc_t *desc,
                                     ze_fence_handle_t *out) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  CPU_REFUSE_IF(queue == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0x1, ERROR_INVALID_ENUMERATION);
  cpu_fence *fence = cpu_new(CPU_FENCE);
  CPU_REFUSE_IF(fence == NULL, ERROR_OUT_OF_HOST_MEMORY);
  fence->queue = queue;
  fence->fences = &queue->fences;
  fence->serial = queue->fifo.serial;
  atomic_store(&fence->latch.set, (desc->flags & ZE_FENCE_FLAG_SIGNALED) != 0);
  atomic_fetch_add(&queue->fences, 1);
  *out = (ze_fence_handle_t)fence;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandQueueSynchronize(ze_command_queue_handle_t handle, uint64_t timeout) {
  CPU_ENTER();
  cpu_queue *queue = cpu_queue_cast(handle);
  return queue == NULL ? CPU_REFUSED(ERROR_INVALID_NULL_HANDLE, NULL) : cpu_fifo_wait(&queue->fifo, timeout);
}

/* Waits for what every queue was given by now: others may go on submitting. Rarely called, and for long waits: so it
 * looks now and then, and costs commands next to nothing. */
CPU_EXPORT ze_result_t zeDeviceSynchronize(ze_device_handle_t handle) {
  CPU_ENTER();
  cpu_device *device = cpu_device_cast(handle);
  CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_HANDLE);
  for (int i = 0; i < CPU_GROUPS_MAX * CPU_QUEUES_MAX; i++) {
    cpu_engine *engine = atomic_load(&device->engines[i / CPU_QUEUES_MAX][i % CPU_QUEUES_MAX]);
    if (engine == NULL) continue;
    uint64_t last = cpu_engine_last(engine);
    while (!cpu_engine_reached(engine, last)) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  }
  cpu_cache_flush();
  return ZE_RESULT_SUCCESS;
}

CPU_GETTER(zeCommandQueueGetOrdinal, ze_command_queue_handle_t, cpu_queue, queue, cpu_queue_cast, uint32_t, ordinal,
           queue->ordinal)
CPU_GETTER(zeCommandQueueGetIndex, ze_command_queue_handle_t, cpu_queue, queue, cpu_queue_cast, uint32_t, index,
           queue->index)
CPU_GETTER(zeCommandQueueGetFlags, ze_command_queue_handle_t, cpu_queue, queue, cpu_queue_cast,
           ze_command_queue_flags_t, flags, queue->flags)
CPU_GETTER(zeCommandQueueGetMode, ze_command_queue_handle_t, cpu_queue, queue, cpu_queue_cast, ze_command_queue_mode_t,
           mode, queue->mode)
CPU_GETTER(zeCommandQueueGetPriority, ze_command_queue_handle_t, cpu_queue, queue, cpu_queue_cast,
           ze_command_queue_priority_t, priority, queue->priority)
