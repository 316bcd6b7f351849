/* SPDX-License-Identifier: Apache-2.0 */
/* atomics.h: the C11 atomics that the allocator needs, and a spin lock that can be closed permanently. */
#ifndef L0RT_ATOMICS_H
#define L0RT_ATOMICS_H

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

/* For any number or pointer. */
#define l0rt_acquire(where) __atomic_load_n((where), __ATOMIC_ACQUIRE)
#define l0rt_publish(where, value) __atomic_store_n((where), (value), __ATOMIC_RELEASE)

static inline void *l0rt_load(void *const *where) { return l0rt_acquire(where); }
static inline void l0rt_store(void **where, void *value) { l0rt_publish(where, value); }
static inline int64_t l0rt_load_i64(const int64_t *where) { return l0rt_acquire(where); }
static inline void l0rt_store_i64(int64_t *where, int64_t value) { l0rt_publish(where, value); }
static inline int l0rt_load_int(const int *where) { return l0rt_acquire(where); }
static inline void l0rt_store_int(int *where, int value) { l0rt_publish(where, value); }
static inline uint64_t l0rt_load64(const uint64_t *where) { return l0rt_acquire(where); }
static inline void l0rt_store64(uint64_t *where, uint64_t value) { l0rt_publish(where, value); }
static inline int l0rt_add_int(int *where, int value) { return __atomic_add_fetch(where, value, __ATOMIC_ACQ_REL); }

/* A gate: many may be inside together, or one alone. Those who share wait for one who is alone, and not for one who wants
 * to be: so who wants to be alone tries, and may not get in. Free, as many as share, or ALONE. */
enum { L0RT_GATE_ALONE = -1, L0RT_GATE_PATIENCE = 1000, L0RT_GATE_COURTESY_NS = 250000000 };

static inline void l0rt_gate_share(int *gate) {
  for (;;) {
    int inside = __atomic_load_n(gate, __ATOMIC_RELAXED);
    if (inside != L0RT_GATE_ALONE &&
        __atomic_compare_exchange_n(gate, &inside, inside + 1, 1, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return;
    if (inside == L0RT_GATE_ALONE) sched_yield();
  }
}

static inline void l0rt_gate_leave(int *gate) { __atomic_sub_fetch(gate, 1, __ATOMIC_RELEASE); }

static inline int l0rt_gate_try_once(int *gate) {
  int expected = 0;
  return __atomic_compare_exchange_n(gate, &expected, L0RT_GATE_ALONE, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Somebody has asked to be let in: those who come to share wait until that is over, but only for so long. What is inside
 * may wait for what they bring. */
static inline void l0rt_gate_give_way(const int *asked) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t end = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + L0RT_GATE_COURTESY_NS;
  while (l0rt_load_int(asked) != 0 && (int64_t)now.tv_sec * 1000000000 + now.tv_nsec < end) {
    sched_yield();
    clock_gettime(CLOCK_MONOTONIC, &now);
  }
}

/* 1 when inside: after a moment at the longest. */
static inline int l0rt_gate_try_alone(int *gate) {
  for (int tries = 0; tries < L0RT_GATE_PATIENCE; tries++) {
    if (l0rt_gate_try_once(gate)) return 1;
    sched_yield();
  }
  return 0;
}

static inline void l0rt_gate_open(int *gate) { __atomic_store_n(gate, 0, __ATOMIC_RELEASE); }

/* Raises a number to a value; never lowers it. */
static inline void l0rt_raise64(uint64_t *where, uint64_t value) {
  uint64_t seen = __atomic_load_n(where, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(where, &seen, value, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

static inline void l0rt_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

enum { L0RT_SPIN_FREE = 0, L0RT_SPIN_HELD = 1, L0RT_SPIN_CLOSED = 2, L0RT_SPIN_PATIENCE = 100 };

/* A lock is FREE, HELD, or CLOSED: then no thread can take it any more. Taking compares with FREE, so the third state
 * costs nothing. */
typedef struct {
  uint32_t word;
} l0rt_spin;

static inline int l0rt_spin_try(l0rt_spin *lock) {
  uint32_t expected = L0RT_SPIN_FREE;
  return __atomic_compare_exchange_n(&lock->word, &expected, L0RT_SPIN_HELD, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void l0rt_spin_unlock(l0rt_spin *lock) {
  __atomic_store_n(&lock->word, L0RT_SPIN_FREE, __ATOMIC_RELEASE);
}

/* Returns 1 when the lock is taken, 0 if it is closed. After some spins it yields, since the holder may have been
 * preempted. */
static inline int l0rt_spin_lock(l0rt_spin *lock) {
  for (int spins = 0; !l0rt_spin_try(lock); spins++) {
    if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED) == L0RT_SPIN_CLOSED) return 0;
    if (spins < L0RT_SPIN_PATIENCE) l0rt_pause();
    else sched_yield();
  }
  return 1;
}

/* Closes the lock: no thread takes it again. A live holder gets some time to unlock, because a later unlock would
 * open the
 * lock again. The time is limited, because the holder may be a thread that a fork did not copy. */
static inline void l0rt_spin_close(l0rt_spin *lock) {
  for (int spins = 0; spins < 10 * L0RT_SPIN_PATIENCE; spins++) {
    uint32_t expected = L0RT_SPIN_FREE;
    if (__atomic_compare_exchange_n(&lock->word, &expected, L0RT_SPIN_CLOSED, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return;
    if (expected == L0RT_SPIN_CLOSED) return;
    sched_yield();
  }
  __atomic_store_n(&lock->word, L0RT_SPIN_CLOSED, __ATOMIC_RELEASE);
}

#endif
