/* SPDX-License-Identifier: Apache-2.0 */
/* mathematics.c: the mathematical functions of OpenCL, one lane after another, by functions of the C library and a few
 * others.
 *
 * The functions of the C library have an error of one or two units in the last place, which OpenCL allows for each. */
#include <math.h>

#include "spirv/run/run.h"

static double sine_of_pi(double x) {
  if (isinf(x)) return NAN;
  double r = x - 2 * rint(x / 2); /* exact, in [-1, 1] */
  if (r > 0.5) r = 1 - r;
  else if (r < -0.5) r = -1 - r;
  if (x == rint(x)) return copysign(0, x);
  return fabs(r) <= 0.25 ? sin(M_PI * r) : copysign(cos(M_PI * (0.5 - fabs(r))), r);
}

static double cosine_of_pi(double x) {
  if (isinf(x)) return NAN;
  double r = fabs(x - 2 * rint(x / 2)); /* in [0, 1] */
  if (r == 0.5) return 0;
  return r <= 0.25 ? cos(M_PI * r) : r < 0.75 ? sin(M_PI * (0.5 - r)) : -cos(M_PI * (1 - r));
}

static double tangent_of_pi(double x) {
  if (isinf(x) || isnan(x)) return NAN;
  double r = x - rint(x); /* in [-0.5, 0.5] */
  bool odd = fmod(rint(x), 2) != 0;
  if (r == 0) return copysign(0, odd ? -x : x);
  if (fabs(r) == 0.5) return copysign(INFINITY, fmod(x - r, 2) != 0 ? -r : r);
  /* Near a pole it is computed from the distance to the pole, which is exact. */
  return fabs(r) <= 0.25 ? tan(M_PI * r) : copysign(1 / tan(M_PI * (0.5 - fabs(r))), r);
}

static double half_logarithm(double x) { return lgamma(x); }

static double power_of_positive(double x, double y) {
  if (x < 0 || isnan(x) || isnan(y) || (x == 0 && y == 0) || (x == 1 && isinf(y)) || (isinf(x) && y == 0)) return NAN;
  return pow(fabs(x), y);
}

static long double root(long double x, int32_t n) {
  if (n == 0 || (x < 0 && n % 2 == 0)) return NAN;
  long double size = powl(fabsl(x), 1.0L / n);
  return n % 2 == 0 ? size : copysignl(size, x);
}

/* The result of the C library has the wrong sign for some zeros. */
static double rest(double x, double y) {
  double r = remainder(x, y);
  return r == 0 ? copysign(0, x) : r;
}

static double fraction(double x) {
  int unused;
  return frexp(x, &unused);
}

/* X(function, expression for double). The error of cbrt itself is above the two units that OpenCL allows. */
#define ONE_OPERAND(X)                                                                                                 \
  X(acos, acos(x))                                                                                                     \
  X(acosh, acosh(x))                                                                                                   \
  X(acospi, acos(x) / M_PI)                                                                                            \
  X(asin, asin(x))                                                                                                     \
  X(asinh, asinh(x))                                                                                                   \
  X(asinpi, asin(x) / M_PI)                                                                                            \
  X(atan, atan(x))                                                                                                     \
  X(atanh, atanh(x))                                                                                                   \
  X(atanpi, atan(x) / M_PI)                                                                                            \
  X(cbrt, (double)cbrtl((long double)x))                                                                               \
  X(cos, cos(x))                                                                                                       \
  X(cosh, cosh(x))                                                                                                     \
  X(cospi, cosine_of_pi(x))                                                                                            \
  X(erfc, erfc(x))                                                                                                     \
  X(erf, erf(x))                                                                                                       \
  X(exp, exp(x))                                                                                                       \
  X(exp2, exp2(x))                                                                                                     \
  X(exp10, exp10(x))                                                                                                   \
  X(expm1, expm1(x))                                                                                                   \
  X(frexp, fraction(x))                                                                                                \
  X(lgamma, half_logarithm(x))                                                                                         \
  X(log, log(x))                                                                                                       \
  X(log2, log2(x))                                                                                                     \
  X(log10, log10(x))                                                                                                   \
  X(log1p, log1p(x))                                                                                                   \
  X(logb, logb(x))                                                                                                     \
  X(round, round(x))                                                                                                   \
  X(sin, sin(x))                                                                                                       \
  X(sinh, sinh(x))                                                                                                     \
  X(sinpi, sine_of_pi(x))                                                                                              \
  X(tan, tan(x))                                                                                                       \
  X(tanh, tanh(x))                                                                                                     \
  X(tanpi, tangent_of_pi(x))                                                                                           \
  X(tgamma, tgamma(x))

