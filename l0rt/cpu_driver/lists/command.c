/* SPDX-License-Identifier: Apache-2.0 */
/* command.c: what commands do. */
#include "lists/command.h"

#include <string.h>

#include "lists/launch.h"
#include "memory/reservation.h"
#include "memory/usm.h"
#include "simulate/quirk.h"
#include "sync/failure.h"

static void fill(char *target, size_t size, const uint8_t *pattern, size_t pattern_size) {
  if (pattern_size == 1) {
    memset(target, pattern[0], size);
    return;
  }
  /* The pattern once, then what is there already, in pieces that stay in the cache. */
  size_t done = pattern_size < size ? pattern_size : size;
  memcpy(target, pattern, done);
  while (done < size) {
    size_t piece = done < 16384 ? done : 16384;
    if (piece > size - done) piece = size - done;
    memcpy(target + done, target, piece);
    done += piece;
  }
}

static void copy_region(const cpu_command *c) {
  char *target = cpu_usm_engine_view(c->region.target);
  const char *source = cpu_usm_engine_view(c->region.source);
  for (size_t z = 0; z < c->region.depth; z++)
    for (size_t y = 0; y < c->region.height; y++)
      memmove(target + z * c->region.target_slice + y * c->region.target_pitch,
              source + z * c->region.source_slice + y * c->region.source_pitch, c->region.width);
}

void cpu_command_run(cpu_command *c) {
  switch ((cpu_op)c->op) {
    case CPU_OP_NONE: break;
    case CPU_OP_COPY:
      memmove(cpu_usm_engine_view(c->copy.target), cpu_usm_engine_view(c->copy.source), c->copy.size);
      break;
    case CPU_OP_FILL:
      fill(cpu_usm_engine_view(c->fill.target), c->fill.size, c->fill.pattern, c->fill.pattern_size);
      break;
    case CPU_OP_REGION: copy_region(c); break;
    case CPU_OP_CLOCK: {
      uint64_t ticks = cpu_ticks(cpu_host_ns()) & cpu_tick_mask();
      memcpy(cpu_usm_engine_view(c->clock.target), &ticks, sizeof(ticks));
      break;
    }
    case CPU_OP_QUERY: {
      ze_kernel_timestamp_result_t result = cpu_event_timestamps(c->query.event);
      memcpy(cpu_usm_engine_view(c->query.target), &result, sizeof(result));
      break;
    }
    case CPU_OP_RESET:
      cpu_failure_forget(c->reset.event);
      cpu_latch_clear(&c->reset.event->state->latch);
      break;
    case CPU_OP_CALL: c->call.function(c->call.data); break;
    case CPU_OP_LAUNCH: c->failed = !cpu_launch_run(c->launch.launch, &c->cancel); break;
  }
}

/* Where what is a command's own ends, but for its waits; of launches see below. */
static size_t end_of(const cpu_command *c) {
  switch ((cpu_op)c->op) {
    case CPU_OP_NONE: return offsetof(cpu_command, launch);
    case CPU_OP_FILL: return offsetof(cpu_command, fill.pattern) + c->fill.pattern_size;
    case CPU_OP_REGION: return offsetof(cpu_command, region) + sizeof(c->region);
    case CPU_OP_COPY: return offsetof(cpu_command, copy) + sizeof(c->copy);
    default: return offsetof(cpu_command, query) + sizeof(c->query);
  }
}

_Static_assert(sizeof(((cpu_command *)0)->query) >= sizeof(((cpu_command *)0)->call), "the default must hold each");

void cpu_command_copy(cpu_command *target, const cpu_command *source) {
  if (CPU_LIKELY(source->op == CPU_OP_LAUNCH)) memcpy(target, source, CPU_LINE); /* of a size that is known here */
  else memcpy(target, source, end_of(source));
  for (unsigned i = 0; i < source->wait_count; i++) target->waits[i] = source->waits[i];
}

/* Every event that a command names, by number; NULL past the last. */
static cpu_event *named(const cpu_command *c, unsigned i) {
  if (i < c->wait_count) return c->waits[i];
  cpu_event *rest[2] = {c->signal, NULL};
  unsigned n = c->signal != NULL;
  if (c->op == CPU_OP_QUERY) rest[n++] = c->query.event;
  if (c->op == CPU_OP_RESET) rest[n++] = c->reset.event;
  return i - c->wait_count < n ? rest[i - c->wait_count] : NULL;
}

