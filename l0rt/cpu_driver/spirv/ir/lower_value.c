/* SPDX-License-Identifier: Apache-2.0 */
/* lower_value.c: arithmetic, comparisons, conversions and composites. Each component is lowered alone. */
#include <math.h>
#include <string.h>

#include "spirv/ir/lower.h"

enum { INTEGER = 1, REAL = 2, BOOLEAN = 4, POINTER = 8, SWAPPED = 16, COMPARES = 32 };

typedef struct {
  uint16_t op, ir, accepts;
} rule;

static const rule rules2[] = {
    {OpIAdd, IR_ADD, INTEGER},     {OpISub, IR_SUB, INTEGER},       {OpIMul, IR_MUL, INTEGER},
    {OpUDiv, IR_UDIV, INTEGER},    {OpSDiv, IR_SDIV, INTEGER},      {OpUMod, IR_UREM, INTEGER},
    {OpSRem, IR_SREM, INTEGER},    {OpSMod, IR_SMOD, INTEGER},      {OpFAdd, IR_FADD, REAL},
    {OpFSub, IR_FSUB, REAL},       {OpFMul, IR_FMUL, REAL},         {OpFDiv, IR_FDIV, REAL},
    {OpBitwiseOr, IR_OR, INTEGER}, {OpBitwiseXor, IR_XOR, INTEGER}, {OpBitwiseAnd, IR_AND, INTEGER},
    {OpLogicalOr, IR_OR, BOOLEAN}, {OpLogicalAnd, IR_AND, BOOLEAN}, {OpLogicalNotEqual, IR_XOR, BOOLEAN},
};

static const rule compares[] = {
    {OpIEqual, IR_EQ, INTEGER},
    {OpINotEqual, IR_NE, INTEGER},
    {OpULessThan, IR_ULT, INTEGER},
    {OpULessThanEqual, IR_ULE, INTEGER},
    {OpUGreaterThan, IR_ULT, INTEGER | SWAPPED},
    {OpUGreaterThanEqual, IR_ULE, INTEGER | SWAPPED},
    {OpSLessThan, IR_SLT, INTEGER},
    {OpSLessThanEqual, IR_SLE, INTEGER},
    {OpSGreaterThan, IR_SLT, INTEGER | SWAPPED},
    {OpSGreaterThanEqual, IR_SLE, INTEGER | SWAPPED},
    {OpPtrEqual, IR_EQ, POINTER},
    {OpPtrNotEqual, IR_NE, POINTER},
    {OpFOrdEqual, IR_FOEQ, REAL},
    {OpFUnordEqual, IR_FUEQ, REAL},
    {OpFOrdNotEqual, IR_FONE, REAL},
    {OpLessOrGreater, IR_FONE, REAL},
    {OpFUnordNotEqual, IR_FUNE, REAL},
    {OpFOrdLessThan, IR_FOLT, REAL},
    {OpFUnordLessThan, IR_FULT, REAL},
    {OpFOrdGreaterThan, IR_FOLT, REAL | SWAPPED},
    {OpFUnordGreaterThan, IR_FULT, REAL | SWAPPED},
    {OpFOrdLessThanEqual, IR_FOLE, REAL},
    {OpFUnordLessThanEqual, IR_FULE, REAL},
    {OpFOrdGreaterThanEqual, IR_FOLE, REAL | SWAPPED},
    {OpFUnordGreaterThanEqual, IR_FULE, REAL | SWAPPED},
    {OpOrdered, IR_ORDERED, REAL},
    {OpUnordered, IR_UNORDERED, REAL},
    {OpLogicalEqual, IR_EQ, BOOLEAN},
};

static const rule rules1[] = {
    {OpSNegate, IR_NEG, INTEGER},
    {OpNot, IR_NOT, INTEGER},
    {OpFNegate, IR_FNEG, REAL},
    {OpLogicalNot, IR_NOT, BOOLEAN},
    {OpBitReverse, IR_BITREVERSE, INTEGER},
    {OpIsNan, IR_ISNAN, REAL | COMPARES},
    {OpIsInf, IR_ISINF, REAL | COMPARES},
    {OpIsFinite, IR_ISFINITE, REAL | COMPARES},
    {OpIsNormal, IR_ISNORMAL, REAL | COMPARES},
    {OpSignBitSet, IR_SIGNBIT, REAL | COMPARES},
};

