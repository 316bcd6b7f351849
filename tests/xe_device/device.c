/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "libc.h"
#include "report.h"
#include "space.h"
#include "tree.h"

xe_device xe_devices[XE_DEVICES];
int xe_device_number;
pthread_mutex_t xe_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void) { pthread_mutex_lock(&xe_lock); }
static void after_fork(void) { pthread_mutex_unlock(&xe_lock); }
static void in_child(void) {
  xe_space_after_fork();
  pthread_mutex_unlock(&xe_lock);
}

static void start(void) {
  xe_libc_find();
  xe_report_start();
  /* Each buffer has a file descriptor, which the kernel driver's do not need. */
  struct rlimit limit;
  if (!getrlimit(RLIMIT_NOFILE, &limit)) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  const char *names = getenv("XE_DEVICE");
  if (!names || !*names) return;
  xe_tree_begin(names);
  for (const char *name = names; name;) {
    const char *comma = strchr(name, ',');
    const xe_product *product = xe_product_find(name, comma ? (unsigned long)(comma - name) : strlen(name));
    if (!product || xe_device_number == XE_DEVICES) {
      fprintf(stderr, "XE_DEVICE=%s: %s\n", names, product ? "too many devices" : "a name of no product");
      abort();
    }
    xe_device *device = &xe_devices[xe_device_number];
    device->product = product;
    device->index = xe_device_number;
    device->render = 128 + xe_device_number;
    xe_tree_add(device);
    xe_device_number++;
    name = comma ? comma + 1 : NULL;
  }
  pthread_atfork(before_fork, after_fork, in_child);
}

void xe_device_start(void) { pthread_once(&once, start); }

__attribute__((constructor)) static void loaded(void) { xe_device_start(); }

uint64_t xe_device_now(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000ull + now.tv_nsec;
}

uint64_t xe_device_timestamp(const xe_device *device) {
  uint64_t nanoseconds = xe_device_now(CLOCK_MONOTONIC_RAW);
  uint64_t ticks = (uint64_t)((__uint128_t)nanoseconds * device->product->clock / 1000000000ull);
  int bits = xe_product_timestamp_bits(device->product);
  return bits < 64 ? ticks & ((1ull << bits) - 1) : ticks;
}
