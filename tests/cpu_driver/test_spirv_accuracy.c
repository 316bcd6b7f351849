/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_accuracy.c: the functions of OpenCL.std on halves, floats and doubles against long double, with the bounds of
 * the OpenCL C specification (7.4, "Relative Error as ULPs"; 7.5.1 for the edge cases). Arguments: how many thousand
 * random operands of each function and type (2 without), the first seed; a third prints the largest errors found. */
#include <math.h>

#include "assembler.h"
#include "halves.h"
#include "spirv/decode/grammar.h"

typedef long double real;
#define PI 3.14159265358979323846264338327950288419717L

static real sinpi_of(real x) {
  real r = x - 2 * rintl(x / 2);
  if (isinf(x)) return NAN;
  if (x == rintl(x)) return copysignl(0, x);
  if (fabsl(r) > 0.5L) r = copysignl(1, r) - r;
  return fabsl(r) <= 0.25L ? sinl(PI * r) : copysignl(cosl(PI * (0.5L - fabsl(r))), r);
}
static real cospi_of(real x) {
  real r = fabsl(x - 2 * rintl(x / 2));
  if (r == 0.5L) return 0;
  return r <= 0.25L ? cosl(PI * r) : r < 0.75L ? sinl(PI * (0.5L - r)) : -cosl(PI * (1 - r));
}
static real tanpi_of(real x) {
  if (!isfinite(x)) return NAN;
  real r = x - rintl(x);
  bool odd = fmodl(rintl(x), 2) != 0;
  if (r == 0) return copysignl(0, odd ? -x : x);
  if (fabsl(r) == 0.5L) return copysignl(INFINITY, fmodl(x - r, 2) != 0 ? -r : r);
  return fabsl(r) <= 0.25L ? tanl(PI * r) : copysignl(1 / tanl(PI * (0.5L - fabsl(r))), r);
}
static real powr_of(real x, real y) {
  if (x < 0 || isnan(x) || isnan(y) || (x == 0 && y == 0) || (x == 1 && isinf(y)) || (isinf(x) && y == 0)) return NAN;
  return powl(fabsl(x), y);
}
static real rsqrt_of(real x) { return x == 0 ? copysignl(INFINITY, 1 / x) : 1 / sqrtl(x); }
static real maxmag_of(real x, real y) { return fabsl(x) > fabsl(y) ? x : fabsl(y) > fabsl(x) ? y : fmaxl(x, y); }
static real minmag_of(real x, real y) { return fabsl(x) < fabsl(y) ? x : fabsl(y) < fabsl(x) ? y : fminl(x, y); }
static real sign_of(real x) { return isnan(x) ? 0 : x > 0 ? 1 : x < 0 ? -1 : x; }
static real rootn_of(real x, int n) {
  if (n == 0 || (x < 0 && n % 2 == 0)) return NAN;
  real size = powl(fabsl(x), 1 / (real)n);
  return n % 2 == 0 ? size : copysignl(size, x);
}

enum { ANY = 1 << 20 /* implementation-defined, or 8192 and more: near enough to see what it is */ };

