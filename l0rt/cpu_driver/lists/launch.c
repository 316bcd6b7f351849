/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c: running a launch, and what memory it may reach. */
#include "lists/launch.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/knobs.h"
#include "memory/image.h"
#include "memory/import.h"
#include "memory/reservation.h"
#include "memory/usm.h"
#include "sync/failure.h"

static size_t bytes_of(uint32_t count, uint32_t values) {
  return sizeof(cpu_launch) + (sizeof(void *) + sizeof(uint64_t)) * count + values;
}

/* Memory for a launch of these programs, which it holds; NULL without memory. That of a launch that has ended is taken
 * first: a program appends while the engine's thread ends launches, and in malloc they would wait for each other. */
static cpu_launch *take(cpu_programs *programs, size_t bytes) {
  cpu_launch *launch = atomic_exchange(&programs->spare, NULL);
  if (launch == NULL || launch->bytes < bytes) {
    free(launch);
    launch = malloc(bytes);
    if (launch == NULL) return NULL;
    launch->bytes = bytes;
  }
  atomic_init(&launch->holds, 1);
  launch->time.number = 0;
  launch->programs = programs;
  atomic_fetch_add(&programs->holds, 1);
  return launch;
}

cpu_launch *cpu_launch_new(const cpu_kernel *kernel) {
  uint32_t count = kernel->info->argument_count;
  cpu_launch *launch = take(kernel->module->programs, bytes_of(count, kernel->values_size));
  if (launch == NULL) return NULL;
  size_t from = offsetof(cpu_launch, kernel);
  memset((char *)launch + from, 0, sizeof(*launch) - from);
  launch->kernel = kernel->kernel;
  launch->context = kernel->module->context;
  launch->access = kernel->access;
  launch->kinds = kernel->info->arguments;
  launch->argument_count = count;
  launch->values_size = kernel->values_size;
  launch->arguments = (const void **)(launch + 1);
  launch->local_sizes = (uint64_t *)(launch->arguments + count);
  char *values = (char *)(launch->local_sizes + count);
  memcpy(values, kernel->values, kernel->values_size);
  memcpy(launch->local_sizes, kernel->local_sizes, sizeof(uint64_t) * count);
  for (uint32_t i = 0; i < count; i++) launch->arguments[i] = values + kernel->places[i];
  for (int i = 0; i < 3; i++) {
    launch->group_size[i] = kernel->group_size[i];
    launch->offset[i] = kernel->offset[i];
  }
  return launch;
}

cpu_launch *cpu_launch_copy(const cpu_launch *launch) {
  uint32_t count = launch->argument_count;
  size_t bytes = bytes_of(count, launch->values_size);
  cpu_launch *copy = take(launch->programs, bytes);
  if (copy == NULL) return NULL;
  size_t from = offsetof(cpu_launch, kernel); /* others may take holds meanwhile */
  memcpy((char *)copy + from, (const char *)launch + from, bytes - from);
  copy->arguments = (const void **)(copy + 1);
  copy->local_sizes = (uint64_t *)(copy->arguments + count);
  for (uint32_t i = 0; i < count; i++)
    copy->arguments[i] = (const char *)copy + ((const char *)launch->arguments[i] - (const char *)launch);
  return copy;
}

void cpu_launch_let_go(cpu_launch *launch) {
  if (atomic_fetch_sub(&launch->holds, 1) != 1) return;
  cpu_programs *programs = launch->programs;
  if (launch->time.number != 0) cpu_bounds_leave(&launch->time);
  free(atomic_exchange(&programs->spare, launch));
  cpu_programs_let_go(programs);
}

/* Mapped memory without gaps. */
typedef struct {
  uint64_t begin, end;
  int64_t shift;
} run;

typedef struct {
  run *items; /* in the order of their addresses; no two are next to each other */
  uint32_t count, capacity;
} runs;

/* What a launch under way has been let to reach, so that it stays where it is until the launch ends. */
typedef struct {
  uint64_t time; /* of its submission, as bounds.h counts */
  pthread_mutex_t lock;
  void **pins; /* mapped memory */
  uint32_t pin_count, pin_capacity;
  runs mapped[2]; /* the same memory: what may be read, and what may be written */
  cpu_programs **kept; /* of other modules, whose variables it uses */
  uint32_t kept_count, kept_capacity;
} reach;

/* Capacity for one more item; false without memory. */
static bool has_capacity(void **list, uint32_t count, uint32_t *capacity, size_t size) {
  if (count < *capacity) return true;
  uint32_t more = *capacity == 0 ? 16 : *capacity * 2;
  void *larger = realloc(*list, more * size);
  if (larger == NULL) return false;
  *list = larger;
  *capacity = more;
  return true;
}

