/* SPDX-License-Identifier: Apache-2.0 */
/* fault.c: injected faults. A rule names a function, which call of it, and what happens then. */
#include "simulate/fault.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ddi.h"
#include "base/object.h"

enum { RULES = 64 };

typedef struct {
  char function[64];
  uint32_t nth;
  _Atomic uint32_t calls;
  ze_result_t result;
  cpu_fault effect;
  uint32_t slow_ms;
} rule;

static rule rules[RULES];
static int count;
static _Thread_local cpu_fault pending;
static _Atomic uint64_t happened;

#define RESULT(name) {#name, ZE_RESULT_##name}
static const struct {
  const char *name;
  ze_result_t value;
} results[] = {
    RESULT(NOT_READY),
    RESULT(ERROR_DEVICE_LOST),
    RESULT(ERROR_OUT_OF_HOST_MEMORY),
    RESULT(ERROR_OUT_OF_DEVICE_MEMORY),
    RESULT(ERROR_MODULE_BUILD_FAILURE),
    RESULT(ERROR_MODULE_LINK_FAILURE),
    RESULT(ERROR_DEVICE_REQUIRES_RESET),
    RESULT(ERROR_DEVICE_IN_LOW_POWER_STATE),
    RESULT(EXP_ERROR_DEVICE_IS_NOT_VERTEX),
    RESULT(EXP_ERROR_VERTEX_IS_NOT_DEVICE),
    RESULT(EXP_ERROR_REMOTE_DEVICE),
    RESULT(ERROR_INSUFFICIENT_PERMISSIONS),
    RESULT(ERROR_NOT_AVAILABLE),
    RESULT(ERROR_DEPENDENCY_UNAVAILABLE),
    RESULT(WARNING_DROPPED_DATA),
    RESULT(ERROR_UNINITIALIZED),
    RESULT(ERROR_UNSUPPORTED_VERSION),
    RESULT(ERROR_UNSUPPORTED_FEATURE),
    RESULT(ERROR_INVALID_ARGUMENT),
    RESULT(ERROR_INVALID_NULL_HANDLE),
    RESULT(ERROR_HANDLE_OBJECT_IN_USE),
    RESULT(ERROR_INVALID_NULL_POINTER),
    RESULT(ERROR_INVALID_SIZE),
    RESULT(ERROR_UNSUPPORTED_SIZE),
    RESULT(ERROR_UNSUPPORTED_ALIGNMENT),
    RESULT(ERROR_INVALID_SYNCHRONIZATION_OBJECT),
    RESULT(ERROR_INVALID_ENUMERATION),
    RESULT(ERROR_UNSUPPORTED_ENUMERATION),
    RESULT(ERROR_UNSUPPORTED_IMAGE_FORMAT),
    RESULT(ERROR_INVALID_NATIVE_BINARY),
    RESULT(ERROR_INVALID_GLOBAL_NAME),
    RESULT(ERROR_INVALID_KERNEL_NAME),
    RESULT(ERROR_INVALID_FUNCTION_NAME),
    RESULT(ERROR_INVALID_GROUP_SIZE_DIMENSION),
    RESULT(ERROR_INVALID_GLOBAL_WIDTH_DIMENSION),
    RESULT(ERROR_INVALID_KERNEL_ARGUMENT_INDEX),
    RESULT(ERROR_INVALID_KERNEL_ARGUMENT_SIZE),
    RESULT(ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE),
    RESULT(ERROR_INVALID_MODULE_UNLINKED),
    RESULT(ERROR_INVALID_COMMAND_LIST_TYPE),
    RESULT(ERROR_OVERLAPPING_REGIONS),
    RESULT(WARNING_ACTION_REQUIRED),
    RESULT(ERROR_INVALID_KERNEL_HANDLE),
    RESULT(ERROR_ADDRESS_NOT_FOUND),
    RESULT(QUERY_TRUE),
    RESULT(QUERY_FALSE),
    RESULT(ERROR_INVALID_GRAPH),
    RESULT(ERROR_GRAPH_CAPTURE_UNSUPPORTED),
    RESULT(ERROR_GRAPH_CAPTURE_INVALIDATED),
    RESULT(ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT),
    RESULT(ERROR_COMMAND_LIST_NOT_CAPTURING),
    RESULT(ERROR_GRAPH_UNJOINED_FORKS),
    RESULT(ERROR_GRAPH_INTERNAL_EVENT),
    RESULT(ERROR_UNKNOWN),
};

