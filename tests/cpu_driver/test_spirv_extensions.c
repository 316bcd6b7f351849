/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_extensions.c: reductions of clusters, rotations, and dot products of integers, against C. */
#include "assembler.h"

enum { VOID = 1, UINT, ULONG, ULONG3, INPUT, TO_UINT, SIGNATURE, ID, MAIN, LABEL, NARROW, VECTOR, REAL, BOOL };
enum { SCOPE = 20, SIZE, FIRST, SECOND, TO, THREE, INDEX, PLACE, A, B, C, RESULT, ANSWER, ZERO, BOUND };
enum { SUBGROUP = 3, REDUCE = 0, CLUSTERED = 3, ITEMS = 3 * 70, GROUP = 70 };

/* Around what `put` adds: kernel void f(uint *first, uint *second, uint *to), which reads A and B, puts ANSWER, and has
 * what was in `to` as C. */
static spirv_program *program_around(void (*put)(assembly *, const void *), const void *what, uint32_t scope,
                                     uint32_t number) {
  assembly one = {.words = {0x07230203, 0x00010600, 0, BOUND, 0}, .count = 5}, *a = &one;
  PUT(17, 6);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f', ID);
  PUT(71, ID, 11, 28);
  PUT(19, VOID);
  PUT(20, BOOL);
  PUT(21, UINT, 32, 0);
  PUT(21, ULONG, 64, 0);
  PUT(21, NARROW, 8, 0);
  PUT(22, REAL, 32);
  PUT(23, ULONG3, ULONG, 3);
  PUT(23, VECTOR, NARROW, 4);
  PUT(32, INPUT, 1, ULONG3);
  PUT(32, TO_UINT, 5, UINT);
  PUT(43, UINT, SCOPE, scope);
  PUT(43, UINT, SIZE, number);
  PUT(43, UINT, ZERO, 0);
  PUT(33, SIGNATURE, VOID, TO_UINT, TO_UINT, TO_UINT);
  PUT(59, INPUT, ID, 1);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(55, TO_UINT, FIRST);
  PUT(55, TO_UINT, SECOND);
  PUT(55, TO_UINT, TO);
  PUT(248, LABEL);
  PUT(61, ULONG3, THREE, ID, 2, 32);
  PUT(81, ULONG, INDEX, THREE, 0);
  uint32_t pointers[] = {FIRST, SECOND, TO}, values[] = {A, B, C};
  for (uint32_t i = 0; i < 3; i++) {
    PUT(70, TO_UINT, PLACE + BOUND * (i + 1), pointers[i], INDEX);
    PUT(61, UINT, values[i], PLACE + BOUND * (i + 1), 2, 4);
  }
  a->words[3] = 5 * BOUND;
  put(a, what);
  PUT(62, PLACE + BOUND * 3, ANSWER, 2, 4);
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
  return decode(one.words, 4 * (size_t)one.count);
}

static uint32_t *first, *second, *to, before[ITEMS];

static void run(spirv_program *program, uint64_t chaos) {
  if (program == NULL) fprintf(stderr, "%s\n", last_log);
  CHECK(program != NULL);
  memcpy(to, before, sizeof(before));
  const void *arguments[] = {&first, &second, &to};
  spirv_launch launch = launch_of(program, "f", arguments);
  launch.group_size[0] = GROUP;
  launch.group_count[0] = ITEMS / GROUP;
  launch.chaos = chaos;
  run_well(&launch);
  spirv_program_release(program);
}

/* ---- Clusters ---------------------------------------------------------------------------------------------------- */

static uint32_t as_real(uint32_t v) {
  float f = v % 3 == 0 ? 2.0f : v % 3 == 1 ? 0.5f : -1.0f;
  memcpy(&v, &f, 4);
  return v;
}

static uint32_t add_reals(uint32_t a, uint32_t b) {
  float x, y;
  memcpy(&x, &a, 4);
  memcpy(&y, &b, 4);
  x += y;
  memcpy(&a, &x, 4);
  return a;
}

static uint32_t add(uint32_t a, uint32_t b) { return a + b; }
static uint32_t smaller(uint32_t a, uint32_t b) { return (int32_t)a < (int32_t)b ? a : b; }
static uint32_t either(uint32_t a, uint32_t b) { return a | b; }

typedef struct {
  uint32_t op, type;
  uint32_t (*combine)(uint32_t a, uint32_t b);
} reducing;

static const reducing reductions[] = {
    {349, UINT, add}, {350, REAL, add_reals}, {353, UINT, smaller}, {360, UINT, either}};

