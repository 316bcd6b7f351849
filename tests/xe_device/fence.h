/* SPDX-License-Identifier: Apache-2.0 */
/* fence.h: user fences: words of the program's memory that the kernel writes, and waits for. */
#ifndef XE_DEVICE_FENCE_H
#define XE_DEVICE_FENCE_H

#include <drm/drm.h>
#include <drm/xe_drm.h>
#include <stdbool.h>

/* Is this the signal of a user fence? */
static inline bool xe_fence_signals(const struct drm_xe_sync *sync) {
  return sync->type == DRM_XE_SYNC_TYPE_USER_FENCE && sync->flags & DRM_XE_SYNC_FLAG_SIGNAL;
}

/* Waits until the word is as asked: 0, or a number of errno. */
int xe_fence_wait(struct drm_xe_wait_user_fence *wait);

#endif