static const rule *find(const rule *rules, size_t count, uint32_t op) {
  for (size_t i = 0; i < count; i++)
    if (rules[i].op == op) return &rules[i];
  return NULL;
}
#define FIND(rules, op) find(rules, sizeof(rules) / sizeof(rules[0]), op)

static unsigned class_of(const spirv_type *type) {
  switch (lower_component(type)->kind) {
    case TYPE_INT: return INTEGER;
    case TYPE_FLOAT: return REAL;
    case TYPE_BOOL: return BOOLEAN;
    case TYPE_POINTER: return POINTER;
    default: return 0;
  }
}

/* Returns an operand, which must be a scalar or vector of one of the classes with as many components as the result. */
static const uint32_t *numbers(lowering *l, uint32_t id, unsigned accepts, uint64_t components, spirv_lane *lane) {
  const spirv_type *type;
  const uint32_t *values = lower_use(l, id, &type);
  if ((class_of(type) & accepts) == 0) WRONG(l, "operand %u has a type that the instruction does not take", id);
  if (type->components != components)
    WRONG(l, "operand %u has %llu components", id, (unsigned long long)type->components);
  *lane = spirv_type_lane(lower_component(type));
  return values;
}

static const spirv_type *result_type(lowering *l, uint32_t id, unsigned accepts) {
  const spirv_type *type = spirv_type_of(l->m, l->at, id);
  if ((class_of(type) & accepts) == 0) WRONG(l, "the result has a type that the instruction does not give");
  return type;
}

static bool two_operands(lowering *l, uint32_t op, const uint32_t *w) {
  const rule *r = FIND(rules2, op), *c = FIND(compares, op);
  if (r == NULL && c == NULL) return false;
  const spirv_type *type = result_type(l, w[1], r != NULL ? r->accepts : BOOLEAN);
  unsigned accepts = r != NULL ? r->accepts : c->accepts & 15u;
  if (accepts == INTEGER && r == NULL) accepts |= POINTER; /* some producers compare pointers as integers */
  spirv_lane a_lane, b_lane;
  const uint32_t *a = numbers(l, w[3], accepts, type->components, &a_lane);
  const uint32_t *b = numbers(l, w[4], accepts, type->components, &b_lane);
  spirv_lane lane = spirv_type_lane(lower_component(type));
  if (a_lane != b_lane || (r != NULL && lane != a_lane)) WRONG(l, "the operands have different types");
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++) {
    if (r != NULL) values[i] = lower_op(l, r->ir, lane, a[i], b[i]);
    else if (c->accepts & SWAPPED) values[i] = lower_compare(l, c->ir, a_lane, b[i], a[i]);
    else values[i] = lower_compare(l, c->ir, a_lane, a[i], b[i]);
  }
  lower_define(l, w[2], values);
  return true;
}

static bool one_operand(lowering *l, uint32_t op, const uint32_t *w) {
  const rule *r = FIND(rules1, op);
  if (r == NULL) return false;
  const spirv_type *type = result_type(l, w[1], r->accepts & COMPARES ? BOOLEAN : r->accepts);
  spirv_lane lane;
  const uint32_t *a = numbers(l, w[3], r->accepts & 15u, type->components, &lane);
  if (!(r->accepts & COMPARES) && lane != spirv_type_lane(lower_component(type)))
    WRONG(l, "the operand has another type");
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++)
    values[i] = r->accepts & COMPARES ? lower_compare(l, r->ir, lane, a[i], 0) : lower_op(l, r->ir, lane, a[i], 0);
  lower_define(l, w[2], values);
  return true;
}

/* The count of a shift may have another width than the shifted value. */
static bool shift(lowering *l, uint32_t op, const uint32_t *w) {
  ir_op ir = op == OpShiftLeftLogical ? IR_SHL : op == OpShiftRightLogical ? IR_LSHR : IR_ASHR;
  const spirv_type *type = result_type(l, w[1], INTEGER);
  spirv_lane lane, by;
  const uint32_t *a = numbers(l, w[3], INTEGER, type->components, &lane);
  const uint32_t *b = numbers(l, w[4], INTEGER, type->components, &by);
  if (lane != spirv_type_lane(lower_component(type))) WRONG(l, "the base has another type");
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++)
    values[i] = lower_op(l, ir, lane, a[i], lower_convert(l, IR_CONVERT_U, by, lane, b[i]));
  lower_define(l, w[2], values);
  return true;
}

