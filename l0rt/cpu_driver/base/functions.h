/* SPDX-License-Identifier: Apache-2.0 */
/* functions.h: which functions there are, table by table, in the order of each table's entries: since which minor
 * version of the specification, and the name. A function that nothing can be done for is there too (absent.c); tables
 * of which nothing is done are left out. test/functions.txt has what the specification has. */
#ifndef L0RT_CPU_FUNCTIONS_H
#define L0RT_CPU_FUNCTIONS_H

/* clang-format off */
#define CPU_zeGetGlobal(X)                                                                                            \
  X(0, zeInit) X(10, zeInitDrivers)

#define CPU_zeGetDriver(X)                                                                                            \
  X(0, zeDriverGet) X(0, zeDriverGetApiVersion) X(0, zeDriverGetProperties) X(0, zeDriverGetIpcProperties)            \
  X(0, zeDriverGetExtensionProperties) X(1, zeDriverGetExtensionFunctionAddress)                                      \
  X(6, zeDriverGetLastErrorDescription) X(13, zeDriverRTASFormatCompatibilityCheckExt)                                \
  X(14, zeDriverGetDefaultContext)

#define CPU_zeGetDriverExp(X)                                                                                         \
  X(7, zeDriverRTASFormatCompatibilityCheckExp)

#define CPU_zeGetDevice(X)                                                                                            \
  X(0, zeDeviceGet) X(0, zeDeviceGetSubDevices) X(0, zeDeviceGetProperties) X(0, zeDeviceGetComputeProperties)        \
  X(0, zeDeviceGetModuleProperties) X(0, zeDeviceGetCommandQueueGroupProperties) X(0, zeDeviceGetMemoryProperties)    \
  X(0, zeDeviceGetMemoryAccessProperties) X(0, zeDeviceGetCacheProperties) X(0, zeDeviceGetImageProperties)           \
  X(0, zeDeviceGetExternalMemoryProperties) X(0, zeDeviceGetP2PProperties) X(0, zeDeviceCanAccessPeer)                \
  X(0, zeDeviceGetStatus) X(1, zeDeviceGetGlobalTimestamps) X(2, zeDeviceReserveCacheExt)                             \
  X(2, zeDeviceSetCacheAdviceExt) X(3, zeDevicePciGetPropertiesExt) X(7, zeDeviceGetRootDevice)                       \
  X(12, zeDeviceImportExternalSemaphoreExt) X(12, zeDeviceReleaseExternalSemaphoreExt)                                \
  X(13, zeDeviceGetVectorWidthPropertiesExt) X(14, zeDeviceSynchronize)                                               \
  X(15, zeDeviceGetAggregatedCopyOffloadIncrementValue) X(16, zeDeviceGetRuntimeRequirements)                         \
  X(16, zeDeviceGetRuntimeRequirementsKey) X(16, zeDeviceValidateRuntimeRequirements)                                 \
  X(17, zeDeviceGetCounterBasedEventMaxValue)

#define CPU_zeGetDeviceExp(X)                                                                                         \
  X(4, zeDeviceGetFabricVertexExp)

#define CPU_zeGetContext(X)                                                                                           \
  X(0, zeContextCreate) X(0, zeContextDestroy) X(0, zeContextGetStatus) X(0, zeContextSystemBarrier)                  \
  X(0, zeContextMakeMemoryResident) X(0, zeContextEvictMemory) X(0, zeContextMakeImageResident)                       \
  X(0, zeContextEvictImage) X(1, zeContextCreateEx)

#define CPU_zeGetCommandQueue(X)                                                                                      \
  X(0, zeCommandQueueCreate) X(0, zeCommandQueueDestroy) X(0, zeCommandQueueExecuteCommandLists)                      \
  X(0, zeCommandQueueSynchronize) X(9, zeCommandQueueGetOrdinal) X(9, zeCommandQueueGetIndex)                         \
  X(17, zeCommandQueueGetFlags) X(17, zeCommandQueueGetMode) X(17, zeCommandQueueGetPriority)

