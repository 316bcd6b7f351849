/* SPDX-License-Identifier: Apache-2.0 */
/* algorithms.cl: what test_compile.py compiles and runs. TILE and TYPE are defined by its options. */
#include "sum.h"

kernel void vector_add(global TYPE *to, const global TYPE *x, const global TYPE *y, uint n) {
  size_t i = get_global_id(0);
  if (i < n) to[i] = x[i] + y[i];
}

/* One sum a group, by halves in local memory. */
kernel void reduce(global TYPE *sums, const global TYPE *x, uint n, local TYPE *scratch) {
  size_t i = get_global_id(0), me = get_local_id(0);
  scratch[me] = i < n ? x[i] : 0;
  for (size_t width = get_local_size(0) / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < width) scratch[me] = sum(scratch[me], scratch[me + width]);
  }
  if (me == 0) sums[get_group_id(0)] = scratch[0];
}

kernel void histogram(global uint *counts, const global uchar *x) { atomic_inc(&counts[x[get_global_id(0)]]); }

__attribute__((reqd_work_group_size(TILE, TILE, 1)))
kernel void matmul(global TYPE *c, const global TYPE *a, const global TYPE *b, uint n) {
  local TYPE tile_a[TILE][TILE], tile_b[TILE][TILE];
  size_t x = get_global_id(0), y = get_global_id(1), i = get_local_id(0), j = get_local_id(1);
  TYPE total = 0;
  for (uint t = 0; t < n; t += TILE) {
    tile_a[j][i] = a[y * n + t + i];
    tile_b[j][i] = b[(t + j) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < TILE; k++) total = sum(total, tile_a[j][k] * tile_b[k][i]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[y * n + x] = total;
}