static uint32_t round_towards(lowering *l, spirv_lane lane, uint32_t value, uint32_t rounding) {
  if (rounding == RoundingRTE) return lower_op(l, IR_RINT, lane, value, 0);
  if (rounding == RoundingRTP) return lower_op(l, IR_CEIL, lane, value, 0);
  if (rounding == RoundingRTN) return lower_op(l, IR_FLOOR, lane, value, 0);
  return value;
}

/* Clamps an integer of the width of `from` to the range of `to`. */
static uint32_t saturate(lowering *l, uint32_t value, spirv_lane from, spirv_lane to, bool from_signed,
                         bool to_signed) {
  unsigned bits = spirv_lane_size[to] * 8u, wide = spirv_lane_size[from] * 8u;
  uint64_t most = to_signed ? (UINT64_C(1) << (bits - 1)) - 1 : bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
  uint64_t largest = from_signed  ? (UINT64_C(1) << (wide - 1)) - 1
                     : wide == 64 ? UINT64_MAX
                                  : (UINT64_C(1) << wide) - 1;
  if (from_signed) {
    uint64_t least = to_signed ? ~most : 0;
    if (!to_signed || bits < wide) value = lower_op(l, IR_SMAX, from, value, lower_number(l, from, least));
    if (most < largest) value = lower_op(l, IR_SMIN, from, value, lower_number(l, from, most));
  } else if (most < largest) {
    value = lower_op(l, IR_UMIN, from, value, lower_number(l, from, most));
  }
  return lower_convert(l, from_signed ? IR_CONVERT_S : IR_CONVERT_U, from, to, value);
}

/* Returns the next float above a positive one. */
static uint32_t next_float(lowering *l, spirv_lane lane, uint32_t value) {
  ir_insn next = {.op = IR_MATH2, .lane = (uint8_t)lane, .a = value, .b = lower_real(l, lane, HUGE_VAL)};
  next.extra = CL_nextafter;
  return lower_emit(l, next, lane);
}

/* Converts an integer to a float in a rounding mode: the bits that it keeps, or the next float if bits are lost. */
static uint32_t round_integer(lowering *l, spirv_lane from, spirv_lane to, uint32_t value, bool is_signed,
                              uint32_t rounding) {
  unsigned bits = spirv_lane_size[from] * 8u, precision = to == LANE_F16 ? 11 : to == LANE_F32 ? 24 : 53;
  if (bits <= precision) return lower_convert(l, is_signed ? IR_CONVERT_S : IR_CONVERT_U, from, to, value);
  uint32_t size = is_signed ? lower_op(l, IR_SABS, from, value, 0) : value, kept = size;
  if (to == LANE_F16) kept = lower_op(l, IR_UMIN, from, kept, lower_number(l, from, 65504));
  uint32_t lost = lower_op(l, IR_USUBSAT, from, lower_number(l, from, bits - precision),
                           lower_op(l, IR_CLZ, from, kept, 0));
  kept = lower_op(l, IR_SHL, from, lower_op(l, IR_LSHR, from, kept, lost), lost);
  uint32_t near = lower_convert(l, IR_CONVERT_U, from, to, kept), far = near;
  if (rounding != RoundingRTZ)
    far = lower_select(l, to, lower_compare(l, IR_NE, from, size, kept), next_float(l, to, near), near);
  if (!is_signed) return rounding == RoundingRTP ? far : near;
  uint32_t negative = lower_compare(l, IR_SLT, from, value, lower_number(l, from, 0));
  uint32_t below = lower_op(l, IR_FNEG, to, rounding == RoundingRTN ? far : near, 0);
  return lower_select(l, to, negative, below, rounding == RoundingRTP ? far : near);
}

