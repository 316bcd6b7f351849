/* SPDX-License-Identifier: Apache-2.0 */
/* extensions.c: the functions that programs find by name only. */
#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/driver.h"
#include "base/gate.h"
#include "base/knobs.h"
#include "memory/bounds.h"
#include "memory/import.h"
#include "simulate/profile.h"

/* The kernel driver that a simulated device would be opened through, which Linux tells of a real
 * one; NULL where no device is simulated. */
static const char *l0rtCpuKernelDriver(void) {
  return cpu_knobs.device != NULL ? cpu_knobs.device->kernel_driver : NULL;
}

/* The caller reports failed launches of this context, so the driver need not print them. */
static ze_result_t l0rtCpuQuiet(ze_context_handle_t handle) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  atomic_store(&context->quiet, true);
  return ZE_RESULT_SUCCESS;
}

/* An allocator marks its memory, so that launches fail at what is not allocated; `cpu_mark` has the marks. */
static ze_result_t l0rtCpuMarkMemory(uint32_t mark, const void *base, size_t size, size_t requested) {
  CPU_ENTER();
  return cpu_bounds_mark(mark, base, size, requested);
}

/* `*size` counts the closing NUL; a NULL text asks for the size. */
static ze_result_t zeIntelGetDriverVersionString(ze_driver_handle_t handle, char *text, size_t *size) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(size == NULL, ERROR_INVALID_NULL_POINTER);
  const char *version = cpu_driver_version();
  if (text != NULL && *size != 0) snprintf(text, *size, "%s", version);
  *size = strlen(version) + 1;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeDriverGetExtensionFunctionAddress(ze_driver_handle_t handle, const char *name,
                                                           void **address) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(name == NULL || address == NULL, ERROR_INVALID_NULL_POINTER);
  if (strcmp(name, "zeIntelGetDriverVersionString") == 0) *address = (void *)zeIntelGetDriverVersionString;
  else if (strcmp(name, "zexDriverImportExternalPointer") == 0) *address = (void *)zexDriverImportExternalPointer;
  else if (strcmp(name, "zexDriverReleaseImportedPointer") == 0) *address = (void *)zexDriverReleaseImportedPointer;
  else if (strcmp(name, "l0rtCpuKernelDriver") == 0) *address = (void *)l0rtCpuKernelDriver;
  else if (strcmp(name, "l0rtCpuQuiet") == 0) *address = (void *)l0rtCpuQuiet;
  else if (strcmp(name, "l0rtCpuMarkMemory") == 0 && cpu_knobs.bounds) *address = (void *)l0rtCpuMarkMemory;
  else return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "there is no extension function of this name");
  return ZE_RESULT_SUCCESS;
}
