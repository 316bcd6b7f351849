/* SPDX-License-Identifier: Apache-2.0 */
/* lower_group.c: barriers, atomics, and the collective operations of work-groups and sub-groups. */
#include <string.h>

#include "spirv/ir/lower.h"

static uint32_t constant_scope(lowering *l, uint32_t id) {
  const spirv_value *value = spirv_constant_of(l->m, id);
  if (value == NULL || value->type->kind != TYPE_INT) WRONG(l, "the scope is no constant");
  return (uint32_t)value->bits[0];
}

static uint32_t pointer_to(lowering *l, uint32_t id, const spirv_type **type) {
  const spirv_type *pointer;
  uint32_t address = lower_scalar(l, id, &pointer);
  if (pointer->kind != TYPE_POINTER || pointer->element == NULL) WRONG(l, "operand %u is no pointer", id);
  *type = pointer->element;
  return address;
}

static uint32_t atomic(lowering *l, ir_atomic what, spirv_lane lane, uint32_t address, uint32_t value,
                       uint32_t comparand) {
  if (lane != LANE_I32 && lane != LANE_I64 && lane != LANE_F32 && lane != LANE_F64)
    WRONG(l, "an atomic of another type");
  ir_insn insn = {.op = IR_ATOMIC, .lane = (uint8_t)lane, .a = address, .b = value, .c = comparand, .extra = what};
  return lower_emit(l, insn, lane);
}

static bool atomics(lowering *l, uint32_t op, const uint32_t *w) {
  static const struct {
    uint16_t op, what;
  } with_value[] = {
      {OpAtomicExchange, ATOMIC_EXCHANGE}, {OpAtomicIAdd, ATOMIC_ADD},     {OpAtomicISub, ATOMIC_SUB},
      {OpAtomicSMin, ATOMIC_SMIN},         {OpAtomicUMin, ATOMIC_UMIN},    {OpAtomicSMax, ATOMIC_SMAX},
      {OpAtomicUMax, ATOMIC_UMAX},         {OpAtomicAnd, ATOMIC_AND},      {OpAtomicOr, ATOMIC_OR},
      {OpAtomicXor, ATOMIC_XOR},           {OpAtomicFAddEXT, ATOMIC_FADD}, {OpAtomicFMinEXT, ATOMIC_FMIN},
      {OpAtomicFMaxEXT, ATOMIC_FMAX},
  };
  const spirv_type *type, *value_type, *result = NULL;
  bool stores = op == OpAtomicStore || op == OpAtomicFlagClear;
  uint32_t address = pointer_to(l, w[stores ? 1 : 3], &type), *value = lower_list(l, type);
  if (!spirv_is_scalar(type) || type->kind == TYPE_BOOL) WRONG(l, "an atomic of another type");
  spirv_lane lane = spirv_type_lane(type);
  if (!stores) result = spirv_type_of(l->m, l->at, w[1]);
  if (op == OpAtomicFlagTestAndSet || op == OpAtomicFlagClear) {
    bool set = op == OpAtomicFlagTestAndSet;
    if (lane != LANE_I32 || (set && result->kind != TYPE_BOOL)) WRONG(l, "the flag has another type");
    value[0] = atomic(l, ATOMIC_EXCHANGE, lane, address, lower_number(l, lane, set), 0);
    value[0] = lower_compare(l, IR_NE, lane, value[0], lower_number(l, lane, 0));
    if (set) lower_define(l, w[2], value);
    return true;
  }
  if (result != NULL && result != type) WRONG(l, "the result has another type than the pointer is one to");
  if (op == OpAtomicLoad) {
    value[0] = atomic(l, ATOMIC_LOAD, lane, address, 0, 0);
  } else if (op == OpAtomicStore) {
    uint32_t stored = lower_scalar(l, w[4], &value_type);
    if (value_type != type) WRONG(l, "the value has another type");
    atomic(l, ATOMIC_STORE, lane, address, stored, 0);
    return true;
  } else if (op == OpAtomicIIncrement || op == OpAtomicIDecrement) {
    if (type->kind != TYPE_INT) WRONG(l, "an atomic of another type");
    value[0] = atomic(l, op == OpAtomicIIncrement ? ATOMIC_ADD : ATOMIC_SUB, lane, address, lower_number(l, lane, 1),
                      0);
  } else if (op == OpAtomicCompareExchange || op == OpAtomicCompareExchangeWeak) {
    const spirv_type *other;
    uint32_t stored = lower_scalar(l, w[7], &value_type), comparand = lower_scalar(l, w[8], &other);
    if (value_type != type || other != type || type->kind != TYPE_INT) WRONG(l, "the operands have other types");
    value[0] = atomic(l, ATOMIC_COMPARE, lane, address, stored, comparand);
  } else {
    uint32_t stored = lower_scalar(l, w[6], &value_type);
    if (value_type != type) WRONG(l, "the value has another type");
    for (size_t i = 0; i < sizeof(with_value) / sizeof(with_value[0]); i++) {
      if (with_value[i].op != op) continue;
      bool real = with_value[i].what >= ATOMIC_FADD;
      if (with_value[i].what != ATOMIC_EXCHANGE && real != (type->kind == TYPE_FLOAT))
        WRONG(l, "an atomic of another type");
      value[0] = atomic(l, (ir_atomic)with_value[i].what, lane, address, stored, 0);
    }
  }
  lower_define(l, w[2], value);
  return true;
}

