/* SPDX-License-Identifier: Apache-2.0 */
/* list.c: making, closing, resetting and ending command lists, and how a command gets into one. */
#include "lists/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "base/knobs.h"
#include "graphs/capture.h"
#include "graphs/mutation.h"
#include "lists/launch.h"
#include "lists/queue.h"
#include "lists/submit.h"
#include "memory/usm.h"
#include "simulate/fault.h"
#include "simulate/latency.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

static ze_result_t create(ze_context_handle_t context_handle, ze_device_handle_t device_handle, uint32_t ordinal,
                          uint32_t index, cpu_list **out) {
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  if (!cpu_context_has(context, device) || index >= cpu_group_queues(ordinal))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context, or has no queue of this index");
  cpu_list *list = cpu_new(CPU_LIST);
  CPU_REFUSE_IF(list == NULL, ERROR_OUT_OF_HOST_MEMORY);
  list->context = context;
  list->device = device;
  list->ordinal = ordinal;
  list->index = index;
  cpu_context_hold(context);
  *out = list;
  return ZE_RESULT_SUCCESS;
}

/* Drops what is recorded. */
static void forget(cpu_list *list) {
  for (uint32_t i = 0; i < list->count; i++)
    if (list->recorded[i].op == CPU_OP_LAUNCH) cpu_launch_let_go(list->recorded[i].launch.launch);
  list->count = 0;
  if (list->mutations != NULL) cpu_mutations_reset(list->mutations);
}

void cpu_list_end(cpu_list *list) {
  cpu_context *context = list->context;
  forget(list);
  free(list->recorded);
  cpu_mutations_free(list->mutations);
  if (list->immediate) cpu_failure_end(list->fifo.serial);
  cpu_delete(list);
  cpu_context_let_go(context);
}

/* Is the list to be mutable? */
static ze_result_t read_chain(const ze_base_desc_t *d, bool *is_mutable) {
  *is_mutable = false;
  for (; d != NULL && !cpu_knobs.neo_22_43; d = d->pNext) {
    if (d->stype != ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC) continue;
    CPU_REFUSE_IF(((const ze_mutable_command_list_exp_desc_t *)d)->flags > 0x1, ERROR_INVALID_ENUMERATION);
    *is_mutable = true;
  }
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListCreate(ze_context_handle_t context, ze_device_handle_t device,
                                           const ze_command_list_desc_t *desc, ze_command_list_handle_t *out) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL || cpu_device_cast(device) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0x3f && !cpu_knobs.neo_22_43, ERROR_INVALID_ENUMERATION);
  bool is_mutable;
  cpu_list *list;
  ze_result_t result = read_chain(desc->pNext, &is_mutable);
  if (result == ZE_RESULT_SUCCESS) result = create(context, device, desc->commandQueueGroupOrdinal, 0, &list);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (is_mutable && (list->mutations = cpu_mutations_new()) == NULL) {
    cpu_list_end(list);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  list->flags = desc->flags;
  list->in_order = (desc->flags & ZE_COMMAND_LIST_FLAG_IN_ORDER) != 0 && !cpu_knobs.neo_22_43 &&
                   !cpu_has_quirk(CPU_QUIRK_UNORDERED_LISTS);
  *out = (ze_command_list_handle_t)list;
  return ZE_RESULT_SUCCESS;
}

static bool make_immediate(cpu_list *list, ze_command_queue_priority_t priority, bool in_order) {
  cpu_engine *engine = cpu_engine_get(list->device, list->ordinal, list->index);
  if (engine == NULL) return false;
  list->immediate = true;
  list->priority = (uint8_t)priority;
  list->in_order = in_order;
  cpu_fifo_init(&list->fifo, engine, list->context, priority, in_order);
  return true;
}

cpu_list *cpu_list_immediate(cpu_context *context, cpu_device *device, uint32_t ordinal, uint32_t index,
                             ze_command_queue_priority_t priority, bool in_order) {
  cpu_list *list;
  ze_result_t result = create((ze_context_handle_t)context, (ze_device_handle_t)device, ordinal, index, &list);
  if (result != ZE_RESULT_SUCCESS) return NULL;
  if (make_immediate(list, priority, in_order)) return list;
  cpu_list_end(list);
  return NULL;
}

CPU_EXPORT ze_result_t zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device,
                                                    const ze_command_queue_desc_t *desc,
                                                    ze_command_list_handle_t *out) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL || cpu_device_cast(device) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = cpu_queue_desc_check(desc);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_list *list;
  result = create(context, device, desc->ordinal, desc->index, &list);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (!make_immediate(list, desc->priority, cpu_queue_desc_in_order(desc))) {
    cpu_list_end(list);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  list->flags = desc->flags;
  list->mode = (uint8_t)desc->mode;
  list->synchronous = desc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
  *out = (ze_command_list_handle_t)list;
  return ZE_RESULT_SUCCESS;
}

