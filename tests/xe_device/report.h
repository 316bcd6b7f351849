/* SPDX-License-Identifier: Apache-2.0 */
/* report.h: counters, failures and the log.
 *
 * A failure is what a kernel or GPU would not have forgiven: an unknown command or ioctl, an address that is not bound,
 * an alignment that is refused. Each is a line in the file that XE_DEVICE_FAILURES names, of all processes.
 * Counting takes as long as XE_DEVICE_LATENCIES says: a request of the program, or a command of an engine.
 * XE_DEVICE_LOG names a file of each ioctl, and with XE_DEVICE_TRACE of each command too. */
#ifndef XE_DEVICE_REPORT_H
#define XE_DEVICE_REPORT_H

#include <stdbool.h>

#define XE_COUNTERS(_)                                                                                                 \
  _(version)                                                                                                           \
  _(query)                                                                                                             \
  _(gem_create)                                                                                                        \
  _(gem_close)                                                                                                         \
  _(mmap_offset)                                                                                                       \
  _(vm_create)                                                                                                         \
  _(vm_destroy)                                                                                                        \
  _(vm_bind)                                                                                                           \
  _(vm_unbind)                                                                                                         \
  _(exec_queue_create)                                                                                                 \
  _(exec_queue_destroy)                                                                                                \
  _(exec_queue_get_property)                                                                                           \
  _(exec_queue_set_property)                                                                                           \
  _(exec)                                                                                                              \
  _(wait_user_fence)                                                                                                   \
  _(prime_handle_to_fd)                                                                                                \
  _(prime_fd_to_handle)                                                                                                \
  _(madvise)                                                                                                           \
  _(syncobj)                                                                                                           \
  _(other_ioctl)                                                                                                       \
  _(mmap)                                                                                                              \
  _(gpu_command)                                                                                                       \
  _(gpu_walker)                                                                                                        \
  _(gpu_walker_unmapped)                                                                                               \
  _(gpu_blit)                                                                                                          \
  _(gpu_semaphore)                                                                                                     \
  _(gpu_semaphore_sleep)                                                                                               \
  _(gpu_postsync)                                                                                                      \
  _(failure)

enum {
#define XE_COUNTER(name) XE_COUNT_##name,
  XE_COUNTERS(XE_COUNTER)
#undef XE_COUNTER
      XE_COUNTER_NUMBER
};

void xe_report_start(void);

/* Is there a log, and does it have each command? */
extern bool xe_report_logs, xe_report_traces;

void xe_report_count(int counter);
void xe_report_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A kernel that does not compute, and why: a line in the file that XE_DEVICE_UNMAPPED names. */
void xe_report_unmapped(const char *format, ...) __attribute__((format(printf, 1, 2)));
void xe_report_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
