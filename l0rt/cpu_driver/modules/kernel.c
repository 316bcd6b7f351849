/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c: making kernels, and setting what their launches take. */
#include "modules/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "base/knobs.h"
#include "memory/image.h"
#include "memory/sampler.h"
#include "sync/failure.h"

static void end(cpu_kernel *kernel) {
  cpu_module *module = kernel->module;
  free(kernel->local_sizes);
  free(kernel->places);
  free(kernel->values);
  cpu_delete(kernel);
  atomic_fetch_sub(&module->kernels, 1);
}

/* A place for all arguments, each at a multiple of eight: zero before they are set. */
static bool reserve_values(cpu_kernel *kernel) {
  uint32_t count = kernel->info->argument_count, size = 0;
  kernel->local_sizes = calloc((size_t)count + 1, sizeof(*kernel->local_sizes));
  kernel->places = calloc((size_t)count + 1, sizeof(*kernel->places));
  for (uint32_t i = 0; i < count && kernel->places != NULL; i++) {
    kernel->places[i] = size;
    size += (kernel->info->arguments[i].size + 7) & ~7u;
  }
  kernel->values_size = size;
  kernel->values = calloc((size_t)size + 1, 1);
  return kernel->local_sizes != NULL && kernel->places != NULL && kernel->values != NULL;
}

