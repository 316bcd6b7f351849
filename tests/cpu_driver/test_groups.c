/* SPDX-License-Identifier: Apache-2.0 */
/* test_groups.c: the queue groups of the plain device and of the simulated ones. */
#include "children.h"
#include "modules.h"

enum { COPIES = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY };
enum {
  COMPUTES = COPIES | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE |
  ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS
};
enum { SIZE = 4096, MOST = 3 };

typedef struct {
  const char *profile;
  uint32_t count;
  uint32_t queues[MOST];
  size_t patterns[MOST];
} groups;

static const groups known[] = {
    {NULL, 2, {2, 1}, {128, 16}},          {"arc-a770-i915", 2, {1, 1}, {128, 16}},
    {"arc-a770-xe", 2, {1, 1}, {128, 16}}, {"arc-b580", 2, {1, 1}, {128, 1}},
    {"pvc", 3, {1, 1, 7}, {128, 1, 1}},    {"lunar-lake", 2, {1, 1}, {128, 1}},
    {"meteor-lake", 2, {1, 1}, {128, 16}}, {"pvc,neo-25.18,timing", 3, {1, 1, 7}, {128, 1, 1}},
};
static const groups *expected; /* of the device that this process has */

static ze_result_t makes(uint32_t ordinal, uint32_t index) {
  ze_command_queue_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .ordinal = ordinal, .index = index};
  ze_command_list_handle_t list;
  ze_command_queue_handle_t queue;
  ze_result_t result = zeCommandListCreateImmediate(context, device, &desc, &list);
  CHECK(zeCommandQueueCreate(context, device, &desc, &queue) == result);
  if (result != ZE_RESULT_SUCCESS) return result;
  OK(zeCommandListDestroy(list));
  OK(zeCommandQueueDestroy(queue));
  return result;
}

static void they_are_told(void) {
  ze_command_queue_group_properties_t told[MOST + 1];
  for (int i = 0; i <= MOST; i++)
    told[i] = (ze_command_queue_group_properties_t){.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES};
  uint32_t count = 0;
  OK(zeDeviceGetCommandQueueGroupProperties(device, &count, NULL));
  CHECK(count == expected->count);
  count = 1;
  OK(zeDeviceGetCommandQueueGroupProperties(device, &count, told));
  CHECK(count == 1 && told[1].numQueues == 0);
  count = MOST + 1;
  OK(zeDeviceGetCommandQueueGroupProperties(device, &count, told));
  CHECK(count == expected->count);
  for (uint32_t i = 0; i < count; i++) {
    CHECK(told[i].flags == (i == 0 ? COMPUTES : COPIES));
    CHECK(told[i].numQueues == expected->queues[i] && told[i].maxMemoryFillPatternSize == expected->patterns[i]);
    CHECK(makes(i, told[i].numQueues - 1) == ZE_RESULT_SUCCESS);
    CHECK(makes(i, told[i].numQueues) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
  }
  CHECK(makes(count, 0) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
}

/* Every queue has an engine: all of them are held up at once, and each one goes on by itself. */
static void each_queue_works(uint32_t ordinal, uint32_t count) {
  ze_event_pool_handle_t pool = pool_of(8, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_command_list_handle_t lists[8];
  ze_event_handle_t gates[8];
  unsigned char *target = host_memory(8), *source = device_memory(8);
  memset(target, 0, 8);
  for (uint32_t i = 0; i < count; i++) {
    lists[i] = immediate_on(ordinal, i, ZE_COMMAND_QUEUE_FLAG_IN_ORDER);
    gates[i] = event_of(pool, i);
    unsigned char value = (unsigned char)(i + 1);
    OK(zeCommandListAppendWaitOnEvents(lists[i], 1, &gates[i]));
    OK(zeCommandListAppendMemoryFill(lists[i], source + i, &value, 1, 1, NULL, 0, NULL));
    OK(zeCommandListAppendMemoryCopy(lists[i], target + i, source + i, 1, NULL, 0, NULL));
  }
  for (uint32_t i = count; i-- > 0;) {
    GIVES(NOT_READY, zeCommandListHostSynchronize(lists[i], 0));
    OK(zeEventHostSignal(gates[i]));
    OK(zeCommandListHostSynchronize(lists[i], FOREVER));
    CHECK(target[i] == i + 1);
    OK(zeCommandListDestroy(lists[i]));
    OK(zeEventDestroy(gates[i]));
  }
  OK(zeDeviceSynchronize(device));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, target));
  OK(zeMemFree(context, source));
}

static void only_the_first_computes(uint32_t ordinal, ze_kernel_handle_t kernel) {
  static const ze_group_count_t one = {1, 1, 1};
  ze_command_list_handle_t list = immediate_on(ordinal, 0, 0);
  ze_result_t result = zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL);
  CHECK(result == (ordinal == 0 ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
}

static void patterns_have_a_limit(uint32_t ordinal, size_t most) {
  static const unsigned char pattern[256] = {9};
  unsigned char *memory = device_memory(SIZE);
  ze_command_list_handle_t list = immediate_on(ordinal, 0, 0);
  OK(zeCommandListAppendMemoryFill(list, memory, pattern, most, SIZE, NULL, 0, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendMemoryFill(list, memory, pattern, 2 * most, SIZE, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
}

static void the_groups_of_a_device(void) {
  begin();
  they_are_told();
  ze_module_handle_t module = module_of("launch");
  ze_kernel_handle_t kernel = kernel_of(module, "where");
  uint32_t *out = shared_memory(SIZE);
  OK(zeKernelSetGroupSize(kernel, 1, 1, 1));
  OK(zeKernelSetArgumentValue(kernel, 0, sizeof(out), &out));
  for (uint32_t i = 0; i < expected->count; i++) {
    each_queue_works(i, expected->queues[i]);
    only_the_first_computes(i, kernel);
    patterns_have_a_limit(i, expected->patterns[i]);
  }
  OK(zeKernelDestroy(kernel));
  OK(zeModuleDestroy(module));
  OK(zeMemFree(context, out));
  finish(expected->profile == NULL ? "groups" : expected->profile);
}

int main(void) {
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    expected = &known[i];
    CHECK(in_child(known[i].profile == NULL ? NULL : "L0RT_CPU_PROFILE", known[i].profile, the_groups_of_a_device, NULL,
                   0) == 0);
  }
}
