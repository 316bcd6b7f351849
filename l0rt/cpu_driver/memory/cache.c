/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: writes to host memory that the host does not see yet: the memory keeps what it had, the cache has the rest.
 */
#include "memory/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "memory/heap.h"

enum { LATE = 500000000, CAPACITY = 16 << 20 }; /* nanoseconds; bytes, as many as a large cache has */

struct cpu_cache_line {
  struct cpu_cache_line *next; /* written before this one */
  char *target;
  size_t size;
  char bytes[]; /* that the target had, while the line is open; then those that were written */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cpu_cache_line *newest;
static _Atomic uint64_t due = CPU_NEVER;

/* With the lock held: the oldest first, as they may overlap. */
static void write_back(cpu_cache_line *l) {
  if (l == NULL) return;
  write_back(l->next);
  memcpy(l->target, l->bytes, l->size);
  free(l);
}

void cpu_cache_flush(void) {
  if (CPU_LIKELY(atomic_load(&due) == CPU_NEVER)) return;
  pthread_mutex_lock(&lock);
  write_back(newest);
  newest = NULL;
  atomic_store(&due, CPU_NEVER);
  pthread_mutex_unlock(&lock);
}

uint64_t cpu_cache_due(void) { return atomic_load(&due); }

cpu_cache_line *cpu_cache_open(void *target, size_t size) {
  cpu_cache_flush(); /* the command may read what is held back */
  if (size == 0 || size > CAPACITY || cpu_heap_find(&cpu_host_heap, target).block == NULL) return NULL;
  cpu_cache_line *l = malloc(sizeof(*l) + size);
  if (l == NULL) return NULL;
  *l = (cpu_cache_line){.target = target, .size = size};
  memcpy(l->bytes, target, size);
  return l;
}

void cpu_cache_close(cpu_cache_line *l) {
  for (size_t i = 0; i < l->size; i++) {
    char written = l->target[i];
    l->target[i] = l->bytes[i];
    l->bytes[i] = written;
  }
  pthread_mutex_lock(&lock);
  l->next = newest;
  newest = l;
  atomic_store(&due, cpu_wait_ns() + LATE);
  pthread_mutex_unlock(&lock);
}
