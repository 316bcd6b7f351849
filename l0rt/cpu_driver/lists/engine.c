/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c: the engine threads: which command starts when, and what its end sets off.
 *
 * Normally a command completes as soon as it has started. With L0RT_CPU_CHAOS it flies for a random while first, and
 * others of its fifo overtake it wherever the specification lets them: a dependency that nobody stated then shows up
 * as wrong data. */
#include "lists/engine.h"

#include <signal.h>
#include <stdlib.h>

#include "base/gate.h"
#include "base/invariant.h"
#include "base/knobs.h"
#include "lists/launch.h"
#include "memory/cache.h"
#include "memory/usm.h"
#include "simulate/latency.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

enum { POLL = 50000 }; /* nanoseconds */
enum { SPINS = 30 }; /* a microsecond; where cores are few, longer only keeps the host from its work */

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static cpu_engine *_Atomic engines;
static _Atomic bool stopping;

/* Have the events that it waits for been set? Those found set once need not stay so. Another process rings no wakeups
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
static uint64_t flight(cpu_fifo *fifo) {
  if (!cpu_knobs.chaos) return 0;
  fifo->random ^= fifo->random << 13;
  fifo->random ^= fifo->random >> 7;
  fifo->random ^= fifo->random << 17;
  return fifo->random & 1 ? (fifo->random >> 8) % 200000 + 1 : 0;
}

/* The flying command whose time has come, if any; `wake` becomes the time of the next one. */
static cpu_command *completed(cpu_fifo *fifo, uint64_t *wake) {
  if (fifo->flying == NULL) return NULL;
  uint64_t now = cpu_wait_ns();
  cpu_command **first = NULL;
  for (cpu_command **c = &fifo->flying; *c != NULL; c = &(*c)->next)
    if (first == NULL || (*c)->due < (*first)->due) first = c;
  cpu_command *command = *first;
  if (command->due > now) {
    if (command->due < *wake) *wake = command->due;
    return NULL;
  }
  *first = command->next;
  return command;
}

/* The next command of a fifo that can be run now, taken out of it; starts all that may start. */
static cpu_command *take(cpu_fifo *fifo, uint64_t *wake) {
  cpu_command *command;
  while ((command = fifo->head) != NULL) {
    if (fifo->flying != NULL && (fifo->in_order || command->barrier)) break;
    if (!waits_met(command, wake)) break;
    fifo->head = command->next;
    if (fifo->head == NULL) fifo->tail = NULL;
    if (command->signal != NULL && command->signal->timed) command->start = cpu_host_ns();
    uint64_t delay = command->hangs ? CPU_NEVER : flight(fifo);
    if (delay == 0) return command;
    command->due = delay == CPU_NEVER ? CPU_NEVER : cpu_wait_ns() + delay;
    command->next = fifo->flying;
    fifo->flying = command;
  }
  return completed(fifo, wake);
}

void cpu_ring_enter(cpu_fifo **ring, cpu_fifo *fifo) {
  if (*ring == NULL) {
    *ring = fifo->next = fifo->previous = fifo;
    return;
  }
  fifo->next = *ring;
  fifo->previous = (*ring)->previous;
  fifo->previous->next = fifo->next->previous = fifo;
}

/* Puts a fifo on a stack that others take from as a whole. */
static void push(cpu_fifo *_Atomic *stack, cpu_fifo *fifo) {
  fifo->waiting = atomic_load(stack);
  while (!atomic_compare_exchange_weak(stack, &fifo->waiting, fifo)) continue;
}

static void leave(cpu_fifo **ring, cpu_fifo *fifo) {
  CPU_INVARIANT(fifo->next != NULL && fifo->previous != NULL);
  if (*ring == fifo) *ring = fifo->next == fifo ? NULL : fifo->next;
  fifo->next->previous = fifo->previous;
  fifo->previous->next = fifo->next;
  fifo->next = fifo->previous = NULL;
}

/* Lets the fifos go on that were stirred. */
static void unblock(cpu_engine *engine) {
  cpu_fifo *fifo = atomic_exchange(&engine->stirred, NULL);
  while (fifo != NULL) {
    cpu_fifo *next = fifo->waiting;
    leave(&engine->blocked, fifo);
    cpu_ring_enter(&engine->fifos[fifo->urgency], fifo);
    fifo = next;
  }
}

