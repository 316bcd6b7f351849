/* SPDX-License-Identifier: Apache-2.0 */
/* train_spirals.cl: the layers of a network. A matrix has its rows one after the other. */

/* What a product of matrices makes of its inputs: the setting fp32_precision of xpu.matmul says how many bits of their
   mantissa it keeps, 23, 10 of TensorFloat-32 or 7 of bfloat16. Sums are whole floats, as in a matrix engine. */
#if L0RT_MATMUL_FP32_PRECISION == L0RT_BF16
#define DROPPED 16
#elif L0RT_MATMUL_FP32_PRECISION == L0RT_TF32
#define DROPPED 13
#endif

float input(float value) {
#ifdef DROPPED
  uint bits = as_uint(value), step = (1u << (DROPPED - 1)) - 1 + (bits >> DROPPED & 1); /* to nearest, ties to even */
  return isfinite(value) ? as_float((bits + step) >> DROPPED << DROPPED) : value;
#else
  return value;
#endif
}

/* One output of one row: tanh of the weighted sum, or the sum itself in the last layer. */
kernel void forward(global float *to, const global float *x, const global float *weights, uint inputs, uint is_last) {
  size_t out = get_global_id(0), row = get_global_id(1), outputs = get_global_size(0);
  float sum = weights[inputs * outputs + out];
  for (uint k = 0; k < inputs; k++) sum += input(x[row * inputs + k]) * input(weights[k * outputs + out]);
  to[row * outputs + out] = is_last ? sum : tanh(sum);
}

/* The logistic loss of one row, and its derivative by the network's output. One group has the whole batch. */
kernel void compare(global float *delta, global float *loss, const global float *out, const global float *labels,
                    local float *scratch) {
  uint row = get_local_id(0), rows = get_local_size(0);
  float z = out[row];
  delta[row] = (1 / (1 + exp(-z)) - labels[row]) / rows;
  scratch[row] = fmax(z, 0.0f) - z * labels[row] + log(1 + exp(-fabs(z)));
  for (uint width = rows / 2; width > 0; width /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (row < width) scratch[row] += scratch[row + width];
  }
  if (row == 0) *loss += scratch[0] / rows;
}

/* The derivative by one input's sum, whose tanh the input is. */
kernel void backward(global float *before, const global float *x, const global float *delta,
                     const global float *weights, uint outputs) {
  size_t in = get_global_id(0), row = get_global_id(1), inputs = get_global_size(0);
  float sum = 0, value = x[row * inputs + in];
  for (uint k = 0; k < outputs; k++) sum += input(delta[row * outputs + k]) * input(weights[in * outputs + k]);
  before[row * inputs + in] = sum * (1 - value * value);
}

/* One weight goes down its derivative, with momentum. The last row is the biases, whose input is 1. */
kernel void descend(global float *weights, global float *velocity, const global float *x, const global float *delta,
                    uint inputs, uint rows, float rate, float momentum) {
  size_t out = get_global_id(0), in = get_global_id(1), outputs = get_global_size(0);
  float sum = 0;
  for (uint row = 0; row < rows; row++)
    sum += input(in < inputs ? x[row * inputs + in] : 1.0f) * input(delta[row * outputs + out]);
  size_t at = in * outputs + out;
  velocity[at] = momentum * velocity[at] - rate * sum;
  weights[at] += velocity[at];
}
