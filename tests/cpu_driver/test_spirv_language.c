/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_language.c: OpenCL C's vectors, halves, conversions, structures, pointers and irregular flow against C written
 * by hand, for every instruction set and width, shapes of groups, offsets, one thread and two. And Philox's answers. */
#include <math.h>

#include "halves.h"
#include "sweep.h"

enum { N = 700, WORDS = 8 };
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define REFERENCE(name) static void c_##name(u32 i, u32 a, u32 b, u32 *o)
#define UNUSED(v) (void)(v)

static u32 word_of(float f) {
  u32 v;
  memcpy(&v, &f, 4);
  return v;
}
static float float_of(u32 v) {
  float f;
  memcpy(&f, &v, 4);
  return f;
}
static u32 rotated(u32 v, u32 by) { return by % 32 == 0 ? v : v << by % 32 | v >> (32 - by % 32); }
#define CLAMP(v, least, most) ((v) < (least) ? (least) : (v) > (most) ? (most) : (v))

REFERENCE(vectors16) {
  u32 v[16] = {a, b, a ^ b, a + b, a, a, b, b, 1, 2, 3, 4, 5, 6, 7, 8}, w[16];
  for (int k = 0; k < 16; k++) v[k] += i;
  for (int k = 0; k < 16; k++) w[k] = v[k] * v[15 - k] + (v[k] << 3);
  for (int k = 0; k < 8; k++) o[k] = (w[8 + k] ^ w[k]) + (w[2 * k] & w[2 * k + 1]);
}
REFERENCE(bytes16) {
  UNUSED(i);
  u8 v[16] = {(u8)a, (u8)b, (u8)(a >> 8), (u8)(b >> 8), 200, 100, 50, 25, 1, 2, 3, 4, 5, 6, 7, 255}, w[16];
  s8 s[16], r[16];
  static const u8 spelled[] = {5, 4, 3, 2, 1, 0, 9, 8, 7, 6, 15, 14, 13, 12, 11, 10};
  for (int k = 0; k < 16; k++) s[k] = (s8)v[spelled[k]];
  for (int k = 0; k < 16; k++) {
    int sum = v[k] + v[k ^ 1], difference = s[k] - (s8)a;
    w[k] = (u8)(sum > 255 ? 255 : sum) ^ (u8)(s8)CLAMP(difference, -128, 127);
  }
  for (int k = 0; k < 16; k++) w[k] = w[k] > 90 ? w[k] : (u8)((w[k] + 7) >> 1);
  for (int k = 0; k < 16; k++) {
    s8 other = s[k / 4], mine = (s8)w[k];
    s8 least = mine < other ? mine : other;
    r[k] = s[k] > least ? s[k] : least;
  }
  memcpy(o, w, 16);
  memcpy(o + 4, r, 16);
}
REFERENCE(shorts8) {
  UNUSED(i);
  s16 v[8] = {(s16)a, (s16)b, (s16)(a >> 16), (s16)(b >> 16), 30000, -30000, 7, -7}, w[8];
  for (int k = 0; k < 8; k++) {
    s32 sum = v[k] * v[k ^ 1] + 100;
    w[k] = (s16)(((v[k] * v[7 - k]) >> 16) + CLAMP(sum, -32768, 32767));
  }
  memcpy(o, w, 16);
  for (int k = 0; k < 8; k++) w[k] = (s16)(v[k] / (s16)((a & 15) + 1) + v[k] % 9);
  memcpy(o + 4, w, 16);
}
static s64 high_product(s64 x, s64 y) {
  __extension__ typedef __int128 wide;
  return (s64)((wide)x * y >> 64);
}
REFERENCE(longs4) {
  UNUSED(i);
  s64 v[4] = {(s64)((u64)a << 32 | b), (s64)((u64)b << 20), -(s64)a, (s64)((u64)(a ^ b) << 31)}, w[4];
  static const u8 other[] = {1, 0, 3, 2}, left[] = {0, 0, 1, 1}, right[] = {2, 3, 2, 3};
  for (int k = 0; k < 4; k++) {
    u64 x = (u64)v[k], by = (u64)v[3 - k] & 63, turned = by == 0 ? x : x << by | x >> (64 - by);
    w[k] = (s64)(turned - (u64)high_product(v[k], v[other[k]]));
  }
  s64 r[4];
  for (int k = 0; k < 4; k++) {
    u64 away = v[k] > w[k] ? (u64)v[k] - (u64)w[k] : (u64)w[k] - (u64)v[k];
    u64 size = v[k] < 0 ? 0 - (u64)v[k] : (u64)v[k];
    u64 zeros = v[k] == 0 ? 64 : (u64)__builtin_clzll((u64)v[k]);
    r[k] = v[left[k]] < v[right[k]] ? w[k] : away == 5 ? v[k] : (s64)(size + zeros);
  }
  memcpy(o, r, 32);
}
REFERENCE(threes) {
  u32 v[3] = {a, b, i}, w[3] = {i, a, b}, kept[3][3], r[3];
  for (int k = 0; k < 3; k++) kept[0][k] = v[k], kept[1][k] = w[k], kept[2][k] = v[k] + w[k];
  float dot = 0;
  for (int k = 0; k < 3; k++) r[k] = kept[a % 3][k] * kept[b % 3][(k + 1) % 3];
  memcpy(o, r, 12);
  o[3] = 48;
  o[4] = v[0] - r[2], o[5] = v[0] - r[2], o[6] = v[1] - r[2];
  for (int k = 0; k < 3; k++) dot += (float)(v[k] & 255) * (float)(r[k] & 255);
  o[7] = (u32)dot;
}
#define H(v) half_value_of(half_nearest(v))
REFERENCE(halves) {
  UNUSED(i);
  double v[4] = {half_value_of(a & 0x3fff), b & 255, 1.5, -2.25}, w[4];
  static const u8 more[] = {1, 1, 0, 0};
  for (int k = 0; k < 4; k++) w[k] = H(H(v[k] * v[3 - k]) + v[more[k]]);
  for (int k = 0; k < 4; k++) w[k] = H(H(v[k] * 0.5 + w[k]) - H(v[k] / 3));
  u16 bits[4];
  for (int k = 0; k < 4; k++) bits[k] = half_nearest(w[k]);
  memcpy(o, bits, 8);
  double thousand = H(w[1] * 1000);
  o[2] = (u32)(s32)w[0] + (u32)(s32)CLAMP(thousand, -32768.0, 32767.0);
  o[3] = word_of((float)w[2]) ^ (w[0] > w[1] ? 1 : 0);
  for (int k = 0; k < 4; k++) bits[k] = half_rounded_to((double)((float)w[k] * 1.003f), 0);
  memcpy(o + 4, bits, 8);
  o[6] = half_nearest(a) | (u32)half_nearest((s32)b) << 16;
  double most[2] = {v[0] > v[2] ? v[0] : v[2], v[1] > v[3] ? v[1] : v[3]};
  for (int k = 0; k < 2; k++) bits[k] = half_nearest(H(most[k] + floor(H(v[1 - k] * H(0.3)))));
  memcpy(o + 7, bits, 4);
}
REFERENCE(doubles4) {
  double v[4] = {a / 7.0, (s32)b / 7.0, 0.1 * i / 7.0, -1e300 / 7.0}, w[4];
  static const u8 second[] = {1, 0, 0, 1};
  for (int k = 0; k < 4; k++) w[k] = fma(v[k], v[second[k]], v[2]) - v[3 - k] * 1e-200;
  for (int k = 0; k < 4; k++) w[k] = w[k] > v[k] ? floor(w[k]) : w[k] + trunc(v[k]);
  memcpy(o, w, 32);
}
REFERENCE(saturating) {
  UNUSED(i);
  float f = (float)(s32)a / 3000000.0f;
  double d = (double)(s64)((u64)a << 32 | b) / 65536;
  s32 sa = (s32)a, sb = (s32)b;
  o[0] = (u32)CLAMP(f, 0.0f, 255.0f) | (u32)(u8)(s8)CLAMP(f, -128.0f, 127.0f) << 8 |
         (u32)(u16)(s16)CLAMP(sa, -32768, 32767) << 16;
  o[1] = (u32)CLAMP(d, 0.0, 4294967295.0);
  o[2] = (u32)(s32)CLAMP(d, -2147483648.0, 2147483647.0);
  o[3] = (u32)CLAMP(sb, 0, 65535) | (u32)CLAMP((s16)b, 0, 255) << 16 | (u32)(a > 127 ? 127 : a) << 24;
  float large = f * 1e12f;
  u64 u = large <= 0 ? 0 : large >= 0x1p64f ? UINT64_MAX : (u64)large;
  double far = d * 1e6;
  s64 s = far >= 0x1p63 ? INT64_MAX : far <= -0x1p63 ? INT64_MIN : (s64)far;
  memcpy(o + 4, &u, 8);
  memcpy(o + 6, &s, 8);
}
static float float_towards(double v, float direction) {
  float f = (float)v;
  bool over = direction == 0 ? fabs((double)f) > fabs(v) : direction > 0 ? (double)f < v : (double)f > v;
  return over ? nextafterf(f, direction) : f;
}
REFERENCE(rounding) {
  UNUSED(i);
  float f = (float)(s32)a / 4096.0f;
  double d = (double)(s32)b / 65536;
  o[0] = (u32)(s32)rintf(f), o[1] = (u32)(s32)ceilf(f), o[2] = (u32)(s32)floorf(f), o[3] = 0;
  o[4] = (u32)(s32)rint(d) + 3 * (u32)(s32)ceil(d);
  o[5] = (u32)(s32)floor(d) ^ (u32)(s64)rint(d * 3);
  o[6] = word_of(float_towards(d * 1.1, 0)) ^ word_of(float_towards(d * 1.3, INFINITY));
  o[7] = word_of(float_towards(d * 1.7, -INFINITY)) ^ word_of((float)(d * 1.9));
}
/* A float or double of an integer, rounded downwards for -1, towards zero for 0, upwards for 1. */
static u32 float_bits(long double v, int direction) {
  float f = (float)v;
  long double size = fabsl(v);
  bool up = (direction > 0) == (v > 0) && direction != 0;
  if (up ? fabsl((long double)f) < size : fabsl((long double)f) > size)
    f = nextafterf(f, up ? copysignf(INFINITY, f) : 0);
  return word_of(f);
}
static u32 double_bits(long double v, int direction) {
  double d = (double)v;
  long double size = fabsl(v);
  bool up = (direction > 0) == (v > 0) && direction != 0;
  if (up ? fabsl((long double)d) < size : fabsl((long double)d) > size)
    d = nextafter(d, up ? copysign((double)INFINITY, d) : 0);
  u64 bits;
  memcpy(&bits, &d, 8);
  return (u32)bits;
}
REFERENCE(rounded_integers) {
  UNUSED(i);
  s32 s = (s32)a;
  s64 w = (s64)((u64)a << 32 | b) >> (b & 31);
  o[0] = float_bits(s, 0) ^ float_bits(b, 1);
  o[1] = float_bits(s, 1) ^ float_bits(b, -1);
  o[2] = float_bits(s, -1) ^ float_bits((long double)(u64)w, 0);
  o[3] = float_bits(w, -1) ^ word_of((float)w);
  o[4] = half_rounded_to(s >> (b & 31), 0) | (u32)half_rounded_to((u16)a, 1) << 16;
  o[5] = half_rounded_to(s >> (b & 15), -1) | (u32)half_rounded_to((s16)b, 1) << 16;
  o[6] = double_bits(w, 0) ^ double_bits((long double)(u64)w, 1) * 3;
  o[7] = double_bits(w, -1) ^ double_bits(w, 1) * 3 ^ float_bits(s / 7, 1);
}
typedef union {
  u32 word;
  float number;
  u8 bytes[4];
} punned;
typedef struct {
  s8 tag;
  struct {
    s16 s[3];
    double d;
  } inner[2];
  punned u;
  u16 low, middle;
} nested;
REFERENCE(nested_structures) {
  UNUSED(i);
  nested all[2];
  memset(all, 0, sizeof(all));
  all[0].tag = (s8)a;
  for (int k = 0; k < 2; k++) {
    for (int m = 0; m < 3; m++) all[0].inner[k].s[m] = (s16)(a >> (k + m));
    all[0].inner[k].d = (double)b / (k + 1);
  }
  all[0].u.number = (float)(a & 0xffff);
  all[0].low = (u16)(a >> 7);
  all[0].middle = (u16)b;
  all[1] = all[0];
  all[a & 1].inner[b & 1].s[a % 3] = (s16)(all[a & 1].inner[b & 1].s[a % 3] + 77);
  all[1].u.bytes[b & 3] = 9;
  all[0].middle = (u16)(all[0].middle + 5);
  o[0] = (u32)all[0].tag + (u32)all[1].inner[1].s[2];
  o[1] = (u32)all[0].inner[0].s[0] ^ (u32)all[1].inner[0].s[1] << 3 ^ (u32)all[0].inner[1].s[2] << 7;
  o[2] = (u32)(u64)all[1].inner[1].d;
  o[3] = all[1].u.word;
  o[4] = all[0].low + 3 * (u32)all[0].middle;
  o[5] = sizeof(nested);
  o[6] = all[1].middle ^ (u32)all[1].inner[0].s[0];
  o[7] = all[0].u.word;
}
REFERENCE(unions) {
  punned p = {.word = a};
  p.bytes[b & 3] ^= 0x5a;
  p.bytes[a >> 30] = (u8)(p.bytes[a >> 30] + 3);
  o[0] = p.word;
  o[1] = p.word & 0x7fffffffu;
  o[2] = b >> 24 | (b & 255) << 8;
  o[3] = (u32)(((u64)b << 32 | a) >> 16) ^ p.word;
  o[4] = (a & 0xffff) | b << 16;
  o[5] = 0x3f800000u | a >> 9;
  o[6] = b;
  o[7] = 0xfc03fe01u + a;
  UNUSED(i);
}
REFERENCE(tables2d) {
  UNUSED(i);
  u16 grid[5][7];
  for (u32 r = 0; r < 5; r++)
    for (u32 c = 0; c < 7; c++) grid[r][c] = (u16)(a * r + b * c);
  for (u32 k = 0; k < 12; k++) {
    u16 *to = &grid[(a >> k) % 5][(b >> k) % 7];
    *to = (u16)(*to + grid[k % 5][(a + k) % 7]);
  }
  for (u32 k = 0; k < WORDS; k++) o[k] = grid[k % 5][(k + b) % 7] + ((u32)grid[(a + k) % 5][k % 7] << 16);
}
static u32 changed(u32 *p, u32 **q, u32 by) {
  *p += by;
  **q ^= *p;
  *q = *q == p ? p + 1 : p;
  return **q;
}
REFERENCE(private_pointers) {
  UNUSED(i);
  u32 kept[4] = {a, b, a + b, a - b}, *p = kept + (a & 1), *q = kept + (b & 3);
  o[0] = changed(p, &q, 5);
  o[1] = changed(kept, &q, b);
  o[2] = (u32)(q - kept) + 10 * (u32)(q > p) + 100 * (u32)(p == kept);
  o[3] = *(a & 2 ? q : p);
  memcpy(o + 4, kept, 16);
}
REFERENCE(constant_tables) {
  UNUSED(i);
  static const float rows[3][4] = {{1, 2, 3, 4}, {-1, 0.5f, 9, 8}, {0, 0, 0, 0}};
  static const float colours[2][4] = {{0.25f, 0.25f, 0.25f, 0.25f}, {4, 3, 2, 1}};
  static const char names[3][8] = {"first", "second", "third"};
  for (int k = 0; k < 4; k++) o[k] = word_of(rows[a % 3][k] * colours[b & 1][3 - k]);
  o[4] = 7 + a % 3;
  o[5] = (u32)names[a % 3][b % 6];
  o[6] = (u32) "characters"[a % 10];
  o[7] = 8 + 'h';
}
static const u32 program_table[8] = {8, 6, 7, 5, 3, 0, 9, 1};
REFERENCE(program_variables) {
  o[0] = program_table[a & 7];
  o[1] = program_table[2 + (b & 3)];
  o[2] = 2;
  o[3] = 4;
  o[4] = a & 1 ? program_table[5] : 4;
  o[5] = o[6] = o[7] = i;
}
REFERENCE(generic_casts) {
  UNUSED(i);
  u32 own[2] = {a, b};
  o[0] = (a % 3 < 2 ? own[b & 1] : program_table[4 + (b & 1)]) * 3 + 1;
  o[1] = a % 3 != 1;
  o[2] = a % 3 == 1;
  o[3] = 0;
  o[4] = b & 1 ? 11 : 12;
  o[5] = b & 1 ? 12 : a;
  o[6] = b;
  o[7] = 12;
}
REFERENCE(signed_switch) {
  UNUSED(i);
  u32 r = 1;
  for (int k = 0; k < 8; k++) {
    int c = (int)(a >> (3 * k) & 7) - 4;
    o[k] = 0;
    if (c == -4) {
      r += 3;
      continue;
    }
    if (c == -3) r *= 5;
    if (c == -3 || c == -2) r ^= b;
    else if (c != 3) r = r * 3 + (u32)c;
    else if (!(r & 1)) r = (r + 7) * 3 + (u32)c;
    o[k] = r;
    r += (u32)k;
  }
}
REFERENCE(jumps_into_loops) {
  UNUSED(i);
  u32 rounds = (a & 7) + 1, r = b, entry = b & 3; /* 3 enters the loop below case 0, then 2, then 1 */
  do {
    if (entry == 0) r += 3;
    if (entry == 0 || entry == 3) r ^= a;
    if (entry != 1) r *= 5;
    r -= rounds;
    entry = 0;
  } while (--rounds > 0);
  memset(o, 0, 32);
  o[0] = r;
  u32 k = a & 31, steps = 0;
  bool second = (b & 8) != 0;
  for (;;) {
    k = second ? (k + 3) & 1023 : (k * 7 + 1) & 1023;
    if (++steps > 40) break;
    if (second) second = k % 3 == 0;
    else if (k & 1) second = true;
    else k ^= 5;
  }
  o[1] = k;
  o[2] = steps;
}
static u32 deepest(u32 v, u32 k) { return k & 1 ? v * 3 : v + k; }
static u32 deeper(u32 v, u32 k) {
  u32 r = v;
  for (u32 m = 0; m < (k & 3); m++) {
    if (r % 11 == 3) return r;
    r = deepest(r, m + k);
  }
  return deepest(r, k) + 1;
}
REFERENCE(calls) {
  UNUSED(i);
  for (u32 k = 0; k < 8; k++) {
    u32 m = (k + a) & 7, v = m < 4 ? a : b, by = m & 3;
    o[k] = deeper(v + by, v >> by);
  }
}
REFERENCE(shuffles) {
  u32 v[8] = {a, b, i, a ^ b, a * 3, b * 3, i * 3, (a ^ b) * 3}, m[4] = {a, b, a >> 3, b >> 5};
  for (int k = 0; k < 4; k++) o[k] = v[m[k] & 3], o[4 + k] = v[m[k] & 7];
}
REFERENCE(selections) {
  UNUSED(i);
  s32 v[4] = {(s32)a, (s32)b, (s32)a >> 7, (s32)(b << 3)}, w[4] = {v[1], v[0], v[3], v[2]};
  bool less = false, other = true, zero = false;
  for (int k = 0; k < 4; k++) {
    less |= v[k] < w[k], other &= v[k] != w[k], zero |= v[k] == 0;
    o[4 + k] = (u32)(v[k] < w[k] ? w[k] : v[k]);
  }
  o[0] = (u32)less + 2 * (u32)other + 4 * (u32)zero;
  o[1] = (a & ~0x00ff00ffu) | (b & 0x00ff00ffu);
  float x = float_of(a), y = float_of(b);
  o[2] = UINT32_MAX + 2 * UINT32_MAX + (signbit(x) != 0) * 8 + (isnormal(y) != 0) * 16;
  o[3] = (u32)isless(x, y) + 2 + 4 * (u32)islessgreater(x, y) + 8;
}
REFERENCE(bit_functions) {
  UNUSED(i);
  s32 sa = (s32)a, sb = (s32)b;
  s64 wa = sa, wb = sb;
  o[0] = (a == 0 ? 32 : (u32)__builtin_clz(a)) | (u32)__builtin_popcount(b) << 8 |
         ((u8)a == 0 ? 8 : (u32)__builtin_clz((u8)a) - 24) << 16 | (u32)__builtin_popcount((u16)b) << 24;
  u32 small = a & 0xffff, by = b & 15;
  o[1] = rotated(a, b) ^ ((small << by | small >> (16 - by)) & 0xffff) << 16;
  o[2] = (u32)(((u64)a + b) >> 1) + (u32)((wa + wb + 1) >> 1);
  o[3] = (u32)(wa > wb ? wa - wb : wb - wa) ^ (u32)(wa < 0 ? -wa : wa);
  o[4] = (a & 0xffffff) * (b & 0xffffff) + 7 + (u32)((s32)(a << 8) >> 8) * (u32)((s32)(b << 8) >> 8);
  o[5] = ((a & 0xffff) << 16 | (b & 0xffff)) ^ (u32)(((u64)a << 32 | b) >> 16);
  o[6] = 2 * (u32)((u64)a * b >> 32) + 3 + (u32)((wa * wb) >> 32);
  u64 plain = (u64)a * (b & 7) + b, sum = (u64)a + b;
  s64 other = wa * (b & 7) + wb, less = wa - wb;
  o[7] = (plain > UINT32_MAX ? UINT32_MAX : (u32)plain) ^ (u32)CLAMP(other, INT32_MIN, INT32_MAX) ^
         (sum > UINT32_MAX ? UINT32_MAX : (u32)sum) ^ (u32)CLAMP(less, INT32_MIN, INT32_MAX) ^
         (u32)CLAMP(sa, -1000, 1000) ^ CLAMP(b, 5u, 500u);
}
REFERENCE(unaligned_vectors) {
  UNUSED(i);
  o[0] = a >> 8;
  o[1] = a >> 16 | b << 16;
  o[2] = 0x05020105;
  double low = half_value_of((u16)a), high = half_value_of((u16)(a >> 16));
  o[3] = isnan(low) ? 0 : word_of((float)low);
  double scaled = isnan(high) ? 1 : (double)((float)high * 0.7f), small;
  u64 bits = (u64)b << 20 | 0x3f00000000000000u;
  memcpy(&small, &bits, 8);
  o[4] = half_nearest(scaled) | (u32)half_rounded_to(scaled, 1) << 16;
  o[5] = half_rounded_to(scaled, -1) | (u32)half_nearest(small) << 16;
  o[6] = (a & 0xffff) + 1;
  o[7] = 20;
}
REFERENCE(aligned_halves) {
  UNUSED(i);
  double f[4] = {(s32)a / 65536.0f, (s32)b / 4e7f, (a & 255) * 0.001f, -1e-7f * (b & 63)};
  u16 h[16];
  memset(h, 0xff, sizeof(h));
  for (int k = 0; k < 4; k++) h[k] = half_nearest((double)(float)f[k]);
  for (int k = 0; k < 3; k++) h[4 + k] = half_rounded_to(f[2 - k], 0);
  h[8] = half_rounded_to(f[0], 1);
  h[9] = half_rounded_to(f[3], 1);
  h[6] = half_nearest((double)(float)f[1]);
  h[7] = half_nearest((double)(float)f[2]);
  memcpy(o, h, 20);
  o[5] = word_of((float)half_value_of(h[3]));
  o[6] = word_of((float)half_value_of(h[6]));
  o[7] = word_of((float)half_value_of(h[9]));
}
static u32 found(u32 a, u32 b) {
  for (u32 k = 0; k < 20; k++) {
    for (u32 m = 0; m < 5; m++) {
      if ((a >> k & 7) == m + (b & 1)) return k * 8 + m;
      if (k * m > 60) break;
    }
    if (b >> k & 1 && k > 11) return 1000 + k;
  }
  return 9999;
}
REFERENCE(early_returns) {
  UNUSED(i);
  for (u32 k = 0; k < WORDS; k++) o[k] = k;
  if ((a & 7) == 5) return;
  o[0] = found(a, b);
  if ((b & 3) == 1) {
    for (int k = 1; k < 8; k++) {
      o[k] += a;
      if (a >> k & 1) return;
    }
  } else if (b & 2) {
    o[7] = 1;
    if (a & 1) return;
    o[6] = 2;
  }
  o[5] = 77;
}
REFERENCE(long_counters) {
  UNUSED(i);
  u64 sum = 0;
  for (u64 k = (u64)a << 8; k > 0; k = k / 3 - (k > 5 ? k & 1 : 0)) sum += k ^ b;
  s64 down = b & 63;
  while (down-- > -5) sum = sum * 3 + (u64)down;
  memset(o, 0, 32);
  memcpy(o, &sum, 8);
  s16 s = (s16)a;
  u8 rounds = 0;
  do {
    s = (s16)(s / 2 + 1);
    rounds = (u8)(rounds + 9);
  } while (s > 3 || s < -3);
  o[2] = (u32)s;
  o[3] = rounds;
  o[4] = (u32)__builtin_parity(a);
}

