/* SPDX-License-Identifier: Apache-2.0 */
/* quirk.c: which defects there are, and which device and build has which. */
#include "simulate/quirk.h"

#include <stdatomic.h>
#include <string.h>

#include "simulate/profile.h"
#include "sync/failure.h"

static bool is_named(const char *text, const char *name) { return strcmp(text, name) == 0; }

static bool flushes_late(const cpu_device_profile *device) {
  return !is_named(device->architecture, "battlemage") && !is_named(device->architecture, "ponte vecchio");
}

static bool is_unflushed(const cpu_device_profile *device, uint32_t build) {
  return build < CPU_NEO_26_31 && flushes_late(device);
}

static bool has_no_vm_bind(const cpu_device_profile *device, uint32_t build) {
  (void)build;
  return is_named(device->kernel_driver, "i915");
}

static bool is_before_25_31(const cpu_device_profile *device, uint32_t build) {
  (void)device;
  return build < CPU_NEO_25_31;
}

static bool shares_numbers(const cpu_device_profile *device) {
  return is_named(device->architecture, "alchemist") || is_named(device->architecture, "ponte vecchio");
}

static bool has_raw_events(const cpu_device_profile *device, uint32_t build) {
  return build < CPU_NEO_26_18 || shares_numbers(device);
}

static bool has_raw_memory(const cpu_device_profile *device, uint32_t build) {
  return build < CPU_NEO_25_18 || shares_numbers(device);
}

/* Without a number the version of the API tells, and profiles without one have 1.6. */
static bool is_unordered(const cpu_device_profile *device, uint32_t build) {
  (void)device;
  return build != 0 && build < CPU_NEO_IN_ORDER;
}

static bool never(const cpu_device_profile *device, uint32_t build) {
  (void)device, (void)build;
  return false;
}

static bool outlasts(const cpu_device_profile *device, uint32_t build) {
  return build >= CPU_NEO_26_01 &&
         (is_named(device->architecture, "alchemist") || is_named(device->architecture, "lunar lake"));
}

static bool caches(const cpu_device_profile *device, uint32_t build) {
  (void)build;
  return !is_named(device->architecture, "alchemist") && !is_named(device->architecture, "ponte vecchio");
}

static bool skips(const cpu_device_profile *device, uint32_t build) {
  return build >= CPU_NEO_26_01 && is_named(device->architecture, "lunar lake");
}

static bool always(const cpu_device_profile *device, uint32_t build) {
  (void)device, (void)build;
  return true;
}

static const struct {
  const char *name;
  cpu_quirk quirk;
  bool (*applies)(const cpu_device_profile *device, uint32_t build);
} quirks[] = {
    {"unflushed_counters", CPU_QUIRK_UNFLUSHED_COUNTERS, is_unflushed},
    {"no_vm_bind", CPU_QUIRK_NO_VM_BIND, has_no_vm_bind},
    {"untyped_mappings", CPU_QUIRK_UNTYPED_MAPPINGS, is_before_25_31},
    {"raw_event_handles", CPU_QUIRK_RAW_EVENT_HANDLES, has_raw_events},
    {"racing_maps", CPU_QUIRK_RACING_MAPS, always},
    {"racing_queries", CPU_QUIRK_RACING_QUERIES, always},
    {"outlasting_waits", CPU_QUIRK_OUTLASTING_WAITS, outlasts},
    {"single_device_imports", CPU_QUIRK_SINGLE_DEVICE_IMPORTS, always},
    {"peer_counters", CPU_QUIRK_PEER_COUNTERS, always},
    {"unordered_lists", CPU_QUIRK_UNORDERED_LISTS, is_unordered},
    {"raw_memory_handles", CPU_QUIRK_RAW_MEMORY_HANDLES, has_raw_memory},
    {"early_graphs", CPU_QUIRK_EARLY_GRAPHS, never},
    {"unjoined_captures", CPU_QUIRK_UNJOINED_CAPTURES, always},
    {"cached_imports", CPU_QUIRK_CACHED_IMPORTS, caches},
    {"listed_symbols", CPU_QUIRK_LISTED_SYMBOLS, always},
    {"fatal_enqueues", CPU_QUIRK_FATAL_ENQUEUES, always},
    {"uncounted_signals", CPU_QUIRK_UNCOUNTED_SIGNALS, skips},
};
enum { QUIRKS = sizeof(quirks) / sizeof(quirks[0]) };

bool cpu_quirks_read(const char *names) {
  for (;; names++) {
    size_t length = strcspn(names, ",");
    int i = 0;
    while (i < QUIRKS && (strlen(quirks[i].name) != length || memcmp(quirks[i].name, names, length) != 0)) i++;
    if (i == QUIRKS) return false;
    cpu_knobs.quirks |= quirks[i].quirk;
    names += length;
    if (*names == '\0') return true;
  }
}

void cpu_quirks_of_profile(void) {
  for (int i = 0; i < QUIRKS; i++)
    if (quirks[i].applies(cpu_knobs.device, cpu_knobs.build->number)) cpu_knobs.quirks |= quirks[i].quirk;
}

static _Atomic uint64_t races;

ze_result_t cpu_quirk_race(void) {
  atomic_fetch_add(&races, 1);
  return CPU_REFUSED(ERROR_UNKNOWN, "another thread changed what is mapped meanwhile, as L0RT_CPU_QUIRKS asks for");
}

/* For tests: how often threads have met. */
CPU_EXPORT uint64_t l0rt_cpu_races(void) { return atomic_load(&races); }
