/* SPDX-License-Identifier: Apache-2.0 */
/* fold.c: computes what is made of integer constants alone, and takes the branches that they decide. */
#include "spirv/ir/ir.h"

#define NUMBER(name, expression)                                                                                       \
  case IR_##name: *result = (uint64_t)(expression); return true;
#define TRUTH(name, expression)                                                                                        \
  case IR_##name: *result = (expression) ? UINT32_MAX : 0; return true;
#define EVALUATE(bits, wide)                                                                                           \
  static bool evaluate_##bits(uint32_t op, uint64_t a, uint64_t b, uint64_t *result) {                                 \
    typedef uint##bits##_t U;                                                                                          \
    typedef int##bits##_t S;                                                                                           \
    typedef wide WU;                                                                                                   \
    enum { BITS = bits };                                                                                              \
    U x = (U)a, y = (U)b;                                                                                              \
    switch (op) {                                                                                                      \
      IR_INTEGER2(NUMBER)                                                                                              \
      IR_INTEGER_COMPARE(TRUTH)                                                                                        \
      default: return false;                                                                                           \
    }                                                                                                                  \
  }
__extension__ typedef unsigned __int128 twice_64;
EVALUATE(8, uint16_t)
EVALUATE(16, uint32_t)
EVALUATE(32, uint64_t)
EVALUATE(64, twice_64)

static bool is_integer(uint32_t lane) { return lane >= LANE_I8 && lane <= LANE_I64; }

static uint64_t widen(uint64_t bits, uint32_t lane) {
  unsigned unused = 64 - spirv_lane_size[lane] * 8u;
  return (uint64_t)((int64_t)(bits << unused) >> unused);
}

bool ir_evaluate(const ir_kernel *k, const ir_insn *insn, const uint64_t *operands, uint64_t *result) {
  uint64_t a = operands[0], b = operands[1];
  switch (insn->op) {
    case IR_SELECT: *result = (a & 1) != 0 ? b : operands[2]; return true;
    case IR_INDEX: *result = a + widen(b, insn->lane) * insn->imm; return is_integer(insn->lane);
    case IR_CONVERT_U: *result = a; return is_integer(insn->lane) && is_integer(k->values[insn->result].lane);
    case IR_CONVERT_S:
      *result = widen(a, insn->lane);
      return is_integer(insn->lane) && is_integer(k->values[insn->result].lane);
    default: break;
  }
  switch (insn->lane) {
    case LANE_I8: return evaluate_8(insn->op, a, b, result);
    case LANE_I16: return evaluate_16(insn->op, a, b, result);
    case LANE_BOOL:
    case LANE_I32: return evaluate_32(insn->op, a, b, result);
    case LANE_I64: return evaluate_64(insn->op, a, b, result);
    default: return false;
  }
}

/* Returns the value that replaces the result of the instruction, a constant or what is selected; 0: there is none. */
static uint32_t replacement(ir_kernel *k, ir_insn *insn, const uint32_t *alias, uint32_t count) {
  uint64_t operands[3] = {0}, bits;
  bool any = false;
  if (insn->result == 0 || insn->op >= IR_COPY_MEMORY) return 0;
  const ir_value *first = &k->values[ir_real(alias, count, insn->a)];
  if (insn->op == IR_SELECT && first->constant)
    return ir_real(alias, count, (first->bits & 1) != 0 ? insn->b : insn->c);
  for (int o = 0; o < 3; o++) {
    uint32_t value = ir_real(alias, count, *ir_operand(insn, o));
    if (value == 0) continue;
    if (!k->values[value].constant) return 0;
    operands[o] = k->values[value].bits;
    any = true;
  }
  if (!any || !ir_evaluate(k, insn, operands, &bits)) return 0;
  return ir_constant(k, (spirv_lane)k->values[insn->result].lane, bits);
}

/* A constant index becomes an added constant. */
static void settle_index(ir_kernel *k, ir_insn *insn, const uint32_t *alias, uint32_t count) {
  uint32_t index = ir_real(alias, count, insn->b);
  if (insn->op != IR_INDEX || !k->values[index].constant || !is_integer(insn->lane)) return;
  insn->b = ir_constant(k, LANE_I64, widen(k->values[index].bits, insn->lane) * insn->imm);
  insn->op = IR_ADD;
  insn->lane = LANE_I64;
  insn->imm = 0;
}

/* The value that all sources of a phi are; 0: they differ. */
static uint32_t source_of(const ir_block *block, const ir_phi *phi, const uint32_t *alias, uint32_t count) {
  uint32_t same = 0;
  for (uint32_t p = 0; p < block->predecessor_count; p++) {
    uint32_t source = ir_real(alias, count, phi->sources[p]);
    if (source == phi->result || source == same) continue;
    if (same != 0) return 0;
    same = source;
  }
  return same;
}

static void remove_predecessor(ir_block *block, uint32_t from) {
  uint32_t kept = 0;
  for (uint32_t p = 0; p < block->predecessor_count; p++) {
    if (block->predecessors[p] == from) continue;
    block->predecessors[kept] = block->predecessors[p];
    for (uint32_t f = 0; f < block->phi_count; f++) block->phis[f].sources[kept] = block->phis[f].sources[p];
    kept++;
  }
  block->predecessor_count = kept;
}

static void decide(ir_kernel *k, uint32_t b) {
  ir_block *block = &k->blocks[b];
  if (block->end != END_BRANCH || !k->values[block->condition].constant) return;
  bool yes = (k->values[block->condition].bits & 1) != 0;
  uint32_t to = block->successor[yes ? 0 : 1], other = block->successor[yes ? 1 : 0];
  block->end = END_JUMP;
  block->successor[0] = to;
  block->condition = 0;
  if (other != to) remove_predecessor(&k->blocks[other], b);
}

void ir_fold(ir_kernel *k) {
  uint32_t count = k->value_count, *alias = SPIRV_TEMPORARY(k->arena, uint32_t, count);
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    uint32_t kept = 0;
    for (uint32_t p = 0; p < block->phi_count; p++) {
      uint32_t source = source_of(block, &block->phis[p], alias, count);
      if (source != 0) alias[block->phis[p].result] = source;
      else block->phis[kept++] = block->phis[p];
    }
    block->phi_count = kept;
    kept = 0;
    for (uint32_t n = 0; n < block->count; n++) {
      ir_insn insn = block->insns[n];
      uint32_t value = replacement(k, &insn, alias, count);
      if (value != 0) {
        alias[insn.result] = value;
        continue;
      }
      settle_index(k, &insn, alias, count);
      block->insns[kept++] = insn;
    }
    block->count = kept;
  }
  ir_replace_values(k, alias, count);
  spirv_free(k->arena, alias);
  for (uint32_t i = 0; i < k->order_count; i++) decide(k, k->order[i]);
  ir_find_order(k);
}
