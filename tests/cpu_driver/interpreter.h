/* SPDX-License-Identifier: Apache-2.0 */
/* interpreter.h: runs what generator.h makes in the plainest way: one work-item after the other, one instruction after
 * the other, until each has ended or waits for its group. A value is an array of 64 bits for each component. */
#ifndef L0RT_CPU_TEST_INTERPRETER_H
#define L0RT_CPU_TEST_INTERPRETER_H

#include "arithmetic.h"

enum { MOST_ITEMS = 1024, PRIVATE_BYTES = 65536, MOST_STEPS = 400000, SUBGROUP = 32 };

typedef struct {
  uint32_t op, bits, count, element;
  uint32_t components; /* of a value */
  uint64_t size;       /* in memory */
} plain_type;

typedef struct {
  const uint32_t *words;
  uint32_t count, bound, slots, kernel, first;
  plain_type *types;
  uint32_t *type_of, *slot_of, *at_of; /* of each id: its type, its value's place, its instruction */
  uint32_t *builtin_of, inputs[8], input_count; /* built-in variables */
  uint32_t *import_of; /* of a function of LLVM's: one more than its place in the generator's list */
  uint64_t *constants; /* the values with which each work-item begins */
  char *table;         /* memory of module-scope constants */
  uint32_t local;      /* the id of the group's memory */
} plain;

typedef struct {
  uint64_t *values;
  char *memory; /* private */
  uint32_t used, at, label, before, back, back_to; /* back: behind the call that runs */
  uint32_t back_label, back_used;
  bool ended, waits;
  uint64_t local_id[3], group_id[3], linear, item;
} plain_item;

typedef struct {
  uint32_t group_size[3], group_count[3];
  uint64_t offset[3];
  const void *const *arguments;
} plain_launch;

static inline const plain_type *plain_type_of(const plain *p, uint32_t id) { return &p->types[p->type_of[id]]; }
static inline const plain_type *plain_scalar(const plain *p, const plain_type *t) {
  return t->op == 23 ? &p->types[t->element] : t;
}

static inline void plain_constant(plain *p, uint32_t id, const uint32_t *w, uint32_t length) {
  uint64_t *to = p->constants + p->slot_of[id];
  switch (w[0] & 0xffff) {
    case 41: *to = 1; break;
    case 43: *to = length == 5 ? w[3] | (uint64_t)w[4] << 32 : w[3]; break;
    case 44:
      for (uint32_t i = 3; i < length; i++) {
        uint32_t n = plain_type_of(p, w[i])->components;
        memcpy(to, p->constants + p->slot_of[w[i]], 8 * (size_t)n);
        to += n;
      }
      break;
    default: break; /* zero */
  }
}

static inline void plain_declare_type(plain *p, const uint32_t *w, uint32_t length) {
  plain_type *t = &p->types[w[1]];
  t->op = w[0] & 0xffff;
  switch (t->op) {
    case 20: t->bits = t->components = 1; break;
    case 21:
    case 22:
      t->bits = w[2];
      t->components = 1;
      t->size = w[2] / 8;
      break;
    case 23:
    case 28:
      t->element = w[2];
      t->count = t->op == 23 ? w[3] : (uint32_t)p->constants[p->slot_of[w[3]]];
      t->components = t->count * p->types[w[2]].components;
      t->size = p->types[w[2]].size * (t->op == 23 && t->count == 3 ? 4 : t->count);
      break;
    case 30: t->components = (length - 2) * p->types[w[2]].components; break;
    case 32:
      t->element = w[3];
      t->components = 1;
      t->size = 8;
      break;
    default: break;
  }
}

/* Of "llvm.umin.v4i32", one more than the place of "umin"; 0: not LLVM's. */
static inline uint32_t plain_import(const char *name) {
  if (strncmp(name, "llvm.", 5) != 0) return 0;
  uint32_t f = 0;
  size_t length = (size_t)(strrchr(name, '.') - name) - 5;
  while (strlen(llvm_functions[f].name) != length || memcmp(llvm_functions[f].name, name + 5, length) != 0)
    CHECK(++f < LLVM_FUNCTIONS);
  return f + 1;
}

