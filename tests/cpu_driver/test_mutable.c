/* SPDX-License-Identifier: Apache-2.0 */
/* test_mutable.c: mutable command lists: what of a closed list's commands can be changed, and what is refused. */
#include <pthread.h>

#include "modules.h"

enum { N = 64, WIDE = 19 }; /* more waits than one command of the driver holds */

static ze_module_handle_t module;
static ze_kernel_handle_t add, reverse, where, count;
static ze_command_list_handle_t runner;

static ze_command_list_handle_t recording(uint32_t flags) {
  ze_mutable_command_list_exp_desc_t more = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC};
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .pNext = &more, .flags = flags};
  ze_command_list_handle_t list;
  OK(zeCommandListCreate(context, device, &desc, &list));
  return list;
}

static uint64_t next_id(ze_command_list_handle_t list, uint32_t flags) {
  ze_mutable_command_id_exp_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC, .flags = flags};
  uint64_t id;
  OK(zeCommandListGetNextCommandIdExp(list, &desc, &id));
  return id;
}

static ze_result_t update(ze_command_list_handle_t list, const void *chain) {
  ze_mutable_commands_exp_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC, .pNext = chain};
  return zeCommandListUpdateMutableCommandsExp(list, &desc);
}

static ze_mutable_kernel_argument_exp_desc_t argument(uint64_t id, uint32_t index, size_t size, const void *value) {
  return (ze_mutable_kernel_argument_exp_desc_t){.stype = ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC,
                                                 .commandId = id,
                                                 .argIndex = index,
                                                 .argSize = size,
                                                 .pArgValue = value};
}

static ze_mutable_group_count_exp_desc_t groups(uint64_t id, const ze_group_count_t *counts) {
  return (ze_mutable_group_count_exp_desc_t){
      .stype = ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC, .commandId = id, .pGroupCount = counts};
}

static ze_mutable_group_size_exp_desc_t sizes(uint64_t id, uint32_t x) {
  return (ze_mutable_group_size_exp_desc_t){.stype = ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC,
                                            .commandId = id,
                                            .groupSizeX = x,
                                            .groupSizeY = 1,
                                            .groupSizeZ = 1};
}

static void run(ze_command_list_handle_t list) {
  OK(zeCommandListClose(list));
  OK(zeCommandListImmediateAppendCommandListsExp(runner, 1, &list, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(runner, FOREVER));
}

static ze_result_t execute(ze_command_list_handle_t list) {
  return zeCommandListImmediateAppendCommandListsExp(runner, 1, &list, NULL, 0, NULL);
}

static int *numbers(size_t count) {
  int *memory = shared_memory(count * sizeof(int));
  for (size_t i = 0; i < count; i++) memory[i] = (int)i;
  return memory;
}

/* The launch is out[i] = in[i] + more, of `N` items. */
static void append_add(ze_command_list_handle_t list, int *to, const int *from, int more, ze_event_handle_t signal,
                       uint32_t wait_count, ze_event_handle_t *waits) {
  SET(add, 0, to);
  SET(add, 1, from);
  SET(add, 2, more);
  OK(zeKernelSetGroupSize(add, 16, 1, 1));
  ze_group_count_t four = {N / 16, 1, 1};
  OK(zeCommandListAppendLaunchKernel(list, add, &four, signal, wait_count, waits));
}

static void devices_tell_what_can_be_changed(void) {
  ze_mutable_command_list_exp_properties_t found = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES,
                                                    .mutableCommandListFlags = 77};
  ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, .pNext = &found};
  OK(zeDeviceGetProperties(device, &properties));
  CHECK(found.mutableCommandFlags == 0x7f && found.mutableCommandListFlags == 0);
  ze_driver_extension_properties_t extensions[64];
  uint32_t number = 64, named = 0;
  OK(zeDriverGetExtensionProperties(driver, &number, extensions));
  for (uint32_t i = 0; i < number; i++)
    named += strcmp(extensions[i].name, "ZE_experimental_mutable_command_list") == 0 &&
             extensions[i].version == 0x10001;
  CHECK(named == 1);
  ze_mutable_command_list_exp_desc_t more = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC, .flags = 2};
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .pNext = &more};
  ze_command_list_handle_t list;
  GIVES(ERROR_INVALID_ENUMERATION, zeCommandListCreate(context, device, &desc, &list));
  ze_bool_t yes = 2;
  list = recording(0);
  OK(zeCommandListIsMutableExp(list, &yes));
  CHECK(yes == 1);
  OK(zeCommandListDestroy(list));
}

