/* engine.c: the engine threads: which command starts when, and what its end sets off.
 *
 * Normally a command completes as soon as it has started. With L0RT_CPU_CHAOS it flies for a random while first, and
 * others of its lane overtake it wherever the specification lets them: a dependency that nobody stated then shows up
 * as wrong data. */
#include "engine.h"

#include <signal.h>
#include <stdlib.h>

#include "gate.h"
#include "invariant.h"
#include "knobs.h"

enum { POLL = 50000 }; /* nanoseconds */
enum { SPINS = 30 }; /* a microsecond; where cores are few, longer only keeps the host from its work */

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static cpu_engine *_Atomic engines;
static _Atomic bool stopping;

/* Have the events that it waits for been set? Those found set once need not stay so. Another process rings no bell
 * here, so its events are looked at again and again. */
static bool waits_met(cpu_command *c, uint64_t *wake) {
  while (c->waits_met < c->wait_count) {
    cpu_event *event = c->waits[c->waits_met];
    bool own = event->state == &event->own;
    if (own ? !cpu_latch_is_set(&event->state->latch) : !cpu_event_watch(event)) {
      uint64_t again = own ? CPU_NEVER : cpu_wait_ns() + POLL;
      if (again < *wake) *wake = again;
      return false;
    }
    c->waits_met++;
  }
  return true;
}

/* How long a command flies under chaos: half of them not at all, the others up to a fifth of a millisecond. */
static uint64_t flight(cpu_lane *lane) {
  if (!cpu_knobs.chaos) return 0;
  lane->random ^= lane->random << 13;
  lane->random ^= lane->random >> 7;
  lane->random ^= lane->random << 17;
  return lane->random & 1 ? (lane->random >> 8) % 200000 + 1 : 0;
}

/* The flying command whose time has come, if any; `wake` becomes the time of the next one. */
static cpu_command *landing(cpu_lane *lane, uint64_t *wake) {
  if (lane->flying == NULL) return NULL;
  uint64_t now = cpu_wait_ns();
  cpu_command **first = NULL;
  for (cpu_command **c = &lane->flying; *c != NULL; c = &(*c)->next)
    if (first == NULL || (*c)->due < (*first)->due) first = c;
  cpu_command *command = *first;
  if (command->due > now) {
    if (command->due < *wake) *wake = command->due;
    return NULL;
  }
  *first = command->next;
  return command;
}

/* The next command of a lane that can be run now, taken out of it; starts all that may start. */
static cpu_command *take(cpu_lane *lane, uint64_t *wake) {
  cpu_command *command;
  while ((command = lane->head) != NULL) {
    if (lane->flying != NULL && (lane->in_order || command->barrier)) break;
    if (!waits_met(command, wake)) break;
    lane->head = command->next;
    if (lane->head == NULL) lane->tail = NULL;
    if (command->signal != NULL && command->signal->timed) command->start = cpu_host_ns();
    uint64_t delay = command->hangs ? CPU_NEVER : flight(lane);
    if (delay == 0) return command;
    command->due = delay == CPU_NEVER ? CPU_NEVER : cpu_wait_ns() + delay;
    command->next = lane->flying;
    lane->flying = command;
  }
  return landing(lane, wake);
}

void cpu_ring_enter(cpu_lane **ring, cpu_lane *lane) {
  if (*ring == NULL) {
    *ring = lane->next = lane->previous = lane;
    return;
  }
  lane->next = *ring;
  lane->previous = (*ring)->previous;
  lane->previous->next = lane->next->previous = lane;
}

/* Puts a lane on a stack that others take from as a whole. */
static void push(cpu_lane *_Atomic *stack, cpu_lane *lane) {
  lane->waiting = atomic_load(stack);
  while (!atomic_compare_exchange_weak(stack, &lane->waiting, lane)) continue;
}

static void leave(cpu_lane **ring, cpu_lane *lane) {
  CPU_INVARIANT(lane->next != NULL && lane->previous != NULL);
  if (*ring == lane) *ring = lane->next == lane ? NULL : lane->next;
  lane->next->previous = lane->previous;
  lane->previous->next = lane->next;
  lane->next = lane->previous = NULL;
}

