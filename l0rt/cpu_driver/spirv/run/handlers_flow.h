/* SPDX-License-Identifier: Apache-2.0 */
/* handlers_flow.h: the part of handlers.h that chooses which lanes run.
 *
 * The running lanes are in the block with the lowest number of all. So if a branch sends some of them to a block with a
 * lower number than all others wait for, those lanes run on at once. Only the rest record where they wait. No search is
 * needed. */

static uint32_t pick(spirv_wave *w) {
  const size_t count = w->count;
  uint32_t low = ENDED, second = ENDED, highest = 0, others = 0;
  for (size_t k = 0; k < count; k++) low = w->next[k] < low ? w->next[k] : low;
  for (size_t k = 0; k < count; k++) {
    const uint32_t at = w->next[k], runs = at == low ? ~0u : 0, up = at | runs, down = at & ~runs;
    w->mask[k] = runs;
    others += 1 + runs;
    second = up < second ? up : second;
    highest = down > highest ? down : highest;
  }
  w->running = (uint32_t)count - others;
  w->full = others == 0;
  w->waiting = second;
  w->together = second == highest;
  return low;
}

static bool branch(spirv_wave *w, const uint32_t *condition, uint32_t yes, uint32_t no) {
  const size_t count = w->count;
  const uint32_t low = yes < no ? yes : no, high = yes < no ? no : yes, flip = yes < no ? 0 : ~0u;
  uint32_t going = 0, staying = 0;
  if (yes == no) {
    w->block = yes;
    if (w->full || yes < w->waiting) return true;
    for (size_t k = 0; k < count; k++) w->next[k] = w->mask[k] != 0 ? yes : w->next[k];
    return false;
  }
  if (w->full) {
    for (size_t k = 0; k < count; k++) {
      const uint32_t go = condition[k] ^ flip;
      w->mask[k] = go;
      w->next[k] = high;
      going -= go;
    }
    w->block = going != 0 ? low : high;
    if (going == 0 || going == count) return true;
    w->full = false;
    w->running = going;
    w->waiting = high;
    w->together = true;
    return true;
  }
  for (size_t k = 0; k < count; k++) {
    const uint32_t go = w->mask[k] & (condition[k] ^ flip), stay = w->mask[k] & ~(condition[k] ^ flip);
    w->mask[k] = go;
    w->next[k] = stay != 0 ? high : w->next[k];
    going -= go;
    staying -= stay;
  }
  if (going != 0 && low < w->waiting) {
    if (staying != 0 && high != w->waiting) w->together = false;
    if (staying != 0 && high < w->waiting) w->waiting = high;
    w->running = going;
    w->block = low;
    return true;
  }
  for (size_t k = 0; k < count; k++) w->next[k] = w->mask[k] != 0 ? low : w->next[k];
  return false;
}
