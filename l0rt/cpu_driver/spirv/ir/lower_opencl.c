/* SPDX-License-Identifier: Apache-2.0 */
/* lower_opencl.c: the functions of OpenCL.std on numbers. Each becomes one or several operations. */
#include <math.h>
#include <string.h>

#include "spirv/ir/lower.h"

enum { INTEGER = 1, REAL = 2 };

typedef struct {
  uint16_t function, ir;
  uint8_t operands, accepts;
} direct;

/* Functions that are one operation of the intermediate form. */
static const direct directs[] = {
    {CL_fabs, IR_FABS, 1, REAL},
    {CL_sqrt, IR_SQRT, 1, REAL},
    {CL_half_sqrt, IR_SQRT, 1, REAL},
    {CL_native_sqrt, IR_SQRT, 1, REAL},
    {CL_floor, IR_FLOOR, 1, REAL},
    {CL_ceil, IR_CEIL, 1, REAL},
    {CL_trunc, IR_TRUNC, 1, REAL},
    {CL_rint, IR_RINT, 1, REAL},
    {CL_fmin, IR_FMIN, 2, REAL},
    {CL_fmax, IR_FMAX, 2, REAL},
    {CL_fmin_common, IR_FMIN, 2, REAL},
    {CL_fmax_common, IR_FMAX, 2, REAL},
    {CL_half_divide, IR_FDIV, 2, REAL},
    {CL_native_divide, IR_FDIV, 2, REAL},
    {CL_fma, IR_FMA, 3, REAL},
    {CL_s_abs, IR_SABS, 1, INTEGER},
    {CL_s_abs_diff, IR_SABSDIFF, 2, INTEGER},
    {CL_u_abs_diff, IR_UABSDIFF, 2, INTEGER},
    {CL_s_add_sat, IR_SADDSAT, 2, INTEGER},
    {CL_u_add_sat, IR_UADDSAT, 2, INTEGER},
    {CL_s_sub_sat, IR_SSUBSAT, 2, INTEGER},
    {CL_u_sub_sat, IR_USUBSAT, 2, INTEGER},
    {CL_s_hadd, IR_SHADD, 2, INTEGER},
    {CL_u_hadd, IR_UHADD, 2, INTEGER},
    {CL_s_rhadd, IR_SRHADD, 2, INTEGER},
    {CL_u_rhadd, IR_URHADD, 2, INTEGER},
    {CL_clz, IR_CLZ, 1, INTEGER},
    {CL_ctz, IR_CTZ, 1, INTEGER},
    {CL_popcount, IR_POPCOUNT, 1, INTEGER},
    {CL_s_max, IR_SMAX, 2, INTEGER},
    {CL_u_max, IR_UMAX, 2, INTEGER},
    {CL_s_min, IR_SMIN, 2, INTEGER},
    {CL_u_min, IR_UMIN, 2, INTEGER},
    {CL_s_mul_hi, IR_SMULHI, 2, INTEGER},
    {CL_u_mul_hi, IR_UMULHI, 2, INTEGER},
    {CL_rotate, IR_ROTATE, 2, INTEGER},
};

typedef struct {
  const uint32_t *operands[4];
  spirv_lane lanes[4];
  const spirv_type *types[4];
  uint32_t count, function;
  const spirv_type *type;
  spirv_lane lane; /* of the result */
} call;

static uint32_t math(lowering *l, ir_op op, uint32_t function, spirv_lane lane, uint32_t a, uint32_t b,
                     spirv_lane result) {
  spirv_lane wide = lane == LANE_F16 ? LANE_F32 : lane;
  a = lower_convert(l, IR_CONVERT_F, lane, wide, a);
  if (op == IR_MATH2) b = lower_convert(l, IR_CONVERT_F, lane, wide, b);
  spirv_lane given = result == LANE_F16 ? LANE_F32 : result;
  uint32_t value = lower_emit(
      l, (ir_insn){.op = (uint16_t)op, .lane = (uint8_t)wide, .a = a, .b = b, .extra = function}, given);
  return lower_convert(l, IR_CONVERT_F, given, result, value);
}

