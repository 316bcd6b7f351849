/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_memory.h: the part of handlers.h that loads and stores.
 *
 * The addresses of all lanes are checked together first. If they are contiguous, one check and one copy are enough. If
 * the lowest and the highest are in one accessible range, so are all others. Otherwise each lane is checked alone. That
 * also finds the wrong one. */

/* M: the type in memory; T: the type in a register. */
#define MEMORY_KINDS(X)                                                                                                \
  X(BOOL, uint8_t, uint32_t, TRUTH(v), v != 0)                                                                         \
  X(I8, uint8_t, uint8_t, v, v)                                                                                        \
  X(I16, uint16_t, uint16_t, v, v)                                                                                     \
  X(I32, uint32_t, uint32_t, v, v)                                                                                     \
  X(I64, uint64_t, uint64_t, v, v)                                                                                     \
  X(F16, uint16_t, float, half_value(v), half_bits(v))

/* The range of the addresses of the running lanes, which are lanes `begin` to before `end`. */
typedef struct {
  uint64_t low, high;
  size_t begin, end;
  bool solid;      /* all of these lanes run */
  bool contiguous; /* and their elements are contiguous, */
  uint64_t apart;  /* or so many bytes apart, each above the one before; 0: not known */
  bool rows;       /* those of each PADDING lanes, from the first on, are */
  uint64_t row;    /* so many bytes apart, or 0: the same */
} extent;

static inline extent running_lanes(const spirv_wave *w) {
  extent e = {.end = w->count, .solid = w->full};
  if (w->full) return e;
  while (e.begin + 1 < e.end && w->mask[e.begin] == 0) e.begin++;
  while (e.begin + 1 < e.end && w->mask[e.end - 1] == 0) e.end--;
  e.solid = w->running == e.end - e.begin;
  return e;
}

/* Where the addresses of some indices between the lowest and the highest may have gone around all of memory, there is no
 * extent: each lane is checked alone. */
static inline void set_extent(extent *e, uint64_t base, uint64_t low, uint64_t high, uint64_t scale) {
  const bool bounded = scale <= 1 || high - low <= UINT64_MAX / UINT8_MAX;
  e->low = bounded ? base + low * scale : 1;
  e->high = bounded ? base + high * scale : 0;
}

#define EVERY_PART(p) _Pragma("GCC unroll 8") for (size_t p = 0; p < PARTS; p++)

#define LOWEST_AND_HIGHEST(I)                                                                                          \
  do {                                                                                                                 \
    const uint32_t *m = w->mask;                                                                                       \
    const I first_ = low = high = index[e.begin];                                                                      \
    if (e.solid) {                                                                                                     \
      for (size_t k = e.begin; k < e.end; k++) low = index[k] < low ? index[k] : low;                                  \
      for (size_t k = e.begin; k < e.end; k++) high = index[k] > high ? index[k] : high;                               \
    } else {                                                                                                           \
      for (size_t k = e.begin; k < e.end; k++) {                                                                       \
        const I v_ = m[k] != 0 ? index[k] : first_;                                                                    \
        low = v_ < low ? v_ : low;                                                                                     \
        high = v_ > high ? v_ : high;                                                                                  \
      }                                                                                                                \
    }                                                                                                                  \
  } while (0)

/* Lanes come in rows of PADDING: those of one row of a group often have addresses that are equally far apart, or the
 * same one, and rows follow each other or do not. One look at all lanes tells which. */
