/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_avx512.c: the handlers for processors with AVX512.
 *
 * The compiler may not contract operations, such as a multiplication and an addition to one with one rounding: OpenCL
 * defines the result of each operation. */
#if defined(__x86_64__)
#pragma GCC target(                                                                                                    \
    "avx512f,avx512dq,avx512bw,avx512vl,avx512cd,avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt,prefer-vector-width=512")
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic", "no-trapping-math", "no-math-errno",           \
                     "fp-contract=off")
#define SET avx512
#define SET_NAME "avx512"
#define VECTOR_BYTES 64
#include "spirv/run/handlers.h"
#endif