typedef void reference(u32 i, u32 a, u32 b, u32 *o);
static const struct {
  const char *name;
  reference *run;
} kernels[] = {
#define ROW(name) {#name, c_##name}
    ROW(vectors16),     ROW(bytes16),       ROW(shorts8),           ROW(longs4),          ROW(threes),
    ROW(halves),        ROW(doubles4),      ROW(saturating),        ROW(rounding),        ROW(nested_structures),
    ROW(unions),        ROW(tables2d),      ROW(private_pointers),  ROW(constant_tables), ROW(program_variables),
    ROW(generic_casts), ROW(signed_switch), ROW(jumps_into_loops),  ROW(calls),           ROW(shuffles),
    ROW(selections),    ROW(bit_functions), ROW(unaligned_vectors), ROW(aligned_halves),  ROW(rounded_integers),
    ROW(early_returns), ROW(long_counters)};
enum { KERNEL_COUNT = sizeof(kernels) / sizeof(kernels[0]) };

static u32 *x, *out, *expected[KERNEL_COUNT];

/* Random123's kat_vectors: "philox4x32 10". */
static u32 philox_in[3 * 6] = {0,          0,          0,          0,          0,          0,
                               UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
                               0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0};
static const u32 philox_out[3 * 4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0x408f276d, 0x41c83b0e,
                                      0xa20bc7c6, 0x6d5451fd, 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};

