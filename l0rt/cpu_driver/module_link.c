/* SPDX-License-Identifier: Apache-2.0 */
/* module_link.c: linking modules with one another, and asking what they import and export. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_log.h"
#include "failure.h"
#include "gate.h"
#include "module.h"

/* All programs that any of the modules brings along, each once and with a reference of its own. */
static cpu_programs *gather(cpu_module *const *modules, uint32_t count, const cpu_module *first) {
  uint32_t most = 0, n = 0;
  for (uint32_t i = 0; i < count; i++) most += modules[i]->programs->count;
  spirv_program **items = malloc(most * sizeof(*items));
  if (items == NULL) return NULL;
  items[n++] = cpu_module_program(first);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < modules[i]->programs->count; k++) {
      bool there = false;
      for (uint32_t j = 0; j < n; j++) there |= items[j] == modules[i]->programs->items[k];
      if (!there) items[n++] = modules[i]->programs->items[k];
    }
  cpu_programs *programs = cpu_programs_new(items, n);
  for (uint32_t i = 0; i < n && programs != NULL; i++) spirv_program_retain(items[i]);
  free(items);
  return programs;
}

static bool exports(const spirv_program *program, const char *name) {
  const char *other;
  uint64_t address, size;
  for (uint32_t i = 0; (other = spirv_program_export(program, i)) != NULL; i++)
    if (strcmp(other, name) == 0) return true;
  return spirv_program_global(program, name, &address, &size);
}

/* How many of the other modules export it. */
static uint32_t exporters(cpu_module *const *modules, uint32_t count, const cpu_module *importer, const char *name) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++) n += modules[i] != importer && exports(cpu_module_program(modules[i]), name);
  return n;
}

/* Whether every import finds exactly one export; the log says which do not. */
static bool all_resolve(cpu_module *const *modules, uint32_t count, cpu_build_log *log) {
  bool good = true;
  const char *name;
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; (name = spirv_program_import(cpu_module_program(modules[i]), k)) != NULL; k++) {
      uint32_t n = exporters(modules, count, modules[i], name);
      if (n == 1) continue;
      char line[256];
      snprintf(line, sizeof(line), "error: %s is exported by %s of the modules", name, n == 0 ? "none" : "several");
      cpu_build_log_add(log, line);
      good = false;
    }
  return good;
}

/* Of a module that imports something: the others' programs resolve it, and are kept as long as it is. */
static ze_result_t link_one(cpu_module *module, cpu_module *const *modules, uint32_t count, cpu_build_log *log) {
  if (!cpu_module_is_unlinked(module)) return ZE_RESULT_SUCCESS;
  cpu_programs *programs = gather(modules, count, module);
  CPU_REFUSE_IF(programs == NULL, ERROR_OUT_OF_HOST_MEMORY);
  if (!spirv_program_link(programs->items[0], programs->items + 1, programs->count - 1, cpu_build_log_add, log)) {
    cpu_programs_let_go(programs);
    return CPU_REFUSED(ERROR_MODULE_LINK_FAILURE,
                       "the build log names what stays open, or what several modules export");
  }
  cpu_module_set_programs(module, programs);
  return ZE_RESULT_SUCCESS;
}

static ze_result_t cast_all(ze_module_handle_t *handles, uint32_t count, cpu_module ***out) {
  cpu_module **modules = calloc((size_t)count + 1, sizeof(*modules));
  CPU_REFUSE_IF(modules == NULL, ERROR_OUT_OF_HOST_MEMORY);
  for (uint32_t i = 0; i < count; i++) {
    modules[i] = cpu_module_cast(handles[i]);
    if (modules[i] != NULL && modules[i]->context == modules[0]->context) continue;
    ze_result_t result = modules[i] == NULL
                             ? CPU_REFUSED(ERROR_INVALID_NULL_HANDLE, NULL)
                             : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the modules are of several contexts");
    free(modules);
    return result;
  }
  *out = modules;
  return ZE_RESULT_SUCCESS;
}

/* The modules that a caller has given, and a log about them. */
static ze_result_t begin(ze_module_handle_t *handles, uint32_t count, cpu_module ***modules, cpu_build_log **log) {
  ze_result_t result = cast_all(handles, count, modules);
  if (result != ZE_RESULT_SUCCESS) return result;
  *log = cpu_build_log_new();
  if (*log != NULL) return ZE_RESULT_SUCCESS;
  free(*modules);
  return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
}

