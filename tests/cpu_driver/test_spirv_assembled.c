/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_assembled.c: instructions that no compiler at hand emits, in modules put together here: the collectives of
 * SPV_KHR_uniform_group_instructions against C, asynchronous copies of structures, execution modes, and group sizes that
 * are specialization constants. */
#include "assembler.h"

enum { VOID = 1, BOOL, UINT, REAL32, ULONG, ULONG3, INPUT, TO_UINT, TO_FLOAT, SIGNATURE, ID, MAIN, LABEL };
enum { ZERO = 20, ONE, SCOPE, FROM, TO, THREE, INDEX, SOURCE, TARGET, VALUE, FLAG, RESULT, ANSWER, BOUND };
enum { REDUCE, INCLUSIVE, EXCLUSIVE };

static void put_types(assembly *a) {
  PUT(19, VOID);
  PUT(20, BOOL);
  PUT(21, UINT, 32, 0);
  PUT(22, REAL32, 32);
  PUT(21, ULONG, 64, 0);
  PUT(23, ULONG3, ULONG, 3);
  PUT(32, INPUT, 1, ULONG3);
  PUT(32, TO_UINT, 5, UINT);
  PUT(32, TO_FLOAT, 5, REAL32);
  PUT(43, UINT, ZERO, 0);
  PUT(43, UINT, ONE, 1);
}

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

typedef uint32_t combine(uint32_t a, uint32_t b);

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}

static uint32_t multiply(uint32_t a, uint32_t b) { return a * b; }
static uint32_t multiply_floats(uint32_t a, uint32_t b) { return bits_of(float_of(a) * float_of(b)); }
static uint32_t both(uint32_t a, uint32_t b) { return a & b; }
static uint32_t either(uint32_t a, uint32_t b) { return a | b; }
static uint32_t odd(uint32_t a, uint32_t b) { return a ^ b; }

static const struct {
  uint32_t op, type;
  uint32_t identity; /* what an exclusive scan begins with */
  combine *combine;
} collectives[] = {{6401, UINT, 1, multiply},      {6402, REAL32, 0x3f800000, multiply_floats},
                   {6403, UINT, UINT32_MAX, both}, {6404, UINT, 0, either},
                   {6405, UINT, 0, odd},           {6406, BOOL, 1, both},
                   {6407, BOOL, 0, either},        {6408, BOOL, 0, odd}};
enum { COLLECTIVES = sizeof(collectives) / sizeof(collectives[0]), ITEMS = 3 * 70 };

/* kernel void f(type *from, type *to): each item puts its result of the collective into `to`. Booleans are 0 or 1 there. */
static spirv_program *collecting(uint32_t op, uint32_t type, uint32_t scope, uint32_t scan) {
  assembly one = {.words = {0x07230203, 0x00010000, 0, BOUND, 0}, .count = 5}, *a = &one;
  uint32_t pointer = type == REAL32 ? TO_FLOAT : TO_UINT, kept = type == REAL32 ? REAL32 : UINT;
  PUT(17, 6);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f', ID);
  PUT(71, ID, 11, 28);
  put_types(a);
  PUT(43, UINT, SCOPE, scope);
  PUT(33, SIGNATURE, VOID, pointer, pointer);
  PUT(59, INPUT, ID, 1);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(55, pointer, FROM);
  PUT(55, pointer, TO);
  PUT(248, LABEL);
  PUT(61, ULONG3, THREE, ID, 2, 32);
  PUT(81, ULONG, INDEX, THREE, 0);
  PUT(70, pointer, SOURCE, FROM, INDEX);
  PUT(70, pointer, TARGET, TO, INDEX);
  PUT(61, kept, VALUE, SOURCE, 2, 4);
  if (type == BOOL) {
    PUT(171, BOOL, FLAG, VALUE, ZERO); /* INotEqual */
    PUT(op, BOOL, RESULT, SCOPE, scan, FLAG);
    PUT(169, UINT, ANSWER, RESULT, ONE, ZERO); /* Select */
  } else {
    PUT(op, type, RESULT, SCOPE, scan, VALUE);
  }
  PUT(62, TARGET, type == BOOL ? ANSWER : RESULT, 2, 4);
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
  spirv_program *program = decode(one.words, 4 * (size_t)one.count);
  if (program == NULL) fprintf(stderr, "instruction %u: %s\n", op, last_log);
  CHECK(program != NULL);
  return program;
}

