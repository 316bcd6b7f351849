/* SPDX-License-Identifier: Apache-2.0 */
/* mutable.c: changing the commands of closed lists: arguments, shapes, events and kernels.
 *
 * What a launch takes is never changed in place: a launch that is under way, or recorded in a clone, has it still. An
 * update makes a draft of every launch that it names, and either all drafts take their places or none does. */
#include <string.h>

#include "base/gate.h"
#include "graphs/mutation.h"
#include "lists/launch.h"

/* May the list's commands be changed now? */
static ze_result_t check(cpu_list *list) {
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  if (list->mutations == NULL || !list->closed)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is not mutable, or not closed");
  return cpu_list_is_busy(list) ? CPU_REFUSED(ERROR_HANDLE_OBJECT_IN_USE, "the list is submitted") : ZE_RESULT_SUCCESS;
}

static ze_result_t next_id(cpu_list *list, const ze_mutable_command_id_exp_desc_t *desc, uint32_t kernel_count,
                           ze_kernel_handle_t *kernels, uint64_t *id) {
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || id == NULL || (kernels == NULL && kernel_count != 0), ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0x1ff, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF((desc->flags & ~(uint32_t)CPU_MUTABLE) != 0, ERROR_UNSUPPORTED_ENUMERATION);
  if (list->mutations == NULL || list->closed)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is not mutable, or closed");
  bool exchanged = (desc->flags & ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION) != 0;
  if (exchanged != (kernel_count != 0))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "kernels are given with the flag for them, and only then");
  for (uint32_t i = 0; i < kernel_count; i++) {
    const cpu_kernel *kernel = cpu_kernel_cast(kernels[i]);
    CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
    if (!cpu_contexts_agree(kernel->module->context, list->context) || kernel->module->device != list->device)
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a kernel is of another context or device than the list");
  }
  uint32_t flags = desc->flags == 0 ? (uint32_t)CPU_MUTABLE_BY_DEFAULT : desc->flags;
  return cpu_mutations_next(list->mutations, flags, kernel_count, kernels, id);
}

CPU_EXPORT ze_result_t zeCommandListGetNextCommandIdExp(ze_command_list_handle_t list,
                                                        const ze_mutable_command_id_exp_desc_t *desc, uint64_t *id) {
  CPU_ENTER();
  return next_id(cpu_list_cast(list), desc, 0, NULL, id);
}

CPU_EXPORT ze_result_t zeCommandListGetNextCommandIdWithKernelsExp(ze_command_list_handle_t list,
                                                                   const ze_mutable_command_id_exp_desc_t *desc,
                                                                   uint32_t count, ze_kernel_handle_t *kernels,
                                                                   uint64_t *id) {
  CPU_ENTER();
  return next_id(cpu_list_cast(list), desc, count, kernels, id);
}

static cpu_launch **launch_of(const cpu_list *list, const cpu_mutation *item) {
  return &list->recorded[item->last].launch.launch;
}

/* What every descriptor of a change begins with. */
typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  uint64_t commandId;
} change;

static uint32_t flag_of(const change *c) {
  switch ((uint32_t)c->stype) {
    case ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC: return ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS;
    case ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC: return ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT;
    case ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC: return ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE;
    case ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC: return ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET;
    default: return 0;
  }
}

static ze_result_t change_argument(cpu_launch *launch, const ze_mutable_kernel_argument_exp_desc_t *d) {
  if (d->argIndex >= launch->argument_count)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the kernel has fewer arguments");
  const spirv_argument *argument = &launch->kinds[d->argIndex];
  if (argument->kind == SPIRV_LOCAL_POINTER) {
    if (d->argSize == 0 || d->pArgValue != NULL)
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "local memory has a size, and no value");
    launch->local_sizes[d->argIndex] = d->argSize;
  } else {
    if (d->argSize != argument->size) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the argument has another size");
    void *place = (void *)launch->arguments[d->argIndex];
    if (d->pArgValue == NULL) memset(place, 0, d->argSize);
    else memcpy(place, d->pArgValue, d->argSize);
  }
  if (d->argIndex < CPU_AWAITED_ARGUMENTS) launch->awaited &= ~(UINT64_C(1) << d->argIndex);
  return ZE_RESULT_SUCCESS;
}

