/* SPDX-License-Identifier: Apache-2.0 */
/* device_properties.c: what a device says about itself. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/device.h"
#include "base/driver.h"
#include "base/gate.h"
#include "base/knobs.h"
#include "graphs/mutation.h"
#include "memory/external.h"
#include "modules/native.h"
#include "simulate/profile.h"

/* A structure's stype and pNext are the caller's: only what lies behind them is cleared. */
#define CLEAR(p) memset((char *)(p) + sizeof(ze_base_properties_t), 0, sizeof(*(p)) - sizeof(ze_base_properties_t))

#define CHECK_ARGUMENTS(handle, pointer)                                                                               \
  CPU_ENTER();                                                                                                         \
  CPU_REFUSE_IF(cpu_device_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);                                           \
  CPU_REFUSE_IF((pointer) == NULL, ERROR_INVALID_NULL_POINTER)

uint64_t cpu_device_free(const cpu_device *device) {
  uint64_t used = atomic_load(&device->used);
  return used < cpu_knobs.memory ? cpu_knobs.memory - used : 0;
}

/* ZE_extension_device_ip_version, of 1.5. */
enum { IP_VERSION_EXT = 0x1000f };
typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  uint32_t version;
} ip_version;

/* Programs choose kernels by it, and oneMKL refuses a device without one. For Gen9 (9.0.9) oneMKL has SPIR-V of almost
 * all, and programs bring no machine code that they would prefer. */
static uint32_t ip_version_of(void) { return cpu_knobs.device != NULL ? cpu_knobs.device->ip_version : 9 << 22 | 9; }

static void fill_chain(const cpu_device *device, void *next) {
  for (ze_base_properties_t *p = next; p != NULL; p = p->pNext) {
    if (p->stype == ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES) /* unknown ones are skipped */
      ((ze_device_usablemem_size_ext_properties_t *)p)->currUsableMemSize = cpu_device_free(device);
    else if (p->stype == ZE_STRUCTURE_TYPE_DEVICE_READONLY_MEMORY_EXT_PROPERTIES && !cpu_knobs.neo_22_43)
      ((ze_device_readonly_memory_ext_properties_t *)p)
          ->readonlyCapability = ZE_DEVICE_READONLY_MEMORY_CAPABILITY_ENFORCED;
    else if ((uint32_t)p->stype == IP_VERSION_EXT && !cpu_knobs.neo_22_43) ((ip_version *)p)->version = ip_version_of();
    else if (p->stype == ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES && !cpu_knobs.neo_22_43) {
      ze_mutable_command_list_exp_properties_t *m = (ze_mutable_command_list_exp_properties_t *)p;
      m->mutableCommandListFlags = 0;
      m->mutableCommandFlags = CPU_MUTABLE;
    } else if (p->stype == ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_PROPERTIES && cpu_driver_has_graphs())
      ((ze_record_replay_graph_ext_properties_t *)p)->graphFlags = ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH |
                                                                   ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_APPEND_COMMANDLIST;
  }
}

void cpu_device_describe(const cpu_device *device, ze_device_properties_t *p) {
  CLEAR(p);
  p->type = ZE_DEVICE_TYPE_GPU; /* clients look at nothing else; the name says what it is */
  p->coreClockRate = 1000;
  p->maxMemAllocSize = cpu_max_alloc();
  p->maxHardwareContexts = 1024;
  p->numThreadsPerEU = 1;
  p->physicalEUSimdWidth = 1;
  p->numEUsPerSubslice = 16; /* an Xe core's: programs divide their number by it, and others by the result */
  p->numSubslicesPerSlice = 1;
  p->numSlices = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
  bool hertz = p->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2;
  p->timerResolution = hertz ? cpu_knobs.timestamp_hz : 1000000000u / cpu_knobs.timestamp_hz;
  p->timestampValidBits = p->kernelTimestampValidBits = (uint32_t)cpu_knobs.timestamp_bits;
  const cpu_device_profile *real = cpu_knobs.device;
  if (real != NULL && cpu_knobs.timestamp_bits == real->timestamp_bits)
    p->kernelTimestampValidBits = real->kernel_timestamp_bits;
  memcpy(p->uuid.id, "l0rt CPU dev", 12);
  p->uuid.id[15] = (uint8_t)device->index;
  snprintf(p->name, sizeof(p->name), "l0rt CPU device");
  if (real == NULL) return;
  p->vendorId = 0x8086;
  p->deviceId = real->device_id;
  p->flags = real->integrated ? ZE_DEVICE_PROPERTY_FLAG_INTEGRATED : 0;
  snprintf(p->name, sizeof(p->name), "l0rt CPU device (%s, simulated)", real->name);
}

