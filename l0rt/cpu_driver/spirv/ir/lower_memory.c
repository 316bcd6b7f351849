/* SPDX-License-Identifier: Apache-2.0 */
/* lower_memory.c: variables, pointers, loads and stores.
 *
 * A pointer of any storage class is an address of the host. A built-in variable, whatever its storage class, is in private
 * memory, but only if a kernel needs its address: most load it, or a part of it, and get the value. */
#include <string.h>

#include "spirv/ir/lower.h"

enum { MAX_PRIVATE = 1 << 20, LOCAL_ALIGNMENT = 128 };

/* In the entry block, which dominates all others. */
static uint32_t first_emit(lowering *l, ir_insn insn) {
  uint32_t block = l->block;
  l->block = 0;
  uint32_t value = lower_emit(l, insn, LANE_I64);
  l->block = block;
  return value;
}

uint32_t lower_builtin(lowering *l, uint32_t builtin, uint32_t dimension) {
  uint32_t *known = builtin < 64 && dimension < 3 ? &l->builtins[builtin][dimension] : NULL;
  if (known == NULL) UNSUPPORTED(l->m, l->at, "built-in variable %u is not supported", builtin);
  if (*known == 0)
    *known = first_emit(l, (ir_insn){.op = IR_BUILTIN, .lane = LANE_I64, .extra = builtin, .imm = dimension});
  return *known;
}

static const uint32_t *input(lowering *l, const spirv_variable *variable) {
  const spirv_type *type = lower_component(variable->type);
  if (type->kind != TYPE_INT || variable->type->components > 3) WRONG(l, "a built-in variable of another type");
  if (variable->builtin < BuiltInNumWorkgroups || variable->builtin > BuiltInSubgroupLocalInvocationId ||
      variable->builtin == 35)
    UNSUPPORTED(l->m, l->at, "built-in variable %d is not supported", variable->builtin);
  if (variable->builtin >= BuiltInSubgroupSize) l->k->subgroups = true;
  uint32_t *values = lower_list(l, variable->type);
  for (uint32_t i = 0; i < variable->type->components; i++)
    values[i] = lower_convert(l, IR_CONVERT_U, LANE_I64, spirv_type_lane(type),
                              lower_builtin(l, (uint32_t)variable->builtin, i));
  return values;
}

uint64_t lower_local(lowering *l, const spirv_variable *variable) {
  for (uint32_t i = 0; i < l->local_count; i++)
    if (l->locals[i].variable == variable) return l->locals[i].offset;
  l->locals = spirv_grow(l->arena, l->locals, l->local_count, &l->local_capacity, sizeof(*l->locals));
  uint64_t offset = (l->k->local_bytes + LOCAL_ALIGNMENT - 1) & ~(uint64_t)(LOCAL_ALIGNMENT - 1);
  if (variable->type->size > SPIRV_MAX_LOCAL_BYTES || offset + variable->type->size > SPIRV_MAX_LOCAL_BYTES)
    WRONG(l, "more than %d bytes of local memory", SPIRV_MAX_LOCAL_BYTES);
  l->k->local_bytes = offset + variable->type->size;
  l->locals[l->local_count].variable = variable;
  l->locals[l->local_count++].offset = offset;
  return offset;
}

uint32_t lower_local_address(lowering *l, const spirv_variable *variable) {
  return first_emit(l, (ir_insn){.op = IR_LOCAL_ADDRESS, .imm = lower_local(l, variable)});
}

static uint64_t private_place(lowering *l, uint64_t size, uint64_t align) {
  if (align < 1) align = 1;
  uint64_t offset = (l->k->private_bytes + align - 1) / align * align;
  if (size > MAX_PRIVATE || offset + size > MAX_PRIVATE) WRONG(l, "more than %d bytes of private memory", MAX_PRIVATE);
  l->k->private_bytes = offset + size;
  return offset;
}

static uint32_t private_address(lowering *l, uint64_t place) {
  return first_emit(l, (ir_insn){.op = IR_PRIVATE_ADDRESS, .imm = place});
}

uint32_t lower_private(lowering *l, uint64_t size, uint64_t align) {
  return private_address(l, private_place(l, size, align));
}

