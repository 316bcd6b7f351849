/* SPDX-License-Identifier: Apache-2.0 */
/* ze_device.h: drivers and devices: what they say about themselves.
 * Names, values and layouts are those of the Level Zero specification (core, 1.0 to 1.17). */
#ifndef L0RT_ZE_DEVICE_H
#define L0RT_ZE_DEVICE_H

#include "l0rt/ze_base.h"

#define ZE_MAX_IPC_HANDLE_SIZE 64
#define ZE_MAX_DRIVER_UUID_SIZE 16
#define ZE_MAX_EXTENSION_NAME 256
#define ZE_MAX_DEVICE_UUID_SIZE 16
#define ZE_MAX_DEVICE_NAME 256
#define ZE_MAX_NATIVE_KERNEL_UUID_SIZE 16
#define ZE_SUBGROUPSIZE_COUNT 8

typedef enum {
  ZE_DEVICE_TYPE_GPU = 1,
  ZE_DEVICE_TYPE_CPU = 2,
  ZE_DEVICE_TYPE_FPGA = 3,
  ZE_DEVICE_TYPE_MCA = 4,
  ZE_DEVICE_TYPE_VPU = 5,
} ze_device_type_t;

typedef enum {
  ZE_DEVICE_PROPERTY_FLAG_INTEGRATED = 1u << 0,
  ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE = 1u << 1,
  ZE_DEVICE_PROPERTY_FLAG_ECC = 1u << 2,
  ZE_DEVICE_PROPERTY_FLAG_ONDEMANDPAGING = 1u << 3,
} ze_device_property_flag_t;
typedef uint32_t ze_device_property_flags_t;

typedef enum {
  ZE_DEVICE_MODULE_FLAG_FP16 = 1u << 0,
  ZE_DEVICE_MODULE_FLAG_FP64 = 1u << 1,
  ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS = 1u << 2,
  ZE_DEVICE_MODULE_FLAG_DP4A = 1u << 3,
} ze_device_module_flag_t;
typedef uint32_t ze_device_module_flags_t;

typedef enum {
  ZE_DEVICE_FP_FLAG_DENORM = 1u << 0,
  ZE_DEVICE_FP_FLAG_INF_NAN = 1u << 1,
  ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST = 1u << 2,
  ZE_DEVICE_FP_FLAG_ROUND_TO_ZERO = 1u << 3,
  ZE_DEVICE_FP_FLAG_ROUND_TO_INF = 1u << 4,
  ZE_DEVICE_FP_FLAG_FMA = 1u << 5,
  ZE_DEVICE_FP_FLAG_ROUNDED_DIVIDE_SQRT = 1u << 6,
  ZE_DEVICE_FP_FLAG_SOFT_FLOAT = 1u << 7,
} ze_device_fp_flag_t;
typedef uint32_t ze_device_fp_flags_t;

typedef enum {
  ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE = 1u << 0,
  ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY = 1u << 1,
  ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS = 1u << 2,
  ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_METRICS = 1u << 3,
} ze_command_queue_group_property_flag_t;
typedef uint32_t ze_command_queue_group_property_flags_t;

typedef enum {
  ZE_DEVICE_MEMORY_PROPERTY_FLAG_TBD = 1u << 0,
} ze_device_memory_property_flag_t;
typedef uint32_t ze_device_memory_property_flags_t;

typedef enum {
  ZE_MEMORY_ACCESS_CAP_FLAG_RW = 1u << 0,
  ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC = 1u << 1,
  ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT = 1u << 2,
  ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT_ATOMIC = 1u << 3,
} ze_memory_access_cap_flag_t;
typedef uint32_t ze_memory_access_cap_flags_t;

typedef enum {
  ZE_DEVICE_CACHE_PROPERTY_FLAG_USER_CONTROL = 1u << 0,
} ze_device_cache_property_flag_t;
typedef uint32_t ze_device_cache_property_flags_t;

typedef enum {
  ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS = 1u << 0,
  ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS = 1u << 1,
} ze_device_p2p_property_flag_t;
typedef uint32_t ze_device_p2p_property_flags_t;

typedef enum {
  ZE_IPC_PROPERTY_FLAG_MEMORY = 1u << 0,
  ZE_IPC_PROPERTY_FLAG_EVENT_POOL = 1u << 1,
} ze_ipc_property_flag_t;
typedef uint32_t ze_ipc_property_flags_t;

typedef enum {
  ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD = 1u << 0,
  ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF = 1u << 1,
  ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_WIN32 = 1u << 2,
  ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_WIN32_KMT = 1u << 3,
  ZE_EXTERNAL_MEMORY_TYPE_FLAG_D3D11_TEXTURE = 1u << 4,
  ZE_EXTERNAL_MEMORY_TYPE_FLAG_D3D11_TEXTURE_KMT = 1u << 5,
  ZE_EXTERNAL_MEMORY_TYPE_FLAG_D3D12_HEAP = 1u << 6,
  ZE_EXTERNAL_MEMORY_TYPE_FLAG_D3D12_RESOURCE = 1u << 7,
} ze_external_memory_type_flag_t;
typedef uint32_t ze_external_memory_type_flags_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
} ze_base_properties_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
} ze_base_desc_t;

