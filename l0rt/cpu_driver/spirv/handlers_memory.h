/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_memory.h: the part of handlers.h that loads and stores.
 *
 * The lanes' addresses are looked at together first: where they follow each other one check and one copy are enough, and
 * where the lowest and the highest lie in one range that may be accessed, so do all between. Only otherwise is each lane
 * checked by itself, which also finds the one that is wrong. */

/* M in memory, T in a register. */
#define MEMORY_KINDS(X)                                                                                                \
  X(BOOL, uint8_t, uint32_t, TRUTH(v), v != 0)                                                                         \
  X(I8, uint8_t, uint8_t, v, v)                                                                                        \
  X(I16, uint16_t, uint16_t, v, v)                                                                                     \
  X(I32, uint32_t, uint32_t, v, v)                                                                                     \
  X(I64, uint64_t, uint64_t, v, v)                                                                                     \
  X(F16, uint16_t, float, half_value(v), half_bits(v))

#define READ(M, address)                                                                                               \
  __extension__({                                                                                                      \
    M v_;                                                                                                              \
    memcpy(&v_, (const void *)(uintptr_t)(address), sizeof(M));                                                        \
    v_;                                                                                                                \
  })

/* How far apart the lanes' addresses are. WITHIN: all lie in one range from the lowest to the highest. */
typedef struct {
  uint64_t low, high;
  bool contiguous;
} extent;

#define EXTENT(tag, I, N, W)                                                                                           \
  static inline extent extent_##tag(const spirv_wave *w, const I *index, uint64_t base, uint64_t scale, size_t size) { \
    size_t count = w->count;                                                                                           \
    const uint32_t *m = w->mask;                                                                                       \
    I low, high;                                                                                                       \
    N apart = 0;                                                                                                       \
    if (w->full) {                                                                                                     \
      const I first = index[0];                                                                                        \
      for (size_t k = 0; k < count; k++) apart |= (N)((N)index[k] - (N)first - (N)k);                                  \
      if (apart == 0 && (I)((N)first + (N)(count - 1)) >= first) { /* and none goes over */                            \
        extent e = {.low = base + (uint64_t)(W)first * scale, .contiguous = scale == size};                            \
        e.high = e.low + (count - 1) * scale;                                                                          \
        return e;                                                                                                      \
      }                                                                                                                \
      low = high = first;                                                                                              \
      for (size_t k = 0; k < count; k++) low = index[k] < low ? index[k] : low;                                        \
      for (size_t k = 0; k < count; k++) high = index[k] > high ? index[k] : high;                                     \
    } else {                                                                                                           \
      size_t some = 0;                                                                                                 \
      while (some + 1 < count && m[some] == 0) some++;                                                                 \
      const I first = low = high = index[some];                                                                        \
      for (size_t k = 0; k < count; k++) {                                                                             \
        const I v = m[k] != 0 ? index[k] : first;                                                                      \
        low = v < low ? v : low;                                                                                       \
        high = v > high ? v : high;                                                                                    \
      }                                                                                                                \
    }                                                                                                                  \
    return (extent){.low = base + (uint64_t)(W)low * scale, .high = base + (uint64_t)(W)high * scale};                 \
  }
EXTENT(s32, int32_t, uint32_t, int64_t)
EXTENT(u32, uint32_t, uint32_t, uint64_t)
EXTENT(s64, int64_t, uint64_t, int64_t)

/* Plain addresses: unsigned, and a step of the element's size where they are contiguous. */
static inline extent extent_address(const spirv_wave *w, const uint64_t *address, size_t size) {
  size_t count = w->count;
  const uint32_t *m = w->mask;
  uint64_t low, high, apart = 0;
  if (w->full) {
    const uint64_t first = address[0];
    for (size_t k = 0; k < count; k++) apart |= address[k] - (first + k * size);
    if (apart == 0 && first + (count - 1) * size >= first)
      return (extent){.low = first, .high = first + (count - 1) * size, .contiguous = true};
    low = high = first;
    for (size_t k = 0; k < count; k++) low = address[k] < low ? address[k] : low;
    for (size_t k = 0; k < count; k++) high = address[k] > high ? address[k] : high;
  } else {
    size_t some = 0;
    while (some + 1 < count && m[some] == 0) some++;
    const uint64_t first = low = high = address[some];
    for (size_t k = 0; k < count; k++) {
      const uint64_t v = m[k] != 0 ? address[k] : first;
      low = v < low ? v : low;
      high = v > high ? v : high;
    }
  }
  return (extent){.low = low, .high = high};
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
    uint32_t lane = 0;                                                                                                 \
    while (!w->full && lane + 1 < w->count && w->mask[lane] == 0) lane++;                                              \
    if (spirv_reach(w, s, address, sizeof(M), false, true, lane))                                                      \
      *OUT(T, s->d) = loaded_##tag(READ(M, address + w->ranges[s->range].shift));                                      \
  }                                                                                                                    \
  static void store_s_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                        \
    (void)lanes;                                                                                                       \
    uint64_t address = *IN(uint64_t, s->a) + s->imm;                                                                   \
    uint32_t lane = 0;                                                                                                 \
    while (!w->full && lane + 1 < w->count && w->mask[lane] == 0) lane++;                                              \
    M v = stored_##tag(*IN(T, s->b));                                                                                  \
    if (spirv_reach(w, s, address, sizeof(M), true, true, lane))                                                       \
      memcpy((void *)(uintptr_t)(address + w->ranges[s->range].shift), &v, sizeof(M));                                 \
  }                                                                                                                    \
  LOAD_FORM(tag, M, T, v, uint64_t, extent_address(w, index, sizeof(M)), s->a, s->b, index[k])                         \
  LOAD_FORM(tag, M, T, s64, int64_t, extent_s64(w, index, base, scale, sizeof(M)), s->b, s->c,                         \
            base + (uint64_t)index[k] * scale)                                                                         \
  LOAD_FORM(tag, M, T, s32, int32_t, extent_s32(w, index, base, scale, sizeof(M)), s->b, s->c,                         \
            base + (uint64_t)(int64_t)index[k] * scale)                                                                \
  LOAD_FORM(tag, M, T, u32, uint32_t, extent_u32(w, index, base, scale, sizeof(M)), s->b, s->c,                        \
            base + (uint64_t)index[k] * scale)

