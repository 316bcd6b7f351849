/* SPDX-License-Identifier: Apache-2.0 */
/* mutation.c: the identifiers of a mutable list's commands. */
#include "mutation.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "kernel.h"
#include "launch.h"

cpu_mutations *cpu_mutations_new(void) {
  cpu_mutations *m = calloc(1, sizeof(*m));
  if (m == NULL) return NULL;
  pthread_mutex_init(&m->lock, NULL);
  m->base = 1;
  return m;
}

void cpu_mutations_reset(cpu_mutations *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    free(m->items[i].kernels);
    free(m->items[i].traits);
  }
  m->base += m->count;
  m->count = m->bound = m->awaiting = 0;
  m->updated = false;
}

void cpu_mutations_free(cpu_mutations *m) {
  if (m == NULL) return;
  cpu_mutations_reset(m);
  pthread_mutex_destroy(&m->lock);
  free(m->items);
  free(m);
}

/* Returns false without memory; nothing of nothing is NULL. */
static bool duplicate(const void *from, size_t size, void *to) {
  void *copy = NULL;
  if (size != 0 && (copy = malloc(size)) == NULL) return false;
  if (size != 0) memcpy(copy, from, size);
  memcpy(to, &copy, sizeof(copy));
  return true;
}

cpu_mutations *cpu_mutations_copy(const cpu_mutations *m) {
  cpu_mutations *copy = cpu_mutations_new();
  if (copy == NULL) return NULL;
  copy->base = m->base;
  copy->items = calloc((size_t)m->bound + 1, sizeof(*copy->items));
  bool good = copy->items != NULL;
  copy->capacity = good ? m->bound + 1 : 0;
  for (uint32_t i = 0; i < m->bound && good; i++) {
    const cpu_mutation *from = &m->items[i];
    cpu_mutation *to = &copy->items[copy->count++];
    *to = *from;
    to->kernels = NULL;
    to->traits = NULL;
    good = duplicate(from->kernels, from->kernel_count * sizeof(*from->kernels), &to->kernels) &&
           duplicate(from->traits, (1 + (size_t)from->wait_count) * sizeof(*from->traits), &to->traits);
  }
  copy->bound = copy->count;
  if (good) return copy;
  cpu_mutations_free(copy);
  return NULL;
}

static ze_result_t add(cpu_mutations *m, const cpu_mutation *item) {
  if (m->count == m->capacity) {
    uint32_t capacity = m->capacity == 0 ? 16 : m->capacity * 2;
    cpu_mutation *items = realloc(m->items, capacity * sizeof(*items));
    CPU_REFUSE_IF(items == NULL, ERROR_OUT_OF_HOST_MEMORY);
    m->items = items;
    m->capacity = capacity;
  }
  m->items[m->count++] = *item;
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_mutations_next(cpu_mutations *m, uint32_t flags, uint32_t kernel_count, ze_kernel_handle_t *kernels,
                               uint64_t *id) {
  cpu_mutation item = {.flags = flags, .kernel_count = kernel_count};
  CPU_REFUSE_IF(!duplicate(kernels, kernel_count * sizeof(*kernels), &item.kernels), ERROR_OUT_OF_HOST_MEMORY);
  pthread_mutex_lock(&m->lock);
  ze_result_t result = add(m, &item);
  uint64_t number = m->base + m->count - 1;
  pthread_mutex_unlock(&m->lock);
  if (result == ZE_RESULT_SUCCESS) *id = number;
  else free(item.kernels);
  return result;
}

bool cpu_mutations_wait(cpu_mutations *m) {
  if (m == NULL) return false;
  pthread_mutex_lock(&m->lock);
  bool wait = m->bound != m->count;
  pthread_mutex_unlock(&m->lock);
  return wait;
}

uint32_t cpu_event_traits(const cpu_event *event) {
  return 1u << 31 | (uint32_t)event->timed << 30 | event->counter_flags << 8 | event->wait_scope << 4 |
         event->signal_scope;
}

/* Is what is launched the code of one of the kernels that the identifier was made with? */
static bool is_among(const cpu_mutation *item, const cpu_launch *launch) {
  for (uint32_t i = 0; i < item->kernel_count; i++) {
    const cpu_kernel *kernel = cpu_kernel_cast(item->kernels[i]);
    if (kernel != NULL && kernel->kernel == launch->kernel) return true;
  }
  return item->kernel_count == 0;
}

static ze_result_t bind(cpu_mutation *item, const cpu_list *list, const cpu_command *command, ze_event_handle_t signal,
                        uint32_t wait_count, ze_event_handle_t *waits) {
  bool launch = command->op == CPU_OP_LAUNCH;
  CPU_REFUSE_IF(launch ? !is_among(item, command->launch.launch) : item->kernel_count != 0,
                ERROR_INVALID_KERNEL_HANDLE);
  free(item->traits); /* of a command that could not be recorded */
  item->traits = malloc((1 + (size_t)wait_count) * sizeof(*item->traits));
  CPU_REFUSE_IF(item->traits == NULL, ERROR_OUT_OF_HOST_MEMORY);
  item->traits[0] = signal == NULL ? 0 : cpu_event_traits(cpu_event_cast(signal));
  for (uint32_t i = 0; i < wait_count; i++) {
    const cpu_event *event = cpu_event_cast(waits[i]);
    item->traits[1 + i] = event == NULL ? 0 : cpu_event_traits(event);
  }
  item->wait_count = wait_count;
  item->first = list->count;
  item->last = list->count + (wait_count == 0 ? 0 : (wait_count - 1) / CPU_WAITS);
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_mutations_bind(cpu_list *list, const cpu_command *command, ze_event_handle_t signal,
                               uint32_t wait_count, ze_event_handle_t *waits) {
  cpu_mutations *m = list->mutations;
  ze_result_t result = ZE_RESULT_SUCCESS;
  pthread_mutex_lock(&m->lock);
  for (uint32_t i = m->bound; i < m->count && result == ZE_RESULT_SUCCESS; i++)
    result = bind(&m->items[i], list, command, signal, wait_count, waits);
  if (result == ZE_RESULT_SUCCESS) m->bound = m->count;
  pthread_mutex_unlock(&m->lock);
  return result;
}

cpu_mutation *cpu_mutations_find(const cpu_list *list, uint64_t id) {
  cpu_mutations *m = list->mutations;
  if (id < m->base || id - m->base >= m->bound) return NULL;
  cpu_mutation *item = &m->items[id - m->base];
  return item->last < list->count ? item : NULL; /* it could not be recorded: no memory */
}
