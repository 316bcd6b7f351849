/* lane.c: the host's side of a lane: pushing commands and waiting for them. */
#include <stdlib.h>

#include "engine.h"
#include "knobs.h"

enum { SPINS = 30, CHUNK = 64 };

struct cpu_chunk {
  struct cpu_chunk *next; /* kept so that a leak checker sees who has them */
  cpu_command commands[CHUNK];
};

void cpu_lane_init(cpu_lane *lane, cpu_engine *engine, bool in_order) {
  static _Atomic uint64_t serial;
  lane->engine = engine;
  lane->in_order = in_order;
  lane->serial = atomic_fetch_add(&serial, 1) + 1;
  lane->random = cpu_knobs.seed + 0x9e3779b97f4a7c15u * lane->serial;
}

/* A spare command, with the engine's lock held. Commands are made in chunks and reused for ever. */
static cpu_command *spare(cpu_engine *engine) {
  if (engine->spare == NULL) {
    struct cpu_chunk *chunk = calloc(1, sizeof(*chunk));
    if (chunk == NULL) return NULL;
    for (int i = 0; i < CHUNK - 1; i++) chunk->commands[i].next = &chunk->commands[i + 1];
    engine->spare = chunk->commands;
    chunk->next = engine->chunks;
    engine->chunks = chunk;
  }
  cpu_command *command = engine->spare;
  engine->spare = command->next;
  return command;
}

ze_result_t cpu_lane_push(cpu_lane *lane, const cpu_command *prototype) {
  cpu_engine *engine = lane->engine;
  pthread_mutex_lock(&engine->lock);
  cpu_command *command = spare(engine);
  if (command == NULL) {
    pthread_mutex_unlock(&engine->lock);
    return ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  }
  *command = *prototype;
  cpu_command_hold(command);
  command->next = NULL;
  command->sequence = ++lane->submitted;
  command->stamp = ++engine->pushed;
  if (lane->head == NULL) {
    lane->head = command;
  } else {
    lane->tail->next = command;
  }
  lane->tail = command;
  bool idle = lane->next == NULL; /* nothing of it is running either */
  if (idle) cpu_ring_enter(&engine->lanes, lane);
  if (!idle || !cpu_lane_settle(lane)) atomic_store(&engine->news, 1);
  pthread_mutex_unlock(&engine->lock);
  return ZE_RESULT_SUCCESS;
}

uint64_t cpu_lane_last(cpu_lane *lane) {
  pthread_mutex_lock(&lane->engine->lock);
  uint64_t last = lane->submitted;
  pthread_mutex_unlock(&lane->engine->lock);
  return last;
}

bool cpu_lane_reached(cpu_lane *lane, uint64_t sequence) {
  pthread_mutex_lock(&lane->engine->lock);
  bool reached = atomic_load(&lane->finished) >= sequence;
  pthread_mutex_unlock(&lane->engine->lock);
  return reached;
}

ze_result_t cpu_lane_wait(cpu_lane *lane, uint64_t timeout) {
  uint64_t last = cpu_lane_last(lane);
  for (int i = 0; atomic_load_explicit(&lane->finished, memory_order_acquire) < last; i++) {
    if (timeout == 0) return ZE_RESULT_NOT_READY;
    if (i == SPINS) break;
    cpu_pause();
  }
  if (atomic_load(&lane->finished) >= last) return ZE_RESULT_SUCCESS;
  uint64_t deadline = cpu_deadline(timeout);
  ze_result_t result = ZE_RESULT_SUCCESS;
  atomic_fetch_add(&lane->sleepers, 1);
  for (;;) {
    uint32_t beat = atomic_load(&lane->beat);
    if (atomic_load(&lane->finished) >= last) break;
    if (deadline != CPU_NEVER && cpu_wait_ns() >= deadline) {
      result = ZE_RESULT_NOT_READY;
      break;
    }
    cpu_futex_wait(&lane->beat, beat, deadline);
  }
  atomic_fetch_sub(&lane->sleepers, 1);
  return result;
}
