/* SPDX-License-Identifier: Apache-2.0 */
/* generator_flow.h: the flow of random kernels: branches, loops, switches, calls, two ways into a loop, early ends. */
#ifndef L0RT_CPU_TEST_GENERATOR_FLOW_H
#define L0RT_CPU_TEST_GENERATOR_FLOW_H

static void statements(generator *g, uint32_t count);

static inline void begin_block(generator *g, uint32_t label) {
  EMIT(248, label);
  g->label = label;
}

/* What has been made since is not there behind a branch. */
typedef struct {
  uint32_t pool;
  bool uniform;
} scope;

static inline scope enter(generator *g) {
  scope s = {g->pool_count, g->uniform};
  g->depth++;
  g->uniform = false;
  /* A full pool is overwritten in the middle, so that nothing more fits. */
  if (g->pool_count > MANY - 100) g->pool_count = s.pool = MANY - 100;
  return s;
}

static inline void leave(generator *g, scope s) {
  g->depth--;
  g->pool_count = s.pool;
  g->uniform = s.uniform;
}

static inline void finish(generator *g) {
  if (g->kernel) put(&g->body, 253, 0, NULL);
  else EMIT(254, pick(g, g->returns));
}

static inline void branches(generator *g) {
  uint32_t yes = g->bound++, no = g->bound++, next = g->bound++, from[2], values[3][2], count = draw(g, 4);
  shape shapes[3];
  for (uint32_t i = 0; i < count; i++) shapes[i] = any_shape(g);
  bool ends = (g->kernel ? g->together == 0 : true) && draw(g, 12) == 0;
  g->over |= ends && g->kernel;
  EMIT(250, pick(g, TRUTH), yes, no);
  for (int way = 0; way < 2; way++) {
    begin_block(g, way == 0 ? yes : no);
    scope s = enter(g);
    statements(g, way == 1 && draw(g, 2) == 0 ? 0 : 1 + draw(g, 4));
    for (uint32_t i = 0; i < count; i++) values[i][way] = pick(g, shapes[i]);
    from[way] = g->label;
    if (way == 0 && ends) finish(g);
    else EMIT(249, next);
    leave(g, s);
  }
  begin_block(g, next);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t type = type_of(g, shapes[i]);
    uint32_t id = ends ? MAKE(245, type, values[i][1], from[1])
                       : MAKE(245, type, values[i][0], from[0], values[i][1], from[1]);
    keep(g, id, shapes[i]);
  }
}

/* A loop of up to seven rounds, or of some hundred without loops inside. Values are carried from round to round, and
 * some work-items leave it in the middle. The phis of the header are written before their last operands are known. */
