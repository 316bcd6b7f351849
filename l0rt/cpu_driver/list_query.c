/* SPDX-License-Identifier: Apache-2.0 */
/* list_query.c: what a command list says of itself. */
#include "gate.h"
#include "list.h"

CPU_EXPORT ze_result_t zeCommandListGetDeviceHandle(ze_command_list_handle_t handle, ze_device_handle_t *device) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(device == NULL, ERROR_INVALID_NULL_POINTER);
  *device = (ze_device_handle_t)list->device;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListGetContextHandle(ze_command_list_handle_t handle, ze_context_handle_t *context) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_POINTER);
  *context = (ze_context_handle_t)list->context;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListGetOrdinal(ze_command_list_handle_t handle, uint32_t *ordinal) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(ordinal == NULL, ERROR_INVALID_NULL_POINTER);
  *ordinal = list->ordinal;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListImmediateGetIndex(ze_command_list_handle_t handle, uint32_t *index) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(index == NULL, ERROR_INVALID_NULL_POINTER);
  if (!list->immediate) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is no immediate one");
  *index = list->index;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListIsImmediate(ze_command_list_handle_t handle, ze_bool_t *immediate) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(immediate == NULL, ERROR_INVALID_NULL_POINTER);
  *immediate = list->immediate;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListGetFlags(ze_command_list_handle_t handle, ze_command_list_flags_t *flags) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(flags == NULL, ERROR_INVALID_NULL_POINTER);
  if (list->immediate) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is an immediate one");
  *flags = list->flags;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListImmediateGetFlags(ze_command_list_handle_t handle,
                                                      ze_command_queue_flags_t *flags) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(flags == NULL, ERROR_INVALID_NULL_POINTER);
  if (!list->immediate) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is no immediate one");
  *flags = list->flags;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListImmediateGetMode(ze_command_list_handle_t handle, ze_command_queue_mode_t *mode) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(mode == NULL, ERROR_INVALID_NULL_POINTER);
  if (!list->immediate) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is no immediate one");
  *mode = (ze_command_queue_mode_t)list->mode;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListImmediateGetPriority(ze_command_list_handle_t handle,
                                                         ze_command_queue_priority_t *priority) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(priority == NULL, ERROR_INVALID_NULL_POINTER);
  if (!list->immediate) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is no immediate one");
  *priority = (ze_command_queue_priority_t)list->priority;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListIsMutableExp(ze_command_list_handle_t handle, ze_bool_t *is_mutable) {
  CPU_ENTER();
  const cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(is_mutable == NULL, ERROR_INVALID_NULL_POINTER);
  *is_mutable = list->mutations != NULL;
  return ZE_RESULT_SUCCESS;
}
