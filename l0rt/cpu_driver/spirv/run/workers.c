/* SPDX-License-Identifier: Apache-2.0 */
/* workers.c: threads that launches share. They sleep until there is work. A thread that wakes up after the caller has
 * finished the work does not begin. */
#include "spirv/run/workers.h"

#include <pthread.h>
#include <stdlib.h>

struct spirv_workers {
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  uint32_t count;
  bool busy, closing;
  _Atomic uint64_t used; /* how many times work was begun */
  uint64_t wanted;  /* how many threads may still begin */
  uint32_t working; /* how many threads have begun, and not ended */
  void (*work)(void *);
  void *context;
  pthread_t threads[];
};

static void *thread(void *context) {
  spirv_workers *w = context;
  pthread_mutex_lock(&w->lock);
  while (!w->closing) {
    if (w->wanted == 0) {
      pthread_cond_wait(&w->wake, &w->lock);
      continue;
    }
    w->wanted--;
    w->working++;
    pthread_mutex_unlock(&w->lock);
    w->work(w->context);
    pthread_mutex_lock(&w->lock);
    if (--w->working == 0) pthread_cond_signal(&w->done);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

spirv_workers *spirv_workers_new(uint32_t count) {
  spirv_workers *w = calloc(1, sizeof(*w) + count * sizeof(pthread_t));
  if (w == NULL) return NULL;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->wake, NULL);
  pthread_cond_init(&w->done, NULL);
  while (w->count < count && pthread_create(&w->threads[w->count], NULL, thread, w) == 0) w->count++;
  return w;
}

void spirv_workers_free(spirv_workers *w) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->lock);
  w->closing = true;
  pthread_cond_broadcast(&w->wake);
  pthread_mutex_unlock(&w->lock);
  for (uint32_t i = 0; i < w->count; i++) pthread_join(w->threads[i], NULL);
  pthread_cond_destroy(&w->wake);
  pthread_cond_destroy(&w->done);
  pthread_mutex_destroy(&w->lock);
  free(w);
}

uint64_t spirv_workers_used(const spirv_workers *w) { return atomic_load_explicit(&w->used, memory_order_relaxed); }

bool spirv_workers_begin(spirv_workers *w, void (*work)(void *), void *context, uint64_t most) {
  pthread_mutex_lock(&w->lock);
  bool taken = !w->busy && w->count != 0;
  if (taken) {
    w->busy = true;
    atomic_fetch_add_explicit(&w->used, 1, memory_order_relaxed);
    w->work = work;
    w->context = context;
    w->wanted = most < w->count ? most : w->count;
    if (w->wanted == 1) pthread_cond_signal(&w->wake);
    else pthread_cond_broadcast(&w->wake);
  }
  pthread_mutex_unlock(&w->lock);
  return taken;
}

void spirv_workers_end(spirv_workers *w) {
  pthread_mutex_lock(&w->lock);
  w->wanted = 0;
  while (w->working != 0) pthread_cond_wait(&w->done, &w->lock);
  w->busy = false;
  pthread_mutex_unlock(&w->lock);
}