/* Lets the lanes go on that were stirred. */
static void unblock(cpu_engine *engine) {
  cpu_lane *lane = atomic_exchange(&engine->stirred, NULL);
  while (lane != NULL) {
    cpu_lane *next = lane->waiting;
    leave(&engine->blocked, lane);
    cpu_ring_enter(&engine->lanes, lane);
    lane = next;
  }
}

bool cpu_event_stir(cpu_event *event) {
  if (atomic_load(&event->waiters) == NULL) return false;
  cpu_lane *lane = atomic_exchange(&event->waiters, NULL);
  while (lane != NULL) {
    cpu_lane *next = lane->waiting;
    push(&lane->engine->stirred, lane);
    lane = next;
  }
  return true;
}

/* What alone holds the lane up, if that is an event of this process. */
static cpu_event *holder(const cpu_lane *lane) {
  const cpu_command *c = lane->head;
  if (c == NULL || lane->flying != NULL || c->waits_met == c->wait_count) return NULL;
  cpu_event *event = c->waits[c->waits_met];
  return event->state == &event->own ? event : NULL;
}

/* Puts the lane aside until somebody sets the event. It is announced before it looks for the last time, and whoever
 * sets the event looks for announcements after that: so one of the two sees the other. */
static void block(cpu_engine *engine, cpu_lane *lane, cpu_event *event) {
  leave(&engine->lanes, lane);
  cpu_ring_enter(&engine->blocked, lane);
  push(&event->waiters, lane);
  if (atomic_load(&event->state->latch.set) != 0 && cpu_event_stir(event)) cpu_engines_ring();
}

/* Exactly the lanes with something to do are in the rings; one may have just what is running. */
static bool ring_is_whole(const cpu_engine *engine, const cpu_lane *lane) {
  if (lane == NULL) return true;
  const cpu_lane *first = lane;
  bool may_be_empty = engine->running != NULL;
  do {
    bool empty = lane->head == NULL && lane->flying == NULL;
    if (lane->engine != engine || lane->next->previous != lane || (empty && !may_be_empty)) return false;
    may_be_empty = may_be_empty && !empty;
    lane = lane->next;
  } while (lane != first);
  return true;
}

static uint64_t oldest(const cpu_lane *lane) {
  uint64_t sequence = lane->head != NULL ? lane->head->sequence : lane->submitted + 1;
  for (const cpu_command *c = lane->flying; c != NULL; c = c->next)
    if (c->sequence < sequence) sequence = c->sequence;
  return sequence;
}

/* The command is done. Whoever sees its event set may destroy the event at once, and whoever sees the lane finished
 * may destroy all; so the event is let go of before it is set, and the lane is told last. Called and left with the
 * lock held; sleepers are woken without it. */
static void complete(cpu_engine *engine, cpu_lane *lane, cpu_command *command) {
  cpu_event *event = command->signal;
  cpu_fence *fence = command->fence;
  cpu_event_wakes wakes = {false, false};
  bool fence_sleepers = false, point = event != NULL && cpu_event_is_point(event);
  cpu_command_release(command);
  if (event != NULL) {
    if (event->timed) {
      atomic_store_explicit(&event->state->start, command->start, memory_order_relaxed);
      atomic_store_explicit(&event->state->end, cpu_host_ns(), memory_order_relaxed);
    }
    wakes = cpu_event_raise(event);
    if (point) cpu_event_let_go(event);
  }
  if (fence != NULL) {
    atomic_fetch_sub(&fence->users, 1);
    fence_sleepers = cpu_latch_raise(&fence->latch);
  }
  command->next = engine->spare;
  engine->spare = command;
  if (lane->head == NULL && lane->flying == NULL) leave(&engine->lanes, lane);
  CPU_INVARIANT_WALK(ring_is_whole(engine, engine->lanes));
  CPU_INVARIANT(oldest(lane) > atomic_load(&lane->finished) && oldest(lane) <= lane->submitted + 1);
  atomic_store(&lane->finished, oldest(lane) - 1);
  atomic_fetch_add(&lane->beat, 1);
  bool lane_sleepers = atomic_load(&lane->sleepers) != 0;
  if (!wakes.sleepers && !wakes.watchers && !fence_sleepers && !lane_sleepers) return;
  pthread_mutex_unlock(&engine->lock);
  if (event != NULL) cpu_event_wake(event, wakes);
  if (fence_sleepers) cpu_futex_wake(&fence->latch.set);
  if (lane_sleepers) cpu_futex_wake(&lane->beat);
  pthread_mutex_lock(&engine->lock);
}