static uint32_t copy_sign(lowering *l, spirv_lane lane, uint32_t size, uint32_t sign) {
  spirv_lane bits = lane == LANE_F64 ? LANE_I64 : LANE_I32;
  uint64_t top = lane == LANE_F64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31;
  spirv_lane wide = lane == LANE_F16 ? LANE_F32 : lane;
  uint32_t a = lower_convert(l, IR_BITS, wide, bits, lower_convert(l, IR_CONVERT_F, lane, wide, size));
  uint32_t b = lower_convert(l, IR_BITS, wide, bits, lower_convert(l, IR_CONVERT_F, lane, wide, sign));
  a = lower_op(l, IR_AND, bits, a, lower_number(l, bits, top - 1));
  b = lower_op(l, IR_AND, bits, b, lower_number(l, bits, top));
  uint32_t value = lower_convert(l, IR_BITS, bits, wide, lower_op(l, IR_OR, bits, a, b));
  return lower_convert(l, IR_CONVERT_F, wide, lane, value);
}

/* Lowers one component of a function of floats. Returns 0 if it is another function. */
// Long: a case for each function of OpenCL's instruction set.
static uint32_t real_component(lowering *l, const call *c, uint64_t i) {
  spirv_lane lane = c->lane;
  uint32_t a = c->operands[0][i], b = c->count > 1 ? c->operands[1][c->types[1]->components == 1 ? 0 : i] : 0;
  uint32_t d = c->count > 2 ? c->operands[2][c->types[2]->components == 1 ? 0 : i] : 0;
#define OP(op, x, y) lower_op(l, op, lane, x, y)
#define REAL_OF(x) lower_real(l, lane, x)
  switch (c->function) {
    case CL_mad: return OP(IR_FADD, OP(IR_FMUL, a, b), d);
    case CL_copysign: return copy_sign(l, lane, a, b);
    case CL_rsqrt:
    case CL_half_rsqrt:
    case CL_native_rsqrt: { /* of a half rounded once, as OpenCL allows an error of one unit only */
      spirv_lane wide = lane == LANE_F16 ? LANE_F32 : lane;
      uint32_t root = lower_op(l, IR_SQRT, wide, lower_convert(l, IR_CONVERT_F, lane, wide, a), 0);
      uint32_t value = lower_op(l, IR_FDIV, wide, lower_real(l, wide, 1), root);
      return lower_convert(l, IR_CONVERT_F, wide, lane, value);
    }
    case CL_half_recip:
    case CL_native_recip: return OP(IR_FDIV, REAL_OF(1), a);
    case CL_fclamp: return OP(IR_FMIN, OP(IR_FMAX, a, b), d);
    case CL_degrees: return OP(IR_FMUL, a, REAL_OF(180 / M_PI));
    case CL_radians: return OP(IR_FMUL, a, REAL_OF(M_PI / 180));
    case CL_mix: return OP(IR_FADD, a, OP(IR_FMUL, OP(IR_FSUB, b, a), d));
    case CL_step: return lower_select(l, lane, lower_compare(l, IR_FOLT, lane, b, a), REAL_OF(0), REAL_OF(1));
    case CL_smoothstep: {
      uint32_t t = OP(IR_FDIV, OP(IR_FSUB, d, a), OP(IR_FSUB, b, a));
      t = OP(IR_FMIN, OP(IR_FMAX, t, REAL_OF(0)), REAL_OF(1));
      return OP(IR_FMUL, OP(IR_FMUL, t, t), OP(IR_FSUB, REAL_OF(3), OP(IR_FMUL, REAL_OF(2), t)));
    }
    case CL_sign: {
      uint32_t one = copy_sign(l, lane, REAL_OF(1), a);
      uint32_t some = lower_compare(l, IR_FONE, lane, a, REAL_OF(0)), same = lower_compare(l, IR_FOEQ, lane, a, a);
      uint32_t value = lower_select(l, lane, some, one, a);
      return lower_select(l, lane, same, value, REAL_OF(0));
    }
    case CL_fdim: {
      uint32_t above = lower_compare(l, IR_FOLE, lane, a, b);
      return lower_select(l, lane, above, REAL_OF(0), OP(IR_FSUB, a, b));
    }
    case CL_maxmag:
    case CL_minmag: {
      bool most = c->function == CL_maxmag;
      uint32_t x = OP(IR_FABS, a, 0), y = OP(IR_FABS, b, 0);
      uint32_t plain = OP(most ? IR_FMAX : IR_FMIN, a, b);
      uint32_t second = lower_select(l, lane, lower_compare(l, IR_FOLT, lane, most ? x : y, most ? y : x), b, plain);
      return lower_select(l, lane, lower_compare(l, IR_FOLT, lane, most ? y : x, most ? x : y), a, second);
    }
    case CL_atan2:
    case CL_atan2pi:
    case CL_fmod:
    case CL_hypot:
    case CL_nextafter:
    case CL_pow:
    case CL_powr:
    case CL_half_powr:
    case CL_native_powr:
    case CL_remainder:
      if (c->function == CL_nextafter && lane == LANE_F16) {
        ir_insn next = {.op = IR_MATH2, .lane = LANE_F16, .a = a, .b = b, .extra = CL_nextafter};
        return lower_emit(l, next, LANE_F16);
      }
      return math(l, IR_MATH2, c->function, lane, a, b, lane);
    case CL_pown:
    case CL_rootn:
    case CL_ldexp: return math(l, IR_MATH2_INT, c->function, lane, a, b, lane);
    default: break;
  }
  bool one = (c->function <= CL_trunc && c->function != CL_nan) ||
             (c->function >= CL_half_cos && c->function <= CL_native_tan);
  return one && c->count == 1 ? math(l, IR_MATH1, c->function, lane, a, 0, lane) : 0;
}

