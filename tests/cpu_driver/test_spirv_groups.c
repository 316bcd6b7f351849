/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_groups.c: barriers, local memory, atomics, collectives, vectors, printf, and launches that must fail. */
#include <math.h>

#include "kernels.h"

enum { MOST = 4096 };

static spirv_program *program;
static uint32_t *in, *out;
static uint64_t chaos; /* of all launches */

static void fill(uint32_t modulo) {
  for (uint32_t i = 0; i < MOST; i++) {
    in[i] = modulo == 0 ? scrambled(i) : scrambled(i) % modulo;
    out[i] = 0;
  }
}

static spirv_launch launch(const char *name, const void *const *arguments, uint32_t size, uint32_t count) {
  spirv_launch l = launch_of(program, name, arguments);
  l.group_size[0] = size;
  l.group_count[0] = count;
  l.chaos = chaos;
  return l;
}

static void ids(void) {
  uint64_t *got = block(8 * 3 * 5 * 2 * 2 * 3 * 2);
  const void *arguments[] = {&got};
  spirv_launch l = launch_of(program, "ids", arguments);
  uint32_t size[3] = {3, 5, 2}, count[3] = {2, 3, 2};
  memcpy(l.group_size, size, sizeof(size));
  memcpy(l.group_count, count, sizeof(count));
  l.global_offset[0] = 7;
  l.global_offset[2] = 4;
  run_well(&l);
  uint64_t i = 0;
  for (uint64_t z = 0; z < 4; z++)
    for (uint64_t y = 0; y < 15; y++)
      for (uint64_t x = 0; x < 6; x++, i++) {
        uint64_t v = x % 3 + 1000 * (y % 5) + 1000000 * (z % 2);
        v = v * 31 + x / 3 + 100 * (y / 5) + 10000 * (z / 2);
        v = v * 31 + 2 + 300 + 20000;
        v = v * 31 + 3 + 500 + 20000;
        v = v * 31 + (x + 7) + 100 * y + 10000 * (z + 4);
        CHECK(got[i] == v);
      }
}

static void local_memory(uint32_t size) {
  uint32_t groups = MOST / size;
  const void *arguments[] = {&in, &out, NULL};
  uint64_t locals[] = {0, 0, 4 * size};
  fill(0);
  spirv_launch l = launch("reduce", arguments, size, groups);
  l.local_sizes = locals;
  run_well(&l);
  for (uint32_t g = 0; g < groups; g++) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < size; i++) sum += in[g * size + i];
    CHECK(out[g] == sum);
  }
  l = launch("reverse_in_group", arguments, size, groups);
  run_well(&l);
  for (uint32_t i = 0; i < groups * size; i++) CHECK(out[i] == in[i / size * size + size - 1 - i % size]);
}

static void atomics(spirv_workers *workers) {
  const void *arguments[] = {&in, &out};
  fill(0);
  spirv_launch l = launch("histogram", arguments, 128, 32);
  l.workers = workers;
  run_well(&l);
  uint32_t counts[16] = {0};
  for (uint32_t i = 0; i < MOST; i++) counts[in[i] & 15]++;
  CHECK(memcmp(counts, out, sizeof(counts)) == 0);
  fill(0);
  out[0] = out[2] = UINT32_MAX;
  out[6] = 0x80000000u;
  uint32_t e[8];
  memcpy(e, out, sizeof(e));
  uint64_t sum = 0, got;
  for (uint32_t i = 0; i < MOST; i++) {
    uint32_t v = in[i];
    if (v < e[0]) e[0] = v;
    if (v > e[1]) e[1] = v;
    e[2] &= v | 0xff;
    e[3] |= v;
    e[4] ^= v;
    e[5] -= v;
    if ((int32_t)v > (int32_t)e[6]) e[6] = v;
    e[7] = e[7] * 3 + 1;
    sum += (uint64_t)v << 16;
  }
  l = launch("atomics", arguments, 100, 40);
  l.workers = workers;
  run_well(&l);
  l = launch("atomics", arguments, 96, 1);
  l.global_offset[0] = 4000;
  run_well(&l);
  CHECK(memcmp(e, out, sizeof(e)) == 0);
  memcpy(&got, out + 8, 8);
  CHECK(got == sum);
}

