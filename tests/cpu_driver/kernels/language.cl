/* SPDX-License-Identifier: Apache-2.0 */
/* language.cl: what OpenCL C has besides C's scalars, one work-item's work each; test_spirv_language.c has the same in C.
 * Every kernel reads words of x at its item's linear index and writes WORDS words of its own. */
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_fp16 : enable

enum { WORDS = 8 };
#define KERNEL(name) kernel void name(global const uint *restrict x, global uint *restrict out, uint n)
#define BEGIN                                                                                          \
  uint i = (uint)get_global_linear_id();                                                               \
  if (i >= n) return;                                                                                  \
  global uint *o = out + WORDS * i;                                                                    \
  uint a = x[2 * i], b = x[2 * i + 1]

KERNEL(vectors16) {
  BEGIN;
  uint16 v = (uint16)(a, b, a ^ b, a + b, a, a, b, b, 1, 2, 3, 4, 5, 6, 7, 8) + (uint16)(i);
  v = v * v.sfedcba9876543210 + (v << 3);
  uint8 w = v.hi ^ v.lo;
  w += v.even & v.odd;
  vstore8(w, 0, o);
}
KERNEL(bytes16) {
  BEGIN;
  uchar16 v = (uchar16)((uchar)a, (uchar)b, (uchar)(a >> 8), (uchar)(b >> 8), 200, 100, 50, 25, 1, 2, 3, 4, 5, 6, 7, 255);
  char16 s = as_char16(v.s5432109876fedcba);
  v = add_sat(v, v.s1032547698badcfe) ^ as_uchar16(sub_sat(s, (char16)((char)a)));
  v = v > (uchar16)(90) ? v : hadd(v, (uchar16)(7));
  vstore4(as_uint4(v), 0, o);
  vstore4(as_uint4(max(s, min(as_char16(v), s.s0000111122223333))), 1, o);
}
KERNEL(shorts8) {
  BEGIN;
  short8 v = (short8)((short)a, (short)b, (short)(a >> 16), (short)(b >> 16), 30000, -30000, 7, -7);
  short8 w = mul_hi(v, v.s76543210) + mad_sat(v, v.s10325476, (short8)(100));
  vstore4(as_uint4(w), 0, o);
  vstore4(as_uint4(v / (short8)((short)(a & 15) + 1) + v % (short8)(9)), 1, o);
}
KERNEL(longs4) {
  BEGIN;
  long4 v = (long4)((long)a << 32 | b, (long)b << 20, -(long)a, (long)(a ^ b) << 31);
  long4 w = rotate(v, v.wzyx) - mul_hi(v, v.yxwz);
  w = v.xxyy < v.zwzw ? w : abs_diff(v, w) == (ulong4)(5) ? v : as_long4(abs(v)) + clz(v);
  vstore8(as_uint8(w), 0, o);
}
KERNEL(threes) {
  BEGIN;
  int3 v = (int3)((int)a, (int)b, (int)i), w = v.zxy;
  int3 kept[3] = {v, w, v + w};
  w = kept[a % 3] * kept[b % 3].yzx;
  vstore3(w, 0, (global int *)o);
  o[3] = (uint)sizeof(kept);
  vstore3(v.xxy - w.zzz, 0, (global int *)o + 4);
  o[7] = (uint)dot(convert_float3(v & 255), convert_float3(w & 255));
}
KERNEL(halves) {
  BEGIN;
  half4 v = (half4)(as_half((ushort)(a & 0x3fff)), (half)(b & 255), (half)1.5f, (half)-2.25f);
  half4 w = v * v.wzyx + v.yyxx;
  w = fma(v, (half4)(0.5h), w) - v / (half4)(3.0h);
  o[0] = as_uint(w.xy);
  o[1] = as_uint(w.zw);
  o[2] = (uint)(int)convert_int_sat(w.x) + (uint)convert_short_sat(w.y * 1000.0h);
  o[3] = as_uint(convert_float(w.z)) ^ (w.x > w.y ? 1u : 0u) ^ (isnan(w.x) ? 2u : 0u);
  vstore_half4_rtz(convert_float4(w) * 1.003f, 0, (global half *)(o + 4));
  o[6] = as_ushort((half)(ulong)a) | (uint)as_ushort((half)(int)b) << 16;
  o[7] = as_uint(fmax(v.xy, v.zw) + floor(v.yx * 0.3h));
}
KERNEL(doubles4) {
  BEGIN;
  double4 v = (double4)((double)a, (double)(int)b, 0.1 * i, -1e300) / 7.0;
  double4 w = fma(v, v.yxxy, v.zzzz) - v.wzyx * 1e-200;
  w = w > v ? floor(w) : w + trunc(v);
  vstore8(as_uint8(w), 0, o);
}
KERNEL(saturating) {
  BEGIN;
  float f = (float)(int)a / 3000000.0f;
  double d = (double)(long)((ulong)a << 32 | b) / 65536;
  o[0] = convert_uchar_sat(f) | (uint)(uchar)convert_char_sat(f) << 8 | (uint)(ushort)convert_short_sat((int)a) << 16;
  o[1] = convert_uint_sat(d);
  o[2] = (uint)convert_int_sat(d);
  o[3] = convert_ushort_sat((int)b) | (uint)convert_uchar_sat((short)b) << 16 | (uint)(uchar)convert_char_sat((uint)a) << 24;
  ulong u = convert_ulong_sat(f * 1e12f);
  long s = convert_long_sat(d * 1e6);
  o[4] = (uint)u;
  o[5] = (uint)(u >> 32);
  o[6] = (uint)s;
  o[7] = (uint)(s >> 32);
}
KERNEL(rounding) {
  BEGIN;
  float f = (float)(int)a / 4096.0f;
  double d = (double)(int)b / 65536;
  o[0] = (uint)convert_int_rte(f);
  o[1] = (uint)convert_int_rtp(f);
  o[2] = (uint)convert_int_rtn(f);
  o[3] = (uint)convert_int_rtz(f) ^ (uint)convert_int(f);
  o[4] = (uint)convert_int_rte(d) + 3 * (uint)convert_int_rtp(d);
  o[5] = (uint)convert_int_rtn(d) ^ (uint)convert_long_rte(d * 3);
  o[6] = as_uint(convert_float_rtz(d * 1.1)) ^ as_uint(convert_float_rtp(d * 1.3));
  o[7] = as_uint(convert_float_rtn(d * 1.7)) ^ as_uint(convert_float_rte(d * 1.9));
}
KERNEL(rounded_integers) {
  BEGIN;
  int s = (int)a;
  long w = (long)((ulong)a << 32 | b) >> (b & 31);
  o[0] = as_uint(convert_float_rtz(s)) ^ as_uint(convert_float_rtp(b));
  o[1] = as_uint(convert_float_rtp(s)) ^ as_uint(convert_float_rtn(b));
  o[2] = as_uint(convert_float_rtn(s)) ^ as_uint(convert_float_rtz((ulong)w));
  o[3] = as_uint(convert_float_rtn(w)) ^ as_uint(convert_float_rte(w));
  o[4] = as_ushort(convert_half_rtz(s >> (b & 31))) | (uint)as_ushort(convert_half_rtp((ushort)a)) << 16;
  o[5] = as_ushort(convert_half_rtn(s >> (b & 15))) | (uint)as_ushort(convert_half_rtp((short)b)) << 16;
  double4 d = (double4)(convert_double_rtz(w), convert_double_rtp((ulong)w), convert_double_rtn(w), convert_double_rtp(w));
  o[6] = (uint)as_ulong(d.x) ^ (uint)as_ulong(d.y) * 3;
  o[7] = (uint)as_ulong(d.z) ^ (uint)as_ulong(d.w) * 3 ^ as_uint(convert_float_rtp(s / 7));
}
typedef union {
  uint word;
  float number;
  uchar bytes[4];
} punned;
typedef struct {
  char tag;
  struct {
    short s[3];
    double d;
  } inner[2];
  punned u;
  ushort low, middle;
} nested;
static nested made(uint a, uint b) {
  nested r;
  r.tag = (char)a;
  for (int k = 0; k < 2; k++) {
    for (int m = 0; m < 3; m++) r.inner[k].s[m] = (short)(a >> (k + m));
    r.inner[k].d = (double)b / (k + 1);
  }
  r.u.number = (float)(a & 0xffff);
  r.low = (ushort)(a >> 7);
  r.middle = (ushort)b;
  return r;
}
KERNEL(nested_structures) {
  BEGIN;
  nested all[2];
  all[0] = made(a, b);
  all[1] = all[0];
  all[a & 1].inner[b & 1].s[a % 3] += 77;
  all[1].u.bytes[b & 3] = 9;
  all[0].middle += 5;
  o[0] = (uint)all[0].tag + (uint)all[1].inner[1].s[2];
  o[1] = (uint)all[0].inner[0].s[0] ^ (uint)all[1].inner[0].s[1] << 3 ^ (uint)all[0].inner[1].s[2] << 7;
  o[2] = (uint)(ulong)all[1].inner[1].d;
  o[3] = all[1].u.word;
  o[4] = all[0].low + 3 * (uint)all[0].middle;
  o[5] = (uint)sizeof(nested);
  o[6] = all[1].middle ^ (uint)all[1].inner[0].s[0];
  o[7] = all[0].u.word;
}
KERNEL(unions) {
  BEGIN;
  punned p = {.word = a};
  p.bytes[b & 3] ^= 0x5a;
  p.bytes[a >> 30] += 3;
  o[0] = p.word;
  o[1] = as_uint(fabs(p.number));
  uchar4 four = as_uchar4(b);
  o[2] = four.w | four.x << 8;
  ulong2 two = as_ulong2((uint4)(a, b, p.word, i));
  o[3] = (uint)(two.x >> 16) ^ (uint)two.y;
  o[4] = as_uint((short2)((short)a, (short)b));
  o[5] = as_uint(as_float(0x3f800000u | a >> 9));
  o[6] = (uint)as_ulong(as_double((ulong)a << 32 | b));
  o[7] = as_uint((char4)(1, -2, 3, -4)) + a;
}
KERNEL(tables2d) {
  BEGIN;
  ushort grid[5][7];
  for (uint r = 0; r < 5; r++)
    for (uint c = 0; c < 7; c++) grid[r][c] = (ushort)(a * r + b * c);
  for (uint k = 0; k < 12; k++) grid[(a >> k) % 5][(b >> k) % 7] += grid[k % 5][(a + k) % 7];
  for (uint k = 0; k < WORDS; k++) o[k] = grid[k % 5][(k + b) % 7] + ((uint)grid[(a + k) % 5][k % 7] << 16);
}
static __attribute__((noinline)) uint changed(uint *p, uint **q, uint by) {
  *p += by;
  **q ^= *p;
  *q = *q == p ? p + 1 : p;
  return **q;
}
KERNEL(private_pointers) {
  BEGIN;
  uint kept[4] = {a, b, a + b, a - b};
  uint *p = kept + (a & 1), *q = kept + (b & 3);
  o[0] = changed(p, &q, 5);
  o[1] = changed(kept, &q, b);
  o[2] = (uint)(q - kept) + 10 * (uint)(q > p) + 100 * (uint)(p == kept);
  p = a & 2 ? q : p;
  o[3] = *p;
  vstore4(vload4(0, kept), 1, o);
}
typedef struct {
  float4 v;
  uint k;
  char name[8];
} row;
constant row rows[3] = {{(float4)(1, 2, 3, 4), 7, "first"}, {(float4)(-1, 0.5f, 9, 8), 8, "second"}, {(float4)(0), 9, "third"}};
constant float4 colours[2] = {(float4)(0.25f), (float4)(4, 3, 2, 1)};
KERNEL(constant_tables) {
  BEGIN;
  constant row *r = &rows[a % 3];
  float4 v = r->v * colours[b & 1].wzyx;
  vstore4(as_uint4(v), 0, o);
  o[4] = r->k;
  o[5] = (uint)r->name[b % 6];
  o[6] = (uint)"characters"[a % 10];
  o[7] = rows[1].k + (uint)rows[2].name[1];
}
global uint program_table[8] = {8, 6, 7, 5, 3, 0, 9, 1};
global uint *global second_place = &program_table[2];
KERNEL(program_variables) {
  BEGIN;
  o[0] = program_table[a & 7];
  o[1] = second_place[b & 3];
  o[2] = (uint)(second_place - program_table);
  global uint *p = a & 1 ? second_place : o;
  o[3] = 4;
  o[4] = p[3];
  o[5] = o[6] = o[7] = i;
}
static uint through(const uint *p, int k) { return p[k] * 3 + 1; }
KERNEL(generic_casts) {
  BEGIN;
  uint own[2] = {a, b};
  uint *p = a % 3 == 0 ? (uint *)(x + 2 * i) : a % 3 == 1 ? own : (uint *)&program_table[4];
  o[0] = through(p, (int)(b & 1));
  o[1] = to_global(p) != 0 ? 1 : 0;
  o[2] = to_private(p) != 0 ? 1 : 0;
  o[3] = to_local(p) != 0 ? 1 : 0;
  uint *to = b & 1 ? own : (uint *)(o + 4);
  o[4] = 11;
  *to = 12;
  o[5] = own[0];
  o[6] = own[1];
  o[7] = *to;
}
KERNEL(signed_switch) {
  BEGIN;
  uint r = 1;
  for (int k = 0; k < 8; k++) {
    o[k] = 0;
    char c = (char)((a >> (3 * k)) & 7) - 4;
    switch (c) {
      case -4: r += 3; continue;
      case -3: r *= 5;
      case -2: r ^= b; break;
      case 3:
        if (r & 1) break;
        r += 7;
      default: r = r * 3 + (uint)c;
    }
    o[k] = r;
    r += k;
  }
}
KERNEL(jumps_into_loops) {
  BEGIN;
  uint rounds = (a & 7) + 1, r = b;
  switch (b & 3) {
    case 0:
      do {
        r += 3;
        case 3: r ^= a;
        case 2: r *= 5;
        case 1: r -= rounds;
      } while (--rounds > 0);
  }
  o[0] = r;
  uint k = a & 31, steps = 0;
  if (b & 8) goto second;
first:
  k = k * 7 + 1 & 1023;
  if (++steps > 40) goto end;
  if (k & 1) goto second;
  k ^= 5;
  goto first;
second:
  k = k + 3 & 1023;
  if (++steps > 40) goto end;
  if (k % 3 != 0) goto first;
  goto second;
end:
  o[1] = k;
  o[2] = steps;
  o[3] = o[4] = o[5] = o[6] = o[7] = 0;
}
static __attribute__((noinline)) uint deepest(uint v, uint k) { return k & 1 ? v * 3 : v + k; }
static __attribute__((noinline)) uint deeper(uint v, uint k) {
  uint r = v;
  for (uint m = 0; m < (k & 3); m++) {
    if (r % 11 == 3) return r;
    r = deepest(r, m + k);
  }
  return deepest(r, k) + 1;
}
static __attribute__((noinline)) void deep(uint v, uint *r) {
  for (int m = 0; m < 4; m++) r[m] = deeper(v + m, v >> m);
}
KERNEL(calls) {
  BEGIN;
  uint r[8];
  deep(a, r);
  deep(b, r + 4);
  for (int k = 0; k < 8; k++) o[k] = r[(k + a) & 7];
}
KERNEL(shuffles) {
  BEGIN;
  uint4 v = (uint4)(a, b, i, a ^ b), m = (uint4)(a, b, a >> 3, b >> 5);
  vstore4(shuffle(v, m), 0, o);
  vstore4(shuffle2(v, v * 3, m), 1, o);
}
KERNEL(selections) {
  BEGIN;
  int4 v = (int4)((int)a, (int)b, (int)a >> 7, (int)b << 3), w = v.yxwz;
  int4 less = v < w;
  o[0] = (uint)any(less) + 2 * (uint)all(v != w) + 4 * (uint)any(v == 0);
  vstore4(as_uint4(select(v, w, less)), 1, o);
  o[1] = as_uint(bitselect(as_float(a), as_float(b), as_float(0x00ff00ffu)));
  float4 f = as_float4((uint4)(a, b, 0x7fc00000u, 0x7f800000u));
  o[2] = as_uint4(isnan(f)).z + 2 * as_uint4(isinf(f)).w + (uint)isfinite(f.w) + (uint)signbit(f.x) * 8 + (uint)isnormal(f.y) * 16;
  o[3] = (uint)isless(f.x, f.y) + 2 * (uint)isunordered(f.x, f.z) + 4 * (uint)islessgreater(f.x, f.y) + 8 * (uint)isordered(f.w, f.w);
}
KERNEL(bit_functions) {
  BEGIN;
  o[0] = clz(a) | popcount(b) << 8 | (uint)clz((uchar)a) << 16 | (uint)popcount((ushort)b) << 24;
  o[1] = rotate(a, b) ^ rotate((uint)(ushort)rotate((ushort)a, (ushort)b), 16u);
  o[2] = hadd(a, b) + (uint)rhadd((int)a, (int)b);
  o[3] = abs_diff((int)a, (int)b) ^ abs((int)a);
  o[4] = mad24(a & 0xffffff, b & 0xffffff, 7u) + (uint)mul24((int)a << 8 >> 8, (int)b << 8 >> 8);
  o[5] = (uint)upsample((short)a, (ushort)b) ^ (uint)(upsample(a, b) >> 16);
  o[6] = mul_hi(a, b) + mad_hi(a, b, 3u) + (uint)mul_hi((int)a, (int)b);
  o[7] = mad_sat(a, b & 7, b) ^ (uint)mad_sat((int)a, (int)(b & 7), (int)b) ^ add_sat(a, b) ^ (uint)sub_sat((int)a, (int)b) ^
         (uint)clamp((int)a, -1000, 1000) ^ clamp(b, 5u, 500u);
}
KERNEL(unaligned_vectors) {
  BEGIN;
  global const uchar *bytes = (global const uchar *)(x + 2 * i) + 1;
  uchar3 three = vload3(0, bytes);
  char4 four = vload4(1, (global const char *)bytes - 3);
  o[0] = three.x | three.y << 8 | three.z << 16;
  o[1] = as_uint(four);
  global uchar *to = (global uchar *)(o + 2);
  vstore2((uchar2)(1, 2), 0, to + 1);
  to[0] = to[3] = 5;
  float2 f = vload_half2(0, (global const half *)(x + 2 * i));
  o[3] = isnan(f.x) ? 0 : as_uint(f.x);
  vstore_half(isnan(f.y) ? 1.0f : f.y * 0.7f, 0, (global half *)(o + 4));
  vstore_half_rtp(isnan(f.y) ? 1.0f : f.y * 0.7f, 1, (global half *)(o + 4));
  vstore_half_rtn(isnan(f.y) ? 1.0f : f.y * 0.7f, 2, (global half *)(o + 4));
  vstore_half(as_double((ulong)b << 20 | 0x3f00000000000000ul), 3, (global half *)(o + 4));
  private ushort own[5];
  vstore4((ushort4)(1, 2, 3, (ushort)a), 0, own + 1);
  o[6] = own[4] + own[1];
  o[7] = sizeof(float3) + sizeof(uchar3);
}
KERNEL(aligned_halves) {
  BEGIN;
  global half *h = (global half *)o;
  float4 f = (float4)((float)(int)a / 65536, (float)(int)b / 4e7f, (float)(a & 255) * 0.001f, -1e-7f * (b & 63));
  vstorea_half4(f, 0, h);
  vstorea_half3_rtz(f.zyx, 1, h); /* as far apart as four */
  vstorea_half2_rtp(f.xw, 4, h);
  vstore_half2(f.yz, 3, h);
  o[5] = as_uint(vloada_half4(0, h).w);
  o[6] = as_uint(vloada_half3(1, h).z);
  o[7] = as_uint(vloada_half2(4, h).y);
}
static uint found(global const uint *x, uint i, uint b) {
  for (uint k = 0; k < 20; k++) {
    for (uint m = 0; m < 5; m++) {
      if ((x[2 * i] >> k & 7) == m + (b & 1)) return k * 8 + m;
      if (k * m > 60) break;
    }
    if (b >> k & 1 && k > 11) return 1000 + k;
  }
  return 9999;
}
KERNEL(early_returns) {
  BEGIN;
  for (int k = 0; k < WORDS; k++) o[k] = (uint)k;
  if ((a & 7) == 5) return;
  o[0] = found(x, i, b);
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
KERNEL(long_counters) {
  BEGIN;
  ulong sum = 0;
  for (ulong k = (ulong)a << 8; k > 0; k = k / 3 - (k > 5 ? k & 1 : 0)) sum += k ^ b;
  long down = (long)(b & 63);
  while (down-- > -5) sum = sum * 3 + (ulong)down;
  o[0] = (uint)sum;
  o[1] = (uint)(sum >> 32);
  short s = (short)a;
  uchar rounds = 0;
  do {
    s = (short)(s / 2 + 1);
    rounds += 9;
  } while (s > 3 || s < -3);
  o[2] = (uint)s;
  o[3] = rounds;
  bool odd = false;
  for (uint k = a; k != 0; k &= k - 1) odd = !odd;
  o[4] = odd;
  o[5] = o[6] = o[7] = 0;
}

/* Philox4x32-10 of "Parallel random numbers: as easy as 1, 2, 3" (Salmon et al.): four words of counter, two of key. */
kernel void philox(global const uint *in, global uint *out, uint n) {
  uint i = (uint)get_global_linear_id();
  if (i >= n) return;
  uint4 c = vload4(0, in + 6 * i);
  uint2 key = vload2(0, in + 6 * i + 4);
  for (int round = 0; round < 10; round++) {
    uint2 low = c.xz * (uint2)(0xd2511f53u, 0xcd9e8d57u), high = mul_hi(c.xz, (uint2)(0xd2511f53u, 0xcd9e8d57u));
    c = (uint4)(high.y ^ c.y ^ key.x, low.y, high.x ^ c.w ^ key.y, low.x);
    key += (uint2)(0x9e3779b9u, 0xbb67ae85u);
  }
  vstore4(c, i, out);
}