/* The atomics of OpenCL 1.x, which LLVM may leave as imports, such as _Z10atomic_addPU3AS1Vii, and dot products. What the pointer is one
 * to says nothing there: LLVM's own pointers have no such type, and may be pointers to bytes here. */
bool lower_known_function(lowering *l, const char *name, const uint32_t *w, uint32_t length) {
  static const struct {
    const char *name;
    uint8_t unsigned_what, signed_what, values;
  } known[] = {
      {"add", ATOMIC_ADD, ATOMIC_ADD, 1},
      {"sub", ATOMIC_SUB, ATOMIC_SUB, 1},
      {"xchg", ATOMIC_EXCHANGE, ATOMIC_EXCHANGE, 1},
      {"inc", ATOMIC_ADD, ATOMIC_ADD, 0},
      {"dec", ATOMIC_SUB, ATOMIC_SUB, 0},
      {"cmpxchg", ATOMIC_COMPARE, ATOMIC_COMPARE, 2},
      {"min", ATOMIC_UMIN, ATOMIC_SMIN, 1},
      {"max", ATOMIC_UMAX, ATOMIC_SMAX, 1},
      {"and", ATOMIC_AND, ATOMIC_AND, 1},
      {"or", ATOMIC_OR, ATOMIC_OR, 1},
      {"xor", ATOMIC_XOR, ATOMIC_XOR, 1},
  };
  const char *p = spirv_known_name(name);
  if (p == NULL) return false;
  if (p == name) return lower_llvm_function(l, name, w, length);
  if (lower_dot_function(l, p, w, length)) return true;
  if (strncmp(p, "atomic_", 7) == 0) p += 7;
  else if (strncmp(p, "atom_", 5) == 0) p += 5;
  else return false;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    size_t size = strlen(known[i].name);
    if (strncmp(p, known[i].name, size) != 0 || p[size] != 'P') continue;
    const char *type_letter = strchr(p, 'V');
    if (length != 5u + known[i].values || type_letter == NULL) return false;
    bool is_signed = type_letter[1] == 'i' || type_letter[1] == 'l';
    const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *value_type, *pointee;
    if (type->kind != TYPE_INT && !(type->kind == TYPE_FLOAT && known[i].signed_what == ATOMIC_EXCHANGE)) return false;
    uint32_t address = pointer_to(l, w[4], &pointee), values[2] = {0, 0}, *result = lower_list(l, type);
    spirv_lane lane = spirv_type_lane(type);
    for (uint32_t v = 0; v < known[i].values; v++) {
      values[v] = lower_scalar(l, w[5 + v], &value_type);
      if (value_type != type) WRONG(l, "the value has another type");
    }
    if (known[i].values == 0) values[0] = lower_number(l, lane, 1);
    bool compares = known[i].values == 2; /* the comparand comes first */
    result[0] = atomic(l, is_signed ? known[i].signed_what : known[i].unsigned_what, lane, address,
                       values[compares ? 1 : 0], compares ? values[0] : 0);
    lower_define(l, w[2], result);
    return true;
  }
  return false;
}

static uint32_t subgroup(lowering *l, ir_collective what, uint32_t scan, spirv_lane lane, uint32_t a, uint32_t index,
                         spirv_lane result) {
  l->k->subgroups = true;
  return lower_emit(
      l, (ir_insn){.op = IR_SUBGROUP, .lane = (uint8_t)lane, .a = a, .b = index, .extra = what, .imm = scan}, result);
}