static void vectors(void) {
  enum { COUNT = 50 };
  float *a = block(COUNT * 16), *r = block(COUNT * 16);
  int32_t *b = block(COUNT * 16), *more = block(COUNT * 12);
  for (int i = 0; i < COUNT * 4; i++) {
    a[i] = (float)(int32_t)scrambled((uint32_t)i) / 1e6f;
    b[i] = (int32_t)scrambled((uint32_t)i + 1000) / 65536;
  }
  const void *arguments[] = {&a, &b, &r, &more};
  spirv_launch l = launch("vectors", arguments, 10, 5);
  run_well(&l);
  for (int i = 0; i < COUNT; i++) {
    float v[4], s0, s2;
    for (int k = 0; k < 4; k++) v[k] = a[4 * i + k] * 2.0f + a[4 * i + 3 - k];
    s0 = v[0] - 1.0f;
    s2 = v[2] - 1.0f;
    v[1] = s0;
    v[3] = s2;
    float dot = v[0] * v[0];
    for (int k = 1; k < 4; k++) dot = dot + v[k] * v[k];
    int32_t w[3];
    for (int k = 0; k < 3; k++) w[k] = b[4 * i + k] >= 0 ? b[4 * i + k] * 3 : -b[4 * i + k];
    CHECK(r[4 * i] == dot && r[4 * i + 1] == v[0] && r[4 * i + 2] == (v[1] > v[2] ? v[1] : v[2]));
    CHECK(r[4 * i + 3] == (float)(int32_t)((uint32_t)w[0] + (uint32_t)w[1] * (uint32_t)w[2]));
    CHECK(memcmp(w, more + 3 * i, 12) == 0);
  }
}

static void by_value(void) {
  struct {
    int32_t first, unused[3];
    float second[4];
    int8_t third[16];
  } p = {.first = 4, .second = {1, 2, 3, 4}, .third = {10, 20, 30}};
  uint32_t which = 1;
  float two[2] = {5, 6}, *r = block(100 * 4);
  const void *arguments[] = {&r, &p, &which, two};
  spirv_launch l = launch("by_value", arguments, 50, 2);
  run_well(&l);
  for (int i = 0; i < 100; i++) CHECK(r[i] == 4 + 3 + 6 + (float)(int8_t)(20 + i));
}

static void collectives(uint32_t size) {
  uint32_t groups = 2048 / size;
  int32_t *scans = block(2048 * 8), *votes = block(2048 * 4), *v = (int32_t *)in;
  const void *arguments[] = {&in, &out, &scans, &votes};
  fill(100);
  spirv_launch l = launch("group_sums", arguments, size, groups);
  run_well(&l);
  for (uint32_t g = 0; g < groups; g++) {
    int32_t sum = 0, most = INT32_MIN, any = 0;
    for (uint32_t i = g * size; i < (g + 1) * size; i++) {
      CHECK(scans[2 * i + 1] == sum);
      sum += v[i];
      CHECK(scans[2 * i] == sum);
      most = v[i] > most ? v[i] : most;
      any |= v[i] == 5;
    }
    CHECK((int32_t)out[g] == sum + most * 3 + v[g * size + 3] * 5);
    CHECK(votes[g] == any * 2 + 1);
  }
  l = launch("subgroup_sums", arguments, size, groups);
  run_well(&l);
  for (uint32_t i = 0; i < groups * size; i++) {
    uint32_t first = i / size * size + i % size / 16 * 16, end = first + 16, last = (i / size + 1) * size;
    int32_t sum = 0, before = 0;
    for (uint32_t k = first; k < (end < last ? end : last); k++) {
      if (k == i) before = sum;
      sum += v[k];
    }
    CHECK((int32_t)out[i] ==
          sum * 3 + before * 5 + v[first] * 7 + (int32_t)(i - first) + 100 * (int32_t)(i % size / 16));
  }
}

static void copies(void) {
  const void *arguments[] = {&in, &out};
  fill(0);
  spirv_launch l = launch("copies", arguments, 64, 20);
  run_well(&l);
  for (uint32_t i = 0; i < 64 * 20; i++) CHECK(out[i] == in[i] + 1);
}

static char printed[1000];
static void note_print(void *context, const char *text, size_t size) {
  (void)context;
  strncat(printed, text, size);
}

static void prints(spirv_workers *workers) {
  int32_t base = 10;
  const void *arguments[] = {&base};
  spirv_launch l = launch("prints", arguments, 2, 4);
  l.print = note_print;
  l.workers = workers;
  run_well(&l);
  CHECK(strcmp(printed,
               "item 11 of all:  0.50 1,1,2,3|\nitem 14 of all:  2.00 4,1,2,3|\nitem 17 of all:  3.50 7,1,2,3|\n") ==
        0);
}

