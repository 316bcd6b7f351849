/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h: exec queues. Each has a thread that runs its batches in order. */
#ifndef XE_DEVICE_QUEUE_H
#define XE_DEVICE_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "device.h"
#include "fence.h"
#include "registers.h"
#include "space.h"

typedef struct xe_job {
  struct xe_job *next;
  uint64_t address; /* of the batch; 0 is none */
  uint32_t syncs;
  struct drm_xe_sync sync[];
} xe_job;

typedef struct {
  uint32_t number;
  const xe_device *device;
  xe_space *space;
  xe_registers registers;
  uint64_t code_base, data_base; /* of kernels' code, and of what launches give them */
  pthread_t thread;
  pid_t process; /* that has the thread; a forked child has none */
  bool started;
  atomic_bool stops, banned;
  atomic_bool cancels; /* it stops, or it is banned: a kernel that runs ends */
  pthread_mutex_t lock; /* of the jobs */
  pthread_cond_t changed;
  xe_job *first, *last;
} xe_queue;

/* A new queue's number, or 0. */
uint32_t xe_queue_create(const xe_device *device, xe_space *space);

/* These three return 0 or a number of errno. */
int xe_queue_destroy(uint32_t number);
int xe_queue_submit(uint32_t number, uint64_t address, uint32_t syncs, const struct drm_xe_sync *sync);
int xe_queue_property(uint32_t number, uint32_t property, uint64_t *value);

/* Has the queue been banned? As the kernel does after an engine was reset. */
bool xe_queue_banned(uint32_t number);

/* An engine that has met what it cannot go on from: names it, and bans the queue. */
void xe_queue_fault(xe_queue *queue, const char *what, uint64_t address);

/* Memory by addresses of the queue's space. False, after `xe_queue_fault`, if something is not bound. */
bool xe_queue_read(xe_queue *queue, uint64_t address, void *bytes, uint64_t size);
bool xe_queue_write(xe_queue *queue, uint64_t address, const void *bytes, uint64_t size);

/* An address without the bits that the hardware ignores. */
uint64_t xe_queue_address(const xe_queue *queue, uint64_t address);

#endif
