/* event.h: events and the pools that they come from. */
#ifndef L0RT_CPU_EVENT_H
#define L0RT_CPU_EVENT_H

#include "context.h"
#include "latch.h"

typedef struct {
  cpu_object base;
  cpu_context *context; /* borrowed: a context with pools can't be destroyed */
  ze_event_pool_flags_t flags;
  uint32_t count;
  _Atomic uint32_t events; /* alive: the pool can't be destroyed before them */
} cpu_event_pool;

typedef struct {
  cpu_object base;
  cpu_event_pool *pool; /* borrowed: see `events` */
  cpu_latch latch;
  _Atomic uint32_t watched; /* an engine has found it unset and sleeps: whoever sets it rings */
  _Atomic uint32_t users;   /* commands submitted and not complete that name it */
  _Atomic uint64_t start;   /* host time of the command that signalled it; for timestamp events only */
  _Atomic uint64_t end;
  ze_event_scope_flags_t signal_scope;
  ze_event_scope_flags_t wait_scope;
  bool timed;
} cpu_event;

static inline cpu_event *cpu_event_cast(ze_event_handle_t handle) { return cpu_cast(handle, CPU_EVENT); }

/* Reads the event for an engine that is about to sleep on it. */
bool cpu_event_watch(cpu_event *event);

/* Sets the event; wakes nobody. The answer says who is to be woken, by cpu_event_wake, once no lock is held:
 * it may be called when the event is already gone. */
typedef struct {
  bool sleepers;
  bool watchers;
} cpu_event_wakes;
cpu_event_wakes cpu_event_raise(cpu_event *event);
void cpu_event_wake(cpu_event *event, cpu_event_wakes wakes);

/* What zeEventQueryKernelTimestamp says of it. */
ze_kernel_timestamp_result_t cpu_event_timestamps(cpu_event *event);

#endif