void cpu_command_hold(const cpu_command *c) {
  cpu_event *event;
  for (unsigned i = 0; (event = named(c, i)) != NULL; i++) atomic_fetch_add(&event->users, 1);
  if (c->op == CPU_OP_LAUNCH) cpu_launch_hold(c->launch.launch);
}

/* A point that is about to be signalled is kept, because it must still be set. */
void cpu_command_release(const cpu_command *c) {
  cpu_event *event;
  for (unsigned i = 0; (event = named(c, i)) != NULL; i++)
    if (event != c->signal || !cpu_event_is_point(event) || i < c->wait_count) cpu_event_let_go(event);
  if (c->op == CPU_OP_LAUNCH) cpu_launch_let_go(c->launch.launch);
}

bool cpu_command_valid(const cpu_command *c) {
  cpu_event *event;
  for (unsigned i = 0; (event = named(c, i)) != NULL; i++)
    if (cpu_event_cast((ze_event_handle_t)event) == NULL) return false;
  return true;
}

static size_t extent(size_t width, size_t height, size_t depth, size_t pitch, size_t slice) {
  return (depth - 1) * slice + (height - 1) * pitch + width;
}

static ze_result_t check_two(const void *target, size_t target_size, const void *source, size_t source_size) {
  ze_result_t result = cpu_memory_check(target, target_size, true);
  return result == ZE_RESULT_SUCCESS ? cpu_memory_check(source, source_size, false) : result;
}

ze_result_t cpu_command_memory(const cpu_command *c) {
  switch ((cpu_op)c->op) {
    case CPU_OP_COPY: return check_two(c->copy.target, c->copy.size, c->copy.source, c->copy.size);
    case CPU_OP_FILL: return cpu_memory_check(c->fill.target, c->fill.size, true);
    case CPU_OP_REGION: {
      size_t w = c->region.width, h = c->region.height, d = c->region.depth;
      return check_two(c->region.target, extent(w, h, d, c->region.target_pitch, c->region.target_slice),
                       c->region.source, extent(w, h, d, c->region.source_pitch, c->region.source_slice));
    }
    case CPU_OP_CLOCK: return cpu_memory_check(c->clock.target, sizeof(uint64_t), true);
    case CPU_OP_QUERY: return cpu_memory_check(c->query.target, sizeof(ze_kernel_timestamp_result_t), true);
    case CPU_OP_LAUNCH: return cpu_launch_memory(c->launch.launch);
    default: return ZE_RESULT_SUCCESS;
  }
}

static ze_result_t look_for_two(const void *target, const void *source) {
  ze_result_t result = cpu_reservation_look(target);
  return result == ZE_RESULT_SUCCESS ? cpu_reservation_look(source) : result;
}

ze_result_t cpu_command_walk(const cpu_command *c) {
  if (!cpu_has_quirk(CPU_QUIRK_RACING_MAPS)) return ZE_RESULT_SUCCESS;
  switch ((cpu_op)c->op) {
    case CPU_OP_COPY: return look_for_two(c->copy.target, c->copy.source);
    case CPU_OP_FILL: return cpu_reservation_look(c->fill.target);
    case CPU_OP_REGION: return look_for_two(c->region.target, c->region.source);
    case CPU_OP_LAUNCH: return cpu_launch_walk(c->launch.launch);
    default: return ZE_RESULT_SUCCESS;
  }
}

static bool overlap(const void *pointer, size_t size, uintptr_t low, uintptr_t high) {
  return (uintptr_t)pointer < high && (uintptr_t)pointer + size > low;
}

bool cpu_command_touches(const cpu_command *c, uintptr_t low, uintptr_t high) {
  switch ((cpu_op)c->op) {
    case CPU_OP_COPY:
      return overlap(c->copy.target, c->copy.size, low, high) || overlap(c->copy.source, c->copy.size, low, high);
    case CPU_OP_FILL: return overlap(c->fill.target, c->fill.size, low, high);
    case CPU_OP_REGION: {
      size_t w = c->region.width, h = c->region.height, d = c->region.depth;
      return overlap(c->region.target, extent(w, h, d, c->region.target_pitch, c->region.target_slice), low, high) ||
             overlap(c->region.source, extent(w, h, d, c->region.source_pitch, c->region.source_slice), low, high);
    }
    case CPU_OP_CLOCK: return overlap(c->clock.target, sizeof(uint64_t), low, high);
    case CPU_OP_QUERY: return overlap(c->query.target, sizeof(ze_kernel_timestamp_result_t), low, high);
    case CPU_OP_LAUNCH: return cpu_launch_touches(c->launch.launch, low, high);
    default: return false;
  }
}