static uint32_t workgroup(lowering *l, ir_collective what, uint32_t scan, spirv_lane lane, uint32_t a, uint32_t index) {
  ir_append(l->k, l->block, (ir_insn){.op = IR_GROUP_PUT, .lane = (uint8_t)lane, .a = a, .at = lower_place(l)});
  lower_barrier(l);
  return lower_emit(l, (ir_insn){.op = IR_GROUP_GET, .lane = (uint8_t)lane, .a = index, .extra = what, .imm = scan},
                    lane);
}

static const struct {
  uint16_t op, what;
} collectives[] = {
    {OpGroupIAdd, COLLECT_ADD},
    {OpGroupFAdd, COLLECT_FADD},
    {OpGroupFMin, COLLECT_FMIN},
    {OpGroupUMin, COLLECT_UMIN},
    {OpGroupSMin, COLLECT_SMIN},
    {OpGroupFMax, COLLECT_FMAX},
    {OpGroupUMax, COLLECT_UMAX},
    {OpGroupSMax, COLLECT_SMAX},
    {OpGroupIMulKHR, COLLECT_MUL},
    {OpGroupFMulKHR, COLLECT_FMUL},
    {OpGroupBitwiseAndKHR, COLLECT_AND},
    {OpGroupBitwiseOrKHR, COLLECT_OR},
    {OpGroupBitwiseXorKHR, COLLECT_XOR},
    {OpGroupLogicalAndKHR, COLLECT_AND},
    {OpGroupLogicalOrKHR, COLLECT_OR},
    {OpGroupLogicalXorKHR, COLLECT_XOR},
    {OpGroupNonUniformIAdd, COLLECT_ADD},
    {OpGroupNonUniformFAdd, COLLECT_FADD},
    {OpGroupNonUniformIMul, COLLECT_MUL},
    {OpGroupNonUniformFMul, COLLECT_FMUL},
    {OpGroupNonUniformSMin, COLLECT_SMIN},
    {OpGroupNonUniformUMin, COLLECT_UMIN},
    {OpGroupNonUniformFMin, COLLECT_FMIN},
    {OpGroupNonUniformSMax, COLLECT_SMAX},
    {OpGroupNonUniformUMax, COLLECT_UMAX},
    {OpGroupNonUniformFMax, COLLECT_FMAX},
    {OpGroupNonUniformBitwiseAnd, COLLECT_AND},
    {OpGroupNonUniformBitwiseOr, COLLECT_OR},
    {OpGroupNonUniformBitwiseXor, COLLECT_XOR},
    {OpGroupNonUniformLogicalAnd, COLLECT_AND},
    {OpGroupNonUniformLogicalOr, COLLECT_OR},
    {OpGroupNonUniformLogicalXor, COLLECT_XOR},
};

static bool fits(ir_collective what, spirv_lane lane) {
  bool real = lane >= LANE_F16;
  if (what == COLLECT_FADD || what == COLLECT_FMUL || what == COLLECT_FMIN || what == COLLECT_FMAX) return real;
  if (what == COLLECT_AND || what == COLLECT_OR || what == COLLECT_XOR) return !real;
  return !real && lane != LANE_BOOL;
}

/* The size of the clusters that a sub-group is divided into. */
static uint32_t cluster_of(lowering *l, uint32_t id) {
  const spirv_value *value = spirv_constant_of(l->m, id);
  if (value == NULL || value->type->kind != TYPE_INT) WRONG(l, "the size of a cluster is no constant");
  uint64_t size = value->bits[0];
  if (size == 0 || (size & (size - 1)) != 0 || size > SPIRV_MAX_GROUP_SIZE)
    WRONG(l, "a cluster of %llu is no power of two", (unsigned long long)size);
  return (uint32_t)size;
}