/* Lowers one component of a function of integers. Returns 0 if it is another function. */
static uint32_t integer_component(lowering *l, const call *c, uint64_t i) {
  spirv_lane lane = c->lane;
  uint32_t a = c->operands[0][i], b = c->count > 1 ? c->operands[1][i] : 0, d = c->count > 2 ? c->operands[2][i] : 0;
  switch (c->function) {
    case CL_u_abs: return a;
    case CL_s_clamp: return OP(IR_SMIN, OP(IR_SMAX, a, b), d);
    case CL_u_clamp: return OP(IR_UMIN, OP(IR_UMAX, a, b), d);
    case CL_s_mad_hi: return OP(IR_ADD, OP(IR_SMULHI, a, b), d);
    case CL_u_mad_hi: return OP(IR_ADD, OP(IR_UMULHI, a, b), d);
    case CL_s_mul24:
    case CL_s_mad24:
    case CL_u_mul24:
    case CL_u_mad24: {
      bool is_signed = c->function == CL_s_mul24 || c->function == CL_s_mad24;
      if (lane != LANE_I32) WRONG(l, "integers of 24 bits are in 32");
      uint32_t eight = lower_number(l, lane, 8);
      ir_op back = is_signed ? IR_ASHR : IR_LSHR;
      a = OP(back, OP(IR_SHL, a, eight), eight);
      b = OP(back, OP(IR_SHL, b, eight), eight);
      a = OP(IR_MUL, a, b);
      return d == 0 ? a : OP(IR_ADD, a, d);
    }
    case CL_u_mad_sat: {
      uint32_t high = lower_compare(l, IR_NE, lane, OP(IR_UMULHI, a, b), lower_number(l, lane, 0));
      uint32_t sum = OP(IR_UADDSAT, OP(IR_MUL, a, b), d);
      return lower_select(l, lane, high, lower_number(l, lane, UINT64_MAX), sum);
    }
    case CL_s_mad_sat: { /* halves of a × b + d; it overflows if the high half is not the sign of the low one */
      unsigned bits = spirv_lane_size[lane] * 8u;
      uint32_t top = lower_number(l, lane, bits - 1), low = OP(IR_MUL, a, b), sum = OP(IR_ADD, low, d);
      uint32_t carry = lower_select(l, lane, lower_compare(l, IR_ULT, lane, sum, low), lower_number(l, lane, 1),
                                    lower_number(l, lane, 0));
      uint32_t high = OP(IR_ADD, OP(IR_ADD, OP(IR_SMULHI, a, b), OP(IR_ASHR, d, top)), carry);
      uint32_t good = lower_compare(l, IR_EQ, lane, high, OP(IR_ASHR, sum, top));
      uint32_t limit = OP(IR_XOR, OP(IR_ASHR, high, top), lower_number(l, lane, (UINT64_C(1) << (bits - 1)) - 1));
      return lower_select(l, lane, good, sum, limit);
    }
    case CL_bitselect: return OP(IR_OR, OP(IR_AND, a, OP(IR_NOT, d, 0)), OP(IR_AND, b, d));
    default: return 0;
  }
}
#undef OP
#undef REAL_OF

