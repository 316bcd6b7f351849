/* SPDX-License-Identifier: Apache-2.0 */
/* event_pool.c: event pools: what their events have in common, and pools that processes share. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/gate.h"
#include "base/knobs.h"
#include "lists/engine.h"
#include "memory/share.h"

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
  if (context == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (desc == NULL || out == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (desc->flags > 0xf) return ZE_RESULT_ERROR_INVALID_ENUMERATION;
  if (desc->count == 0 || (devices == NULL && device_count > 0)) return ZE_RESULT_ERROR_INVALID_SIZE;
  ze_event_counter_based_flags_t counter_flags = 0;
  for (const ze_base_desc_t *d = desc->pNext; d != NULL; d = d->pNext) {
    if (d->stype != ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC || cpu_knobs.neo_22_43) continue;
    uint32_t flags = ((const ze_event_pool_counter_based_exp_desc_t *)d)->flags;
    if (flags > 0x3) return ZE_RESULT_ERROR_INVALID_ENUMERATION;
    if (desc->flags & ZE_EVENT_POOL_FLAG_IPC) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE; /* in this process only */
    counter_flags = flags == 0 ? ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE : flags; /* the two have the same bits */
  }
  for (uint32_t i = 0; i < device_count; i++) {
    cpu_device *device = cpu_device_cast(devices[i]);
    if (device == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!cpu_context_has(context, device)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  }
  cpu_event_pool *pool = make(context, desc->flags, desc->count);
  if (pool == NULL) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  pool->counter_flags = counter_flags;
  if ((desc->flags & ZE_EVENT_POOL_FLAG_IPC) &&
      !map_states(pool, cpu_share_make(desc->count * sizeof(cpu_event_state)))) {
    end(pool);
    return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  }
  *out = (ze_event_pool_handle_t)pool;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventCreate(ze_event_pool_handle_t handle, const ze_event_desc_t *desc,
                                     ze_event_handle_t *out) {
  CPU_ENTER();
  cpu_event_pool *pool = pool_cast(handle);
  if (pool == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (desc == NULL || out == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (desc->signal > 0x7 || desc->wait > 0x7) return ZE_RESULT_ERROR_INVALID_ENUMERATION;
  if (desc->index >= pool->count) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  uint32_t timed = ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP | ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP;
  cpu_event *event = cpu_event_new(desc->signal, desc->wait, (pool->flags & timed) != 0, pool->counter_flags);
  if (event == NULL) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
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
  if (pool == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (ipc == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (pool->shared == NULL || pool->imported) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  size_t size = pool->count * sizeof(cpu_event_state);
  return cpu_share_export(CPU_EVENT_POOL, pool->file, size, pool->flags, pool->count, ipc->data)
             ? ZE_RESULT_SUCCESS
             : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

CPU_EXPORT ze_result_t zeEventPoolPutIpcHandle(ze_context_handle_t context, ze_ipc_event_pool_handle_t ipc) {
  CPU_ENTER();
  (void)ipc; /* a handle holds nothing */
  return cpu_context_cast(context) == NULL ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventPoolOpenIpcHandle(ze_context_handle_t handle, ze_ipc_event_pool_handle_t ipc,
                                                ze_event_pool_handle_t *out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(handle);
  if (context == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (out == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  cpu_share_record record;
  int file = cpu_share_import(CPU_EVENT_POOL, ipc.data, &record);
  if (file < 0) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  if (record.size != record.count * sizeof(cpu_event_state) || record.flags > 0xf) {
    close(file);
    return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  }
  cpu_event_pool *pool = make(context, record.flags, record.count);
  if (pool == NULL) {
    close(file);
    return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  }
  pool->imported = true;
  if (!map_states(pool, file)) {
    end(pool);
    return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  }
  *out = (ze_event_pool_handle_t)pool;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t end_of_kind(ze_event_pool_handle_t handle, bool imported) {
  cpu_event_pool *pool = pool_cast(handle);
  if (pool == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (pool->imported != imported) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  if (atomic_load(&pool->events) != 0) return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
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

CPU_EXPORT ze_result_t zeEventPoolGetContextHandle(ze_event_pool_handle_t handle, ze_context_handle_t *context) {
  CPU_ENTER();
  cpu_event_pool *pool = pool_cast(handle);
  if (pool == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (context == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  *context = (ze_context_handle_t)pool->context;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventPoolGetFlags(ze_event_pool_handle_t handle, ze_event_pool_flags_t *flags) {
  CPU_ENTER();
  cpu_event_pool *pool = pool_cast(handle);
  if (pool == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (flags == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  *flags = pool->flags;
  return ZE_RESULT_SUCCESS;
}
