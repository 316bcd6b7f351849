/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libc.h"
#include "report.h"

#define NAME "xe_device buffer"
#define HANDLE_SHIFT 40 /* no buffer is larger than a terabyte */

/* Takes over the file descriptor. */
static xe_buffer *new_buffer(int fd, uint64_t size) {
  struct stat status;
  /* Programs expect small numbers for their own files, and select() takes no other. */
  int high = xe_libc.fcntl(fd, F_DUPFD_CLOEXEC, 4096);
  if (high >= 0) {
    xe_libc.close(fd);
    fd = high;
  }
  xe_buffer *buffer = calloc(1, sizeof *buffer);
  void *bytes = MAP_FAILED;
  if (buffer && !xe_libc.fstat(fd, &status))
    bytes = xe_libc_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (bytes == MAP_FAILED) {
    free(buffer);
    xe_libc.close(fd);
    return NULL;
  }
  *buffer = (xe_buffer){.fd = fd, .inode = status.st_ino, .size = size, .bytes = bytes, .references = 1};
  return buffer;
}

xe_buffer *xe_buffer_create(xe_device *device, uint64_t size, int tile) {
  int fd = memfd_create(NAME, MFD_CLOEXEC);
  if (fd < 0) return NULL;
  if (ftruncate(fd, size)) {
    xe_libc.close(fd);
    return NULL;
  }
  xe_buffer *buffer = new_buffer(fd, size);
  if (buffer && tile >= 0) {
    buffer->vram_of = device;
    buffer->tile = tile;
  }
  return buffer;
}

bool xe_buffer_back(xe_buffer *buffer) {
  if (!buffer->vram_of || buffer->backed) return true;
  uint64_t *used = &buffer->vram_of->vram_used[buffer->tile];
  if (*used + buffer->size > buffer->vram_of->product->vram) return false;
  *used += buffer->size;
  buffer->backed = true;
  return true;
}

uint32_t xe_buffer_import(xe_device *device, int fd) {
  char link[64], name[PATH_MAX];
  struct stat status;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = xe_libc.readlink(link, name, sizeof name - 1);
  if (length < 0 || xe_libc.fstat(fd, &status)) return 0;
  name[length] = 0;
  if (!strstr(name, "memfd:" NAME)) {
    errno = EINVAL;
    return 0;
  }
  for (uint32_t handle = 1; handle < XE_HANDLES; handle++)
    if (device->buffers[handle] && device->buffers[handle]->inode == status.st_ino) return handle;
  int duplicate = xe_libc.fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (duplicate < 0) return 0;
  xe_buffer *buffer = new_buffer(duplicate, status.st_size); /* its memory is the exporter's */
  return buffer ? xe_buffer_give_handle(device, buffer) : 0;
}

uint32_t xe_buffer_give_handle(xe_device *device, xe_buffer *buffer) {
  for (uint32_t i = 0; i < XE_HANDLES - 1; i++) {
    uint32_t handle = 1 + (device->last_handle + i) % (XE_HANDLES - 1); /* a freed handle is not the next one */
    if (!device->buffers[handle]) {
      device->buffers[handle] = buffer;
      device->last_handle = handle;
      return handle;
    }
  }
  xe_buffer_drop(buffer);
  errno = ENOMEM;
  return 0;
}

xe_buffer *xe_buffer_get(const xe_device *device, uint32_t handle) {
  return handle < XE_HANDLES ? device->buffers[handle] : NULL;
}

void xe_buffer_drop(xe_buffer *buffer) {
  if (--buffer->references) return;
  if (buffer->backed) buffer->vram_of->vram_used[buffer->tile] -= buffer->size;
  xe_libc_munmap(buffer->bytes, buffer->size);
  xe_libc.close(buffer->fd);
  free(buffer);
}

uint64_t xe_buffer_offset(uint32_t handle) { return (uint64_t)handle << HANDLE_SHIFT; }

void *xe_buffer_map(xe_device *device, void *address, size_t size, int protection, int flags, off_t offset) {
  xe_report_count(XE_COUNT_mmap);
  if ((uint64_t)offset == XE_BARRIER_OFFSET)
    return xe_libc_mmap(address, size, protection | PROT_READ, (flags & ~MAP_TYPE) | MAP_PRIVATE | MAP_ANONYMOUS, -1,
                        0);
  pthread_mutex_lock(&xe_lock);
  xe_buffer *buffer = xe_buffer_get(device, (uint64_t)offset >> HANDLE_SHIFT);
  void *mapped = MAP_FAILED;
  if (buffer)
    mapped = xe_libc_mmap(address, size, protection, flags, buffer->fd, offset & ((1ull << HANDLE_SHIFT) - 1));
  else errno = EINVAL;
  pthread_mutex_unlock(&xe_lock);
  if (!buffer) xe_report_failure("mmap: offset 0x%llx is of no buffer", (unsigned long long)offset);
  return mapped;
}
