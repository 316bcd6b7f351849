/* SPDX-License-Identifier: Apache-2.0 */
/* test_chaos.c: under chaos a program that states its dependencies works, and one that does not is found out. */
#include "modules.h"

enum { N = 4096 };
static int *a, *b, *c;
static ze_event_pool_handle_t pool;

/* Fills a, copies it to b, with whatever `between` puts between the two; true when b has the right data. */
static bool copied_in_order(ze_command_list_handle_t list, int round, void (*between)(ze_command_list_handle_t)) {
  memset(b, 0, N * sizeof(int));
  OK(zeCommandListAppendMemoryFill(list, a, &round, sizeof(round), N * sizeof(int), NULL, 0, NULL));
  if (between != NULL) between(list);
  OK(zeCommandListAppendMemoryCopy(list, b, a, N * sizeof(int), NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int i = 0; i < N; i++)
    if (b[i] != round) return false;
  return true;
}

static void barrier(ze_command_list_handle_t list) { OK(zeCommandListAppendBarrier(list, NULL, 0, NULL)); }

static int wrong_of(int rounds, ze_command_list_handle_t list, void (*between)(ze_command_list_handle_t)) {
  int wrong = 0;
  for (int round = 1; round <= rounds; round++) wrong += !copied_in_order(list, round, between);
  return wrong;
}

/* Many commands, each with its event; a list that waits for all of them sees all their work. */
static void events_order_what_they_are_waited_for(void) {
  enum { EVENTS = 24 };
  ze_event_handle_t events[EVENTS];
  for (uint32_t i = 0; i < EVENTS; i++) events[i] = event_of(pool, i);
  ze_command_list_handle_t list = loose_list(), other = immediate_on(1, 0, 0);
  for (int round = 1; round < 20; round++) {
    for (int i = 0; i < EVENTS; i++) {
      int value = round * 100 + i;
      ze_command_list_handle_t turn = i & 1 ? list : other;
      OK(zeCommandListAppendMemoryFill(turn, a + i, &value, sizeof(int), sizeof(int), events[i], 0, NULL));
    }
    OK(zeCommandListAppendMemoryCopy(list, c, a, EVENTS * sizeof(int), NULL, EVENTS, events));
    OK(zeCommandListHostSynchronize(list, FOREVER));
    OK(zeCommandListHostSynchronize(other, FOREVER));
    for (int i = 0; i < EVENTS; i++) CHECK(c[i] == round * 100 + i);
    for (int i = 0; i < EVENTS; i++) OK(zeEventHostReset(events[i]));
  }
  for (int i = 0; i < EVENTS; i++) OK(zeEventDestroy(events[i]));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(other));
}

