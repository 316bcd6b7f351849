/* SPDX-License-Identifier: Apache-2.0 */
/* affinity.c: ZE_AFFINITY_MASK: a list of devices after commas, each a number N, or N.M for a part of it.
 *
 * Devices have no parts here, so each is a device and its only part: N and N.0 mean the same, whatever
 * ZE_FLAT_DEVICE_HIERARCHY says, and it need not be read. An entry that names nothing is passed over. */
#include "base/affinity.h"

#include <string.h>

static uint64_t shown;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* The number at *text, which moves behind it; a number that no device has for one that is too large or none at all. */
static uint64_t number(const char **text) {
  uint64_t n = 0;
  if (!is_digit(**text)) return UINT64_MAX;
  for (; is_digit(**text); (*text)++) n = n > 1000 ? n : n * 10 + (uint64_t)(**text - '0');
  return n;
}

/* The bit of the device that an entry names; 0 for none. */
static uint64_t entry(const char *text, const char *end) {
  while (text < end && *text == ' ') text++;
  while (text < end && end[-1] == ' ') end--;
  uint64_t device = number(&text), part = 0;
  if (text < end && *text == '.') {
    text++;
    part = number(&text);
  }
  return text == end && device < 64 && part == 0 ? (uint64_t)1 << device : 0;
}

void cpu_affinity_read(const char *mask) {
  shown = mask == NULL || *mask == '\0' ? UINT64_MAX : 0;
  while (mask != NULL && *mask != '\0') {
    const char *end = mask + strcspn(mask, ",");
    shown |= entry(mask, end);
    mask = *end == ',' ? end + 1 : end;
  }
}

bool cpu_affinity_shows(uint32_t index) { return (shown >> index & 1) != 0; }
