/* SPDX-License-Identifier: Apache-2.0 */
#include "fence.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "device.h"
#include "queue.h"
#include "report.h"

/* 1 if it holds, 0 if not, -1 if there is no such operation. */
static int holds(unsigned operation, uint64_t word, uint64_t value) {
  switch (operation) {
    case DRM_XE_UFENCE_WAIT_OP_EQ: return word == value;
    case DRM_XE_UFENCE_WAIT_OP_NEQ: return word != value;
    case DRM_XE_UFENCE_WAIT_OP_GT: return word > value;
    case DRM_XE_UFENCE_WAIT_OP_GTE: return word >= value;
    case DRM_XE_UFENCE_WAIT_OP_LT: return word < value;
    case DRM_XE_UFENCE_WAIT_OP_LTE: return word <= value;
    default: return -1;
  }
}

int xe_fence_wait(struct drm_xe_wait_user_fence *wait) {
  const uint64_t *word = (const void *)(uintptr_t)wait->addr;
  uint64_t start = xe_device_now(CLOCK_MONOTONIC);
  if (wait->addr & 7 || holds(wait->op, 0, 0) < 0) {
    xe_report_failure("wait_user_fence: address 0x%llx, operation %u", (unsigned long long)wait->addr, wait->op);
    return EINVAL;
  }
  for (unsigned round = 0;; round++) {
    uint64_t value = __atomic_load_n(word, __ATOMIC_ACQUIRE) & wait->mask;
    if (holds(wait->op, value, wait->value & wait->mask)) return 0;
    if (wait->exec_queue_id && xe_queue_banned(wait->exec_queue_id)) return EIO;
    uint64_t now = xe_device_now(CLOCK_MONOTONIC);
    uint64_t passed = wait->flags & DRM_XE_UFENCE_WAIT_FLAG_ABSTIME ? now : now - start;
    if (wait->timeout >= 0 && passed >= (uint64_t)wait->timeout) return ETIME;
    if (round < 100) sched_yield();
    else nanosleep(&(struct timespec){0, 50000}, NULL);
  }
}