static void test_collective(size_t which, uint32_t scope, uint32_t scan, uint32_t size, uint64_t chaos) {
  enum { WORKGROUP = 2 };
  static uint32_t *from, *to;
  if (from == NULL) from = block(ITEMS * 4), to = block(ITEMS * 4);
  uint32_t type = collectives[which].type;
  for (uint32_t i = 0; i < ITEMS; i++) {
    uint32_t v = scrambled(i * 7 + (uint32_t)which);
    if (type == UINT) from[i] = collectives[which].combine == multiply ? v | 1 : v;
    if (type == UINT && collectives[which].combine == both)
      from[i] = v | scrambled(v) | scrambled(v + 1) | scrambled(v + 2);
    if (type == REAL32) from[i] = bits_of(v % 3 == 0 ? 2.0f : v % 3 == 1 ? 0.5f : -1.0f);
    if (type == BOOL) from[i] = collectives[which].combine == both ? v % 40 != 0 : v % 40 == 0;
  }
  spirv_program *program = collecting(collectives[which].op, type, scope, scan);
  const void *arguments[] = {&from, &to};
  spirv_launch launch = launch_of(program, "f", arguments);
  launch.group_size[0] = size;
  launch.group_count[0] = ITEMS / size;
  launch.chaos = chaos;
  run_well(&launch);
  for (uint32_t group = 0; group < ITEMS / size; group++) {
    uint32_t width = scope == WORKGROUP ? size : SPIRV_SUBGROUP_SIZE;
    for (uint32_t first = 0; first < size; first += width) {
      uint32_t end = first + width < size ? first + width : size, *in = from + group * size,
               all = collectives[which].identity;
      for (uint32_t i = first; i < end; i++) all = collectives[which].combine(all, in[i]);
      uint32_t running = collectives[which].identity;
      for (uint32_t i = first; i < end; i++) {
        uint32_t before = running;
        running = collectives[which].combine(running, in[i]);
        uint32_t expected = scan == REDUCE ? all : scan == INCLUSIVE ? running : before;
        if (to[group * size + i] == expected) continue;
        fprintf(stderr, "instruction %u, scope %u, operation %u, groups of %u: item %u is %08x, expected %08x\n",
                collectives[which].op, scope, scan, size, group * size + i, to[group * size + i], expected);
        exit(1);
      }
    }
  }
  spirv_program_release(program);
}

/* ---- Asynchronous copies ----------------------------------------------------------------------------------------- */

static void test_copies(void) {
  enum { BYTES = SPIRV_MAX_LOCAL_BYTES };
  assembly a;
  spirv_result result;
  void *memory = block(BYTES);
  const void *arguments[] = {&memory, NULL};
  uint64_t locals[] = {0, BYTES};
  atomic_bool cancel = true;
  for (int empty = 0; empty < 2; empty++) {
    put_copying(&a, empty, empty ? UINT64_MAX : BYTES);
    spirv_program *program = decode(a.words, 4 * (size_t)a.count);
    if (program == NULL) fprintf(stderr, "%s\n", last_log);
    CHECK(program != NULL);
    spirv_launch launch = launch_of(program, "f", arguments);
    launch.local_sizes = locals;
    run_well(&launch); /* elements without bytes take no time, however many there are */
    launch.fuel = 4; /* a long copy takes some */
    CHECK(spirv_run(&launch, &result) == empty && result.status == (empty ? SPIRV_OK : SPIRV_OUT_OF_FUEL));
    launch.fuel = 0;
    launch.cancel = &cancel;
    CHECK(!spirv_run(&launch, &result) && result.status == SPIRV_CANCELLED);
    spirv_program_release(program);
  }
}

