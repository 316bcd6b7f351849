/* SPDX-License-Identifier: Apache-2.0 */
/* cooperation.cl: what work-items do together in other ways than groups.cl's; test_spirv_cooperation.c says what comes out.
 * `in` has a word for each item, `out` WORDS of its own. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_khr_subgroups : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL EXTENSION cl_khr_int64_extended_atomics : enable
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#pragma OPENCL EXTENSION cl_intel_subgroups_short : enable

enum { WORDS = 8 };
#define KERNEL(name) kernel void name(global const uint *in, global uint *out)
#define SUBGROUP(size) __attribute__((intel_reqd_sub_group_size(size)))
/* Items are numbered group after group. */
#define BEGIN                                                                                          \
  uint l = (uint)get_local_linear_id();                                                                \
  uint n = (uint)(get_local_size(0) * get_local_size(1) * get_local_size(2));                          \
  uint i = l + n * (uint)(get_group_id(0) + get_num_groups(0) *                                        \
                                                (get_group_id(1) + get_num_groups(1) * get_group_id(2))); \
  global uint *o = out + WORDS * i;                                                                    \
  uint a = in[i]

/* ---- Local memory and barriers ----------------------------------------------------------------------------------- */

KERNEL(prefix_sums) {
  local uint sums[2][1024];
  BEGIN;
  sums[0][l] = a;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint from = 0;
  for (uint step = 1; step < n; step *= 2, from ^= 1) {
    sums[from ^ 1][l] = sums[from][l] + (l >= step ? sums[from][l - step] : 0);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  o[0] = sums[from][l];
}
static void swapped(local ulong *values, local short *marks, uint l, uint n) {
  ulong mine = values[n - 1 - l];
  short mark = marks[n - 1 - l];
  barrier(CLK_LOCAL_MEM_FENCE);
  values[l] += mine;
  marks[l] = (short)(mark * 3);
  work_group_barrier(CLK_LOCAL_MEM_FENCE);
}
kernel void two_local_arguments(global const uint *in, global uint *out, local ulong *values, local short *marks) {
  BEGIN;
  values[l] = (ulong)a << 20;
  marks[l] = (short)a;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint k = 0; k < 3; k++) swapped(values, marks, l, n);
  o[0] = (uint)values[l];
  o[1] = (uint)(values[l] >> 32);
  o[2] = (uint)marks[(l + 1) % n];
}
typedef struct {
  float4 position;
  uint neighbours[3];
  uchar tag;
} particle;
KERNEL(local_structures) {
  local particle all[256];
  local uint count;
  BEGIN;
  if (l == 0) count = 0;
  uint slot = l & 255;
  for (uint turn = 0; turn <= (n - 1) / 256; turn++) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (l / 256 == turn) {
      all[slot].position = (float4)(a & 255, 1, 2, l);
      for (uint k = 0; k < 3; k++) all[slot].neighbours[k] = (l + k + 1) & 255;
      all[slot].tag = (uchar)a;
      atomic_add(&count, a & 7);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    uint there = min(n - turn * 256, 256u);
    if (l / 256 == turn) {
      particle p = all[all[slot].neighbours[1] % there];
      o[0] = (uint)p.position.x + (uint)p.position.w * 1000;
      o[1] = p.tag;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  o[2] = count;
}
KERNEL(uniform_barriers) {
  local uint turn[1024];
  BEGIN;
  turn[l] = l;
  if (get_group_id(0) & 1) {
    barrier(CLK_LOCAL_MEM_FENCE);
    o[0] = turn[n - 1 - l] + 5;
  } else {
    for (uint k = 0; k <= get_group_id(0) % 5; k++) {
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      uint v = turn[(l + 1) % n];
      barrier(CLK_LOCAL_MEM_FENCE);
      turn[l] = v;
      if (a & 1) continue;
      o[1] = k;
    }
    o[0] = turn[l];
  }
}
KERNEL(fences) {
  local uint cell;
  BEGIN;
  uint own[2] = {a, 7};
  if (l == 0) cell = 3;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint *p = a % 3 == 0 ? (uint *)(o + 1) : a % 3 == 1 ? (uint *)&cell : own + (a & 1);
  o[1] = 5;
  o[0] = get_fence(p) == CLK_GLOBAL_MEM_FENCE ? 2 : get_fence(p) == CLK_LOCAL_MEM_FENCE ? 1 : 0;
  o[2] = *p;
}

/* ---- Atomics ----------------------------------------------------------------------------------------------------- */

KERNEL(local_atomics) {
  local uint cells[8];
  local int least, most;
  local ulong wide[2];
  BEGIN;
  if (l < 8) cells[l] = l == 2 ? 0xffffffffu : 0;
  if (n < 8 && l == 0)
    for (uint k = n; k < 8; k++) cells[k] = k == 2 ? 0xffffffffu : 0;
  if (l == 0) least = most = 0, wide[0] = wide[1] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&cells[0], a);
  atomic_sub(&cells[1], a);
  atomic_and(&cells[2], a | 0xf0f0f0f0u);
  atomic_or(&cells[3], a & 0x11111111u);
  atomic_xor(&cells[4], a);
  atomic_inc(&cells[5]);
  atomic_dec(&cells[6]);
  atomic_max(&cells[7], a);
  atomic_min(&least, (int)a);
  atomic_max(&most, (int)a);
  atom_add(&wide[0], (ulong)a << 13);
  atom_max(&wide[1], (ulong)a << 29);
  barrier(CLK_LOCAL_MEM_FENCE);
  o[0] = cells[l & 7];
  o[1] = (uint)least;
  o[2] = (uint)most;
  o[3] = (uint)(wide[l & 1] >> 16);
}
/* Items take numbers; each number is taken once. */
KERNEL(turns) {
  local uint next;
  BEGIN;
  if (l == 0) next = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint mine = atomic_inc(&next);
  barrier(CLK_LOCAL_MEM_FENCE);
  out[WORDS * (i - l + mine)] = mine;
  out[WORDS * (i - l + mine) + 1] = next;
}
float __attribute__((overloadable)) __spirv_AtomicFAddEXT(volatile local float *p, int scope, int semantics, float v);
float __attribute__((overloadable)) __spirv_AtomicFMinEXT(volatile local float *p, int scope, int semantics, float v);
float __attribute__((overloadable)) __spirv_AtomicFMaxEXT(volatile local float *p, int scope, int semantics, float v);
double __attribute__((overloadable)) __spirv_AtomicFAddEXT(volatile local double *p, int scope, int semantics, double v);
double __attribute__((overloadable)) __spirv_AtomicFMinEXT(volatile local double *p, int scope, int semantics, double v);
double __attribute__((overloadable)) __spirv_AtomicFMaxEXT(volatile local double *p, int scope, int semantics, double v);
KERNEL(float_atomics) {
  local float single[3];
  local double wide[3];
  BEGIN;
  if (l == 0)
    for (int k = 0; k < 3; k++) single[k] = wide[k] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  int v = (int)(a & 4095) - 2048; /* their sums are exact in any order */
  __spirv_AtomicFAddEXT(&single[0], 2, 0, (float)v);
  __spirv_AtomicFMinEXT(&single[1], 2, 0, (float)v);
  __spirv_AtomicFMaxEXT(&single[2], 2, 0, (float)v);
  __spirv_AtomicFAddEXT(&wide[0], 2, 0, v / 8.0);
  __spirv_AtomicFMinEXT(&wide[1], 2, 0, v / 8.0);
  __spirv_AtomicFMaxEXT(&wide[2], 2, 0, v / 8.0);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < 3; k++) o[k] = as_uint(single[k]), o[3 + k] = as_uint((float)wide[k]);
}
KERNEL(modern_atomics) {
  local atomic_uint count, last;
  local atomic_ulong sum;
  local atomic_flag flag;
  local atomic_float number;
  BEGIN;
  if (l == 0) {
    atomic_init(&count, 5);
    atomic_init(&sum, 0ul);
    atomic_store_explicit(&last, 0u, memory_order_relaxed, memory_scope_work_group);
    atomic_flag_clear(&flag);
    atomic_store(&number, 1.5f);
  }
  work_group_barrier(CLK_LOCAL_MEM_FENCE);
  atomic_fetch_add_explicit(&count, a & 3, memory_order_acq_rel, memory_scope_work_group);
  atomic_fetch_add(&sum, (ulong)a);
  uint seen = 0;
  while (!atomic_compare_exchange_weak(&last, &seen, seen + (a & 15))) {}
  bool first = !atomic_flag_test_and_set(&flag);
  atomic_exchange(&number, 2.5f);
  work_group_barrier(CLK_LOCAL_MEM_FENCE);
  o[0] = atomic_load(&count);
  o[1] = (uint)(atomic_load(&sum) >> 3);
  o[2] = atomic_load_explicit(&last, memory_order_acquire, memory_scope_work_group);
  o[3] = (uint)atomic_load(&number);
  o[4] = (uint)work_group_reduce_add((int)first);
}

