/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c: writes to host memory that the host does not see yet: the memory keeps what it had, the cache has the rest.
 */
#include "memory/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "memory/usm.h"
#include "simulate/quirk.h"

enum { LATE = 500000000, CAPACITY = 16 << 20 }; /* nanoseconds; bytes, as many as a large cache has */

typedef struct line {
  struct line *next; /* written before this one */
  char *target;
  size_t size;
  char written[];
} line;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static line *newest;
static _Atomic uint64_t due = CPU_NEVER;

/* With the lock held: the oldest first, as they may overlap. */
static void write_back(line *l) {
  if (l == NULL) return;
  write_back(l->next);
  memcpy(l->target, l->written, l->size);
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

/* What the command writes to memory that the driver allocated for the host; 0 bytes if it is somewhere else. */
static size_t written(const cpu_command *c, char **target) {
  size_t size = 0;
  if (c->op == CPU_OP_COPY) *target = c->copy.target, size = c->copy.size;
  if (c->op == CPU_OP_FILL) *target = c->fill.target, size = c->fill.size;
  if (size == 0 || size > CAPACITY) return 0;
  return cpu_heap_find(&cpu_host_heap, *target).block != NULL ? size : 0;
}

void cpu_cache_run(cpu_command *c) {
  char *target = NULL;
  size_t size = written(c, &target);
  cpu_cache_flush(); /* the command may read what is held back */
  line *l = size == 0 ? NULL : malloc(sizeof(*l) + size);
  char *before = l == NULL ? NULL : malloc(size);
  if (before == NULL) {
    free(l);
    cpu_command_run(c);
    return;
  }
  memcpy(before, target, size);
  cpu_command_run(c);
  memcpy(l->written, target, size);
  memcpy(target, before, size);
  free(before);
  l->target = target;
  l->size = size;
  pthread_mutex_lock(&lock);
  l->next = newest;
  newest = l;
  atomic_store(&due, cpu_wait_ns() + LATE);
  pthread_mutex_unlock(&lock);
}