static void launches_change(void) {
  int *in = numbers(2 * N), *out = numbers(2 * N), *other = numbers(2 * N);
  ze_command_list_handle_t list = recording(ZE_COMMAND_LIST_FLAG_IN_ORDER);
  uint64_t first = next_id(list, 0);
  append_add(list, out, in, 100, NULL, 0, NULL);
  uint64_t second = next_id(list, 0);
  append_add(list, other, out, 1000, NULL, 0, NULL);
  CHECK(first != second);
  run(list);
  for (int i = 0; i < N; i++) CHECK(out[i] == i + 100 && other[i] == i + 1100);
  /* Arguments of both, in one chain; then the shape of one. */
  int more = 7;
  int *in_next = in + N;
  ze_mutable_kernel_argument_exp_desc_t a = argument(first, 1, sizeof(in_next), &in_next),
                                        b = argument(first, 2, sizeof(more), &more),
                                        c = argument(second, 2, sizeof(more), &more);
  a.pNext = &b;
  b.pNext = &c;
  OK(update(list, &a));
  GIVES(ERROR_INVALID_ARGUMENT, execute(list)); /* it is to be closed first */
  run(list);
  for (int i = 0; i < N; i++) CHECK(out[i] == i + N + 7 && other[i] == i + N + 14);
  ze_group_count_t two = {2, 1, 1};
  ze_mutable_group_count_exp_desc_t n = groups(second, &two);
  ze_mutable_group_size_exp_desc_t s = sizes(second, 8);
  ze_mutable_global_offset_exp_desc_t o = {
      .stype = ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC, .commandId = second, .offsetX = 3};
  n.pNext = &s;
  s.pNext = &o;
  memset(other, 0, N * sizeof(int));
  OK(update(list, &n));
  run(list);
  for (int i = 0; i < N; i++) CHECK(other[i] == (i >= 3 && i < 19 ? i + N + 14 : 0));
  OK(update(list, NULL)); /* nothing, but it counts as a change */
  GIVES(ERROR_INVALID_ARGUMENT, execute(list));
  run(list);
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, in));
  OK(zeMemFree(context, out));
  OK(zeMemFree(context, other));
}

static void local_memory_changes(void) {
  int *data = numbers(N);
  ze_command_list_handle_t list = recording(0);
  SET(reverse, 0, data);
  OK(zeKernelSetArgumentValue(reverse, 1, 16 * sizeof(int), NULL));
  OK(zeKernelSetGroupSize(reverse, 16, 1, 1));
  uint64_t id = next_id(list, 0);
  ze_group_count_t one = {1, 1, 1};
  OK(zeCommandListAppendLaunchKernel(list, reverse, &one, NULL, 0, NULL));
  run(list);
  CHECK(data[0] == 15 && data[15] == 0);
  ze_mutable_kernel_argument_exp_desc_t local = argument(id, 1, N * sizeof(int), NULL);
  ze_mutable_group_size_exp_desc_t size = sizes(id, N);
  local.pNext = &size;
  OK(update(list, &local));
  run(list);
  CHECK(data[N - 1] == 15 && data[0] == N - 1);
  local.argSize = (size_t)1 << 30; /* no group has as much: nothing of the chain is done */
  size.groupSizeX = 4;
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, update(list, &local));
  run(list);
  CHECK(data[0] == 15 && data[N - 1] == N - 1);
  local.argSize = 0;
  GIVES(ERROR_INVALID_ARGUMENT, update(list, &local));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, data));
}

