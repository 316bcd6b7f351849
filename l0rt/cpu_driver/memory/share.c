/* SPDX-License-Identifier: Apache-2.0 */
/* share.c: making, describing and finding shared files. */
#include "memory/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simulate/quirk.h"

enum { MAGIC = 0x7430726c, FIRST = STDERR_FILENO + 1 };

static const char name[] = "l0rt-shared-memory", name_of_host[] = "l0rt-shared-host-memory";

/* The seals are permanent: no process can shorten the file, which would crash another process that has it mapped. */
enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL };

int cpu_share_copy(int file) { return fcntl(file, F_DUPFD_CLOEXEC, FIRST); }

static int above_the_first(int file) {
  if (file < 0 || file >= FIRST) return file;
  int copy = cpu_share_copy(file);
  close(file);
  return copy;
}

int cpu_share_make(size_t size, bool on_host) {
  int file = above_the_first(memfd_create(on_host ? name_of_host : name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file >= 0 && ftruncate(file, (off_t)size) == 0 && fcntl(file, F_ADD_SEALS, SEALS) == 0) return file;
  if (file >= 0) close(file);
  return -1;
}

bool cpu_share_is_on_host(int file) {
  char path[64], target[128];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
  ssize_t length = readlink(path, target, sizeof(target) - 1);
  if (length < 0) return false;
  target[length] = '\0';
  return strstr(target, name_of_host) != NULL;
}

/* Of this user, of a fixed length, and writable: no other file is ever taken for a shared one. */
static bool is_shared(int file, struct stat *status) {
  int seals = fcntl(file, F_GET_SEALS);
  return seals >= 0 && (seals & SEALS) == SEALS && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) == 0 &&
         fstat(file, status) == 0 && S_ISREG(status->st_mode) && status->st_nlink == 0 && status->st_uid == geteuid();
}

enum { PIECE = 64 << 10 };

static bool is_zero(const char *bytes, size_t size) { return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0; }

/* Most of a large allocation may never have been touched. */
bool cpu_share_fill(int file, const char *bytes, size_t size) {
  for (size_t done = 0; done < size;) {
    size_t piece = size - done < PIECE ? size - done : PIECE;
    ssize_t written = (ssize_t)piece;
    if (!is_zero(bytes + done, piece)) written = pwrite(file, bytes + done, piece, (off_t)done);
    if (written == 0 || (written < 0 && errno != EINTR)) return false;
    if (written > 0) done += (size_t)written;
  }
  return true;
}

size_t cpu_share_size(int file) {
  struct stat status;
  return is_shared(file, &status) ? (size_t)status.st_size : 0;
}

bool cpu_share_export(cpu_kind kind, int file, size_t size, uint32_t flags, uint32_t count, char *handle) {
  struct stat status;
  if (fstat(file, &status) != 0) return false;
  cpu_share_record record = {file, MAGIC, kind, getpid(), (uint64_t)status.st_ino, size, flags, count};
  memset(handle, 0, ZE_MAX_IPC_HANDLE_SIZE);
  memcpy(handle, &record, sizeof(record));
  return true;
}

static bool is_right(int file, const cpu_share_record *record, bool any) {
  struct stat status;
  return is_shared(file, &status) && (any || (uint64_t)status.st_ino == record->inode) &&
         (uint64_t)status.st_size == record->size;
}

/* As if the number meant the same file here as in the process that it comes from. `any` file will do for that, or only
 * the right one. */
static int own_file(const cpu_share_record *record, bool any) {
  int file = cpu_share_copy(record->file);
  if (file >= 0 && is_right(file, record, any)) return file;
  if (file >= 0) close(file);
  return -1;
}

bool cpu_share_describe(cpu_kind kind, const char *handle, cpu_share_record *record) {
  memcpy(record, handle, sizeof(*record));
  return record->magic == MAGIC && record->kind == kind && record->size != 0;
}

int cpu_share_import(cpu_kind kind, const char *handle, cpu_share_record *record) {
  if (!cpu_share_describe(kind, handle, record)) return -1;
  if (kind == CPU_EVENT_POOL && cpu_has_quirk(CPU_QUIRK_RAW_EVENT_HANDLES)) return own_file(record, true);
  if (kind == CPU_USM && cpu_has_quirk(CPU_QUIRK_RAW_MEMORY_HANDLES)) return own_file(record, true);
  int sent = own_file(record, false); /* it came with the handle, or is this process's own */
  if (sent >= 0) return sent;
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/fd/%d", record->process, record->file);
  int file = above_the_first(open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file >= 0 && is_right(file, record, false)) return file;
  if (file >= 0) close(file);
  return -1;
}
