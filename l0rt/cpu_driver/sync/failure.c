/* SPDX-License-Identifier: Apache-2.0 */
/* failure.c: the failed launches that no wait has returned yet. */
#include "sync/failure.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knobs.h"

enum { TEXT = 448 };

/* One for each fifo, and one for each event that a failed launch signalled: so no fifo's failures push out another's. */
typedef struct {
  uint64_t serial; /* ENDED: of a fifo that is gone; then only the event tells of it */
  const struct cpu_event *event; /* that tells of it, or NULL */
  bool own;                      /* the launch itself signalled it */
  uint64_t more;                 /* how many launches failed after the first, whose text it has */
  char text[TEXT];
} failure;

#define ENDED UINT64_MAX

_Atomic uint32_t cpu_failures;
cpu_latch cpu_failure_lost;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static failure *failures; /* the oldest first; as many as cpu_failures says */
static uint32_t capacity;

/* Of a thread. No variables of the thread's: the C library ends the process where it has no memory for a library's. */
typedef struct {
  ze_result_t refused; /* `description` says why; SUCCESS: it is the last error's own text */
  char description[TEXT], answered[TEXT + 128]; /* a result in words precedes it */
  char launch[TEXT];   /* of the last launch that failed in this thread */
} thread_error;

static pthread_key_t key;
static bool has_key;

static void __attribute__((constructor)) make_key(void) { has_key = pthread_key_create(&key, free) == 0; }

/* NULL without memory: then errors have no text. */
static thread_error *own(void) {
  thread_error *error = has_key ? pthread_getspecific(key) : NULL;
  if (error == NULL && has_key) {
    error = calloc(1, sizeof(*error));
    if (error != NULL && pthread_setspecific(key, error) != 0) {
      free(error);
      error = NULL;
    }
  }
  return error;
}

static failure *find(uint64_t serial, const struct cpu_event *event, bool own) {
  for (uint32_t i = 0; i < atomic_load(&cpu_failures); i++)
    if (failures[i].serial == serial && failures[i].event == event && failures[i].own == own) return &failures[i];
  return NULL;
}

static void drop(failure *f) {
  uint32_t count = atomic_fetch_sub(&cpu_failures, 1) - 1;
  memmove(f, f + 1, (size_t)(failures + count - f) * sizeof(*f));
}

/* The place of one more; without memory that of the latest, if there is any. */
static failure *place(void) {
  uint32_t count = atomic_load(&cpu_failures);
  if (count == capacity) {
    uint32_t more = capacity == 0 ? 16 : capacity * 2;
    failure *larger = realloc(failures, more * sizeof(*larger));
    if (larger == NULL) return count == 0 ? NULL : &failures[count - 1];
    failures = larger;
    capacity = more;
  }
  atomic_store(&cpu_failures, count + 1);
  return &failures[count];
}

void cpu_failure_add(uint64_t serial, const struct cpu_event *event, const char *text) {
  pthread_mutex_lock(&lock);
  failure *same = find(serial, event, event != NULL), *f = same != NULL ? same : place();
  if (same != NULL) {
    same->more++;
  } else if (f != NULL) {
    *f = (failure){.serial = serial, .event = event, .own = event != NULL};
    snprintf(f->text, sizeof(f->text), "%s", text);
  }
  if (cpu_knobs.lost && cpu_latch_raise(&cpu_failure_lost)) cpu_futex_wake(&cpu_failure_lost.set);
  pthread_mutex_unlock(&lock);
}

void cpu_failure_follow(uint64_t serial, const struct cpu_event *event) {
  pthread_mutex_lock(&lock);
  failure *first = NULL;
  for (uint32_t i = 0; i < atomic_load(&cpu_failures); i++) {
    failure *f = &failures[i];
    if (f->serial != serial || f->own) continue;
    if (first == NULL) {
      first = f;
      f->event = event;
    } else {
      first->more += 1 + f->more;
      drop(f);
      i--;
    }
  }
  pthread_mutex_unlock(&lock);
}

