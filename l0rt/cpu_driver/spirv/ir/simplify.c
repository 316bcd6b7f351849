/* SPDX-License-Identifier: Apache-2.0 */
/* simplify.c: joins blocks that follow each other, makes selections of short varying branches, drops unused values. */
#include <string.h>

#include "spirv/ir/ir.h"

enum { SHORT = 24 }; /* most instructions that may run without need */

typedef struct {
  ir_kernel *k;
  uint32_t *alias; /* the value that replaces each value; 0: none does */
  uint32_t most; /* its capacity in values */
} simplifier;

static uint32_t real(const simplifier *s, uint32_t value) { return ir_real(s->alias, s->most, value); }

static bool only_from(const ir_kernel *k, uint32_t block, uint32_t from) {
  return k->blocks[block].predecessor_count == 1 && k->blocks[block].predecessors[0] == from;
}

/* A phi of a block with one predecessor is its only source. */
static void drop_single_phis(simplifier *s, ir_block *block) {
  for (uint32_t p = 0; p < block->phi_count; p++) s->alias[block->phis[p].result] = real(s, block->phis[p].sources[0]);
  block->phi_count = 0;
}

static void rename_predecessor(ir_kernel *k, uint32_t block, uint32_t from, uint32_t to) {
  for (uint32_t p = 0; p < k->blocks[block].predecessor_count; p++)
    if (k->blocks[block].predecessors[p] == from) k->blocks[block].predecessors[p] = to;
}

static void append_all(ir_kernel *k, uint32_t to, uint32_t from) {
  for (uint32_t i = 0; i < k->blocks[from].count; i++) ir_append(k, to, k->blocks[from].insns[i]);
  k->blocks[from].count = 0;
}

/* The block that only this one jumps to; 0: there is none. */
static uint32_t follower(const ir_kernel *k, uint32_t b) {
  const ir_block *block = &k->blocks[b];
  uint32_t next = block->successor[0];
  return block->end == END_JUMP && next != b && only_from(k, next, b) ? next : 0;
}

static bool join_next(simplifier *s, uint32_t b, uint32_t most) {
  ir_kernel *k = s->k;
  ir_block *block = &k->blocks[b];
  uint32_t next = follower(k, b);
  if (next == 0 || k->blocks[next].count > most || block->count > most - k->blocks[next].count) return false;
  drop_single_phis(s, &k->blocks[next]);
  append_all(k, b, next);
  ir_block *gone = &k->blocks[next];
  block->end = gone->end;
  block->condition = gone->condition;
  block->at = gone->at;
  memcpy(block->successor, gone->successor, sizeof(block->successor));
  for (int i = 0; i < ir_successors(block); i++) rename_predecessor(k, block->successor[i], next, b);
  gone->end = END_RETURN;
  gone->order = 0;
  return true;
}

/* Joins a block with all that follow it. Of several that are joined the first comes first, so that each instruction moves
 * once: the inlined calls of a kernel may be some ten thousand. */
static void join_all(simplifier *s, uint32_t b) {
  ir_kernel *k = s->k;
  uint32_t total = k->blocks[b].count;
  for (uint32_t next = follower(k, b); next != 0; next = follower(k, next)) total += k->blocks[next].count;
  ir_reserve(k, b, total);
  while (join_next(s, b, UINT32_MAX)) continue;
}

/* Is the block pure and short, with the branch as only predecessor, and with one successor? */
static bool is_arm(const ir_kernel *k, uint32_t arm, uint32_t from) {
  const ir_block *block = &k->blocks[arm];
  if (block->end != END_JUMP || arm == from || !only_from(k, arm, from) || block->count > SHORT ||
      block->phi_count != 0)
    return false;
  for (uint32_t i = 0; i < block->count; i++)
    if (ir_has_effect(&block->insns[i]) || block->insns[i].op == IR_GROUP_GET) return false;
  return true;
}

static bool select_branch(simplifier *s, uint32_t b) {
  ir_kernel *k = s->k;
  ir_block *block = &k->blocks[b];
  if (block->end != END_BRANCH || !k->values[real(s, block->condition)].varying) return false;
  uint32_t yes = block->successor[0], no = block->successor[1];
  bool yes_arm = is_arm(k, yes, b), no_arm = is_arm(k, no, b);
  uint32_t join;
  if (yes_arm && no_arm && k->blocks[yes].successor[0] == k->blocks[no].successor[0])
    join = k->blocks[yes].successor[0];
  else if (yes_arm && k->blocks[yes].successor[0] == no) join = no, no_arm = false;
  else if (no_arm && k->blocks[no].successor[0] == yes) join = yes, yes_arm = false;
  else return false;
  if (join == b || join == 0) return false;
  uint32_t from_yes = yes_arm ? yes : b, from_no = no_arm ? no : b, condition = real(s, block->condition);
  uint32_t at_yes = IR_EXIT, at_no = IR_EXIT;
  ir_block *to = &k->blocks[join];
  for (uint32_t p = 0; p < to->predecessor_count; p++) {
    if (to->predecessors[p] == from_yes) at_yes = p;
    if (to->predecessors[p] == from_no) at_no = p;
  }
  if (at_yes == IR_EXIT || at_no == IR_EXIT || at_yes == at_no || k->value_count + to->phi_count > s->most)
    return false;
  if (yes_arm) append_all(k, b, yes);
  if (no_arm) append_all(k, b, no);
  if (yes_arm) k->blocks[yes].order = 0;
  if (no_arm) k->blocks[no].order = 0;
  for (uint32_t p = 0; p < to->phi_count; p++) {
    ir_phi *phi = &to->phis[p];
    uint32_t x = real(s, phi->sources[at_yes]), y = real(s, phi->sources[at_no]), lane = k->values[phi->result].lane;
    uint32_t value = x;
    if (x != y) {
      value = ir_value_new(k, (spirv_lane)lane);
      k->values[value].varying = true;
      ir_append(k, b,
                (ir_insn){.op = IR_SELECT,
                          .lane = (uint8_t)lane,
                          .result = value,
                          .a = condition,
                          .b = x,
                          .c = y,
                          .at = block->at});
    }
    phi->sources[at_yes] = value;
    phi->sources[at_no] = phi->sources[to->predecessor_count - 1];
  }
  to->predecessors[at_yes] = b;
  to->predecessors[at_no] = to->predecessors[to->predecessor_count - 1];
  to->predecessor_count--;
  block = &k->blocks[b];
  block->end = END_JUMP;
  block->successor[0] = join;
  return true;
}

