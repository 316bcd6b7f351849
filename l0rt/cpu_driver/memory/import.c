/* SPDX-License-Identifier: Apache-2.0 */
/* import.c: imported memory: a list of ranges. Engines reach all memory of the program, so there is nothing to map; what
 * the list is for is to know which pointers were imported, and to refuse what a device would refuse. */
#include "memory/import.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/driver.h"
#include "base/gate.h"
#include "memory/heap.h"
#include "simulate/quirk.h"

enum { MOST_CACHED = 256 << 20 }; /* bytes */

typedef struct cpu_import {
  struct cpu_import *next;
  const cpu_context *context; /* borrowed: its end frees the import; NULL: copies of every context reach it */
  uintptr_t base;
  size_t size;
  uint64_t id;
  bool cached; /* freed, and kept for an allocation */
} cpu_import;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cpu_import *imports;
static _Atomic uint32_t count; /* so that a query without imports needs no lock */

enum { POPULATE_READ = 22, AT_ONCE = 4096 }; /* MADV_POPULATE_READ, which older headers lack */

/* Can every page be read? Linux before 5.14 says only which pages are mapped. */
static bool is_readable(uintptr_t base, size_t size) {
  if (madvise((void *)base, size, POPULATE_READ) == 0) return true;
  if (errno != EINVAL || madvise((void *)base, 0, POPULATE_READ) == 0) return false;
  unsigned char present[AT_ONCE];
  for (size_t at = 0, part; at < size; at += part) {
    part = size - at < (size_t)AT_ONCE * CPU_IMPORT_PAGE ? size - at : (size_t)AT_ONCE * CPU_IMPORT_PAGE;
    if (mincore((void *)(base + at), part, present) != 0) return false;
  }
  return true;
}

/* Page tables are shared by all contexts: no page is imported twice, and none that an allocation has or can have. */
static bool overlaps(uintptr_t base, size_t size) {
  for (const cpu_import *i = imports; i != NULL; i = i->next)
    if (base < i->base + i->size && i->base < base + size) return true;
  if (cpu_heap_overlaps(&cpu_device_heap, base, size) || cpu_heap_overlaps(&cpu_host_heap, base, size)) return true;
  bool is_reserved = cpu_reservation_holds((void *)(base + size - 1));
  for (size_t at = 0; at < size && !is_reserved; at += CPU_VIRTUAL_SMALL)
    is_reserved = cpu_reservation_holds((void *)(base + at));
  return is_reserved;
}

static ze_result_t add(const cpu_context *context, uintptr_t base, size_t size) {
  cpu_import *import = malloc(sizeof(*import));
  CPU_REFUSE_IF(import == NULL, ERROR_OUT_OF_HOST_MEMORY);
  pthread_mutex_lock(&lock);
  if (overlaps(base, size)) {
    pthread_mutex_unlock(&lock);
    free(import);
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the memory overlaps what is imported or allocated already");
  }
  static uint64_t last_id = (uint64_t)1 << 48; /* apart from those of allocations */
  *import = (cpu_import){.next = imports, .context = context, .base = base, .size = size, .id = ++last_id};
  imports = import;
  atomic_fetch_add(&count, 1);
  pthread_mutex_unlock(&lock);
  cpu_count(CPU_USM, 1);
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_import_add(cpu_context *context, const ze_external_memmap_sysmem_ext_desc_t *desc, size_t size,
                           void **out) {
  uintptr_t base = (uintptr_t)desc->pSystemMemory;
  CPU_REFUSE_IF(base == 0, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(base % CPU_IMPORT_PAGE != 0, ERROR_UNSUPPORTED_ALIGNMENT);
  CPU_REFUSE_IF(size == 0 || size % CPU_IMPORT_PAGE != 0 || desc->size != size || base + size < base,
                ERROR_UNSUPPORTED_SIZE);
  if (!is_readable(base, size)) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "there is no memory there, or not so much");
  ze_result_t result = add(context, base, size);
  if (result == ZE_RESULT_SUCCESS) *out = desc->pSystemMemory;
  return result;
}

ze_result_t zexDriverImportExternalPointer(ze_driver_handle_t handle, void *pointer, size_t size) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  uintptr_t base = (uintptr_t)pointer;
  CPU_REFUSE_IF(base == 0 || size == 0 || base + size < base, ERROR_INVALID_ARGUMENT);
  ze_result_t result = add(NULL, base, size);
  return result == ZE_RESULT_ERROR_INVALID_ARGUMENT
             ? CPU_REFUSED(ERROR_OVERLAPPING_REGIONS, "the memory is imported or allocated already")
             : result;
}

bool cpu_import_find(const cpu_context *context, const void *pointer, cpu_mapping *mapping) {
  bool found = false;
  if (CPU_LIKELY(atomic_load_explicit(&count, memory_order_relaxed) == 0)) return false;
  pthread_mutex_lock(&lock);
  for (const cpu_import *i = imports; i != NULL && !found; i = i->next) {
    found = i->context != NULL && !i->cached && (context == NULL || i->context == context) &&
            (uintptr_t)pointer - i->base < i->size;
    if (found) *mapping = (cpu_mapping){.base = i->base, .size = i->size, .id = i->id, .on_host = true};
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static uint32_t end_those(const cpu_context *context, const void *pointer) {
  uint32_t ended = 0, kept = 0;
  pthread_mutex_lock(&lock);
  for (cpu_import **link = &imports; *link != NULL;) {
    cpu_import *import = *link;
    if (import->context != context || (pointer != NULL && (import->cached || import->base != (uintptr_t)pointer))) {
      link = &import->next;
    } else if (pointer != NULL && context != NULL && import->size <= MOST_CACHED &&
               cpu_has_quirk(CPU_QUIRK_CACHED_IMPORTS)) {
      import->cached = true;
      kept++;
      link = &import->next;
    } else {
      *link = import->next;
      free(import);
      ended++;
    }
  }
  atomic_fetch_sub(&count, ended);
  pthread_mutex_unlock(&lock);
  for (uint32_t i = 0; i < ended; i++) cpu_count(CPU_USM, -1);
  return ended + kept;
}

void *cpu_import_reuse(const cpu_context *context, size_t size) {
  void *found = NULL;
  pthread_mutex_lock(&lock);
  for (cpu_import *i = imports; i != NULL && found == NULL; i = i->next) {
    if (!i->cached || i->context != context || i->size < size || i->size / 2 > size) continue;
    i->cached = false;
    found = (void *)i->base;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

ze_result_t zexDriverReleaseImportedPointer(ze_driver_handle_t handle, void *pointer) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_driver_cast(handle) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL || end_those(NULL, pointer) == 0, ERROR_INVALID_ARGUMENT);
  return ZE_RESULT_SUCCESS;
}

bool cpu_import_end(const cpu_context *context, const void *pointer) {
  return atomic_load_explicit(&count, memory_order_relaxed) != 0 && end_those(context, pointer) != 0;
}

void cpu_import_end_all(const cpu_context *context) { end_those(context, NULL); }