static void put_reduction(assembly *a, const void *what) {
  const reducing *r = what;
  uint32_t value = A;
  if (r->type == REAL) PUT(124, REAL, value = B + BOUND, A); /* Bitcast */
  PUT(r->op, r->type, RESULT, SCOPE, CLUSTERED, value, SIZE);
  PUT(124, UINT, ANSWER, RESULT);
}

static void test_clusters(const reducing *r, uint32_t size, uint64_t chaos) {
  for (uint32_t i = 0; i < ITEMS; i++) first[i] = r->type == REAL ? as_real(scrambled(i)) : scrambled(i + size);
  run(program_around(put_reduction, r, SUBGROUP, size), chaos);
  uint32_t width = size < SPIRV_SUBGROUP_SIZE ? size : SPIRV_SUBGROUP_SIZE;
  for (uint32_t i = 0; i < ITEMS; i++) {
    uint32_t group = i / GROUP * GROUP, wave = (i - group) / SPIRV_SUBGROUP_SIZE * SPIRV_SUBGROUP_SIZE + group;
    uint32_t end = group + GROUP, begin = wave + (i - wave) / width * width, all = first[begin];
    for (uint32_t k = begin + 1; k < begin + width && k < end; k++) all = r->combine(all, first[k]);
    if (to[i] != all) fprintf(stderr, "%u, clusters of %u: item %u: %08x, expected %08x\n", r->op, size, i, to[i], all);
    CHECK(to[i] == all);
  }
}

/* ---- Rotations --------------------------------------------------------------------------------------------------- */

static void put_rotation(assembly *a, const void *clustered) {
  if (*(const bool *)clustered) PUT(4431, UINT, ANSWER, SCOPE, A, B, SIZE);
  else PUT(4431, UINT, ANSWER, SCOPE, A, B);
}

/* The distance is one for all items of a sub-group, and may be longer than that. */
static void test_rotation(bool clustered, uint32_t size, uint32_t distance) {
  for (uint32_t i = 0; i < ITEMS; i++) first[i] = scrambled(i), second[i] = distance;
  run(program_around(put_rotation, &clustered, SUBGROUP, size), 0);
  uint32_t width = clustered ? size : SPIRV_SUBGROUP_SIZE;
  for (uint32_t i = 0; i < ITEMS; i++) {
    uint32_t group = i / GROUP * GROUP, wave = (i - group) / SPIRV_SUBGROUP_SIZE * SPIRV_SUBGROUP_SIZE + group;
    uint32_t begin = wave + (i - wave) / width * width, from = begin + (i - begin + distance) % width;
    if (from < group + GROUP) CHECK(to[i] == first[from]); /* else no item is there */
  }
}

/* ---- Dot products ------------------------------------------------------------------------------------------------ */

typedef struct {
  uint32_t op;
  bool vectors, first_signed, second_signed, accumulates;
} dotting;

static void put_dot(assembly *a, const void *what) {
  const dotting *d = what;
  uint32_t x = A, y = B;
  if (d->vectors) {
    PUT(124, VECTOR, x = A + BOUND, A);
    PUT(124, VECTOR, y = B + BOUND, B);
  }
  if (d->accumulates && d->vectors) PUT(d->op, UINT, ANSWER, x, y, C);
  else if (d->accumulates) PUT(d->op, UINT, ANSWER, x, y, C, 0);
  else if (d->vectors) PUT(d->op, UINT, ANSWER, x, y);
  else PUT(d->op, UINT, ANSWER, x, y, 0);
}

static int64_t dot(const dotting *d, uint32_t a, uint32_t b) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < 32; i += 8) {
    uint8_t x = (uint8_t)(a >> i), y = (uint8_t)(b >> i);
    sum += (int64_t)(d->first_signed ? (int8_t)x : x) * (d->second_signed ? (int8_t)y : y);
  }
  return sum;
}