void ir_simplify(ir_kernel *k) {
  /* Each selection makes one value for an existing phi, so twice the number of values is enough. */
  simplifier s = {.k = k, .most = k->value_count * 2};
  s.alias = SPIRV_TEMPORARY(k->arena, uint32_t, s.most);
  bool changed = true;
  while (changed) {
    changed = false;
    for (uint32_t i = k->order_count; i-- > 0;) {
      uint32_t b = k->order[i];
      if (k->blocks[b].order == 0) continue;
      while (join_next(&s, b, SHORT) || select_branch(&s, b)) changed = true; /* a longer block is no arm */
    }
  }
  for (uint32_t i = 0; i < k->order_count; i++)
    if (k->blocks[k->order[i]].order != 0) join_all(&s, k->order[i]);
  ir_replace_values(k, s.alias, k->value_count);
  spirv_free(k->arena, s.alias);
}

/* A load whose value is unused may be removed, and so may a collective of a sub-group. */
static bool must_stay(const ir_insn *insn) {
  return ir_has_effect(insn) && insn->op != IR_LOAD && insn->op != IR_LOAD_AT && insn->op != IR_SUBGROUP;
}

/* Marks what effects and branches need, and what those values need. The rest is removed. */
void ir_remove_unused(ir_kernel *k) {
  uint32_t *stack = SPIRV_TEMPORARY(k->arena, uint32_t, k->value_count + 1), depth = 0;
  ir_insn **maker = SPIRV_TEMPORARY(k->arena, ir_insn *, k->value_count);
  ir_phi **phi_maker = SPIRV_TEMPORARY(k->arena, ir_phi *, k->value_count);
  uint32_t *sources = SPIRV_TEMPORARY(k->arena, uint32_t, k->value_count);
#define NEED(v)                                                                                                        \
  do {                                                                                                                 \
    uint32_t v_ = (v);                                                                                                 \
    if (v_ != 0 && !k->values[v_].used) {                                                                              \
      k->values[v_].used = true;                                                                                       \
      stack[depth++] = v_;                                                                                             \
    }                                                                                                                  \
  } while (0)
  for (uint32_t v = 0; v < k->value_count; v++) k->values[v].used = false;
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t p = 0; p < block->phi_count; p++) {
      phi_maker[block->phis[p].result] = &block->phis[p];
      sources[block->phis[p].result] = block->predecessor_count;
    }
    for (uint32_t n = 0; n < block->count; n++) maker[block->insns[n].result] = &block->insns[n];
  }
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    if (block->end == END_BRANCH) NEED(block->condition);
    for (uint32_t n = 0; n < block->count; n++) {
      if (!must_stay(&block->insns[n])) continue;
      NEED(block->insns[n].result);
      for (int o = 0; ir_operand(&block->insns[n], o) != NULL; o++) NEED(*ir_operand(&block->insns[n], o));
      if (block->insns[n].op != IR_PRINTF) continue;
      const ir_printf *print = &k->printfs[block->insns[n].imm];
      for (uint32_t c = 0; c < print->component_count; c++) NEED(print->components[c]);
    }
  }
  while (depth != 0) {
    uint32_t v = stack[--depth];
    for (int o = 0; maker[v] != NULL && ir_operand(maker[v], o) != NULL; o++) NEED(*ir_operand(maker[v], o));
    for (uint32_t p = 0; phi_maker[v] != NULL && p < sources[v]; p++) NEED(phi_maker[v]->sources[p]);
  }
#undef NEED
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    uint32_t kept = 0;
    for (uint32_t n = 0; n < block->count; n++)
      if (must_stay(&block->insns[n]) || k->values[block->insns[n].result].used) block->insns[kept++] = block->insns[n];
    block->count = kept;
    kept = 0;
    for (uint32_t p = 0; p < block->phi_count; p++)
      if (k->values[block->phis[p].result].used) block->phis[kept++] = block->phis[p];
    block->phi_count = kept;
  }
  spirv_free(k->arena, stack);
  spirv_free(k->arena, maker);
  spirv_free(k->arena, phi_maker);
  spirv_free(k->arena, sources);
}