static bool reduction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++) {
    if (collectives[i].op != op) continue;
    uint32_t scope = constant_scope(l, w[3]), scan = w[4];
    const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *operand;
    const uint32_t *a = lower_use(l, w[5], &operand);
    if (scan > GroupClustered || (scan == GroupClustered) != (length == 7)) WRONG(l, "operation %u of this kind", scan);
    if (scan == GroupClustered && scope != ScopeSubgroup) WRONG(l, "clusters are of sub-groups");
    if (scan == GroupClustered) scan = GroupReduce | cluster_of(l, w[6]) << CLUSTER_SHIFT;
    if (operand != type || !(spirv_is_scalar(type) || type->kind == TYPE_VECTOR))
      WRONG(l, "the operand has another type");
    if (scope != ScopeWorkgroup && scope != ScopeSubgroup) UNSUPPORTED(l->m, l->at, "scope %u is not supported", scope);
    spirv_lane lane = spirv_type_lane(lower_component(type));
    if (!fits(collectives[i].what, lane)) WRONG(l, "the operand has another type");
    uint32_t *values = lower_list(l, type);
    for (uint64_t c = 0; c < type->components; c++)
      values[c] = scope == ScopeWorkgroup ? workgroup(l, collectives[i].what, scan, lane, a[c], 0)
                                          : subgroup(l, collectives[i].what, scan, lane, a[c], 0, lane);
    lower_define(l, w[2], values);
    return true;
  }
  return false;
}

/* Computes the number of a work-item in its group from a local id of one to three dimensions. */
static uint32_t linear_id(lowering *l, uint32_t id) {
  const spirv_type *type;
  const uint32_t *ids = lower_use(l, id, &type);
  if (lower_component(type)->kind != TYPE_INT || type->components > 3) WRONG(l, "the local id is no integer");
  uint32_t result = 0;
  for (uint32_t i = (uint32_t)type->components; i-- > 0;) {
    uint32_t one = lower_convert(l, IR_CONVERT_U, spirv_type_lane(lower_component(type)), LANE_I64, ids[i]);
    if (i + 1 == type->components) result = one;
    else
      result = lower_op(l, IR_ADD, LANE_I64, one,
                        lower_op(l, IR_MUL, LANE_I64, result, lower_builtin(l, BuiltInWorkgroupSize, i)));
  }
  return result;
}

static uint32_t lane_number(lowering *l, spirv_lane lane) {
  l->k->subgroups = true;
  return lower_convert(l, IR_CONVERT_U, LANE_I64, lane, lower_builtin(l, BuiltInSubgroupLocalInvocationId, 0));
}

static uint32_t index_of(lowering *l, uint32_t id) {
  const spirv_type *type;
  uint32_t index = lower_scalar(l, id, &type);
  if (type->kind != TYPE_INT) WRONG(l, "the index is no integer");
  return lower_convert(l, IR_CONVERT_U, spirv_type_lane(type), LANE_I32, index);
}

/* The lane whose value comes here when the values of a sub-group, or of its clusters, move in a circle. */
static uint32_t rotated(lowering *l, const uint32_t *w, uint32_t length) {
  uint32_t lane = lane_number(l, LANE_I32), size, one = lower_number(l, LANE_I32, 1);
  if (length == 7) size = lower_number(l, LANE_I32, cluster_of(l, w[6]));
  else size = lower_convert(l, IR_CONVERT_U, LANE_I64, LANE_I32, lower_builtin(l, BuiltInSubgroupMaxSize, 0));
  uint32_t mask = lower_op(l, IR_SUB, LANE_I32, size, one);
  uint32_t place = lower_op(l, IR_AND, LANE_I32, lower_op(l, IR_ADD, LANE_I32, lane, index_of(l, w[5])), mask);
  uint32_t first = lower_op(l, IR_SUB, LANE_I32, lane, lower_op(l, IR_AND, LANE_I32, lane, mask));
  return lower_op(l, IR_ADD, LANE_I32, first, place);
}

