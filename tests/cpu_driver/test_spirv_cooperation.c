/* SPDX-License-Identifier: Apache-2.0 */
/* test_spirv_cooperation.c: local memory, barriers, atomics, collectives, sub-groups and asynchronous copies against C that
 * computes a whole group's results, in all the ways of sweep.h. */
#include <math.h>

#include "halves.h"
#include "sweep.h"

typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

enum { ITEMS = 700, MOST = 4096, WORDS = 8 };

/* A group: its items' words of `in`, and where their WORDS each go. */
typedef struct {
  const u32 *a;
  u32 n, x, first; /* items, first coordinate, number of the first item */
  u32 broadcast; /* the item that group_integers asks for */
  u32 subgroup;
  u32 (*o)[WORDS];
} group;

#define REFERENCE(name) static void c_##name(const group *g)
#define EACH(l) for (u32 l = 0; l < g->n; l++)

static u32 word_of(double v) {
  float f = (float)v;
  u32 bits;
  memcpy(&bits, &f, 4);
  return bits;
}

REFERENCE(prefix_sums) {
  u32 sum = 0;
  EACH(l) g->o[l][0] = sum += g->a[l];
}
REFERENCE(two_local_arguments) {
  u64 values[1024], other[1024];
  int16_t marks[1024], old[1024];
  EACH(l) values[l] = (u64)g->a[l] << 20, marks[l] = (int16_t)g->a[l];
  for (int k = 0; k < 3; k++) {
    memcpy(other, values, sizeof(values));
    memcpy(old, marks, sizeof(marks));
    EACH(l) values[l] += other[g->n - 1 - l], marks[l] = (int16_t)(old[g->n - 1 - l] * 3);
  }
  EACH(l) {
    memcpy(g->o[l], &values[l], 8);
    g->o[l][2] = (u32)marks[(l + 1) % g->n];
  }
}
REFERENCE(local_structures) {
  u32 count = 0;
  EACH(l) {
    u32 turn = l / 256, there = g->n - turn * 256 < 256 ? g->n - turn * 256 : 256;
    u32 other = turn * 256 + ((l + 2) & 255) % there;
    g->o[l][0] = (g->a[other] & 255) + other * 1000;
    g->o[l][1] = g->a[other] & 255;
    count += g->a[l] & 7;
  }
  EACH(l) g->o[l][2] = count;
}
REFERENCE(uniform_barriers) {
  EACH(l) {
    g->o[l][0] = g->x & 1 ? g->n - 1 - l + 5 : (l + g->x % 5 + 1) % g->n;
    if (!(g->x & 1) && !(g->a[l] & 1)) g->o[l][1] = g->x % 5;
  }
}
REFERENCE(fences) {
  EACH(l) {
    u32 a = g->a[l], which = a % 3,
        all[] = {which == 0 ? 2 : which == 1, 5,
                 which == 0   ? 5
                 : which == 1 ? 3
                 : a & 1      ? 7
                              : a};
    memcpy(g->o[l], all, sizeof(all));
  }
}
REFERENCE(local_atomics) {
  u32 cells[8] = {0, 0, UINT32_MAX};
  s32 least = 0, most = 0;
  u64 wide[2] = {0};
  EACH(l) {
    u32 a = g->a[l];
    cells[0] += a, cells[1] -= a, cells[2] &= a | 0xf0f0f0f0u, cells[3] |= a & 0x11111111u, cells[4] ^= a;
    cells[5]++, cells[6]--;
    if (a > cells[7]) cells[7] = a;
    if ((s32)a < least) least = (s32)a;
    if ((s32)a > most) most = (s32)a;
    wide[0] += (u64)a << 13;
    if ((u64)a << 29 > wide[1]) wide[1] = (u64)a << 29;
  }
  EACH(l) {
    g->o[l][0] = cells[l & 7], g->o[l][1] = (u32)least, g->o[l][2] = (u32)most;
    g->o[l][3] = (u32)(wide[l & 1] >> 16);
  }
}
REFERENCE(turns) { EACH(l) g->o[l][0] = l, g->o[l][1] = g->n; }
REFERENCE(float_atomics) {
  s32 sum = 0, least = 0, most = 0;
  EACH(l) {
    s32 v = (s32)(g->a[l] & 4095) - 2048;
    sum += v;
    if (v < least) least = v;
    if (v > most) most = v;
  }
  EACH(l) {
    g->o[l][0] = word_of(sum), g->o[l][1] = word_of(least), g->o[l][2] = word_of(most);
    g->o[l][3] = word_of(sum / 8.0), g->o[l][4] = word_of(least / 8.0), g->o[l][5] = word_of(most / 8.0);
  }
}
REFERENCE(modern_atomics) {
  u32 count = 5, last = 0;
  u64 sum = 0;
  EACH(l) count += g->a[l] & 3, last += g->a[l] & 15, sum += g->a[l];
  EACH(l) {
    u32 all[] = {count, (u32)(sum >> 3), last, 2, 1};
    memcpy(g->o[l], all, sizeof(all));
  }
}

