/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c: the one driver: initialising, versions, extensions, and the library's end. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ddi.h"
#include "base/driver.h"
#include "base/gate.h"
#include "base/knobs.h"
#include "lists/engine.h"
#include "memory/import.h"
#include "memory/usm.h"
#include "simulate/fault.h"
#include "simulate/profile.h"
#include "simulate/quirk.h"
#include "spirv/spirv.h"
#include "sync/failure.h"

enum {
  API = CPU_DISPATCH_VERSION, /* the newest there is: it promises the tables at the beginning of handles */
  API_NEO = 1 << 16 | 3,
  VERSION = 0x01000001,     /* ours */
  VERSION_NEO = 0x01036013, /* what the driver of the profile says */
};
static const char version_text[] = "1.17.0+l0rt";
static const char version_text_neo[] = "1.3.24595";

static cpu_driver *driver;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;

/* The engines stay in the parent, so nothing can work in a child; a clear refusal is better than a hang. */
static void refuse_in_child(void) {
  if (initialised) atomic_fetch_or(&cpu_gate, CPU_GATE_FORKED);
}

/* With the lock held. */
static ze_result_t initialise(void) {
  if (initialised) return ZE_RESULT_SUCCESS;
  if (!cpu_knobs_read()) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a variable L0RT_CPU_* has a wrong value");
  if (cpu_knobs.chaos) spirv_use_width(16); /* many waves in a group, so that their order can differ */
  spirv_limit_memory(cpu_knobs.build_memory);
  cpu_device_heap.hidden = cpu_knobs.strict;
  CPU_REFUSE_IF(!cpu_devices_make(), ERROR_OUT_OF_HOST_MEMORY);
  if (driver == NULL) driver = cpu_new(CPU_DRIVER);
  CPU_REFUSE_IF(driver == NULL, ERROR_OUT_OF_HOST_MEMORY);
  pthread_atfork(NULL, NULL, refuse_in_child);
  initialised = true;
  atomic_store(&cpu_gate, cpu_fault_any() || cpu_knobs.neo_22_43 ? CPU_GATE_WATCHED : 0);
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_driver_open(const char *function) {
  CPU_REFUSE_IF(atomic_load(&cpu_gate) & CPU_GATE_FORKED, ERROR_UNINITIALIZED);
  pthread_mutex_lock(&lock);
  ze_result_t result = initialise();
  pthread_mutex_unlock(&lock);
  if (result == ZE_RESULT_SUCCESS && atomic_load(&cpu_gate) != 0) result = cpu_gate_ask(function);
  return result;
}

CPU_EXPORT ze_result_t zeInit(ze_init_flags_t flags) {
  CPU_REFUSE_IF(flags > 0x3, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF(flags == ZE_INIT_FLAG_VPU_ONLY, ERROR_UNINITIALIZED); /* nothing of the kind here */
  return cpu_driver_open(__func__);
}

ze_result_t cpu_driver_list(uint32_t *count, ze_driver_handle_t *drivers) {
  if (*count > 0 && drivers != NULL) drivers[0] = (ze_driver_handle_t)driver;
  *count = 1;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeInitDrivers(uint32_t *count, ze_driver_handle_t *drivers, ze_init_driver_type_desc_t *desc) {
  CPU_REFUSE_IF(count == NULL || desc == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags == 0, ERROR_INVALID_ENUMERATION);
  ze_result_t result = cpu_driver_open(__func__);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (desc->flags & ZE_INIT_DRIVER_TYPE_FLAG_GPU) return cpu_driver_list(count, drivers);
  *count = 0;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDriverGet(uint32_t *count, ze_driver_handle_t *drivers) {
  CPU_ENTER();
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  return cpu_driver_list(count, drivers);
}

CPU_EXPORT ze_result_t zeDriverGetApiVersion(ze_driver_handle_t handle, ze_api_version_t *version) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(version == NULL, ERROR_INVALID_NULL_POINTER);
  *version = cpu_knobs.build != NULL ? cpu_knobs.build->api : cpu_knobs.neo_22_43 ? API_NEO : API;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDriverGetProperties(ze_driver_handle_t handle, ze_driver_properties_t *properties) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(properties == NULL, ERROR_INVALID_NULL_POINTER);
  memcpy(properties->uuid.id, "l0rt CPU driver", sizeof(properties->uuid.id));
  properties->driverVersion = cpu_knobs.build != NULL ? cpu_knobs.build->version
                              : cpu_knobs.neo_22_43   ? VERSION_NEO
                                                      : VERSION;
  for (ze_base_properties_t *p = properties->pNext; p != NULL; p = p->pNext)
    if (p->stype == ZE_STRUCTURE_TYPE_DRIVER_MEMORY_FREE_EXT_PROPERTIES)
      ((ze_driver_memory_free_ext_properties_t *)p)
          ->freePolicies = cpu_knobs.neo_22_43 ? ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE
                                               : ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE |
                                                     ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE;
    else if (p->stype == ZE_STRUCTURE_TYPE_DRIVER_DDI_HANDLES_EXT_PROPERTIES)
      ((ze_driver_ddi_handles_ext_properties_t *)p)->flags =
          cpu_knobs.neo_22_43 || cpu_ddi_loader_is_older() ? 0 : ZE_DRIVER_DDI_HANDLE_EXT_FLAG_DDI_HANDLE_EXT_SUPPORTED;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDriverGetIpcProperties(ze_driver_handle_t handle, ze_driver_ipc_properties_t *properties) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(properties == NULL, ERROR_INVALID_NULL_POINTER);
  properties->flags = ZE_IPC_PROPERTY_FLAG_MEMORY | ZE_IPC_PROPERTY_FLAG_EVENT_POOL;
  return ZE_RESULT_SUCCESS;
}

bool cpu_driver_has_graphs(void) {
  if (cpu_has_quirk(CPU_QUIRK_EARLY_GRAPHS)) return true;
  return !cpu_knobs.neo_22_43 && (cpu_knobs.build == NULL || cpu_knobs.build->api >= (1 << 16 | 17));
}

CPU_EXPORT ze_result_t zeDriverGetExtensionProperties(ze_driver_handle_t handle, uint32_t *count,
                                                      ze_driver_extension_properties_t *properties) {
  static const char graphs[] = "ZE_extension_record_replay_graph", ranges[] = "ZE_extension_ipc_phys_mem_handle_range";
  static const struct {
    const char *name;
    uint32_t version;
    bool in_neo_22_43;
  } extensions[] = {
      {"ZE_experimental_relaxed_allocation_limits", 1 << 16, true},
      {"ZE_extension_memory_free_policies", 1 << 16, true},
      {"ZE_extension_pci_properties", 1 << 16, true},
      {"ZE_experimental_command_list_clone", 1 << 16, false},
      {"ZE_experimental_event_pool_counter_based", 1 << 16, false},
      {"ZE_experimental_immediate_command_list_append", 1 << 16, false},
      {"ZE_experimental_mutable_command_list", 1 << 16 | 1, false},
      {graphs, 1 << 16, false},
      {ranges, 1 << 16, false},
      {"ZE_extension_device_usablemem_size_properties", 1 << 16, false},
      {"ZE_extension_external_memmap_sysmem", 1 << 16, false},
      {"ZE_extension_virtual_mem_readonly_properties", 1 << 16, false},
      {"ZE_experimental_module_program", 1 << 16, true},
      {"ZE_experimental_global_offset", 1 << 16, true},
      {"ZE_experimental_scheduling_hints", 1 << 16, true},
      {"ZE_extension_linkage_inspection", 1 << 16, true},
      {"ZE_extension_linkonce_odr", 1 << 16, true},
      {"ZE_extension_subgroups", 1 << 16, true},
      {"ZE_extension_float_atomics", 1 << 16, true},
      {"ZE_extension_kernel_max_group_size_properties", 1 << 16, false},
      {"ZE_extension_kernel_binary_exp", 1 << 16, false},
      {"ZE_experimental_kernel_allocation_properties", 1 << 16, false},
  };
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  uint32_t n = 0;
  for (size_t i = 0; i < sizeof(extensions) / sizeof(extensions[0]); i++) {
    if (cpu_knobs.neo_22_43 && !extensions[i].in_neo_22_43) continue;
    if (extensions[i].name == graphs && !cpu_driver_has_graphs()) continue;
    if (extensions[i].name == ranges && !cpu_ranges_are_shared()) continue;
    if (properties != NULL && n < *count) {
      snprintf(properties[n].name, sizeof(properties[n].name), "%s", extensions[i].name);
      properties[n].version = extensions[i].version;
    }
    n++;
  }
  *count = properties != NULL && *count != 0 && *count < n ? *count : n;
  return ZE_RESULT_SUCCESS;
}

const char *cpu_driver_version(void) {
  if (cpu_knobs.build != NULL) return cpu_knobs.build->text;
  return cpu_knobs.neo_22_43 ? version_text_neo : version_text;
}

/* Found by name only: the kernel driver that a simulated device would be opened through, which Linux tells of a real
 * one; NULL where no device is simulated. */
static const char *l0rtCpuKernelDriver(void) {
  return cpu_knobs.device != NULL ? cpu_knobs.device->kernel_driver : NULL;
}

/* Found by name only: the caller reports failed launches of this context, so the driver need not print them. */
static ze_result_t l0rtCpuQuiet(ze_context_handle_t handle) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  atomic_store(&context->quiet, true);
  return ZE_RESULT_SUCCESS;
}

/* Found by name only. `*size` counts the closing NUL; a NULL text asks for the size. */
static ze_result_t zeIntelGetDriverVersionString(ze_driver_handle_t handle, char *text, size_t *size) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(size == NULL, ERROR_INVALID_NULL_POINTER);
  const char *version = cpu_driver_version();
  if (text != NULL && *size != 0) snprintf(text, *size, "%s", version);
  *size = strlen(version) + 1;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDriverGetExtensionFunctionAddress(ze_driver_handle_t handle, const char *name,
                                                           void **address) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(name == NULL || address == NULL, ERROR_INVALID_NULL_POINTER);
  if (strcmp(name, "zeIntelGetDriverVersionString") == 0) *address = (void *)zeIntelGetDriverVersionString;
  else if (strcmp(name, "zexDriverImportExternalPointer") == 0) *address = (void *)zexDriverImportExternalPointer;
  else if (strcmp(name, "zexDriverReleaseImportedPointer") == 0) *address = (void *)zexDriverReleaseImportedPointer;
  else if (strcmp(name, "l0rtCpuKernelDriver") == 0) *address = (void *)l0rtCpuKernelDriver;
  else if (strcmp(name, "l0rtCpuQuiet") == 0) *address = (void *)l0rtCpuQuiet;
  else return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "there is no extension function of this name");
  return ZE_RESULT_SUCCESS;
}

