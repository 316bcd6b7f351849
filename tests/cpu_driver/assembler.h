/* SPDX-License-Identifier: Apache-2.0 */
/* assembler.h: modules with one kernel that calls one function of OpenCL.std on the elements of arrays. */
#ifndef L0RT_CPU_TEST_ASSEMBLER_H
#define L0RT_CPU_TEST_ASSEMBLER_H

#include "kernels.h"

typedef enum { INT8, INT16, INT32, INT64, HALF, FLOAT, DOUBLE } element;
static const uint32_t element_size[] = {1, 2, 4, 8, 2, 4, 8};

typedef struct {
  uint32_t function; /* its number in OpenCL.std */
  element operands[3];
  uint32_t count; /* of operands by value */
  element result;
  bool pointer; /* a last operand: where a second result goes */
  element stored;
  uint32_t uniform; /* a bit for each operand that is an argument by value */
} called;

typedef struct {
  uint32_t words[400];
  uint32_t count;
} assembly;

static inline void put_words(assembly *a, uint32_t code, uint32_t count, const uint32_t *operands) {
  CHECK(a->count + 1 + count <= sizeof(a->words) / 4);
  a->words[a->count] = (count + 1) << 16 | code;
  if (count != 0) memcpy(a->words + a->count + 1, operands, 4 * (size_t)count);
  a->count += 1 + count;
}
#define PUT(code, ...) put_words(a, code, sizeof((uint32_t[]){__VA_ARGS__}) / 4, (uint32_t[]){__VA_ARGS__})

/* kernel void f(global element *to, local element *from): copies `count` elements asynchronously, and waits for no event.
 * An element is a structure with one byte, or without any. */
static inline void put_copying(assembly *a, bool empty, uint64_t count) {
  enum { VOID = 1, UINT, ULONG, ELEMENT, GLOBAL, LOCAL, EVENT, SIGNATURE, BYTE, MAIN, TO, FROM, LABEL, SCOPE, COUNT };
  enum { STRIDE = COUNT + 1, NONE, COPIED, BOUND };
  *a = (assembly){.words = {0x07230203, 0x00010000, 0, BOUND, 0}, .count = 5};
  for (uint32_t capability = 4; capability <= 11; capability++)
    if (capability == 4 || capability == 6 || capability == 11) PUT(17, capability);
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f');
  PUT(19, VOID);
  PUT(21, UINT, 32, 0);
  PUT(21, ULONG, 64, 0);
  PUT(21, BYTE, 8, 0);
  if (empty) PUT(30, ELEMENT);
  else PUT(30, ELEMENT, BYTE);
  PUT(32, GLOBAL, 5, ELEMENT);
  PUT(32, LOCAL, 4, ELEMENT);
  PUT(34, EVENT);
  PUT(33, SIGNATURE, VOID, GLOBAL, LOCAL);
  PUT(43, UINT, SCOPE, 2);
  PUT(43, ULONG, COUNT, (uint32_t)count, (uint32_t)(count >> 32));
  PUT(43, ULONG, STRIDE, 1, 0);
  PUT(46, EVENT, NONE);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  PUT(55, GLOBAL, TO);
  PUT(55, LOCAL, FROM);
  PUT(248, LABEL);
  PUT(259, EVENT, COPIED, SCOPE, TO, FROM, COUNT, STRIDE, NONE);
  put_words(a, 253, 0, NULL);
  put_words(a, 56, 0, NULL);
}

/* kernel void f(first operands *, …, results *, second results *): each item takes and makes an element of each. Uniform
 * operands are values. */