static void need(lowering *l, bool condition) {
  if (!condition) WRONG(l, "the operands have other types");
}

/* Functions that also write through a pointer. Each returns its result and the value to store. */
static bool with_pointer(lowering *l, const call *c, const uint32_t *w) {
  uint32_t f = c->function;
  if (f != CL_fract && f != CL_modf && f != CL_sincos && f != CL_frexp && f != CL_remquo && f != CL_lgamma_r)
    return false;
  uint32_t last = c->count - 1, *values = lower_list(l, c->type), *stored = lower_list(l, c->type);
  const spirv_type *pointer = c->types[last];
  need(l, c->count == (f == CL_remquo ? 3 : 2) && pointer->kind == TYPE_POINTER && pointer->element != NULL &&
              pointer->element->components == c->type->components && pointer->storage != StorageInput &&
              pointer->storage != StorageUniformConstant && c->types[0] == c->type);
  if (f == CL_remquo) need(l, c->types[1] == c->type);
  bool integers = f == CL_frexp || f == CL_remquo || f == CL_lgamma_r;
  spirv_lane to = spirv_type_lane(lower_component(pointer->element)), lane = c->lane;
  need(l, integers ? to == LANE_I32 : pointer->element == c->type);
  for (uint64_t i = 0; i < c->type->components; i++) {
    uint32_t a = c->operands[0][i];
    if (f == CL_fract) {
      stored[i] = lower_op(l, IR_FLOOR, lane, a, 0);
      double below_one = lane == LANE_F64 ? 0x1.fffffffffffffp-1 : lane == LANE_F32 ? 0x1.fffffep-1 : 0x1.ffcp-1;
      uint32_t rest = lower_op(l, IR_FMIN, lane, lower_op(l, IR_FSUB, lane, a, stored[i]),
                               lower_real(l, lane, below_one));
      uint32_t same = lower_compare(l, IR_FOEQ, lane, a, a), finite = lower_compare(l, IR_ISFINITE, lane, a, 0);
      uint32_t zero = lower_real(l, lane, 0), is_zero = lower_compare(l, IR_FOEQ, lane, a, zero);
      rest = lower_select(l, lane, finite, rest, copy_sign(l, lane, zero, a));
      values[i] = lower_select(l, lane, is_zero, a, lower_select(l, lane, same, rest, a));
    } else if (f == CL_modf) {
      stored[i] = lower_op(l, IR_TRUNC, lane, a, 0);
      uint32_t finite = lower_compare(l, IR_ISINF, lane, a, 0), rest = lower_op(l, IR_FSUB, lane, a, stored[i]);
      values[i] = copy_sign(l, lane, lower_select(l, lane, finite, lower_real(l, lane, 0), rest), a);
    } else if (f == CL_sincos) {
      stored[i] = math(l, IR_MATH1, CL_cos, lane, a, 0, lane);
      values[i] = math(l, IR_MATH1, CL_sin, lane, a, 0, lane);
    } else if (f == CL_frexp) {
      stored[i] = math(l, IR_MATH1_INT, CL_frexp, lane, a, 0, LANE_I32);
      values[i] = math(l, IR_MATH1, CL_frexp, lane, a, 0, lane);
    } else if (f == CL_lgamma_r) {
      stored[i] = math(l, IR_MATH1_INT, CL_lgamma_r, lane, a, 0, LANE_I32);
      values[i] = math(l, IR_MATH1, CL_lgamma, lane, a, 0, lane);
    } else {
      stored[i] = math(l, IR_MATH2, CL_remquo, lane, a, c->operands[1][i], LANE_F32);
      stored[i] = lower_convert(l, IR_FLOAT_TO_S, LANE_F32, LANE_I32, stored[i]);
      values[i] = math(l, IR_MATH2, CL_remainder, lane, a, c->operands[1][i], lane);
    }
  }
  lower_store(l, pointer->element, c->operands[last][0], stored);
  lower_define(l, w[2], values);
  return true;
}

