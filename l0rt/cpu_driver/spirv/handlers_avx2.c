/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_avx2.c: the handlers for processors with AVX2.
 *
 * No operation is contracted: OpenCL's results are those of each single one. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic", "no-trapping-math", "no-math-errno",           \
                     "fp-contract=off")
#define SET avx2
#define SET_NAME "avx2"
#include "handlers.h"
#endif
