/* SPDX-License-Identifier: Apache-2.0 */
/* constant.c: constants, specialisation constants and module-scope variables. */
#include <string.h>

#include "spirv/decode/module.h"

enum {
  MAX_COMPONENTS = 1 << 20,
  MAX_DESCRIBED =
      4096, /* of a constant in a module that is only described: nobody asks for the value of a larger one */
  MAX_ALIGNMENT = 4096,
};

const spirv_value *spirv_constant_of(const spirv_module *m, uint32_t id) {
  const spirv_id *i = &m->ids[id];
  return i->op == OpUndef || (i->op >= OpConstantTrue && i->op <= OpSpecConstantOp) ? i->value : NULL;
}

static uint64_t low_bits(uint64_t value, uint32_t width) {
  return width >= 64 ? value : value & ((UINT64_C(1) << width) - 1);
}

static int64_t signed_of(uint64_t value, uint32_t width) {
  return width >= 64 ? (int64_t)value : (int64_t)(value << (64 - width)) >> (64 - width);
}

static spirv_value *value_new(spirv_module *m, uint32_t at, const spirv_type *type) {
  if (type->components > MAX_COMPONENTS) REFUSE(m, at, "a constant of too many components");
  if (type->kind == TYPE_VOID || type->kind >= TYPE_FUNCTION) REFUSE(m, at, "a constant of a type without values");
  spirv_value *value = SPIRV_NEW(m->arena, spirv_value);
  value->type = type;
  value->bits = SPIRV_ARRAY(m->arena, uint64_t, type->components);
  return value;
}

/* Gives the value that the user has set for this SpecId; false if there is none. */
static bool specialised(spirv_module *m, uint32_t at, const spirv_id *id, const spirv_type *type, uint64_t *bits) {
  if (!id->has_spec_id) return false;
  bool found = false;
  for (uint32_t i = 0; i < m->build->constant_count + m->binary->constant_count; i++) { /* the module's win */
    bool own = i >= m->build->constant_count;
    const spirv_constant *c = own ? &m->binary->constants[i - m->build->constant_count] : &m->build->constants[i];
    if (c->id != id->spec_id) continue;
    if (c->size != 0 && c->size != type->size)
      REFUSE(m, at, "specialization constant %u has %llu bytes, not %zu", c->id, (unsigned long long)type->size,
             c->size);
    *bits = 0;
    memcpy(bits, c->value, type->size);
    if (!own) m->spec_used[i] = true;
    found = true;
  }
  return found;
}

/* Returns false if a part is not known before the kernel runs. */
static bool composite(spirv_module *m, uint32_t at, spirv_value *value) {
  const uint32_t *w = m->words + at;
  uint32_t given = spirv_length(m, at) - 3;
  if (given != value->type->count || spirv_is_scalar(value->type)) REFUSE(m, at, "the composite has other members");
  uint64_t next = 0;
  for (uint32_t i = 0; i < given; i++) {
    const spirv_id *id = &m->ids[w[3 + i]];
    const spirv_value *part = spirv_constant_of(m, w[3 + i]);
    const spirv_type *member = spirv_member(value->type, i);
    if (part != NULL && part->type == member) {
      memcpy(value->bits + next, part->bits, part->type->components * sizeof(uint64_t));
    } else if (part == NULL && id->op == OpVariable && id->variable != NULL && id->variable->address != 0 &&
               member->kind == TYPE_POINTER) {
      value->bits[next] = id->variable->address;
    } else if (part != NULL || id->type == 0 || id->at >= at || spirv_type_of(m, at, id->type) != member) {
      REFUSE(m, at, "member %u is no constant of its type", i);
    } else {
      return false;
    }
    next += member->components;
  }
  return true;
}

