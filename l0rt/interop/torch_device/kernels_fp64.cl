/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_fp64.cl: the kernels of operators on doubles, for devices that have double precision. */
#define COMPUTES_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#include "pointwise.clh"
#include "reductions.clh"
#include "matmul.clh"
#include "indexing.clh"
