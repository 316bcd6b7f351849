/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h: kernels: an entry point of a module, and what its next launch is to be given. */
#ifndef L0RT_CPU_KERNEL_H
#define L0RT_CPU_KERNEL_H

#include "modules/module.h"

typedef struct {
  cpu_object base;
  cpu_module *module; /* borrowed: a module with kernels can't be destroyed */
  const spirv_kernel *kernel;
  const spirv_kernel_info *info;
  uint32_t group_size[3];
  uint32_t offset[3];
  ze_kernel_indirect_access_flags_t access; /* as asked for: all memory can be reached */
  uint64_t *local_sizes; /* one for each argument, of local pointers */
  uint32_t *places;      /* of each argument's value among the values */
  char *values;
  uint32_t values_size;
} cpu_kernel;

_Static_assert(sizeof(cpu_kernel) <= CPU_SLOT, "an object must fit its slot");

static inline cpu_kernel *cpu_kernel_cast(ze_kernel_handle_t handle) { return cpu_cast(handle, CPU_KERNEL); }

/* What zeKernelSetGroupSize and zeKernelSetArgumentValue do. */
ze_result_t cpu_kernel_set_group_size(cpu_kernel *kernel, uint32_t x, uint32_t y, uint32_t z);
ze_result_t cpu_kernel_set_argument(cpu_kernel *kernel, uint32_t index, size_t size, const void *value);

/* May groups of a kernel have this size? */
ze_result_t cpu_group_size_check(const spirv_kernel_info *info, const uint32_t size[3]);

/* Local memory of a group: declared, and of arguments. */
uint64_t cpu_local_bytes(const spirv_kernel_info *info, const uint64_t *local_sizes);
static inline uint64_t cpu_kernel_local_bytes(const cpu_kernel *kernel) {
  return cpu_local_bytes(kernel->info, kernel->local_sizes);
}

#endif
