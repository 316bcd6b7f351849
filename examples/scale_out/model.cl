/* SPDX-License-Identifier: Apache-2.0 */
/* model.cl: logistic regression. A matrix has its rows one after the other. */

/* What the model says of one row, less what is right. */
kernel void compare(global float *error, const global float *x, const global float *y, const global float *weights,
                    uint features) {
  size_t row = get_global_id(0);
  float sum = 0;
  for (uint k = 0; k < features; k++) sum += x[row * features + k] * weights[k];
  error[row] = 1 / (1 + exp(-sum)) - y[row];
}

/* One element of the gradient: the sum over all rows. */
kernel void derive(global float *gradient, const global float *x, const global float *error, uint rows) {
  size_t k = get_global_id(0), features = get_global_size(0);
  float sum = 0;
  for (uint row = 0; row < rows; row++) sum += error[row] * x[row * features + k];
  gradient[k] = sum;
}
