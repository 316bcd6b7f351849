/* SPDX-License-Identifier: Apache-2.0 */
/* bench_unchecked.c: the handlers once more, without checks of addresses, to measure what these cost. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic", "no-trapping-math", "no-math-errno",           \
                     "fp-contract=off")
#endif
#include "spirv/run/run.h"
extern const spirv_handlers spirv_handlers_unchecked;
#define spirv_reach(w, s, address, size, write, report, item)                                                          \
  ((void)(w), (void)(s), (void)(address), (void)(size), (void)(write), true)
#define SET unchecked
#define VECTOR_BYTES 32
#define SET_NAME "unchecked"
#include "spirv/run/handlers.h"

extern void bench_check_nothing(void);
void bench_check_nothing(void) { spirv_use_handlers(&spirv_handlers_unchecked); }