/* The queue that executed a regular list last; NULL if it was destroyed: then it was idle, even if another queue
 * has its
 * address now. */
static cpu_fifo *place_of(const cpu_list *list) {
  cpu_queue *queue = cpu_cast(list->place, CPU_QUEUE);
  cpu_list *other = cpu_cast(list->place, CPU_LIST);
  cpu_fifo *fifo = queue != NULL ? &queue->fifo : other != NULL ? &other->fifo : NULL;
  return fifo != NULL && fifo->serial == list->serial ? fifo : NULL;
}

bool cpu_list_is_closed(const cpu_list *list) {
  return list->closed && (list->mutations == NULL || !list->mutations->updated);
}

bool cpu_list_is_busy(cpu_list *list) {
  if (list->immediate) return !cpu_fifo_reached(&list->fifo, cpu_fifo_last(&list->fifo));
  cpu_fifo *fifo = place_of(list);
  return fifo != NULL && !cpu_fifo_reached(fifo, list->last);
}

/* A kernel that is running for a list which is to go is ended, and those behind it; other work keeps the list. */
static bool stopped(cpu_list *list) {
  if (list->immediate) return cpu_fifo_stop(&list->fifo, 1, cpu_fifo_last(&list->fifo));
  cpu_fifo *fifo = place_of(list);
  return fifo == NULL || cpu_fifo_stop(fifo, list->last - list->count + 1, list->last);
}

CPU_EXPORT ze_result_t zeCommandListDestroy(ze_command_list_handle_t handle) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(cpu_list_is_busy(list) && !stopped(list), ERROR_HANDLE_OBJECT_IN_USE);
  cpu_capture_forget(list);
  cpu_list_end(list);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListClose(ze_command_list_handle_t handle) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(cpu_capture_has(list), ERROR_GRAPH_CAPTURE_UNSUPPORTED);
  if (list->mutations != NULL && list->mutations->awaiting != 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a command still waits for arguments, or for a shape");
  if (list->mutations != NULL) list->mutations->updated = false;
  list->closed = true; /* an immediate one, too, takes nothing then before it is reset */
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListReset(ze_command_list_handle_t handle) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(cpu_capture_has(list), ERROR_GRAPH_CAPTURE_UNSUPPORTED);
  CPU_REFUSE_IF(cpu_list_is_busy(list), ERROR_HANDLE_OBJECT_IN_USE);
  list->closed = false;
  forget(list);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t handle, uint64_t timeout) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(cpu_capture_has(list), ERROR_GRAPH_CAPTURE_UNSUPPORTED);
  return list->immediate ? cpu_fifo_wait(&list->fifo, timeout)
                         : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is no immediate one");
}

static ze_result_t record(cpu_list *list, const cpu_command *command) {
  if (list->count == list->capacity) {
    uint32_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
    cpu_command *recorded = realloc(list->recorded, capacity * sizeof(*recorded));
    CPU_REFUSE_IF(recorded == NULL, ERROR_OUT_OF_HOST_MEMORY);
    list->recorded = recorded;
    list->capacity = capacity;
  }
  list->recorded[list->count] = *command;
  if (command->op == CPU_OP_LAUNCH) cpu_launch_hold(command->launch.launch);
  list->recorded[list->count++].barrier |= list->in_order;
  return ZE_RESULT_SUCCESS;
}

/* Puts a command that waits for these events, as many as fit one. */
static ze_result_t put(cpu_list *list, cpu_command *command, uint32_t count, ze_event_handle_t *waits) {
  command->wait_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    cpu_event *event = cpu_event_cast(waits[i]);
    if (event != NULL) command->waits[command->wait_count++] = event;
  }
  return list->immediate ? cpu_submit(&list->fifo, command) : record(list, command);
}

static ze_result_t check_event(const cpu_list *list, ze_event_handle_t handle, bool signal) {
  const cpu_event *event = cpu_event_cast(handle);
  CPU_REFUSE_IF(event == NULL, ERROR_INVALID_SYNCHRONIZATION_OBJECT);
  if (!cpu_event_is_counter_based(event)) return ZE_RESULT_SUCCESS;
  uint32_t needed = list->immediate ? ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE : ZE_EVENT_COUNTER_BASED_FLAG_NON_IMMEDIATE;
  if ((event->counter_flags & needed) == 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event was made for another kind of list");
  return signal && !list->in_order
             ? CPU_REFUSED(ERROR_INVALID_ARGUMENT,
                           "the lists can signal an event at their end only if this list is in order")
             : ZE_RESULT_SUCCESS;
}

ze_result_t cpu_list_check(const cpu_list *list, ze_event_handle_t signal, uint32_t wait_count,
                           ze_event_handle_t *waits) {
  CPU_REFUSE_IF(waits == NULL && wait_count > 0, ERROR_INVALID_SIZE);
  if (list->closed) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is closed");
  ze_result_t result = signal == NULL ? ZE_RESULT_SUCCESS : check_event(list, signal, true);
  for (uint32_t i = 0; i < wait_count && result == ZE_RESULT_SUCCESS; i++) result = check_event(list, waits[i], false);
  return result;
}

static ze_result_t put_all(cpu_list *list, cpu_command *command, uint32_t wait_count, ze_event_handle_t *waits) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (; wait_count > CPU_WAITS && result == ZE_RESULT_SUCCESS; wait_count -= CPU_WAITS, waits += CPU_WAITS) {
    cpu_command wait = {.op = CPU_OP_NONE};
    result = put(list, &wait, CPU_WAITS, waits);
  }
  return result == ZE_RESULT_SUCCESS ? put(list, command, wait_count, waits) : result;
}