bool cpu_lane_settle(cpu_lane *lane) {
  cpu_command *command = lane->head;
  if (command != lane->tail || lane->flying != NULL || command->hangs || cpu_knobs.chaos) return false;
  if (command->op != CPU_OP_NONE && command->op != CPU_OP_RESET) return false;
  for (unsigned i = 0; i < command->wait_count; i++)
    if (!cpu_latch_is_set(&command->waits[i]->state->latch)) return false;
  lane->head = lane->tail = NULL;
  if (command->signal != NULL && command->signal->timed) command->start = cpu_host_ns();
  cpu_command_run(command);
  complete(lane->engine, lane, command);
  return true;
}

/* One command of one lane, beginning with the lane after the last one served. False: nothing can run now. */
static bool serve(cpu_engine *engine, uint64_t *wake) {
  cpu_lane *lane = engine->lanes;
  if (lane == NULL) return false;
  for (cpu_lane *last = lane->previous, *next;; lane = next) {
    next = lane->next;
    cpu_command *command = take(lane, wake);
    if (command != NULL) {
      engine->lanes = next;
      engine->running = command;
      if (command->op != CPU_OP_NONE) {
        pthread_mutex_unlock(&engine->lock);
        cpu_command_run(command);
        pthread_mutex_lock(&engine->lock);
      }
      engine->running = NULL;
      complete(engine, lane, command);
      return true;
    }
    bool done = lane == last;
    cpu_event *event = holder(lane);
    if (event != NULL) block(engine, lane, event);
    if (done) return false;
  }
}

static void sleep_on_bell(cpu_engine *engine, uint32_t heard, uint64_t wake) {
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(&engine->bell, memory_order_relaxed) != heard) return;
    cpu_pause();
  }
  atomic_store(&engine->asleep, 1);
  if (atomic_load(&engine->bell) == heard) cpu_futex_wait(&engine->bell, heard, wake);
  atomic_store(&engine->asleep, 0);
}

static void *work(void *argument) {
  cpu_engine *engine = argument;
  pthread_mutex_lock(&engine->lock);
  while (!atomic_load(&stopping)) {
    uint32_t heard = atomic_load(&engine->bell); /* before looking: what comes later rings again */
    uint64_t wake = CPU_NEVER;
    if (atomic_load(&engine->stirred) != NULL) {
      CPU_INVARIANT_WALK(ring_is_whole(engine, engine->blocked));
      unblock(engine);
    }
    if (serve(engine, &wake)) continue;
    pthread_mutex_unlock(&engine->lock);
    sleep_on_bell(engine, heard, wake);
    pthread_mutex_lock(&engine->lock);
  }
  pthread_mutex_unlock(&engine->lock);
  return NULL;
}

/* Starts the thread; signals are the program's own business, so the engine takes none. */
static bool start(cpu_engine *engine) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool good = pthread_create(&engine->thread, NULL, work, engine) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return good;
}

cpu_engine *cpu_engine_get(cpu_device *device, uint32_t ordinal, uint32_t index) {
  cpu_engine *_Atomic *place = &device->engines[ordinal][index];
  cpu_engine *engine = atomic_load(place);
  if (engine != NULL) return engine;
  pthread_mutex_lock(&making);
  engine = atomic_load(place);
  if (engine == NULL && (engine = calloc(1, sizeof(*engine))) != NULL) {
    pthread_mutex_init(&engine->lock, NULL);
    engine->next = atomic_load(&engines);
    atomic_store(&engines, engine);
    atomic_store(place, engine);
  }
  pthread_mutex_unlock(&making);
  return engine;
}

