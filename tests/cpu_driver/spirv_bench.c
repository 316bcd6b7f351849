/* SPDX-License-Identifier: Apache-2.0 */
/* spirv_bench.c: how fast kernels run, as ratios to the same in C, and whether the budget's rows are met.
 *
 * The budget is for AVX2, whatever else the machine has; rows of kernels have the figure with AVX-512 beside it.
 * Each row takes the better of several rounds, in which all sides take turns: a machine that others use too slows them all.
 * With the name of a kernel as its argument it runs that one only, as often as the next argument says, with the instruction
 * set that the third one names: for tools that count instructions. */
#include <time.h>

#include "bench_reference.h"
#include "kernels.h"
#include "spirv/run/run.h"
#include "spirv/run/workers.h"

extern void bench_check_nothing(void);

enum { N = 1 << 16, SIDE = 512, ROUNDS = 7 };
static const double LEAST = 0.1e9; /* a row has more rounds if they are short */

static float *x, *y, *out, *expected;
static uint32_t *starts, *numbers, *wanted, side = SIDE, seed = 42;
static int missed;

static void use_budgeted_set(void) {
  if (!spirv_use_instruction_set("avx2")) spirv_use_instruction_set(NULL);
}

static double clock_of(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}
static double processor(void) { return clock_of(CLOCK_THREAD_CPUTIME_ID); }
static double now(void) { return clock_of(CLOCK_MONOTONIC); }

static void met(bool good, const char *bound) {
  printf("  %-10s %s\n", bound, good ? "met" : "NOT MET");
  missed += !good;
}

/* ---- Kernels and their references ------------------------------------------------------------------------------------ */

static void ref_add(void) { c_add(x, y, expected, N); }
static void ref_saxpy(void) { c_saxpy(x, y, expected, N); }
static void ref_collatz(void) { c_collatz(starts, wanted, N); }
static void ref_philox(void) { c_philox(wanted, seed, N); }
static void ref_naive(void) { c_naive(x, y, expected, SIDE); }
static void ref_tiled(void) { c_tiled(x, y, expected, SIDE); }
static void ref_reduce(void) { c_reduce(x, expected, N); }
static void ref_histogram(void) { c_histogram(starts, wanted, N); }
static void ref_waves(void) { c_waves(x, expected, N); }

typedef struct {
  const char *name, *label;
  void (*reference)(void);
  const void *arguments[4];
  uint32_t group[2], count[2];
  double items, most; /* times of C's; 0: no bound */
  size_t bytes; /* of the result */
  bool exact;
} row;