// Long: a loop's blocks, in the order in which they stand in the module.
static inline void loop(generator *g) {
  enum { CARRIED = 2 };
  uint32_t header = g->bound++, body = g->bound++, latch = g->bound++, next = g->bound++, before = g->label;
  bool together = g->uniform && draw(g, 2) == 0, breaks = !together && draw(g, 2) == 0, skips = draw(g, 3) == 0;
  bool many = !together && g->loops == 0 && draw(g, 6) == 0; /* so many that those left move together */
  uint32_t rounds = together || draw(g, 3) == 0 ? number(g, BITS32, draw(g, 5)) : masked(g, BITS32, many ? 255 : 7);
  uint32_t type = type_of(g, U32), phis[CARRIED + 1], open[CARRIED + 1], firsts[CARRIED], broken = 0, skipped = 0;
  uint32_t values[CARRIED], left[CARRIED], skip[CARRIED], outer = g->round;
  shape shapes[CARRIED];
  for (uint32_t i = 0; i < CARRIED; i++) shapes[i] = any_shape(g), firsts[i] = pick(g, shapes[i]);
  EMIT(249, header);
  begin_block(g, header);
  if (draw(g, 4) == 0) EMIT(5887, 1, 4); /* DPC++ has it before the phis too */
  for (uint32_t i = 0; i <= CARRIED; i++) {
    shape s = i == CARRIED ? U32 : shapes[i];
    phis[i] = MAKE(245, type_of(g, s), i == CARRIED ? number(g, BITS32, 0) : firsts[i], before, 0, latch);
    open[i] = g->body.count - 2;
  }
  uint32_t goes_on = MAKE(176, type_of(g, TRUTH), phis[CARRIED], rounds);
  if (draw(g, 3) == 0) EMIT(5887, 1, 4); /* LoopControlINTEL: a hint */
  EMIT(250, goes_on, body, next);
  begin_block(g, body);
  scope s = enter(g);
  g->uniform = together;
  g->together += together;
  g->loops += many ? 2 : 1;
  g->round = phis[CARRIED];
  for (uint32_t i = 0; i <= CARRIED; i++) keep(g, phis[i], i == CARRIED ? U32 : shapes[i]);
  statements(g, 1 + draw(g, 4));
  if (breaks) {
    uint32_t on = g->bound++;
    for (uint32_t i = 0; i < CARRIED; i++) left[i] = pick(g, shapes[i]);
    broken = g->label;
    EMIT(250, pick(g, TRUTH), next, on);
    /* `pick` may have made an instruction: the label is still the one of this block. */
    begin_block(g, on);
  }
  if (skips) {
    uint32_t on = g->bound++;
    for (uint32_t i = 0; i < CARRIED; i++) skip[i] = pick(g, shapes[i]);
    skipped = g->label;
    EMIT(250, pick(g, TRUTH), latch, on);
    begin_block(g, on);
  }
  g->uniform = g->uniform && !skips;
  statements(g, draw(g, 3));
  for (uint32_t i = 0; i < CARRIED; i++) values[i] = pick(g, shapes[i]);
  uint32_t last = g->label;
  EMIT(249, latch);
  begin_block(g, latch);
  if (skips)
    for (uint32_t i = 0; i < CARRIED; i++)
      values[i] = MAKE(245, type_of(g, shapes[i]), values[i], last, skip[i], skipped);
  for (uint32_t i = 0; i < CARRIED; i++) g->body.words[open[i]] = values[i];
  uint32_t more = MAKE(128, type, phis[CARRIED], number(g, BITS32, 1));
  g->body.words[open[CARRIED]] = more;
  EMIT(249, header);
  g->loops -= many ? 2 : 1;
  g->round = outer;
  g->together -= together;
  leave(g, s);
  begin_block(g, next);
  for (uint32_t i = 0; i < CARRIED; i++) {
    uint32_t id = phis[i];
    if (breaks) id = MAKE(245, type_of(g, shapes[i]), phis[i], header, left[i], broken);
    keep(g, id, shapes[i]);
  }
}

/* Cases of a number of any width; some go on to the next case. */
static inline void cases(generator *g) {
  uint32_t count = 1 + draw(g, 4), next = g->bound++, otherwise = g->bound++, labels[5], sources[8], values[8],
           ways = 0;
  shape on = {(kind)draw(g, 4), 1}, s = any_shape(g);
  uint32_t selector = masked(g, on.kind, 7), words[20] = {selector, otherwise}, size = 2;
  for (uint32_t i = 0; i < count; i++) {
    words[size++] = i * 2;
    if (on.kind == BITS64) words[size++] = 0;
    words[size++] = labels[i] = g->bound++;
  }
  labels[count] = otherwise;
  put(&g->body, 251, size, words);
  for (uint32_t i = 0; i <= count; i++) {
    begin_block(g, labels[i]);
    scope around = enter(g);
    statements(g, draw(g, 3));
    bool falls = i < count && draw(g, 3) == 0;
    if (!falls) {
      values[ways] = pick(g, s);
      sources[ways++] = g->label;
    }
    EMIT(249, falls ? labels[i + 1] : next);
    leave(g, around);
  }
  begin_block(g, next);
  uint32_t phi[16];
  for (uint32_t i = 0; i < ways; i++) phi[2 * i] = values[i], phi[2 * i + 1] = sources[i];
  keep(g, made(g, 245, type_of(g, s), 2 * ways, phi), s);
}

