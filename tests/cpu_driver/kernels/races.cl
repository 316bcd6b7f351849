/* SPDX-License-Identifier: Apache-2.0 */
/* races.cl: races, and the same mended. */
#pragma OPENCL EXTENSION cl_khr_subgroups : enable

/* 1: a barrier is missing between a store to local memory and another work-item's load. */
kernel void neighbour_racy(global int *out, global const int *in) {
  local int shared_items[256];
  uint l = get_local_id(0);
  shared_items[l] = in[get_global_id(0)];
  out[get_global_id(0)] = shared_items[(l + 1) % get_local_size(0)];
}
kernel void neighbour_mended(global int *out, global const int *in) {
  local int shared_items[256];
  uint l = get_local_id(0);
  shared_items[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = shared_items[(l + 1) % get_local_size(0)];
}

/* 2: a reduction whose barrier stands before the loop and not in it. */
kernel void reduction_racy(global int *out, global const int *in) {
  local int sums[256];
  uint l = get_local_id(0);
  sums[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint rest = get_local_size(0) / 2; rest > 0; rest /= 2)
    if (l < rest) sums[l] += sums[l + rest];
  if (l == 0) out[get_group_id(0)] = sums[0];
}
kernel void reduction_mended(global int *out, global const int *in) {
  local int sums[256];
  uint l = get_local_id(0);
  sums[l] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint rest = get_local_size(0) / 2; rest > 0; rest /= 2) {
    if (l < rest) sums[l] += sums[l + rest];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (l == 0) out[get_group_id(0)] = sums[0];
}

/* 3: a buffer is written again before all have read it. */
kernel void reuse_racy(global int *out, global const int *in) {
  local int buffer[256];
  uint l = get_local_id(0), n = get_local_size(0);
  int sum = 0;
  for (int round = 0; round < 3; round++) {
    buffer[l] = in[get_global_id(0)] + round;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum += buffer[n - 1 - l];
  }
  out[get_global_id(0)] = sum;
}
kernel void reuse_mended(global int *out, global const int *in) {
  local int buffer[256];
  uint l = get_local_id(0), n = get_local_size(0);
  int sum = 0;
  for (int round = 0; round < 3; round++) {
    buffer[l] = in[get_global_id(0)] + round;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum += buffer[n - 1 - l];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  out[get_global_id(0)] = sum;
}

/* 4: a counter without an atomic. */
kernel void counter_racy(global int *out, global const int *in) {
  if (in[get_global_id(0)] & 1) out[0] += 1;
}
kernel void counter_mended(global int *out, global const int *in) {
  if (in[get_global_id(0)] & 1) atomic_inc(&out[0]);
}

/* 5: a histogram with plain increments. */
kernel void histogram_racy(global int *out, global const int *in) { out[in[get_global_id(0)] & 7]++; }
kernel void histogram_mended(global int *out, global const int *in) { atomic_inc(&out[in[get_global_id(0)] & 7]); }

/* 6: groups that read what another group writes: a stencil in place. */
kernel void stencil_racy(global int *out, global int *in) {
  size_t i = get_global_id(0), n = get_global_size(0);
  int sum = in[i] + in[(i + 1) % n];
  barrier(CLK_GLOBAL_MEM_FENCE);
  in[i] = sum;
}
kernel void stencil_mended(global int *out, global int *in) {
  size_t i = get_global_id(0), n = get_global_size(0);
  out[i] = in[i] + in[(i + 1) % n];
}

/* 7: the last group adds up what the others left, and learns that it is the last without an atomic. */
kernel void last_group_racy(global int *out, volatile global int *sums) {
  uint g = get_group_id(0), n = get_num_groups(0);
  if (get_local_id(0) != 0) return;
  sums[1 + g] = (int)g;
  sums[0] = sums[0] + 1;
  if (sums[0] != (int)n) return;
  int total = 0;
  for (uint i = 0; i < n; i++) total += sums[1 + i];
  out[0] = total;
}
kernel void last_group_mended(global int *out, volatile global int *sums) {
  uint g = get_group_id(0), n = get_num_groups(0);
  if (get_local_id(0) != 0) return;
  sums[1 + g] = (int)g;
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  if (atomic_inc(&sums[0]) != (int)n - 1) return;
  int total = 0;
  for (uint i = 0; i < n; i++) total += sums[1 + i];
  out[0] = total;
}

/* 8: all work-items set one flag. */
kernel void flag_racy(global int *out, global const int *in) {
  if (in[get_global_id(0)] >= 0) out[0] = (int)get_global_id(0);
}
kernel void flag_mended(global int *out, global const int *in) {
  if (in[get_global_id(0)] >= 0) atomic_max(&out[0], (int)get_global_id(0));
}

/* 9: neighbouring bytes are no race, one byte twice is. */
kernel void bytes_racy(global uchar *out, global const int *in) { out[get_global_id(0) / 2] = (uchar)get_global_id(0); }
kernel void bytes_mended(global uchar *out, global const int *in) { out[get_global_id(0)] = (uchar)get_global_id(0); }

/* 10: an atomic on one side only. */
kernel void half_racy(global int *out, global const int *in) {
  if (get_global_id(0) == 0) out[1] = out[0];
  else atomic_add(&out[0], in[get_global_id(0)]);
}
kernel void half_mended(global int *out, global const int *in) {
  if (get_global_id(0) == 0) out[1] = atomic_add(&out[0], 0);
  else atomic_add(&out[0], in[get_global_id(0)]);
}

/* 11: nobody waits for an asynchronous copy; each work-item reads what it would have copied itself. */
kernel void unawaited_racy(global int *out, global const int *in) {
  local int items[256];
  size_t n = get_local_size(0);
  event_t copied = async_work_group_copy(items, in + n * get_group_id(0), n, 0);
  out[get_global_id(0)] = items[get_local_id(0)];
  wait_group_events(1, &copied);
}
kernel void unawaited_mended(global int *out, global const int *in) {
  local int items[256];
  size_t n = get_local_size(0);
  event_t copied = async_work_group_copy(items, in + n * get_group_id(0), n, 0);
  wait_group_events(1, &copied);
  out[get_global_id(0)] = items[get_local_id(0)];
}

/* 12: an asynchronous copy of what work-items are still writing. */
kernel void early_racy(global int *out, global const int *in) {
  local int items[256];
  size_t n = get_local_size(0);
  items[get_local_id(0)] = in[get_global_id(0)];
  event_t copied = async_work_group_copy(out + n * get_group_id(0), items, n, 0);
  wait_group_events(1, &copied);
}
kernel void early_mended(global int *out, global const int *in) {
  local int items[256];
  size_t n = get_local_size(0);
  items[get_local_id(0)] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  event_t copied = async_work_group_copy(out + n * get_group_id(0), items, n, 0);
  wait_group_events(1, &copied);
}

/* 13: all groups copy to one place. */
kernel void same_place_racy(global int *out, global const int *in) {
  local int items[256];
  size_t n = get_local_size(0);
  items[get_local_id(0)] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  event_t copied = async_work_group_strided_copy(out, items, n / 2, 2, 0);
  wait_group_events(1, &copied);
}
kernel void same_place_mended(global int *out, global const int *in) {
  local int items[256];
  size_t n = get_local_size(0);
  items[get_local_id(0)] = in[get_global_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  event_t copied = async_work_group_strided_copy(out + n * get_group_id(0), items, n / 2, 2, 0);
  wait_group_events(1, &copied);
}

/* Work-items of a sub-group, ordered by its barrier. */
kernel __attribute__((intel_reqd_sub_group_size(16))) void subgroup_mended(global int *out, global const int *in) {
  local int shared_items[256];
  uint l = get_local_id(0);
  shared_items[l] = in[get_global_id(0)];
  sub_group_barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = shared_items[l ^ 1];
}