static const row rows[] = {
    {"add", "vector add", ref_add, {&x, &y, &out}, {256, 1}, {N / 256, 1}, N, 5, N * 4, true},
    {"saxpy", "saxpy, 256 rounds", ref_saxpy, {&x, &y, &out}, {256, 1}, {N / 256, 1}, N, 0.3, N * 4, true},
    {"reduce", "reduction, 9 barriers", ref_reduce, {&x, &out}, {256, 1}, {N / 256, 1}, N, 50, N / 64, false},
    {"naive",
     "matrix product 512, naive",
     ref_naive,
     {&x, &y, &out, &side},
     {256, 1},
     {2, 512},
     N * 4,
     1,
     N * 16,
     true},
    {"tiled",
     "matrix product 512, tiled, to C's naive",
     ref_naive,
     {&x, &y, &out, &side},
     {16, 16},
     {32, 32},
     N * 4,
     1,
     N * 16,
     false},
    {"blocked",
     "matrix product 512, private, to C's naive",
     ref_naive,
     {&x, &y, &out, &side},
     {8, 8},
     {8, 8},
     N * 4,
     1,
     N * 16,
     false},
    {"tiled", "the same to C's tiled", ref_tiled, {&x, &y, &out, &side}, {16, 16}, {32, 32}, N * 4, 0, N * 16, false},
    {"philox", "Philox 4x32-10", ref_philox, {&numbers, &seed}, {256, 1}, {N / 256, 1}, N, 1, N * 16, true},
    {"collatz", "Collatz (divergent)", ref_collatz, {&starts, &numbers}, {256, 1}, {N / 256, 1}, N, 1.2, N * 4, true},
    {"histogram", "histogram, atomics", ref_histogram, {&starts, &numbers}, {256, 1}, {N / 256, 1}, N, 0, 0, true},
    {"waves", "exp, sin, sqrt on float4", ref_waves, {&x, &out}, {256, 1}, {N / 1024, 1}, N, 0, N * 4, false},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static spirv_launch launch_row(const spirv_program *program, const row *r) {
  spirv_launch launch = launch_of(program, r->name, r->arguments);
  for (int d = 0; d < 2; d++) {
    launch.group_size[d] = r->group[d];
    launch.group_count[d] = r->count[d];
  }
  return launch;
}

/* All kernels, for the instruction set that was chosen last. */
static spirv_program *prepared(void) {
  spirv_program *program = program_of("bench.spv");
  for (int i = 0; i < ROWS; i++) CHECK(spirv_kernel_prepare(launch_row(program, &rows[i]).kernel, NULL));
  return program;
}

static double least(double a, double b) { return a < b ? a : b; }

static void check_row(const row *r) {
  bool floats = r->arguments[r->name[0] == 'w' || r->name[0] == 'r' ? 1 : 2] == (const void *)&out;
  if (r->bytes == 0) return;
  if (r->exact) {
    CHECK(memcmp(floats ? (void *)out : (void *)numbers, floats ? (void *)expected : (void *)wanted, r->bytes) == 0);
    return;
  }
  for (size_t i = 0; i < r->bytes / 4; i++) {
    float apart = out[i] - expected[i], size = expected[i] < 0 ? -expected[i] : expected[i];
    CHECK((apart < 0 ? -apart : apart) <= 1e-4f * size + 1e-4f);
  }
}

static double time_launch(const spirv_launch *launch) {
  double start = processor();
  run_well(launch);
  return processor() - start;
}

/* `wide`: the program for AVX-512; or NULL. */
static void measure(const spirv_program *program, const spirv_program *wide, const row *r) {
  spirv_launch launch = launch_row(program, r), wide_launch;
  double c = 1e18, ours = 1e18, wider = 1e18, begun = processor();
  if (wide != NULL) wide_launch = launch_row(wide, r);
  for (int i = 0; i < ROUNDS || processor() - begun < LEAST; i++) {
    double start = processor();
    r->reference();
    c = least(c, processor() - start);
    if (wide != NULL) wider = least(wider, time_launch(&wide_launch));
    ours = least(ours, time_launch(&launch));
  }
  check_row(r);
  printf("%-42s C %8.2f ns  here %8.2f ns an item  %6.2f x", r->label, c / r->items, ours / r->items, ours / c);
  if (wide != NULL) printf("  (AVX-512 %6.2f x)", wider / c);
  char bound[24];
  snprintf(bound, sizeof(bound), "<= %g", r->most);
  if (r->most > 0) met(ours / c <= r->most, bound);
  else printf("\n");
}

/* ---- The other rows --------------------------------------------------------------------------------------------------- */

static bool other_ran;

static void run_other(void *launch) {
  run_well(launch);
  other_ran = true;
}

/* Two launches at once that share nothing, the other one in a thread that has to wake up for it. */
static double time_both(const spirv_launch *launch, spirv_launch *other, spirv_workers *workers) {
  other_ran = false;
  double start = now();
  CHECK(spirv_workers_begin(workers, run_other, other, 1));
  run_well(launch);
  spirv_workers_end(workers);
  return other_ran ? now() - start : 1e18;
}

/* What a thread that wakes up gains this machine at best is twice the time of one launch over that of two which share
 * nothing. Where that is less than the budget, as on two threads of one core, the bound is most of it. */
static void measure_threads(const spirv_program *program, const row *r, double least_gain) {
  spirv_workers *workers = spirv_workers_new(1);
  spirv_program *apart = prepared();
  row other_row = *r;
  other_row.arguments[2] = &expected;
  spirv_launch one = launch_row(program, r), two = one, other = launch_row(apart, &other_row);
  two.workers = workers;
  double alone = 1e18, helped = 1e18, both = 1e18, begun = now();
  for (int i = 0; i < 4 * ROUNDS || now() - begun < 3 * LEAST; i++) {
    double start = now();
    run_well(&one);
    alone = least(alone, now() - start);
    start = now();
    run_well(&two);
    helped = least(helped, now() - start);
    both = least(both, time_both(&one, &other, workers));
  }
  CHECK(both < 1e18);
  spirv_workers_free(workers);
  spirv_program_release(apart);
  char label[64], bound[64];
  double gain = alone / helped, best = 2 * alone / both, here = best < least_gain ? 0.9 * best : least_gain;
  snprintf(label, sizeof(label), "two threads, %s", r->label);
  printf("%-42s one %10.0f ns  two %10.0f ns      %6.2f x", label, alone, helped, gain);
  snprintf(bound, sizeof(bound), ">= %g", least_gain);
  if (here < least_gain)
    snprintf(bound, sizeof(bound), ">= %.2f, as two launches gain %.2f here, not %g", here, best, least_gain);
  met(gain >= here, bound);
}

static void measure_decoding(void) {
  size_t size;
  void *bytes = read_file("bench.spv", &size);
  double decoding = 1e18, first = 1e18;
  for (int i = 0; i < 50; i++) {
    double start = processor();
    spirv_program *program = decode(bytes, size);
    decoding = least(decoding, processor() - start);
    spirv_launch launch = launch_row(program, &rows[0]);
    launch.group_count[0] = 1;
    start = processor();
    run_well(&launch);
    first = least(first, processor() - start);
    spirv_program_release(program);
  }
  free(bytes);
  printf("%-42s %39.1f us", "decoding a module of eleven kernels", decoding / 1e3);
  met(decoding <= 100e3, "<= 100");
  printf("%-42s %39.1f us", "first launch after it", first / 1e3);
  met(first <= 100e3, "<= 100");
}

/* A kernel with checks of addresses and the same without, of all rows the worst. */
static void measure_checks(void) {
  bench_check_nothing();
  spirv_program *without = prepared();
  use_budgeted_set();
  spirv_program *with = prepared();
  double worst = 0;
  const char *name = "";
  for (int i = 0; i < ROWS; i++) {
    double t[2] = {1e18, 1e18};
    for (int n = 0; n < 2 * ROUNDS; n++)
      for (int s = 0; s < 2; s++) {
        spirv_launch launch = launch_row(s == 0 ? with : without, &rows[i]);
        double start = processor();
        run_well(&launch);
        t[s] = least(t[s], processor() - start);
      }
    if (t[0] / t[1] - 1 <= worst) continue;
    worst = t[0] / t[1] - 1;
    name = rows[i].name;
  }
  printf("%-42s %36.1f %% (%s)", "checks of addresses, the worst", worst * 100, name);
  met(worst <= 0.15, "<= 15 %");
  spirv_program_release(with);
  spirv_program_release(without);
}

static void prepare_data(void) {
  x = block(N * 16);
  y = block(N * 16);
  out = block(N * 16);
  expected = block(N * 16);
  starts = block(N * 4);
  numbers = block(N * 16);
  wanted = block(N * 16);
  for (uint32_t i = 0; i < N * 4; i++) {
    x[i] = (float)(scrambled(i) >> 8) * 0x1p-24f;
    y[i] = (float)(scrambled(i + 99) >> 8) * 0x1p-24f;
  }
  for (uint32_t i = 0; i < N; i++) starts[i] = scrambled(i) >> 12;
}

int main(int count, char **words) {
  prepare_data();
  use_budgeted_set();
  if (count > 3 && !spirv_use_instruction_set(words[3])) {
    fprintf(stderr, "this machine has no %s\n", words[3]);
    return 1;
  }
  spirv_program *program = prepared();
  if (count > 1) {
    for (int i = 0; i < ROWS; i++)
      if (strcmp(rows[i].name, words[1]) == 0) {
        spirv_launch launch = launch_row(program, &rows[i]);
        for (int n = count > 2 ? atoi(words[2]) : 1; n > 0; n--) run_well(&launch);
        break;
      }
    return 0;
  }
  printf("with %s\n", spirv_instruction_set()->name);
  spirv_program *wide = spirv_use_instruction_set("avx512") ? prepared() : NULL;
  use_budgeted_set();
  for (int i = 0; i < ROWS; i++) measure(program, wide, &rows[i]);
  if (wide != NULL) spirv_program_release(wide);
  measure_threads(program, &rows[1], 1.8);
  measure_threads(program, &rows[0], 1.3);
  spirv_program_release(program);
  measure_decoding();
  measure_checks();
  free_blocks();
  printf("%d rows of the budget are not met\n", missed);
  return missed != 0;
}
