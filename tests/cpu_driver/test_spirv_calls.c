/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_calls.c: kernels of many thousand inlined calls: they compute what C computes, in time and memory that grow as
 * their number does, and the limit of that memory is one that a message names. */
#include <time.h>

#include "generator.h"

enum { CALLS = 16000, ITEMS = 64, BUDGET = 64 << 20 };

typedef enum { STRAIGHT, CHOICE, EARLY, LOOP, STORING, NESTED, FORMS } form;
static const char *const names[] = {"straight", "choice", "early return", "loop", "storing branch", "nested"};

enum { ODD = 0x9e3779b1, INNER = 16 };

/* What each call does with its number. The memory is the work-item's own. */
static uint32_t called(form f, uint32_t x, uint32_t *memory) {
  uint32_t mixed = (x ^ x >> 15) * ODD;
  switch (f) {
    case CHOICE: return (mixed & 4) != 0 ? mixed * ODD : mixed >> 1;
    case EARLY: return (mixed & 4) != 0 ? x : mixed;
    case LOOP:
      for (uint32_t i = 0; i < 2; i++) mixed = mixed * ODD ^ i;
      return mixed;
    case STORING:
      if ((mixed & 4) != 0) *memory = mixed;
      return mixed;
    case NESTED:
      for (int i = 0; i < INNER; i++) x = called(STRAIGHT, x, memory);
      return x;
    default: return mixed;
  }
}

typedef struct {
  uint32_t uint, pointer, function, one, two, odd, four, zero, fifteen, truth;
} names_of;

/* uint step(uint x, global uint *memory) */
static uint32_t put_function(generator *g, form f, const names_of *n, uint32_t inner) {
  uint32_t id = g->bound++, x = g->bound++, memory = g->bound++;
  EMIT(54, n->uint, id, 0, n->function);
  EMIT(55, n->uint, x);
  EMIT(55, n->pointer, memory);
  uint32_t entry = g->bound++, yes = g->bound++, no = g->bound++, join = g->bound++;
  put(&g->body, 248, 1, &entry);
  if (f == NESTED) {
    for (int i = 0; i < INNER; i++) x = MAKE(57, n->uint, inner, x, memory);
    EMIT(254, x);
    put(&g->body, 56, 0, NULL);
    return id;
  }
  uint32_t mixed = MAKE(132, n->uint, MAKE(198, n->uint, x, MAKE(194, n->uint, x, n->fifteen)), n->odd), result = mixed;
  uint32_t set = f == STRAIGHT || f == LOOP ? 0 : MAKE(171, n->truth, MAKE(199, n->uint, mixed, n->four), n->zero);
  if (f == CHOICE) {
    EMIT(250, set, yes, no);
    put(&g->body, 248, 1, &yes);
    uint32_t product = MAKE(132, n->uint, mixed, n->odd);
    EMIT(249, join);
    put(&g->body, 248, 1, &no);
    uint32_t half = MAKE(194, n->uint, mixed, n->one);
    EMIT(249, join);
    put(&g->body, 248, 1, &join);
    result = MAKE(245, n->uint, product, yes, half, no);
  } else if (f == EARLY) {
    EMIT(250, set, yes, no);
    put(&g->body, 248, 1, &yes);
    EMIT(254, x);
    put(&g->body, 248, 1, &no);
  } else if (f == STORING) {
    EMIT(250, set, yes, join);
    put(&g->body, 248, 1, &yes);
    EMIT(62, memory, mixed, 2, 4);
    EMIT(249, join);
    put(&g->body, 248, 1, &join);
  } else if (f == LOOP) {
    EMIT(249, yes);
    put(&g->body, 248, 1, &yes);
    uint32_t i = MAKE(245, n->uint, n->zero, entry, 0, no), open = g->body.count - 2;
    uint32_t value = MAKE(245, n->uint, mixed, entry, 0, no), other = g->body.count - 2;
    EMIT(250, MAKE(176, n->truth, i, n->two), no, join);
    put(&g->body, 248, 1, &no);
    uint32_t next = MAKE(198, n->uint, MAKE(132, n->uint, value, n->odd), i), more = MAKE(128, n->uint, i, n->one);
    g->body.words[other] = next;
    g->body.words[open] = more;
    EMIT(249, yes);
    put(&g->body, 248, 1, &join);
    result = value;
  }
  EMIT(254, result);
  put(&g->body, 56, 0, NULL);
  return id;
}