/* cross, distance, length and normalize. Squares of floats are summed as doubles, which cannot overflow. */
static bool geometric(lowering *l, const call *c, const uint32_t *w) {
  uint32_t f = c->function;
  if (f < CL_cross || f > CL_fast_normalize) return false;
  uint32_t *values = lower_list(l, c->type);
  const uint32_t *a = c->operands[0], *b = c->operands[1];
  spirv_lane lane = c->lanes[0], wide = LANE_F64;
  uint64_t n = c->types[0]->components;
  bool two = f == CL_cross || f == CL_distance || f == CL_fast_distance;
  need(l, c->count == (two ? 2u : 1u) && lane >= LANE_F16 && (!two || c->types[1] == c->types[0]));
  if (f == CL_cross) {
    need(l, (n == 3 || n == 4) && c->type == c->types[0]);
    for (uint32_t i = 0; i < 3; i++) {
      uint32_t j = (i + 1) % 3, k = (i + 2) % 3;
      values[i] = lower_op(l, IR_FSUB, lane, lower_op(l, IR_FMUL, lane, a[j], b[k]),
                           lower_op(l, IR_FMUL, lane, a[k], b[j]));
    }
    if (n == 4) values[3] = lower_real(l, lane, 0);
    lower_define(l, w[2], values);
    return true;
  }
  bool unit = f == CL_normalize || f == CL_fast_normalize;
  need(l, unit ? c->type == c->types[0] : c->type == lower_component(c->types[0]));
  uint32_t sum = 0;
  for (uint64_t i = 0; i < n; i++) {
    uint32_t x = two ? lower_op(l, IR_FSUB, lane, a[i], b[i]) : a[i];
    if (lane == LANE_F64) {
      sum = i == 0 ? lower_op(l, IR_FABS, lane, x, 0) : math(l, IR_MATH2, CL_hypot, lane, sum, x, lane);
      continue;
    }
    x = lower_convert(l, IR_CONVERT_F, lane, wide, x);
    x = lower_op(l, IR_FMUL, wide, x, x);
    sum = i == 0 ? x : lower_op(l, IR_FADD, wide, sum, x);
  }
  if (lane != LANE_F64) sum = lower_op(l, IR_SQRT, wide, sum, 0);
  if (!unit) values[0] = lower_convert(l, IR_CONVERT_F, wide, lane, sum);
  for (uint64_t i = 0; unit && i < n; i++) {
    uint32_t x = lower_convert(l, IR_CONVERT_F, lane, wide, a[i]);
    uint32_t none = lower_compare(l, IR_FOEQ, wide, sum, lower_real(l, wide, 0));
    values[i] = lower_convert(l, IR_CONVERT_F, wide, lane,
                              lower_select(l, wide, none, x, lower_op(l, IR_FDIV, wide, x, sum)));
  }
  lower_define(l, w[2], values);
  return true;
}

