/* SPDX-License-Identifier: Apache-2.0 */
/* lower_dot.c: dot products of integers, in vectors or four bytes of one word. */
#include <string.h>

#include "spirv/ir/lower.h"

enum { PACKED_4X8 = 0 };

typedef struct {
  uint32_t op;
  bool first_signed, second_signed, accumulates;
} product;

static const product products[] = {
    {OpSDot, true, true, false},      {OpUDot, false, false, false},      {OpSUDot, true, false, false},
    {OpSDotAccSat, true, true, true}, {OpUDotAccSat, false, false, true}, {OpSUDotAccSat, true, false, true},
};

/* One component as wide as the result; `packed`: a byte of the word. */
static uint32_t component(lowering *l, const uint32_t *values, uint64_t i, bool packed, spirv_lane from, spirv_lane to,
                          bool is_signed) {
  uint32_t value = packed ? values[0] : values[i];
  if (packed) {
    value = lower_op(l, IR_LSHR, LANE_I32, value, lower_number(l, LANE_I32, 8 * i));
    value = lower_convert(l, IR_CONVERT_U, LANE_I32, LANE_I8, value);
    from = LANE_I8;
  }
  return lower_convert(l, is_signed ? IR_CONVERT_S : IR_CONVERT_U, from, to, value);
}

/* `operands`: the ids of both vectors, and of what is added to their product. */
static void dot(lowering *l, const product *p, const uint32_t *w, const uint32_t *operands) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *first, *second, *sum_type;
  const uint32_t *a = lower_use(l, operands[0], &first), *b = lower_use(l, operands[1], &second);
  bool packed = first->kind == TYPE_INT;
  if (type->kind != TYPE_INT) WRONG(l, "the result is no integer");
  if (lower_component(first)->kind != TYPE_INT || lower_component(second)->kind != TYPE_INT ||
      first->components != second->components || lower_component(first)->width != lower_component(second)->width)
    WRONG(l, "the operands have other types");
  if (packed && first->width != 32) WRONG(l, "a packed vector is four bytes of one word of 32 bits");
  spirv_lane from = spirv_type_lane(lower_component(first)), to = spirv_type_lane(type);
  if (type->width < (packed ? 8 : lower_component(first)->width)) WRONG(l, "the result is narrower than the operands");
  uint32_t *sum = lower_list(l, type);
  for (uint64_t i = 0; i < (packed ? 4 : first->components); i++) {
    uint32_t one = lower_op(l, IR_MUL, to, component(l, a, i, packed, from, to, p->first_signed),
                            component(l, b, i, packed, from, to, p->second_signed));
    sum[0] = i == 0 ? one : lower_op(l, IR_ADD, to, sum[0], one);
  }
  if (p->accumulates) {
    uint32_t sum_before = lower_scalar(l, operands[2], &sum_type);
    if (sum_type != type) WRONG(l, "the accumulator has another type");
    sum[0] = lower_op(l, p->first_signed || p->second_signed ? IR_SADDSAT : IR_UADDSAT, to, sum[0], sum_before);
  }
  lower_define(l, w[2], sum);
}

bool lower_dot_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  const product *p = NULL;
  for (size_t i = 0; i < sizeof(products) / sizeof(products[0]) && p == NULL; i++)
    if (products[i].op == op) p = &products[i];
  if (p == NULL) return false;
  const spirv_type *first;
  uint32_t plain = p->accumulates ? 6 : 5; /* words without a format */
  lower_use(l, w[3], &first);
  if (first->kind == TYPE_INT ? length != plain + 1 || w[plain] != PACKED_4X8 : length != plain)
    WRONG(l, "a packed vector says that it is four bytes of one word of 32 bits");
  dot(l, p, w, w + 3);
  return true;
}

/* Is the vector's type in a mangled name one of integers, and are they signed? */
static bool vector_of(const char **name, bool *is_signed) {
  if (strncmp(*name, "Dv4_", 4) != 0 || strchr("csht", (*name)[4]) == NULL || (*name)[4] == 0) return false;
  *is_signed = (*name)[4] == 'c' || (*name)[4] == 's';
  *name += 5;
  return true;
}

bool lower_dot_function(lowering *l, const char *name, const uint32_t *w, uint32_t length) {
  product p = {.accumulates = strncmp(name, "dot_acc_sat", 11) == 0};
  if (!p.accumulates && strncmp(name, "dot", 3) != 0) return false;
  if (length != (p.accumulates ? 7 : 6)) return false;
  name += p.accumulates ? 11 : 3;
  if (strncmp(name, "_4x8packed_", 11) == 0) {
    p.first_signed = name[11] == 's';
    p.second_signed = name[11] != 0 && name[12] == 's';
  } else {
    if (!vector_of(&name, &p.first_signed)) return false;
    p.second_signed = p.first_signed; /* S_: the same type again */
    if (strncmp(name, "S_", 2) != 0 && !vector_of(&name, &p.second_signed)) return false;
  }
  dot(l, &p, w, w + 4);
  return true;
}