/* Removes and returns all failures of a fifo, or of an event; the description is of the oldest. */
static ze_result_t tell(uint64_t serial, const struct cpu_event *event) {
  uint64_t told = 0;
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < atomic_load(&cpu_failures);) {
    failure *f = &failures[i];
    if (event == NULL ? f->serial != serial : f->event != event) {
      i++;
      continue;
    }
    if (told == 0) cpu_failure_describe(f->text);
    told += 1 + f->more;
    drop(f);
  }
  pthread_mutex_unlock(&lock);
  if (told == 0) return ZE_RESULT_SUCCESS;
  thread_error *error = told > 1 ? own() : NULL;
  size_t size = error != NULL ? strlen(error->description) : 0;
  if (error != NULL)
    snprintf(error->description + size, sizeof(error->description) - size, "; it is the first of %llu that failed",
             (unsigned long long)told);
  return cpu_knobs.lost ? ZE_RESULT_ERROR_DEVICE_LOST : ZE_RESULT_ERROR_UNKNOWN;
}

ze_result_t cpu_failure_of_fifo(uint64_t serial) { return tell(serial, NULL); }

ze_result_t cpu_failure_of_event(const struct cpu_event *event) { return tell(0, event); }

/* The event of a failure is no longer its own: it joins the one of its fifo that is like it. */
static void lose_event(failure *f) {
  failure *same = f->serial == ENDED ? NULL : find(f->serial, NULL, f->own);
  if (same != NULL) same->more += 1 + f->more;
  if (same != NULL || f->serial == ENDED) drop(f);
  else f->event = NULL;
}

void cpu_failure_forget(const struct cpu_event *event) {
  if (atomic_load(&cpu_failures) == 0) return;
  pthread_mutex_lock(&lock);
  for (uint32_t i = atomic_load(&cpu_failures); i-- > 0;)
    if (failures[i].event == event) lose_event(&failures[i]);
  pthread_mutex_unlock(&lock);
}

void cpu_failure_end(uint64_t serial) {
  if (atomic_load(&cpu_failures) == 0) return;
  pthread_mutex_lock(&lock);
  for (uint32_t i = atomic_load(&cpu_failures); i-- > 0;) {
    if (failures[i].serial != serial) continue;
    failure *same = find(ENDED, failures[i].event, failures[i].own);
    if (same != NULL) same->more += 1 + failures[i].more;
    if (same != NULL || failures[i].event == NULL) drop(&failures[i]);
    else failures[i].serial = ENDED;
  }
  pthread_mutex_unlock(&lock);
}

void cpu_failure_describe(const char *text) {
  thread_error *error = *text != '\0' ? own() : NULL;
  if (error == NULL) return;
  snprintf(error->description, sizeof(error->description), "%s", text);
  error->refused = ZE_RESULT_SUCCESS;
}

ze_result_t cpu_refuse(ze_result_t result, const char *why) {
  thread_error *error = own();
  if (error == NULL) return result;
  snprintf(error->description, sizeof(error->description), "%s", why == NULL ? "" : why);
  error->refused = result;
  return result;
}

void cpu_failure_keep(const char *text) {
  thread_error *error = own();
  if (error != NULL) snprintf(error->launch, sizeof(error->launch), "%s", text);
}

const char *cpu_failure_kept(void) {
  thread_error *error = own();
  return error != NULL ? error->launch : "";
}