bool cpu_event_stir(cpu_event *event) {
  if (atomic_load(&event->waiters) == NULL) return false;
  cpu_fifo *fifo = atomic_exchange(&event->waiters, NULL);
  while (fifo != NULL) {
    cpu_fifo *next = fifo->waiting;
    push(&fifo->engine->stirred, fifo);
    fifo = next;
  }
  return true;
}

/* What alone holds the fifo up, if that is an event of this process. */
static cpu_event *holder(const cpu_fifo *fifo) {
  const cpu_command *c = fifo->head;
  if (c == NULL || fifo->flying != NULL || c->waits_met == c->wait_count) return NULL;
  cpu_event *event = c->waits[c->waits_met];
  return event->state == &event->own ? event : NULL;
}

/* Puts the fifo aside until somebody sets the event. It is announced before it looks for the last time, and whoever
 * sets the event looks for announcements after that: so one of the two sees the other. */
static void block(cpu_engine *engine, cpu_fifo *fifo, cpu_event *event) {
  leave(&engine->fifos[fifo->urgency], fifo);
  cpu_ring_enter(&engine->blocked, fifo);
  push(&event->waiters, fifo);
  if (atomic_load(&event->state->latch.set) != 0 && cpu_event_stir(event)) cpu_engines_ring();
}

/* Exactly the fifos with something to do are in the rings; one may have just what is running. */
static bool ring_is_whole(const cpu_engine *engine, const cpu_fifo *fifo) {
  if (fifo == NULL) return true;
  const cpu_fifo *first = fifo;
  bool may_be_empty = engine->running != NULL;
  do {
    bool empty = fifo->head == NULL && fifo->flying == NULL;
    if (fifo->engine != engine || fifo->next->previous != fifo || (empty && !may_be_empty)) return false;
    may_be_empty = may_be_empty && !empty;
    fifo = fifo->next;
  } while (fifo != first);
  return true;
}

static uint64_t oldest(const cpu_fifo *fifo) {
  uint64_t sequence = fifo->head != NULL ? fifo->head->sequence : fifo->submitted + 1;
  for (const cpu_command *c = fifo->flying; c != NULL; c = c->next)
    if (c->sequence < sequence) sequence = c->sequence;
  return sequence;
}

static uint64_t blamed(const cpu_fifo *fifo, const cpu_command *command) {
  return command->blamed != 0 ? command->blamed : fifo->serial;
}

/* The command is done. Whoever sees its event set may destroy the event at once, and whoever sees the fifo finished
 * may destroy all; so the event is let go of before it is set, and the fifo is told last. Called and left with the
 * lock held; sleepers are woken without it. */
