/* SPDX-License-Identifier: Apache-2.0 */
/* offsets.cl: kernels that note which work-items ran, for launches of every shape. */
#define FOUR(m, n) m(n##0) m(n##1) m(n##2) m(n##3)
#define TEN(m, n) FOUR(m, n) m(n##4) m(n##5) m(n##6) m(n##7) m(n##8) m(n##9)
#define ALL(m) TEN(m, 1) TEN(m, 2) TEN(m, 3) TEN(m, 4) TEN(m, 5) TEN(m, 6) TEN(m, 7) TEN(m, 8) TEN(m, 9) \
  TEN(m, 10) TEN(m, 11) TEN(m, 12) TEN(m, 13) TEN(m, 14) TEN(m, 15) TEN(m, 16) TEN(m, 17) TEN(m, 18) TEN(m, 19)

/* How often each work-item of a box ran, and how large its group was along x. */
kernel void mark(global uint *out, global uint *sizes, uint width, uint height) {
  size_t at = (get_global_id(2) * height + get_global_id(1)) * width + get_global_id(0);
  atomic_inc(&out[at]);
  sizes[at] = get_local_size(0);
}

/* The sum over each group, which knows where it begins by its first work-item. */
kernel void sums(global uint *out, const global uint *x, local uint *scratch) {
  size_t i = get_global_id(0), me = get_local_id(0);
  scratch[me] = x[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  if (me == 0) {
    uint sum = 0;
    for (size_t k = 0; k < get_local_size(0); k++) sum += scratch[k];
    out[i] = sum;
  }
}

kernel void groups(global uint *out) { out[get_global_id(0)] = get_num_groups(0); }
kernel void items(global uint *out) { out[get_global_id(0)] = get_global_size(0); }
kernel void group(global uint *out) { out[get_global_id(0)] = get_group_id(0); }
kernel void offset(global uint *out) { out[get_global_id(0)] = get_global_offset(0); }

__attribute__((reqd_work_group_size(4, 1, 1))) kernel void fours(global uint *out) { out[get_global_id(0)] = 1; }

/* 192 arguments. */
#define PARAMETER(n) , uint a##n
#define STORE(n) to[n - 10] = a##n;
kernel void many(global uint *to, uint last ALL(PARAMETER)) {
  ALL(STORE)
  to[190] = last;
}