#define CPU_zeGetCommandList(X)                                                                                       \
  X(0, zeCommandListCreate) X(0, zeCommandListCreateImmediate) X(0, zeCommandListDestroy) X(0, zeCommandListClose)    \
  X(0, zeCommandListReset) X(0, zeCommandListAppendWriteGlobalTimestamp) X(0, zeCommandListAppendBarrier)             \
  X(0, zeCommandListAppendMemoryRangesBarrier) X(0, zeCommandListAppendMemoryCopy)                                    \
  X(0, zeCommandListAppendMemoryFill) X(0, zeCommandListAppendMemoryCopyRegion)                                       \
  X(0, zeCommandListAppendMemoryCopyFromContext) X(0, zeCommandListAppendImageCopy)                                   \
  X(0, zeCommandListAppendImageCopyRegion) X(0, zeCommandListAppendImageCopyToMemory)                                 \
  X(0, zeCommandListAppendImageCopyFromMemory) X(0, zeCommandListAppendMemoryPrefetch)                                \
  X(0, zeCommandListAppendMemAdvise) X(0, zeCommandListAppendSignalEvent) X(0, zeCommandListAppendWaitOnEvents)       \
  X(0, zeCommandListAppendEventReset) X(0, zeCommandListAppendQueryKernelTimestamps)                                  \
  X(0, zeCommandListAppendLaunchKernel) X(0, zeCommandListAppendLaunchCooperativeKernel)                              \
  X(0, zeCommandListAppendLaunchKernelIndirect) X(0, zeCommandListAppendLaunchMultipleKernelsIndirect)                \
  X(3, zeCommandListAppendImageCopyToMemoryExt) X(3, zeCommandListAppendImageCopyFromMemoryExt)                       \
  X(6, zeCommandListHostSynchronize) X(9, zeCommandListGetDeviceHandle) X(9, zeCommandListGetContextHandle)           \
  X(9, zeCommandListGetOrdinal) X(9, zeCommandListImmediateGetIndex) X(9, zeCommandListIsImmediate)                   \
  X(12, zeCommandListAppendSignalExternalSemaphoreExt) X(12, zeCommandListAppendWaitExternalSemaphoreExt)             \
  X(14, zeCommandListAppendLaunchKernelWithParameters) X(14, zeCommandListAppendLaunchKernelWithArguments)            \
  X(16, zeCommandListAppendMemoryCopyWithParameters) X(16, zeCommandListAppendMemoryFillWithParameters)               \
  X(16, zeCommandListImmediateAppendCommandListsWithParameters) X(17, zeCommandListGetFlags)                          \
  X(17, zeCommandListImmediateGetFlags) X(17, zeCommandListImmediateGetMode)                                          \
  X(17, zeCommandListImmediateGetPriority) X(17, zeCommandListBeginGraphCaptureExt)                                   \
  X(17, zeCommandListBeginCaptureIntoGraphExt) X(17, zeCommandListIsGraphCaptureEnabledExt)                           \
  X(17, zeCommandListEndGraphCaptureExt) X(17, zeCommandListGetGraphExt) X(17, zeCommandListAppendGraphExt)           \
  X(17, zeCommandListAppendHostFunction)

#define CPU_zeGetCommandListExp(X)                                                                                    \
  X(9, zeCommandListCreateCloneExp) X(9, zeCommandListImmediateAppendCommandListsExp)                                 \
  X(9, zeCommandListGetNextCommandIdExp) X(9, zeCommandListUpdateMutableCommandsExp)                                  \
  X(9, zeCommandListUpdateMutableCommandSignalEventExp) X(9, zeCommandListUpdateMutableCommandWaitEventsExp)          \
  X(10, zeCommandListGetNextCommandIdWithKernelsExp) X(10, zeCommandListUpdateMutableCommandKernelsExp)               \
  X(17, zeCommandListIsMutableExp)

