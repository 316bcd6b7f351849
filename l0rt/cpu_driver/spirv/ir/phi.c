/* SPDX-License-Identifier: Apache-2.0 */
/* phi.c: phis become copies at the ends of the blocks before them.
 *
 * A copy spares the lanes that do not run. Where all lanes of a wave run there are none to spare, and an instruction may
 * write the phi itself instead of a value that is copied. So a block may have its instructions twice: as they are, with
 * copies, and for a wave that is whole. */
#include "spirv/ir/ir.h"

enum {
  MOST = 256
}; /* a block with more phis has copies only: ordering them takes time by the square of their number */

static void split_edges(ir_kernel *k) {
  uint32_t blocks = k->block_count;
  for (uint32_t b = 0; b < blocks; b++) {
    if (k->blocks[b].order == 0 || k->blocks[b].phi_count == 0) continue;
    for (uint32_t p = 0; p < k->blocks[b].predecessor_count; p++) {
      uint32_t from = k->blocks[b].predecessors[p];
      if (k->blocks[from].end != END_BRANCH) continue;
      uint32_t edge = ir_block_new(k);
      k->blocks[edge].end = END_JUMP;
      k->blocks[edge].successor[0] = b;
      k->blocks[edge].at = k->blocks[from].at;
      k->blocks[b].predecessors[p] = edge;
      for (int s = 0; s < 2; s++)
        if (k->blocks[from].successor[s] == b) k->blocks[from].successor[s] = edge;
    }
  }
}

typedef struct {
  ir_insn insn; /* writes the phi: the copy, or the instruction that makes what would be copied */
  uint32_t source; /* what is copied */
  uint32_t maker; /* number of that instruction in the block, from 1; 0: it is a copy */
} move;

typedef struct {
  ir_kernel *k;
  uint32_t known; /* number of values before any copy */
  uint32_t *readers; /* of each value: how many moves still have to read it */
  uint32_t *uses, *maker_block, *maker_place; /* of each value: in what block is the only instruction that makes it */
  move *moves;
  uint32_t move_count, move_capacity;
} mover;

/* A move may read what it writes. */
static void count_reads(mover *m, move *one, uint32_t change) {
  for (int o = 0; o < 3; o++) {
    uint32_t value = *ir_operand(&one->insn, o);
    if (value != one->insn.result && value < m->known) m->readers[value] += change;
  }
}

static void make_copy(mover *m, move *one) {
  uint32_t target = one->insn.result;
  one->maker = 0;
  one->insn = (ir_insn){
      .op = IR_COPY, .lane = m->k->values[target].lane, .result = target, .a = one->source, .at = one->insn.at};
  count_reads(m, one, 1);
}

/* A cycle: the first move that is no copy becomes one. Between copies, one more value holds what is to be read. */
static ir_insn break_cycle(mover *m, uint32_t count) {
  ir_kernel *k = m->k;
  for (uint32_t i = 0; i < count; i++) {
    if (m->moves[i].maker == 0) continue;
    count_reads(m, &m->moves[i], -1u);
    make_copy(m, &m->moves[i]);
    return (ir_insn){.op = IR_NONE};
  }
  uint32_t target = m->moves[0].insn.result, aside = ir_value_new(k, (spirv_lane)k->values[target].lane);
  k->values[aside].varying = k->values[target].varying;
  k->values[aside].across = true;
  m->readers[target] = 0;
  for (uint32_t i = 0; i < count; i++)
    if (m->moves[i].insn.a == target) m->moves[i].insn.a = aside;
  return (ir_insn){
      .op = IR_COPY, .lane = k->values[aside].lane, .result = aside, .a = target, .at = m->moves[0].insn.at};
}

/* Appends all moves. They happen at once: one whose target is still to be read waits. */
static void append_moves(mover *m, ir_insn **insns, uint32_t *count, uint32_t *capacity) {
  bool moved = true;
  for (uint32_t left = m->move_count; left != 0;) {
    if (!moved) {
      ir_insn aside = break_cycle(m, left);
      if (aside.op != IR_NONE) ir_push(m->k, insns, count, capacity, aside);
    }
    moved = false;
    for (uint32_t i = 0; i < left;) {
      move one = m->moves[i];
      if (m->readers[one.insn.result] != 0) {
        i++;
        continue;
      }
      ir_push(m->k, insns, count, capacity, one.insn);
      count_reads(m, &one, -1u);
      m->moves[i] = m->moves[--left];
      m->moves[left] = one;
      moved = true;
    }
  }
}