static void a_refused_chain_changes_nothing(void) {
  int *in = numbers(N), *out = numbers(N), more = 50;
  ze_command_list_handle_t list = recording(0);
  uint64_t id = next_id(list, 0);
  append_add(list, out, in, 1, NULL, 0, NULL);
  uint64_t only_counts = next_id(list, ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT);
  append_add(list, out, in, 2, NULL, 0, NULL);
  uint64_t copy = next_id(list, 0);
  OK(zeCommandListAppendMemoryCopy(list, out, in, 4, NULL, 0, NULL));
  ze_mutable_kernel_argument_exp_desc_t good = argument(id, 2, 4, &more), bad = argument(id, 2, 4, &more);
  GIVES(ERROR_INVALID_ARGUMENT, update(list, &good)); /* not closed */
  OK(zeCommandListClose(list));
  good.pNext = &bad;
  uint64_t wrong[] = {0, copy + 1, UINT64_MAX, only_counts, copy};
  for (int i = 0; i < 5; i++) {
    bad.commandId = wrong[i];
    GIVES(ERROR_INVALID_ARGUMENT, update(list, &good));
  }
  bad = argument(id, 3, 4, &more);
  GIVES(ERROR_INVALID_ARGUMENT, update(list, &good));
  bad = argument(id, 2, 8, &more);
  GIVES(ERROR_INVALID_ARGUMENT, update(list, &good));
  bad.stype = ZE_STRUCTURE_TYPE_MUTABLE_GRAPH_ARGUMENT_EXP_DESC;
  GIVES(ERROR_UNSUPPORTED_FEATURE, update(list, &good));
  bad.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC;
  GIVES(ERROR_INVALID_ARGUMENT, update(list, &good));
  ze_mutable_group_count_exp_desc_t none = groups(id, NULL);
  good.pNext = &none;
  GIVES(ERROR_INVALID_NULL_POINTER, update(list, &good));
  ze_mutable_group_size_exp_desc_t huge = sizes(id, 1u << 30);
  good.pNext = &huge;
  GIVES(ERROR_INVALID_GROUP_SIZE_DIMENSION, update(list, &good));
  ze_mutable_commands_exp_desc_t flagged = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC, .flags = 1};
  GIVES(ERROR_INVALID_ENUMERATION, zeCommandListUpdateMutableCommandsExp(list, &flagged));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListUpdateMutableCommandsExp(list, NULL));
  OK(execute(list)); /* still closed */
  OK(zeCommandListHostSynchronize(runner, FOREVER));
  for (int i = 1; i < N; i++) CHECK(out[i] == i + 1 || out[i] == i + 2);
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, in));
  OK(zeMemFree(context, out));
}

