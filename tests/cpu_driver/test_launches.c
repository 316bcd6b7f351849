/* SPDX-License-Identifier: Apache-2.0 */
/* test_launches.c: kernels run: with what they were set to, in order, from regular lists, indirectly, cooperatively. */
#include "modules.h"
#include "spirv/spirv.h"

enum { N = 1000 };

static ze_module_handle_t module;
static ze_command_list_handle_t list;
static const ze_group_count_t ONE = {1, 1, 1};

static ze_command_list_handle_t regular(void) {
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .flags = ZE_COMMAND_LIST_FLAG_IN_ORDER};
  ze_command_list_handle_t made;
  OK(zeCommandListCreate(context, device, &desc, &made));
  return made;
}

static void wait(void) { OK(zeCommandListHostSynchronize(list, FOREVER)); }

/* What stands in device memory, which the host may not touch under L0RT_CPU_STRICT=1. */
static int int_at(const int *place) {
  int value;
  OK(zeCommandListAppendMemoryCopy(list, &value, place, sizeof(value), NULL, 0, NULL));
  wait();
  return value;
}

/* The arguments, group size and offset of the append count, not what comes after it. */
static void all_is_latched(void) {
  ze_kernel_handle_t add = kernel_of(module, "add");
  int *to = shared_memory(N * sizeof(int)), *from = shared_memory(N * sizeof(int)), more = 7, other = 100;
  for (int i = 0; i < N; i++) from[i] = i, to[i] = -1;
  SET(add, 0, to);
  SET(add, 1, from);
  SET(add, 2, more);
  OK(zeKernelSetGroupSize(add, 100, 1, 1));
  ze_group_count_t groups = {9, 1, 1}, last = {1, 1, 1};
  OK(zeCommandListAppendLaunchKernel(list, add, &groups, NULL, 0, NULL));
  SET(add, 2, other);
  OK(zeKernelSetGlobalOffsetExp(add, 900, 0, 0));
  OK(zeCommandListAppendLaunchKernel(list, add, &last, NULL, 0, NULL));
  OK(zeKernelSetArgumentValue(add, 0, sizeof(void *), NULL));
  OK(zeKernelSetGlobalOffsetExp(add, 0, 0, 0));
  OK(zeKernelDestroy(add)); /* launches keep what they need */
  wait();
  for (int i = 0; i < N; i++) CHECK(to[i] == i + (i < 900 ? 7 : 100));
  OK(zeMemFree(context, to));
  OK(zeMemFree(context, from));
}

static void groups_have_their_shape(void) {
  ze_kernel_handle_t where = kernel_of(module, "where");
  uint32_t *out = shared_memory(6 * 10 * 16);
  SET(where, 0, out);
  OK(zeKernelSetGroupSize(where, 3, 5, 1));
  ze_group_count_t groups = {2, 2, 1};
  OK(zeCommandListAppendLaunchKernel(list, where, &groups, NULL, 0, NULL));
  wait();
  for (uint32_t i = 0; i < 60; i++)
    CHECK(out[4 * i] == i % 6 && out[4 * i + 1] == i / 6 && out[4 * i + 2] == i % 6 / 3 && out[4 * i + 3] == 3);
  OK(zeMemFree(context, out));
  OK(zeKernelDestroy(where));
}

static void constants_are_set_at_creation(void) {
  binary b = binary_of("launch");
  uint32_t ids[] = {8, 7};
  int64_t eight = -8;
  int seven = 77;
  const void *values[] = {&eight, &seven};
  ze_module_constants_t constants = {2, ids, values};
  ze_module_desc_t desc = spirv_desc(b);
  desc.pConstants = &constants;
  ze_module_handle_t modules[3] = {module};
  OK(zeModuleCreate(context, device, &desc, &modules[1], NULL));
  size_t size = 0;
  OK(zeModuleGetNativeBinary(modules[1], &size, NULL));
  uint8_t *bytes = malloc(size);
  OK(zeModuleGetNativeBinary(modules[1], &size, bytes));
  ze_module_desc_t native = spirv_desc((binary){bytes, size});
  native.format = ZE_MODULE_FORMAT_NATIVE;
  OK(zeModuleCreate(context, device, &native, &modules[2], NULL)); /* the values are in it */
  int64_t *out = shared_memory(16);
  for (int i = 0; i < 3; i++) {
    ze_kernel_handle_t kernel = kernel_of(modules[i], "constants");
    SET(kernel, 0, out);
    OK(zeCommandListAppendLaunchKernel(list, kernel, &ONE, NULL, 0, NULL));
    wait();
    CHECK(out[0] == (i == 0 ? 70 : 77) && out[1] == (i == 0 ? 80 : -8));
    OK(zeKernelDestroy(kernel));
  }
  OK(zeModuleDestroy(modules[1]));
  OK(zeModuleDestroy(modules[2]));
  OK(zeMemFree(context, out));
  free(bytes);
  free(b.bytes);
}

