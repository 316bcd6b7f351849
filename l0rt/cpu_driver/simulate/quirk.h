/* SPDX-License-Identifier: Apache-2.0 */
/* quirk.h: defects of real drivers that this one can be given. */
#ifndef L0RT_CPU_QUIRK_H
#define L0RT_CPU_QUIRK_H

#include "base/knobs.h"
#include "base/object.h"

typedef enum {
  CPU_QUIRK_UNFLUSHED_COUNTERS = 1 << 0, /* what copies and fills wrote to host memory stays in a cache: see cache.h */
  CPU_QUIRK_NO_VM_BIND = 1 << 1, /* mapping too much succeeds, and the next appends fail */
  CPU_QUIRK_UNTYPED_MAPPINGS = 1 << 2, /* a mapped pointer's type is unknown */
  CPU_QUIRK_RAW_EVENT_HANDLES = 1 << 3, /* a pool's handle is looked up among the importer's own descriptors */
  CPU_QUIRK_RACING_MAPS = 1 << 4, /* an append or a submission while its memory's reservation changes is a race */
  CPU_QUIRK_RACING_QUERIES = 1 << 5, /* two threads asking one event that is not counter-based are a race */
  CPU_QUIRK_OUTLASTING_WAITS = 1 << 6, /* a wait for a counter-based event ends with the context's work, no sooner */
  CPU_QUIRK_SINGLE_DEVICE_IMPORTS = 1 << 7, /* imported memory is only the context's first device's */
  CPU_QUIRK_PEER_COUNTERS = 1 << 8, /* waiting for another device's counter-based event aborts the process */
  CPU_QUIRK_UNORDERED_LISTS = 1 << 9, /* lists ignore the flag that they keep their commands in order */
  CPU_QUIRK_RAW_MEMORY_HANDLES = 1 << 10, /* memory's handle is looked up among the importer's own descriptors */
  CPU_QUIRK_EARLY_GRAPHS = 1 << 11, /* there are graphs in every profile, and beginning one fails with an old code */
  CPU_QUIRK_UNJOINED_CAPTURES = 1 << 12, /* a list that a capture has waited for is not recorded any more */
  CPU_QUIRK_CACHED_IMPORTS = 1 << 13, /* imported memory that was freed is handed out by a later allocation */
  CPU_QUIRK_LISTED_SYMBOLS = 1 << 14, /* a module lists a kernel that its code does not have */
  CPU_QUIRK_FATAL_ENQUEUES = 1 << 15, /* building kernels that enqueue others aborts the process */
  CPU_QUIRK_UNCOUNTED_SIGNALS = 1 << 16, /* waits for a list leave out work that signals an event of a pool */
} cpu_quirk;

static inline bool cpu_has_quirk(cpu_quirk quirk) { return CPU_UNLIKELY((cpu_knobs.quirks & quirk) != 0); }

/* Adds those named, with commas between them, to cpu_knobs. False: a name is unknown. */
bool cpu_quirks_read(const char *names);

/* Adds those of the device and build that are simulated. */
void cpu_quirks_of_profile(void);

/* Two threads met where a real driver has no lock: counted, and an error in place of memory used after its end. */
ze_result_t cpu_quirk_race(void);

#endif