#define CPU_zeGetImage(X)                                                                                             \
  X(0, zeImageGetProperties) X(0, zeImageCreate) X(0, zeImageDestroy) X(3, zeImageGetAllocPropertiesExt)              \
  X(5, zeImageViewCreateExt)

#define CPU_zeGetImageExp(X)                                                                                          \
  X(2, zeImageGetMemoryPropertiesExp) X(2, zeImageViewCreateExp) X(9, zeImageGetDeviceOffsetExp)

#define CPU_zeGetMem(X)                                                                                               \
  X(0, zeMemAllocShared) X(0, zeMemAllocDevice) X(0, zeMemAllocHost) X(0, zeMemFree) X(0, zeMemGetAllocProperties)    \
  X(0, zeMemGetAddressRange) X(0, zeMemGetIpcHandle) X(0, zeMemOpenIpcHandle) X(0, zeMemCloseIpcHandle)               \
  X(3, zeMemFreeExt) X(6, zeMemPutIpcHandle) X(9, zeMemGetPitchFor2dImage) X(15, zeMemGetIpcHandleWithProperties)

#define CPU_zeGetMemExp(X)                                                                                            \
  X(6, zeMemGetIpcHandleFromFileDescriptorExp) X(6, zeMemGetFileDescriptorFromIpcHandleExp)                           \
  X(7, zeMemSetAtomicAccessAttributeExp) X(7, zeMemGetAtomicAccessAttributeExp)

#define CPU_zeGetFence(X)                                                                                             \
  X(0, zeFenceCreate) X(0, zeFenceDestroy) X(0, zeFenceHostSynchronize) X(0, zeFenceQueryStatus)                      \
  X(0, zeFenceReset)

#define CPU_zeGetEventPool(X)                                                                                         \
  X(0, zeEventPoolCreate) X(0, zeEventPoolDestroy) X(0, zeEventPoolGetIpcHandle) X(0, zeEventPoolOpenIpcHandle)       \
  X(0, zeEventPoolCloseIpcHandle) X(6, zeEventPoolPutIpcHandle) X(9, zeEventPoolGetContextHandle)                     \
  X(9, zeEventPoolGetFlags)

#define CPU_zeGetEvent(X)                                                                                             \
  X(0, zeEventCreate) X(0, zeEventDestroy) X(0, zeEventHostSignal) X(0, zeEventHostSynchronize)                       \
  X(0, zeEventQueryStatus) X(0, zeEventHostReset) X(0, zeEventQueryKernelTimestamp)                                   \
  X(6, zeEventQueryKernelTimestampsExt) X(9, zeEventGetEventPool) X(9, zeEventGetSignalScope)                         \
  X(9, zeEventGetWaitScope) X(15, zeEventCounterBasedCreate) X(15, zeEventCounterBasedGetIpcHandle)                   \
  X(15, zeEventCounterBasedOpenIpcHandle) X(15, zeEventCounterBasedCloseIpcHandle)                                    \
  X(15, zeEventCounterBasedGetDeviceAddress) X(17, zeEventGetCounterBasedFlags)

#define CPU_zeGetEventExp(X)                                                                                          \
  X(2, zeEventQueryTimestampsExp)

#define CPU_zeGetModule(X)                                                                                            \
  X(0, zeModuleCreate) X(0, zeModuleDestroy) X(0, zeModuleDynamicLink) X(0, zeModuleGetNativeBinary)                  \
  X(0, zeModuleGetGlobalPointer) X(0, zeModuleGetKernelNames) X(0, zeModuleGetProperties)                             \
  X(0, zeModuleGetFunctionPointer) X(3, zeModuleInspectLinkageExt)

#define CPU_zeGetModuleBuildLog(X)                                                                                    \
  X(0, zeModuleBuildLogDestroy) X(0, zeModuleBuildLogGetString)

