/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h: command queues: where closed lists are executed. */
#ifndef L0RT_CPU_QUEUE_H
#define L0RT_CPU_QUEUE_H

#include "lists/engine.h"

typedef struct cpu_queue {
  cpu_object base;
  cpu_context *context; /* held */
  cpu_device *device;
  uint32_t ordinal;
  uint32_t index;
  bool synchronous;
  uint8_t mode, priority; /* as asked for, like the flags */
  uint32_t flags;
  _Atomic uint32_t fences;   /* alive: they must go first */
  pthread_mutex_t submitting; /* one thread's lists never get between another's */
  cpu_fifo fifo;
} cpu_queue;

_Static_assert(sizeof(cpu_queue) <= CPU_SLOT, "an object must fit its slot");

static inline cpu_queue *cpu_queue_cast(ze_command_queue_handle_t handle) { return cpu_cast(handle, CPU_QUEUE); }

/* What queues and immediate lists are described by. */
ze_result_t cpu_queue_desc_check(const ze_command_queue_desc_t *desc);
bool cpu_queue_desc_in_order(const ze_command_queue_desc_t *desc);

#endif