/* kernel void f(global uint *numbers, global uint *memory): each item's number goes through so many calls. */
static spirv_program *calling(form f, uint32_t calls) {
  generator all = {.bound = 1}, *g = &all;
  uint32_t model[] = {2, 2}, kernel = g->bound++, id = g->bound++, entry[] = {6, kernel, 'f', id};
  for (uint32_t i = 0; i < 3; i++) put(&g->head, 17, 1, &(uint32_t[]){4, 6, 11}[i]); /* Addresses, Kernel, Int64 */
  put(&g->head, 14, 2, model);
  put(&g->head, 15, 4, entry);
  put(&g->head, 71, LIST(id, 11, 28));
  uint32_t nothing = declared(g, 19, 0, 0, NULL), wide = type_of(g, U64), wides = TYPE(23, wide, 3);
  names_of n = {.uint = type_of(g, U32), .truth = type_of(g, TRUTH)};
  n.pointer = TYPE(32, GLOBAL, n.uint);
  n.function = TYPE(33, n.uint, n.uint, n.pointer);
  n.zero = number(g, BITS32, 0), n.one = number(g, BITS32, 1), n.two = number(g, BITS32, 2);
  n.four = number(g, BITS32, 4), n.fifteen = number(g, BITS32, 15), n.odd = number(g, BITS32, ODD);
  uint32_t signature = TYPE(33, nothing, n.pointer, n.pointer);
  put(&g->types, 59, LIST(TYPE(32, INPUT, wides), id, INPUT));
  uint32_t inner = f == NESTED ? put_function(g, STRAIGHT, &n, 0) : 0, function = put_function(g, f, &n, inner);
  uint32_t numbers = g->bound++, memory = g->bound++, label = g->bound++;
  EMIT(54, nothing, kernel, 0, signature);
  EMIT(55, n.pointer, numbers);
  EMIT(55, n.pointer, memory);
  put(&g->body, 248, 1, &label);
  uint32_t item = MAKE(81, wide, MAKE(61, wides, id), 0);
  uint32_t place = MAKE(67, n.pointer, numbers, item), own = MAKE(67, n.pointer, memory, item);
  uint32_t x = MAKE(61, n.uint, place, 2, 4);
  for (uint32_t i = 0; i < calls; i++) x = MAKE(57, n.uint, function, x, own);
  EMIT(62, place, x, 2, 4);
  put(&g->body, 253, 0, NULL);
  put(&g->body, 56, 0, NULL);
  uint32_t count, *words = joined(g, &count);
  spirv_program *program = decode(words, 4 * (size_t)count);
  if (program == NULL) fprintf(stderr, "%s: %s\n", names[f], last_log);
  CHECK(program != NULL);
  free(words);
  return program;
}

/* Returns the processor's time for building it. */
static double build(form f, uint32_t calls) {
  static uint32_t *numbers, *memory;
  if (numbers == NULL) numbers = block(ITEMS * 4), memory = block(ITEMS * 4);
  uint32_t expected[ITEMS], own[ITEMS];
  for (uint32_t i = 0; i < ITEMS; i++) {
    expected[i] = numbers[i] = scrambled(i);
    own[i] = memory[i] = i;
    for (uint32_t k = 0; k < calls; k++) expected[i] = called(f, expected[i], &own[i]);
  }
  const void *arguments[] = {&numbers, &memory};
  clock_t before = clock();
  spirv_program *program = calling(f, calls);
  spirv_launch launch = launch_of(program, "f", arguments);
  spirv_result result;
  bool good = spirv_kernel_prepare(launch.kernel, &result);
  clock_t after = clock();
  if (!good) fprintf(stderr, "%s, %u calls: %s\n", names[f], calls, result.text);
  CHECK(good);
  launch.group_size[0] = ITEMS;
  run_well(&launch);
  CHECK(memcmp(numbers, expected, sizeof(expected)) == 0 && memcmp(memory, own, sizeof(own)) == 0);
  spirv_program_release(program);
  return (double)(after - before) / CLOCKS_PER_SEC;
}

static void the_limit_is_named(void) {
  spirv_limit_memory(1 << 20);
  spirv_program *program = calling(STRAIGHT, 10);
  spirv_program_release(program);
  program = calling(NESTED, 2000); /* the module is small, what it becomes is not */
  spirv_result result;
  CHECK(!spirv_kernel_prepare(spirv_program_kernel(program, "f"), &result));
  if (strstr(result.text, "more than 1 MiB") == NULL) fprintf(stderr, "%s\n", result.text);
  CHECK(strstr(result.text, "more than 1 MiB") != NULL && strstr(result.text, "L0RT_CPU_BUILD_MEMORY") != NULL);
  CHECK(strncmp(result.text, "kernel f: ", 10) == 0 && result.status == SPIRV_UNSUPPORTED);
  spirv_program_release(program);
}

int main(int argc, char **argv) {
  bool tells = argc > 1;
  spirv_limit_memory(argc > 3 ? (uint64_t)atoi(argv[3]) << 20 : BUDGET);
  for (form f = 0; f < FORMS; f++) {
    uint32_t most = f == NESTED ? CALLS / INNER : CALLS;
    if (tells && atoi(argv[1]) != (int)f) continue;
    if (tells) {
      printf("%s: %.3f s\n", names[f], build(f, argc > 2 ? (uint32_t)atoi(argv[2]) : most));
      continue;
    }
    for (uint32_t calls = 0; calls < 4; calls++) build(f, calls);
    /* Eight times as many calls take eight times as long; by the square of their number it would be 64 times. */
    bool linear = false;
    for (int attempt = 0; attempt < 5 && !linear; attempt++) linear = build(f, most) < 24 * build(f, most / 8);
    if (!linear) fprintf(stderr, "%s\n", names[f]);
    CHECK(linear);
  }
  if (!tells) the_limit_is_named();
  free_blocks();
  printf("spirv_calls: ok\n");
  return 0;
}
