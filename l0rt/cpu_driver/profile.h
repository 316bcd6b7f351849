/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h: real devices and builds of Intel's driver that this driver can pass for. */
#ifndef L0RT_CPU_PROFILE_H
#define L0RT_CPU_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

/* The properties of a device on which programs depend. */
typedef struct cpu_device_profile {
  const char *profile;       /* as L0RT_CPU_PROFILE names it */
  const char
      *kernel_driver; /* that the real one is opened through: "xe", "i915" as Linux itself has it, or "i915-prelim" */
  const char *name;          /* the name of the real device; the reported name begins with "l0rt CPU device" */
  uint32_t device_id;
  bool integrated;
  uint64_t memory;
  uint32_t timestamp_bits;
  uint32_t kernel_timestamp_bits;
  uint64_t timestamp_hz;
} cpu_device_profile;

/* A build of Intel's driver. */
typedef struct cpu_driver_profile {
  const char *profile;
  uint32_t api;
  uint32_t version; /* as zeDriverGetProperties has it: major, minor and build number */
  const char *text;
} cpu_driver_profile;

/* Reads names with commas between them into cpu_knobs: a device, a build, or both; a device alone has the newest
 * build. False: a name is unknown, or one too many. */
bool cpu_profile_read(const char *text);

#endif