static bool convert(lowering *l, uint32_t op, const uint32_t *w) {
  unsigned from_class = INTEGER, to_class = INTEGER;
  if (op == OpConvertFToU || op == OpConvertFToS || op == OpFConvert) from_class = REAL;
  if (op == OpConvertSToF || op == OpConvertUToF || op == OpFConvert) to_class = REAL;
  const spirv_type *type = result_type(l, w[1], to_class);
  spirv_lane from, to = spirv_type_lane(lower_component(type));
  const uint32_t *a = numbers(l, w[3], from_class, type->components, &from);
  const spirv_id *id = &l->m->ids[w[2]];
  uint32_t rounding = id->rounding == 0 ? RoundingRTZ : id->rounding - 1u;
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++) {
    switch (op) {
      case OpConvertFToU:
      case OpConvertFToS:
        values[i] = lower_convert(l, op == OpConvertFToU ? IR_FLOAT_TO_U : IR_FLOAT_TO_S, from, to,
                                  round_towards(l, from, a[i], rounding));
        break;
      case OpFConvert:
        if (id->rounding > RoundingRTE + 1 && spirv_memory_size[to] < spirv_memory_size[from])
          values[i] = lower_round_float(l, from, to, a[i], rounding);
        else values[i] = lower_convert(l, IR_CONVERT_F, from, to, a[i]);
        break;
      case OpConvertSToF:
      case OpConvertUToF:
        if (id->rounding > RoundingRTE + 1) values[i] = round_integer(l, from, to, a[i], op == OpConvertSToF, rounding);
        else values[i] = lower_convert(l, op == OpConvertSToF ? IR_CONVERT_S : IR_CONVERT_U, from, to, a[i]);
        break;
      case OpUConvert:
        values[i] = id->saturated ? saturate(l, a[i], from, to, false, false)
                                  : lower_convert(l, IR_CONVERT_U, from, to, a[i]);
        break;
      case OpSConvert:
        values[i] = id->saturated ? saturate(l, a[i], from, to, true, true)
                                  : lower_convert(l, IR_CONVERT_S, from, to, a[i]);
        break;
      case OpSatConvertSToU: values[i] = saturate(l, a[i], from, to, true, false); break;
      default: values[i] = saturate(l, a[i], from, to, false, true);
    }
  }
  lower_define(l, w[2], values);
  return true;
}

/* The same bits as fewer or more components, little endian, by integers. */
static bool bitcast(lowering *l, const uint32_t *w) {
  const spirv_type *from_type, *type = result_type(l, w[1], INTEGER | REAL | POINTER);
  const uint32_t *a = lower_use(l, w[3], &from_type);
  if ((class_of(from_type) & (INTEGER | REAL | POINTER)) == 0) WRONG(l, "bits of a type that has none");
  spirv_lane from = spirv_type_lane(lower_component(from_type)), to = spirv_type_lane(lower_component(type));
  uint64_t from_size = spirv_memory_size[from], to_size = spirv_memory_size[to];
  if (from_size * from_type->components != to_size * type->components) WRONG(l, "the result has another size");
  uint32_t *values = lower_list(l, type);
  static const spirv_lane integers[] = {0, LANE_I8, LANE_I16, 0, LANE_I32, 0, 0, 0, LANE_I64};
  spirv_lane from_int = integers[from_size], to_int = integers[to_size];
  if (from_size == to_size) {
    for (uint64_t i = 0; i < type->components; i++) values[i] = lower_convert(l, IR_BITS, from, to, a[i]);
  } else if (from_size < to_size) {
    uint64_t parts = to_size / from_size;
    for (uint64_t i = 0; i < type->components; i++) {
      uint32_t whole = lower_number(l, to_int, 0);
      for (uint64_t p = 0; p < parts; p++) {
        uint32_t part = lower_convert(l, IR_BITS, from, from_int, a[i * parts + p]);
        part = lower_convert(l, IR_CONVERT_U, from_int, to_int, part);
        part = lower_op(l, IR_SHL, to_int, part, lower_number(l, to_int, p * from_size * 8));
        whole = lower_op(l, IR_OR, to_int, whole, part);
      }
      values[i] = lower_convert(l, IR_BITS, to_int, to, whole);
    }
  } else {
    uint64_t parts = from_size / to_size;
    for (uint64_t i = 0; i < type->components; i++) {
      uint32_t whole = lower_convert(l, IR_BITS, from, from_int, a[i / parts]);
      whole = lower_op(l, IR_LSHR, from_int, whole, lower_number(l, from_int, i % parts * to_size * 8));
      values[i] = lower_convert(l, IR_BITS, to_int, to, lower_convert(l, IR_CONVERT_U, from_int, to_int, whole));
    }
  }
  lower_define(l, w[2], values);
  return true;
}