/* Divisions that C leaves undefined: none traps. By 0 all give 0; the least number divided by -1 is itself. */
static void divisions(void) {
  enum { ITEMS = 64 };
  int32_t zero = 0, minus = -1;
  const void *arguments[] = {&out, &zero, &minus};
  spirv_launch l = launch("divisions", arguments, ITEMS, 1);
  memset(out, 0x55, MOST * 4);
  run_well(&l);
  for (uint32_t i = 0; i < ITEMS; i++) {
    const uint32_t *o = out + 12 * i;
    bool by_zero = i % 2 == 0;
    CHECK(o[0] == (by_zero ? 0 : i == 0 ? 0x80000000u : 0x80000000u - i) && o[1] == 0);
    CHECK(o[2] == 0 && o[3] == 0 && o[4] == 0x80000000u && o[5] == 0);
    CHECK(o[6] == (by_zero ? 0 : (uint32_t)((UINT64_C(0x8000000000000000) - i) >> 32)) && o[7] == 0);
    CHECK(o[8] == (by_zero ? 0 : (uint8_t)(128 - i)) && o[9] == (by_zero ? 0 : (uint16_t)(32768 - i)));
    CHECK(o[10] == 0 && o[11] == 0);
  }
}

/* A launch wakes other threads only if it has work for them. */
static void small_launches_stay(spirv_workers *workers) {
  static const struct {
    const char *name;
    uint32_t size, groups;
    bool helped;
  } launches[] = {{"small", 1, 2, false},   {"small", 32, 8, false},  {"small", 256, 4, false},
                  {"small", 4, 2000, true}, {"small", 256, 64, true}, {"loops_long", 1, 2, true}};
  uint32_t rounds = 3;
  for (size_t i = 0; i < sizeof(launches) / sizeof(launches[0]); i++) {
    const void *arguments[] = {&out, &rounds};
    spirv_launch l = launch(launches[i].name, arguments, launches[i].size, launches[i].groups);
    l.workers = workers;
    uint64_t before = spirv_workers_used(workers);
    run_well(&l);
    if (spirv_workers_used(workers) - before != launches[i].helped)
      fprintf(stderr, "%s, %u groups of %u\n", launches[i].name, launches[i].groups, launches[i].size);
    CHECK(spirv_workers_used(workers) - before == launches[i].helped);
  }
}

static size_t printed_bytes;
static void count_print(void *context, const char *text, size_t size) {
  (void)context;
  CHECK(printed_bytes > 0 || strncmp(text, "item     0 line        0\n", size) == 0);
  printed_bytes += size;
}

/* What a launch prints is kept up to a bound, on all threads together. */
static void prints_much(spirv_workers *workers) {
  static const uint32_t times[] = {10, SPIRV_PRINT_BYTES};
  for (int i = 0; i < 2; i++) {
    const void *arguments[] = {&times[i]};
    spirv_launch l = launch("prints_much", arguments, 2, 4);
    l.print = count_print;
    l.workers = workers;
    l.fuel = 50000;
    printed_bytes = 0;
    CHECK(spirv_run(&l, NULL) == (i == 0));
    CHECK(printed_bytes == (i == 0 ? 8 * 10 * 25 : SPIRV_PRINT_BYTES));
  }
}

static void halves(void) {
  enum { COUNT = 2048 };
  uint16_t *h = block(COUNT * 2), *r = block(COUNT * 2);
  float *wide = block(COUNT * 4);
  for (int i = 0; i < COUNT; i++) h[i] = (uint16_t)(i * 32 + 5);
  const void *arguments[] = {&h, &r, &wide};
  spirv_launch l = launch("halves", arguments, 256, 8);
  run_well(&l);
  for (int i = 0; i < COUNT; i++) {
    int exponent = h[i] >> 10 & 31;
    float size = exponent == 0 ? (float)(h[i] & 1023) * 0x1p-24f : ldexpf((float)(1024 + (h[i] & 1023)), exponent - 25);
    if (exponent == 31) continue;
    float value = h[i] >> 15 ? -size : size;
    CHECK(wide[i] == value);
    float far = fabsf(value * 1.37f), near = INFINITY;
    uint32_t best = 0;
    for (uint32_t bits = 0; bits <= 0x7c00; bits++) { /* the nearest half by trying all of them */
      float one = bits >> 10 == 0 ? (float)bits * 0x1p-24f
                                  : ldexpf((float)(1024 + (bits & 1023)), (int)(bits >> 10) - 25);
      float off = fabsf(one - far);
      if (off < near || (off == near && (bits & 1) == 0)) near = off, best = bits;
    }
    CHECK((r[i] & 0x7fff) == best);
    if (i % 16 != 0) i += 15;
  }
}

