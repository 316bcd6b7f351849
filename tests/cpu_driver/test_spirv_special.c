/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_special.c: the special values of OpenCL.std's functions, as the OpenCL C specification lists them: 7.5.1
 * ("Additional Requirements Beyond C99 TC2"), and what that takes over from C99, Annex F.9. */
#include <math.h>

#include "assembler.h"
#include "halves.h"
#include "spirv/decode/grammar.h"

#define COUNT 256 /* of which the first is looked at */
#define INF ((double)INFINITY)
#define NOT ((double)NAN)

/* function(x), function(x, y), function(x, n) */
typedef struct {
  const char *name;
  uint32_t function, operands;
  bool integer;
  double x, y, wanted;
} row;
#define ONE(f, x, wanted) {#f, CL_##f, 1, false, x, 0, wanted}
#define TWO(f, x, y, wanted) {#f, CL_##f, 2, false, x, y, wanted}
#define INT(f, x, n, wanted) {#f, CL_##f, 2, true, x, n, wanted}
#define ODD(f, x, wanted) ONE(f, x, wanted), ONE(f, -(x), -(wanted)) /* f(-x) is -f(x) */
#define EVEN(f, x, wanted) ONE(f, x, wanted), ONE(f, -(x), wanted)

static const row rows[] = {
    /* 7.5.1 */
    ONE(acospi, 1, 0.0), EVEN(acospi, 1.5, NOT), ODD(asinpi, 0.0, 0.0), EVEN(asinpi, 1.5, NOT), ODD(atanpi, 0.0, 0.0),
    ODD(atanpi, INF, 0.5), TWO(atan2pi, 0.0, -0.0, 1), TWO(atan2pi, -0.0, -0.0, -1), TWO(atan2pi, 0.0, 0.0, 0.0),
    TWO(atan2pi, -0.0, 0.0, -0.0), TWO(atan2pi, 0.0, -2, 1), TWO(atan2pi, -0.0, -2, -1), TWO(atan2pi, 0.0, 2, 0.0),
    TWO(atan2pi, -0.0, 2, -0.0), TWO(atan2pi, -2, 0.0, -0.5), TWO(atan2pi, -2, -0.0, -0.5), TWO(atan2pi, 2, 0.0, 0.5),
    TWO(atan2pi, 2, -0.0, 0.5), TWO(atan2pi, 2, -INF, 1), TWO(atan2pi, -2, -INF, -1), TWO(atan2pi, 2, INF, 0.0),
    TWO(atan2pi, -2, INF, -0.0), TWO(atan2pi, INF, 2, 0.5), TWO(atan2pi, -INF, 2, -0.5), TWO(atan2pi, INF, -INF, 0.75),
    TWO(atan2pi, -INF, -INF, -0.75), TWO(atan2pi, INF, INF, 0.25), TWO(atan2pi, -INF, INF, -0.25),
    ONE(ceil, -0.5, -0.0), EVEN(cospi, 0.0, 1), EVEN(cospi, 0.5, 0.0), EVEN(cospi, 1.5, 0.0), EVEN(cospi, 2.5, 0.0),
    EVEN(cospi, INF, NOT), ONE(exp10, -INF, 0.0), ONE(exp10, INF, INF), TWO(fdim, 1, NOT, NOT), TWO(fdim, NOT, 1, NOT),
    TWO(fmod, 0.0, NOT, NOT), TWO(fmod, -0.0, NOT, NOT), TWO(pow, 0.0, -INF, INF), TWO(pow, -0.0, -INF, INF),
    INT(pown, 0.0, 0, 1), INT(pown, NOT, 0, 1), INT(pown, INF, 0, 1), INT(pown, 0.0, -3, INF),
    INT(pown, -0.0, -3, -INF), INT(pown, -0.0, -2, INF), INT(pown, -0.0, 2, 0.0), INT(pown, -0.0, 3, -0.0),
    INT(pown, 0.0, 3, 0.0), TWO(powr, 2, 0.0, 1), TWO(powr, 2, -0.0, 1), TWO(powr, 0.0, -2, INF),
    TWO(powr, -0.0, -3, INF), TWO(powr, -0.0, -INF, INF), TWO(powr, -0.0, 3, 0.0), TWO(powr, 1, 7, 1),
    TWO(powr, -2, 2, NOT), TWO(powr, 0.0, 0.0, NOT), TWO(powr, -0.0, -0.0, NOT), TWO(powr, INF, 0.0, NOT),
    TWO(powr, 1, INF, NOT), TWO(powr, 1, -INF, NOT), TWO(powr, 2, NOT, NOT), TWO(powr, NOT, 2, NOT),
    TWO(powr, NOT, 0.0, NOT), ONE(rint, -0.25, -0.0), ONE(rint, -0.5, -0.0), INT(rootn, 0.0, -3, INF),
    INT(rootn, -0.0, -3, -INF), INT(rootn, -0.0, -2, INF), INT(rootn, -0.0, 2, 0.0), INT(rootn, -0.0, 3, -0.0),
    INT(rootn, -4, 2, NOT), INT(rootn, 4, 0, NOT), INT(rootn, -8, 3, -2), ONE(round, -0.25, -0.0), ODD(sinpi, 0.0, 0.0),
    ODD(sinpi, 1, 0.0), ODD(sinpi, 2, 0.0), ODD(sinpi, 3, 0.0), EVEN(sinpi, INF, NOT), ODD(tanpi, 0.0, 0.0),
    EVEN(tanpi, INF, NOT), ODD(tanpi, 2, 0.0), ODD(tanpi, 1, -0.0), ODD(tanpi, 3, -0.0), ONE(tanpi, 0.5, INF),
    ONE(tanpi, 1.5, -INF), ONE(tanpi, -0.5, -INF), ONE(tanpi, -1.5, INF), ONE(trunc, -0.5, -0.0),
    /* C99, F.9 */
    ONE(acos, 1, 0.0), EVEN(acos, 2, NOT), ONE(acosh, 1, 0.0), ONE(acosh, 0.5, NOT), ONE(acosh, INF, INF),
    ODD(asin, 0.0, 0.0), EVEN(asin, 2, NOT), ODD(asinh, 0.0, 0.0), ODD(asinh, INF, INF), ODD(atan, 0.0, 0.0),
    ODD(atanh, 0.0, 0.0), ODD(atanh, 1, INF), EVEN(atanh, 2, NOT), TWO(atan2, 0.0, 0.0, 0.0), TWO(atan2, -0.0, 2, -0.0),
    TWO(atan2, -2, INF, -0.0), EVEN(cos, 0.0, 1), EVEN(cos, INF, NOT), ODD(sin, 0.0, 0.0), EVEN(sin, INF, NOT),
    ODD(tan, 0.0, 0.0), EVEN(tan, INF, NOT), EVEN(cosh, 0.0, 1), EVEN(cosh, INF, INF), ODD(sinh, 0.0, 0.0),
    ODD(sinh, INF, INF), ODD(tanh, 0.0, 0.0), ODD(tanh, INF, 1), EVEN(exp, 0.0, 1), ONE(exp, -INF, 0.0),
    ONE(exp, INF, INF), EVEN(exp2, 0.0, 1), ONE(exp2, -INF, 0.0), ONE(exp2, INF, INF), ODD(expm1, 0.0, 0.0),
    ONE(expm1, -INF, -1), ONE(expm1, INF, INF), EVEN(log, 0.0, -INF), ONE(log, 1, 0.0), ONE(log, -1, NOT),
    ONE(log, INF, INF), EVEN(log2, 0.0, -INF), ONE(log2, 1, 0.0), ONE(log2, -1, NOT), EVEN(log10, 0.0, -INF),
    ONE(log10, 1, 0.0), ONE(log10, -1, NOT), ODD(log1p, 0.0, 0.0), ONE(log1p, -1, -INF), ONE(log1p, -2, NOT),
    EVEN(logb, 0.0, -INF), EVEN(logb, INF, INF), ODD(cbrt, 0.0, 0.0), ODD(cbrt, INF, INF), EVEN(fabs, 0.0, 0.0),
    TWO(hypot, INF, NOT, INF), TWO(hypot, NOT, -INF, INF), TWO(hypot, -3, 0.0, 3), TWO(pow, -0.0, -3, -INF),
    TWO(pow, -0.0, -2, INF), TWO(pow, -0.0, 3, -0.0), TWO(pow, -0.0, 2, 0.0), TWO(pow, -1, INF, 1),
    TWO(pow, -1, -INF, 1), TWO(pow, 1, NOT, 1), TWO(pow, NOT, 0.0, 1), TWO(pow, -2, 0.5, NOT), TWO(pow, 0.5, -INF, INF),
    TWO(pow, 2, -INF, 0.0), TWO(pow, 0.5, INF, 0.0), TWO(pow, 2, INF, INF), TWO(pow, -INF, -3, -0.0),
    TWO(pow, -INF, -2, 0.0), TWO(pow, -INF, 3, -INF), TWO(pow, -INF, 2, INF), TWO(pow, INF, -1, 0.0),
    TWO(pow, INF, 1, INF), ODD(sqrt, 0.0, 0.0), ONE(sqrt, INF, INF), ONE(sqrt, -1, NOT), ODD(erf, 0.0, 0.0),
    ODD(erf, INF, 1), ONE(erfc, -INF, 2), ONE(erfc, INF, 0.0), ONE(lgamma, 1, 0.0), ONE(lgamma, 2, 0.0),
    ONE(lgamma, -3, INF), EVEN(lgamma, 0.0, INF), EVEN(lgamma, INF, INF), ODD(tgamma, 0.0, INF), ONE(tgamma, -3, NOT),
    ONE(tgamma, INF, INF), ONE(tgamma, -INF, NOT), ODD(ceil, 0.0, 0.0), ODD(ceil, INF, INF), ODD(floor, 0.0, 0.0),
    ODD(floor, INF, INF), ODD(rint, 0.0, 0.0), ODD(rint, 2.5, 2), ODD(round, 0.0, 0.0), ODD(round, 2.5, 3),
    ODD(trunc, 0.0, 0.0), ODD(trunc, INF, INF), TWO(fmod, 0.0, 2, 0.0), TWO(fmod, -0.0, 2, -0.0),
    TWO(fmod, 2, 0.0, NOT), TWO(fmod, INF, 2, NOT), TWO(fmod, -2, INF, -2), TWO(remainder, -0.0, 2, -0.0),
    TWO(remainder, 2, 0.0, NOT), TWO(remainder, INF, 2, NOT), TWO(remainder, -2, INF, -2), TWO(copysign, NOT, 1, NOT),
    TWO(copysign, 0.0, -1, -0.0), TWO(nextafter, 2, NOT, NOT), TWO(nextafter, 0.0, -0.0, -0.0), TWO(fmax, NOT, 2, 2),
    TWO(fmax, 2, NOT, 2), TWO(fmin, NOT, 2, 2), TWO(fmin, 2, NOT, 2), TWO(fmax, NOT, NOT, NOT),
    TWO(fdim, INF, INF, 0.0), INT(ldexp, -0.0, 7, -0.0), INT(ldexp, -INF, -7, -INF), INT(ldexp, 1.5, 0, 1.5),
    INT(ldexp, 1, INT32_MAX, INF), INT(ldexp, -1, INT32_MIN, -0.0),
    /* 6.12: what has no section of its own. */
    ODD(sign, 0.0, 0.0), ONE(sign, NOT, 0.0), ODD(rsqrt, 0.0, INF), ONE(rsqrt, INF, 0.0), ONE(rsqrt, -1, NOT),
    TWO(maxmag, NOT, 2, 2), TWO(minmag, 2, NOT, 2)};