/* Functions whose result has another type than the operands. */
static bool mixed(lowering *l, const call *c, const uint32_t *w) {
  uint32_t *values = lower_list(l, c->type), f = c->function;
  if (f != CL_nan && f != CL_ilogb && f != CL_u_upsample && f != CL_s_upsample && f != CL_select && f != CL_bitselect)
    return false;
  for (uint32_t i = 0; i < c->count; i++) need(l, c->types[i]->components == c->type->components);
  for (uint64_t i = 0; i < c->type->components; i++) {
    uint32_t a = c->operands[0][i];
    if (f == CL_nan) {
      spirv_lane bits = c->lanes[0];
      need(l, c->count == 1 && spirv_memory_size[bits] == spirv_memory_size[c->lane] && c->lane >= LANE_F16 &&
                  bits < LANE_F16);
      uint64_t quiet = bits == LANE_I16 ? 0x7e00 : bits == LANE_I32 ? 0x7fc00000 : UINT64_C(0x7ff8) << 48;
      values[i] = lower_convert(l, IR_BITS, bits, c->lane, lower_op(l, IR_OR, bits, a, lower_number(l, bits, quiet)));
    } else if (f == CL_ilogb) {
      need(l, c->count == 1 && c->lane == LANE_I32 && c->lanes[0] >= LANE_F16);
      values[i] = math(l, IR_MATH1_INT, CL_ilogb, c->lanes[0], a, 0, LANE_I32);
    } else if (f == CL_select) { /* a if the condition is 0; of a vector, if its top bit is 0 */
      need(l, c->count == 3 && c->types[0] == c->type && c->types[1] == c->type && c->lanes[2] <= LANE_I64);
      uint32_t zero = lower_number(l, c->lanes[2], 0), k = c->operands[2][i];
      uint32_t chosen = lower_compare(l, c->type->kind == TYPE_VECTOR ? IR_SLT : IR_NE, c->lanes[2], k, zero);
      values[i] = lower_select(l, c->lane, chosen, c->operands[1][i], a);
    } else if (f == CL_bitselect) {
      need(l, c->count == 3 && c->types[0] == c->type && c->types[1] == c->type && c->types[2] == c->type);
      static const spirv_lane integers[] = {0, LANE_I8, LANE_I16, 0, LANE_I32, 0, 0, 0, LANE_I64};
      spirv_lane bits = integers[spirv_memory_size[c->lane]];
      uint32_t x[3];
      for (uint32_t k = 0; k < 3; k++) x[k] = lower_convert(l, IR_BITS, c->lane, bits, c->operands[k][i]);
      uint32_t kept = lower_op(l, IR_AND, bits, x[0], lower_op(l, IR_NOT, bits, x[2], 0));
      kept = lower_op(l, IR_OR, bits, kept, lower_op(l, IR_AND, bits, x[1], x[2]));
      values[i] = lower_convert(l, IR_BITS, bits, c->lane, kept);
    } else {
      need(l, c->count == 2 && c->lanes[0] == c->lanes[1] && c->lanes[0] < LANE_F16 && c->lane < LANE_F16 &&
                  spirv_lane_size[c->lane] == 2 * spirv_lane_size[c->lanes[0]]);
      uint32_t high = lower_convert(l, IR_CONVERT_U, c->lanes[0], c->lane, a);
      high = lower_op(l, IR_SHL, c->lane, high, lower_number(l, c->lane, spirv_lane_size[c->lanes[0]] * 8u));
      values[i] = lower_op(l, IR_OR, c->lane, high,
                           lower_convert(l, IR_CONVERT_U, c->lanes[0], c->lane, c->operands[1][i]));
    }
  }
  lower_define(l, w[2], values);
  return true;
}

