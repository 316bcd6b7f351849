/* SPDX-License-Identifier: Apache-2.0 */
/* entry_points.h: the prototypes of what the driver exports and tests call. */
#ifndef L0RT_CPU_TEST_ENTRY_POINTS_H
#define L0RT_CPU_TEST_ENTRY_POINTS_H

#include "l0rt/ze.h"
#include "l0rt/ze_sysman.h"

ze_result_t zeInit(ze_init_flags_t flags);
ze_result_t zeDriverGet(uint32_t *pCount, ze_driver_handle_t *phDrivers);
ze_result_t zeDriverGetApiVersion(ze_driver_handle_t hDriver, ze_api_version_t *version);
ze_result_t zeDriverGetProperties(ze_driver_handle_t hDriver, ze_driver_properties_t *pDriverProperties);
ze_result_t zeDriverGetIpcProperties(ze_driver_handle_t hDriver, ze_driver_ipc_properties_t *pIpcProperties);
ze_result_t zeDriverGetExtensionProperties(ze_driver_handle_t hDriver, uint32_t *pCount,
                                           ze_driver_extension_properties_t *pExtensionProperties);
ze_result_t zeDriverGetExtensionFunctionAddress(ze_driver_handle_t hDriver, const char *name, void **ppFunctionAddress);
ze_result_t zeDeviceGet(ze_driver_handle_t hDriver, uint32_t *pCount, ze_device_handle_t *phDevices);
ze_result_t zeDeviceGetSubDevices(ze_device_handle_t hDevice, uint32_t *pCount, ze_device_handle_t *phSubdevices);
ze_result_t zeDeviceGetProperties(ze_device_handle_t hDevice, ze_device_properties_t *pDeviceProperties);
ze_result_t zeDeviceGetComputeProperties(ze_device_handle_t hDevice,
                                         ze_device_compute_properties_t *pComputeProperties);
ze_result_t zeDeviceGetCommandQueueGroupProperties(ze_device_handle_t hDevice, uint32_t *pCount,
                                                   ze_command_queue_group_properties_t *pCommandQueueGroupProperties);
ze_result_t zeDeviceGetMemoryProperties(ze_device_handle_t hDevice, uint32_t *pCount,
                                        ze_device_memory_properties_t *pMemProperties);
ze_result_t zeDeviceGetMemoryAccessProperties(ze_device_handle_t hDevice,
                                              ze_device_memory_access_properties_t *pMemAccessProperties);
ze_result_t zeDeviceGetExternalMemoryProperties(ze_device_handle_t hDevice,
                                                ze_device_external_memory_properties_t *pExternalMemoryProperties);
ze_result_t zeDeviceGetP2PProperties(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice,
                                     ze_device_p2p_properties_t *pP2PProperties);
ze_result_t zeDeviceCanAccessPeer(ze_device_handle_t hDevice, ze_device_handle_t hPeerDevice, ze_bool_t *value);
ze_result_t zeDeviceGetStatus(ze_device_handle_t hDevice);
ze_result_t zeDeviceGetGlobalTimestamps(ze_device_handle_t hDevice, uint64_t *hostTimestamp, uint64_t *deviceTimestamp);
ze_result_t zeContextCreate(ze_driver_handle_t hDriver, const ze_context_desc_t *desc, ze_context_handle_t *phContext);
ze_result_t zeContextCreateEx(ze_driver_handle_t hDriver, const ze_context_desc_t *desc, uint32_t numDevices,
                              ze_device_handle_t *phDevices, ze_context_handle_t *phContext);
ze_result_t zeContextDestroy(ze_context_handle_t hContext);
ze_result_t zeContextGetStatus(ze_context_handle_t hContext);
ze_result_t zeCommandQueueCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                 const ze_command_queue_desc_t *desc, ze_command_queue_handle_t *phCommandQueue);
ze_result_t zeCommandQueueDestroy(ze_command_queue_handle_t hCommandQueue);
ze_result_t zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t hCommandQueue, uint32_t numCommandLists,
                                              ze_command_list_handle_t *phCommandLists, ze_fence_handle_t hFence);
ze_result_t zeCommandQueueSynchronize(ze_command_queue_handle_t hCommandQueue, uint64_t timeout);
ze_result_t zeCommandListCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                const ze_command_list_desc_t *desc, ze_command_list_handle_t *phCommandList);
ze_result_t zeCommandListCreateImmediate(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                         const ze_command_queue_desc_t *altdesc,
                                         ze_command_list_handle_t *phCommandList);
