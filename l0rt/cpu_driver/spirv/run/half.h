/* SPDX-License-Identifier: Apache-2.0 */
/* half.h: halves, which registers hold as floats. */
#ifndef L0RT_CPU_SPIRV_HALF_H
#define L0RT_CPU_SPIRV_HALF_H

#include <stdint.h>

/* The half that is nearest to a float. */
static inline float half_rounded(float x) {
  union {
    float f;
    uint32_t u;
  } in = {.f = x}, out;
  uint32_t size = in.u & 0x7fffffffu, sign = in.u & 0x80000000u;
  uint32_t normal = (size + 0xfffu + (size >> 13 & 1)) & ~0x1fffu; /* round to 10 bits, ties to even */
  if (normal > 0x477fe000u) normal = 0x7f800000u;
  union {
    float f;
    uint32_t u;
  } small = {.u = size};
  small.f = (small.f + 0.5f) - 0.5f; /* multiples of 2^-24 */
  out.u = size > 0x7f800000u ? size | 0x400000u : size < 0x38800000u ? small.u : normal;
  out.u |= sign;
  return out.f;
}

#endif
