/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c: the order of a kernel's blocks, their dominators, post-dominators and loops.
 *
 * The order is a reverse post-order in which the blocks of a loop follow each other. For that, successors outside of
 * the loop are visited first, so they come last in the order. Lanes that have left a loop wait behind it, until their
 * block is the one with the lowest number. */
#include "spirv/ir/ir.h"

typedef struct {
  ir_kernel *k;
  uint32_t *stack, *next, *found;
  bool loops_known;
} walker;

/* Returns the successor to visit as number i: the one that leaves the loop, then the second, then the first. */
static uint32_t visit(const walker *w, uint32_t block, uint32_t i) {
  const ir_block *b = &w->k->blocks[block];
  if (ir_successors(b) == 1) return b->successor[0];
  bool first = w->loops_known && b->loop != IR_EXIT && !ir_is_inside(w->k, b->successor[0], b->loop) &&
               ir_is_inside(w->k, b->successor[1], b->loop);
  return b->successor[first ? i : 1 - i];
}

static void walk(walker *w) {
  ir_kernel *k = w->k;
  uint32_t depth = 0, left = k->block_count;
  for (uint32_t b = 0; b < k->block_count; b++) k->blocks[b].order = w->next[b] = 0;
  w->stack[depth++] = 0;
  k->blocks[0].order = 1;
  while (depth != 0) {
    uint32_t block = w->stack[depth - 1], i = w->next[block]++;
    if (i < (uint32_t)ir_successors(&k->blocks[block])) {
      uint32_t to = visit(w, block, i);
      if (k->blocks[to].order != 0) continue;
      k->blocks[to].order = 1;
      w->stack[depth++] = to;
    } else {
      w->found[--left] = block;
      depth--;
    }
  }
  k->order = w->found + left;
  k->order_count = k->block_count - left;
  for (uint32_t i = 0; i < k->order_count; i++) k->blocks[k->order[i]].order = i + 1;
}

/* Removes unreachable predecessors. The others keep their order, because phis depend on it. */
static void find_predecessors(ir_kernel *k) {
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    uint32_t kept = 0;
    for (uint32_t p = 0; block->phi_count != 0 && p < block->predecessor_count; p++) {
      if (k->blocks[block->predecessors[p]].order == 0) continue;
      block->predecessors[kept] = block->predecessors[p];
      for (uint32_t f = 0; f < block->phi_count; f++) block->phis[f].sources[kept] = block->phis[f].sources[p];
      kept++;
    }
    block->predecessor_count = kept;
  }
  uint32_t *counts = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count), *all, total = 0;
  for (uint32_t i = 0; i < k->order_count; i++)
    for (int s = 0; s < ir_successors(&k->blocks[k->order[i]]); s++, total++)
      counts[k->blocks[k->order[i]].successor[s]]++;
  all = SPIRV_ARRAY(k->arena, uint32_t, total);
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    if (block->phi_count != 0) continue;
    block->predecessors = all;
    all += counts[k->order[i]];
  }
  for (uint32_t i = 0; i < k->order_count; i++)
    for (int s = 0; s < ir_successors(&k->blocks[k->order[i]]); s++) {
      ir_block *to = &k->blocks[k->blocks[k->order[i]].successor[s]];
      if (to->phi_count == 0) to->predecessors[to->predecessor_count++] = k->order[i];
    }
  spirv_free(k->arena, counts);
}

static uint32_t common(const ir_kernel *k, uint32_t a, uint32_t b) {
  while (a != b) {
    while (k->blocks[a].order > k->blocks[b].order) a = k->blocks[a].dominator;
    while (k->blocks[b].order > k->blocks[a].order) b = k->blocks[b].dominator;
  }
  return a;
}

static void find_dominators(ir_kernel *k) {
  bool changed = true;
  for (uint32_t i = 0; i < k->order_count; i++) k->blocks[k->order[i]].dominator = IR_EXIT;
  k->blocks[0].dominator = 0;
  for (uint32_t rounds = 0; changed; rounds++) {
    if (rounds > 64) spirv_refuse(k->arena, 0, "the kernel's flow is too irregular");
    changed = false;
    for (uint32_t i = 1; i < k->order_count; i++) {
      ir_block *block = &k->blocks[k->order[i]];
      uint32_t found = IR_EXIT;
      for (uint32_t p = 0; p < block->predecessor_count; p++) {
        uint32_t from = block->predecessors[p];
        if (k->blocks[from].dominator == IR_EXIT) continue;
        found = found == IR_EXIT ? from : common(k, found, from);
      }
      changed |= found != block->dominator;
      block->dominator = found;
    }
  }
}

