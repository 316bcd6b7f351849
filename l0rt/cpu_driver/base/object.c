/* SPDX-License-Identifier: Apache-2.0 */
/* object.c: the slots that objects live in, and the ledger of live objects that tests read. */
#include "base/object.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "base/dispatch.h"
#include "base/invariant.h"

struct cpu_slots cpu_slots;

enum {
  RANGE = 1u << 30,  /* 4 million objects; only addresses until they are used */
  STEP = 1u << 18,   /* made accessible at a time */
  QUARANTINE = 1024, /* freed slots that wait before reuse, so that a stale handle stays an error for a while */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t accessible;             /* bytes of the range that are mapped for use */
static uint32_t first_free, last_free;   /* slot numbers, counted from 1; a queue, oldest first */
static uint32_t free_count;
static _Atomic int64_t ledger[CPU_KINDS];

static const char *const names[CPU_KINDS] = {
    "driver",    "device", "context",          "queue",       "list",    "fence",  "event_pool",
    "event",     "point",  "physical",         "reservation", "usm",     "module", "kernel",
    "build_log", "graph",  "executable_graph", "image",       "sampler",
};

uint64_t l0rt_cpu_live(int kind);

static cpu_object *slot(uint32_t number) { return (cpu_object *)(cpu_slots.base + (uintptr_t)(number - 1) * CPU_SLOT); }

/* The oldest freed slot, when enough others wait behind it. */
static cpu_object *recycled(uint32_t at_least) {
  if (free_count <= at_least) return NULL;
  cpu_object *object = slot(first_free);
  first_free = object->next_free;
  free_count--;
  return object;
}

/* A slot never used before, or NULL. */
static cpu_object *fresh(void) {
  if (cpu_slots.base == 0) {
    void *range = mmap(NULL, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) return NULL;
    cpu_slots.base = (uintptr_t)range;
  }
  uintptr_t used = atomic_load_explicit(&cpu_slots.size, memory_order_relaxed);
  if (used == RANGE) return NULL;
  if (used == accessible) {
    if (mprotect((void *)(cpu_slots.base + used), STEP, PROT_READ | PROT_WRITE) != 0) return NULL;
    accessible += STEP;
  }
  cpu_object *object = (cpu_object *)(cpu_slots.base + used);
  memcpy(object->tables, cpu_dispatch, sizeof(object->tables));
  atomic_store_explicit(&cpu_slots.size, used + CPU_SLOT, memory_order_release);
  return object;
}

void *cpu_new(cpu_kind kind) {
  pthread_mutex_lock(&lock);
  cpu_object *object = recycled(QUARANTINE);
  if (object == NULL) object = fresh();
  if (object == NULL) object = recycled(0);
  pthread_mutex_unlock(&lock);
  if (object == NULL) return NULL;
  memset((char *)object + sizeof(cpu_object), 0, CPU_SLOT - sizeof(cpu_object));
  atomic_store_explicit(&object->live, (uint32_t)kind + 1, memory_order_release);
  cpu_count(kind, 1);
  return object;
}

bool cpu_retire(void *pointer) {
  cpu_object *object = pointer;
  uint32_t live = atomic_exchange_explicit(&object->live, 0, memory_order_acq_rel);
  if (live == 0) return false;
  CPU_INVARIANT(live <= CPU_KINDS);
  cpu_count((cpu_kind)(live - 1), -1);
  return true;
}

void cpu_delete(void *pointer) {
  if (cpu_retire(pointer)) cpu_recycle(pointer); /* two threads destroyed it at once: the first one wins */
}

void cpu_recycle(void *pointer) {
  cpu_object *object = pointer;
  uint32_t number = (uint32_t)(((uintptr_t)object - cpu_slots.base) / CPU_SLOT) + 1;
  pthread_mutex_lock(&lock);
  if (free_count++ == 0) {
    first_free = number;
  } else {
    slot(last_free)->next_free = number;
  }
  last_free = number;
  pthread_mutex_unlock(&lock);
}

void cpu_each(cpu_kind kind, void (*visit)(void *object, void *argument), void *argument) {
  if (l0rt_cpu_live((int)kind) == 0) return;
  uintptr_t size = atomic_load_explicit(&cpu_slots.size, memory_order_acquire);
  for (uintptr_t at = cpu_slots.base; at < cpu_slots.base + size; at += CPU_SLOT) {
    void *object = cpu_cast((const void *)at, kind);
    if (object != NULL) visit(object, argument);
  }
}

void cpu_count(cpu_kind kind, int change) { atomic_fetch_add_explicit(&ledger[kind], change, memory_order_relaxed); }

/* For tests: how many objects of a kind are alive. */
CPU_EXPORT uint64_t l0rt_cpu_live(int kind) {
  return kind < 0 || kind >= CPU_KINDS ? 0 : (uint64_t)atomic_load_explicit(&ledger[kind], memory_order_relaxed);
}

/* For tests: what a kind is called; NULL past the last one. */
CPU_EXPORT const char *l0rt_cpu_kind_name(int kind) { return kind < 0 || kind >= CPU_KINDS ? NULL : names[kind]; }