static void local_memory_and_values(void) {
  ze_kernel_handle_t reverse = kernel_of(module, "reverse"), by_value = kernel_of(module, "by_value");
  int *data = shared_memory(64 * sizeof(int));
  for (int i = 0; i < 64; i++) data[i] = i;
  SET(reverse, 0, data);
  OK(zeKernelSetArgumentValue(reverse, 1, 64 * sizeof(int), NULL));
  OK(zeKernelSetGroupSize(reverse, 64, 1, 1));
  OK(zeCommandListAppendLaunchKernel(list, reverse, &ONE, NULL, 0, NULL));
  wait();
  for (int i = 0; i < 64; i++) CHECK(data[i] == 63 - i);
  OK(zeKernelSetArgumentValue(reverse, 1, 65537, NULL));
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeCommandListAppendLaunchKernel(list, reverse, &ONE, NULL, 0, NULL));
  int64_t *out = (int64_t *)(void *)data;
  struct {
    int a;
    int64_t b;
  } pair = {-3, 1ll << 40};
  SET(by_value, 0, out);
  SET(by_value, 1, pair);
  OK(zeCommandListAppendLaunchKernel(list, by_value, &ONE, NULL, 0, NULL));
  wait();
  CHECK(out[0] == -3 && out[1] == 1ll << 40);
  OK(zeKernelSetArgumentValue(by_value, 1, sizeof(pair), NULL)); /* null is zero */
  OK(zeCommandListAppendLaunchKernel(list, by_value, &ONE, NULL, 0, NULL));
  wait();
  CHECK(out[0] == 0 && out[1] == 0);
  OK(zeKernelDestroy(reverse));
  OK(zeKernelDestroy(by_value));
  OK(zeMemFree(context, data));
}

/* A module's variable is memory: of kernels and of the host, and each module has its own. */
static void variables_are_memory(void) {
  ze_module_handle_t other = module_of("launch");
  ze_kernel_handle_t count = kernel_of(other, "count"), add = kernel_of(module, "add");
  int *out = shared_memory(sizeof(int)), *counter, one = 1;
  OK(zeModuleGetGlobalPointer(other, "counter", NULL, (void **)&counter));
  SET(count, 0, out);
  for (int i = 0; i < 3; i++) OK(zeCommandListAppendLaunchKernel(list, count, &ONE, NULL, 0, NULL));
  wait();
  CHECK(*out == 8 && int_at(counter) == 8);
  int hundred = 100;
  OK(zeCommandListAppendMemoryCopy(list, counter, &hundred, sizeof(int), NULL, 0, NULL));
  OK(zeCommandListAppendLaunchKernel(list, count, &ONE, NULL, 0, NULL));
  wait();
  CHECK(*out == 101);
  /* Another module's kernel may be given its address. */
  SET(add, 0, counter);
  SET(add, 1, out);
  SET(add, 2, one);
  OK(zeCommandListAppendLaunchKernel(list, add, &ONE, NULL, 0, NULL));
  CHECK(int_at(counter) == 102);
  OK(zeKernelDestroy(count));
  OK(zeKernelDestroy(add));
  OK(zeModuleDestroy(other));
  OK(zeMemFree(context, out));
}