/* Does an instruction do nothing but compute the elements of its result, each from those of its operands? */
static bool is_elementwise(uint32_t op) { return op < IR_COPY || op == IR_INDEX; }

/* Lets an instruction of the block write the phi, if the copy is the only use of its result. */
static void join_maker(mover *m, move *one, uint32_t from) {
  ir_kernel *k = m->k;
  uint32_t source = one->source, target = one->insn.result;
  if (k->values[source].constant || m->maker_place[source] == 0 || m->maker_block[source] != from) return;
  const ir_insn *maker = &k->blocks[from].insns[m->maker_place[source] - 1];
  if (m->uses[source] != 1 || !is_elementwise(maker->op)) return;
  if (k->values[source].varying != k->values[target].varying || k->values[source].lane != k->values[target].lane)
    return;
  count_reads(m, one, -1u);
  one->insn = *maker;
  one->insn.result = target;
  one->maker = m->maker_place[source];
  count_reads(m, one, 1);
}

static void list_moves(mover *m, uint32_t to, uint32_t p) {
  ir_kernel *k = m->k;
  const ir_block *block = &k->blocks[to];
  m->move_count = 0;
  for (uint32_t i = 0; i < block->phi_count; i++) {
    const ir_phi *phi = &block->phis[i];
    if (phi->sources[p] == phi->result) continue;
    m->moves = spirv_grow(k->arena, m->moves, m->move_count, &m->move_capacity, sizeof(move));
    move *one = &m->moves[m->move_count++];
    *one = (move){.source = phi->sources[p], .insn = {.result = phi->result, .at = block->phis[0].at}};
    make_copy(m, one);
  }
}

/* The instructions of the block but those that write a phi now, and then these. `count`: of them without any copies. */
static void make_whole(mover *m, uint32_t from, uint32_t count) {
  ir_kernel *k = m->k;
  ir_block *block = &k->blocks[from];
  uint32_t capacity = 0, tail = 0, joined = 0;
  ir_insn *end = NULL;
  bool *gone = SPIRV_ARRAY(k->arena, bool, count + 1);
  for (uint32_t i = 0; i < m->move_count; i++) join_maker(m, &m->moves[i], from);
  append_moves(m, &end, &tail, &capacity);
  for (uint32_t i = 0; i < m->move_count; i++) {
    if (m->moves[i].maker == 0) continue;
    gone[m->moves[i].maker - 1] = true;
    joined++;
  }
  if (joined == 0) return;
  block->whole = SPIRV_ARRAY(k->arena, ir_insn, count - joined + tail);
  for (uint32_t n = 0; n < count; n++)
    if (!gone[n]) block->whole[block->whole_count++] = block->insns[n];
  block->whole_tail = block->whole_count;
  for (uint32_t n = 0; n < tail; n++) block->whole[block->whole_count++] = end[n];
}

static void find_makers(mover *m) {
  ir_kernel *k = m->k;
  m->uses = ir_uses(k);
  m->maker_block = SPIRV_TEMPORARY(k->arena, uint32_t, m->known);
  m->maker_place = SPIRV_TEMPORARY(k->arena, uint32_t, m->known);
  for (uint32_t i = 0; i < k->order_count; i++) {
    const ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) {
      m->maker_block[block->insns[n].result] = k->order[i];
      m->maker_place[block->insns[n].result] = n + 1;
    }
  }
}

void ir_replace_phis(ir_kernel *k) {
  split_edges(k);
  ir_find_order(k);
  mover m = {.k = k, .known = k->value_count, .readers = SPIRV_TEMPORARY(k->arena, uint32_t, k->value_count)};
  find_makers(&m);
  for (uint32_t i = 0; i < k->order_count; i++) {
    uint32_t b = k->order[i];
    for (uint32_t p = 0; k->blocks[b].phi_count != 0 && p < k->blocks[b].predecessor_count; p++) {
      uint32_t from = k->blocks[b].predecessors[p], count = k->blocks[from].count;
      list_moves(&m, b, p);
      ir_reserve(k, from, count + m.move_count);
      append_moves(&m, &k->blocks[from].insns, &k->blocks[from].count, &k->blocks[from].capacity);
      if (k->blocks[b].phi_count > MOST) continue;
      list_moves(&m, b, p);
      make_whole(&m, from, count);
    }
  }
  spirv_free(k->arena, m.readers);
  spirv_free(k->arena, m.uses);
  spirv_free(k->arena, m.maker_block);
  spirv_free(k->arena, m.maker_place);
}