/* X(function, reference of x, bounds for half, float, double); 0: the very bits. */
#define ONE(X)                                                                                                         \
  X(acos, acosl(x), 2, 4, 4)                                                                                           \
  X(acosh, acoshl(x), 2, 4, 4)                                                                                         \
  X(acospi, acosl(x) / PI, 2, 5, 5)                                                                                    \
  X(asin, asinl(x), 2, 4, 4)                                                                                           \
  X(asinh, asinhl(x), 2, 4, 4)                                                                                         \
  X(asinpi, asinl(x) / PI, 2, 5, 5)                                                                                    \
  X(atan, atanl(x), 2, 5, 5)                                                                                           \
  X(atanh, atanhl(x), 2, 5, 5)                                                                                         \
  X(atanpi, atanl(x) / PI, 2, 5, 5)                                                                                    \
  X(cbrt, cbrtl(x), 2, 2, 2)                                                                                           \
  X(ceil, ceill(x), 0, 0, 0)                                                                                           \
  X(cos, cosl(x), 2, 4, 4)                                                                                             \
  X(cosh, coshl(x), 2, 4, 4)                                                                                           \
  X(cospi, cospi_of(x), 2, 4, 4)                                                                                       \
  X(degrees, x * 180 / PI, 2, 2, 2)                                                                                    \
  X(erf, erfl(x), 4, 16, 16)                                                                                           \
  X(erfc, erfcl(x), 4, 16, 16)                                                                                         \
  X(exp, expl(x), 2, 3, 3)                                                                                             \
  X(exp10, powl(10, x), 2, 3, 3)                                                                                       \
  X(exp2, exp2l(x), 2, 3, 3)                                                                                           \
  X(expm1, expm1l(x), 2, 3, 3)                                                                                         \
  X(fabs, fabsl(x), 0, 0, 0)                                                                                           \
  X(floor, floorl(x), 0, 0, 0)                                                                                         \
  X(half_cos, cosl(x), 8192, 8192, 0)                                                                                  \
  X(half_exp, expl(x), 8192, 8192, 0)                                                                                  \
  X(half_exp10, powl(10, x), 8192, 8192, 0)                                                                            \
  X(half_exp2, exp2l(x), 8192, 8192, 0)                                                                                \
  X(half_log, logl(x), 8192, 8192, 0)                                                                                  \
  X(half_log10, log10l(x), 8192, 8192, 0)                                                                              \
  X(half_log2, log2l(x), 8192, 8192, 0)                                                                                \
  X(half_recip, 1 / x, 8192, 8192, 0)                                                                                  \
  X(half_rsqrt, rsqrt_of(x), 8192, 8192, 0)                                                                            \
  X(half_sin, sinl(x), 8192, 8192, 0)                                                                                  \
  X(half_sqrt, sqrtl(x), 8192, 8192, 0)                                                                                \
  X(half_tan, tanl(x), 8192, 8192, 0)                                                                                  \
  X(lgamma, lgammal(x), ANY, ANY, ANY)                                                                                 \
  X(log, logl(x), 2, 3, 3)                                                                                             \
  X(log10, log10l(x), 2, 3, 3)                                                                                         \
  X(log1p, log1pl(x), 2, 2, 2)                                                                                         \
  X(log2, log2l(x), 2, 3, 3)                                                                                           \
  X(logb, logbl(x), 0, 0, 0)                                                                                           \
  X(native_cos, cosl(x), 8192, 8192, 8192)                                                                             \
  X(native_exp, expl(x), 8192, 8192, 8192)                                                                             \
  X(native_exp10, powl(10, x), 8192, 8192, 8192)                                                                       \
  X(native_exp2, exp2l(x), 8192, 8192, 8192)                                                                           \
  X(native_log, logl(x), 8192, 8192, 8192)                                                                             \
  X(native_log10, log10l(x), 8192, 8192, 8192)                                                                         \
  X(native_log2, log2l(x), 8192, 8192, 8192)                                                                           \
  X(native_recip, 1 / x, 8192, 8192, 8192)                                                                             \
  X(native_rsqrt, rsqrt_of(x), 8192, 8192, 8192)                                                                       \
  X(native_sin, sinl(x), 8192, 8192, 8192)                                                                             \
  X(native_sqrt, sqrtl(x), 8192, 8192, 8192)                                                                           \
  X(native_tan, tanl(x), 8192, 8192, 8192)                                                                             \
  X(radians, x *PI / 180, 2, 2, 2)                                                                                     \
  X(rint, rintl(x), 0, 0, 0)                                                                                           \
  X(round, roundl(x), 0, 0, 0)                                                                                         \
  X(rsqrt, rsqrt_of(x), 1, 2, 2)                                                                                       \
  X(sign, sign_of(x), 0, 0, 0)                                                                                         \
  X(sin, sinl(x), 2, 4, 4)                                                                                             \
  X(sinh, sinhl(x), 2, 4, 4)                                                                                           \
  X(sinpi, sinpi_of(x), 2, 4, 4)                                                                                       \
  X(sqrt, sqrtl(x), 0, 3, 0)                                                                                           \
  X(tan, tanl(x), 2, 5, 5)                                                                                             \
  X(tanh, tanhl(x), 2, 5, 5)                                                                                           \
  X(tanpi, tanpi_of(x), 2, 6, 6)                                                                                       \
  X(tgamma, tgammal(x), 4, 16, 16)                                                                                     \
  X(trunc, truncl(x), 0, 0, 0)

