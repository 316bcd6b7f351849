/* event.c: events: a latch that commands and hosts set, wait for and reset. */
#include "event.h"

#include "engine.h"
#include "gate.h"

/* An engine announces itself before it looks for the last time, and whoever sets the event looks for engines after
 * that: so one of the two sees the other. */
bool cpu_event_watch(cpu_event *event) {
  if (cpu_latch_is_set(&event->latch)) return true;
  atomic_store(&event->watched, 1);
  return atomic_load(&event->latch.set) != 0;
}

cpu_event_wakes cpu_event_raise(cpu_event *event) {
  cpu_event_wakes wakes;
  wakes.sleepers = cpu_latch_raise(&event->latch);
  wakes.watchers = atomic_load(&event->watched) != 0 && atomic_exchange(&event->watched, 0) != 0;
  return wakes;
}

void cpu_event_wake(cpu_event *event, cpu_event_wakes wakes) {
  if (wakes.sleepers) cpu_futex_wake(&event->latch.set);
  if (wakes.watchers) cpu_engines_ring();
}

ze_kernel_timestamp_result_t cpu_event_timestamps(cpu_event *event) {
  uint64_t mask = cpu_tick_mask();
  ze_kernel_timestamp_data_t span = {
      .kernelStart = cpu_ticks(atomic_load_explicit(&event->start, memory_order_relaxed)) & mask,
      .kernelEnd = cpu_ticks(atomic_load_explicit(&event->end, memory_order_relaxed)) & mask,
  };
  return (ze_kernel_timestamp_result_t){.global = span, .context = span};
}

CPU_EXPORT ze_result_t zeEventDestroy(ze_event_handle_t handle) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  if (event == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (atomic_load(&event->users) != 0) return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
  cpu_event_pool *pool = event->pool;
  cpu_delete(event);
  atomic_fetch_sub(&pool->events, 1);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventHostSignal(ze_event_handle_t handle) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  if (event == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  cpu_event_wake(event, cpu_event_raise(event));
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventHostReset(ze_event_handle_t handle) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  if (event == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  cpu_latch_clear(&event->latch);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventHostSynchronize(ze_event_handle_t handle, uint64_t timeout) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  return event == NULL ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : cpu_latch_wait(&event->latch, timeout);
}

CPU_EXPORT ze_result_t zeEventQueryStatus(ze_event_handle_t handle) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  if (event == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  return cpu_latch_is_set(&event->latch) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

CPU_EXPORT ze_result_t zeEventQueryKernelTimestamp(ze_event_handle_t handle, ze_kernel_timestamp_result_t *result) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  if (event == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (result == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (!event->timed) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  if (!cpu_latch_is_set(&event->latch)) return ZE_RESULT_NOT_READY;
  *result = cpu_event_timestamps(event);
  return ZE_RESULT_SUCCESS;
}
