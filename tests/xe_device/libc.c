/* SPDX-License-Identifier: Apache-2.0 */
#include "libc.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

xe_libc_functions xe_libc;

void xe_libc_find(void) {
#define FIND(name) xe_libc.name = dlsym(RTLD_NEXT, #name)
  FIND(open);
  FIND(openat);
  FIND(pread);
  FIND(fopen);
  FIND(opendir);
  FIND(scandir);
  FIND(stat);
  FIND(lstat);
  FIND(fstat);
  FIND(statx);
  FIND(access);
  FIND(readlink);
  FIND(realpath);
  FIND(close);
  FIND(dup);
  FIND(dup2);
  FIND(dup3);
  FIND(fcntl);
  FIND(ioctl);
#undef FIND
}

void *xe_libc_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

void xe_libc_munmap(void *address, size_t size) { syscall(SYS_munmap, address, size); }
