/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_integers.c: OpenCL.std's functions of integers of 8 to 64 bits against 128 bits: all pairs of bytes, and numbers
 * near powers of two, limits and one another of the wider ones, with every instruction set and with uniform operands. */
#include "assembler.h"
#include "spirv/decode/grammar.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 wider;

enum { COUNT = 65536 };

static unsigned bits;
static wide least(void) { return -((wide)1 << (bits - 1)); }
static wide most(void) { return ((wide)1 << (bits - 1)) - 1; }
static wide all(void) { return ((wide)1 << bits) - 1; }
static wide within(wide v, wide low, wide high) { return v < low ? low : v > high ? high : v; }
static wide size_of(wide v) { return v < 0 ? -v : v; }
static wide ones(wide v) { return __builtin_popcountll((uint64_t)v); }
static wide leading(wide v) { return v == 0 ? bits : (unsigned)__builtin_clzll((uint64_t)v) - (64 - bits); }
static wide trailing(wide v) { return v == 0 ? bits : (unsigned)__builtin_ctzll((uint64_t)v); }
static wide turned(wide v, wide by) {
  by %= bits;
  return v << by | v >> (bits - by);
}
static wide high(wide v) { return v >> bits; }
static wide of_24(wide v, bool is_signed) {
  v &= 0xffffff;
  return is_signed && v >> 23 ? v - 0x1000000 : v;
}
/* (a × b >> bits), where the product of two 64-bit numbers needs all of 128. */
static wide unsigned_high(wide a, wide b) { return (wide)((wider)a * (wider)b >> bits); }
static wide unsigned_mad_sat(wide a, wide b, wide c) {
  wider product = (wider)a * (wider)b;
  return product > (wider)all() || product + (wider)c > (wider)all() ? all() : (wide)product + c;
}

/* X(function, operands, signed, expression of the operands a, b, c; it is cut to the type's bits). */
#define OF_INTEGERS(X)                                                                                                 \
  X(s_abs, 1, 1, size_of(a))                                                                                           \
  X(u_abs, 1, 0, a)                                                                                                    \
  X(s_abs_diff, 2, 1, size_of(a - b))                                                                                  \
  X(u_abs_diff, 2, 0, size_of(a - b))                                                                                  \
  X(s_add_sat, 2, 1, within(a + b, least(), most()))                                                                   \
  X(u_add_sat, 2, 0, within(a + b, 0, all()))                                                                          \
  X(s_sub_sat, 2, 1, within(a - b, least(), most()))                                                                   \
  X(u_sub_sat, 2, 0, within(a - b, 0, all()))                                                                          \
  X(s_hadd, 2, 1, (a + b) >> 1)                                                                                        \
  X(u_hadd, 2, 0, (a + b) >> 1)                                                                                        \
  X(s_rhadd, 2, 1, (a + b + 1) >> 1)                                                                                   \
  X(u_rhadd, 2, 0, (a + b + 1) >> 1)                                                                                   \
  X(s_clamp, 3, 1, b > c ? UNDEFINED : within(a, b, c))                                                                \
  X(u_clamp, 3, 0, b > c ? UNDEFINED : within(a, b, c))                                                                \
  X(clz, 1, 0, leading(a))                                                                                             \
  X(ctz, 1, 0, trailing(a))                                                                                            \
  X(popcount, 1, 0, ones(a))                                                                                           \
  X(s_mad_hi, 3, 1, high(a *b) + c)                                                                                    \
  X(u_mad_hi, 3, 0, unsigned_high(a, b) + c)                                                                           \
  X(s_mad_sat, 3, 1, within(a *b + c, least(), most()))                                                                \
  X(u_mad_sat, 3, 0, unsigned_mad_sat(a, b, c))                                                                        \
  X(s_max, 2, 1, a > b ? a : b)                                                                                        \
  X(u_max, 2, 0, a > b ? a : b)                                                                                        \
  X(s_min, 2, 1, a < b ? a : b)                                                                                        \
  X(u_min, 2, 0, a < b ? a : b)                                                                                        \
  X(s_mul_hi, 2, 1, high(a *b))                                                                                        \
  X(u_mul_hi, 2, 0, unsigned_high(a, b))                                                                               \
  X(rotate, 2, 0, turned(a, b))                                                                                        \
  X(bitselect, 3, 0, (a & ~c) | (b & c))                                                                               \
  X(select, 3, 1, c != 0 ? b : a)                                                                                      \
  X(s_mul24, 2, 1, bits != 32 ? UNDEFINED : of_24(a, true) * of_24(b, true))                                           \
  X(u_mul24, 2, 0, bits != 32 ? UNDEFINED : of_24(a, false) * of_24(b, false))                                         \
  X(s_mad24, 3, 1, bits != 32 ? UNDEFINED : of_24(a, true) * of_24(b, true) + c)                                       \
  X(u_mad24, 3, 0, bits != 32 ? UNDEFINED : of_24(a, false) * of_24(b, false) + c)                                     \
  X(s_upsample, 2, 1, (wide)((wider)a << bits) | (b & all()))                                                          \
  X(u_upsample, 2, 0, (wide)((wider)a << bits) | b)