/* ---- Collectives of the group ------------------------------------------------------------------------------------ */

KERNEL(group_integers) {
  BEGIN;
  int s = (int)a;
  long w = (long)a << 20;
  o[0] = work_group_reduce_add(a) + work_group_reduce_min(a) * 3 + work_group_reduce_max(a) * 5;
  o[1] = (uint)(work_group_reduce_min(s) ^ work_group_reduce_max(s));
  o[2] = (uint)(work_group_reduce_add(w) >> 20) + (uint)(work_group_reduce_min((ulong)w) >> 20);
  o[3] = work_group_scan_inclusive_add(a) ^ work_group_scan_exclusive_max(a);
  o[4] = (uint)(work_group_scan_inclusive_min(s) + work_group_scan_exclusive_add(s));
  o[5] = (uint)(work_group_scan_exclusive_min(w) >> 20) + (uint)(work_group_scan_inclusive_max(w) >> 20);
  o[6] = work_group_broadcast(a, get_local_size(0) - 1, get_local_size(1) / 2, 0);
  o[7] = (uint)work_group_any((a & 15) == 3) + 2 * (uint)work_group_all((a & 1023) != 77);
}
KERNEL(group_numbers) {
  BEGIN;
  float f = (float)(int)(a & 255) - 100; /* exact sums */
  double d = (double)(a & 0xffff) / 16;
  half h = (half)(a & 1);
  o[0] = as_uint(work_group_reduce_add(f));
  o[1] = as_uint(work_group_reduce_min(f) + 1000 * work_group_reduce_max(f));
  o[2] = as_uint(work_group_scan_exclusive_add(f));
  o[3] = as_uint(work_group_scan_inclusive_max(f));
  o[4] = as_uint((float)(work_group_reduce_add(d) / 16));
  o[5] = as_uint((float)work_group_scan_inclusive_add(d));
  o[6] = as_ushort(work_group_scan_inclusive_add(h)) | (uint)as_ushort(work_group_reduce_max(h)) << 16;
  o[7] = as_uint(work_group_broadcast(f, 0, 0, 0)) ^ (uint)(int)work_group_scan_inclusive_min(d);
}