/* Of the last call in this thread that was refused, once. */
CPU_EXPORT ze_result_t zeDriverGetLastErrorDescription(ze_driver_handle_t handle, const char **text) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(text == NULL, ERROR_INVALID_NULL_POINTER);
  *text = cpu_failure_description();
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_driver_devices(ze_driver_handle_t handle, bool all, uint32_t *count, ze_device_handle_t *devices) {
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(count == NULL, ERROR_INVALID_NULL_POINTER);
  uint32_t n = 0;
  for (uint32_t i = 0; i < cpu_device_count; i++) {
    if (!all && !cpu_device_is_visible(cpu_devices[i])) continue;
    if (n < *count && devices != NULL) devices[n] = (ze_device_handle_t)cpu_devices[i];
    n++;
  }
  if (*count == 0 || *count > n) *count = n;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *count, ze_device_handle_t *devices) {
  CPU_ENTER();
  return cpu_driver_devices(driver, false, count, devices);
}

/* After the program's own end: no call gets in any more, and no engine touches its memory. */
__attribute__((destructor)) static void end(void) {
  uint32_t gate = atomic_fetch_or(&cpu_gate, CPU_GATE_CLOSED);
  if (initialised && !(gate & CPU_GATE_FORKED)) cpu_engines_stop();
}
