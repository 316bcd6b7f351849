/* SPDX-License-Identifier: Apache-2.0 */
/* usage.h: how busy engines are, by Linux's performance counters. They are busy for a quarter of the time, always. */
#ifndef XE_DEVICE_USAGE_H
#define XE_DEVICE_USAGE_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XE_USAGE_TYPE 47 /* what /sys says is the devices' type of events; Linux's own types end before it */
#define XE_USAGE_BUSY 4 /* one in so many ticks */

/* Is this event one of the devices'? */
bool xe_usage_has(const struct perf_event_attr *event);

/* A new counter as a file descriptor, alone or in the group of another one, or -1 with errno. */
int xe_usage_open(const struct perf_event_attr *event, int group);

/* What reading the counter gives, of a whole group at once: the bytes of the answer, or -1 with errno. */
long xe_usage_read(int fd, void *answer, size_t size);

void xe_usage_close(int fd);

#endif
