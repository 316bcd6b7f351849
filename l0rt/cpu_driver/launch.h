/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h: one launch of a kernel: all that it takes, as it was when it was appended. */
#ifndef L0RT_CPU_LAUNCH_H
#define L0RT_CPU_LAUNCH_H

#include "kernel.h"

typedef struct cpu_launch {
  _Atomic uint32_t holds; /* commands, recorded and submitted */
  cpu_programs *programs; /* held */
  const spirv_kernel *kernel;
  uint32_t group_size[3];
  uint32_t group_count[3];
  uint64_t offset[3];
  const ze_group_count_t *counts; /* in memory: read when the launch starts; NULL: `group_count` */
  const uint32_t *number;         /* in memory, of several launches: only those of a lower index run; NULL: all */
  uint32_t index;
  bool cooperative;
  uint32_t argument_count;
  const void **arguments;
  uint64_t *local_sizes;
  const spirv_argument *kinds;
} cpu_launch;

/* A copy of what the kernel is set to, held by the caller; NULL without memory. */
cpu_launch *cpu_launch_new(const cpu_kernel *kernel);
static inline void cpu_launch_hold(cpu_launch *launch) { atomic_fetch_add(&launch->holds, 1); }
void cpu_launch_let_go(cpu_launch *launch);

/* Runs all its groups; false after an error, which cpu_launch_error names for this thread. One that was cancelled is no
 * error. */
bool cpu_launch_run(cpu_launch *launch, atomic_int *cancel);
const char *cpu_launch_error(void);

/* Is its memory, as far as commands name it, still there? */
ze_result_t cpu_launch_memory(const cpu_launch *launch);

/* Does an argument point to any byte from `low` up to `high`, or does it read its counts there? */
bool cpu_launch_touches(const cpu_launch *launch, uintptr_t low, uintptr_t high);

/* Ends the threads that launches share. */
void cpu_launches_end(void);

#endif