// Long: the module's sections, in the order that the specification demands.
static inline spirv_program *program_calling(const called *c) {
  enum {
    SET = 1,
    VOID,
    ULONG3,
    INPUT,
    ID,
    SIGNATURE,
    MAIN,
    LABEL,
    THREE,
    INDEX,
    VALUE,
    ULONG,
    TYPES = 20,
    GLOBAL = 30,
    PARAMETERS = 40,
    PLACES = 50,
    VALUES = 60,
    BOUND = 70
  };
  assembly one = {.words = {0x07230203, 0x00010000, 0, BOUND, 0}, .count = 5}, *a = &one;
  element all[5];
  uint32_t n = c->count;
  memcpy(all, c->operands, sizeof(c->operands));
  all[n++] = c->result;
  if (c->pointer) all[n++] = c->stored;
  static const uint32_t capabilities[] = {4, 5, 6, 9, 10, 11, 22, 39}; /* Addresses … Float16, Float64, Int8, Int16 */
  for (size_t i = 0; i < sizeof(capabilities) / 4; i++) PUT(17, capabilities[i]);
  PUT(11, SET, 0x6e65704f, 0x732e4c43, 0x00006474); /* OpenCL.std */
  PUT(14, 2, 2);
  PUT(15, 6, MAIN, 'f', ID);
  PUT(71, ID, 11, 28); /* BuiltIn GlobalInvocationId */
  PUT(19, VOID);
  PUT(21, ULONG, 64, 0);
  PUT(23, ULONG3, ULONG, 3);
  PUT(32, INPUT, 1, ULONG3);
  bool there[7] = {[INT64] = true};
  uint32_t type[7];
  for (uint32_t k = 0; k < 7; k++) type[k] = k == INT64 ? (uint32_t)ULONG : TYPES + k;
  for (uint32_t i = 0; i < n; i++) {
    if (there[all[i]]) continue;
    there[all[i]] = true;
    if (all[i] < HALF) PUT(21, type[all[i]], 8 * element_size[all[i]], 0);
    else PUT(22, type[all[i]], 8 * element_size[all[i]]);
  }
  for (uint32_t k = 0; k < 7; k++)
    if (there[k]) PUT(32, GLOBAL + k, 5, type[k]);
  uint32_t signature[7] = {SIGNATURE, VOID};
  for (uint32_t i = 0; i < n; i++) signature[2 + i] = c->uniform >> i & 1 ? type[all[i]] : GLOBAL + all[i];
  put_words(a, 33, 2 + n, signature);
  PUT(59, INPUT, ID, 1);
  PUT(54, VOID, MAIN, 0, SIGNATURE);
  for (uint32_t i = 0; i < n; i++) PUT(55, signature[2 + i], PARAMETERS + i);
  PUT(248, LABEL);
  PUT(61, ULONG3, THREE, ID, 2, 32);
  PUT(81, ULONG, INDEX, THREE, 0);
  uint32_t call[9] = {type[c->result], VALUE, SET, c->function}, length = 4;
  for (uint32_t i = 0; i < n; i++) {
    if (c->uniform >> i & 1) {
      call[length++] = PARAMETERS + i;
      continue;
    }
    PUT(70, GLOBAL + all[i], PLACES + i, PARAMETERS + i, INDEX);
    if (i == c->count) continue;
    if (i < c->count) PUT(61, type[all[i]], VALUES + i, PLACES + i, 2, element_size[all[i]]);
    call[length++] = i < c->count ? VALUES + i : PLACES + i;
  }
  put_words(a, 12, length, call);
  PUT(62, PLACES + c->count, VALUE, 2, element_size[c->result]);
  put_words(a, 253, 0, call);
  put_words(a, 56, 0, call);
  spirv_program *program = decode(one.words, 4 * (size_t)one.count);
  if (program == NULL) fprintf(stderr, "function %u: %s\n", c->function, last_log);
  CHECK(program != NULL);
  return program;
}

/* The function on `count` elements; `arrays` are those of the operands, the results and the second results. Of a uniform
 * operand it is one element. */
static inline void call_function(const called *c, uint32_t count, void *const *arrays) {
  spirv_program *program = program_calling(c);
  const void *arguments[5];
  for (uint32_t i = 0; i < c->count + 1 + c->pointer; i++)
    arguments[i] = c->uniform >> i & 1 ? arrays[i] : (const void *)&arrays[i];
  spirv_launch launch = launch_of(program, "f", arguments);
  launch.group_size[0] = 256;
  launch.group_count[0] = count / 256;
  CHECK(count % 256 == 0);
  run_well(&launch);
  spirv_program_release(program);
}

#endif
