/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_sse2.c: the handlers for every x86-64 processor, and for other architectures.
 *
 * No operation is contracted: OpenCL's results are those of each single one. */
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic", "no-trapping-math", "no-math-errno",           \
                     "fp-contract=off")
#define SET sse2
#define SET_NAME "sse2"
#include "handlers.h"