ze_result_t zeCommandListDestroy(ze_command_list_handle_t hCommandList);
ze_result_t zeCommandListClose(ze_command_list_handle_t hCommandList);
ze_result_t zeCommandListReset(ze_command_list_handle_t hCommandList);
ze_result_t zeCommandListAppendWriteGlobalTimestamp(ze_command_list_handle_t hCommandList, uint64_t *dstptr,
                                                    ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                    ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t hCommandList, ze_event_handle_t hSignalEvent,
                                       uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendMemoryRangesBarrier(ze_command_list_handle_t hCommandList, uint32_t numRanges,
                                                   const size_t *pRangeSizes, const void **pRanges,
                                                   ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                   ze_event_handle_t *phWaitEvents);
ze_result_t zeContextSystemBarrier(ze_context_handle_t hContext, ze_device_handle_t hDevice);
ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t hCommandList, void *dstptr, const void *srcptr,
                                          size_t size, ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                          ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t hCommandList, void *ptr, const void *pattern,
                                          size_t pattern_size, size_t size, ze_event_handle_t hSignalEvent,
                                          uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendMemoryCopyRegion(ze_command_list_handle_t hCommandList, void *dstptr,
                                                const ze_copy_region_t *dstRegion, uint32_t dstPitch,
                                                uint32_t dstSlicePitch, const void *srcptr,
                                                const ze_copy_region_t *srcRegion, uint32_t srcPitch,
                                                uint32_t srcSlicePitch, ze_event_handle_t hSignalEvent,
                                                uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendMemoryCopyFromContext(ze_command_list_handle_t hCommandList, void *dstptr,
                                                     ze_context_handle_t hContextSrc, const void *srcptr, size_t size,
                                                     ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                     ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t hCommandList, const void *ptr, size_t size);
ze_result_t zeCommandListAppendMemAdvise(ze_command_list_handle_t hCommandList, ze_device_handle_t hDevice,
                                         const void *ptr, size_t size, ze_memory_advice_t advice);
ze_result_t zeEventPoolCreate(ze_context_handle_t hContext, const ze_event_pool_desc_t *desc, uint32_t numDevices,
                              ze_device_handle_t *phDevices, ze_event_pool_handle_t *phEventPool);
ze_result_t zeEventPoolDestroy(ze_event_pool_handle_t hEventPool);
ze_result_t zeEventCreate(ze_event_pool_handle_t hEventPool, const ze_event_desc_t *desc, ze_event_handle_t *phEvent);
ze_result_t zeEventDestroy(ze_event_handle_t hEvent);
ze_result_t zeEventPoolGetIpcHandle(ze_event_pool_handle_t hEventPool, ze_ipc_event_pool_handle_t *phIpc);
ze_result_t zeEventPoolOpenIpcHandle(ze_context_handle_t hContext, ze_ipc_event_pool_handle_t hIpc,
                                     ze_event_pool_handle_t *phEventPool);
ze_result_t zeEventPoolCloseIpcHandle(ze_event_pool_handle_t hEventPool);
ze_result_t zeCommandListAppendSignalEvent(ze_command_list_handle_t hCommandList, ze_event_handle_t hEvent);
ze_result_t zeCommandListAppendWaitOnEvents(ze_command_list_handle_t hCommandList, uint32_t numEvents,
                                            ze_event_handle_t *phEvents);
ze_result_t zeEventHostSignal(ze_event_handle_t hEvent);
ze_result_t zeEventHostSynchronize(ze_event_handle_t hEvent, uint64_t timeout);
ze_result_t zeEventQueryStatus(ze_event_handle_t hEvent);
ze_result_t zeCommandListAppendEventReset(ze_command_list_handle_t hCommandList, ze_event_handle_t hEvent);
ze_result_t zeEventHostReset(ze_event_handle_t hEvent);
ze_result_t zeEventQueryKernelTimestamp(ze_event_handle_t hEvent, ze_kernel_timestamp_result_t *dstptr);
ze_result_t zeCommandListAppendQueryKernelTimestamps(ze_command_list_handle_t hCommandList, uint32_t numEvents,
                                                     ze_event_handle_t *phEvents, void *dstptr, const size_t *pOffsets,
                                                     ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                     ze_event_handle_t *phWaitEvents);
ze_result_t zeFenceCreate(ze_command_queue_handle_t hCommandQueue, const ze_fence_desc_t *desc,
                          ze_fence_handle_t *phFence);
ze_result_t zeFenceDestroy(ze_fence_handle_t hFence);
ze_result_t zeFenceHostSynchronize(ze_fence_handle_t hFence, uint64_t timeout);
ze_result_t zeFenceQueryStatus(ze_fence_handle_t hFence);
ze_result_t zeFenceReset(ze_fence_handle_t hFence);
ze_result_t zeMemAllocShared(ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc,
                             const ze_host_mem_alloc_desc_t *host_desc, size_t size, size_t alignment,
                             ze_device_handle_t hDevice, void **pptr);
ze_result_t zeMemAllocDevice(ze_context_handle_t hContext, const ze_device_mem_alloc_desc_t *device_desc, size_t size,
                             size_t alignment, ze_device_handle_t hDevice, void **pptr);
ze_result_t zeMemAllocHost(ze_context_handle_t hContext, const ze_host_mem_alloc_desc_t *host_desc, size_t size,
                           size_t alignment, void **pptr);
ze_result_t zeMemFree(ze_context_handle_t hContext, void *ptr);
ze_result_t zeMemGetAllocProperties(ze_context_handle_t hContext, const void *ptr,
                                    ze_memory_allocation_properties_t *pMemAllocProperties,
                                    ze_device_handle_t *phDevice);
ze_result_t zeMemGetAddressRange(ze_context_handle_t hContext, const void *ptr, void **pBase, size_t *pSize);
ze_result_t zeMemGetIpcHandle(ze_context_handle_t hContext, const void *ptr, ze_ipc_mem_handle_t *pIpcHandle);
ze_result_t zeMemOpenIpcHandle(ze_context_handle_t hContext, ze_device_handle_t hDevice, ze_ipc_mem_handle_t handle,
                               ze_ipc_memory_flags_t flags, void **pptr);
ze_result_t zeMemCloseIpcHandle(ze_context_handle_t hContext, const void *ptr);
ze_result_t zeContextMakeMemoryResident(ze_context_handle_t hContext, ze_device_handle_t hDevice, void *ptr,
                                        size_t size);
ze_result_t zeContextEvictMemory(ze_context_handle_t hContext, ze_device_handle_t hDevice, void *ptr, size_t size);
ze_result_t zeVirtualMemReserve(ze_context_handle_t hContext, const void *pStart, size_t size, void **pptr);
ze_result_t zeVirtualMemFree(ze_context_handle_t hContext, const void *ptr, size_t size);
ze_result_t zeVirtualMemQueryPageSize(ze_context_handle_t hContext, ze_device_handle_t hDevice, size_t size,
                                      size_t *pagesize);
ze_result_t zePhysicalMemCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice, ze_physical_mem_desc_t *desc,
                                ze_physical_mem_handle_t *phPhysicalMemory);
ze_result_t zePhysicalMemDestroy(ze_context_handle_t hContext, ze_physical_mem_handle_t hPhysicalMemory);
ze_result_t zeVirtualMemMap(ze_context_handle_t hContext, const void *ptr, size_t size,
                            ze_physical_mem_handle_t hPhysicalMemory, size_t offset,
                            ze_memory_access_attribute_t access);
ze_result_t zeVirtualMemUnmap(ze_context_handle_t hContext, const void *ptr, size_t size);
ze_result_t zeVirtualMemSetAccessAttribute(ze_context_handle_t hContext, const void *ptr, size_t size,
                                           ze_memory_access_attribute_t access);
ze_result_t zeVirtualMemGetAccessAttribute(ze_context_handle_t hContext, const void *ptr, size_t size,
                                           ze_memory_access_attribute_t *access, size_t *outSize);
ze_result_t zeDevicePciGetPropertiesExt(ze_device_handle_t hDevice, ze_pci_ext_properties_t *pPciProperties);
ze_result_t zeMemFreeExt(ze_context_handle_t hContext, const ze_memory_free_ext_desc_t *pMemFreeDesc, void *ptr);
ze_result_t zeInitDrivers(uint32_t *pCount, ze_driver_handle_t *phDrivers, ze_init_driver_type_desc_t *desc);
ze_result_t zeDriverGetLastErrorDescription(ze_driver_handle_t hDriver, const char **ppString);
ze_result_t zeDeviceGetRootDevice(ze_device_handle_t hDevice, ze_device_handle_t *phRootDevice);
ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t hCommandList, uint64_t timeout);
ze_result_t zeCommandListGetDeviceHandle(ze_command_list_handle_t hCommandList, ze_device_handle_t *phDevice);
ze_result_t zeCommandListGetContextHandle(ze_command_list_handle_t hCommandList, ze_context_handle_t *phContext);
ze_result_t zeCommandListGetOrdinal(ze_command_list_handle_t hCommandList, uint32_t *pOrdinal);
ze_result_t zeCommandListImmediateGetIndex(ze_command_list_handle_t hCommandList, uint32_t *pIndex);
ze_result_t zeCommandListIsImmediate(ze_command_list_handle_t hCommandList, ze_bool_t *pIsImmediate);
ze_result_t zeCommandQueueGetOrdinal(ze_command_queue_handle_t hCommandQueue, uint32_t *pOrdinal);
ze_result_t zeCommandQueueGetIndex(ze_command_queue_handle_t hCommandQueue, uint32_t *pIndex);
ze_result_t zeEventPoolGetContextHandle(ze_event_pool_handle_t hEventPool, ze_context_handle_t *phContext);
ze_result_t zeEventPoolGetFlags(ze_event_pool_handle_t hEventPool, ze_event_pool_flags_t *pFlags);
ze_result_t zeEventGetEventPool(ze_event_handle_t hEvent, ze_event_pool_handle_t *phEventPool);
ze_result_t zeEventGetSignalScope(ze_event_handle_t hEvent, ze_event_scope_flags_t *pSignalScope);
ze_result_t zeEventGetWaitScope(ze_event_handle_t hEvent, ze_event_scope_flags_t *pWaitScope);
ze_result_t zeMemPutIpcHandle(ze_context_handle_t hContext, ze_ipc_mem_handle_t handle);
ze_result_t zeEventPoolPutIpcHandle(ze_context_handle_t hContext, ze_ipc_event_pool_handle_t hIpc);

