/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h: real devices and builds of Intel's driver that this driver can pass for. */
#ifndef L0RT_CPU_PROFILE_H
#define L0RT_CPU_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/group.h"

/* The properties of a device on which programs depend. */
typedef struct cpu_device_profile {
  const char *profile;       /* as L0RT_CPU_PROFILE names it */
  const char
      *kernel_driver; /* that the real one is opened through: "xe", "i915" as Linux itself has it, or "i915-prelim" */
  const char *name;          /* the name of the real device; the reported name begins with "l0rt CPU device" */
  const char *architecture;
  uint32_t device_id;
  uint32_t ip_version; /* architecture << 22 | release << 14 | revision */
  bool integrated;
  uint64_t memory;
  uint64_t max_alloc; /* larger ones need the relaxed limits; 0: as large as the memory */
  uint32_t timestamp_bits;
  uint32_t kernel_timestamp_bits;
  uint64_t timestamp_hz;
  bool offloads; /* copies go to a copy engine where a list asks for it */
  const cpu_groups *groups; /* of its queues */
  bool lacks_images; /* and samplers */
} cpu_device_profile;

/* How large images may be: the extents of those of one, two and three dimensions, the bytes of buffers, and the
 * elements of arrays. */
typedef struct {
  uint32_t one, two, three, elements;
  uint64_t buffer;
} cpu_image_limits;
const cpu_image_limits *cpu_image_limits_of_device(void);
bool cpu_device_has_images(void);

/* Builds of Intel's driver where something changed: the last parts of their releases' names. */
enum {
  CPU_NEO_24_35 = 30872,
  CPU_NEO_IN_ORDER = 32149, /* between 24.48 and 24.52 */
  CPU_NEO_25_18 = 33578,
  CPU_NEO_25_31 = 34666,
  CPU_NEO_25_40 = 35563,
  CPU_NEO_26_01 = 36711,
  CPU_NEO_26_18 = 38308,
  CPU_NEO_26_31 = 39395,
};

/* A build of Intel's driver. */
typedef struct cpu_driver_profile {
  const char *profile;
  uint32_t api;
  uint32_t version; /* as zeDriverGetProperties has it: major, minor and build number */
  const char *text;
  uint32_t number;
} cpu_driver_profile;

/* The largest allocation without the relaxed limits. */
uint64_t cpu_max_alloc(void);

/* Reads names with commas between them into cpu_knobs: a device, a build, or both; a device alone has the newest
 * build. False: a name is unknown, or one too many. */
bool cpu_profile_read(const char *text);

#endif
