/* SPDX-License-Identifier: Apache-2.0 */
/* private.cl: private arrays in loops, one work-item's work each. It is C, too: test_spirv_private.c includes it, so that
 * the host's compiler says what is right. Every kernel writes WORDS words of its own. */
#ifdef __OPENCL_VERSION__
enum { WORDS = 8 };
#define KERNEL(name)                                                                                   \
  void name##_of(uint i, uint a, uint b, global uint *o);                                              \
  kernel void name(global const uint *restrict x, global uint *restrict out, uint n) {                 \
    uint i = (uint)get_global_linear_id();                                                             \
    if (i < n) name##_of(i, x[2 * i], x[2 * i + 1], out + WORDS * i);                                  \
  }                                                                                                    \
  void name##_of(uint i, uint a, uint b, global uint *o)
#else
#define KERNEL(name) static void name(uint i, uint a, uint b, uint *o)
#endif

/* A tile of a product: every index follows from the rounds, in a loop whose rounds are unknown. */
KERNEL(tile) {
  uint sums[4][4], left[4], right[4];
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++) sums[r][c] = 0;
  for (uint k = 0; k < (b & 7) + 1; k++) {
    for (int r = 0; r < 4; r++) {
      left[r] = a * (k + 1) + r;
      right[r] = (b ^ k) + 3 * r;
    }
    for (int r = 0; r < 4; r++)
      for (int c = 0; c < 4; c++) sums[r][c] += left[r] * right[c];
  }
  for (int k = 0; k < 8; k++) o[k] = sums[k / 2][k % 2] ^ sums[k / 2][k % 2 + 2] ^ i;
}

/* Each element from earlier ones. */
KERNEL(schedule) {
  uint w[48], s[8];
  for (int k = 0; k < 16; k++) w[k] = a * (uint)(k + 1) + b + i;
  for (int k = 16; k < 48; k++) w[k] = w[k - 16] + (w[k - 15] >> 7 ^ w[k - 15] << 25) + w[k - 7] + (w[k - 2] ^ w[k - 2] >> 10);
  for (int k = 0; k < 8; k++) s[k] = w[k];
  for (int k = 0; k < 48; k++) {
    uint t = s[7] + (s[4] >> 6 ^ s[4] << 11) + w[k];
    for (int e = 7; e > 0; e--) s[e] = s[e - 1];
    s[4] += t;
    s[0] = t + (s[1] & s[2]);
  }
  for (int k = 0; k < 8; k++) o[k] = s[k];
}

/* The rounds of the inner loop follow from those of the outer one. */
KERNEL(sorted) {
  uint v[8];
  for (int k = 0; k < 8; k++) v[k] = (a >> (k * 3 & 31)) * 2654435761u + b * (uint)k + i;
  for (int r = 0; r < 7; r++)
    for (int k = 0; k < 7 - r; k++)
      if (v[k] > v[k + 1]) {
        uint t = v[k];
        v[k] = v[k + 1];
        v[k + 1] = t;
      }
  for (int k = 0; k < 8; k++) o[k] = v[k];
}

/* Lanes store to other elements, or to none. */
KERNEL(divided) {
  uint v[4], w[4];
  for (int k = 0; k < 4; k++) v[k] = w[k] = a + (uint)k;
  if ((a & 3) == 0)
    for (int k = 0; k < 4; k++) v[k] *= b + (uint)k;
  else if ((a & 3) == 1)
    for (int k = 0; k < 3; k++) w[k] += v[k + 1] ^ b;
  else
    for (int k = 1; k < 4; k++)
      if ((b >> k & 1) != 0) v[k] = w[k - 1] * 3;
  for (int k = 0; k < 4; k++) {
    o[k] = v[k];
    o[k + 4] = w[k] + i;
  }
}

/* An index that only a lane knows: the array stays in memory, and so does what is beside it in each round. */
KERNEL(looked_up) {
  uint table[8], sums[4];
  for (int k = 0; k < 8; k++) table[k] = a * (uint)k ^ b;
  for (int k = 0; k < 4; k++) sums[k] = table[(a >> k) & 7];
  for (int k = 0; k < 4; k++) table[(b >> 2 * k) & 7] += sums[k] + i;
  for (int k = 0; k < 8; k++) o[k] = table[k] + sums[k & 3];
}

/* Loops that end early, or are left from within. */
KERNEL(left_early) {
  uint v[8], n = 0;
  for (int k = 0; k < 8; k++) v[k] = a >> (4 * k & 31) & 15;
  for (int k = 0; k < 8; k++) {
    if (v[k] > (b & 15)) break;
    n += v[k];
    v[k] = n;
  }
  for (int k = 0; k < 8; k++) {
    if (v[k] == (i & 15)) continue;
    v[k] += 100;
  }
  for (int k = 0; k < 8; k++) o[k] = v[k] + n;
}

