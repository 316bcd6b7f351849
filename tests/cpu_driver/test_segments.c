/* SPDX-License-Identifier: Apache-2.0 */
/* test_segments.c: kernels on memory that is mapped piece by piece, as growing segments of allocators are. */
#include <time.h>

#include "modules.h"

enum { PIECE = 2 << 20, PIECES = 8, SIZE = PIECE * PIECES, ITEMS = 1 << 17 };

static ze_module_handle_t module;
static ze_command_list_handle_t list;
static const ze_group_count_t ONE = {1, 1, 1};

typedef struct {
  char *base;
  ze_physical_mem_handle_t pieces[PIECES];
  uint32_t count;
} segment;

static segment segment_of(uint32_t count) {
  segment s = {.count = count};
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = SIZE / count};
  OK(zeVirtualMemReserve(context, NULL, SIZE, (void **)&s.base));
  for (uint32_t i = 0; i < count; i++) {
    OK(zePhysicalMemCreate(context, device, &desc, &s.pieces[i]));
    OK(zeVirtualMemMap(context, s.base + i * desc.size, desc.size, s.pieces[i], 0,
                       ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  }
  return s;
}

static void end(segment *s) {
  OK(zeVirtualMemUnmap(context, s->base, SIZE));
  for (uint32_t i = 0; i < s->count; i++) OK(zePhysicalMemDestroy(context, s->pieces[i]));
  OK(zeVirtualMemFree(context, s->base, SIZE));
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Reads from random places of the segment, and returns the time of an element in nanoseconds. */
static double gathered(const segment *s, const int64_t *places, uint64_t *out) {
  ze_kernel_handle_t around = kernel_of(module, "around");
  ze_group_count_t groups = {ITEMS / 256, 1, 1};
  OK(zeKernelSetGroupSize(around, 256, 1, 1));
  SET(around, 0, s->base);
  SET(around, 1, places);
  SET(around, 2, out);
  double before = seconds();
  OK(zeCommandListAppendLaunchKernel(list, around, &groups, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  double time = seconds() - before;
  OK(zeKernelDestroy(around));
  return time * 1e9 / ITEMS;
}

/* Which piece a work-item reads from must not matter: the engine remembers what it has found. */
static void a_gather_costs_what_it_costs_in_one_mapping(bool tells) {
  segment one = segment_of(1), many = segment_of(PIECES);
  int64_t *places = shared_memory(ITEMS * sizeof(*places));
  uint64_t *out = shared_memory(ITEMS * sizeof(*out)), state = 1;
  for (uint32_t i = 0; i < SIZE / 8; i++) ((uint64_t *)one.base)[i] = ((uint64_t *)many.base)[i] = i * 3;
  for (int i = 0; i < ITEMS; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    places[i] = (int64_t)(state >> 33) % (SIZE / 8);
  }
  double best = 1e9, least_one = 1e9, least_many = 1e9;
  for (int attempt = 0; attempt < 20 && best > 2; attempt++) {
    for (int i = 0; i < 3; i++) {
      double time = gathered(&one, places, out);
      least_one = time < least_one ? time : least_one;
      memset(out, 0, ITEMS * sizeof(*out));
      time = gathered(&many, places, out);
      least_many = time < least_many ? time : least_many;
      for (int k = 0; k < ITEMS; k++) CHECK(out[k] == (uint64_t)places[k] * 3);
    }
    best = least_many / least_one;
  }
  if (tells) printf("%.1f ns an element in one mapping, %.1f in %d\n", least_one, least_many, PIECES);
  CHECK(best < 3);
  OK(zeMemFree(context, places));
  OK(zeMemFree(context, out));
  end(&one);
  end(&many);
}

/* A launch keeps those pieces that it has reached, and no others. */
static void what_a_launch_has_not_reached_can_go(void) {
  segment s = segment_of(PIECES);
  ze_kernel_handle_t endless = kernel_of(module, "endless");
  SET(endless, 0, s.base);
  OK(zeCommandListAppendLaunchKernel(list, endless, &ONE, NULL, 0, NULL));
  GIVES(NOT_READY, zeCommandListHostSynchronize(list, 1000000));
  char *second = s.base + PIECE;
  OK(zeVirtualMemUnmap(context, second, PIECE));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeVirtualMemUnmap(context, s.base, PIECE));
  OK(zeVirtualMemMap(context, second, PIECE, s.pieces[1], 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  do __atomic_store_n((int *)s.base, 1 << 30, __ATOMIC_RELAXED); /* the kernel ends when it sees this */
  while (zeCommandListHostSynchronize(list, 1000000) == ZE_RESULT_NOT_READY);
  OK(zeKernelDestroy(endless));
  end(&s);
}

/* Behind the last piece, and where a piece is missing, is nothing; in the middle too, after its neighbours were reached. */
static void what_is_not_mapped_is_not_reached(void) {
  segment s = segment_of(PIECES);
  OK(zeVirtualMemUnmap(context, s.base + 3 * PIECE, PIECE));
  int64_t *places = shared_memory(64 * sizeof(*places));
  uint64_t *out = shared_memory(64 * sizeof(*out));
  ze_kernel_handle_t around = kernel_of(module, "around");
  OK(zeKernelSetGroupSize(around, 64, 1, 1));
  SET(around, 0, s.base);
  SET(around, 1, places);
  SET(around, 2, out);
  for (int wrong = -1; wrong < PIECES + 2; wrong++) {
    for (int i = 0; i < 64; i++) places[i] = (i % PIECES == 3 ? 0 : i % PIECES) * (PIECE / 8) + i;
    if (wrong >= 0) places[63] = (int64_t)wrong * (PIECE / 8);
    OK(zeCommandListAppendLaunchKernel(list, around, &ONE, NULL, 0, NULL));
    if (wrong == 3 || wrong >= PIECES) GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER));
    else OK(zeCommandListHostSynchronize(list, FOREVER));
  }
  OK(zeVirtualMemMap(context, s.base + 3 * PIECE, PIECE, s.pieces[3], 0, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
  OK(zeKernelDestroy(around));
  OK(zeMemFree(context, places));
  OK(zeMemFree(context, out));
  end(&s);
}

int main(int argc, char **argv) {
  (void)argv;
  setenv("L0RT_CPU_THREADS", "1", 1);
  begin();
  module = module_of("launch");
  list = in_order_list();
  a_gather_costs_what_it_costs_in_one_mapping(argc > 1);
  what_a_launch_has_not_reached_can_go();
  what_is_not_mapped_is_not_reached();
  OK(zeCommandListDestroy(list));
  OK(zeModuleDestroy(module));
  finish("segments");
  return 0;
}