#define LOAD_FORM(tag, M, T, form, I, find_extent, place, value_place, one)                                            \
  static void load_##form##_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                  \
    T *restrict d = OUT(T, s->d);                                                                                      \
    const I *index = IN(I, place);                                                                                     \
    const uint64_t base = #form[0] == 'v' ? 0 : *IN(uint64_t, s->a), scale = s->scale, imm = s->imm;                   \
    const size_t count = w->count;                                                                                     \
    (void)base, (void)scale, (void)lanes;                                                                              \
    extent e = find_extent;                                                                                            \
    e.low += imm;                                                                                                      \
    e.high += imm;                                                                                                     \
    if (reaches(w, s, e, sizeof(M), false)) {                                                                          \
      const uint64_t shift = w->ranges[s->range].shift, more = imm + shift;                                            \
      e.low += shift;                                                                                                  \
      if (e.contiguous) {                                                                                              \
        const char *from = (const char *)(uintptr_t)e.low;                                                             \
        if (sizeof(M) == sizeof(T)) memcpy(d, from, count * sizeof(T));                                                \
        else                                                                                                           \
          for (size_t k = 0; k < count; k++) d[k] = loaded_##tag(READ(M, from + k * sizeof(M)));                       \
      } else if (w->full) {                                                                                            \
        for (size_t k = 0; k < count; k++) d[k] = loaded_##tag(READ(M, (one) + more));                                 \
      } else {                                                                                                         \
        for (size_t k = 0; k < count; k++)                                                                             \
          if (w->mask[k] != 0) d[k] = loaded_##tag(READ(M, (one) + more));                                             \
      }                                                                                                                \
      return;                                                                                                          \
    }                                                                                                                  \
    for (size_t k = 0; k < count; k++) {                                                                               \
      if (!w->full && w->mask[k] == 0) continue;                                                                       \
      if (!spirv_reach(w, s, (one) + imm, sizeof(M), false, true, (uint32_t)k)) return;                                \
      d[k] = loaded_##tag(READ(M, (one) + imm + w->ranges[s->range].shift));                                           \
    }                                                                                                                  \
  }                                                                                                                    \
  static void store_##form##_##tag(spirv_wave *w, const spirv_step *s, size_t lanes) {                                 \
    const T *value = IN(T, value_place);                                                                               \
    const I *index = IN(I, place);                                                                                     \
    const uint64_t base = #form[0] == 'v' ? 0 : *IN(uint64_t, s->a), scale = s->scale, imm = s->imm;                   \
    const size_t count = w->count;                                                                                     \
    (void)base, (void)scale, (void)lanes;                                                                              \
    extent e = find_extent;                                                                                            \
    e.low += imm;                                                                                                      \
    e.high += imm;                                                                                                     \
    bool good = reaches(w, s, e, sizeof(M), true);                                                                     \
    if (good && e.contiguous && sizeof(M) == sizeof(T)) {                                                              \
      memcpy((void *)(uintptr_t)(e.low + w->ranges[s->range].shift), value, count * sizeof(T));                        \
      return;                                                                                                          \
    }                                                                                                                  \
    for (size_t k = 0; k < count; k++) {                                                                               \
      if (!w->full && w->mask[k] == 0) continue;                                                                       \
      uint64_t address = (one) + imm;                                                                                  \
      if (!good && !spirv_reach(w, s, address, sizeof(M), true, true, (uint32_t)k)) return;                            \
      M v = stored_##tag(value[k]);                                                                                    \
      memcpy((void *)(uintptr_t)(address + w->ranges[s->range].shift), &v, sizeof(M));                                 \
    }                                                                                                                  \
  }
MEMORY_KINDS(LOADS)
