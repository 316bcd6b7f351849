/* SPDX-License-Identifier: Apache-2.0 */
/* compact.c: moves the lanes that still run a loop next to each other, and moves them back when all have left it.
 *
 * Without it, a loop that lanes leave at different times costs as much as if all lanes ran to its end. So the registers
 * that live longer than a block are saved for all lanes, and those of the running lanes are copied to the front. The
 * wave is narrower until the end of the loop. A loop with operations that depend on the position of their lane is not
 * compacted (code.c). */
#include <string.h>

#include "spirv/run/run.h"

#define MOVE(bits)                                                                                                     \
  static void take_##bits(void *to, const void *from, const uint8_t *places, size_t count) {                           \
    uint##bits##_t *d = to;                                                                                            \
    const uint##bits##_t *a = from;                                                                                    \
    for (size_t k = 0; k < count; k++) d[k] = a[places[k]];                                                            \
  }                                                                                                                    \
  static void put_##bits(void *to, const void *from, const uint8_t *places, size_t count) {                            \
    uint##bits##_t *d = to;                                                                                            \
    const uint##bits##_t *a = from;                                                                                    \
    for (size_t k = 0; k < count; k++) d[places[k]] = a[k];                                                            \
  }
MOVE(8)
MOVE(16)
MOVE(32)
MOVE(64)

typedef void mover(void *to, const void *from, const uint8_t *places, size_t count);

static mover *moving(uint32_t size, bool takes) {
  static mover *const movers[4][2] = {{put_8, take_8}, {put_16, take_16}, {put_32, take_32}, {put_64, take_64}};
  return movers[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3][takes];
}

enum { ASIDE, BACK, TAKE, PUT };

/* Copies between the registers of the wave and the saved ones: each lane from its saved place (TAKE) or to it (PUT), or
 * all lanes in their order. */
static void move(spirv_wave *w, int how) {
  const spirv_code *code = w->group->code;
  const spirv_compaction *c = &w->group->compaction;
  char *aside = c->registers;
  for (uint32_t i = 0; i < code->lasting_count; i++) {
    const spirv_lasting *l = &code->lasting[i];
    char *own = w->registers + l->place;
    if (how == ASIDE) memcpy(aside, own, (size_t)c->lanes * l->size);
    else if (how == BACK) memcpy(own, aside, (size_t)c->lanes * l->size);
    else if (how == TAKE) moving(l->size, true)(own, aside, c->from, w->count);
    else moving(l->size, false)(aside, own, c->from, w->count);
    aside += (size_t)code->width * l->size;
  }
}

void spirv_compact(spirv_wave *w, uint32_t end) {
  spirv_compaction *c = &w->group->compaction;
  uint32_t kept = 0;
  if (!c->active) {
    c->active = true;
    c->count = w->count;
    c->lanes = w->lanes;
    for (uint32_t k = 0; k < w->count; k++) c->from[k] = (uint8_t)k;
    move(w, ASIDE);
  } else {
    move(w, PUT);
  }
  c->end = end;
  for (uint32_t k = 0; k < w->count; k++) {
    c->next[c->from[k]] = w->next[k];
    if (w->mask[k] != 0) c->from[kept++] = c->from[k];
  }
  w->count = kept;
  w->lanes = (kept + PADDING - 1) / PADDING * PADDING;
  w->full = true;
  move(w, TAKE);
}

void spirv_expand(spirv_wave *w) {
  spirv_compaction *c = &w->group->compaction;
  for (uint32_t k = 0; k < w->count; k++) c->next[c->from[k]] = w->next[k];
  move(w, PUT);
  move(w, BACK);
  w->count = c->count;
  w->lanes = c->lanes;
  memcpy(w->next, c->next, w->count * sizeof(*w->next));
  c->active = false;
}
