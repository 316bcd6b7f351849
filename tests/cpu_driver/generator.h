/* SPDX-License-Identifier: Apache-2.0 */
/* generator.h: random kernels, put together from instructions that have one right answer.
 *
 *   kernel void f(global uint *x, global uint *y, global uchar *out, global uint *counters, uint n, ulong s, float r)
 *
 * x and y have WORDS words, which are only read. A work-item writes only its own SLOT bytes of `out`, and the counters by
 * atomics whose order does not matter. A NaN loses its sign and payload before anything can see them, as both depend on
 * the order of operands in the machine's instruction. */
#ifndef L0RT_CPU_TEST_GENERATOR_H
#define L0RT_CPU_TEST_GENERATOR_H

#include <math.h>

#include "kernels.h"

enum { WORDS = 1024, SLOT = 256, COUNTERS = 8, LOCAL_WORDS = 1000, TABLE = 16, MANY = 600 };

typedef enum { BITS8, BITS16, BITS32, BITS64, HALF, FLOAT, DOUBLE, BOOL } kind;
static const uint32_t kind_bits[] = {8, 16, 32, 64, 16, 32, 64, 1};

typedef struct {
  kind kind;
  uint32_t n;
} shape;
typedef struct {
  uint32_t id;
  shape shape;
} value;
typedef struct {
  uint32_t *words, count, capacity;
} code;

typedef struct {
  uint32_t id;
  shape result, parameters[4];
  uint32_t count;
} helper;

typedef struct {
  code head, links, types, imports, body, variables; /* variables: of the function that is made */
  uint32_t bound, label, set;
  uint64_t state;
  value pool[MANY]; /* what can be used here */
  uint32_t pool_count;
  struct {
    uint32_t id, length; /* length: of an array; 0: no array */
    shape shape;
  } privates[8];
  uint32_t private_count;
  uint32_t round; /* of the innermost loop: the number of its round; 0: there is no loop */
  helper helpers[3];
  uint32_t helper_count;
  struct {
    uint32_t id, function;
    shape shape;
  } imported[24]; /* functions of LLVM's */
  uint32_t imported_count;
  bool kernel, uniform, over; /* a kernel; at a place to which all work-items of a group come; some may have ended */
  uint32_t depth, loops, together; /* of what is around; loops with rounds that all work-items begin */
  uint32_t x, y, counters, slot, item, size, subgroup, local, table;
  struct {
    uint32_t id, storage, type;
  } inputs[6];
  shape returns;
} generator;

static inline uint32_t draw(generator *g, uint32_t below) {
  g->state = g->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(g->state >> 33) % below;
}

/* ---- Words ------------------------------------------------------------------------------------------------------- */

static inline void put(code *c, uint32_t op, uint32_t count, const uint32_t *operands) {
  while (c->count + count + 1 > c->capacity) {
    c->capacity = c->capacity == 0 ? 1024 : 2 * c->capacity;
    c->words = realloc(c->words, 4 * (size_t)c->capacity);
    CHECK(c->words != NULL);
  }
  c->words[c->count] = (count + 1) << 16 | op;
  if (count != 0) memcpy(c->words + c->count + 1, operands, 4 * (size_t)count);
  c->count += count + 1;
}
#define LIST(...)                                                                                                      \
  sizeof((uint32_t[]){__VA_ARGS__}) / 4, (uint32_t[]) { __VA_ARGS__ }
#define EMIT(op, ...) put(&g->body, op, LIST(__VA_ARGS__))

/* An instruction with a result, in the function. */
#define MAKE(op, type, ...) made(g, op, type, LIST(__VA_ARGS__))
static inline uint32_t made(generator *g, uint32_t op, uint32_t type, uint32_t count, const uint32_t *operands) {
  uint32_t words[40] = {type, g->bound};
  CHECK(count <= 38);
  memcpy(words + 2, operands, 4 * (size_t)count);
  put(&g->body, op, count + 2, words);
  return g->bound++;
}