uint32_t lower_offset(lowering *l, uint32_t address, uint64_t bytes) {
  return bytes == 0 ? address : lower_op(l, IR_ADD, LANE_I64, address, lower_number(l, LANE_I64, bytes));
}

static int64_t constant_index(const ir_value *value) {
  unsigned unused = 64 - spirv_lane_size[value->lane] * 8u;
  return (int64_t)(value->bits << unused) >> unused;
}

uint32_t lower_index(lowering *l, uint32_t address, uint32_t index, spirv_lane lane, uint64_t scale) {
  const ir_value *value = &l->k->values[index];
  if (value->constant) return lower_offset(l, address, (uint64_t)constant_index(value) * scale);
  return lower_emit(l, (ir_insn){.op = IR_INDEX, .lane = (uint8_t)lane, .a = address, .b = index, .imm = scale},
                    LANE_I64);
}

/* The type of a member, and its index. */
static const spirv_type *member_of(lowering *l, const spirv_type *type, uint32_t id, uint32_t *index,
                                   const spirv_type **index_type) {
  *index = lower_scalar(l, id, index_type);
  if ((*index_type)->kind != TYPE_INT) WRONG(l, "index %u is no integer", id);
  if (type->kind == TYPE_STRUCT) {
    const ir_value *value = &l->k->values[*index];
    if (!value->constant || value->bits >= type->count) WRONG(l, "there is no such member of the structure");
    return type->members[value->bits];
  }
  if (type->kind != TYPE_ARRAY && type->kind != TYPE_VECTOR) WRONG(l, "an index into what has no members");
  return type->element;
}

static const spirv_type *pointee(lowering *l, const spirv_type *pointer) {
  if (pointer->kind != TYPE_POINTER || pointer->element == NULL) WRONG(l, "the operand is no pointer");
  return pointer->element;
}

static bool is_chain(uint32_t op) {
  return op == OpAccessChain || op == OpInBoundsAccessChain || op == OpPtrAccessChain || op == OpInBoundsPtrAccessChain;
}

static bool is_pointer_chain(uint32_t op) { return op == OpPtrAccessChain || op == OpInBoundsPtrAccessChain; }

/* Adds the distance that a chain goes, if all its indices are constants. */
static bool add_distance(lowering *l, uint32_t op, const uint32_t *w, uint32_t length, uint64_t *distance) {
  const spirv_type *type = spirv_type_of_value(l->m, l->at, w[3])->element;
  for (uint32_t next = 4; next < length && type != NULL; next++) {
    const spirv_value *index = w[next] < l->m->bound ? spirv_constant_of(l->m, w[next]) : NULL;
    if (index == NULL || index->type->kind != TYPE_INT) return false;
    unsigned unused = 64 - index->type->width;
    int64_t i = (int64_t)(index->bits[0] << unused) >> unused;
    if (next == 4 && is_pointer_chain(op)) {
      *distance += (uint64_t)i * type->size;
      continue;
    }
    const spirv_type *member = spirv_member(type, (uint64_t)i);
    if (member == NULL) return false;
    *distance += type->kind == TYPE_STRUCT ? type->offsets[i] : (uint64_t)i * member->size;
    type = member;
  }
  return type != NULL;
}

/* The built-in variable that a pointer is a constant distance from; NULL: it is another value. */
static const spirv_variable *input_at(lowering *l, uint32_t id, uint64_t *distance) {
  *distance = 0;
  for (int steps = 0; steps < MAX_DEPTH; steps++) {
    if (id == 0 || id >= l->m->bound) return NULL;
    const spirv_id *i = &l->m->ids[id];
    if (i->op == OpVariable && i->at < l->m->functions_at) return i->variable->builtin >= 0 ? i->variable : NULL;
    const uint32_t *w = l->m->words + i->at;
    uint32_t op = i->op, length = spirv_length(l->m, i->at);
    if (op == OpSpecConstantOp) { /* its operation stands before the operands */
      op = w[3];
      w++;
      length--;
    }
    bool casts = op == OpBitcast || op == OpPtrCastToGeneric || op == OpGenericCastToPtr;
    if ((!casts && !is_chain(op)) || spirv_type_of_value(l->m, l->at, id)->kind != TYPE_POINTER) return NULL;
    if (is_chain(op) && !add_distance(l, op, w, length, distance)) return NULL;
    id = w[3];
  }
  return NULL;
}