#define CPU_zeGetKernel(X)                                                                                            \
  X(0, zeKernelCreate) X(0, zeKernelDestroy) X(0, zeKernelSetCacheConfig) X(0, zeKernelSetGroupSize)                  \
  X(0, zeKernelSuggestGroupSize) X(0, zeKernelSuggestMaxCooperativeGroupCount) X(0, zeKernelSetArgumentValue)         \
  X(0, zeKernelSetIndirectAccess) X(0, zeKernelGetIndirectAccess) X(0, zeKernelGetSourceAttributes)                   \
  X(0, zeKernelGetProperties) X(0, zeKernelGetName)

#define CPU_zeGetKernelExp(X)                                                                                         \
  X(1, zeKernelSetGlobalOffsetExp) X(2, zeKernelSchedulingHintExp) X(11, zeKernelGetBinaryExp)                        \
  X(14, zeKernelGetAllocationPropertiesExp)

#define CPU_zeGetSampler(X)                                                                                           \
  X(0, zeSamplerCreate) X(0, zeSamplerDestroy)

#define CPU_zeGetPhysicalMem(X)                                                                                       \
  X(0, zePhysicalMemCreate) X(0, zePhysicalMemDestroy) X(15, zePhysicalMemGetProperties)

#define CPU_zeGetVirtualMem(X)                                                                                        \
  X(0, zeVirtualMemReserve) X(0, zeVirtualMemFree) X(0, zeVirtualMemQueryPageSize) X(0, zeVirtualMemMap)              \
  X(0, zeVirtualMemUnmap) X(0, zeVirtualMemSetAccessAttribute) X(0, zeVirtualMemGetAccessAttribute)

#define CPU_zeGetGraph(X)                                                                                             \
  X(17, zeGraphCreateExt) X(17, zeGraphGetPrimaryCommandListExt) X(17, zeGraphSetDestructionCallbackExt)              \
  X(17, zeGraphInstantiateExt) X(17, zeGraphIsEmptyExt) X(17, zeGraphDumpContentsExt) X(17, zeGraphDestroyExt)

#define CPU_zeGetExecutableGraph(X)                                                                                   \
  X(17, zeExecutableGraphGetSourceGraphExt) X(17, zeExecutableGraphDestroyExt)

#define CPU_zesGetGlobal(X)                                                                                           \
  X(5, zesInit)

#define CPU_zesGetDriver(X)                                                                                           \
  X(0, zesDriverEventListen) X(1, zesDriverEventListenEx) X(5, zesDriverGet) X(8, zesDriverGetExtensionProperties)    \
  X(8, zesDriverGetExtensionFunctionAddress)

#define CPU_zesGetDriverExp(X)                                                                                        \
  X(9, zesDriverGetDeviceByUuidExp)

#define CPU_zesGetDevice(X)                                                                                           \
  X(0, zesDeviceGetProperties) X(0, zesDeviceGetState) X(0, zesDeviceReset) X(0, zesDeviceProcessesGetState)          \
  X(0, zesDevicePciGetProperties) X(0, zesDevicePciGetState) X(0, zesDevicePciGetBars) X(0, zesDevicePciGetStats)     \
  X(0, zesDeviceEnumDiagnosticTestSuites) X(0, zesDeviceEnumEngineGroups) X(0, zesDeviceEventRegister)                \
  X(0, zesDeviceEnumFabricPorts) X(0, zesDeviceEnumFans) X(0, zesDeviceEnumFirmwares)                                 \
  X(0, zesDeviceEnumFrequencyDomains) X(0, zesDeviceEnumLeds) X(0, zesDeviceEnumMemoryModules)                        \
  X(0, zesDeviceEnumPerformanceFactorDomains) X(0, zesDeviceEnumPowerDomains) X(0, zesDeviceGetCardPowerDomain)       \
  X(0, zesDeviceEnumPsus) X(0, zesDeviceEnumRasErrorSets) X(0, zesDeviceEnumSchedulers)                               \
  X(0, zesDeviceEnumStandbyDomains) X(0, zesDeviceEnumTemperatureSensors) X(4, zesDeviceEccAvailable)                 \
  X(4, zesDeviceEccConfigurable) X(4, zesDeviceGetEccState) X(4, zesDeviceSetEccState) X(5, zesDeviceGet)             \
  X(5, zesDeviceSetOverclockWaiver) X(5, zesDeviceGetOverclockDomains) X(5, zesDeviceGetOverclockControls)            \
  X(5, zesDeviceResetOverclockSettings) X(5, zesDeviceReadOverclockState) X(5, zesDeviceEnumOverclockDomains)         \
  X(7, zesDeviceResetExt) X(15, zesDevicePciLinkSpeedUpdateExt)

