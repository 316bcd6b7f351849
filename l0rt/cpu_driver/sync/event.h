/* SPDX-License-Identifier: Apache-2.0 */
/* event.h: events and the pools that they come from. */
#ifndef L0RT_CPU_EVENT_H
#define L0RT_CPU_EVENT_H

#include "base/context.h"
#include "sync/latch.h"

/* What there is to know of an event; in memory that processes share, if its pool is for that. */
typedef struct {
  cpu_latch latch;
  _Atomic uint64_t start; /* host time of the command that signalled it; for timestamp events only */
  _Atomic uint64_t end;
} cpu_event_state;

typedef struct {
  cpu_object base;
  cpu_context *context; /* held */
  ze_event_pool_flags_t flags;
  uint32_t count;
  _Atomic uint32_t events; /* alive: the pool can't be destroyed before them */
  cpu_event_state *shared; /* one for each index, in a file, or NULL */
  int file;
  bool imported; /* another process has made it */
  ze_event_counter_based_flags_t counter_flags; /* 0: its events are not counter-based */
} cpu_event_pool;

/* A counter-based event is signalled again and again, and who waits for it waits for the last signal appended before.
 * So each signal is an event of its own, a point, that lives as long as anybody names it; the event names the last. */
typedef struct cpu_event {
  cpu_object base;
  cpu_event_pool *pool;    /* borrowed: see `events`; NULL for a point, and for one made without a pool, */
  cpu_context *context;    /* which holds its context */
  const cpu_device *device; /* of a point: whose engine signals it */
  struct cpu_event *point; /* counter-based: the last signal appended, or NULL: that counts as set */
  cpu_event_state *state; /* `own`, or its place in the pool's shared memory */
  cpu_event_state own;
  struct cpu_fifo *_Atomic waiters; /* fifos that wait for it: the thread that sets it wakes them */
  /* the same for an event shared with other processes: the process that sets it wakes the others */
  _Atomic uint32_t watched;
  _Atomic uint32_t askers; /* threads that query or wait, for CPU_QUIRK_RACING_QUERIES */
  _Atomic uint32_t users;   /* commands submitted and not complete that name it; of a point, its event too */
  ze_event_scope_flags_t signal_scope;
  ze_event_scope_flags_t wait_scope;
  ze_event_counter_based_flags_t counter_flags; /* where it may be used; 0: it is not counter-based */
  bool timed;
  uint32_t node; /* of the last signal that was recorded into a graph: its node there, */
  void *graph;   /* the graph, which may be gone, */
  uint64_t session; /* and the capture; see capture.c */
} cpu_event;

static inline cpu_event *cpu_event_cast(ze_event_handle_t handle) { return cpu_cast(handle, CPU_EVENT); }

static inline bool cpu_event_is_point(const cpu_event *event) { return cpu_cast(event, CPU_POINT) != NULL; }
static inline bool cpu_event_is_counter_based(const cpu_event *event) { return event->counter_flags != 0; }

static inline const cpu_context *cpu_event_context(const cpu_event *event) {
  return event->pool != NULL ? event->pool->context : event->context;
}

/* A new event, set up but for its pool or context; NULL without memory. */
cpu_event *cpu_event_new(ze_event_scope_flags_t signal, ze_event_scope_flags_t wait, bool timed,
                         ze_event_counter_based_flags_t counter_flags);

/* The event to wait for: itself, or its last point, or NULL when nothing is to be waited for. */
cpu_event *cpu_event_take(cpu_event *event);

/* One hold on an event ends; with the last one, a point ends too. */
void cpu_event_let_go(cpu_event *event);

/* Ends what cpu_event_take began. */
static inline void cpu_event_put_back(cpu_event *event) {
  if (event != NULL && cpu_event_is_point(event)) cpu_event_let_go(event);
}

/* A point to be signalled (of no event: NULL), held by the caller; once its command is appended, the event's last. */
cpu_event *cpu_event_new_point(cpu_event *event);
void cpu_event_set_point(cpu_event *event, cpu_event *point);

/* Reads a shared event for an engine that is about to sleep on it. */
bool cpu_event_watch(cpu_event *event);

/* Hands the fifos that wait for it to their engines, which are to be rung for then: were there any? lists/engine.c does
 * it. */
bool cpu_event_stir(cpu_event *event);

/* Sets the event; wakes nobody. The answer says who is to be woken, by cpu_event_wake, once no lock is held:
 * it may be called when the event is already gone. */
typedef struct {
  bool sleepers;
  bool watchers;
} cpu_event_wakes;
cpu_event_wakes cpu_event_raise(cpu_event *event);
void cpu_event_wake(cpu_event *event, cpu_event_wakes wakes);

/* Was it last signalled by a list in capture mode, and does `internal` ask for an event that no other list may use?
 * graphs/capture.c answers. */
bool cpu_event_is_captured(const cpu_event *event, bool internal);

/* What zeEventQueryKernelTimestamp says of it. */
ze_kernel_timestamp_result_t cpu_event_timestamps(cpu_event *event);

#endif
