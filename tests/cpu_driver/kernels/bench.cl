/* SPDX-License-Identifier: Apache-2.0 */
/* bench.cl: ten kernels whose speed is measured. bench_reference.c compiles the first of them as C too. */
#ifndef KERNEL
#define KERNEL(name, ...) kernel void name(__VA_ARGS__)
#define INDEX(d) get_global_id(d)
#define GLOBAL global
#endif

KERNEL(add, GLOBAL const float *x, GLOBAL const float *y, GLOBAL float *out) {
  size_t i = INDEX(0);
  out[i] = x[i] + y[i];
}

KERNEL(saxpy, GLOBAL const float *x, GLOBAL const float *y, GLOBAL float *out) {
  size_t i = INDEX(0);
  float a = x[i], v = y[i];
  for (int round = 0; round < 256; round++) v = a * v + 0.5f;
  out[i] = v;
}

KERNEL(collatz, GLOBAL const uint *start, GLOBAL uint *out) {
  size_t i = INDEX(0);
  ulong n = start[i];
  uint steps = 0;
  while (n > 1) {
    n = (n & 1) != 0 ? 3 * n + 1 : n / 2;
    steps++;
  }
  out[i] = steps;
}

KERNEL(philox, GLOBAL uint *out, uint seed) {
  size_t i = INDEX(0);
  uint c0 = (uint)i, c1 = 0, c2 = 0, c3 = 0, k0 = seed, k1 = 0x5eed;
  for (int round = 0; round < 10; round++) {
    ulong p0 = (ulong)c0 * 0xD2511F53u, p1 = (ulong)c2 * 0xCD9E8D57u;
    c0 = (uint)(p1 >> 32) ^ c1 ^ k0;
    c1 = (uint)p1;
    c2 = (uint)(p0 >> 32) ^ c3 ^ k1;
    c3 = (uint)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[4 * i] = c0;
  out[4 * i + 1] = c1;
  out[4 * i + 2] = c2;
  out[4 * i + 3] = c3;
}

KERNEL(naive, GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *c, uint n) {
  size_t x = INDEX(0), y = INDEX(1);
  float sum = 0;
  for (uint k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
  c[y * n + x] = sum;
}

#ifdef __OPENCL_VERSION__
kernel void tiled(global const float *a, global const float *b, global float *c, uint n) {
  local float left[16][16], right[16][16];
  uint x = get_local_id(0), y = get_local_id(1), column = get_global_id(0), row = get_global_id(1);
  float sum = 0;
  for (uint tile = 0; tile < n; tile += 16) {
    left[y][x] = a[row * n + tile + x];
    right[y][x] = b[(tile + y) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < 16; k++) sum += left[y][k] * right[k][x];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + column] = sum;
}

/* Eight by eight elements a work-item, in private arrays; groups of eight by eight. */
kernel void blocked(global const float *a, global const float *b, global float *c, uint n) {
  local float left[8][64], right[8][64];
  uint x = get_local_id(0), y = get_local_id(1), item = 8 * y + x;
  uint row = 64 * get_group_id(1), column = 64 * get_group_id(0);
  float sums[8][8], l[8], r[8];
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) sums[i][j] = 0;
  for (uint tile = 0; tile < n; tile += 8) {
    for (int k = 0; k < 8; k++) {
      left[k][item] = a[(row + item) * n + tile + k];
      right[k][item] = b[(tile + k) * n + column + item];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 8; k++) {
      for (int i = 0; i < 8; i++) {
        l[i] = left[k][8 * y + i];
        r[i] = right[k][8 * i + x];
      }
      for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) sums[i][j] += l[i] * r[j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 8; j++) c[(row + 8 * y + i) * n + column + 8 * j + x] = sums[i][j];
}

kernel void reduce(global const float *in, global float *out) {
  local float sums[256];
  uint l = get_local_id(0);
  sums[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint rest = 128; rest > 0; rest /= 2) {
    if (l < rest) sums[l] += sums[l + rest];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = sums[0];
}

kernel void histogram(global const uint *in, global uint *out) { atomic_inc(&out[in[get_global_id(0)] & 255]); }

kernel void waves(global const float4 *in, global float4 *out) {
  size_t i = get_global_id(0);
  out[i] = exp(in[i]) + sin(in[i]) * sqrt(in[i]);
}

kernel void nothing(void) {}
#endif
