/* SPDX-License-Identifier: Apache-2.0 */
/* saxpy.cl: the kernel that `l0rt bench kernels` launches. */
kernel void saxpy(global float *y, const global float *x, float a, uint n) {
  size_t i = get_global_id(0);
  if (i < n) y[i] += a * x[i];
}