/* Two blocks that go to each other, and both are entered from outside. */
static inline void crossing(generator *g) {
  uint32_t blocks[2] = {g->bound++, g->bound++}, ends[2] = {g->bound++, g->bound++}, next = g->bound++;
  uint32_t type = type_of(g, U32), one = number(g, BITS32, 1), from = g->label, first = pick(g, U32);
  uint32_t rounds = masked(g, BITS32, 7), zero = number(g, BITS32, 0), counts[2], values[2], more[2], made_of[2],
           open[2][2];
  EMIT(250, pick(g, TRUTH), blocks[0], blocks[1]);
  for (int i = 0; i < 2; i++) {
    begin_block(g, blocks[i]);
    counts[i] = MAKE(245, type, zero, from, 0, ends[!i]);
    open[i][0] = g->body.count - 2;
    values[i] = MAKE(245, type, first, from, 0, ends[!i]);
    open[i][1] = g->body.count - 2;
    scope s = enter(g);
    keep(g, values[i], U32);
    statements(g, draw(g, 2));
    made_of[i] = MAKE(i == 0 ? 132 : 198, type, MAKE(128, type, values[i], pick(g, U32)),
                      number(g, BITS32, 0x9e3779b1));
    more[i] = MAKE(128, type, counts[i], one);
    EMIT(249, ends[i]);
    begin_block(g, ends[i]);
    EMIT(250, MAKE(176, type_of(g, TRUTH), more[i], rounds), blocks[!i], next);
    leave(g, s);
  }
  for (int i = 0; i < 2; i++) {
    g->body.words[open[i][0]] = more[!i];
    g->body.words[open[i][1]] = made_of[!i];
  }
  begin_block(g, next);
  keep(g, MAKE(245, type, made_of[0], ends[0], made_of[1], ends[1]), U32);
}

static inline void call(generator *g) {
  if (g->helper_count == 0 || !g->kernel) return;
  const helper *h = &g->helpers[draw(g, g->helper_count)];
  uint32_t words[6] = {h->id, g->x};
  for (uint32_t i = 0; i < h->count; i++) words[2 + i] = pick(g, h->parameters[i]);
  keep(g, made(g, 57, type_of(g, h->result), 2 + h->count, words), h->result);
}

static void statement(generator *g) {
  shape s = any_shape(g);
  bool deep = g->depth >= 3 || (g->kernel ? g->body.count > 6000 : g->body.count > 2500);
  switch (draw(g, 45)) {
    case 0:
    case 1: inputs(g); return;
    case 2: own_memory(g, g->kernel && draw(g, 3) != 0); return;
    case 3:
    case 4: private_memory(g, draw(g, 2) == 0); return;
    case 5: add_private(g); return;
    case 6: table_entry(g); return;
    case 7:
      if (g->kernel) count_something(g);
      return;
    case 8:
    case 9:
      if (g->kernel && g->uniform && !g->over) meet(g);
      return;
    case 10: call(g); return;
    case 11:
    case 12:
    case 13:
      if (!deep) branches(g);
      return;
    case 14:
    case 15:
      if (!deep && g->loops < 2) loop(g);
      return;
    case 16:
      if (!deep) cases(g);
      return;
    case 17:
      if (!deep && g->loops < 2) crossing(g);
      return;
    case 18: generic_memory(g); return;
    case 19:
    case 20: conversion(g, s); return;
    case 21: bits_as_another_type(g, s); return;
    case 22:
    case 23:
    case 24: parts_of_vectors(g, s); return;
    case 25: choice(g, s); return;
    case 26: any_input(g); return;
    case 27:
    case 28: imported_operation(g, s); return;
    case 29: behind_local(g); return;
    default:
      if (s.kind == BOOL) bool_operation(g, s);
      else if (s.kind >= HALF) real_operation(g, s);
      else integer_operation(g, s);
  }
}

static void statements(generator *g, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) statement(g);
}

/* ---- Functions --------------------------------------------------------------------------------------------------- */

/* Between the first label and what follows it stand the variables, which are known at the end only. */
static inline void place_variables(generator *g, uint32_t at) {
  code *b = &g->body;
  for (uint32_t i = 0; i < g->variables.count; i += g->variables.words[i] >> 16)
    put(b, g->variables.words[i] & 0xffff, (g->variables.words[i] >> 16) - 1, g->variables.words + i + 1);
  uint32_t size = g->variables.count;
  if (size == 0) return;
  memmove(b->words + at + size, b->words + at, 4 * (size_t)(b->count - size - at));
  memcpy(b->words + at, g->variables.words, 4 * (size_t)size);
  g->variables.count = 0;
}

/* Has a block with this last instruction a branch to the label? Of a switch only the default is known. */
static inline bool leads_to(const uint32_t *last, uint32_t label) {
  switch (*last & 0xffff) {
    case 249: return last[1] == label;
    case 250: return last[2] == label || last[3] == label;
    case 251: return last[2] == label;
    default: return false;
  }
}