ze_result_t zeCommandListAppendHostFunction(ze_command_list_handle_t handle, ze_host_function_callback_t function,
                                            void *data, const void *next, ze_event_handle_t signal, uint32_t wait_count,
                                            ze_event_handle_t *waits);
ze_result_t zeCommandListAppendMemoryCopyWithParameters(ze_command_list_handle_t list, void *target, const void *source,
                                                        size_t size, const void *next, ze_event_handle_t signal,
                                                        uint32_t wait_count, ze_event_handle_t *waits);
ze_result_t zeCommandListAppendMemoryFillWithParameters(ze_command_list_handle_t list, void *target,
                                                        const void *pattern, size_t pattern_size, size_t size,
                                                        const void *next, ze_event_handle_t signal, uint32_t wait_count,
                                                        ze_event_handle_t *waits);
ze_context_handle_t zeDriverGetDefaultContext(ze_driver_handle_t driver);
ze_result_t zeDeviceSynchronize(ze_device_handle_t handle);
ze_result_t zeDeviceGetModuleProperties(ze_device_handle_t handle, ze_device_module_properties_t *p);
ze_result_t zeDeviceGetCacheProperties(ze_device_handle_t handle, uint32_t *count, ze_device_cache_properties_t *p);
ze_result_t zeDeviceGetImageProperties(ze_device_handle_t handle, ze_device_image_properties_t *p);
ze_result_t zeEventQueryTimestampsExp(ze_event_handle_t handle, ze_device_handle_t device, uint32_t *count,
                                      ze_kernel_timestamp_result_t *results);