/* Rounds of every form. */
KERNEL(counted) {
  uint v[12], down = 11;
  for (int k = 0; k < 12; k++) v[k] = a + b * (uint)k;
  for (int k = 11; k >= 0; k -= 3) v[k] ^= i;
  for (uchar k = 250; k != 2; k += 2) v[(uchar)(k - 250)] += 7;
  do {
    v[down] *= 3;
    down -= 2;
  } while (down < 12);
  for (int p = 1; p < 12; p *= 2) v[p] += v[p - 1];
  for (long k = -3; k < 3; k++) v[k + 3] -= b;
  for (int k = 5; k < 5; k++) v[k] = 0;
  for (int k = 0; k < 8; k++) o[k] = v[k] + v[k + 4];
}

typedef struct {
  short s;
  uchar c[3];
  uint u;
  long l;
} record;

KERNEL(records) {
  record r[4];
  for (int k = 0; k < 4; k++) {
    r[k].s = (short)(a >> k);
    for (int c = 0; c < 3; c++) r[k].c[c] = (uchar)(b >> (8 * c + k));
    r[k].u = a ^ b;
    r[k].l = (long)a * (long)(k - 2);
  }
  for (int k = 1; k < 4; k++) {
    r[k].u += r[k - 1].u * (uint)r[k - 1].c[k - 1];
    r[k].l -= r[k - 1].l >> 3;
    r[0].s += r[k].s;
  }
  for (int k = 0; k < 4; k++) {
    o[k] = r[k].u + (uint)(int)r[k].s + r[k].c[2];
    o[k + 4] = (uint)(r[k].l >> 5) + i;
  }
}

/* Words that are also read by bytes: they stay in memory. */
KERNEL(by_bytes) {
  uint v[8];
  for (int k = 0; k < 8; k++) v[k] = a * (uint)(k + 1) + i;
  uchar *bytes = (uchar *)v;
  uint sum = 0;
  for (int k = 0; k < 32; k++) sum = sum * 31 + bytes[k];
  for (int k = 0; k < 8; k++) bytes[4 * k + 1] = (uchar)b;
  for (int k = 0; k < 8; k++) o[k] = v[k] + sum;
}

KERNEL(initialised) {
  uint zeros[8] = {0}, numbers[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  float reals[4] = {0.5f, 1.5f, -2.0f, 0.25f};
  for (int k = 0; k < 8; k += 2) zeros[k] += numbers[k] * a;
  for (int k = 0; k < 8; k++) numbers[k] += zeros[7 - k] + b;
  for (int k = 0; k < 4; k++) reals[k] = reals[k] * (float)(int)(a & 255) + (float)k;
  for (int k = 0; k < 8; k++) o[k] = numbers[k] ^ (uint)(int)reals[k & 3] ^ i;
}

/* What a round leaves is read in the next, and lanes have different numbers of rounds. */
KERNEL(carried) {
  uint state[4] = {a, b, i, 1};
  uint steps = (a ^ b) & 31;
  while (steps-- != 0) {
    uint next[4];
    for (int k = 0; k < 4; k++) next[k] = state[(k + 1) & 3] * 1664525u + state[k];
    for (int k = 0; k < 4; k++) state[k] = next[k];
    if ((state[0] & 7) == 0) state[3] += 5;
  }
  for (int k = 0; k < 8; k++) o[k] = state[k & 3] >> (k & 4);
}

static void multiply(const float *left, const float *right, float *product) {
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++) {
      float sum = 0;
      for (int k = 0; k < 3; k++) sum += left[3 * r + k] * right[3 * k + c];
      product[3 * r + c] = sum;
    }
}

/* Whole numbers, so that every order of the sums is exact. */
KERNEL(through_pointers) {
  float m[9], t[9], p[9];
  for (int k = 0; k < 9; k++) {
    m[k] = (float)(int)(a >> k & 7);
    t[k] = (float)(int)(b >> k & 7);
  }
  multiply(m, t, p);
  multiply(p, m, t);
  for (int k = 0; k < 8; k++) o[k] = (uint)(int)t[k] + (uint)(int)p[8 - k] + i;
}

/* The sides of a branch that each round decides alike in all lanes. */
KERNEL(decided) {
  uint v[8];
  for (int k = 0; k < 8; k++) {
    if (k == 0) v[k] = a;
    else if (k % 3 == 0) v[k] = v[k - 1] * b;
    else v[k] = v[k - 1] + v[k / 2] + i;
  }
  for (int k = 0; k < 8; k++) o[k] = k < 4 ? v[k] : v[k] ^ v[7 - k];
}