#define CPU_zesGetDeviceExp(X)                                                                                        \
  X(9, zesDeviceGetSubDevicePropertiesExp) X(9, zesDeviceEnumActiveVFExp) X(10, zesDeviceEnumEnabledVFExp)

#define CPU_zesGetPower(X)                                                                                            \
  X(0, zesPowerGetProperties) X(0, zesPowerGetEnergyCounter) X(0, zesPowerGetLimits) X(0, zesPowerSetLimits)          \
  X(0, zesPowerGetEnergyThreshold) X(0, zesPowerSetEnergyThreshold) X(0, zesPowerGetLimitsExt)                        \
  X(0, zesPowerSetLimitsExt) X(16, zesPowerGetUsage) X(16, zesPowerGetLimitsExt2) X(16, zesPowerSetLimitsExt2)

#define CPU_zesGetFrequency(X)                                                                                        \
  X(0, zesFrequencyGetProperties) X(0, zesFrequencyGetAvailableClocks) X(0, zesFrequencyGetRange)                     \
  X(0, zesFrequencySetRange) X(0, zesFrequencyGetState) X(0, zesFrequencyGetThrottleTime)                             \
  X(0, zesFrequencyOcGetCapabilities) X(0, zesFrequencyOcGetFrequencyTarget)                                          \
  X(0, zesFrequencyOcSetFrequencyTarget) X(0, zesFrequencyOcGetVoltageTarget) X(0, zesFrequencyOcSetVoltageTarget)    \
  X(0, zesFrequencyOcSetMode) X(0, zesFrequencyOcGetMode) X(0, zesFrequencyOcGetIccMax) X(0, zesFrequencyOcSetIccMax) \
  X(0, zesFrequencyOcGetTjMax) X(0, zesFrequencyOcSetTjMax)

#define CPU_zesGetEngine(X)                                                                                           \
  X(0, zesEngineGetProperties) X(0, zesEngineGetActivity) X(7, zesEngineGetActivityExt)

#define CPU_zesGetTemperature(X)                                                                                      \
  X(0, zesTemperatureGetProperties) X(0, zesTemperatureGetConfig) X(0, zesTemperatureSetConfig)                       \
  X(0, zesTemperatureGetState)

#define CPU_zesGetMemory(X)                                                                                           \
  X(0, zesMemoryGetProperties) X(0, zesMemoryGetState) X(0, zesMemoryGetBandwidth)

/* Every table above. */
#define CPU_TABLES(T)                                                                                                 \
  T(zeGetGlobal) T(zeGetDriver) T(zeGetDriverExp) T(zeGetDevice) T(zeGetDeviceExp) T(zeGetContext)                    \
  T(zeGetCommandQueue) T(zeGetCommandList) T(zeGetCommandListExp) T(zeGetImage) T(zeGetImageExp) T(zeGetMem)          \
  T(zeGetMemExp) T(zeGetFence) T(zeGetEventPool) T(zeGetEvent) T(zeGetEventExp) T(zeGetModule)                        \
  T(zeGetModuleBuildLog) T(zeGetKernel) T(zeGetKernelExp) T(zeGetSampler) T(zeGetPhysicalMem) T(zeGetVirtualMem)      \
  T(zeGetGraph) T(zeGetExecutableGraph) T(zesGetGlobal) T(zesGetDriver) T(zesGetDriverExp) T(zesGetDevice)            \
  T(zesGetDeviceExp) T(zesGetPower) T(zesGetFrequency) T(zesGetEngine) T(zesGetTemperature) T(zesGetMemory)
/* clang-format on */

#endif
