/* SPDX-License-Identifier: Apache-2.0 */
/* random.cl: the random numbers of l0rt/philox.py, for types without double precision.
 *
 * Each work-item encrypts one block: four words, and so four numbers, or two of 64 bits. */
#include "philox.clh"

#define FOR_ALL(DO) DO(char, uchar) DO(short, ushort) DO(int, uint)

/* Arithmetic is float's for half too, so that no device needs half precision. */
#define STORE_float(value) STORE4(value)
#define STORE_half(value)                                      \
  if (count - first >= 4)                                      \
    vstore_half4_rte(value, 0, out + first);                   \
  else                                                         \
    for (uint k = 0; k < count - first; k++) vstore_half_rte(value[k], k, out + first);

/* Random bits of each word as a fraction, below 1. */
#define FRACTIONS(BITS) convert_float4(word >> (32 - BITS)) * (1.0f / (1 << BITS))

#define FLOATS(T, BITS, LEAST)                                                                             \
  kernel void uniform_##T(global T *out, ulong count, FROM, float low, float span, float last) {          \
    BEGIN(4)                                                                                              \
    float4 u = FRACTIONS(BITS);                                                                           \
    float4 made = fmin(low + span * u, last);                                                             \
    STORE_##T(made)                                                                                       \
  }                                                                                                       \
  kernel void normal_##T(global T *out, ulong count, FROM, float mean, float std) {                       \
    BEGIN(4)                                                                                              \
    float4 u = FRACTIONS(BITS);                                                                           \
    float2 radius = sqrt(-2.0f * log1p(-u.s02)), angle = 2.0f * u.s13;                                    \
    float4 made = mean + std * (radius.s0011 * (float4)(cospi(angle.s0), sinpi(angle.s0),                 \
                                                        cospi(angle.s1), sinpi(angle.s1)));               \
    STORE_##T(made)                                                                                       \
  }                                                                                                       \
  kernel void exponential_##T(global T *out, ulong count, FROM, float lambd) {                            \
    BEGIN(4)                                                                                              \
    float4 u = FRACTIONS(BITS);                                                                           \
    float4 made = fmax(fmax(-log1p(-u), 1.0f / (1 << BITS)) / lambd, LEAST);                              \
    STORE_##T(made)                                                                                       \
  }
FLOATS(half, 11, 0x1p-24f)
FLOATS(float, 24, 0x1p-126f)

#define WHOLE(T, U)                                                                                       \
  kernel void randint_##T(global U *out, ulong count, FROM, ulong low, ulong span) {                      \
    BEGIN(4)                                                                                              \
    U##4 made = convert_##U##4(low + (convert_ulong4(word) * span >> 32));                                \
    STORE4(made)                                                                                          \
  }                                                                                                       \
  kernel void bernoulli_##T(global U *out, ulong count, FROM, ulong limit, ulong one) {                   \
    BEGIN(4)                                                                                              \
    ulong4 drawn = convert_ulong4(word);                                                                  \
    U##4 made = convert_##U##4(select((ulong4)0, (ulong4)one, drawn < limit));                            \
    STORE4(made)                                                                                          \
  }
FOR_ALL(WHOLE)

kernel void randint_long(global ulong *out, ulong count, FROM, ulong low, ulong span) {
  BEGIN(2) /* a span of 0 is 2**64 */
  ulong2 made = convert_ulong2(word.s02) | convert_ulong2(word.s13) << 32;
  made = low + (span ? made % span : made);
  STORE2(made)
}

kernel void bernoulli_long(global ulong *out, ulong count, FROM, ulong limit, ulong one) {
  BEGIN(4)
  ulong4 drawn = convert_ulong4(word);
  ulong4 made = select((ulong4)0, (ulong4)one, drawn < limit);
  STORE4(made)
}
