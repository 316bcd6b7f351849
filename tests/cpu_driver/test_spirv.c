/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv.c: kernels of one work-item's work against the same source compiled as C, in all the ways of sweep.h. */
#include "sweep.h"

typedef uint8_t uchar;
typedef uint16_t ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char schar;

static uint32_t item;
static float as_float(uint v) {
  float f;
  memcpy(&f, &v, 4);
  return f;
}
static uint as_uint(float f) {
  uint v;
  memcpy(&v, &f, 4);
  return v;
}
#define char schar /* OpenCL's is signed everywhere */
#define KERNEL(name)                                                                                                   \
  static void c_##name(const uint *x __attribute__((unused)), const uint *y __attribute__((unused)), uint *out, uint n)
#define TABLE static const
#define INDEX() item
#pragma GCC diagnostic ignored "-Wimplicit-fallthrough" /* one falls through on purpose */
#include "kernels/scalars.cl"
#undef char

typedef void reference(const uint *x, const uint *y, uint *out, uint n);
static const struct {
  const char *name;
  reference *run;
} kernels[] = {
#define ROW(name) {#name, c_##name}
    ROW(add),          ROW(integers),    ROW(bytes),       ROW(shorts),  ROW(longs),         ROW(compares),
    ROW(floats),       ROW(doubles),     ROW(conversions), ROW(loops),   ROW(uniform_loops), ROW(collatz),
    ROW(switches),     ROW(wide_switch), ROW(gotos),       ROW(calls),   ROW(tables),        ROW(arrays),
    ROW(records),      ROW(choices),     ROW(pointers),    ROW(gathers), ROW(scatters),      ROW(random),
    ROW(small_memory), ROW(wide_memory), ROW(searches),    ROW(rows),    ROW(unchanging),    ROW(turns),
    ROW(sums),         ROW(masks)};
enum { KERNEL_COUNT = sizeof(kernels) / sizeof(kernels[0]), N = 1500 };

static uint32_t *x, *y, *out, *expected[KERNEL_COUNT];

static void run_all(const sweep *s) {
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    uint32_t n = N;
    const void *arguments[] = {&x, &y, &out, &n};
    spirv_launch launch = sweep_launch(s, kernels[k].name, arguments);
    memset(out, 0, N * 4);
    run_well(&launch);
    for (uint32_t i = 0; i < N; i++) {
      if (out[i] == expected[k][i]) continue;
      fprintf(stderr, "%s, %s: item %u is %08x, expected %08x\n", kernels[k].name, s->where, i, out[i], expected[k][i]);
      exit(1);
    }
  }
}

int main(void) {
  x = block(N * 4);
  y = block(N * 4);
  out = block(N * 4);
  for (uint32_t i = 0; i < N; i++) {
    x[i] = scrambled(i);
    y[i] = i % 3 == 0 ? scrambled(i + 77) : scrambled(i + 99) >> (i % 32);
  }
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    expected[k] = calloc(N, 4);
    for (item = 0; item < N; item++) kernels[k].run(x, y, expected[k], N);
  }
  sweep_all("scalars.spv", N, run_all);
  for (size_t k = 0; k < KERNEL_COUNT; k++) free(expected[k]);
  free_blocks();
  printf("spirv: ok\n");
  return 0;
}