/* kernel void f(uint *from, uint *to): one copy of a constant number of bytes. */
static spirv_program *moving(uint32_t bytes) {
  assembly one = {.words = {0x07230203, 0x00010000, 0, BOUND, 0}, .count = 5}, *a = &one;
  PUT(17, 6);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f');
  put_types(a);
  PUT(43, UINT, SCOPE, bytes);
  PUT(33, SIGNATURE, VOID, TO_UINT, TO_UINT);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(55, TO_UINT, FROM);
  PUT(55, TO_UINT, TO);
  PUT(248, LABEL);
  PUT(64, TO, FROM, SCOPE); /* CopyMemorySized */
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
  return decode(one.words, 4 * (size_t)one.count);
}

/* Memory in parts of PART bytes: those that were looked for are one range where they are next to each other. */
enum { PART = 1 << 16, PARTS = 100 };
static struct {
  uint64_t begin;
  bool reached[PARTS];
} parted;

static bool find_part(void *context, uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift) {
  if (!find_block(context, address, write, begin, end, shift)) return false;
  if (*begin != parted.begin) return true;
  uint64_t last = *end, first = (address - *begin) / PART, behind = first + 1;
  CHECK(first < PARTS);
  parted.reached[first] = true;
  while (first > 0 && parted.reached[first - 1]) first--;
  while (behind < PARTS && parted.reached[behind]) behind++;
  *end = *begin + behind * PART < last ? *begin + behind * PART : last;
  *begin += first * PART;
  return true;
}

/* A long one takes fuel, and ends with its launch. */
static void test_moves(void) {
  enum { BYTES = (5 << 20) + 12 };
  uint32_t *from = block(BYTES), *to = block(BYTES);
  const void *arguments[] = {&from, &to};
  atomic_bool cancel = true;
  spirv_result result;
  spirv_program *program = moving(BYTES);
  CHECK(program != NULL);
  for (uint32_t i = 0; i < BYTES / 4; i++) from[i] = scrambled(i);
  spirv_launch launch = launch_of(program, "f", arguments);
  run_well(&launch);
  CHECK(memcmp(from, to, BYTES) == 0);
  parted.begin = (uint64_t)(uintptr_t)to; /* a copy is in more than one part */
  memset(to, 0, BYTES);
  launch.memory.find = find_part;
  run_well(&launch);
  CHECK(memcmp(from, to, BYTES) == 0 && parted.reached[0] && parted.reached[BYTES / PART]);
  launch.memory.find = find_block;
  launch.fuel = 4;
  CHECK(!spirv_run(&launch, &result) && result.status == SPIRV_OUT_OF_FUEL);
  launch.fuel = 0;
  launch.cancel = &cancel;
  memset(to, 0, BYTES);
  CHECK(!spirv_run(&launch, &result) && result.status == SPIRV_CANCELLED && to[BYTES / 4 - 1] == 0);
  spirv_program_release(program);
  program = moving(BYTES + 4); /* behind the end: nothing that is not there is touched */
  launch = launch_of(program, "f", arguments);
  CHECK(!spirv_run(&launch, &result) && result.status == SPIRV_BAD_ACCESS);
  spirv_program_release(program);
}

/* ---- Local memory ------------------------------------------------------------------------------------------------ */

