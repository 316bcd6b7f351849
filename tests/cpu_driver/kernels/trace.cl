/* SPDX-License-Identifier: Apache-2.0 */
/* trace.cl: a kernel whose trace can be read. */
kernel void scale(global float *out, global const float *in, float factor) {
  size_t i = get_global_id(0);
  float value = in[i] * factor;
  if (value > 2.0f) value = 2.0f;
  out[i] = value;
}

kernel void meeting(global int *out) {
  local int first;
  if (get_local_id(0) == 0) first = (int)get_group_id(0) * 100;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[get_global_id(0)] = first;
}
