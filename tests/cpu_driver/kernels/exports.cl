/* SPDX-License-Identifier: Apache-2.0 */
/* exports.cl: what imports.cl needs, and a variable of its own that counts. */
__global int calls = 0;

int twice(int value) {
  atomic_inc((volatile __global int *)&calls);
  return 2 * value;
}

kernel void alone(global int *out) { out[0] = 1; }
