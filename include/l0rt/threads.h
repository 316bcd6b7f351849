/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h: threads that Python knows nothing of: helpers, which call the driver or keep caches for others. */
#ifndef L0RT_THREADS_H
#define L0RT_THREADS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_timedjoin_np */
#endif

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

/* The moment on a clock that is `ns` from now. */
static inline struct timespec l0rt_time_after(clockid_t clock, uint64_t ns) {
  struct timespec when;
  clock_gettime(clock, &when);
  ns += (uint64_t)when.tv_nsec;
  when.tv_sec += (time_t)(ns / 1000000000u);
  when.tv_nsec = (long)(ns % 1000000000u);
  return when;
}

/* Start one; what pthread_create answers. Signals are for Python's own threads: this one gets none. */
static inline int l0rt_thread_start(pthread_t *thread, void *(*run)(void *), void *argument) {
  sigset_t every, before;
  int failed;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  failed = pthread_create(thread, NULL, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

/* Wait for its end, `ns` at the most: 0, or that it runs on, because it is in the driver. */
static inline int l0rt_thread_join(pthread_t thread, uint64_t ns) {
  struct timespec until = l0rt_time_after(CLOCK_REALTIME, ns);
  return pthread_timedjoin_np(thread, NULL, &until);
}

#endif