/* Computes one scalar of a SpecConstantOp. Returns false if the operation is not supported for constants. */
static bool fold(uint32_t op, uint32_t width, uint32_t from, uint64_t a, uint64_t b, uint64_t *result) {
  int64_t sa = signed_of(a, from), sb = signed_of(b, from);
  uint64_t shift = b < width ? b : 0;
  switch (op) {
    case OpIAdd: *result = a + b; break;
    case OpISub: *result = a - b; break;
    case OpIMul: *result = a * b; break;
    case OpUDiv: *result = b == 0 ? 0 : a / b; break;
    case OpUMod: *result = b == 0 ? 0 : a % b; break;
    case OpSDiv: *result = sb == 0 ? 0 : sb == -1 ? 0 - a : (uint64_t)(sa / sb); break;
    case OpSRem: *result = sb == 0 || sb == -1 ? 0 : (uint64_t)(sa % sb); break;
    case OpSMod: {
      int64_t r = sb == 0 || sb == -1 ? 0 : sa % sb;
      *result = (uint64_t)(r != 0 && (r < 0) != (sb < 0) ? r + sb : r);
      break;
    }
    case OpSNegate: *result = 0 - a; break;
    case OpNot: *result = ~a; break;
    case OpLogicalNot: *result = a == 0; break;
    case OpBitwiseAnd:
    case OpLogicalAnd: *result = a & b; break;
    case OpBitwiseOr:
    case OpLogicalOr: *result = a | b; break;
    case OpBitwiseXor:
    case OpLogicalNotEqual: *result = a ^ b; break;
    case OpINotEqual: *result = a != b; break;
    case OpIEqual:
    case OpLogicalEqual: *result = a == b; break;
    case OpShiftLeftLogical: *result = a << shift; break;
    case OpShiftRightLogical: *result = a >> shift; break;
    case OpShiftRightArithmetic: *result = (uint64_t)(sa >> shift); break;
    case OpULessThan: *result = a < b; break;
    case OpUGreaterThan: *result = a > b; break;
    case OpULessThanEqual: *result = a <= b; break;
    case OpUGreaterThanEqual: *result = a >= b; break;
    case OpSLessThan: *result = sa < sb; break;
    case OpSGreaterThan: *result = sa > sb; break;
    case OpSLessThanEqual: *result = sa <= sb; break;
    case OpSGreaterThanEqual: *result = sa >= sb; break;
    case OpUConvert:
    case OpBitcast:
    case OpConvertPtrToU:
    case OpConvertUToPtr:
    case OpPtrCastToGeneric:
    case OpGenericCastToPtr: *result = a; break;
    case OpSConvert: *result = (uint64_t)sa; break;
    default: return false;
  }
  *result = low_bits(*result, width);
  return true;
}

/* Returns the bits of a constant or of the address of a variable; NULL: they are not known before the kernel runs. */
static const uint64_t *operand(spirv_module *m, uint32_t at, uint32_t id, const spirv_type **type) {
  const spirv_value *value = spirv_constant_of(m, id);
  *type = spirv_type_of_value(m, at, id);
  if (value != NULL) return value->bits;
  if (m->ids[id].op == OpVariable && m->ids[id].variable != NULL && m->ids[id].variable->address != 0)
    return &m->ids[id].variable->address;
  return NULL;
}

static uint64_t chain(spirv_module *m, uint32_t at, uint64_t base, const spirv_type *pointer, uint32_t word,
                      bool first) {
  const spirv_type *type = pointer->kind == TYPE_POINTER ? pointer->element : NULL;
  for (uint32_t end = at + spirv_length(m, at); word < end; word++) {
    const spirv_value *index = spirv_constant_of(m, m->words[word]);
    if (type == NULL || index == NULL || index->type->kind != TYPE_INT) REFUSE(m, at, "an index is no constant");
    int64_t i = signed_of(index->bits[0], index->type->width);
    if (first) {
      base += (uint64_t)i * type->size;
      first = false;
      continue;
    }
    const spirv_type *member = spirv_member(type, (uint64_t)i);
    if (member == NULL) REFUSE(m, at, "there is no member %lld", (long long)i);
    base += type->kind == TYPE_STRUCT ? type->offsets[i] : (uint64_t)i * type->element->size;
    type = member;
  }
  return base;
}

