/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c: a short list of failed launches that no wait has returned yet. */
#include "failure.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "knobs.h"

enum { PLACES = 64, TEXT = 320 }; /* failures beyond those push out the oldest */

typedef struct {
  uint64_t serial; /* 0: an empty place */
  const struct cpu_event *event; /* that tells of it, or NULL */
  bool own;                      /* the launch itself signalled it */
  char text[TEXT];
} failure;

_Atomic uint32_t cpu_failures;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static failure failures[PLACES];
static uint32_t next;
static _Atomic bool lost;
static _Thread_local char description[TEXT];

void cpu_failure_add(uint64_t serial, const struct cpu_event *event, const char *text) {
  pthread_mutex_lock(&lock);
  failure *f = &failures[next++ % PLACES];
  if (f->serial == 0) atomic_fetch_add(&cpu_failures, 1);
  f->serial = serial;
  f->event = event;
  f->own = event != NULL;
  snprintf(f->text, sizeof(f->text), "%s", text);
  if (cpu_knobs.lost) atomic_store(&lost, true);
  pthread_mutex_unlock(&lock);
}

void cpu_failure_follow(uint64_t serial, const struct cpu_event *event) {
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < PLACES; i++)
    if (failures[i].serial == serial && !failures[i].own) failures[i].event = event;
  pthread_mutex_unlock(&lock);
}

/* Removes and returns the oldest failure of a fifo, or of an event. */
static ze_result_t tell(uint64_t serial, const struct cpu_event *event) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < PLACES && result == ZE_RESULT_SUCCESS; i++) {
    failure *f = &failures[(next + i) % PLACES];
    if (f->serial == 0 || (event == NULL ? f->serial != serial : f->event != event)) continue;
    cpu_failure_describe(f->text);
    f->serial = 0;
    atomic_fetch_sub(&cpu_failures, 1);
    result = cpu_knobs.lost ? ZE_RESULT_ERROR_DEVICE_LOST : ZE_RESULT_ERROR_UNKNOWN;
  }
  pthread_mutex_unlock(&lock);
  return result;
}

ze_result_t cpu_failure_of_fifo(uint64_t serial) { return tell(serial, NULL); }

ze_result_t cpu_failure_of_event(const struct cpu_event *event) { return tell(0, event); }

void cpu_failure_forget(const struct cpu_event *event) {
  if (atomic_load(&cpu_failures) == 0) return;
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < PLACES; i++)
    if (failures[i].event == event) failures[i].event = NULL;
  pthread_mutex_unlock(&lock);
}

void cpu_failure_describe(const char *text) { snprintf(description, sizeof(description), "%s", text); }

const char *cpu_failure_description(void) { return description; }

bool cpu_failure_lost(void) { return atomic_load(&lost); }