#define TWO(X)                                                                                                         \
  X(atan2, atan2l(x, y), 2, 6, 6)                                                                                      \
  X(atan2pi, atan2l(x, y) / PI, 2, 6, 6)                                                                               \
  X(copysign, copysignl(x, y), 0, 0, 0)                                                                                \
  X(fdim, fdiml(x, y), 0, 0, 0)                                                                                        \
  X(fmax, fmaxl(x, y), 0, 0, 0)                                                                                        \
  X(fmin, fminl(x, y), 0, 0, 0)                                                                                        \
  X(fmod, fmodl(x, y), 0, 0, 0)                                                                                        \
  X(half_divide, x / y, 8192, 8192, 0)                                                                                 \
  X(half_powr, powr_of(x, y), 8192, 8192, 0)                                                                           \
  X(hypot, hypotl(x, y), 2, 4, 4)                                                                                      \
  X(maxmag, maxmag_of(x, y), 0, 0, 0)                                                                                  \
  X(minmag, minmag_of(x, y), 0, 0, 0)                                                                                  \
  X(native_divide, x / y, 8192, 8192, 8192)                                                                            \
  X(native_powr, powr_of(x, y), 8192, 8192, 8192)                                                                      \
  X(nextafter, 0, 0, 0, 0)                                                                                             \
  X(pow, powl(x, y), 4, 16, 16)                                                                                        \
  X(powr, powr_of(x, y), 4, 16, 16)                                                                                    \
  X(remainder, remainderl(x, y), 0, 0, 0)                                                                              \
  X(step, (y < x ? 0 : 1), 0, 0, 0)

#define WITH_INTEGER(X)                                                                                                \
  X(ldexp, ldexpl(x, n), 0, 0, 0)                                                                                      \
  X(pown, powl(x, n), 4, 16, 16)                                                                                       \
  X(rootn, rootn_of(x, n), 4, 16, 16)

#define THREE(X)                                                                                                       \
  X(fclamp, fminl(fmaxl(x, y), z), 0, 0, 0)                                                                            \
  X(fma, 0, 0, 0, 0)                                                                                                   \
  X(mad, 0, 0, 0, 0)                                                                                                   \
  X(mix, 0, 0, 0, 0)                                                                                                   \
  X(smoothstep, 0, 0, 0, 0)

typedef struct {
  const char *name;
  uint32_t function, operands;
  double bounds[3];
  bool integer; /* the second operand */
  real (*one)(real x);
  real (*two)(real x, real y);
  real (*with)(real x, int n);
  real (*three)(real x, real y, real z);
} row;

#define ONE_REFERENCE(name, e, h, f, d)                                                                                \
  static real one_##name(real x) { return e; }
#define TWO_REFERENCE(name, e, h, f, d)                                                                                \
  static real two_##name(real x __attribute__((unused)), real y __attribute__((unused))) { return e; }
#define WITH_REFERENCE(name, e, h, f, d)                                                                               \
  static real with_##name(real x, int n) { return e; }
#define THREE_REFERENCE(name, e, h, f, d)                                                                              \
  static real three_##name(real x __attribute__((unused)), real y __attribute__((unused)),                             \
                           real z __attribute__((unused))) {                                                           \
    return e;                                                                                                          \
  }
