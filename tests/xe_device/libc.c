/* SPDX-License-Identifier: Apache-2.0 */
#include "libc.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

xe_libc_functions xe_libc;

void xe_libc_find(void) {
  xe_libc.dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"); /* modules.c defines dlsym */
#define FIND(name) xe_libc.name = xe_libc.dlsym(RTLD_NEXT, #name)
  FIND(open);
  FIND(openat);
  FIND(read);
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

long xe_libc_syscall(long number, long a, long b, long c, long d, long e, long f) {
#ifndef __x86_64__
#error "only the system calls of x86-64 are known here"
#endif
  long result;
  register long fourth __asm__("r10") = d, fifth __asm__("r8") = e, sixth __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = -result;
  return -1;
}

void *xe_libc_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  return (void *)xe_libc_syscall(SYS_mmap, (long)address, size, protection, flags, fd, offset);
}

void xe_libc_munmap(void *address, size_t size) { xe_libc_syscall(SYS_munmap, (long)address, size, 0, 0, 0, 0); }