static void compare(const char *name, const char *where, const u32 *got, const u32 *wanted, u32 count, u32 words) {
  for (u32 k = 0; k < count * words; k++) {
    if (got[k] == wanted[k]) continue;
    fprintf(stderr, "%s, %s: item %u, word %u is %08x, expected %08x (from %08x, %08x)\n", name, where, k / words,
            k % words, got[k], wanted[k], x[k / words * 2], x[k / words * 2 + 1]);
    exit(1);
  }
}

static void run_all(const sweep *s) {
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    u32 n = N;
    const void *arguments[] = {&x, &out, &n};
    memset(out, 0xff, N * WORDS * 4);
    spirv_launch launch = sweep_launch(s, kernels[k].name, arguments);
    run_well(&launch);
    compare(kernels[k].name, s->where, out, expected[k], N, WORDS);
  }
  u32 three = 3, *numbers = philox_in;
  const void *arguments[] = {&numbers, &out, &three};
  spirv_launch launch = sweep_launch(s, "philox", arguments);
  run_well(&launch);
  compare("philox", s->where, out, philox_out, 3, 4);
}

int main(void) {
  x = block(N * 8);
  out = block(N * WORDS * 4);
  blocks[block_count].begin = (u64)(uintptr_t)philox_in; /* launches may read it; nobody frees it */
  blocks[block_count].end = blocks[block_count].begin + sizeof(philox_in);
  for (u32 i = 0; i < 2 * N; i++) x[i] = i % 5 == 0 ? scrambled(i) >> (i % 31) : scrambled(i);
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    expected[k] = calloc(N * WORDS, 4);
    for (u32 i = 0; i < N; i++) kernels[k].run(i, x[2 * i], x[2 * i + 1], expected[k] + WORDS * i);
  }
  block_count++;
  sweep_all("language.spv", N, run_all);
  block_count--;
  for (size_t k = 0; k < KERNEL_COUNT; k++) free(expected[k]);
  free_blocks();
  printf("spirv_language: ok\n");
  return 0;
}
