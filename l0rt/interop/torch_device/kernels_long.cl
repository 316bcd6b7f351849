/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_long.cl: the kernels of operators on integers and truth values, computed in integers of 64 bits. */
#define COMPUTES_LONG
#include "pointwise.clh"
#include "reductions.clh"
#include "matmul.clh"
#include "indexing.clh"