/* A type or a constant: each is made once. Its result is the operand with this number. */
static inline uint32_t declared(generator *g, uint32_t op, uint32_t result, uint32_t count, const uint32_t *operands) {
  uint32_t words[40];
  CHECK(count < 39);
  for (uint32_t i = 0; i < count; i++) words[i < result ? i : i + 1] = operands[i];
  for (uint32_t at = 0; at < g->types.count; at += g->types.words[at] >> 16) {
    if (g->types.words[at] != ((count + 2) << 16 | op)) continue;
    words[result] = g->types.words[at + 1 + result];
    if (memcmp(words, g->types.words + at + 1, 4 * (size_t)(count + 1)) == 0) return words[result];
  }
  words[result] = g->bound++;
  put(&g->types, op, count + 1, words);
  return words[result];
}
#define TYPE(op, ...) declared(g, op, 0, LIST(__VA_ARGS__))
#define CONSTANT(op, ...) declared(g, op, 1, LIST(__VA_ARGS__))

static inline uint32_t type_of(generator *g, shape s) {
  uint32_t one = s.kind == BOOL   ? declared(g, 20, 0, 0, NULL)
                 : s.kind >= HALF ? TYPE(22, kind_bits[s.kind])
                                  : TYPE(21, kind_bits[s.kind], 0);
  return s.n == 1 ? one : TYPE(23, one, s.n);
}

static inline uint32_t number(generator *g, kind k, uint64_t bits) {
  uint32_t type = type_of(g, (shape){k, 1});
  if (k == BOOL) return declared(g, bits & 1 ? 41 : 42, 1, 1, &type);
  if (kind_bits[k] == 64) return CONSTANT(43, type, (uint32_t)bits, (uint32_t)(bits >> 32));
  return CONSTANT(43, type, (uint32_t)(kind_bits[k] == 32 ? bits : bits & ((1u << kind_bits[k]) - 1)));
}

/* Some producers declare a type of pointers more than once. */
static inline uint32_t pointer_to(generator *g, uint32_t storage, uint32_t type) {
  if (draw(g, 8) != 0) return TYPE(32, storage, type);
  put(&g->types, 32, LIST(g->bound, storage, type));
  return g->bound++;
}

enum { PRIVATE = 7, GLOBAL = 5, LOCAL = 4, GENERIC = 8, CONSTANT_MEMORY = 0, INPUT = 1 };
static const shape U32 = {BITS32, 1}, U64 = {BITS64, 1}, TRUTH = {BOOL, 1};

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static inline uint32_t keep(generator *g, uint32_t id, shape s) {
  if (g->pool_count == MANY && g->depth != 0) return id; /* what is there is there behind the branch too */
  g->pool[g->pool_count < MANY ? g->pool_count++ : draw(g, MANY)] = (value){id, s};
  return id;
}

static inline shape any_shape(generator *g) {
  static const uint8_t kinds[] = {BITS8, BITS16, BITS32, BITS32, BITS32, BITS64, HALF, FLOAT, FLOAT, DOUBLE, BOOL};
  static const uint8_t counts[] = {1, 1, 1, 1, 1, 1, 2, 2, 3, 4, 4, 8, 16};
  return (shape){(kind)kinds[draw(g, sizeof(kinds))], counts[draw(g, sizeof(counts))]};
}

static inline uint64_t any_bits(generator *g, kind k) {
  static const uint16_t halves[] = {0, 0x8000, 0x3c00, 0xbe00, 0x7c00, 0xfc00, 0x7e00, 1, 0x7bff, 0x3555};
  static const float floats[] = {0, -0.0f, 1, -1.5f, 0.1f, 1e30f, 1e-40f, 3e9f, 65504, -7};
  uint64_t random = (uint64_t)draw(g, 1u << 31) << 33 ^ (uint64_t)draw(g, 1u << 31) << 12 ^ draw(g, 4096);
  if (k == HALF) return draw(g, 3) == 0 ? random & 0x7bff : halves[draw(g, 10)];
  if (k == FLOAT || k == DOUBLE) {
    float f = floats[draw(g, 10)];
    double d = draw(g, 8) == 0 ? (double)INFINITY : draw(g, 3) == 0 ? (double)(int32_t)random / 1024 : (double)f;
    uint64_t bits = 0;
    f = (float)d;
    if (k == FLOAT) memcpy(&bits, &f, 4);
    else memcpy(&bits, &d, 8);
    return bits;
  }
  switch (draw(g, 5)) {
    case 0: return random;
    case 1: return UINT64_C(1) << (kind_bits[k] - 1);
    case 2: return UINT64_MAX - draw(g, 3);
    default: return draw(g, 20);
  }
}

