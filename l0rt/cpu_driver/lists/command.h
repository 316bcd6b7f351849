/* SPDX-License-Identifier: Apache-2.0 */
/* command.h: one command of a list: what to do, what to wait for, what to signal. */
#ifndef L0RT_CPU_COMMAND_H
#define L0RT_CPU_COMMAND_H

#include <stddef.h>

#include "base/group.h"
#include "sync/event.h"
#include "sync/fence.h"

/* Longer wait lists become several commands: starts are in order, so the meaning is the same. */
enum { CPU_WAITS = 12, CPU_LINE = 64 };

typedef enum {
  CPU_OP_NONE, /* barriers, waits, signals */
  CPU_OP_COPY,
  CPU_OP_FILL,
  CPU_OP_REGION,
  CPU_OP_CLOCK,
  CPU_OP_QUERY,
  CPU_OP_RESET,
  CPU_OP_CALL,
  CPU_OP_LAUNCH,
} cpu_op;

/* Each line of the cache that the host writes has to be fetched from the engine's core, and back. So what every command
 * has, and a launch as a whole, is one line, and what few use is behind. */
typedef struct cpu_command {
  struct cpu_command *next;
  uint64_t sequence; /* its number in its fifo, from 1 */
  uint64_t stamp;    /* the same in its engine */
  uint64_t blamed;   /* the fifo whose waits tell of a failed launch; 0: its own */
  cpu_event *signal;
  cpu_fence *fence;
  uint8_t wait_count;
  uint8_t waits_met; /* those before this one have been seen set */
  uint8_t op;
  bool barrier; /* starts when all earlier ones of its fifo are complete */
  bool hangs;
  bool failed;  /* a launch, when it has run */
  bool unnamed; /* what it signals is known to no program */
  atomic_bool cancel; /* a launch: another thread wants it to end */
  union {
    struct {
      void *target;
      const void *source;
      size_t size;
    } copy;
    struct {
      void *target;
      size_t size;
      size_t pattern_size;
      uint8_t pattern[CPU_PATTERN];
    } fill;
    struct {
      char *target;
      const char *source;
      size_t width, height, depth;
      size_t target_pitch, target_slice, source_pitch, source_slice;
    } region;
    struct {
      uint64_t *target;
    } clock;
    struct {
      void *target;
      cpu_event *event;
    } query;
    struct {
      cpu_event *event;
    } reset;
    struct {
      ze_host_function_callback_t function;
      void *data;
    } call;
    struct {
      struct cpu_launch *launch; /* held */
    } launch;
  };
  uint64_t due;   /* the engine's: when it completes, of those that fly; host time, CPU_NEVER if it hangs */
  uint64_t start; /* the engine's: if its signal is timed */
  cpu_event *waits[CPU_WAITS];
} cpu_command;

_Static_assert(offsetof(cpu_command, launch) + sizeof(void *) == CPU_LINE, "a launch must be one line");
_Static_assert(sizeof(cpu_command) % CPU_LINE == 0, "commands beside each other must begin lines");

/* Copies what its kind of command has: the rest of the target stays as it was. */
void cpu_command_copy(cpu_command *target, const cpu_command *source);

/* Does it neither wait for events nor signal one? */
static inline bool cpu_command_is_alone(const cpu_command *command) {
  return command->signal == NULL && command->wait_count == 0;
}

/* Does the work; waits and signals are the engine's. */
void cpu_command_run(cpu_command *command);

/* Takes and drops the command's hold on its events and launch. */
void cpu_command_hold(const cpu_command *command);
void cpu_command_release(const cpu_command *command);

/* Are all its events alive? Asked again when a closed list is executed. */
bool cpu_command_valid(const cpu_command *command);

/* Is all its memory there? Asked again then, too: it may have been freed or unmapped meanwhile. */
ze_result_t cpu_command_memory(const cpu_command *command);

/* With the defect `racing_maps`: look for its memory among what is mapped. */
ze_result_t cpu_command_walk(const cpu_command *command);

/* Does it read or write any byte from `low` up to `high`? */
bool cpu_command_touches(const cpu_command *command, uintptr_t low, uintptr_t high);

#endif
