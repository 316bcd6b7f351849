/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "report.h"

#define DATA_BYTES 8192 /* of what a kernel is given */
#define ARGUMENT_BYTES 8192
#define ARGUMENTS 256

/* What a running kernel has reached: its buffers stay, even if they are unbound meanwhile. */
typedef struct {
  xe_queue *queue;
  xe_buffer **held; /* guarded by `xe_lock` */
  unsigned number, capacity;
} reach;

/* The arguments of one launch, as the engine takes them. */
typedef struct {
  uint8_t data[DATA_BYTES], bytes[ARGUMENT_BYTES];
  uint8_t *place[ARGUMENTS];
  uint64_t local_sizes[ARGUMENTS], local_offsets[ARGUMENTS];
} arguments;

static void hold(reach *r, xe_buffer *buffer) {
  if (r->number == r->capacity) {
    r->capacity = r->capacity ? 2 * r->capacity : 16;
    r->held = realloc(r->held, r->capacity * sizeof *r->held);
    if (!r->held) abort();
  }
  buffer->references++;
  r->held[r->number++] = buffer;
}

/* The engine's question: the bound memory around an address, and how far from there it is in this process. */
static bool find(void *context, uint64_t address, bool write, uint64_t *begin, uint64_t *end, int64_t *shift) {
  reach *r = context;
  xe_space *space = r->queue->space;
  uint64_t inside = xe_queue_address(r->queue, address), ignored = address - inside;
  (void)write;
  pthread_mutex_lock(&xe_lock);
  pthread_rwlock_rdlock(&space->lock);
  const xe_binding *binding = xe_space_at(space, inside);
  const uint8_t *memory = binding ? xe_space_find(space, binding->address, NULL) : NULL;
  if (memory) {
    *begin = binding->address + ignored;
    *end = *begin + binding->size;
    *shift = (int64_t)((uintptr_t)memory - *begin);
    if (binding->buffer) hold(r, binding->buffer);
  }
  pthread_rwlock_unlock(&space->lock);
  pthread_mutex_unlock(&xe_lock);
  return memory != NULL;
}

static void end_reach(reach *r) {
  pthread_mutex_lock(&xe_lock);
  for (unsigned i = 0; i < r->number; i++) xe_buffer_drop(r->held[i]);
  pthread_mutex_unlock(&xe_lock);
  free(r->held);
}

/* Places for all arguments, zeroed. NULL, or what there are too many of. */
static const char *place_arguments(const spirv_kernel_info *info, arguments *a) {
  uint64_t used = 0;
  if (info->argument_count > ARGUMENTS) return "it has too many arguments";
  for (uint32_t i = 0; i < info->argument_count; i++) {
    a->place[i] = a->bytes + used;
    used += (info->arguments[i].size + 15ull) & ~15ull;
    if (used > ARGUMENT_BYTES) return "its arguments are too large";
  }
  return NULL;
}

/* Reads what the launch gives the kernel. NULL, or why not. */
static const char *read_data(xe_queue *queue, const xe_launch *launch, const xe_kernel_info *info, arguments *a) {
  uint64_t size = 0, skipped = launch->inline_data ? XE_INLINE_BYTES : 0, address = launch->data;
  for (unsigned i = 0; i < info->number; i++) {
    const xe_payload *payload = &info->payload[i];
    if (payload->offset + payload->size > size) size = payload->offset + payload->size;
  }
  if (size > DATA_BYTES) return "it is given too much";
  if (skipped) memcpy(a->data, launch->inline_data, skipped);
  if (size > skipped && !xe_queue_read(queue, address, a->data + skipped, size - skipped)) return "";
  return NULL;
}

/* Sizes of local memory: an argument is given where its part begins, and ends where the next does. */
static void size_local(const spirv_kernel_info *info, uint64_t end, arguments *a) {
  for (uint32_t i = 0; i < info->argument_count; i++) {
    if (info->arguments[i].kind != SPIRV_LOCAL_POINTER) continue;
    uint64_t next = end > a->local_offsets[i] ? end : a->local_offsets[i];
    for (uint32_t k = 0; k < info->argument_count; k++)
      if (info->arguments[k].kind == SPIRV_LOCAL_POINTER && a->local_offsets[k] > a->local_offsets[i] &&
          a->local_offsets[k] < next)
        next = a->local_offsets[k];
    a->local_sizes[i] = next - a->local_offsets[i];
  }
}

