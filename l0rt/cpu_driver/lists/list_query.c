/* SPDX-License-Identifier: Apache-2.0 */
/* list_query.c: what a command list says of itself. */
#include "base/gate.h"
#include "lists/list.h"

CPU_GETTER(zeCommandListGetDeviceHandle, ze_command_list_handle_t, cpu_list, list, cpu_list_cast, ze_device_handle_t,
           device, list->device)
CPU_GETTER(zeCommandListGetContextHandle, ze_command_list_handle_t, cpu_list, list, cpu_list_cast, ze_context_handle_t,
           context, list->context)
CPU_GETTER(zeCommandListGetOrdinal, ze_command_list_handle_t, cpu_list, list, cpu_list_cast, uint32_t, ordinal,
           list->ordinal)
CPU_GETTER_IF(zeCommandListImmediateGetIndex, ze_command_list_handle_t, cpu_list, list, cpu_list_cast, uint32_t, index,
              list->index, list->immediate, "the list is no immediate one")
CPU_GETTER(zeCommandListIsImmediate, ze_command_list_handle_t, cpu_list, list, cpu_list_cast, ze_bool_t, immediate,
           list->immediate)
CPU_GETTER_IF(zeCommandListGetFlags, ze_command_list_handle_t, cpu_list, list, cpu_list_cast, ze_command_list_flags_t,
              flags, list->flags, !list->immediate, "the list is an immediate one")
CPU_GETTER_IF(zeCommandListImmediateGetFlags, ze_command_list_handle_t, cpu_list, list, cpu_list_cast,
              ze_command_queue_flags_t, flags, list->flags, list->immediate, "the list is no immediate one")
CPU_GETTER_IF(zeCommandListImmediateGetMode, ze_command_list_handle_t, cpu_list, list, cpu_list_cast,
              ze_command_queue_mode_t, mode, list->mode, list->immediate, "the list is no immediate one")
CPU_GETTER_IF(zeCommandListImmediateGetPriority, ze_command_list_handle_t, cpu_list, list, cpu_list_cast,
              ze_command_queue_priority_t, priority, list->priority, list->immediate, "the list is no immediate one")
CPU_GETTER(zeCommandListIsMutableExp, ze_command_list_handle_t, cpu_list, list, cpu_list_cast, ze_bool_t, is_mutable,
           list->mutations != NULL)