/* Blocks stand in any order in which each is behind those that dominate it: behind one that leads to it, or behind all
 * that were before it. `at`: behind the first label. */
static inline void mix_blocks(generator *g, uint32_t at) {
  uint32_t count = 0, from = at - 2, end = g->body.count - 1, size = end - from;
  if (draw(g, 2) == 0) return;
  uint32_t *words = malloc(4 * (size_t)size), *starts = malloc(4 * (size_t)size);
  enum { WAITS, MAY, STANDS } *states = calloc(size, sizeof(*states));
  CHECK(words != NULL && starts != NULL && states != NULL);
  memcpy(words, g->body.words + from, 4 * (size_t)size);
  for (uint32_t i = 0; i < size; i += words[i] >> 16)
    if ((words[i] & 0xffff) == 248) starts[count++] = i;
  for (uint32_t i = 0, first = 0; i < count; i++) {
    while (states[first] == STANDS) first++;
    uint32_t chosen = first, many = 1;
    for (uint32_t k = first + 1; k < count; k++)
      if (states[k] == MAY && draw(g, ++many) == 0) chosen = k;
    states[chosen] = STANDS;
    uint32_t next = starts[chosen], last;
    do {
      uint32_t length = words[next] >> 16;
      memcpy(g->body.words + from, words + next, 4 * (size_t)length);
      from += length;
      last = next;
      next += length;
    } while (next < size && (words[next] & 0xffff) != 248);
    for (uint32_t k = 0; k < count; k++)
      if (states[k] == WAITS && leads_to(words + last, words[starts[k] + 1])) states[k] = MAY;
  }
  CHECK(from == end);
  free(words), free(starts), free(states);
}

static inline void add_helper(generator *g) {
  helper *h = &g->helpers[g->helper_count];
  uint32_t words[8], uints = pointer_to(g, GLOBAL, type_of(g, U32)), places[4];
  h->result = g->returns = any_shape(g);
  h->count = 1 + draw(g, 4);
  words[0] = type_of(g, h->result);
  words[1] = uints;
  for (uint32_t i = 0; i < h->count; i++) words[2 + i] = type_of(g, h->parameters[i] = any_shape(g));
  uint32_t signature = declared(g, 33, 0, 2 + h->count, words);
  h->id = g->bound++;
  EMIT(54, words[0], h->id, 0, signature);
  g->x = g->y = g->bound++;
  EMIT(55, uints, g->x);
  for (uint32_t i = 0; i < h->count; i++) {
    places[i] = g->bound++;
    EMIT(55, words[2 + i], places[i]);
  }
  begin_block(g, g->bound++);
  uint32_t at = g->body.count;
  uint32_t bytes = pointer_to(g, GLOBAL, type_of(g, (shape){BITS8, 1}));
  g->slot = MAKE(124, bytes, g->x); /* which it only reads */
  g->kernel = g->uniform = g->over = false;
  g->pool_count = g->private_count = 0;
  for (uint32_t i = 0; i < h->count; i++) keep(g, places[i], h->parameters[i]);
  statements(g, 4 + draw(g, 12));
  finish(g);
  put(&g->body, 56, 0, NULL);
  place_variables(g, at);
  mix_blocks(g, at);
  g->helper_count++;
}