static inline uint32_t any_constant(generator *g, shape s) {
  if (s.n == 1) return number(g, s.kind, any_bits(g, s.kind));
  uint32_t words[17] = {type_of(g, s)};
  for (uint32_t i = 0; i < s.n; i++) words[1 + i] = number(g, s.kind, any_bits(g, s.kind));
  return declared(g, 44, 1, s.n + 1, words);
}

/* A value of this shape: one that is there, a constant, or a vector of scalars. */
static inline uint32_t pick(generator *g, shape s) {
  for (int i = 0; i < 40; i++) {
    const value *v = &g->pool[draw(g, g->pool_count)];
    if (v->shape.kind == s.kind && v->shape.n == s.n) return v->id;
  }
  if (s.n == 1 || draw(g, 3) == 0) return any_constant(g, s);
  uint32_t parts[16];
  for (uint32_t i = 0; i < s.n; i++) parts[i] = pick(g, (shape){s.kind, 1});
  return keep(g, made(g, 80, type_of(g, s), s.n, parts), s);
}

/* The same value, but each NaN is the same NaN. */
static inline uint32_t cleaned(generator *g, uint32_t id, shape s) {
  if (s.kind < HALF || s.kind == BOOL) return id;
  uint32_t words[17] = {type_of(g, s)}, is_nan = MAKE(156, type_of(g, (shape){BOOL, s.n}), id);
  uint64_t nan = s.kind == HALF ? 0x7e00 : s.kind == FLOAT ? 0x7fc00000 : UINT64_C(0x7ff8) << 48;
  for (uint32_t i = 0; i < s.n; i++) words[1 + i] = number(g, s.kind, nan);
  uint32_t clean = s.n == 1 ? words[1] : declared(g, 44, 1, s.n + 1, words);
  return MAKE(169, words[0], is_nan, clean, id);
}

