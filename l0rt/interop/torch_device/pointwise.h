/* SPDX-License-Identifier: Apache-2.0 */
/* pointwise.h: pointwise operators, for OpenCL C and for C++. DO(name, operands, expression): x, y and z are operands,
 * p, q and r parameters, T is the type that is computed in, K(number) a constant of it. */
#pragma once

/* The types of elements that kernels load and store: a letter each in an argument. */
enum {
  TYPE_VALUE, /* no memory: the operand is a value */
  TYPE_BOOL,
  TYPE_BYTE,
  TYPE_CHAR,
  TYPE_SHORT,
  TYPE_INT,
  TYPE_LONG,
  TYPE_HALF,
  TYPE_BFLOAT,
  TYPE_FLOAT,
  TYPE_DOUBLE,
};

/* With integers and floating-point numbers. */
#define FOR_ALL_NUMBERS(DO)                                                                                            \
  DO(identity, 1, x)                                                                                                   \
  DO(neg, 1, -x)                                                                                                       \
  DO(abs, 1, x < 0 ? -x : x == 0 ? (T)0 : x)                                                                           \
  DO(sign, 1, (T)((x > 0) - (x < 0)))                                                                                  \
  DO(relu, 1, x > 0 || x != x ? x : (T)0)                                                                              \
  DO(clamp, 1, (x < p ? p : x) > q ? q : x < p ? p : x)                                                                \
  DO(threshold, 1, x <= p ? q : x)                                                                                     \
  DO(logical_not, 1, x == 0)                                                                                           \
  DO(add, 2, x + p * y)                                                                                                \
  DO(sub, 2, x - p * y)                                                                                                \
  DO(mul, 2, x *y)                                                                                                     \
  DO(maximum, 2, x != x || x > y ? x : y)                                                                              \
  DO(minimum, 2, x != x || x < y ? x : y)                                                                              \
  DO(eq, 2, x == y)                                                                                                    \
  DO(ne, 2, x != y)                                                                                                    \
  DO(lt, 2, x < y)                                                                                                     \
  DO(le, 2, x <= y)                                                                                                    \
  DO(gt, 2, x > y)                                                                                                     \
  DO(ge, 2, x >= y)                                                                                                    \
  DO(logical_and, 2, x != 0 && y != 0)                                                                                 \
  DO(logical_or, 2, x != 0 || y != 0)                                                                                  \
  DO(logical_xor, 2, (x != 0) != (y != 0))                                                                             \
  DO(threshold_backward, 2, y > p || y != y ? x : (T)0)                                                                \
  DO(where, 3, x != 0 ? y : z)                                                                                         \
  DO(masked_fill, 3, y != 0 ? z : x)                                                                                   \
  DO(addcmul, 3, x + p * y * z)

#define FOR_INTEGERS(DO)                                                                                               \
  DO(bitwise_not, 1, ~x)                                                                                               \
  DO(bitwise_and, 2, x &y)                                                                                             \
  DO(bitwise_or, 2, x | y)                                                                                             \
  DO(bitwise_xor, 2, x ^ y)

