/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in.c: libze_loader.so.1 with the CPU driver and no other.
 *
 * SYCL's adapters contain a copy of the loader's client side, which opens libze_loader.so.1 and ends the process if that
 * is older than itself (1.8.12, Debian 12). They look for it in the folder ZEL_LIBRARY_PATH. This library is linked with
 * the driver, so whoever looks for a function in it finds the driver's. Here is what a loader has besides. */
#include <stddef.h>

#include "l0rt/ze.h"

#define EXPORT __attribute__((visibility("default")))

enum { SPECIFICATION = 1 << 16 | 17 };

typedef struct {
  char name[64];
  uint32_t specification;
  int major, minor, patch;
} component;

/* The client side refuses a loader before 1.18. This is the newest loader that the driver is tested in. */
static const component this_loader = {"loader", SPECIFICATION, 1, 32, 0};

EXPORT ze_result_t zeLoaderInit(void) { return ZE_RESULT_SUCCESS; }

EXPORT void *zeLoaderGetTracingHandle(void) { return NULL; } /* there are no layers */

/* Which drivers work: clients call zeInit themselves, and are told what is wrong there. */
EXPORT ze_result_t zelLoaderDriverCheck(void) { return ZE_RESULT_SUCCESS; }

EXPORT ze_result_t zelLoaderGetVersionsInternal(size_t *count, component *components) {
  if (count == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  if (components != NULL && *count > 0) *components = this_loader;
  if (components == NULL || *count > 0) *count = 1;
  return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t zelLoaderGetVersions(size_t *count, component *components) {
  return zelLoaderGetVersionsInternal(count, components);
}

/* Handles are the driver's own. */
EXPORT ze_result_t zelLoaderTranslateHandleInternal(int kind, void *handle, void **translated) {
  (void)kind;
  if (translated == NULL) return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
  *translated = handle;
  return ZE_RESULT_SUCCESS;
}

EXPORT ze_result_t zelLoaderTranslateHandle(int kind, void *handle, void **translated) {
  return zelLoaderTranslateHandleInternal(kind, handle, translated);
}

/* Tables that a driver may leave out: the loader has them, with nothing in them. */
#define EMPTY(name)                                                                                                    \
  EXPORT ze_result_t name(uint32_t version, void *table) {                                                             \
    (void)version;                                                                                                     \
    return table == NULL ? ZE_RESULT_ERROR_INVALID_NULL_POINTER : ZE_RESULT_SUCCESS;                                   \
  }

EMPTY(zelGetTracerApiProcAddrTable)
EMPTY(zeGetFabricEdgeExpProcAddrTable)
EMPTY(zeGetFabricVertexExpProcAddrTable)
EMPTY(zeGetRTASBuilderProcAddrTable)
EMPTY(zeGetRTASBuilderExpProcAddrTable)
EMPTY(zeGetRTASParallelOperationProcAddrTable)
EMPTY(zeGetRTASParallelOperationExpProcAddrTable)
EMPTY(zesGetFirmwareExpProcAddrTable)
EMPTY(zesGetOverclockProcAddrTable)
EMPTY(zesGetRasExpProcAddrTable)
EMPTY(zesGetVFManagementExpProcAddrTable)
EMPTY(zetGetCommandListExpProcAddrTable)
EMPTY(zetGetDeviceExpProcAddrTable)
EMPTY(zetGetMetricDecoderExpProcAddrTable)
EMPTY(zetGetMetricExpProcAddrTable)
EMPTY(zetGetMetricGroupExpProcAddrTable)
EMPTY(zetGetMetricProgrammableExpProcAddrTable)
EMPTY(zetGetMetricTracerExpProcAddrTable)
