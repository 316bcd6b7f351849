/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_llvm.c: LLVM's own functions that modules leave as imports, of every type and width of vectors, against C;
 * and conversions to and from brain floats, all of them. */
#include "arithmetic.h"

enum { ITEMS = 512 };

typedef uint64_t reference(uint32_t bits, uint64_t a, uint64_t b, uint64_t c);

#define S(v) sign_extended(v, bits)
#define REAL(v) real_of(v, bits)

static uint64_t uadd_sat(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {
  (void)c;
  return saturated((signed_wide)a + (signed_wide)b, bits, false);
}
static uint64_t sadd_sat(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {
  (void)c;
  return saturated((signed_wide)S(a) + S(b), bits, true);
}
static uint64_t usub_sat(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {
  (void)bits, (void)c;
  return a < b ? 0 : a - b;
}
static uint64_t ssub_sat(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {
  (void)c;
  return saturated((signed_wide)S(a) - S(b), bits, true);
}

/* X(name, operands: i integers, f floats, F one float and integers of 32 bits, t a true bool; C expression) */
#define SIMPLE(X)                                                                                                      \
  X(umin, "ii", a < b ? a : b)                                                                                         \
  X(umax, "ii", a > b ? a : b)                                                                                         \
  X(smin, "ii", S(a) < S(b) ? a : b)                                                                                   \
  X(smax, "ii", S(a) > S(b) ? a : b)                                                                                   \
  X(abs, "it", cut(S(a) < 0 ? 0 - a : a, bits))                                                                        \
  X(ctpop, "i", count_bits(a))                                                                                         \
  X(ctlz, "it", leading_zeros(a, bits))                                                                                \
  X(cttz, "it", a == 0 ? bits : (uint64_t)__builtin_ctzll(a))                                                          \
  X(fabs, "f", bits_of_real(fabs(REAL(a)), bits))                                                                      \
  X(sqrt, "f", bits_of_real(bits == 32 ? (double)sqrtf((float)REAL(a)) : sqrt(REAL(a)), bits))                         \
  X(floor, "f", bits_of_real(floor(REAL(a)), bits))                                                                    \
  X(ceil, "f", bits_of_real(ceil(REAL(a)), bits))                                                                      \
  X(trunc, "f", bits_of_real(trunc(REAL(a)), bits))                                                                    \
  X(round, "f", bits_of_real(round(REAL(a)), bits))                                                                    \
  X(rint, "f", bits_of_real(rint(REAL(a)), bits))                                                                      \
  X(nearbyint, "f", bits_of_real(rint(REAL(a)), bits))                                                                 \
  X(roundeven, "f", bits_of_real(rint(REAL(a)), bits))                                                                 \
  X(minnum, "ff", bits_of_real(fmin(REAL(a), REAL(b)), bits))                                                          \
  X(maxnum, "ff", bits_of_real(fmax(REAL(a), REAL(b)), bits))                                                          \
  X(copysign, "ff", bits_of_real(copysign(REAL(a), REAL(b)), bits))                                                    \
  X(powi, "fn", bits_of_real(pow(REAL(a), (double)(int32_t)b), bits))                                                  \
  X(fmuladd, "fff",                                                                                                    \
    bits_of_real(bits == 32 ? (double)fmaf((float)REAL(a), (float)REAL(b), (float)REAL(c))                             \
                            : fma(REAL(a), REAL(b), REAL(c)),                                                          \
                 bits))                                                                                                \
  X(fma, "fff",                                                                                                        \
    bits_of_real(bits == 32 ? (double)fmaf((float)REAL(a), (float)REAL(b), (float)REAL(c))                             \
                            : fma(REAL(a), REAL(b), REAL(c)),                                                          \
                 bits))

#define REFERENCE(name, operands, expression)                                                                          \
  static uint64_t c_##name(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {                                        \
    (void)bits, (void)b, (void)c;                                                                                      \
    return expression;                                                                                                 \
  }
SIMPLE(REFERENCE)

static uint64_t bitreverse(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t result = 0;
  (void)b, (void)c;
  for (uint32_t i = 0; i < bits; i++) result |= (a >> i & 1) << (bits - 1 - i);
  return result;
}
static uint64_t bswap(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {
  (void)b, (void)c;
  return __builtin_bswap64(a) >> (64 - bits);
}
static uint64_t fshl(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {
  return cut((uint64_t)((((wide)a << bits | b) << c % bits) >> bits), bits);
}
static uint64_t fshr(uint32_t bits, uint64_t a, uint64_t b, uint64_t c) {
  return cut((uint64_t)(((wide)a << bits | b) >> c % bits), bits);
}

/* Which bit of a class mask the number has. */
static uint32_t class_of(uint32_t bits, uint64_t v) {
  uint32_t fraction = bits == 16 ? 10 : bits == 32 ? 23 : 52;
  bool negative = v >> (bits - 1) & 1, quiet = v >> (fraction - 1) & 1;
  uint64_t parts = v & ((UINT64_C(1) << fraction) - 1), exponent = cut(v >> fraction, bits - 1 - fraction);
  bool highest = exponent == cut(UINT64_MAX, bits - 1 - fraction);
  if (highest && parts != 0) return quiet ? 1 : 0;
  if (highest) return negative ? 2 : 9;
  if (exponent != 0) return negative ? 3 : 8;
  if (parts != 0) return negative ? 4 : 7;
  return negative ? 5 : 6;
}

static const struct {
  const char *name, *operands;
  reference *run;
} functions[] = {
#define ROW(name, operands, expression) {#name, operands, c_##name},
    SIMPLE(ROW){"uadd.sat", "ii", uadd_sat},
    {"sadd.sat", "ii", sadd_sat},
    {"usub.sat", "ii", usub_sat},
    {"ssub.sat", "ii", ssub_sat},
    {"bitreverse", "i", bitreverse},
    {"bswap", "i", bswap},
    {"fshl", "iii", fshl},
    {"fshr", "iii", fshr}};

static void put_text(uint32_t *words, uint32_t *count, const char *text) {
  size_t size = strlen(text) / 4 + 1;
  memset(words + *count, 0, 4 * size);
  memcpy(words + *count, text, strlen(text));
  *count += (uint32_t)size;
}

/* kernel void f(global T *a, global T *b, global T *c, global R *result): each item calls the function `name`, or makes
 * `op` of a, for its element. `operands` as above; mask: the last operand, or 0. The result is of shape `to`; of bools 0 or
 * 1. Long: the module, section by section. */
static spirv_program *calling(const char *name, uint32_t op, const char *operands, shape s, shape to, uint32_t mask) {
  generator *g = calloc(1, sizeof(*g));
  CHECK(g != NULL);
  g->bound = g->state = 1;
  uint32_t kernel = g->bound++, id = g->bound++, function = g->bound++, entry[] = {6, kernel, 'f', id};
  put(&g->head, 17, 1, (uint32_t[]){6});
  put(&g->head, 14, 2, (uint32_t[]){2, 2});
  put(&g->head, 15, 4, entry);
  put(&g->head, 71, LIST(id, 11, 28));
  uint32_t words[40] = {function, 41}, count = 2;
  if (op == 0) {
    put_text(words, &count, name);
    words[count++] = 1;
    put(&g->head, 71, count, words);
  }
  shape of_call = mask != 0 ? (shape){BOOL, s.n} : to, ints = {BITS32, 1};
  uint32_t nothing = declared(g, 19, 0, 0, NULL), wide_type = type_of(g, U64), wides = TYPE(23, wide_type, 3);
  uint32_t input = TYPE(32, INPUT, wides), result = type_of(g, of_call), types[4] = {0}, pointers[4],
           signature[6] = {nothing};
  put(&g->types, 59, LIST(input, id, INPUT));
  uint32_t n = (uint32_t)strlen(operands);
  for (uint32_t i = 0; i < 4; i++) {
    shape part = i == 3 ? to : i < n && operands[i] == 'n' ? ints : s;
    types[i] = type_of(g, part);
    pointers[i] = signature[1 + i] = TYPE(32, GLOBAL, types[i]);
    if (i < n && operands[i] == 't') types[i] = type_of(g, TRUTH);
    if (i < n && operands[i] == 'p') types[i] = pointers[i];
  }
  if (mask != 0) types[n - 1] = type_of(g, U32);
  uint32_t kernel_type = declared(g, 33, 0, 5, signature);
  uint32_t called[5] = {result, types[0], types[1], types[2]}, function_type = declared(g, 33, 0, 1 + n, called);
  if (op == 0) {
    EMIT(54, result, function, 0, function_type);
    for (uint32_t i = 0; i < n; i++) EMIT(55, types[i], g->bound++);
    put(&g->body, 56, 0, NULL);
  }
  uint32_t parameters[4], places[4], call[5] = {function};
  EMIT(54, nothing, kernel, 0, kernel_type);
  for (uint32_t i = 0; i < 4; i++) {
    parameters[i] = g->bound++;
    EMIT(55, pointers[i], parameters[i]);
  }
  uint32_t label = g->bound++;
  put(&g->body, 248, 1, &label);
  uint32_t item = MAKE(81, wide_type, MAKE(61, wides, id), 0);
  for (uint32_t i = 0; i < 4; i++) places[i] = MAKE(67, pointers[i], parameters[i], item);
  for (uint32_t i = 0; i < n; i++) {
    if (operands[i] == 't') call[1 + i] = number(g, BOOL, 0);
    else if (operands[i] == 'p') call[1 + i] = places[i];
    else if (mask != 0 && i + 1 == n) call[1 + i] = number(g, BITS32, mask);
    else call[1 + i] = MAKE(61, types[i], places[i]);
  }
  uint32_t value = op != 0 ? MAKE(op, result, call[1]) : made(g, 57, result, n + 1, call);
  if (mask != 0) {
    uint32_t one[17] = {types[3]}, zero[17] = {types[3]}, yes = number(g, to.kind, 1), no = number(g, to.kind, 0);
    for (uint32_t i = 0; i < to.n; i++) one[1 + i] = yes, zero[1 + i] = no;
    if (to.n > 1) yes = declared(g, 44, 1, to.n + 1, one), no = declared(g, 44, 1, to.n + 1, zero);
    value = MAKE(169, types[3], value, yes, no);
  }
  EMIT(62, places[3], value);
  put(&g->body, 253, 0, NULL);
  put(&g->body, 56, 0, NULL);
  uint32_t size, *all = joined(g, &size);
  spirv_program *program = decode(all, 4 * (size_t)size);
  if (program == NULL) fprintf(stderr, "%s: %s\n", name, last_log);
  CHECK(program != NULL);
  free(all);
  free(g);
  return program;
}

static char *arrays[4];

static void run(spirv_program *program, uint32_t items) {
  const void *arguments[] = {&arrays[0], &arrays[1], &arrays[2], &arrays[3]};
  CHECK(spirv_program_import(program, 0) == NULL); /* nobody has to export it */
  spirv_launch launch = launch_of(program, "f", arguments);
  launch.group_size[0] = 64;
  launch.group_count[0] = items / 64;
  run_well(&launch);
  spirv_program_release(program);
}

static uint64_t element(int array, uint32_t bytes, uint64_t i) {
  uint64_t v = 0;
  memcpy(&v, arrays[array] + i * bytes, bytes);
  return v;
}

static void fill(kind k) {
  generator g = {.state = 12345 + k};
  uint32_t bytes = kind_bits[k] / 8;
  for (int array = 0; array < 3; array++)
    for (uint32_t i = 0; i < ITEMS * 4; i++) {
      uint64_t v = any_bits(&g, k);
      memcpy(arrays[array] + i * bytes, &v, bytes);
    }
}

static bool near_enough(const char *name, uint32_t bits, uint64_t got, uint64_t expected) {
  double x = real_of(got, bits), y = real_of(expected, bits);
  if (x != x || y != y) return x != x && y != y;
  if (strcmp(name + 3, "num") == 0 && x == 0 && y == 0) return true; /* either zero is the smaller one */
  if (strcmp(name, "powi") != 0) return got == expected;
  double unit = bits == 16 ? 0x1p-9 : bits == 32 ? 0x1p-20 : 0x1p-48;
  return x == y || fabs(x - y) <= unit * fabs(y) + (bits == 16 ? 0x1p-24 : bits == 32 ? 0x1p-149 : 0);
}

static void test_function(size_t f, kind k, uint32_t n) {
  const char *operands = functions[f].operands;
  char name[40];
  uint32_t bits = kind_bits[k], bytes = bits / 8;
  bool real = operands[0] == 'f', product = strcmp(functions[f].name, "fmuladd") == 0;
  snprintf(name, sizeof(name), n == 1 ? "llvm.%s.%.0u%c%u" : "llvm.%s.v%u%c%u", functions[f].name, n == 1 ? 0 : n,
           real ? 'f' : 'i', bits);
  fill(k);
  bool with_int = operands[1] == 'n';
  for (uint32_t i = 0; with_int && i < ITEMS; i++) ((int32_t *)(void *)arrays[1])[i] = (int32_t)(i % 15) - 7;
  if (with_int) strcat(name, ".i32");
  run(calling(name, 0, operands, (shape){k, n}, (shape){k, n}, 0), ITEMS);
  for (uint32_t i = 0; i < ITEMS * n; i++) {
    uint64_t a = element(0, bytes, i), b = with_int ? element(1, 4, i / n) : element(1, bytes, i);
    uint64_t c = element(2, bytes, i), got = element(3, bytes, i), expected = functions[f].run(bits, a, b, c);
    bool good = real ? near_enough(functions[f].name, bits, got, expected) : got == expected;
    if (!good && product) { /* rounded twice, as it may be */
      expected = bits_of_real(real_of(a, bits) * real_of(b, bits), bits);
      expected = bits_of_real(real_of(expected, bits) + real_of(c, bits), bits);
      good = near_enough("fma", bits, got, expected);
    }
    if (good) continue;
    fprintf(stderr, "%s(%llx, %llx, %llx) is %llx, expected %llx\n", name, (unsigned long long)a, (unsigned long long)b,
            (unsigned long long)c, (unsigned long long)got, (unsigned long long)expected);
    exit(1);
  }
}

/* Every class alone, and some together. */
static void test_classes(kind k, uint32_t n) {
  uint32_t bits = kind_bits[k], bytes = bits / 8;
  char name[40];
  snprintf(name, sizeof(name), n == 1 ? "llvm.is.fpclass.%.0uf%u" : "llvm.is.fpclass.v%uf%u", n == 1 ? 0 : n, bits);
  for (uint32_t i = 0; i < 14; i++) {
    uint32_t mask = i < 10 ? 1u << i : i == 10 ? 3 : i == 11 ? 0x204 : i == 12 ? 0x3ff : 0x1f8;
    generator g = {.state = 99 + i};
    for (uint32_t e = 0; e < ITEMS * n; e++) {
      uint64_t v = draw(&g, 2) == 0 ? any_bits(&g, k) : (uint64_t)draw(&g, 1u << 31) << 33 ^ draw(&g, 1u << 31);
      if (draw(&g, 3) == 0)
        v &= UINT64_MAX << (bits == 16 ? 9 : bits == 32 ? 22 : 51); /* few bits: infinities, zeros */
      if (draw(&g, 5) == 0) v |= bits == 16 ? 0x7c00 : bits == 32 ? 0x7f800000 : UINT64_C(0x7ff) << 52;
      memcpy(arrays[0] + e * bytes, &v, bytes);
    }
    run(calling(name, 0, "fi", (shape){k, n}, (shape){BITS32, n}, mask), ITEMS);
    for (uint32_t e = 0; e < ITEMS * n; e++) {
      uint32_t class = class_of(bits, element(0, bytes, e)), got = (uint32_t)element(3, 4, e);
      /* A half is a float in a register, where a signalling NaN is quiet. */
      if (bits == 16 && class < 2 && (mask & 3) != 3) continue;
      if (got == (mask >> class & 1)) continue;
      fprintf(stderr, "%s(%llx, %x) is %u\n", name, (unsigned long long)element(0, bytes, e), mask, got);
      exit(1);
    }
  }
}

/* To brain floats: each upper half with lower halves around the middle. Back: all of them. */
static spirv_program *brain_floats(uint32_t n, bool widens, bool imported) {
  shape real = {FLOAT, n}, half = {BITS16, n};
  if (imported)
    return calling(widens ? "__devicelib_ConvertBF16ToFINTEL" : "__devicelib_ConvertFToBF16INTEL", 0, "p",
                   widens ? half : real, widens ? real : half, 0);
  return calling("brain floats", widens ? 6117 : 6116, "i", widens ? half : real, widens ? real : half, 0);
}

static void test_brain_floats(uint32_t n, bool imported) {
  static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  for (uint32_t first = 0; first < 65536; first += ITEMS * n) {
    for (uint32_t l = 0; l < 6; l++) {
      for (uint32_t i = 0; i < ITEMS * n; i++) ((uint32_t *)(void *)arrays[0])[i] = (first + i) << 16 | lower[l];
      run(brain_floats(n, false, imported), ITEMS);
      for (uint32_t i = 0; i < ITEMS * n; i++) {
        uint32_t bits = (first + i) << 16 | lower[l], got = (uint32_t)element(3, 2, i), expected = bits >> 16;
        if ((bits & 0x7fffffff) > 0x7f800000) expected |= 0x40;
        else if (lower[l] > 0x8000 || (lower[l] == 0x8000 && (expected & 1) != 0)) expected++;
        CHECK(got == (expected & 0xffff));
      }
    }
    for (uint32_t i = 0; i < ITEMS * n; i++) ((uint16_t *)(void *)arrays[0])[i] = (uint16_t)(first + i);
    run(brain_floats(n, true, imported), ITEMS);
    for (uint32_t i = 0; i < ITEMS * n; i++) CHECK(element(3, 4, i) == (first + i) << 16);
  }
}

/* What is not in the table, or has another type in its name, is no function of the engine: nobody exports it. */
static void others_stay_imports(void) {
  static const char *const names[] = {"llvm.ctpop", "llvm.ctpop.", "llvm.ctpop.x32", "llvm.ctpopulation.i32",
                                      "llvm.",      "llvm.umin",   "lvm.umin.i32"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    spirv_program *program = calling(names[i], 0, "i", U32, U32, 0);
    const char *import = spirv_program_import(program, 0);
    CHECK(import != NULL && strcmp(import, names[i]) == 0);
    spirv_program_release(program);
  }
}

int main(void) {
  static const uint32_t counts[] = {1, 2, 4};
  for (int i = 0; i < 4; i++) arrays[i] = block(ITEMS * 4 * 8);
  for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++)
    for (int c = 0; c < 3; c++)
      for (kind k = BITS8; k < BOOL; k++) {
        bool real = functions[f].operands[0] == 'f';
        if (real != (k >= HALF)) continue;
        if (strcmp(functions[f].name, "bswap") == 0 && k == BITS8) continue;
        test_function(f, k, counts[c]);
      }
  for (kind k = HALF; k < BOOL; k++)
    for (int c = 0; c < 3; c++) test_classes(k, counts[c]);
  test_brain_floats(1, false);
  test_brain_floats(4, false);
  test_brain_floats(1, true); /* as functions of DPC++, of one number in memory */
  others_stay_imports();
  free_blocks();
  printf("spirv_llvm: ok\n");
  return 0;
}