static void complete(cpu_engine *engine, cpu_fifo *fifo, cpu_command *command) {
  cpu_event *event = command->signal;
  cpu_fence *fence = command->fence;
  cpu_event_wakes wakes = {false, false};
  bool fence_sleepers = false, point = event != NULL && cpu_event_is_point(event);
  if ((event != NULL && !point) || fence != NULL) cpu_cache_flush();
  cpu_command_release(command);
  if (event != NULL) {
    if (CPU_UNLIKELY(atomic_load_explicit(&cpu_failures, memory_order_relaxed) != 0) && !command->failed &&
        !command->unnamed)
      cpu_failure_follow(blamed(fifo, command), event);
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
  if (fifo->head == NULL && fifo->flying == NULL) leave(&engine->fifos[fifo->urgency], fifo);
  CPU_INVARIANT_WALK(ring_is_whole(engine, engine->fifos[fifo->urgency]));
  CPU_INVARIANT(oldest(fifo) > atomic_load(&fifo->finished) && oldest(fifo) <= fifo->submitted + 1);
  atomic_store(&fifo->finished, oldest(fifo) - 1);
  atomic_fetch_add(&fifo->beat, 1);
  bool fifo_sleepers = atomic_load(&fifo->sleepers) != 0;
  if (!wakes.sleepers && !wakes.watchers && !fence_sleepers && !fifo_sleepers) return;
  pthread_mutex_unlock(&engine->lock);
  if (event != NULL) cpu_event_wake(event, wakes);
  if (fence_sleepers) cpu_futex_wake(&fence->latch.set);
  if (fifo_sleepers) cpu_futex_wake(&fifo->beat);
  pthread_mutex_lock(&engine->lock);
}

bool cpu_fifo_settle(cpu_fifo *fifo) {
  cpu_command *command = fifo->head;
  if (command != fifo->tail || fifo->flying != NULL || command->hangs || cpu_knobs.chaos) return false;
  if (command->op != CPU_OP_NONE && command->op != CPU_OP_RESET) return false;
  for (unsigned i = 0; i < command->wait_count; i++)
    if (!cpu_latch_is_set(&command->waits[i]->state->latch)) return false;
  fifo->head = fifo->tail = NULL;
  if (command->signal != NULL && command->signal->timed) command->start = cpu_host_ns();
  cpu_command_run(command);
  complete(fifo->engine, fifo, command);
  return true;
}

/* Between host and device: at what rate, where that is simulated? */
static cpu_cost rate_of(const cpu_command *c) {
  bool to_device = cpu_memory_is_device(c->copy.target), from_device = cpu_memory_is_device(c->copy.source);
  return to_device == from_device ? CPU_COSTS : to_device ? CPU_COST_H2D_GBPS : CPU_COST_D2H_GBPS;
}

/* Only the engine's own thread writes. */
static void count_bytes(_Atomic uint64_t *bytes, uint64_t more) {
  atomic_store_explicit(bytes, atomic_load_explicit(bytes, memory_order_relaxed) + more, memory_order_relaxed);
}

static void count(cpu_engine *engine, const cpu_command *c) {
  uint64_t read = c->op == CPU_OP_COPY     ? c->copy.size
                  : c->op == CPU_OP_REGION ? c->region.width * c->region.height * c->region.depth
                                           : 0;
  count_bytes(&engine->bytes_read, read);
  count_bytes(&engine->bytes_written, c->op == CPU_OP_FILL ? c->fill.size : read);
}

/* Runs a copy or a fill whose result is held back from the host. */
static void run_held_back(cpu_command *c) {
  cpu_cache_line *line = c->op == CPU_OP_COPY   ? cpu_cache_open(c->copy.target, c->copy.size)
                         : c->op == CPU_OP_FILL ? cpu_cache_open(c->fill.target, c->fill.size)
                                                : cpu_cache_open(NULL, 0);
  cpu_command_run(c);
  if (line != NULL) cpu_cache_close(line);
}

static void run(cpu_command *c) {
  uint64_t start = CPU_UNLIKELY(cpu_latency_on) ? cpu_wait_ns() : 0;
  if (cpu_has_quirk(CPU_QUIRK_UNFLUSHED_COUNTERS)) run_held_back(c);
  else cpu_command_run(c);
  if (CPU_LIKELY(!cpu_latency_on) || c->op != CPU_OP_COPY) return;
  cpu_cost rate = rate_of(c);
  if (rate != CPU_COSTS) cpu_latency_copied(rate, c->copy.size, cpu_wait_ns() - start);
}

/* One command of one fifo of a ring, beginning with the fifo after the last one served. False: nothing can run now. */
static bool serve_ring(cpu_engine *engine, cpu_fifo **ring, uint64_t *wake) {
  cpu_fifo *fifo = *ring;
  if (fifo == NULL) return false;
  for (cpu_fifo *last = fifo->previous, *next;; fifo = next) {
    next = fifo->next;
    cpu_command *command = take(fifo, wake);
    if (command != NULL) {
      *ring = next;
      engine->running = command;
      engine->serving = fifo;
      if (command->op != CPU_OP_NONE) {
        pthread_mutex_unlock(&engine->lock);
        run(command);
        count(engine, command);
        pthread_mutex_lock(&engine->lock);
      }
      if (command->failed)
        cpu_failure_add(blamed(fifo, command), command->unnamed ? NULL : command->signal, cpu_failure_kept());
      engine->running = NULL;
      complete(engine, fifo, command);
      return true;
    }
    bool done = fifo == last;
    cpu_event *event = holder(fifo);
    if (event != NULL) block(engine, fifo, event);
    if (done) return false;
  }
}

static bool serve(cpu_engine *engine, uint64_t *wake) {
  for (int i = 0; i < CPU_URGENCIES; i++)
    if (serve_ring(engine, &engine->fifos[i], wake)) return true;
  return false;
}

static void sleep_until_woken(cpu_engine *engine, uint32_t heard, uint64_t wake) {
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(&engine->wakeups, memory_order_relaxed) != heard) return;
    cpu_pause();
  }
  atomic_store(&engine->asleep, 1);
  if (atomic_load(&engine->wakeups) == heard) cpu_futex_wait(&engine->wakeups, heard, wake);
  atomic_store(&engine->asleep, 0);
}

