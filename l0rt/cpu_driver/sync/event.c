/* SPDX-License-Identifier: Apache-2.0 */
/* event.c: events: a latch that commands and hosts set, wait for and reset. */
#include "sync/event.h"

#include <pthread.h>

#include "base/gate.h"
#include "base/invariant.h"
#include "lists/work.h"
#include "memory/cache.h"
#include "simulate/latency.h"
#include "simulate/profile.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

static pthread_mutex_t points = PTHREAD_MUTEX_INITIALIZER;

cpu_event *cpu_event_new(ze_event_scope_flags_t signal, ze_event_scope_flags_t wait, bool timed,
                         ze_event_counter_based_flags_t counter_flags) {
  cpu_event *event = cpu_new(CPU_EVENT);
  if (event == NULL) return NULL;
  event->state = &event->own;
  event->signal_scope = signal;
  event->wait_scope = wait;
  event->timed = timed;
  event->counter_flags = counter_flags;
  return event;
}

cpu_event *cpu_event_take(cpu_event *event) {
  if (!cpu_event_is_counter_based(event)) return event;
  pthread_mutex_lock(&points);
  cpu_event *point = event->point;
  if (point != NULL) atomic_fetch_add(&point->users, 1);
  pthread_mutex_unlock(&points);
  return point;
}

void cpu_event_let_go(cpu_event *event) {
  bool point = cpu_event_is_point(event); /* asked first: another thread may end it right after */
  uint32_t users = atomic_fetch_sub(&event->users, 1);
  CPU_INVARIANT(users != 0);
  if (users != 1 || !point) return;
  cpu_failure_forget(event);
  cpu_delete(event);
}

cpu_event *cpu_event_new_point(cpu_event *event) {
  cpu_event *point = cpu_new(CPU_POINT);
  if (point == NULL) return NULL;
  point->state = &point->own;
  point->timed = event != NULL && event->timed;
  atomic_store(&point->users, 1);
  return point;
}

void cpu_event_set_point(cpu_event *event, cpu_event *point) {
  pthread_mutex_lock(&points);
  cpu_event *before = event->point;
  event->point = point;
  pthread_mutex_unlock(&points);
  if (before != NULL) cpu_event_let_go(before);
}

/* An engine announces itself before it looks for the last time, and whoever sets the event looks for engines after
 * that: so one of the two sees the other. */
bool cpu_event_watch(cpu_event *event) {
  if (cpu_latch_is_set(&event->state->latch)) return true;
  atomic_store(&event->watched, 1);
  return atomic_load(&event->state->latch.set) != 0;
}

cpu_event_wakes cpu_event_raise(cpu_event *event) {
  cpu_event_wakes wakes;
  wakes.sleepers = cpu_latch_raise(&event->state->latch);
  wakes.watchers = cpu_event_stir(event);
  wakes.watchers |= atomic_load(&event->watched) != 0 && atomic_exchange(&event->watched, 0) != 0;
  return wakes;
}

void cpu_event_wake(cpu_event *event, cpu_event_wakes wakes) {
  if (wakes.sleepers) cpu_futex_wake(&event->state->latch.set);
  if (wakes.watchers) cpu_engines_ring();
}

ze_kernel_timestamp_result_t cpu_event_timestamps(cpu_event *event) {
  uint64_t mask = cpu_tick_mask();
  ze_kernel_timestamp_data_t span = {
      .kernelStart = cpu_ticks(atomic_load_explicit(&event->state->start, memory_order_relaxed)) & mask,
      .kernelEnd = cpu_ticks(atomic_load_explicit(&event->state->end, memory_order_relaxed)) & mask,
  };
  return (ze_kernel_timestamp_result_t){.global = span, .context = span};
}

CPU_EXPORT ze_result_t zeEventDestroy(ze_event_handle_t handle) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(atomic_load(&event->users) != 0, ERROR_HANDLE_OBJECT_IN_USE);
  cpu_event_pool *pool = event->pool;
  cpu_context *context = event->context;
  cpu_event_set_point(event, NULL);
  cpu_failure_forget(event);
  cpu_delete(event);
  if (pool != NULL) atomic_fetch_sub(&pool->events, 1);
  else cpu_context_let_go(context);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventHostSignal(ze_event_handle_t handle) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_NULL_HANDLE);
  if (cpu_event_is_counter_based(event)) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event is counter-based");
  cpu_event_wake(event, cpu_event_raise(event));
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventHostReset(ze_event_handle_t handle) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_NULL_HANDLE);
  if (cpu_event_is_counter_based(event)) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event is counter-based");
  cpu_failure_forget(event);
  cpu_latch_clear(&event->state->latch);
  return ZE_RESULT_SUCCESS;
}