uint32_t lower_brain_float(lowering *l, bool widens, uint32_t a) {
  uint32_t half = lower_number(l, LANE_I32, 16), one = lower_number(l, LANE_I32, 1);
  if (widens) {
    uint32_t bits = lower_op(l, IR_SHL, LANE_I32, lower_convert(l, IR_CONVERT_U, LANE_I16, LANE_I32, a), half);
    return lower_convert(l, IR_BITS, LANE_I32, LANE_F32, bits);
  }
  uint32_t bits = lower_convert(l, IR_BITS, LANE_F32, LANE_I32, a);
  uint32_t odd = lower_op(l, IR_AND, LANE_I32, lower_op(l, IR_LSHR, LANE_I32, bits, half), one);
  uint32_t up = lower_op(l, IR_ADD, LANE_I32, odd, lower_number(l, LANE_I32, 0x7fff));
  uint32_t quiet = lower_op(l, IR_OR, LANE_I32, bits, lower_number(l, LANE_I32, 1 << 22));
  uint32_t nearest = lower_op(l, IR_ADD, LANE_I32, bits, up);
  bits = lower_select(l, LANE_I32, lower_compare(l, IR_ISNAN, LANE_F32, a, 0), quiet, nearest);
  return lower_convert(l, IR_CONVERT_U, LANE_I32, LANE_I16, lower_op(l, IR_LSHR, LANE_I32, bits, half));
}

static bool brain_floats(lowering *l, bool widens, const uint32_t *w) {
  const spirv_type *type = result_type(l, w[1], widens ? REAL : INTEGER);
  spirv_lane lane, to = spirv_type_lane(lower_component(type));
  const uint32_t *a = numbers(l, w[3], widens ? INTEGER : REAL, type->components, &lane);
  if (lane != (widens ? LANE_I16 : LANE_F32) || to != (widens ? LANE_F32 : LANE_I16))
    WRONG(l, "a conversion between others than floats and integers of 16 bits");
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++) values[i] = lower_brain_float(l, widens, a[i]);
  lower_define(l, w[2], values);
  return true;
}

static bool select_value(lowering *l, const uint32_t *w) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *kind, *a_type, *b_type;
  const uint32_t *condition = lower_use(l, w[3], &kind);
  const uint32_t *a = lower_use(l, w[4], &a_type), *b = lower_use(l, w[5], &b_type);
  if (class_of(kind) != BOOLEAN || a_type != type || b_type != type) WRONG(l, "the operands have other types");
  if (kind->components != 1 && kind->components != type->components) WRONG(l, "the condition has other components");
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++) {
    uint64_t offset;
    spirv_lane lane = spirv_type_lane(spirv_leaf(type, i, &offset));
    values[i] = lower_select(l, lane, condition[kind->components == 1 ? 0 : i], a[i], b[i]);
  }
  lower_define(l, w[2], values);
  return true;
}

/* Finds the component that literal indices name, and its type. */
static uint64_t walk(lowering *l, const spirv_type **type, const uint32_t *indices, uint32_t count) {
  uint64_t first = 0;
  for (uint32_t i = 0; i < count; i++) {
    const spirv_type *member = spirv_member(*type, indices[i]);
    if (member == NULL) WRONG(l, "there is no member %u", indices[i]);
    first += spirv_first_component(*type, indices[i]);
    *type = member;
  }
  return first;
}

static bool composite(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *part_type, *whole_type;
  uint32_t *values = lower_list(l, type);
  if (op == OpCompositeConstruct) {
    uint64_t next = 0, member = 0;
    if (type->kind < TYPE_VECTOR || type->kind > TYPE_STRUCT) WRONG(l, "the result is no composite");
    for (uint32_t i = 3; i < length; i++, member++) {
      const uint32_t *part = lower_use(l, w[i], &part_type);
      bool joins = type->kind == TYPE_VECTOR && part_type->kind == TYPE_VECTOR && part_type->element == type->element;
      if (!joins && (spirv_member(type, member) != part_type)) WRONG(l, "member %u has another type", i - 3);
      if (next + part_type->components > type->components) WRONG(l, "too many members");
      memcpy(values + next, part, part_type->components * sizeof(uint32_t));
      next += part_type->components;
    }
    if (next != type->components) WRONG(l, "members are missing");
  } else if (op == OpCompositeExtract) {
    const uint32_t *whole = lower_use(l, w[3], &whole_type);
    uint64_t first = walk(l, &whole_type, w + 4, length - 4);
    if (whole_type != type) WRONG(l, "the member has another type");
    memcpy(values, whole + first, type->components * sizeof(uint32_t));
  } else {
    const uint32_t *part = lower_use(l, w[3], &part_type), *whole = lower_use(l, w[4], &whole_type);
    if (whole_type != type) WRONG(l, "the composite has another type");
    uint64_t first = walk(l, &whole_type, w + 5, length - 5);
    if (whole_type != part_type) WRONG(l, "the member has another type");
    memcpy(values, whole, type->components * sizeof(uint32_t));
    memcpy(values + first, part, part_type->components * sizeof(uint32_t));
  }
  lower_define(l, w[2], values);
  return true;
}

