/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_races.c: each planted race is found, and the mended kernels are silent; chaos makes some of them
 * give wrong results, and never a mended one. */
#include "kernels.h"

static const char *const names[] = {"neighbour", "reduction",  "reuse",     "counter", "histogram",
                                    "stencil",   "last_group", "flag",      "bytes",   "half",
                                    "unawaited", "early",      "same_place"};
enum { NAMES = sizeof(names) / sizeof(names[0]), SIZE = 96, GROUPS = 5, ITEMS = SIZE * GROUPS };

static int told;
static char first[400];

static void note(void *context, const char *line) {
  (void)context;
  if (told++ == 0) snprintf(first, sizeof(first), "%s", line);
}

static int *in, *out;

static void run(const spirv_program *program, const char *name, const char *kind, uint64_t chaos, bool races) {
  char full[64];
  snprintf(full, sizeof(full), "%s_%s", name, kind);
  const void *arguments[] = {&out, &in};
  spirv_launch l = launch_of(program, full, arguments);
  l.group_size[0] = SIZE;
  l.group_count[0] = GROUPS;
  l.races = races;
  l.chaos = chaos;
  l.tell = note;
  for (int i = 0; i < ITEMS; i++) {
    in[i] = strcmp(name, "last_group") == 0 ? 0 : i * 7 % 31;
    out[i] = 0;
  }
  told = 0;
  first[0] = '\0';
  run_well(&l);
}

static void all_are_found(const spirv_program *program, uint64_t chaos) {
  for (size_t i = 0; i < NAMES; i++) {
    char text[80];
    run(program, names[i], "racy", chaos, true);
    snprintf(text, sizeof(text), "race in kernel %s_racy, ", names[i]);
    if (told == 0 || strncmp(first, text, strlen(text)) != 0) fprintf(stderr, "%s: %s\n", names[i], first);
    CHECK(told > 0 && strncmp(first, text, strlen(text)) == 0 && strstr(first, "and nothing orders them") != NULL);
    run(program, names[i], "mended", chaos, true);
    if (told != 0) fprintf(stderr, "%s: %s\n", names[i], first);
    CHECK(told == 0);
  }
  run(program, "subgroup", "mended", chaos, true);
  CHECK(told == 0);
}

/* Where it is: both work-items and both instructions. */
static void a_report_says_where(const spirv_program *program) {
  run(program, "bytes", "racy", 0, true);
  CHECK(told == 1);
  CHECK(strstr(first, "global memory at 0x") != NULL);
  CHECK(strstr(first, "work-item (0, 0, 0) writes it (offset ") != NULL);
  CHECK(strstr(first, "work-item (1, 0, 0) writes it (offset ") != NULL);
  run(program, "neighbour", "racy", 0, true);
  CHECK(strstr(first, "local memory at 0x") != NULL);
  run(program, "bytes", "racy", 0, false);
  CHECK(told == 0);
}

/* Results of a kernel under many seeds: how many there are. */
static int results(const spirv_program *program, const char *name, const char *kind) {
  static int kept[ITEMS];
  int different = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    run(program, name, kind, seed == 1 ? 0 : seed * 77, false);
    if (seed == 1) memcpy(kept, out, sizeof(kept));
    else if (memcmp(kept, out, sizeof(kept)) != 0) different++;
  }
  return different;
}

static void chaos_shows_them(const spirv_program *program) {
  CHECK(results(program, "neighbour", "racy") > 0);
  CHECK(results(program, "reduction", "racy") > 0);
  CHECK(results(program, "reuse", "racy") > 0);
  CHECK(results(program, "flag", "racy") > 0);
  for (size_t i = 0; i < NAMES; i++) CHECK(results(program, names[i], "mended") == 0 || strcmp(names[i], "half") == 0);
}

int main(void) {
  in = block(ITEMS * sizeof(int));
  out = block(ITEMS * sizeof(int));
  static const uint32_t widths[] = {0, 64, 16};
  for (int w = 0; w < 3; w++) {
    spirv_use_width(widths[w]);
    spirv_program *program = program_of("races.spv");
    all_are_found(program, 0);
    all_are_found(program, 4711);
    a_report_says_where(program);
    if (widths[w] == 16) chaos_shows_them(program);
    spirv_program_release(program);
  }
  spirv_use_width(0);
  free_blocks();
  printf("spirv_races: ok\n");
  return 0;
}
