/* SPDX-License-Identifier: Apache-2.0 */
/* handlers.h: the handlers of all operations on lanes. It is included once for each instruction set, whose name is SET.
 *
 * Each handler is a loop that the compiler vectorises. The registers of a step never overlap, but its result may be one of
 * its operands. */
#include <math.h>
#include <string.h>
/* Clang does not know the pragmas by which a file chooses its instructions, so it may use none of them by name. */
#if defined(__x86_64__) && !defined(__clang__)
#define BY_NAME 1
#include <immintrin.h>
#else
#define BY_NAME 0
#endif

#include "spirv/run/half.h"
#include "spirv/run/kernel_memory.h"
#include "spirv/run/run.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
/* Lanes come in rows of PADDING, so that a loop has no rest. An element of the result may lie where one of the same lane
 * is read, so no two rounds of a loop depend on each other. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
/* Instrumented and unrolled, these loops take minutes to compile. */
#define EACH(k) for (size_t k = 0, rows_ = lanes & ~(size_t)(PADDING - 1); k < rows_; k++)
#else
#define EACH(k)                                                                                                        \
  for (size_t row_ = 0; row_ < (lanes & ~(size_t)(PADDING - 1)); row_ += PADDING)                                      \
  _Pragma("GCC ivdep") _Pragma("GCC unroll 4") for (size_t k = row_, left_ = PADDING; left_ != 0; k++, left_--)
#endif
#define IN(type, place) ((const type *)__builtin_assume_aligned(w->registers + (place), 8))
#define OUT(type, place) ((type *)__builtin_assume_aligned(w->registers + (place), 8))

static inline uint16_t half_bits(float x) { /* of a number that a half can represent */
  union {
    float f;
    uint32_t u;
  } in = {.f = x};
  uint32_t size = in.u & 0x7fffffffu, sign = in.u >> 16 & 0x8000u;
  union {
    float f;
    uint32_t u;
  } small = {.u = size};
  small.f += 0.5f;
  uint32_t low = small.u & 0x7ffu, high = (size - 0x38000000u) >> 13;
  uint32_t special = 0x7c00u | (size >> 13 & 0x3ffu);
  return (uint16_t)((size >= 0x7f800000u ? special : size < 0x38800000u ? low : high) | sign);
}

static inline float half_value(uint16_t bits) {
  uint32_t rest = bits & 0x7fffu;
  union {
    float f;
    uint32_t u;
  } normal = {.u = (rest << 13) + 0x38000000u}, special = {.u = 0x7f800000u | rest << 13};
  union {
    float f;
    uint32_t u;
  } out = {.f = (float)(int32_t)rest * 0x1p-24f};
  out.u = rest >= 0x7c00u ? special.u : rest >= 0x400u ? normal.u : out.u;
  out.u |= (uint32_t)(bits & 0x8000u) << 16;
  return out.f;
}

static inline uint32_t count_ones(uint64_t x) {
  x -= x >> 1 & 0x5555555555555555u;
  x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return (uint32_t)(x * 0x0101010101010101u >> 56);
}
#define count_leading(x, bits) ((x) == 0 ? (bits) : (U)(__builtin_clzll(x) - (64 - (bits))))
#define count_trailing(x, bits) ((x) == 0 ? (bits) : (U)__builtin_ctzll(x))
static inline uint64_t reversed(uint64_t x) {
  x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
  x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
  return __builtin_bswap64(x);
}

/* A step with uniform operands works on one value: the first instruction set has these functions for all of them. */
#define DECLARE_UNIFORM(name) void spirv_uniform_##name(spirv_wave *w, const spirv_step *s, size_t lanes)
#if VECTOR_BYTES == 16
#define UNIFORM(name, ...)                                                                                             \
  DECLARE_UNIFORM(name);                                                                                               \
  DECLARE_UNIFORM(name) {                                                                                              \
    (void)lanes;                                                                                                       \
    __VA_ARGS__                                                                                                        \
  }
#else
#define UNIFORM(name, ...) DECLARE_UNIFORM(name);
#endif

/* ---- Two operands, in four forms ------------------------------------------------------------------------------------ */

