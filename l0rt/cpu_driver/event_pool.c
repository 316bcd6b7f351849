/* event_pool.c: event pools: what their events have in common. */
#include "event.h"
#include "gate.h"

static cpu_event_pool *pool_cast(ze_event_pool_handle_t handle) { return cpu_cast(handle, CPU_EVENT_POOL); }

CPU_EXPORT ze_result_t zeEventPoolCreate(ze_context_handle_t context_handle, const ze_event_pool_desc_t *desc,
                                         uint32_t device_count, ze_device_handle_t *devices,
                                         ze_event_pool_handle_t *out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  if (context == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (desc == NULL || out == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (desc->flags > 0xf) return ZE_RESULT_ERROR_INVALID_ENUMERATION;
  if (desc->count == 0 || (devices == NULL && device_count > 0)) return ZE_RESULT_ERROR_INVALID_SIZE;
  if (desc->flags & ZE_EVENT_POOL_FLAG_IPC) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  for (const ze_base_desc_t *d = desc->pNext; d != NULL; d = d->pNext)
    if (d->stype == ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  for (uint32_t i = 0; i < device_count; i++) {
    cpu_device *device = cpu_device_cast(devices[i]);
    if (device == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
    if (!cpu_context_has(context, device)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  }
  cpu_event_pool *pool = cpu_new(CPU_EVENT_POOL);
  if (pool == NULL) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  pool->context = context;
  pool->flags = desc->flags;
  pool->count = desc->count;
  atomic_fetch_add(&context->children, 1);
  *out = (ze_event_pool_handle_t)pool;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t handle) {
  CPU_ENTER();
  cpu_event_pool *pool = pool_cast(handle);
  if (pool == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (atomic_load(&pool->events) != 0) return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
  atomic_fetch_sub(&pool->context->children, 1);
  cpu_delete(pool);
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
  cpu_event *event = cpu_new(CPU_EVENT);
  if (event == NULL) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  event->pool = pool;
  event->signal_scope = desc->signal;
  event->wait_scope = desc->wait;
  event->timed = (pool->flags & (ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP | ZE_EVENT_POOL_FLAG_KERNEL_MAPPED_TIMESTAMP)) != 0;
  atomic_fetch_add(&pool->events, 1);
  *out = (ze_event_handle_t)event;
  return ZE_RESULT_SUCCESS;
}

/* Between processes: not done yet. */
CPU_EXPORT ze_result_t zeEventPoolGetIpcHandle(ze_event_pool_handle_t handle, ze_ipc_event_pool_handle_t *ipc) {
  CPU_ENTER();
  if (pool_cast(handle) == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  return ipc == NULL ? ZE_RESULT_ERROR_INVALID_NULL_POINTER : ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
}

CPU_EXPORT ze_result_t zeEventPoolOpenIpcHandle(ze_context_handle_t handle, ze_ipc_event_pool_handle_t ipc,
                                                ze_event_pool_handle_t *out) {
  CPU_ENTER();
  (void)ipc;
  if (cpu_context_cast(handle) == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  return out == NULL ? ZE_RESULT_ERROR_INVALID_NULL_POINTER : ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
}

CPU_EXPORT ze_result_t zeEventPoolCloseIpcHandle(ze_event_pool_handle_t handle) {
  CPU_ENTER();
  return pool_cast(handle) == NULL ? ZE_RESULT_ERROR_INVALID_NULL_HANDLE : ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
}