/* The first of them that ends behind the address. */
static uint32_t first_behind(const runs *all, uint64_t address) {
  uint32_t low = 0, high = all->count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (all->items[middle].end <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Adds memory that is in none of them, and joins it with what is next to it. They have capacity for one more. */
static const run *add_run(runs *all, run added) {
  uint32_t at = first_behind(all, added.begin);
  run *before = at > 0 ? &all->items[at - 1] : NULL, *behind = at < all->count ? &all->items[at] : NULL;
  bool joins_before = before != NULL && before->end == added.begin && before->shift == added.shift;
  bool joins_behind = behind != NULL && behind->begin == added.end && behind->shift == added.shift;
  if (joins_before && joins_behind) {
    before->end = behind->end;
    memmove(behind, behind + 1, (--all->count - at) * sizeof(run));
  } else if (joins_before) {
    before->end = added.end;
  } else if (joins_behind) {
    behind->begin = added.begin;
  } else {
    memmove(&all->items[at + 1], &all->items[at], (all->count++ - at) * sizeof(run));
    all->items[at] = added;
  }
  return &all->items[joins_before ? at - 1 : at];
}

static void end_reach(reach *r) {
  for (uint32_t i = 0; i < r->pin_count; i++) cpu_reservation_unpin(r->pins[i]);
  for (uint32_t i = 0; i < r->kept_count; i++) cpu_programs_let_go(r->kept[i]);
  free(r->pins);
  free(r->mapped[0].items);
  free(r->mapped[1].items);
  free(r->kept);
  pthread_mutex_destroy(&r->lock);
}

static bool find_usm(uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift) {
  cpu_found found = cpu_usm_find((const void *)(uintptr_t)address);
  if (found.block == NULL || found.block->bad || (write && found.block->read_only)) return false;
  *begin = found.base;
  *end = found.base + found.block->size;
  *shift = (int64_t)((uintptr_t)cpu_usm_engine_view((const void *)found.base) - found.base);
  return true;
}

/* A growing segment has many pieces. Each is pinned when the launch first reaches it; those that it has reached are one
 * range for the engine where they are next to each other. With the lock held. */
static const run *reach_mapped(reach *r, uint64_t address, bool write) {
  runs *all = &r->mapped[write];
  uint32_t at = first_behind(all, address);
  if (at < all->count && all->items[at].begin <= address) return &all->items[at];
  if (!has_capacity((void **)&r->pins, r->pin_count, &r->pin_capacity, sizeof(*r->pins)) ||
      !has_capacity((void **)&all->items, all->count, &all->capacity, sizeof(run)))
    return NULL;
  run found;
  void *pin = cpu_reservation_pin(address, write, &found.begin, &found.end, &found.shift);
  if (pin == NULL) return NULL;
  r->pins[r->pin_count++] = pin;
  return add_run(all, found);
}

static bool find_mapped(reach *r, uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift) {
  pthread_mutex_lock(&r->lock);
  const run *found = reach_mapped(r, address, write);
  if (found != NULL) {
    *begin = found->begin;
    *end = found->end;
    *shift = found->shift;
  }
  pthread_mutex_unlock(&r->lock);
  return found != NULL;
}

static bool find_global(reach *r, uint64_t address, uint64_t *begin, uint64_t *end) {
  cpu_programs *programs = cpu_module_find(address, begin, end);
  if (programs == NULL) return false;
  pthread_mutex_lock(&r->lock);
  uint32_t i = 0;
  while (i < r->kept_count && r->kept[i] != programs) i++;
  bool held = i < r->kept_count;
  bool added = !held && has_capacity((void **)&r->kept, r->kept_count, &r->kept_capacity, sizeof(*r->kept));
  if (added) r->kept[r->kept_count++] = programs;
  pthread_mutex_unlock(&r->lock);
  if (!added) cpu_programs_let_go(programs);
  return held || added;
}

/* What loads from behind an allocation, where nothing else is: 0. Allocations begin at multiples of its size. */
static bool find_behind(uint64_t address, uint64_t *begin, uint64_t *end, int64_t *shift) {
  static const char zeros[4096];
  if (!cpu_usm_is_behind((const void *)(uintptr_t)address)) return false;
  *begin = address;
  *end = (address | (sizeof(zeros) - 1)) + 1;
  *shift = (int64_t)((uintptr_t)zeros - address);
  return true;
}

/* All memory that this driver knows of; no other: a kernel's wild pointer must not end the process. */
static bool find_known(reach *r, uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift) {
  cpu_mapping import;
  *shift = 0;
  if (find_usm(address, write, begin, end, shift)) return true;
  if (find_mapped(r, address, write, begin, end, shift)) return true;
  if (cpu_import_find(NULL, (const void *)(uintptr_t)address, &import)) {
    *begin = import.base;
    *end = import.base + import.size;
    return true;
  }
  if (find_global(r, address, begin, end)) return true;
  return cpu_knobs.lenient && !write && find_behind(address, begin, end, shift);
}

static bool find(void *context, uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift) {
  reach *r = context;
  return find_known(r, address, write, begin, end, shift) &&
         (!cpu_knobs.bounds || cpu_bounds_narrow(r->time, address, begin, end));
}

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static spirv_workers *_Atomic workers;
static bool ended;

/* The threads that help the engines; NULL if there are to be none. */
static spirv_workers *helpers(void) {
  spirv_workers *made = atomic_load(&workers);
  if (made != NULL || cpu_knobs.threads <= 1) return made;
  pthread_mutex_lock(&making);
  made = atomic_load(&workers);
  if (made == NULL && !ended) {
    made = spirv_workers_new((uint32_t)cpu_knobs.threads - 1);
    atomic_store(&workers, made);
  }
  pthread_mutex_unlock(&making);
  return made;
}

void cpu_launches_end(void) {
  pthread_mutex_lock(&making);
  ended = true;
  spirv_workers *made = atomic_exchange(&workers, NULL);
  pthread_mutex_unlock(&making);
  if (made != NULL) spirv_workers_free(made);
}

/* Returns false. A program may swallow the error of a wait, or raise it in another thread: so the line is printed too. */
static bool fail(const cpu_launch *launch, const char *text) {
  cpu_failure_keep(text);
  if (!cpu_knobs.quiet && !atomic_load(&launch->context->quiet)) fprintf(stderr, "l0rt CPU driver: %s\n", text);
  return false;
}

static bool read_memory(const cpu_launch *launch, const void *from, void *to, size_t size) {
  if (cpu_memory_check(from, size, false) != ZE_RESULT_SUCCESS) {
    char text[200];
    snprintf(text, sizeof(text), "kernel %.80s: the memory that holds its launch's counts is gone",
             spirv_kernel_look(launch->kernel)->name);
    return fail(launch, text);
  }
  memcpy(to, cpu_usm_engine_view(from), size);
  return true;
}

/* The seed of one launch's order, from the process's: every launch has another. All bits change, also from a small seed. */
static uint64_t chaos_seed(void) {
  static _Atomic uint64_t launches;
  uint64_t v = cpu_knobs.seed + (atomic_fetch_add(&launches, 1) + 1) * UINT64_C(0x9e3779b97f4a7c15);
  v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
  return (v ^ v >> 31) | 1; /* 0 is no chaos */
}

/* What an argument points to; NULL if it is no pointer. */
static const void *pointer_at(const cpu_launch *launch, uint32_t i) {
  const void *pointer = NULL;
  if (launch->kinds[i].kind == SPIRV_GLOBAL_POINTER || launch->kinds[i].kind == SPIRV_CONSTANT_POINTER)
    memcpy(&pointer, launch->arguments[i], sizeof(pointer));
  return pointer;
}

/* The first argument that points into these bytes; their count if none does. */
static uint32_t argument_in(const cpu_launch *launch, uint64_t base, size_t size) {
  uint32_t i = 0;
  while (i < launch->argument_count && (uintptr_t)pointer_at(launch, i) - base >= size) i++;
  return i;
}

static bool is_argument(const void *launch, uint64_t base, size_t size) {
  return argument_in(launch, base, size) < ((const cpu_launch *)launch)->argument_count;
}

/* Says of a bad access which block of an allocator it missed. */
static void add_block(const cpu_launch *launch, spirv_result *result) {
  cpu_bounds_block block;
  if (!cpu_bounds_nearest(launch->time.number, result->address, is_argument, launch, &block)) return;
  size_t length = strlen(result->text);
  uint32_t i = argument_in(launch, block.base, block.size);
  length += (size_t)snprintf(result->text + length, sizeof(result->text) - length,
                             ", offset %lld of the %zu bytes at 0x%llx%s", (long long)(result->address - block.base),
                             block.size, (unsigned long long)block.base,
                             block.is_freed ? ", which were freed before the launch" : "");
  if (i == launch->argument_count || length >= sizeof(result->text)) return;
  snprintf(result->text + length, sizeof(result->text) - length, "; argument %u%s%.60s points to them", i,
           launch->kinds[i].name[0] != '\0' ? ", " : "", launch->kinds[i].name);
}

bool cpu_launch_run(cpu_launch *launch, atomic_bool *cancel) {
  spirv_launch run = {.kernel = launch->kernel,
                      .arguments = launch->arguments,
                      .local_sizes = launch->local_sizes,
                      .cooperative = launch->cooperative,
                      .fuel = cpu_knobs.fuel,
                      .cancel = cancel,
                      .workers = helpers()};
  memcpy(run.group_size, launch->group_size, sizeof(run.group_size));
  memcpy(run.group_count, launch->group_count, sizeof(run.group_count));
  memcpy(run.global_offset, launch->offset, sizeof(run.global_offset));
  uint32_t number = UINT32_MAX;
  if (launch->number != NULL && !read_memory(launch, launch->number, &number, sizeof(number))) return false;
  if (launch->index >= number) return true;
  if (launch->counts != NULL && !read_memory(launch, launch->counts, run.group_count, sizeof(run.group_count)))
    return false;
  if (run.group_count[0] == 0 || run.group_count[1] == 0 || run.group_count[2] == 0) return true;
  const char *name = spirv_kernel_look(launch->kernel)->name;
  run.chaos = cpu_knobs.chaos ? chaos_seed() : 0;
  run.races = cpu_knobs.races;
  run.exact = cpu_knobs.bounds;
  run.trace = cpu_knobs.trace != NULL && strlen(name) == cpu_knobs.trace_size &&
              memcmp(name, cpu_knobs.trace, cpu_knobs.trace_size) == 0;
  memcpy(run.trace_item, cpu_knobs.trace_first ? run.global_offset : cpu_knobs.trace_item, sizeof(run.trace_item));
  reach r = {.time = launch->time.number, .lock = PTHREAD_MUTEX_INITIALIZER};
  run.memory = (spirv_memory){
      .context = &r, .find = find, .image = cpu_image_describe, .sampler = cpu_sampler_describe};
  spirv_result result;
  bool good = spirv_run(&run, &result) || result.status == SPIRV_CANCELLED;
  end_reach(&r);
  if (good) return true;
  if (cpu_knobs.bounds && result.status == SPIRV_BAD_ACCESS) add_block(launch, &result);
  return fail(launch, result.text);
}

/* The image that an argument is; NULL if it is none, or none any more. */
static const cpu_image *image_at(const cpu_launch *launch, uint32_t i) {
  ze_image_handle_t handle = NULL;
  if (launch->kinds[i].kind == SPIRV_IMAGE) memcpy(&handle, launch->arguments[i], sizeof(handle));
  const cpu_image *image = cpu_image_cast(handle);
  return image != NULL && cpu_image_is_there(image) ? image : NULL;
}

ze_result_t cpu_launch_memory(const cpu_launch *launch) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (uint32_t i = 0; i < launch->argument_count; i++)
    if (launch->kinds[i].kind == SPIRV_IMAGE && image_at(launch, i) == NULL)
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "an image of the launch is not set, or is gone");
  if (launch->counts != NULL) result = cpu_memory_check(launch->counts, sizeof(*launch->counts), false);
  if (launch->number != NULL && result == ZE_RESULT_SUCCESS)
    result = cpu_memory_check(launch->number, sizeof(*launch->number), false);
  return result;
}

