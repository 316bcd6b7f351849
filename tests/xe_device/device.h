/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: the simulated devices of this process, from XE_DEVICE: names of products with commas between. */
#ifndef XE_DEVICE_DEVICE_H
#define XE_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "product.h"

#define XE_EXPORT __attribute__((visibility("default")))
#define XE_DEVICES 8
#define XE_TILES 2
#define XE_HANDLES 65536

struct xe_buffer;

typedef struct {
  const xe_product *product;
  int index;
  int render; /* minor number of its render node */
  char address[16]; /* on the PCI bus */
  struct xe_buffer *buffers[XE_HANDLES]; /* by handle; 0 is none */
  uint32_t last_handle;
  uint64_t vram_used[XE_TILES];
} xe_device;

extern xe_device xe_devices[XE_DEVICES];
extern int xe_device_number;

/* Guards buffers, handles, address spaces' numbers and queues' numbers. Taken before an address space's lock. */
extern pthread_mutex_t xe_lock;

/* Reads the environment; everything calls it first, as other libraries' constructors open files before ours. */
void xe_device_start(void);

uint64_t xe_device_now(clockid_t clock); /* nanoseconds */
uint64_t xe_device_timestamp(const xe_device *device);

#endif
