/* SPDX-License-Identifier: Apache-2.0 */
/* fence.c: fences; lists/queue.c makes them. */
#include "sync/fence.h"

#include "base/gate.h"
#include "sync/failure.h"

CPU_EXPORT ze_result_t zeFenceDestroy(ze_fence_handle_t handle) {
  CPU_ENTER();
  cpu_fence *fence = cpu_fence_cast(handle);
  CPU_REFUSE_IF(fence == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(atomic_load(&fence->users) != 0, ERROR_HANDLE_OBJECT_IN_USE);
  _Atomic uint32_t *fences = fence->fences;
  cpu_delete(fence);
  atomic_fetch_sub(fences, 1);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeFenceHostSynchronize(ze_fence_handle_t handle, uint64_t timeout) {
  CPU_ENTER();
  cpu_fence *fence = cpu_fence_cast(handle);
  CPU_REFUSE_IF(fence == NULL, ERROR_INVALID_NULL_HANDLE);
  ze_result_t result = cpu_latch_wait(&fence->latch, timeout);
  return result == ZE_RESULT_SUCCESS ? cpu_fifo_failure(fence->serial) : result;
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