bool lower_is_input(lowering *l, const uint32_t *w) {
  uint64_t distance;
  if (input_at(l, w[2], &distance) == NULL) return false;
  lower_dominated(l, w[3]);
  return true;
}

uint32_t *lower_input_address(lowering *l, uint32_t id) {
  uint64_t distance;
  const spirv_variable *variable = input_at(l, id, &distance);
  if (variable == NULL) return NULL;
  if (l->map[id] != NULL) return l->map[id];
  uint32_t known = 0;
  while (known < l->input_count && l->inputs[known].variable != variable) known++;
  if (known == l->input_count) {
    l->inputs = spirv_grow(l->arena, l->inputs, l->input_count++, &l->input_capacity, sizeof(*l->inputs));
    l->inputs[known].variable = variable;
    l->inputs[known].place = private_place(l, variable->type->size, variable->type->align);
    uint32_t block = l->block;
    l->block = 0;
    lower_store(l, variable->type, private_address(l, l->inputs[known].place), input(l, variable));
    l->block = block;
  }
  uint32_t *address = SPIRV_ARRAY(l->arena, uint32_t, 1);
  address[0] = private_address(l, l->inputs[known].place + distance);
  return l->map[id] = address;
}

static bool load_input(lowering *l, const uint32_t *w, const spirv_type *type) {
  uint64_t distance;
  const spirv_variable *variable = input_at(l, w[3], &distance);
  if (variable == NULL || lower_component(type)->kind != TYPE_INT) return false;
  uint64_t size = lower_component(type)->size, first = distance / size, count = variable->type->components;
  if (size != lower_component(variable->type)->size || distance % size != 0) return false;
  if (first > count || type->components > count - first) return false;
  lower_dominated(l, w[3]);
  uint32_t *values = lower_list(l, type);
  memcpy(values, input(l, variable) + first, type->components * sizeof(*values));
  lower_define(l, w[2], values);
  return true;
}

static bool chain(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  const spirv_type *base_type = spirv_type_of_value(l->m, l->at, w[3]), *index_type;
  bool of_input = lower_is_input(l, w);
  uint32_t address = of_input ? 0 : lower_use(l, w[3], &base_type)[0], next = 4, index;
  const spirv_type *type = pointee(l, base_type);
  if (is_pointer_chain(op)) {
    index = lower_scalar(l, w[next++], &index_type);
    if (index_type->kind != TYPE_INT) WRONG(l, "index %u is no integer", w[4]);
    if (!of_input) address = lower_index(l, address, index, spirv_type_lane(index_type), type->size);
  }
  for (; next < length; next++) {
    const spirv_type *outer = type;
    type = member_of(l, outer, w[next], &index, &index_type);
    if (of_input) continue;
    if (outer->kind == TYPE_STRUCT) address = lower_offset(l, address, outer->offsets[l->k->values[index].bits]);
    else address = lower_index(l, address, index, spirv_type_lane(index_type), type->size);
  }
  const spirv_type *result = spirv_type_of(l->m, l->at, w[1]);
  if (pointee(l, result) != type) WRONG(l, "the result points to another type");
  if (result->storage != base_type->storage) WRONG(l, "the result has another storage class");
  if (of_input) return true;
  uint32_t *value = lower_list(l, result);
  value[0] = address;
  lower_define(l, w[2], value);
  return true;
}

static void check_value(lowering *l, const spirv_type *type) {
  if (type->kind == TYPE_VOID || type->kind >= TYPE_FUNCTION) WRONG(l, "a type without values in memory");
}

void lower_load(lowering *l, const spirv_type *type, uint32_t address, uint32_t *values) {
  check_value(l, type);
  for (uint64_t i = 0; i < type->components; i++) {
    uint64_t offset;
    spirv_lane lane = spirv_type_lane(spirv_leaf(type, i, &offset));
    values[i] = lower_emit(l, (ir_insn){.op = IR_LOAD, .lane = (uint8_t)lane, .a = address, .imm = offset}, lane);
  }
}

