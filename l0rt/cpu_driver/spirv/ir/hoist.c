/* SPDX-License-Identifier: Apache-2.0 */
/* hoist.c: moves what a loop computes anew in every round, from values that do not change in it, to before the loop. */
#include "spirv/ir/ir.h"

/* What is moved lives longer, and the registers of a wave should stay in a near cache: bytes of one lane that may. */
enum { MOST = 128 };

static bool is_pure(const ir_insn *insn) {
  return insn->op != IR_COPY && insn->op != IR_SPLAT && (insn->op <= IR_MATH1_INT || insn->op == IR_INDEX);
}

/* Returns the block before the outermost loop in which no operand is made, or the instruction's own block. A value that is
 * the same in all lanes is moved only if it comes from arguments and constants alone, to where all lanes run together. */
static uint32_t target_of(const ir_kernel *k, const uint32_t *made_in, ir_insn *insn, uint32_t block) {
  if (!k->values[insn->result].varying) {
    if (k->blocks[block].loop == IR_EXIT || k->blocks[0].loop != IR_EXIT) return block;
    for (int o = 0; ir_operand(insn, o) != NULL; o++) {
      uint32_t value = *ir_operand(insn, o);
      if (value != 0 && !k->values[value].constant && made_in[value] != 0) return block;
    }
    return 0;
  }
  while (k->blocks[block].loop != IR_EXIT) {
    uint32_t loop = k->blocks[block].loop, before = k->blocks[loop].dominator;
    if (loop == 0 || before == IR_EXIT) break;
    for (int o = 0; ir_operand(insn, o) != NULL; o++) {
      uint32_t value = *ir_operand(insn, o);
      if (value != 0 && !k->values[value].constant && ir_is_inside(k, made_in[value], loop)) return block;
    }
    block = before;
  }
  return block;
}

void ir_hoist(ir_kernel *k) {
  if (k->irreducible) return;
  uint32_t *made_in = SPIRV_TEMPORARY(k->arena, uint32_t, k->value_count), bytes = 0;
  for (uint32_t i = 0; i < k->order_count; i++) {
    const ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t p = 0; p < block->phi_count; p++) made_in[block->phis[p].result] = k->order[i];
    for (uint32_t n = 0; n < block->count; n++) made_in[block->insns[n].result] = k->order[i];
  }
  for (uint32_t i = 0; i < k->order_count; i++) {
    uint32_t b = k->order[i], kept = 0;
    for (uint32_t n = 0; n < k->blocks[b].count; n++) {
      ir_insn insn = k->blocks[b].insns[n];
      uint32_t size = spirv_lane_size[k->values[insn.result].lane], to = b;
      if (is_pure(&insn) && bytes + size <= MOST) to = target_of(k, made_in, &insn, b);
      if (to == b) {
        k->blocks[b].insns[kept++] = insn;
        continue;
      }
      ir_append(k, to, insn);
      made_in[insn.result] = to;
      bytes += size;
    }
    k->blocks[b].count = kept;
  }
  spirv_free(k->arena, made_in);
}
