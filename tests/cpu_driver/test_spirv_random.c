/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_random.c: random kernels give the bytes that a plain interpreter gives, with every instruction set, several
 * widths, one thread and two, without chaos and with.
 * Arguments: how many kernels, the first seed, a file for the module of the first seed. */
#include "interpreter.h"

enum { ITEMS = 600 };

typedef struct {
  uint32_t *x, *y, *counters, *counted;
  char *out, *expected;
  uint64_t seed, state;
} world;

static uint32_t chance(world *w, uint32_t below) {
  w->state = w->state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(w->state >> 33) % below;
}

static void compare(const world *w, const char *where, uint32_t items) {
  for (uint32_t i = 0; i < items * SLOT; i++) {
    if (w->out[i] == w->expected[i]) continue;
    fprintf(stderr, "seed %llu, %s: byte %u of work-item %u is %02x, expected %02x\n", (unsigned long long)w->seed,
            where, i % SLOT, i / SLOT, (uint8_t)w->out[i], (uint8_t)w->expected[i]);
    exit(1);
  }
  for (uint32_t i = 0; i < COUNTERS; i++) {
    if (w->counters[i] == w->counted[i]) continue;
    fprintf(stderr, "seed %llu, %s: counter %u is %08x, expected %08x\n", (unsigned long long)w->seed, where, i,
            w->counters[i], w->counted[i]);
    exit(1);
  }
}

static void begin(world *w, char *out, uint32_t *counters) {
  for (uint32_t i = 0; i < ITEMS * SLOT / 4; i++) ((uint32_t *)(uintptr_t)out)[i] = scrambled(i + (uint32_t)w->seed);
  for (uint32_t i = 0; i < COUNTERS; i++) counters[i] = scrambled(i);
}

/* Returns whether the kernel ran: some take too long for the interpreter. */
static bool try_seed(world *w, uint64_t seed, spirv_workers *workers, const char *file) {
  static const uint32_t shapes[][6] = {{64, 1, 1, 3, 1, 1},  {7, 5, 1, 2, 3, 1},  {1, 1, 1, 40, 1, 1},
                                       {300, 1, 1, 2, 1, 1}, {3, 4, 5, 2, 2, 1},  {17, 1, 1, 5, 1, 2},
                                       {33, 3, 1, 1, 2, 2},  {250, 2, 1, 1, 1, 1}};
  static const char *const sets[] = {"sse2", "avx2", "avx512"};
  static const uint32_t widths[] = {0, 16, 32, 64, 128, 256};
  uint32_t count, n = 77, *words = generated(seed, &count);
  w->seed = seed;
  w->state = seed;
  if (file != NULL) {
    FILE *to = fopen(file, "wb");
    CHECK(to != NULL && fwrite(words, 4, count, to) == count && fclose(to) == 0);
  }
  const uint32_t *shape = shapes[chance(w, 8)];
  uint64_t s = chance(w, 100) * UINT64_C(0x123456789);
  float r = (float)chance(w, 1000) / 8;
  const void *arguments[] = {&w->x, &w->y, &w->expected, &w->counted, &n, &s, &r};
  plain_launch l = {.arguments = arguments};
  for (int d = 0; d < 3; d++) {
    l.group_size[d] = shape[d], l.group_count[d] = shape[3 + d];
    l.offset[d] = chance(w, 3) == 0 ? chance(w, 1000) : 0;
  }
  begin(w, w->expected, w->counted);
  plain p = plain_read(words, count);
  bool good = plain_run(&p, &l);
  plain_free(&p);
  arguments[2] = &w->out, arguments[3] = &w->counters;
  for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]) && good; i++) {
    if (!spirv_use_instruction_set(sets[i])) continue;
    for (int k = 0; k < 2; k++) {
      uint32_t width = widths[chance(w, 6)];
      spirv_use_width(width);
      spirv_program *program = decode(words, 4 * (size_t)count);
      if (program == NULL) fprintf(stderr, "seed %llu: %s\n", (unsigned long long)seed, last_log);
      CHECK(program != NULL);
      spirv_launch launch = launch_of(program, "f", arguments);
      memcpy(launch.group_size, l.group_size, sizeof(l.group_size));
      memcpy(launch.group_count, l.group_count, sizeof(l.group_count));
      memcpy(launch.global_offset, l.offset, sizeof(l.offset));
      for (int way = 0; way < 2; way++) {
        launch.workers = chance(w, 2) == 0 ? workers : NULL;
        launch.chaos = chance(w, 2) == 0 ? 1 + chance(w, 1u << 30) : 0;
        char where[160];
        snprintf(where, sizeof(where), "%s, width %u, groups of %u %u %u, %u %u %u of them, %d thread(s), chaos %u",
                 sets[i], width, shape[0], shape[1], shape[2], shape[3], shape[4], shape[5],
                 launch.workers == NULL ? 1 : 2, (unsigned)launch.chaos);
        begin(w, w->out, w->counters);
        spirv_result result;
        if (!spirv_run(&launch, &result)) {
          fprintf(stderr, "seed %llu, %s: %s\n", (unsigned long long)seed, where, result.text);
          exit(1);
        }
        compare(w, where, ITEMS);
      }
      spirv_program_release(program);
    }
  }
  free(words);
  return good;
}

int main(int argc, char **argv) {
  unsigned kernels = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100, ran = 0;
  uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  world w = {.x = block(WORDS * 4), .y = block(WORDS * 4), .counters = block(COUNTERS * 4), .out = block(ITEMS * SLOT)};
  w.expected = block(ITEMS * SLOT), w.counted = block(COUNTERS * 4);
  for (uint32_t i = 0; i < WORDS; i++) {
    w.x[i] = scrambled(i);
    w.y[i] = i % 3 == 0 ? scrambled(i + 77) : scrambled(i + 99) >> (i % 32);
  }
  spirv_workers *workers = spirv_workers_new(1);
  for (unsigned i = 0; i < kernels; i++) ran += try_seed(&w, first + i, workers, i == 0 && argc > 3 ? argv[3] : NULL);
  spirv_workers_free(workers);
  free_blocks();
  CHECK(ran >= kernels / 2);
  printf("spirv_random: ok\n");
  return 0;
}