#define LESS(x, y) ((x) < (y) ? (x) : (y))
#define MORE(x, y) ((x) > (y) ? (x) : (y))

REFERENCE(group_integers) {
  u32 sum = 0, least = UINT32_MAX, most = 0, any = 0, all = 1;
  s32 low = INT32_MAX, high = INT32_MIN;
  u64 wide_least = UINT64_MAX;
  EACH(l) {
    u32 a = g->a[l];
    sum += a, least = LESS(least, a), most = MORE(most, a), low = LESS(low, (s32)a), high = MORE(high, (s32)a);
    any |= (a & 15) == 3, all &= (a & 1023) != 77;
    wide_least = LESS(wide_least, (u64)a << 20);
  }
  u32 running = 0, top = 0;
  s32 smallest = INT32_MAX;
  s64 before = INT64_MAX, largest = INT64_MIN;
  EACH(l) {
    u32 a = g->a[l], *o = g->o[l];
    s64 w = (s64)a << 20;
    o[0] = sum + least * 3 + most * 5;
    o[1] = (u32)(low ^ high);
    smallest = LESS(smallest, (s32)a), largest = MORE(largest, w);
    o[3] = (running + a) ^ top;
    o[4] = (u32)smallest + running;
    o[5] = (u32)(before >> 20) + (u32)(largest >> 20);
    o[6] = g->a[g->broadcast];
    o[7] = any + 2 * all;
    running += a, top = MORE(top, a), before = LESS(before, w);
  }
  s64 wide = 0;
  EACH(l) wide += (s64)g->a[l] << 20;
  EACH(l) g->o[l][2] = (u32)(wide >> 20) + (u32)(wide_least >> 20);
}
REFERENCE(group_numbers) {
  double sum = 0, least = INFINITY, most = -INFINITY, wide = 0, ones = 0;
  EACH(l) {
    double f = (double)(g->a[l] & 255) - 100;
    sum += f, least = LESS(least, f), most = MORE(most, f), wide += (g->a[l] & 0xffff) / 16.0;
    ones = MORE(ones, g->a[l] & 1);
  }
  double before = 0, top = -INFINITY, running = 0, count = 0, bottom = INFINITY;
  EACH(l) {
    double f = (double)(g->a[l] & 255) - 100, d = (g->a[l] & 0xffff) / 16.0;
    u32 *o = g->o[l];
    top = MORE(top, f), running += d, count += g->a[l] & 1, bottom = LESS(bottom, d);
    o[0] = word_of(sum), o[1] = word_of(least + 1000 * most), o[2] = word_of(before), o[3] = word_of(top);
    o[4] = word_of(wide / 16), o[5] = word_of(running);
    o[6] = half_nearest(count) | (u32)half_nearest(ones) << 16;
    o[7] = word_of((double)(g->a[0] & 255) - 100) ^ (u32)bottom;
    before += f;
  }
}

/* A sub-group's items are [first, end). */
#define EACH_SUBGROUP(first, end)                                                                                      \
  for (u32 first = 0, end = LESS(g->subgroup, g->n); first < g->n;                                                     \
       first += g->subgroup, end = LESS(first + g->subgroup, g->n))
#define EACH_OF_IT(l) for (u32 l = first; l < end; l++)