/* ---- Sub-groups -------------------------------------------------------------------------------------------------- */

#define COLLECTIVES                                                                                    \
  BEGIN;                                                                                               \
  int s = (int)a;                                                                                      \
  o[0] = sub_group_reduce_add(a) ^ sub_group_reduce_max(a);                                            \
  o[1] = (uint)(sub_group_reduce_min(s) + sub_group_scan_exclusive_max(s));                            \
  o[2] = sub_group_scan_inclusive_add(a) + sub_group_scan_exclusive_min(a);                            \
  o[3] = sub_group_broadcast(a, get_sub_group_size() - 1);                                             \
  o[4] = (uint)sub_group_any((a & 7) == 3) + 2 * (uint)sub_group_all((a & 31) != 9);                   \
  o[5] = as_uint(sub_group_reduce_add((float)(a & 255)) + (float)sub_group_reduce_max((double)(a & 63))); \
  o[6] = (uint)(sub_group_scan_inclusive_max((ulong)a << 9) >> 9) + (uint)sub_group_reduce_add((long)s); \
  o[7] = get_sub_group_size() + 100 * get_max_sub_group_size() + 10000 * get_num_sub_groups() +        \
         1000000 * get_sub_group_id() + 100000000 * get_sub_group_local_id()
SUBGROUP(8) KERNEL(subgroups_of_8) { COLLECTIVES; }
SUBGROUP(16) KERNEL(subgroups_of_16) { COLLECTIVES; }
SUBGROUP(32) KERNEL(subgroups_of_32) { COLLECTIVES; }
KERNEL(subgroups_of_any_size) { COLLECTIVES; }