static const struct {
  double x;
  int32_t wanted;
} exponents[] = {{0.0, INT32_MIN}, {-0.0, INT32_MIN}, {NOT, INT32_MAX}, {INF, INT32_MAX}, {-INF, INT32_MAX},
                 {1, 0},           {-3, 1},           {0.75, -1}}; /* FP_ILOGB0 and FP_ILOGBNAN of OpenCL's compilers */

static double get(element type, const void *array) {
  if (type == HALF) return half_value_of(*(const uint16_t *)array);
  return type == FLOAT ? (double)*(const float *)array : *(const double *)array;
}
static void set(element type, void *array, double v) {
  if (type == HALF) *(uint16_t *)array = half_nearest(v);
  else if (type == FLOAT) *(float *)array = (float)v;
  else *(double *)array = v;
}

int main(void) {
  static const char *const names[] = {"half", "float", "double"};
  void *arrays[3];
  bool wrong = false;
  for (int k = 0; k < 3; k++) arrays[k] = block(COUNT * 8);
  for (element type = HALF; type <= DOUBLE; type++) {
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
      const row *r = &rows[i];
      called c = {.function = r->function, .operands = {type, type}, .count = r->operands, .result = type};
      if (r->integer) c.operands[1] = INT32;
      set(type, arrays[0], r->x);
      if (r->integer) *(int32_t *)arrays[1] = (int32_t)r->y;
      else if (r->operands == 2) set(type, arrays[1], r->y);
      call_function(&c, COUNT, r->operands == 2 ? arrays : (void *[]){arrays[0], arrays[2]});
      double got = get(type, arrays[2]);
      if (isnan(r->wanted) ? isnan(got) : got == r->wanted && !signbit(got) == !signbit(r->wanted)) continue;
      fprintf(stderr, "%s of %s %a, %a is %a, expected %a\n", r->name, names[type - HALF], r->x, r->y, got, r->wanted);
      wrong = true;
    }
    for (size_t i = 0; i < sizeof(exponents) / sizeof(exponents[0]); i++) {
      called c = {.function = CL_ilogb, .operands = {type}, .count = 1, .result = INT32};
      set(type, arrays[0], exponents[i].x);
      call_function(&c, COUNT, (void *[]){arrays[0], arrays[2]});
      if (*(int32_t *)arrays[2] == exponents[i].wanted) continue;
      fprintf(stderr, "ilogb of %s %a is %d\n", names[type - HALF], exponents[i].x, *(int32_t *)arrays[2]);
      wrong = true;
    }
  }
  free_blocks();
  if (wrong) return 1;
  printf("spirv_special: ok\n");
  return 0;
}