static inline void add_kernel(generator *g, uint32_t id) {
  uint32_t wide = type_of(g, U64), nothing = declared(g, 19, 0, 0, NULL);
  uint32_t uints = pointer_to(g, GLOBAL, type_of(g, U32)), bytes = pointer_to(g, GLOBAL, type_of(g, (shape){BITS8, 1}));
  uint32_t types[7] = {uints, uints, bytes, uints, type_of(g, U32), wide, type_of(g, (shape){FLOAT, 1})}, parameters[7];
  uint32_t signature = TYPE(33, nothing, types[0], types[1], types[2], types[3], types[4], types[5], types[6]);
  uint32_t entry[9] = {6, id, 'f'}, entry_size = 3;
  for (uint32_t i = 0; i < 6; i++)
    if (g->inputs[i].storage == INPUT) entry[entry_size++] = g->inputs[i].id;
  put(&g->head, 15, entry_size, entry);
  decorate_inputs(g);
  EMIT(54, nothing, id, 0, signature);
  for (uint32_t i = 0; i < 7; i++) {
    parameters[i] = g->bound++;
    EMIT(55, types[i], parameters[i]);
  }
  begin_block(g, g->bound++);
  uint32_t at = g->body.count;
  g->kernel = g->uniform = true;
  g->pool_count = g->private_count = 0;
  g->x = parameters[0], g->y = parameters[1], g->counters = parameters[3];
  for (uint32_t i = 0; i < 2; i++)
    for (uint32_t d = 0; d < 3; d++) keep(g, input(g, i, d), U64);
  uint32_t linear = keep(g, input(g, 2, 0), U64), sizes[] = {input(g, 4, 0), input(g, 4, 1), input(g, 4, 2)};
  g->item = keep(g, input(g, 3, 0), U64);
  g->size = keep(g, MAKE(132, wide, sizes[0], MAKE(132, wide, sizes[1], sizes[2])), U64);
  g->subgroup = keep(g, input(g, 5, 0), U32);
  for (uint32_t i = 4; i < 7; i++) keep(g, parameters[i], i == 4 ? U32 : i == 5 ? U64 : (shape){FLOAT, 1});
  g->slot = MAKE(67, bytes, parameters[2], MAKE(132, wide, linear, number(g, BITS64, SLOT)));
  keep(g, MAKE(113, type_of(g, U32), linear), U32);
  for (int i = 0; i < 4; i++) inputs(g);
  statements(g, 15 + draw(g, 30));
  for (int i = 0; i < 6; i++) own_memory(g, true);
  finish(g);
  put(&g->body, 56, 0, NULL);
  place_variables(g, at);
  mix_blocks(g, at);
}

/* The words of the module that has been put together; the caller frees them. */
static inline uint32_t *joined(generator *g, uint32_t *count) {
  const code *parts[] = {&g->head, &g->links, &g->types, &g->imports, &g->body};
  uint32_t *all = malloc(
      4 * (size_t)(5 + g->head.count + g->links.count + g->types.count + g->imports.count + g->body.count));
  CHECK(all != NULL);
  memcpy(all, (uint32_t[]){0x07230203, 0x00010000, 0, g->bound, 0}, 20);
  *count = 5;
  for (int p = 0; p < 5; p++) {
    if (parts[p]->count != 0) memcpy(all + *count, parts[p]->words, 4 * (size_t)parts[p]->count);
    *count += parts[p]->count;
    free(parts[p]->words);
  }
  free(g->variables.words);
  return all;
}

/* The words of a random module; the caller frees them. */
static inline uint32_t *generated(uint64_t seed, uint32_t *count) {
  generator *g = calloc(1, sizeof(*g));
  CHECK(g != NULL);
  g->state = seed * 0x9e3779b97f4a7c15u + 1;
  g->bound = 1;
  for (int i = 0; i < 5; i++) draw(g, 2);
  static const uint32_t capabilities[] = {4, 5, 6, 7, 9, 10, 11, 22, 38, 39, 61, 65};
  for (size_t i = 0; i < sizeof(capabilities) / 4; i++) put(&g->head, 17, 1, &capabilities[i]);
  g->set = g->bound++;
  uint32_t import[] = {g->set, 0x6e65704f, 0x732e4c43, 0x00006474}, model[] = {2, 2}, kernel = g->bound++;
  put(&g->head, 11, 4, import);
  put(&g->head, 14, 2, model);
  uint32_t type = type_of(g, U32), length = number(g, BITS32, LOCAL_WORDS), words[TABLE + 2];
  uint32_t array = TYPE(28, type, length);
  uint32_t local[] = {pointer_to(g, LOCAL, array), g->local = g->bound++, LOCAL};
  put(&g->types, 59, 3, local);
  array = words[0] = TYPE(28, type, number(g, BITS32, TABLE));
  for (uint32_t i = 0; i < TABLE; i++) words[1 + i] = number(g, BITS32, draw(g, 1u << 31));
  uint32_t made_table = declared(g, 44, 1, TABLE + 1, words);
  uint32_t table[] = {pointer_to(g, CONSTANT_MEMORY, array), g->table = g->bound++, CONSTANT_MEMORY, made_table};
  put(&g->types, 59, 4, table);
  declare_inputs(g);
  for (uint32_t helpers = draw(g, 4); helpers > 0; helpers--) add_helper(g);
  add_kernel(g, kernel);
  uint32_t *all = joined(g, count);
  free(g);
  return all;
}

#endif