void lower_store(lowering *l, const spirv_type *type, uint32_t address, const uint32_t *values) {
  check_value(l, type);
  for (uint64_t i = 0; i < type->components; i++) {
    uint64_t offset;
    spirv_lane lane = spirv_type_lane(spirv_leaf(type, i, &offset));
    ir_insn store = {
        .op = IR_STORE, .lane = (uint8_t)lane, .a = address, .b = values[i], .imm = offset, .at = lower_place(l)};
    ir_append(l->k, l->block, store);
  }
}

static void private_variable(lowering *l, const uint32_t *w, uint32_t length) {
  const spirv_type *pointer = spirv_type_of(l->m, l->at, w[1]), *given;
  if (w[3] != StorageFunction || pointer->kind != TYPE_POINTER || pointer->storage != StorageFunction)
    WRONG(l, "a variable of storage class %u inside a function", w[3]);
  const spirv_type *type = pointee(l, pointer);
  check_value(l, type);
  uint64_t align = l->m->ids[w[2]].alignment;
  if (align < type->align || align > 4096 || (align & (align - 1)) != 0) align = type->align;
  uint32_t *value = lower_list(l, pointer);
  value[0] = lower_private(l, type->size, align);
  lower_define(l, w[2], value);
  if (length < 5) return;
  const uint32_t *values = lower_use(l, w[4], &given);
  if (given != type) WRONG(l, "the initializer has another type");
  lower_store(l, type, value[0], values);
}

static void load(lowering *l, const uint32_t *w) {
  const spirv_type *pointer = spirv_type_of_value(l->m, l->at, w[3]), *type = spirv_type_of(l->m, l->at, w[1]);
  if (pointee(l, pointer) != type) WRONG(l, "the pointer is one to another type");
  if (load_input(l, w, type)) return;
  uint32_t *values = lower_list(l, type);
  lower_load(l, type, lower_use(l, w[3], &pointer)[0], values);
  lower_define(l, w[2], values);
}

static const spirv_type *writable(lowering *l, uint32_t id, uint32_t *address) {
  const spirv_type *pointer;
  *address = lower_use(l, id, &pointer)[0];
  pointee(l, pointer);
  if (pointer->storage == StorageInput || pointer->storage == StorageUniformConstant)
    WRONG(l, "storage class %u cannot be written", pointer->storage);
  uint64_t distance;
  if (input_at(l, id, &distance) != NULL) WRONG(l, "a built-in variable cannot be written");
  return pointer;
}

static void copy(lowering *l, uint32_t op, const uint32_t *w) {
  uint32_t to, from, size;
  const spirv_type *target = writable(l, w[1], &to), *source, *size_type;
  from = lower_use(l, w[2], &source)[0];
  const spirv_type *type = pointee(l, source);
  if (op == OpCopyMemory) {
    if (type != target->element) WRONG(l, "the pointers are ones to different types");
    check_value(l, type);
    size = lower_number(l, LANE_I64, type->size);
  } else {
    size = lower_scalar(l, w[3], &size_type);
    if (size_type->kind != TYPE_INT) WRONG(l, "the size is no integer");
    size = lower_convert(l, IR_CONVERT_U, spirv_type_lane(size_type), LANE_I64, size);
  }
  ir_append(l->k, l->block,
            (ir_insn){.op = IR_COPY_MEMORY, .lane = LANE_I64, .a = to, .b = from, .c = size, .at = lower_place(l)});
}

static void cast(lowering *l, uint32_t op, const uint32_t *w) {
  const spirv_type *from, *type = spirv_type_of(l->m, l->at, w[1]);
  uint32_t value = lower_scalar(l, w[3], &from), *result = lower_list(l, type);
  if (op == OpConvertPtrToU) {
    if (from->kind != TYPE_POINTER || type->kind != TYPE_INT) WRONG(l, "the operand is no pointer");
    result[0] = lower_convert(l, IR_CONVERT_U, LANE_I64, spirv_type_lane(type), value);
  } else if (op == OpConvertUToPtr) {
    if (from->kind != TYPE_INT || type->kind != TYPE_POINTER) WRONG(l, "the result is no pointer");
    result[0] = lower_convert(l, IR_CONVERT_U, spirv_type_lane(from), LANE_I64, value);
  } else {
    if (from->kind != TYPE_POINTER || type->kind != TYPE_POINTER) WRONG(l, "the operand is no pointer");
    result[0] = value;
    if (op == OpGenericCastToPtrExplicit)
      result[0] = lower_emit(l, (ir_insn){.op = IR_GENERIC_CAST, .lane = LANE_I64, .a = value, .extra = type->storage},
                             LANE_I64);
  }
  lower_define(l, w[2], result);
}

