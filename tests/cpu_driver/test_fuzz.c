/* SPDX-License-Identifier: Apache-2.0 */
/* test_fuzz.c: seeded random bytes for fuzz.h: `test_fuzz [sequences] [first seed]`. */
#include "fuzz.h"

#include <signal.h>

enum { LONGEST = 2000 };

static uint64_t seed;

/* Says which sequence it was, so that it can be run again alone. */
static void report(int number) {
  char text[64];
  int length = snprintf(text, sizeof(text), "fuzz: signal %d in sequence %llu\n", number, (unsigned long long)seed);
  if (write(2, text, (size_t)length) < 0) _exit(2);
  signal(number, SIG_DFL);
  raise(number);
}

static uint64_t next(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

int main(int argc, char **argv) {
  uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 3000;
  uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  signal(SIGALRM, report);
  signal(SIGABRT, report);
  fuzz_begin();
  for (seed = first; seed < first + count; seed++) {
    uint8_t sequence[LONGEST];
    uint64_t state = seed;
    size_t size = next(&state) % LONGEST + 1;
    for (size_t i = 0; i < size; i++) sequence[i] = (uint8_t)next(&state);
    fuzz(sequence, size);
  }
  if (reserved[1] != NULL) OK(zeVirtualMemFree(context, reserved[1], (size_t)SPAN * PAGES));
  free(good_module.bytes);
  free(native_module.bytes);
  finish("fuzz");
  return 0;
}
