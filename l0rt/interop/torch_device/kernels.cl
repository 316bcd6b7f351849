/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.cl: torch's operators on l0rt. kernels.spv is what a compiler made of it: see CONTRIBUTING.md. */

/* As in tensors.h: the first dimension is the fastest; steps are in elements. */
typedef struct {
  int dims;
  int unused;
  long sizes[8];
  long steps[3][8];
} shape;

/* The number of the work-item: of a launch, it comes last and has the count of all. */
#define ITEM(count)                                                          \
  ulong i = get_global_id(0) + (ulong)get_global_size(0) * get_global_id(1); \
  if (i >= count) return;

#define PLACES(s)                     \
  long a = 0, b = 0, c = 0;           \
  ulong rest = i;                     \
  for (int d = 0; d < s.dims; d++) {  \
    long k = rest % (ulong)s.sizes[d]; \
    rest /= (ulong)s.sizes[d];        \
    a += k * s.steps[0][d];           \
    b += k * s.steps[1][d];           \
    c += k * s.steps[2][d];           \
  }

#define COPY(NAME, T)                                                                 \
  kernel void copy_##NAME(global T *to, global const T *from, shape s, ulong count) { \
    ITEM(count)                                                                       \
    PLACES(s)                                                                         \
    to[a] = from[b];                                                                  \
  }
COPY(1, uchar)
COPY(2, ushort)
COPY(4, uint)
COPY(8, ulong)
COPY(16, ulong2)

#define CAST(TO_NAME, TO, FROM_NAME, FROM)                                                                     \
  kernel void cast_##FROM_NAME##_##TO_NAME(global TO *to, global const FROM *from, shape s, ulong count) {     \
    ITEM(count)                                                                                                \
    PLACES(s)                                                                                                  \
    to[a] = (TO)from[b];                                                                                       \
  }
CAST(float, float, long, long)
CAST(float, float, int, int)
CAST(float, float, bool, uchar)
CAST(long, long, int, int)
CAST(long, long, bool, uchar)
CAST(int, int, long, long)
CAST(long, long, float, float)
CAST(int, int, float, float)

/* One operand, two operands: dense ones that begin alike, and any others. `x` and `y` are values, `p` a parameter. */
#define UNARY(NAME, EXPRESSION)                                                                                    \
  kernel void NAME##_dense(global float *to, global const float *from, float p, ulong count) {                     \
    ITEM(count)                                                                                                    \
    float x = from[i];                                                                                             \
    to[i] = EXPRESSION;                                                                                            \
  }                                                                                                                \
  kernel void NAME##_strided(global float *to, global const float *from, float p, shape s, ulong count) {          \
    ITEM(count)                                                                                                    \
    PLACES(s)                                                                                                      \
    float x = from[b];                                                                                             \
    to[a] = EXPRESSION;                                                                                            \
  }
#define BINARY(NAME, EXPRESSION)                                                                                   \
  kernel void NAME##_dense(global float *to, global const float *left, global const float *right, float p,         \
                           ulong count) {                                                                          \
    ITEM(count)                                                                                                    \
    float x = left[i], y = right[i];                                                                               \
    to[i] = EXPRESSION;                                                                                            \
  }                                                                                                                \
  kernel void NAME##_strided(global float *to, global const float *left, global const float *right, float p,       \
                             shape s, ulong count) {                                                               \
    ITEM(count)                                                                                                    \
    PLACES(s)                                                                                                      \
    float x = left[b], y = right[c];                                                                               \
    to[a] = EXPRESSION;                                                                                            \
  }                                                                                                                \
  kernel void NAME##_scalar(global float *to, global const float *left, float y, float p, ulong count) {           \
    ITEM(count)                                                                                                    \
    float x = left[i];                                                                                             \
    to[i] = EXPRESSION;                                                                                            \
  }