ze_result_t zeEventCounterBasedCreate(ze_context_handle_t context_handle, ze_device_handle_t device_handle,
                                      const ze_event_counter_based_desc_t *desc, ze_event_handle_t *out);
ze_result_t zeEventGetCounterBasedFlags(ze_event_handle_t handle, ze_event_counter_based_flags_t *flags);
ze_result_t zeCommandListCreateCloneExp(ze_command_list_handle_t handle, ze_command_list_handle_t *out);
ze_result_t zeCommandListGetFlags(ze_command_list_handle_t handle, ze_command_list_flags_t *flags);
ze_result_t zeCommandListImmediateGetFlags(ze_command_list_handle_t handle, ze_command_queue_flags_t *flags);
ze_result_t zeCommandListImmediateGetMode(ze_command_list_handle_t handle, ze_command_queue_mode_t *mode);
ze_result_t zeCommandListImmediateGetPriority(ze_command_list_handle_t handle, ze_command_queue_priority_t *priority);
ze_result_t zeCommandListIsMutableExp(ze_command_list_handle_t handle, ze_bool_t *is_mutable);
ze_result_t zeGraphCreateExt(ze_context_handle_t context_handle, const void *next, ze_graph_handle_t *out);
ze_result_t zeGraphDestroyExt(ze_graph_handle_t handle);
ze_result_t zeGraphSetDestructionCallbackExt(ze_graph_handle_t handle, zex_mem_graph_free_callback_fn_t function,
                                             void *data, const void *next);
ze_result_t zeGraphIsEmptyExt(ze_graph_handle_t handle);
ze_result_t zeGraphGetPrimaryCommandListExt(ze_graph_handle_t handle, ze_command_list_handle_t *out);
ze_result_t zeGraphInstantiateExt(ze_graph_handle_t handle, const void *next, ze_executable_graph_handle_t *out);
ze_result_t zeGraphDumpContentsExt(ze_graph_handle_t handle, const char *path, const void *next);
ze_result_t zeExecutableGraphDestroyExt(ze_executable_graph_handle_t handle);
ze_result_t zeExecutableGraphGetSourceGraphExt(ze_executable_graph_handle_t handle, ze_graph_handle_t *out);
ze_result_t zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t handle, const void *next);
ze_result_t zeCommandListBeginCaptureIntoGraphExt(ze_command_list_handle_t handle, ze_graph_handle_t graph_handle,
                                                  const void *next);