ONE(ONE_REFERENCE)
TWO(TWO_REFERENCE)
WITH_INTEGER(WITH_REFERENCE)
THREE(THREE_REFERENCE)
#define ONE_ROW(n, e, h, f, d) {.name = #n, .function = CL_##n, .operands = 1, .bounds = {h, f, d}, .one = one_##n},
#define TWO_ROW(n, e, h, f, d) {.name = #n, .function = CL_##n, .operands = 2, .bounds = {h, f, d}, .two = two_##n},
#define WITH_ROW(n, e, h, f, d)                                                                                        \
  {.name = #n, .function = CL_##n, .operands = 2, .bounds = {h, f, d}, .integer = true, .with = with_##n},
#define THREE_ROW(n, e, h, f, d)                                                                                       \
  {.name = #n, .function = CL_##n, .operands = 3, .bounds = {h, f, d}, .three = three_##n},
static const row rows[] = {ONE(ONE_ROW) TWO(TWO_ROW) WITH_INTEGER(WITH_ROW) THREE(THREE_ROW)};

/* ---- Numbers of a type ---------------------------------------------------------------------------------------------- */

static const int precision[] = {11, 24, 53}, least_exponent[] = {-14, -126, -1022}, most_exponent[] = {15, 127, 1023};
static const char *const type_names[] = {"half", "float", "double"};

static uint64_t state;
static uint64_t any(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint64_t)scrambled((uint32_t)(state >> 32)) << 32 | scrambled((uint32_t)state + 77);
}

static double get(element type, const void *array, size_t i) {
  if (type == HALF) return half_value_of(((const uint16_t *)array)[i]);
  return type == FLOAT ? (double)((const float *)array)[i] : ((const double *)array)[i];
}
static void set(element type, void *array, size_t i, double v) {
  if (type == HALF) ((uint16_t *)array)[i] = half_nearest(v);
  else if (type == FLOAT) ((float *)array)[i] = (float)v;
  else ((double *)array)[i] = v;
}
static void set_bits(element type, void *array, size_t i, uint64_t bits) {
  memcpy((char *)array + i * element_size[type], &bits, element_size[type]);
  if (isnan(get(type, array, i))) set(type, array, i, (double)NAN); /* OpenCL asks for no signalling ones */
}
static uint64_t bits_of(element type, const void *array, size_t i) {
  uint64_t bits = 0;
  memcpy(&bits, (const char *)array + i * element_size[type], element_size[type]);
  return bits;
}

/* Numbers where functions change: exact values, and eight neighbours on each side of each. */
static size_t fill_special(element type, void *array, size_t count, int around) {
  double values[400];
  size_t n = 0, at = 0;
  int t = (int)type - HALF;
  for (int k = 0; k <= 40; k++) values[n++] = k;
  for (int k = 0; k <= 40; k++) values[n++] = k / 2.0 + 0.25;
  for (int k = 1; k <= 24; k++) values[n++] = k * M_PI / 4;
  for (int k = -20; k <= 20; k++) values[n++] = ldexp(1, k * most_exponent[t] / 20);
  for (int k = 1; k <= 12; k++) values[n++] = pow(10, k % 2 ? k : -k);
  static const double more[] = {M_E,   M_LN2,  M_LN10, M_SQRT2, M_SQRT1_2, 0.9,    1.4616321449683623,
                                88.72, 103.97, 709.78, 745.1,   11.09,     171.62, 35.04,
                                26.54, 27.2,   1e5,    1e22,    104729,    65504};
  for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) values[n++] = more[k];
  values[n++] = ldexp(1, least_exponent[t] - precision[t] + 1); /* the least of all */
  values[n++] = ldexp(1, least_exponent[t]);
  values[n++] = ldexp(2 - ldexp(1, 1 - precision[t]), most_exponent[t]);
  values[n++] = INFINITY;
  uint64_t sign = UINT64_C(1) << (8 * element_size[type] - 1);
  for (size_t i = 0; i < n; i++) {
    for (int k = -around; k <= around && at + 2 <= count; k++) {
      set(type, array, at, values[i]);
      uint64_t bits = bits_of(type, array, at) + (uint64_t)(int64_t)k;
      if (k < 0 && values[i] == 0) bits = 0;
      set_bits(type, array, at++, bits);
      set_bits(type, array, at++, bits | sign);
    }
  }
  return at;
}