/* A recorded launch runs again and again, on a queue and in an immediate list, and outlives kernel and module. */
static void lists_record_launches(void) {
  ze_module_handle_t other = module_of("launch");
  ze_kernel_handle_t count = kernel_of(other, "count");
  int *out = shared_memory(sizeof(int));
  SET(count, 0, out);
  ze_command_list_handle_t recorded = regular();
  for (int i = 0; i < 5; i++) OK(zeCommandListAppendLaunchKernel(recorded, count, &ONE, NULL, 0, NULL));
  OK(zeCommandListClose(recorded));
  OK(zeKernelDestroy(count));
  OK(zeModuleDestroy(other));
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
  ze_command_queue_handle_t queue;
  OK(zeCommandQueueCreate(context, device, &desc, &queue));
  OK(zeCommandQueueExecuteCommandLists(queue, 1, &recorded, NULL));
  OK(zeCommandQueueSynchronize(queue, FOREVER));
  CHECK(*out == 10);
  OK(zeCommandListImmediateAppendCommandListsExp(list, 1, &recorded, NULL, 0, NULL));
  wait();
  CHECK(*out == 15);
  OK(zeCommandListReset(recorded));
  OK(zeCommandListDestroy(recorded));
  OK(zeCommandQueueDestroy(queue));
  OK(zeMemFree(context, out));
}

static void counts_are_read_when_it_starts(void) {
  ze_event_pool_handle_t pool = pool_of(2, ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP);
  ze_event_handle_t go = event_of(pool, 0), done = event_of(pool, 1);
  ze_kernel_handle_t add = kernel_of(module, "add");
  int *to = shared_memory(64 * sizeof(int)), one = 1;
  ze_group_count_t *counts = host_memory(3 * sizeof(*counts));
  uint32_t *number = host_memory(sizeof(*number));
  memset(to, 0, 64 * sizeof(int));
  SET(add, 0, to);
  SET(add, 1, to);
  SET(add, 2, one);
  OK(zeKernelSetGroupSize(add, 8, 1, 1));
  counts[0] = (ze_group_count_t){0, 0, 0};
  OK(zeCommandListAppendLaunchKernelIndirect(list, add, counts, done, 1, &go));
  counts[0] = (ze_group_count_t){2, 1, 1};
  OK(zeEventHostSignal(go));
  OK(zeEventHostSynchronize(done, FOREVER));
  ze_kernel_timestamp_result_t times;
  OK(zeEventQueryKernelTimestamp(done, &times));
  CHECK(to[15] == 1 && to[16] == 0 && times.global.kernelStart <= times.global.kernelEnd);
  /* Of three launches two run, each with its own counts. */
  ze_kernel_handle_t kernels[] = {add, add, add};
  OK(zeEventHostReset(go));
  OK(zeEventHostReset(done));
  OK(zeCommandListAppendLaunchMultipleKernelsIndirect(list, 3, kernels, number, counts, done, 1, &go));
  counts[0] = (ze_group_count_t){1, 1, 1}, counts[1] = (ze_group_count_t){4, 1, 1};
  counts[2] = (ze_group_count_t){8, 1, 1};
  *number = 2;
  GIVES(NOT_READY, zeEventQueryStatus(done));
  OK(zeEventHostSignal(go));
  OK(zeEventHostSynchronize(done, FOREVER));
  CHECK(to[7] == 3 && to[15] == 2 && to[16] == 1 && to[31] == 1 && to[32] == 0);
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListAppendLaunchKernelIndirect(list, add, NULL, NULL, 0, NULL));
  wait();
  OK(zeKernelDestroy(add));
  OK(zeMemFree(context, to));
  OK(zeMemFree(context, counts));
  OK(zeMemFree(context, number));
  OK(zeEventDestroy(go));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(pool));
}

