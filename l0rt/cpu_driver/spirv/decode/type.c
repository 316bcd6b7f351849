/* SPDX-License-Identifier: Apache-2.0 */
/* type.c: types, their sizes and layout in memory. */
#include "spirv/decode/module.h"

const uint8_t spirv_lane_size[LANE_KINDS] = {4, 1, 2, 4, 8, 4, 4, 8};
const uint8_t spirv_memory_size[LANE_KINDS] = {1, 1, 2, 4, 8, 2, 4, 8};

enum { MAX_NESTING = 64 };
static const uint64_t MAX_SIZE = UINT64_C(1) << 40;

const spirv_type *spirv_type_of(const spirv_module *m, uint32_t at, uint32_t id) {
  const spirv_id *i = &m->ids[id];
  if (!spirv_is_type(i->op) || i->made_type == NULL) REFUSE(m, at, "id %u is no type that was declared before", id);
  return i->made_type;
}

const spirv_type *spirv_type_of_value(const spirv_module *m, uint32_t at, uint32_t id) {
  if (m->ids[id].type == 0) REFUSE(m, at, "id %u is not a value", id);
  return spirv_type_of(m, at, m->ids[id].type);
}

bool spirv_is_scalar(const spirv_type *type) { return type->kind >= TYPE_BOOL && type->kind <= TYPE_RAW; }

spirv_lane spirv_type_lane(const spirv_type *type) {
  if (type->kind == TYPE_BOOL) return LANE_BOOL;
  if (type->kind == TYPE_FLOAT) return type->width == 16 ? LANE_F16 : type->width == 32 ? LANE_F32 : LANE_F64;
  if (type->kind != TYPE_INT && type->kind != TYPE_RAW) return LANE_I64;
  return type->width == 8 ? LANE_I8 : type->width == 16 ? LANE_I16 : type->width == 32 ? LANE_I32 : LANE_I64;
}

const spirv_type *spirv_member(const spirv_type *type, uint64_t member) {
  if (member >= type->count) return NULL;
  if (type->kind == TYPE_STRUCT) return type->members[member];
  return type->kind == TYPE_VECTOR || type->kind == TYPE_ARRAY ? type->element : NULL;
}

uint64_t spirv_first_component(const spirv_type *type, uint64_t member) {
  if (type->kind != TYPE_STRUCT) return member * type->element->components;
  uint64_t first = 0;
  for (uint64_t i = 0; i < member; i++) first += type->members[i]->components;
  return first;
}

const spirv_type *spirv_leaf(const spirv_type *type, uint64_t index, uint64_t *offset) {
  *offset = 0;
  while (!spirv_is_scalar(type)) {
    if (type->kind == TYPE_STRUCT) {
      uint64_t member = 0;
      while (index >= type->members[member]->components) index -= type->members[member++]->components;
      *offset += type->offsets[member];
      type = type->members[member];
    } else {
      *offset += index / type->element->components * type->element->size;
      index %= type->element->components;
      type = type->element;
    }
  }
  return type;
}

static uint64_t up(uint64_t size, uint64_t align) { return (size + align - 1) / align * align; }

static void layout_struct(spirv_module *m, uint32_t at, spirv_type *type) {
  bool packed = m->ids[type->id].packed;
  type->align = 1;
  for (uint64_t i = 0; i < type->count; i++) {
    const spirv_type *member = type->members[i];
    uint64_t align = packed ? 1 : member->align;
    type->offsets[i] = up(type->size, align);
    type->size = type->offsets[i] + member->size;
    type->components += member->components;
    if (align > type->align) type->align = align;
    if (member->nesting >= type->nesting) type->nesting = member->nesting + 1;
    if (type->size > MAX_SIZE) REFUSE(m, at, "a structure is too large");
  }
  type->size = up(type->size, type->align);
}

static bool storable(const spirv_type *type) { return type->kind >= TYPE_BOOL && type->kind <= TYPE_STRUCT; }

static void scalar(spirv_type *type, spirv_type_kind kind, uint32_t width) {
  type->kind = kind;
  type->width = width;
  type->components = 1;
  type->size = type->align = kind == TYPE_BOOL ? 1 : width / 8;
}

static void pointer(spirv_module *m, uint32_t at, spirv_type *type, uint32_t storage) {
  enum { LAST = 12, DEVICE_ONLY = 5936, HOST_ONLY = 5937 };
  if (storage > LAST && storage != DEVICE_ONLY && storage != HOST_ONLY)
    REFUSE(m, at, "there is no storage class %u", storage);
  scalar(type, TYPE_POINTER, 64);
  type->storage = storage;
}

static void members(spirv_module *m, uint32_t at, spirv_type *type, uint32_t word, bool stored) {
  uint32_t end = at + spirv_length(m, at);
  type->count = end - word;
  type->members = SPIRV_ARRAY(m->arena, const spirv_type *, type->count);
  for (uint32_t i = 0; word < end; word++, i++) {
    type->members[i] = spirv_type_of(m, at, m->words[word]);
    if (stored && !storable(type->members[i])) REFUSE(m, at, "member %u has no size", i);
  }
}

