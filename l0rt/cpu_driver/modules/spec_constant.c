/* SPDX-License-Identifier: Apache-2.0 */
/* spec_constant.c: a walk over the instructions of a module that is not checked yet. */
#include "modules/spec_constant.h"

#include <stdbool.h>
#include <string.h>

enum { MAGIC = 0x07230203, HEADER = 5 };
enum { OP_TYPE_BOOL = 20, OP_TYPE_INT = 21, OP_TYPE_FLOAT = 22 };
enum { OP_SPEC_TRUE = 48, OP_SPEC_FALSE = 49, OP_SPEC_CONSTANT = 50, OP_DECORATE = 71, SPEC_ID = 1 };

typedef struct {
  const char *bytes;
  size_t count; /* words */
  bool swapped;
} words;

static uint32_t word(const words *w, size_t at) {
  uint32_t value;
  memcpy(&value, w->bytes + 4 * at, sizeof(value));
  return w->swapped ? __builtin_bswap32(value) : value;
}

/* The next instruction of any of these opcodes whose word `place` has this value; 0 past the last. */
static size_t find(const words *w, size_t at, uint32_t low, uint32_t high, uint32_t place, uint32_t value) {
  while (at < w->count) {
    uint32_t first = word(w, at), length = first >> 16, op = first & 0xffff;
    if (length == 0 || length > w->count - at) return 0;
    if (op >= low && op <= high && place < length && word(w, at + place) == value) return at;
    at += length;
  }
  return 0;
}

static size_t size_of(const words *w, uint32_t id) {
  if (find(w, HEADER, OP_SPEC_TRUE, OP_SPEC_FALSE, 2, id) != 0) return 1;
  size_t constant = find(w, HEADER, OP_SPEC_CONSTANT, OP_SPEC_CONSTANT, 2, id);
  if (constant == 0) return 0;
  size_t type = find(w, HEADER, OP_TYPE_INT, OP_TYPE_FLOAT, 1, word(w, constant + 1));
  uint32_t bits = type == 0 || word(w, type) >> 16 < 3 ? 0 : word(w, type + 2);
  return bits > 64 ? 0 : bits / 8;
}

size_t cpu_spec_constant_size(const void *module, size_t size, uint32_t spec_id) {
  words w = {module, size / 4, false};
  if (w.count < HEADER) return 0;
  w.swapped = word(&w, 0) != MAGIC;
  if (word(&w, 0) != MAGIC) return 0;
  size_t decoration = HEADER - 1, found = 0;
  /* The same number may be given to several constants: the first that is one counts. */
  for (size_t at = HEADER; found == 0; at = decoration + (word(&w, decoration) >> 16)) {
    decoration = find(&w, at, OP_DECORATE, OP_DECORATE, 3, spec_id);
    if (decoration == 0) return 0;
    if (word(&w, decoration + 2) == SPEC_ID) found = size_of(&w, word(&w, decoration + 1));
  }
  return found;
}