/* Reads the module once, and gives each result its place. */
static inline plain plain_read(const uint32_t *words, uint32_t count) {
  plain p = {.words = words, .count = count, .bound = words[3]};
  size_t n = p.bound;
  p.types = calloc(n, sizeof(plain_type));
  p.type_of = calloc(n, 4), p.slot_of = calloc(n, 4), p.at_of = calloc(n, 4), p.builtin_of = calloc(n, 4);
  p.import_of = calloc(n, 4);
  p.constants = calloc(n * 16, 8); /* no value has more components, but for the tables in memory */
  p.table = calloc(1, 4096);
  CHECK(p.types && p.type_of && p.slot_of && p.at_of && p.builtin_of && p.import_of && p.constants && p.table);
  char *memory = p.table;
  for (uint32_t at = 5; at < count; at += words[at] >> 16) {
    const uint32_t *w = words + at;
    uint32_t op = w[0] & 0xffff, length = w[0] >> 16;
    if (op == 15) p.kernel = w[2];
    if (op == 71 && w[2] == 11) p.builtin_of[w[1]] = w[3];
    if (op == 71 && w[2] == 41) p.import_of[w[1]] = plain_import((const char *)(w + 3));
    if (op >= 19 && op <= 33) plain_declare_type(&p, w, length);
    if (op == 248) p.at_of[w[1]] = at;
    bool plainly = op == 71 || op == 62 || op == 224 || (op >= 246 && op <= 255) || op == 56 || op < 41 || op == 5887;
    if ((plainly && op != 12) || length < 3) continue;
    p.type_of[w[2]] = w[1];
    p.at_of[w[2]] = at;
    p.slot_of[w[2]] = p.slots;
    p.slots += p.types[w[1]].components;
    CHECK(p.slots <= n * 16);
    if (op >= 41 && op <= 46) plain_constant(&p, w[2], w, length);
    if (op == 59 && w[3] == 4) p.local = w[2];
    bool input = op == 59 && p.builtin_of[w[2]] != 0;
    if (input) p.inputs[p.input_count++] = w[2];
    if (op != 59 || w[3] != 0 || input) continue;
    for (uint32_t i = 0; i < plain_type_of(&p, w[4])->components; i++)
      memcpy(memory + 4 * (size_t)i, &p.constants[p.slot_of[w[4]] + i], 4);
    p.constants[p.slot_of[w[2]]] = (uint64_t)(uintptr_t)memory;
    memory += plain_type_of(&p, w[4])->size;
  }
  return p;
}

static inline void plain_free(plain *p) {
  free(p->types), free(p->type_of), free(p->slot_of), free(p->at_of), free(p->builtin_of), free(p->constants);
  free(p->import_of), free(p->table);
}

/* ---- One instruction ---------------------------------------------------------------------------------------------- */

#define VALUE(id) (item->values + p->slot_of[id])

static inline void plain_load(const plain *p, const plain_type *t, const char *from, uint64_t *to) {
  size_t size = plain_scalar(p, t)->size;
  for (uint32_t i = 0; i < t->components; i++) {
    to[i] = 0;
    memcpy(&to[i], from + i * size, size);
  }
}

static inline void plain_store(const plain *p, const plain_type *t, char *to, const uint64_t *from) {
  size_t size = t->op == 28 ? plain_scalar(p, &p->types[t->element])->size : plain_scalar(p, t)->size;
  for (uint32_t i = 0; i < t->components; i++) memcpy(to + i * size, &from[i], size);
}

static inline int64_t plain_signed(const plain *p, const plain_item *item, uint32_t id) {
  return sign_extended(item->values[p->slot_of[id]], plain_type_of(p, id)->bits);
}

static inline uint64_t plain_builtin(const plain_launch *l, const plain_item *item, uint32_t builtin, uint32_t d) {
  switch (builtin) {
    case 28: return l->offset[d] + item->group_id[d] * l->group_size[d] + item->local_id[d];
    case 26: return item->group_id[d];
    case 34: {
      uint64_t linear = 0;
      for (int k = 2; k >= 0; k--)
        linear = linear * l->group_size[k] * l->group_count[k] + item->group_id[k] * l->group_size[k] +
                 item->local_id[k];
      return linear;
    }
    case 29: return item->item;
    case 36: {
      uint64_t left = (uint64_t)l->group_size[0] * l->group_size[1] * l->group_size[2] -
                      item->item / SUBGROUP * SUBGROUP;
      return left < SUBGROUP ? left : SUBGROUP;
    }
    default: return l->group_size[d];
  }
}