// Long: a case for each instruction.
static bool votes_and_shuffles(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *operand;
  bool intel = op >= OpSubgroupShuffleINTEL && op <= OpSubgroupShuffleXorINTEL;
  uint32_t scope = intel ? ScopeSubgroup : constant_scope(l, w[3]), *values = lower_list(l, type);
  if (scope != ScopeWorkgroup && scope != ScopeSubgroup) UNSUPPORTED(l->m, l->at, "scope %u is not supported", scope);
  if (op == OpGroupNonUniformElect) {
    if (type->kind != TYPE_BOOL) WRONG(l, "the result is not a bool");
    values[0] = subgroup(l, COLLECT_ELECT, 0, LANE_BOOL, lower_number(l, LANE_BOOL, 0), 0, LANE_BOOL);
    lower_define(l, w[2], values);
    return true;
  }
  const uint32_t *a = lower_use(l, w[intel ? 3 : 4], &operand);
  if (!(spirv_is_scalar(operand) || operand->kind == TYPE_VECTOR)) WRONG(l, "the operand has another type");
  spirv_lane lane = spirv_type_lane(lower_component(operand));
  bool vote = op == OpGroupAll || op == OpGroupAny || op == OpGroupNonUniformAll || op == OpGroupNonUniformAny;
  if (vote || op == OpGroupNonUniformAllEqual ? type->kind != TYPE_BOOL : type != operand)
    WRONG(l, "the result has another type");
  if (vote && operand->kind != TYPE_BOOL) WRONG(l, "the operand is not a bool");
  bool all = op == OpGroupAll || op == OpGroupNonUniformAll;
  if (op == OpGroupNonUniformAllEqual && operand->components != 1) WRONG(l, "the operand is no scalar");
  for (uint64_t c = 0; c < operand->components; c++) {
    if (vote) {
      ir_collective what = all ? COLLECT_ALL : COLLECT_ANY;
      values[c] = scope == ScopeWorkgroup ? workgroup(l, what, 0, lane, a[c], 0)
                                          : subgroup(l, what, 0, lane, a[c], 0, lane);
    } else if (op == OpGroupNonUniformAllEqual) {
      values[c] = subgroup(l, COLLECT_ALL_EQUAL, 0, lane, a[c], 0, LANE_BOOL);
    } else if (op == OpGroupNonUniformBroadcastFirst) {
      values[c] = subgroup(l, COLLECT_FIRST, 0, lane, a[c], 0, lane);
    } else if (op == OpGroupBroadcast && scope == ScopeWorkgroup) {
      values[c] = workgroup(l, COLLECT_BROADCAST, 0, lane, a[c], linear_id(l, w[5]));
    } else if (op == OpGroupBroadcast || op == OpGroupNonUniformBroadcast || op == OpGroupNonUniformShuffle) {
      values[c] = subgroup(l, COLLECT_SHUFFLE, 0, lane, a[c], index_of(l, w[5]), lane);
    } else if (op == OpSubgroupShuffleINTEL) {
      values[c] = subgroup(l, COLLECT_SHUFFLE, 0, lane, a[c], index_of(l, w[4]), lane);
    } else if (op == OpSubgroupShuffleXorINTEL || op == OpGroupNonUniformShuffleXor) {
      uint32_t index = lower_op(l, IR_XOR, LANE_I32, lane_number(l, LANE_I32), index_of(l, w[intel ? 4 : 5]));
      values[c] = subgroup(l, COLLECT_SHUFFLE, 0, lane, a[c], index, lane);
    } else if (op == OpGroupNonUniformShuffleUp || op == OpGroupNonUniformShuffleDown) {
      uint32_t index = lower_op(l, op == OpGroupNonUniformShuffleUp ? IR_SUB : IR_ADD, LANE_I32,
                                lane_number(l, LANE_I32), index_of(l, w[5]));
      values[c] = subgroup(l, COLLECT_SHUFFLE, 0, lane, a[c], index, lane);
    } else if (op == OpGroupNonUniformRotateKHR) {
      values[c] = subgroup(l, COLLECT_SHUFFLE, 0, lane, a[c], rotated(l, w, length), lane);
    } else { /* Intel's: two values next to each other, and a window over them as wide as a sub-group */
      const spirv_type *other_type;
      const uint32_t *b = lower_use(l, w[4], &other_type);
      if (other_type != operand) WRONG(l, "the operands have different types");
      uint32_t size = lower_convert(l, IR_CONVERT_U, LANE_I64, LANE_I32, lower_builtin(l, BuiltInSubgroupMaxSize, 0));
      uint32_t delta = index_of(l, w[5]), index = lane_number(l, LANE_I32);
      if (op == OpSubgroupShuffleUpINTEL)
        index = lower_op(l, IR_ADD, LANE_I32, index, lower_op(l, IR_SUB, LANE_I32, size, delta));
      else index = lower_op(l, IR_ADD, LANE_I32, index, delta);
      uint32_t first = subgroup(l, COLLECT_SHUFFLE, 0, lane, a[c], index, lane);
      uint32_t second = subgroup(l, COLLECT_SHUFFLE, 0, lane, b[c], lower_op(l, IR_SUB, LANE_I32, index, size), lane);
      values[c] = lower_select(l, lane, lower_compare(l, IR_ULT, LANE_I32, index, size), first, second);
    }
  }
  lower_define(l, w[2], values);
  return true;
}

