/* SPDX-License-Identifier: Apache-2.0 */
/* launch.cl: kernels for the tests of modules, kernels and launches. */
int __attribute__((overloadable)) __spirv_SpecConstant(int id, int value);
long __attribute__((overloadable)) __spirv_SpecConstant(int id, long value);

__global int counter = 5;

struct pair {
  int a;
  long b;
};

kernel void add(global int *to, global const int *from, int more) {
  size_t i = get_global_id(0);
  to[i] = from[i] + more;
}

kernel void empty(void) {}

kernel void where(global uint *out) {
  size_t i = get_global_linear_id();
  out[4 * i] = (uint)get_global_id(0);
  out[4 * i + 1] = (uint)get_global_id(1);
  out[4 * i + 2] = (uint)get_group_id(0);
  out[4 * i + 3] = (uint)get_local_size(0);
}

kernel void constants(global long *out) {
  out[0] = __spirv_SpecConstant(7, 70);
  out[1] = __spirv_SpecConstant(8, 80L);
}

kernel void reverse(global int *data, local int *scratch) {
  size_t i = get_local_id(0), n = get_local_size(0);
  scratch[i] = data[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  data[i] = scratch[n - 1 - i];
}

kernel void by_value(global long *out, struct pair value) {
  out[0] = value.a;
  out[1] = value.b;
}

kernel void count(global int *out) {
  counter += 1;
  out[0] = counter;
}

kernel void endless(global volatile int *running) {
  for (int i = 0; running[0] < (1 << 30); i++) running[0] = i & 1023;
}

kernel void wild(global int *near, long distance) { near[distance + get_global_id(0)] = 1; }

/* Indices of 64 bits may go once around all of memory. */
kernel void around(global const ulong *near, global const long *places, global ulong *out) {
  size_t i = get_global_id(0);
  out[i] = near[places[i]];
}

kernel void follow(global int *global *place) { *place[0] = 42; }

__attribute__((reqd_work_group_size(8, 2, 1))) __attribute__((intel_reqd_sub_group_size(16)))
__attribute__((work_group_size_hint(8, 2, 1))) __attribute__((vec_type_hint(float4)))
kernel void required(global int *out, local long *first, local int *second) {
  out[get_global_linear_id()] = 1;
}

/* Every group waits for all others. */
kernel void meet(global volatile int *arrived, global int *out) {
  atomic_inc(arrived);
  while (atomic_add(arrived, 0) < (int)get_num_groups(0)) continue;
  out[get_group_id(0)] = atomic_add(arrived, 0);
}

/* The order in which an atomic serves work-items. */
kernel void arrivals(global int *next, global int *out) { out[get_global_id(0)] = atomic_inc(next); }

/* The work-items below `most` come to a barrier, the others don't. */
kernel void divergent(global int *out, int most) {
  if ((int)get_local_id(0) < most) barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = 1;
}

/* 2,048 bytes of arguments. */
struct large {
  long values[255];
};
kernel void large_arguments(global long *out, struct large value) {
  for (int i = 0; i < 255; i++) out[i] = value.values[i];
}

/* Local and private memory. */
kernel void memories(global int *out, local int *more) {
  local int items[100];
  int own[16];
  for (int i = 0; i < 16; i++) own[i] = out[i];
  items[get_local_id(0)] = own[out[16] & 15];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = items[out[17] % 100] + more[0];
}

kernel void prints(global int *out) { printf("item %d of %d\n", (int)get_global_id(0), out[0]); }
