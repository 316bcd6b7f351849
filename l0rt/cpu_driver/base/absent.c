/* SPDX-License-Identifier: Apache-2.0 */
/* absent.c: what this driver does not do: it is exported all the same, and says so. Arguments do not matter, so none
 * are declared. */
#include "base/gate.h"

#define ABSENT(name)                                                                                                   \
  CPU_EXPORT ze_result_t name(void) {                                                                                  \
    CPU_ENTER();                                                                                                       \
    return CPU_REFUSED(ERROR_UNSUPPORTED_FEATURE, NULL);                                                               \
  }

/* Timestamps synchronised with the host's: the two clocks are one anyway. */
ABSENT(zeEventQueryKernelTimestampsExt)

/* Cache reservation. */
ABSENT(zeDeviceReserveCacheExt)
ABSENT(zeDeviceSetCacheAdviceExt)

/* What a device asks of native binaries, and the widths of its vectors. */
ABSENT(zeDeviceGetVectorWidthPropertiesExt)
ABSENT(zeDeviceGetRuntimeRequirements)
ABSENT(zeDeviceGetRuntimeRequirementsKey)
ABSENT(zeDeviceValidateRuntimeRequirements)

/* Ray tracing. */
ABSENT(zeDriverRTASFormatCompatibilityCheckExt)
ABSENT(zeDriverRTASFormatCompatibilityCheckExp)

/* External semaphores and fabrics. */
ABSENT(zeDeviceImportExternalSemaphoreExt)
ABSENT(zeDeviceReleaseExternalSemaphoreExt)
ABSENT(zeCommandListAppendSignalExternalSemaphoreExt)
ABSENT(zeCommandListAppendWaitExternalSemaphoreExt)
ABSENT(zeDeviceGetFabricVertexExp)

/* Counters that the program owns, or that processes share. */
ABSENT(zeDeviceGetAggregatedCopyOffloadIncrementValue)
ABSENT(zeDeviceGetCounterBasedEventMaxValue)
ABSENT(zeEventCounterBasedGetIpcHandle)
ABSENT(zeEventCounterBasedOpenIpcHandle)
ABSENT(zeEventCounterBasedCloseIpcHandle)
ABSENT(zeEventCounterBasedGetDeviceAddress)

/* System management of what there is not: errors, thresholds and limits that can be set. */
ABSENT(zesDevicePciLinkSpeedUpdateExt)
ABSENT(zesDeviceGetCardPowerDomain)
ABSENT(zesDeviceGetEccState)
ABSENT(zesDeviceSetEccState)
ABSENT(zesDeviceSetOverclockWaiver)
ABSENT(zesDeviceGetOverclockDomains)
ABSENT(zesDeviceGetOverclockControls)
ABSENT(zesDeviceResetOverclockSettings)
ABSENT(zesDeviceReadOverclockState)
ABSENT(zesEngineGetActivityExt)
ABSENT(zesPowerSetLimits)
ABSENT(zesPowerGetEnergyThreshold)
ABSENT(zesPowerSetEnergyThreshold)
ABSENT(zesPowerSetLimitsExt)
ABSENT(zesPowerGetUsage)
ABSENT(zesPowerGetLimitsExt2)
ABSENT(zesPowerSetLimitsExt2)
ABSENT(zesFrequencySetRange)
ABSENT(zesFrequencyGetThrottleTime)
ABSENT(zesFrequencyOcGetCapabilities)
ABSENT(zesFrequencyOcGetFrequencyTarget)
ABSENT(zesFrequencyOcSetFrequencyTarget)
ABSENT(zesFrequencyOcGetVoltageTarget)
ABSENT(zesFrequencyOcSetVoltageTarget)
ABSENT(zesFrequencyOcSetMode)
ABSENT(zesFrequencyOcGetMode)
ABSENT(zesFrequencyOcGetIccMax)
ABSENT(zesFrequencyOcSetIccMax)
ABSENT(zesFrequencyOcGetTjMax)
ABSENT(zesFrequencyOcSetTjMax)
ABSENT(zesTemperatureGetConfig)
ABSENT(zesTemperatureSetConfig)
