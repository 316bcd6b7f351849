/* SPDX-License-Identifier: Apache-2.0 */
/* lower_vector.c: OpenCL.std's loads and stores of vectors and halves, shuffles, and printf. */
#include "spirv/ir/lower.h"

typedef struct {
  bool stores, half, aligned, rounds;
  uint8_t count_at; /* the operand that has the number of components; 0: none */
} transfer;

static bool transfer_of(uint32_t function, transfer *t) {
  switch (function) {
    case CL_vloadn: *t = (transfer){.count_at = 2}; return true;
    case CL_vstoren: *t = (transfer){.stores = true}; return true;
    case CL_vload_half: *t = (transfer){.half = true}; return true;
    case CL_vload_halfn: *t = (transfer){.half = true, .count_at = 2}; return true;
    case CL_vloada_halfn: *t = (transfer){.half = true, .aligned = true, .count_at = 2}; return true;
    case CL_vstore_half:
    case CL_vstore_halfn: *t = (transfer){.stores = true, .half = true}; return true;
    case CL_vstorea_halfn: *t = (transfer){.stores = true, .half = true, .aligned = true}; return true;
    case CL_vstore_half_r:
    case CL_vstore_halfn_r: *t = (transfer){.stores = true, .half = true, .rounds = true}; return true;
    case CL_vstorea_halfn_r:
      *t = (transfer){.stores = true, .half = true, .rounds = true, .aligned = true};
      return true;
    default: return false;
  }
}

/* Operands of loads: offset, pointer, count. Of stores: data, offset, pointer, rounding mode. */
static void move(lowering *l, const transfer *t, const uint32_t *w, uint32_t length) {
  uint32_t first = t->stores ? 6 : 5, expected = first + 2 + (t->count_at != 0) + t->rounds;
  if (length != expected) WRONG(l, "function %u of OpenCL.std has other operands", w[4]);
  const spirv_type *offset_type, *pointer, *type;
  const uint32_t *data = NULL;
  if (t->stores) data = lower_use(l, w[5], &type);
  else type = spirv_type_of(l->m, l->at, w[1]);
  uint32_t offset = lower_scalar(l, w[first], &offset_type), address = lower_scalar(l, w[first + 1], &pointer);
  const spirv_type *component = lower_component(type);
  if (offset_type->kind != TYPE_INT || pointer->kind != TYPE_POINTER || pointer->element == NULL ||
      !spirv_is_scalar(component))
    WRONG(l, "the operands have other types");
  bool half = pointer->element->kind == TYPE_FLOAT && pointer->element->width == 16;
  if (t->half ? !half || component->kind != TYPE_FLOAT : pointer->element != component)
    WRONG(l, "the pointer is one to another type");
  if (t->stores && (pointer->storage == StorageInput || pointer->storage == StorageUniformConstant))
    WRONG(l, "storage class %u cannot be written", pointer->storage);
  if (t->count_at != 0 && w[first + 2] != type->components) WRONG(l, "the result has another number of components");
  uint64_t size = t->half ? 2 : component->size, wide = type->components == 3 && t->aligned ? 4 : type->components;
  uint32_t rounding = t->rounds ? w[first + 2] : RoundingRTE;
  if (rounding > RoundingRTN) WRONG(l, "rounding mode %u is not known", rounding);
  address = lower_index(l, address, offset, spirv_type_lane(offset_type), size * wide);
  spirv_lane lane = spirv_type_lane(component);
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++) {
    uint32_t where = lower_offset(l, address, i * size);
    if (!t->stores) {
      lower_load(l, pointer->element, where, &values[i]);
      if (t->half) values[i] = lower_convert(l, IR_CONVERT_F, LANE_F16, lane, values[i]);
      continue;
    }
    uint32_t value = data[i];
    if (t->half && lane != LANE_F16)
      value = rounding == RoundingRTE ? lower_convert(l, IR_CONVERT_F, lane, LANE_F16, value)
                                      : lower_round_float(l, lane, LANE_F16, value, rounding);
    lower_store(l, pointer->element, where, &value);
  }
  if (!t->stores) lower_define(l, w[2], values);
}