CPU_EXPORT ze_result_t zeDeviceGetProperties(ze_device_handle_t handle, ze_device_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  cpu_device_describe(cpu_device_cast(handle), p);
  fill_chain(cpu_device_cast(handle), p->pNext);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceGetComputeProperties(ze_device_handle_t handle, ze_device_compute_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->maxTotalGroupSize = p->maxGroupSizeX = p->maxGroupSizeY = p->maxGroupSizeZ = SPIRV_MAX_GROUP_SIZE;
  p->maxGroupCountX = p->maxGroupCountY = p->maxGroupCountZ = UINT32_MAX;
  p->maxSharedLocalMemory = SPIRV_MAX_LOCAL_BYTES;
  p->numSubGroupSizes = 3;
  for (uint32_t i = 0; i < p->numSubGroupSizes; i++) p->subGroupSizes[i] = 8u << i; /* as program.c takes */
  return ZE_RESULT_SUCCESS;
}

static void fill_module_chain(void *next) {
  for (ze_base_properties_t *p = next; p != NULL; p = p->pNext) {
    if (p->stype == ZE_STRUCTURE_TYPE_FLOAT_ATOMIC_EXT_PROPERTIES) {
      ze_float_atomic_ext_properties_t *f = (ze_float_atomic_ext_properties_t *)p;
      f->fp16Flags = 0;
      f->fp32Flags = f->fp64Flags = ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_LOAD_STORE |
                                    ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_ADD |
                                    ZE_DEVICE_FP_ATOMIC_EXT_FLAG_GLOBAL_MIN_MAX |
                                    ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_LOAD_STORE |
                                    ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_ADD | ZE_DEVICE_FP_ATOMIC_EXT_FLAG_LOCAL_MIN_MAX;
    } else if (p->stype == ZE_STRUCTURE_TYPE_SCHEDULING_HINT_EXP_PROPERTIES) {
      ((ze_scheduling_hint_exp_properties_t *)p)->schedulingHintFlags = 0; /* they are taken, and change nothing */
    }
  }
}

/* What the engine for SPIR-V does. */
CPU_EXPORT ze_result_t zeDeviceGetModuleProperties(ze_device_handle_t handle, ze_device_module_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->spirvVersionSupported = 1 << 16 | 6;
  p->flags = ZE_DEVICE_MODULE_FLAG_FP16 | ZE_DEVICE_MODULE_FLAG_FP64 | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
  p->fp16flags = ZE_DEVICE_FP_FLAG_DENORM | ZE_DEVICE_FP_FLAG_INF_NAN | ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST;
  p->fp32flags = p->fp64flags = ZE_DEVICE_FP_FLAG_DENORM | ZE_DEVICE_FP_FLAG_INF_NAN |
                                ZE_DEVICE_FP_FLAG_ROUND_TO_NEAREST | ZE_DEVICE_FP_FLAG_FMA |
                                ZE_DEVICE_FP_FLAG_ROUNDED_DIVIDE_SQRT;
  p->maxArgumentsSize = 2048;
  p->printfBufferSize = SPIRV_PRINT_BYTES;
  memcpy(p->nativeKernelSupported.id, cpu_native_uuid, sizeof(cpu_native_uuid));
  fill_module_chain(p->pNext);
  return ZE_RESULT_SUCCESS;
}

/* How many entries to write: all when the caller asks how many there are. Sets *count to the number there is. */
static uint32_t entries(uint32_t *count, uint32_t there_are, const void *properties) {
  uint32_t n = properties == NULL || *count == 0 ? 0 : *count < there_are ? *count : there_are;
  *count = n != 0 ? n : there_are;
  return n;
}

CPU_EXPORT ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t handle, uint32_t *count,
                                                              ze_command_queue_group_properties_t *p) {
  CHECK_ARGUMENTS(handle, count);
  const cpu_group *groups = cpu_device_groups();
  uint32_t n = entries(count, cpu_group_count(), p);
  for (uint32_t i = 0; i < n; i++) {
    p[i].flags = groups[i].flags;
    p[i].maxMemoryFillPatternSize = groups[i].pattern;
    p[i].numQueues = groups[i].queues;
  }
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t handle, uint32_t *count,
                                                   ze_device_memory_properties_t *p) {
  CHECK_ARGUMENTS(handle, count);
  if (entries(count, 1, p) == 0) return ZE_RESULT_SUCCESS;
  CLEAR(p);
  p->maxClockRate = 1000;
  p->maxBusWidth = 64;
  p->totalSize = cpu_knobs.memory;
  snprintf(p->name, sizeof(p->name), "host memory of the machine");
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceGetMemoryAccessProperties(ze_device_handle_t handle,
                                                         ze_device_memory_access_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  p->hostAllocCapabilities = p->deviceAllocCapabilities = p->sharedSingleDeviceAllocCapabilities =
      p->sharedCrossDeviceAllocCapabilities = ZE_MEMORY_ACCESS_CAP_FLAG_RW | ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC |
                                              ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT |
                                              ZE_MEMORY_ACCESS_CAP_FLAG_CONCURRENT_ATOMIC;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDeviceGetCacheProperties(ze_device_handle_t handle, uint32_t *count,
                                                  ze_device_cache_properties_t *p) {
  CHECK_ARGUMENTS(handle, count);
  if (entries(count, 1, p) == 0) return ZE_RESULT_SUCCESS;
  long size = sysconf(_SC_LEVEL3_CACHE_SIZE);
  p->flags = 0;
  p->cacheSize = size > 0 ? (size_t)size : 1 << 20;
  return ZE_RESULT_SUCCESS;
}

/* All zero: no images. */
CPU_EXPORT ze_result_t zeDeviceGetImageProperties(ze_device_handle_t handle, ze_device_image_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  if (!cpu_device_has_images()) return ZE_RESULT_SUCCESS;
  const cpu_image_limits *limits = cpu_image_limits_of_device();
  p->maxImageDims1D = limits->one;
  p->maxImageDims2D = limits->two;
  p->maxImageDims3D = limits->three;
  p->maxImageBufferSize = limits->buffer;
  p->maxImageArraySlices = limits->elements;
  p->maxSamplers = 16;
  p->maxReadImageArgs = p->maxWriteImageArgs = 128;
  return ZE_RESULT_SUCCESS;
}

/* Of memory; images are not there. */
CPU_EXPORT ze_result_t zeDeviceGetExternalMemoryProperties(ze_device_handle_t handle,
                                                           ze_device_external_memory_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  CLEAR(p);
  p->memoryAllocationImportTypes = p->memoryAllocationExportTypes = cpu_external_types();
  return ZE_RESULT_SUCCESS;
}

/* A place of its own for each device. */
CPU_EXPORT ze_result_t zeDevicePciGetPropertiesExt(ze_device_handle_t handle, ze_pci_ext_properties_t *p) {
  CHECK_ARGUMENTS(handle, p);
  const cpu_device *device = cpu_device_cast(handle);
  p->address = (ze_pci_address_ext_t){.domain = CPU_PCI_DOMAIN, .bus = device->index + 1};
  p->maxSpeed = (ze_pci_speed_ext_t){.genVersion = -1, .width = -1, .maxBandwidth = -1};
  return ZE_RESULT_SUCCESS;
}