#define FOR_FLOATS(DO)                                                                                                 \
  DO(exp, 1, exp(x))                                                                                                   \
  DO(exp2, 1, exp2(x))                                                                                                 \
  DO(expm1, 1, expm1(x))                                                                                               \
  DO(log, 1, log(x))                                                                                                   \
  DO(log2, 1, log2(x))                                                                                                 \
  DO(log10, 1, log10(x))                                                                                               \
  DO(log1p, 1, log1p(x))                                                                                               \
  DO(sqrt, 1, sqrt(x))                                                                                                 \
  DO(rsqrt, 1, 1 / sqrt(x))                                                                                            \
  DO(reciprocal, 1, 1 / x)                                                                                             \
  DO(sin, 1, sin(x))                                                                                                   \
  DO(cos, 1, cos(x))                                                                                                   \
  DO(tan, 1, tan(x))                                                                                                   \
  DO(asin, 1, asin(x))                                                                                                 \
  DO(acos, 1, acos(x))                                                                                                 \
  DO(atan, 1, atan(x))                                                                                                 \
  DO(sinh, 1, sinh(x))                                                                                                 \
  DO(cosh, 1, cosh(x))                                                                                                 \
  DO(tanh, 1, tanh(x))                                                                                                 \
  DO(asinh, 1, asinh(x))                                                                                               \
  DO(acosh, 1, acosh(x))                                                                                               \
  DO(atanh, 1, atanh(x))                                                                                               \
  DO(erf, 1, erf(x))                                                                                                   \
  DO(erfc, 1, erfc(x))                                                                                                 \
  DO(floor, 1, floor(x))                                                                                               \
  DO(ceil, 1, ceil(x))                                                                                                 \
  DO(round, 1, rint(x))                                                                                                \
  DO(trunc, 1, trunc(x))                                                                                               \
  DO(frac, 1, x - trunc(x))                                                                                            \
  DO(sigmoid, 1, 1 / (1 + exp(-x)))                                                                                    \
  DO(silu, 1, x / (1 + exp(-x)))                                                                                       \
  DO(mish, 1, x *tanh(log1p(exp(x))))                                                                                  \
  DO(hardsigmoid, 1, fmin(fmax(x + 3, (T)0), (T)6) / 6)                                                                \
  DO(hardswish, 1, x *fmin(fmax(x + 3, (T)0), (T)6) / 6)                                                               \
  DO(gelu, 1, x *NORMAL_CDF(x))                                                                                        \
  DO(gelu_tanh, 1, K(0.5) * x * (1 + tanh(GELU_INNER(x))))                                                             \
  DO(leaky_relu, 1, x > 0 ? x : p * x)                                                                                 \
  DO(elu, 1, x > 0 ? q * x : q * p * expm1(r * x))                                                                     \
  DO(softplus, 1, p *x > q ? x : log1p(exp(p * x)) / p)                                                                \
  DO(div, 2, x / y)                                                                                                    \
  DO(div_floor, 2, FLOOR_QUOTIENT(x, y))                                                                               \
  DO(div_trunc, 2, trunc(x / y))                                                                                       \
  DO(pow, 2, pow(x, y))                                                                                                \
  DO(atan2, 2, atan2(x, y))                                                                                            \
  DO(fmod, 2, fmod(x, y))                                                                                              \
  DO(remainder, 2, REMAINDER(x, y))                                                                                    \
  DO(hypot, 2, hypot(x, y))                                                                                            \
  DO(copysign, 2, copysign(x, y))                                                                                      \
  DO(fmax, 2, fmax(x, y))                                                                                              \
  DO(fmin, 2, fmin(x, y))                                                                                              \
  DO(xlogy, 2, y != y ? y : x == 0 ? (T)0 : x * log(y))                                                                \
  DO(mse_loss, 2, (x - y) * (x - y))                                                                                   \
  DO(smooth_l1_loss, 2, fabs(x - y) < p ? K(0.5) * (x - y) * (x - y) / p : fabs(x - y) - K(0.5) * p)                   \
  DO(sigmoid_backward, 2, x * (1 - y) * y)                                                                             \
  DO(tanh_backward, 2, x * (1 - y * y))                                                                                \
  DO(gelu_backward, 2, x *(NORMAL_CDF(y) + y * K(0.3989422804014327) * exp(-K(0.5) * y * y)))                          \
  DO(gelu_tanh_backward, 2, x *GELU_SLOPE(y, tanh(GELU_INNER(y))))                                                     \
  DO(silu_backward, 2, x / (1 + exp(-y)) * (1 + y * (1 - 1 / (1 + exp(-y)))))                                          \
  DO(mish_backward, 2, x *MISH_SLOPE(y, tanh(log1p(exp(y)))))                                                          \
  DO(leaky_relu_backward, 2, y > 0 ? x : p * x)                                                                        \
  DO(elu_backward, 2, y > 0 ? x * q : x * q * p * r * exp(r * y))                                                      \
  DO(softplus_backward, 2, p *y > q ? x : x / (1 + exp(-p * y)))                                                       \
  DO(hardtanh_backward, 2, y > p && y < q ? x : (T)0)                                                                  \
  DO(hardsigmoid_backward, 2, y > -3 && y < 3 ? x / 6 : (T)0)                                                          \
  DO(hardswish_backward, 2, y <= -3 ? (T)0 : y < 3 ? x * (y / 3 + K(0.5)) : x)                                         \
  DO(addcdiv, 3, x + p * (y / z))                                                                                      \
  DO(lerp, 3, fabs(z) < K(0.5) ? x + z * (y - x) : y - (y - x) * (1 - z))                                              \
  DO(mse_loss_backward, 3, p *(y - z) * x)                                                                             \
  DO(dropout, 2, x * y * p)