static inline void plain_vectors(const plain *p, plain_item *item, const uint32_t *w, uint32_t op, uint32_t length,
                                 uint64_t *to, uint32_t n) {
  switch (op) {
    case 77: to[0] = VALUE(w[3])[VALUE(w[4])[0]]; return;
    case 78:
      memcpy(to, VALUE(w[3]), 8 * (size_t)n);
      to[VALUE(w[5])[0]] = VALUE(w[4])[0];
      return;
    case 79: {
      uint32_t first = plain_type_of(p, w[3])->components;
      for (uint32_t i = 0; i < n; i++) to[i] = w[5 + i] < first ? VALUE(w[3])[w[5 + i]] : VALUE(w[4])[w[5 + i] - first];
      return;
    }
    case 80:
      for (uint32_t i = 3; i < length; i++) to[i - 3] = VALUE(w[i])[0];
      return;
    case 81: memcpy(to, VALUE(w[3]) + w[4] * n, 8 * (size_t)n); return; /* of a pair, or of a vector */
    default: memcpy(to, VALUE(w[4]), 8 * (size_t)n); to[w[5]] = VALUE(w[3])[0];
  }
}

static inline void plain_bitcast(const plain *p, plain_item *item, const uint32_t *w, uint64_t *to, uint32_t n) {
  const plain_type *type = &p->types[w[1]], *from = plain_type_of(p, w[3]);
  char bytes[128] = {0};
  if (type->op == 32) {
    to[0] = VALUE(w[3])[0];
    return;
  }
  plain_store(p, from, bytes, VALUE(w[3]));
  (void)n;
  plain_load(p, type, bytes, to);
}

static inline void plain_chain(const plain *p, plain_item *item, const uint32_t *w, uint32_t op, uint32_t length,
                               uint64_t *to) {
  const plain_type *t = &p->types[plain_type_of(p, w[3])->element];
  uint64_t address = VALUE(w[3])[0];
  uint32_t next = 4;
  if (op == 67 || op == 70) address += (uint64_t)plain_signed(p, item, w[next++]) * t->size;
  for (; next < length; next++) {
    t = &p->types[t->element];
    address += (uint64_t)plain_signed(p, item, w[next]) * t->size;
  }
  to[0] = address;
}

static inline void plain_atomic(uint32_t op, uint32_t *at, uint32_t v, uint64_t *to) {
  to[0] = *at;
  int32_t a = (int32_t)*at, b = (int32_t)v;
  switch (op) {
    case 234: *at += v; return;
    case 235: *at -= v; return;
    case 236: *at = (uint32_t)(a < b ? a : b); return;
    case 237: *at = *at < v ? *at : v; return;
    case 238: *at = (uint32_t)(a > b ? a : b); return;
    case 239: *at = *at > v ? *at : v; return;
    case 240: *at &= v; return;
    default: *at |= v;
  }
}

/* Phis are read all at once: one may be an operand of another. */
static inline void plain_phis(const plain *p, plain_item *item) {
  uint64_t kept[2048];
  uint32_t count = 0, at = item->at;
  for (int pass = 0; pass < 2; pass++) {
    count = 0;
    for (at = item->at; (p->words[at] & 0xffff) == 245 || (p->words[at] & 0xffff) == 5887; at += p->words[at] >> 16) {
      const uint32_t *w = p->words + at;
      if ((w[0] & 0xffff) == 5887) continue;
      uint32_t n = p->types[w[1]].components, v = 3;
      while (w[v + 1] != item->before) CHECK((v += 2) < w[0] >> 16);
      CHECK(count + n <= 2048);
      if (pass == 0) memcpy(kept + count, VALUE(w[v]), 8 * (size_t)n);
      else memcpy(VALUE(w[2]), kept + count, 8 * (size_t)n);
      count += n;
    }
  }
  item->at = at;
}

static inline void plain_go(const plain *p, plain_item *item, uint32_t label) {
  item->before = item->label;
  item->label = label;
  item->at = p->at_of[label] + 2;
  plain_phis(p, item);
}

static inline void plain_enter(const plain *p, plain_item *item, uint32_t function, const uint32_t *w) {
  uint32_t at = p->at_of[function] + 5;
  for (uint32_t i = 0; (p->words[at] & 0xffff) == 55; at += 3, i++) {
    uint32_t id = p->words[at + 2];
    memcpy(VALUE(id), VALUE(w[4 + i]), 8 * (size_t)plain_type_of(p, id)->components);
  }
  item->label = p->words[at + 1];
  item->at = at + 2;
}

