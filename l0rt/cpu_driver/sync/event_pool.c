/* SPDX-License-Identifier: Apache-2.0 */
/* event_pool.c: event pools: what their events have in common, and pools that processes share. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/gate.h"
#include "base/knobs.h"
#include "lists/work.h"
#include "memory/share.h"
#include "sync/event.h"

static cpu_event_pool *pool_cast(ze_event_pool_handle_t handle) { return cpu_cast(handle, CPU_EVENT_POOL); }

static cpu_event_pool *make(cpu_context *context, ze_event_pool_flags_t flags, uint32_t count) {
  cpu_event_pool *pool = cpu_new(CPU_EVENT_POOL);
  if (pool == NULL) return NULL;
  pool->context = context;
  pool->flags = flags;
  pool->count = count;
  pool->file = -1;
  cpu_context_hold(context);
  return pool;
}

/* An engine may still read an event that it has just signalled, so the memory must stay valid. */
static void end(cpu_event_pool *pool) {
  if (pool->shared != NULL) {
    cpu_engines_hold(0, 0);
    munmap(pool->shared, pool->count * sizeof(cpu_event_state));
    cpu_engines_go();
  }
  if (pool->file >= 0) close(pool->file);
  cpu_context *context = pool->context;
  cpu_delete(pool);
  cpu_context_let_go(context);
}

/* The pool takes the file over, whatever comes of it. */
static bool map_states(cpu_event_pool *pool, int file) {
  pool->file = file;
  if (file < 0) return false;
  size_t size = pool->count * sizeof(cpu_event_state);
  void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  pool->shared = shared == MAP_FAILED ? NULL : shared;
  return pool->shared != NULL;
}

CPU_EXPORT ze_result_t zeEventPoolCreate(ze_context_handle_t context_handle, const ze_event_pool_desc_t *desc,
                                         uint32_t device_count, ze_device_handle_t *devices,
                                         ze_event_pool_handle_t *out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0xf, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF(desc->count == 0 || (devices == NULL && device_count > 0), ERROR_INVALID_SIZE);
  ze_event_counter_based_flags_t counter_flags = 0;
  for (const ze_base_desc_t *d = desc->pNext; d != NULL; d = d->pNext) {
    if (d->stype != ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC || cpu_knobs.neo_22_43) continue;
    uint32_t flags = ((const ze_event_pool_counter_based_exp_desc_t *)d)->flags;
    CPU_REFUSE_IF(flags > 0x3, ERROR_INVALID_ENUMERATION);
    CPU_REFUSE_IF(desc->flags & ZE_EVENT_POOL_FLAG_IPC, ERROR_UNSUPPORTED_FEATURE); /* in this process only */
    counter_flags = flags == 0 ? ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE : flags; /* the two have the same bits */
  }
  for (uint32_t i = 0; i < device_count; i++) {
    cpu_device *device = cpu_device_cast(devices[i]);
    CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_HANDLE);
    if (!cpu_context_has(context, device))
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
  }
  cpu_event_pool *pool = make(context, desc->flags, desc->count);
  CPU_REFUSE_IF(pool == NULL, ERROR_OUT_OF_HOST_MEMORY);
  pool->counter_flags = counter_flags;
  if ((desc->flags & ZE_EVENT_POOL_FLAG_IPC) &&
      !map_states(pool, cpu_share_make(desc->count * sizeof(cpu_event_state), false))) {
    end(pool);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  *out = (ze_event_pool_handle_t)pool;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventCreate(ze_event_pool_handle_t handle, const ze_event_desc_t *desc,
                                     ze_event_handle_t *out) {
  CPU_ENTER();
  cpu_event_pool *pool = pool_cast(handle);
  CPU_REFUSE_IF(pool == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->signal > 0x7 || desc->wait > 0x7, ERROR_INVALID_ENUMERATION);
  if (desc->index >= pool->count) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the pool has fewer events");
  uint32_t timed = ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP | ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP;
  cpu_event *event = cpu_event_new(desc->signal, desc->wait, (pool->flags & timed) != 0, pool->counter_flags);
  CPU_REFUSE_IF(event == NULL, ERROR_OUT_OF_HOST_MEMORY);
  event->pool = pool;
  if (pool->shared != NULL) event->state = &pool->shared[desc->index];
  if (pool->shared != NULL && !pool->imported) cpu_latch_clear(&event->state->latch);
  atomic_fetch_add(&pool->events, 1);
  *out = (ze_event_handle_t)event;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventPoolGetIpcHandle(ze_event_pool_handle_t handle, ze_ipc_event_pool_handle_t *ipc) {
  CPU_ENTER();
  cpu_event_pool *pool = pool_cast(handle);
  CPU_REFUSE_IF(pool == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(ipc == NULL, ERROR_INVALID_NULL_POINTER);
  if (pool->shared == NULL || pool->imported)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the pool was not made to be shared, or is imported");
  size_t size = pool->count * sizeof(cpu_event_state);
  return cpu_share_export(CPU_EVENT_POOL, pool->file, size, pool->flags, pool->count, ipc->data)
             ? ZE_RESULT_SUCCESS
             : CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
}

CPU_EXPORT ze_result_t zeEventPoolPutIpcHandle(ze_context_handle_t context, ze_ipc_event_pool_handle_t ipc) {
  CPU_ENTER();
  (void)ipc; /* a handle holds nothing */
  return cpu_context_cast(context) == NULL ? CPU_REFUSED(ERROR_INVALID_NULL_HANDLE, NULL) : ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventPoolOpenIpcHandle(ze_context_handle_t handle, ze_ipc_event_pool_handle_t ipc,
                                                ze_event_pool_handle_t *out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_share_record record;
  int file = cpu_share_import(CPU_EVENT_POOL, ipc.data, &record);
  if (file < 0) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the handle is none that another process has exported");
  if (record.size != record.count * sizeof(cpu_event_state) || record.flags > 0xf) {
    close(file);
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the handle is none of an event pool");
  }
  cpu_event_pool *pool = make(context, record.flags, record.count);
  if (pool == NULL) {
    close(file);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  pool->imported = true;
  if (!map_states(pool, file)) {
    end(pool);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  *out = (ze_event_pool_handle_t)pool;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t end_of_kind(ze_event_pool_handle_t handle, bool imported) {
  cpu_event_pool *pool = pool_cast(handle);
  CPU_REFUSE_IF(pool == NULL, ERROR_INVALID_NULL_HANDLE);
  if (pool->imported != imported)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "an imported pool is closed, and another one destroyed");
  CPU_REFUSE_IF(atomic_load(&pool->events) != 0, ERROR_HANDLE_OBJECT_IN_USE);
  end(pool);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t handle) {
  CPU_ENTER();
  return end_of_kind(handle, false);
}

CPU_EXPORT ze_result_t zeEventPoolCloseIpcHandle(ze_event_pool_handle_t handle) {
  CPU_ENTER();
  return end_of_kind(handle, true);
}

CPU_GETTER(zeEventPoolGetContextHandle, ze_event_pool_handle_t, cpu_event_pool, pool, pool_cast, ze_context_handle_t,
           context, pool->context)
CPU_GETTER(zeEventPoolGetFlags, ze_event_pool_handle_t, cpu_event_pool, pool, pool_cast, ze_event_pool_flags_t, flags,
           pool->flags)