/* Two forms: both operands vary, or both are uniform. */
#define FORM_TWO(name, T, R, expression)                                                                               \
  static void name##_vv(spirv_wave *w, const spirv_step *s, size_t lanes) {                                            \
    R *d = OUT(R, s->d);                                                                                               \
    const T *a = IN(T, s->a), *b = IN(T, s->b);                                                                        \
    EACH(k) {                                                                                                          \
      const T x = a[k], y = b[k];                                                                                      \
      d[k] = expression;                                                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  UNIFORM(name##_ss, const T x = *IN(T, s->a), y = *IN(T, s->b); *OUT(R, s->d) = expression;)

/* All four forms. */
#define FORM_LOOPS(name, T, R, expression)                                                                             \
  FORM_TWO(name, T, R, expression)                                                                                     \
  static void name##_vs(spirv_wave *w, const spirv_step *s, size_t lanes) {                                            \
    R *d = OUT(R, s->d);                                                                                               \
    const T *a = IN(T, s->a), y = *IN(T, s->b);                                                                        \
    EACH(k) {                                                                                                          \
      const T x = a[k];                                                                                                \
      d[k] = expression;                                                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  static void name##_sv(spirv_wave *w, const spirv_step *s, size_t lanes) {                                            \
    R *d = OUT(R, s->d);                                                                                               \
    const T *b = IN(T, s->b), x = *IN(T, s->a);                                                                        \
    EACH(k) {                                                                                                          \
      const T y = b[k];                                                                                                \
      d[k] = expression;                                                                                               \
    }                                                                                                                  \
  }

/* One operand, varying or uniform. The second name is for expressions that do not use it. */
#define FORM_ONE(name, T, R, expression)                                                                               \
  static void name##_v(spirv_wave *w, const spirv_step *s, size_t lanes) {                                             \
    R *d = OUT(R, s->d);                                                                                               \
    const T *a = IN(T, s->a);                                                                                          \
    EACH(k) {                                                                                                          \
      const T x = a[k];                                                                                                \
      d[k] = expression;                                                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  UNIFORM(name##_s, const T x = *IN(T, s->a); *OUT(R, s->d) = expression;)

#define TRUTH(expression) ((expression) ? ~0u : 0u)
#define SATURATE(v) saturate_(v)

#define INTEGER_OPERATIONS(kind)                                                                                       \
  IR_INTEGER2(INTEGER2_##kind) IR_RARE2(RARE2_##kind) IR_INTEGER_COMPARE(COMPARE_##kind) IR_INTEGER1(INTEGER1_##kind)

#define U uint8_t
#define S int8_t
#define WU uint32_t
#define WS int32_t
#define BITS 8
static inline uint8_t saturate_8(int32_t v) { return (uint8_t)(v > 127 ? 127 : v < -128 ? -128 : v); }
#define saturate_(v) saturate_8(v)
#define INTEGER2_I8(name, e) FORM_LOOPS(name##_I8, uint8_t, uint8_t, e)
#define RARE2_I8(name, e) FORM_TWO(name##_I8, uint8_t, uint8_t, e)
#define COMPARE_I8(name, e) FORM_LOOPS(name##_I8, uint8_t, uint32_t, TRUTH(e))
#define INTEGER1_I8(name, e) FORM_ONE(name##_I8, uint8_t, uint8_t, e)
INTEGER_OPERATIONS(I8)
#undef U
#undef S
#undef BITS
#undef saturate_
#define U uint16_t
#define S int16_t
#define BITS 16
static inline uint16_t saturate_16(int32_t v) { return (uint16_t)(v > 32767 ? 32767 : v < -32768 ? -32768 : v); }
#define saturate_(v) saturate_16(v)
#define INTEGER2_I16(name, e) FORM_LOOPS(name##_I16, uint16_t, uint16_t, e)
#define RARE2_I16(name, e) FORM_TWO(name##_I16, uint16_t, uint16_t, e)
#define COMPARE_I16(name, e) FORM_LOOPS(name##_I16, uint16_t, uint32_t, TRUTH(e))
#define INTEGER1_I16(name, e) FORM_ONE(name##_I16, uint16_t, uint16_t, e)
INTEGER_OPERATIONS(I16)
#undef U
#undef S
#undef WU
#undef WS
#undef BITS
#undef saturate_
#define U uint32_t
#define S int32_t
#define WU uint64_t
#define WS int64_t
#define BITS 32
static inline uint32_t saturate_32(int64_t v) {
  return (uint32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
#define saturate_(v) saturate_32(v)
#define INTEGER2_I32(name, e) FORM_LOOPS(name##_I32, uint32_t, uint32_t, e)
#define RARE2_I32(name, e) FORM_TWO(name##_I32, uint32_t, uint32_t, e)
#define COMPARE_I32(name, e) FORM_LOOPS(name##_I32, uint32_t, uint32_t, TRUTH(e))
#define INTEGER1_I32(name, e) FORM_ONE(name##_I32, uint32_t, uint32_t, e)
INTEGER_OPERATIONS(I32)
#undef U
#undef S
#undef WU
#undef WS
#undef BITS
#undef saturate_
__extension__ typedef unsigned __int128 wide_unsigned;
__extension__ typedef __int128 wide_signed;
#define U uint64_t
#define S int64_t
#define WU wide_unsigned
#define WS wide_signed
#define BITS 64
static inline uint64_t saturate_64(wide_signed v) {
  return (uint64_t)(v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : v);
}
#define saturate_(v) saturate_64(v)
#define INTEGER2_I64(name, e) FORM_LOOPS(name##_I64, uint64_t, uint64_t, e)
#define RARE2_I64(name, e) FORM_TWO(name##_I64, uint64_t, uint64_t, e)
#define COMPARE_I64(name, e) FORM_LOOPS(name##_I64, uint64_t, uint32_t, TRUTH(e))
#define INTEGER1_I64(name, e) FORM_ONE(name##_I64, uint64_t, uint64_t, e)
INTEGER_OPERATIONS(I64)
#undef U
#undef S
#undef WU
#undef WS
#undef BITS
#undef saturate_

#define FLOAT_OPERATIONS(kind)                                                                                         \
  IR_FLOAT2(FLOAT2_##kind) IR_FLOAT_COMPARE(FCOMPARE_##kind) IR_FLOAT1(FLOAT1_##kind) IR_FLOAT_CLASS(FCLASS_##kind)

static inline uint32_t sign_of_float(float x) {
  union {
    float f;
    uint32_t u;
  } bits = {.f = x};
  return bits.u >> 31;
}
static inline uint64_t sign_of_double(double x) {
  union {
    double d;
    uint64_t u;
  } bits = {.d = x};
  return bits.u >> 63;
}

#define F float
#define ABS(x) __builtin_fabsf(x)
#define SQRT(x) __builtin_sqrtf(x)
#define FLOOR(x) __builtin_floorf(x)
#define CEIL(x) __builtin_ceilf(x)
#define TRUNC(x) __builtin_truncf(x)
#define RINT(x) __builtin_rintf(x)
#define SIGN(x) sign_of_float(x)
#define SMALLEST 0x1p-126f
#define FLOAT2_F32(name, e) FORM_LOOPS(name##_F32, float, float, e)
#define FCOMPARE_F32(name, e) FORM_LOOPS(name##_F32, float, uint32_t, TRUTH(e))
#define FLOAT1_F32(name, e) FORM_ONE(name##_F32, float, float, e)
#define FCLASS_F32(name, e) FORM_ONE(name##_F32, float, uint32_t, TRUTH(e))
FLOAT_OPERATIONS(F32)
#undef SMALLEST
#define SMALLEST 0x1p-14f
#define FLOAT2_F16(name, e) FORM_LOOPS(name##_F16, float, float, half_rounded(e))
#define FCOMPARE_F16(name, e) FORM_LOOPS(name##_F16, float, uint32_t, TRUTH(e))
#define FLOAT1_F16(name, e) FORM_ONE(name##_F16, float, float, half_rounded(e))
#define FCLASS_F16(name, e) FORM_ONE(name##_F16, float, uint32_t, TRUTH(e))
FLOAT_OPERATIONS(F16)
#undef F
#undef ABS
#undef SQRT
#undef FLOOR
#undef CEIL
#undef TRUNC
#undef RINT
#undef SIGN
#undef SMALLEST
#define F double
#define ABS(x) __builtin_fabs(x)
#define SQRT(x) __builtin_sqrt(x)
#define FLOOR(x) __builtin_floor(x)
#define CEIL(x) __builtin_ceil(x)
#define TRUNC(x) __builtin_trunc(x)
#define RINT(x) __builtin_rint(x)
#define SIGN(x) sign_of_double(x)
#define SMALLEST 0x1p-1022
#define FLOAT2_F64(name, e) FORM_LOOPS(name##_F64, double, double, e)
#define FCOMPARE_F64(name, e) FORM_LOOPS(name##_F64, double, uint32_t, TRUTH(e))
#define FLOAT1_F64(name, e) FORM_ONE(name##_F64, double, double, e)
#define FCLASS_F64(name, e) FORM_ONE(name##_F64, double, uint32_t, TRUTH(e))
FLOAT_OPERATIONS(F64)

/* ---- Conversions ---------------------------------------------------------------------------------------------------- */

#define TO_ALL(X, tag, T)                                                                                              \
  X(tag, T, I8, uint8_t)                                                                                               \
  X(tag, T, I16, uint16_t)                                                                                             \
  X(tag, T, I32, uint32_t)                                                                                             \
  X(tag, T, I64, uint64_t)

#define CONVERT_INT(tag, T, to, R)                                                                                     \
  FORM_ONE(convert_u_##tag##_##to, u##T, R, (R)x)                                                                      \
  FORM_ONE(convert_s_##tag##_##to, T, R, (R)x)
TO_ALL(CONVERT_INT, I8, int8_t)
TO_ALL(CONVERT_INT, I16, int16_t)
TO_ALL(CONVERT_INT, I32, int32_t)
TO_ALL(CONVERT_INT, I64, int64_t)

/* Converts an integer to a half. Integers of more than 24 bits become doubles first. The roundings before the
 * last one do no harm: they change only bits that are far below those of a half. */
static inline float half_of(double x) { return half_rounded((float)x); }

#define CONVERT_TO_FLOAT(tag, T)                                                                                       \
  FORM_ONE(convert_u_##tag##_F16, u##T, float, half_of((double)x))                                                     \
  FORM_ONE(convert_s_##tag##_F16, T, float, half_of((double)x))                                                        \
  FORM_ONE(convert_u_##tag##_F32, u##T, float, (float)x)                                                               \
  FORM_ONE(convert_s_##tag##_F32, T, float, (float)x)                                                                  \
  FORM_ONE(convert_u_##tag##_F64, u##T, double, (double)x)                                                             \
  FORM_ONE(convert_s_##tag##_F64, T, double, (double)x)
CONVERT_TO_FLOAT(I8, int8_t)
CONVERT_TO_FLOAT(I16, int16_t)
CONVERT_TO_FLOAT(I32, int32_t)
CONVERT_TO_FLOAT(I64, int64_t)

/* The limits as floats: a number that is not below the first one overflows. */
#define FLOAT_TO(tag, F, to, bits)                                                                                     \
  FORM_ONE(float_to_u_##tag##_##to, F, uint##bits##_t,                                                                 \
           x >= (F)0x1p##bits ? (uint##bits##_t) - 1                                                                   \
           : x > 0            ? (uint##bits##_t)x                                                                      \
                              : 0)                                                                                     \
  FORM_ONE(float_to_s_##tag##_##to, F, uint##bits##_t,                                                                 \
           (uint##bits##_t)(x >= (F)0x1p##bits / 2   ? INT##bits##_MAX                                                 \
                            : x > -(F)0x1p##bits / 2 ? (int##bits##_t)x                                                \
                            : x == x                 ? INT##bits##_MIN                                                 \
                                                     : 0))
#define FLOAT_TO_ALL(tag, F)                                                                                           \
  FLOAT_TO(tag, F, I8, 8) FLOAT_TO(tag, F, I16, 16) FLOAT_TO(tag, F, I32, 32) FLOAT_TO(tag, F, I64, 64)
FLOAT_TO_ALL(F32, float)
FLOAT_TO_ALL(F64, double)

/* A double must be rounded to a half once. If the rounding to float makes a tie, the float is moved away from it. */
static inline float half_of_double(double x) {
  float near = (float)x;
  union {
    float f;
    uint32_t u;
  } bits = {.f = near};
  if ((double)near != x && near == near && (bits.u & 0x1fffu) == 0x1000u) /* `near` is a tie, and x is not */
    bits.u += (__builtin_fabs(x) > (double)__builtin_fabsf(near)) ? 1 : -1u;
  if (__builtin_fabs(x) < 0x1p-14 && near == near) { /* small: halves are multiples of 2^-24 */
    double size = (__builtin_fabs(x) + 0x1p28) - 0x1p28;
    return (float)__builtin_copysign(size, x);
  }
  return half_rounded(bits.f);
}
FORM_ONE(convert_f_F16_F32, float, float, x)
FORM_ONE(convert_f_F16_F64, float, double, (double)x)
FORM_ONE(convert_f_F32_F16, float, float, half_rounded(x))
FORM_ONE(convert_f_F32_F64, float, double, (double)x)
FORM_ONE(convert_f_F64_F16, double, float, half_of_double(x))
FORM_ONE(convert_f_F64_F32, double, float, (float)x)
FORM_ONE(bits_8, uint8_t, uint8_t, x)
FORM_ONE(bits_16, uint16_t, uint16_t, x)
FORM_ONE(bits_32, uint32_t, uint32_t, x)
FORM_ONE(bits_64, uint64_t, uint64_t, x)
FORM_ONE(half_to_bits, float, uint16_t, half_bits(x))
FORM_ONE(bits_to_half, uint16_t, float, half_value(x))

/* ---- Selections, copies, splats -------------------------------------------------------------------------------------- */

#define SIZES(X) X(8) X(16) X(32) X(64)

/* A boolean has all bits of one kind. So has it as a wider or narrower number, without a comparison. */
#define CHOOSE(bits, which, b, c) ((b) & (uint##bits##_t)(int32_t)(which)) | ((c) & ~(uint##bits##_t)(int32_t)(which))

#define MOVES(bits)                                                                                                    \
  static void select_##bits(spirv_wave *w, const spirv_step *s, size_t lanes) {                                        \
    uint##bits##_t *d = OUT(uint##bits##_t, s->d);                                                                     \
    const uint32_t *a = IN(uint32_t, s->a);                                                                            \
    const uint##bits##_t *b = IN(uint##bits##_t, s->b), *c = IN(uint##bits##_t, s->c);                                 \
    EACH(k) d[k] = CHOOSE(bits, a[k], b[k], c[k]);                                                                     \
  }                                                                                                                    \
  static void select_vss_##bits(spirv_wave *w, const spirv_step *s, size_t lanes) {                                    \
    uint##bits##_t *d = OUT(uint##bits##_t, s->d);                                                                     \
    const uint32_t *a = IN(uint32_t, s->a);                                                                            \
    const uint##bits##_t b = *IN(uint##bits##_t, s->b), c = *IN(uint##bits##_t, s->c);                                 \
    EACH(k) d[k] = CHOOSE(bits, a[k], b, c);                                                                           \
  }                                                                                                                    \
  static void select_s_##bits(spirv_wave *w, const spirv_step *s, size_t lanes) {                                      \
    (void)lanes;                                                                                                       \
    *OUT(uint##bits##_t, s->d) = *IN(uint32_t, s->a) != 0 ? *IN(uint##bits##_t, s->b) : *IN(uint##bits##_t, s->c);     \
  }                                                                                                                    \
  static void copy_##bits(spirv_wave *w, const spirv_step *s, size_t lanes) {                                          \
    uint##bits##_t *d = OUT(uint##bits##_t, s->d);                                                                     \
    const uint##bits##_t *a = IN(uint##bits##_t, s->a);                                                                \
    const uint32_t *m = w->mask;                                                                                       \
    if (w->full) memcpy(d, a, lanes * sizeof(*d));                                                                     \
    else EACH(k) d[k] = CHOOSE(bits, m[k], a[k], d[k]);                                                                \
  }                                                                                                                    \
  static void copy_vs_##bits(spirv_wave *w, const spirv_step *s, size_t lanes) {                                       \
    uint##bits##_t *d = OUT(uint##bits##_t, s->d);                                                                     \
    const uint##bits##_t a = *IN(uint##bits##_t, s->a);                                                                \
    const uint32_t *m = w->mask;                                                                                       \
    if (w->full) EACH(k) d[k] = a;                                                                                     \
    else EACH(k) d[k] = CHOOSE(bits, m[k], a, d[k]);                                                                   \
  }                                                                                                                    \
  static void splat_##bits(spirv_wave *w, const spirv_step *s, size_t lanes) {                                         \
    uint##bits##_t *d = OUT(uint##bits##_t, s->d);                                                                     \
    const uint##bits##_t a = *IN(uint##bits##_t, s->a);                                                                \
    EACH(k) d[k] = a;                                                                                                  \
  }
SIZES(MOVES)

#define FMA(tag, T, expression)                                                                                        \
  static void fma_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                            \
    T *d = OUT(T, s->d);                                                                                               \
    const T *a = IN(T, s->a), *b = IN(T, s->b), *c = IN(T, s->c);                                                      \
    EACH(k) {                                                                                                          \
      const T x = a[k], y = b[k], z = c[k];                                                                            \
      d[k] = expression;                                                                                               \
    }                                                                                                                  \
  }                                                                                                                    \
  static void fma_s_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                          \
    (void)lanes;                                                                                                       \
    const T x = *IN(T, s->a), y = *IN(T, s->b), z = *IN(T, s->c);                                                      \
    *OUT(T, s->d) = expression;                                                                                        \
  }
FMA(F32, float, __builtin_fmaf(x, y, z))
FMA(F64, double, __builtin_fma(x, y, z))
FMA(F16, float, half_of_double((double)x *(double)y + (double)z))

#if BY_NAME
/* The high halves of products of 32 bits. The processor multiplies the even ones of 32-bit numbers to 64 bits. */
#define PRODUCTS_(bytes) PRODUCTS_##bytes
#define PRODUCTS(bytes) PRODUCTS_(bytes)
#define PRODUCTS_16(a, b) (pairs) _mm_mul_epu32((__m128i)(a), (__m128i)(b))
#define PRODUCTS_32(a, b) (pairs) _mm256_mul_epu32((__m256i)(a), (__m256i)(b))
#define PRODUCTS_64(a, b) (pairs) _mm512_mul_epu32((__m512i)(a), (__m512i)(b))
typedef uint64_t pairs __attribute__((vector_size(VECTOR_BYTES)));
static inline pairs high_products(pairs x, pairs y, pairs odd_of_y) {
  const pairs even = PRODUCTS(VECTOR_BYTES)(x, y) >> 32, odd = PRODUCTS(VECTOR_BYTES)(x >> 32, odd_of_y);
  return even | (odd & ~(uint64_t)UINT32_MAX);
}
static inline void high_products_of(spirv_wave *w, const spirv_step *s, size_t lanes, uint32_t a, uint32_t b,
                                    bool same) {
  char *d = OUT(char, s->d);
  const size_t bytes = (lanes & ~(size_t)(PADDING - 1)) * sizeof(uint32_t);
  pairs x, y = (pairs){0} + *IN(uint32_t, b);
  for (size_t k = 0; k < bytes; k += VECTOR_BYTES) {
    memcpy(&x, IN(char, a) + k, sizeof(x));
    if (!same) memcpy(&y, IN(char, b) + k, sizeof(y));
    x = high_products(x, y, same ? y : y >> 32);
    memcpy(d + k, &x, sizeof(x));
  }
}
static void high_products_vv(spirv_wave *w, const spirv_step *s, size_t lanes) {
  high_products_of(w, s, lanes, s->a, s->b, false);
}
static void high_products_vs(spirv_wave *w, const spirv_step *s, size_t lanes) {
  high_products_of(w, s, lanes, s->a, s->b, true);
}
static void high_products_sv(spirv_wave *w, const spirv_step *s, size_t lanes) {
  high_products_of(w, s, lanes, s->b, s->a, true);
}
#endif

/* Computes addresses: base + index × imm. */
#define INDEX(tag, T)                                                                                                  \
  static void index_sv_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                       \
    uint64_t *d = OUT(uint64_t, s->d);                                                                                 \
    const T *b = IN(T, s->b);                                                                                          \
    const uint64_t base = *IN(uint64_t, s->a), scale = s->imm;                                                         \
    EACH(k) d[k] = base + (uint64_t)(int64_t)b[k] * scale;                                                             \
  }                                                                                                                    \
  static void index_vv_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                       \
    uint64_t *d = OUT(uint64_t, s->d);                                                                                 \
    const uint64_t *a = IN(uint64_t, s->a), scale = s->imm;                                                            \
    const T *b = IN(T, s->b);                                                                                          \
    EACH(k) d[k] = a[k] + (uint64_t)(int64_t)b[k] * scale;                                                             \
  }                                                                                                                    \
  static void index_vs_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                       \
    uint64_t *d = OUT(uint64_t, s->d);                                                                                 \
    const uint64_t *a = IN(uint64_t, s->a), more = (uint64_t)(int64_t)*IN(T, s->b) * s->imm;                           \
    EACH(k) d[k] = a[k] + more;                                                                                        \
  }                                                                                                                    \
  UNIFORM(index_ss_##tag, *OUT(uint64_t, s->d) = *IN(uint64_t, s->a) + (uint64_t)(int64_t)*IN(T, s->b) * s->imm;)
INDEX(I8, int8_t)
INDEX(I16, int16_t)
INDEX(I32, int32_t)
INDEX(I64, int64_t)

#include "spirv/run/handlers_flow.h"
#include "spirv/run/handlers_memory.h"

/* ---- Which handler ---------------------------------------------------------------------------------------------------- */

/* The rows of tables follow the order of lane kinds: a boolean, four integers, three floats. */
#define FOUR(name, kind)                                                                                               \
  {name##_##kind##_vv, name##_##kind##_vs, name##_##kind##_sv, spirv_uniform_##name##_##kind##_ss}
#define TWO(name, kind)                                                                                                \
  {name##_##kind##_v, name##_##kind##_v, spirv_uniform_##name##_##kind##_s, spirv_uniform_##name##_##kind##_s}
#define ENDS(name, kind) {name##_##kind##_vv, NULL, NULL, spirv_uniform_##name##_##kind##_ss}
#define NONE {NULL, NULL, NULL, NULL}
#define INTEGERS(form, name) form(name, I8), form(name, I16), form(name, I32), form(name, I64)
#define FLOATS(form, name) {NONE, NONE, NONE, NONE, NONE, form(name, F16), form(name, F32), form(name, F64)}

#define ROW(name, ...)                                                                                                 \
  case IR_##name: {                                                                                                    \
    static spirv_handler *const row[LANE_KINDS][FORMS] = __VA_ARGS__;                                                  \
    return row[lane][form];                                                                                            \
  }
#define ROW_INTEGER2(name, e) ROW(name, {FOUR(name, I32), INTEGERS(FOUR, name)})
#define ROW_RARE2(name, e) ROW(name, {NONE, INTEGERS(ENDS, name)})
#define ROW_INTEGER1(name, e) ROW(name, {TWO(name, I32), INTEGERS(TWO, name)})
#define ROW_FLOAT2(name, e) ROW(name, FLOATS(FOUR, name))
#define ROW_FLOAT1(name, e) ROW(name, FLOATS(TWO, name))

static spirv_handler *arithmetic(ir_op op, spirv_lane lane, int form) {
  switch (op) {
    IR_INTEGER2(ROW_INTEGER2)
    IR_RARE2(ROW_RARE2)
    IR_INTEGER_COMPARE(ROW_INTEGER2)
    IR_INTEGER1(ROW_INTEGER1)
    IR_FLOAT2(ROW_FLOAT2)
    IR_FLOAT_COMPARE(ROW_FLOAT2)
    IR_FLOAT1(ROW_FLOAT1)
    IR_FLOAT_CLASS(ROW_FLOAT1)
    default: return NULL;
  }
}

#define PAIR(name) {name##_v, spirv_uniform_##name##_s}
#define NO_PAIR {NULL, NULL}
#define TO_INTEGERS(name) PAIR(name##_I8), PAIR(name##_I16), PAIR(name##_I32), PAIR(name##_I64)
#define FROM_INTEGER(name) {NO_PAIR, TO_INTEGERS(name), PAIR(name##_F16), PAIR(name##_F32), PAIR(name##_F64)}
#define FROM_FLOAT(name) {NO_PAIR, TO_INTEGERS(name)}
#define NO_ROW {NO_PAIR}

static spirv_handler *const conversions[5][LANE_KINDS][LANE_KINDS][2] = {
    {NO_ROW, FROM_INTEGER(convert_u_I8), FROM_INTEGER(convert_u_I16), FROM_INTEGER(convert_u_I32),
     FROM_INTEGER(convert_u_I64)},
    {NO_ROW, FROM_INTEGER(convert_s_I8), FROM_INTEGER(convert_s_I16), FROM_INTEGER(convert_s_I32),
     FROM_INTEGER(convert_s_I64)},
    {NO_ROW,
     NO_ROW,
     NO_ROW,
     NO_ROW,
     NO_ROW,
     {NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, PAIR(convert_f_F16_F32), PAIR(convert_f_F16_F64)},
     {NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, PAIR(convert_f_F32_F16), NO_PAIR, PAIR(convert_f_F32_F64)},
     {NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR, PAIR(convert_f_F64_F16), PAIR(convert_f_F64_F32)}},
    {NO_ROW, NO_ROW, NO_ROW, NO_ROW, NO_ROW, FROM_FLOAT(float_to_u_F32), FROM_FLOAT(float_to_u_F32),
     FROM_FLOAT(float_to_u_F64)},
    {NO_ROW, NO_ROW, NO_ROW, NO_ROW, NO_ROW, FROM_FLOAT(float_to_s_F32), FROM_FLOAT(float_to_s_F32),
     FROM_FLOAT(float_to_s_F64)},
};

static spirv_handler *bits_handler(spirv_lane from, spirv_lane to, int uniform) {
  static spirv_handler *const plain[4][2] = {PAIR(bits_8), PAIR(bits_16), PAIR(bits_32), PAIR(bits_64)};
  static spirv_handler *const to_half[2] = PAIR(bits_to_half), *const from_half[2] = PAIR(half_to_bits);
  if (to == LANE_F16 && from == LANE_I16) return to_half[uniform];
  if (from == LANE_F16 && to == LANE_I16) return from_half[uniform];
  unsigned size = spirv_lane_size[from];
  if (size != spirv_lane_size[to] || from == LANE_F16 || to == LANE_F16) return NULL;
  return plain[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3][uniform];
}

#define BY_SIZE(name) {name##_8, name##_16, name##_32, name##_64}
#define BY_KIND(name) {name##_BOOL, name##_I8, name##_I16, name##_I32, name##_I64, name##_F16, name##_I32, name##_I64}
#define BY_INDEX(name) {NULL, name##_I8, name##_I16, name##_I32, name##_I64}

static spirv_handler *find(ir_op op, spirv_lane lane, spirv_lane result, int form, uint32_t extra) {
  static spirv_handler *const moves[][4] = {BY_SIZE(select), BY_SIZE(select_vss), BY_SIZE(select_s),
                                            BY_SIZE(copy),   BY_SIZE(copy_vs),    BY_SIZE(splat)};
  static spirv_handler *const indices[FORMS][LANE_KINDS] = {BY_INDEX(index_vv), BY_INDEX(index_vs), BY_INDEX(index_sv),
                                                            BY_INDEX(spirv_uniform_index_ss)};
  static spirv_handler *const loads[][LANE_KINDS] = {BY_KIND(load_v), BY_KIND(load_s), BY_KIND(load_s64),
                                                     BY_KIND(load_s32), BY_KIND(load_u32)};
  static spirv_handler *const stores[][LANE_KINDS] = {BY_KIND(store_v), BY_KIND(store_s), BY_KIND(store_s64),
                                                      BY_KIND(store_s32), BY_KIND(store_u32)};
  static spirv_handler *const fmas[2][LANE_KINDS - LANE_F16] = {{fma_F16, fma_F32, fma_F64},
                                                                {fma_s_F16, fma_s_F32, fma_s_F64}};
  unsigned bytes = spirv_lane_size[lane], size = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3;
  bool uniform = form == FORM_SS;
#if BY_NAME
  static spirv_handler *const high[] = {high_products_vv, high_products_vs, high_products_sv};
  if (op == IR_UMULHI && lane == LANE_I32 && form != FORM_SS) return high[form];
#endif
  switch (op) {
    case IR_SELECT: return moves[uniform ? 2 : form == FORM_VS ? 1 : 0][size];
    case IR_COPY: return moves[form == FORM_VS ? 4 : 3][size];
    case IR_SPLAT: return moves[5][size];
    case IR_FMA: return lane < LANE_F16 ? NULL : fmas[uniform][lane - LANE_F16];
    case IR_CONVERT_U: return conversions[0][lane][result][uniform];
    case IR_CONVERT_S: return conversions[1][lane][result][uniform];
    case IR_CONVERT_F: return conversions[2][lane][result][uniform];
    case IR_FLOAT_TO_U: return conversions[3][lane][result][uniform];
    case IR_FLOAT_TO_S: return conversions[4][lane][result][uniform];
    case IR_BITS: return bits_handler(lane, result, uniform);
    case IR_INDEX: return indices[form][lane];
    case IR_LOAD: return loads[uniform ? 1 : 0][lane];
    case IR_STORE: return stores[uniform ? 1 : 0][lane];
    case IR_LOAD_AT: return loads[2 + extra][lane];
    case IR_STORE_AT: return stores[2 + extra][lane];
    default: return arithmetic(op, lane, form);
  }
}

const spirv_handlers PASTE(spirv_handlers, SET) = {.find = find, .pick = pick, .branch = branch, .name = SET_NAME};