/* Groups that wait for one another are all there at once. */
static void cooperative_groups_meet(void) {
  ze_kernel_handle_t meet = kernel_of(module, "meet");
  enum { GROUPS = 8, MOST = SPIRV_MAX_COOPERATIVE_GROUPS };
  int *arrived = shared_memory(sizeof(int)), *out = shared_memory(GROUPS * sizeof(int));
  SET(meet, 0, arrived);
  SET(meet, 1, out);
  ze_group_count_t groups = {GROUPS, 1, 1}, full = {MOST, 1, 1}, many = {MOST + 1, 1, 1};
  ze_command_list_append_launch_kernel_param_cooperative_desc_t desc = {
      .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_APPEND_PARAM_COOPERATIVE_DESC, .isCooperative = 1};
  for (int i = 0; i < 2; i++) {
    *arrived = 0;
    if (i == 0) OK(zeCommandListAppendLaunchCooperativeKernel(list, meet, &groups, NULL, 0, NULL));
    else OK(zeCommandListAppendLaunchKernelWithParameters(list, meet, &groups, &desc, NULL, 0, NULL));
    wait();
    for (int k = 0; k < GROUPS; k++) CHECK(out[k] == GROUPS);
  }
  /* As many groups as it says, and no more. */
  uint32_t most, *where_out = shared_memory(MOST * 16);
  ze_kernel_handle_t where = kernel_of(module, "where");
  SET(where, 0, where_out);
  OK(zeKernelSuggestMaxCooperativeGroupCount(where, &most));
  CHECK(most == MOST);
  OK(zeCommandListAppendLaunchCooperativeKernel(list, where, &full, NULL, 0, NULL));
  wait();
  for (uint32_t k = 0; k < MOST; k++) CHECK(where_out[4 * k + 2] == k && where_out[4 * k + 3] == 1);
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendLaunchCooperativeKernel(list, where, &many, NULL, 0, NULL));
  OK(zeKernelDestroy(where));
  OK(zeMemFree(context, where_out));
  desc.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC;
  GIVES(ERROR_UNSUPPORTED_FEATURE,
        zeCommandListAppendLaunchKernelWithParameters(list, meet, &groups, &desc, NULL, 0, NULL));
  OK(zeMemFree(context, arrived));
  OK(zeMemFree(context, out));
  OK(zeKernelDestroy(meet));
}

static void all_arguments_at_once(void) {
  ze_kernel_handle_t reverse = kernel_of(module, "reverse");
  int *data = shared_memory(32 * sizeof(int));
  for (int i = 0; i < 32; i++) data[i] = i;
  size_t local = 32 * sizeof(int);
  void *arguments[] = {&data, &local};
  ze_group_size_t size = {32, 1, 1}, wrong = {0, 1, 1};
  OK(zeCommandListAppendLaunchKernelWithArguments(list, reverse, ONE, size, arguments, NULL, NULL, 0, NULL));
  wait();
  CHECK(data[0] == 31 && data[31] == 0);
  /* As if they had been set one by one. */
  OK(zeCommandListAppendLaunchKernel(list, reverse, &ONE, NULL, 0, NULL));
  wait();
  CHECK(data[0] == 0 && data[31] == 31);
  /* It waits for events, and signals one; what follows it may make it cooperative. */
  ze_event_pool_handle_t pool = pool_of(2, 0);
  ze_event_handle_t go = event_of(pool, 0), done = event_of(pool, 1);
  ze_command_list_append_launch_kernel_param_cooperative_desc_t together = {
      .stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_APPEND_PARAM_COOPERATIVE_DESC, .isCooperative = 1};
  ze_context_desc_t unknown = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  const ze_group_count_t many = {SPIRV_MAX_COOPERATIVE_GROUPS + 1, 1, 1};
  OK(zeCommandListAppendLaunchKernelWithArguments(list, reverse, ONE, size, arguments, &together, done, 1, &go));
  GIVES(NOT_READY, zeEventQueryStatus(done));
  CHECK(data[0] == 0);
  OK(zeEventHostSignal(go));
  OK(zeEventHostSynchronize(done, FOREVER));
  CHECK(data[0] == 31);
  GIVES(ERROR_INVALID_ARGUMENT,
        zeCommandListAppendLaunchKernelWithArguments(list, reverse, many, size, arguments, &together, NULL, 0, NULL));
  GIVES(ERROR_UNSUPPORTED_FEATURE,
        zeCommandListAppendLaunchKernelWithArguments(list, reverse, ONE, size, arguments, &unknown, NULL, 0, NULL));
  wait();
  OK(zeEventDestroy(go));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(pool));
  GIVES(ERROR_INVALID_GROUP_SIZE_DIMENSION,
        zeCommandListAppendLaunchKernelWithArguments(list, reverse, ONE, wrong, arguments, NULL, NULL, 0, NULL));
  GIVES(ERROR_INVALID_NULL_POINTER,
        zeCommandListAppendLaunchKernelWithArguments(list, reverse, ONE, size, NULL, NULL, NULL, 0, NULL));
  OK(zeKernelDestroy(reverse));
  OK(zeMemFree(context, data));
}

