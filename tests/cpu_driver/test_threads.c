/* SPDX-License-Identifier: Apache-2.0 */
/* test_threads.c: many threads, lists and events at once. */
#include <pthread.h>

#include "harness.h"

enum { THREADS = 4, ROUNDS = 300, STEPS = 8 };
static ze_event_pool_handle_t pool;

/* Its own lists on two engines, chained both ways by events that are made, used and destroyed all the time. */
static void *chain(void *argument) {
  uint32_t me = (uint32_t)(uintptr_t)argument;
  ze_command_list_handle_t lists[] = {immediate_on(0, me % 2, me & 1 ? ZE_COMMAND_QUEUE_FLAG_IN_ORDER : 0),
                                      immediate_on(1, 0, 0)};
  int *data = shared_memory((STEPS + 1) * sizeof(int));
  for (int round = 0; round < ROUNDS; round++) {
    ze_event_handle_t events[STEPS];
    for (uint32_t i = 0; i < STEPS; i++) events[i] = event_of(pool, me * STEPS + i);
    data[0] = round;
    for (int i = 0; i < STEPS; i++)
      OK(zeCommandListAppendMemoryCopy(lists[i & 1], &data[i + 1], &data[i], sizeof(int), events[i], i > 0,
                                       i > 0 ? &events[i - 1] : NULL));
    OK(zeEventHostSynchronize(events[STEPS - 1], FOREVER));
    CHECK(data[STEPS] == round);
    for (int i = 0; i < STEPS; i++) OK(zeEventDestroy(events[i]));
    if (round % 50 == 0) OK(zeMemFree(context, device_memory(100000)));
  }
  for (int i = 0; i < 2; i++) {
    OK(zeCommandListHostSynchronize(lists[i], FOREVER));
    OK(zeCommandListDestroy(lists[i]));
  }
  OK(zeMemFree(context, data));
  return NULL;
}

/* Several hosts wait for one event, again and again. */
static ze_event_handle_t shared_event;
static _Atomic int arrived;

static void *wait_for_it(void *argument) {
  (void)argument;
  OK(zeEventHostSynchronize(shared_event, FOREVER));
  arrived++;
  return NULL;
}

static void one_event_wakes_all(void) {
  ze_command_list_handle_t list = in_order_list();
  for (int round = 0; round < 20; round++) {
    pthread_t threads[THREADS];
    shared_event = event_of(pool, 0);
    arrived = 0;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, wait_for_it, NULL);
    OK(zeCommandListAppendSignalEvent(list, shared_event));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK(arrived == THREADS);
    OK(zeEventDestroy(shared_event));
  }
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
}

int main(void) {
  begin();
  pool = pool_of(THREADS * STEPS, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  pthread_t threads[THREADS];
  for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, chain, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  one_event_wakes_all();
  OK(zeEventPoolDestroy(pool));
  finish("threads");
  return 0;
}
