/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.h: buffer objects, each a memfd. Callers hold `xe_lock` except where it says otherwise. */
#ifndef XE_DEVICE_BUFFER_H
#define XE_DEVICE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "device.h"

typedef struct xe_buffer {
  int fd;
  ino_t inode; /* the same for all file descriptors of one buffer, also of other processes */
  uint64_t size;
  uint8_t *bytes;
  int references; /* one for each handle, and for each binding */
  xe_device *vram_of; /* whose VRAM it is in, or NULL */
  int tile;
  bool backed; /* it has taken its VRAM */
} xe_buffer;

/* A new buffer with one reference, or NULL with errno. `tile` is -1 for the host's memory. VRAM is taken later. */
xe_buffer *xe_buffer_create(xe_device *device, uint64_t size, int tile);

/* Takes the buffer's VRAM if it has not; false if there is too little. Nothing is evicted. */
bool xe_buffer_back(xe_buffer *buffer);

/* The handle of the buffer that this file descriptor shares, or 0 with errno. */
uint32_t xe_buffer_import(xe_device *device, int fd);

/* A new handle that takes over a reference, or 0 with the reference dropped. */
uint32_t xe_buffer_give_handle(xe_device *device, xe_buffer *buffer);

/* The buffer of a handle, or NULL. */
xe_buffer *xe_buffer_get(const xe_device *device, uint32_t handle);

void xe_buffer_drop(xe_buffer *buffer);

/* The offset to map a handle's buffer at, as mmap on the device's node. `xe_buffer_map` takes the lock itself. */
uint64_t xe_buffer_offset(uint32_t handle);
void *xe_buffer_map(xe_device *device, void *address, size_t size, int protection, int flags, off_t offset);

#define XE_BARRIER_OFFSET (1ull << 58) /* a page of the device's registers, to write and forget */

#endif
