/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c: the real devices and builds that the driver can pass for, and the variable that chooses among them.
 *
 * Names, numbers, sizes and clocks are told as they are there, and it has the defects that are known of it. */
#include "simulate/profile.h"

#include <stddef.h>
#include <string.h>

#include "base/knobs.h"

#define GIB ((uint64_t)1 << 30)

/* What a surface of those that address memory through surfaces may have. */
#define SURFACE (4 * GIB - (8 << 10))

/* Queue groups as NEO tells of them (Device::getCommandQueueGroupProperties).
 *
 * Compute: one queue, though the chips have up to four engines, since NEO shows one unless ZEX_NUMBER_OF_CCS asks for
 * more; the render engine is hidden. Its fills take patterns of any size there, and what a command holds here. Copy:
 * the main copy engine is a group of its own on all of them, the integrated ones included
 * (enableBlitterOperationsSupport in configureHardwareCustom of each product_helper for Linux). On Ponte Vecchio the
 * engines for links between tiles and cards are a third group (linkedCopy). Copy engines fill with a pattern of 16
 * bytes up to Alchemist's core, which Meteor Lake has too, and of one byte since
 * (getMaxFillPatternSizeForCopyEngine). */
static const cpu_groups alchemist = {
    {1, CPU_GROUP_COMPUTES, CPU_PATTERN},
    {1, CPU_GROUP_COPIES, 16},
};
static const cpu_groups ponte_vecchio = {
    {1, CPU_GROUP_COMPUTES, CPU_PATTERN},
    {1, CPU_GROUP_COPIES, 1},
    {7, CPU_GROUP_COPIES, 1},
};
static const cpu_groups battlemage = {
    {1, CPU_GROUP_COMPUTES, CPU_PATTERN},
    {1, CPU_GROUP_COPIES, 1},
};

/* clang-format off */
static const cpu_device_profile devices[] = {
    {"arc-a770-i915", "i915", "Intel(R) Arc(TM) A770 Graphics", "alchemist", 0x56a0, 12 << 22 | 55 << 14 | 8, false,
     16 * GIB, SURFACE, 36, 32, 19200000, false, &alchemist, false},
    {"arc-a770-xe", "xe", "Intel(R) Arc(TM) A770 Graphics", "alchemist", 0x56a0, 12 << 22 | 55 << 14 | 8, false,
     16 * GIB, SURFACE, 36, 32, 19200000, false, &alchemist, false},
    {"arc-b580", "xe", "Intel(R) Arc(TM) B580 Graphics", "battlemage", 0xe20b, 20 << 22 | 1 << 14 | 4, false,
     12 * GIB, 0, 64, 64, 19200000, true, &battlemage, false},
    {"pvc", "i915-prelim", "Intel(R) Data Center GPU Max 1100", "ponte vecchio", 0x0bda, 12 << 22 | 60 << 14 | 7, false,
     48 * GIB, 0, 36, 32, 12500000, true, &ponte_vecchio, true},
    {"lunar-lake", "xe", "Intel(R) Arc(TM) 140V Graphics", "lunar lake", 0x64a0, 20 << 22 | 4 << 14 | 4, true,
     16 * GIB, 0, 64, 64, 19200000, false, &battlemage, false},
    {"meteor-lake", "i915", "Intel(R) Arc(TM) Graphics", "meteor lake", 0x7d55, 12 << 22 | 71 << 14 | 4, true,
     16 * GIB, SURFACE, 36, 32, 19200000, false, &alchemist, false},
};
/* clang-format on */

static const cpu_driver_profile builds[] = {
    {"neo-0", 1 << 16 | 6, 1 << 24 | 6 << 16, "1.6.0", 0}, /* its version has no number of a build */
    {"neo-24.35", 1 << 16 | 5, 1 << 24 | 5 << 16 | CPU_NEO_24_35, "1.5.30872", CPU_NEO_24_35},
    {"neo-25.18", 1 << 16 | 6, 1 << 24 | 6 << 16 | CPU_NEO_25_18, "1.6.33578", CPU_NEO_25_18},
    {"neo-26.31", 1 << 16 | 17, 1 << 24 | 15 << 16 | CPU_NEO_26_31, "1.15.39395", CPU_NEO_26_31},
};
enum { NEWEST = sizeof(builds) / sizeof(builds[0]) - 1 };

uint64_t cpu_max_alloc(void) {
  uint64_t most = cpu_knobs.device == NULL ? 0 : cpu_knobs.device->max_alloc;
  return most != 0 && most < cpu_knobs.memory ? most : cpu_knobs.memory;
}

/* As NEO tells of all that have images. */
const cpu_image_limits *cpu_image_limits_of_device(void) {
  static const cpu_image_limits limits = {
      .one = 16384, .two = 16384, .three = 2048, .elements = 2048, .buffer = UINT64_C(1) << 30};
  return &limits;
}

bool cpu_device_has_images(void) { return cpu_knobs.device == NULL || !cpu_knobs.device->lacks_images; }

static bool is_named(const char *name, const char *text, size_t length) {
  return strlen(name) == length && memcmp(name, text, length) == 0;
}

static bool read_name(const char *text, size_t length) {
  if (is_named("neo-22.43", text, length) && cpu_knobs.build == NULL && !cpu_knobs.neo_22_43) {
    cpu_knobs.neo_22_43 = true;
    return true;
  }
  if (is_named("timing", text, length) && !cpu_knobs.timing) {
    cpu_knobs.timing = true;
    return true;
  }
  for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
    if (!is_named(devices[i].profile, text, length) || cpu_knobs.device != NULL) continue;
    cpu_knobs.device = &devices[i];
    return true;
  }
  for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
    if (!is_named(builds[i].profile, text, length) || cpu_knobs.build != NULL || cpu_knobs.neo_22_43) continue;
    cpu_knobs.build = &builds[i];
    return true;
  }
  return false;
}

bool cpu_profile_read(const char *text) {
  for (;; text++) {
    size_t length = strcspn(text, ",");
    if (!read_name(text, length)) return false;
    text += length;
    if (*text == '\0') break;
  }
  if (cpu_knobs.device == NULL) return !cpu_knobs.timing;
  if (cpu_knobs.neo_22_43) return false;
  if (cpu_knobs.build == NULL) cpu_knobs.build = &builds[NEWEST];
  cpu_knobs.groups = *cpu_knobs.device->groups;
  cpu_knobs.memory = cpu_knobs.device->memory;
  cpu_knobs.timestamp_bits = cpu_knobs.device->timestamp_bits;
  cpu_knobs.timestamp_hz = cpu_knobs.device->timestamp_hz;
  return true;
}
