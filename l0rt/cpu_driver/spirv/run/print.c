/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: printf in kernels. The text of each call is kept with its work-item; at the end all of it is printed in the
 * order of work-items. */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spirv/run/kernel_memory.h"
#include "spirv/run/run.h"

enum { LINE = 4096 }; /* most bytes of the text of one call, and of a string in it */

typedef struct {
  char text[LINE];
  size_t size;
} line;

static __attribute__((format(printf, 2, 3))) void add(line *to, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int size = vsnprintf(to->text + to->size, LINE - to->size, format, list);
  va_end(list);
  if (size > 0) to->size += (size_t)size < LINE - to->size ? (size_t)size : LINE - to->size - 1;
}

/* Reads a string of the kernel. Every byte up to its end must be accessible. */
static bool read_text(spirv_wave *w, const spirv_step *s, uint64_t address, char *text, uint32_t lane) {
  for (size_t i = 0; i < LINE; i++) {
    if (!spirv_reach(w, s, address + i, 1, false, true, lane)) return false;
    text[i] = KERNEL_READ(char, address + i + w->ranges[s->range].shift);
    if (text[i] == '\0') return true;
  }
  text[LINE - 1] = '\0';
  return true;
}

static uint64_t argument(const spirv_wave *w, const spirv_code_printf *p, uint32_t component, uint32_t lane,
                         double *real) {
  uint32_t place = p->places[component];
  *real = 0;
  switch (p->lanes[component]) {
    case LANE_BOOL: return REGISTER(uint32_t, place)[lane] != 0;
    case LANE_I8: return (uint64_t)(int64_t)REGISTER(int8_t, place)[lane];
    case LANE_I16: return (uint64_t)(int64_t)REGISTER(int16_t, place)[lane];
    case LANE_I32: return (uint64_t)(int64_t)REGISTER(int32_t, place)[lane];
    case LANE_I64: return REGISTER(uint64_t, place)[lane];
    case LANE_F64: *real = REGISTER(double, place)[lane]; break;
    default: *real = (double)REGISTER(float, place)[lane];
  }
  return (uint64_t)(int64_t)*real;
}

static const char *keep_flag(char *flags, size_t *size, const char *f) {
  if (*size < 12) flags[(*size)++] = *f;
  return f + 1;
}

/* One conversion. Flags, width and precision are those of C; v with the length of a vector, and hl, are OpenCL's. */
static bool convert(spirv_wave *w, const spirv_step *s, line *to, const char **format, uint32_t *next,
                    uint32_t *component, uint32_t lane) {
  const spirv_code_printf *p = &w->group->code->printfs[s->imm];
  char flags[32] = "%", text[LINE];
  size_t size = 1;
  const char *f = *format;
  while (*f != '\0' && strchr("-+ #0", *f) != NULL) f = keep_flag(flags, &size, f);
  while (*f >= '0' && *f <= '9') f = keep_flag(flags, &size, f);
  if (*f == '.') {
    f = keep_flag(flags, &size, f);
    while (*f >= '0' && *f <= '9') f = keep_flag(flags, &size, f);
  }
  flags[size] = '\0';
  if (*f == 'v') {
    f++;
    while (*f >= '0' && *f <= '9') f++;
  }
  uint32_t bits = 32;
  for (; *f != '\0' && strchr("hlzjt", *f) != NULL; f++) {
    if (*f == 'l' || *f == 'z' || *f == 'j' || *f == 't') bits = 64;
    else bits = bits == 16 ? 8 : 16;
    if (*f == 'l' && f > *format && f[-1] == 'h') bits = 32;
  }
  char kind = *f;
  if (kind == '\0' || strchr("diouxXcfFeEgGaAsp", kind) == NULL) return false;
  *format = f + 1;
  if (*next >= p->argument_count) return true; /* too few arguments: print nothing */
  uint32_t count = p->arguments[(*next)++];
  for (uint32_t i = 0; i < count; i++, ++*component) {
    double real;
    uint64_t value = argument(w, p, *component, lane, &real);
    bool is_real = p->lanes[*component] >= LANE_F16;
    if (i != 0) add(to, ",");
    char full[48];
    if (strchr("di", kind) != NULL) {
      int64_t v = bits == 8    ? (int8_t)value
                  : bits == 16 ? (int16_t)value
                  : bits == 32 ? (int32_t)value
                               : (int64_t)value;
      snprintf(full, sizeof(full), "%slld", flags);
      add(to, full, (long long)v);
    } else if (strchr("ouxX", kind) != NULL) {
      snprintf(full, sizeof(full), "%sll%c", flags, kind);
      add(to, full, (unsigned long long)(bits == 64 ? value : value & ((UINT64_C(1) << bits) - 1)));
    } else if (kind == 'c') {
      snprintf(full, sizeof(full), "%sc", flags);
      add(to, full, (int)value);
    } else if (kind == 's') {
      if (value == 0) strcpy(text, "(null)");
      else if (!read_text(w, s, value, text, lane)) return true;
      snprintf(full, sizeof(full), "%ss", flags);
      add(to, full, text);
    } else if (kind == 'p') { /* as text, for which a precision or a sign would mean something else */
      const char *width = flags + 1 + strspn(flags + 1, "-+ #0");
      bool is_left = memchr(flags, '-', (size_t)(width - flags)) != NULL;
      snprintf(text, sizeof(text), "0x%llx", (unsigned long long)value);
      snprintf(full, sizeof(full), "%%%s%.*ss", is_left ? "-" : "", (int)strspn(width, "0123456789"), width);
      add(to, full, text);
    } else {
      snprintf(full, sizeof(full), "%s%c", flags, kind);
      add(to, full, is_real ? real : (double)(int64_t)value);
    }
  }
  return true;
}