static void elements(spirv_module *m, uint32_t at, spirv_type *type, uint64_t count) {
  type->element = spirv_type_of(m, at, m->words[at + 2]);
  if (!storable(type->element)) REFUSE(m, at, "the element type has no size");
  if (count == 0 || count > MAX_SIZE || (type->element->size != 0 && count > MAX_SIZE / type->element->size))
    REFUSE(m, at, "an array of %llu elements", (unsigned long long)count);
  if (type->element->components != 0 && count > MAX_SIZE / type->element->components)
    REFUSE(m, at, "an array of %llu elements", (unsigned long long)count);
  type->count = count;
  type->components = count * type->element->components;
  type->nesting = type->element->nesting + 1;
}

/* Some producers declare a pointer type twice, and use one for the other. Returns the first; NULL: there is none. */
static spirv_type *same_pointer(const spirv_module *m, const uint32_t *w) {
  spirv_type *type = m->ids[w[3]].made_type->pointers;
  while (type != NULL && type->storage != w[2]) type = type->next_pointer;
  return type;
}

// Long: a case for each kind of type.
void spirv_type_decode(spirv_module *m, uint32_t at) {
  const uint32_t *w = m->words + at;
  uint32_t op = spirv_op(m, at), id = w[1];
  if (op == OpTypeForwardPointer) {
    if (m->ids[id].op != OpTypePointer) REFUSE(m, at, "id %u is no pointer type", id);
    if (m->ids[id].made_type != NULL) return;
    m->ids[id].made_type = SPIRV_NEW(m->arena, spirv_type);
    m->ids[id].made_type->id = id;
    pointer(m, at, m->ids[id].made_type, w[2]);
    return;
  }
  spirv_type *type = op == OpTypePointer ? m->ids[id].made_type : NULL; /* of a forward declaration */
  if (op == OpTypePointer) spirv_type_of(m, at, w[3]);
  if (op == OpTypePointer && type == NULL && (type = same_pointer(m, w)) != NULL) {
    m->ids[id].made_type = type;
    return;
  }
  if (type == NULL) type = SPIRV_NEW(m->arena, spirv_type);
  type->id = id;
  switch (op) {
    case OpTypeVoid: type->kind = TYPE_VOID; break;
    case OpTypeBool: scalar(type, TYPE_BOOL, 1); break;
    case OpTypeInt:
      if (w[2] != 8 && w[2] != 16 && w[2] != 32 && w[2] != 64) REFUSE(m, at, "a number of %u bits", w[2]);
      scalar(type, TYPE_INT, w[2]);
      break;
    case OpTypeFloat: {
      bool encoded = spirv_length(m, at) > 3; /* as another format than IEEE 754's */
      if (w[2] != 16 && w[2] != 32 && w[2] != 64 && !(encoded && w[2] == 8)) REFUSE(m, at, "a number of %u bits", w[2]);
      scalar(type, encoded ? TYPE_RAW : TYPE_FLOAT, w[2]);
      break;
    }
    case OpTypeVector:
      type->kind = TYPE_VECTOR;
      elements(m, at, type, w[3]);
      /* Of one component the specification has none, and ocloc makes some. */
      if (!spirv_is_scalar(type->element) || w[3] < 1 || w[3] > 16) REFUSE(m, at, "a vector of %u components", w[3]);
      type->size = type->align = type->element->size * (w[3] == 3 ? 4 : w[3]);
      if ((type->align & (type->align - 1)) != 0) REFUSE(m, at, "a vector of %u components", w[3]);
      break;
    case OpTypeArray: {
      const spirv_value *count = spirv_constant_of(m, w[3]);
      if (count == NULL || count->type->kind != TYPE_INT) REFUSE(m, at, "the array's length is no integer constant");
      type->kind = TYPE_ARRAY;
      elements(m, at, type, count->bits[0]);
      type->size = type->count * type->element->size;
      type->align = type->element->align;
      break;
    }
    case OpTypeStruct:
      type->kind = TYPE_STRUCT;
      members(m, at, type, at + 2, true);
      type->offsets = SPIRV_ARRAY(m->arena, uint64_t, type->count);
      layout_struct(m, at, type);
      break;
    case OpTypeOpaque: type->kind = TYPE_OPAQUE; break;
    case OpTypeEvent: scalar(type, TYPE_EVENT, 64); break;
    case OpTypePointer:
      pointer(m, at, type, w[2]);
      type->element = spirv_type_of(m, at, w[3]);
      type->next_pointer = m->ids[w[3]].made_type->pointers;
      m->ids[w[3]].made_type->pointers = type;
      break;
    case OpTypeFunction:
      type->kind = TYPE_FUNCTION;
      type->element = spirv_type_of(m, at, w[2]);
      members(m, at, type, at + 3, false);
      break;
    default: scalar(type, TYPE_RAW, 64); /* a handle of an image, a sampler, a pipe, a queue … */
  }
  if (type->nesting > MAX_NESTING) REFUSE(m, at, "types are nested too deeply");
  m->ids[id].made_type = type;
}