/* To which memory a generic pointer points, as bits of memory semantics. Private memory has no bit. */
static void memory_of_pointer(lowering *l, const uint32_t *w) {
  enum { WORKGROUP_MEMORY = 0x100, CROSS_WORKGROUP_MEMORY = 0x200 };
  const spirv_type *from, *type = spirv_type_of(l->m, l->at, w[1]);
  uint32_t address = lower_scalar(l, w[3], &from), *result = lower_list(l, type);
  if (from->kind != TYPE_POINTER || type->kind != TYPE_INT)
    WRONG(l, "the operand is no pointer, or the result no integer");
  static const uint32_t storages[] = {StorageWorkgroup, StorageCrossWorkgroup};
  static const uint64_t bits[] = {WORKGROUP_MEMORY, CROSS_WORKGROUP_MEMORY};
  spirv_lane lane = spirv_type_lane(type);
  result[0] = lower_number(l, lane, 0);
  for (int i = 0; i < 2; i++) {
    ir_insn insn = {.op = IR_GENERIC_CAST, .lane = LANE_I64, .a = address, .extra = storages[i]};
    uint32_t there = lower_compare(l, IR_NE, LANE_I64, lower_emit(l, insn, LANE_I64), lower_number(l, LANE_I64, 0));
    result[0] = lower_select(l, lane, there, lower_number(l, lane, bits[i]), result[0]);
  }
  lower_define(l, w[2], result);
}

bool lower_memory_instruction(lowering *l, uint32_t op, const uint32_t *w, uint32_t length) {
  const spirv_type *type, *a_type, *b_type;
  uint32_t address;
  switch (op) {
    case OpVariable: private_variable(l, w, length); return true;
    case OpLoad: load(l, w); return true;
    case OpStore: {
      type = writable(l, w[1], &address);
      const uint32_t *values = lower_use(l, w[2], &a_type);
      if (a_type != type->element) WRONG(l, "the value has another type than the pointer is one to");
      lower_store(l, a_type, address, values);
      return true;
    }
    case OpAccessChain:
    case OpInBoundsAccessChain:
    case OpPtrAccessChain:
    case OpInBoundsPtrAccessChain: return chain(l, op, w, length);
    case OpCopyMemory:
    case OpCopyMemorySized: copy(l, op, w); return true;
    case OpPtrCastToGeneric:
    case OpGenericCastToPtr:
      if (lower_is_input(l, w)) return true;
      cast(l, op, w);
      return true;
    case OpConvertPtrToU:
    case OpConvertUToPtr:
    case OpGenericCastToPtrExplicit: cast(l, op, w); return true;
    case OpPtrDiff: {
      uint32_t a = lower_scalar(l, w[3], &a_type), b = lower_scalar(l, w[4], &b_type);
      type = spirv_type_of(l->m, l->at, w[1]);
      if (a_type != b_type || type->kind != TYPE_INT || pointee(l, a_type)->size == 0)
        WRONG(l, "the operands have other types");
      uint32_t *value = lower_list(l, type), bytes = lower_op(l, IR_SUB, LANE_I64, a, b);
      bytes = lower_op(l, IR_SDIV, LANE_I64, bytes, lower_number(l, LANE_I64, a_type->element->size));
      value[0] = lower_convert(l, IR_CONVERT_S, LANE_I64, spirv_type_lane(type), bytes);
      lower_define(l, w[2], value);
      return true;
    }
    case OpGenericPtrMemSemantics: memory_of_pointer(l, w); return true;
    default: return false;
  }
}