#define EXTENT(tag, I, N, W)                                                                                           \
  typedef N row_##tag __attribute__((vector_size(VECTOR_BYTES)));                                                      \
  static inline extent extent_##tag(const spirv_wave *w, const I *index, uint64_t base, uint64_t scale, size_t size) { \
    enum { PART = VECTOR_BYTES / sizeof(N), PARTS = PADDING / PART };                                                  \
    extent e = running_lanes(w);                                                                                       \
    const I *at = index + e.begin;                                                                                     \
    const size_t count = e.end - e.begin;                                                                              \
    I low, high;                                                                                                       \
    if (e.solid && count > 1) {                                                                                        \
      const N first = (N)at[0], step = (N)at[1] - first;                                                               \
      row_##tag steps[PARTS], uneven[PARTS];                                                                           \
      N spread = 0, broken = 0;                                                                                        \
      size_t k = 0;                                                                                                    \
      I rise, last, end;                                                                                               \
      EVERY_PART(p) {                                                                                                  \
        for (size_t j = 0; j < PART; j++) steps[p][j] = (N)(p * PART + j) * step;                                      \
        uneven[p] = (row_##tag){0};                                                                                    \
      }                                                                                                                \
      low = high = at[0];                                                                                              \
      for (; k + PADDING <= count; k += PADDING) {                                                                     \
        const N head = (N)at[k];                                                                                       \
        EVERY_PART(p) {                                                                                                \
          row_##tag lanes_;                                                                                            \
          memcpy(&lanes_, at + k + p * PART, sizeof(lanes_));                                                          \
          uneven[p] |= (lanes_ - head) ^ steps[p];                                                                     \
        }                                                                                                              \
        spread |= head - (first + (N)k * step);                                                                        \
        low = at[k] < low ? at[k] : low;                                                                               \
        high = at[k] > high ? at[k] : high;                                                                            \
      }                                                                                                                \
      EVERY_PART(p) for (size_t j = 0; j < PART; j++) broken |= uneven[p][j];                                          \
      for (size_t j = k; j < count; j++) broken |= ((N)at[j] - (N)at[k]) ^ (N)(j - k) * step;                          \
      bool linear = broken == 0 && ((I)step == 0 || (I)step > 0);                                                      \
      linear = linear && !__builtin_mul_overflow((I)step, (I)((k != 0 ? PADDING : 1) - 1), &rise) &&                   \
               !__builtin_add_overflow(high, rise, &last);                                                             \
      if (linear && k < count) { /* the last row, which is shorter */                                                  \
        spread |= (N)at[k] - (first + (N)k * step);                                                                    \
        low = at[k] < low ? at[k] : low;                                                                               \
        linear = !__builtin_mul_overflow((I)step, (I)(count - k - 1), &rise) &&                                        \
                 !__builtin_add_overflow(at[k], rise, &end);                                                           \
        last = linear && end > last ? end : last;                                                                      \
      }                                                                                                                \
      if (linear) {                                                                                                    \
        const bool even = spread == 0 && step != 0 && !__builtin_mul_overflow((I)step, (I)(count - 1), &rise) &&       \
                          !__builtin_add_overflow(at[0], rise, &end);                                                  \
        set_extent(&e, base, (uint64_t)(W)low, (uint64_t)(W)last, scale);                                              \
        e.rows = true;                                                                                                 \
        e.row = (uint64_t)(W)(I)step * scale;                                                                          \
        e.apart = even ? e.row : 0;                                                                                    \
        e.contiguous = even && e.row == size;                                                                          \
        return e;                                                                                                      \
      }                                                                                                                \
    }                                                                                                                  \
    LOWEST_AND_HIGHEST(I);                                                                                             \
    set_extent(&e, base, (uint64_t)(W)low, (uint64_t)(W)high, scale);                                                  \
    return e;                                                                                                          \
  }
EXTENT(s32, int32_t, uint32_t, int64_t)
EXTENT(u32, uint32_t, uint32_t, uint64_t)
EXTENT(s64, int64_t, uint64_t, int64_t)
EXTENT(u64, uint64_t, uint64_t, uint64_t) /* addresses without an index */

/* One uniform address for all running lanes. */
static inline bool reaches_one(spirv_wave *w, const spirv_step *s, uint64_t address, size_t size, bool write) {
  if (spirv_reach(w, s, address, size, write, false, 0)) return true;
  return spirv_reach(w, s, address, size, write, true, (uint32_t)running_lanes(w).begin);
}

static inline bool reaches(spirv_wave *w, const spirv_step *s, extent e, size_t size, bool write) {
  return e.high >= e.low && e.high - e.low <= UINT64_MAX - size &&
         spirv_reach(w, s, e.low, e.high - e.low + size, write, false, 0);
}