static void shuffle(lowering *l, const uint32_t *w, uint32_t length) {
  uint32_t inputs = w[4] == CL_shuffle ? 1 : 2;
  if (length != 6 + inputs) WRONG(l, "shuffle has other operands");
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *a_type, *b_type, *mask_type;
  const uint32_t *a = lower_use(l, w[5], &a_type), *b = lower_use(l, w[4 + inputs], &b_type);
  const uint32_t *mask = lower_use(l, w[5 + inputs], &mask_type);
  if (type->kind != TYPE_VECTOR || a_type->kind != TYPE_VECTOR || b_type != a_type ||
      type->element != a_type->element || mask_type->kind != TYPE_VECTOR || mask_type->count != type->count ||
      mask_type->element->kind != TYPE_INT)
    WRONG(l, "the operands have other types");
  spirv_lane lane = spirv_type_lane(type->element), by = spirv_type_lane(mask_type->element);
  uint32_t *values = lower_list(l, type), count = (uint32_t)(a_type->count * inputs);
  for (uint64_t i = 0; i < type->count; i++) {
    uint32_t which = lower_op(l, IR_AND, by, mask[i], lower_number(l, by, count - 1));
    values[i] = a[0];
    for (uint32_t k = 1; k < count; k++) {
      uint32_t from = k < a_type->count ? a[k] : b[k - a_type->count];
      values[i] = lower_select(l, lane, lower_compare(l, IR_EQ, by, which, lower_number(l, by, k)), from, values[i]);
    }
  }
  lower_define(l, w[2], values);
}

static void print(lowering *l, const uint32_t *w, uint32_t length) {
  const spirv_type *format, *type, *result = spirv_type_of(l->m, l->at, w[1]);
  if (length < 6 || result->kind != TYPE_INT) WRONG(l, "printf has no format");
  uint32_t address = lower_scalar(l, w[5], &format);
  if (format->kind != TYPE_POINTER) WRONG(l, "printf's format is no pointer");
  ir_kernel *k = l->k;
  k->printfs = spirv_grow(l->arena, k->printfs, k->printf_count, &k->printf_capacity, sizeof(ir_printf));
  ir_printf p = {.argument_count = length - 6, .at = lower_place(l)};
  p.arguments = SPIRV_ARRAY(l->arena, uint8_t, p.argument_count + 1);
  p.components = SPIRV_ARRAY(l->arena, uint32_t, p.argument_count * 16 + 1);
  for (uint32_t i = 0; i < p.argument_count; i++) {
    const uint32_t *values = lower_use(l, w[6 + i], &type);
    if (!spirv_is_scalar(type) && type->kind != TYPE_VECTOR) WRONG(l, "printf's argument %u has another type", i);
    p.arguments[i] = (uint8_t)type->components;
    for (uint64_t c = 0; c < type->components; c++) p.components[p.component_count++] = values[c];
  }
  k->printfs[k->printf_count] = p;
  uint32_t *value = lower_list(l, result);
  ir_insn insn = {.op = IR_PRINTF, .lane = LANE_I64, .a = address, .imm = k->printf_count++, .at = lower_place(l)};
  ir_append(k, l->block, insn);
  value[0] = lower_number(l, spirv_type_lane(result), 0);
  lower_define(l, w[2], value);
}

bool lower_vector_function(lowering *l, const uint32_t *w, uint32_t length) {
  transfer t;
  if (transfer_of(w[4], &t)) move(l, &t, w, length);
  else if (w[4] == CL_shuffle || w[4] == CL_shuffle2) shuffle(l, w, length);
  else if (w[4] == CL_printf) print(l, w, length);
  else if (w[4] != CL_prefetch) return false;
  return true;
}