#define UNDEFINED ((wide)1 << 126)
#define REFERENCE(name, count, is_signed, expression)                                                                  \
  static wide c_##name(wide a __attribute__((unused)), wide b __attribute__((unused)),                                 \
                       wide c __attribute__((unused))) {                                                               \
    return expression;                                                                                                 \
  }
OF_INTEGERS(REFERENCE)

static const struct {
  const char *name;
  uint32_t function, count;
  bool is_signed;
  wide (*run)(wide a, wide b, wide c);
} functions[] = {
#define ROW(name, count, is_signed, expression) {#name, CL_##name, count, is_signed, c_##name},
    OF_INTEGERS(ROW)};

static wide number(const void *array, size_t i, unsigned width, bool is_signed) {
  uint64_t v = 0;
  memcpy(&v, (const char *)array + i * (width / 8), width / 8);
  return is_signed ? (wide)((int64_t)(v << (64 - width)) >> (64 - width)) : (wide)v;
}

static void fill(void *array, unsigned which) {
  for (uint32_t i = 0; i < COUNT; i++) {
    uint64_t mixed = (uint64_t)scrambled(3 * i + which) << 32 | scrambled(5 * i + 7 * which + 1);
    uint64_t v = mixed;
    switch (scrambled(i * 11 + which) % 5) {
      case 0: v = (UINT64_C(1) << (mixed >> 40) % bits) + mixed % 5 - 2; break;
      case 1: v = (mixed >> 20) % 7 - 3; break;
      case 2: v = (UINT64_MAX >> (65 - bits)) + mixed % 5 - 2; break; /* around the limits of signed numbers */
      case 3: v = mixed >> (mixed % bits); break;
      default: break;
    }
    if (bits == 8 && which < 2) v = which == 0 ? i & 255 : i >> 8;
    memcpy((char *)array + i * (bits / 8), &v, bits / 8);
  }
}

static void *arrays[4];

/* A function on `count` elements against its reference; those operands are uniform for which a bit is set, and then
 * element `pick` of their array. */
static void one_function(size_t f, element type, uint32_t count, uint32_t uniform, uint32_t pick) {
  bool doubled = functions[f].function == CL_s_upsample || functions[f].function == CL_u_upsample;
  bool is_24 = functions[f].function >= CL_s_mad24 && functions[f].function <= CL_u_mul24;
  if ((doubled && type == INT64) || (is_24 && type != INT32)) return;
  called c = {.function = functions[f].function,
              .operands = {type, type, type},
              .count = functions[f].count,
              .result = doubled ? type + 1 : type,
              .uniform = uniform};
  void *given[4] = {arrays[0], arrays[1], arrays[2], arrays[3]};
  for (unsigned k = 0; k < 3; k++)
    if (uniform >> k & 1) given[k] = (char *)arrays[k] + pick * element_size[type];
  given[c.count] = arrays[3];
  call_function(&c, count, given);
  unsigned width = 8 * element_size[c.result];
  for (uint32_t i = 0; i < count; i++) {
    wide v[3];
    for (unsigned k = 0; k < 3; k++)
      v[k] = number(arrays[k], uniform >> k & 1 ? pick : i, bits, functions[f].is_signed);
    wide wanted = functions[f].run(v[0], v[1], v[2]);
    uint64_t mask = UINT64_MAX >> (64 - width), got = (uint64_t)number(arrays[3], i, width, false);
    if (wanted == UNDEFINED || ((uint64_t)wanted & mask) == got) continue;
    fprintf(stderr, "%s of %u bits, uniform operands %u, %llx, %llx, %llx is %llx, expected %llx\n", functions[f].name,
            bits, uniform, (unsigned long long)v[0], (unsigned long long)v[1], (unsigned long long)v[2],
            (unsigned long long)got, (unsigned long long)((uint64_t)wanted & mask));
    exit(1);
  }
}

int main(void) {
  static const char *const sets[] = {"sse2", "avx2", "avx512"};
  for (int k = 0; k < 4; k++) arrays[k] = block(COUNT * 8);
  for (element type = INT8; type <= INT64; type++) {
    bits = 8 * element_size[type];
    for (unsigned k = 0; k < 3; k++) fill(arrays[k], k);
    for (int s = 0; s < 3; s++) {
      if (!spirv_use_instruction_set(sets[s])) continue;
      for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++) {
        one_function(f, type, COUNT, 0, 0);
        for (uint32_t uniform = 1; uniform < 1u << functions[f].count; uniform++)
          for (uint32_t pick = 0; pick < 8; pick++)
            one_function(f, type, 512, uniform, scrambled((uint32_t)f * 8 + pick) % COUNT);
      }
    }
  }
  free_blocks();
  printf("spirv_integers: ok\n");
  return 0;
}