static bool ballots(lowering *l, uint32_t op, const uint32_t *w) {
  const spirv_type *type = spirv_type_of(l->m, l->at, w[1]), *operand;
  uint32_t *values = lower_list(l, type), zero = lower_number(l, LANE_I32, 0), one = lower_number(l, LANE_I32, 1);
  bool counts = op == OpGroupNonUniformBallotBitCount;
  const uint32_t *a = lower_use(l, w[counts ? 5 : 4], &operand);
  if (constant_scope(l, w[3]) != ScopeSubgroup) WRONG(l, "ballots are of sub-groups");
  if (op == OpGroupNonUniformBallot) {
    if (operand->kind != TYPE_BOOL || type->components != 4 || spirv_type_lane(lower_component(type)) != LANE_I32)
      WRONG(l, "the operands have other types");
    values[0] = subgroup(l, COLLECT_BALLOT, 0, LANE_BOOL, a[0], 0, LANE_I32);
    values[1] = values[2] = values[3] = zero;
    lower_define(l, w[2], values);
    return true;
  }
  if (operand->components != 4 || spirv_type_lane(lower_component(operand)) != LANE_I32)
    WRONG(l, "the ballot has another type");
  bool asks = op == OpGroupNonUniformInverseBallot || op == OpGroupNonUniformBallotBitExtract;
  if (asks ? type->kind != TYPE_BOOL : type->kind != TYPE_INT || type->width != 32)
    WRONG(l, "the result has another type");
  uint32_t lane = lane_number(l, LANE_I32), bits = a[0];
  uint32_t size = lower_convert(l, IR_CONVERT_U, LANE_I64, LANE_I32, lower_builtin(l, BuiltInSubgroupMaxSize, 0));
  if (asks) {
    uint32_t index = op == OpGroupNonUniformInverseBallot ? lane : index_of(l, w[5]);
    uint32_t bit = lower_op(l, IR_AND, LANE_I32, lower_op(l, IR_LSHR, LANE_I32, bits, index), one);
    values[0] = lower_compare(l, IR_NE, LANE_I32, bit, zero);
  } else if (counts) {
    if (w[4] > GroupExclusiveScan) WRONG(l, "a count of another kind");
    uint32_t below = lower_op(l, IR_SUB, LANE_I32, lower_op(l, IR_SHL, LANE_I32, one, lane), one);
    uint32_t with = lower_op(l, IR_OR, LANE_I32, below, lower_op(l, IR_SHL, LANE_I32, one, lane));
    uint32_t all = lower_op(l, IR_LSHR, LANE_I32, lower_number(l, LANE_I32, UINT32_MAX),
                            lower_op(l, IR_SUB, LANE_I32, lower_number(l, LANE_I32, 32), size));
    uint32_t mask = w[4] == GroupReduce ? all : w[4] == GroupInclusiveScan ? with : below;
    values[0] = lower_op(l, IR_POPCOUNT, LANE_I32, lower_op(l, IR_AND, LANE_I32, bits, mask), 0);
  } else if (op == OpGroupNonUniformBallotFindLSB) {
    values[0] = lower_op(l, IR_CTZ, LANE_I32, bits, 0);
  } else {
    values[0] = lower_op(l, IR_SUB, LANE_I32, lower_number(l, LANE_I32, 31), lower_op(l, IR_CLZ, LANE_I32, bits, 0));
  }
  lower_define(l, w[2], values);
  return true;
}

static bool blocks_of_memory(lowering *l, uint32_t op, const uint32_t *w) {
  const spirv_type *to, *type, *given;
  bool reads = op == OpSubgroupBlockReadINTEL;
  uint32_t address = pointer_to(l, w[reads ? 3 : 1], &to), *values = NULL;
  if (reads) type = spirv_type_of(l->m, l->at, w[1]);
  else values = (uint32_t *)lower_use(l, w[2], &type);
  given = lower_component(type);
  if (given->kind != TYPE_INT || given->size != to->size) WRONG(l, "the pointer is one to another type");
  if (reads) values = lower_list(l, type);
  uint32_t lane = lane_number(l, LANE_I64), size = lower_builtin(l, BuiltInSubgroupMaxSize, 0);
  for (uint64_t c = 0; c < type->components; c++) {
    uint32_t index = lower_op(l, IR_ADD, LANE_I64, lane,
                              lower_op(l, IR_MUL, LANE_I64, size, lower_number(l, LANE_I64, c)));
    uint32_t where = lower_index(l, address, index, LANE_I64, given->size);
    if (reads) lower_load(l, given, where, &values[c]);
    else lower_store(l, given, where, &values[c]);
  }
  if (reads) lower_define(l, w[2], values);
  return true;
}