static ze_result_t change_count(cpu_launch *launch, const ze_mutable_group_count_exp_desc_t *d) {
  CPU_REFUSE_IF(d->pGroupCount == NULL, ERROR_INVALID_NULL_POINTER);
  if (launch->counts != NULL)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT,
                       "the launch reads its group count from memory"); /* it is read from memory */
  memcpy(launch->group_count, d->pGroupCount, sizeof(launch->group_count));
  launch->awaited &= ~CPU_AWAITS_COUNT;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t change_size(cpu_launch *launch, const ze_mutable_group_size_exp_desc_t *d) {
  const uint32_t size[3] = {d->groupSizeX, d->groupSizeY, d->groupSizeZ};
  ze_result_t result = cpu_group_size_check(spirv_kernel_look(launch->kernel), size);
  if (result != ZE_RESULT_SUCCESS) return result;
  memcpy(launch->group_size, size, sizeof(size));
  launch->awaited &= ~CPU_AWAITS_SIZE;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t change_offset(cpu_launch *launch, const ze_mutable_global_offset_exp_desc_t *d) {
  launch->offset[0] = d->offsetX;
  launch->offset[1] = d->offsetY;
  launch->offset[2] = d->offsetZ;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t apply(const cpu_list *list, const change *c) {
  uint32_t flag = flag_of(c);
  CPU_REFUSE_IF((uint32_t)c->stype == ZE_STRUCTURE_TYPE_MUTABLE_GRAPH_ARGUMENT_EXP_DESC, ERROR_UNSUPPORTED_FEATURE);
  cpu_mutation *item = flag == 0 ? NULL : cpu_mutations_find(list, c->commandId);
  if (item == NULL || (item->flags & flag) == 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the command cannot be changed so");
  if (list->recorded[item->last].op != CPU_OP_LAUNCH)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the command is no launch");
  if (item->draft == NULL) item->draft = cpu_launch_copy(*launch_of(list, item));
  CPU_REFUSE_IF(item->draft == NULL, ERROR_OUT_OF_HOST_MEMORY);
  switch (flag) {
    case ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS: return change_argument(item->draft, (const void *)c);
    case ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT: return change_count(item->draft, (const void *)c);
    case ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE: return change_size(item->draft, (const void *)c);
    default: return change_offset(item->draft, (const void *)c);
  }
}

/* Could the draft have been appended? Asked when all changes are in it. */
static ze_result_t check_draft(const cpu_launch *draft) {
  if (draft == NULL) return ZE_RESULT_SUCCESS; /* of a launch that an earlier change named too */
  CPU_REFUSE_IF(cpu_local_bytes(spirv_kernel_look(draft->kernel), draft->local_sizes) > SPIRV_MAX_LOCAL_BYTES,
                ERROR_OUT_OF_DEVICE_MEMORY);
  return draft->cooperative && cpu_launch_has_too_many_groups(draft->group_count)
             ? CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a cooperative launch of too many groups")
             : ZE_RESULT_SUCCESS;
}

static void discard(cpu_mutation *item) {
  if (item != NULL && item->draft != NULL) cpu_launch_let_go(item->draft);
  if (item != NULL) item->draft = NULL;
}

static void commit(cpu_list *list, cpu_mutation *item) {
  if (item->draft == NULL) return;
  cpu_launch **place = launch_of(list, item), *before = *place;
  list->mutations->awaiting += (uint32_t)(item->draft->awaited != 0) - (uint32_t)(before->awaited != 0);
  *place = item->draft;
  item->draft = NULL;
  cpu_launch_let_go(before);
}

CPU_EXPORT ze_result_t zeCommandListUpdateMutableCommandsExp(ze_command_list_handle_t handle,
                                                             const ze_mutable_commands_exp_desc_t *desc) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list != NULL && desc == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = check(list);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(desc->flags != 0, ERROR_INVALID_ENUMERATION);
  const change *first = desc->pNext, *c, *end;
  for (c = first; c != NULL && result == ZE_RESULT_SUCCESS; c = c->pNext) result = apply(list, c);
  end = c; /* what lies behind a change that was refused was not looked at */
  for (c = first; c != end && result == ZE_RESULT_SUCCESS; c = c->pNext)
    result = check_draft(cpu_mutations_find(list, c->commandId)->draft);
  for (c = first; c != end; c = c->pNext) {
    cpu_mutation *item = flag_of(c) == 0 ? NULL : cpu_mutations_find(list, c->commandId);
    if (result == ZE_RESULT_SUCCESS) commit(list, item);
    else discard(item);
  }
  if (result == ZE_RESULT_SUCCESS) list->mutations->updated = true;
  return result;
}

CPU_EXPORT ze_result_t zeCommandListUpdateMutableCommandSignalEventExp(ze_command_list_handle_t handle, uint64_t id,
                                                                       ze_event_handle_t signal) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  ze_result_t result = check(list);
  if (result != ZE_RESULT_SUCCESS) return result;
  const cpu_mutation *item = cpu_mutations_find(list, id);
  if (item == NULL || (item->flags & ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT) == 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the command cannot be changed so");
  cpu_event *event = signal == NULL ? NULL : cpu_event_cast(signal);
  CPU_REFUSE_IF(signal != NULL && event == NULL, ERROR_INVALID_SYNCHRONIZATION_OBJECT);
  if (event != NULL) result = cpu_list_check_context(list, event);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (event != NULL && cpu_event_traits(event) != item->traits[0])
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event is of another kind than the one that it replaces");
  list->recorded[item->last].signal = event;
  list->mutations->updated = true;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t check_waits(const cpu_list *list, const cpu_mutation *item, uint32_t count,
                               ze_event_handle_t *waits) {
  CPU_REFUSE_IF(count != item->wait_count && (waits != NULL || count != 0), ERROR_INVALID_SIZE);
  for (uint32_t i = 0; i < count && waits != NULL; i++) {
    if (waits[i] == NULL) continue;
    const cpu_event *event = cpu_event_cast(waits[i]);
    CPU_REFUSE_IF(event == NULL, ERROR_INVALID_SYNCHRONIZATION_OBJECT);
    ze_result_t result = cpu_list_check_context(list, event);
    if (result != ZE_RESULT_SUCCESS) return result;
    if (cpu_event_traits(event) != item->traits[1 + i])
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the event is of another kind than the one that it replaces");
  }
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListUpdateMutableCommandWaitEventsExp(ze_command_list_handle_t handle, uint64_t id,
                                                                      uint32_t count, ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  ze_result_t result = check(list);
  if (result != ZE_RESULT_SUCCESS) return result;
  const cpu_mutation *item = cpu_mutations_find(list, id);
  if (item == NULL || (item->flags & ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS) == 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the command cannot be changed so");
  result = check_waits(list, item, count, waits);
  if (result != ZE_RESULT_SUCCESS) return result;
  for (uint32_t k = item->first; k <= item->last; k++) list->recorded[k].wait_count = 0;
  for (uint32_t i = 0; i < count && waits != NULL; i++) {
    cpu_command *command = &list->recorded[item->first + i / CPU_WAITS];
    if (waits[i] != NULL) command->waits[command->wait_count++] = cpu_event_cast(waits[i]);
  }
  list->mutations->updated = true;
  return ZE_RESULT_SUCCESS;
}

static ze_result_t check_kernel(const cpu_list *list, uint64_t id, ze_kernel_handle_t handle) {
  const cpu_mutation *item = cpu_mutations_find(list, id);
  if (item == NULL || item->kernel_count == 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the kernel of the command cannot be changed");
  const cpu_kernel *kernel = cpu_kernel_cast(handle);
  bool known = false;
  for (uint32_t i = 0; i < item->kernel_count; i++) known |= item->kernels[i] == handle;
  CPU_REFUSE_IF(kernel == NULL || !known || !cpu_contexts_agree(kernel->module->context, list->context) ||
                    kernel->module->device != list->device,
                ERROR_INVALID_KERNEL_HANDLE);
  return ZE_RESULT_SUCCESS;
}

/* A launch of another kernel: of what may be changed nothing is left, and all of it is to be given. */
static cpu_launch *exchanged(const cpu_launch *before, const cpu_kernel *kernel, uint32_t flags) {
  cpu_launch *launch = cpu_launch_new(kernel);
  if (launch == NULL) return NULL;
  launch->counts = before->counts;
  launch->number = before->number;
  launch->index = before->index;
  launch->cooperative = before->cooperative;
  memcpy(launch->group_count, before->group_count, sizeof(launch->group_count));
  uint32_t count = launch->argument_count < CPU_AWAITED_ARGUMENTS ? launch->argument_count : CPU_AWAITED_ARGUMENTS;
  if ((flags & ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS) != 0) launch->awaited |= (UINT64_C(1) << count) - 1;
  if ((flags & ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT) != 0 && before->counts == NULL)
    launch->awaited |= CPU_AWAITS_COUNT;
  if ((flags & ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE) != 0) launch->awaited |= CPU_AWAITS_SIZE;
  if ((flags & ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET) != 0) memset(launch->offset, 0, sizeof(launch->offset));
  return launch;
}

CPU_EXPORT ze_result_t zeCommandListUpdateMutableCommandKernelsExp(ze_command_list_handle_t handle, uint32_t count,
                                                                   uint64_t *ids, ze_kernel_handle_t *kernels) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list != NULL && (ids == NULL || kernels == NULL), ERROR_INVALID_NULL_POINTER);
  ze_result_t result = check(list);
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++) result = check_kernel(list, ids[i], kernels[i]);
  if (result != ZE_RESULT_SUCCESS) return result;
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++) {
    cpu_mutation *item = cpu_mutations_find(list, ids[i]);
    discard(item); /* a command that is named twice has the last kernel */
    item->draft = exchanged(*launch_of(list, item), cpu_kernel_cast(kernels[i]), item->flags);
    if (item->draft == NULL) result = CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  for (uint32_t i = 0; i < count; i++) {
    cpu_mutation *item = cpu_mutations_find(list, ids[i]);
    if (result == ZE_RESULT_SUCCESS) commit(list, item);
    else discard(item);
  }
  if (result == ZE_RESULT_SUCCESS) list->mutations->updated = true;
  return result;
}