CPU_EXPORT ze_result_t zeKernelCreate(ze_module_handle_t handle, const ze_kernel_desc_t *desc,
                                      ze_kernel_handle_t *out) {
  CPU_ENTER();
  cpu_module *module = cpu_module_cast(handle);
  CPU_REFUSE_IF(module == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || desc->pKernelName == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0x3, ERROR_INVALID_ENUMERATION);
  if (cpu_module_is_unlinked(module)) {
    char text[200];
    snprintf(text, sizeof(text), "the module calls %.100s, which has no body and no module exports",
             spirv_program_import(cpu_module_program(module), 0));
    return CPU_REFUSED(ERROR_INVALID_MODULE_UNLINKED, text);
  }
  const spirv_kernel *code = spirv_program_kernel(cpu_module_program(module), desc->pKernelName);
  CPU_REFUSE_IF(code == NULL, ERROR_INVALID_KERNEL_NAME);
  spirv_result why;
  if (!spirv_kernel_prepare(code, &why) && why.status != SPIRV_UNSUPPORTED) { /* which its launches say */
    cpu_failure_describe(why.text);
    return why.status == SPIRV_OUT_OF_MEMORY ? ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY
                                             : ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
  }
  cpu_kernel *kernel = cpu_new(CPU_KERNEL);
  CPU_REFUSE_IF(kernel == NULL, ERROR_OUT_OF_HOST_MEMORY);
  atomic_fetch_add(&module->kernels, 1);
  kernel->module = module;
  kernel->kernel = code;
  kernel->info = spirv_kernel_look(code);
  for (int i = 0; i < 3; i++)
    kernel->group_size[i] = kernel->info->required_group_size[i] == 0 ? 1 : kernel->info->required_group_size[i];
  if (!reserve_values(kernel)) {
    end(kernel);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  *out = (ze_kernel_handle_t)kernel;
  return ZE_RESULT_SUCCESS;
}

/* Launches keep a copy of what they need. */
CPU_EXPORT ze_result_t zeKernelDestroy(ze_kernel_handle_t handle) {
  CPU_ENTER();
  cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  end(kernel);
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_group_size_check(const spirv_kernel_info *info, const uint32_t size[3]) {
  const uint32_t *required = info->required_group_size;
  uint64_t items = 1;
  for (int i = 0; i < 3; i++) {
    CPU_REFUSE_IF(size[i] == 0 || size[i] > SPIRV_MAX_GROUP_SIZE || (required[i] != 0 && size[i] != required[i]),
                  ERROR_INVALID_GROUP_SIZE_DIMENSION);
    items *= size[i];
  }
  return items > info->max_group_size
             ? CPU_REFUSED(ERROR_INVALID_GROUP_SIZE_DIMENSION, "the group has more work-items than the kernel allows")
             : ZE_RESULT_SUCCESS;
}

ze_result_t cpu_kernel_set_group_size(cpu_kernel *kernel, uint32_t x, uint32_t y, uint32_t z) {
  const uint32_t size[3] = {x, y, z};
  ze_result_t result = cpu_group_size_check(kernel->info, size);
  if (result != ZE_RESULT_SUCCESS) return result;
  memcpy(kernel->group_size, size, sizeof(size));
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeKernelSetGroupSize(ze_kernel_handle_t handle, uint32_t x, uint32_t y, uint32_t z) {
  CPU_ENTER();
  cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  return cpu_kernel_set_group_size(kernel, x, y, z);
}

/* Is it a small integer with only its own sign, or zeros, above? Intel's driver takes the bytes that fit, and oneMKL has
 * kernels with int arguments that it gives 64 bits; NULL stands for zeros. */
static bool is_widened(const spirv_argument *argument, size_t size, const uint8_t *value) {
  if (argument->kind != SPIRV_VALUE || size > sizeof(uint64_t)) return false;
  for (size_t i = argument->size; i < size && value != NULL; i++)
    if (value[i] != value[size - 1] || (value[i] != 0 && value[i] != UINT8_MAX)) return false;
  return size > argument->size;
}

ze_result_t cpu_kernel_set_argument(cpu_kernel *kernel, uint32_t index, size_t size, const void *value) {
  CPU_REFUSE_IF(index >= kernel->info->argument_count, ERROR_INVALID_KERNEL_ARGUMENT_INDEX);
  const spirv_argument *argument = &kernel->info->arguments[index];
  if (argument->kind == SPIRV_LOCAL_POINTER) {
    CPU_REFUSE_IF(size == 0, ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
    if (value != NULL) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "local memory has a size, and no value");
    kernel->local_sizes[index] = size;
    return ZE_RESULT_SUCCESS;
  }
  bool image = argument->kind == SPIRV_IMAGE, sampler = argument->kind == SPIRV_SAMPLER;
  if ((image || sampler) && size == sizeof(void *) && value != NULL) {
    void *handle;
    memcpy(&handle, value, sizeof(handle));
    if (image ? cpu_image_cast(handle) == NULL : cpu_sampler_cast(handle) == NULL)
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT,
                         "the value is no handle of an image or a sampler, as its kernel takes");
  }
  if (cpu_knobs.lenient && size > argument->size) size = argument->size;
  CPU_REFUSE_IF(size != argument->size && !is_widened(argument, size, value), ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
  if (value == NULL) memset(kernel->values + kernel->places[index], 0, argument->size);
  else memcpy(kernel->values + kernel->places[index], value, argument->size);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeKernelSetArgumentValue(ze_kernel_handle_t handle, uint32_t index, size_t size,
                                                const void *value) {
  CPU_ENTER();
  cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  return cpu_kernel_set_argument(kernel, index, size, value);
}

uint64_t cpu_local_bytes(const spirv_kernel_info *info, const uint64_t *local_sizes) {
  uint64_t bytes = info->local_bytes;
  for (uint32_t i = 0; i < info->argument_count; i++) {
    uint64_t size = local_sizes[i];
    if (size > SPIRV_MAX_LOCAL_BYTES) return UINT64_MAX;
    bytes += (size + 15) & ~(uint64_t)15;
  }
  return bytes;
}

CPU_EXPORT ze_result_t zeKernelSetGlobalOffsetExp(ze_kernel_handle_t handle, uint32_t x, uint32_t y, uint32_t z) {
  CPU_ENTER();
  cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  kernel->offset[0] = x;
  kernel->offset[1] = y;
  kernel->offset[2] = z;
  return ZE_RESULT_SUCCESS;
}

/* All memory can be accessed whatever the flags are: they are only stored for the query. */
CPU_EXPORT ze_result_t zeKernelSetIndirectAccess(ze_kernel_handle_t handle, ze_kernel_indirect_access_flags_t flags) {
  CPU_ENTER();
  cpu_kernel *kernel = cpu_kernel_cast(handle);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(flags > 0x7, ERROR_INVALID_ENUMERATION);
  kernel->access = flags;
  return ZE_RESULT_SUCCESS;
}

CPU_GETTER(zeKernelGetIndirectAccess, ze_kernel_handle_t, cpu_kernel, kernel, cpu_kernel_cast,
           ze_kernel_indirect_access_flags_t, flags, kernel->access)

/* Caches and the order of threads are the processor's: the wishes are checked and change nothing. */
CPU_EXPORT ze_result_t zeKernelSetCacheConfig(ze_kernel_handle_t handle, ze_cache_config_flags_t flags) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_kernel_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  return flags > 0x3 ? CPU_REFUSED(ERROR_INVALID_ENUMERATION, "flags") : ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeKernelSchedulingHintExp(ze_kernel_handle_t handle, ze_scheduling_hint_exp_desc_t *hint) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_kernel_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(hint == NULL, ERROR_INVALID_NULL_POINTER);
  return hint->flags > 0x7 ? CPU_REFUSED(ERROR_INVALID_ENUMERATION, "flags") : ZE_RESULT_SUCCESS;
}