REFERENCE(subgroups) {
  EACH_SUBGROUP(first, end) {
    u32 sum = 0, most = 0, any = 0, all = 1, small = 0, sixes = 0, running = 0, bottom = UINT32_MAX, wide = 0;
    s32 low = INT32_MAX, before = INT32_MIN;
    s64 total = 0;
    EACH_OF_IT(l) {
      u32 a = g->a[l];
      sum += a, most = MORE(most, a), low = LESS(low, (s32)a), any |= (a & 7) == 3, all &= (a & 31) != 9;
      small += a & 255, sixes = MORE(sixes, a & 63), total += (s32)a;
    }
    EACH_OF_IT(l) {
      u32 a = g->a[l], *o = g->o[l];
      o[0] = sum ^ most;
      o[1] = (u32)low + (u32)before;
      o[2] = running + a + bottom;
      o[3] = g->a[end - 1];
      o[4] = any + 2 * all;
      o[5] = word_of(small + sixes);
      wide = MORE(wide, a);
      o[6] = wide + (u32)total;
      o[7] = end - first + 100 * g->subgroup + 10000 * ((g->n + g->subgroup - 1) / g->subgroup) +
             1000000 * (first / g->subgroup) + 100000000 * (l - first);
      running += a, before = MORE(before, (s32)a), bottom = LESS(bottom, a);
    }
  }
}
REFERENCE(shuffles) {
  EACH_SUBGROUP(first, end) {
    const u32 *a = g->a + first;
    u32 there = end - first, size = g->subgroup;
    for (u32 m = 0; m < there; m++) {
      u32 *o = g->o[first + m];
      o[0] = a[(m * 7 + 3) % there];
      o[1] = word_of(a[there - 1 - m] & 0xffff);
      o[2] = (m ^ 1) < there ? a[m ^ 1] : 0;
      o[3] = m + 3 < there ? a[m + 3] : m + 3 >= size ? a[m + 3 - size] ^ 5 : 0;
      o[4] = m >= 2 ? a[m - 2] : size + m - 2 < there ? a[size + m - 2] ^ 9 : 0;
      o[5] = a[0] + (a[0] + 3) * 3;
      o[6] = a[0] & 0xffff;
      o[7] = a[0] + size;
    }
  }
}
REFERENCE(moved_bits) {
  EACH_SUBGROUP(first, end) {
    for (u32 l = first; l < end; l++) {
      u32 *o = g->o[l], mirrored = g->a[first + end - 1 - l];
      o[0] = (mirrored & 0x803fffff) | 0x7f800001;
      o[1] = o[4] = (g->a[first] & 0x803fffff) | 0x7f800001;
      o[2] = (mirrored & 0x81ff) | 0x7c01;
      o[3] = (g->a[first] & 0x81ff) | 0x7c01;
      o[5] = g->a[first] | 0x7f800001;
      o[6] = (g->a[end - 1] & 0x803fffff) | 0x7f800001;
      o[7] = (g->a[0] & 0x803fffff) | 0x7f800001;
    }
  }
}
/* The engine adds from the first item on. */
static u32 half_sum(const group *g, u32 first, u32 end, double factor) {
  double sum = 0;
  for (u32 l = first; l < end; l++) {
    double v = half_value_of(half_nearest((g->a[l] & 63) * 0.25 * factor));
    sum = l == first ? v : half_value_of(half_nearest(sum + v));
  }
  return half_nearest(sum);
}
REFERENCE(half_sums) {
  u32 most = 0;
  EACH(l) most = (g->a[l] & 63) > most ? g->a[l] & 63 : most;
  EACH(l) {
    u32 first = l / 16 * 16, end = first + 16 < g->n ? first + 16 : g->n;
    g->o[l][0] = half_sum(g, 0, g->n, 1);
    g->o[l][1] = half_sum(g, 0, l + 1, 1);
    g->o[l][2] = half_sum(g, 0, l, 1);
    g->o[l][3] = half_sum(g, first, end, 33);
    g->o[l][4] = half_sum(g, first, l + 1, 33);
    g->o[l][5] = half_nearest(most * 0.25);
  }
}
REFERENCE(subgroup_blocks) {
  EACH_SUBGROUP(first, end) {
    if (end - first < 16) continue;
    const u32 *from = g->a - g->first + (g->first + first) / 32 * 32;
    u32 *to = g->o[first];
    for (u32 m = 0; m < 16; m++) {
      to[m] = from[m] * 3;
      to[16 + m] = from[16 + m];
      to[32 + m] = from[m] ^ from[16 + m];
    }
  }
}
REFERENCE(parts_vote) {
  EACH_SUBGROUP(first, end) {
    u32 odd = 0, some = 0, votes = 0, all = 1, any = 0, leader = end, other = end;
    EACH_OF_IT(l) {
      u32 a = g->a[l];
      if (a & 1) {
        if (odd++ == 0) leader = l;
        votes |= (a & 2 ? 1u : 0u) << (l - first);
        all &= (a & 62) != 2, any |= (a & 30) == 6;
      } else if ((a & 2) && some++ == 0) {
        other = l;
      }
    }
    EACH_OF_IT(l) {
      u32 a = g->a[l], m = l - first, *o = g->o[l];
      o[7] = 5 + m;
      if (!(a & 1)) {
        if (a & 2) o[7] = 9 + m, o[1] = g->a[other];
        continue;
      }
      o[0] = (l == leader) + 2 * all + 4 * any + 8;
      o[1] = g->a[leader];
      o[2] = votes;
      o[4] = (votes >> m & 1) + 2 * (votes >> 3 & 1);
      o[5] = (u32)__builtin_popcount(votes) + 100 * (u32)__builtin_popcount(votes & (UINT32_MAX >> (31 - m))) +
             10000 * (u32)__builtin_popcount(votes & ((1u << m) - 1));
      if (votes != 0) o[6] = (u32)__builtin_ctz(votes) + 100 * (31 - (u32)__builtin_clz(votes));
    }
  }
}
REFERENCE(parts_compute) {
  EACH_SUBGROUP(first, end) {
    u32 total = 0, flips = 0;
    double product = 1, least = INFINITY;
    EACH_OF_IT(l) {
      u32 a = g->a[l];
      if ((a & 3) == 0) continue;
      total += a, product *= 1 + (a >> 5 & 1), least = LESS(least, (double)(a & 0xffff)), flips ^= (a & 4) != 0;
    }
    u32 sum = 0, times = 1, bits = UINT32_MAX, floats = 0, bottom = UINT32_MAX, top = 0, wide_or = 0, xored = 0,
        all = 1, any = 0;
    u32 most = 0;
    s32 low = INT32_MAX, high = INT32_MIN;
    EACH_OF_IT(l) {
      u32 a = g->a[l], *o = g->o[l];
      if ((a & 3) == 0) continue;
      times *= a | 1, low = LESS(low, (s32)a), top = MORE(top, a), most = MORE(most, a & 0xffff), wide_or |= a,
                      all &= (a & 12) != 0;
      o[0] = total ^ (sum + a) ^ sum * 3;
      o[1] = times ^ bits;
      o[2] = word_of(floats) ^ word_of(product);
      o[3] = (u32)(low ^ high);
      o[4] = bottom ^ top;
      o[5] = (u32)least + most;
      o[6] = wide_or ^ xored;
      o[7] = all + 2 * any + 4 * flips;
      sum += a, bits &= a | 0xff00ff00u, floats += a & 63, high = MORE(high, (s32)a), bottom = LESS(bottom, a);
      xored ^= a & 0xffff, any |= (a & 28) == 4;
    }
  }
}
REFERENCE(parts_shuffle) {
  EACH_SUBGROUP(first, end) {
    const u32 *a = g->a + first;
    u32 there = end - first;
    for (u32 m = 0; m < there; m++) {
      u32 *o = g->o[first + m];
      o[0] = a[(m * 5 + 1) % there];
      o[1] = (m ^ 2) < there ? a[m ^ 2] : 0;
      o[2] = m >= 3 ? a[m - 3] : 0;
      o[3] = m + 4 < there ? a[m + 4] : 0;
      o[4] = a[0];
    }
  }
}
REFERENCE(copies) {
  EACH(l) {
    if (l < g->n / 2) g->o[l][0] = g->a[2 * l] + 1;
    g->o[l][1] = ((const uint8_t *)g->a)[g->n - 1 - l];
    g->o[l][2] = g->a[l];
    g->o[l][3] = l;
  }
}
REFERENCE(geometry) {
  EACH(l) {
    u32 a = g->a[l], *o = g->o[l];
    double x = a & 15, y = a >> 4 & 15, z = a >> 8 & 15;
    o[0] = word_of(y * 2 + z), o[1] = word_of(z * 3 - x * 2), o[2] = word_of(-x - y * 3);
    o[3] = word_of(3 * x - y + 2 * z);
    o[4] = word_of(5 * x + 10), o[5] = word_of(2 + y), o[6] = word_of(x / 4 + y / 2);
    float large = 1e30f * ((float)x + 1);
    memcpy(&o[7], &large, 4);
  }
}