static void keep(spirv_wave *w, const line *one, uint32_t lane) {
  spirv_group *g = w->group;
  if (one->size == 0 || atomic_load_explicit(g->printed, memory_order_relaxed) >= SPIRV_PRINT_BYTES) return;
  uint64_t before = atomic_fetch_add_explicit(g->printed, one->size, memory_order_relaxed);
  if (before >= SPIRV_PRINT_BYTES) return;
  size_t size = one->size < SPIRV_PRINT_BYTES - before ? one->size : SPIRV_PRINT_BYTES - before;
  if (g->text_count == g->text_capacity) {
    size_t capacity = g->text_capacity == 0 ? 64 : g->text_capacity * 2;
    spirv_text *more = realloc(g->texts, capacity * sizeof(*more));
    if (more == NULL) return;
    g->texts = more;
    g->text_capacity = capacity;
  }
  char *copy = malloc(size);
  if (copy == NULL) return;
  memcpy(copy, one->text, size);
  g->texts[g->text_count] = (spirv_text){
      .item = g->linear * g->size + w->first + lane, .sequence = g->text_count, .text = copy, .size = size};
  g->text_count++;
}

static locale_t c_locale;
static pthread_once_t has_locale = PTHREAD_ONCE_INIT;

static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

static void print(spirv_wave *w, const spirv_step *s) {
  const uint64_t *formats = REGISTER(uint64_t, s->a);
  char format[LINE];
  for (uint32_t lane = 0; lane < w->count && !w->failed; lane++) {
    if (!w->full && w->mask[lane] == 0) continue;
    if (!read_text(w, s, formats[lane], format, lane)) return;
    line one = {.size = 0};
    one.text[0] = '\0';
    uint32_t next = 0, component = 0;
    for (const char *f = format; *f != '\0';) {
      if (*f == '%' && f[1] != '%') {
        const char *rest = f + 1;
        if (convert(w, s, &one, &rest, &next, &component, lane)) {
          f = rest;
          continue;
        }
      }
      add(&one, "%c", *f);
      f += *f == '%' && f[1] == '%' ? 2 : 1;
    }
    keep(w, &one, lane);
  }
}

/* A kernel's numbers look the same in every program: in the locale C, whatever the program has chosen. */
void spirv_print(spirv_wave *w, const spirv_step *s, size_t lanes) {
  (void)lanes;
  pthread_once(&has_locale, make_locale);
  locale_t before = uselocale(c_locale);
  print(w, s);
  uselocale(before);
}
