/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_query.c: what a kernel says of itself. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/gate.h"
#include "memory/import.h"
#include "memory/usm.h"
#include "modules/kernel.h"
#include "modules/native.h"

static void fill_chain(const cpu_kernel *kernel, void *next) {
  for (ze_base_properties_t *p = next; p != NULL; p = p->pNext) {
    if (p->stype == ZE_STRUCTURE_TYPE_KERNEL_PREFERRED_GROUP_SIZE_PROPERTIES)
      ((ze_kernel_preferred_group_size_properties_t *)p)->preferredMultiple = kernel->info->subgroup_size;
    else if (p->stype == ZE_STRUCTURE_TYPE_KERNEL_MAX_GROUP_SIZE_EXT_PROPERTIES)
      ((ze_kernel_max_group_size_properties_ext_t *)p)->maxGroupSize = kernel->info->max_group_size;
  }
}

CPU_EXPORT ze_result_t zeKernelGetProperties(ze_kernel_handle_t handle, ze_kernel_properties_t *p) {
  CPU_ENTER();
  const cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(p == NULL, ERROR_INVALID_NULL_POINTER);
  const spirv_kernel_info *info = kernel->info;
  p->numKernelArgs = info->argument_count;
  p->requiredGroupSizeX = info->required_group_size[0];
  p->requiredGroupSizeY = info->required_group_size[1];
  p->requiredGroupSizeZ = info->required_group_size[2];
  p->requiredNumSubGroups = 0;
  p->requiredSubgroupSize = info->required_subgroup_size;
  p->maxSubgroupSize = info->subgroup_size;
  p->maxNumSubgroups = (info->max_group_size + info->subgroup_size - 1) / info->subgroup_size;
  p->localMemSize = (uint32_t)info->local_bytes;
  p->privateMemSize = (uint32_t)info->private_bytes;
  p->spillMemSize = 0; /* registers are memory */
  memset(&p->uuid, 0, sizeof(p->uuid));
  uint64_t name = cpu_native_hash(info->name, strlen(info->name));
  memcpy(p->uuid.kid, &name, sizeof(name));
  memcpy(p->uuid.mid, &kernel->module->hash, sizeof(kernel->module->hash));
  fill_chain(kernel, p->pNext);
  return ZE_RESULT_SUCCESS;
}

/* The size counts the closing NUL. */
CPU_EXPORT ze_result_t zeKernelGetName(ze_kernel_handle_t handle, size_t *size, char *name) {
  CPU_ENTER();
  const cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(size == NULL, ERROR_INVALID_NULL_POINTER);
  if (name != NULL && *size != 0) snprintf(name, *size, "%s", kernel->info->name);
  *size = strlen(kernel->info->name) + 1;
  return ZE_RESULT_SUCCESS;
}

/* The attributes that SPIR-V keeps of the source. */
static void add_attribute(char *text, size_t size, const char *format, ...) {
  size_t length = strlen(text);
  if (length != 0) length += (size_t)snprintf(text + length, size - length, " ");
  va_list values;
  va_start(values, format);
  vsnprintf(text + length, size - length, format, values);
  va_end(values);
}

CPU_EXPORT ze_result_t zeKernelGetSourceAttributes(ze_kernel_handle_t handle, uint32_t *size, char **out) {
  static const char *const types[] = {"char", "short", "int", "long", "half", "float", "double"};
  CPU_ENTER();
  const cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(size == NULL, ERROR_INVALID_NULL_POINTER);
  char text[256] = "";
  const spirv_kernel_info *info = kernel->info;
  const uint32_t *required = info->required_group_size, *hinted = info->hinted_group_size;
  uint32_t type = info->hinted_vector & 0xffff, width = info->hinted_vector >> 16;
  if (required[0] != 0)
    add_attribute(text, sizeof(text), "reqd_work_group_size(%u,%u,%u)", required[0], required[1], required[2]);
  if (info->required_subgroup_size != 0)
    add_attribute(text, sizeof(text), "intel_reqd_sub_group_size(%u)", info->required_subgroup_size);
  if (hinted[0] != 0)
    add_attribute(text, sizeof(text), "work_group_size_hint(%u,%u,%u)", hinted[0], hinted[1], hinted[2]);
  if (width > 1 && type < sizeof(types) / sizeof(types[0]))
    add_attribute(text, sizeof(text), "vec_type_hint(%s%u)", types[type], width);
  else if (info->hinted_vector != 0 && type < sizeof(types) / sizeof(types[0]))
    add_attribute(text, sizeof(text), "vec_type_hint(%s)", types[type]);
  if (out != NULL && *out != NULL && *size != 0) snprintf(*out, *size, "%s", text);
  *size = (uint32_t)strlen(text) + 1;
  return ZE_RESULT_SUCCESS;
}

