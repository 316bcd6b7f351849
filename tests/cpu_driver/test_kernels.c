/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernels.c: what kernels take and say of themselves. */
#include "modules.h"

static void properties_are_real(ze_module_handle_t module) {
  ze_kernel_handle_t kernel = kernel_of(module, "required");
  ze_kernel_max_group_size_properties_ext_t most = {.stype = ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES};
  ze_kernel_preferred_group_size_properties_t multiple = {
      .stype = ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES, .pNext = &most};
  ze_kernel_properties_t p = {.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES, .pNext = &multiple};
  OK(zeKernelGetProperties(kernel, &p));
  CHECK(p.numKernelArgs == 3 && p.requiredGroupSizeX == 8 && p.requiredGroupSizeY == 2 && p.requiredGroupSizeZ == 1);
  CHECK(p.requiredSubgroupSize == 16 && p.maxSubgroupSize == 16 && p.spillMemSize == 0);
  CHECK(multiple.preferredMultiple == 16 && most.maxGroupSize >= 16);
  char name[16];
  size_t size = 0;
  OK(zeKernelGetName(kernel, &size, NULL));
  CHECK(size == sizeof("required"));
  OK(zeKernelGetName(kernel, &size, name));
  CHECK(strcmp(name, "required") == 0);
  uint32_t length = 0;
  OK(zeKernelGetSourceAttributes(kernel, &length, NULL));
  char text[128], *place = text;
  CHECK(length > 1 && length <= sizeof(text));
  OK(zeKernelGetSourceAttributes(kernel, &length, &place));
  CHECK(strcmp(text,
               "reqd_work_group_size(8,2,1) intel_reqd_sub_group_size(16) work_group_size_hint(8,2,1) "
               "vec_type_hint(float4)") == 0);
  ze_kernel_handle_t other = kernel_of(module, "add");
  ze_kernel_properties_t q = {.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES};
  OK(zeKernelGetProperties(other, &q));
  CHECK(q.requiredGroupSizeX == 0 && q.requiredSubgroupSize == 0 && q.localMemSize == 0);
  CHECK(memcmp(p.uuid.kid, q.uuid.kid, 16) != 0 && memcmp(p.uuid.mid, q.uuid.mid, 16) == 0);
  size = 0;
  OK(zeKernelGetBinaryExp(other, &size, NULL));
  uint8_t *bytes = malloc(size);
  OK(zeKernelGetBinaryExp(other, &size, bytes));
  CHECK(size > 8 && memcmp(bytes, "L0RTSPV", 8) == 0);
  free(bytes);
  OK(zeKernelDestroy(other));
  OK(zeKernelDestroy(kernel));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeKernelDestroy(kernel));
}

static void group_sizes_are_checked_and_suggested(ze_module_handle_t module) {
  ze_kernel_handle_t free_size = kernel_of(module, "add"), required = kernel_of(module, "required");
  OK(zeKernelSetGroupSize(free_size, 1024, 1, 1));
  GIVES(ERROR_INVALID_GROUP_SIZE_DIMENSION, zeKernelSetGroupSize(free_size, 1024, 2, 1));
  GIVES(ERROR_INVALID_GROUP_SIZE_DIMENSION, zeKernelSetGroupSize(free_size, 0, 1, 1));
  GIVES(ERROR_INVALID_GROUP_SIZE_DIMENSION, zeKernelSetGroupSize(free_size, 1 << 16, 1 << 16, 1));
  OK(zeKernelSetGroupSize(required, 8, 2, 1));
  GIVES(ERROR_INVALID_GROUP_SIZE_DIMENSION, zeKernelSetGroupSize(required, 16, 1, 1));
  static const uint32_t global[][3] = {{1, 1, 1},   {1000, 7, 3}, {65536, 1, 1},
                                       {257, 2, 2}, {16, 16, 16}, {1u << 31, 3, 1}};
  for (size_t i = 0; i < sizeof(global) / sizeof(global[0]); i++) {
    const uint32_t *g = global[i];
    uint32_t x, y, z;
    OK(zeKernelSuggestGroupSize(free_size, g[0], g[1], g[2], &x, &y, &z));
    CHECK(g[0] % x == 0 && g[1] % y == 0 && g[2] % z == 0 && x * y * z <= 1024);
    OK(zeKernelSetGroupSize(free_size, x, y, z));
  }
  uint32_t x, y, z, most = 0;
  OK(zeKernelSuggestGroupSize(free_size, 4096, 1, 1, &x, &y, &z));
  CHECK(x == 256);
  OK(zeKernelSuggestGroupSize(required, 64, 64, 64, &x, &y, &z));
  CHECK(x == 8 && y == 2 && z == 1);
  GIVES(ERROR_INVALID_GLOBAL_WIDTH_DIMENSION, zeKernelSuggestGroupSize(required, 0, 64, 64, &x, &y, &z));
  OK(zeKernelSuggestMaxCooperativeGroupCount(free_size, &most));
  CHECK(most >= 1);
  OK(zeKernelDestroy(free_size));
  OK(zeKernelDestroy(required));
}