#define TWO_OPERANDS(X)                                                                                                \
  X(atan2, atan2(x, y))                                                                                                \
  X(atan2pi, atan2(x, y) / M_PI)                                                                                       \
  X(fmod, fmod(x, y))                                                                                                  \
  X(hypot, hypot(x, y))                                                                                                \
  X(pow, pow(x, y))                                                                                                    \
  X(powr, power_of_positive(x, y))                                                                                     \
  X(remainder, rest(x, y))

typedef double real1(double x);
typedef double real2(double x, double y);

#define FUNCTION1(name, expression)                                                                                    \
  static double cl_##name(double x) { return expression; }
ONE_OPERAND(FUNCTION1)
#define FUNCTION2(name, expression)                                                                                    \
  static double cl_##name(double x, double y) { return expression; }
TWO_OPERANDS(FUNCTION2)

/* native_ and half_ functions are the same as those without a prefix. */
static uint32_t exact(uint32_t function) {
  static const uint8_t same[] = {CL_cos,   0,       CL_exp, CL_exp2, CL_exp10, CL_log, CL_log2,
                                 CL_log10, CL_powr, 0,      0,       CL_sin,   0,      CL_tan};
  if (function >= CL_half_cos && function <= CL_half_tan) return same[function - CL_half_cos];
  if (function >= CL_native_cos && function <= CL_native_tan) return same[function - CL_native_cos];
  return function;
}

static real1 *find1(uint32_t function) {
#define ENTRY(name, expression) [CL_##name] = cl_##name,
  static real1 *const table[256] = {ONE_OPERAND(ENTRY)};
  return function < 256 ? table[exact(function)] : NULL;
}

static real2 *find2(uint32_t function) {
  static real2 *const table[256] = {TWO_OPERANDS(ENTRY)};
  return function < 256 ? table[exact(function)] : NULL;
}

static int32_t exponent(double x, uint32_t function) {
  int e = 0;
  if (function == CL_frexp) {
    frexp(x, &e);
    return isfinite(x) ? e : 0;
  }
  if (function == CL_lgamma_r) {
    lgamma_r(x, &e);
    return e;
  }
  return isnan(x) || isinf(x) ? INT32_MAX : x == 0 ? INT32_MIN : ilogb(x);
}

static double with_integer(double x, int32_t n, uint32_t function, bool narrow) {
  if (function == CL_ldexp) return narrow ? (double)ldexpf((float)x, n) : ldexp(x, n);
  return function == CL_rootn ? (double)root(x, n) : pow(x, n);
}

/* Returns seven bits of the quotient with its sign; remquo of the C library returns three. */
static double quotient(double x, double y) {
  if (isnan(x) || isnan(y) || isinf(x) || y == 0 || isinf(y)) return 0;
  double q = rint((remainder(x, 128 * y) - remainder(x, y)) / y); /* in [-64, 64] */
  bool negative = signbit(x) != signbit(y);
  if (negative && q > 0) q -= 128;
  if (!negative && q < 0) q += 128;
  return q;
}