#define LOADS(tag, M, T, load, store)                                                                                  \
  static inline T loaded_##tag(M v) { return load; }                                                                   \
  static inline M stored_##tag(T v) { return (M)(store); }                                                             \
  static void load_s_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                         \
    (void)lanes;                                                                                                       \
    uint64_t address = *IN(uint64_t, s->a) + s->imm;                                                                   \
    if (reaches_one(w, s, address, sizeof(M), false))                                                                  \
      *OUT(T, s->d) = loaded_##tag(KERNEL_READ(M, address + w->ranges[s->range].shift));                               \
  }                                                                                                                    \
  static void store_s_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                        \
    (void)lanes;                                                                                                       \
    uint64_t address = *IN(uint64_t, s->a) + s->imm;                                                                   \
    if (reaches_one(w, s, address, sizeof(M), true))                                                                   \
      KERNEL_WRITE(M, address + w->ranges[s->range].shift, stored_##tag(*IN(T, s->b)));                                \
  }                                                                                                                    \
  LOAD_FORM(tag, M, T, v, uint64_t, extent_u64(w, index, 0, 1, sizeof(M)), s->a, s->b, index[k], sizeof(M), true)      \
  LOAD_FORM(tag, M, T, s64, int64_t, extent_s64(w, index, base, scale, sizeof(M)), s->b, s->c,                         \
            base + (uint64_t)index[k] * scale, 1, true)                                                                \
  LOAD_FORM(tag, M, T, s32, int32_t, extent_s32(w, index, base, scale, sizeof(M)), s->b, s->c,                         \
            base + (uint64_t)(int64_t)index[k] * scale, 1, index[k] <= INT32_MAX - PADDING)                            \
  LOAD_FORM(tag, M, T, u32, uint32_t, extent_u32(w, index, base, scale, sizeof(M)), s->b, s->c,                        \
            base + (uint64_t)index[k] * scale, 1, index[k] <= UINT32_MAX - PADDING)

#define LOAD_ROWS(tag, M, T, one)                                                                                      \
  for (size_t k = e.begin; k < e.end; k += PADDING) {                                                                  \
    const char *from = (const char *)(uintptr_t)((one) + more);                                                        \
    const T v_ = loaded_##tag(KERNEL_READ(M, from));                                                                   \
    const size_t many = e.end - k < PADDING ? e.end - k : PADDING;                                                     \
    if (e.row == 0 && many == PADDING)                                                                                 \
      for (size_t j = 0; j < PADDING; j++) d[k + j] = v_;                                                              \
    else if (e.row == sizeof(M) && sizeof(M) == sizeof(T) && many == PADDING)                                          \
      KERNEL_READ_ALL(M, d + k, from, PADDING);                                                                        \
    else                                                                                                               \
      for (size_t j = 0; j < many; j++) d[k + j] = loaded_##tag(KERNEL_READ(M, from + j * e.row));                     \
  }

#define UNSIGNED(I) __typeof__(__builtin_choose_expr(sizeof(I) == 4, (uint32_t)0, (uint64_t)0))

/* All lanes run, but their elements are not contiguous. Those of one row of a group often are, or are the same one. */
#define LOAD_PIECES(tag, M, T, I, one, stride, in_order)                                                               \
  for (size_t k = e.begin; k < e.end;) {                                                                               \
    const UNSIGNED(I) first_ = (UNSIGNED(I))index[k];                                                                  \
    const char *from = (const char *)(uintptr_t)((one) + more);                                                        \
    UNSIGNED(I) step = 0, same = 0;                                                                                    \
    if (k + PADDING > e.end) {                                                                                         \
      d[k] = loaded_##tag(KERNEL_READ(M, from));                                                                       \
      k++;                                                                                                             \
      continue;                                                                                                        \
    }                                                                                                                  \
    for (size_t j = 0; j < PADDING; j++) {                                                                             \
      step |= (UNSIGNED(I))index[k + j] - (UNSIGNED(I))(first_ + j * (stride));                                        \
      same |= (UNSIGNED(I))index[k + j] ^ first_;                                                                      \
    }                                                                                                                  \
    if (step == 0 && unit && (in_order)) {                                                                             \
      if (sizeof(M) == sizeof(T)) KERNEL_READ_ALL(M, d + k, from, PADDING);                                            \
      else                                                                                                             \
        for (size_t j = 0; j < PADDING; j++) d[k + j] = loaded_##tag(KERNEL_READ(M, from + j * sizeof(M)));            \
      k += PADDING;                                                                                                    \
    } else if (same == 0) {                                                                                            \
      const T v_ = loaded_##tag(KERNEL_READ(M, from));                                                                 \
      for (size_t j = 0; j < PADDING; j++) d[k + j] = v_;                                                              \
      k += PADDING;                                                                                                    \
    } else {                                                                                                           \
      for (size_t end = k + PADDING; k < end; k++) d[k] = loaded_##tag(KERNEL_READ(M, (one) + more));                  \
    }                                                                                                                  \
  }

