/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h: one launch of a kernel: all that it takes, as it was when it was appended. */
#ifndef L0RT_CPU_LAUNCH_H
#define L0RT_CPU_LAUNCH_H

#include "memory/bounds.h"
#include "modules/kernel.h"

typedef struct cpu_launch {
  _Atomic uint32_t holds; /* commands, recorded and submitted */
  size_t bytes;           /* of its memory */
  cpu_bounds_time time; /* when it was submitted, with L0RT_CPU_BOUNDS */
  cpu_programs *programs; /* held */
  const spirv_kernel *kernel;
  uint32_t group_size[3];
  uint32_t group_count[3];
  uint64_t offset[3];
  const ze_group_count_t *counts; /* in memory: read when the launch starts; NULL: `group_count` */
  const uint32_t *number;         /* in memory, of several launches: only those of a lower index run; NULL: all */
  uint32_t index;
  const cpu_context *context;
  ze_kernel_indirect_access_flags_t access; /* kinds of memory that it may reach by pointers in memory */
  bool cooperative;
  uint64_t awaited; /* what a launch whose kernel was changed is still to be given: arguments, and those below */
  uint32_t argument_count;
  uint32_t values_size;
  const void **arguments; /* point into its own memory */
  uint64_t *local_sizes;
  const spirv_argument *kinds;
} cpu_launch;

/* Bits of `awaited` above those of the arguments; of arguments beyond those none is awaited. */
#define CPU_AWAITS_COUNT (UINT64_C(1) << 63)
#define CPU_AWAITS_SIZE (UINT64_C(1) << 62)
enum { CPU_AWAITED_ARGUMENTS = 62 };

/* A copy of what the kernel is set to, or of another launch, held by the caller; NULL without memory. */
cpu_launch *cpu_launch_new(const cpu_kernel *kernel);
cpu_launch *cpu_launch_copy(const cpu_launch *launch);
static inline void cpu_launch_hold(cpu_launch *launch) { atomic_fetch_add(&launch->holds, 1); }
void cpu_launch_let_go(cpu_launch *launch);

/* More groups than a cooperative launch may have? */
static inline bool cpu_launch_has_too_many_groups(const uint32_t counts[3]) {
  uint64_t groups = (uint64_t)counts[0] * counts[1];
  return groups > SPIRV_MAX_COOPERATIVE_GROUPS || groups * counts[2] > SPIRV_MAX_COOPERATIVE_GROUPS;
}

/* Runs all its groups; false after an error, which cpu_failure_kept names for this thread. One that was cancelled is no
 * error. */
bool cpu_launch_run(cpu_launch *launch, atomic_bool *cancel);

/* Is its memory, as far as commands name it, still there? */
ze_result_t cpu_launch_memory(const cpu_launch *launch);

/* Does an argument point to any byte from `low` up to `high`, does it read its counts there, or is that memory of a kind
 * that its kernel may reach indirectly? */
bool cpu_launch_touches(const cpu_launch *launch, uintptr_t low, uintptr_t high);

/* Looks for what its arguments point to among what is mapped. */
ze_result_t cpu_launch_walk(const cpu_launch *launch);

/* Ends the threads that launches share. */
void cpu_launches_end(void);

#endif
