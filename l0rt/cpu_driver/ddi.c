/* ddi.c: the tables by which the official loader hosts this driver.
 *
 * A table is an array of function pointers that only ever grows at its end. The caller's version says how long its
 * array is: an entry is written only when that version has it. Entries that no function is named for stay untouched. */
#include <stddef.h>
#include <string.h>

#include "ddi.h"
#include "gate.h"

typedef void (*entry)(void);

typedef struct {
  uint32_t since; /* the minor version that declares the function */
  entry function;
} row;

/* Addresses only: the prototypes stand where the functions are defined. */
#define DECLARE(since, name) void name(void);
#define ROW(since, name) {since, name},

#define GLOBAL(X) X(0, zeInit) X(10, zeInitDrivers)
#define DRIVER(X)                                                                                                     \
  X(0, zeDriverGet) X(0, zeDriverGetApiVersion) X(0, zeDriverGetProperties) X(0, zeDriverGetIpcProperties)            \
  X(0, zeDriverGetExtensionProperties) X(1, zeDriverGetExtensionFunctionAddress)                                      \
  X(6, zeDriverGetLastErrorDescription)
#define DEVICE(X)                                                                                                     \
  X(0, zeDeviceGet) X(0, zeDeviceGetSubDevices) X(0, zeDeviceGetProperties) X(0, zeDeviceGetComputeProperties)        \
  X(0, zeDeviceGetModuleProperties) X(0, zeDeviceGetCommandQueueGroupProperties) X(0, zeDeviceGetMemoryProperties)    \
  X(0, zeDeviceGetMemoryAccessProperties) X(0, zeDeviceGetCacheProperties) X(0, zeDeviceGetImageProperties)           \
  X(0, zeDeviceGetExternalMemoryProperties) X(0, zeDeviceGetP2PProperties) X(0, zeDeviceCanAccessPeer)                \
  X(0, zeDeviceGetStatus) X(1, zeDeviceGetGlobalTimestamps) X(2, zeDeviceReserveCacheExt)                             \
  X(2, zeDeviceSetCacheAdviceExt) X(3, zeDevicePciGetPropertiesExt) X(7, zeDeviceGetRootDevice)
#define CONTEXT(X)                                                                                                    \
  X(0, zeContextCreate) X(0, zeContextDestroy) X(0, zeContextGetStatus) X(0, zeContextSystemBarrier)                  \
  X(0, zeContextMakeMemoryResident) X(0, zeContextEvictMemory) X(0, zeContextMakeImageResident)                       \
  X(0, zeContextEvictImage) X(1, zeContextCreateEx)
#define QUEUE(X)                                                                                                      \
  X(0, zeCommandQueueCreate) X(0, zeCommandQueueDestroy) X(0, zeCommandQueueExecuteCommandLists)                      \
  X(0, zeCommandQueueSynchronize) X(9, zeCommandQueueGetOrdinal) X(9, zeCommandQueueGetIndex)
#define LIST(X)                                                                                                       \
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
  X(9, zeCommandListGetOrdinal) X(9, zeCommandListImmediateGetIndex) X(9, zeCommandListIsImmediate)
#define IMAGE(X) X(0, zeImageGetProperties) X(0, zeImageCreate) X(0, zeImageDestroy) X(3, zeImageGetAllocPropertiesExt)
#define MEM(X)                                                                                                        \
  X(0, zeMemAllocShared) X(0, zeMemAllocDevice) X(0, zeMemAllocHost) X(0, zeMemFree) X(0, zeMemGetAllocProperties)    \
  X(0, zeMemGetAddressRange) X(0, zeMemGetIpcHandle) X(0, zeMemOpenIpcHandle) X(0, zeMemCloseIpcHandle)               \
  X(3, zeMemFreeExt) X(6, zeMemPutIpcHandle)
#define FENCE(X)                                                                                                      \
  X(0, zeFenceCreate) X(0, zeFenceDestroy) X(0, zeFenceHostSynchronize) X(0, zeFenceQueryStatus) X(0, zeFenceReset)
#define EVENT_POOL(X)                                                                                                 \
  X(0, zeEventPoolCreate) X(0, zeEventPoolDestroy) X(0, zeEventPoolGetIpcHandle) X(0, zeEventPoolOpenIpcHandle)       \
  X(0, zeEventPoolCloseIpcHandle) X(6, zeEventPoolPutIpcHandle) X(9, zeEventPoolGetContextHandle)                      \
  X(9, zeEventPoolGetFlags)
#define EVENT(X)                                                                                                      \
  X(0, zeEventCreate) X(0, zeEventDestroy) X(0, zeEventHostSignal) X(0, zeEventHostSynchronize)                       \
  X(0, zeEventQueryStatus) X(0, zeEventHostReset) X(0, zeEventQueryKernelTimestamp)                              \
  X(6, zeEventQueryKernelTimestampsExt) X(9, zeEventGetEventPool) X(9, zeEventGetSignalScope)                         \
  X(9, zeEventGetWaitScope)
#define MODULE(X)                                                                                                     \
  X(0, zeModuleCreate) X(0, zeModuleDestroy) X(0, zeModuleDynamicLink) X(0, zeModuleGetNativeBinary)                  \
  X(0, zeModuleGetGlobalPointer) X(0, zeModuleGetKernelNames) X(0, zeModuleGetProperties)                             \
  X(0, zeModuleGetFunctionPointer) X(3, zeModuleInspectLinkageExt)
