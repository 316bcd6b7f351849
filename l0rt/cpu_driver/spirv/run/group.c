/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: runs the waves of one work-group.
 *
 * Each lane waits for a block. The block with the lowest number runs, for the lanes that wait for it. In the order of
 * blocks those of a loop follow each other, so lanes that took different paths meet again where the paths join. A lane
 * at a barrier or at its end waits for the highest numbers, so it comes last. */
#include <string.h>

#include "spirv/run/run.h"

void spirv_fail(spirv_wave *w, spirv_status status, uint32_t at, uint32_t lane) {
  spirv_group *group = w->group;
  if (group->status == SPIRV_OK) {
    group->status = status;
    group->failed_at = at;
    group->failed_item = spirv_item(w, lane);
  }
  w->failed = true;
}

/* Remembers the range for the step; not for steps that share one, or that read and write: they have no place for it. */
static bool within(const spirv_step *s, spirv_wave *w, uint64_t begin, uint64_t bytes, uint64_t address, uint64_t size,
                   uint64_t shift) {
  if (address - begin >= bytes || size > bytes - (address - begin)) return false;
  w->ranges[s->range] = (spirv_range){.begin = begin, .size = s->range != 0 ? bytes : 0, .shift = shift};
  return true;
}

static bool in_variables(const spirv_step *s, spirv_wave *w, const spirv_program *program, uint64_t address,
                         uint64_t size, bool write) {
  for (uint32_t i = 0; i < program->range_count; i++)
    if (!(write && program->ranges[i].constant) &&
        within(s, w, program->ranges[i].address, program->ranges[i].size, address, size, 0))
      return true;
  return false;
}

/* What one work-item accesses may be in memory that is found in several parts. */
static bool find_range(const spirv_step *s, spirv_wave *w, uint64_t address, uint64_t size, bool write, bool all) {
  const spirv_memory *memory = &w->group->launch->memory;
  uint64_t begin = 4096, end = UINT64_MAX, part = address;
  int64_t shift = 0;
  for (;;) {
    if (memory->find != NULL && !memory->find(memory->context, part, write, &begin, &end, &shift)) return false;
    if (end > begin && within(s, w, begin, end - begin, address, size, (uint64_t)shift)) return true;
    if (!all || begin > address || end <= part) return false;
    part = end;
  }
}

bool spirv_reach_slowly(spirv_wave *w, const spirv_step *s, uint64_t address, uint64_t size, bool write, bool report,
                        uint32_t lane) {
  spirv_group *group = w->group;
  const spirv_code *code = group->code;
  if (within(s, w, (uint64_t)(uintptr_t)group->local, group->local_bytes, address, size, 0)) return true;
  if (within(s, w, (uint64_t)(uintptr_t)w->private_memory, code->private_bytes * code->width, address, size, 0))
    return true;
  if (!write && within(s, w, (uint64_t)(uintptr_t)group->arguments, code->argument_bytes, address, size, 0))
    return true;
  const spirv_program *program = group->kernel->program;
  if (in_variables(s, w, program, address, size, write)) return true;
  for (uint32_t i = 0; i < program->other_count; i++)
    if (in_variables(s, w, program->others[i], address, size, write)) return true;
  if (find_range(s, w, address, size, write, report)) return true;
  if (report) {
    if (group->status == SPIRV_OK) {
      group->failed_address = address;
      group->failed_write = write;
    }
    spirv_fail(w, SPIRV_BAD_ACCESS, s->at, lane);
  }
  return false;
}

/* Not all work-items came to the barrier behind which `block` follows: this lane, among others, did not. */
static void miss_barrier(spirv_wave *w, uint32_t block, uint32_t lane) {
  const spirv_code *code = w->group->code;
  uint32_t at = code->blocks[0].at;
  for (uint32_t i = 0; i < code->block_count; i++)
    if (code->blocks[i].end == END_BARRIER && code->blocks[i].successor[0] == (block & ~AT_BARRIER))
      at = code->blocks[i].at;
  spirv_fail(w, SPIRV_BAD_BARRIER, at, lane);
}

/* Chooses the next block. Returns false if every lane is at a barrier or has ended. */
static bool next_block(spirv_wave *w, const spirv_handlers *set) {
  uint32_t lowest = set->pick(w);
  if (w->group->compaction.active && lowest > w->group->compaction.end) {
    spirv_expand(w);
    lowest = set->pick(w);
  }
  if (lowest >= AT_BARRIER && !w->full) {
    uint32_t lane = 0;
    while (lane < w->count - 1 && w->next[lane] == lowest) lane++;
    miss_barrier(w, lowest, lane);
  }
  w->block = lowest;
  return lowest < AT_BARRIER;
}

/* All running lanes go to one block. If its number is lower than those that others wait for, they run on at once. */
static bool go_to(spirv_wave *w, const spirv_handlers *set, uint32_t target) {
  bool leaves = w->group->compaction.active && target > w->group->compaction.end;
  if (!leaves && (w->full || (target < w->waiting && target < AT_BARRIER))) {
    w->block = target;
    return target < AT_BARRIER;
  }
  if (!leaves && target == w->waiting && w->together) { /* all lanes meet here */
    w->full = true;
    w->block = target;
    return target < AT_BARRIER;
  }
  if (w->full) memset(w->mask, 0xff, sizeof(w->mask));
  for (uint32_t k = 0; k < w->count; k++) w->next[k] = w->mask[k] != 0 ? target : w->next[k];
  w->full = false;
  return next_block(w, set);
}

