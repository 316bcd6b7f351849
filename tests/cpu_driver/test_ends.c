/* SPDX-License-Identifier: Apache-2.0 */
/* test_ends.c: the end of a process, with work under way and objects alive, and a fork. */
#include <pthread.h>
#include <signal.h>

#include "children.h"

/* Things are left behind on purpose here: no leak checker. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

static void leave_work_behind(void) {
  begin();
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t never = event_of(pool, 0);
  ze_command_list_handle_t stuck = in_order_list(), busy = immediate_on(1, 0, 0);
  char *a = device_memory(64 << 20), *b = device_memory(64 << 20);
  OK(zeCommandListAppendMemoryCopy(stuck, a, b, 64 << 20, NULL, 1, &never));
  for (int i = 0; i < 100; i++) OK(zeCommandListAppendMemoryCopy(busy, a, b, 64 << 20, NULL, 0, NULL));
}

static void *wait_for_ever(void *event) {
  zeEventHostSynchronize(event, FOREVER);
  return NULL;
}

__attribute__((unused)) static void leave_a_waiter_behind(void) {
  begin();
  pthread_t thread;
  pthread_create(&thread, NULL, wait_for_ever, event_of(pool_of(1, 0), 0));
  pthread_detach(thread);
  usleep(10000);
}

__attribute__((unused)) static void fork_with_work(void) {
  begin();
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  pid_t child = fork();
  if (child == 0) {
    uint32_t one = 1;
    GIVES(ERROR_UNINITIALIZED, zeInit(0));
    GIVES(ERROR_UNINITIALIZED, zeDriverGet(&one, &driver));
    GIVES(ERROR_UNINITIALIZED, zeCommandListAppendBarrier(list, NULL, 0, NULL));
    GIVES(ERROR_UNINITIALIZED, zeCommandListHostSynchronize(list, FOREVER));
    exit(0); /* with the library's end */
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
}

/* A child of a parent that has not begun begins for itself. */
static void fork_before_work(void) {
  pid_t child = fork();
  begin();
  OK(zeContextDestroy(context));
  if (child == 0) exit(0);
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void ends_quietly(void (*body)(void)) {
  char text[4096];
  int status = in_child(NULL, NULL, body, text, sizeof(text));
  if (status != 0 || text[0] != '\0') fprintf(stderr, "status %x: %s\n", (unsigned)status, text);
  CHECK(status == 0 && text[0] == '\0');
}

int main(void) {
  ends_quietly(leave_work_behind);
#ifndef __SANITIZE_THREAD__ /* which waits for every thread */
  ends_quietly(leave_a_waiter_behind);
  ends_quietly(fork_with_work); /* and a thread sanitizer wants no threads in a forked child */
#endif
  ends_quietly(fork_before_work);
  printf("ends: ok\n");
  return 0;
}
