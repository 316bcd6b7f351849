/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver asks of files: the devices' nodes are memfds that a table knows, their folders are another tree.
 *
 * A call may be the process's first, from another library's constructor: `xe_libc` is read after `xe_device_start`, which
 * `node` and `xe_tree_redirect` call. */
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "buffer.h"
#include "ioctl.h"
#include "libc.h"
#include "report.h"
#include "sensors.h"
#include "tree.h"
#include "usage.h"

#define DESCRIPTORS 65536

#define ENERGY (XE_DEVICES + 1) /* a counter of energy, which the driver keeps open and reads again */
#define USAGE (XE_DEVICES + 2) /* a counter of usage */

static _Atomic uint8_t opened[DESCRIPTORS]; /* by file descriptor: one more than the device's index, or one of these */

static bool is(int fd, uint8_t kind) { return fd >= 0 && fd < DESCRIPTORS && opened[fd] == kind; }

xe_device *xe_files_device(int fd) {
  return fd >= 0 && fd < DESCRIPTORS && opened[fd] && opened[fd] <= XE_DEVICES ? &xe_devices[opened[fd] - 1] : NULL;
}

static int same_file(int fd, int duplicate) {
  if (fd >= 0 && fd < DESCRIPTORS && duplicate >= 0 && duplicate < DESCRIPTORS) opened[duplicate] = opened[fd];
  return duplicate;
}

static int ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && !strcmp(text + length - tail, end);
}

/* The device whose node this path names. */
static xe_device *node(const char *path) {
  xe_device_start();
  if (!path || strncmp(path, "/dev/dri/", 9)) return NULL;
  for (int i = 0; i < xe_device_number; i++) {
    xe_device *device = &xe_devices[i];
    char render[32], card[32], by_path[48];
    snprintf(render, sizeof render, "/renderD%d", device->render);
    snprintf(card, sizeof card, "/card%d", device->index);
    snprintf(by_path, sizeof by_path, "pci-%s-", device->address);
    if (ends_with(path, render) || ends_with(path, card) || strstr(path, by_path)) return device;
  }
  return NULL;
}

static int open_node(const xe_device *device, int flags) {
  int fd = memfd_create("xe_device", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
  if (fd >= DESCRIPTORS) {
    xe_libc.close(fd);
    errno = EMFILE;
    return -1;
  }
  if (fd >= 0) opened[fd] = 1 + device->index;
  xe_report_log("open device %d: fd %d", device->index, fd);
  return fd;
}

/* Opens a file that is no node. */
static int open_other(const char *path, int flags, mode_t mode) {
  char other[PATH_MAX];
  int fd = xe_libc.open(xe_tree_redirect(path, other), flags, mode);
  if (fd >= 0 && fd < DESCRIPTORS && xe_sensors_counts_energy(path)) opened[fd] = ENERGY;
  return fd;
}

/* The mode that open has as its third argument if it creates a file. */
#define MODE(mode)                                                                                                     \
  mode_t mode = 0;                                                                                                     \
  if (flags & (O_CREAT | O_TMPFILE)) {                                                                                 \
    va_list arguments;                                                                                                 \
    va_start(arguments, flags);                                                                                        \
    mode = va_arg(arguments, unsigned int);                                                                            \
    va_end(arguments);                                                                                                 \
  }

XE_EXPORT int open(const char *path, int flags, ...) {
  MODE(mode)
  xe_device *device = node(path);
  return device ? open_node(device, flags) : open_other(path, flags, mode);
}

XE_EXPORT int open64(const char *path, int flags, ...) {
  MODE(mode)
  return open(path, flags, mode);
}

XE_EXPORT int openat(int folder, const char *path, int flags, ...) {
  MODE(mode)
  char other[PATH_MAX];
  xe_device *device = node(path);
  return device ? open_node(device, flags) : xe_libc.openat(folder, xe_tree_redirect(path, other), flags, mode);
}

XE_EXPORT int openat64(int folder, const char *path, int flags, ...) {
  MODE(mode)
  return openat(folder, path, flags, mode);
}

XE_EXPORT ssize_t pread(int fd, void *bytes, size_t size, off_t offset) {
  xe_device_start();
  if (!is(fd, ENERGY)) return xe_libc.pread(fd, bytes, size, offset);
  char text[32];
  size_t length = snprintf(text, sizeof text, "%llu\n", (unsigned long long)xe_sensors_energy());
  if ((size_t)offset >= length) return 0;
  if (size > length - offset) size = length - offset;
  memcpy(bytes, text + offset, size);
  return size;
}

XE_EXPORT ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset) { return pread(fd, bytes, size, offset); }