#define SHUFFLES                                                                                       \
  BEGIN;                                                                                               \
  uint size = get_max_sub_group_size(), m = get_sub_group_local_id();                                  \
  float f = (float)(a & 0xffff);                                                                       \
  o[0] = intel_sub_group_shuffle(a, (m * 7 + 3) % get_sub_group_size());                               \
  o[1] = as_uint(intel_sub_group_shuffle(f, get_sub_group_size() - 1 - m));                            \
  uint other = intel_sub_group_shuffle_xor(a, 1u);                                                     \
  o[2] = (m ^ 1) < get_sub_group_size() ? other : 0;                                                   \
  uint down = intel_sub_group_shuffle_down(a, a ^ 5, 3u), up = intel_sub_group_shuffle_up(a ^ 9, a, 2u); \
  o[3] = m + 3 < get_sub_group_size() || m + 3 >= size ? down : 0;                                     \
  o[4] = m >= 2 || size + m - 2 < get_sub_group_size() ? up : 0;                                       \
  uint4 v = intel_sub_group_shuffle((uint4)(a, a + 1, a + 2, a + 3), 0u);                              \
  o[5] = v.x + v.w * 3;                                                                                \
  o[6] = (uint)intel_sub_group_shuffle((ushort)a, 0u);                                                 \
  o[7] = (uint)(intel_sub_group_shuffle((ulong)a << 7, 0u) >> 7) + size
SUBGROUP(8) KERNEL(shuffles_of_8) { SHUFFLES; }
SUBGROUP(16) KERNEL(shuffles_of_16) { SHUFFLES; }
SUBGROUP(32) KERNEL(shuffles_of_32) { SHUFFLES; }

/* What is moved keeps its bits: such NaNs are halves of doubles, for one. */
SUBGROUP(16) KERNEL(moved_bits) {
  BEGIN;
  uint m = get_sub_group_local_id(), size = get_sub_group_size();
  float f = as_float((a & 0x803fffff) | 0x7f800001);
  half h = as_half((ushort)((a & 0x81ff) | 0x7c01));
  o[0] = as_uint(intel_sub_group_shuffle(f, size - 1 - m));
  o[1] = as_uint(sub_group_broadcast(f, 0));
  o[2] = as_ushort(intel_sub_group_shuffle(h, size - 1 - m));
  o[3] = as_ushort(sub_group_broadcast(h, 0));
  float2 two = intel_sub_group_shuffle(as_float2((ulong)(a | 0x7f800001) << 32 | as_uint(f)), 0u);
  o[4] = as_uint(two.x);
  o[5] = as_uint(two.y);
  o[6] = as_uint(sub_group_broadcast(f, size - 1));
  o[7] = as_uint(work_group_broadcast(f, 0, 0, 0));
}

/* Sums of halves are halves after each step. */
SUBGROUP(16) KERNEL(half_sums) {
  BEGIN;
  half h = (half)(float)(a & 63) * (half)0.25f;
  o[0] = as_ushort(work_group_reduce_add(h));
  o[1] = as_ushort(work_group_scan_inclusive_add(h));
  o[2] = as_ushort(work_group_scan_exclusive_add(h));
  o[3] = as_ushort(sub_group_reduce_add(h * (half)33.0f));
  o[4] = as_ushort(sub_group_scan_inclusive_add(h * (half)33.0f));
  o[5] = as_ushort(work_group_reduce_max(h));
}

/* Only whole sub-groups: a block has an element for each item of a whole one. */
SUBGROUP(16) KERNEL(subgroup_blocks) {
  BEGIN;
  uint first = i - get_sub_group_local_id();
  if (get_sub_group_size() < 16) return;
  uint2 v = intel_sub_group_block_read2(in + first / 32 * 32);
  intel_sub_group_block_write(out + WORDS * first, v.x * 3);
  intel_sub_group_block_write2(out + WORDS * first + 16, (uint2)(v.y, v.x ^ v.y));
}