static void fill_random(element type, void *array, size_t from, size_t count) {
  for (size_t i = from; i < count; i++) {
    uint64_t bits = any();
    if (bits % 3 == 0) set_bits(type, array, i, any());
    else
      set(type, array, i,
          ((double)(any() >> 11) * 0x1p-52 - 1) * (bits % 3 == 1 ? 4 : pow(10, (double)(bits >> 8) / 0x1p56 * 4)));
  }
}

/* ---- Errors --------------------------------------------------------------------------------------------------------- */

/* How far `got` is from `wanted` in units of the type's last place there; infinite if it is something else. */
static double error_of(element type, double got, real wanted, bool either_zero) {
  int t = (int)type - HALF;
  bool same_sign = (signbit(got) != 0) == (signbit(wanted) != 0);
  if (isnan(wanted)) return isnan(got) ? 0 : (double)INFINITY;
  if (isnan(got)) return INFINITY;
  real limit = ldexpl(1, most_exponent[t] + 1), far = (real)got;
  if (wanted == 0) return got == 0 && (same_sign || either_zero) ? 0 : (double)INFINITY;
  if (isinf(wanted) && isinf(got)) return same_sign ? 0 : (double)INFINITY;
  if (isinf(got)) far = copysignl(limit, far); /* as if the type went on */
  if (fabsl(wanted) > limit) wanted = copysignl(limit, wanted);
  int exponent = ilogbl(wanted);
  if (exponent < least_exponent[t]) exponent = least_exponent[t];
  if (exponent > most_exponent[t]) exponent = most_exponent[t];
  return (double)(fabsl(far - wanted) / ldexpl(1, exponent - precision[t] + 1));
}

static real rounded(element type, real v) {
  if (type == DOUBLE) return (real)(double)v;
  return type == FLOAT ? (real)(float)v : (real)half_value_of(half_nearest((double)v));
}

static real next_of(element type, const void *x, const void *y, size_t i) {
  double a = get(type, x, i), b = get(type, y, i);
  if (type == DOUBLE) return (real)nextafter(a, b);
  if (type == FLOAT) return (real)nextafterf((float)a, (float)b);
  if (isnan(a) || isnan(b)) return NAN;
  if (a == b) return (real)b;
  if (a == 0) return (real)copysign(0x1p-24, b);
  uint32_t bits = ((const uint16_t *)x)[i];
  return (real)half_value_of((b > a) == (a > 0) ? bits + 1 : bits - 1);
}

static real wanted_of(const row *r, element type, void *const *arrays, size_t i) {
  real x = (real)get(type, arrays[0], i);
  if (r->function == CL_sqrt && type == DOUBLE) return (real)sqrt((double)x); /* a long one would be rounded twice */
  if (r->operands == 1) return r->one(x);
  if (r->integer) return r->with(x, ((const int32_t *)arrays[1])[i]);
  real y = (real)get(type, arrays[1], i);
  if (r->function == CL_nextafter) return next_of(type, arrays[0], arrays[1], i);
  if (r->function == CL_fdim && type == DOUBLE) return (real)fdim((double)x, (double)y);
  if (r->operands == 2) return r->two(x, y);
  real z = (real)get(type, arrays[2], i);
#define R(v) ((double)rounded(type, (real)(v)))
  double a = (double)x, b = (double)y, c = (double)z;
  if (r->function == CL_mad) return (real)R(R(a * b) + c);
  if (r->function == CL_mix) return (real)R(a + R(R(b - a) * c));
  if (r->function == CL_smoothstep) { /* of c between a and b */
    double t = fmin(fmax(R(R(c - a) / R(b - a)), 0), 1);
    return (real)R(R(t * t) * R(3 - R(2 * t)));
  }
#undef R
  if (r->function != CL_fma) return r->three(x, y, z);
  if (type == DOUBLE) return (real)fma((double)x, (double)y, (double)z);
  return type == FLOAT ? (real)fmaf((float)x, (float)y, (float)z) : x * y + z;
}

static bool prints, wrong;

