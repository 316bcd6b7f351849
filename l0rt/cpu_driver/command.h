/* SPDX-License-Identifier: Apache-2.0 */
/* command.h: one command of a list: what to do, what to wait for, what to signal. */
#ifndef L0RT_CPU_COMMAND_H
#define L0RT_CPU_COMMAND_H

#include "event.h"
#include "fence.h"

/* Longer wait lists become several commands: starts are in order, so the meaning is the same. */
enum { CPU_WAITS = 8, CPU_PATTERN = 128 };

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

typedef struct cpu_command {
  struct cpu_command *next;
  uint64_t sequence; /* its number in its fifo, from 1 */
  uint64_t stamp;    /* the same in its engine */
  uint64_t due;      /* when it completes, for those that fly; host time, CPU_NEVER if it hangs */
  uint64_t start;
  uint64_t blamed; /* the fifo whose waits tell of a failed launch; 0: its own */
  cpu_event *signal;
  cpu_fence *fence;
  cpu_event *waits[CPU_WAITS];
  uint8_t wait_count;
  uint8_t waits_met; /* those before this one have been seen set */
  uint8_t op;
  bool barrier; /* starts when all earlier ones of its fifo are complete */
  bool hangs;
  bool failed; /* a launch, when it has run */
  bool unnamed; /* what it signals is known to no program */
  atomic_int cancel; /* a launch: another thread wants it to end */
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
} cpu_command;

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