static bool vectors(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *a_type, *b_type, *index_type;
  const uint32_t *a = lower_use(l, w[3], &a_type), *b = lower_use(l, w[4], &b_type);
  uint32_t *values = lower_list(l, type);
  if (a_type->kind != TYPE_VECTOR) WRONG(l, "operand %u is no vector", w[3]);
  spirv_lane lane = spirv_type_lane(a_type->element);
  if (op == OpVectorShuffle) {
    if (type->kind != TYPE_VECTOR || b_type->kind != TYPE_VECTOR || type->element != a_type->element ||
        type->element != b_type->element || length - 5 != type->count)
      WRONG(l, "the vectors do not agree");
    for (uint32_t i = 0; i < type->count; i++) {
      uint32_t from = w[5 + i];
      if (from == UINT32_MAX) values[i] = lower_number(l, lane, 0);
      else if (from < a_type->count) values[i] = a[from];
      else if (from < a_type->count + b_type->count) values[i] = b[from - a_type->count];
      else WRONG(l, "there is no component %u", from);
    }
  } else if (op == OpVectorExtractDynamic) {
    if (type != a_type->element || b_type->kind != TYPE_INT) WRONG(l, "the operands have other types");
    values[0] = a[0];
    spirv_lane by = spirv_type_lane(b_type);
    for (uint32_t i = 1; i < a_type->count; i++)
      values[0] = lower_select(l, lane, lower_compare(l, IR_EQ, by, b[0], lower_number(l, by, i)), a[i], values[0]);
  } else {
    uint32_t index = lower_scalar(l, w[5], &index_type);
    if (type != a_type || b_type != type->element || index_type->kind != TYPE_INT)
      WRONG(l, "the operands have other types");
    spirv_lane by = spirv_type_lane(index_type);
    for (uint32_t i = 0; i < type->count; i++)
      values[i] = lower_select(l, lane, lower_compare(l, IR_EQ, by, index, lower_number(l, by, i)), b[0], a[i]);
  }
  lower_define(l, w[2], values);
  return true;
}

static bool bit_field(lowering *l, uint32_t op, const uint32_t *w) {
  const spirv_type *type = result_type(l, w[1], INTEGER), *unused;
  spirv_lane lane = spirv_type_lane(lower_component(type)), got;
  unsigned bits = spirv_lane_size[lane] * 8u;
  const uint32_t *base = numbers(l, w[3], INTEGER, type->components, &got);
  const uint32_t *insert = op == OpBitFieldInsert ? numbers(l, w[4], INTEGER, type->components, &got) : NULL;
  uint32_t next = op == OpBitFieldInsert ? 5 : 4;
  uint32_t offset = lower_scalar(l, w[next], &unused);
  if (unused->kind != TYPE_INT) WRONG(l, "the offset is no integer");
  offset = lower_convert(l, IR_CONVERT_U, spirv_type_lane(unused), lane, offset);
  uint32_t count = lower_scalar(l, w[next + 1], &unused);
  if (unused->kind != TYPE_INT || got != lane) WRONG(l, "the operands have other types");
  count = lower_convert(l, IR_CONVERT_U, spirv_type_lane(unused), lane, count);
  uint32_t width = lower_number(l, lane, bits), zero = lower_number(l, lane, 0);
  uint32_t none = lower_compare(l, IR_EQ, lane, count, zero);
  uint32_t unwanted = lower_op(l, IR_SUB, lane, width, count); /* bits above the field */
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++) {
    if (op == OpBitFieldInsert) {
      uint32_t ones = lower_op(l, IR_LSHR, lane, lower_number(l, lane, UINT64_MAX), unwanted);
      ones = lower_select(l, lane, none, zero, ones);
      uint32_t mask = lower_op(l, IR_SHL, lane, ones, offset);
      uint32_t kept = lower_op(l, IR_AND, lane, base[i], lower_op(l, IR_NOT, lane, mask, 0));
      uint32_t put = lower_op(l, IR_AND, lane, lower_op(l, IR_SHL, lane, insert[i], offset), mask);
      values[i] = lower_op(l, IR_OR, lane, kept, put);
    } else {
      uint32_t up = lower_op(l, IR_SUB, lane, unwanted, offset);
      uint32_t high = lower_op(l, IR_SHL, lane, base[i], up);
      uint32_t low = lower_op(l, op == OpBitFieldSExtract ? IR_ASHR : IR_LSHR, lane, high, unwanted);
      values[i] = lower_select(l, lane, none, zero, low);
    }
  }
  lower_define(l, w[2], values);
  return true;
}

