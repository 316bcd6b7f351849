/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h: the ways in which tests of kernels run each of them: instruction sets, widths, shapes, offsets, threads, chaos. */
#ifndef L0RT_CPU_TEST_SWEEP_H
#define L0RT_CPU_TEST_SWEEP_H

#include "kernels.h"

typedef struct {
  const spirv_program *program;
  spirv_workers *workers;
  uint32_t size[3], count[3];
  uint64_t offset[3], chaos;
  char where[192]; /* all of that in words */
} sweep;

static inline spirv_launch sweep_launch(const sweep *s, const char *name, const void *const *arguments) {
  spirv_launch launch = launch_of(s->program, name, arguments);
  memcpy(launch.group_size, s->size, sizeof(s->size));
  memcpy(launch.group_count, s->count, sizeof(s->count));
  memcpy(launch.global_offset, s->offset, sizeof(s->offset));
  launch.workers = s->workers;
  launch.chaos = s->chaos;
  return launch;
}

/* Groups in one, two and three dimensions, most of them no multiple of 16. The first dimension's count is what is left. */
static const uint32_t sweep_shapes[][5] = {{64, 1, 1, 1, 1}, {7, 5, 1, 4, 1},  {1, 1, 1, 1, 1},   {300, 1, 1, 1, 1},
                                           {3, 4, 5, 2, 3},  {17, 1, 1, 1, 1}, {250, 2, 2, 1, 1}, {33, 3, 1, 1, 2}};
enum { SWEEP_SHAPES = sizeof(sweep_shapes) / sizeof(sweep_shapes[0]) };

/* Each shape with each instruction set and width, with one thread and two, without chaos and with. At least `items`
 * work-items. */
static inline void sweep_all(const char *file, uint32_t items, void run(const sweep *)) {
#ifdef __SANITIZE_THREAD__ /* sees each element of each register, which takes minutes; threads meet in all widths alike */
  static const char *const sets[] = {"sse2"};
  static const uint32_t widths[] = {0};
#else
  static const char *const sets[] = {"sse2", "avx2", "avx512"};
  static const uint32_t widths[] = {16, 32, 64, 128, 256, 0};
#endif
  spirv_workers *workers = spirv_workers_new(1);
  for (size_t s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
    if (!spirv_use_instruction_set(sets[s])) continue;
    for (size_t w = 0; w < sizeof(widths) / sizeof(widths[0]); w++) {
      spirv_use_width(widths[w]); /* of kernels prepared from now on */
      spirv_program *program = program_of(file);
      for (uint32_t i = 0; i < SWEEP_SHAPES; i++) {
        const uint32_t *shape = sweep_shapes[i];
        for (int way = 0; way < 4; way++) {
          int threads = 1 + way % 2;
          sweep one = {.program = program,
                       .workers = threads == 2 ? workers : NULL,
                       .chaos = way < 2 ? 0 : 1000 * w + 10 * i + (uint32_t)way,
                       .size = {shape[0], shape[1], shape[2]},
                       .count = {1, shape[3], shape[4]},
                       .offset = {i % 2 * 5, i % 3 * 1000, i % 4 == 3 ? UINT64_C(1) << 33 : 0}};
          uint32_t rest = shape[0] * shape[1] * shape[2] * shape[3] * shape[4];
          one.count[0] = (items + rest - 1) / rest;
          snprintf(one.where, sizeof(one.where),
                   "%s, width %u, groups of %u %u %u, %u %u %u of them, %d thread(s), chaos %u", sets[s], widths[w],
                   shape[0], shape[1], shape[2], one.count[0], shape[3], shape[4], threads, (unsigned)one.chaos);
          run(&one);
        }
      }
      spirv_program_release(program);
    }
  }
  spirv_workers_free(workers);
  spirv_use_instruction_set(NULL);
  spirv_use_width(0);
}

#endif