#define BUILD_LOG(X) X(0, zeModuleBuildLogDestroy) X(0, zeModuleBuildLogGetString)
#define KERNEL(X)                                                                                                     \
  X(0, zeKernelCreate) X(0, zeKernelDestroy) X(0, zeKernelSetCacheConfig) X(0, zeKernelSetGroupSize)                  \
  X(0, zeKernelSuggestGroupSize) X(0, zeKernelSuggestMaxCooperativeGroupCount) X(0, zeKernelSetArgumentValue)         \
  X(0, zeKernelSetIndirectAccess) X(0, zeKernelGetIndirectAccess) X(0, zeKernelGetSourceAttributes)                   \
  X(0, zeKernelGetProperties) X(0, zeKernelGetName)
#define SAMPLER(X) X(0, zeSamplerCreate) X(0, zeSamplerDestroy)
#define PHYSICAL(X) X(0, zePhysicalMemCreate) X(0, zePhysicalMemDestroy)
#define VIRTUAL(X)                                                                                                    \
  X(0, zeVirtualMemReserve) X(0, zeVirtualMemFree) X(0, zeVirtualMemQueryPageSize) X(0, zeVirtualMemMap)              \
  X(0, zeVirtualMemUnmap) X(0, zeVirtualMemSetAccessAttribute) X(0, zeVirtualMemGetAccessAttribute)

/* Major version 1 only; a newer minor version is never an error, its table only has more room. */
static ze_result_t fill(ze_api_version_t version, entry *table, const row *rows, size_t count) {
  if (table == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (version >> 16 != 1) return ZE_RESULT_ERROR_UNSUPPORTED_VERSION;
  for (size_t i = 0; i < count; i++)
    if (rows[i].since <= (version & 0xffff)) table[i] = rows[i].function;
  return ZE_RESULT_SUCCESS;
}

#define TABLE(name, LIST_OF)                                                                                          \
  LIST_OF(DECLARE)                                                                                                    \
  CPU_EXPORT ze_result_t zeGet##name##ProcAddrTable(ze_api_version_t version, void *table) {                          \
    static const row rows[] = {LIST_OF(ROW)};                                                                         \
    return fill(version, table, rows, sizeof(rows) / sizeof(rows[0]));                                                \
  }

TABLE(Global, GLOBAL)
TABLE(Driver, DRIVER)
TABLE(Device, DEVICE)
TABLE(Context, CONTEXT)
TABLE(CommandQueue, QUEUE)
TABLE(CommandList, LIST)
TABLE(Image, IMAGE)
TABLE(Mem, MEM)
TABLE(Fence, FENCE)
TABLE(EventPool, EVENT_POOL)
TABLE(Event, EVENT)
TABLE(Module, MODULE)
TABLE(ModuleBuildLog, BUILD_LOG)
TABLE(Kernel, KERNEL)
TABLE(Sampler, SAMPLER)
TABLE(PhysicalMem, PHYSICAL)
TABLE(VirtualMem, VIRTUAL)

#define NAME(since, name) #name,

/* Every function that a program can call, for settings that name one. */
bool cpu_ddi_knows(const char *name) {
  static const char *const names[] = {
      GLOBAL(NAME) DRIVER(NAME) DEVICE(NAME) CONTEXT(NAME) QUEUE(NAME) LIST(NAME) IMAGE(NAME) MEM(NAME) FENCE(NAME)
      EVENT_POOL(NAME) EVENT(NAME) MODULE(NAME) BUILD_LOG(NAME) KERNEL(NAME) SAMPLER(NAME) PHYSICAL(NAME) VIRTUAL(NAME)
  };
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(names[i], name) == 0) return true;
  return false;
}

/* Tools and system management: loaders insist on the functions; there is nothing to put into the tables. */
#define EMPTY(name)                                                                                                   \
  CPU_EXPORT ze_result_t name(ze_api_version_t version, void *table) { return fill(version, table, NULL, 0); }

EMPTY(zetGetDeviceProcAddrTable)
EMPTY(zetGetContextProcAddrTable)
EMPTY(zetGetCommandListProcAddrTable)
EMPTY(zetGetModuleProcAddrTable)
EMPTY(zetGetKernelProcAddrTable)
EMPTY(zetGetMetricProcAddrTable)
EMPTY(zetGetMetricGroupProcAddrTable)
EMPTY(zetGetMetricStreamerProcAddrTable)
EMPTY(zetGetMetricQueryPoolProcAddrTable)
EMPTY(zetGetMetricQueryProcAddrTable)
EMPTY(zetGetTracerExpProcAddrTable)
EMPTY(zetGetDebugProcAddrTable)
EMPTY(zesGetDeviceProcAddrTable)
EMPTY(zesGetDriverProcAddrTable)
EMPTY(zesGetSchedulerProcAddrTable)
EMPTY(zesGetPerformanceFactorProcAddrTable)
EMPTY(zesGetPowerProcAddrTable)
EMPTY(zesGetFrequencyProcAddrTable)
EMPTY(zesGetEngineProcAddrTable)
EMPTY(zesGetStandbyProcAddrTable)
EMPTY(zesGetFirmwareProcAddrTable)
EMPTY(zesGetMemoryProcAddrTable)
EMPTY(zesGetFabricPortProcAddrTable)
EMPTY(zesGetTemperatureProcAddrTable)
EMPTY(zesGetPsuProcAddrTable)
EMPTY(zesGetFanProcAddrTable)
EMPTY(zesGetLedProcAddrTable)
EMPTY(zesGetRasProcAddrTable)
EMPTY(zesGetDiagnosticsProcAddrTable)
