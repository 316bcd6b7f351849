/* SPDX-License-Identifier: Apache-2.0 */
/* fuse.c: moves the computation of addresses into loads and stores: base + index × scale + offset. */
#include "spirv/ir/ir.h"

typedef struct {
  ir_kernel *k;
  ir_insn **makers;
  ir_insn *insns; /* of the block that is rewritten */
  uint32_t count, capacity;
} fuser;

enum { SUMS = 2 }; /* at most so many are added to a base, so that code does not grow much */

/* `extra` of IR_LOAD_AT tells the type of the index. */
static ir_insn *made_by(ir_insn **makers, uint32_t value) { return makers[value]; }

/* An added constant becomes part of the offset. */
static uint32_t strip(const ir_kernel *k, ir_insn **makers, uint32_t address, uint64_t *offset) {
  for (;;) {
    ir_insn *add = made_by(makers, address);
    if (add == NULL || add->op != IR_ADD || add->lane != LANE_I64 || !k->values[add->b].constant) return address;
    *offset += k->values[add->b].bits;
    address = add->a;
  }
}

/* An index that was widened from 32 bits is used without the widening. */
static uint32_t narrow(ir_insn **makers, uint32_t index, uint32_t *held) {
  ir_insn *widened = made_by(makers, index);
  *held = IR_INDEX_64;
  if (widened == NULL || widened->lane != LANE_I32) return index;
  if (widened->op != IR_CONVERT_S && widened->op != IR_CONVERT_U) return index;
  *held = widened->op == IR_CONVERT_S ? IR_INDEX_S32 : IR_INDEX_U32;
  return widened->a;
}

/* Of an index of 64 bits, an added constant becomes part of the offset, and a factor that of the scale. */
static uint32_t unscale(const ir_kernel *k, ir_insn **makers, uint32_t index, uint64_t *scale, uint64_t *offset) {
  for (;;) {
    const ir_insn *maker = made_by(makers, index);
    if (maker == NULL || maker->lane != LANE_I64 || !k->values[maker->b].constant) return index;
    uint64_t bits = k->values[maker->b].bits;
    if (maker->op == IR_ADD) *offset += bits * *scale;
    else if (maker->op == IR_SHL && bits < 8 && *scale << bits <= 255) *scale <<= bits;
    else return index;
    index = maker->a;
  }
}

/* What is the same in all lanes and is added to an index of 64 bits becomes part of the base, so that it is added once:
 * the sum is the same, also where it goes around all of memory. */
static uint32_t rebase(fuser *f, uint32_t index, uint64_t scale, uint32_t *base, uint32_t at) {
  for (int sums = 0; sums < SUMS; sums++) {
    const ir_value *values = f->k->values;
    const ir_insn *add = made_by(f->makers, index);
    if (add == NULL || add->op != IR_ADD || add->lane != LANE_I64) return index;
    bool first = !values[add->a].varying;
    if (first == !values[add->b].varying) return index;
    uint32_t same = first ? add->a : add->b, sum = ir_value_new(f->k, LANE_I64);
    ir_insn added = {.op = IR_INDEX, .lane = LANE_I64, .result = sum, .a = *base, .b = same, .imm = scale, .at = at};
    ir_push(f->k, &f->insns, &f->count, &f->capacity, added);
    *base = sum;
    index = first ? add->b : add->a;
  }
  return index;
}

static void fuse_one(fuser *f, ir_insn *insn) {
  ir_kernel *k = f->k;
  ir_insn **makers = f->makers;
  bool loads = insn->op == IR_LOAD;
  uint64_t offset = insn->imm;
  uint32_t address = strip(k, makers, insn->a, &offset);
  insn->a = address;
  insn->imm = offset;
  ir_insn *index = made_by(makers, address);
  if (index == NULL || index->op != IR_INDEX || k->values[index->a].varying || !k->values[index->b].varying) return;
  if (index->imm == 0 || index->imm > 255 || (index->lane != LANE_I64 && index->lane != LANE_I32)) return;
  uint32_t held = IR_INDEX_S32, by = index->lane == LANE_I32 ? index->b : narrow(makers, index->b, &held);
  uint64_t more = 0, scale = index->imm;
  if (held == IR_INDEX_64) by = unscale(k, makers, by, &scale, &more);
  uint32_t base = strip(k, makers, index->a, &more);
  if (held == IR_INDEX_64) by = narrow(makers, rebase(f, by, scale, &base, insn->at), &held);
  insn->imm += more;
  insn->op = loads ? IR_LOAD_AT : IR_STORE_AT;
  insn->scale = (uint8_t)scale;
  insn->extra = held;
  if (!loads) insn->c = insn->b;
  insn->a = base;
  insn->b = by;
}

static bool accesses(const ir_block *block) {
  for (uint32_t n = 0; n < block->count; n++)
    if (block->insns[n].op == IR_LOAD || block->insns[n].op == IR_STORE) return true;
  return false;
}

void ir_fuse(ir_kernel *k) {
  fuser f = {.k = k, .makers = ir_makers(k)};
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    if (!accesses(block)) continue;
    f.insns = SPIRV_ARRAY(k->arena, ir_insn, block->count);
    f.count = 0;
    f.capacity = block->count;
    for (uint32_t n = 0; n < block->count; n++) {
      ir_insn insn = block->insns[n];
      if (insn.op == IR_LOAD || insn.op == IR_STORE) fuse_one(&f, &insn);
      ir_push(k, &f.insns, &f.count, &f.capacity, insn);
    }
    block->insns = f.insns; /* those before stay where they are: makers are looked up there */
    block->count = f.count;
    block->capacity = f.capacity;
  }
  spirv_free(k->arena, f.makers);
}
