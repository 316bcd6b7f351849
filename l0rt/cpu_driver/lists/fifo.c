/* SPDX-License-Identifier: Apache-2.0 */
/* fifo.c: the host's side of a fifo: pushing commands and waiting for them. */
#include <stdlib.h>
#include <string.h>

#include "base/knobs.h"
#include "lists/engine.h"
#include "lists/launch.h"
#include "memory/cache.h"
#include "simulate/latency.h"
#include "sync/failure.h"

enum { SPINS = 30, CHUNK = 64 };

struct cpu_chunk {
  cpu_command commands[CHUNK];
  struct cpu_chunk *next; /* kept so that a leak checker sees who has them */
  char rest[CPU_LINE - sizeof(struct cpu_chunk *)];
};

void cpu_fifo_init(cpu_fifo *fifo, cpu_engine *engine, const cpu_context *context, ze_command_queue_priority_t priority,
                   bool in_order) {
  static _Atomic uint64_t serial;
  fifo->engine = engine;
  fifo->context = context;
  fifo->urgency = priority == ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH  ? 0
                  : priority == ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW ? 2
                                                                       : 1;
  fifo->in_order = in_order;
  fifo->serial = atomic_fetch_add(&serial, 1) + 1;
  fifo->random = cpu_knobs.seed + 0x9e3779b97f4a7c15u * fifo->serial;
}

/* A spare command, with the engine's lock held. Commands are made in chunks and reused for ever. */
static cpu_command *spare(cpu_engine *engine) {
  if (engine->spare == NULL) {
    struct cpu_chunk *chunk = aligned_alloc(CPU_LINE, sizeof(*chunk));
    if (chunk == NULL) return NULL;
    memset(chunk, 0, sizeof(*chunk));
    for (int i = 0; i < CHUNK - 1; i++) chunk->commands[i].next = &chunk->commands[i + 1];
    engine->spare = chunk->commands;
    chunk->next = engine->chunks;
    engine->chunks = chunk;
  }
  cpu_command *command = engine->spare;
  engine->spare = command->next;
  return command;
}

/* A launch of its own, which has the time of this submission; false without memory. */
static bool set_time(cpu_command *command) {
  cpu_launch *launch = cpu_launch_copy(command->launch.launch);
  if (launch == NULL) return false;
  cpu_bounds_enter(&launch->time);
  command->launch.launch = launch;
  return true;
}

/* Links a copy of the command at the end, with the engine's lock held; NULL without memory. */
static cpu_command *link_copy(cpu_fifo *fifo, const cpu_command *prototype) {
  cpu_engine *engine = fifo->engine;
  cpu_command *command = spare(engine);
  if (command == NULL) return NULL;
  cpu_command_copy(command, prototype);
  if (CPU_UNLIKELY(cpu_knobs.bounds) && command->op == CPU_OP_LAUNCH && !set_time(command)) {
    command->next = engine->spare;
    engine->spare = command;
    return NULL;
  }
  cpu_command_hold(command);
  if (CPU_UNLIKELY(cpu_knobs.bounds) && command->op == CPU_OP_LAUNCH) cpu_launch_let_go(command->launch.launch);
  command->next = NULL;
  command->sequence = ++fifo->submitted;
  command->stamp = ++engine->pushed;
  if (fifo->head != NULL) {
    fifo->tail->next = command;
  } else {
    fifo->head = command;
  }
  fifo->tail = command;
  return command;
}

/* With the engine's lock held, when commands have been linked. Behind others the engine comes to them, and need not be
 * told. */
static void announce(cpu_fifo *fifo, bool behind) {
  cpu_engine *engine = fifo->engine;
  bool idle = fifo->next == NULL; /* nothing of it is running either */
  if (idle) cpu_ring_enter(&engine->fifos[fifo->urgency], fifo);
  if (behind ? !atomic_load(&engine->started) : !idle || !cpu_fifo_settle(fifo)) atomic_store(&engine->news, 1);
}

ze_result_t cpu_fifo_push(cpu_fifo *fifo, const cpu_command *prototype) {
  pthread_mutex_lock(&fifo->engine->lock);
  bool behind = fifo->head != NULL, linked = link_copy(fifo, prototype) != NULL;
  if (linked) announce(fifo, behind);
  pthread_mutex_unlock(&fifo->engine->lock);
  return linked ? ZE_RESULT_SUCCESS : CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
}

/* The lock is let go of between chunks, so that the engine goes on. */
ze_result_t cpu_fifo_push_run(cpu_fifo *fifo, const cpu_command *first, size_t stride, uint32_t count,
                              uint64_t blamed) {
  const char *next = (const char *)first, *end = next + count * stride;
  bool linked = true;
  while (linked && next != end) {
    pthread_mutex_lock(&fifo->engine->lock);
    bool behind = fifo->head != NULL;
    for (int i = 0; i < CHUNK && linked && next != end; i++, next += stride) {
      cpu_command *command = link_copy(fifo, (const cpu_command *)next);
      linked = command != NULL;
      if (linked) command->blamed = blamed;
    }
    if (fifo->head != NULL) announce(fifo, behind);
    pthread_mutex_unlock(&fifo->engine->lock);
  }
  return linked ? ZE_RESULT_SUCCESS : CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
}

uint64_t cpu_fifo_last(cpu_fifo *fifo) {
  pthread_mutex_lock(&fifo->engine->lock);
  uint64_t last = fifo->submitted;
  pthread_mutex_unlock(&fifo->engine->lock);
  return last;
}

bool cpu_fifo_reached(cpu_fifo *fifo, uint64_t sequence) {
  pthread_mutex_lock(&fifo->engine->lock);
  bool reached = atomic_load(&fifo->finished) >= sequence;
  pthread_mutex_unlock(&fifo->engine->lock);
  return reached;
}

static ze_result_t wait(cpu_fifo *fifo, uint64_t last, uint64_t timeout) {
  for (int i = 0; atomic_load_explicit(&fifo->finished, memory_order_acquire) < last; i++) {
    if (timeout == 0) return ZE_RESULT_NOT_READY;
    if (i == SPINS) break;
    cpu_pause();
  }
  if (atomic_load(&fifo->finished) >= last) return ZE_RESULT_SUCCESS;
  uint64_t deadline = cpu_deadline(timeout);
  ze_result_t result = ZE_RESULT_SUCCESS;
  atomic_fetch_add(&fifo->sleepers, 1);
  for (;;) {
    uint32_t beat = atomic_load(&fifo->beat);
    if (atomic_load(&fifo->finished) >= last) break;
    if (deadline != CPU_NEVER && cpu_wait_ns() >= deadline) {
      result = ZE_RESULT_NOT_READY;
      break;
    }
    cpu_futex_wait(&fifo->beat, beat, deadline);
  }
  atomic_fetch_sub(&fifo->sleepers, 1);
  cpu_latency(CPU_COST_WAKE_UP, 1);
  return result;
}

ze_result_t cpu_fifo_wait(cpu_fifo *fifo, uint64_t timeout) {
  return cpu_fifo_wait_to(fifo, cpu_fifo_last(fifo), timeout);
}

ze_result_t cpu_fifo_wait_to(cpu_fifo *fifo, uint64_t last, uint64_t timeout) {
  ze_result_t result = wait(fifo, last, timeout);
  if (result == ZE_RESULT_SUCCESS) cpu_cache_flush();
  return result == ZE_RESULT_SUCCESS ? cpu_fifo_failure(fifo->serial) : result;
}
