/* SPDX-License-Identifier: Apache-2.0 */
/* add.cl: the kernel of docs/kernels.md. */
kernel void add(global float *to, const global float *x, const global float *y, uint n) {
  size_t i = get_global_id(0);
  if (i < n) to[i] = x[i] + y[i];
}
