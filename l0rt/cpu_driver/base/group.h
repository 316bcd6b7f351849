/* SPDX-License-Identifier: Apache-2.0 */
/* group.h: the queue groups of a device: how many hardware queues of each kind there are, and what they do. */
#ifndef L0RT_CPU_GROUP_H
#define L0RT_CPU_GROUP_H

#include "base/object.h"

enum { CPU_GROUPS_MAX = 3, CPU_QUEUES_MAX = 7 };

enum {
  CPU_GROUP_COPIES = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY,
  CPU_GROUP_COMPUTES = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY |
      ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS,
  CPU_PATTERN = 128, /* bytes: what a command holds at the most */
};

typedef struct cpu_group {
  uint32_t queues; /* 0: there is no such group */
  ze_command_queue_group_property_flags_t flags;
  size_t pattern; /* the longest that a fill takes */
} cpu_group;

/* The groups of a device; a group's place is its ordinal. */
typedef cpu_group cpu_groups[CPU_GROUPS_MAX];

/* What the driver's devices have, simulated or not. */
const cpu_group *cpu_device_groups(void);

/* How many groups there are; how many queues a group has, 0 past the last one. */
uint32_t cpu_group_count(void);
uint32_t cpu_group_queues(uint32_t ordinal);

/* Does the group launch kernels, or only copy? */
bool cpu_group_computes(uint32_t ordinal);

#endif
