/* SPDX-License-Identifier: Apache-2.0 */
/* start.c: the first zeInit, the parts that end with a context, and the library's end. This file includes all parts of the
 * driver, and none includes it. */
#include <pthread.h>

#include "base/driver.h"
#include "base/gate.h"
#include "base/knobs.h"
#include "lists/engine.h"
#include "memory/import.h"
#include "memory/usm.h"
#include "simulate/fault.h"
#include "spirv/spirv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;

const cpu_context_part cpu_context_parts[] = {
    {.is_busy = cpu_engines_work_for, .end = cpu_usm_free_all},
    {.end = cpu_import_end_all},
    {.is_busy = cpu_reservations_in_use, .end = cpu_reservations_end},
    {.end = cpu_physical_end_all},
    {NULL},
};

/* The engines stay in the parent, so nothing can work in a child; a clear refusal is better than a hang. */
static void refuse_in_child(void) {
  if (initialised) atomic_fetch_or(&cpu_gate, CPU_GATE_FORKED);
}

/* With the lock held. */
static ze_result_t initialise(void) {
  if (initialised) return ZE_RESULT_SUCCESS;
  if (!cpu_knobs_read()) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a variable L0RT_CPU_* has a wrong value");
  if (cpu_knobs.chaos) spirv_use_width(16); /* many waves in a group, so that their order can differ */
  spirv_limit_memory(cpu_knobs.build_memory);
  cpu_device_heap.hidden = cpu_knobs.strict;
  CPU_REFUSE_IF(!cpu_devices_make() || !cpu_driver_make(), ERROR_OUT_OF_HOST_MEMORY);
  pthread_atfork(NULL, NULL, refuse_in_child);
  initialised = true;
  atomic_store(&cpu_gate, cpu_fault_any() || cpu_knobs.neo_22_43 ? CPU_GATE_WATCHED : 0);
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_driver_open(const char *function) {
  CPU_REFUSE_IF(atomic_load(&cpu_gate) & CPU_GATE_FORKED, ERROR_UNINITIALIZED);
  pthread_mutex_lock(&lock);
  ze_result_t result = initialise();
  pthread_mutex_unlock(&lock);
  if (result == ZE_RESULT_SUCCESS && atomic_load(&cpu_gate) != 0) result = cpu_gate_ask(function);
  return result;
}

CPU_EXPORT ze_result_t zeInit(ze_init_flags_t flags) {
  CPU_REFUSE_IF(flags > 0x3, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF(flags == ZE_INIT_FLAG_VPU_ONLY, ERROR_UNINITIALIZED); /* nothing of the kind here */
  return cpu_driver_open(__func__);
}

CPU_EXPORT ze_result_t zeInitDrivers(uint32_t *count, ze_driver_handle_t *drivers, ze_init_driver_type_desc_t *desc) {
  CPU_REFUSE_IF(count == NULL || desc == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(desc->flags == 0, ERROR_INVALID_ENUMERATION);
  ze_result_t result = cpu_driver_open(__func__);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (desc->flags & ZE_INIT_DRIVER_TYPE_FLAG_GPU) return cpu_driver_list(count, drivers);
  *count = 0;
  return ZE_RESULT_SUCCESS;
}

/* After the program's own end: no call gets in any more, and no engine touches its memory. */
__attribute__((destructor)) static void end(void) {
  uint32_t gate = atomic_fetch_or(&cpu_gate, CPU_GATE_CLOSED);
  if (initialised && !(gate & CPU_GATE_FORKED)) cpu_engines_stop();
}
