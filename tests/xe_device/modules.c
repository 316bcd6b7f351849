/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that the program makes: their binaries are taken from the driver, with the values of specialisation constants.
 *
 * The loader looks for the driver's table of functions by its name, and gets one in which zeModuleCreate is ours. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "kernels.h"
#include "l0rt/ze.h"
#include "libc.h"

#define DRIVER "libze_intel_gpu"

typedef ze_result_t (*table_function)(uint32_t version, void **table);
typedef ze_result_t (*create_function)(ze_context_handle_t, ze_device_handle_t, const ze_module_desc_t *,
                                       ze_module_handle_t *, ze_module_build_log_handle_t *);
typedef ze_result_t (*binary_function)(ze_module_handle_t, size_t *, uint8_t *);
enum { CREATE = 0, GET_NATIVE_BINARY = 3 }; /* places in the table */

static table_function driver_table;
static create_function driver_create;
static binary_function driver_binary;

/* Hands the engine what it needs of a module while the values of its specialisation constants are there. */
static void keep(const uint8_t *bytes, size_t size, const ze_module_constants_t *from) {
  uint32_t number = from ? from->numConstants : 0;
  spirv_constant *constants = calloc(number + 1, sizeof *constants);
  if (!constants) abort();
  for (uint32_t i = 0; i < number; i++)
    constants[i] = (spirv_constant){.id = from->pConstantIds[i], .value = from->pConstantValues[i]};
  xe_kernels_add(bytes, size, constants, number);
  free(constants);
}

static ze_result_t module_create(ze_context_handle_t context, ze_device_handle_t device, const ze_module_desc_t *desc,
                                 ze_module_handle_t *module, ze_module_build_log_handle_t *log) {
  ze_result_t result = driver_create(context, device, desc, module, log);
  size_t size = 0;
  if (result != ZE_RESULT_SUCCESS || driver_binary(*module, &size, NULL) != ZE_RESULT_SUCCESS) return result;
  uint8_t *bytes = malloc(size);
  if (bytes && driver_binary(*module, &size, bytes) == ZE_RESULT_SUCCESS) keep(bytes, size, desc->pConstants);
  free(bytes);
  return result;
}

static ze_result_t module_table(uint32_t version, void **table) {
  ze_result_t result = driver_table(version, table);
  if (result != ZE_RESULT_SUCCESS || !xe_engine_get()) return result;
  driver_create = (create_function)table[CREATE];
  driver_binary = (binary_function)table[GET_NATIVE_BINARY];
  table[CREATE] = (void *)module_create;
  return result;
}

/* The call of the C library's own is a jump (-O2): it has the caller's address, by which it knows what RTLD_NEXT is. */
XE_EXPORT void *dlsym(void *handle, const char *name) {
  xe_device_start();
  Dl_info info;
  if (strcmp(name, "zeGetModuleProcAddrTable")) return xe_libc.dlsym(handle, name);
  void *function = xe_libc.dlsym(handle, name);
  if (!function || !dladdr(function, &info) || !strstr(info.dli_fname, DRIVER)) return function;
  driver_table = (table_function)function;
  xe_kernels_of_driver(info.dli_fname);
  return (void *)module_table;
}
