/* SPDX-License-Identifier: Apache-2.0 */
/* basic.cl: the kernels of these tests. `make -C tests/kernels` compiles it. */
int __attribute__((overloadable)) __spirv_SpecConstant(int id, int value);
float __attribute__((overloadable)) __spirv_SpecConstant(int id, float value);

struct pair {
  int first;
  long second;
};

kernel void vector_add(global float *to, const global float *x, const global float *y, uint n) {
  size_t i = get_global_id(0);
  if (i < n) to[i] = x[i] + y[i];
}

kernel void axpy(global float *y, const global float *x, float a) {
  size_t i = get_global_id(0);
  y[i] += a * x[i];
}

/* One sum a group, by halves in local memory. */
kernel void reduce(global long *sums, const global int *x, uint n, local long *scratch) {
  size_t i = get_global_id(0), me = get_local_id(0);
  scratch[me] = i < n ? x[i] : 0;
  for (size_t width = get_local_size(0) / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me < width) scratch[me] += scratch[me + width];
  }
  if (me == 0) sums[get_group_id(0)] = scratch[0];
}

kernel void histogram(global uint *counts, const global uchar *x) { atomic_inc(&counts[x[get_global_id(0)]]); }

#define TILE 8
__attribute__((reqd_work_group_size(TILE, TILE, 1)))
kernel void matmul(global float *c, const global float *a, const global float *b, uint n) {
  local float tile_a[TILE][TILE], tile_b[TILE][TILE];
  size_t x = get_global_id(0), y = get_global_id(1), i = get_local_id(0), j = get_local_id(1);
  float sum = 0;
  for (uint t = 0; t < n; t += TILE) {
    tile_a[j][i] = a[y * n + t + i];
    tile_b[j][i] = b[(t + j) * n + x];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < TILE; k++) sum += tile_a[j][k] * tile_b[k][i];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[y * n + x] = sum;
}

/* Every kind of value; the bytes are written as they came. */
kernel void values(global uchar *out, char c, short s, int i, long l, float f, float4 v, struct pair p) {
  out[0] = (uchar)c;
  *(global short *)(out + 2) = s;
  *(global int *)(out + 4) = i;
  *(global long *)(out + 8) = l;
  *(global float *)(out + 16) = f;
  *(global float4 *)(out + 32) = v;
  *(global int *)(out + 48) = p.first;
  *(global long *)(out + 56) = p.second;
}

kernel void constants(global float *out) {
  out[0] = __spirv_SpecConstant(1, 10);
  out[1] = __spirv_SpecConstant(2, 0.5f);
}

kernel void store(global int *to, int value) { to[get_global_id(0)] = value; }

kernel void wait_until(global volatile int *flag, int value) {
  while (atomic_add(flag, 0) != value) continue;
}

kernel void divide(global int *x, int by) { x[get_global_id(0)] /= by; }

kernel void where(global uint *out) {
  size_t i = get_global_linear_id();
  out[3 * i] = get_global_id(0);
  out[3 * i + 1] = get_global_id(1);
  out[3 * i + 2] = get_global_id(2);
}

/* Every group waits for all others. */
kernel void meet(global volatile int *arrived, global int *out) {
  atomic_inc(arrived);
  while (atomic_add(arrived, 0) < (int)get_num_groups(0)) continue;
  out[get_group_id(0)] = atomic_add(arrived, 0);
}