/* The end of a block. False: the instruction is another one. */
static inline bool plain_flow(const plain *p, plain_item *item, const uint32_t *w, uint32_t op, uint32_t length) {
  switch (op) {
    case 249: plain_go(p, item, w[1]); return true;
    case 250: plain_go(p, item, VALUE(w[1])[0] != 0 ? w[2] : w[3]); return true;
    case 251: {
      uint32_t wide = plain_type_of(p, w[1])->bits == 64 ? 2 : 1, to = w[2];
      for (uint32_t i = 3; i < length; i += wide + 1)
        if (w[i] == VALUE(w[1])[0] && (wide == 1 || w[i + 1] == 0)) to = w[i + wide];
      plain_go(p, item, to);
      return true;
    }
    case 253: item->ended = true; return true;
    case 254:
      memcpy(VALUE(item->back_to), VALUE(w[1]), 8 * (size_t)plain_type_of(p, w[1])->components);
      item->at = item->back;
      item->label = item->back_label;
      item->used = item->back_used;
      return true;
    case 57:
      if (p->import_of[w[3]] != 0) return false;
      item->back = item->at + length;
      item->back_to = w[2];
      item->back_label = item->label;
      item->back_used = item->used;
      plain_enter(p, item, w[3], w);
      return true;
    default: return false;
  }
}

static inline void plain_step(const plain *p, plain_item *item) {
  const uint32_t *w = p->words + item->at;
  uint32_t op = w[0] & 0xffff, length = w[0] >> 16;
  if (plain_flow(p, item, w, op, length)) return;
  item->at += length;
  if (op == 5887) return;
  if (op == 62) {
    plain_store(p, plain_type_of(p, w[2]), (char *)(uintptr_t)VALUE(w[1])[0], VALUE(w[2]));
    return;
  }
  const plain_type *type = &p->types[w[1]];
  uint32_t n = type->components;
  uint64_t *to = VALUE(w[2]);
  if (op == 59) {
    item->used = (item->used + 127) & ~127u;
    CHECK(item->used + p->types[type->element].size <= PRIVATE_BYTES);
    to[0] = (uint64_t)(uintptr_t)(item->memory + item->used);
    memset(item->memory + item->used, 0, p->types[type->element].size); /* the initializer is null */
    item->used += (uint32_t)p->types[type->element].size;
  } else if (op == 61) {
    plain_load(p, type, (const char *)(uintptr_t)VALUE(w[3])[0], to);
  } else if (op == 65 || op == 66 || op == 67 || op == 70) {
    plain_chain(p, item, w, op, length, to);
  } else if (op >= 77 && op <= 82) {
    plain_vectors(p, item, w, op, length, to, n);
  } else if (op == 121) {
    to[0] = VALUE(w[3])[0];
  } else if (op == 124) {
    plain_bitcast(p, item, w, to, n);
  } else if (op >= 234 && op <= 241) {
    plain_atomic(op, (uint32_t *)(uintptr_t)VALUE(w[3])[0], (uint32_t)VALUE(w[6])[0], to);
  } else {
    uint32_t first = op == 12 ? 5 : 3, operands = length - first;
    if (op == 12) op = 1000 + w[4];
    if (op == 57) {
      const uint32_t f = p->import_of[w[3]] - 1;
      op = llvm_functions[f].as;
      operands = llvm_functions[f].operands;
      first = f == ROTATES ? 5 : 4; /* the first two are the same */
    }
    numbers x = {.op = op, .count = operands, .n = n};
    CHECK(operands <= 4);
    const plain_type *scalar = plain_scalar(p, type->op == 30 ? plain_type_of(p, w[3]) : type);
    x.bits = scalar->bits;
    x.real = scalar->op == 22;
    for (uint32_t i = 0; i < operands; i++) {
      const plain_type *t = plain_type_of(p, w[first + i]);
      x.operands[i] = VALUE(w[first + i]);
      x.components[i] = t->components;
      x.operand_bits[i] = plain_scalar(p, t)->bits;
    }
    calculate(&x, to);
  }
}

/* ---- A group ------------------------------------------------------------------------------------------------------ */

/* All have come to this collective: each gets its result. */
static inline void plain_collect(const plain *p, plain_item *items, uint32_t size, const uint32_t *w) {
  uint32_t op = w[0] & 0xffff, bits = p->types[w[1]].bits;
  uint32_t wide = p->constants[p->slot_of[w[3]]] == 2 ? size : SUBGROUP;
  for (uint32_t first = 0; first < size; first += wide) {
    uint32_t end = first + wide < size ? first + wide : size;
    for (uint32_t i = first; i < end; i++) {
      uint32_t from = first, until = w[4] == 0 ? end : w[4] == 1 ? i + 1 : i;
      uint64_t sum = collective_identity(op, bits);
      for (; from < until; from++) sum = collected(op, bits, sum, items[from].values[p->slot_of[w[5]]]);
      items[i].values[p->slot_of[w[2]]] = sum;
    }
  }
}