/* All or none: nothing is linked when an import stays open. */
CPU_EXPORT ze_result_t zeModuleDynamicLink(uint32_t count, ze_module_handle_t *handles,
                                           ze_module_build_log_handle_t *log_out) {
  CPU_ENTER();
  CPU_REFUSE_IF(handles == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_module **modules;
  cpu_build_log *log;
  ze_result_t result = begin(handles, count, &modules, &log);
  if (result != ZE_RESULT_SUCCESS) return result;
  result = all_resolve(modules, count, log)
               ? ZE_RESULT_SUCCESS
               : CPU_REFUSED(ERROR_MODULE_LINK_FAILURE,
                             "the build log names what stays open, or what several modules export");
  for (uint32_t i = 0; i < count && result == ZE_RESULT_SUCCESS; i++)
    result = link_one(modules[i], modules, count, log);
  if (result != ZE_RESULT_SUCCESS) cpu_failure_describe(cpu_build_log_error(log));
  cpu_build_log_give(log, log_out);
  free(modules);
  return result;
}

static void list_imports(cpu_module *const *modules, uint32_t count, bool unresolvable_only, cpu_build_log *log) {
  const char *name;
  cpu_build_log_add(log, unresolvable_only ? "unresolvable imports:" : "imports:");
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; (name = spirv_program_import(cpu_module_program(modules[i]), k)) != NULL; k++)
      if (!unresolvable_only || exporters(modules, count, modules[i], name) == 0) cpu_build_log_add(log, name);
}

static void list_exports(cpu_module *const *modules, uint32_t count, cpu_build_log *log) {
  const char *name;
  cpu_build_log_add(log, "exports:");
  for (uint32_t i = 0; i < count; i++) {
    const spirv_program *program = cpu_module_program(modules[i]);
    for (uint32_t k = 0; (name = spirv_program_export(program, k)) != NULL; k++) cpu_build_log_add(log, name);
    for (uint32_t k = 0; spirv_program_global_at(program, k, &name); k++) cpu_build_log_add(log, name);
  }
}

/* A list for each flag, with one name in a line. Imports that were resolved by an earlier link are not listed. */
CPU_EXPORT ze_result_t zeModuleInspectLinkageExt(ze_linkage_inspection_ext_desc_t *desc, uint32_t count,
                                                 ze_module_handle_t *handles, ze_module_build_log_handle_t *log_out) {
  CPU_ENTER();
  CPU_REFUSE_IF(desc == NULL || handles == NULL || log_out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags > 0x7, ERROR_INVALID_ENUMERATION);
  cpu_module **modules;
  cpu_build_log *log;
  ze_result_t result = begin(handles, count, &modules, &log);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (desc->flags & ZE_LINKAGE_INSPECTION_EXT_FLAG_IMPORTS) list_imports(modules, count, false, log);
  if (desc->flags & ZE_LINKAGE_INSPECTION_EXT_FLAG_UNRESOLVABLE_IMPORTS) list_imports(modules, count, true, log);
  if (desc->flags & ZE_LINKAGE_INSPECTION_EXT_FLAG_EXPORTS) list_exports(modules, count, log);
  cpu_build_log_give(log, log_out);
  free(modules);
  return ZE_RESULT_SUCCESS;
}

/* Kernels here call functions by inlining them, so the pointer is an identity: unique, and good as long as the module. */
CPU_EXPORT ze_result_t zeModuleGetFunctionPointer(ze_module_handle_t handle, const char *name, void **function) {
  CPU_ENTER();
  const cpu_module *module = cpu_module_cast(handle);
  CPU_REFUSE_IF(module == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(name == NULL || function == NULL, ERROR_INVALID_NULL_POINTER);
  const spirv_program *program = cpu_module_program(module);
  const char *other;
  for (uint32_t i = 0; (other = spirv_program_export(program, i)) != NULL; i++) {
    if (strcmp(other, name) != 0) continue;
    *function = (void *)other;
    return ZE_RESULT_SUCCESS;
  }
  const spirv_kernel *kernel = spirv_program_kernel(program, name);
  CPU_REFUSE_IF(kernel == NULL, ERROR_INVALID_FUNCTION_NAME);
  *function = (void *)kernel;
  return ZE_RESULT_SUCCESS;
}