XE_EXPORT FILE *fopen(const char *path, const char *mode) {
  char other[PATH_MAX];
  path = xe_tree_redirect(path, other);
  return xe_libc.fopen(path, mode);
}

XE_EXPORT FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }

XE_EXPORT DIR *opendir(const char *path) {
  char other[PATH_MAX];
  path = xe_tree_redirect(path, other);
  return xe_libc.opendir(path);
}

XE_EXPORT int scandir(const char *path, struct dirent ***names, xe_filter filter, xe_order order) {
  char other[PATH_MAX];
  path = xe_tree_redirect(path, other);
  return xe_libc.scandir(path, names, filter, order);
}

XE_EXPORT int access(const char *path, int mode) {
  char other[PATH_MAX];
  path = xe_tree_redirect(path, other);
  return xe_libc.access(path, mode);
}

/* The driver asks Linux which node it has opened. */
static const xe_device *open_file(const char *path) {
  int fd = -1, process = 0, end = 0;
  if (sscanf(path, "/proc/self/fd/%d%n", &fd, &end) < 1) sscanf(path, "/proc/%d/fd/%d%n", &process, &fd, &end);
  return end && !path[end] && (!process || process == getpid()) ? xe_files_device(fd) : NULL;
}

XE_EXPORT ssize_t readlink(const char *path, char *target, size_t size) {
  char other[PATH_MAX];
  const xe_device *device = open_file(path);
  if (device) {
    size_t length = snprintf(other, sizeof other, "/dev/dri/renderD%d", device->render);
    memcpy(target, other, length < size ? length : size);
    return length < size ? length : size;
  }
  path = xe_tree_redirect(path, other);
  return xe_libc.readlink(path, target, size);
}

XE_EXPORT char *realpath(const char *path, char *resolved) {
  char other[PATH_MAX];
  path = xe_tree_redirect(path, other);
  return xe_tree_restore(xe_libc.realpath(path, resolved));
}

XE_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t size) {
  (void)size;
  return realpath(path, resolved);
}

/* A node's file is a character device of the kernel's graphics drivers. */
static int as_node(const xe_device *device, int result, struct stat *status) {
  if (device && !result) {
    status->st_mode = S_IFCHR | 0660;
    status->st_rdev = makedev(226, device->render);
  }
  return result;
}

XE_EXPORT int stat(const char *path, struct stat *status) {
  char other[PATH_MAX];
  const xe_device *device = node(path);
  path = xe_tree_redirect(path, other);
  return as_node(device, xe_libc.stat(path, status), status);
}

XE_EXPORT int stat64(const char *path, struct stat64 *status) { return stat(path, (struct stat *)status); }

XE_EXPORT int lstat(const char *path, struct stat *status) {
  char other[PATH_MAX];
  path = xe_tree_redirect(path, other);
  return xe_libc.lstat(path, status);
}

XE_EXPORT int lstat64(const char *path, struct stat64 *status) { return lstat(path, (struct stat *)status); }

XE_EXPORT int statx(int folder, const char *path, int flags, unsigned mask, struct statx *status) {
  char other[PATH_MAX];
  const xe_device *device = node(path);
  path = xe_tree_redirect(path, other);
  int result = xe_libc.statx(folder, path, flags, mask, status);
  if (device && !result && !(flags & AT_SYMLINK_NOFOLLOW)) {
    status->stx_mode = S_IFCHR | 0660;
    status->stx_rdev_major = 226;
    status->stx_rdev_minor = device->render;
  }
  return result;
}

