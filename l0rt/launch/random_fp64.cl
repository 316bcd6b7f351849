/* SPDX-License-Identifier: Apache-2.0 */
/* random_fp64.cl: the random numbers of type double, for devices that have it. */
#include "philox.clh"

#define UNIT(low, high) \
  convert_double2((convert_ulong2(low) | convert_ulong2(high) << 32) >> 11) * 0x1p-53

kernel void uniform_double(global double *out, ulong count, FROM, double low, double span, double last) {
  BEGIN(2)
  double2 u = UNIT(word.s02, word.s13);
  double2 made = fmin(low + span * u, last);
  STORE2(made)
}

kernel void normal_double(global double *out, ulong count, FROM, double mean, double std) {
  BEGIN(2)
  double2 u = UNIT(word.s02, word.s13);
  double radius = sqrt(-2.0 * log1p(-u.s0)), angle = 2.0 * u.s1;
  double2 made = mean + std * (radius * (double2)(cospi(angle), sinpi(angle)));
  STORE2(made)
}

kernel void exponential_double(global double *out, ulong count, FROM, double lambd) {
  BEGIN(2)
  double2 u = UNIT(word.s02, word.s13);
  double2 made = fmax(fmax(-log1p(-u), 0x1p-53) / lambd, 0x1p-1022);
  STORE2(made)
}
