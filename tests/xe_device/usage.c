/* SPDX-License-Identifier: Apache-2.0 */
#include "usage.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "device.h"
#include "report.h"

#define COUNTERS 1024
#define GROUP 8

enum { ACTIVE_TICKS = 2, TOTAL_TICKS = 3 }; /* as events/ in /sys says */

static struct {
  int fd; /* of the first one */
  int number;
  uint8_t events[GROUP];
} groups[COUNTERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool xe_usage_has(const struct perf_event_attr *event) { return event && event->type == XE_USAGE_TYPE; }

int xe_usage_open(const struct perf_event_attr *event, int group) {
  const uint64_t format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED;
  uint8_t which = event->config & 0xfff;
  if ((which != ACTIVE_TICKS && which != TOTAL_TICKS) || (group < 0 && event->read_format != format)) {
    xe_report_failure("perf_event_open: config 0x%llx, read format 0x%llx", (unsigned long long)event->config,
                      (unsigned long long)event->read_format);
    errno = EINVAL;
    return -1;
  }
  int fd = memfd_create("xe_device usage", MFD_CLOEXEC), wanted = group >= 0 ? group : 0, error = EMFILE;
  pthread_mutex_lock(&lock);
  for (int i = 0; fd >= 0 && error && i < COUNTERS; i++)
    if (groups[i].fd == wanted && groups[i].number < GROUP) {
      if (group < 0) groups[i].fd = fd;
      groups[i].events[groups[i].number++] = which;
      error = 0;
    }
  pthread_mutex_unlock(&lock);
  if (fd >= 0 && error) errno = error;
  return error ? -1 : fd;
}

long xe_usage_read(int fd, void *answer, size_t size) {
  uint64_t now = xe_device_now(CLOCK_MONOTONIC), words[2 + GROUP] = {0, now};
  pthread_mutex_lock(&lock);
  for (int i = 0; i < COUNTERS; i++)
    if (groups[i].fd == fd)
      for (int k = 0; k < groups[i].number; k++)
        words[2 + words[0]++] = groups[i].events[k] == ACTIVE_TICKS ? now / XE_USAGE_BUSY : now;
  pthread_mutex_unlock(&lock);
  size_t needed = (2 + words[0]) * sizeof *words;
  if (size < needed) {
    errno = ENOSPC; /* as Linux */
    return -1;
  }
  __builtin_memcpy(answer, words, needed);
  return needed;
}

void xe_usage_close(int fd) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < COUNTERS; i++)
    if (groups[i].fd == fd) groups[i].fd = groups[i].number = 0;
  pthread_mutex_unlock(&lock);
}