void lower_opencl(lowering *l, const uint32_t *w, uint32_t length) {
  call c = {.count = length - 5, .function = w[4], .type = spirv_type_of(l->m, l->at, w[1])};
  if (lower_vector_function(l, w, length)) return;
  if (c.count == 0 || c.count > 4) WRONG(l, "function %u of OpenCL.std is not supported", w[4]);
  if (!spirv_is_scalar(c.type) && c.type->kind != TYPE_VECTOR) WRONG(l, "the result has another type");
  c.lane = spirv_type_lane(lower_component(c.type));
  for (uint32_t i = 0; i < c.count; i++) {
    c.operands[i] = lower_use(l, w[5 + i], &c.types[i]);
    if (!spirv_is_scalar(c.types[i]) && c.types[i]->kind != TYPE_VECTOR) WRONG(l, "operand %u has another type", i);
    c.lanes[i] = spirv_type_lane(lower_component(c.types[i]));
  }
  if (with_pointer(l, &c, w) || geometric(l, &c, w) || mixed(l, &c, w)) return;
  bool real = lower_component(c.type)->kind == TYPE_FLOAT, integer = lower_component(c.type)->kind == TYPE_INT;
  bool with_int = c.function == CL_pown || c.function == CL_rootn || c.function == CL_ldexp;
  if (!real && !integer) WRONG(l, "the result has another type");
  static const uint8_t threes[] = {CL_mad,     CL_fma,       CL_fclamp,    CL_mix,      CL_smoothstep,
                                   CL_s_clamp, CL_u_clamp,   CL_s_mad_hi,  CL_u_mad_hi, CL_s_mad24,
                                   CL_u_mad24, CL_u_mad_sat, CL_s_mad_sat, CL_bitselect};
  static const uint8_t ones[] = {CL_rsqrt,   CL_half_rsqrt, CL_native_rsqrt, CL_half_recip, CL_native_recip,
                                 CL_degrees, CL_radians,    CL_sign,         CL_u_abs};
  const direct *d = NULL;
  for (size_t i = 0; i < sizeof(directs) / sizeof(directs[0]); i++)
    if (directs[i].function == c.function) d = &directs[i];
  uint32_t expected = 2;
  if (d != NULL) expected = d->operands;
  else if (memchr(threes, (int)c.function, sizeof(threes)) != NULL && c.function < 256) expected = 3;
  else if (memchr(ones, (int)c.function, sizeof(ones)) != NULL && c.function < 256) expected = 1;
  else if (c.count == 1 && real) expected = 1;
  if (c.count != expected) WRONG(l, "function %u of OpenCL.std has %u operands", c.function, c.count);
  for (uint32_t i = 0; i < c.count; i++) {
    if (with_int && i == 1) {
      if (c.lanes[1] != LANE_I32) WRONG(l, "operand 1 has another type");
    } else if (c.lanes[i] != c.lane) {
      WRONG(l, "operand %u has another type", i);
    }
    if (c.types[i]->components != c.type->components && (i == 0 || c.types[i]->components != 1 || !real || d != NULL))
      WRONG(l, "operand %u has other components", i);
  }
  uint32_t *values = lower_list(l, c.type);
  for (uint64_t i = 0; i < c.type->components; i++) {
    if (d != NULL && (d->accepts == REAL) == real) {
      ir_insn insn = {.op = d->ir, .lane = (uint8_t)c.lane, .a = c.operands[0][i]};
      if (c.count > 1) insn.b = c.operands[1][i];
      if (c.count > 2) insn.c = c.operands[2][i];
      values[i] = lower_emit(l, insn, c.lane);
    } else {
      values[i] = d != NULL ? 0 : real ? real_component(l, &c, i) : integer_component(l, &c, i);
    }
    if (values[i] == 0) UNSUPPORTED(l->m, l->at, "function %u of OpenCL.std is not supported", c.function);
  }
  lower_define(l, w[2], values);
}
