/* SPDX-License-Identifier: Apache-2.0 */
/* settings.c: the L0RT_CPU_* variables. Parsed strictly: a typing error must not pass for a setting. */
#include "base/knobs.h"

#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/affinity.h"
#include "base/object.h"
#include "simulate/fault.h"
#include "simulate/latency.h"
#include "simulate/profile.h"
#include "simulate/quirk.h"
#include "spirv/spirv.h"

extern char **environ;

struct cpu_knobs cpu_knobs;

/* Reads a decimal number and returns the text after it; NULL if there is no number or it is too large. */
static const char *number(const char *text, uint64_t *value) {
  if (!isdigit((unsigned char)*text)) return NULL;
  *value = 0;
  for (; isdigit((unsigned char)*text); text++) {
    if (__builtin_mul_overflow(*value, 10u, value)) return NULL;
    if (__builtin_add_overflow(*value, (uint64_t)(*text - '0'), value)) return NULL;
  }
  return text;
}

static bool number_between(const char *text, uint64_t low, uint64_t high, uint64_t *value) {
  uint64_t n;
  const char *rest = number(text, &n);
  if (rest == NULL || *rest != '\0' || n < low || n > high) return false;
  *value = n;
  return true;
}

/* A simulated device has its quirks, and with `timing` its latencies. */
static bool read_profile(const char *text) {
  if (!cpu_profile_read(text)) return false;
  if (cpu_knobs.device != NULL) cpu_quirks_of_profile();
  if (cpu_knobs.timing) cpu_latency_of_profile();
  return true;
}

static bool read_devices(const char *text) { return number_between(text, 1, 64, &cpu_knobs.devices); }

static bool bytes(const char *text, uint64_t *value) {
  static const struct {
    const char *suffix;
    unsigned shift;
  } units[] = {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  uint64_t n;
  const char *rest = number(text, &n);
  if (rest == NULL || n == 0) return false;
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
    if (strcmp(rest, units[i].suffix) != 0) continue;
    if (n > ((uint64_t)1 << 46) >> units[i].shift) return false; /* more than there are addresses */
    *value = n << units[i].shift;
    return true;
  }
  return false;
}

static bool read_memory(const char *text) { return bytes(text, &cpu_knobs.memory); }

static bool read_build_memory(const char *text) { return bytes(text, &cpu_knobs.build_memory); }

static bool read_bits(const char *text) { return number_between(text, 1, 64, &cpu_knobs.timestamp_bits); }

static bool read_hz(const char *text) { return number_between(text, 1, 1000000000, &cpu_knobs.timestamp_hz); }

static bool read_chaos(const char *text) {
  cpu_knobs.chaos = number_between(text, 0, UINT64_MAX, &cpu_knobs.seed);
  return cpu_knobs.chaos;
}

static bool read_threads(const char *text) { return number_between(text, 1, 1024, &cpu_knobs.threads); }

static bool read_fuel(const char *text) { return number_between(text, 1, UINT64_MAX, &cpu_knobs.fuel); }

static bool read_fault(const char *text) {
  cpu_knobs.lost = strcmp(text, "lost") == 0;
  return cpu_knobs.lost || strcmp(text, "error") == 0;
}

static bool a_switch(const char *text, bool *value) {
  *value = strcmp(text, "1") == 0;
  return *value || strcmp(text, "0") == 0;
}

static bool read_strict(const char *text) { return a_switch(text, &cpu_knobs.strict); }

static bool read_races(const char *text) { return a_switch(text, &cpu_knobs.races); }

static bool read_bounds(const char *text) { return a_switch(text, &cpu_knobs.bounds); }

static bool read_lenient(const char *text) { return a_switch(text, &cpu_knobs.lenient); }

static bool read_quiet(const char *text) { return a_switch(text, &cpu_knobs.quiet); }

/* kernel, kernel:x, kernel:x,y or kernel:x,y,z */
static bool read_trace(const char *text) {
  cpu_knobs.trace = text;
  cpu_knobs.trace_size = strcspn(text, ":");
  text += cpu_knobs.trace_size;
  cpu_knobs.trace_first = *text == '\0';
  if (cpu_knobs.trace_size == 0) return false;
  for (int d = 0; d < 3 && *text != '\0'; d++) {
    if (*text != (d == 0 ? ':' : ',')) return false;
    text = number(text + 1, &cpu_knobs.trace_item[d]);
    if (text == NULL) return false;
  }
  return *text == '\0';
}

static bool read_running_lists(const char *text) {
  cpu_knobs.executes_running = strcmp(text, "execute") == 0;
  return cpu_knobs.executes_running || strcmp(text, "refuse") == 0;
}

