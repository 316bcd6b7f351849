/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.c: the tables at the beginning of every handle.
 *
 * From specification 1.17 on a loader calls through them, not through those that it asked for by name; so it needs no
 * wrappers where there are several drivers, and structures can name handles. Tables of functions that are not here are
 * empty, never missing: older callers don't look before they read. */
#include "base/dispatch.h"
#include "base/functions.h"
#include "l0rt/ze.h"

typedef void (*entry)(void);

enum { MOST_ENTRIES = 64, TABLES = 32 }; /* more entries than any table has: what comes after the last one is empty */

typedef struct {
  ze_api_version_t version;
  uint8_t valid;
  const entry *tables[TABLES];
} dispatch;

/* Addresses only: the prototypes stand where the functions are defined. */
#define DECLARE(since, name) void name(void);
#define PLACE(since, name) name,
#define TABLE(name) CPU_##name(DECLARE) static const entry name[MOST_ENTRIES] = {CPU_##name(PLACE)};

CPU_TABLES(TABLE)

static const entry none[MOST_ENTRIES];

/* In the order of the specification's structures. */
/* clang-format off */
static const dispatch core = {
    CPU_DISPATCH_VERSION,
    1,
    {none, none, none, none, /* ray tracing */
     zeGetGlobal, zeGetDriver, zeGetDriverExp, zeGetDevice, zeGetDeviceExp, zeGetContext, zeGetCommandQueue,
     zeGetCommandList, zeGetCommandListExp, zeGetImage, zeGetImageExp, zeGetMem, zeGetMemExp, zeGetFence,
     zeGetEventPool, zeGetEvent, zeGetEventExp, zeGetModule, zeGetModuleBuildLog, zeGetKernel, zeGetKernelExp,
     zeGetSampler, zeGetPhysicalMem, zeGetVirtualMem, none, none, /* fabrics */ zeGetGraph, zeGetExecutableGraph},
};
static const dispatch tools = {
    CPU_DISPATCH_VERSION,
    1,
    {none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none},
};
static const dispatch sysman = {
    CPU_DISPATCH_VERSION,
    1,
    {zesGetGlobal, zesGetDevice, zesGetDeviceExp, zesGetDriver, zesGetDriverExp, none, none, none, zesGetPower,
     zesGetFrequency, zesGetEngine, none, none, none, zesGetMemory, none, zesGetTemperature, none, none, none, none,
     none, none, none},
};
/* clang-format on */
static const dispatch runtime = {CPU_DISPATCH_VERSION, 1, {none}};

const void *const cpu_dispatch[4] = {&core, &tools, &sysman, &runtime};
