/* SPDX-License-Identifier: Apache-2.0 */
/* import.c: imported memory: a list of ranges. Engines reach all memory of the program, so there is nothing to map; what
 * the list is for is to know which pointers were imported, and to refuse what a device would refuse. */
#include "import.h"

#include <stdlib.h>

#include "failure.h"
#include "usm.h"

typedef struct cpu_import {
  struct cpu_import *next;
  const cpu_context *context; /* borrowed: its end frees the import */
  uintptr_t base;
  size_t size;
  uint64_t id;
} cpu_import;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cpu_import *imports;
static _Atomic uint32_t count; /* so that a query without imports needs no lock */

/* Page tables are shared by all contexts: no page is imported twice, and none that is an allocation's. */
static bool overlaps(uintptr_t base, size_t size) {
  for (const cpu_import *i = imports; i != NULL; i = i->next)
    if (base < i->base + i->size && i->base < base + size) return true;
  return cpu_usm_find((void *)base).block != NULL || cpu_usm_find((void *)(base + size - 1)).block != NULL;
}

ze_result_t cpu_import_add(cpu_context *context, const ze_external_memmap_sysmem_ext_desc_t *desc, size_t size,
                           void **out) {
  uintptr_t base = (uintptr_t)desc->pSystemMemory;
  CPU_REFUSE_IF(base == 0, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(base % CPU_IMPORT_PAGE != 0, ERROR_UNSUPPORTED_ALIGNMENT);
  CPU_REFUSE_IF(size == 0 || size % CPU_IMPORT_PAGE != 0 || desc->size != size || base + size < base,
                ERROR_UNSUPPORTED_SIZE);
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
  *out = desc->pSystemMemory;
  return ZE_RESULT_SUCCESS;
}

bool cpu_import_find(const cpu_context *context, const void *pointer, cpu_mapping *mapping) {
  bool found = false;
  if (CPU_LIKELY(atomic_load_explicit(&count, memory_order_relaxed) == 0)) return false;
  pthread_mutex_lock(&lock);
  for (const cpu_import *i = imports; i != NULL && !found; i = i->next) {
    found = (context == NULL || i->context == context) && (uintptr_t)pointer - i->base < i->size;
    if (found) *mapping = (cpu_mapping){.base = i->base, .size = i->size, .id = i->id, .on_host = true};
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static uint32_t end_those(const cpu_context *context, const void *pointer) {
  uint32_t ended = 0;
  pthread_mutex_lock(&lock);
  for (cpu_import **link = &imports; *link != NULL;) {
    cpu_import *import = *link;
    if (import->context == context && (pointer == NULL || import->base == (uintptr_t)pointer)) {
      *link = import->next;
      free(import);
      ended++;
    } else {
      link = &import->next;
    }
  }
  atomic_fetch_sub(&count, ended);
  pthread_mutex_unlock(&lock);
  for (uint32_t i = 0; i < ended; i++) cpu_count(CPU_USM, -1);
  return ended;
}

bool cpu_import_end(const cpu_context *context, const void *pointer) {
  return atomic_load_explicit(&count, memory_order_relaxed) != 0 && end_those(context, pointer) != 0;
}

void cpu_import_end_all(const cpu_context *context) { end_those(context, NULL); }