ze_result_t zeCommandListIsGraphCaptureEnabledExt(ze_command_list_handle_t handle);
ze_result_t zeCommandListEndGraphCaptureExt(ze_command_list_handle_t handle, const void *next, ze_graph_handle_t *out);
ze_result_t zeCommandListGetGraphExt(ze_command_list_handle_t handle, ze_graph_handle_t *out);
ze_result_t zeCommandListAppendGraphExt(ze_command_list_handle_t handle, ze_executable_graph_handle_t graph_handle,
                                        const void *next, ze_event_handle_t signal, uint32_t wait_count,
                                        ze_event_handle_t *waits);
ze_result_t zeCommandListGetNextCommandIdExp(ze_command_list_handle_t list,
                                             const ze_mutable_command_id_exp_desc_t *desc, uint64_t *id);
ze_result_t zeCommandListGetNextCommandIdWithKernelsExp(ze_command_list_handle_t list,
                                                        const ze_mutable_command_id_exp_desc_t *desc, uint32_t count,
                                                        ze_kernel_handle_t *kernels, uint64_t *id);
ze_result_t zeCommandListUpdateMutableCommandsExp(ze_command_list_handle_t handle,
                                                  const ze_mutable_commands_exp_desc_t *desc);
ze_result_t zeCommandListUpdateMutableCommandSignalEventExp(ze_command_list_handle_t handle, uint64_t id,
                                                            ze_event_handle_t signal);
ze_result_t zeCommandListUpdateMutableCommandWaitEventsExp(ze_command_list_handle_t handle, uint64_t id, uint32_t count,
                                                           ze_event_handle_t *waits);
ze_result_t zeCommandListUpdateMutableCommandKernelsExp(ze_command_list_handle_t handle, uint32_t count, uint64_t *ids,
                                                        ze_kernel_handle_t *kernels);
ze_result_t zePhysicalMemGetProperties(ze_context_handle_t context, ze_physical_mem_handle_t handle,
                                       ze_physical_mem_properties_t *properties);
ze_result_t zeCommandQueueGetFlags(ze_command_queue_handle_t handle, ze_command_queue_flags_t *flags);
ze_result_t zeCommandQueueGetMode(ze_command_queue_handle_t handle, ze_command_queue_mode_t *mode);
ze_result_t zeCommandQueueGetPriority(ze_command_queue_handle_t handle, ze_command_queue_priority_t *priority);
ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t list, uint32_t count,
                                                        ze_command_list_handle_t *lists, ze_event_handle_t signal,
                                                        uint32_t wait_count, ze_event_handle_t *waits);
ze_result_t zeCommandListImmediateAppendCommandListsWithParameters(ze_command_list_handle_t list, uint32_t count,
                                                                   ze_command_list_handle_t *lists, const void *next,
                                                                   ze_event_handle_t signal, uint32_t wait_count,
                                                                   ze_event_handle_t *waits);
ze_result_t zesInit(zes_init_flags_t flags);
ze_result_t zesDriverGet(uint32_t *count, zes_driver_handle_t *drivers);
ze_result_t zesDeviceGet(zes_driver_handle_t driver, uint32_t *count, zes_device_handle_t *devices);
ze_result_t zesDriverGetExtensionProperties(zes_driver_handle_t driver, uint32_t *count, void *properties);
ze_result_t zesDriverGetExtensionFunctionAddress(zes_driver_handle_t driver, const char *name, void **address);
ze_result_t zesDriverGetDeviceByUuidExp(zes_driver_handle_t driver, zes_uuid_t uuid, zes_device_handle_t *out,
                                        ze_bool_t *on_subdevice, uint32_t *subdevice);
ze_result_t zesDeviceGetProperties(zes_device_handle_t handle, zes_device_properties_t *p);
ze_result_t zesDeviceGetState(zes_device_handle_t handle, zes_device_state_t *p);
ze_result_t zesDeviceProcessesGetState(zes_device_handle_t handle, uint32_t *count, zes_process_state_t *p);
ze_result_t zesDeviceGetSubDevicePropertiesExp(zes_device_handle_t handle, uint32_t *count, void *p);
ze_result_t zesDevicePciGetProperties(zes_device_handle_t handle, zes_pci_properties_t *p);
ze_result_t zesDevicePciGetState(zes_device_handle_t handle, zes_pci_state_t *p);
ze_result_t zesDevicePciGetStats(zes_device_handle_t handle, zes_pci_stats_t *p);
ze_result_t zesDeviceReset(zes_device_handle_t handle, ze_bool_t force);
ze_result_t zesDeviceResetExt(zes_device_handle_t handle, zes_reset_properties_t *properties);
ze_result_t zesDeviceEventRegister(zes_device_handle_t handle, zes_event_type_flags_t events);
ze_result_t zesDriverEventListen(zes_driver_handle_t driver, uint32_t milliseconds, uint32_t count,
                                 zes_device_handle_t *devices, uint32_t *number, zes_event_type_flags_t *events);