/* What an append costs the host, but for what a copy's own checks do. */
static void pay(const cpu_list *list, const cpu_command *command, ze_event_handle_t signal) {
  cpu_latency_append();
  if (command->op == CPU_OP_LAUNCH) cpu_latency(CPU_COST_APPEND_LAUNCH, 1);
  if (!list->immediate) return;
  double pieces = atomic_load(&list->device->pieces);
  cpu_latency(CPU_COST_SUBMIT, 1);
  cpu_latency(CPU_COST_SUBMIT_PER_PIECE, pieces * pieces);
  const void *last = atomic_exchange(&list->fifo.engine->last_list, list);
  if (last != NULL && last != list) cpu_latency(CPU_COST_LIST_SWITCH, 1);
  /* A copy, a fill or a launch signals with its own submission. */
  if (signal == NULL || (command->op != CPU_OP_NONE && command->op != CPU_OP_CLOCK)) return;
  const cpu_event *event = cpu_event_cast(signal);
  cpu_latency(!cpu_event_is_counter_based(event)                      ? CPU_COST_RECORD_PLAIN
              : (event->signal_scope & ZE_EVENT_SCOPE_FLAG_HOST) != 0 ? CPU_COST_RECORD_HOST
                                                                      : CPU_COST_RECORD_SCOPE0,
              1);
}

ze_result_t cpu_list_append(cpu_list *list, cpu_command *command, ze_event_handle_t signal, uint32_t wait_count,
                            ze_event_handle_t *waits) {
  ze_result_t result = cpu_list_check(list, signal, wait_count, waits);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(CPU_UNLIKELY(cpu_usm_is_over(list->device)), ERROR_OUT_OF_DEVICE_MEMORY);
  if (cpu_capture_any()) {
    bool captured;
    result = cpu_capture_append(list, command, signal, wait_count, waits, &captured);
    if (result != ZE_RESULT_SUCCESS || captured) return result;
  }
  if (CPU_UNLIKELY(cpu_latency_on)) pay(list, command, signal);
  command->hangs = cpu_fault_any() && cpu_fault_take() == CPU_FAULT_HANG;
  command->signal = signal == NULL ? NULL : cpu_event_cast(signal);
  if (list->mutations != NULL) result = cpu_mutations_bind(list, command, signal, wait_count, waits);
  if (result != ZE_RESULT_SUCCESS) return result;
  result = put_all(list, command, wait_count, waits);
  if (!list->immediate) return result;
  cpu_engine_ring(list->fifo.engine);
  return result == ZE_RESULT_SUCCESS && list->synchronous ? cpu_fifo_wait(&list->fifo, CPU_NEVER) : result;
}

/* A copy of a closed list, for those made to be copied. */
CPU_EXPORT ze_result_t zeCommandListCreateCloneExp(ze_command_list_handle_t handle, ze_command_list_handle_t *out) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  if (list->immediate || !cpu_list_is_closed(list) || (list->flags & ZE_COMMAND_LIST_FLAG_EXP_CLONEABLE) == 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "only a closed, regular list that was made cloneable can be cloned");
  cpu_list *clone;
  ze_result_t result = create((ze_context_handle_t)list->context, (ze_device_handle_t)list->device, list->ordinal, 0,
                              &clone);
  if (result != ZE_RESULT_SUCCESS) return result;
  clone->flags = list->flags;
  clone->in_order = list->in_order;
  if (list->mutations != NULL && (clone->mutations = cpu_mutations_copy(list->mutations)) == NULL)
    result = CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  for (uint32_t i = 0; i < list->count && result == ZE_RESULT_SUCCESS; i++) result = record(clone, &list->recorded[i]);
  if (result != ZE_RESULT_SUCCESS) {
    cpu_list_end(clone);
    return result;
  }
  clone->closed = true;
  *out = (ze_command_list_handle_t)clone;
  return ZE_RESULT_SUCCESS;
}