/* Pointers in memory reach whatever they point to, mapped memory too; it stays mapped until the launch has ended. */
static void pointers_are_followed(void) {
  enum { PAGE = 64 << 10 };
  ze_kernel_handle_t follow = kernel_of(module, "follow");
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = PAGE};
  ze_physical_mem_handle_t physical;
  int *base, **place = shared_memory(sizeof(int *));
  OK(zeVirtualMemReserve(context, NULL, PAGE, (void **)&base));
  OK(zePhysicalMemCreate(context, device, &desc, &physical));
  OK(zeVirtualMemMap(context, base, PAGE, physical, 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  *place = base + 100;
  SET(follow, 0, place);
  OK(zeCommandListAppendLaunchKernel(list, follow, &ONE, NULL, 0, NULL));
  CHECK(int_at(base + 100) == 42);
  OK(zeVirtualMemUnmap(context, base, PAGE));
  OK(zePhysicalMemDestroy(context, physical));
  OK(zeVirtualMemFree(context, base, PAGE));
  OK(zeMemFree(context, place));
  OK(zeKernelDestroy(follow));
}

/* A launch uses every allocation of the kinds that its kernel may reach indirectly, and no other. */
static void indirect_memory_is_in_use(void) {
  static const ze_kernel_indirect_access_flags_t kinds[] = {ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE,
                                                            ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST,
                                                            ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED};
  ze_memory_free_ext_desc_t defer = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                     .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE};
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t go = event_of(pool, 0);
  ze_kernel_handle_t follow = kernel_of(module, "follow");
  int **place = shared_memory(sizeof(int *));
  SET(follow, 0, place);
  for (int k = 0; k < 3; k++) {
    void *memory[] = {device_memory(64), host_memory(64), shared_memory(64)};
    *place = memory[k];
    OK(zeKernelSetIndirectAccess(follow, kinds[k]));
    OK(zeCommandListAppendLaunchKernel(list, follow, &ONE, NULL, 1, &go));
    for (int i = 0; i < 3; i++) OK(zeMemFreeExt(context, &defer, memory[i]));
    CHECK(live("usm") == 2);
    OK(zeEventHostSignal(go));
    GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER)); /* freed memory is not the kernel's, */
    OK(zeMemFree(context, host_memory(64)));
    CHECK(live("usm") == 1); /* but it goes when no launch needs it */
    OK(zeEventHostReset(go));
  }
  OK(zeMemFree(context, place));
  OK(zeKernelDestroy(follow));
  OK(zeEventDestroy(go));
  OK(zeEventPoolDestroy(pool));
}

static void wrong_launches_are_refused(void) {
  ze_kernel_handle_t add = kernel_of(module, "add");
  ze_command_list_handle_t copies = immediate_on(1, 0, 0);
  GIVES(ERROR_INVALID_COMMAND_LIST_TYPE, zeCommandListAppendLaunchKernel(copies, add, &ONE, NULL, 0, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListAppendLaunchKernel(list, NULL, &ONE, NULL, 0, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListAppendLaunchKernel(NULL, add, &ONE, NULL, 0, NULL));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListAppendLaunchKernel(list, add, NULL, NULL, 0, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendLaunchKernel(list, add, &ONE, NULL, 1, NULL));
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  ze_context_handle_t mine = context, other;
  OK(zeContextCreate(driver, &desc, &other));
  context = other;
  ze_command_list_handle_t foreign = in_order_list();
  context = mine;
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendLaunchKernel(foreign, add, &ONE, NULL, 0, NULL));
  OK(zeCommandListDestroy(foreign));
  OK(zeContextDestroy(other));
  OK(zeCommandListDestroy(copies));
  OK(zeKernelDestroy(add));
}

int main(void) {
  begin();
  module = module_of("launch");
  list = in_order_list();
  all_is_latched();
  groups_have_their_shape();
  constants_are_set_at_creation();
  local_memory_and_values();
  variables_are_memory();
  lists_record_launches();
  counts_are_read_when_it_starts();
  all_arguments_at_once();
  pointers_are_followed();
  indirect_memory_is_in_use();
  wrong_launches_are_refused();
  cooperative_groups_meet();
  OK(zeCommandListDestroy(list));
  OK(zeModuleDestroy(module));
  finish("launches");
  return 0;
}