/* Returns NULL if an operand is not known yet, such as the address of a Workgroup variable: the kernel computes it. */
static spirv_value *constant_op(spirv_module *m, uint32_t at, const spirv_type *type) {
  const uint32_t *w = m->words + at, count = spirv_length(m, at) - 4;
  const uint64_t *bits[3] = {NULL, NULL, NULL};
  const spirv_type *types[3] = {NULL, NULL, NULL};
  uint32_t op = w[3], ids = op == OpCompositeExtract ? 1 : count;
  bool chained = op == OpAccessChain || op == OpInBoundsAccessChain || op == OpPtrAccessChain ||
                 op == OpInBoundsPtrAccessChain;
  if (count == 0) REFUSE(m, at, "OpSpecConstantOp has no operands");
  uint64_t unused;
  if (!chained && op != OpCompositeExtract && op != OpSelect && !fold(op, 64, 64, 0, 0, &unused)) return NULL;
  for (uint32_t i = 0; i < ids; i++) {
    if (w[4 + i] == 0 || w[4 + i] >= m->bound || m->ids[w[4 + i]].type == 0 || m->ids[w[4 + i]].at >= at)
      REFUSE(m, at, "operand %u is no constant declared before", i);
    if (i >= 3 || (chained && i != 0)) continue;
    bits[i] = operand(m, at, w[4 + i], &types[i]);
    if (bits[i] == NULL) return NULL;
  }
  spirv_value *value = value_new(m, at, type);
  if (chained) {
    if (type->kind != TYPE_POINTER) REFUSE(m, at, "the result is no pointer");
    value->bits[0] = chain(m, at, bits[0][0], types[0], at + 5,
                           op == OpPtrAccessChain || op == OpInBoundsPtrAccessChain);
    return value;
  }
  if (op == OpCompositeExtract) {
    uint64_t first = 0;
    const spirv_type *part = types[0];
    for (uint32_t i = 1; i < count; i++) {
      if (spirv_member(part, w[4 + i]) == NULL) REFUSE(m, at, "there is no member %u", w[4 + i]);
      spirv_spend(m, at, part->kind == TYPE_STRUCT ? w[4 + i] : 1);
      first += spirv_first_component(part, w[4 + i]);
      part = spirv_member(part, w[4 + i]);
    }
    if (part != type) REFUSE(m, at, "the member has another type");
    memcpy(value->bits, bits[0] + first, type->components * sizeof(uint64_t));
    return value;
  }
  if (type->kind > TYPE_VECTOR || types[0]->kind > TYPE_VECTOR) return NULL; /* OpSelect of structures */
  if (count > 3) REFUSE(m, at, "OpSpecConstantOp with operation %u has %u operands", op, count);
  for (uint64_t i = 0; i < type->components; i++) {
    const spirv_type *to = spirv_leaf(type, i, &unused), *from = spirv_leaf(types[0], 0, &unused);
    for (uint32_t k = 0; k < count; k++)
      if (types[k]->components != type->components) REFUSE(m, at, "operand %u has another number of components", k);
    if (op == OpSelect && count == 3) {
      value->bits[i] = bits[0][i] != 0 ? bits[1][i] : bits[2][i];
    } else if (count > 2 || to->kind == TYPE_FLOAT || (from->kind == TYPE_FLOAT && op != OpBitcast) ||
               !fold(op, to->kind == TYPE_BOOL ? 1 : to->width, from->kind == TYPE_BOOL ? 1 : from->width, bits[0][i],
                     count == 2 ? bits[1][i] : 0, &value->bits[i])) {
      return NULL; /* of floats */
    }
  }
  return value;
}

void spirv_constant_decode(spirv_module *m, uint32_t at) {
  const uint32_t *w = m->words + at;
  uint32_t op = spirv_op(m, at);
  const spirv_type *type = spirv_type_of(m, at, w[1]);
  spirv_id *id = &m->ids[w[2]];
  if (m->build->describe && type->components > MAX_DESCRIBED) return;
  if (op == OpSpecConstantOp) {
    id->value = constant_op(m, at, type);
    return;
  }
  spirv_value *value = value_new(m, at, type);
  switch (op) {
    case OpConstantTrue:
    case OpSpecConstantTrue:
    case OpConstantFalse:
    case OpSpecConstantFalse:
      if (type->kind != TYPE_BOOL) REFUSE(m, at, "a bool of type %u", w[1]);
      value->bits[0] = op == OpConstantTrue || op == OpSpecConstantTrue;
      if (op >= OpSpecConstantTrue && specialised(m, at, id, type, &value->bits[0]))
        value->bits[0] = value->bits[0] != 0;
      break;
    case OpConstant:
    case OpSpecConstant:
      if (type->kind != TYPE_INT && type->kind != TYPE_FLOAT && (type->kind != TYPE_RAW || type->width == 64))
        REFUSE(m, at, "a constant of type %u, which is no number", w[1]);
      if (spirv_length(m, at) != (type->width == 64 ? 5 : 4))
        REFUSE(m, at, "a constant of type %u in %u words", w[1], spirv_length(m, at) - 3);
      value->bits[0] = type->width == 64 ? w[3] | (uint64_t)w[4] << 32 : low_bits(w[3], type->width);
      if (op == OpSpecConstant) specialised(m, at, id, type, &value->bits[0]);
      break;
    case OpConstantComposite:
    case OpSpecConstantComposite:
      if (!composite(m, at, value)) value = NULL;
      break;
    case OpConstantNull:
    case OpUndef: break; /* stays zero */
    case OpConstantSampler:
      if (w[3] > SPIRV_SAMPLER_LAST || w[4] > 1 || w[5] > 1) REFUSE(m, at, "there is no such sampler");
      value->bits[0] = SPIRV_SAMPLER_CONSTANT | w[3] | (w[4] != 0 ? SPIRV_SAMPLER_NORMALIZED : 0) |
                       (w[5] != 0 ? SPIRV_SAMPLER_LINEAR : 0);
      break;
    default: value = NULL;
  }
  id->value = value;
}

