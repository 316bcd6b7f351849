/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c: fences. */
#include "fence.h"

#include "failure.h"
#include "gate.h"
#include "queue.h"

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
  atomic_store(&fence->latch.set, (desc->flags & ZE_FENCE_FLAG_SIGNALED) != 0);
  atomic_fetch_add(&queue->fences, 1);
  *out = (ze_fence_handle_t)fence;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeFenceDestroy(ze_fence_handle_t handle) {
  CPU_ENTER();
  cpu_fence *fence = cpu_fence_cast(handle);
  CPU_REFUSE_IF(fence == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(atomic_load(&fence->users) != 0, ERROR_HANDLE_OBJECT_IN_USE);
  struct cpu_queue *queue = fence->queue;
  cpu_delete(fence);
  atomic_fetch_sub(&queue->fences, 1);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeFenceHostSynchronize(ze_fence_handle_t handle, uint64_t timeout) {
  CPU_ENTER();
  cpu_fence *fence = cpu_fence_cast(handle);
  CPU_REFUSE_IF(fence == NULL, ERROR_INVALID_NULL_HANDLE);
  ze_result_t result = cpu_latch_wait(&fence->latch, timeout);
  return result == ZE_RESULT_SUCCESS ? cpu_fifo_failure(fence->queue->fifo.serial) : result;
}

CPU_EXPORT ze_result_t zeFenceQueryStatus(ze_fence_handle_t handle) {
  CPU_ENTER();
  cpu_fence *fence = cpu_fence_cast(handle);
  CPU_REFUSE_IF(fence == NULL, ERROR_INVALID_NULL_HANDLE);
  return cpu_latch_is_set(&fence->latch) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

CPU_EXPORT ze_result_t zeFenceReset(ze_fence_handle_t handle) {
  CPU_ENTER();
  cpu_fence *fence = cpu_fence_cast(handle);
  CPU_REFUSE_IF(fence == NULL, ERROR_INVALID_NULL_HANDLE);
  cpu_latch_clear(&fence->latch);
  return ZE_RESULT_SUCCESS;
}