static inline uint32_t masked(generator *g, kind k, uint64_t mask) {
  return MAKE(199, type_of(g, (shape){k, 1}), pick(g, (shape){k, 1}), number(g, k, mask));
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static inline void integer_operation(generator *g, shape s) {
  static const uint8_t two[] = {128, 130, 132, 134, 135, 137, 138, 139, 194, 195, 196, 197, 198, 199},
                       one[] = {126, 200, 204, 205};
  static const uint8_t cl_two[] = {142, 143, 144, 145, 146, 147, 148, 156, 157, 158, 159, 160, 161, 162, 163, 202, 203},
                       cl_one[] = {141, 151, 152, 166, 201}, cl_three[] = {149, 150, 153, 154, 155, 186, 204};
  uint32_t type = type_of(g, s), a = pick(g, s), b = pick(g, s), id;
  switch (draw(g, 12)) {
    case 0: id = MAKE(one[draw(g, sizeof(one))], type, a); break;
    case 1: id = MAKE(12, type, g->set, cl_one[draw(g, sizeof(cl_one))], a); break;
    case 2:
    case 3: id = MAKE(12, type, g->set, cl_two[draw(g, sizeof(cl_two))], a, b); break;
    case 4: id = MAKE(12, type, g->set, cl_three[draw(g, sizeof(cl_three))], a, b, pick(g, s)); break;
    case 5: { /* bits of a field that is inside the number */
      uint32_t half = kind_bits[s.kind] / 2, from = masked(g, BITS32, half - 1), count = masked(g, BITS32, half - 1);
      if (draw(g, 3) == 0) id = MAKE(201, type, a, b, from, count);
      else id = MAKE(202 + draw(g, 2), type, a, from, count);
      break;
    }
    case 6: { /* sums and products with their high halves */
      uint32_t pair = MAKE(149 + draw(g, 4), TYPE(30, type, type), a, b);
      id = MAKE(81, type, pair, draw(g, 2));
      break;
    }
    default: id = MAKE(two[draw(g, sizeof(two))], type, a, b);
  }
  keep(g, id, s);
}

static inline void real_operation(generator *g, shape s) {
  static const uint8_t two[] = {129, 129, 131, 133, 133, 136, 140, 141}, cl_one[] = {12, 23, 25, 53, 55, 61, 66};
  uint32_t type = type_of(g, s), a = pick(g, s), b = pick(g, s), id;
  switch (draw(g, 8)) {
    case 0: id = MAKE(127, type, a); break;
    case 1: id = MAKE(12, type, g->set, cl_one[draw(g, sizeof(cl_one))], a); break;
    case 2: id = MAKE(12, type, g->set, 13, a, cleaned(g, b, s)); break; /* copysign */
    case 3:
      id = s.kind == HALF ? MAKE(12, type, g->set, 42, a, b, pick(g, s)) : MAKE(12, type, g->set, 26, a, b, pick(g, s));
      break;
    case 4:
      if (s.n == 1) { /* Dot, VectorTimesScalar */
        shape many = {s.kind, 2u << draw(g, 2)};
        id = MAKE(148, type, pick(g, many), pick(g, many));
      } else {
        id = MAKE(142, type, a, pick(g, (shape){s.kind, 1}));
      }
      break;
    default: id = MAKE(two[draw(g, sizeof(two))], type, a, b);
  }
  keep(g, id, s);
}

static inline void bool_operation(generator *g, shape s) {
  uint32_t type = type_of(g, s), id;
  shape of = {(kind)draw(g, 7), s.n};
  if (draw(g, 4) == 0) {
    id = draw(g, 4) == 0 ? MAKE(168, type, pick(g, s)) : MAKE(164 + draw(g, 4), type, pick(g, s), pick(g, s));
  } else if (s.n == 1 && draw(g, 6) == 0) {
    id = MAKE(154 + draw(g, 2), type, pick(g, (shape){BOOL, 4}));
  } else if (of.kind < HALF) {
    id = MAKE(170 + draw(g, 10), type, pick(g, of), pick(g, of));
  } else if (draw(g, 4) == 0) {
    id = MAKE(156 + draw(g, 5), type, cleaned(g, pick(g, of), of));
  } else {
    uint32_t op = draw(g, 4) == 0 ? 161 + draw(g, 3) : 180 + draw(g, 12);
    id = MAKE(op, type, pick(g, of), pick(g, of));
  }
  keep(g, id, s);
}

static inline void conversion(generator *g, shape to) {
  shape from = {(kind)draw(g, 7), to.n};
  bool reads = from.kind >= HALF, makes = to.kind >= HALF;
  uint32_t type = type_of(g, to), op;
  if (to.kind == BOOL) return;
  if (reads && makes) op = 115;
  else if (reads) op = 109 + draw(g, 2);
  else if (makes) op = 111 + draw(g, 2);
  else op = draw(g, 4) == 0 ? 118 + draw(g, 2) : 113 + draw(g, 2);
  if (op >= 113 && op <= 115 && from.kind == to.kind) return;
  keep(g, MAKE(op, type, pick(g, from)), to);
}

static inline void bits_as_another_type(generator *g, shape to) {
  shape from = {(kind)draw(g, 7), to.n};
  if (to.kind == BOOL || to.n == 3) return;
  uint32_t bits = kind_bits[to.kind] * to.n;
  from.n = bits / kind_bits[from.kind];
  bool there = from.n == 1 || from.n == 2 || from.n == 4 || from.n == 8 || from.n == 16;
  if (!there || from.n * kind_bits[from.kind] != bits || (from.kind == to.kind && from.n == to.n)) return;
  keep(g, MAKE(124, type_of(g, to), cleaned(g, pick(g, from), from)), to);
}

static inline void parts_of_vectors(generator *g, shape s) {
  static const uint8_t counts[] = {2, 3, 4, 8, 16};
  shape other = {s.kind, counts[draw(g, 5)]}, one = {s.kind, 1};
  uint32_t type = type_of(g, s);
  if (s.n == 1) {
    uint32_t from = pick(g, other);
    if (draw(g, 2) == 0 || other.n == 3) keep(g, MAKE(81, type, from, draw(g, other.n)), s);
    else keep(g, MAKE(77, type, from, masked(g, BITS32, other.n - 1)), s);
    return;
  }
  switch (draw(g, 3)) {
    case 0: keep(g, MAKE(82, type, pick(g, one), pick(g, s), draw(g, s.n)), s); return;
    case 1:
      if (s.n != 3) keep(g, MAKE(78, type, pick(g, s), pick(g, one), masked(g, BITS32, s.n - 1)), s);
      return;
    default: {
      uint32_t words[18] = {pick(g, other), pick(g, s)};
      for (uint32_t i = 0; i < s.n; i++) words[2 + i] = draw(g, other.n + s.n);
      keep(g, made(g, 79, type, 2 + s.n, words), s);
    }
  }
}

static inline void choice(generator *g, shape s) {
  shape condition = {BOOL, draw(g, 2) == 0 ? 1 : s.n};
  if (condition.n != 1 || s.n == 1) keep(g, MAKE(169, type_of(g, s), pick(g, condition), pick(g, s), pick(g, s)), s);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static inline shape any_memory_shape(generator *g) {
  shape s = any_shape(g);
  if (s.kind == BOOL) s.kind = BITS32;
  if (s.n == 3) s.n = 4;
  return s;
}

static inline uint32_t bytes_of(shape s) { return kind_bits[s.kind] / 8 * s.n; }

static inline void inputs(generator *g) {
  shape s = any_memory_shape(g);
  uint32_t pointer = pointer_to(g, GLOBAL, type_of(g, s)), base = draw(g, 2) == 0 ? g->x : g->y;
  uint32_t index = draw(g, 2) == 0 ? masked(g, BITS64, WORDS * 4 / bytes_of(s) - 1)
                                   : masked(g, BITS32, WORDS * 4 / bytes_of(s) - 1);
  if (s.kind != BITS32 || s.n != 1) base = MAKE(124, pointer, base);
  keep(g, MAKE(61, type_of(g, s), MAKE(67, pointer, base, index), 2, bytes_of(s)), s);
}

/* Writes to the work-item's own bytes, or reads them. */
static inline void own_memory(generator *g, bool writes) {
  shape s = any_memory_shape(g);
  uint32_t type = type_of(g, s), pointer = pointer_to(g, GLOBAL, type), base = MAKE(124, pointer, g->slot);
  uint32_t last = SLOT / bytes_of(s) - 1, size = bytes_of(s);
  uint32_t index = draw(g, 2) == 0 ? masked(g, BITS32, last) : number(g, BITS32, draw(g, last + 1));
  uint32_t at = MAKE(67, pointer, base, index);
  if (writes) EMIT(62, at, cleaned(g, pick(g, s), s), 2, size);
  else keep(g, MAKE(61, type, at, 2, size), s);
}

static inline void add_private(generator *g) {
  if (g->private_count == 8) return;
  shape s = any_memory_shape(g);
  uint32_t length = draw(g, 2) == 0 ? 0 : 8, type = type_of(g, s), id = g->bound++;
  if (length != 0) type = TYPE(28, type, number(g, BITS32, length));
  uint32_t words[4] = {pointer_to(g, PRIVATE, type), id, PRIVATE, declared(g, 46, 1, 1, &type)};
  put(&g->variables, 59, 4, words);
  g->privates[g->private_count].id = id;
  g->privates[g->private_count].length = length;
  g->privates[g->private_count++].shape = s;
}

static inline void private_memory(generator *g, bool writes) {
  if (g->private_count == 0) return;
  uint32_t i = draw(g, g->private_count), id = g->privates[i].id;
  shape s = g->privates[i].shape;
  uint32_t type = type_of(g, s), pointer = pointer_to(g, PRIVATE, type);
  if (g->privates[i].length != 0) {
    uint32_t index = draw(g, 3) == 0 ? number(g, BITS32, draw(g, 8)) : masked(g, BITS32, 7);
    if (g->round != 0 && draw(g, 2) == 0) index = MAKE(199, type_of(g, U32), g->round, number(g, BITS32, 7));
    id = MAKE(65, pointer, id, index);
  }
  if (s.n != 1 && draw(g, 3) == 0) { /* one component */
    shape one = {s.kind, 1};
    type = type_of(g, one);
    id = MAKE(65, pointer_to(g, PRIVATE, type), id, masked(g, BITS32, s.n - 1));
    s = one;
  }
  if (draw(g, 4) == 0) id = MAKE(121, pointer_to(g, GENERIC, type), id);
  if (writes) EMIT(62, id, cleaned(g, pick(g, s), s));
  else keep(g, MAKE(61, type, id), s);
}

/* A generic pointer to this or that memory. */
static inline void generic_memory(generator *g) {
  uint32_t type = type_of(g, U32), generic = pointer_to(g, GENERIC, type);
  uint32_t other = MAKE(67, pointer_to(g, GLOBAL, type), g->x, masked(g, BITS32, WORDS - 1));
  uint32_t own = 0;
  for (uint32_t i = 0; i < g->private_count; i++)
    if (g->privates[i].length == 0 && g->privates[i].shape.kind == BITS32 && g->privates[i].shape.n == 1)
      own = g->privates[i].id;
  if (own == 0) own = MAKE(124, pointer_to(g, GLOBAL, type), g->slot);
  own = MAKE(121, generic, own);
  other = MAKE(121, generic, other);
  keep(g, MAKE(61, type, MAKE(169, generic, pick(g, TRUTH), own, other)), U32);
}

static inline void table_entry(generator *g) {
  uint32_t type = type_of(g, U32);
  uint32_t at = MAKE(65, pointer_to(g, CONSTANT_MEMORY, type), g->table, masked(g, BITS32, TABLE - 1));
  keep(g, MAKE(61, type, at), U32);
}

/* Counter i is changed by operation i only. */
static inline void count_something(generator *g) {
  static const uint8_t ops[] = {234, 235, 236, 237, 238, 239, 240, 241};
  uint32_t i = draw(g, COUNTERS), type = type_of(g, U32), scope = number(g, BITS32, 1), order = number(g, BITS32, 0);
  uint32_t at = MAKE(67, pointer_to(g, GLOBAL, type), g->counters, number(g, BITS32, i));
  MAKE(ops[i], type, at, scope, order, pick(g, U32));
}

/* What all work-items of a group do together: each reads what another has written. */
static inline void meet(generator *g) {
  uint32_t type = type_of(g, U32), wide = type_of(g, U64), pointer = pointer_to(g, LOCAL, type);
  uint32_t scope = number(g, BITS32, 2), order = number(g, BITS32, 0x108);
  if (draw(g, 2) == 0) { /* GroupIAdd, GroupUMin, GroupSMin, GroupUMax, GroupSMax */
    static const uint16_t ops[] = {264, 267, 268, 270, 271};
    shape s = {draw(g, 2) == 0 ? BITS32 : BITS64, 1};
    uint32_t of = number(g, BITS32, 2 + draw(g, 2));
    keep(g, MAKE(ops[draw(g, 5)], type_of(g, s), of, draw(g, 3), pick(g, s)), s);
    return;
  }
  if (draw(g, 3) == 0) { /* a shuffle: any value of any work-item of the sub-group */
    shape s = any_shape(g);
    uint32_t from = MAKE(137, type, pick(g, U32), g->subgroup);
    keep(g, MAKE(345, type_of(g, s), number(g, BITS32, 3), pick(g, s), from), s);
    return;
  }
  uint32_t own = MAKE(65, pointer, g->local, g->item);
  EMIT(62, own, pick(g, U32));
  EMIT(224, scope, scope, order);
  uint32_t other = MAKE(137, wide, MAKE(128, wide, g->item, masked(g, BITS64, 255)), g->size);
  keep(g, MAKE(61, type, MAKE(65, pointer, g->local, other)), U32);
  EMIT(224, scope, scope, order);
}

/* ---- Built-in variables ------------------------------------------------------------------------------------------ */

/* Two of three numbers, two of one, the size, and the number of work-items in the sub-group. */
static const uint32_t inputs_read[] = {28, 26, 34, 29, 25, 36};
static inline bool input_has_three(uint32_t i) { return i < 2 || i == 4; }
static inline shape input_shape(uint32_t i) { return i == 5 ? U32 : U64; }

/* Some producers import them in other storage classes than Input. */
static inline void declare_inputs(generator *g) {
  static const uint8_t storages[] = {INPUT, INPUT, GLOBAL, CONSTANT_MEMORY};
  for (uint32_t i = 0; i < 6; i++) {
    uint32_t type = type_of(g, (shape){input_shape(i).kind, input_has_three(i) ? 3 : 1}),
             storage = storages[draw(g, 4)];
    uint32_t pointer = pointer_to(g, storage, type);
    put(&g->types, 59, LIST(pointer, g->bound, storage));
    g->inputs[i].id = g->bound++;
    g->inputs[i].storage = storage;
    g->inputs[i].type = type;
  }
}

static inline void decorate_inputs(generator *g) {
  for (uint32_t i = 0; i < 6; i++) {
    put(&g->head, 71, LIST(g->inputs[i].id, 11, inputs_read[i]));
    if (g->inputs[i].storage != INPUT) put(&g->head, 71, LIST(g->inputs[i].id, 41, 'a' + i, 1));
  }
}

/* One number of a variable: of all that are loaded, by its address, by the address of bytes, by an index that is known or
 * is not, or by a generic pointer. */
static inline uint32_t input(generator *g, uint32_t i, uint32_t d) {
  shape s = input_shape(i);
  uint32_t id = g->inputs[i].id, storage = g->inputs[i].storage, type = type_of(g, s);
  bool three = input_has_three(i);
  switch (draw(g, 5)) {
    case 0:
      if (three) id = MAKE(65 + draw(g, 2), pointer_to(g, storage, type), id, number(g, BITS32, d));
      return MAKE(61, type, id);
    case 1: {
      uint32_t byte = type_of(g, (shape){BITS8, 1}), bytes = pointer_to(g, storage, byte);
      id = MAKE(70, bytes, MAKE(124, bytes, id), number(g, BITS64, d * bytes_of(s)));
      return MAKE(61, type, MAKE(124, pointer_to(g, storage, type), id));
    }
    case 2: {
      uint32_t pointer = pointer_to(g, storage, type), index = number(g, BITS32, d);
      if (g->pool_count != 0)
        index = MAKE(198, type_of(g, U32), index, masked(g, BITS32, 0)); /* the same, but not known */
      if (draw(g, 2) == 0 && three) return MAKE(61, type, MAKE(65, pointer, id, index));
      return MAKE(61, type, MAKE(67, pointer, three ? MAKE(124, pointer, id) : id, index));
    }
    case 3:
      if (storage == GLOBAL) id = MAKE(121, pointer_to(g, GENERIC, g->inputs[i].type), id);
      break;
    default: break;
  }
  uint32_t all = MAKE(61, g->inputs[i].type, id);
  return three ? MAKE(81, type, all, d) : all;
}

static inline void any_input(generator *g) {
  uint32_t i = draw(g, 6);
  keep(g, input(g, i, input_has_three(i) ? draw(g, 3) : 0), input_shape(i));
}

/* ---- What may be left to the driver ------------------------------------------------------------------------------ */

/* Of LLVM's functions of integers, with so many operands, and whether a last one is false. `as`: the instruction with the
 * same result, or a thousand more than that of OpenCL.std; of fshl, where two operands are the same one. */
static const struct {
  const char *name;
  uint32_t operands, as;
  bool flag;
} llvm_functions[] = {{"uadd.sat", 2, 1144, false},  {"sadd.sat", 2, 1143, false}, {"usub.sat", 2, 1163, false},
                      {"ssub.sat", 2, 1162, false},  {"umin", 2, 1159, false},     {"umax", 2, 1157, false},
                      {"smin", 2, 1158, false},      {"smax", 2, 1156, false},     {"ctpop", 1, 1166, false},
                      {"bitreverse", 1, 204, false}, {"ctlz", 1, 1151, true},      {"cttz", 1, 1152, true},
                      {"abs", 1, 1141, true},        {"fshl", 2, 1161, false}};
enum { LLVM_FUNCTIONS = sizeof(llvm_functions) / sizeof(llvm_functions[0]), ROTATES = LLVM_FUNCTIONS - 1 };

/* The function's import, which is declared once. 0: there are too many. */
static inline uint32_t import(generator *g, uint32_t f, shape s) {
  for (uint32_t i = 0; i < g->imported_count; i++)
    if (g->imported[i].function == f && g->imported[i].shape.kind == s.kind && g->imported[i].shape.n == s.n)
      return g->imported[i].id;
  if (g->imported_count == 24) return 0;
  char name[48] = {0};
  snprintf(name, sizeof(name), s.n == 1 ? "llvm.%s.%.0ui%u" : "llvm.%s.v%ui%u", llvm_functions[f].name,
           s.n == 1 ? 0 : s.n, kind_bits[s.kind]);
  uint32_t id = g->bound++, type = type_of(g, s), link[16] = {id, 41}, length = (uint32_t)strlen(name) / 4 + 1;
  memcpy(link + 2, name, 4 * (size_t)length);
  link[2 + length] = 1; /* Import */
  put(&g->links, 71, 3 + length, link);
  uint32_t words[5] = {type}, count = 1;
  for (uint32_t i = 0; i < llvm_functions[f].operands + (f == ROTATES); i++) words[count++] = type;
  if (llvm_functions[f].flag) words[count++] = type_of(g, TRUTH);
  put(&g->imports, 54, LIST(type, id, 0, declared(g, 33, 0, count, words)));
  for (uint32_t i = 1; i < count; i++) put(&g->imports, 55, LIST(words[i], g->bound++));
  put(&g->imports, 56, 0, NULL);
  g->imported[g->imported_count].id = id;
  g->imported[g->imported_count].function = f;
  g->imported[g->imported_count++].shape = s;
  return id;
}

static inline void imported_operation(generator *g, shape s) {
  uint32_t f = draw(g, LLVM_FUNCTIONS), words[4] = {0}, count = 1;
  if (s.kind > BITS64) s.kind = (kind)draw(g, 4);
  words[0] = import(g, f, s);
  if (words[0] == 0) return;
  for (uint32_t i = 0; i < llvm_functions[f].operands; i++) words[count++] = pick(g, s);
  if (f == ROTATES) {
    words[3] = words[2];
    words[2] = words[1];
    count = 4;
  }
  if (llvm_functions[f].flag) words[count++] = number(g, BOOL, 0);
  keep(g, made(g, 57, type_of(g, s), count, words), s);
}

/* A load from behind local memory, in what devices round up; nothing depends on its value. */
static inline void behind_local(generator *g) {
  uint32_t type = type_of(g, U32), pointer = pointer_to(g, LOCAL, type);
  uint32_t index = MAKE(128, type, masked(g, BITS32, 15), number(g, BITS32, LOCAL_WORDS));
  uint32_t first = MAKE(65, pointer, g->local, number(g, BITS32, 0));
  uint32_t odd = MAKE(197, type, MAKE(61, type, MAKE(67, pointer, first, index)), number(g, BITS32, 1));
  keep(g, MAKE(171, type_of(g, TRUTH), odd, number(g, BITS32, 0)), TRUTH);
}

#include "generator_flow.h"

#endif