// Long: each wrong identifier.
static void identifiers_are_refused(void) {
  ze_mutable_command_id_exp_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC};
  ze_command_list_desc_t plain_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_command_list_handle_t plain, list = recording(0);
  OK(zeCommandListCreate(context, device, &plain_desc, &plain));
  uint64_t id = 5;
  ze_kernel_handle_t kernels[] = {add, NULL};
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListGetNextCommandIdExp(NULL, &desc, &id));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListGetNextCommandIdExp(list, NULL, &id));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListGetNextCommandIdExp(list, &desc, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListGetNextCommandIdExp(plain, &desc, &id));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListGetNextCommandIdExp(runner, &desc, &id));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListGetNextCommandIdWithKernelsExp(list, &desc, 1, kernels, &id));
  desc.flags = ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION;
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListGetNextCommandIdExp(list, &desc, &id)); /* without its kernels */
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListGetNextCommandIdWithKernelsExp(list, &desc, 1, NULL, &id));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListGetNextCommandIdWithKernelsExp(list, &desc, 2, kernels, &id));
  desc.flags = ZE_MUTABLE_COMMAND_EXP_FLAG_GRAPH_ARGUMENTS;
  GIVES(ERROR_UNSUPPORTED_ENUMERATION, zeCommandListGetNextCommandIdExp(list, &desc, &id));
  desc.flags = 0x200;
  GIVES(ERROR_INVALID_ENUMERATION, zeCommandListGetNextCommandIdExp(list, &desc, &id));
  CHECK(id == 5);
  desc.flags = 0;
  OK(zeCommandListClose(list));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListGetNextCommandIdExp(list, &desc, &id));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandSignalEventExp(list, 1, NULL));
  OK(zeCommandListClose(plain));
  GIVES(ERROR_INVALID_ARGUMENT, update(plain, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, update(NULL, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListUpdateMutableCommandSignalEventExp(NULL, 1, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListUpdateMutableCommandWaitEventsExp(NULL, 1, 0, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListUpdateMutableCommandKernelsExp(NULL, 1, &id, kernels));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListUpdateMutableCommandKernelsExp(list, 1, NULL, kernels));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListUpdateMutableCommandKernelsExp(list, 1, &id, NULL));
  /* A reset forgets them; none comes back. */
  OK(zeCommandListReset(list));
  id = next_id(list, 0);
  uint64_t same_command = next_id(list, 0);
  int *out = numbers(N);
  append_add(list, out, out, 0, NULL, 0, NULL);
  OK(zeCommandListClose(list));
  int more = 2;
  ze_mutable_kernel_argument_exp_desc_t a = argument(same_command, 2, 4, &more);
  OK(update(list, &a));
  OK(zeCommandListReset(list));
  GIVES(ERROR_INVALID_ARGUMENT, update(list, &a));
  OK(zeCommandListClose(list));
  GIVES(ERROR_INVALID_ARGUMENT, update(list, &a));
  OK(zeCommandListReset(list));
  CHECK(next_id(list, 0) > same_command && same_command != id);
  /* One that is of several commands. */
  uint32_t *number = shared_memory(64);
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeCommandListAppendLaunchMultipleKernelsIndirect(
                                       list, 1, kernels, number, (ze_group_count_t *)(number + 1), NULL, 0, NULL));
  ze_event_handle_t event;
  GIVES(ERROR_UNSUPPORTED_FEATURE,
        zeCommandListAppendQueryKernelTimestamps(list, 1, &event, number, NULL, NULL, 0, NULL));
  OK(zeMemFree(context, number));
  OK(zeMemFree(context, out));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(plain));
}

