/* SPDX-License-Identifier: Apache-2.0 */
/* cheapen.c: replaces operations by cheaper ones with the same result, and two by one. Some producers leave optimisation
 * to the driver: their modules divide by powers of two, and multiply numbers of 64 bits where 32 are enough. */
#include "spirv/ir/ir.h"

typedef struct {
  ir_kernel *k;
  ir_insn **makers;
} cheapener;

static bool constant(const cheapener *c, uint32_t value, uint64_t *bits) {
  if (!c->k->values[value].constant) return false;
  *bits = c->k->values[value].bits;
  return true;
}

static bool is_power(uint64_t bits) { return bits != 0 && (bits & (bits - 1)) == 0; }

/* A division or multiplication by a power of two becomes a shift or a mask. */
static void divide(const cheapener *c, ir_insn *insn) {
  uint64_t bits;
  if (insn->op == IR_MUL && constant(c, insn->a, &bits)) {
    uint32_t swap = insn->a;
    insn->a = insn->b;
    insn->b = swap;
  }
  if (!constant(c, insn->b, &bits) || !is_power(bits)) return;
  spirv_lane lane = (spirv_lane)insn->lane;
  uint32_t shift = ir_constant(c->k, lane, (uint64_t)__builtin_ctzll(bits));
  if (insn->op == IR_UREM) insn->b = ir_constant(c->k, lane, bits - 1);
  else insn->b = shift;
  insn->op = insn->op == IR_UREM ? IR_AND : insn->op == IR_UDIV ? IR_LSHR : IR_SHL;
}

/* Returns a value of 32 bits that equals the low half of a value of 64 bits: the one that was widened, or a constant.
 * Returns 0 if there is none. With `zeros`, the high half must be zero. */
static uint32_t narrow(const cheapener *c, uint32_t value, bool zeros) {
  uint64_t bits;
  if (constant(c, value, &bits)) return zeros && bits >> 32 != 0 ? 0 : ir_constant(c->k, LANE_I32, bits);
  const ir_insn *maker = c->makers[value];
  if (maker == NULL || maker->lane != LANE_I32) return 0;
  return maker->op == IR_CONVERT_U || (maker->op == IR_CONVERT_S && !zeros) ? maker->a : 0;
}

/* Half of a product of two widened numbers, the low or the high one, is a product of 32 bits. */
static void truncate(const cheapener *c, ir_insn *insn) {
  if (insn->lane != LANE_I64 || c->k->values[insn->result].lane != LANE_I32) return;
  const ir_insn *from = c->makers[insn->a];
  uint64_t shift = 0;
  if (from != NULL && from->op == IR_LSHR && constant(c, from->b, &shift)) from = c->makers[from->a];
  if (from == NULL || from->op != IR_MUL || (shift != 0 && shift != 32)) return;
  uint32_t a = narrow(c, from->a, shift != 0), b = narrow(c, from->b, shift != 0);
  if (a == 0 || b == 0) return;
  insn->op = shift != 0 ? IR_UMULHI : IR_MUL;
  insn->lane = LANE_I32;
  insn->a = a;
  insn->b = b;
}

/* Whether two numbers have a common bit is asked at once. */
static void test(const cheapener *c, ir_insn *insn) {
  uint64_t bits;
  const ir_insn *common = c->makers[insn->a];
  if (common == NULL || common->op != IR_AND || !constant(c, insn->b, &bits) || bits != 0) return;
  insn->op = IR_TEST;
  insn->a = common->a;
  insn->b = common->b;
}

void ir_cheapen(ir_kernel *k) {
  uint32_t known = k->value_count; /* constants that are made here have no instruction, and none is looked up */
  cheapener c = {.k = k, .makers = ir_makers(k)};
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) {
      ir_insn *insn = &block->insns[n];
      if (insn->op == IR_CONVERT_U || insn->op == IR_CONVERT_S) truncate(&c, insn);
    }
  }
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) {
      ir_insn *insn = &block->insns[n];
      if (insn->op == IR_MUL || insn->op == IR_UDIV || insn->op == IR_UREM) divide(&c, insn);
      if (insn->op == IR_NE && insn->a < known) test(&c, insn);
    }
  }
  spirv_free(k->arena, c.makers);
}

/* A sum of what is the same in all lanes and of the product of a number and a constant, which nothing else uses. */
static void join_product(const ir_kernel *k, ir_insn *sum, ir_insn **makers, const uint32_t *uses) {
  uint32_t product = k->values[sum->a].varying ? sum->a : sum->b, same = product == sum->a ? sum->b : sum->a;
  const ir_insn *maker = makers[product];
  if (maker == NULL || maker->op != IR_MUL || !k->values[maker->b].constant) return;
  if (uses[product] != 1 || k->values[same].varying) return;
  sum->op = IR_INDEX;
  sum->a = same;
  sum->b = maker->a;
  sum->imm = k->values[maker->b].bits;
}

void ir_join_products(ir_kernel *k) {
  ir_insn **makers = SPIRV_TEMPORARY(k->arena, ir_insn *, k->value_count); /* of the block only */
  uint32_t *uses = ir_uses(k);
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) {
      ir_insn *insn = &block->insns[n];
      if (insn->op == IR_ADD && insn->lane == LANE_I64) join_product(k, insn, makers, uses);
      makers[insn->result] = insn;
    }
    for (uint32_t n = 0; n < block->count; n++) makers[block->insns[n].result] = NULL;
  }
  spirv_free(k->arena, makers);
  spirv_free(k->arena, uses);
  ir_remove_unused(k);
}