/* Each gets the value of the work-item of its sub-group that it names. */
static inline void plain_shuffle(const plain *p, plain_item *items, uint32_t size, const uint32_t *w) {
  for (uint32_t i = 0; i < size; i++) {
    uint64_t from = i / SUBGROUP * SUBGROUP + items[i].values[p->slot_of[w[5]]];
    CHECK(from < size && from / SUBGROUP == i / SUBGROUP);
    memcpy(items[i].values + p->slot_of[w[2]], items[from].values + p->slot_of[w[4]],
           8 * (size_t)p->types[w[1]].components);
  }
}

/* Runs all work-items of all groups. False: it takes too long. Long: a case for each kind of instruction. */
static inline bool plain_run(const plain *p, const plain_launch *l) {
  static plain_item items[MOST_ITEMS];
  uint32_t size = l->group_size[0] * l->group_size[1] * l->group_size[2];
  uint32_t groups = l->group_count[0] * l->group_count[1] * l->group_count[2];
  uint64_t steps = 0;
  bool good = size <= MOST_ITEMS;
  size_t bytes = 8 * (size_t)p->slots;
  char *local = calloc(2, LOCAL_WORDS * 4), *all = malloc(size * (bytes + PRIVATE_BYTES));
  CHECK(local != NULL && all != NULL);
  for (uint32_t group = 0; group < groups && good; group++) {
    for (uint32_t i = 0; i < size; i++) {
      plain_item *item = &items[i];
      *item = (plain_item){.values = (uint64_t *)(uintptr_t)(all + i * (bytes + PRIVATE_BYTES)), .item = i};
      item->memory = (char *)item->values + bytes;
      memcpy(item->values, p->constants, bytes);
      for (int d = 0; d < 3; d++) {
        uint32_t below = d == 0 ? 1 : d == 1 ? l->group_size[0] : l->group_size[0] * l->group_size[1];
        uint32_t above = d == 0 ? 1 : d == 1 ? l->group_count[0] : l->group_count[0] * l->group_count[1];
        item->local_id[d] = i / below % l->group_size[d];
        item->group_id[d] = group / above % l->group_count[d];
      }
      for (uint32_t k = 0; k < p->input_count; k++) {
        uint32_t id = p->inputs[k];
        const plain_type *t = &p->types[plain_type_of(p, id)->element];
        uint64_t numbers[3];
        for (uint32_t d = 0; d < t->components; d++) numbers[d] = plain_builtin(l, item, p->builtin_of[id], d);
        plain_store(p, t, item->memory + item->used, numbers);
        item->values[p->slot_of[id]] = (uint64_t)(uintptr_t)(item->memory + item->used);
        item->used += (uint32_t)t->size;
      }
      if (p->local != 0) item->values[p->slot_of[p->local]] = (uint64_t)(uintptr_t)local;
      uint32_t at = p->at_of[p->kernel] + 5;
      for (uint32_t a = 0; (p->words[at] & 0xffff) == 55; at += 3, a++)
        memcpy(VALUE(p->words[at + 2]), l->arguments[a], plain_type_of(p, p->words[at + 2])->size);
      item->label = p->words[at + 1];
      item->at = at + 2;
    }
    for (bool waiting = true; waiting && good;) {
      waiting = false;
      for (uint32_t i = 0; i < size && good; i++) {
        plain_item *item = &items[i];
        for (uint32_t own = 0; !item->ended && good; own++) {
          uint32_t op = p->words[item->at] & 0xffff;
          if (op == 224 || op == 345 || (op >= 264 && op <= 271)) break;
          plain_step(p, item);
          good = ++steps < MOST_STEPS * 20 && own < MOST_STEPS;
        }
        waiting |= !item->ended;
      }
      if (!waiting || !good) break;
      const uint32_t *w = p->words + items[0].at;
      for (uint32_t i = 0; i < size; i++) CHECK(!items[i].ended && items[i].at == items[0].at);
      if ((w[0] & 0xffff) == 345) plain_shuffle(p, items, size, w);
      else if ((w[0] & 0xffff) != 224) plain_collect(p, items, size, w);
      for (uint32_t i = 0; i < size; i++) items[i].at += w[0] >> 16;
    }
  }
  free(local);
  free(all);
  return good;
}

#endif
