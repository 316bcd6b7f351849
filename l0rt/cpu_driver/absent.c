/* absent.c: what this driver does not do: it is exported all the same, and says so. Arguments do not matter, so none
 * are declared. */
#include "gate.h"

#define ABSENT(name)                                                                                                  \
  CPU_EXPORT ze_result_t name(void) {                                                                                 \
    CPU_ENTER();                                                                                                      \
    return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE;                                                                       \
  }

/* Images and samplers. */
ABSENT(zeImageGetProperties)
ABSENT(zeImageCreate)
ABSENT(zeImageDestroy)
ABSENT(zeImageGetAllocPropertiesExt)
ABSENT(zeContextMakeImageResident)
ABSENT(zeContextEvictImage)
ABSENT(zeSamplerCreate)
ABSENT(zeSamplerDestroy)
ABSENT(zeCommandListAppendImageCopy)
ABSENT(zeCommandListAppendImageCopyRegion)
ABSENT(zeCommandListAppendImageCopyToMemory)
ABSENT(zeCommandListAppendImageCopyFromMemory)
ABSENT(zeCommandListAppendImageCopyToMemoryExt)
ABSENT(zeCommandListAppendImageCopyFromMemoryExt)

/* Several packets of timestamps for one event: there is only ever one. */
ABSENT(zeEventQueryKernelTimestampsExt)

/* Cache reservation. */
ABSENT(zeDeviceReserveCacheExt)
ABSENT(zeDeviceSetCacheAdviceExt)

/* Modules and kernels: not yet. */
ABSENT(zeModuleCreate)
ABSENT(zeModuleDestroy)
ABSENT(zeModuleDynamicLink)
ABSENT(zeModuleGetNativeBinary)
ABSENT(zeModuleGetGlobalPointer)
ABSENT(zeModuleGetKernelNames)
ABSENT(zeModuleGetProperties)
ABSENT(zeModuleGetFunctionPointer)
ABSENT(zeModuleInspectLinkageExt)
ABSENT(zeModuleBuildLogDestroy)
ABSENT(zeModuleBuildLogGetString)
ABSENT(zeKernelCreate)
ABSENT(zeKernelDestroy)
ABSENT(zeKernelSetCacheConfig)
ABSENT(zeKernelSetGroupSize)
ABSENT(zeKernelSuggestGroupSize)
ABSENT(zeKernelSuggestMaxCooperativeGroupCount)
ABSENT(zeKernelSetArgumentValue)
ABSENT(zeKernelSetIndirectAccess)
ABSENT(zeKernelGetIndirectAccess)
ABSENT(zeKernelGetSourceAttributes)
ABSENT(zeKernelGetProperties)
ABSENT(zeKernelGetName)
ABSENT(zeCommandListAppendLaunchKernel)
ABSENT(zeCommandListAppendLaunchCooperativeKernel)
ABSENT(zeCommandListAppendLaunchKernelIndirect)
ABSENT(zeCommandListAppendLaunchMultipleKernelsIndirect)
