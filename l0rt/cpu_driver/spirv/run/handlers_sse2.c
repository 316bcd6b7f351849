/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_sse2.c: the handlers for every x86-64 processor, and for other architectures.
 *
 * The compiler may not contract operations, such as a multiplication and an addition to one with one rounding: OpenCL
 * defines the result of each operation. */
#pragma GCC optimize("O2", "tree-vectorize", "vect-cost-model=dynamic", "no-trapping-math", "no-math-errno",           \
                     "fp-contract=off")
#define SET sse2
#define SET_NAME "sse2"
#define VECTOR_BYTES 16
#include "spirv/run/handlers.h"
