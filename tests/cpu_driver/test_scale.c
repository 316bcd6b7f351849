/* SPDX-License-Identifier: Apache-2.0 */
/* test_scale.c: many of everything at once, and nothing to do. */
#include <sys/resource.h>
#include <time.h>

#include "harness.h"

static double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processor_seconds(void) {
  struct rusage used;
  CHECK(getrusage(RUSAGE_SELF, &used) == 0);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* A chain through ten thousand events that all live, over a thousand lists. */
static void ten_thousand_events_on_a_thousand_lists(void) {
  enum { EVENTS = 10000, LISTS = 1000 };
  ze_event_pool_handle_t pool = pool_of(EVENTS, 0);
  ze_event_handle_t *events = malloc(EVENTS * sizeof(*events));
  ze_command_list_handle_t *lists = malloc(LISTS * sizeof(*lists));
  for (uint32_t i = 0; i < EVENTS; i++) events[i] = event_of(pool, i);
  for (int i = 0; i < LISTS; i++) lists[i] = immediate_on(i & 1, 0, ZE_COMMAND_QUEUE_FLAG_IN_ORDER);
  for (int i = 1; i < EVENTS; i++) OK(zeCommandListAppendBarrier(lists[i % LISTS], events[i], 1, &events[i - 1]));
  GIVES(NOT_READY, zeEventHostSynchronize(events[EVENTS - 1], 1000000));
  OK(zeEventHostSignal(events[0]));
  OK(zeEventHostSynchronize(events[EVENTS - 1], FOREVER));
  for (int i = 0; i < LISTS; i++) OK(zeCommandListHostSynchronize(lists[i], FOREVER));
  for (int i = 0; i < LISTS; i++) OK(zeCommandListDestroy(lists[i]));
  for (int i = 0; i < EVENTS; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
  free(events);
  free(lists);
}

/* What a few thousand fills cost while so many lists of the same queue wait for an event. */
static double fills_beside(int waiting) {
  enum { MOST = 1000, FILLS = 5000 };
  static ze_command_list_handle_t lists[MOST];
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t never = event_of(pool, 0);
  char *memory = device_memory(64), pattern = 1;
  for (int i = 0; i < waiting; i++) {
    lists[i] = in_order_list();
    OK(zeCommandListAppendWaitOnEvents(lists[i], 1, &never));
  }
  ze_command_list_handle_t list = in_order_list();
  double before = processor_seconds();
  for (int i = 0; i < FILLS; i++) OK(zeCommandListAppendMemoryFill(list, memory, &pattern, 1, 64, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  double cost = processor_seconds() - before;
  OK(zeEventHostSignal(never));
  for (int i = 0; i < waiting; i++) {
    OK(zeCommandListHostSynchronize(lists[i], FOREVER));
    OK(zeCommandListDestroy(lists[i]));
  }
  OK(zeCommandListDestroy(list));
  OK(zeEventDestroy(never));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, memory));
  return cost;
}

static void lists_that_wait_cost_the_others_nothing(void) {
  double alone = fills_beside(0), beside = fills_beside(1000);
  CHECK(beside < 3 * alone + 0.015); /* looking at a thousand lists for each fill takes twice as long as that */
}

/* The last allocations cost what the first ones did, within what a busy machine allows. */
static void a_hundred_thousand_allocations(void) {
  enum { BLOCKS = 100000, TENTH = BLOCKS / 10 };
  void **blocks = malloc(BLOCKS * sizeof(*blocks));
  double start = 0, first = 0, last = 0;
  for (int i = 0; i < BLOCKS; i++) {
    if (i % TENTH == 0) start = seconds(CLOCK_THREAD_CPUTIME_ID);
    blocks[i] = device_memory(4096);
    if (i == TENTH - 1) first = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    if (i == BLOCKS - 1) last = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
  }
  CHECK(last < 5 * first + 0.05);
  ze_memory_allocation_properties_t what = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  for (int i = 0; i < BLOCKS; i++) {
    OK(zeMemGetAllocProperties(context, (char *)blocks[i] + 7, &what, NULL));
    CHECK(what.type == ZE_MEMORY_TYPE_DEVICE);
  }
  for (int i = 0; i < BLOCKS; i++) OK(zeMemFree(context, blocks[i]));
  free(blocks);
}

/* In processor time, for the machine is not this test's alone. */
static void large_copies_cost_what_memcpy_does(void) {
  size_t size = (size_t)64 << 20;
  char *from = device_memory(size), *to = device_memory(size);
  memset(from, 1, size), memset(to, 2, size);
  ze_command_list_handle_t list = in_order_list();
  double plain = 1e9, copied = 1e9;
  for (int i = 0; i < 7; i++) {
    double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
    memcpy(to, from, size);
    double middle = seconds(CLOCK_PROCESS_CPUTIME_ID);
    OK(zeCommandListAppendMemoryCopy(list, to, from, size, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
    double end = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (middle - start < plain) plain = middle - start;
    if (end - middle < copied) copied = end - middle;
  }
#ifdef __SANITIZE_ADDRESS__
  copied = plain; /* its memmove is another one */
#endif
  CHECK(copied < plain / 0.7); /* it is within a few percent where nobody else uses the memory */
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, from));
  OK(zeMemFree(context, to));
}

static void wait_a_while(void) { nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL); }

/* All engines have worked, a command waits, a host sleeps on its event: nobody spins. */
static void an_idle_device_burns_nothing(void) {
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t never = event_of(pool, 0);
  char *memory = device_memory(64), pattern = 1;
  ze_command_list_handle_t lists[] = {in_order_list(), immediate_on(0, 1, 0), immediate_on(1, 0, 0)};
  for (int i = 0; i < 3; i++) {
    OK(zeCommandListAppendMemoryFill(lists[i], memory, &pattern, 1, 64, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(lists[i], FOREVER));
  }
  OK(zeCommandListAppendWaitOnEvents(lists[0], 1, &never));
  double before = processor_seconds();
  wait_a_while();
  GIVES(NOT_READY, zeEventHostSynchronize(never, 500000000));
  CHECK(processor_seconds() - before < 0.02);
  OK(zeEventHostSignal(never));
  for (int i = 0; i < 3; i++) OK(zeCommandListHostSynchronize(lists[i], FOREVER));
  for (int i = 0; i < 3; i++) OK(zeCommandListDestroy(lists[i]));
  OK(zeMemFree(context, memory));
  OK(zeEventDestroy(never));
  OK(zeEventPoolDestroy(pool));
}

int main(void) {
  begin();
  ten_thousand_events_on_a_thousand_lists();
  lists_that_wait_cost_the_others_nothing();
  a_hundred_thousand_allocations();
  large_copies_cost_what_memcpy_does();
  an_idle_device_burns_nothing();
  finish("scale");
  return 0;
}