static bool same_nan(element type, const void *a, size_t i, const void *b, size_t k) {
  double x = get(type, a, i), y = get(type, b, k);
  return isnan(x) && isnan(y);
}

/* The other instruction sets, and uniform operands, give the same bits as the first 512 results have. */
static void compare_forms(const called *c, const char *name, void *const *given) {
  enum { SOME = 512, PICKS = 4 };
  static const char *const sets[] = {"sse2", "avx2", "avx512"};
  static uint64_t kept[SOME], *results;
  if (results == NULL) results = block(sizeof(kept));
  uint32_t size = element_size[c->result];
  memcpy(kept, given[c->count], SOME * (size_t)size);
  for (int s = 0; s < 3; s++) {
    if (!spirv_use_instruction_set(sets[s])) continue;
    for (uint32_t way = 0; way <= PICKS; way++) { /* first all of them, then one that is the same for all lanes */
      called one = *c;
      void *arrays[4];
      uint32_t pick = way == 0 ? 0 : scrambled(way + 16 * c->function) % SOME;
      one.uniform = way == 0 ? 0 : (1u << c->count) - 1;
      for (uint32_t k = 0; k < c->count; k++)
        arrays[k] = (char *)given[k] + (size_t)pick * element_size[c->operands[k]];
      arrays[c->count] = results;
      call_function(&one, way == 0 ? SOME : 256, arrays);
      for (uint32_t i = 0; i < (way == 0 ? SOME : 256u); i++) {
        const char *wanted = (const char *)kept + (size_t)(way == 0 ? i : pick) * size;
        if (memcmp((const char *)results + (size_t)i * size, wanted, size) == 0) continue;
        if (same_nan(c->result, results, i, kept, way == 0 ? i : pick)) continue;
        fprintf(stderr, "%s of %s with %s%s differs at %u\n", name, type_names[c->result - HALF], sets[s],
                way == 0 ? "" : " and uniform operands", way == 0 ? i : pick);
        wrong = true;
        i = SOME;
      }
    }
  }
  spirv_use_instruction_set(NULL);
}

// Long: the kernel, its inputs and the comparison of one function.
static void one_function(const row *r, element type, size_t count, void **arrays) {
  int t = (int)type - HALF;
  double bound = r->bounds[t], worst = 0;
  bool picks = r->function == CL_fmax || r->function == CL_fmin || r->function == CL_maxmag ||
               r->function == CL_minmag || r->function == CL_fclamp; /* of zeros any */
  size_t special = 0;
  if (type == HALF && r->operands == 1) {
    for (size_t i = 0; i < count; i++) set_bits(HALF, arrays[0], i, i & 0xffff);
  } else {
    special = fill_special(type, arrays[0], r->operands == 1 ? count : count / 2, 8);
    fill_random(type, arrays[0], special, count);
  }
  for (uint32_t k = 1; k < r->operands; k++) {
    if (r->integer) {
      static const int32_t numbers[] = {0,  1,   -1,  2,    -2,   3,     -3,        5,
                                        16, -24, 127, -149, 1023, -1074, INT32_MAX, INT32_MIN};
      for (size_t i = 0; i < count; i++)
        ((int32_t *)arrays[1])[i] = i % 2 == 0 ? numbers[any() % 16] : (int32_t)(any() % 201) - 100;
      continue;
    }
    /* Special numbers meet each other in another order; some operands are near one another. */
    size_t own = fill_special(type, arrays[k], 1 << 14, 1);
    for (size_t i = 0; i < own; i++) {
      size_t other = any() % own;
      uint64_t bits = bits_of(type, arrays[k], i);
      set_bits(type, arrays[k], i, bits_of(type, arrays[k], other));
      set_bits(type, arrays[k], other, bits);
    }
    for (size_t i = own; i < special; i++) set_bits(type, arrays[k], i, bits_of(type, arrays[k], any() % own));
    if (special < own) special = own;
    fill_random(type, arrays[k], special, count);
    for (size_t i = 0; i < count; i += 7)
      set_bits(type, arrays[k], i,
               bits_of(type, arrays[0], i) ^ (any() & 3) ^ (any() % 2 << (8 * element_size[type] - 1)));
  }
  called c = {.function = r->function, .operands = {type, type, type}, .count = r->operands, .result = type};
  if (r->integer) c.operands[1] = INT32;
  void *given[4] = {arrays[0], arrays[1], arrays[2]};
  given[r->operands] = arrays[3];
  call_function(&c, (uint32_t)count, given);
  compare_forms(&c, r->name, given);
  for (size_t i = 0; i < count; i++) {
    real wanted = wanted_of(r, type, arrays, i);
    double got = get(type, arrays[3], i);
    if (bound == 0) wanted = rounded(type, wanted);
    if (r->function == CL_smoothstep &&
        !(get(type, arrays[0], i) < get(type, arrays[1], i) && fabs(get(type, arrays[2], i)) < (double)INFINITY &&
          isfinite(get(type, arrays[1], i) - get(type, arrays[0], i)) &&
          isfinite(get(type, arrays[2], i) - get(type, arrays[0], i))))
      continue;
    if (r->function == CL_fclamp && !(get(type, arrays[1], i) <= get(type, arrays[2], i))) continue; /* undefined */
    double error = error_of(type, got, wanted, picks);
    if (error > worst) worst = error;
    if (error <= bound) continue;
    fprintf(stderr, "%s of %s %a, %a, %a (or %d) is %a, expected %La: %g units off, %g allowed\n", r->name,
            type_names[t], get(type, arrays[0], i), get(type, arrays[1], i), get(type, arrays[2], i),
            ((int32_t *)arrays[1])[i], got, wanted, error, bound);
    wrong = true; /* the other functions are told too */
    return;
  }
  if (prints) printf("%-14s %-6s %8.3f of %g\n", r->name, type_names[t], worst, bound);
}