// Long: one list whose events change step by step.
static void events_change(void) {
  ze_event_pool_handle_t pool = pool_of(2 * WIDE + 4, 0);
  ze_event_handle_t waits[2][WIDE], done[2], loose;
  for (uint32_t i = 0; i < WIDE; i++)
    for (uint32_t k = 0; k < 2; k++) waits[k][i] = event_of(pool, i + k * WIDE);
  for (uint32_t k = 0; k < 2; k++) done[k] = event_of(pool, 2 * WIDE + k);
  ze_event_desc_t scopeless = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = 2 * WIDE + 2};
  OK(zeEventCreate(pool, &scopeless, &loose));
  int *data = numbers(2);
  ze_command_list_handle_t list = recording(0);
  uint64_t id = next_id(list, 0);
  OK(zeCommandListAppendMemoryCopy(list, data, data + 1, 4, done[0], WIDE, waits[0]));
  uint64_t silent = next_id(list, ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS | ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT);
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  uint64_t fixed = next_id(list, ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS);
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  OK(zeCommandListClose(list));
  OK(execute(list));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandListUpdateMutableCommandSignalEventExp(list, id, done[1]));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeCommandListUpdateMutableCommandWaitEventsExp(list, id, WIDE, waits[1]));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, update(list, NULL));
  for (int i = 0; i < WIDE; i++) OK(zeEventHostSignal(waits[0][i]));
  OK(zeCommandListHostSynchronize(runner, FOREVER));
  GIVES(SUCCESS, zeEventQueryStatus(done[0]));
  CHECK(data[0] == 1);
  GIVES(ERROR_INVALID_SYNCHRONIZATION_OBJECT,
        zeCommandListUpdateMutableCommandSignalEventExp(list, id, (ze_event_handle_t)list));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandSignalEventExp(list, id, loose)); /* another scope */
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandSignalEventExp(list, silent, done[1])); /* had none */
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandSignalEventExp(list, fixed, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandWaitEventsExp(list, fixed, 0, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandListUpdateMutableCommandWaitEventsExp(list, id, WIDE - 1, waits[1]));
  GIVES(ERROR_INVALID_SIZE, zeCommandListUpdateMutableCommandWaitEventsExp(list, id, 0, waits[1]));
  GIVES(ERROR_INVALID_SIZE, zeCommandListUpdateMutableCommandWaitEventsExp(list, silent, 1, waits[1]));
  ze_event_handle_t last = waits[1][WIDE - 1];
  ze_context_handle_t other, own = context;
  OK(zeContextCreate(driver, &(ze_context_desc_t){.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC}, &other));
  context = other;
  ze_event_pool_handle_t other_pool = pool_of(1, 0);
  context = own;
  waits[1][WIDE - 1] = event_of(other_pool, 0);
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandSignalEventExp(list, id, waits[1][WIDE - 1]));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandWaitEventsExp(list, id, WIDE, waits[1]));
  OK(zeEventDestroy(waits[1][WIDE - 1]));
  OK(zeEventPoolDestroy(other_pool));
  OK(zeContextDestroy(other));
  waits[1][WIDE - 1] = loose;
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandWaitEventsExp(list, id, WIDE, waits[1]));
  waits[1][WIDE - 1] = (ze_event_handle_t)pool;
  GIVES(ERROR_INVALID_SYNCHRONIZATION_OBJECT, zeCommandListUpdateMutableCommandWaitEventsExp(list, id, WIDE, waits[1]));
  waits[1][WIDE - 1] = last;
  OK(execute(list)); /* nothing has changed, so it is closed */
  OK(zeCommandListHostSynchronize(runner, FOREVER));
  OK(zeCommandListUpdateMutableCommandSignalEventExp(list, id, done[1]));
  OK(zeCommandListUpdateMutableCommandWaitEventsExp(list, id, WIDE, waits[1]));
  GIVES(ERROR_INVALID_ARGUMENT, execute(list));
  OK(zeCommandListClose(list));
  data[1] = 2;
  OK(execute(list));
  for (int i = 0; i < WIDE - 1; i++) OK(zeEventHostSignal(waits[1][i]));
  GIVES(NOT_READY, zeEventHostSynchronize(done[1], 1000000));
  OK(zeEventHostSignal(waits[1][WIDE - 1]));
  OK(zeEventHostSynchronize(done[1], FOREVER));
  OK(zeCommandListHostSynchronize(runner, FOREVER));
  CHECK(data[0] == 2);
  /* Some of them, then none; and no signal. */
  for (int i = 0; i < WIDE; i++) OK(zeEventHostReset(waits[1][i]));
  ze_event_handle_t few[WIDE] = {NULL};
  few[3] = waits[1][3];
  few[17] = waits[1][17];
  OK(zeCommandListUpdateMutableCommandWaitEventsExp(list, id, WIDE, few));
  OK(zeCommandListUpdateMutableCommandSignalEventExp(list, id, NULL));
  OK(zeCommandListClose(list));
  data[1] = 3;
  OK(zeEventHostReset(done[1]));
  OK(execute(list));
  OK(zeEventHostSignal(waits[1][3]));
  GIVES(NOT_READY, zeCommandListHostSynchronize(runner, 1000000));
  OK(zeEventHostSignal(waits[1][17]));
  OK(zeCommandListHostSynchronize(runner, FOREVER));
  GIVES(NOT_READY, zeEventQueryStatus(done[1]));
  CHECK(data[0] == 3);
  OK(zeCommandListUpdateMutableCommandWaitEventsExp(list, id, 0, NULL));
  OK(zeCommandListUpdateMutableCommandSignalEventExp(list, id, done[0]));
  for (int i = 0; i < WIDE; i++) OK(zeEventDestroy(waits[1][i]));
  OK(zeEventHostReset(done[0]));
  run(list);
  GIVES(SUCCESS, zeEventQueryStatus(done[0]));
  OK(zeEventDestroy(done[0]));
  GIVES(ERROR_INVALID_SYNCHRONIZATION_OBJECT, execute(list));
  OK(zeCommandListUpdateMutableCommandSignalEventExp(list, id, done[1]));
  run(list);
  OK(zeCommandListDestroy(list));
  for (int i = 0; i < WIDE; i++) OK(zeEventDestroy(waits[0][i]));
  OK(zeEventDestroy(done[1]));
  OK(zeEventDestroy(loose));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, data));
}