static void *work(void *argument) {
  cpu_engine *engine = argument;
  pthread_mutex_lock(&engine->lock);
  while (!atomic_load(&stopping)) {
    uint32_t heard = atomic_load(&engine->wakeups); /* before looking: what comes later rings again */
    uint64_t wake = CPU_NEVER;
    if (atomic_load(&engine->stirred) != NULL) {
      CPU_INVARIANT_WALK(ring_is_whole(engine, engine->blocked));
      unblock(engine);
    }
    if (serve(engine, &wake)) continue;
    uint64_t due = cpu_cache_due();
    if (due != CPU_NEVER && due <= cpu_wait_ns()) cpu_cache_flush();
    else if (due < wake) wake = due;
    pthread_mutex_unlock(&engine->lock);
    sleep_until_woken(engine, heard, wake);
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
    engine->device = device;
    engine->next = atomic_load(&engines);
    atomic_store(&engines, engine);
    atomic_store(place, engine);
  }
  pthread_mutex_unlock(&making);
  return engine;
}

void cpu_engine_ring(cpu_engine *engine) {
  if (atomic_exchange(&engine->news, 0) == 0) return; /* or another host's ring has told of it */
  atomic_fetch_add(&engine->wakeups, 1);
  if (atomic_load(&engine->asleep)) cpu_futex_wake(&engine->wakeups);
  if (CPU_LIKELY(atomic_load_explicit(&engine->started, memory_order_relaxed))) return;
  pthread_mutex_lock(&making);
  if (!atomic_load(&engine->started) && !atomic_load(&stopping)) atomic_store(&engine->started, start(engine));
  pthread_mutex_unlock(&making);
}

void cpu_engines_ring(void) {
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL; engine = engine->next) {
    atomic_fetch_add(&engine->wakeups, 1);
    if (atomic_load(&engine->asleep)) cpu_futex_wake(&engine->wakeups);
  }
}

uint64_t cpu_engine_last(cpu_engine *engine) {
  pthread_mutex_lock(&engine->lock);
  uint64_t last = engine->pushed;
  pthread_mutex_unlock(&engine->lock);
  return last;
}

static bool ring_reached(const cpu_fifo *fifo, uint64_t stamp) {
  for (const cpu_fifo *first = fifo; fifo != NULL; fifo = fifo->next == first ? NULL : fifo->next) {
    if (fifo->head != NULL && fifo->head->stamp <= stamp) return false;
    for (const cpu_command *c = fifo->flying; c != NULL; c = c->next)
      if (c->stamp <= stamp) return false;
  }
  return true;
}

bool cpu_engine_reached(cpu_engine *engine, uint64_t stamp) {
  pthread_mutex_lock(&engine->lock);
  bool reached = (engine->running == NULL || engine->running->stamp > stamp) && ring_reached(engine->blocked, stamp);
  for (int i = 0; i < CPU_URGENCIES; i++) reached = reached && ring_reached(engine->fifos[i], stamp);
  pthread_mutex_unlock(&engine->lock);
  return reached;
}

static bool fifo_touches(const cpu_fifo *fifo, uintptr_t low, uintptr_t high) {
  for (const cpu_command *c = fifo->flying; c != NULL; c = c->next)
    if (cpu_command_touches(c, low, high)) return true;
  for (const cpu_command *c = fifo->head; c != NULL; c = c->next)
    if (cpu_command_touches(c, low, high)) return true;
  return false;
}

static bool ring_touches(const cpu_fifo *fifo, uintptr_t low, uintptr_t high) {
  const cpu_fifo *first = fifo;
  for (; fifo != NULL; fifo = fifo->next == first ? NULL : fifo->next)
    if (fifo_touches(fifo, low, high)) return true;
  return false;
}

