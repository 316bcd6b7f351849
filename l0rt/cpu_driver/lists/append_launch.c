/* SPDX-License-Identifier: Apache-2.0 */
/* append_launch.c: appending launches of kernels. */
#include <string.h>

#include "base/gate.h"
#include "graphs/mutation.h"
#include "lists/launch.h"
#include "lists/list.h"
#include "memory/usm.h"
#include "sync/failure.h"

enum { COUNTS = sizeof(ze_group_count_t) };

/* May this kernel be launched from this list? */
static ze_result_t check(const cpu_list *list, const cpu_kernel *kernel) {
  CPU_REFUSE_IF(list == NULL || kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(!cpu_group_computes(list->ordinal), ERROR_INVALID_COMMAND_LIST_TYPE);
  if (!cpu_contexts_agree(list->context, kernel->module->context) || list->device != kernel->module->device)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the kernel is of another context or device than the list");
  spirv_result why;
  if (!spirv_kernel_prepare(kernel->kernel, &why)) return CPU_REFUSED(ERROR_UNSUPPORTED_FEATURE, why.text);
  return cpu_kernel_local_bytes(kernel) > SPIRV_MAX_LOCAL_BYTES
             ? CPU_REFUSED(ERROR_OUT_OF_DEVICE_MEMORY, "a group needs more than 64 KiB of local memory")
             : ZE_RESULT_SUCCESS;
}

/* The command, in the list or submitted, holds the launch. */
static ze_result_t append(cpu_list *list, cpu_launch *launch, ze_event_handle_t signal, uint32_t wait_count,
                          ze_event_handle_t *waits) {
  CPU_REFUSE_IF(launch == NULL, ERROR_OUT_OF_HOST_MEMORY);
  cpu_command command = {.op = CPU_OP_LAUNCH};
  command.launch.launch = launch;
  ze_result_t result = cpu_command_walk(&command);
  if (result == ZE_RESULT_SUCCESS) result = cpu_list_append(list, &command, signal, wait_count, waits);
  cpu_launch_let_go(launch);
  return result;
}

static ze_result_t append_counted(cpu_list *list, const cpu_kernel *kernel, const ze_group_count_t *counts,
                                  bool cooperative, ze_event_handle_t signal, uint32_t wait_count,
                                  ze_event_handle_t *waits) {
  const uint32_t groups[3] = {counts->groupCountX, counts->groupCountY, counts->groupCountZ};
  if (cooperative && cpu_launch_has_too_many_groups(groups))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a cooperative launch of too many groups");
  cpu_launch *launch = cpu_launch_new(kernel);
  if (launch != NULL) {
    launch->cooperative = cooperative;
    memcpy(launch->group_count, groups, sizeof(groups));
  }
  return append(list, launch, signal, wait_count, waits);
}

/* The same, of what a caller has given. */
static ze_result_t append_direct(ze_command_list_handle_t list_handle, ze_kernel_handle_t kernel_handle,
                                 const ze_group_count_t *counts, bool cooperative, ze_event_handle_t signal,
                                 uint32_t wait_count, ze_event_handle_t *waits) {
  cpu_list *list = cpu_list_cast(list_handle);
  const cpu_kernel *kernel = cpu_kernel_cast(kernel_handle);
  ze_result_t result = check(list, kernel);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(counts == NULL, ERROR_INVALID_NULL_POINTER);
  return append_counted(list, kernel, counts, cooperative, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendLaunchKernel(ze_command_list_handle_t list_handle,
                                                       ze_kernel_handle_t kernel_handle, const ze_group_count_t *counts,
                                                       ze_event_handle_t signal, uint32_t wait_count,
                                                       ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_direct(list_handle, kernel_handle, counts, false, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendLaunchCooperativeKernel(ze_command_list_handle_t list_handle,
                                                                  ze_kernel_handle_t kernel_handle,
                                                                  const ze_group_count_t *counts,
                                                                  ze_event_handle_t signal, uint32_t wait_count,
                                                                  ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_direct(list_handle, kernel_handle, counts, true, signal, wait_count, waits);
}

/* A launch whose counts, and whether it runs at all, are read when it starts. */
static ze_result_t append_indirect(cpu_list *list, const cpu_kernel *kernel, const ze_group_count_t *counts,
                                   const uint32_t *number, uint32_t index, ze_event_handle_t signal,
                                   uint32_t wait_count, ze_event_handle_t *waits) {
  cpu_launch *launch = cpu_launch_new(kernel);
  if (launch != NULL) {
    launch->counts = counts;
    launch->number = number;
    launch->index = index;
  }
  return append(list, launch, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendLaunchKernelIndirect(ze_command_list_handle_t list_handle,
                                                               ze_kernel_handle_t kernel_handle,
                                                               const ze_group_count_t *counts, ze_event_handle_t signal,
                                                               uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(list_handle);
  const cpu_kernel *kernel = cpu_kernel_cast(kernel_handle);
  ze_result_t result = check(list, kernel);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(counts == NULL, ERROR_INVALID_NULL_POINTER);
  result = cpu_memory_check(counts, COUNTS, false);
  if (result != ZE_RESULT_SUCCESS) return result;
  return append_indirect(list, kernel, counts, NULL, 0, signal, wait_count, waits);
}

/* A command for each kernel; the first waits, and the signal is a barrier's, after all of them. */
CPU_EXPORT ze_result_t zeCommandListAppendLaunchMultipleKernelsIndirect(
    ze_command_list_handle_t list_handle, uint32_t count, ze_kernel_handle_t *kernels, const uint32_t *number,
    const ze_group_count_t *counts, ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(list_handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(kernels == NULL || number == NULL || counts == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(cpu_mutations_wait(list->mutations), ERROR_UNSUPPORTED_FEATURE); /* it would be of several */
  ze_result_t result = cpu_memory_check(number, sizeof(*number), false);
  if (result == ZE_RESULT_SUCCESS) result = cpu_memory_check(counts, (size_t)count * COUNTS, false);
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++) result = check(list, cpu_kernel_cast(kernels[i]));
  if (result == ZE_RESULT_SUCCESS) result = cpu_list_check(list, signal, wait_count, waits);
  cpu_command begin = {.op = CPU_OP_NONE}, end = {.op = CPU_OP_NONE, .barrier = true};
  if (result == ZE_RESULT_SUCCESS && wait_count != 0) result = cpu_list_append(list, &begin, NULL, wait_count, waits);
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++)
    result = append_indirect(list, cpu_kernel_cast(kernels[i]), counts + i, number, i, NULL, 0, NULL);
  return result != ZE_RESULT_SUCCESS || signal == NULL ? result : cpu_list_append(list, &end, signal, 0, NULL);
}

/* What may follow a launch: whether it is cooperative. */
static ze_result_t read_chain(const ze_base_desc_t *d, bool *cooperative) {
  *cooperative = false;
  for (; d != NULL; d = d->pNext) {
    CPU_REFUSE_IF(d->stype != ZE_STRUCTURE_TYPE_COMMAND_LIST_APPEND_PARAM_COOPERATIVE_DESC, ERROR_UNSUPPORTED_FEATURE);
    *cooperative = ((const ze_command_list_append_launch_kernel_param_cooperative_desc_t *)d)->isCooperative != 0;
  }
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListAppendLaunchKernelWithParameters(ze_command_list_handle_t list_handle,
                                                                     ze_kernel_handle_t kernel_handle,
                                                                     const ze_group_count_t *counts, const void *next,
                                                                     ze_event_handle_t signal, uint32_t wait_count,
                                                                     ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(list_handle);
  const cpu_kernel *kernel = cpu_kernel_cast(kernel_handle);
  bool cooperative;
  ze_result_t result = check(list, kernel);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(counts == NULL, ERROR_INVALID_NULL_POINTER);
  result = read_chain(next, &cooperative);
  if (result != ZE_RESULT_SUCCESS) return result;
  return append_counted(list, kernel, counts, cooperative, signal, wait_count, waits);
}

/* A pointer for each argument: to its value, NULL for zeros, or to the size_t of local memory. */
static ze_result_t set_arguments(cpu_kernel *kernel, void **arguments) {
  uint32_t count = kernel->info->argument_count;
  if (arguments == NULL) return count == 0 ? ZE_RESULT_SUCCESS : CPU_REFUSED(ERROR_INVALID_NULL_POINTER, "arguments");
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++) {
    const spirv_argument *argument = &kernel->info->arguments[i];
    if (argument->kind != SPIRV_LOCAL_POINTER)
      result = cpu_kernel_set_argument(kernel, i, argument->size, arguments[i]);
    else if (arguments[i] == NULL)
      result = CPU_REFUSED(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, "a value of the kernel needs an argument");
    else result = cpu_kernel_set_argument(kernel, i, *(const size_t *)arguments[i], NULL);
  }
  return result;
}

/* Sets the kernel as the functions for that would, then launches it. */
CPU_EXPORT ze_result_t zeCommandListAppendLaunchKernelWithArguments(ze_command_list_handle_t list_handle,
                                                                    ze_kernel_handle_t kernel_handle,
                                                                    const ze_group_count_t counts,
                                                                    const ze_group_size_t sizes, void **arguments,
                                                                    const void *next, ze_event_handle_t signal,
                                                                    uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(list_handle);
  cpu_kernel *kernel = cpu_kernel_cast(kernel_handle);
  CPU_REFUSE_IF(list == NULL || kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  bool cooperative;
  ze_result_t result = read_chain(next, &cooperative);
  if (result == ZE_RESULT_SUCCESS)
    result = cpu_kernel_set_group_size(kernel, sizes.groupSizeX, sizes.groupSizeY, sizes.groupSizeZ);
  if (result == ZE_RESULT_SUCCESS) result = set_arguments(kernel, arguments);
  if (result == ZE_RESULT_SUCCESS) result = check(list, kernel);
  if (result != ZE_RESULT_SUCCESS) return result;
  return append_counted(list, kernel, &counts, cooperative, signal, wait_count, waits);
}