static void lists_without_events_race(void) {
  ze_command_list_handle_t writer = in_order_list(), reader = in_order_list();
  int wrong = 0;
  for (int round = 1; round <= 40; round++) {
    OK(zeCommandListAppendMemoryFill(writer, a, &round, sizeof(round), N * sizeof(int), NULL, 0, NULL));
    OK(zeCommandListAppendMemoryCopy(reader, b, a, N * sizeof(int), NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(writer, FOREVER));
    OK(zeCommandListHostSynchronize(reader, FOREVER));
    wrong += b[0] != round;
  }
  CHECK(wrong > 0);
  OK(zeCommandListDestroy(writer));
  OK(zeCommandListDestroy(reader));
}

static void a_fence_comes_last(void) {
  ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
  ze_fence_desc_t fence_desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
  ze_command_list_handle_t list;
  ze_command_queue_handle_t queue;
  ze_fence_handle_t fence;
  OK(zeCommandListCreate(context, device, &list_desc, &list));
  OK(zeCommandQueueCreate(context, device, &queue_desc, &queue));
  OK(zeFenceCreate(queue, &fence_desc, &fence));
  int from[64];
  for (int i = 0; i < 64; i++) OK(zeCommandListAppendMemoryCopy(list, a + i, from + i, sizeof(int), NULL, 0, NULL));
  OK(zeCommandListClose(list));
  for (int round = 1; round < 10; round++) {
    for (int i = 0; i < 64; i++) from[i] = round + i;
    OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
    OK(zeFenceHostSynchronize(fence, FOREVER));
    OK(zeFenceReset(fence));
    for (int i = 0; i < 64; i++) CHECK(a[i] == round + i);
  }
  OK(zeCommandQueueSynchronize(queue, FOREVER));
  OK(zeFenceDestroy(fence));
  OK(zeCommandQueueDestroy(queue));
  OK(zeCommandListDestroy(list));
}

/* ---- Within a launch --------------------------------------------------------------------------------------------- */

static void launched(ze_command_list_handle_t list, ze_kernel_handle_t kernel, uint32_t groups, uint32_t size) {
  OK(zeKernelSetGroupSize(kernel, size, 1, 1));
  SET(kernel, 0, a);
  SET(kernel, 1, b);
  OK(zeCommandListAppendLaunchKernel(list, kernel, &(ze_group_count_t){groups, 1, 1}, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
}

/* Each work-item reads what its neighbour has put into local memory: before that without the barrier. */
static int neighbours_missed(ze_command_list_handle_t list, ze_module_handle_t module, const char *name) {
  enum { SIZE = 256, GROUPS = 4 };
  ze_kernel_handle_t kernel = kernel_of(module, name);
  int wrong = 0;
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < SIZE * GROUPS; i++) b[i] = round * 10000 + i;
    launched(list, kernel, GROUPS, SIZE);
    for (int i = 0; i < SIZE * GROUPS; i++) wrong += a[i] != b[i / SIZE * SIZE + (i + 1) % SIZE];
  }
  OK(zeKernelDestroy(kernel));
  return wrong;
}

/* All groups write one flag: how many of them have been the last of a launch. */
static int last_groups(ze_command_list_handle_t list, ze_module_handle_t module) {
  enum { GROUPS = 64 };
  ze_kernel_handle_t kernel = kernel_of(module, "flag_racy");
  bool last[GROUPS] = {false};
  memset(b, 0, GROUPS * sizeof(int));
  for (int round = 0; round < 40; round++) {
    launched(list, kernel, GROUPS, 1);
    last[a[0]] = true;
  }
  int found = 0;
  for (int i = 0; i < GROUPS; i++) found += last[i];
  OK(zeKernelDestroy(kernel));
  return found;
}

/* The work-items of one wave count up an atomic: each number comes once, but not in the order of the work-items. */
static int overtaken(ze_command_list_handle_t list, ze_module_handle_t module) {
  enum { SIZE = 16 };
  ze_kernel_handle_t kernel = kernel_of(module, "arrivals");
  int wrong = 0;
  for (int round = 0; round < 20; round++) {
    uint32_t numbers = 0;
    a[0] = 0;
    launched(list, kernel, 1, SIZE);
    for (int i = 0; i < SIZE; i++) numbers |= 1u << b[i], wrong += b[i] != i;
    CHECK(numbers == 0xffff && a[0] == SIZE);
  }
  OK(zeKernelDestroy(kernel));
  return wrong;
}

static void launches_race(ze_command_list_handle_t list) {
  ze_module_handle_t races = module_of("races"), launch = module_of("launch");
  CHECK(neighbours_missed(list, races, "neighbour_mended") == 0);
  CHECK(neighbours_missed(list, races, "neighbour_racy") > 0);
  CHECK(last_groups(list, races) > 5);
  CHECK(overtaken(list, launch) > 20);
  OK(zeModuleDestroy(races));
  OK(zeModuleDestroy(launch));
}

int main(void) {
  setenv("L0RT_CPU_CHAOS", "42", 1);
  setenv("L0RT_CPU_THREADS", "1", 1); /* what differs is the order, not the time */
  begin();
  a = shared_memory(N * sizeof(int)), b = shared_memory(N * sizeof(int)), c = shared_memory(N * sizeof(int));
  pool = pool_of(64, 0);
  ze_command_list_handle_t in_order = in_order_list(), loose = loose_list();
  CHECK(wrong_of(40, in_order, NULL) == 0);
  CHECK(wrong_of(40, loose, barrier) == 0);
  CHECK(wrong_of(40, loose, NULL) > 0);
  events_order_what_they_are_waited_for();
  lists_without_events_race();
  a_fence_comes_last();
  launches_race(in_order);
  OK(zeCommandListDestroy(in_order));
  OK(zeCommandListDestroy(loose));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, a));
  OK(zeMemFree(context, b));
  OK(zeMemFree(context, c));
  finish("chaos");
  return 0;
}