static void kernels_change(void) {
  int *in = numbers(N), *out = numbers(4 * N), more = 9;
  ze_command_list_handle_t list = recording(0);
  ze_mutable_command_id_exp_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC, .flags = 0x7f};
  ze_kernel_handle_t kernels[] = {add, where};
  uint64_t id, plain;
  OK(zeCommandListGetNextCommandIdWithKernelsExp(list, &desc, 2, kernels, &id));
  SET(count, 0, out);
  ze_group_count_t one = {1, 1, 1}, two = {2, 1, 1};
  GIVES(ERROR_INVALID_KERNEL_HANDLE, zeCommandListAppendLaunchKernel(list, count, &one, NULL, 0, NULL));
  GIVES(ERROR_INVALID_KERNEL_HANDLE, zeCommandListAppendBarrier(list, NULL, 0, NULL));
  append_add(list, out, in, 1, NULL, 0, NULL);
  plain = next_id(list, 0);
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  run(list);
  CHECK(out[5] == 6);
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandKernelsExp(list, 1, &plain, &where));
  GIVES(ERROR_INVALID_KERNEL_HANDLE, zeCommandListUpdateMutableCommandKernelsExp(list, 1, &id, &count));
  ze_kernel_handle_t none = NULL;
  GIVES(ERROR_INVALID_KERNEL_HANDLE, zeCommandListUpdateMutableCommandKernelsExp(list, 1, &id, &none));
  uint64_t ids[] = {id, id};
  OK(zeCommandListUpdateMutableCommandKernelsExp(list, 2, ids, kernels)); /* the last one counts */
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListClose(list)); /* its argument and shape are to be given */
  ze_mutable_kernel_argument_exp_desc_t a = argument(id, 0, sizeof(out), &out);
  OK(update(list, &a));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListClose(list));
  ze_mutable_group_count_exp_desc_t n = groups(id, &two);
  ze_mutable_group_size_exp_desc_t s = sizes(id, 8);
  n.pNext = &s;
  OK(update(list, &n));
  memset(out, 255, 4 * N * sizeof(int));
  run(list);
  for (int i = 0; i < N; i++) CHECK(out[4 * i] == (i < 16 ? i : -1));
  /* And back, with a kernel that ends before the list runs. */
  OK(zeCommandListUpdateMutableCommandKernelsExp(list, 1, &id, &add));
  ze_mutable_kernel_argument_exp_desc_t b = argument(id, 1, sizeof(in), &in), c = argument(id, 2, sizeof(more), &more);
  a.pNext = &b;
  b.pNext = &c;
  c.pNext = &n;
  OK(update(list, &a));
  OK(zeKernelDestroy(add));
  GIVES(ERROR_INVALID_KERNEL_HANDLE, zeCommandListUpdateMutableCommandKernelsExp(list, 1, &id, &add));
  run(list);
  for (int i = 0; i < 16; i++) CHECK(out[i] == i + 9);
  add = kernel_of(module, "add");
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, in));
  OK(zeMemFree(context, out));
}

static void clones_keep_theirs(void) {
  int *in = numbers(N), *out = numbers(N), more = 40;
  ze_command_list_handle_t list = recording(ZE_COMMAND_LIST_FLAG_EXP_CLONEABLE), clone;
  uint64_t id = next_id(list, 0);
  append_add(list, out, in, 1, NULL, 0, NULL);
  OK(zeCommandListClose(list));
  OK(zeCommandListCreateCloneExp(list, &clone));
  ze_mutable_kernel_argument_exp_desc_t a = argument(id, 2, sizeof(more), &more);
  OK(update(list, &a));
  ze_command_list_handle_t third;
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListCreateCloneExp(list, &third)); /* to be closed */
  run(list);
  CHECK(out[3] == 43);
  run(clone);
  CHECK(out[3] == 4);
  ze_bool_t yes = 0;
  OK(zeCommandListIsMutableExp(clone, &yes));
  CHECK(yes == 1);
  more = 80;
  OK(update(clone, &a));
  run(clone);
  CHECK(out[3] == 83);
  OK(zeCommandListDestroy(clone));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, in));
  OK(zeMemFree(context, out));
}