/* Is an argument that is reached by a surface given as an address, too? */
static bool has_pointer(const xe_kernel_info *info, uint32_t argument) {
  for (unsigned i = 0; i < info->number; i++)
    if (info->payload[i].kind == XE_PAYLOAD_POINTER && info->payload[i].argument == argument) return true;
  return false;
}

/* Takes the kernel's arguments and sizes out of what it is given. NULL, or why they cannot be. */
static const char *take(const xe_kernel *kernel, const spirv_kernel_info *info, arguments *a, spirv_launch *run) {
  for (unsigned i = 0; i < kernel->info.number; i++) {
    const xe_payload *payload = &kernel->info.payload[i];
    const uint8_t *from = a->data + payload->offset;
    uint32_t words[3] = {0};
    memcpy(words, from, payload->size < sizeof words ? payload->size : sizeof words);
    switch (payload->kind) {
      case XE_PAYLOAD_IMAGE: return "it takes an image or a sampler";
      case XE_PAYLOAD_SURFACE:
        if (!has_pointer(&kernel->info, payload->argument)) return "it reaches memory by a surface";
        break;
      case XE_PAYLOAD_GROUP_SIZE: memcpy(run->group_size, words, sizeof words); break;
      case XE_PAYLOAD_GLOBAL_OFFSET:
        for (int d = 0; d < 3; d++) run->global_offset[d] = words[d];
        break;
      case XE_PAYLOAD_VALUE:
      case XE_PAYLOAD_POINTER:
        if (payload->argument >= info->argument_count) return "its binary has more arguments than its SPIR-V";
        if (payload->source + payload->size > info->arguments[payload->argument].size)
          return "its binary has a larger argument than its SPIR-V";
        memcpy(a->place[payload->argument] + payload->source, from, payload->size);
        break;
      case XE_PAYLOAD_LOCAL_POINTER:
        if (payload->argument < info->argument_count) a->local_offsets[payload->argument] = words[0];
        break;
      case XE_PAYLOAD_OTHER: break;
    }
  }
  return NULL;
}

static void end_run(xe_queue *queue, const xe_kernel *kernel, const spirv_result *result) {
  switch (result->status) {
    case SPIRV_OK:
    case SPIRV_CANCELLED: break;
    case SPIRV_BAD_LAUNCH:
    case SPIRV_BAD_KERNEL:
    case SPIRV_UNSUPPORTED:
    case SPIRV_OUT_OF_MEMORY: xe_report_unmapped("%s: %s", kernel->code.name, result->text); break;
    default: xe_queue_fault(queue, result->text, result->address);
  }
}

/* NULL, or why it does not compute. The hardware runs groups at the same time, whether or not the launch asks for it: so
 * does the engine where they may wait for each other, if they are not too many. */
static const char *run_known(xe_queue *queue, const xe_launch *launch, const xe_kernel *kernel, arguments *a) {
  const spirv_engine *engine = xe_engine_get();
  if (!kernel->runs) return kernel->refusal;
  const spirv_kernel_info *info = engine->kernel_look(kernel->runs);
  reach r = {.queue = queue};
  spirv_launch run = {.kernel = kernel->runs,
                      .arguments = (const void *const *)a->place,
                      .local_sizes = a->local_sizes,
                      .memory = {&r, find},
                      .cancel = &queue->cancels};
  memcpy(run.group_size, launch->group_size, sizeof run.group_size);
  memcpy(run.group_count, launch->group_count, sizeof run.group_count);
  const char *refusal = place_arguments(info, a);
  if (!refusal) refusal = read_data(queue, launch, &kernel->info, a);
  if (!refusal) refusal = take(kernel, info, a, &run);
  if (refusal) return refusal;
  uint64_t groups = (uint64_t)run.group_count[0] * run.group_count[1] * run.group_count[2];
  run.cooperative = kernel->has_atomics && groups > 1 && groups <= SPIRV_MAX_COOPERATIVE_GROUPS;
  size_local(info, launch->local_bytes, a);
  spirv_result result;
  engine->run(&run, &result);
  end_reach(&r);
  end_run(queue, kernel, &result);
  return NULL;
}

void xe_launch_run(xe_queue *queue, const xe_launch *launch) {
  if (!xe_engine_get()) return xe_report_unmapped("no engine");
  const xe_kernel *kernel = xe_kernels_find(queue, launch->code);
  if (!kernel) return xe_report_unmapped("its code is of no known kernel");
  arguments *a = calloc(1, sizeof *a);
  if (!a) abort();
  const char *refusal = run_known(queue, launch, kernel, a);
  if (refusal && !queue->banned) xe_report_unmapped("%s: %s", kernel->code.name, refusal);
  free(a);
}