ze_result_t zesDriverEventListenEx(zes_driver_handle_t driver, uint64_t milliseconds, uint32_t count,
                                   zes_device_handle_t *devices, uint32_t *number, zes_event_type_flags_t *events);
ze_result_t zesDeviceEnumMemoryModules(zes_device_handle_t handle, uint32_t *count, zes_mem_handle_t *modules);
ze_result_t zesMemoryGetProperties(zes_mem_handle_t handle, zes_mem_properties_t *p);
ze_result_t zesMemoryGetState(zes_mem_handle_t handle, zes_mem_state_t *p);
ze_result_t zesMemoryGetBandwidth(zes_mem_handle_t handle, zes_mem_bandwidth_t *p);
ze_result_t zesEngineGetProperties(zes_engine_handle_t handle, zes_engine_properties_t *p);
ze_result_t zesEngineGetActivity(zes_engine_handle_t handle, zes_engine_stats_t *p);
ze_result_t zesFrequencyGetProperties(zes_freq_handle_t handle, zes_freq_properties_t *p);
ze_result_t zesFrequencyGetRange(zes_freq_handle_t handle, zes_freq_range_t *p);
ze_result_t zesFrequencyGetState(zes_freq_handle_t handle, zes_freq_state_t *p);
ze_result_t zesFrequencyGetAvailableClocks(zes_freq_handle_t handle, uint32_t *count, double *clocks);
ze_result_t zesPowerGetLimits(zes_pwr_handle_t handle, zes_power_sustained_limit_t *sustained,
                              zes_power_burst_limit_t *burst, zes_power_peak_limit_t *peak);