bool cpu_engines_touch(uintptr_t low, uintptr_t high) {
  bool touches = false;
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL && !touches; engine = engine->next) {
    pthread_mutex_lock(&engine->lock);
    touches = (engine->running != NULL && cpu_command_touches(engine->running, low, high)) ||
              ring_touches(engine->blocked, low, high);
    for (int i = 0; i < CPU_URGENCIES; i++) touches = touches || ring_touches(engine->fifos[i], low, high);
    pthread_mutex_unlock(&engine->lock);
  }
  return touches;
}

static bool ring_works_for(const cpu_fifo *fifo, const cpu_context *context) {
  const cpu_fifo *first = fifo;
  for (; fifo != NULL; fifo = fifo->next == first ? NULL : fifo->next)
    if (fifo->context == context) return true;
  return false;
}

/* A fifo stays in its ring while a command of it is running. */
bool cpu_engines_work_for(const cpu_context *context) {
  bool works = false;
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL && !works; engine = engine->next) {
    pthread_mutex_lock(&engine->lock);
    works = ring_works_for(engine->blocked, context);
    for (int i = 0; i < CPU_URGENCIES; i++) works = works || ring_works_for(engine->fifos[i], context);
    pthread_mutex_unlock(&engine->lock);
  }
  return works;
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

static bool cancel(cpu_fifo *fifo, uint64_t first, uint64_t last) {
  cpu_engine *engine = fifo->engine;
  pthread_mutex_lock(&engine->lock);
  cpu_command *c = engine->serving == fifo ? engine->running : NULL;
  bool found = c != NULL && c->op == CPU_OP_LAUNCH && c->sequence >= first && c->sequence <= last;
  if (found) atomic_store(&c->cancel, true);
  for (c = found ? fifo->flying : NULL; c != NULL; c = c->next)
    if (c->sequence <= last) atomic_store(&c->cancel, true);
  for (c = found ? fifo->head : NULL; c != NULL && c->sequence <= last; c = c->next) atomic_store(&c->cancel, true);
  pthread_mutex_unlock(&engine->lock);
  return found;
}

bool cpu_fifo_stop(cpu_fifo *fifo, uint64_t first, uint64_t last) {
  if (!cancel(fifo, first, last)) return false;
  for (int i = 0; i < 500 && !cpu_fifo_reached(fifo, last); i++)
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); /* rarely done, and kernels end within milliseconds */
  return cpu_fifo_reached(fifo, last);
}

static void cancel_running(cpu_engine *engine) {
  pthread_mutex_lock(&engine->lock);
  if (engine->running != NULL) atomic_store(&engine->running->cancel, true);
  pthread_mutex_unlock(&engine->lock);
}

void cpu_engines_stop(void) {
  atomic_store(&stopping, true);
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL; engine = engine->next) cancel_running(engine);
  cpu_engines_ring();
  bool joined = true;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 2; /* the end of a process must not wait for ever for a copy of a terabyte */
  for (cpu_engine *engine = atomic_load(&engines); engine != NULL; engine = engine->next)
    if (atomic_exchange(&engine->started, false)) joined &= pthread_timedjoin_np(engine->thread, NULL, &end) == 0;
  if (joined) cpu_launches_end();
}

cpu_activity cpu_engines_activity(const cpu_device *device) {
  cpu_activity found = {0};
  for (int i = 0; i < CPU_GROUPS_MAX * CPU_QUEUES_MAX; i++) {
    cpu_engine *engine = atomic_load(&device->engines[i / CPU_QUEUES_MAX][i % CPU_QUEUES_MAX]);
    clockid_t clock;
    struct timespec t;
    if (engine == NULL || !atomic_load(&engine->started)) continue;
    if (pthread_getcpuclockid(engine->thread, &clock) == 0 && clock_gettime(clock, &t) == 0) {
      uint64_t ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
      if (ns > found.active_ns) found.active_ns = ns;
    }
    found.bytes_read += atomic_load(&engine->bytes_read);
    found.bytes_written += atomic_load(&engine->bytes_written);
    pthread_mutex_lock(&engine->lock);
    found.is_running |= engine->running != NULL && engine->running->op != CPU_OP_NONE;
    pthread_mutex_unlock(&engine->lock);
  }
  return found;
}
