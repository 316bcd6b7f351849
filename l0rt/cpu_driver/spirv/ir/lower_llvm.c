/* SPDX-License-Identifier: Apache-2.0 */
/* lower_llvm.c: functions that compilers leave as imports, known by their names: LLVM's own, such as llvm.usub.sat.v4i32,
 * and those of DPC++ that convert brain floats. */
#include <string.h>

#include "spirv/ir/lower.h"

typedef enum { OPENCL, BIT_REVERSE, BYTE_SWAP, SHIFT_LEFT, SHIFT_RIGHT, IS_CLASS } kind;

typedef struct {
  const char *name; /* what stands between "llvm." and the types */
  uint8_t kind, operands, ignored; /* ignored: the last operands, which say what the function need not do */
  uint16_t function; /* of OpenCL.std, which does the same */
} known;

static const known functions[] = {
    {"uadd.sat", OPENCL, 2, 0, CL_u_add_sat},
    {"sadd.sat", OPENCL, 2, 0, CL_s_add_sat},
    {"usub.sat", OPENCL, 2, 0, CL_u_sub_sat},
    {"ssub.sat", OPENCL, 2, 0, CL_s_sub_sat},
    {"umin", OPENCL, 2, 0, CL_u_min},
    {"umax", OPENCL, 2, 0, CL_u_max},
    {"smin", OPENCL, 2, 0, CL_s_min},
    {"smax", OPENCL, 2, 0, CL_s_max},
    {"abs", OPENCL, 2, 1, CL_s_abs},
    {"ctpop", OPENCL, 1, 0, CL_popcount},
    {"ctlz", OPENCL, 2, 1, CL_clz},
    {"cttz", OPENCL, 2, 1, CL_ctz},
    {"bitreverse", BIT_REVERSE, 1, 0, 0},
    {"bswap", BYTE_SWAP, 1, 0, 0},
    {"fshl", SHIFT_LEFT, 3, 0, 0},
    {"fshr", SHIFT_RIGHT, 3, 0, 0},
    {"is.fpclass", IS_CLASS, 2, 0, 0},
    {"fmuladd", OPENCL, 3, 0, CL_mad},
    {"fma", OPENCL, 3, 0, CL_fma},
    {"minnum", OPENCL, 2, 0, CL_fmin},
    {"maxnum", OPENCL, 2, 0, CL_fmax},
    {"copysign", OPENCL, 2, 0, CL_copysign},
    {"powi", OPENCL, 2, 0, CL_pown},
    {"fabs", OPENCL, 1, 0, CL_fabs},
    {"sqrt", OPENCL, 1, 0, CL_sqrt},
    {"floor", OPENCL, 1, 0, CL_floor},
    {"ceil", OPENCL, 1, 0, CL_ceil},
    {"trunc", OPENCL, 1, 0, CL_trunc},
    {"round", OPENCL, 1, 0, CL_round},
    {"rint", OPENCL, 1, 0, CL_rint},
    {"nearbyint", OPENCL, 1, 0, CL_rint},
    {"roundeven", OPENCL, 1, 0, CL_rint},
};

/* The types follow: .i32, .v4f16, .f64.i32. */
static const known *find(const char *name) {
  if (strncmp(name, "llvm.", 5) != 0) return NULL;
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
    size_t size = strlen(functions[i].name);
    if (strncmp(name + 5, functions[i].name, size) != 0 || name[5 + size] != '.') continue;
    const char *type = name + 6 + size;
    if (type[0] == 'v') type += 1 + strspn(type + 1, "0123456789");
    if ((type[0] == 'i' || type[0] == 'f') && type[1] >= '1' && type[1] <= '9') return &functions[i];
  }
  return NULL;
}

/* Of DPC++; their operand is in memory. */
static const char *const brain_floats[] = {"__devicelib_ConvertFToBF16INTEL", "__devicelib_ConvertBF16ToFINTEL"};

static bool is_brain_float(const char *name) {
  return strcmp(name, brain_floats[0]) == 0 || strcmp(name, brain_floats[1]) == 0;
}

bool spirv_is_llvm_function(const char *name) { return find(name) != NULL || is_brain_float(name); }

static bool brain_float(lowering *l, const char *name, const uint32_t *w, uint32_t length) {
  bool widens = strcmp(name, brain_floats[1]) == 0;
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *pointer;
  spirv_lane lane = widens ? LANE_I16 : LANE_F32;
  if (length != 5 || !spirv_is_scalar(type) || spirv_type_lane(type) != (widens ? LANE_F32 : LANE_I16)) return false;
  uint32_t address = lower_scalar(l, w[4], &pointer), *value = lower_list(l, type);
  if (pointer->kind != TYPE_POINTER) return false;
  value[0] = lower_emit(l, (ir_insn){.op = IR_LOAD, .lane = (uint8_t)lane, .a = address}, lane);
  value[0] = lower_brain_float(l, widens, value[0]);
  lower_define(l, w[2], value);
  return true;
}

static uint32_t byte_swap(lowering *l, spirv_lane lane, uint32_t a) {
  uint32_t result = lower_number(l, lane, 0);
  for (unsigned bits = spirv_lane_size[lane] * 8u, i = 0; i < bits; i += 8) {
    uint32_t byte = lower_op(l, IR_AND, lane, lower_op(l, IR_LSHR, lane, a, lower_number(l, lane, i)),
                             lower_number(l, lane, 255));
    result = lower_op(l, IR_OR, lane, result, lower_op(l, IR_SHL, lane, byte, lower_number(l, lane, bits - 8 - i)));
  }
  return result;
}