typedef struct {
  uint8_t id[ZE_MAX_DRIVER_UUID_SIZE];
} ze_driver_uuid_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_driver_uuid_t uuid;
  uint32_t driverVersion;
} ze_driver_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_ipc_property_flags_t flags;
} ze_driver_ipc_properties_t;

typedef struct {
  char name[ZE_MAX_EXTENSION_NAME];
  uint32_t version;
} ze_driver_extension_properties_t;

typedef struct {
  uint8_t id[ZE_MAX_DEVICE_UUID_SIZE];
} ze_device_uuid_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_device_type_t type;
  uint32_t vendorId;
  uint32_t deviceId;
  ze_device_property_flags_t flags;
  uint32_t subdeviceId;
  uint32_t coreClockRate;
  uint64_t maxMemAllocSize;
  uint32_t maxHardwareContexts;
  uint32_t maxCommandQueuePriority;
  uint32_t numThreadsPerEU;
  uint32_t physicalEUSimdWidth;
  uint32_t numEUsPerSubslice;
  uint32_t numSubslicesPerSlice;
  uint32_t numSlices;
  uint64_t timerResolution;
  uint32_t timestampValidBits;
  uint32_t kernelTimestampValidBits;
  ze_device_uuid_t uuid;
  char name[ZE_MAX_DEVICE_NAME];
} ze_device_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  uint32_t maxTotalGroupSize;
  uint32_t maxGroupSizeX;
  uint32_t maxGroupSizeY;
  uint32_t maxGroupSizeZ;
  uint32_t maxGroupCountX;
  uint32_t maxGroupCountY;
  uint32_t maxGroupCountZ;
  uint32_t maxSharedLocalMemory;
  uint32_t numSubGroupSizes;
  uint32_t subGroupSizes[ZE_SUBGROUPSIZE_COUNT];
} ze_device_compute_properties_t;

typedef struct {
  uint8_t id[ZE_MAX_NATIVE_KERNEL_UUID_SIZE];
} ze_native_kernel_uuid_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  uint32_t spirvVersionSupported;
  ze_device_module_flags_t flags;
  ze_device_fp_flags_t fp16flags;
  ze_device_fp_flags_t fp32flags;
  ze_device_fp_flags_t fp64flags;
  uint32_t maxArgumentsSize;
  uint32_t printfBufferSize;
  ze_native_kernel_uuid_t nativeKernelSupported;
} ze_device_module_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_command_queue_group_property_flags_t flags;
  size_t maxMemoryFillPatternSize;
  uint32_t numQueues;
} ze_command_queue_group_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_device_memory_property_flags_t flags;
  uint32_t maxClockRate;
  uint32_t maxBusWidth;
  uint64_t totalSize;
  char name[ZE_MAX_DEVICE_NAME];
} ze_device_memory_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_memory_access_cap_flags_t hostAllocCapabilities;
  ze_memory_access_cap_flags_t deviceAllocCapabilities;
  ze_memory_access_cap_flags_t sharedSingleDeviceAllocCapabilities;
  ze_memory_access_cap_flags_t sharedCrossDeviceAllocCapabilities;
  ze_memory_access_cap_flags_t sharedSystemAllocCapabilities;
} ze_device_memory_access_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_device_cache_property_flags_t flags;
  size_t cacheSize;
} ze_device_cache_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  uint32_t maxImageDims1D;
  uint32_t maxImageDims2D;
  uint32_t maxImageDims3D;
  uint64_t maxImageBufferSize;
  uint32_t maxImageArraySlices;
  uint32_t maxSamplers;
  uint32_t maxReadImageArgs;
  uint32_t maxWriteImageArgs;
} ze_device_image_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_external_memory_type_flags_t memoryAllocationImportTypes;
  ze_external_memory_type_flags_t memoryAllocationExportTypes;
  ze_external_memory_type_flags_t imageImportTypes;
  ze_external_memory_type_flags_t imageExportTypes;
} ze_device_external_memory_properties_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_device_p2p_property_flags_t flags;
} ze_device_p2p_properties_t;

typedef struct {
  uint32_t domain;
  uint32_t bus;
  uint32_t device;
  uint32_t function;
} ze_pci_address_ext_t;

typedef struct {
  int32_t genVersion;
  int32_t width;
  int64_t maxBandwidth;
} ze_pci_speed_ext_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_pci_address_ext_t address;
  ze_pci_speed_ext_t maxSpeed;
} ze_pci_ext_properties_t;

typedef struct { /* 1.15 */
  ze_structure_type_t stype;
  void *pNext;
  uint64_t currUsableMemSize;
} ze_device_usablemem_size_ext_properties_t;

typedef enum { /* 1.17 */
               ZE_DEVICE_READONLY_MEMORY_CAPABILITY_NONE = 0, /* 1.17 */
               ZE_DEVICE_READONLY_MEMORY_CAPABILITY_HINT = 1, /* 1.17 */
               ZE_DEVICE_READONLY_MEMORY_CAPABILITY_ENFORCED = 2, /* 1.17 */
} ze_device_readonly_memory_capability_t;

typedef struct { /* 1.17 */
  ze_structure_type_t stype;
  void *pNext;
  ze_device_readonly_memory_capability_t readonlyCapability;
} ze_device_readonly_memory_ext_properties_t;

#endif
