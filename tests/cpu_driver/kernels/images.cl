/* SPDX-License-Identifier: Apache-2.0 */
/* images.cl: a kernel that the engine refuses, and one that it runs. */
kernel void brightest(read_only image2d_t from, global float *out) {
  const sampler_t nearest = CLK_FILTER_NEAREST | CLK_ADDRESS_CLAMP;
  out[get_global_id(0)] = read_imagef(from, nearest, (int2)((int)get_global_id(0), 0)).x;
}

kernel void plain(global int *out) { out[get_global_id(0)] = 7; }
