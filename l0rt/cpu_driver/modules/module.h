/* SPDX-License-Identifier: Apache-2.0 */
/* module.h: modules: programs built from SPIR-V, or from what this driver made of it before. */
#ifndef L0RT_CPU_MODULE_H
#define L0RT_CPU_MODULE_H

#include "base/context.h"
#include "spirv/spirv.h"

/* A module's program and those that it was linked with. A launch holds them, so that the module may go before it has
 * ended. */
typedef struct {
  _Atomic uint32_t holds;
  struct cpu_launch *_Atomic spare; /* an earlier launch's memory, for the next one; or NULL */
  uint32_t count;
  spirv_program *items[]; /* its own first */
} cpu_programs;

typedef struct {
  cpu_object base;
  cpu_context *context; /* held */
  cpu_device *device;
  cpu_programs *programs;
  void *native; /* the native binary, and its size */
  size_t native_size;
  uint64_t hash; /* of it: the module's unique id */
  _Atomic uint32_t kernels; /* alive: they must go first */
} cpu_module;

_Static_assert(sizeof(cpu_module) <= CPU_SLOT, "an object must fit its slot");

static inline cpu_module *cpu_module_cast(ze_module_handle_t handle) { return cpu_cast(handle, CPU_MODULE); }

static inline spirv_program *cpu_module_program(const cpu_module *module) { return module->programs->items[0]; }

/* Takes over the caller's references to the programs; NULL without memory. */
cpu_programs *cpu_programs_new(spirv_program *const *items, uint32_t count);
void cpu_programs_let_go(cpu_programs *programs);

/* The named variable of any module that an address falls into: what holds it, held for the caller; NULL for none. */
cpu_programs *cpu_module_find(uint64_t address, uint64_t *begin, uint64_t *end);

/* Puts other programs in the place of a module's, which it lets go of. */
void cpu_module_set_programs(cpu_module *module, cpu_programs *programs);

/* Is an import resolved by nothing? */
bool cpu_module_is_unlinked(const cpu_module *module);

#endif