typedef void reference(const group *g);
static const struct {
  const char *name;
  reference *run;
  u32 subgroup;
} kernels[] = {
#define ROW(name) {#name, c_##name, 0}
    ROW(prefix_sums),
    ROW(two_local_arguments),
    ROW(local_structures),
    ROW(uniform_barriers),
    ROW(fences),
    ROW(local_atomics),
    ROW(turns),
    ROW(float_atomics),
    ROW(modern_atomics),
    ROW(group_integers),
    ROW(group_numbers),
    ROW(copies),
    ROW(geometry),
    {"subgroups_of_8", c_subgroups, 8},
    {"subgroups_of_16", c_subgroups, 16},
    {"subgroups_of_32", c_subgroups, 32},
    {"subgroups_of_any_size", c_subgroups, SPIRV_SUBGROUP_SIZE},
    {"moved_bits", c_moved_bits, 16},
    {"shuffles_of_8", c_shuffles, 8},
    {"shuffles_of_16", c_shuffles, 16},
    {"half_sums", c_half_sums, 16},
    {"shuffles_of_32", c_shuffles, 32},
    {"subgroup_blocks", c_subgroup_blocks, 16},
    {"parts_vote", c_parts_vote, 32},
    {"parts_compute", c_parts_compute, 16},
    {"parts_shuffle", c_parts_shuffle, 16}};
