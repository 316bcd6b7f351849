/* SPDX-License-Identifier: Apache-2.0 */
/* images.cl: kernels that read, sample and write images of every kind. */
kernel void brightest(read_only image2d_t from, global float *out) {
  const sampler_t nearest = CLK_FILTER_NEAREST | CLK_ADDRESS_CLAMP;
  out[get_global_id(0)] = read_imagef(from, nearest, (int2)((int)get_global_id(0), 0)).x;
}

kernel void plain(global int *out) { out[get_global_id(0)] = 7; }

/* The samples of a 2-D image at floats, each beside its coordinates. */
kernel void sample2(read_only image2d_t from, sampler_t sampler, global const float2 *at, global float4 *out) {
  size_t i = get_global_id(0);
  out[i] = read_imagef(from, sampler, at[i]);
}
kernel void sample2_int(read_only image2d_t from, sampler_t sampler, global const int2 *at, global float4 *out) {
  size_t i = get_global_id(0);
  out[i] = read_imagef(from, sampler, at[i]);
}
kernel void sample1(read_only image1d_t from, sampler_t sampler, global const float *at, global float4 *out) {
  size_t i = get_global_id(0);
  out[i] = read_imagef(from, sampler, at[i]);
}
kernel void sample3(read_only image3d_t from, sampler_t sampler, global const float4 *at, global float4 *out) {
  size_t i = get_global_id(0);
  out[i] = read_imagef(from, sampler, at[i]);
}
kernel void sample1_array(read_only image1d_array_t from, sampler_t sampler, global const float2 *at,
                          global float4 *out) {
  size_t i = get_global_id(0);
  out[i] = read_imagef(from, sampler, at[i]);
}
kernel void sample2_array(read_only image2d_array_t from, sampler_t sampler, global const float4 *at,
                          global float4 *out) {
  size_t i = get_global_id(0);
  out[i] = read_imagef(from, sampler, at[i]);
}
kernel void sample2_uint(read_only image2d_t from, sampler_t sampler, global const float2 *at, global uint4 *out) {
  size_t i = get_global_id(0);
  out[i] = read_imageui(from, sampler, at[i]);
}

/* All texels, row after row, as floats and as integers. */
kernel void read2(read_only image2d_t from, global float4 *out) {
  int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
  out[at.y * get_image_width(from) + at.x] = read_imagef(from, at);
}
kernel void read2_int(read_only image2d_t from, global int4 *out) {
  int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
  out[at.y * get_image_width(from) + at.x] = read_imagei(from, at);
}
kernel void write2(write_only image2d_t to, global const float4 *from) {
  int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
  write_imagef(to, at, from[at.y * get_image_width(to) + at.x]);
}
kernel void write2_int(write_only image2d_t to, global const int4 *from) {
  int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
  write_imagei(to, at, from[at.y * get_image_width(to) + at.x]);
}
kernel void write2_uint(write_only image2d_t to, global const uint4 *from) {
  int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
  write_imageui(to, at, from[at.y * get_image_width(to) + at.x]);
}

/* Copies of images of the other kinds, texel by texel. */
kernel void copy1(read_only image1d_t from, write_only image1d_t to) {
  int at = (int)get_global_id(0);
  write_imagef(to, at, read_imagef(from, at));
}
kernel void copy3(read_only image3d_t from, write_only image3d_t to) {
  int4 at = (int4)((int)get_global_id(0), (int)get_global_id(1), (int)get_global_id(2), 0);
  write_imagef(to, at, read_imagef(from, at));
}
kernel void copy1_array(read_only image1d_array_t from, write_only image1d_array_t to) {
  int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
  write_imagef(to, at, read_imagef(from, at));
}
kernel void copy2_array(read_only image2d_array_t from, write_only image2d_array_t to) {
  int4 at = (int4)((int)get_global_id(0), (int)get_global_id(1), (int)get_global_id(2), 0);
  write_imagef(to, at, read_imagef(from, at));
}
kernel void copy_buffer(read_only image1d_buffer_t from, write_only image1d_buffer_t to) {
  int at = (int)get_global_id(0);
  write_imagef(to, at, read_imagef(from, at));
}

kernel void doubled(read_write image2d_t image) {
  int2 at = (int2)((int)get_global_id(0), (int)get_global_id(1));
  write_imagef(image, at, 2 * read_imagef(image, at));
}

kernel void asked(read_only image2d_t two, read_only image3d_t three, read_only image2d_array_t array,
                  read_only image1d_array_t line, global int *out) {
  out[0] = get_image_width(two);
  out[1] = get_image_height(two);
  out[2] = get_image_channel_order(two);
  out[3] = get_image_channel_data_type(two);
  out[4] = get_image_width(three);
  out[5] = get_image_height(three);
  out[6] = get_image_depth(three);
  int4 size = get_image_dim(three);
  out[7] = size.x * 10000 + size.y * 100 + size.z;
  out[8] = (int)get_image_array_size(array);
  out[9] = get_image_width(array) * 100 + get_image_height(array);
  out[10] = (int)get_image_array_size(line);
  out[11] = get_image_width(line);
}

/* Each work-item reads another image, or none: one lane's image is not another's. */
kernel void chosen(read_only image2d_t a, read_only image2d_t b, global float *out) {
  int i = (int)get_global_id(0);
  const sampler_t sampler = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;
  float sum = 0;
  for (int k = 0; k < i % 5; k++)
    sum += i % 2 ? read_imagef(a, sampler, (float2)(k + 0.5f, 0.5f)).x : read_imagef(b, (int2)(k, 0)).x;
  out[i] = sum;
}

kernel void beyond(read_only image2d_t from, global float4 *out) { *out = read_imagef(from, (int2)(1000, 0)); }
