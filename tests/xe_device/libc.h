/* SPDX-License-Identifier: Apache-2.0 */
/* libc.h: the C library's own functions, behind those that files.c defines. */
#ifndef XE_DEVICE_LIBC_H
#define XE_DEVICE_LIBC_H

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef int (*xe_filter)(const struct dirent *);
typedef int (*xe_order)(const struct dirent **, const struct dirent **);

typedef struct {
  int (*open)(const char *, int, ...);
  int (*openat)(int, const char *, int, ...);
  ssize_t (*read)(int, void *, size_t);
  ssize_t (*pread)(int, void *, size_t, off_t);
  FILE *(*fopen)(const char *, const char *);
  DIR *(*opendir)(const char *);
  int (*scandir)(const char *, struct dirent ***, xe_filter, xe_order);
  int (*stat)(const char *, struct stat *);
  int (*lstat)(const char *, struct stat *);
  int (*fstat)(int, struct stat *);
  int (*statx)(int, const char *, int, unsigned, struct statx *);
  int (*access)(const char *, int);
  ssize_t (*readlink)(const char *, char *, size_t);
  char *(*realpath)(const char *, char *);
  int (*close)(int);
  int (*dup)(int);
  int (*dup2)(int, int);
  int (*dup3)(int, int, int);
  int (*fcntl)(int, int, ...);
  int (*ioctl)(int, unsigned long, ...);
  void *(*dlsym)(void *, const char *);
} xe_libc_functions;

extern xe_libc_functions xe_libc;

void xe_libc_find(void);

/* A system call without the C library's function, which files.c defines: -1 with errno if it fails. */
long xe_libc_syscall(long number, long a, long b, long c, long d, long e, long f);

/* By system calls: these are needed before the library's own can be found. */
void *xe_libc_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void xe_libc_munmap(void *address, size_t size);

#endif
