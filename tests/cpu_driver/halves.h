/* SPDX-License-Identifier: Apache-2.0 */
/* halves.h: halves as the tests know them, by plain arithmetic in double. */
#ifndef L0RT_CPU_TEST_HALVES_H
#define L0RT_CPU_TEST_HALVES_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

static inline double half_value_of(uint32_t bits) {
  int exponent = (int)(bits >> 10 & 31);
  double size = exponent == 31  ? ((bits & 1023) != 0 ? (double)NAN : (double)INFINITY)
                : exponent == 0 ? ldexp(bits & 1023, -24)
                                : ldexp(1024 + (bits & 1023), exponent - 25);
  return bits >> 15 & 1 ? -size : size;
}

/* Rounded downwards for -1, towards zero for 0, upwards for 1, to the nearest (ties to even) for 2. */
static inline uint16_t half_rounded_to(double v, int direction) {
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  if (isnan(v)) return sign | 0x7e00;
  if (isinf(v)) return sign | 0x7c00;
  double size = fabs(v);
  bool up = direction != 0 && direction != 2 && (direction > 0) == (sign == 0);
  int exponent = size < 0x1p-14 ? -14 : ilogb(size);
  if (exponent > 15) return (uint16_t)(sign | (direction == 2 || up ? 0x7c00 : 0x7bff));
  double steps = ldexp(size, 10 - exponent), whole = floor(steps);
  if (direction == 2) whole = rint(steps);
  else if (up && whole != steps) whole += 1;
  /* A carry into the exponent is the next power of two's bits. */
  return (uint16_t)(sign | ((uint32_t)(exponent + 14) * 1024 + (uint32_t)whole));
}

static inline uint16_t half_nearest(double v) { return half_rounded_to(v, 2); }

#endif
