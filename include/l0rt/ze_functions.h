/* SPDX-License-Identifier: Apache-2.0 */
/* ze_functions.h: every Level Zero entry point that l0rt calls, once: since which version of the specification,
 * its name, its arguments. A REQUIRED one must be in the library; an OPTIONAL one may be NULL and has a fallback. */
#ifndef L0RT_ZE_FUNCTIONS_H
#define L0RT_ZE_FUNCTIONS_H

#include "l0rt/ze.h"

/* clang-format off */
#define L0RT_ZE_FUNCTIONS(REQUIRED, OPTIONAL)                                                                         \
  REQUIRED(1_0, zeInit, (ze_init_flags_t flags))                                                                      \
  REQUIRED(1_0, zeDriverGet, (uint32_t *pCount, ze_driver_handle_t *phDrivers))                                       \
  REQUIRED(1_0, zeDriverGetApiVersion, (ze_driver_handle_t hDriver, ze_api_version_t *version))                       \
  REQUIRED(1_0, zeDriverGetProperties, (ze_driver_handle_t hDriver, ze_driver_properties_t *pDriverProperties))       \
  REQUIRED(1_0, zeDriverGetExtensionProperties, (ze_driver_handle_t hDriver, uint32_t *pCount,                        \
           ze_driver_extension_properties_t *pExtensionProperties))                                                   \
  REQUIRED(1_0, zeDeviceGet, (ze_driver_handle_t hDriver, uint32_t *pCount, ze_device_handle_t *phDevices))           \
  REQUIRED(1_0, zeDeviceGetProperties, (ze_device_handle_t hDevice, ze_device_properties_t *pDeviceProperties))       \
  REQUIRED(1_0, zeDeviceGetComputeProperties, (ze_device_handle_t hDevice,                                            \
           ze_device_compute_properties_t *pComputeProperties))                                                       \
  REQUIRED(1_0, zeDeviceGetModuleProperties, (ze_device_handle_t hDevice,                                             \
           ze_device_module_properties_t *pModuleProperties))                                                         \
  REQUIRED(1_0, zeDeviceGetMemoryProperties, (ze_device_handle_t hDevice, uint32_t *pCount,                           \
           ze_device_memory_properties_t *pMemProperties))                                                            \
  REQUIRED(1_0, zeDeviceGetCacheProperties, (ze_device_handle_t hDevice, uint32_t *pCount,                            \
           ze_device_cache_properties_t *pCacheProperties))                                                           \
  REQUIRED(1_0, zeDeviceGetCommandQueueGroupProperties, (ze_device_handle_t hDevice, uint32_t *pCount,                \
           ze_command_queue_group_properties_t *pCommandQueueGroupProperties))                                        \
  REQUIRED(1_0, zeDeviceCanAccessPeer, (ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice,                   \
           ze_bool_t *value))                                                                                         \
  REQUIRED(1_0, zeContextCreate, (ze_driver_handle_t hDriver, const ze_context_desc_t *desc,                          \
           ze_context_handle_t *phContext))                                                                           \
  REQUIRED(1_0, zeContextDestroy, (ze_context_handle_t hContext))                                                     \
  REQUIRED(1_0, zeContextGetStatus, (ze_context_handle_t hContext))                                                    \
  REQUIRED(1_0, zeContextMakeMemoryResident, (ze_context_handle_t hContext, ze_device_handle_t hDevice,               \
           void *ptr, size_t size))                                                                                   \
  REQUIRED(1_0, zeCommandListCreateImmediate, (ze_context_handle_t hContext, ze_device_handle_t hDevice,              \
           const ze_command_queue_desc_t *altdesc, ze_command_list_handle_t *phCommandList))                          \
  REQUIRED(1_0, zeCommandListDestroy, (ze_command_list_handle_t hCommandList))                                        \
  REQUIRED(1_0, zeCommandListAppendBarrier, (ze_command_list_handle_t hCommandList,                                   \
           ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents))                  \
  REQUIRED(1_0, zeCommandListAppendMemoryCopy, (ze_command_list_handle_t hCommandList, void *dstptr,                  \
           const void *srcptr, size_t size, ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,                   \
           ze_event_handle_t *phWaitEvents))                                                                          \
  REQUIRED(1_0, zeCommandListAppendMemoryFill, (ze_command_list_handle_t hCommandList, void *ptr,                     \
           const void *pattern, size_t pattern_size, size_t size, ze_event_handle_t hSignalEvent,                     \
           uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents))                                                  \
  REQUIRED(1_0, zeCommandListAppendSignalEvent, (ze_command_list_handle_t hCommandList, ze_event_handle_t hEvent))    \
  REQUIRED(1_0, zeCommandListAppendWaitOnEvents, (ze_command_list_handle_t hCommandList, uint32_t numEvents,          \
           ze_event_handle_t *phEvents))                                                                              \
  REQUIRED(1_0, zeCommandListAppendWriteGlobalTimestamp, (ze_command_list_handle_t hCommandList,                      \
           uint64_t *dstptr, ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,                                  \
           ze_event_handle_t *phWaitEvents))                                                                          \
  REQUIRED(1_0, zeEventPoolCreate, (ze_context_handle_t hContext, const ze_event_pool_desc_t *desc,                   \
           uint32_t numDevices, ze_device_handle_t *phDevices, ze_event_pool_handle_t *phEventPool))                  \
  REQUIRED(1_0, zeEventPoolDestroy, (ze_event_pool_handle_t hEventPool))                                              \
  REQUIRED(1_0, zeEventCreate, (ze_event_pool_handle_t hEventPool, const ze_event_desc_t *desc,                       \
           ze_event_handle_t *phEvent))                                                                               \
  REQUIRED(1_0, zeEventDestroy, (ze_event_handle_t hEvent))                                                           \
  REQUIRED(1_0, zeEventHostSignal, (ze_event_handle_t hEvent))                                                        \
  REQUIRED(1_0, zeEventHostReset, (ze_event_handle_t hEvent))                                                         \
  REQUIRED(1_0, zeEventHostSynchronize, (ze_event_handle_t hEvent, uint64_t timeout))                                 \
  REQUIRED(1_0, zeEventQueryStatus, (ze_event_handle_t hEvent))                                                       \
  REQUIRED(1_0, zeEventPoolGetIpcHandle, (ze_event_pool_handle_t hEventPool, ze_ipc_event_pool_handle_t *phIpc))      \
  REQUIRED(1_0, zeEventPoolOpenIpcHandle, (ze_context_handle_t hContext, ze_ipc_event_pool_handle_t hIpc,             \
           ze_event_pool_handle_t *phEventPool))                                                                      \
  REQUIRED(1_0, zeEventPoolCloseIpcHandle, (ze_event_pool_handle_t hEventPool))                                       \
  REQUIRED(1_0, zeMemAllocDevice, (ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc,       \
           size_t size, size_t alignment, ze_device_handle_t hDevice, void* *pptr))                                   \
  REQUIRED(1_0, zeMemAllocHost, (ze_context_handle_t hContext, const ze_host_mem_alloc_desc_t *host_desc,             \
           size_t size, size_t alignment, void* *pptr))                                                               \
  REQUIRED(1_0, zeMemAllocShared, (ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc,       \
           const ze_host_mem_alloc_desc_t *host_desc, size_t size, size_t alignment, ze_device_handle_t hDevice,      \
           void* *pptr))                                                                                              \
  REQUIRED(1_0, zeMemFree, (ze_context_handle_t hContext, void *ptr))                                                 \
  REQUIRED(1_0, zeMemGetAllocProperties, (ze_context_handle_t hContext, const void *ptr,                              \
           ze_memory_allocation_properties_t *pMemAllocProperties, ze_device_handle_t *phDevice))                     \
  REQUIRED(1_0, zeMemGetAddressRange, (ze_context_handle_t hContext, const void *ptr, void* *pBase, size_t *pSize))    \
  REQUIRED(1_0, zeMemGetIpcHandle, (ze_context_handle_t hContext, const void *ptr, ze_ipc_mem_handle_t *pIpcHandle))  \
  REQUIRED(1_0, zeMemOpenIpcHandle, (ze_context_handle_t hContext, ze_device_handle_t hDevice,                        \
           ze_ipc_mem_handle_t handle, ze_ipc_memory_flags_t flags, void* *pptr))                                     \
  REQUIRED(1_0, zeMemCloseIpcHandle, (ze_context_handle_t hContext, const void *ptr))                                 \
  REQUIRED(1_0, zeCommandListAppendMemoryPrefetch, (ze_command_list_handle_t hCommandList, const void *ptr,            \
           size_t size))                                                                                               \
  REQUIRED(1_0, zeCommandListAppendMemAdvise, (ze_command_list_handle_t hCommandList, ze_device_handle_t hDevice,      \
           const void *ptr, size_t size, ze_memory_advice_t advice))                                                   \
  OPTIONAL(1_0, zeCommandListAppendMemoryCopyRegion, (ze_command_list_handle_t hCommandList, void *dstptr,            \
           const ze_copy_region_t *dstRegion, uint32_t dstPitch, uint32_t dstSlicePitch, const void *srcptr,          \
           const ze_copy_region_t *srcRegion, uint32_t srcPitch, uint32_t srcSlicePitch,                              \
           ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents))                  \
  OPTIONAL(1_0, zeCommandQueueCreate, (ze_context_handle_t hContext, ze_device_handle_t hDevice,                      \
           const ze_command_queue_desc_t *desc, ze_command_queue_handle_t *phCommandQueue))                           \
  OPTIONAL(1_0, zeCommandQueueDestroy, (ze_command_queue_handle_t hCommandQueue))                                     \
  OPTIONAL(1_0, zeCommandQueueExecuteCommandLists, (ze_command_queue_handle_t hCommandQueue, uint32_t numCommandLists,\
           ze_command_list_handle_t *phCommandLists, ze_fence_handle_t hFence))                                       \
  OPTIONAL(1_0, zeCommandQueueSynchronize, (ze_command_queue_handle_t hCommandQueue, uint64_t timeout))               \
  OPTIONAL(1_0, zeFenceCreate, (ze_command_queue_handle_t hCommandQueue, const ze_fence_desc_t *desc,                 \
           ze_fence_handle_t *phFence))                                                                               \
  OPTIONAL(1_0, zeFenceDestroy, (ze_fence_handle_t hFence))                                                           \
  OPTIONAL(1_0, zeFenceHostSynchronize, (ze_fence_handle_t hFence, uint64_t timeout))                                 \
  OPTIONAL(1_0, zeFenceQueryStatus, (ze_fence_handle_t hFence))                                                       \
  OPTIONAL(1_0, zeFenceReset, (ze_fence_handle_t hFence))                                                             \
  OPTIONAL(1_0, zeCommandListCreate, (ze_context_handle_t hContext, ze_device_handle_t hDevice,                       \
           const ze_command_list_desc_t *desc, ze_command_list_handle_t *phCommandList))                              \
  OPTIONAL(1_0, zeCommandListClose, (ze_command_list_handle_t hCommandList))                                          \
  OPTIONAL(1_0, zeCommandListReset, (ze_command_list_handle_t hCommandList))                                          \
  OPTIONAL(1_0, zeCommandListAppendEventReset, (ze_command_list_handle_t hCommandList, ze_event_handle_t hEvent))     \
  REQUIRED(1_0, zeModuleCreate, (ze_context_handle_t hContext, ze_device_handle_t hDevice,                            \
           const ze_module_desc_t *desc, ze_module_handle_t *phModule, ze_module_build_log_handle_t *phBuildLog))     \
  REQUIRED(1_0, zeModuleDestroy, (ze_module_handle_t hModule))                                                        \
  REQUIRED(1_0, zeModuleBuildLogDestroy, (ze_module_build_log_handle_t hModuleBuildLog))                              \
  REQUIRED(1_0, zeModuleBuildLogGetString, (ze_module_build_log_handle_t hModuleBuildLog, size_t *pSize,              \
           char *pBuildLog))                                                                                          \
  REQUIRED(1_0, zeModuleGetKernelNames, (ze_module_handle_t hModule, uint32_t *pCount, const char **pNames))          \
  REQUIRED(1_0, zeModuleGetNativeBinary, (ze_module_handle_t hModule, size_t *pSize, uint8_t *pModuleNativeBinary))   \
  REQUIRED(1_0, zeKernelCreate, (ze_module_handle_t hModule, const ze_kernel_desc_t *desc,                            \
           ze_kernel_handle_t *phKernel))                                                                             \
  REQUIRED(1_0, zeKernelDestroy, (ze_kernel_handle_t hKernel))                                                        \
  REQUIRED(1_0, zeKernelSetGroupSize, (ze_kernel_handle_t hKernel, uint32_t groupSizeX, uint32_t groupSizeY,          \
           uint32_t groupSizeZ))                                                                                      \
  REQUIRED(1_0, zeKernelSuggestGroupSize, (ze_kernel_handle_t hKernel, uint32_t globalSizeX, uint32_t globalSizeY,    \
           uint32_t globalSizeZ, uint32_t *groupSizeX, uint32_t *groupSizeY, uint32_t *groupSizeZ))                   \
  REQUIRED(1_0, zeKernelSuggestMaxCooperativeGroupCount, (ze_kernel_handle_t hKernel, uint32_t *totalGroupCount))     \
  REQUIRED(1_0, zeKernelSetArgumentValue, (ze_kernel_handle_t hKernel, uint32_t argIndex, size_t argSize,             \
           const void *pArgValue))                                                                                    \
  REQUIRED(1_0, zeKernelSetIndirectAccess, (ze_kernel_handle_t hKernel, ze_kernel_indirect_access_flags_t flags))     \
  OPTIONAL(1_1, zeKernelSetGlobalOffsetExp, (ze_kernel_handle_t hKernel, uint32_t offsetX, uint32_t offsetY,          \
           uint32_t offsetZ))                                                                                         \
  REQUIRED(1_0, zeKernelGetProperties, (ze_kernel_handle_t hKernel, ze_kernel_properties_t *pKernelProperties))       \
  REQUIRED(1_0, zeCommandListAppendLaunchKernel, (ze_command_list_handle_t hCommandList, ze_kernel_handle_t hKernel,  \
           const ze_group_count_t *pLaunchFuncArgs, ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,           \
           ze_event_handle_t *phWaitEvents))                                                                          \
  REQUIRED(1_0, zeCommandListAppendLaunchCooperativeKernel, (ze_command_list_handle_t hCommandList,                   \
           ze_kernel_handle_t hKernel, const ze_group_count_t *pLaunchFuncArgs, ze_event_handle_t hSignalEvent,       \
           uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents))                                                  \
  OPTIONAL(1_0, zeVirtualMemReserve, (ze_context_handle_t hContext, const void *pStart, size_t size, void* *pptr))    \
  OPTIONAL(1_0, zeVirtualMemFree, (ze_context_handle_t hContext, const void *ptr, size_t size))                       \
  OPTIONAL(1_0, zeVirtualMemMap, (ze_context_handle_t hContext, const void *ptr, size_t size,                         \
           ze_physical_mem_handle_t hPhysicalMemory, size_t offset, ze_memory_access_attribute_t access))             \
  OPTIONAL(1_0, zeVirtualMemUnmap, (ze_context_handle_t hContext, const void *ptr, size_t size))                      \
  OPTIONAL(1_0, zePhysicalMemCreate, (ze_context_handle_t hContext, ze_device_handle_t hDevice,                       \
           ze_physical_mem_desc_t *desc, ze_physical_mem_handle_t *phPhysicalMemory))                                 \
  OPTIONAL(1_0, zePhysicalMemDestroy, (ze_context_handle_t hContext, ze_physical_mem_handle_t hPhysicalMemory))       \
  OPTIONAL(1_0, zeDeviceGetSubDevices, (ze_device_handle_t hDevice, uint32_t *pCount,                                 \
           ze_device_handle_t *phSubdevices))                                                                         \
  OPTIONAL(1_0, zeDeviceGetStatus, (ze_device_handle_t hDevice))                                                      \
  OPTIONAL(1_1, zeDriverGetExtensionFunctionAddress, (ze_driver_handle_t hDriver, const char *name,                   \
           void* *ppFunctionAddress))                                                                                 \
  OPTIONAL(1_1, zeDeviceGetGlobalTimestamps, (ze_device_handle_t hDevice, uint64_t *hostTimestamp,                    \
           uint64_t *deviceTimestamp))                                                                                \
  OPTIONAL(1_3, zeDevicePciGetPropertiesExt, (ze_device_handle_t hDevice, ze_pci_ext_properties_t *pPciProperties))   \
  OPTIONAL(1_3, zeMemFreeExt, (ze_context_handle_t hContext, const ze_memory_free_ext_desc_t *pMemFreeDesc,           \
           void *ptr))                                                                                                \
  OPTIONAL(1_6, zeCommandListHostSynchronize, (ze_command_list_handle_t hCommandList, uint64_t timeout))              \
  OPTIONAL(1_6, zeDriverGetLastErrorDescription, (ze_driver_handle_t hDriver, const char **ppString))                 \
  OPTIONAL(1_6, zeEventPoolPutIpcHandle, (ze_context_handle_t hContext, ze_ipc_event_pool_handle_t hIpc))             \
  OPTIONAL(1_6, zeMemPutIpcHandle, (ze_context_handle_t hContext, ze_ipc_mem_handle_t handle))                        \
  OPTIONAL(1_9, zeCommandListGetContextHandle, (ze_command_list_handle_t hCommandList,                                \
           ze_context_handle_t *phContext))                                                                           \
  OPTIONAL(1_9, zeCommandListGetDeviceHandle, (ze_command_list_handle_t hCommandList, ze_device_handle_t *phDevice))  \
  OPTIONAL(1_9, zeCommandListGetOrdinal, (ze_command_list_handle_t hCommandList, uint32_t *pOrdinal))                 \
  OPTIONAL(1_9, zeCommandListIsImmediate, (ze_command_list_handle_t hCommandList, ze_bool_t *pIsImmediate))           \
  OPTIONAL(1_9, zeCommandListGetNextCommandIdExp, (ze_command_list_handle_t hCommandList,                             \
           const ze_mutable_command_id_exp_desc_t *desc, uint64_t *pCommandId))                                       \
  OPTIONAL(1_9, zeCommandListUpdateMutableCommandsExp, (ze_command_list_handle_t hCommandList,                        \
           const ze_mutable_commands_exp_desc_t *desc))                                                               \
  OPTIONAL(1_10, zeInitDrivers, (uint32_t *pCount, ze_driver_handle_t *phDrivers, ze_init_driver_type_desc_t *desc))  \
  OPTIONAL(1_14, zeDeviceSynchronize, (ze_device_handle_t hDevice))                                                   \
  OPTIONAL(1_15, zeMemGetIpcHandleWithProperties, (ze_context_handle_t hContext, const void *ptr, void *pNext,        \
           ze_ipc_mem_handle_t *pIpcHandle))                                                                          \
  OPTIONAL(1_17, zeCommandListBeginGraphCaptureExt, (ze_command_list_handle_t hCommandList, const void *pNext))       \
  OPTIONAL(1_17, zeCommandListEndGraphCaptureExt, (ze_command_list_handle_t hCommandList, const void *pNext,          \
           ze_graph_handle_t *phGraph))                                                                               \
  OPTIONAL(1_17, zeCommandListAppendGraphExt, (ze_command_list_handle_t hCommandList,                                 \
           ze_executable_graph_handle_t hGraph, const void *pNext, ze_event_handle_t hSignalEvent,                    \
           uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents))                                                  \
  OPTIONAL(1_17, zeGraphInstantiateExt, (ze_graph_handle_t hGraph, const void *pNext,                                 \
           ze_executable_graph_handle_t *phExecutableGraph))                                                          \
  OPTIONAL(1_17, zeGraphDestroyExt, (ze_graph_handle_t hGraph))                                                       \
  OPTIONAL(1_17, zeExecutableGraphDestroyExt, (ze_executable_graph_handle_t hExecutableGraph))                        \
  OPTIONAL(1_3, zelLoaderTranslateHandle, (uint32_t handleType, void *handleIn, void **handleOut))                     \
  OPTIONAL(1_0, zeDeviceGetImageProperties, (ze_device_handle_t hDevice,                                              \
           ze_device_image_properties_t *pImageProperties))                                                           \
  OPTIONAL(1_0, zeImageCreate, (ze_context_handle_t hContext, ze_device_handle_t hDevice,                             \
           const ze_image_desc_t *desc, ze_image_handle_t *phImage))                                                  \
  OPTIONAL(1_0, zeImageDestroy, (ze_image_handle_t hImage))                                                           \
  OPTIONAL(1_0, zeSamplerCreate, (ze_context_handle_t hContext, ze_device_handle_t hDevice,                           \
           const ze_sampler_desc_t *desc, ze_sampler_handle_t *phSampler))                                            \
  OPTIONAL(1_0, zeSamplerDestroy, (ze_sampler_handle_t hSampler))                                                     \
  OPTIONAL(1_0, zeCommandListAppendImageCopyToMemory, (ze_command_list_handle_t hCommandList, void *dstptr,           \
           ze_image_handle_t hSrcImage, const ze_image_region_t *pSrcRegion, ze_event_handle_t hSignalEvent,          \
           uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents))                                                  \
  OPTIONAL(1_0, zeCommandListAppendImageCopyFromMemory, (ze_command_list_handle_t hCommandList,                       \
           ze_image_handle_t hDstImage, const void *srcptr, const ze_image_region_t *pDstRegion,                      \
           ze_event_handle_t hSignalEvent, uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents))
/* clang-format on */

#define L0RT_ZE_MEMBER(since, name, args) ze_result_t(*name) args;
typedef struct {
  L0RT_ZE_FUNCTIONS(L0RT_ZE_MEMBER, L0RT_ZE_MEMBER)
} l0rt_ze_table;
#undef L0RT_ZE_MEMBER

#endif