/* ---- Functions with two results, or with an integer's -------------------------------------------------------------- */

typedef struct {
  real first, second; /* second: an integer's value too */
} both;

static both two_results(uint32_t function, element type, double x, double y) {
  static const double below_one[] = {0x1.ffcp-1, 0x1.fffffep-1, 0x1.fffffffffffffp-1};
  int n = 0;
  double whole;
  both r = {0, 0};
  switch (function) {
    case CL_fract:
      r.second = floorl((real)x);
      r.first = isnan(x) ? (real)x : isinf(x) ? (real)copysign(0, x) : (real)fmin(x - floor(x), below_one[type - HALF]);
      if (x == 0) r.first = (real)x;
      break;
    case CL_modf:
      r.first = (real)modf(x, &whole);
      r.second = (real)whole;
      break;
    case CL_sincos:
      r.first = sinl((real)x);
      r.second = cosl((real)x);
      break;
    case CL_frexp:
      r.first = frexpl((real)x, &n);
      r.second = isfinite(x) ? n : 0;
      break;
    case CL_lgamma_r:
      r.first = lgammal_r((real)x, &n);
      r.second = n;
      break;
    default: /* CL_remquo */ r.first = remainderl((real)x, (real)y);
  }
  return r;
}

/* Seven bits of the quotient of x and y, of which none is an infinity, with its sign. */
static int quotient_bits(double x, double y) {
  real rest = fmodl(fabsl((real)x), 256 * fabsl((real)y)), size = fabsl((real)y);
  int q = 0;
  for (int k = 7; k >= 0; k--) {
    if (rest < ldexpl(size, k)) continue;
    rest -= ldexpl(size, k);
    q += 1 << k;
  }
  if (rest > size - rest || (rest == size - rest && q % 2 == 1)) q++;
  return (signbit(x) != 0) != (signbit(y) != 0) ? -(q & 127) : q & 127;
}

