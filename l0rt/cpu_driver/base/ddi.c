/* SPDX-License-Identifier: Apache-2.0 */
/* ddi.c: the tables by which the official loader hosts this driver.
 *
 * A table is an array of function pointers that only ever grows at its end. The caller's version says how long its
 * array is: an entry is written only when that version has it. Entries that no function is named for stay untouched. */
#include <stddef.h>
#include <string.h>

#include "base/ddi.h"
#include "base/dispatch.h"
#include "base/functions.h"
#include "base/object.h"
#include "sync/failure.h"

typedef void (*entry)(void);

typedef struct {
  uint32_t since; /* the minor version that declares the function */
  entry function;
} row;

/* Addresses only: the prototypes stand where the functions are defined. */
#define DECLARE(since, name) void name(void);
#define ROW(since, name) {since, name},

static _Atomic bool loader_is_older;

bool cpu_ddi_loader_is_older(void) { return atomic_load(&loader_is_older); }

/* Major version 1 only; a newer minor version is never an error, its table is only longer. */
static ze_result_t fill(ze_api_version_t version, entry *table, const row *rows, size_t count) {
  CPU_REFUSE_IF(table == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(version >> 16 != 1, ERROR_UNSUPPORTED_VERSION);
  if (version < CPU_DISPATCH_VERSION) atomic_store(&loader_is_older, true);
  for (size_t i = 0; i < count; i++)
    if (rows[i].since <= (version & 0xffff)) table[i] = rows[i].function;
  return ZE_RESULT_SUCCESS;
}

#define TABLE(name)                                                                                                    \
  CPU_##name(DECLARE) CPU_EXPORT ze_result_t name##ProcAddrTable(ze_api_version_t version, void *table) {              \
    static const row rows[] = {CPU_##name(ROW)};                                                                       \
    return fill(version, table, rows, sizeof(rows) / sizeof(rows[0]));                                                 \
  }

CPU_TABLES(TABLE)

#define NAME(since, name) {since, #name},
#define NAMES(name) CPU_##name(NAME)

int cpu_ddi_since(const char *name) {
  static const struct {
    int since;
    const char *name;
  } names[] = {CPU_TABLES(NAMES)};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(names[i].name, name) == 0) return names[i].since;
  return -1;
}

/* Tools, and most of system management: loaders insist on the functions; there is nothing to put into the tables. */
#define EMPTY(name)                                                                                                    \
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
EMPTY(zesGetSchedulerProcAddrTable)
EMPTY(zesGetPerformanceFactorProcAddrTable)
EMPTY(zesGetStandbyProcAddrTable)
EMPTY(zesGetFirmwareProcAddrTable)
EMPTY(zesGetFabricPortProcAddrTable)
EMPTY(zesGetPsuProcAddrTable)
EMPTY(zesGetFanProcAddrTable)
EMPTY(zesGetLedProcAddrTable)
EMPTY(zesGetRasProcAddrTable)
EMPTY(zesGetDiagnosticsProcAddrTable)
