/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "report.h"

#define QUEUES 4096

static xe_queue *queues[QUEUES]; /* by number; 0 is none. Guarded by `xe_lock` */
static uint32_t last;

static xe_queue *find(uint32_t number) { return number < QUEUES ? queues[number] : NULL; }

uint32_t xe_queue_create(const xe_device *device, xe_space *space) {
  xe_queue *queue = calloc(1, sizeof *queue);
  if (!queue) return 0;
  queue->device = device;
  queue->space = space;
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->changed, NULL);
  pthread_mutex_lock(&xe_lock);
  for (uint32_t i = 0; i < QUEUES - 1 && !queue->number; i++) {
    uint32_t next = 1 + (last + i) % (QUEUES - 1);
    if (!queues[next]) queue->number = last = next;
  }
  uint32_t number = queue->number;
  if (number) {
    queues[number] = queue;
    space->queues++;
  }
  pthread_mutex_unlock(&xe_lock);
  if (!number) free(queue);
  return number;
}

static void end_job(xe_queue *queue, xe_job *job) {
  for (uint32_t i = 0; i < job->syncs && !queue->stops && !queue->banned; i++)
    if (xe_fence_signals(&job->sync[i]))
      xe_queue_write(queue, job->sync[i].addr, &job->sync[i].timeline_value, sizeof job->sync[i].timeline_value);
  free(job);
}

static void *work(void *argument) {
  xe_queue *queue = argument;
  pthread_setname_np(pthread_self(), "xe_device");
  for (;;) {
    pthread_mutex_lock(&queue->lock);
    while (!queue->first && !queue->stops) pthread_cond_wait(&queue->changed, &queue->lock);
    xe_job *job = queue->first;
    if (job) queue->first = job->next;
    if (!queue->first) queue->last = NULL;
    pthread_mutex_unlock(&queue->lock);
    if (!job) return NULL;
    if (job->address && !queue->stops && !queue->banned) xe_command_run(queue, xe_queue_address(queue, job->address));
    end_job(queue, job);
  }
}

int xe_queue_submit(uint32_t number, uint64_t address, uint32_t syncs, const struct drm_xe_sync *sync) {
  xe_job *job = calloc(1, sizeof *job + syncs * sizeof *sync);
  if (!job) return ENOMEM;
  job->address = address;
  job->syncs = syncs;
  memcpy(job->sync, sync, syncs * sizeof *sync);
  pthread_mutex_lock(&xe_lock);
  xe_queue *queue = find(number);
  if (!queue || queue->banned) {
    pthread_mutex_unlock(&xe_lock);
    free(job);
    return queue ? ECANCELED : ENOENT;
  }
  pthread_mutex_lock(&queue->lock);
  pthread_mutex_unlock(&xe_lock);
  int error = 0;
  if (!queue->started) {
    error = pthread_create(&queue->thread, NULL, work, queue);
    queue->started = !error;
    queue->process = getpid();
  }
  if (error) {
    free(job);
  } else {
    if (queue->last) queue->last->next = job;
    else queue->first = job;
    queue->last = job;
    pthread_cond_signal(&queue->changed);
  }
  pthread_mutex_unlock(&queue->lock);
  return error;
}

int xe_queue_destroy(uint32_t number) {
  pthread_mutex_lock(&xe_lock);
  xe_queue *queue = find(number);
  if (queue) queues[number] = NULL;
  pthread_mutex_unlock(&xe_lock);
  if (!queue) {
    xe_report_failure("exec_queue_destroy: no queue %u", number);
    return ENOENT;
  }
  bool joins = queue->started && queue->process == getpid();
  if (joins) {
    pthread_mutex_lock(&queue->lock);
    queue->stops = queue->cancels = true;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    pthread_join(queue->thread, NULL);
  }
  pthread_mutex_lock(&xe_lock);
  queue->space->queues--;
  pthread_mutex_unlock(&xe_lock);
  free(queue);
  return 0;
}

bool xe_queue_banned(uint32_t number) {
  pthread_mutex_lock(&xe_lock);
  const xe_queue *queue = find(number);
  bool banned = queue && queue->banned;
  pthread_mutex_unlock(&xe_lock);
  return banned;
}

int xe_queue_property(uint32_t number, uint32_t property, uint64_t *value) {
  pthread_mutex_lock(&xe_lock);
  bool known = find(number);
  pthread_mutex_unlock(&xe_lock);
  if (!known) return ENOENT;
  if (property != DRM_XE_EXEC_QUEUE_GET_PROPERTY_BAN) return EINVAL;
  *value = xe_queue_banned(number);
  return 0;
}

/* Tests ask for the reset of a device's engines: all its queues are banned, and what they had is lost. */
XE_EXPORT void xe_device_reset(int index) {
  pthread_mutex_lock(&xe_lock);
  for (int i = 0; i < QUEUES; i++)
    if (queues[i] && queues[i]->device->index == index) queues[i]->banned = queues[i]->cancels = true;
  pthread_mutex_unlock(&xe_lock);
}

void xe_queue_fault(xe_queue *queue, const char *what, uint64_t address) {
  xe_report_failure("queue %u: %s at 0x%llx", queue->number, what, (unsigned long long)address);
  queue->banned = queue->cancels = true; /* which a waiting program sees: by then it can read why */
}

uint64_t xe_queue_address(const xe_queue *queue, uint64_t address) {
  return address & ((1ull << queue->device->product->address_bits) - 1);
}

bool xe_queue_read(xe_queue *queue, uint64_t address, void *bytes, uint64_t size) {
  address = xe_queue_address(queue, address);
  bool bound = xe_space_read(queue->space, &address, bytes, size);
  if (!bound) xe_queue_fault(queue, "read of memory that is not bound", address);
  return bound;
}

bool xe_queue_write(xe_queue *queue, uint64_t address, const void *bytes, uint64_t size) {
  address = xe_queue_address(queue, address);
  bool bound = xe_space_write(queue->space, &address, bytes, size);
  if (!bound) xe_queue_fault(queue, "write of memory that is not bound", address);
  return bound;
}