/* kernel void f(local uint *from, global uint *to): to[0] = from[index]. */
static spirv_program *reading(uint32_t index) {
  enum { TO_LOCAL = BOUND, MORE };
  assembly one = {.words = {0x07230203, 0x00010000, 0, MORE, 0}, .count = 5}, *a = &one;
  PUT(17, 6);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f');
  put_types(a);
  PUT(32, TO_LOCAL, 4, UINT);
  PUT(43, UINT, SCOPE, index);
  PUT(33, SIGNATURE, VOID, TO_LOCAL, TO_UINT);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(55, TO_LOCAL, FROM);
  PUT(55, TO_UINT, TO);
  PUT(248, LABEL);
  PUT(70, TO_LOCAL, SOURCE, FROM, SCOPE);
  PUT(61, UINT, VALUE, SOURCE, 2, 4);
  PUT(62, TO, VALUE, 2, 4);
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
  return decode(one.words, 4 * (size_t)one.count);
}

/* A group has a power of two of bytes, at least 1 KiB, as on devices; none if it asks for none. */
static void test_local_bounds(void) {
  static const struct {
    uint32_t asked, has;
  } sizes[] = {{0, 0}, {4, 1024}, {1020, 1024}, {1024, 1024}, {1028, 2048}, {40000, 65536}, {65536, 65536}};
  uint32_t *to = block(4);
  const void *arguments[] = {NULL, &to};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
    for (int way = 0; way < 3; way++) { /* rounded; exact; with the race detector, which is exact too */
      uint64_t locals[] = {sizes[i].asked, 0};
      uint32_t end = way == 0 ? sizes[i].has : sizes[i].asked;
      for (uint32_t at = end < 8 ? 0 : end - 8; at <= end; at += 4) {
        spirv_program *program = reading(at / 4);
        CHECK(program != NULL);
        spirv_result result;
        spirv_launch launch = launch_of(program, "f", arguments);
        launch.local_sizes = locals;
        launch.exact = way == 1;
        launch.races = way == 2;
        bool good = spirv_run(&launch, &result);
        if (good != (at < end)) fprintf(stderr, "%u of %u bytes, way %d\n", at, sizes[i].asked, way);
        CHECK(good == (at < end) && (good || result.status == SPIRV_BAD_ACCESS));
        spirv_program_release(program);
      }
    }
}

/* ---- Modes ------------------------------------------------------------------------------------------------------- */

static spirv_program *sized(uint32_t op, uint32_t count, const uint32_t *mode, const spirv_constant *constant);

/* A kernel that is valid, but that the engine does not support, is refused when it is prepared. */
static void unsupported(spirv_program *program, const char *why) {
  spirv_result result;
  if (program == NULL) fprintf(stderr, "%s\n", last_log);
  CHECK(program != NULL && !spirv_kernel_prepare(spirv_program_kernel(program, "f"), &result));
  if (strcmp(result.text, why) != 0) fprintf(stderr, "%s, expected %s\n", result.text, why);
  CHECK(result.status == SPIRV_UNSUPPORTED && strcmp(result.text, why) == 0);
  spirv_program_release(program);
}

/* Modes that would change results are refused, as are those that nobody here knows; the others are taken. */
static void test_modes(void) {
  static const uint32_t taken[][2] = {{18, 4},    {30, 4},    {31, 0},   {4459, 32},
                                      {4461, 32}, {4462, 16}, {5893, 4}, {5895, 0}},
                        refused_modes[][2] = {{33, 0}, {34, 0}, {36, 4}, {4460, 32}, {4463, 32}, {5620, 32}, {9999, 0}};
  for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
    spirv_program *program = sized(16, taken[i][1] != 0 ? 3 : 2, (uint32_t[]){MAIN, taken[i][0], taken[i][1]}, NULL);
    if (program == NULL) fprintf(stderr, "%s\n", last_log);
    CHECK(program != NULL);
    spirv_program_release(program);
  }
  for (size_t i = 0; i < sizeof(refused_modes) / sizeof(refused_modes[0]); i++) {
    const uint32_t *mode = refused_modes[i];
    char why[64];
    snprintf(why, sizeof(why), "kernel f: offset 56: execution mode %u is not supported", mode[0]);
    unsupported(sized(16, mode[1] != 0 ? 3 : 2, (uint32_t[]){MAIN, mode[0], mode[1]}, NULL), why);
  }
}