/* Half of the number that `high` and `low` are together, shifted by the count modulo the width. The other part moves by 1
 * and by the rest, since a shift by the width would be one by 0. */
static uint32_t funnel(lowering *l, spirv_lane lane, bool left, uint32_t high, uint32_t low, uint32_t count) {
  uint32_t one = lower_number(l, lane, 1), rest = lower_op(l, IR_NOT, lane, count, 0);
  if (left)
    return lower_op(l, IR_OR, lane, lower_op(l, IR_SHL, lane, high, count),
                    lower_op(l, IR_LSHR, lane, lower_op(l, IR_LSHR, lane, low, one), rest));
  return lower_op(l, IR_OR, lane, lower_op(l, IR_LSHR, lane, low, count),
                  lower_op(l, IR_SHL, lane, lower_op(l, IR_SHL, lane, high, one), rest));
}

/* Is the float of one of the classes of the mask? They are told by its bits, so that a signalling NaN stays one. */
static uint32_t is_class(lowering *l, spirv_lane real, uint32_t a, uint64_t mask) {
  static const spirv_lane integers[] = {0, 0, LANE_I16, 0, LANE_I32, 0, 0, 0, LANE_I64};
  spirv_lane lane = integers[spirv_memory_size[real]];
  unsigned width = spirv_memory_size[real] * 8u, fraction = real == LANE_F16 ? 10 : real == LANE_F32 ? 23 : 52;
  uint64_t sign = UINT64_C(1) << (width - 1), least = UINT64_C(1) << fraction, infinity = (sign - 1) & ~(least - 1);
  uint32_t bits = lower_convert(l, IR_BITS, real, lane, a), zero = lower_number(l, lane, 0);
  uint32_t size = lower_op(l, IR_AND, lane, bits, lower_number(l, lane, sign - 1));
  uint32_t negative = lower_compare(l, IR_SLT, lane, bits, zero), result = lower_number(l, LANE_BOOL, 0);
  const struct {
    uint64_t from, to; /* both included; without the sign */
    unsigned negative, positive; /* bits of the mask */
  } classes[] = {{infinity + 1, infinity + least / 2 - 1, 0, 0},
                 {infinity + least / 2, sign - 1, 1, 1},
                 {infinity, infinity, 2, 9},
                 {least, infinity - 1, 3, 8},
                 {1, least - 1, 4, 7},
                 {0, 0, 5, 6}};
  for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
    bool below = mask >> classes[i].negative & 1, above = mask >> classes[i].positive & 1;
    if (!below && !above) continue;
    uint32_t inside = lower_op(l, IR_AND, LANE_BOOL,
                               lower_compare(l, IR_ULE, lane, lower_number(l, lane, classes[i].from), size),
                               lower_compare(l, IR_ULE, lane, size, lower_number(l, lane, classes[i].to)));
    if (!below) inside = lower_op(l, IR_AND, LANE_BOOL, inside, lower_op(l, IR_NOT, LANE_BOOL, negative, 0));
    if (!above) inside = lower_op(l, IR_AND, LANE_BOOL, inside, negative);
    result = lower_op(l, IR_OR, LANE_BOOL, result, inside);
  }
  return result;
}

static bool class_test(lowering *l, const uint32_t *w, const spirv_type *type) {
  const spirv_type *real;
  const uint32_t *a = lower_use(l, w[4], &real);
  const spirv_value *mask = spirv_constant_of(l->m, w[5]);
  if (lower_component(type)->kind != TYPE_BOOL || lower_component(real)->kind != TYPE_FLOAT || mask == NULL ||
      mask->type->kind != TYPE_INT || type->components != real->components)
    return false;
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++)
    values[i] = is_class(l, spirv_type_lane(lower_component(real)), a[i], mask->bits[0]);
  lower_define(l, w[2], values);
  return true;
}

/* w[4] and those that follow: the operands. */
bool lower_llvm_function(lowering *l, const char *name, const uint32_t *w, uint32_t length) {
  if (is_brain_float(name)) return brain_float(l, name, w, length);
  const known *f = find(name);
  if (f == NULL || length != 4u + f->operands) return false;
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *other;
  if (f->kind == IS_CLASS) return class_test(l, w, type);
  if (f->kind == OPENCL) {
    uint32_t words[8] = {0, w[1], w[2], 0, f->function}, count = f->operands - f->ignored;
    memcpy(words + 5, w + 4, count * sizeof(uint32_t));
    lower_opencl(l, words, 5 + count);
    return true;
  }
  const uint32_t *operands[3];
  for (uint32_t i = 0; i < f->operands; i++) {
    operands[i] = lower_use(l, w[4 + i], &other);
    if (other != type || lower_component(type)->kind != TYPE_INT) return false;
  }
  spirv_lane lane = spirv_type_lane(lower_component(type));
  uint32_t *values = lower_list(l, type);
  for (uint64_t i = 0; i < type->components; i++) {
    uint32_t a = operands[0][i];
    if (f->kind == BIT_REVERSE) values[i] = lower_op(l, IR_BITREVERSE, lane, a, 0);
    else if (f->kind == BYTE_SWAP) values[i] = byte_swap(l, lane, a);
    else values[i] = funnel(l, lane, f->kind == SHIFT_LEFT, a, operands[1][i], operands[2][i]);
  }
  lower_define(l, w[2], values);
  return true;
}