UNARY(neg, -x)
UNARY(abs, fabs(x))
UNARY(exp, exp(x))
UNARY(log, log(x))
UNARY(sqrt, sqrt(x))
UNARY(rsqrt, 1.0f / sqrt(x))
UNARY(reciprocal, 1.0f / x)
UNARY(tanh, tanh(x))
UNARY(sigmoid, 1.0f / (1.0f + exp(-x)))
UNARY(relu, x > 0 || x != x ? x : 0.0f)
UNARY(sin, sin(x))
UNARY(cos, cos(x))
BINARY(add, x + p * y)
BINARY(sub, x - p * y)
BINARY(mul, x * y)
BINARY(div, x / y)
BINARY(maximum, x != x || x > y ? x : y)
BINARY(minimum, x != x || x < y ? x : y)
BINARY(threshold_backward, y > p || y != y ? x : 0.0f)
BINARY(sigmoid_backward, x * (1.0f - y) * y)
BINARY(tanh_backward, x * (1.0f - y * y))

/* The sum over `inner` elements, of which each result has its own: outer of them, scaled. */
kernel void sum_rows(global float *to, global const float *from, ulong inner, ulong outer_step, ulong inner_step,
                     float scale, ulong count) {
  ITEM(count)
  global const float *row = from + i * outer_step;
  float sum = 0, lost = 0; /* Kahan's: torch's sum is pairwise */
  for (ulong k = 0; k < inner; k++) {
    float term = row[k * inner_step] - lost, next = sum + term;
    lost = (next - sum) - term;
    sum = next;
  }
  to[i] = sum * scale;
}

/* log_softmax and softmax over the last dimension of a dense tensor. */
kernel void softmax_rows(global float *to, global const float *from, ulong size, int is_log, ulong count) {
  ITEM(count)
  global const float *row = from + i * size;
  global float *out = to + i * size;
  float most = -INFINITY, sum = 0;
  for (ulong k = 0; k < size; k++) most = fmax(most, row[k]);
  for (ulong k = 0; k < size; k++) sum += exp(row[k] - most);
  float shift = most + log(sum), scale = 1.0f / sum;
  for (ulong k = 0; k < size; k++) out[k] = is_log ? row[k] - shift : exp(row[k] - most) * scale;
}

kernel void softmax_backward_rows(global float *to, global const float *grad, global const float *result, ulong size,
                                  int is_log, ulong count) {
  ITEM(count)
  ulong at = i * size;
  float sum = 0;
  for (ulong k = at; k < at + size; k++) sum += is_log ? grad[k] : grad[k] * result[k];
  for (ulong k = at; k < at + size; k++) {
    to[k] = is_log ? grad[k] - exp(result[k]) * sum : (grad[k] - sum) * result[k];
  }
}

/* to = a @ b, and a bias if there is one, for each of a batch, with steps of all operands. A work-item computes 4 rows. */
kernel void matmul(global float *to, global const float *a, global const float *b, global const float *bias, uint rows,
                   uint depth, uint columns, ulong a_batch, ulong a_row, ulong a_column, ulong b_batch, ulong b_row,
                   ulong b_column, ulong bias_row, ulong count) {
  ITEM(count)
  uint column = i % columns;
  ulong rest = i / columns;
  uint strips = (rows + 3) / 4, row = rest % strips * 4;
  ulong batch = rest / strips;
  a += batch * a_batch + row * a_row;
  b += batch * b_batch + column * b_column;
  uint last = min(3u, rows - 1 - row);
  ulong r1 = min(1u, last) * a_row, r2 = min(2u, last) * a_row, r3 = last * a_row;
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (uint k = 0; k < depth; k++) {
    float y = b[k * b_row];
    s0 += a[0] * y;
    s1 += a[r1] * y;
    s2 += a[r2] * y;
    s3 += a[r3] * y;
    a += a_column;
  }
  to += (batch * rows + row) * columns + column;
  if (bias) {
    bias += column;
    s0 += bias[row * bias_row];
    s1 += bias[(row + min(1u, last)) * bias_row];
    s2 += bias[(row + min(2u, last)) * bias_row];
    s3 += bias[(row + last) * bias_row];
  }
  to[0] = s0;
  if (last > 0) to[columns] = s1;
  if (last > 1) to[2 * columns] = s2;
  if (last > 2) to[3 * columns] = s3;
}