void spirv_write_constant(const spirv_value *value, char *memory) {
  for (uint64_t i = 0; i < value->type->components; i++) {
    uint64_t offset;
    spirv_lane lane = spirv_type_lane(spirv_leaf(value->type, i, &offset));
    memcpy(memory + offset, &value->bits[i], spirv_memory_size[lane]);
  }
}

/* Reserves memory for a variable. A module that is only described needs none, but an address that is not zero. */
static void place(spirv_module *m, spirv_variable *variable, uint64_t align) {
  if (m->build->describe) variable->address = align;
  else
    variable->address = ((uint64_t)(uintptr_t)spirv_alloc(m->arena, variable->type->size + align, 1) + align - 1) &
                        ~(align - 1);
}

static void initialize(spirv_module *m, uint32_t at, spirv_variable *variable, uint32_t constant) {
  const spirv_type *type;
  const uint64_t *bits = operand(m, at, constant, &type);
  if (type != variable->type || m->ids[constant].at >= at)
    REFUSE(m, at, "the initializer is no constant of the variable's type");
  if (bits == NULL) variable->unsupported = true;
  if (bits == NULL || m->build->describe) return;
  spirv_spend(m, at, type->components * (type->kind == TYPE_STRUCT ? type->count : 1));
  const spirv_value value = {.type = type, .bits = (uint64_t *)bits};
  spirv_write_constant(&value, (char *)(uintptr_t)variable->address);
}

void spirv_variable_decode(spirv_module *m, uint32_t at) {
  const uint32_t *w = m->words + at;
  const spirv_type *pointer = spirv_type_of(m, at, w[1]);
  spirv_id *id = &m->ids[w[2]];
  if (pointer->kind != TYPE_POINTER || pointer->storage != w[3] || pointer->element == NULL)
    REFUSE(m, at, "the variable's type is no pointer of its storage class");
  spirv_variable *variable = SPIRV_NEW(m->arena, spirv_variable);
  *variable = (spirv_variable){.type = pointer->element, .id = w[2], .storage = w[3], .builtin = id->builtin - 1};
  variable->imported = id->linkage == LinkageImport + 1 && id->linkage_name != NULL;
  const spirv_type *type = variable->type;
  if (type->components == 0 && type->kind != TYPE_STRUCT) REFUSE(m, at, "the variable's type has no values");
  if (variable->builtin >= 0) {
    /* The kernel makes it (lower_memory.c), whatever its storage class. */
  } else if (w[3] == StorageUniformConstant || w[3] == StorageCrossWorkgroup) {
    uint64_t align = id->alignment > type->align ? id->alignment : type->align;
    if (align == 0 || align > MAX_ALIGNMENT || (align & (align - 1)) != 0) REFUSE(m, at, "alignment %u", id->alignment);
    if (!variable->imported) place(m, variable, align);
    if (spirv_length(m, at) == 5 && !variable->imported) initialize(m, at, variable, w[4]);
  } else if (w[3] == StorageInput) {
    REFUSE(m, at, "an input variable without BuiltIn");
  } else if (w[3] == StorageFunction) {
    REFUSE(m, at, "a module-scope variable of storage class %u", w[3]);
  } else if (w[3] != StorageWorkgroup) {
    variable->unsupported = true;
  }
  id->variable = variable;
}