static bool async_copy(lowering *l, const uint32_t *w) {
  const spirv_type *to, *from, *count_type, *stride_type, *event, *pointer = spirv_type_of_value(l->m, l->at, w[4]);
  uint32_t target = pointer_to(l, w[4], &to), source = pointer_to(l, w[5], &from);
  uint32_t count = lower_scalar(l, w[6], &count_type), stride = lower_scalar(l, w[7], &stride_type);
  if (to != from || count_type->kind != TYPE_INT || stride_type->kind != TYPE_INT)
    WRONG(l, "the operands have other types");
  count = lower_convert(l, IR_CONVERT_U, spirv_type_lane(count_type), LANE_I64, count);
  stride = lower_convert(l, IR_CONVERT_U, spirv_type_lane(stride_type), LANE_I64, stride);
  uint64_t gathers = pointer->storage == StorageWorkgroup; /* the source has the stride */
  if (to->size != 0)
    ir_append(l->k, l->block,
              (ir_insn){.op = IR_ASYNC_COPY,
                        .lane = LANE_I64,
                        .a = target,
                        .b = source,
                        .c = count,
                        .extra = stride,
                        .imm = to->size << 1 | gathers,
                        .at = lower_place(l)});
  uint32_t *value = lower_list(l, spirv_type_of(l->m, l->at, w[1]));
  lower_use(l, w[8], &event);
  if (event->kind != TYPE_EVENT || spirv_type_of(l->m, l->at, w[1]) != event) WRONG(l, "the event has another type");
  value[0] = lower_number(l, LANE_I64, 0);
  lower_define(l, w[2], value);
  return true;
}

bool lower_group_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  if ((op >= OpAtomicLoad && op <= OpAtomicXor) || op == OpAtomicFlagTestAndSet || op == OpAtomicFlagClear ||
      op == OpAtomicFAddEXT || op == OpAtomicFMinEXT || op == OpAtomicFMaxEXT)
    return atomics(l, op, w);
  if (reduction(l, op, w, length)) return true;
  switch (op) {
    case OpControlBarrier:
      if (constant_scope(l, w[1]) == ScopeWorkgroup) lower_barrier(l);
      else if (constant_scope(l, w[1]) == ScopeSubgroup)
        ir_append(l->k, l->block, (ir_insn){.op = IR_FENCE, .lane = LANE_I32, .at = lower_place(l)});
      else WRONG(l, "a barrier of scope %u", constant_scope(l, w[1]));
      return true; /* the lanes of a sub-group run together */
    case OpMemoryBarrier: return true; /* one thread runs a group; atomics order groups */
    case OpGroupWaitEvents: lower_barrier(l); return true;
    case OpGroupAsyncCopy: return async_copy(l, w);
    case OpGroupAll:
    case OpGroupAny:
    case OpGroupBroadcast:
    case OpGroupNonUniformElect:
    case OpGroupNonUniformAll:
    case OpGroupNonUniformAny:
    case OpGroupNonUniformAllEqual:
    case OpGroupNonUniformBroadcast:
    case OpGroupNonUniformBroadcastFirst:
    case OpGroupNonUniformShuffle:
    case OpGroupNonUniformShuffleXor:
    case OpGroupNonUniformShuffleUp:
    case OpGroupNonUniformShuffleDown:
    case OpSubgroupShuffleINTEL:
    case OpSubgroupShuffleDownINTEL:
    case OpSubgroupShuffleUpINTEL:
    case OpGroupNonUniformRotateKHR:
    case OpSubgroupShuffleXorINTEL: return votes_and_shuffles(l, op, w, length);
    case OpGroupNonUniformBallot:
    case OpGroupNonUniformInverseBallot:
    case OpGroupNonUniformBallotBitExtract:
    case OpGroupNonUniformBallotBitCount:
    case OpGroupNonUniformBallotFindLSB:
    case OpGroupNonUniformBallotFindMSB: return ballots(l, op, w);
    case OpSubgroupBlockReadINTEL:
    case OpSubgroupBlockWriteINTEL: return blocks_of_memory(l, op, w);
    default: return false;
  }
}
