/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_avx2.c: the handlers for processors with AVX2.
 *
 * The compiler may not contract operations, such as a multiplication and an addition to one with one rounding: OpenCL
 * defines the result of each operation. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic", "no-trapping-math", "no-math-errno",           \
                     "fp-contract=off")
#define SET avx2
#define SET_NAME "avx2"
#define VECTOR_BYTES 32
#include "spirv/run/handlers.h"
#endif
