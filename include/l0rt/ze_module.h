/* SPDX-License-Identifier: Apache-2.0 */
/* ze_module.h: modules, kernels and launches.
 * Names, values and layouts are those of the Level Zero specification (core, 1.0 to 1.17). */
#ifndef L0RT_ZE_MODULE_H
#define L0RT_ZE_MODULE_H

#include "l0rt/ze_queue.h"

#define ZE_MAX_KERNEL_UUID_SIZE 16
#define ZE_MAX_MODULE_UUID_SIZE 16

typedef enum {
  ZE_MODULE_FORMAT_IL_SPIRV = 0,
  ZE_MODULE_FORMAT_NATIVE = 1,
} ze_module_format_t;

typedef struct {
  uint32_t numConstants;
  const uint32_t *pConstantIds;
  const void **pConstantValues;
} ze_module_constants_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_module_format_t format;
  size_t inputSize;
  const uint8_t *pInputModule;
  const char *pBuildFlags;
  const ze_module_constants_t *pConstants;
} ze_module_desc_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  uint32_t count;
  const size_t *inputSizes;
  const uint8_t **pInputModules;
  const char **pBuildFlags;
  const ze_module_constants_t **pConstants;
} ze_module_program_exp_desc_t;

typedef enum {
  ZE_MODULE_PROPERTY_FLAG_IMPORTS = 1u << 0,
} ze_module_property_flag_t;
typedef uint32_t ze_module_property_flags_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_module_property_flags_t flags;
} ze_module_properties_t;

typedef enum {
  ZE_LINKAGE_INSPECTION_EXT_FLAG_IMPORTS = 1u << 0,
  ZE_LINKAGE_INSPECTION_EXT_FLAG_UNRESOLVABLE_IMPORTS = 1u << 1,
  ZE_LINKAGE_INSPECTION_EXT_FLAG_EXPORTS = 1u << 2,
} ze_linkage_inspection_ext_flag_t;
typedef uint32_t ze_linkage_inspection_ext_flags_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_linkage_inspection_ext_flags_t flags;
} ze_linkage_inspection_ext_desc_t;

typedef enum {
  ZE_KERNEL_FLAG_FORCE_RESIDENCY = 1u << 0,
  ZE_KERNEL_FLAG_EXPLICIT_RESIDENCY = 1u << 1,
} ze_kernel_flag_t;
typedef uint32_t ze_kernel_flags_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_kernel_flags_t flags;
  const char *pKernelName;
} ze_kernel_desc_t;

typedef enum {
  ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST = 1u << 0,
  ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE = 1u << 1,
  ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED = 1u << 2,
} ze_kernel_indirect_access_flag_t;
typedef uint32_t ze_kernel_indirect_access_flags_t;

typedef enum {
  ZE_CACHE_CONFIG_FLAG_LARGE_SLM = 1u << 0,
  ZE_CACHE_CONFIG_FLAG_LARGE_DATA = 1u << 1,
} ze_cache_config_flag_t;
typedef uint32_t ze_cache_config_flags_t;

typedef struct {
  uint8_t kid[ZE_MAX_KERNEL_UUID_SIZE];
  uint8_t mid[ZE_MAX_MODULE_UUID_SIZE];
} ze_kernel_uuid_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  uint32_t numKernelArgs;
  uint32_t requiredGroupSizeX;
  uint32_t requiredGroupSizeY;
  uint32_t requiredGroupSizeZ;
  uint32_t requiredNumSubGroups;
  uint32_t requiredSubgroupSize;
  uint32_t maxSubgroupSize;
  uint32_t maxNumSubgroups;
  uint32_t localMemSize;
  uint32_t privateMemSize;
  uint32_t spillMemSize;
  ze_kernel_uuid_t uuid;
} ze_kernel_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  uint32_t preferredMultiple;
} ze_kernel_preferred_group_size_properties_t;

typedef struct { /* 1.11 */
  ze_structure_type_t stype;
  void *pNext;
  uint32_t maxGroupSize;
} ze_kernel_max_group_size_properties_ext_t;

typedef struct { /* 1.14 */
  ze_structure_type_t stype;
  void *pNext;
  uint64_t base;
  size_t size;
  ze_memory_type_t type;
  uint32_t argIndex;
} ze_kernel_allocation_exp_properties_t;

typedef enum {
  ZE_SCHEDULING_HINT_EXP_FLAG_OLDEST_FIRST = 1u << 0,
  ZE_SCHEDULING_HINT_EXP_FLAG_ROUND_ROBIN = 1u << 1,
  ZE_SCHEDULING_HINT_EXP_FLAG_STALL_BASED_ROUND_ROBIN = 1u << 2,
} ze_scheduling_hint_exp_flag_t;
typedef uint32_t ze_scheduling_hint_exp_flags_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_scheduling_hint_exp_flags_t flags;
} ze_scheduling_hint_exp_desc_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_scheduling_hint_exp_flags_t schedulingHintFlags;
} ze_scheduling_hint_exp_properties_t;

typedef enum {
  ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_LOAD_STORE = 1u << 0,
  ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD = 1u << 1,
  ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_MIN_MAX = 1u << 2,
  ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_LOAD_STORE = 1u << 16,
  ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_ADD = 1u << 17,
  ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_MIN_MAX = 1u << 18,
} ze_device_fp_atomic_ext_flag_t;
typedef uint32_t ze_device_fp_atomic_ext_flags_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_device_fp_atomic_ext_flags_t fp16Flags;
  ze_device_fp_atomic_ext_flags_t fp32Flags;
  ze_device_fp_atomic_ext_flags_t fp64Flags;
} ze_float_atomic_ext_properties_t;

typedef struct {
  uint32_t groupCountX;
  uint32_t groupCountY;
  uint32_t groupCountZ;
} ze_group_count_t;

typedef struct { /* 1.14 */
  uint32_t groupSizeX;
  uint32_t groupSizeY;
  uint32_t groupSizeZ;
} ze_group_size_t;

typedef struct { /* 1.14 */
  ze_structure_type_t stype;
  const void *pNext;
  ze_bool_t isCooperative;
} ze_command_list_append_launch_kernel_param_cooperative_desc_t;

#endif