/* Returns the block where the paths of two blocks to the end meet. The numbers are those of a backward walk; the end
 * has the largest. */
static uint32_t meet(const ir_kernel *k, uint32_t a, uint32_t b) {
  for (uint32_t steps = 0; a != b; steps++) {
    if (steps > 2 * k->block_count) return IR_EXIT;
    if (a == IR_EXIT || b == IR_EXIT) return IR_EXIT;
    if (k->blocks[a].order < k->blocks[b].order) a = k->blocks[a].after;
    else b = k->blocks[b].after;
  }
  return a;
}

/* Finds post-dominators in the forward order. Backwards, that order is not a reverse post-order of loops, so it may
 * take more rounds. If the result still changes after some rounds, or a loop has no end, nothing is known, and all
 * control flow counts as irregular. */
static void find_ends(ir_kernel *k) {
  bool changed = true, *known = SPIRV_TEMPORARY(k->arena, bool, k->block_count);
  for (uint32_t rounds = 0; changed && rounds < 64; rounds++) {
    changed = false;
    for (uint32_t i = k->order_count; i-- > 0;) {
      ir_block *block = &k->blocks[k->order[i]];
      uint32_t found = IR_EXIT;
      bool any = ir_successors(block) == 0;
      for (int s = 0; s < ir_successors(block); s++) {
        uint32_t to = block->successor[s];
        if (!known[to]) continue;
        found = any ? meet(k, found, to) : to;
        any = true;
      }
      if (!any || (known[k->order[i]] && found == block->after)) continue;
      known[k->order[i]] = true;
      block->after = found;
      changed = true;
    }
  }
  for (uint32_t i = 0; i < k->order_count; i++)
    if (changed || !known[k->order[i]]) k->irreducible = true;
  spirv_free(k->arena, known);
}

static bool dominates(const ir_kernel *k, uint32_t a, uint32_t b) {
  while (k->blocks[b].order > k->blocks[a].order) b = k->blocks[b].dominator;
  return a == b;
}

static void find_loops(walker *w) {
  ir_kernel *k = w->k;
  uint32_t *mark = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count);
  for (uint32_t i = 0; i < k->order_count; i++) k->blocks[k->order[i]].loop = IR_EXIT;
  uint64_t work = 0;
  for (uint32_t i = 0; i < k->order_count; i++) { /* outer headers first, so that inner ones remain */
    uint32_t header = k->order[i], depth = 0;
    for (uint32_t p = 0; p < k->blocks[header].predecessor_count; p++) {
      uint32_t latch = k->blocks[header].predecessors[p];
      if (k->blocks[latch].order < k->blocks[header].order) continue;
      if (!dominates(k, header, latch)) {
        k->irreducible = true;
        continue;
      }
      mark[header] = header + 1;
      if (k->blocks[header].loop != header) k->blocks[header].outer = k->blocks[header].loop;
      k->blocks[header].loop = header;
      if (mark[latch] != header + 1) w->stack[depth++] = latch;
      mark[latch] = header + 1;
    }
    while (depth != 0) {
      uint32_t block = w->stack[--depth];
      k->blocks[block].loop = header;
      if (++work > 64u * 1024 * 1024) spirv_refuse(k->arena, 0, "the kernel's loops are too many");
      for (uint32_t p = 0; p < k->blocks[block].predecessor_count; p++) {
        uint32_t from = k->blocks[block].predecessors[p];
        if (mark[from] == header + 1) continue;
        mark[from] = header + 1;
        w->stack[depth++] = from;
      }
    }
  }
  spirv_free(k->arena, mark);
}

void ir_find_order(ir_kernel *k) {
  walker w = {.k = k,
              .stack = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count + 1),
              .next = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count),
              .found = SPIRV_ARRAY(k->arena, uint32_t, k->block_count)};
  k->irreducible = false;
  walk(&w);
  find_predecessors(k);
  find_dominators(k);
  find_loops(&w);
  w.loops_known = true;
  walk(&w);
  find_dominators(k);
  find_ends(k);
  spirv_free(k->arena, w.stack);
  spirv_free(k->arena, w.next);
}