static bool products(lowering *l, uint32_t op, const uint32_t *w) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *vector;
  uint32_t *values = lower_list(l, type);
  spirv_lane lane, other;
  if (op == OpVectorTimesScalar) {
    result_type(l, w[1], REAL);
    const uint32_t *a = numbers(l, w[3], REAL, type->components, &lane), *b = numbers(l, w[4], REAL, 1, &other);
    for (uint64_t i = 0; i < type->components; i++) values[i] = lower_op(l, IR_FMUL, lane, a[i], b[0]);
  } else if (op == OpDot) {
    lower_use(l, w[3], &vector);
    const uint32_t *a = numbers(l, w[3], REAL, vector->components, &lane);
    const uint32_t *b = numbers(l, w[4], REAL, vector->components, &other);
    if (type != lower_component(vector)) WRONG(l, "the result has another type");
    values[0] = lower_op(l, IR_FMUL, lane, a[0], b[0]);
    for (uint64_t i = 1; i < vector->components; i++)
      values[0] = lower_op(l, IR_FADD, lane, values[0], lower_op(l, IR_FMUL, lane, a[i], b[i]));
  } else { /* the two results are in a structure */
    if (type->kind != TYPE_STRUCT || type->count != 2 || type->members[0] != type->members[1] ||
        class_of(type->members[0]) != INTEGER)
      WRONG(l, "the result is no pair of integers");
    uint64_t count = type->members[0]->components;
    spirv_lane want = spirv_type_lane(lower_component(type->members[0]));
    const uint32_t *a = numbers(l, w[3], INTEGER, count, &lane), *b = numbers(l, w[4], INTEGER, count, &other);
    if (lane != want) WRONG(l, "the operands have other types");
    for (uint64_t i = 0; i < count; i++) {
      uint32_t one = lower_number(l, lane, 1), zero = lower_number(l, lane, 0), over;
      ir_op low = op == OpIAddCarry ? IR_ADD : op == OpISubBorrow ? IR_SUB : IR_MUL;
      values[i] = lower_op(l, low, lane, a[i], b[i]);
      if (op == OpUMulExtended || op == OpSMulExtended) {
        values[count + i] = lower_op(l, op == OpUMulExtended ? IR_UMULHI : IR_SMULHI, lane, a[i], b[i]);
        continue;
      }
      if (op == OpIAddCarry) over = lower_compare(l, IR_ULT, lane, values[i], a[i]);
      else over = lower_compare(l, IR_ULT, lane, a[i], b[i]);
      values[count + i] = lower_select(l, lane, over, one, zero);
    }
  }
  if (lane != other) WRONG(l, "the operands have different types");
  lower_define(l, w[2], values);
  return true;
}

static bool remainder_of(lowering *l, uint32_t op, const uint32_t *w) {
  const spirv_type *type = result_type(l, w[1], REAL);
  spirv_lane lane, other;
  const uint32_t *a = numbers(l, w[3], REAL, type->components, &lane),
                 *b = numbers(l, w[4], REAL, type->components, &other);
  if (lane != other || lane != spirv_type_lane(lower_component(type))) WRONG(l, "the operands have different types");
  uint32_t *values = lower_list(l, type);
  spirv_lane wide = lane == LANE_F16 ? LANE_F32 : lane;
  for (uint64_t i = 0; i < type->components; i++) {
    ir_insn rest = {.op = IR_MATH2, .lane = (uint8_t)wide, .extra = CL_fmod};
    rest.a = lower_convert(l, IR_CONVERT_F, lane, wide, a[i]);
    rest.b = lower_convert(l, IR_CONVERT_F, lane, wide, b[i]);
    values[i] = lower_convert(l, IR_CONVERT_F, wide, lane, lower_emit(l, rest, wide)); /* exact */
    if (op == OpFRem) continue; /* OpFRem has the sign of the dividend, OpFMod that of the divisor */
    uint32_t zero = lower_real(l, lane, 0);
    uint32_t differs = lower_op(l, IR_XOR, LANE_BOOL, lower_compare(l, IR_FOLT, lane, values[i], zero),
                                lower_compare(l, IR_FOLT, lane, b[i], zero));
    uint32_t wrong = lower_op(l, IR_AND, LANE_BOOL, differs, lower_compare(l, IR_FONE, lane, values[i], zero));
    values[i] = lower_select(l, lane, wrong, lower_op(l, IR_FADD, lane, values[i], b[i]), values[i]);
  }
  lower_define(l, w[2], values);
  return true;
}

