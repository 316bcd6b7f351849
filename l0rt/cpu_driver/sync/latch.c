/* SPDX-License-Identifier: Apache-2.0 */
/* latch.c: waiting for a latch. */
#include "sync/latch.h"

#include "simulate/latency.h"

enum { SPINS = 30 }; /* a microsecond; where cores are few, longer only keeps the engine from its work */

ze_result_t cpu_latch_wait(cpu_latch *latch, uint64_t timeout) {
  if (cpu_latch_is_set(latch)) return ZE_RESULT_SUCCESS;
  if (timeout == 0) return ZE_RESULT_NOT_READY;
  for (int i = 0; i < SPINS; i++) {
    if (cpu_latch_is_set(latch)) return ZE_RESULT_SUCCESS;
    cpu_pause();
  }
  uint64_t deadline = cpu_deadline(timeout);
  atomic_fetch_add(&latch->waiters, 1);
  while (atomic_load(&latch->set) == 0 && (deadline == CPU_NEVER || cpu_wait_ns() < deadline))
    cpu_futex_wait(&latch->set, 0, deadline);
  atomic_fetch_sub(&latch->waiters, 1);
  cpu_latency(CPU_COST_WAKE_UP, 1);
  return cpu_latch_is_set(latch) ? ZE_RESULT_SUCCESS : ZE_RESULT_NOT_READY;
}