/* ---- Sizes by constants ------------------------------------------------------------------------------------------ */

enum { SIZE = 30, OTHER, SUM, REAL, SIZES_BOUND };

/* kernel void f(void), whose mode is (SIZE, OTHER, SUM): 8, which SpecId 7 sets, 2, and 1 more than the first. */
static spirv_program *sized(uint32_t op, uint32_t count, const uint32_t *mode, const spirv_constant *constant) {
  assembly one = {.words = {0x07230203, 0x00010200, 0, SIZES_BOUND, 0}, .count = 5}, *a = &one;
  PUT(17, 6);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f');
  put_words(a, op, count, mode);
  PUT(71, SIZE, 1, 7); /* SpecId */
  put_types(a);
  PUT(50, UINT, SIZE, 8);
  PUT(43, UINT, OTHER, 2);
  PUT(52, UINT, SUM, 128, SIZE, ONE); /* IAdd */
  PUT(43, REAL32, REAL, 0x40000000);
  PUT(33, SIGNATURE, VOID);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(248, LABEL);
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
  spirv_binary binary = {.bytes = one.words, .size = 4 * (size_t)one.count};
  last_log[0] = '\0';
  return spirv_program_new(&(spirv_build){.binaries = &binary,
                                          .binary_count = 1,
                                          .constants = constant,
                                          .constant_count = constant != NULL,
                                          .log = note_log});
}
#define SIZED(constant, op, ...) sized(op, sizeof((uint32_t[]){__VA_ARGS__}) / 4, (uint32_t[]){__VA_ARGS__}, constant)

static void test_sizes(uint32_t first, const spirv_constant *constant) {
  spirv_program *program = SIZED(constant, 331, MAIN, 38, SIZE, OTHER, SUM);
  if (program == NULL) fprintf(stderr, "%s\n", last_log);
  CHECK(program != NULL);
  const uint32_t expected[3] = {first, 2, first + 1};
  spirv_launch launch = launch_of(program, "f", NULL);
  CHECK(memcmp(spirv_kernel_look(launch.kernel)->required_group_size, expected, sizeof(expected)) == 0);
  spirv_result result;
  CHECK(!spirv_run(&launch, &result) && result.status == SPIRV_BAD_LAUNCH);
  memcpy(launch.group_size, expected, sizeof(expected));
  run_well(&launch);
  spirv_program_release(program);
}

/* Two constants with SpecId 7, the second of `bits` bits: (first, second, 1) is the group size. */
static spirv_program *twice_specialised(uint32_t bits, const spirv_constant *constant) {
  assembly one = {.words = {0x07230203, 0x00010200, 0, SIZES_BOUND, 0}, .count = 5}, *a = &one;
  PUT(17, 11);
  PUT(17, 22);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f');
  PUT(331, MAIN, 38, SIZE, OTHER, ONE);
  PUT(71, SIZE, 1, 7);
  PUT(71, OTHER, 1, 7);
  put_types(a);
  PUT(21, REAL, bits == 32 ? 16 : bits, 0);
  PUT(50, UINT, SIZE, 8);
  if (bits == 32) PUT(50, UINT, OTHER, 3);
  else if (bits == 64) PUT(50, ULONG, OTHER, 3, 0);
  else PUT(50, REAL, OTHER, 3);
  PUT(33, SIGNATURE, VOID);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(248, LABEL);
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
  spirv_binary binary = {.bytes = one.words, .size = 4 * (size_t)one.count, .constants = constant, .constant_count = 1};
  binary.constant_count = constant != NULL;
  last_log[0] = '\0';
  return spirv_program_new(&(spirv_build){.binaries = &binary, .binary_count = 1, .log = note_log});
}

