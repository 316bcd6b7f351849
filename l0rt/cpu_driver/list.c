/* list.c: making, closing, resetting and ending command lists, and how a command gets into one. */
#include "list.h"

#include <stdlib.h>
#include <string.h>

#include "fault.h"
#include "gate.h"
#include "knobs.h"
#include "queue.h"

static ze_result_t create(ze_context_handle_t context_handle, ze_device_handle_t device_handle, uint32_t ordinal,
                          uint32_t index, cpu_list **out) {
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  if (context == NULL || device == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (!cpu_context_has(context, device) || index >= cpu_group_queues(ordinal)) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  cpu_list *list = cpu_new(CPU_LIST);
  if (list == NULL) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  list->context = context;
  list->device = device;
  list->ordinal = ordinal;
  list->index = index;
  atomic_fetch_add(&context->children, 1);
  *out = list;
  return ZE_RESULT_SUCCESS;
}

static void end(cpu_list *list) {
  free(list->recorded);
  atomic_fetch_sub(&list->context->children, 1);
  cpu_delete(list);
}

CPU_EXPORT ze_result_t zeCommandListCreate(ze_context_handle_t context, ze_device_handle_t device,
                                           const ze_command_list_desc_t *desc, ze_command_list_handle_t *out) {
  CPU_ENTER();
  if (cpu_context_cast(context) == NULL || cpu_device_cast(device) == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (desc == NULL || out == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (desc->flags > 0xf && !cpu_knobs.neo_22_43) return ZE_RESULT_ERROR_INVALID_ENUMERATION;
  cpu_list *list;
  ze_result_t result = create(context, device, desc->commandQueueGroupOrdinal, 0, &list);
  if (result != ZE_RESULT_SUCCESS) return result;
  list->in_order = (desc->flags & ZE_COMMAND_LIST_FLAG_IN_ORDER) != 0 && !cpu_knobs.neo_22_43;
  *out = (ze_command_list_handle_t)list;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListCreateImmediate(ze_context_handle_t context, ze_device_handle_t device,
                                                    const ze_command_queue_desc_t *desc,
                                                    ze_command_list_handle_t *out) {
  CPU_ENTER();
  if (cpu_context_cast(context) == NULL || cpu_device_cast(device) == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (desc == NULL || out == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  ze_result_t result = cpu_queue_desc_check(desc);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_list *list;
  result = create(context, device, desc->ordinal, desc->index, &list);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_engine *engine = cpu_engine_get(list->device, desc->ordinal, desc->index);
  if (engine == NULL) {
    end(list);
    return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  }
  list->immediate = true;
  list->synchronous = desc->mode == ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
  list->in_order = cpu_queue_desc_in_order(desc);
  cpu_lane_init(&list->lane, engine, list->in_order);
  *out = (ze_command_list_handle_t)list;
  return ZE_RESULT_SUCCESS;
}

/* Is the device still at it? */
static bool busy(cpu_list *list) {
  if (list->immediate) return !cpu_lane_reached(&list->lane, cpu_lane_last(&list->lane));
  cpu_queue *queue = cpu_cast(list->queue, CPU_QUEUE); /* a queue that is gone was idle */
  return queue != NULL && !cpu_lane_reached(&queue->lane, list->last);
}

CPU_EXPORT ze_result_t zeCommandListDestroy(ze_command_list_handle_t handle) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (busy(list)) return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
  end(list);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListClose(ze_command_list_handle_t handle) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (list->immediate) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  list->closed = true;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListReset(ze_command_list_handle_t handle) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (list->immediate) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  if (busy(list)) return ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
  list->closed = false;
  list->count = 0;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t handle, uint64_t timeout) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  return list->immediate ? cpu_lane_wait(&list->lane, timeout) : ZE_RESULT_ERROR_INVALID_ARGUMENT;
}

CPU_EXPORT ze_result_t zeCommandListGetDeviceHandle(ze_command_list_handle_t handle, ze_device_handle_t *device) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (device == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  *device = (ze_device_handle_t)list->device;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListGetContextHandle(ze_command_list_handle_t handle, ze_context_handle_t *context) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (context == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  *context = (ze_context_handle_t)list->context;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListGetOrdinal(ze_command_list_handle_t handle, uint32_t *ordinal) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (ordinal == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  *ordinal = list->ordinal;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListImmediateGetIndex(ze_command_list_handle_t handle, uint32_t *index) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (index == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (!list->immediate) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  *index = list->index;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListIsImmediate(ze_command_list_handle_t handle, ze_bool_t *immediate) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  if (list == NULL) return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
  if (immediate == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  *immediate = list->immediate;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t record(cpu_list *list, const cpu_command *command) {
  if (list->count == list->capacity) {
    uint32_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
    cpu_command *recorded = realloc(list->recorded, capacity * sizeof(*recorded));
    if (recorded == NULL) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
    list->recorded = recorded;
    list->capacity = capacity;
  }
  list->recorded[list->count] = *command;
  list->recorded[list->count++].barrier |= list->in_order;
  return ZE_RESULT_SUCCESS;
}

/* Puts a command that waits for these events, as many as fit one. They are taken for the moment only: the command
 * holds them itself once it is put. */
static ze_result_t put_with_waits(cpu_list *list, cpu_command *command, uint32_t count, ze_event_handle_t *waits) {
  cpu_event *taken[CPU_WAITS];
  uint8_t n = 0;
  for (uint32_t i = 0; i < count; i++) {
    cpu_event *event = cpu_event_cast(waits[i]);
    if (event != NULL && (taken[n] = cpu_event_take(event)) != NULL) n++;
  }
  memcpy(command->waits, taken, n * sizeof(taken[0]));
  command->wait_count = n;
  ze_result_t result = list->immediate ? cpu_lane_push(&list->lane, command) : record(list, command);
  for (uint8_t i = 0; i < n; i++) cpu_event_put_back(taken[i]);
  return result;
}

/* All events are checked before anything is appended. */
static ze_result_t check_event(const cpu_list *list, ze_event_handle_t handle, bool signal) {
  const cpu_event *event = cpu_event_cast(handle);
  if (event == NULL) return ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT;
  if (!cpu_event_is_counter_based(event)) return ZE_RESULT_SUCCESS;
  if (!list->immediate) return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;
  return signal && !list->in_order ? ZE_RESULT_ERROR_INVALID_ARGUMENT : ZE_RESULT_SUCCESS;
}

static ze_result_t put_all(cpu_list *list, cpu_command *command, uint32_t wait_count, ze_event_handle_t *waits) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (; wait_count > CPU_WAITS && result == ZE_RESULT_SUCCESS; wait_count -= CPU_WAITS, waits += CPU_WAITS) {
    cpu_command wait = {.op = CPU_OP_NONE};
    result = put_with_waits(list, &wait, CPU_WAITS, waits);
  }
  return result == ZE_RESULT_SUCCESS ? put_with_waits(list, command, wait_count, waits) : result;
}

ze_result_t cpu_list_append(cpu_list *list, cpu_command *command, ze_event_handle_t signal_handle, uint32_t wait_count,
                            ze_event_handle_t *waits) {
  if (waits == NULL && wait_count > 0) return ZE_RESULT_ERROR_INVALID_SIZE;
  if (list->closed) return ZE_RESULT_ERROR_INVALID_ARGUMENT;
  ze_result_t result = signal_handle == NULL ? ZE_RESULT_SUCCESS : check_event(list, signal_handle, true);
  for (uint32_t i = 0; i < wait_count && result == ZE_RESULT_SUCCESS; i++) result = check_event(list, waits[i], false);
  if (result != ZE_RESULT_SUCCESS) return result;
  command->hangs = cpu_fault_any() && cpu_fault_take() == CPU_FAULT_HANG;
  cpu_event *signal = signal_handle == NULL ? NULL : cpu_event_cast(signal_handle);
  cpu_event *point = NULL;
  if (signal != NULL && cpu_event_is_counter_based(signal)) {
    if ((point = cpu_event_new_point(signal)) == NULL) return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  }
  command->signal = point != NULL ? point : signal;
  result = put_all(list, command, wait_count, waits);
  if (point != NULL) {
    if (result == ZE_RESULT_SUCCESS) {
      cpu_event_set_point(signal, point);
    } else {
      cpu_event_let_go(point);
    }
  }
  if (!list->immediate) return result;
  cpu_engine_ring(list->lane.engine);
  return result == ZE_RESULT_SUCCESS && list->synchronous ? cpu_lane_wait(&list->lane, CPU_NEVER) : result;
}