/* A launch that is under way, by another list, is not disturbed; indirect counts stay. */
static void indirect_launches_change(void) {
  int *in = numbers(N), *out = numbers(N), more = 40;
  ze_group_count_t *shape = shared_memory(sizeof(*shape)), four = {4, 1, 1};
  *shape = four;
  ze_command_list_handle_t list = recording(0);
  ze_mutable_command_id_exp_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC, .flags = 0x7f};
  uint64_t id;
  OK(zeCommandListGetNextCommandIdWithKernelsExp(list, &desc, 1, &add, &id));
  SET(add, 0, out);
  SET(add, 1, in);
  SET(add, 2, more);
  OK(zeKernelSetGroupSize(add, 16, 1, 1));
  OK(zeCommandListAppendLaunchKernelIndirect(list, add, shape, NULL, 0, NULL));
  OK(zeCommandListClose(list));
  ze_mutable_group_count_exp_desc_t n = groups(id, &four);
  GIVES(ERROR_INVALID_ARGUMENT, update(list, &n));
  ze_mutable_kernel_argument_exp_desc_t a = argument(id, 0, sizeof(out), &out), b = argument(id, 1, sizeof(in), &in),
                                        c = argument(id, 2, sizeof(more), &more);
  ze_mutable_group_size_exp_desc_t s = sizes(id, 8);
  a.pNext = &b;
  b.pNext = &c;
  c.pNext = &s;
  OK(zeCommandListUpdateMutableCommandKernelsExp(list, 1, &id, &add));
  OK(update(list, &a));
  shape->groupCountX = 2;
  run(list);
  for (int i = 0; i < N; i++) CHECK(out[i] == (i < 16 ? i + 40 : i));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, shape));
  OK(zeMemFree(context, in));
  OK(zeMemFree(context, out));
}

static void counters_change(void) {
  ze_event_counter_based_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC};
  ze_event_handle_t one, two;
  OK(zeEventCounterBasedCreate(context, device, &desc, &one));
  OK(zeEventCounterBasedCreate(context, device, &desc, &two));
  ze_command_list_handle_t list = recording(ZE_COMMAND_LIST_FLAG_IN_ORDER);
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t plain = event_of(pool, 0);
  uint64_t id = next_id(list, 0);
  OK(zeCommandListAppendBarrier(list, one, 1, &plain));
  OK(zeCommandListClose(list));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandSignalEventExp(list, id, plain));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListUpdateMutableCommandWaitEventsExp(list, id, 1, &two));
  OK(zeCommandListUpdateMutableCommandSignalEventExp(list, id, two));
  OK(zeCommandListClose(list));
  OK(execute(list));
  GIVES(SUCCESS, zeEventQueryStatus(one));
  GIVES(NOT_READY, zeEventQueryStatus(two));
  OK(zeEventHostSignal(plain));
  OK(zeEventHostSynchronize(two, FOREVER));
  OK(zeCommandListHostSynchronize(runner, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeEventDestroy(one));
  OK(zeEventDestroy(two));
  OK(zeEventDestroy(plain));
  OK(zeEventPoolDestroy(pool));
}

static void *ask(void *list) {
  for (int i = 0; i < 1000; i++) CHECK(next_id(list, 0) != 0);
  return NULL;
}

static void threads_ask_at_once(void) {
  ze_command_list_handle_t list = recording(0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, ask, list) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(next_id(list, 0) == 4001);
  OK(zeCommandListDestroy(list));
}

int main(void) {
  begin();
  module = module_of("launch");
  add = kernel_of(module, "add");
  reverse = kernel_of(module, "reverse");
  where = kernel_of(module, "where");
  count = kernel_of(module, "count");
  runner = loose_list();
  devices_tell_what_can_be_changed();
  launches_change();
  local_memory_changes();
  a_refused_chain_changes_nothing();
  identifiers_are_refused();
  events_change();
  kernels_change();
  clones_keep_theirs();
  indirect_launches_change();
  counters_change();
  threads_ask_at_once();
  OK(zeCommandListDestroy(runner));
  ze_kernel_handle_t kernels[] = {add, reverse, where, count};
  for (int i = 0; i < 4; i++) OK(zeKernelDestroy(kernels[i]));
  OK(zeModuleDestroy(module));
  finish("mutable");
}