static bool read_result(rule *r, const char *text) {
  if (strcmp(text, "late_oom") == 0) {
    r->effect = CPU_FAULT_LATE_OOM;
    return strncmp(r->function, "zeMemAlloc", 10) == 0;
  }
  if (strcmp(text, "hang") == 0) {
    r->effect = CPU_FAULT_HANG;
    return strncmp(r->function, "zeCommandListAppend", 19) == 0;
  }
  if (strncmp(text, "slow=", 5) == 0) {
    char *end;
    unsigned long ms = strtoul(text + 5, &end, 10);
    r->slow_ms = (uint32_t)ms;
    return text[5] >= '0' && text[5] <= '9' && *end == '\0' && ms <= 3600000;
  }
  for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
    if (strcmp(text, results[i].name) != 0) continue;
    r->result = results[i].value;
    return true;
  }
  return false;
}

/* One rule, of `text` up to its end; the text is ours to cut. */
static bool read_rule(char *text) {
  char *nth = strchr(text, ':');
  if (nth == NULL || count == RULES) return false;
  *nth++ = '\0';
  char *result = strchr(nth, ':');
  rule *r = &rules[count];
  if (result == NULL || cpu_ddi_since(text) < 0 || strlen(text) >= sizeof(r->function)) return false;
  *result++ = '\0';
  memset(r, 0, sizeof(*r));
  strcpy(r->function, text);
  char *end;
  unsigned long n = strtoul(nth, &end, 10);
  if (*nth < '0' || *nth > '9' || *end != '\0' || n == 0 || n > UINT32_MAX) return false;
  r->nth = (uint32_t)n;
  if (!read_result(r, result)) return false;
  count++;
  return true;
}

bool cpu_fault_read(const char *text) {
  char *copy = strdup(text), *rest = copy;
  bool good = copy != NULL;
  count = 0;
  while (good && rest != NULL) {
    char *one = strsep(&rest, ",");
    good = read_rule(one);
  }
  free(copy);
  if (!good) count = 0;
  return good;
}

bool cpu_fault_any(void) { return count != 0; }

ze_result_t cpu_fault_call(const char *function) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  pending = CPU_FAULT_NONE;
  for (rule *r = rules; r < rules + count; r++) {
    if (strcmp(r->function, function) != 0 || atomic_fetch_add(&r->calls, 1) + 1 != r->nth) continue;
    atomic_fetch_add(&happened, 1);
    if (r->slow_ms != 0) {
      struct timespec t = {.tv_sec = r->slow_ms / 1000, .tv_nsec = (long)(r->slow_ms % 1000) * 1000000};
      while (nanosleep(&t, &t) != 0) continue; /* a signal must not shorten it */
    }
    if (r->effect != CPU_FAULT_NONE) pending = r->effect;
    if (r->result != ZE_RESULT_SUCCESS) result = r->result;
  }
  return result;
}

/* For tests: how many of the faults asked for have happened. */
CPU_EXPORT uint64_t l0rt_cpu_faults(void) { return atomic_load(&happened); }

/* For tests: how often a function was called that a rule names. */
CPU_EXPORT uint64_t l0rt_cpu_calls(const char *function) {
  for (rule *r = rules; r < rules + count; r++)
    if (strcmp(r->function, function) == 0) return atomic_load(&r->calls);
  return 0;
}

cpu_fault cpu_fault_take(void) {
  cpu_fault fault = pending;
  pending = CPU_FAULT_NONE;
  return fault;
}
