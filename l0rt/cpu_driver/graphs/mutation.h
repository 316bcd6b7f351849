/* SPDX-License-Identifier: Apache-2.0 */
/* mutation.h: mutable command lists: which of a list's commands have an identifier, and what of them may be changed. */
#ifndef L0RT_CPU_MUTATION_H
#define L0RT_CPU_MUTATION_H

#include <pthread.h>

#include "lists/list.h"

enum {
  CPU_MUTABLE_BY_DEFAULT = ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT |
      ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE | ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET |
      ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT | ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS,
  CPU_MUTABLE = CPU_MUTABLE_BY_DEFAULT | ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION,
};

/* One identifier. */
typedef struct {
  uint32_t flags;
  uint32_t first, last; /* its commands among the list's: those before the last one only wait */
  uint32_t wait_count;
  uint32_t kernel_count;
  ze_kernel_handle_t *kernels; /* those that may take each other's place; owned */
  uint32_t *traits; /* of the signal, then of each wait: what another event must have too; owned */
  struct cpu_launch *draft; /* the launch as an update under way would have it */
} cpu_mutation;

typedef struct cpu_mutations {
  pthread_mutex_t lock; /* identifiers may be asked for by several threads at once */
  uint64_t base; /* the identifier of the first one: none is used twice, not after a reset either */
  uint32_t bound; /* those before this one have their command; the others wait for the next */
  uint32_t count, capacity;
  uint32_t awaiting; /* launches that are still to be given something after a change of their kernel */
  bool updated; /* since the list was closed: it is to be closed again */
  cpu_mutation *items;
} cpu_mutations;

cpu_mutations *cpu_mutations_new(void);
void cpu_mutations_free(cpu_mutations *mutations);

/* Forgets all identifiers. */
void cpu_mutations_reset(cpu_mutations *mutations);

/* The same identifiers for a clone; NULL without memory. */
cpu_mutations *cpu_mutations_copy(const cpu_mutations *mutations);

/* A new identifier of the next command, which may have these kernels. */
ze_result_t cpu_mutations_next(cpu_mutations *mutations, uint32_t flags, uint32_t kernel_count,
                               ze_kernel_handle_t *kernels, uint64_t *id);

/* Does the next command have an identifier? */
bool cpu_mutations_wait(cpu_mutations *mutations);

/* Gives the command that is about to be recorded to the identifiers that wait for it. */
ze_result_t cpu_mutations_bind(cpu_list *list, const cpu_command *command, ze_event_handle_t signal,
                               uint32_t wait_count, ze_event_handle_t *waits);

/* The identifier's command, if it has one. */
cpu_mutation *cpu_mutations_find(const cpu_list *list, uint64_t id);

/* What two events must have in common for one to take the other's place. */
uint32_t cpu_event_traits(const cpu_event *event);

#endif
