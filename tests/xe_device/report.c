/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
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

void xe_report_count(int counter) { atomic_fetch_add_explicit(&counters[counter], 1, memory_order_relaxed); }

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
  if (getenv("XE_DEVICE_COUNTERS")) atexit(write_counters);
}

/* One write of a whole line: processes and threads share the file, and a process that dies has written it. */
static void append(const char *variable, const char *format, va_list arguments) {
  const char *path = getenv(variable);
  if (!path) return;
  char line[1024];
  int length = snprintf(line, sizeof line, "%d:%ld ", getpid(), syscall(SYS_gettid));
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
