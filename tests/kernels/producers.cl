/* SPDX-License-Identifier: Apache-2.0 */
/* producers.cl: what other producers than ocloc and zig make of OpenCL C; `python tests/helpers/producers.py` compiles it
 * with them. */

constant float weights[4] = {0.5f, -1.25f, 2.0f, 3.5f};

typedef struct {
  int count;
  float scale[3];
} row;

static float weighted(const global float *x, size_t at, int many) {
  float sum = 0;
  for (int k = 0; k < many; k++) sum = fma(weights[k & 3], x[at + k], sum);
  return sum;
}

kernel void convolve(global float *to, const global float *x, int many) {
  size_t i = get_global_id(0);
  to[i] = weighted(x, i, many);
}

/* One sum a group, by halves in local memory. */
kernel void reduce(global long *sums, const global int *x, local long *scratch) {
  size_t me = get_local_id(0);
  scratch[me] = x[get_global_id(0)];
  for (size_t width = get_local_size(0) / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < width) scratch[me] += scratch[me + width];
  }
  if (me == 0) sums[get_group_id(0)] = scratch[0];
}

kernel void histogram(global int *counts, const global uchar *x) { atomic_inc(&counts[x[get_global_id(0)]]); }

kernel void vectors(global float4 *to, const global float4 *x, const global int4 *pick, float factor) {
  size_t i = get_global_id(0);
  float4 a = x[i].wzyx;
  int4 chosen = pick[i] > (int4)(0);
  to[i] = select(a, a * (float4)(factor), chosen) + (float4)(dot(a, x[i]));
}

kernel void collatz(global uint *steps) {
  uint n = (uint)get_global_id(0) + 1, taken = 0;
  while (n != 1) {
    n = n & 1 ? 3 * n + 1 : n >> 1;
    taken++;
  }
  steps[get_global_id(0)] = taken;
}

kernel void rows(global float *to, row r, uint pitch) {
  size_t x = get_global_id(0), y = get_global_id(1);
  switch (r.count + (int)y) {
    case 1: to[y * pitch + x] = r.scale[0] * x; break;
    case 2: to[y * pitch + x] = r.scale[1] + x; break;
    case 4: to[y * pitch + x] = (float)rint(native_sqrt(r.scale[2] * x)); break;
    default: to[y * pitch + x] = (float)convert_int_sat(r.scale[y % 3] * 1e9f);
  }
}
