/* SPDX-License-Identifier: Apache-2.0 */
/* driver_notes.c: notes what is asked of the driver: which function, which values and flags, which structures in the
 * chains of pNext, with which result. driver_notes.py writes the functions that stand in the table in the driver's
 * place (functions.h), and decodes the notes. */

#include <stdatomic.h>
#include <string.h>

#include "l0rt/ze_functions.h"

enum { PLACES = 1 << 14, WAYS = 32 };

/* A set of notes, as a hash table; 0 is an empty place. A call usually finds its notes there: a few loads. */
_Atomic uint64_t notes[PLACES];
_Atomic uint64_t lost; /* notes that there was no place for */

static void note(uint64_t function, uint64_t structure, uint64_t field, uint64_t value, ze_result_t result) {
  uint64_t told = (result >> 27 & 0xf) << 12 | (result >> 16 & 0xf) << 8 | (result & 0xff);
  uint64_t key = function << 56 | structure << 38 | field << 34 | (value & 0x3ffff) << 16 | told;
  uint64_t at = key * 0x9e3779b97f4a7c15u >> 50;
  for (int i = 0; i < WAYS; i++, at++) {
    _Atomic uint64_t *place = &notes[at % PLACES];
    uint64_t found = atomic_load_explicit(place, memory_order_relaxed);
    if (found == key || (found == 0 && (atomic_compare_exchange_strong(place, &found, key) || found == key))) return;
  }
  atomic_fetch_add(&lost, 1);
}

/* A field of a structure: flags, one of a few values, or a pointer, of which is noted whether there is one. */
typedef struct {
  ze_structure_type_t structure;
  uint32_t field, offset, size;
} field;

static uint64_t timeout_kind(uint64_t timeout) { return timeout == 0 ? 0 : timeout == UINT64_MAX ? 2 : 1; }

static void note_chain(uint64_t function, const void *structure, ze_result_t result);

#include "functions.h"

static void note_chain(uint64_t function, const void *structure, ze_result_t result) {
  for (const ze_base_desc_t *at = structure; at != NULL; at = at->pNext) {
    note(function, at->stype, 15, 0, result);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
      uint64_t value = 0;
      if (fields[i].structure != at->stype) continue;
      memcpy(&value, (const char *)at + fields[i].offset, fields[i].size);
      note(function, at->stype, fields[i].field, fields[i].size == sizeof(void *) ? value != 0 : value, result);
    }
  }
}

/* Moves the notes to `keys`, an array of PLACES; returns how many there are. */
uint32_t take_notes(uint64_t *keys) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < PLACES; i++)
    if (atomic_load_explicit(&notes[i], memory_order_relaxed) != 0) keys[count++] = atomic_exchange(&notes[i], 0);
  return count;
}