static const char *in_words(ze_result_t result) {
  static const struct {
    ze_result_t result;
    const char *words;
  } all[] = {
      {ZE_RESULT_ERROR_INVALID_NULL_HANDLE, "a handle is null, is destroyed, or is one of another kind"},
      {ZE_RESULT_ERROR_INVALID_NULL_POINTER, "a pointer that is needed is null"},
      {ZE_RESULT_ERROR_INVALID_ARGUMENT, "an argument is not valid here"},
      {ZE_RESULT_ERROR_INVALID_ENUMERATION, "a flag or a value is none that the specification names"},
      {ZE_RESULT_ERROR_INVALID_SIZE, "a size is not valid"},
      {ZE_RESULT_ERROR_UNSUPPORTED_SIZE, "a size is none that the driver can have"},
      {ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT, "there are no images of this format, or of this layout and type"},
      {ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT, "an address or an offset is not aligned as it must be"},
      {ZE_RESULT_ERROR_UNSUPPORTED_ENUMERATION, "the driver does not support a value or an extension of a structure"},
      {ZE_RESULT_ERROR_UNSUPPORTED_FEATURE, "the driver does not have this feature"},
      {ZE_RESULT_ERROR_UNSUPPORTED_VERSION, "the driver does not have this version"},
      {ZE_RESULT_ERROR_UNINITIALIZED, "the driver is not initialised in this process, or has ended"},
      {ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY, "the host has no memory for it"},
      {ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY, "the device has no memory for it"},
      {ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE, "submitted work, or another object, still uses it"},
      {ZE_RESULT_ERROR_INVALID_SYNCHRONIZATION_OBJECT, "an event or a fence is not valid here"},
      {ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE, "the list is of another type"},
      {ZE_RESULT_ERROR_OVERLAPPING_REGIONS, "source and target overlap"},
      {ZE_RESULT_ERROR_DEVICE_LOST, "the device is lost"},
      {ZE_RESULT_ERROR_ADDRESS_NOT_FOUND, "nothing is allocated there"},
      {ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED, "the module imports what no module that it is linked with exports"},
      {ZE_RESULT_ERROR_MODULE_BUILD_FAILURE, "the module cannot be built"},
      {ZE_RESULT_ERROR_MODULE_LINK_FAILURE, "the modules cannot be linked"},
      {ZE_RESULT_ERROR_INVALID_KERNEL_NAME, "the module has no kernel of this name"},
      {ZE_RESULT_ERROR_INVALID_FUNCTION_NAME, "the module exports no function of this name"},
      {ZE_RESULT_ERROR_INVALID_GLOBAL_NAME, "the module has no such variable"},
      {ZE_RESULT_ERROR_INVALID_KERNEL_HANDLE, "a kernel is none of those that the command may launch"},
      {ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX, "the kernel has fewer arguments"},
      {ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE, "the argument has another size"},
      {ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION, "the kernel cannot have groups of this size"},
      {ZE_RESULT_ERROR_INVALID_GLOBAL_WIDTH_DIMENSION, "the kernel cannot have a global size of this width"},
      {ZE_RESULT_ERROR_INVALID_GRAPH, "the graph is not complete"},
      {ZE_RESULT_ERROR_GRAPH_CAPTURE_UNSUPPORTED, "the call cannot be captured"},
      {ZE_RESULT_ERROR_GRAPH_CAPTURE_INVALIDATED, "an earlier call has invalidated the capture"},
      {ZE_RESULT_ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT, "an event of one capture is awaited in another"},
      {ZE_RESULT_ERROR_COMMAND_LIST_NOT_CAPTURING, "the list is not being captured"},
      {ZE_RESULT_ERROR_GRAPH_UNJOINED_FORKS, "the capture goes on in lists that do not join the first one"},
      {ZE_RESULT_ERROR_GRAPH_INTERNAL_EVENT, "the event belongs to a graph"},
  };
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    if (all[i].result == result) return all[i].words;
  return "the call failed";
}

const char *cpu_failure_description(void) {
  thread_error *error = own();
  if (error == NULL) return "";
  const char *words = error->refused == ZE_RESULT_SUCCESS ? "" : in_words(error->refused);
  snprintf(error->answered, sizeof(error->answered), "%s%s%s", words,
           *words != 0 && *error->description != 0 ? ": " : "", error->description);
  error->description[0] = 0;
  error->refused = ZE_RESULT_SUCCESS;
  return error->answered;
}