/* Kernels have no code of their own that a processor knows: it is the module's container, which makes the kernel again. */
CPU_EXPORT ze_result_t zeKernelGetBinaryExp(ze_kernel_handle_t handle, size_t *size, uint8_t *binary) {
  CPU_ENTER();
  const cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(size == NULL, ERROR_INVALID_NULL_POINTER);
  const cpu_module *module = kernel->module;
  if (binary != NULL) memcpy(binary, module->native, *size < module->native_size ? *size : module->native_size);
  *size = module->native_size;
  return ZE_RESULT_SUCCESS;
}

/* The largest divisor of a width that is no more than this many. */
static uint32_t divisor(uint32_t width, uint32_t most) {
  uint32_t best = width < most ? width : most;
  while (width % best != 0) best--;
  return best;
}

/* Groups tile the global size exactly, so sizes are divisors; 256 work-items run at once, so more gain nothing. */
CPU_EXPORT ze_result_t zeKernelSuggestGroupSize(ze_kernel_handle_t handle, uint32_t width, uint32_t height,
                                                uint32_t depth, uint32_t *x, uint32_t *y, uint32_t *z) {
  CPU_ENTER();
  enum { ENOUGH = 256 };
  const cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(x == NULL || y == NULL || z == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(width == 0 || height == 0 || depth == 0, ERROR_INVALID_GLOBAL_WIDTH_DIMENSION);
  const uint32_t *required = kernel->info->required_group_size;
  uint32_t most = kernel->info->max_group_size < ENOUGH ? kernel->info->max_group_size : ENOUGH;
  *x = required[0] != 0 ? required[0] : divisor(width, most);
  *y = required[0] != 0 ? required[1] : divisor(height, most / *x);
  *z = required[0] != 0 ? required[2] : divisor(depth, most / *x / *y);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeKernelSuggestMaxCooperativeGroupCount(ze_kernel_handle_t handle, uint32_t *count) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_kernel_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  *count = SPIRV_MAX_COOPERATIVE_GROUPS;
  return ZE_RESULT_SUCCESS;
}

/* The allocation that a pointer argument points into. */
static bool describe(const cpu_kernel *kernel, uint32_t index, ze_kernel_allocation_exp_properties_t *p) {
  spirv_argument_kind kind = kernel->info->arguments[index].kind;
  if (kind != SPIRV_GLOBAL_POINTER && kind != SPIRV_CONSTANT_POINTER) return false;
  void *pointer;
  memcpy(&pointer, kernel->values + kernel->places[index], sizeof(pointer));
  cpu_found found = cpu_usm_find(pointer);
  cpu_mapping mapping;
  if (found.block != NULL) {
    mapping = (cpu_mapping){.base = found.base, .size = found.block->size};
    p->type = found.block->type;
  } else if (cpu_reservation_find(kernel->module->context, pointer, &mapping)) {
    p->type = mapping.on_host ? ZE_MEMORY_TYPE_HOST : ZE_MEMORY_TYPE_DEVICE;
  } else if (cpu_import_find(kernel->module->context, pointer, &mapping)) {
    p->type = ZE_MEMORY_TYPE_HOST_IMPORTED;
  } else {
    return false;
  }
  p->base = mapping.base;
  p->size = mapping.size;
  p->argIndex = index;
  return true;
}

CPU_EXPORT ze_result_t zeKernelGetAllocationPropertiesExp(ze_kernel_handle_t handle, uint32_t *count,
                                                          ze_kernel_allocation_exp_properties_t *properties) {
  CPU_ENTER();
  const cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  uint32_t n = 0;
  for (uint32_t i = 0; i < kernel->info->argument_count; i++) {
    ze_kernel_allocation_exp_properties_t nowhere;
    n += describe(kernel, i, properties != NULL && n < *count ? &properties[n] : &nowhere);
  }
  if (*count == 0 || *count > n) *count = n;
  return ZE_RESULT_SUCCESS;
}
