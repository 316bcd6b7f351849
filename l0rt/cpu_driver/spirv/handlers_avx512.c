/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_avx512.c: the handlers for processors with AVX512.
 *
 * No operation is contracted: OpenCL's results are those of each single one. */
#if defined(__x86_64__)
#pragma GCC target(                                                                                                    \
    "avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,prefer-vector-width=512")
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic", "no-trapping-math", "no-math-errno",           \
                     "fp-contract=off")
#define SET avx512
#define SET_NAME "avx512"
#include "handlers.h"
#endif