static bool any_or_all(lowering *l, uint32_t op, const uint32_t *w) {
  const spirv_type *type = result_type(l, w[1], BOOLEAN), *vector;
  const uint32_t *a = lower_use(l, w[3], &vector);
  if (class_of(vector) != BOOLEAN || type->components != 1) WRONG(l, "the operand is no vector of bools");
  uint32_t *values = lower_list(l, type);
  values[0] = a[0];
  for (uint64_t i = 1; i < vector->components; i++)
    values[0] = lower_op(l, op == OpAny ? IR_OR : IR_AND, LANE_BOOL, values[0], a[i]);
  lower_define(l, w[2], values);
  return true;
}

// Long: a case for each instruction.
bool lower_value_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  const spirv_type *type, *other;
  if (two_operands(l, op, w) || one_operand(l, op, w)) return true;
  switch (op) {
    case OpShiftLeftLogical:
    case OpShiftRightLogical:
    case OpShiftRightArithmetic: return shift(l, op, w);
    case OpConvertFToU:
    case OpConvertFToS:
    case OpConvertSToF:
    case OpConvertUToF:
    case OpUConvert:
    case OpSConvert:
    case OpFConvert:
    case OpSatConvertSToU:
    case OpSatConvertUToS: return convert(l, op, w);
    case OpConvertFToBF16INTEL:
    case OpConvertBF16ToFINTEL: return brain_floats(l, op == OpConvertBF16ToFINTEL, w);
    case OpBitcast: return lower_is_input(l, w) || bitcast(l, w);
    case OpSelect: return select_value(l, w);
    case OpCompositeConstruct:
    case OpCompositeExtract:
    case OpCompositeInsert: return composite(l, op, w, length);
    case OpVectorShuffle:
    case OpVectorExtractDynamic:
    case OpVectorInsertDynamic: return vectors(l, op, w, length);
    case OpBitFieldInsert:
    case OpBitFieldSExtract:
    case OpBitFieldUExtract: return bit_field(l, op, w);
    case OpVectorTimesScalar:
    case OpDot:
    case OpIAddCarry:
    case OpISubBorrow:
    case OpUMulExtended:
    case OpSMulExtended: return products(l, op, w);
    case OpFRem:
    case OpFMod: return remainder_of(l, op, w);
    case OpAny:
    case OpAll: return any_or_all(l, op, w);
    case OpUndef:
    case OpBitCount: {
      type = spirv_type_of(l->m, l->at, w[1]);
      if (type->kind == TYPE_VOID || type->kind >= TYPE_FUNCTION) WRONG(l, "a type without values");
      uint32_t *values = lower_list(l, type);
      spirv_lane lane = LANE_BOOL;
      const uint32_t *a = op == OpBitCount ? numbers(l, w[3], INTEGER, type->components, &lane) : NULL;
      for (uint64_t i = 0; i < type->components; i++) {
        uint64_t offset;
        spirv_lane to = spirv_type_lane(spirv_leaf(type, i, &offset));
        values[i] = op == OpUndef ? lower_number(l, to, 0)
                                  : lower_convert(l, IR_CONVERT_U, lane, to, lower_op(l, IR_POPCOUNT, lane, a[i], 0));
      }
      lower_define(l, w[2], values);
      return true;
    }
    case OpCopyObject:
    case OpExpectKHR: {
      const uint32_t *values = lower_use(l, w[3], &other);
      if (other != spirv_type_of(l->m, l->at, w[1])) WRONG(l, "the operand has another type");
      lower_define(l, w[2], values);
      return true;
    }
    case OpCopyLogical: UNSUPPORTED(l->m, l->at, "OpCopyLogical is not supported");
    default: return false;
  }
}