static void test_duplicates(void) {
  const spirv_constant five = {.id = 7, .size = 4, .value = &(uint32_t){5}};
  for (int set = 0; set < 2; set++) {
    spirv_program *program = twice_specialised(32, set ? &five : NULL);
    if (program == NULL) fprintf(stderr, "%s\n", last_log);
    CHECK(program != NULL);
    const uint32_t *size = spirv_kernel_look(spirv_program_kernel(program, "f"))->required_group_size;
    CHECK(size[0] == (set ? 5 : 8) && size[1] == (set ? 5 : 3) && size[2] == 1);
    spirv_program_release(program);
  }
  /* A value has one size: it is nothing for a constant of another, and is never read beyond its end. */
  for (uint32_t bits = 16; bits <= 64; bits *= 4) {
    spirv_program *program = twice_specialised(bits, NULL);
    CHECK(program != NULL);
    spirv_program_release(program);
    char why[80];
    snprintf(why, sizeof(why), "specialization constant 7 has %u bytes, not 4", bits / 8);
    CHECK(twice_specialised(bits, &five) == NULL);
    if (strstr(last_log, why) == NULL) fprintf(stderr, "%s\n", last_log);
    CHECK(strstr(last_log, why) != NULL);
  }
}

static void refused(spirv_program *program, const char *why) {
  if (program != NULL || strstr(last_log, why) == NULL) fprintf(stderr, "%s, expected %s\n", last_log, why);
  CHECK(program == NULL && strstr(last_log, why) != NULL);
  CHECK(strncmp(last_log, "error: offset 56: ", 18) == 0);
}

int main(void) {
  const spirv_constant zero = {.id = 7, .size = 4, .value = &(uint32_t){0}};
  for (size_t which = 0; which < COLLECTIVES; which++)
    for (uint32_t scan = REDUCE; scan <= EXCLUSIVE; scan++)
      for (uint32_t scope = 2; scope <= 3; scope++)
        for (uint64_t chaos = 0; chaos < 2; chaos++) {
          test_collective(which, scope, scan, 70, chaos);
          test_collective(which, scope, scan, 210, chaos);
        }
  test_duplicates();
  test_copies();
  test_moves();
  test_local_bounds();
  test_modes();
  test_sizes(8, NULL);
  test_sizes(5, &(spirv_constant){.id = 7, .size = 4, .value = &(uint32_t){5}});
  spirv_program *hint = SIZED(NULL, 331, MAIN, 39, SIZE, OTHER, SUM);
  CHECK(hint != NULL && spirv_kernel_look(spirv_program_kernel(hint, "f"))->required_group_size[0] == 0);
  spirv_program_release(hint);
  refused(SIZED(NULL, 16, MAIN, 38, SIZE, OTHER, SUM), "LocalSizeId is a mode of OpExecutionModeId");
  refused(SIZED(NULL, 331, MAIN, 38, SIZE, OTHER), "LocalSizeId needs three constants");
  refused(SIZED(NULL, 331, MAIN, 38, SIZE, OTHER, REAL), "LocalSizeId needs three constant integers");
  refused(SIZED(NULL, 331, MAIN, 38, SIZE, OTHER, UINT), "LocalSizeId needs three constant integers");
  refused(SIZED(NULL, 331, MAIN, 38, SIZE, OTHER, ZERO), "a local size of 0");
  refused(SIZED(NULL, 331, MAIN, 38, SIZE, OTHER, 99), "id 99 is not below the bound 34");
  unsupported(SIZED(NULL, 16, MAIN, 36, 4), "kernel f: offset 56: execution mode 36 is not supported");
  unsupported(SIZED(NULL, 331, MAIN, 37, SIZE), "kernel f: offset 56: execution mode 37 is not supported");
  refused(SIZED(&zero, 331, MAIN, 38, SIZE, OTHER, SUM), "a local size of 0");
  free_blocks();
  printf("spirv_assembled: ok\n");
  return 0;
}
