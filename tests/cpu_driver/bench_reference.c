/* SPDX-License-Identifier: Apache-2.0 */
/* bench_reference.c: the kernels of bench.cl as loops over their work-items. Compiled with -fno-tree-vectorize. */
#include "bench_reference.h"

#include <math.h>

typedef unsigned int uint;
typedef unsigned long ulong;

#define KERNEL(name, ...) static inline void item_##name(size_t item0, size_t item1, __VA_ARGS__)
#define INDEX(d) ((void)item1, (d) == 0 ? item0 : item1)
#define GLOBAL
#include "kernels/bench.cl"

void c_add(const float *x, const float *y, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) item_add(i, 0, x, y, out);
}

void c_saxpy(const float *x, const float *y, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) item_saxpy(i, 0, x, y, out);
}

void c_collatz(const uint32_t *start, uint32_t *out, size_t n) {
  for (size_t i = 0; i < n; i++) item_collatz(i, 0, start, out);
}

void c_philox(uint32_t *out, uint32_t seed, size_t n) {
  for (size_t i = 0; i < n; i++) item_philox(i, 0, out, seed);
}

void c_naive(const float *a, const float *b, float *c, uint32_t n) {
  for (size_t y = 0; y < n; y++)
    for (size_t x = 0; x < n; x++) item_naive(x, y, a, b, c, n);
}

void c_tiled(const float *a, const float *b, float *c, uint32_t n) {
  for (size_t i = 0; i < (size_t)n * n; i++) c[i] = 0;
  for (size_t tile = 0; tile < n; tile += 16)
    for (size_t y = 0; y < n; y++)
      for (size_t k = tile; k < tile + 16; k++)
        for (size_t x = 0; x < n; x++) c[y * n + x] += a[y * n + k] * b[k * n + x];
}

void c_reduce(const float *in, float *out, size_t n) {
  for (size_t group = 0; group < n / 256; group++) {
    float sum = 0;
    for (size_t i = 0; i < 256; i++) sum += in[group * 256 + i];
    out[group] = sum;
  }
}

void c_histogram(const uint32_t *in, uint32_t *out, size_t n) {
  for (size_t i = 0; i < n; i++) __atomic_fetch_add(&out[in[i] & 255], 1, __ATOMIC_RELAXED);
}

void c_waves(const float *in, float *out, size_t n) {
  for (size_t i = 0; i < n; i++) out[i] = expf(in[i]) + sinf(in[i]) * sqrtf(in[i]);
}
