/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h: engines, and the fifos of commands that they work off.
 *
 * A fifo holds commands in their order: those of an immediate list or of a queue. An engine is one hardware queue: a
 * thread that goes round its fifos and takes from each the commands that may start, so that a fifo which waits for an
 * event never holds up the fifo that will signal it. Fifos of a higher priority come first: one of a lower gets its turn
 * when none of them has a command that may start. */
#ifndef L0RT_CPU_ENGINE_H
#define L0RT_CPU_ENGINE_H

#include <pthread.h>

#include "lists/command.h"
#include "lists/work.h"

typedef struct cpu_fifo {
  struct cpu_engine *engine;
  struct cpu_fifo *next, *previous; /* the ring of its engine that it is in; NULL while it has no work */
  struct cpu_fifo *waiting;         /* blocked: the next one of those that wait for the same event, or were stirred */
  cpu_command *head, *tail;         /* not started, oldest first */
  cpu_command *flying;              /* started, not complete */
  uint64_t submitted;
  _Atomic uint64_t finished; /* commands up to this number are complete */
  _Atomic uint32_t beat;     /* counts up with `finished`; hosts sleep on it */
  _Atomic uint32_t sleepers;
  uint64_t serial; /* no two fifos ever have the same */
  uint64_t random;
  const cpu_context *context; /* the context of its list or queue */
  uint8_t urgency;            /* which of the engine's rings it is in: 0 is served first */
  bool in_order;
} cpu_fifo;

enum { CPU_URGENCIES = 3 };

typedef struct cpu_engine {
  pthread_mutex_t lock; /* guards everything of its fifos that is not atomic */
  cpu_fifo *fifos[CPU_URGENCIES]; /* any one of the ring of those with work, high priority, normal, low */
  cpu_fifo *blocked;    /* the same of those that wait for an event of this process: not looked at before it is set */
  cpu_device *device;
  cpu_command *running;
  cpu_fifo *serving; /* whose it is */
  const void *_Atomic last_list; /* that something was appended to */
  uint64_t pushed; /* commands, into any of its fifos */
  cpu_command *spare;
  struct cpu_chunk *chunks;
  _Atomic uint32_t wakeups; /* counts up when there may be something to do */
  _Atomic uint32_t asleep;
  cpu_fifo *_Atomic stirred; /* those of the blocked ones whose event was set */
  _Atomic uint32_t news;     /* something was pushed since the last ring for that */
  _Atomic bool started;
  _Atomic uint64_t bytes_read, bytes_written; /* by its copies and fills */
  pthread_t thread;
  struct cpu_engine *next; /* all engines; never shrinks before the end */
} cpu_engine;

/* The engine of a queue of a device, or NULL without memory. Its thread starts with its first command. */
cpu_engine *cpu_engine_get(cpu_device *device, uint32_t ordinal, uint32_t index);

void cpu_engine_ring(cpu_engine *engine); /* if there is news */

/* How many commands the engine was given so far; are those up to a number complete, in whatever fifos they are? */
uint64_t cpu_engine_last(cpu_engine *engine);
bool cpu_engine_reached(cpu_engine *engine, uint64_t stamp);

/* Puts a fifo into a ring as its last one. */
void cpu_ring_enter(cpu_fifo **ring, cpu_fifo *fifo);

/* If a launch of the fifo is running, one of these numbers, asks it to end at once, and those behind it too, and waits a
 * moment for that: are all up to the last one complete? */
bool cpu_fifo_stop(cpu_fifo *fifo, uint64_t first, uint64_t last);

/* Stops all threads; what has not started never will. */
void cpu_engines_stop(void);

/* What the engines of a device have done: nanoseconds in which the busiest of them ran, and bytes; does one run now? */
typedef struct {
  uint64_t active_ns, bytes_read, bytes_written;
  bool is_running;
} cpu_activity;
cpu_activity cpu_engines_activity(const cpu_device *device);

void cpu_fifo_init(cpu_fifo *fifo, cpu_engine *engine, const cpu_context *context, ze_command_queue_priority_t priority,
                   bool in_order);

/* Puts a copy of the command at the fifo's end; the engine hears of it with the next ring. */
ze_result_t cpu_fifo_push(cpu_fifo *fifo, const cpu_command *command);

/* The same of commands so many bytes apart, whose failures are told to the waits of a fifo. */
ze_result_t cpu_fifo_push_run(cpu_fifo *fifo, const cpu_command *first, size_t stride, uint32_t count, uint64_t blamed);

/* With the engine's lock held: completes a fifo's only command at once if it touches no memory and waits for nothing.
 * A signal, a barrier or a reset that stands behind nothing costs no thread's wakening; what moves data never runs in
 * the program's own thread. */
bool cpu_fifo_settle(cpu_fifo *fifo);

/* The number of the last command pushed; are all up to a number complete? Both see the end of a command whose event
 * has been seen set: the engine does the two under its lock. */
uint64_t cpu_fifo_last(cpu_fifo *fifo);
bool cpu_fifo_reached(cpu_fifo *fifo, uint64_t sequence);

/* Waits for all commands that were pushed so far: SUCCESS, NOT_READY, or the error of a failed launch that no wait has
 * returned yet. */
ze_result_t cpu_fifo_wait(cpu_fifo *fifo, uint64_t timeout);

/* The same of those up to a number. */
ze_result_t cpu_fifo_wait_to(cpu_fifo *fifo, uint64_t last, uint64_t timeout);

#endif
