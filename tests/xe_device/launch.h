/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h: kernels that compute: the SPIR-V of a known kernel runs in the engine over the memory of the queue's space. */
#ifndef XE_DEVICE_LAUNCH_H
#define XE_DEVICE_LAUNCH_H

#include "queue.h"

/* What a walker says of a launch. */
typedef struct {
  uint64_t code; /* its address */
  uint64_t data; /* address of what the kernel is given, behind what is inline */
  const uint32_t *inline_data; /* its first words, or NULL */
  uint32_t group_size[3], group_count[3]; /* the kernel's own data may know the size better */
  uint32_t local_bytes; /* of a group, rounded up */
} xe_launch;

#define XE_INLINE_BYTES 32

/* Runs it, or reports why it does not compute. What it must not do is a fault of the queue. */
void xe_launch_run(xe_queue *queue, const xe_launch *launch);

#endif