/* Functions of floats are computed as doubles and rounded once. ldexp and nextafter are computed as floats. */
#define HANDLERS(tag, F)                                                                                               \
  static void one_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                            \
    F *d = REGISTER(F, s->d);                                                                                          \
    const F *a = REGISTER(F, s->a);                                                                                    \
    real1 *f = find1(s->extra);                                                                                        \
    for (size_t k = 0; k < lanes; k++) d[k] = (F)f((double)a[k]);                                                      \
  }                                                                                                                    \
  static void one_uniform_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                    \
    (void)lanes;                                                                                                       \
    one_##tag(w, s, 1);                                                                                                \
  }                                                                                                                    \
  static void two_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                            \
    F *d = REGISTER(F, s->d);                                                                                          \
    const F *a = REGISTER(F, s->a), *b = REGISTER(F, s->b);                                                            \
    real2 *f = find2(s->extra);                                                                                        \
    if (f == NULL && s->extra == CL_nextafter)                                                                         \
      for (size_t k = 0; k < lanes; k++) d[k] = NEXT_##tag(a[k], b[k]);                                                \
    else                                                                                                               \
      for (size_t k = 0; k < lanes; k++) d[k] = (F)f((double)a[k], (double)b[k]);                                      \
  }                                                                                                                    \
  static void two_uniform_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                    \
    (void)lanes;                                                                                                       \
    two_##tag(w, s, 1);                                                                                                \
  }                                                                                                                    \
  static void quotient_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                       \
    float *d = REGISTER(float, s->d);                                                                                  \
    const F *a = REGISTER(F, s->a), *b = REGISTER(F, s->b);                                                            \
    for (size_t k = 0; k < lanes; k++) d[k] = (float)quotient((double)a[k], (double)b[k]);                             \
  }                                                                                                                    \
  static void quotient_uniform_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                               \
    (void)lanes;                                                                                                       \
    quotient_##tag(w, s, 1);                                                                                           \
  }                                                                                                                    \
  static void from_int_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                       \
    F *d = REGISTER(F, s->d);                                                                                          \
    const F *a = REGISTER(F, s->a);                                                                                    \
    const int32_t *b = REGISTER(int32_t, s->b);                                                                        \
    for (size_t k = 0; k < lanes; k++) d[k] = (F)with_integer((double)a[k], b[k], s->extra, sizeof(F) == 4);           \
  }                                                                                                                    \
  static void from_int_uniform_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                               \
    (void)lanes;                                                                                                       \
    from_int_##tag(w, s, 1);                                                                                           \
  }                                                                                                                    \
  static void to_int_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                         \
    int32_t *d = REGISTER(int32_t, s->d);                                                                              \
    const F *a = REGISTER(F, s->a);                                                                                    \
    for (size_t k = 0; k < lanes; k++) d[k] = exponent((double)a[k], s->extra);                                        \
  }                                                                                                                    \
  static void to_int_uniform_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                 \
    (void)lanes;                                                                                                       \
    to_int_##tag(w, s, 1);                                                                                             \
  }
#define NEXT_F32(x, y) nextafterf(x, y)
#define NEXT_F64(x, y) nextafter(x, y)
#define NEXT_F16(x, y) next_half(x, y)

/* The next half: the bits of halves, as a number, grow with their size. */
static float next_half(float x, float y) {
  if (x != x || y != y) return NAN;
  if (x == y) return y;
  if (x == 0) return copysignf(0x1p-24f, y);
  float size = fabsf(x), step = size < 0x1p-13f ? 0x1p-24f : ldexpf(1, ilogbf(size) - 10);
  bool grows = (y > x) == (x > 0);
  if (isinf(x)) return copysignf(65504, x);
  if (!grows && size == ldexpf(1, ilogbf(size)) && size > 0x1p-14f) step /= 2; /* there steps are smaller */
  size = grows ? size + step : size - step;
  return copysignf(size > 65504 ? INFINITY : size, x);
}

HANDLERS(F32, float)
HANDLERS(F64, double)

static void two_F16(spirv_wave *w, const spirv_step *s, size_t lanes) {
  float *d = REGISTER(float, s->d);
  const float *a = REGISTER(float, s->a), *b = REGISTER(float, s->b);
  for (size_t k = 0; k < lanes; k++) d[k] = next_half(a[k], b[k]);
}

static void two_uniform_F16(spirv_wave *w, const spirv_step *s, size_t lanes) {
  (void)lanes;
  two_F16(w, s, 1);
}

spirv_handler *spirv_math(ir_op op, spirv_lane lane, uint32_t function, bool uniform) {
  bool wide = lane == LANE_F64;
#define CHOOSE(name) (wide ? (uniform ? name##_uniform_F64 : name##_F64) : (uniform ? name##_uniform_F32 : name##_F32))
  if (lane == LANE_F16)
    return op == IR_MATH2 && function == CL_nextafter ? (uniform ? two_uniform_F16 : two_F16) : NULL;
  if (lane != LANE_F32 && !wide) return NULL;
  switch (op) {
    case IR_MATH1: return find1(function) == NULL ? NULL : CHOOSE(one);
    case IR_MATH2:
      if (function == CL_remquo) return CHOOSE(quotient);
      return find2(function) == NULL && function != CL_nextafter ? NULL : CHOOSE(two);
    case IR_MATH2_INT: return CHOOSE(from_int);
    case IR_MATH1_INT: return CHOOSE(to_int);
    default: return NULL;
  }
}