static bool branch_to(spirv_wave *w, const spirv_handlers *set, const spirv_code_block *block) {
  const uint32_t *condition = REGISTER(uint32_t, block->condition);
  if (!block->varying) return go_to(w, set, block->successor[*condition != 0 ? 0 : 1]);
  if (!set->branch(w, condition, block->successor[0], block->successor[1])) return next_block(w, set);
  return !w->group->compaction.active || w->block <= w->group->compaction.end || go_to(w, set, w->block);
}

/* The wave is at the header of a loop. Lanes that have left the loop cost as much as the others. That waste is counted;
 * when it exceeds the cost of a compaction, the lanes are compacted. */
static void watch_loop(spirv_wave *w, const spirv_code_block *header) {
  spirv_compaction *c = &w->group->compaction;
  if (w->full || w->group->random != 0) return; /* waves that take turns would need a place each */
  if (c->header != w->block) {
    c->header = w->block;
    c->waste = 0;
  }
  uint32_t needed = (w->running + PADDING - 1) / PADDING * PADDING;
  if (needed == w->lanes || w->waiting <= header->loop_end) return;
  c->waste += (uint64_t)(w->lanes - needed) * header->loop_steps;
  if (c->waste < (uint64_t)w->group->code->lasting_bytes * w->lanes * 4) return;
  c->waste = 0;
  spirv_compact(w, header->loop_end);
}

/* Runs the steps of a block that trace.c or races.c watches. */
static void run_watched(spirv_wave *w, const spirv_code_block *block) {
  const spirv_group *group = w->group;
  const spirv_step *s = group->code->steps + block->steps.first;
  for (const spirv_step *end = s + block->steps.count; s < end && !w->failed; s++) {
    if (group->races != NULL) spirv_races_step(w, s);
    s->run(w, s, w->lanes);
    if (group->launch->trace && !w->failed) spirv_trace_step(w, s);
  }
  if (group->launch->trace && !w->failed) spirv_trace_end(w, block);
}

/* Runs until all lanes have ended or wait at a barrier, or for so many blocks. Then w->block is the next block. */
static void run_wave(spirv_wave *w, uint64_t blocks) {
  const spirv_code *code = w->group->code;
  const spirv_handlers *set = code->handlers;
  bool going = true;
  while (going && blocks-- != 0) {
    const spirv_code_block *block = &code->blocks[w->block];
    if (w->group->fuel-- == 0) {
      spirv_fail(w, SPIRV_OUT_OF_FUEL, block->at, 0);
      return;
    }
    if (spirv_is_cancelled(w->group)) {
      spirv_fail(w, SPIRV_CANCELLED, block->at, 0);
      return;
    }
    if (block->loop_end != 0) watch_loop(w, block);
    const spirv_steps *run = w->full ? &block->whole : &block->steps;
    const spirv_step *s = code->steps + run->first;
    const spirv_step *end = w->group->watched ? s : s + run->count;
    for (; s < end; s++) s->run(w, s, w->lanes);
    if (w->group->watched) run_watched(w, block);
    if (w->failed) return;
    switch (block->end) {
      case END_JUMP: going = go_to(w, set, block->successor[0]); break;
      case END_BARRIER: going = go_to(w, set, block->successor[0] | AT_BARRIER); break;
      case END_RETURN: going = go_to(w, set, ENDED); break;
      case END_BRANCH: going = branch_to(w, set, block); break;
      case END_TRAP: spirv_fail(w, SPIRV_TRAP, block->at, 0); return;
    }
  }
}

uint64_t spirv_random(spirv_group *group) {
  group->random ^= group->random << 13;
  group->random ^= group->random >> 7;
  group->random ^= group->random << 17;
  return group->random;
}

/* Runs all waves to their next barrier or end. With chaos, the waves take turns after some blocks. */
static bool run_waves(spirv_group *group) {
  uint32_t left = group->wave_count;
  if (group->random == 0) {
    for (uint32_t i = 0; i < left; i++) {
      run_wave(&group->waves[i], UINT64_MAX);
      if (group->waves[i].failed) return false;
    }
    return true;
  }
  while (left != 0) {
    uint32_t skip = (uint32_t)(spirv_random(group) % left), i = 0;
    for (;; i++) {
      if (group->waves[i].block >= AT_BARRIER) continue;
      if (skip-- == 0) break;
    }
    run_wave(&group->waves[i], 1 + spirv_random(group) % 4);
    if (group->waves[i].failed) return false;
    left -= group->waves[i].block >= AT_BARRIER;
  }
  return true;
}

bool spirv_group_run(spirv_group *group) {
  group->compaction.active = false;
  group->compaction.header = ENDED;
  group->fuel = group->launch->fuel == 0 ? UINT64_MAX : group->launch->fuel;
  for (uint32_t i = 0; i < group->wave_count; i++) {
    spirv_wave *w = &group->waves[i];
    w->block = 0;
    w->full = true;
    w->failed = false;
    w->count = group->size - w->first < group->code->width ? group->size - w->first : group->code->width;
    w->lanes = (w->count + PADDING - 1) / PADDING * PADDING;
  }
  for (;;) {
    if (!run_waves(group)) return false;
    uint32_t where = ENDED;
    for (uint32_t i = 0; i < group->wave_count; i++)
      if (group->waves[i].block < where) where = group->waves[i].block;
    for (uint32_t i = 0; i < group->wave_count; i++) {
      if (group->waves[i].block == where) continue;
      miss_barrier(&group->waves[i], where, 0);
      return false;
    }
    if (where == ENDED) return true;
    group->epoch++;
    for (uint32_t i = 0; i < group->wave_count; i++) {
      group->waves[i].block = where & ~AT_BARRIER;
      group->waves[i].full = true;
    }
  }
}
