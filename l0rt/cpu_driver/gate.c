/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c: the slow side of the gate: not initialised, forked, injected faults, functions that a profile lacks. */
#include "gate.h"

#include <string.h>

#include "ddi.h"
#include "fault.h"
#include "knobs.h"

_Atomic uint32_t cpu_gate = CPU_GATE_CLOSED;

/* The functions that Intel's driver of Debian 12 lacks: those after version 1.3, and some earlier ones. */
static bool missing_in_neo_22_43(const char *function) {
  static const char *const missing[] = {
      "zeDeviceGetStatus",
      "zeVirtualMemReserve",
      "zeVirtualMemFree",
      "zeVirtualMemMap",
      "zeVirtualMemUnmap",
      "zePhysicalMemCreate",
      "zePhysicalMemDestroy",
      "zeVirtualMemSetAccessAttribute",
      "zeVirtualMemGetAccessAttribute",
  };
  for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++)
    if (strcmp(function, missing[i]) == 0) return true;
  return cpu_ddi_since(function) > 3;
}

ze_result_t cpu_gate_ask(const char *function) {
  uint32_t gate = atomic_load(&cpu_gate);
  CPU_REFUSE_IF(gate & (CPU_GATE_CLOSED | CPU_GATE_FORKED), ERROR_UNINITIALIZED);
  CPU_REFUSE_IF(cpu_knobs.neo_22_43 && missing_in_neo_22_43(function), ERROR_UNSUPPORTED_FEATURE);
  ze_result_t result = cpu_fault_call(function);
  return result == ZE_RESULT_SUCCESS ? result : cpu_refuse(result, "L0RT_CPU_FAIL asks for it");
}