/* Integers of 64 bits for an argument of 32: oneMKL gives them. */
static void small_arguments_are_widened(ze_module_handle_t module) {
  ze_kernel_handle_t add = kernel_of(module, "add"), by_value = kernel_of(module, "by_value");
  int64_t wide[] = {7, -7, UINT32_MAX, INT64_C(7) << 32, -1 ^ 1 << 8, INT64_MIN};
  OK(zeKernelSetArgumentValue(add, 2, 8, &wide[0]));
  OK(zeKernelSetArgumentValue(add, 2, 8, &wide[1]));
  OK(zeKernelSetArgumentValue(add, 2, 8, &wide[2]));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(add, 2, 8, &wide[3]));
  OK(zeKernelSetArgumentValue(add, 2, 8, &wide[4]));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(add, 2, 8, &wide[5]));
  OK(zeKernelSetArgumentValue(add, 2, 8, NULL)); /* zeros */
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(add, 2, 2, NULL));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(add, 2, 9, wide));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(add, 2, 3, wide));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(by_value, 1, 24, wide));
  OK(zeKernelDestroy(add));
  OK(zeKernelDestroy(by_value));
}

static void arguments_are_checked(ze_module_handle_t module) {
  ze_kernel_handle_t add = kernel_of(module, "add"), reverse = kernel_of(module, "reverse");
  ze_kernel_handle_t by_value = kernel_of(module, "by_value");
  void *memory = device_memory(4096), *inside = (char *)memory + 64;
  int more = 3;
  struct {
    int a;
    long b;
  } pair = {1, 2};
  SET(add, 0, memory);
  SET(add, 2, more);
  OK(zeKernelSetArgumentValue(add, 1, sizeof(void *), NULL));
  OK(zeKernelSetArgumentValue(add, 2, sizeof(int), NULL));
  SET(by_value, 1, pair);
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_INDEX, zeKernelSetArgumentValue(add, 3, 4, &more));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(add, 2, 8, &memory));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(add, 0, 4, &memory));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(by_value, 1, 4, &pair));
  OK(zeKernelSetArgumentValue(reverse, 1, 64, NULL));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(reverse, 1, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeKernelSetArgumentValue(reverse, 1, 64, &memory));
  /* Its allocations are those that its arguments point into. */
  uint32_t count = 0;
  SET(add, 1, inside);
  OK(zeKernelGetAllocationPropertiesExp(add, &count, NULL));
  CHECK(count == 2);
  ze_kernel_allocation_exp_properties_t found[2] = {{.stype = ZE_STRUCTURE_TYPE_KERNEL_ALLOCATION_PROPERTIES},
                                                    {.stype = ZE_STRUCTURE_TYPE_KERNEL_ALLOCATION_PROPERTIES}};
  OK(zeKernelGetAllocationPropertiesExp(add, &count, found));
  for (uint32_t i = 0; i < 2; i++)
    CHECK(found[i].argIndex == i && found[i].base == (uintptr_t)memory && found[i].size == 4096 &&
          found[i].type == ZE_MEMORY_TYPE_DEVICE);
  uint32_t flags = 9;
  OK(zeKernelGetIndirectAccess(add, &flags));
  CHECK(flags == 0);
  OK(zeKernelSetIndirectAccess(add, 7));
  OK(zeKernelGetIndirectAccess(add, &flags));
  CHECK(flags == 7);
  GIVES(ERROR_INVALID_ENUMERATION, zeKernelSetIndirectAccess(add, 8));
  OK(zeKernelSetCacheConfig(add, ZE_CACHE_CONFIG_FLAG_LARGE_SLM));
  GIVES(ERROR_INVALID_ENUMERATION, zeKernelSetCacheConfig(add, 4));
  ze_scheduling_hint_exp_desc_t hint = {.stype = ZE_STRUCTURE_TYPE_SCHEDULING_HINT_EXP_DESC, .flags = 2};
  OK(zeKernelSchedulingHintExp(add, &hint));
  hint.flags = 8;
  GIVES(ERROR_INVALID_ENUMERATION, zeKernelSchedulingHintExp(add, &hint));
  OK(zeMemFree(context, memory));
  OK(zeKernelDestroy(add));
  OK(zeKernelDestroy(reverse));
  OK(zeKernelDestroy(by_value));
}