void cpu_engine_ring(cpu_engine *engine) {
  if (atomic_exchange(&engine->news, 0) == 0) return; /* or another host's ring has told of it */
  atomic_fetch_add(&engine->bell, 1);
  if (atomic_load(&engine->asleep)) cpu_futex_wake(&engine->bell);
  if (CPU_LIKELY(atomic_load_explicit(&engine->started, memory_order_relaxed))) return;
  pthread_mutex_lock(&making);
  if (!atomic_load(&engine->started) && !atomic_load(&stopping)) atomic_store(&engine->started, start(engine));
  pthread_mutex_unlock(&making);
}

void cpu_engines_ring(void) {
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL; engine = engine->next) {
    atomic_fetch_add(&engine->bell, 1);
    if (atomic_load(&engine->asleep)) cpu_futex_wake(&engine->bell);
  }
}

uint64_t cpu_engine_last(cpu_engine *engine) {
  pthread_mutex_lock(&engine->lock);
  uint64_t last = engine->pushed;
  pthread_mutex_unlock(&engine->lock);
  return last;
}

static bool ring_reached(const cpu_lane *lane, uint64_t stamp) {
  for (const cpu_lane *first = lane; lane != NULL; lane = lane->next == first ? NULL : lane->next) {
    if (lane->head != NULL && lane->head->stamp <= stamp) return false;
    for (const cpu_command *c = lane->flying; c != NULL; c = c->next)
      if (c->stamp <= stamp) return false;
  }
  return true;
}

bool cpu_engine_reached(cpu_engine *engine, uint64_t stamp) {
  pthread_mutex_lock(&engine->lock);
  bool reached = (engine->running == NULL || engine->running->stamp > stamp) &&
                 ring_reached(engine->lanes, stamp) && ring_reached(engine->blocked, stamp);
  pthread_mutex_unlock(&engine->lock);
  return reached;
}

static bool lane_touches(const cpu_lane *lane, uintptr_t low, uintptr_t high) {
  for (const cpu_command *c = lane->flying; c != NULL; c = c->next)
    if (cpu_command_touches(c, low, high)) return true;
  for (const cpu_command *c = lane->head; c != NULL; c = c->next)
    if (cpu_command_touches(c, low, high)) return true;
  return false;
}

static bool ring_touches(const cpu_lane *lane, uintptr_t low, uintptr_t high) {
  const cpu_lane *first = lane;
  for (; lane != NULL; lane = lane->next == first ? NULL : lane->next)
    if (lane_touches(lane, low, high)) return true;
  return false;
}

bool cpu_engines_touch(uintptr_t low, uintptr_t high) {
  bool touches = false;
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL && !touches; engine = engine->next) {
    pthread_mutex_lock(&engine->lock);
    touches = (engine->running != NULL && cpu_command_touches(engine->running, low, high)) ||
              ring_touches(engine->lanes, low, high) || ring_touches(engine->blocked, low, high);
    pthread_mutex_unlock(&engine->lock);
  }
  return touches;
}

/* No engine is made meanwhile: `making` is held too. */
void cpu_engines_hold(uintptr_t low, uintptr_t high) {
  pthread_mutex_lock(&making);
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL; engine = engine->next) {
    pthread_mutex_lock(&engine->lock);
    while (engine->running != NULL && cpu_command_touches(engine->running, low, high)) {
      pthread_mutex_unlock(&engine->lock);
      nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
      pthread_mutex_lock(&engine->lock);
    }
  }
}

void cpu_engines_go(void) {
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL; engine = engine->next)
    pthread_mutex_unlock(&engine->lock);
  pthread_mutex_unlock(&making);
}

void cpu_engines_stop(void) {
  atomic_store(&stopping, true);
  cpu_engines_ring();
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 2; /* the end of a process must not wait for ever for a copy of a terabyte */
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL; engine = engine->next)
    if (atomic_exchange(&engine->started, false)) pthread_timedjoin_np(engine->thread, NULL, &end);
}
