/* SPDX-License-Identifier: Apache-2.0 */
/* usm_range.c: ranges of mapped memory between processes. A handle names a file, which lists what is mapped one after
 * another: each in the file of a physical memory. The file lasts until the handle is given back. */
#include "memory/usm_range.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "simulate/quirk.h"
#include "sync/failure.h"

enum { RANGE = 1, PAGE = 4096 };

typedef struct {
  char handle[ZE_MAX_IPC_HANDLE_SIZE]; /* of the physical memory */
  int64_t offset;                      /* in its file */
  uint64_t size;
} part;

typedef struct range {
  struct range *next;
  const cpu_context *context;
  int file;
  uint64_t inode;
} range;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range *ranges;

static void end(range *r) {
  close(r->file);
  free(r);
}

static bool keep(const cpu_context *context, int file) {
  struct stat status;
  range *r = malloc(sizeof(*r));
  if (r == NULL || fstat(file, &status) != 0) {
    free(r);
    return false;
  }
  pthread_mutex_lock(&lock);
  *r = (range){.next = ranges, .context = context, .file = file, .inode = (uint64_t)status.st_ino};
  ranges = r;
  pthread_mutex_unlock(&lock);
  return true;
}

void cpu_ranges_end(const cpu_context *context) {
  pthread_mutex_lock(&lock);
  for (range **at = &ranges; *at != NULL;) {
    range *r = *at;
    if (r->context != context) {
      at = &r->next;
      continue;
    }
    *at = r->next;
    end(r);
  }
  pthread_mutex_unlock(&lock);
}

void cpu_range_put(const cpu_share_record *record) {
  if (!cpu_is_range(record) || record->process != getpid()) return;
  pthread_mutex_lock(&lock);
  range **at = &ranges;
  while (*at != NULL && ((*at)->file != record->file || (*at)->inode != record->inode)) at = &(*at)->next;
  range *r = *at;
  if (r != NULL) {
    *at = r->next;
    end(r);
  }
  pthread_mutex_unlock(&lock);
}

/* What is mapped at an address, in a file of its own from now on. */
static ze_result_t describe(cpu_context *context, uintptr_t at, uintptr_t limit, part *p) {
  cpu_mapping mapping;
  CPU_REFUSE_IF(cpu_usm_find((void *)at).block != NULL, ERROR_INVALID_ARGUMENT);
  CPU_REFUSE_IF(!cpu_reservation_find(context, (void *)at, &mapping), ERROR_ADDRESS_NOT_FOUND);
  CPU_REFUSE_IF(mapping.on_host, ERROR_INVALID_ARGUMENT);
  cpu_physical *physical = mapping.physical;
  if (!cpu_physical_share(physical) || !cpu_reservation_find(context, (void *)at, &mapping) ||
      !cpu_share_export(CPU_USM, physical->file, physical->size, 0, 1, p->handle))
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  uintptr_t end_of_part = mapping.base + mapping.size;
  p->offset = mapping.offset + (int64_t)(at - mapping.base);
  p->size = (end_of_part < limit ? end_of_part : limit) - at;
  return ZE_RESULT_SUCCESS;
}

/* Writes a list of `count` parts, all of which there are, into a new file. */
static int write_list(const part *parts, uint32_t count) {
  int file = cpu_share_make(count * sizeof(*parts), false);
  if (file >= 0 && cpu_share_fill(file, (const char *)parts, count * sizeof(*parts))) return file;
  if (file >= 0) close(file);
  return -1;
}

ze_result_t cpu_range_export(cpu_context *context, const void *pointer, size_t size, ze_ipc_mem_handle_t *ipc) {
  uintptr_t at = (uintptr_t)pointer, limit = at + size;
  CPU_REFUSE_IF(size == 0, ERROR_INVALID_SIZE);
  CPU_REFUSE_IF(limit < at, ERROR_ADDRESS_NOT_FOUND);
  CPU_REFUSE_IF(at % PAGE != 0, ERROR_UNSUPPORTED_ALIGNMENT);
  part *parts = NULL;
  uint32_t count = 0;
  ze_result_t result = ZE_RESULT_SUCCESS;
  while (at < limit && result == ZE_RESULT_SUCCESS) {
    part *more = realloc(parts, (count + 1) * sizeof(*parts));
    if (more == NULL) result = CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
    else {
      parts = more;
      memset(&parts[count], 0, sizeof(*parts));
      result = describe(context, at, limit, &parts[count]);
      at += parts[count++].size;
    }
  }
  int file = result == ZE_RESULT_SUCCESS ? write_list(parts, count) : -1;
  if (file >= 0 &&
      (!cpu_share_export(CPU_USM, file, count * sizeof(*parts), RANGE, count, ipc->data) || !keep(context, file))) {
    close(file);
    file = -1;
  }
  free(parts);
  CPU_REFUSE_IF(result == ZE_RESULT_SUCCESS && file < 0, ERROR_OUT_OF_HOST_MEMORY);
  return result;
}

/* Maps each part behind the one before. The mapping outlives the file's descriptor. */
static bool map_parts(cpu_found found, const part *parts, uint32_t count) {
  bool good = true;
  size_t at = 0;
  for (uint32_t i = 0; i < count && good; i++) {
    cpu_share_record record;
    int file = cpu_share_import(CPU_USM, parts[i].handle, &record);
    good = file >= 0 && parts[i].offset >= 0 && (uint64_t)parts[i].offset <= record.size &&
           parts[i].size <= record.size - (uint64_t)parts[i].offset &&
           cpu_heap_map_part(&cpu_device_heap, found, at, parts[i].size, file, parts[i].offset);
    if (file >= 0) close(file);
    at += parts[i].size;
  }
  return good;
}

/* How many bytes the parts have; 0 for a list that makes no sense. */
static size_t total(const part *parts, uint32_t count) {
  size_t size = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (parts[i].size == 0 || parts[i].size > CPU_VIRTUAL_MAX || (i + 1 < count && parts[i].size % PAGE != 0)) return 0;
    size += parts[i].size;
    if (size > CPU_VIRTUAL_MAX) return 0;
  }
  return size;
}

ze_result_t cpu_range_open(cpu_context *context, cpu_device *device, const cpu_share_record *record, int file,
                           void **out) {
  bool full = false, mapped = false;
  part *parts = record->size == record->count * sizeof(*parts) ? malloc(record->size) : NULL;
  cpu_found found = {NULL, 0};
  if (parts != NULL && pread(file, parts, record->size, 0) == (ssize_t)record->size) {
    size_t size = total(parts, record->count);
    if (size != 0) found = cpu_usm_add(context, device, ZE_MEMORY_TYPE_DEVICE, size, 0);
    full = size != 0 && found.block == NULL;
  }
  if (found.block == NULL) {
    close(file);
  } else {
    found.block->origin = CPU_BLOCK_OPENED;
    found.block->file = file;
    if (map_parts(found, parts, record->count)) {
      *out = (void *)found.base;
      mapped = true;
    } else {
      cpu_usm_end(found, CPU_BLOCK_LIVE);
    }
  }
  free(parts);
  CPU_REFUSE_IF(full, ERROR_OUT_OF_HOST_MEMORY);
  if (!mapped) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the handle does not describe memory that is there");
  return ZE_RESULT_SUCCESS;
}
