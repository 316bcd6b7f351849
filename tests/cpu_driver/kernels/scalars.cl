/* SPDX-License-Identifier: Apache-2.0 */
/* scalars.cl: one work-item's arithmetic and flow. It is OpenCL C and C at once: test_spirv.c includes it as C, and
 * compares. KERNEL, INDEX, TABLE, as_float … come from there; here they are OpenCL's. */
#ifdef __OPENCL_VERSION__
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define KERNEL(name) kernel void name(global const uint *x, global const uint *y, global uint *out, uint n)
#define TABLE constant
#define PLACE(d) (get_global_id(d) - get_global_offset(d))
#define INDEX() (uint)(PLACE(0) + get_global_size(0) * (PLACE(1) + get_global_size(1) * PLACE(2)))
#endif

TABLE uint table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};

typedef struct {
  uint a;
  ushort b;
  uchar c[5];
  float d;
} record;

static uint mixed(uint v, int rounds) {
  for (int r = 0; r < rounds; r++) v = (v ^ v >> 15) * 0x2c1b3c6du + (uint)r;
  return v;
}

/* What a lane leaves a loop with comes from what it has loaded, while the others go on loading. */
KERNEL(searches) {
  uint i = INDEX();
  if (i >= n) return;
  uint found = 0, sum = 0;
  for (uint round = 0; round < 40; round++) {
    uint v = x[(i * 7 + round) % n];
    found = v * 3 + 1;
    if ((found & 7) == 0) break;
    sum += y[(i ^ round) % n] * 5 + (y[(i + round) % n] >> 3);
  }
  out[i] = found ^ sum;
}