static void test_dot(const dotting *d) {
  for (uint32_t i = 0; i < ITEMS; i++) first[i] = scrambled(i), second[i] = scrambled(i + 1000);
  run(program_around(put_dot, d, SUBGROUP, 0), 0);
  for (uint32_t i = 0; i < ITEMS; i++) {
    int64_t expected = dot(d, first[i], second[i]);
    if (d->accumulates && d->first_signed) {
      expected += (int32_t)before[i];
      expected = expected > INT32_MAX ? INT32_MAX : expected < INT32_MIN ? INT32_MIN : expected;
    } else if (d->accumulates) {
      expected += before[i];
      if (expected > UINT32_MAX) expected = UINT32_MAX;
    }
    if (to[i] != (uint32_t)expected)
      fprintf(stderr, "%u: item %u: %08x, expected %08llx\n", d->op, i, to[i], (unsigned long long)expected);
    CHECK(to[i] == (uint32_t)expected);
  }
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static uint32_t wrong_words[8], wrong_count;

static void put_wrong(assembly *a, const void *code) {
  put_words(a, *(const uint32_t *)code, wrong_count, wrong_words);
  PUT(128, UINT, ANSWER, A, B);
}

static void refuse(const char *why, uint32_t scope, uint32_t size, uint32_t op) {
  spirv_program *program = program_around(put_wrong, &op, scope, size);
  if (program != NULL) {
    const void *arguments[] = {&first, &second, &to};
    spirv_launch launch = launch_of(program, "f", arguments);
    spirv_result result;
    CHECK(!spirv_run(&launch, &result));
    note_log(NULL, result.text);
    spirv_program_release(program);
  }
  if (strstr(last_log, why) == NULL) fprintf(stderr, "%s, expected %s\n", last_log, why);
  CHECK(strstr(last_log, why) != NULL);
}

#define REFUSED(why, scope, size, code, ...)                                                                           \
  do {                                                                                                                 \
    wrong_count = sizeof((uint32_t[]){__VA_ARGS__}) / 4;                                                               \
    memcpy(wrong_words, (uint32_t[]){__VA_ARGS__}, 4 * (size_t)wrong_count);                                           \
    refuse(why, scope, size, code);                                                                                    \
  } while (0)

static void test_refused(void) {
  REFUSED("no power of two", SUBGROUP, 6, 349, UINT, RESULT, SCOPE, CLUSTERED, A, SIZE);
  REFUSED("no power of two", SUBGROUP, 0, 349, UINT, RESULT, SCOPE, CLUSTERED, A, SIZE);
  REFUSED("no power of two", SUBGROUP, 1u << 31, 349, UINT, RESULT, SCOPE, CLUSTERED, A, SIZE);
  REFUSED("no constant", SUBGROUP, 4, 349, UINT, RESULT, SCOPE, CLUSTERED, A, B);
  REFUSED("of this kind", SUBGROUP, 4, 349, UINT, RESULT, SCOPE, CLUSTERED, A);
  REFUSED("of this kind", SUBGROUP, 4, 349, UINT, RESULT, SCOPE, REDUCE, A, SIZE);
  REFUSED("of this kind", SUBGROUP, 4, 349, UINT, RESULT, SCOPE, 4, A, SIZE);
  REFUSED("clusters are of sub-groups", 2, 4, 349, UINT, RESULT, SCOPE, CLUSTERED, A, SIZE);
  REFUSED("no power of two", SUBGROUP, 12, 4431, UINT, RESULT, SCOPE, A, B, SIZE);
  REFUSED("no constant", SUBGROUP, 4, 4431, UINT, RESULT, SCOPE, A, B, C);
  REFUSED("OpSDot has 4 words, at least 5 are needed", SUBGROUP, 4, 4450, UINT, RESULT, A);
  REFUSED("packed vector", SUBGROUP, 4, 4450, UINT, RESULT, A, B);
  REFUSED("packed vector", SUBGROUP, 4, 4450, UINT, RESULT, A, B, 1);
  REFUSED("packed vector", SUBGROUP, 4, 4453, UINT, RESULT, A, B, C);
  REFUSED("other types", SUBGROUP, 4, 4450, UINT, RESULT, A, INDEX, 0);
  REFUSED("no integer", SUBGROUP, 4, 4450, REAL, RESULT, A, B, 0);
  REFUSED("packed vector", SUBGROUP, 4, 4450, NARROW, RESULT, INDEX, INDEX, 0);
  REFUSED("accumulator has another type", SUBGROUP, 4, 4453, UINT, RESULT, A, B, INDEX, 0);
}

int main(void) {
  first = block(ITEMS * 4), second = block(ITEMS * 4), to = block(ITEMS * 4);
  for (uint32_t i = 0; i < ITEMS; i++)
    before[i] = i % 3 == 0 ? UINT32_MAX - i : i % 3 == 1 ? INT32_MAX - i : scrambled(i);
  for (size_t i = 0; i < sizeof(reductions) / sizeof(reductions[0]); i++)
    for (uint32_t size = 1; size <= 64; size *= 2)
      for (uint64_t chaos = 0; chaos < 2; chaos++) test_clusters(&reductions[i], size, chaos);
  for (uint32_t distance = 0; distance < 70; distance += 3) {
    test_rotation(false, 1, distance);
    for (uint32_t size = 1; size <= SPIRV_SUBGROUP_SIZE; size *= 2) test_rotation(true, size, distance);
  }
  for (uint32_t op = 4450; op <= 4455; op++)
    for (int vectors = 0; vectors < 2; vectors++)
      test_dot(&(dotting){op, vectors, op % 3 != 2, op % 3 == 1, op >= 4453});
  test_refused();
  free_blocks();
  printf("spirv_extensions: ok\n");
  return 0;
}
