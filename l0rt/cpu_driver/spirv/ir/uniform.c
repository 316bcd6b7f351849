/* SPDX-License-Identifier: Apache-2.0 */
/* uniform.c: finds the values that are the same in all lanes that run together.
 *
 * A phi varies if a source varies, or if lanes can reach its block by different paths. That is so in a block where
 * paths of a varying branch meet first. In a loop that lanes leave at different times, all phis and loads vary. */
#include "spirv/decode/grammar.h"
#include "spirv/ir/ir.h"

enum { ROUNDS = 48 };

static bool builtin_varies(uint32_t builtin) {
  return builtin == BuiltInLocalInvocationId || builtin == BuiltInGlobalInvocationId ||
         builtin == BuiltInLocalInvocationIndex || builtin == BuiltInGlobalLinearId || builtin == BuiltInSubgroupId ||
         builtin == BuiltInSubgroupLocalInvocationId || builtin == BuiltInSubgroupSize;
}

static bool varies(const ir_kernel *k, const ir_block *block, ir_insn *insn) {
  switch (insn->op) {
    case IR_BUILTIN: return builtin_varies(insn->extra);
    case IR_ARGUMENT_ADDRESS: return insn->scale == 2; /* 2: each lane has a copy */
    case IR_PRIVATE_ADDRESS:
    case IR_ATOMIC:
    case IR_SUBGROUP: return true;
    case IR_GROUP_GET: return insn->imm != 0 || block->unsettled;
    case IR_LOAD:
    case IR_LOAD_AT:
      if (block->unsettled) return true;
      break;
    default: break;
  }
  for (int i = 0; i < 3; i++)
    if (k->values[*ir_operand(insn, i)].varying) return true;
  return false;
}

/* Marks the blocks of `seen`, from a varying branch to the block where all its paths have joined. Each has its own number
 * as label. */
static void mark(ir_kernel *k, uint32_t from, const uint32_t *seen, uint32_t count, uint32_t *labels) {
  const ir_block *branch = &k->blocks[from];
  uint32_t low = UINT32_MAX, high = 0;
  bool loops = false;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t order = k->blocks[seen[i]].order;
    if (order <= branch->order) loops = true;
    if (order < low) low = order;
    if (order > high) high = order;
  }
  if (branch->after != IR_EXIT) k->blocks[branch->after].joins = true;
  if (loops) {
    for (uint32_t i = low; i <= high; i++)
      if (labels[k->order[i - 1]] != IR_EXIT)
        k->blocks[k->order[i - 1]].joins = k->blocks[k->order[i - 1]].unsettled = true;
    return;
  }
  /* Without back edges: a block that is reached with two labels is a join, and then its label is its own number. */
  for (uint32_t i = low; i <= high && low != UINT32_MAX; i++) {
    uint32_t block = k->order[i - 1], label = IR_EXIT;
    if (labels[block] == IR_EXIT) continue;
    for (uint32_t p = 0; p < k->blocks[block].predecessor_count; p++) {
      uint32_t before = k->blocks[block].predecessors[p], got;
      if (before == from) got = block;
      else if (k->blocks[before].order < i && labels[before] != IR_EXIT) got = labels[before];
      else continue;
      if (label == IR_EXIT) label = got;
      else if (label != got) {
        label = block;
        k->blocks[block].joins = true;
        break;
      }
    }
    labels[block] = label == IR_EXIT ? block : label;
  }
}

/* The labels are IR_EXIT, before and after. Returns the number of blocks between the branch and where its paths join. */
static uint32_t spread(ir_kernel *k, uint32_t from, uint32_t *seen, uint32_t *labels) {
  const ir_block *branch = &k->blocks[from];
  uint32_t count = 0;
  for (uint32_t i = 0, block = from; i <= count; block = seen[i++])
    for (int s = 0; s < ir_successors(&k->blocks[block]); s++) {
      uint32_t to = k->blocks[block].successor[s];
      if (to == branch->after || labels[to] != IR_EXIT) continue;
      labels[to] = to;
      seen[count++] = to;
    }
  mark(k, from, seen, count, labels);
  for (uint32_t i = 0; i < count; i++) labels[seen[i]] = IR_EXIT;
  return count;
}

void ir_find_varying(ir_kernel *k) {
  uint32_t *seen = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count + 1);
  uint32_t *labels = SPIRV_TEMPORARY(k->arena, uint32_t, k->block_count);
  bool *done = SPIRV_TEMPORARY(k->arena, bool, k->block_count), changed = true, all = k->irreducible;
  for (uint32_t v = 0; v < k->value_count; v++) k->values[v].varying = false;
  for (uint32_t b = 0; b < k->block_count; b++)
    k->blocks[b].joins = k->blocks[b].unsettled = false, labels[b] = IR_EXIT;
  uint64_t spreads = 0;
  for (uint32_t rounds = 0; changed; rounds++) {
    changed = false;
    if (rounds == ROUNDS) all = true;
    for (uint32_t i = 0; i < k->order_count; i++) {
      ir_block *block = &k->blocks[k->order[i]];
      for (uint32_t p = 0; p < block->phi_count; p++) {
        bool varying = all || block->joins;
        for (uint32_t s = 0; s < block->predecessor_count; s++) varying |= k->values[block->phis[p].sources[s]].varying;
        ir_value *value = &k->values[block->phis[p].result];
        changed |= varying && !value->varying;
        value->varying |= varying;
      }
      for (uint32_t n = 0; n < block->count; n++) {
        ir_insn *insn = &block->insns[n];
        if (insn->result == 0) continue;
        bool varying = all || varies(k, block, insn);
        changed |= varying && !k->values[insn->result].varying;
        k->values[insn->result].varying |= varying;
      }
      if (block->end != END_BRANCH || !k->values[block->condition].varying || done[k->order[i]] || all) continue;
      done[k->order[i]] = true;
      spreads += spread(k, k->order[i], seen, labels) + 1;
      if (spreads > 64u * 1024 * 1024) all = true;
      changed = true;
    }
  }
  spirv_free(k->arena, seen);
  spirv_free(k->arena, labels);
  spirv_free(k->arena, done);
}