static const struct {
  const char *name;
  bool (*read)(const char *text);
  const char *allowed;
} table[] = {
    /* First: the other variables change what a profile has. */
    {"L0RT_CPU_PROFILE", read_profile,
     "a device (arc-a770-i915, arc-a770-xe, arc-b580, pvc, lunar-lake, meteor-lake), a driver (neo-22.43, neo-0, "
     "neo-24.35, neo-25.18, neo-26.31), both with a comma, or a device and timing"},
    {"L0RT_CPU_QUIRKS", cpu_quirks_read,
     "unflushed_counters, no_vm_bind, untyped_mappings, raw_event_handles, racing_maps, racing_queries, "
     "outlasting_waits, single_device_imports, peer_counters, unordered_lists, raw_memory_handles, early_graphs, "
     "unjoined_captures, cached_imports, listed_symbols, fatal_enqueues, uncounted_signals, or several with "
     "commas"},
    {"L0RT_CPU_LATENCY", cpu_latency_read,
     "name=microseconds or virtual, several with commas; the names: phys_create, phys_destroy, map_fresh, map_moved, "
     "unmap, map_per_piece, clear, alloc_resident, free, append_launch, append_copy, copy_per_piece, submit, "
     "submit_per_piece, record_scope0, record_host, record_plain, list_switch, wake_up, query_pending, map_blocks, "
     "h2d_gbps, d2h_gbps"},
    {"L0RT_CPU_DEVICES", read_devices, "a number from 1 to 64"},
    {"L0RT_CPU_MEMORY", read_memory, "bytes, or a number with KiB, MiB, GiB or TiB, up to 64TiB"},
    {"L0RT_CPU_TIMESTAMP_BITS", read_bits, "a number from 1 to 64"},
    {"L0RT_CPU_TIMESTAMP_HZ", read_hz, "a number from 1 to 1000000000"},
    {"L0RT_CPU_CHAOS", read_chaos, "a number: the seed"},
    {"L0RT_CPU_STRICT", read_strict, "0 or 1"},
    {"L0RT_CPU_FAIL", cpu_fault_read,
     "function:nth:RESULT[,...], RESULT a result without ZE_RESULT_, late_oom, hang or slow=MS"},
    {"L0RT_CPU_BUILD_MEMORY", read_build_memory, "bytes, or a number with KiB, MiB, GiB or TiB, up to 64TiB"},
    {"L0RT_CPU_THREADS", read_threads, "a number from 1 to 1024"},
    {"L0RT_CPU_FUEL", read_fuel, "a number: blocks of instructions"},
    {"L0RT_CPU_FAULT", read_fault, "error or lost"},
    {"L0RT_CPU_TRACE", read_trace, "kernel, or kernel:x, kernel:x,y or kernel:x,y,z with the numbers of a work-item"},
    {"L0RT_CPU_RACES", read_races, "0 or 1"},
    {"L0RT_CPU_BOUNDS", read_bounds, "0 or 1"},
    {"L0RT_CPU_LENIENT", read_lenient, "0 or 1"},
    {"L0RT_CPU_QUIET", read_quiet, "0 or 1"},
    {"L0RT_CPU_RUNNING_LISTS", read_running_lists, "refuse or execute"},
};

enum { KNOBS = sizeof(table) / sizeof(table[0]) };

static bool known(const char *entry) {
  size_t length = strcspn(entry, "=");
  for (int i = 0; i < KNOBS; i++)
    if (strlen(table[i].name) == length && strncmp(table[i].name, entry, length) == 0) return true;
  return false;
}

/* The error in the environment, for a query after zeInit has failed; empty if there is none. */
static char complaint[1024];

CPU_EXPORT const char *l0rt_cpu_complaint(void) { return complaint; }

/* Those that this process may use. */
static uint64_t processors(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint64_t)CPU_COUNT(&set) : 1;
}

bool cpu_knobs_read(void) {
  cpu_affinity_read(getenv("ZE_AFFINITY_MASK"));
  cpu_knobs = (struct cpu_knobs){.devices = 1,
                                 .memory = (uint64_t)16 << 30,
                                 .timestamp_bits = 36,
                                 .timestamp_hz = 19200000,
                                 .build_memory = SPIRV_BUILD_MEMORY,
                                 .threads = processors()};
  for (int i = 0; i < KNOBS; i++) {
    const char *text = getenv(table[i].name);
    if (text == NULL || *text == '\0' || table[i].read(text)) continue;
    snprintf(complaint, sizeof(complaint), "%s=%s: expected %s", table[i].name, text, table[i].allowed);
    fprintf(stderr, "l0rt CPU driver: %s\n", complaint);
    return false;
  }
  for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
    if (strncmp(*entry, "L0RT_CPU_", 9) != 0 || known(*entry)) continue;
    int length = snprintf(complaint, sizeof(complaint), "%.*s is no variable of this driver; there are",
                          (int)strcspn(*entry, "="), *entry);
    for (int i = 0; i < KNOBS && length < (int)sizeof(complaint); i++)
      length += snprintf(complaint + length, sizeof(complaint) - (size_t)length, " %s", table[i].name);
    fprintf(stderr, "l0rt CPU driver: %s\n", complaint);
    return false;
  }
  return true;
}
