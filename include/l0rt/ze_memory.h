/* SPDX-License-Identifier: Apache-2.0 */
/* ze_memory.h: USM, virtual memory and residency.
 * Names, values and layouts are those of the Level Zero specification (core, 1.0 to 1.17). */
#ifndef L0RT_ZE_MEMORY_H
#define L0RT_ZE_MEMORY_H

#include "l0rt/ze_device.h"

typedef enum {
  ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_CACHED = 1u << 0,
  ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_UNCACHED = 1u << 1,
  ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_INITIAL_PLACEMENT = 1u << 2,
} ze_device_mem_alloc_flag_t;
typedef uint32_t ze_device_mem_alloc_flags_t;

typedef enum {
  ZE_HOST_MEM_ALLOC_FLAG_BIAS_CACHED = 1u << 0,
  ZE_HOST_MEM_ALLOC_FLAG_BIAS_UNCACHED = 1u << 1,
  ZE_HOST_MEM_ALLOC_FLAG_BIAS_WRITE_COMBINED = 1u << 2,
  ZE_HOST_MEM_ALLOC_FLAG_BIAS_INITIAL_PLACEMENT = 1u << 3,
  ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY = 1u << 4, /* 1.16 */
} ze_host_mem_alloc_flag_t;
typedef uint32_t ze_host_mem_alloc_flags_t;

typedef enum {
  ZE_MEMORY_TYPE_UNKNOWN = 0,
  ZE_MEMORY_TYPE_HOST = 1,
  ZE_MEMORY_TYPE_DEVICE = 2,
  ZE_MEMORY_TYPE_SHARED = 3,
  ZE_MEMORY_TYPE_HOST_IMPORTED = 4, /* 1.14 */
} ze_memory_type_t;

typedef enum {
  ZE_IPC_MEMORY_FLAG_BIAS_CACHED = 1u << 0,
  ZE_IPC_MEMORY_FLAG_BIAS_UNCACHED = 1u << 1,
} ze_ipc_memory_flag_t;
typedef uint32_t ze_ipc_memory_flags_t;

typedef enum {
  ZE_MEMORY_ADVICE_SET_READ_MOSTLY = 0,
  ZE_MEMORY_ADVICE_CLEAR_READ_MOSTLY = 1,
  ZE_MEMORY_ADVICE_SET_PREFERRED_LOCATION = 2,
  ZE_MEMORY_ADVICE_CLEAR_PREFERRED_LOCATION = 3,
  ZE_MEMORY_ADVICE_SET_NON_ATOMIC_MOSTLY = 4,
  ZE_MEMORY_ADVICE_CLEAR_NON_ATOMIC_MOSTLY = 5,
  ZE_MEMORY_ADVICE_BIAS_CACHED = 6,
  ZE_MEMORY_ADVICE_BIAS_UNCACHED = 7,
  ZE_MEMORY_ADVICE_SET_SYSTEM_MEMORY_PREFERRED_LOCATION = 8, /* 1.7 */
  ZE_MEMORY_ADVICE_CLEAR_SYSTEM_MEMORY_PREFERRED_LOCATION = 9, /* 1.7 */
} ze_memory_advice_t;

typedef enum {
  ZE_MEMORY_ACCESS_ATTRIBUTE_NONE = 0,
  ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE = 1,
  ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY = 2,
} ze_memory_access_attribute_t;

typedef enum {
  ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_ATOMICS = 1u << 0, /* 1.7 */
  ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_HOST_ATOMICS = 1u << 1, /* 1.7 */
  ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_HOST_ATOMICS = 1u << 2, /* 1.7 */
  ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_DEVICE_ATOMICS = 1u << 3, /* 1.7 */
  ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_DEVICE_ATOMICS = 1u << 4, /* 1.7 */
  ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_SYSTEM_ATOMICS = 1u << 5, /* 1.7 */
  ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_SYSTEM_ATOMICS = 1u << 6, /* 1.7 */
} ze_memory_atomic_attr_exp_flag_t;
typedef uint32_t ze_memory_atomic_attr_exp_flags_t;

typedef enum {
  ZE_PHYSICAL_MEM_FLAG_TBD = 1u << 0, /* 1.7: _ALLOCATE_ON_DEVICE */
  ZE_PHYSICAL_MEM_FLAG_ALLOCATE_ON_HOST = 1u << 1, /* 1.7 */
} ze_physical_mem_flag_t;
typedef uint32_t ze_physical_mem_flags_t;

typedef enum {
  ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE = 1u << 0,
} ze_relaxed_allocation_limits_exp_flag_t;
typedef uint32_t ze_relaxed_allocation_limits_exp_flags_t;

typedef enum {
  ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE = 1u << 0,
  ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE = 1u << 1,
} ze_driver_memory_free_policy_ext_flag_t;
typedef uint32_t ze_driver_memory_free_policy_ext_flags_t;

typedef struct {
  char data[ZE_MAX_IPC_HANDLE_SIZE];
} ze_ipc_mem_handle_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_device_mem_alloc_flags_t flags;
  uint32_t ordinal;
} ze_device_mem_alloc_desc_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_host_mem_alloc_flags_t flags;
} ze_host_mem_alloc_desc_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_memory_type_t type;
  uint64_t id;
  uint64_t pageSize;
} ze_memory_allocation_properties_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_external_memory_type_flags_t flags;
} ze_external_memory_export_desc_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_external_memory_type_flags_t flags;
  int fd;
} ze_external_memory_import_fd_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_external_memory_type_flags_t flags;
  int fd;
} ze_external_memory_export_fd_t;

typedef struct { /* 1.14 */
  ze_structure_type_t stype;
  const void *pNext;
  void *pSystemMemory;
  uint64_t size;
} ze_external_memmap_sysmem_ext_desc_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_physical_mem_flags_t flags;
  size_t size;
} ze_physical_mem_desc_t;

typedef struct { /* 1.15 */
  ze_structure_type_t stype;
  void *pNext;
  uint64_t id;
  uint64_t size;
} ze_physical_mem_properties_t;

typedef enum {
  ZE_IPC_MEM_HANDLE_TYPE_FLAG_DEFAULT = 1u << 0, /* 1.15 */
  ZE_IPC_MEM_HANDLE_TYPE_FLAG_FABRIC_ACCESSIBLE = 1u << 1, /* 1.15 */
} ze_ipc_mem_handle_type_flag_t;
typedef uint32_t ze_ipc_mem_handle_type_flags_t;

typedef struct { /* 1.15 */
  ze_structure_type_t stype;
  const void *pNext;
  ze_ipc_mem_handle_type_flags_t typeFlags;
} ze_ipc_mem_handle_type_ext_desc_t;

typedef struct { /* 1.18 */
  ze_structure_type_t stype;
  const void *pNext;
  size_t size;
} ze_ipc_phys_mem_handle_range_ext_desc_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_relaxed_allocation_limits_exp_flags_t flags;
} ze_relaxed_allocation_limits_exp_desc_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_driver_memory_free_policy_ext_flags_t freePolicies;
} ze_driver_memory_free_ext_properties_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_driver_memory_free_policy_ext_flags_t freePolicy;
} ze_memory_free_ext_desc_t;

#endif