ze_result_t zesPowerGetLimitsExt(zes_pwr_handle_t handle, uint32_t *count, zes_power_limit_ext_desc_t *p);
ze_result_t zesPowerGetProperties(zes_pwr_handle_t handle, zes_power_properties_t *p);
ze_result_t zesPowerGetEnergyCounter(zes_pwr_handle_t handle, zes_power_energy_counter_t *p);
ze_result_t zesTemperatureGetProperties(zes_temp_handle_t handle, zes_temp_properties_t *p);
ze_result_t zesTemperatureGetState(zes_temp_handle_t handle, double *celsius);
ze_result_t zesDeviceEccAvailable(zes_device_handle_t handle, ze_bool_t *available);
ze_result_t zesDeviceEccConfigurable(zes_device_handle_t handle, ze_bool_t *configurable);
ze_result_t zesDevicePciGetBars(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumActiveVFExp(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumEnabledVFExp(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumDiagnosticTestSuites(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumEngineGroups(zes_device_handle_t handle, uint32_t *count, void **parts);
ze_result_t zesDeviceEnumFabricPorts(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumFans(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumFirmwares(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumFrequencyDomains(zes_device_handle_t handle, uint32_t *count, void **parts);
ze_result_t zesDeviceEnumLeds(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumPerformanceFactorDomains(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumPowerDomains(zes_device_handle_t handle, uint32_t *count, void **parts);
ze_result_t zesDeviceEnumPsus(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumRasErrorSets(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumSchedulers(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumStandbyDomains(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zesDeviceEnumTemperatureSensors(zes_device_handle_t handle, uint32_t *count, void **parts);
ze_result_t zesDeviceEnumOverclockDomains(zes_device_handle_t handle, uint32_t *count, void *parts);
ze_result_t zeMemGetIpcHandleWithProperties(ze_context_handle_t context, const void *pointer, void *next,
                                            ze_ipc_mem_handle_t *ipc);
ze_result_t zeMemSetAtomicAccessAttributeExp(ze_context_handle_t context, ze_device_handle_t device,
                                             const void *pointer, size_t size, ze_memory_atomic_attr_exp_flags_t flags);
ze_result_t zeMemGetAtomicAccessAttributeExp(ze_context_handle_t context, ze_device_handle_t device,
                                             const void *pointer, size_t size,
                                             ze_memory_atomic_attr_exp_flags_t *flags);
ze_result_t zeMemGetFileDescriptorFromIpcHandleExp(ze_context_handle_t context, ze_ipc_mem_handle_t ipc,
                                                   uint64_t *descriptor);
ze_result_t zeMemGetIpcHandleFromFileDescriptorExp(ze_context_handle_t context, uint64_t descriptor,
                                                   ze_ipc_mem_handle_t *ipc);

uint64_t l0rt_cpu_live(int kind);
uint64_t l0rt_cpu_faults(void);
uint64_t l0rt_cpu_calls(const char *function);
uint64_t l0rt_cpu_races(void);
uint64_t l0rt_cpu_offloaded(void);
uint64_t l0rt_cpu_charged(const char *name);
const char *l0rt_cpu_kind_name(int kind);

ze_result_t zeModuleCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice, const ze_module_desc_t *desc,
                           ze_module_handle_t *phModule, ze_module_build_log_handle_t *phBuildLog);
ze_result_t zeModuleDestroy(ze_module_handle_t hModule);
ze_result_t zeModuleDynamicLink(uint32_t numModules, ze_module_handle_t *phModules,
                                ze_module_build_log_handle_t *phLinkLog);
ze_result_t zeModuleBuildLogDestroy(ze_module_build_log_handle_t hModuleBuildLog);
ze_result_t zeModuleBuildLogGetString(ze_module_build_log_handle_t hModuleBuildLog, size_t *pSize, char *pBuildLog);
ze_result_t zeModuleGetNativeBinary(ze_module_handle_t hModule, size_t *pSize, uint8_t *pModuleNativeBinary);
ze_result_t zeModuleGetGlobalPointer(ze_module_handle_t hModule, const char *pGlobalName, size_t *pSize, void **pptr);
ze_result_t zeModuleGetKernelNames(ze_module_handle_t hModule, uint32_t *pCount, const char **pNames);
ze_result_t zeModuleGetProperties(ze_module_handle_t hModule, ze_module_properties_t *pModuleProperties);
ze_result_t zeModuleGetFunctionPointer(ze_module_handle_t hModule, const char *pFunctionName, void **pfnFunction);
ze_result_t zeModuleInspectLinkageExt(ze_linkage_inspection_ext_desc_t *pInspectDesc, uint32_t numModules,
                                      ze_module_handle_t *phModules, ze_module_build_log_handle_t *phLog);
ze_result_t zeKernelCreate(ze_module_handle_t hModule, const ze_kernel_desc_t *desc, ze_kernel_handle_t *phKernel);
ze_result_t zeKernelDestroy(ze_kernel_handle_t hKernel);
ze_result_t zeKernelSetGroupSize(ze_kernel_handle_t hKernel, uint32_t groupSizeX, uint32_t groupSizeY,
                                 uint32_t groupSizeZ);
ze_result_t zeKernelSuggestGroupSize(ze_kernel_handle_t hKernel, uint32_t globalSizeX, uint32_t globalSizeY,
                                     uint32_t globalSizeZ, uint32_t *groupSizeX, uint32_t *groupSizeY,
                                     uint32_t *groupSizeZ);
ze_result_t zeKernelSuggestMaxCooperativeGroupCount(ze_kernel_handle_t hKernel, uint32_t *totalGroupCount);
ze_result_t zeKernelSetArgumentValue(ze_kernel_handle_t hKernel, uint32_t argIndex, size_t argSize,
                                     const void *pArgValue);
ze_result_t zeKernelSetIndirectAccess(ze_kernel_handle_t hKernel, ze_kernel_indirect_access_flags_t flags);
ze_result_t zeKernelGetIndirectAccess(ze_kernel_handle_t hKernel, ze_kernel_indirect_access_flags_t *pFlags);
ze_result_t zeKernelGetSourceAttributes(ze_kernel_handle_t hKernel, uint32_t *pSize, char **pString);
ze_result_t zeKernelSetCacheConfig(ze_kernel_handle_t hKernel, ze_cache_config_flags_t flags);
ze_result_t zeKernelGetProperties(ze_kernel_handle_t hKernel, ze_kernel_properties_t *pKernelProperties);
ze_result_t zeKernelGetName(ze_kernel_handle_t hKernel, size_t *pSize, char *pName);
ze_result_t zeKernelSetGlobalOffsetExp(ze_kernel_handle_t hKernel, uint32_t offsetX, uint32_t offsetY,
                                       uint32_t offsetZ);
ze_result_t zeKernelSchedulingHintExp(ze_kernel_handle_t hKernel, ze_scheduling_hint_exp_desc_t *pHint);
ze_result_t zeKernelGetBinaryExp(ze_kernel_handle_t hKernel, size_t *pSize, uint8_t *pKernelBinary);
ze_result_t zeKernelGetAllocationPropertiesExp(ze_kernel_handle_t hKernel, uint32_t *pCount,
                                               ze_kernel_allocation_exp_properties_t *pAllocationProperties);
ze_result_t zeCommandListAppendLaunchKernel(ze_command_list_handle_t hCommandList, ze_kernel_handle_t hKernel,
                                            const ze_group_count_t *pLaunchFuncArgs, ze_event_handle_t hSignalEvent,
                                            uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendLaunchCooperativeKernel(ze_command_list_handle_t hCommandList,
                                                       ze_kernel_handle_t hKernel,
                                                       const ze_group_count_t *pLaunchFuncArgs,
                                                       ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                       ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendLaunchKernelIndirect(ze_command_list_handle_t hCommandList, ze_kernel_handle_t hKernel,
                                                    const ze_group_count_t *pLaunchArgumentsBuffer,
                                                    ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                    ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendLaunchMultipleKernelsIndirect(ze_command_list_handle_t hCommandList, uint32_t numKernels,
                                                             ze_kernel_handle_t *phKernels,
                                                             const uint32_t *pCountBuffer,
                                                             const ze_group_count_t *pLaunchArgumentsBuffer,
                                                             ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                             ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendLaunchKernelWithParameters(ze_command_list_handle_t hCommandList,
                                                          ze_kernel_handle_t hKernel,
                                                          const ze_group_count_t *pGroupCounts, const void *pNext,
                                                          ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                          ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendLaunchKernelWithArguments(ze_command_list_handle_t hCommandList,
                                                         ze_kernel_handle_t hKernel, const ze_group_count_t groupCounts,
                                                         const ze_group_size_t groupSizes, void **pArguments,
                                                         const void *pNext, ze_event_handle_t hSignalEvent,
                                                         uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);

ze_result_t zeImageGetProperties(ze_device_handle_t hDevice, const ze_image_desc_t *desc,
                                 ze_image_properties_t *pImageProperties);
ze_result_t zeImageCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice, const ze_image_desc_t *desc,
                          ze_image_handle_t *phImage);
ze_result_t zeImageDestroy(ze_image_handle_t hImage);
ze_result_t zeImageViewCreateExt(ze_context_handle_t hContext, ze_device_handle_t hDevice, const ze_image_desc_t *desc,
                                 ze_image_handle_t hImage, ze_image_handle_t *phImageView);
ze_result_t zeImageViewCreateExp(ze_context_handle_t hContext, ze_device_handle_t hDevice, const ze_image_desc_t *desc,
                                 ze_image_handle_t hImage, ze_image_handle_t *phImageView);
ze_result_t zeImageGetAllocPropertiesExt(ze_context_handle_t hContext, ze_image_handle_t hImage,
                                         ze_image_allocation_ext_properties_t *pImageAllocProperties);
ze_result_t zeImageGetMemoryPropertiesExp(ze_image_handle_t hImage,
                                          ze_image_memory_properties_exp_t *pMemoryProperties);
ze_result_t zeImageGetDeviceOffsetExp(ze_image_handle_t hImage, uint64_t *pDeviceOffset);
ze_result_t zeMemGetPitchFor2dImage(ze_context_handle_t hContext, ze_device_handle_t hDevice, size_t imageWidth,
                                    size_t imageHeight, unsigned elementSizeInBytes, size_t *rowPitch);
ze_result_t zeContextMakeImageResident(ze_context_handle_t hContext, ze_device_handle_t hDevice,
                                       ze_image_handle_t hImage);
ze_result_t zeContextEvictImage(ze_context_handle_t hContext, ze_device_handle_t hDevice, ze_image_handle_t hImage);
ze_result_t zeSamplerCreate(ze_context_handle_t hContext, ze_device_handle_t hDevice, const ze_sampler_desc_t *desc,
                            ze_sampler_handle_t *phSampler);
ze_result_t zeSamplerDestroy(ze_sampler_handle_t hSampler);
ze_result_t zeCommandListAppendImageCopy(ze_command_list_handle_t hCommandList, ze_image_handle_t hDstImage,
                                         ze_image_handle_t hSrcImage, ze_event_handle_t hSignalEvent,
                                         uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendImageCopyRegion(ze_command_list_handle_t hCommandList, ze_image_handle_t hDstImage,
                                               ze_image_handle_t hSrcImage, const ze_image_region_t *pDstRegion,
                                               const ze_image_region_t *pSrcRegion, ze_event_handle_t hSignalEvent,
                                               uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendImageCopyToMemory(ze_command_list_handle_t hCommandList, void *dstptr,
                                                 ze_image_handle_t hSrcImage, const ze_image_region_t *pSrcRegion,
                                                 ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                 ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendImageCopyFromMemory(ze_command_list_handle_t hCommandList, ze_image_handle_t hDstImage,
                                                   const void *srcptr, const ze_image_region_t *pDstRegion,
                                                   ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                   ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendImageCopyToMemoryExt(ze_command_list_handle_t hCommandList, void *dstptr,
                                                    ze_image_handle_t hSrcImage, const ze_image_region_t *pSrcRegion,
                                                    uint32_t destRowPitch, uint32_t destSlicePitch,
                                                    ze_event_handle_t hSignalEvent, uint32_t numWaitEvents,
                                                    ze_event_handle_t *phWaitEvents);
ze_result_t zeCommandListAppendImageCopyFromMemoryExt(ze_command_list_handle_t hCommandList,
                                                      ze_image_handle_t hDstImage, const void *srcptr,
                                                      const ze_image_region_t *pDstRegion, uint32_t srcRowPitch,
                                                      uint32_t srcSlicePitch, ze_event_handle_t hSignalEvent,
                                                      uint32_t numWaitEvents, ze_event_handle_t *phWaitEvents);

#endif
