/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: the plain device's queue groups, and those of the device that is simulated. */
#include "base/group.h"

#include "base/knobs.h"

static const cpu_groups plain = {
    {2, CPU_GROUP_COMPUTES, CPU_PATTERN}, /* two: lists that do not depend on each other run at once */
    {1, CPU_GROUP_COPIES, 16},
};

const cpu_group *cpu_device_groups(void) { return cpu_knobs.groups != NULL ? cpu_knobs.groups : plain; }

uint32_t cpu_group_count(void) {
  const cpu_group *groups = cpu_device_groups();
  uint32_t count = 0;
  while (count < CPU_GROUPS_MAX && groups[count].queues != 0) count++;
  return count;
}

uint32_t cpu_group_queues(uint32_t ordinal) {
  return ordinal < CPU_GROUPS_MAX ? cpu_device_groups()[ordinal].queues : 0;
}

bool cpu_group_computes(uint32_t ordinal) {
  return (cpu_device_groups()[ordinal].flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE) != 0;
}
