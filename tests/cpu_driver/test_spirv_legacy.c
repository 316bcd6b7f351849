/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_legacy.c: the atomics of OpenCL 1.x as LLVM leaves them, imports with mangled names: all names, types and
 * address spaces, against C. */
#include "assembler.h"

typedef struct {
  const char *name;
  uint32_t values;
} function;
static const function functions[] = {{"add", 1}, {"sub", 1}, {"xchg", 1}, {"inc", 0}, {"dec", 0}, {"cmpxchg", 2},
                                     {"min", 1}, {"max", 1}, {"and", 1},  {"or", 1},  {"xor", 1}};

static uint64_t changed(const char *name, char letter, uint64_t old, uint64_t v, uint64_t w) {
  bool wide = letter == 'l' || letter == 'm';
  int64_t s = wide ? (int64_t)old : (int32_t)old, t = wide ? (int64_t)v : (int32_t)v;
  bool less = letter == 'i' || letter == 'l' ? s < t : old < v;
  if (strcmp(name, "add") == 0) return old + v;
  if (strcmp(name, "sub") == 0) return old - v;
  if (strcmp(name, "xchg") == 0) return v;
  if (strcmp(name, "inc") == 0) return old + 1;
  if (strcmp(name, "dec") == 0) return old - 1;
  if (strcmp(name, "cmpxchg") == 0) return old == v ? w : old; /* the comparand comes first */
  if (strcmp(name, "min") == 0) return less ? old : v;
  if (strcmp(name, "max") == 0) return less ? v : old;
  if (strcmp(name, "and") == 0) return old & v;
  if (strcmp(name, "or") == 0) return old | v;
  return old ^ v;
}

static void put_text(uint32_t *words, uint32_t *count, const char *text) {
  size_t size = strlen(text) / 4 + 1;
  memset(words + *count, 0, 4 * size);
  memcpy(words + *count, text, strlen(text));
  *count += (uint32_t)size;
}

/* kernel void f(global T *cell, global T *out, T v, T w): out[0] is what the function returns. With `bytes` the pointer is
 * one to bytes, as LLVM's are that have no type. */
static spirv_program *calling(const char *name, char letter, uint32_t values, bool bytes) {
  enum { VOID = 1, TYPE, POINTER, BYTE, CELL, IMPORTED, SIGNATURE, ATOMIC, MAIN, LABEL, A, B, V, W, RESULT, P, Q, R };
  enum { BOUND = R + 1 };
  assembly one = {.words = {0x07230203, 0x00010000, 0, BOUND, 0}, .count = 5}, *a = &one;
  static const uint32_t capabilities[] = {4, 5, 6, 10, 11, 39}; /* Addresses, Linkage, Kernel, Float64, Int64, Int8 */
  for (size_t i = 0; i < sizeof(capabilities) / 4; i++) PUT(17, capabilities[i]);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f');
  uint32_t words[24] = {ATOMIC, 41}, count = 2; /* LinkageAttributes */
  put_text(words, &count, name);
  words[count++] = 1; /* Import */
  put_words(a, 71, count, words);
  PUT(19, VOID);
  if (letter == 'f') PUT(22, TYPE, 32);
  else PUT(21, TYPE, letter == 'l' || letter == 'm' ? 64 : 32, 0);
  PUT(32, POINTER, 5, TYPE);
  uint32_t cell = POINTER;
  if (bytes) {
    cell = CELL;
    PUT(21, BYTE, 8, 0);
    PUT(32, CELL, 5, BYTE);
  }
  uint32_t type[] = {IMPORTED, TYPE, cell, TYPE, TYPE};
  put_words(a, 33, 3 + values, type);
  PUT(33, SIGNATURE, VOID, cell, POINTER, TYPE, TYPE);
  PUT(54, TYPE, ATOMIC, 0, IMPORTED);
  PUT(55, cell, P);
  for (uint32_t v = 0; v < values; v++) PUT(55, TYPE, Q + v);
  put_words(a, 56, 0, words);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(55, cell, A);
  PUT(55, POINTER, B);
  PUT(55, TYPE, V);
  PUT(55, TYPE, W);
  PUT(248, LABEL);
  uint32_t call[] = {TYPE, RESULT, ATOMIC, A, V, W};
  put_words(a, 57, 4 + values, call);
  PUT(62, B, RESULT, 2, 4);
  put_words(a, 253, 0, words);
  put_words(a, 56, 0, words);
  return decode(one.words, 4 * (size_t)one.count);
}

static void one_function(const function *f, const char *prefix, char letter, bool bytes) {
  static const uint64_t numbers[] = {0,          1,         5, 0x7fffffff, 0x80000000, 0xffffffff, 0x123456789abcdef0,
                                     UINT64_MAX, 1ull << 63};
  enum { NUMBERS = sizeof(numbers) / sizeof(numbers[0]) };
  static uint64_t *cell, *out;
  if (cell == NULL) cell = block(8), out = block(8);
  char name[60], letters[4] = {letter, letter, letter, '\0'};
  letters[f->values + (f->values == 0)] = '\0';
  snprintf(name, sizeof(name), "_Z%zu%s%sPU3AS1V%c%.*s", strlen(prefix) + strlen(f->name), prefix, f->name, letter,
           (int)f->values, letters);
  spirv_program *program = calling(name, letter, f->values, bytes);
  if (program == NULL) fprintf(stderr, "%s: %s\n", name, last_log);
  CHECK(program != NULL && spirv_program_import(program, 0) == NULL);
  uint64_t mask = letter == 'l' || letter == 'm' ? UINT64_MAX : UINT32_MAX;
  for (uint32_t i = 0; i < NUMBERS * NUMBERS; i++) {
    uint64_t old = numbers[i / NUMBERS] & mask, v = numbers[i % NUMBERS] & mask,
             w = numbers[(i * 5 + 1) % NUMBERS] & mask;
    *cell = old;
    *out = 0;
    const void *arguments[] = {&cell, &out, &v, &w};
    spirv_launch launch = launch_of(program, "f", arguments);
    run_well(&launch);
    uint64_t wanted = changed(f->name, letter, old, v, w) & mask;
    if (*cell == wanted && *out == old) continue;
    fprintf(stderr, "%s of %llx with %llx, %llx makes %llx, expected %llx, and returns %llx\n", name,
            (unsigned long long)old, (unsigned long long)v, (unsigned long long)w, (unsigned long long)*cell,
            (unsigned long long)wanted, (unsigned long long)*out);
    exit(1);
  }
  spirv_program_release(program);
}

/* What is none of them stays an import, and the kernel that needs it cannot run. */
static void others_are_refused(void) {
  static const char *const names[] = {"_Z11atomic_nandPU3AS1Vjj", "_Z10atomic_addPU3AS1jj", "_Z9atom_"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    spirv_program *program = calling(names[i], 'j', 1, false);
    spirv_result result;
    CHECK(program == NULL || !spirv_kernel_prepare(spirv_program_kernel(program, "f"), &result));
    if (program != NULL) spirv_program_release(program);
  }
}

int main(void) {
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
    for (const char *letter = "ijlmf"; *letter != '\0'; letter++)
      for (int bytes = 0; bytes < 2; bytes++) {
        if (*letter == 'f' && strcmp(functions[i].name, "xchg") != 0) continue;
        one_function(&functions[i], "atomic_", *letter, bytes);
        one_function(&functions[i], "atom_", *letter, bytes);
      }
  others_are_refused();
  free_blocks();
  printf("spirv_legacy: ok\n");
  return 0;
}
