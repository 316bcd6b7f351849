/* SPDX-License-Identifier: Apache-2.0 */
/* event_counter.c: counter-based events made without a pool. */
#include "event.h"
#include "gate.h"

enum {
  WHERE = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE | ZE_EVENT_COUNTER_BASED_FLAG_NON_IMMEDIATE,
  TIMED = ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP | ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP,
  NOT_DONE = ZE_EVENT_COUNTER_BASED_FLAG_IPC,
};

/* Counters in the program's own memory: to ignore these would leave the program waiting. */
static bool wants_own_counter(const ze_base_desc_t *next) {
  for (; next != NULL; next = next->pNext)
    if (next->stype == ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_SYNC_ALLOCATION_DESC ||
        next->stype == ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_EXTERNAL_AGGREGATE_STORAGE_DESC)
      return true;
  return false;
}

CPU_EXPORT ze_result_t zeEventCounterBasedCreate(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
                                                 const ze_event_counter_based_desc_t *desc, ze_event_handle_t *out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0x7f || desc->signal > 0x7 || desc->wait > 0x7, ERROR_INVALID_ENUMERATION);
  if ((desc->flags & TIMED) == TIMED)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT,
                       "kernel timestamps are mapped or not, and not both"); /* one of the two */
  if (!cpu_context_has(context, device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
  CPU_REFUSE_IF((desc->flags & NOT_DONE) != 0 || wants_own_counter(desc->pNext), ERROR_UNSUPPORTED_FEATURE);
  uint32_t where = (desc->flags & WHERE) != 0 ? 0 : WHERE; /* unless told, in any list */
  cpu_event *event = cpu_event_new(desc->signal, desc->wait, (desc->flags & TIMED) != 0, desc->flags | where);
  CPU_REFUSE_IF(event == NULL, ERROR_OUT_OF_HOST_MEMORY);
  event->context = context;
  cpu_context_hold(context);
  *out = (ze_event_handle_t)event;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeEventGetCounterBasedFlags(ze_event_handle_t handle, ze_event_counter_based_flags_t *flags) {
  CPU_ENTER();
  cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(flags == NULL, ERROR_INVALID_NULL_POINTER);
  if (!cpu_event_is_counter_based(event)) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event is not counter-based");
  *flags = event->counter_flags;
  return ZE_RESULT_SUCCESS;
}
