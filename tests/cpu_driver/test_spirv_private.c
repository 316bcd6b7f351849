/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_private.c: private arrays in loops, which the engine unrolls and keeps in registers where it can, against the
 * same text compiled for the host: in every instruction set and width, shape of groups, and with chaos. */
#include "sweep.h"

typedef uint8_t uchar;
typedef unsigned int uint;
enum { N = 300, WORDS = 8 };

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include "kernels/private.cl"
#pragma GCC diagnostic pop

static const struct {
  const char *name;
  void (*run)(uint i, uint a, uint b, uint *o);
  bool leaves; /* no access of private memory is left */
} kernels[] = {
#define ROW(name, leaves) {#name, name, leaves}
    ROW(tile, true),       ROW(schedule, true),    ROW(sorted, true),  ROW(divided, true),
    ROW(looked_up, false), ROW(left_early, false), ROW(counted, true), ROW(records, true),
    ROW(by_bytes, false),  ROW(initialised, true), ROW(carried, true), ROW(through_pointers, true),
    ROW(decided, true)};
enum { KERNEL_COUNT = sizeof(kernels) / sizeof(kernels[0]) };

static uint *x, *out, *expected[KERNEL_COUNT];

static void run_all(const sweep *s) {
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    uint n = N;
    const void *arguments[] = {&x, &out, &n};
    memset(out, 0xff, N * WORDS * 4);
    spirv_launch launch = sweep_launch(s, kernels[k].name, arguments);
    run_well(&launch);
    for (uint w = 0; w < N * WORDS; w++) {
      if (out[w] == expected[k][w]) continue;
      fprintf(stderr, "%s, %s: item %u, word %u is %08x, expected %08x (from %08x, %08x)\n", kernels[k].name, s->where,
              w / WORDS, w % WORDS, out[w], expected[k][w], x[w / WORDS * 2], x[w / WORDS * 2 + 1]);
      exit(1);
    }
  }
}

/* The bytes of private memory that a lane of each kernel has. */
static void check_memory(void) {
  spirv_program *program = program_of("private.spv");
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    const spirv_kernel *kernel = spirv_program_kernel(program, kernels[k].name);
    CHECK(spirv_kernel_prepare(kernel, NULL));
    uint bytes = (uint)spirv_kernel_look(kernel)->private_bytes;
    if ((bytes == 0) == kernels[k].leaves) continue;
    fprintf(stderr, "%s: %u bytes of private memory\n", kernels[k].name, bytes);
    exit(1);
  }
  spirv_program_release(program);
}

int main(void) {
  x = block(N * 8);
  out = block(N * WORDS * 4);
  for (uint i = 0; i < 2 * N; i++) x[i] = i % 5 == 0 ? scrambled(i) >> (i % 31) : scrambled(i);
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    expected[k] = calloc(N * WORDS, 4);
    for (uint i = 0; i < N; i++) kernels[k].run(i, x[2 * i], x[2 * i + 1], expected[k] + WORDS * i);
  }
  check_memory();
  sweep_all("private.spv", N, run_all);
  for (size_t k = 0; k < KERNEL_COUNT; k++) free(expected[k]);
  free_blocks();
  printf("spirv_private: ok\n");
  return 0;
}
