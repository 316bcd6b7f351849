/* SPDX-License-Identifier: Apache-2.0 */
/* list_create.c: making, cloning, closing, resetting and ending command lists. */
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

/* A kernel that is running for a list which is to go is ended, and those behind it; other work keeps the list. */
static bool stopped(cpu_list *list) {
  if (list->immediate) return cpu_fifo_stop(&list->fifo, 1, cpu_fifo_last(&list->fifo));
  cpu_fifo *fifo = cpu_list_place(list);
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
  if (list->immediate && cpu_list_skips(list)) return cpu_fifo_wait_to(&list->fifo, list->counted, timeout);
  return list->immediate ? cpu_fifo_wait(&list->fifo, timeout)
                         : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is no immediate one");
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
  for (uint32_t i = 0; i < list->count && result == ZE_RESULT_SUCCESS; i++)
    result = cpu_list_record(clone, &list->recorded[i]);
  if (result != ZE_RESULT_SUCCESS) {
    cpu_list_end(clone);
    return result;
  }
  clone->closed = true;
  *out = (ze_command_list_handle_t)clone;
  return ZE_RESULT_SUCCESS;
}