static void two_result_functions(element type, size_t count, void **arrays) {
  static const struct {
    uint32_t function;
    const char *name;
    bool integer;
    double bounds[3];
  } functions[] = {{CL_fract, "fract", false, {0}},         {CL_modf, "modf", false, {0}},
                   {CL_sincos, "sincos", false, {2, 4, 4}}, {CL_frexp, "frexp", true, {0}},
                   {CL_remquo, "remquo", true, {0}},        {CL_lgamma_r, "lgamma_r", true, {ANY, ANY, ANY}}};
  size_t special = fill_special(type, arrays[0], count, 8);
  fill_random(type, arrays[0], special, count);
  for (size_t i = 0; i < count; i++)
    set_bits(type, arrays[1], i, bits_of(type, arrays[0], i % 3 ? any() % count : any() % special));
  for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
    uint32_t function = functions[f].function;
    bool quotient = function == CL_remquo;
    called c = {
        .function = function, .operands = {type, type}, .count = quotient ? 2 : 1, .result = type, .pointer = true};
    c.stored = functions[f].integer ? INT32 : type;
    void *given[4] = {arrays[0], quotient ? arrays[1] : arrays[2], quotient ? arrays[2] : arrays[3], arrays[3]};
    call_function(&c, (uint32_t)count, given);
    double bound = functions[f].bounds[type - HALF];
    for (size_t i = 0; i < count; i++) {
      double x = get(type, arrays[0], i), y = get(type, arrays[1], i), got = get(type, arrays[2], i);
      both wanted = two_results(function, type, x, y);
      double second = c.stored == INT32 ? ((const int32_t *)arrays[3])[i] : get(type, arrays[3], i);
      if (bound == 0) wanted.first = rounded(type, wanted.first);
      bool good = error_of(type, got, wanted.first, false) <= bound;
      if (quotient) {
        if (isfinite(x) && isfinite(y) && y != 0)
          good &= (abs((int)second) & 127) == abs(quotient_bits(x, y)) &&
                  (second == 0 || (second < 0) == (signbit(x) != signbit(y)));
        else if (isinf(y) && isfinite(x)) good &= second == 0;
      } else if (function != CL_lgamma_r || (x > 0 && isfinite(x))) {
        good &= error_of(type, second, wanted.second, c.stored == INT32) <= bound;
      }
      if (good) continue;
      fprintf(stderr, "%s of %s %a, %a gives %a and %a, expected %La and %La\n", functions[f].name,
              type_names[type - HALF], x, y, got, second, wanted.first,
              quotient ? (real)quotient_bits(x, y) : wanted.second);
      wrong = true;
      break;
    }
  }
  called c = {.function = CL_ilogb, .operands = {type}, .count = 1, .result = INT32};
  call_function(&c, (uint32_t)count, (void *[]){arrays[0], arrays[1]});
  for (size_t i = 0; i < count; i++) {
    double x = get(type, arrays[0], i);
    int32_t got = ((const int32_t *)arrays[1])[i];
    bool good = x == 0     ? got == INT32_MIN /* FP_ILOGB0, FP_ILOGBNAN of both compilers */
                : isnan(x) ? got == INT32_MAX
                           : got == (isinf(x) ? INT32_MAX : ilogb(x));
    if (good) continue;
    fprintf(stderr, "ilogb of %s %a is %d\n", type_names[type - HALF], x, got);
    wrong = true;
    break;
  }
}

int main(int argc, char **argv) {
  size_t thousands = argc > 1 ? strtoul(argv[1], NULL, 10) : 2;
  state = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
  prints = argc > 3;
  size_t count = thousands * 1024 + 8192;
  size_t most = count < 65536 ? 65536 : count;
  void *arrays[4];
  for (int k = 0; k < 4; k++) arrays[k] = block(most * 8);
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (element type = HALF; type <= DOUBLE; type++) {
      /* half_ functions of halves and doubles are none of OpenCL's. */
      if (type != FLOAT && strncmp(rows[i].name, "half_", 5) == 0) continue;
      one_function(&rows[i], type, type == HALF && rows[i].operands == 1 ? 65536 : count, arrays);
    }
  for (element type = HALF; type <= DOUBLE; type++) two_result_functions(type, count, arrays);
  free_blocks();
  if (wrong) return 1;
  printf("spirv_accuracy: ok\n");
  return 0;
}
