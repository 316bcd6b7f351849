/* SPDX-License-Identifier: Apache-2.0 */
/* bench_reference.h: what the kernels of bench.cl are compared with: the same as C, of one thread. */
#ifndef L0RT_CPU_TEST_BENCH_REFERENCE_H
#define L0RT_CPU_TEST_BENCH_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/* Work-items 0 to n, of matrices all n × n. */
void c_add(const float *x, const float *y, float *out, size_t n);
void c_saxpy(const float *x, const float *y, float *out, size_t n);
void c_collatz(const uint32_t *start, uint32_t *out, size_t n);
void c_philox(uint32_t *out, uint32_t seed, size_t n);
void c_naive(const float *a, const float *b, float *c, uint32_t n);
void c_tiled(const float *a, const float *b, float *c, uint32_t n);
void c_reduce(const float *in, float *out, size_t n); /* sums of 256 each */
void c_histogram(const uint32_t *in, uint32_t *out, size_t n);
void c_waves(const float *in, float *out, size_t n); /* floats */

#endif
