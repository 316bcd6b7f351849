/* SPDX-License-Identifier: Apache-2.0 */
/* arithmetic.h: the numbers of interpreter.h: what each instruction, and each function of OpenCL.std, makes of bits. */
#ifndef L0RT_CPU_TEST_ARITHMETIC_H
#define L0RT_CPU_TEST_ARITHMETIC_H

#include "generator.h"
#include "halves.h"

typedef unsigned __int128 wide;
typedef __int128 signed_wide;

typedef struct {
  uint32_t op; /* 1000 and more: a function of OpenCL.std */
  uint32_t count, n, bits; /* of operands; of components; of a component of the result, or of an operand of a pair */
  bool real; /* the result is */
  const uint64_t *operands[4];
  uint32_t components[4], operand_bits[4];
} numbers;

static inline uint64_t cut(uint64_t v, uint32_t bits) { return bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1); }

static inline int64_t sign_extended(uint64_t v, uint32_t bits) {
  return bits == 64 ? (int64_t)v : (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static inline uint64_t saturated(signed_wide v, uint32_t bits, bool is_signed) {
  signed_wide high = is_signed ? ((signed_wide)1 << (bits - 1)) - 1 : ((signed_wide)1 << bits) - 1;
  signed_wide low = is_signed ? -high - 1 : 0;
  return cut((uint64_t)(v < low ? low : v > high ? high : v), bits);
}

static inline double real_of(uint64_t v, uint32_t bits) {
  float f;
  double d;
  memcpy(&f, &v, 4);
  memcpy(&d, &v, 8);
  return bits == 16 ? half_value_of((uint32_t)v) : bits == 32 ? (double)f : d;
}

/* Rounds once: floats are exact as doubles, and so are their sums before they are rounded, or it makes no difference. */
static inline uint64_t bits_of_real(double d, uint32_t bits) {
  uint64_t v = 0;
  float f = (float)d;
  if (bits == 16) return half_nearest(d);
  if (bits == 32) memcpy(&v, &f, 4);
  else memcpy(&v, &d, 8);
  return v;
}

static inline uint64_t count_bits(uint64_t v) {
  uint64_t n = 0;
  for (; v != 0; v &= v - 1) n++;
  return n;
}

static inline uint64_t leading_zeros(uint64_t v, uint32_t bits) {
  uint32_t n = 0;
  while (n < bits && (v >> (bits - 1 - n) & 1) == 0) n++;
  return n;
}

static inline uint64_t trailing_zeros(uint64_t v, uint32_t bits) {
  uint32_t n = 0;
  while (n < bits && (v >> n & 1) == 0) n++;
  return n;
}

static inline uint64_t reversed_bits(uint64_t v, uint32_t bits) {
  uint64_t r = 0;
  for (uint32_t i = 0; i < bits; i++) r |= (v >> i & 1) << (bits - 1 - i);
  return r;
}

// Long: a case for each instruction.
static inline uint64_t integers(uint32_t op, uint64_t x, uint64_t y, uint64_t z, uint32_t bits) {
  int64_t a = sign_extended(x, bits), b = sign_extended(y, bits), c = sign_extended(z, bits);
  uint32_t by = (uint32_t)(y & (bits - 1));
  bool least = b == -1; /* then a division may overflow */
  switch (op) {
    case 126: return 0 - x;
    case 128: return x + y;
    case 130: return x - y;
    case 132: return x * y;
    case 134: return y == 0 ? 0 : x / y; /* what SPIR-V leaves open is as the engine has it */
    case 135: return y == 0 ? 0 : least ? 0 - x : (uint64_t)(a / b);
    case 137: return y == 0 ? 0 : x % y;
    case 138: return y == 0 || least ? 0 : (uint64_t)(a % b);
    case 139:
      return y == 0 || least
                 ? 0
                 : (uint64_t)((signed_wide)a - (signed_wide)b * (a / b - (a % b != 0 && (a < 0) != (b < 0))));
    case 194: return x >> by;
    case 195: return (uint64_t)(a >> by);
    case 196: return x << by;
    case 197: return x | y;
    case 198: return x ^ y;
    case 199: return x & y;
    case 200: return ~x;
    case 204: return reversed_bits(x, bits);
    case 205:
    case 1166: return count_bits(x);
    case 1141: return a < 0 ? 0 - x : x;
    case 1142: return (uint64_t)(a > b ? (signed_wide)a - b : (signed_wide)b - a);
    case 1143: return saturated((signed_wide)a + b, bits, true);
    case 1144: return saturated((signed_wide)x + (signed_wide)y, bits, false);
    case 1145: return (uint64_t)(((signed_wide)a + b) >> 1);
    case 1146: return (uint64_t)(((wide)x + y) >> 1);
    case 1147: return (uint64_t)(((signed_wide)a + b + 1) >> 1);
    case 1148: return (uint64_t)(((wide)x + y + 1) >> 1);
    case 1149: return (uint64_t)((a > b ? a : b) < c ? (a > b ? a : b) : c);
    case 1150: return (x > y ? x : y) < z ? (x > y ? x : y) : z;
    case 1151: return leading_zeros(x, bits);
    case 1152: return trailing_zeros(x, bits);
    case 1153: return (uint64_t)(((signed_wide)a * b) >> bits) + z;
    case 1154: {
      wide all = (wide)x * y;
      return all >> bits != 0 ? UINT64_MAX : saturated((signed_wide)all + (signed_wide)z, bits, false);
    }
    case 1155: { /* a product may take all 127 bits; then the sum's sign is the product's */
      signed_wide product = (signed_wide)a * b;
      return saturated(product / 2 > (signed_wide)1 << 64      ? product
                       : product / 2 < -((signed_wide)1 << 64) ? product
                                                               : product + c,
                       bits, true);
    }
    case 1156: return a > b ? x : y;
    case 1157: return x > y ? x : y;
    case 1158: return a < b ? x : y;
    case 1159: return x < y ? x : y;
    case 1160: return (uint64_t)(((signed_wide)a * b) >> bits);
    case 1161: return by == 0 ? x : x << by | x >> (bits - by);
    case 1162: return saturated((signed_wide)a - b, bits, true);
    case 1163: return saturated((signed_wide)x - (signed_wide)y, bits, false);
    case 1186: return (x & ~z) | (y & z);
    case 1201: return x;
    case 1202: return x > y ? x - y : y - x;
    case 1203: return (uint64_t)(((wide)x * y) >> bits);
    case 1204: return (uint64_t)(((wide)x * y) >> bits) + z;
    default: fprintf(stderr, "integers: %u\n", op), abort();
  }
}

static inline double remainder_as(uint32_t op, double a, double b, uint32_t bits) {
  double r = fmod(a, b);
  if (op == 140 || isnan(r) || r == 0 || (r < 0) == (b < 0)) return r;
  return bits == 64 ? r + b : bits == 32 ? (double)((float)r + (float)b) : r + b;
}

static inline uint64_t reals(uint32_t op, uint64_t x, uint64_t y, uint64_t z, uint32_t bits) {
  double a = real_of(x, bits), b = real_of(y, bits), c = real_of(z, bits);
#define ROUNDED(v32, v64) bits_of_real(bits == 32 ? (double)(v32) : (v64), bits)
  float fa = (float)a, fb = (float)b, fc = (float)c;
  switch (op) {
    case 127: return x ^ UINT64_C(1) << (bits - 1);
    case 129: return ROUNDED(fa + fb, a + b);
    case 131: return ROUNDED(fa - fb, a - b);
    case 133: return ROUNDED(fa * fb, a * b);
    case 136: return ROUNDED(fa / fb, a / b);
    case 140:
    case 141: return bits_of_real(remainder_as(op, a, b, bits), bits);
    case 1012: return bits_of_real(ceil(a), bits);
    case 1013: return (x & ~(UINT64_C(1) << (bits - 1))) | (y & UINT64_C(1) << (bits - 1));
    case 1023: return x & ~(UINT64_C(1) << (bits - 1));
    case 1025: return bits_of_real(floor(a), bits);
    case 1026: return ROUNDED(fmaf(fa, fb, fc), fma(a, b, c));
    case 1042: return reals(129, reals(133, x, y, 0, bits), z, 0, bits);
    case 1053: return bits_of_real(rint(a), bits);
    case 1055: return bits_of_real(round(a), bits);
    case 1061: return ROUNDED(sqrtf(fa), sqrt(a));
    case 1066: return bits_of_real(trunc(a), bits);
    default: fprintf(stderr, "reals: %u\n", op), abort();
  }
}

static inline bool compared(uint32_t op, uint64_t x, uint64_t y, uint32_t bits) {
  int64_t s = sign_extended(x, bits), t = sign_extended(y, bits);
  double a = real_of(x, bits), b = real_of(y, bits);
  bool open = isnan(a) || isnan(b);
  double smallest = bits == 16 ? 0x1p-14 : bits == 32 ? 0x1p-126 : 0x1p-1022;
  switch (op) {
    case 156: return isnan(a);
    case 157: return isinf(a);
    case 158: return isfinite(a);
    case 159: return isfinite(a) && fabs(a) >= smallest;
    case 160: return x >> (bits - 1) & 1;
    case 161: return a < b || a > b;
    case 162: return !open;
    case 163: return open;
    case 164: return x == y;
    case 165: return x != y;
    case 166: return x | y;
    case 167: return x & y;
    case 168: return !x;
    case 170: return x == y;
    case 171: return x != y;
    case 172: return x > y;
    case 173: return s > t;
    case 174: return x >= y;
    case 175: return s >= t;
    case 176: return x < y;
    case 177: return s < t;
    case 178: return x <= y;
    case 179: return s <= t;
    case 180: return a == b;
    case 181: return open || a == b;
    case 182: return !open && a != b;
    case 183: return a != b;
    case 184: return a < b;
    case 185: return open || a < b;
    case 186: return a > b;
    case 187: return open || a > b;
    case 188: return a <= b;
    case 189: return open || a <= b;
    case 190: return a >= b;
    case 191: return open || a >= b;
    default: fprintf(stderr, "compared: %u\n", op), abort();
  }
}

/* To an integer: towards zero, to the nearest that there is, and NaN to zero. */
static inline uint64_t integer_of(double v, uint32_t bits, bool is_signed) {
  if (isnan(v)) return 0;
  double high = ldexp(1, (int)bits - is_signed), low = is_signed ? -high : 0;
  v = trunc(v);
  if (v >= high) return cut(is_signed ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX, bits);
  if (v < low) v = low;
  return cut(is_signed ? (uint64_t)(int64_t)v : (uint64_t)v, bits);
}

static inline uint64_t converted(uint32_t op, uint64_t x, uint32_t from, uint32_t to) {
  int64_t s = sign_extended(x, from);
  switch (op) {
    case 109: return integer_of(real_of(x, from), to, false);
    case 110: return integer_of(real_of(x, from), to, true);
    case 111: return to == 32 ? bits_of_real((double)(float)s, 32) : bits_of_real((double)s, to);
    case 112: return to == 32 ? bits_of_real((double)(float)x, 32) : bits_of_real((double)x, to);
    case 113: return x;
    case 114: return (uint64_t)s;
    case 115: return bits_of_real(real_of(x, from), to);
    case 118: return saturated(s, to, false);
    default: return saturated((signed_wide)x, to, true);
  }
}

static inline uint64_t field(uint32_t op, const numbers *x, uint32_t i) {
  uint64_t base = x->operands[0][i], from = x->operands[op == 201 ? 2 : 1][0],
           count = x->operands[op == 201 ? 3 : 2][0];
  uint64_t mask = count == 0 ? 0 : cut(UINT64_MAX, (uint32_t)count);
  if (op == 201) return (base & ~(mask << from)) | (x->operands[1][i] & mask) << from;
  uint64_t part = base >> from & mask;
  return op == 202 && count != 0 ? (uint64_t)sign_extended(part, (uint32_t)count) : part;
}

static inline void calculate(const numbers *x, uint64_t *to) {
  uint32_t op = x->op, half = x->n / 2;
  const uint64_t *a = x->operands[0], *b = x->count > 1 ? x->operands[1] : a, *c = x->count > 2 ? x->operands[2] : a;
  if (op == 148) { /* Dot */
    to[0] = reals(133, a[0], b[0], 0, x->bits);
    for (uint32_t i = 1; i < x->components[0]; i++)
      to[0] = reals(129, to[0], reals(133, a[i], b[i], 0, x->bits), 0, x->bits);
    return;
  }
  if (op == 154 || op == 155) { /* Any, All */
    to[0] = op == 155;
    for (uint32_t i = 0; i < x->components[0]; i++) to[0] = op == 154 ? to[0] | a[i] : to[0] & a[i];
    return;
  }
  if (op >= 149 && op <= 152) { /* pairs */
    for (uint32_t i = 0; i < half; i++) {
      static const uint32_t low[] = {128, 130, 132, 132};
      to[i] = cut(integers(low[op - 149], a[i], b[i], 0, x->bits), x->bits);
      uint64_t high = op == 149   ? to[i] < a[i]
                      : op == 150 ? a[i] < b[i]
                                  : integers(op == 151 ? 1203 : 1160, a[i], b[i], 0, x->bits);
      to[half + i] = cut(high, x->bits);
    }
    return;
  }
  for (uint32_t i = 0; i < x->n; i++) {
    uint64_t second = b[x->count > 1 && x->components[1] == 1 ? 0 : i];
    if (op == 169) to[i] = a[x->components[0] == 1 ? 0 : i] != 0 ? b[i] : c[i];
    else if (op == 142) to[i] = reals(133, a[i], second, 0, x->bits);
    else if (op >= 201 && op <= 203) to[i] = cut(field(op, x, i), x->bits);
    else if (op >= 156 && op <= 191) to[i] = compared(op, a[i], b[i], x->operand_bits[0]);
    else if (op >= 109 && op <= 119) to[i] = cut(converted(op, a[i], x->operand_bits[0], x->bits), x->bits);
    else if (x->real) to[i] = reals(op, a[i], b[i], c[i], x->bits);
    else to[i] = cut(integers(op, a[i], b[i], c[i], x->bits), x->bits);
  }
}

/* Of groups: IAdd, UMin, SMin, UMax, SMax. */
static inline uint64_t collective_identity(uint32_t op, uint32_t bits) {
  uint64_t top = UINT64_C(1) << (bits - 1);
  return op == 264 || op == 270 ? 0 : op == 267 ? cut(UINT64_MAX, bits) : op == 268 ? top - 1 : top;
}

static inline uint64_t collected(uint32_t op, uint32_t bits, uint64_t a, uint64_t b) {
  static const uint32_t functions[] = {128, 0, 0, 1159, 1158, 0, 1157, 1156};
  return cut(integers(functions[op - 264], a, b, 0, bits), bits);
}

#endif