XE_EXPORT int fstat(int fd, struct stat *status) {
  xe_device_start();
  return as_node(xe_files_device(fd), xe_libc.fstat(fd, status), status);
}

XE_EXPORT int fstat64(int fd, struct stat64 *status) { return fstat(fd, (struct stat *)status); }

XE_EXPORT ssize_t read(int fd, void *bytes, size_t size) {
  xe_device_start();
  return is(fd, USAGE) ? xe_usage_read(fd, bytes, size) : xe_libc.read(fd, bytes, size);
}

XE_EXPORT int close(int fd) {
  xe_device_start();
  if (is(fd, USAGE)) xe_usage_close(fd);
  if (fd >= 0 && fd < DESCRIPTORS) opened[fd] = 0;
  return xe_libc.close(fd);
}

XE_EXPORT int dup(int fd) {
  xe_device_start();
  return same_file(fd, xe_libc.dup(fd));
}

XE_EXPORT int dup2(int fd, int duplicate) {
  xe_device_start();
  return same_file(fd, xe_libc.dup2(fd, duplicate));
}

XE_EXPORT int dup3(int fd, int duplicate, int flags) {
  xe_device_start();
  return same_file(fd, xe_libc.dup3(fd, duplicate, flags));
}

static int control(int fd, int command, void *argument) {
  xe_device_start();
  int result = xe_libc.fcntl(fd, command, argument);
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? same_file(fd, result) : result;
}

#define ARGUMENT(argument, last)                                                                                       \
  va_list arguments;                                                                                                   \
  va_start(arguments, last);                                                                                           \
  void *argument = va_arg(arguments, void *);                                                                          \
  va_end(arguments);

XE_EXPORT int fcntl(int fd, int command, ...) {
  ARGUMENT(argument, command)
  return control(fd, command, argument);
}

XE_EXPORT int fcntl64(int fd, int command, ...) {
  ARGUMENT(argument, command)
  return control(fd, command, argument);
}

XE_EXPORT int ioctl(int fd, unsigned long request, ...) {
  ARGUMENT(argument, request)
  xe_device_start();
  xe_device *device = xe_files_device(fd);
  return device ? xe_ioctl(device, request, argument) : xe_libc.ioctl(fd, request, argument);
}

XE_EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
  xe_device *device = xe_files_device(fd);
  return device ? xe_buffer_map(device, address, size, protection, flags, offset)
                : xe_libc_mmap(address, size, protection, flags, fd, offset);
}

XE_EXPORT void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset) {
  return mmap(address, size, protection, flags, fd, offset);
}

/* The C library has no function for perf_event_open. */
XE_EXPORT long syscall(long number, ...) {
  long values[6];
  va_list arguments;
  va_start(arguments, number);
  for (int i = 0; i < 6; i++) values[i] = va_arg(arguments, long);
  va_end(arguments);
  if (number != SYS_perf_event_open || !xe_usage_has((const void *)values[0]))
    return xe_libc_syscall(number, values[0], values[1], values[2], values[3], values[4], values[5]);
  int fd = xe_usage_open((const void *)values[0], values[3]);
  if (fd >= 0 && fd < DESCRIPTORS) opened[fd] = USAGE;
  return fd;
}

/* Without the security module Yama, Linux answers PR_SET_PTRACER with EINVAL, and the driver takes pidfd_getfd for
 * missing: it then sends handles through a socket, which its event pools do not serve. XE_DEVICE_YAMA answers as a
 * kernel that has Yama. */
XE_EXPORT int prctl(int operation, ...) {
  unsigned long values[4];
  va_list arguments;
  va_start(arguments, operation);
  for (int i = 0; i < 4; i++) values[i] = va_arg(arguments, unsigned long);
  va_end(arguments);
  if (operation == PR_SET_PTRACER && getenv("XE_DEVICE_YAMA")) return 0;
  return (int)xe_libc_syscall(SYS_prctl, operation, values[0], values[1], values[2], values[3], 0);
}