enum { KERNEL_COUNT = sizeof(kernels) / sizeof(kernels[0]) };

static u32 *in, (*out)[WORDS], (*expected)[WORDS];

static void run_all(const sweep *s) {
  u32 n = s->size[0] * s->size[1] * s->size[2], groups = s->count[0] * s->count[1] * s->count[2];
  CHECK(n * groups + 32 <= MOST);
  for (size_t k = 0; k < KERNEL_COUNT; k++) {
    memset(out, 0, MOST * sizeof(*out));
    memset(expected, 0, MOST * sizeof(*expected));
    const void *arguments[] = {&in, &out, NULL, NULL};
    uint64_t locals[] = {0, 0, 8 * n, 2 * n};
    spirv_launch launch = sweep_launch(s, kernels[k].name, arguments);
    launch.local_sizes = locals;
    run_well(&launch);
    for (u32 i = 0; i < groups; i++)
      kernels[k].run(&(group){.a = in + i * n,
                              .n = n,
                              .x = i % s->count[0],
                              .first = i * n,
                              .broadcast = s->size[0] - 1 + s->size[1] / 2 * s->size[0],
                              .subgroup = kernels[k].subgroup,
                              .o = expected + i * n});
    for (u32 i = 0; i < n * groups; i++)
      for (u32 w = 0; w < WORDS; w++) {
        if (out[i][w] == expected[i][w]) continue;
        fprintf(stderr, "%s, %s: item %u of group %u, word %u is %08x, expected %08x\n", kernels[k].name, s->where,
                i % n, i / n, w, out[i][w], expected[i][w]);
        exit(1);
      }
  }
}

int main(void) {
  in = block(MOST * 4);
  out = block(MOST * sizeof(*out));
  expected = calloc(MOST, sizeof(*expected));
  for (u32 i = 0; i < MOST; i++) in[i] = i % 7 == 0 ? scrambled(i) >> (i % 31) : scrambled(i);
  sweep_all("cooperation.spv", ITEMS, run_all);
  free(expected);
  free_blocks();
  printf("spirv_cooperation: ok\n");
  return 0;
}