/* What runs together may be a part of a sub-group: SPIR-V's instructions by their own names, scope 3, operation 0 to 2. */
#define OVERLOADED __attribute__((overloadable))
bool OVERLOADED __spirv_GroupNonUniformElect(int scope);
bool OVERLOADED __spirv_GroupNonUniformAll(int scope, bool v);
bool OVERLOADED __spirv_GroupNonUniformAny(int scope, bool v);
bool OVERLOADED __spirv_GroupNonUniformAllEqual(int scope, uint v);
uint OVERLOADED __spirv_GroupNonUniformBroadcast(int scope, uint v, uint item);
uint OVERLOADED __spirv_GroupNonUniformBroadcastFirst(int scope, uint v);
uint4 OVERLOADED __spirv_GroupNonUniformBallot(int scope, bool v);
bool OVERLOADED __spirv_GroupNonUniformInverseBallot(int scope, uint4 v);
bool OVERLOADED __spirv_GroupNonUniformBallotBitExtract(int scope, uint4 v, uint item);
uint OVERLOADED __spirv_GroupNonUniformBallotBitCount(int scope, int operation, uint4 v);
uint OVERLOADED __spirv_GroupNonUniformBallotFindLSB(int scope, uint4 v);
uint OVERLOADED __spirv_GroupNonUniformBallotFindMSB(int scope, uint4 v);
uint OVERLOADED __spirv_GroupNonUniformShuffle(int scope, uint v, uint item);
uint OVERLOADED __spirv_GroupNonUniformShuffleXor(int scope, uint v, uint mask);
uint OVERLOADED __spirv_GroupNonUniformShuffleUp(int scope, uint v, uint by);
uint OVERLOADED __spirv_GroupNonUniformShuffleDown(int scope, uint v, uint by);
uint OVERLOADED __spirv_GroupNonUniformIAdd(int scope, int operation, uint v);
uint OVERLOADED __spirv_GroupNonUniformIMul(int scope, int operation, uint v);
float OVERLOADED __spirv_GroupNonUniformFAdd(int scope, int operation, float v);
float OVERLOADED __spirv_GroupNonUniformFMul(int scope, int operation, float v);
int OVERLOADED __spirv_GroupNonUniformSMin(int scope, int operation, int v);
uint OVERLOADED __spirv_GroupNonUniformUMin(int scope, int operation, uint v);
double OVERLOADED __spirv_GroupNonUniformFMin(int scope, int operation, double v);
int OVERLOADED __spirv_GroupNonUniformSMax(int scope, int operation, int v);
uint OVERLOADED __spirv_GroupNonUniformUMax(int scope, int operation, uint v);
float OVERLOADED __spirv_GroupNonUniformFMax(int scope, int operation, float v);
uint OVERLOADED __spirv_GroupNonUniformBitwiseAnd(int scope, int operation, uint v);
ulong OVERLOADED __spirv_GroupNonUniformBitwiseOr(int scope, int operation, ulong v);
ushort OVERLOADED __spirv_GroupNonUniformBitwiseXor(int scope, int operation, ushort v);
bool OVERLOADED __spirv_GroupNonUniformLogicalAnd(int scope, int operation, bool v);
bool OVERLOADED __spirv_GroupNonUniformLogicalOr(int scope, int operation, bool v);
bool OVERLOADED __spirv_GroupNonUniformLogicalXor(int scope, int operation, bool v);