static void generic_pointers(void) {
  const void *arguments[] = {&out};
  fill(0);
  for (uint32_t i = 0; i < 64; i++) out[i] = 500 + i;
  spirv_launch l = launch("generic_pointers", arguments, 64, 1);
  run_well(&l);
  for (uint32_t i = 0; i < 64; i++) CHECK(out[i] == (i % 3 == 0 ? i + 1 : i % 3 == 1 ? 1001 : 501 + i));
}

/* Is the instruction at this byte of the module a barrier? */
static bool is_barrier(uint32_t offset) {
  enum { CONTROL_BARRIER = 224 };
  size_t size;
  uint32_t *words = read_file("groups.spv", &size);
  bool it_is = offset % 4 == 0 && offset < size && (words[offset / 4] & 0xffff) == CONTROL_BARRIER;
  free(words);
  return it_is;
}

static void failures(spirv_workers *workers) {
  spirv_result r;
  uint64_t where = 0x1234;
  const void *arguments[] = {&out, &where};
  spirv_launch l = launch("divergent", arguments, 32, 2);
  CHECK(!spirv_run(&l, &r) && r.status == SPIRV_BAD_BARRIER && strstr(r.text, "divergent") != NULL);
  CHECK(r.global_id[0] % 2 == 0 && is_barrier(r.offset));
  l = launch("divergent_waves", arguments, 512, 1);
  CHECK(!spirv_run(&l, &r) && r.status == SPIRV_BAD_BARRIER && r.global_id[0] >= 256 && is_barrier(r.offset));
  l = launch("divergent_rest", arguments, 512, 1);
  CHECK(!spirv_run(&l, &r) && r.status == SPIRV_BAD_BARRIER && r.global_id[0] == 300 && is_barrier(r.offset));
  l = launch("endless", arguments, 32, 2);
  fill(0);
  l.fuel = 1000;
  l.workers = workers;
  CHECK(!spirv_run(&l, &r) && r.status == SPIRV_OUT_OF_FUEL);
  atomic_bool cancel = true;
  l.fuel = 0;
  l.cancel = &cancel;
  CHECK(!spirv_run(&l, &r) && r.status == SPIRV_CANCELLED);
  l = launch("wild", arguments, 64, 1);
  CHECK(!spirv_run(&l, &r) && r.status == SPIRV_BAD_ACCESS && r.address == 0x1234 + 37 * 4 && r.global_id[0] == 37);
  CHECK(r.offset != 0 && strstr(r.text, "(37, 0, 0)") != NULL && strstr(r.text, "store") != NULL);
  where = (uint64_t)(uintptr_t)(out + MOST) - 37 * 4; /* the first byte behind */
  CHECK(!spirv_run(&l, &r) && r.status == SPIRV_BAD_ACCESS);
  where -= 4;
  CHECK(spirv_run(&l, &r) && out[MOST - 1] == 1);
  l = launch("shaped", arguments, 32, 1);
  CHECK(!spirv_run(&l, &r) && r.status == SPIRV_BAD_LAUNCH);
  l.group_size[0] = 8;
  l.group_size[1] = 4;
  CHECK(spirv_run(&l, &r) && out[31] == 7);
  const spirv_kernel_info *info = spirv_kernel_look(l.kernel);
  CHECK(info->required_group_size[0] == 8 && info->required_group_size[1] == 4 && info->argument_count == 1);
}

int main(void) {
  static const char *const sets[] = {"sse2", "avx2", "avx512"};
  spirv_workers *workers = spirv_workers_new(1);
  for (int s = 0; s < 3; s++) {
    if (!spirv_use_instruction_set(sets[s])) continue;
    for (uint32_t way = 0; way < 10; way++) {
      uint32_t width = 16u << way / 2;
      chaos = way % 2 * (1000 * (uint64_t)s + way);
      spirv_use_width(width);
      program = program_of("groups.spv");
      in = block(MOST * 4);
      out = block(MOST * 4);
      printed[0] = '\0';
      ids();
      for (uint32_t size = 1; size <= 1024; size = size * 3 + 5) local_memory(size);
      local_memory(1024);
      atomics(width >= 64 ? workers : NULL);
      vectors();
      by_value();
      collectives(64);
      collectives(1000);
      collectives(37);
      copies();
      prints(width == 32 ? workers : NULL);
      divisions();
      small_launches_stay(workers);
      if (way == 9) prints_much(workers);
      halves();
      generic_pointers();
      failures(width == 32 ? workers : NULL);
      spirv_program_release(program);
      free_blocks();
    }
  }
  spirv_workers_free(workers);
  printf("spirv_groups: ok\n");
  return 0;
}
