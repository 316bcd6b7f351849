/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "libc.h"

bool xe_report_logs, xe_report_traces;

static atomic_ullong counters[XE_COUNTER_NUMBER];
static const char *const names[] = {
#define XE_COUNTER(name) #name,
    XE_COUNTERS(XE_COUNTER)
#undef XE_COUNTER
};

/* Tests read counters by number until the name is NULL. */
XE_EXPORT const char *xe_device_counter_name(int counter) {
  return counter >= 0 && counter < XE_COUNTER_NUMBER ? names[counter] : NULL;
}

XE_EXPORT unsigned long long xe_device_counter(int counter) {
  return counter >= 0 && counter < XE_COUNTER_NUMBER ? atomic_load(&counters[counter]) : 0;
}

static uint64_t latencies[XE_COUNTER_NUMBER]; /* nanoseconds */

/* Reads XE_DEVICE_LATENCIES: names of counters and nanoseconds, as "exec=20000,gpu_walker=5000". */
static void read_latencies(const char *text) {
  while (text && *text) {
    char name[32];
    unsigned long long nanoseconds;
    int end = 0, counter = 0;
    if (sscanf(text, "%31[a-z_]=%llu%n", name, &nanoseconds, &end) == 2 && (!text[end] || text[end] == ','))
      while (counter < XE_COUNTER_NUMBER && strcmp(name, names[counter])) counter++;
    if (!end || counter == XE_COUNTER_NUMBER) {
      fprintf(stderr, "XE_DEVICE_LATENCIES: %s\n", text);
      abort();
    }
    latencies[counter] = nanoseconds;
    text += end + (text[end] == ',');
  }
}

void xe_report_count(int counter) {
  atomic_fetch_add_explicit(&counters[counter], 1, memory_order_relaxed);
  if (!latencies[counter]) return;
  /* A sleep is longer than asked by what some of these take: it is for the greater part only. */
  uint64_t end = xe_device_now(CLOCK_MONOTONIC) + latencies[counter];
  if (latencies[counter] > 200000) nanosleep(&(struct timespec){0, (latencies[counter] - 100000) % 1000000000}, NULL);
  while (xe_device_now(CLOCK_MONOTONIC) < end);
}

static void write_counters(void) {
  FILE *file = xe_libc.fopen(getenv("XE_DEVICE_COUNTERS"), "a");
  if (!file) return;
  for (int i = 0; i < XE_COUNTER_NUMBER; i++)
    if (counters[i]) fprintf(file, "%d %s %llu\n", getpid(), names[i], (unsigned long long)counters[i]);
  fclose(file);
}

void xe_report_start(void) {
  xe_report_logs = getenv("XE_DEVICE_LOG") != NULL;
  xe_report_traces = xe_report_logs && getenv("XE_DEVICE_TRACE") != NULL;
  read_latencies(getenv("XE_DEVICE_LATENCIES"));
  if (getenv("XE_DEVICE_COUNTERS")) atexit(write_counters);
}

/* One write of a whole line: processes and threads share the file, and a process that dies has written it. */
static void append(const char *variable, const char *format, va_list arguments) {
  const char *path = getenv(variable);
  if (!path) return;
  char line[1024];
  int length = snprintf(line, sizeof line, "%d:%ld ", getpid(), (long)gettid());
  length += vsnprintf(line + length, sizeof line - length - 1, format, arguments);
  if (length > (int)sizeof line - 2) length = sizeof line - 2;
  line[length++] = '\n';
  int fd = xe_libc.open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0 || write(fd, line, length) != length) abort();
  xe_libc.close(fd);
}

void xe_report_log(const char *format, ...) {
  if (!xe_report_logs) return;
  va_list arguments;
  va_start(arguments, format);
  append("XE_DEVICE_LOG", format, arguments);
  va_end(arguments);
}

void xe_report_unmapped(const char *format, ...) {
  xe_report_count(XE_COUNT_gpu_walker_unmapped);
  va_list arguments;
  va_start(arguments, format);
  append("XE_DEVICE_UNMAPPED", format, arguments);
  va_end(arguments);
}

void xe_report_failure(const char *format, ...) {
  xe_report_count(XE_COUNT_failure);
  va_list arguments;
  va_start(arguments, format);
  append("XE_DEVICE_FAILURES", format, arguments);
  va_end(arguments);
  va_start(arguments, format);
  if (xe_report_logs) append("XE_DEVICE_LOG", format, arguments);
  va_end(arguments);
}