static bool inside(const void *pointer, uintptr_t low, uintptr_t high) {
  return (uintptr_t)pointer >= low && (uintptr_t)pointer < high;
}

/* May it reach what is allocated there by a pointer in memory? */
static bool reaches(const cpu_launch *launch, uintptr_t low) {
  if (launch->access == 0) return false;
  ze_kernel_indirect_access_flags_t kind = cpu_usm_access(launch->context, (const void *)low);
  return (launch->access & kind) != 0;
}

static bool touches_image(const cpu_image *image, uintptr_t low, uintptr_t high) {
  return image != NULL && image->shape.address < high && image->shape.address + image->shape.size > low;
}

bool cpu_launch_touches(const cpu_launch *launch, uintptr_t low, uintptr_t high) {
  if (inside(launch->counts, low, high) || inside(launch->number, low, high) || reaches(launch, low)) return true;
  for (uint32_t i = 0; i < launch->argument_count; i++)
    if (inside(pointer_at(launch, i), low, high) || touches_image(image_at(launch, i), low, high)) return true;
  return false;
}

ze_result_t cpu_launch_walk(const cpu_launch *launch) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (uint32_t i = 0; i < launch->argument_count && result == ZE_RESULT_SUCCESS; i++)
    if (pointer_at(launch, i) != NULL) result = cpu_reservation_look(pointer_at(launch, i));
  return result;
}