/* A query or wait begins: is another thread at the same, which a driver without a lock there does not survive? */
static bool is_asked_by_two(cpu_event *event) {
  if (!cpu_has_quirk(CPU_QUIRK_RACING_QUERIES) || cpu_event_is_counter_based(event)) return false;
  return atomic_fetch_add(&event->askers, 1) != 0;
}

static ze_result_t asked(cpu_event *event, bool raced, ze_result_t result) {
  if (cpu_has_quirk(CPU_QUIRK_RACING_QUERIES) && !cpu_event_is_counter_based(event))
    atomic_fetch_sub(&event->askers, 1);
  return raced ? cpu_quirk_race() : result;
}

static ze_result_t wait(cpu_event *event, cpu_event *point, uint64_t timeout) {
  bool outlasts = point != event && timeout != 0 && cpu_has_quirk(CPU_QUIRK_OUTLASTING_WAITS);
  ze_result_t result = cpu_latch_wait(&point->state->latch, outlasts ? CPU_NEVER : timeout);
  const cpu_context *context = cpu_event_context(event);
  while (outlasts && cpu_engines_work_for(context)) nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  return result == ZE_RESULT_SUCCESS ? cpu_event_failure(point) : result;
}

/* Before 25.40 Intel's driver flushed nothing in a wait for a counter-based event either. */
static bool wait_flushes(void) { return cpu_knobs.build == NULL || cpu_knobs.build->number >= CPU_NEO_25_40; }

CPU_EXPORT ze_result_t zeEventHostSynchronize(ze_event_handle_t handle, uint64_t timeout) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(cpu_event_is_captured(event, false), ERROR_GRAPH_CAPTURE_UNSUPPORTED);
  cpu_event *point = cpu_event_take(event);
  bool raced = is_asked_by_two(event);
  ze_result_t result = point == NULL ? ZE_RESULT_SUCCESS : wait(event, point, timeout);
  if (result == ZE_RESULT_SUCCESS && wait_flushes()) cpu_cache_flush();
  cpu_event_put_back(point);
  return asked(event, raced, result);
}

CPU_EXPORT ze_result_t zeEventQueryStatus(ze_event_handle_t handle) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(cpu_event_is_captured(event, true), ERROR_GRAPH_CAPTURE_UNSUPPORTED);
  cpu_event *point = cpu_event_take(event);
  bool raced = is_asked_by_two(event);
  bool set = point == NULL || cpu_latch_is_set(&point->state->latch);
  cpu_event_put_back(point);
  if (!set) cpu_latency(CPU_COST_QUERY_PENDING, 1);
  return asked(event, raced, set ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY);
}

static ze_result_t query_timestamp(cpu_event *event, ze_kernel_timestamp_result_t *result) {
  if (!event->timed) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event has no timestamps");
  cpu_event *point = cpu_event_take(event);
  bool set = point != NULL && cpu_latch_is_set(&point->state->latch);
  if (set) *result = cpu_event_timestamps(point);
  cpu_event_put_back(point);
  return set ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}

CPU_EXPORT ze_result_t zeEventQueryKernelTimestamp(ze_event_handle_t handle, ze_kernel_timestamp_result_t *result) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_NULL_HANDLE);
  return result == NULL ? CPU_REFUSED(ERROR_INVALID_NULL_POINTER, "result") : query_timestamp(event, result);
}

/* One packet an event, whatever the device. */
CPU_EXPORT ze_result_t zeEventQueryTimestampsExp(ze_event_handle_t handle, ze_device_handle_t device, uint32_t *count,
                                                 ze_kernel_timestamp_result_t *results) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL || cpu_cast(device, CPU_DEVICE) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = ZE_RESULT_SUCCESS;
  if (*count != 0 && results != NULL) result = query_timestamp(event, results);
  *count = 1;
  return result;
}

CPU_EXPORT ze_result_t zeEventGetEventPool(ze_event_handle_t handle, ze_event_pool_handle_t *pool) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pool == NULL, ERROR_INVALID_NULL_POINTER);
  if (event->pool == NULL)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event was made without a pool"); /* it was made without one */
  *pool = (ze_event_pool_handle_t)event->pool;
  return ZE_RESULT_SUCCESS;
}

CPU_GETTER(zeEventGetSignalScope, ze_event_handle_t, cpu_event, event, cpu_event_cast, ze_event_scope_flags_t, scope,
           event->signal_scope)
CPU_GETTER(zeEventGetWaitScope, ze_event_handle_t, cpu_event, event, cpu_event_cast, ze_event_scope_flags_t, scope,
           event->wait_scope)
