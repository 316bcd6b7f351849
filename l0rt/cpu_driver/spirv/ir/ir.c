/* SPDX-License-Identifier: Apache-2.0 */
/* ir.c: makes values, instructions and blocks of the intermediate form, and answers questions about them. */
#include "spirv/ir/ir.h"

#include <string.h>

uint32_t ir_value_new(ir_kernel *k, spirv_lane lane) {
  k->values = spirv_grow(k->arena, k->values, k->value_count, &k->value_capacity, sizeof(ir_value));
  k->values[k->value_count] = (ir_value){.lane = (uint8_t)lane};
  return k->value_count++;
}

uint32_t ir_constant(ir_kernel *k, spirv_lane lane, uint64_t bits) {
  if (spirv_lane_size[lane] < 8) bits &= (UINT64_C(1) << (spirv_lane_size[lane] * 8)) - 1;
  uint32_t hash = (uint32_t)((bits ^ bits >> 29 ^ lane * 0x9e3779b9u) * 0x85ebca6bu) % IR_CONSTANTS;
  uint32_t known = k->constants[hash];
  if (known != 0 && k->values[known].lane == lane && k->values[known].bits == bits) return known;
  uint32_t value = ir_value_new(k, lane);
  k->values[value].constant = true;
  k->values[value].bits = bits;
  k->constants[hash] = value;
  return value;
}

uint32_t ir_block_new(ir_kernel *k) {
  k->blocks = spirv_grow(k->arena, k->blocks, k->block_count, &k->block_capacity, sizeof(ir_block));
  k->blocks[k->block_count] = (ir_block){.end = END_RETURN};
  return k->block_count++;
}

void ir_push(ir_kernel *k, ir_insn **insns, uint32_t *count, uint32_t *capacity, ir_insn insn) {
  *insns = spirv_grow(k->arena, *insns, *count, capacity, sizeof(ir_insn));
  (*insns)[(*count)++] = insn;
}

ir_insn *ir_append(ir_kernel *k, uint32_t block, ir_insn insn) {
  ir_block *b = &k->blocks[block];
  ir_push(k, &b->insns, &b->count, &b->capacity, insn);
  return &b->insns[b->count - 1];
}

void ir_reserve(ir_kernel *k, uint32_t block, uint32_t count) {
  ir_block *b = &k->blocks[block];
  if (count <= b->capacity) return;
  ir_insn *insns = SPIRV_ARRAY(k->arena, ir_insn, count);
  if (b->count != 0) memcpy(insns, b->insns, b->count * sizeof(*insns));
  b->insns = insns;
  b->capacity = count;
}

bool ir_has_effect(const ir_insn *insn) {
  switch (insn->op) {
    case IR_STORE:
    case IR_STORE_AT:
    case IR_ATOMIC:
    case IR_COPY_MEMORY:
    case IR_ASYNC_COPY:
    case IR_GROUP_PUT:
    case IR_FENCE:
    case IR_PRINTF:
    case IR_IMAGE:
    case IR_LOAD: /* the access may be an error */
    case IR_LOAD_AT:
    case IR_SUBGROUP: return true;
    default: return false;
  }
}

uint32_t *ir_operand(ir_insn *insn, int i) {
  if (i == 0) return &insn->a;
  if (i == 1) return &insn->b;
  if (i == 2) return &insn->c;
  return i == 3 && insn->op == IR_ASYNC_COPY ? &insn->extra : NULL;
}

ir_insn **ir_makers(ir_kernel *k) {
  ir_insn **makers = SPIRV_TEMPORARY(k->arena, ir_insn *, k->value_count);
  for (uint32_t i = 0; i < k->order_count; i++) {
    ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++) makers[block->insns[n].result] = &block->insns[n];
  }
  makers[0] = NULL;
  return makers;
}

uint32_t *ir_uses(ir_kernel *k) {
  uint32_t *uses = SPIRV_TEMPORARY(k->arena, uint32_t, k->value_count);
  for (uint32_t i = 0; i < k->order_count; i++) {
    const ir_block *block = &k->blocks[k->order[i]];
    for (uint32_t n = 0; n < block->count; n++)
      for (int o = 0; ir_operand(&block->insns[n], o) != NULL; o++) uses[*ir_operand(&block->insns[n], o)]++;
    for (uint32_t p = 0; p < block->phi_count; p++)
      for (uint32_t s = 0; s < block->predecessor_count; s++) uses[block->phis[p].sources[s]]++;
    if (block->end == END_BRANCH) uses[block->condition]++;
  }
  for (uint32_t p = 0; p < k->printf_count; p++)
    for (uint32_t c = 0; c < k->printfs[p].component_count; c++) uses[k->printfs[p].components[c]]++;
  return uses;
}

int ir_successors(const ir_block *block) {
  return block->end == END_BRANCH ? 2 : block->end == END_JUMP || block->end == END_BARRIER ? 1 : 0;
}

bool ir_is_inside(const ir_kernel *k, uint32_t block, uint32_t loop) {
  uint32_t at = k->blocks[block].loop;
  while (at != IR_EXIT && at != loop) at = k->blocks[at].outer;
  return at == loop;
}

void ir_replace_values(ir_kernel *k, const uint32_t *alias, uint32_t count) {
  for (uint32_t b = 0; b < k->block_count; b++) {
    ir_block *block = &k->blocks[b];
    block->condition = ir_real(alias, count, block->condition);
    for (uint32_t i = 0; i < block->count; i++)
      for (int o = 0; ir_operand(&block->insns[i], o) != NULL; o++)
        *ir_operand(&block->insns[i], o) = ir_real(alias, count, *ir_operand(&block->insns[i], o));
    for (uint32_t p = 0; p < block->phi_count; p++)
      for (uint32_t i = 0; i < block->predecessor_count; i++)
        block->phis[p].sources[i] = ir_real(alias, count, block->phis[p].sources[i]);
  }
  for (uint32_t p = 0; p < k->printf_count; p++)
    for (uint32_t c = 0; c < k->printfs[p].component_count; c++)
      k->printfs[p].components[c] = ir_real(alias, count, k->printfs[p].components[c]);
}
