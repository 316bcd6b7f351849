/* SPDX-License-Identifier: Apache-2.0 */
/* knobs.h: what the environment asks of the driver; settings.c reads it once, at the first zeInit. */
#ifndef L0RT_CPU_KNOBS_H
#define L0RT_CPU_KNOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern struct cpu_knobs {
  uint64_t devices;
  uint64_t memory; /* bytes per device */
  uint64_t timestamp_bits;
  uint64_t timestamp_hz;
  bool chaos;
  uint64_t seed;
  bool strict;
  bool neo_22_43;
  const struct cpu_device_profile *device; /* NULL: it is what it is */
  const struct cpu_group *groups; /* of its queues; NULL: those of the plain device */
  const struct cpu_driver_profile *build;
  bool timing;     /* the device costs what the real one does */
  uint32_t quirks; /* cpu_quirk: defects of real drivers */
  uint64_t build_memory; /* bytes that building a module or a kernel may take */
  uint64_t threads; /* that a launch may use, the engine's among them */
  uint64_t fuel;    /* 0: no limit */
  bool lost;        /* a failed launch is a lost device */
  bool races;       /* are looked for in launches */
  bool bounds;      /* of local memory are exact, and those of allocators' blocks are checked */
  bool lenient;     /* what Intel's devices let pass is no error */
  bool quiet;       /* failed launches print nothing */
  bool executes_running; /* a closed list that is executed may still run */
  const char *trace; /* the name of the kernel, of so many bytes; NULL: none */
  size_t trace_size;
  uint64_t trace_item[3];
  bool trace_first; /* the launch's first work-item */
} cpu_knobs;

/* Returns false after one line on stderr when a variable has a value that it can't have. */
bool cpu_knobs_read(void);

#endif