#define LOAD_FORM(tag, M, T, form, I, find_extent, place, value_place, one, stride, in_order)                          \
  static void load_##form##_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                  \
    T *restrict d = OUT(T, s->d);                                                                                      \
    const I *index = IN(I, place);                                                                                     \
    const uint64_t base = #form[0] == 'v' ? 0 : *IN(uint64_t, s->a), scale = s->scale, imm = s->imm;                   \
    const bool unit = #form[0] == 'v' || scale == sizeof(M);                                                           \
    (void)base, (void)lanes;                                                                                           \
    extent e = find_extent;                                                                                            \
    e.low += imm;                                                                                                      \
    e.high += imm;                                                                                                     \
    if (reaches(w, s, e, sizeof(M), false)) {                                                                          \
      const uint64_t shift = w->ranges[s->range].shift, more = imm + shift;                                            \
      e.low += shift;                                                                                                  \
      if (e.contiguous) {                                                                                              \
        const char *from = (const char *)(uintptr_t)e.low;                                                             \
        const size_t many = e.end - e.begin;                                                                           \
        if (sizeof(M) == sizeof(T)) KERNEL_READ_ALL(M, d + e.begin, from, many);                                       \
        else                                                                                                           \
          for (size_t k = 0; k < many; k++) d[e.begin + k] = loaded_##tag(KERNEL_READ(M, from + k * sizeof(M)));       \
      } else if (e.apart != 0) {                                                                                       \
        const char *from = (const char *)(uintptr_t)e.low;                                                             \
        for (size_t k = e.begin; k < e.end; k++, from += e.apart) d[k] = loaded_##tag(KERNEL_READ(M, from));           \
      } else if (e.rows) {                                                                                             \
        LOAD_ROWS(tag, M, T, one)                                                                                      \
      } else if (e.solid) {                                                                                            \
        LOAD_PIECES(tag, M, T, I, one, stride, in_order)                                                               \
      } else {                                                                                                         \
        for (size_t k = e.begin; k < e.end; k++)                                                                       \
          if (w->mask[k] != 0) d[k] = loaded_##tag(KERNEL_READ(M, (one) + more));                                      \
      }                                                                                                                \
      return;                                                                                                          \
    }                                                                                                                  \
    for (size_t k = e.begin; k < e.end; k++) {                                                                         \
      if (!e.solid && w->mask[k] == 0) continue;                                                                       \
      if (!spirv_reach(w, s, (one) + imm, sizeof(M), false, true, (uint32_t)k)) return;                                \
      d[k] = loaded_##tag(KERNEL_READ(M, (one) + imm + w->ranges[s->range].shift));                                    \
    }                                                                                                                  \
  }                                                                                                                    \
  static void store_##form##_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                 \
    const T *value = IN(T, value_place);                                                                               \
    const I *index = IN(I, place);                                                                                     \
    const uint64_t base = #form[0] == 'v' ? 0 : *IN(uint64_t, s->a), scale = s->scale, imm = s->imm;                   \
    (void)base, (void)scale, (void)lanes;                                                                              \
    extent e = find_extent;                                                                                            \
    e.low += imm;                                                                                                      \
    e.high += imm;                                                                                                     \
    bool good = reaches(w, s, e, sizeof(M), true);                                                                     \
    if (good && e.contiguous && sizeof(M) == sizeof(T)) {                                                              \
      KERNEL_WRITE_ALL(M, e.low + w->ranges[s->range].shift, value + e.begin, e.end - e.begin);                        \
      return;                                                                                                          \
    }                                                                                                                  \
    if (good && e.apart != 0) {                                                                                        \
      char *to = (char *)(uintptr_t)(e.low + w->ranges[s->range].shift);                                               \
      _Pragma("GCC unroll 4") for (size_t k = e.begin; k < e.end; k++, to += e.apart)                                  \
          KERNEL_WRITE(M, to, stored_##tag(value[k]));                                                                 \
      return;                                                                                                          \
    }                                                                                                                  \
    for (size_t k = e.begin; k < e.end; k++) {                                                                         \
      if (!e.solid && w->mask[k] == 0) continue;                                                                       \
      uint64_t address = (one) + imm;                                                                                  \
      if (!good && !spirv_reach(w, s, address, sizeof(M), true, true, (uint32_t)k)) return;                            \
      KERNEL_WRITE(M, address + w->ranges[s->range].shift, stored_##tag(value[k]));                                    \
    }                                                                                                                  \
  }
MEMORY_KINDS(LOADS)
