/* share.c: making, describing and finding shared files. */
#include "share.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAGIC = 0x7430726c };

int cpu_share_make(size_t size) {
  int file = memfd_create("l0rt-shared-memory", MFD_CLOEXEC);
  if (file >= 0 && ftruncate(file, (off_t)size) == 0) return file;
  if (file >= 0) close(file);
  return -1;
}

/* Memory files are sealable, and nothing else is: so no other file is ever taken for one. */
size_t cpu_share_size(int file) {
  struct stat status;
  if (fcntl(file, F_GET_SEALS) < 0 || fstat(file, &status) != 0) return 0;
  return (size_t)status.st_size;
}

bool cpu_share_export(cpu_kind kind, int file, size_t size, uint32_t flags, uint32_t count, char *handle) {
  struct stat status;
  if (fstat(file, &status) != 0) return false;
  cpu_ticket ticket = {MAGIC, kind, getpid(), file, (uint64_t)status.st_ino, size, flags, count};
  memset(handle, 0, ZE_MAX_IPC_HANDLE_SIZE);
  memcpy(handle, &ticket, sizeof(ticket));
  return true;
}

int cpu_share_import(cpu_kind kind, const char *handle, cpu_ticket *ticket) {
  memcpy(ticket, handle, sizeof(*ticket));
  if (ticket->magic != MAGIC || ticket->kind != kind || ticket->size == 0) return -1;
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/fd/%d", ticket->process, ticket->file);
  int file = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status;
  if (file >= 0 && fstat(file, &status) == 0 && (uint64_t)status.st_ino == ticket->inode && S_ISREG(status.st_mode) &&
      (uint64_t)status.st_size >= ticket->size)
    return file;
  if (file >= 0) close(file);
  return -1;
}
