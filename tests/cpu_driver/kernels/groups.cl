/* SPDX-License-Identifier: Apache-2.0 */
/* groups.cl: what work-items of a group do together, vectors, and what must be refused while it runs. */
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable

kernel void ids(global ulong *out) {
  size_t i = get_global_id(0) - get_global_offset(0) +
             get_global_size(0) * (get_global_id(1) - get_global_offset(1) +
                                   get_global_size(1) * (get_global_id(2) - get_global_offset(2)));
  ulong v = get_local_id(0) + 1000 * get_local_id(1) + 1000000 * get_local_id(2);
  v = v * 31 + get_group_id(0) + 100 * get_group_id(1) + 10000 * get_group_id(2);
  v = v * 31 + get_num_groups(0) + 100 * get_num_groups(1) + 10000 * get_num_groups(2);
  v = v * 31 + get_local_size(0) + 100 * get_local_size(1) + 10000 * get_local_size(2);
  out[i] = v * 31 + get_global_id(0) + 100 * get_global_id(1) + 10000 * get_global_id(2);
}

kernel void reduce(global const uint *in, global uint *out, local uint *capacity) {
  uint l = get_local_id(0), size = get_local_size(0);
  capacity[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint step = 1; step < size; step *= 2) {
    uint v = l % (2 * step) == 0 && l + step < size ? capacity[l + step] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    capacity[l] += v;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = capacity[0];
}

kernel void reverse_in_group(global const uint *in, global uint *out) {
  local uint capacity[1024];
  uint l = get_local_id(0), size = get_local_size(0);
  capacity[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = capacity[size - 1 - l];
}

kernel void histogram(global const uint *in, global uint *out) {
  local uint counts[16];
  uint l = get_local_id(0);
  if (l < 16) counts[l] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_inc(&counts[in[get_global_id(0)] & 15]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (l < 16) atomic_add(&out[l], counts[l]);
}

kernel void atomics(global const uint *in, global uint *out) {
  uint v = in[get_global_id(0)];
  atomic_min(&out[0], v);
  atomic_max(&out[1], v);
  atomic_and(&out[2], v | 0xff);
  atomic_or(&out[3], v);
  atomic_xor(&out[4], v);
  atomic_sub(&out[5], v);
  atomic_max((volatile global int *)&out[6], (int)v);
  uint old = out[7], seen;
  while ((seen = atomic_cmpxchg(&out[7], old, old * 3 + 1)) != old) old = seen;
  atom_add((volatile global ulong *)(out + 8), (ulong)v << 16);
}

kernel void vectors(global const float4 *a, global const int3 *b, global float4 *out, global int *more) {
  size_t i = get_global_id(0);
  float4 v = a[i] * 2.0f + a[i].wzyx;
  v.s13 = v.s02 - 1.0f;
  int3 w = b[i] >= 0 ? b[i] * 3 : -b[i];
  out[i] = (float4)(dot(v, v), v.x, v.y > v.z ? v.y : v.z, (float)(w.x + w.y * w.z));
  vstore3(w, i, more);
}

typedef struct {
  int first;
  float4 second;
  char third[3];
} pair;

kernel void by_value(global float *out, pair p, uint which, float2 two) {
  p.third[which] += (char)get_global_id(0);
  out[get_global_id(0)] = (float)p.first + p.second.z + (float)p.third[1] + two.y;
}

kernel void group_sums(global const int *in, global int *out, global int *scans, global int *votes) {
  size_t i = get_global_id(0), g = get_group_id(0);
  int v = in[i], sum = work_group_reduce_add(v), most = work_group_reduce_max(v);
  scans[2 * i] = work_group_scan_inclusive_add(v);
  scans[2 * i + 1] = work_group_scan_exclusive_add(v);
  int third = work_group_broadcast(v, 3);
  out[g] = sum + most * 3 + third * 5;
  votes[g] = work_group_any(v == 5) * 2 + work_group_all(v < 100);
}

kernel __attribute__((intel_reqd_sub_group_size(16))) void subgroup_sums(global const int *in, global int *out) {
  size_t i = get_global_id(0);
  int v = in[i], sum = sub_group_reduce_add(v);
  int before = sub_group_scan_exclusive_add(v), fifth = sub_group_broadcast(v, 0);
  out[i] = sum * 3 + before * 5 + fifth * 7 + (int)get_sub_group_local_id() + 100 * (int)get_sub_group_id();
}

kernel void copies(global const uint *in, global uint *out) {
  local uint capacity[64];
  event_t e = async_work_group_copy(capacity, in + 64 * get_group_id(0), 64, 0);
  wait_group_events(1, &e);
  uint l = get_local_id(0);
  capacity[l] += 1;
  barrier(CLK_LOCAL_MEM_FENCE);
  e = async_work_group_copy(out + 64 * get_group_id(0), capacity, 64, 0);
  wait_group_events(1, &e);
}

kernel void prints(int base) {
  int i = get_global_id(0);
  if (i % 3 == 1) printf("item %d of %s: %5.2f %v4d|\n", i + base, "all", i * 0.5, (int4)(i, 1, 2, 3));
}

kernel void divisions(global uint *out, int zero, int minus) {
  int least = (int)0x80000000, i = (int)get_global_id(0);
  int by = i % 2 == 0 ? zero : minus;
  out[12 * i] = (uint)((least + i) / by);
  out[12 * i + 1] = (uint)((least + i) % by);
  out[12 * i + 2] = (uint)(i + 5) / (uint)zero;
  out[12 * i + 3] = (uint)(i + 5) % (uint)zero;
  out[12 * i + 4] = (uint)(least / minus);
  out[12 * i + 5] = (uint)(least % minus);
  long wide = (long)0x8000000000000000ul;
  out[12 * i + 6] = (uint)((wide + i) / by >> 32);
  out[12 * i + 7] = (uint)((wide + i) % by);
  out[12 * i + 8] = (uint)(uchar)((char)(-128 + i) / (char)by);
  out[12 * i + 9] = (uint)(ushort)((short)(-32768 + i) / (short)by);
  out[12 * i + 10] = (uint)((ulong)i / (ulong)zero);
  out[12 * i + 11] = (uint)(7 / zero + 7 % zero);
}

kernel void small(global uint *out, uint rounds) { out[get_global_id(0) % 4096] = rounds; }
kernel void loops_long(global uint *out, uint rounds) {
  for (uint i = 0; i < rounds; i++) out[get_global_id(0)] = out[get_global_id(0)] * 3 + i;
}

kernel void prints_much(uint times) {
  for (uint k = 0; k < times; k++) printf("item %5u line %8u\n", (uint)get_global_id(0), k);
}

kernel void divergent(global uint *out) {
  if (get_local_id(0) & 1) barrier(CLK_GLOBAL_MEM_FENCE);
  out[get_global_id(0)] = 1;
}

kernel void divergent_waves(global uint *out) {
  if (get_local_id(0) < 256) barrier(CLK_GLOBAL_MEM_FENCE);
  out[get_global_id(0)] = 1;
}

kernel void divergent_rest(global uint *out) {
  if (get_local_id(0) != 300) barrier(CLK_GLOBAL_MEM_FENCE);
  out[get_global_id(0)] = 1;
}

kernel void endless(global uint *out) {
  volatile global uint *p = out;
  while (*p == 0) {}
}

kernel void wild(global uint *out, ulong where) {
  size_t i = get_global_id(0);
  if (i == 37) out = (global uint *)where;
  out[i] = 1;
}

kernel __attribute__((reqd_work_group_size(8, 4, 1))) void shaped(global uint *out) {
  out[get_local_id(0) + 8 * get_local_id(1)] = (uint)get_global_id(0);
}

kernel void halves(global const half *in, global half *out, global float *wide) {
  size_t i = get_global_id(0);
  float v = vload_half(i, in);
  wide[i] = v;
  vstore_half_rte(v * 1.37f, i, out);
}

kernel void generic_pointers(global uint *out) {
  local uint shared_one;
  uint own = (uint)get_local_id(0);
  if (own == 0) shared_one = 1000;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint *p = get_global_id(0) % 3 == 0 ? &own : get_global_id(0) % 3 == 1 ? (uint *)&shared_one : (uint *)(out + get_global_id(0));
  out[get_global_id(0)] = *p + 1;
}
