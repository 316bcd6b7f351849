/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv.c: kernels of one work-item's work against the same source compiled as C, for every instruction set, width,
 * and shape of groups. */
#include "kernels.h"

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
    ROW(add),     ROW(integers),    ROW(bytes),  ROW(shorts),        ROW(longs),      ROW(compares), ROW(floats),
    ROW(doubles), ROW(conversions), ROW(loops),  ROW(uniform_loops), ROW(collatz),    ROW(switches), ROW(wide_switch),
    ROW(gotos),   ROW(calls),       ROW(tables), ROW(arrays),        ROW(records),    ROW(choices),  ROW(pointers),
    ROW(gathers), ROW(scatters),    ROW(random), ROW(small_memory),  ROW(wide_memory)};
enum { KERNEL_COUNT = sizeof(kernels) / sizeof(kernels[0]), N = 1500 };

static const uint32_t shapes[][6] = {/* group size, group count */
                                     {256, 1, 1, 6, 1, 1},  {17, 1, 1, 89, 1, 1}, {1, 1, 1, 1501, 1, 1},
                                     {300, 1, 1, 6, 1, 1},  {7, 5, 1, 11, 4, 1},  {4, 4, 4, 3, 3, 3},
                                     {1000, 1, 1, 2, 1, 1}, {64, 1, 1, 24, 1, 1}};

static uint32_t *x, *y, *out, *expected[KERNEL_COUNT];

static void run_all(const spirv_program *program, const uint32_t *shape, spirv_workers *workers, const char *where) {
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    uint32_t n = N;
    const void *arguments[] = {&x, &y, &out, &n};
    spirv_launch launch = launch_of(program, kernels[k].name, arguments);
    memcpy(launch.group_size, shape, 12);
    memcpy(launch.group_count, shape + 3, 12);
    launch.workers = workers;
    memset(out, 0, N * 4);
    run_well(&launch);
    for (uint32_t i = 0; i < N; i++) {
      if (out[i] == expected[k][i]) continue;
      fprintf(stderr, "%s, %s, groups of %u %u %u: item %u is %08x, expected %08x\n", kernels[k].name, where, shape[0],
              shape[1], shape[2], i, out[i], expected[k][i]);
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
#ifdef __SANITIZE_THREAD__ /* sees each lane of each register, which takes minutes; threads meet in all widths alike */
  static const char *const sets[] = {"sse2"};
  static const uint32_t widths[] = {0};
#else
  static const char *const sets[] = {"sse2", "avx2", "avx512"};
  static const uint32_t widths[] = {32, 64, 128, 256, 0};
#endif
  spirv_workers *workers = spirv_workers_new(2);
  for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
    if (!spirv_use_instruction_set(sets[s])) continue;
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
      spirv_use_width(widths[w]); /* of kernels prepared from now on */
      spirv_program *program = program_of("scalars.spv");
      for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++)
        run_all(program, shapes[shape], shape % 2 == 0 ? NULL : workers, sets[s]);
      spirv_program_release(program);
    }
  }
  spirv_workers_free(workers);
  for (size_t k = 0; k < KERNEL_COUNT; k++) free(expected[k]);
  free_blocks();
  printf("spirv: ok\n");
  return 0;
}