KERNEL(add) {
  uint i = INDEX();
  if (i < n) out[i] = x[i] + y[i];
}
KERNEL(integers) {
  uint i = INDEX();
  if (i >= n) return;
  uint a = x[i], b = y[i] | 1;
  int c = (int)a, d = (int)(b & 0xffff) + 1;
  out[i] = (a * b - (a >> (b & 31))) ^ (a << (b & 7)) ^ (a / b) ^ (a % b) ^ (uint)(c / d) ^ (uint)(c % d) ^
           (uint)(c >> (b & 15)) ^ (a & ~b) ^ (uint)-c;
}
KERNEL(bytes) {
  uint i = INDEX();
  if (i >= n) return;
  uchar a = (uchar)x[i], b = (uchar)(y[i] | 1);
  char c = (char)x[i], d = (char)((y[i] & 63) + 1);
  out[i] = (uint)(uchar)(a + b) | (uint)(uchar)(a / b) << 8 | (uint)(uchar)(c / d) << 16 | (uint)(uchar)(c >> 3) << 24;
}
KERNEL(shorts) {
  uint i = INDEX();
  if (i >= n) return;
  ushort a = (ushort)x[i], b = (ushort)(y[i] | 1);
  short c = (short)x[i], d = (short)((y[i] & 1023) + 1);
  out[i] = (uint)(ushort)(a * b) | (uint)(ushort)((a % b) ^ (ushort)(c / d) ^ (ushort)(c % d)) << 16;
}
KERNEL(longs) {
  uint i = INDEX();
  if (i >= n) return;
  ulong a = (ulong)x[i] << 32 | y[i], b = ((ulong)y[i] << 20 | x[i]) | 1;
  long c = (long)a, d = (long)(b >> 3) + 1;
  ulong r = (a * b) ^ (a / b) ^ (a % b) ^ (ulong)(c / d) ^ (ulong)(c % d) ^ (ulong)(c >> (b & 63)) ^ (a << (b & 63));
  out[i] = (uint)(r ^ r >> 32);
}
KERNEL(compares) {
  uint i = INDEX();
  if (i >= n) return;
  uint a = x[i], b = y[i], r = 0;
  r |= (a < b) << 0 | (a <= b) << 1 | (a > b) << 2 | (a >= b) << 3 | (a == b) << 4 | (a != b) << 5;
  r |= ((int)a < (int)b) << 6 | ((int)a <= (int)b) << 7 | ((long)a < (long)(int)b) << 8;
  float f = as_float(a), g = as_float(b);
  r |= (f < g) << 9 | (f <= g) << 10 | (f == g) << 11 | (f != g) << 12 | !(f < g) << 13 | !(f >= g) << 14;
  out[i] = r;
}
KERNEL(floats) {
  uint i = INDEX();
  if (i >= n) return;
  float a = (float)(int)x[i], b = (float)(y[i] & 0xffff) + 0.5f;
  out[i] = as_uint(a * b + a / b - (b - a));
}
KERNEL(doubles) {
  uint i = INDEX();
  if (i >= n) return;
  double a = (double)(int)x[i], b = (double)y[i] + 0.25;
  double r = a * b + a / b - (b - a);
  out[i] = as_uint((float)r) ^ (r > 1e10 ? 1u : 0u);
}
KERNEL(conversions) {
  uint i = INDEX();
  if (i >= n) return;
  float f = (float)(int)x[i] / 1024.0f;
  double d = (double)f * 3;
  out[i] = (uint)(int)f ^ (uint)(char)(int)f ^ (uint)(long)d ^ as_uint((float)(long)d) ^ as_uint((float)y[i]) ^
           (uint)(ushort)y[i] ^ as_uint((float)(ulong)y[i] * 4e9f) ^ (uint)(short)x[i];
}
KERNEL(loops) {
  uint i = INDEX();
  if (i >= n) return;
  uint sum = 0;
  for (uint k = 0; k < (x[i] & 31); k++) {
    if ((k & 3) == 2) continue;
    for (uint m = k; m < 40; m += 3) {
      if (((m ^ y[i]) & 7) == 0) break;
      sum += m * k + 1;
    }
    if (sum > 900) break;
  }
  out[i] = sum;
}
KERNEL(uniform_loops) {
  uint i = INDEX();
  if (i >= n) return;
  uint sum = x[i];
  for (uint k = 0; k < 10; k++) {
    for (uint m = 0; m < k; m++) sum = sum * 3 + y[m] + k;
    if (sum & 1) sum += k;
  }
  out[i] = sum;
}
KERNEL(collatz) {
  uint i = INDEX();
  if (i >= n) return;
  uint v = (x[i] & 1023) + 1, steps = 0;
  while (v != 1) {
    v = v & 1 ? 3 * v + 1 : v / 2;
    steps++;
  }
  out[i] = steps;
}
KERNEL(switches) {
  uint i = INDEX();
  if (i >= n) return;
  uint r = 0;
  switch (x[i] % 9) {
    case 0: r = 7; break;
    case 1: r = y[i];
    case 2: r += 5; break;
    case 5: r = y[i] * 3; break;
    case 7: return;
    default: r = 1;
  }
  out[i] = r;
}
KERNEL(wide_switch) {
  uint i = INDEX();
  if (i >= n) return;
  ulong v = (ulong)(x[i] & 3) << 33;
  switch (v) {
    case 0: out[i] = 1; break;
    case 1ul << 33: out[i] = 2; break;
    case 2ul << 33: out[i] = 3; break;
    default: out[i] = 4;
  }
}
KERNEL(gotos) {
  uint i = INDEX();
  if (i >= n) return;
  uint v = x[i] & 63, r = 0;
  if (v & 1) goto middle;
top:
  r += v;
  if (v > 40) goto end;
  v += 3;
middle:
  r ^= v * 5;
  v += 2;
  if (r < 5000) goto top;
end:
  out[i] = r + v;
}
KERNEL(calls) {
  uint i = INDEX();
  if (i >= n) return;
  uint a = mixed(x[i], 3), b = mixed(y[i], (int)(x[i] & 7));
  out[i] = a > b ? mixed(a, 1) : b;
}
KERNEL(tables) {
  uint i = INDEX();
  if (i >= n) return;
  out[i] = table[x[i] & 15] * 100 + table[5] + table[y[i] & 15];
}
KERNEL(arrays) {
  uint i = INDEX();
  if (i >= n) return;
  uint kept[12];
  for (uint k = 0; k < 12; k++) kept[k] = x[i] + k * y[i];
  for (uint k = 0; k < 20; k++) {
    uint a = (x[i] + k * 7) % 12, b = (y[i] + k) % 12, t = kept[a];
    kept[a] = kept[b] + 1;
    kept[b] = t;
  }
  out[i] = kept[0] ^ kept[5] * 3 ^ kept[11] * 7;
}
KERNEL(records) {
  uint i = INDEX();
  if (i >= n) return;
  record r[2], s;
  r[0].a = x[i];
  r[0].b = (ushort)y[i];
  r[0].d = 1.5f;
  for (uint k = 0; k < 5; k++) r[0].c[k] = (uchar)(x[i] >> k);
  r[1] = r[0];
  r[1].a += r[x[i] & 1 ? 0 : 0].b;
  s = r[y[i] & 1];
  s.c[x[i] % 5] = 9;
  out[i] = s.a + s.b * 3 + s.c[0] + s.c[2] * 5 + s.c[4] * 11 + (uint)(s.d * 2);
}
KERNEL(choices) {
  uint i = INDEX();
  if (i >= n) return;
  uint a = x[i], b = y[i];
  uint r = a & 1 ? (b & 1 ? a + b : a - b) : (b & 2 ? a * 3 : b * 5);
  if ((a & 6) == 2 || ((b & 6) == 4 && a > b)) r ^= 0x55555555;
  else if (r & 8) r += 3;
  out[i] = r;
}
KERNEL(pointers) {
  uint i = INDEX();
  if (i >= n) return;
#ifdef __OPENCL_VERSION__
  global const uint *p = x[i] & 1 ? x : y;
#else
  const uint *p = x[i] & 1 ? x : y;
#endif
  p += i;
  out[i] = p[0] + p[-(int)(i & 1)];
}
KERNEL(gathers) {
  uint i = INDEX();
  if (i >= n) return;
  uint a = x[(i * 7 + 3) % n], b = y[n - 1 - i], c = x[i / 2], d = y[5];
  out[i] = a + 3 * b + 5 * c + d;
}
/* Addresses of sixteen work-items each: the same, in order, in the other order, apart, and with gaps between the rows. */
KERNEL(rows) {
  uint i = INDEX();
  if (i >= n) return;
  uint row = i / 16, place = i % 16;
#ifdef __OPENCL_VERSION__
  global const uchar *b = (global const uchar *)x;
  global const ushort *s = (global const ushort *)y;
  global const ulong *w = (global const ulong *)x;
#else
  const uchar *b = (const uchar *)x;
  const ushort *s = (const ushort *)y;
  const ulong *w = (const ulong *)x;
#endif
  uint v = x[row] + 3 * y[place] + 5 * x[n - 16 - row + place] + 7 * y[n - 1 - i] + 9 * x[row * 5 + 2 * place];
  v += b[row * 3 + place] * 11u + b[row] + s[row * 7 + place] * 13u + s[2 * place] + (uint)w[row + place] + (uint)(w[row] >> 32);
  v += y[(ulong)row * 8 + place] + y[(int)place - (int)row + (int)n / 2] + (x + 600)[-(long)row - (long)place];
  out[i] = v ^ y[(place * 16 + row) % n];
}
/* What does not change in a loop is computed from what each lane has, also where the loop is not reached by all. */
KERNEL(unchanging) {
  uint i = INDEX();
  if (i >= n) return;
  uint sum = 0, a = x[i], b = y[i];
  if ((a & 3) != 0) {
    for (uint r = 0; r < (a >> 2 & 7); r++) {
      uint c = b * n + r * 3;
      for (uint k = 0; k < (b & 3) + r % 2; k++) {
        sum += (a * n ^ k) + (c * 7 + k) / (b / 9 % 5 + 1) + x[(i * 3 + n / 2 + k) % n];
        if ((sum & 31) == (a & 31)) break;
        sum ^= (uint)((ulong)a * b >> 32) + (uint)((ulong)(sum + k) * 0x9e3779b9u >> 32);
      }
      if ((sum ^ c) % 11 == 0) return;
    }
  }
  out[i] = sum + b;
}
KERNEL(scatters) {
  uint i = INDEX();
  if (i >= n) return;
  if (x[i] & 1) out[n - 1 - i] = y[i];
  else out[n - 1 - i] = x[i] * 2;
}
KERNEL(random) {
  uint i = INDEX();
  if (i >= n) return;
  uint v = x[i] | 1;
  for (int k = 0; k < 16; k++) {
    v ^= v << 13;
    v ^= v >> 17;
    v ^= v << 5;
  }
  ulong w = (ulong)v * 0xd2511f53u;
  out[i] = (uint)(w >> 32) ^ (uint)w;
}
KERNEL(small_memory) {
  uint i = INDEX();
  if (i >= n) return;
#ifdef __OPENCL_VERSION__
  global const uchar *b = (global const uchar *)x;
  global const ushort *s = (global const ushort *)y;
  global uchar *to = (global uchar *)out;
#else
  const uchar *b = (const uchar *)x;
  const ushort *s = (const ushort *)y;
  uchar *to = (uchar *)out;
#endif
  to[4 * i] = b[i];
  to[4 * i + 1] = b[4 * i + 3];
  to[4 * i + 2] = (uchar)s[i];
  to[4 * i + 3] = (uchar)(s[2 * i + 1] >> 8);
}
KERNEL(wide_memory) {
  uint i = INDEX();
  if (i >= n / 2) return;
#ifdef __OPENCL_VERSION__
  global const ulong *a = (global const ulong *)x;
  global const double *b = (global const double *)y;
  global ulong *to = (global ulong *)out;
#else
  const ulong *a = (const ulong *)x;
  const double *b = (const double *)y;
  ulong *to = (ulong *)out;
#endif
  to[i] = a[i] ^ (b[i] > 0 ? 1 : 2);
}
#ifdef __OPENCL_VERSION__
#define AROUND(k) ((ulong)(k) << 62) /* of elements of four bytes: once around all of memory, or some times */
#else
#define AROUND(k) ((ulong)(k) * 0)
#endif
/* Indices that are sums with something that is the same in all work-items. */
KERNEL(sums) {
  uint i = INDEX();
  if (i >= n - 60) return;
  uint sum = 0;
  ulong at = i;
  long from = (long)i - 1000;
  for (uint k = 0; k < 5; k++) {
    sum = sum * 3 + x[at + k * 7];
    sum = sum * 5 + x[(n - 1440 - k) + at];
    sum = sum * 7 + y[(at + AROUND(n + k)) + 3 + k];
    sum = sum * 11 + y[(ulong)(x[i] & 7) + k + AROUND(k + 1)];
    sum = sum * 13 + x[from + (long)(n - 500)];
    sum = sum * 17 + y[from + ((long)k + (long)(n - 500))];
  }
  out[at + AROUND(n)] = sum;
}
/* Variables that a round reads and writes in ways that allow no order, or one order only. Some waves run whole. */
KERNEL(turns) {
  uint i = INDEX();
  if (i >= n) return;
  uint a = x[i], b = y[i], c = a ^ b, sum = 0, varying = 3 + (i / 256 % 2) * (x[i] & 7);
  ulong w = a;
  uchar small = (uchar)b;
  float f = 1;
  for (uint k = 0; k < varying; k++) { /* swapped */
    uint t = a;
    a = b;
    b = t;
    sum += a;
  }
  for (uint k = 0; k < varying + 2; k++) { /* turned round, two of them as they are */
    uint t = a;
    a = b;
    b = c * 3 + k;
    c = t;
    sum = sum * 31 + b;
  }
  for (uint k = 0; k < varying * 2; k++) { /* what one is made of is moved to another */
    uint t = a + b;
    a = b;
    b = t;
  }
  for (uint k = 0; k < varying; k++) { /* each is made of the others */
    uint p = b * 3 ^ c, q = c * 5 + a, r = a - (b >> 3);
    a = p;
    b = q;
    c = r;
    sum ^= sum << 5;
    w = w * 5 + sum;
    small = (uchar)(small * 7 + 1);
    f = f * 0.5f + (float)(k & 3);
  }
  for (uint k = 0; k < varying; k++) { /* two that are made of each other, and one twice of itself */
    uint p = a * 3, q = b + 1;
    a = q;
    b = p;
    c = c * c + k;
    sum = sum - c;
  }
  for (uint k = 0; k < varying; k++) { /* the one keeps its value in some rounds */
    uint p = (a & 1) != 0 ? b : a;
    b = (b & 2) != 0 ? b : c + k;
    a = p + 1;
    c = b ^ w;
  }
  for (uint k = 0; k < 9; k++) { /* for all work-items the same */
    uint t = varying & 0 ? sum : n + k;
    sum += t;
    n = n * 3 + 1;
  }
  out[i] = a ^ b * 3 ^ c * 5 ^ sum ^ (uint)w ^ (uint)(w >> 32) ^ small ^ as_uint(f);
}
/* Masks that are only asked for a common bit, and products that are only added to what is the same everywhere. */
KERNEL(masks) {
  uint i = INDEX();
  if (i >= n) return;
  uint a = x[i], r = 0;
  ulong w = (ulong)a << 21 ^ y[i];
  ushort h = (ushort)(a >> 3);
  uchar b = (uchar)(a >> 5);
  if ((a & 0x10) != 0) r = r * 3 + y[i];
  if ((a & y[i]) != 0) r += 7;
  if ((w & 0x8000000000ul) != 0) r ^= 0x55;
  if ((w & (ulong)n << 30) != 0) r = r * 5 + 1;
  if ((h & 0x101) != 0) r += h;
  if ((b & 0x42) != 0) r -= b;
  if ((a & 0x30) != 0x10) r += 11;
  if ((a & 0x30) == 0) r ^= 0x1111;
  r += (a & 0x44) != 0 ? a & 0x44 : 9;
  ulong once = w * 3 + n, twice = w * 0x123456789abcdeful, thrice = n - w * 7;
  ulong big = n + w * 0xfedcba987654321ul, negative = w * (ulong)-5 + 77;
  once ^= (twice + n) ^ twice >> 9;
  for (uint k = 0; k < (a & 3) + 1; k++) once = once * 0x1000003ul + n;
  w = once ^ thrice * 11 ^ big ^ negative << 1;
  out[i] = r ^ (uint)w ^ (uint)(w >> 32);
}