SUBGROUP(32) KERNEL(parts_vote) {
  BEGIN;
  uint m = get_sub_group_local_id();
  o[7] = 5;
  if (a & 1) {
    o[0] = (uint)__spirv_GroupNonUniformElect(3) + 2 * (uint)__spirv_GroupNonUniformAll(3, (a & 62) != 2) +
           4 * (uint)__spirv_GroupNonUniformAny(3, (a & 30) == 6) + 8 * (uint)__spirv_GroupNonUniformAllEqual(3, a & 1);
    o[1] = __spirv_GroupNonUniformBroadcastFirst(3, a);
    uint4 votes = __spirv_GroupNonUniformBallot(3, (a & 2) != 0);
    o[2] = votes.x;
    o[3] = votes.y | votes.z | votes.w;
    o[4] = (uint)__spirv_GroupNonUniformInverseBallot(3, votes) + 2 * (uint)__spirv_GroupNonUniformBallotBitExtract(3, votes, 3);
    o[5] = __spirv_GroupNonUniformBallotBitCount(3, 0, votes) + 100 * __spirv_GroupNonUniformBallotBitCount(3, 1, votes) +
           10000 * __spirv_GroupNonUniformBallotBitCount(3, 2, votes);
    if (votes.x != 0)
      o[6] = __spirv_GroupNonUniformBallotFindLSB(3, votes) + 100 * __spirv_GroupNonUniformBallotFindMSB(3, votes);
  } else if (a & 2) {
    o[7] = 9;
    o[1] = __spirv_GroupNonUniformBroadcastFirst(3, a);
  }
  o[7] += m;
}
SUBGROUP(16) KERNEL(parts_compute) {
  BEGIN;
  if ((a & 3) == 0) return;
  int s = (int)a;
  o[0] = __spirv_GroupNonUniformIAdd(3, 0, a) ^ __spirv_GroupNonUniformIAdd(3, 1, a) ^ __spirv_GroupNonUniformIAdd(3, 2, a) * 3;
  o[1] = __spirv_GroupNonUniformIMul(3, 1, a | 1) ^ __spirv_GroupNonUniformBitwiseAnd(3, 2, a | 0xff00ff00u);
  o[2] = as_uint(__spirv_GroupNonUniformFAdd(3, 2, (float)(a & 63))) ^ as_uint(__spirv_GroupNonUniformFMul(3, 0, 1 + (float)(a >> 5 & 1)));
  o[3] = (uint)(__spirv_GroupNonUniformSMin(3, 1, s) ^ __spirv_GroupNonUniformSMax(3, 2, s));
  o[4] = __spirv_GroupNonUniformUMin(3, 2, a) ^ __spirv_GroupNonUniformUMax(3, 1, a);
  o[5] = (uint)__spirv_GroupNonUniformFMin(3, 0, (double)(a & 0xffff)) + (uint)__spirv_GroupNonUniformFMax(3, 1, (float)(a & 0xffff));
  o[6] = (uint)(__spirv_GroupNonUniformBitwiseOr(3, 1, (ulong)a << 12) >> 12) ^ __spirv_GroupNonUniformBitwiseXor(3, 2, (ushort)a);
  o[7] = (uint)__spirv_GroupNonUniformLogicalAnd(3, 1, (a & 12) != 0) + 2 * (uint)__spirv_GroupNonUniformLogicalOr(3, 2, (a & 28) == 4) +
         4 * (uint)__spirv_GroupNonUniformLogicalXor(3, 0, (a & 4) != 0);
}
/* All of the sub-group run; what would come from beyond its end is not looked at. */
SUBGROUP(16) KERNEL(parts_shuffle) {
  BEGIN;
  uint m = get_sub_group_local_id(), size = get_sub_group_size();
  o[0] = __spirv_GroupNonUniformShuffle(3, a, (m * 5 + 1) % size);
  uint other = __spirv_GroupNonUniformShuffleXor(3, a, 2u);
  o[1] = (m ^ 2) < size ? other : 0;
  uint up = __spirv_GroupNonUniformShuffleUp(3, a, 3u), down = __spirv_GroupNonUniformShuffleDown(3, a, 4u);
  o[2] = m >= 3 ? up : 0;
  o[3] = m + 4 < size ? down : 0;
  o[4] = __spirv_GroupNonUniformBroadcast(3, a, 0u);
}

/* ---- Copies, geometry -------------------------------------------------------------------------------------------- */

KERNEL(copies) {
  local uint2 pairs[1024];
  local uchar bytes[1024];
  BEGIN;
  size_t first = i - l;
  event_t e = async_work_group_strided_copy((local uint *)pairs, in + first, n / 2, 2, 0);
  e = async_work_group_copy(bytes, (global const uchar *)(in + first), n, e);
  wait_group_events(1, &e);
  prefetch(in + first, n);
  if (l < n / 2) o[0] = ((local uint *)pairs)[l] + 1;
  o[1] = bytes[n - 1 - l];
  barrier(CLK_LOCAL_MEM_FENCE);
  pairs[l] = (uint2)(a, l);
  barrier(CLK_LOCAL_MEM_FENCE);
  e = async_work_group_strided_copy((global uint2 *)(out + WORDS * first) + 1, pairs, n, WORDS / 2, 0);
  wait_group_events(1, &e);
}
KERNEL(geometry) {
  BEGIN;
  float4 v = (float4)(a & 15, a >> 4 & 15, a >> 8 & 15, 0), w = (float4)(3, -1, 2, 0);
  vstore3(cross(v, w).xyz, 0, (global float *)o);
  o[3] = as_uint(dot(v.xyz, w.xyz));
  o[4] = as_uint(length((float2)(3 * v.x, 4 * v.x)) + distance((float2)(v.x, 1), (float2)(v.x, 6)) +
                 fast_distance((float2)(v.x, 1), (float2)(v.x, 6)));
  o[5] = as_uint(normalize((float3)(0, v.x + 1, 0)).y + fast_length((float2)(v.y, 0)) +
                 fast_normalize((float3)(0, 0, v.y + 2)).z);
  o[6] = as_uint((float)dot((double2)(v.x, 0.5), (double2)(0.25, v.y)));
  o[7] = as_uint(length((float2)(1e30f * (v.x + 1), 0)));
}
