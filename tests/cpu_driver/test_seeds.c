/* SPDX-License-Identifier: Apache-2.0 */
/* test_seeds.c: chaos, seed by seed: a program with a missing dependency is found out within 100 of them, and the same
 * program without the mistake is right with every one: `test_seeds [seeds]`. A seed is a process. */
#include "children.h"

enum { N = 256, MISTAKES = 4, FOUND_WITHIN = 100 };
enum { NO_BARRIER, NO_EVENT_BETWEEN_LISTS, NO_WAIT_IN_QUEUE, NO_WAIT_ON_HOST, NONE };

static int mistake;
static int *a, *b, *c;

static void barrier_unless(int forgotten, ze_command_list_handle_t list) {
  if (mistake != forgotten) OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
}

static void fill(ze_command_list_handle_t list, int *to, int value, ze_event_handle_t signal) {
  OK(zeCommandListAppendMemoryFill(list, to, &value, sizeof(value), N * sizeof(int), signal, 0, NULL));
}

static void copy(ze_command_list_handle_t list, int *to, int *from, ze_event_handle_t signal, ze_event_handle_t wait) {
  OK(zeCommandListAppendMemoryCopy(list, to, from, N * sizeof(int), signal, wait != NULL, &wait));
}

static bool all_are(const int *numbers, int value) {
  for (int i = 0; i < N; i++)
    if (numbers[i] != value) return false;
  return true;
}

/* Data goes from a to b in one list, to c in another, and round again in a queue. */
static bool right(void) {
  ze_event_pool_handle_t pool = pool_of(2, 0);
  ze_event_handle_t filled = event_of(pool, 0), done = event_of(pool, 1);
  ze_command_list_handle_t first = loose_list(), second = immediate_on(1, 0, ZE_COMMAND_QUEUE_FLAG_IN_ORDER), closed;
  ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC, .index = 1};
  ze_command_queue_handle_t queue;
  OK(zeCommandListCreate(context, device, &list_desc, &closed));
  OK(zeCommandQueueCreate(context, device, &queue_desc, &queue));
  fill(first, a, 7, NULL);
  barrier_unless(NO_BARRIER, first);
  copy(first, b, a, filled, NULL);
  copy(second, c, b, done, mistake == NO_EVENT_BETWEEN_LISTS ? NULL : filled);
  if (mistake != NO_WAIT_ON_HOST) OK(zeEventHostSynchronize(done, FOREVER));
  bool good = all_are(c, 7);
  OK(zeCommandListHostSynchronize(first, FOREVER));
  OK(zeCommandListHostSynchronize(second, FOREVER));
  fill(closed, a, 8, NULL);
  barrier_unless(NO_WAIT_IN_QUEUE, closed);
  copy(closed, b, a, NULL, NULL);
  OK(zeCommandListClose(closed));
  OK(zeCommandQueueExecuteCommandLists(queue, 1, &closed, NULL));
  OK(zeCommandQueueSynchronize(queue, FOREVER));
  good &= all_are(b, 8);
  ze_command_list_handle_t lists[] = {first, second, closed};
  for (int i = 0; i < 3; i++) OK(zeCommandListDestroy(lists[i]));
  OK(zeCommandQueueDestroy(queue));
  OK(zeEventDestroy(filled));
  OK(zeEventDestroy(done));
  OK(zeEventPoolDestroy(pool));
  return good;
}

static void with_a_seed(void) {
  begin();
  a = shared_memory(N * sizeof(int)), b = shared_memory(N * sizeof(int)), c = shared_memory(N * sizeof(int));
  memset(a, 0, N * sizeof(int)), memset(b, 0, N * sizeof(int)), memset(c, 0, N * sizeof(int));
  if (!right()) _exit(3);
}

/* Was the data right with this seed? */
static bool right_with(int seed) {
  char text[16];
  snprintf(text, sizeof(text), "%d", seed);
  int status = in_child("L0RT_CPU_CHAOS", text, with_a_seed, NULL, 0);
  CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3));
  return WEXITSTATUS(status) == 0;
}

int main(int argc, char **argv) {
  int seeds = argc > 1 ? atoi(argv[1]) : 100;
#ifndef __SANITIZE_THREAD__ /* which reports the mistakes itself */
  for (mistake = 0; mistake < MISTAKES; mistake++) {
    int seed = 1;
    while (right_with(seed)) CHECK(++seed <= FOUND_WITHIN);
  }
#endif
  mistake = NONE;
  for (int seed = 1; seed <= seeds; seed++) CHECK(right_with(seed));
  printf("seeds: ok\n");
  return 0;
}
