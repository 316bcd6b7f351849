/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c: the one driver: its versions, properties, extensions and devices. start.c initialises it. */
#include <stdio.h>
#include <string.h>

#include "base/ddi.h"
#include "base/device.h"
#include "base/dispatch.h"
#include "base/driver.h"
#include "base/gate.h"
#include "base/knobs.h"
#include "simulate/profile.h"
#include "simulate/quirk.h"
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

bool cpu_driver_make(void) {
  if (driver == NULL) driver = cpu_new(CPU_DRIVER);
  return driver != NULL;
}

ze_result_t cpu_driver_list(uint32_t *count, ze_driver_handle_t *drivers) {
  if (*count > 0 && drivers != NULL) drivers[0] = (ze_driver_handle_t)driver;
  *count = 1;
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
      {"ZE_extension_device_ip_version", 1 << 16, false},
      {"ZE_extension_device_usablemem_size_properties", 1 << 16, false},
      {"ZE_extension_external_memmap_sysmem", 1 << 16, false},
      {"ZE_extension_virtual_mem_readonly_properties", 1 << 16, false},
      {"ZE_extension_image_copy", 1 << 16, true},
      {"ZE_extension_image_query_alloc_properties", 1 << 16, true},
      {"ZE_extension_image_view", 1 << 16, false},
      {"ZE_experimental_image_view", 1 << 16, true},
      {"ZE_experimental_image_memory_properties", 1 << 16, true},
      {"ZE_experimental_bindless_image", 1 << 16, false},
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
    if (extensions[i].name == ranges && !cpu_driver_shares_ranges()) continue;
    if (properties != NULL && n < *count) {
      snprintf(properties[n].name, sizeof(properties[n].name), "%s", extensions[i].name);
      properties[n].version = extensions[i].version;
    }
    n++;
  }
  *count = properties != NULL && *count != 0 && *count < n ? *count : n;
  return ZE_RESULT_SUCCESS;
}

bool cpu_driver_shares_ranges(void) { return !cpu_knobs.neo_22_43 && cpu_knobs.build == NULL; }

const char *cpu_driver_version(void) {
  if (cpu_knobs.build != NULL) return cpu_knobs.build->text;
  return cpu_knobs.neo_22_43 ? version_text_neo : version_text;
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