static void memory_is_counted(ze_module_handle_t module) {
  ze_kernel_handle_t memories = kernel_of(module, "memories"), empty = kernel_of(module, "empty");
  ze_kernel_max_group_size_properties_ext_t most = {.stype = ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES};
  ze_kernel_preferred_group_size_properties_t multiple = {
      .stype = ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES, .pNext = &most};
  ze_kernel_properties_t p = {.stype = ZE_STRUCTURE_TYPE_KERNEL_PROPERTIES, .pNext = &multiple};
  memset(&p.requiredNumSubGroups, 0xff, sizeof(p.requiredNumSubGroups));
  OK(zeKernelGetProperties(memories, &p));
  CHECK(p.numKernelArgs == 2 && p.localMemSize == 400 && p.privateMemSize == 64 && p.spillMemSize == 0);
  CHECK(p.requiredNumSubGroups == 0 && p.requiredSubgroupSize == 0 && p.maxSubgroupSize == 32);
  CHECK(p.maxNumSubgroups == 1024 / 32 && most.maxGroupSize == 1024 && multiple.preferredMultiple == 32);
  OK(zeKernelGetProperties(empty, &p));
  CHECK(p.numKernelArgs == 0 && p.localMemSize == 0 && p.privateMemSize == 0);
  OK(zeKernelDestroy(memories));
  OK(zeKernelDestroy(empty));
  ze_kernel_handle_t required = kernel_of(module, "required");
  OK(zeKernelGetProperties(required, &p));
  CHECK(p.requiredSubgroupSize == 16 && p.maxSubgroupSize == 16 && p.maxNumSubgroups == 1024 / 16);
  CHECK(multiple.preferredMultiple == 16);
  OK(zeKernelDestroy(required));
}

/* What the device says of modules, and that arguments of the size that it names are taken. */
static void the_device_tells_of_modules(ze_module_handle_t module) {
  ze_scheduling_hint_exp_properties_t hints = {.stype = ZE_STRUCTURE_TYPE_SCHEDULING_HINT_EXP_PROPERTIES,
                                               .schedulingHintFlags = 0xff};
  ze_float_atomic_ext_properties_t atomics = {
      .stype = ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES, .pNext = &hints, .fp16Flags = 0xff};
  ze_device_module_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES, .pNext = &atomics};
  OK(zeDeviceGetModuleProperties(device, &p));
  CHECK(p.spirvVersionSupported == 0x10006 && p.printfBufferSize == 0x100000);
  CHECK(p.flags == (ZE_DEVICE_MODULE_FLAG_FP16 | ZE_DEVICE_MODULE_FLAG_FP64 | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS));
  CHECK((p.fp32flags & ZE_DEVICE_FP_FLAG_FMA) != 0 && p.fp64flags == p.fp32flags);
  CHECK((p.fp16flags & ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST) != 0);
  CHECK(atomics.pNext == &hints && hints.schedulingHintFlags == 0 && atomics.fp16Flags == 0);
  CHECK((atomics.fp32Flags & ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD) != 0 && atomics.fp64Flags == atomics.fp32Flags);
  GIVES(ERROR_INVALID_NULL_POINTER, zeDeviceGetModuleProperties(device, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeDeviceGetModuleProperties(NULL, &p));
  static const ze_group_count_t one = {1, 1, 1};
  ze_kernel_handle_t large = kernel_of(module, "large_arguments");
  ze_command_list_handle_t list = in_order_list();
  struct {
    long values[255];
  } value;
  long *out = shared_memory(sizeof(value));
  CHECK(p.maxArgumentsSize == sizeof(value) + sizeof(out));
  for (int i = 0; i < 255; i++) value.values[i] = i * 77;
  SET(large, 0, out);
  SET(large, 1, value);
  OK(zeCommandListAppendLaunchKernel(list, large, &one, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(memcmp(out, &value, sizeof(value)) == 0);
  OK(zeMemFree(context, out));
  OK(zeCommandListDestroy(list));
  OK(zeKernelDestroy(large));
}

int main(void) {
  begin();
  ze_module_handle_t module = module_of("launch");
  properties_are_real(module);
  group_sizes_are_checked_and_suggested(module);
  arguments_are_checked(module);
  small_arguments_are_widened(module);
  memory_is_counted(module);
  the_device_tells_of_modules(module);
  OK(zeModuleDestroy(module));
  finish("kernels");
  return 0;
}
