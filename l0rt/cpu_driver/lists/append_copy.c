/* SPDX-License-Identifier: Apache-2.0 */
/* append_copy.c: appending commands that move data: copies, fills, and hints about memory. */
#include <stdatomic.h>
#include <string.h>

#include "base/gate.h"
#include "lists/list.h"
#include "memory/import.h"
#include "memory/usm.h"
#include "simulate/profile.h"
#include "simulate/quirk.h"

/* Imported memory is nothing to a device that is not the context's first, where the driver has that defect. */
static bool resolves(const cpu_list *list, const void *pointer) {
  cpu_mapping import;
  if (!cpu_has_quirk(CPU_QUIRK_SINGLE_DEVICE_IMPORTS) || !cpu_import_find(NULL, pointer, &import)) return true;
  return list->device->index == (uint32_t)__builtin_ctzll(list->context->devices);
}

ze_result_t cpu_list_reach(const cpu_list *list, const void *pointer, size_t size, bool written) {
  ze_result_t result = cpu_memory_check(pointer, size, written);
  if (result != ZE_RESULT_SUCCESS) return result;
  return resolves(list, pointer) ? cpu_reservation_walk(pointer, written)
                                 : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the memory is none that this context can use");
}

static _Atomic uint64_t offloaded;

/* Intel's driver gives a copy to a copy engine where the list was made with the hint, unless both sides are device
 * memory or an engine's caches would have to be flushed for it. Here such a copy is only counted. */
static void offload(const cpu_list *list, const void *target, const void *source) {
  if ((list->flags & ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT) == 0 || !list->immediate || !list->in_order) return;
  if (cpu_knobs.device == NULL || !cpu_knobs.device->offloads || !cpu_group_computes(list->ordinal)) return;
  if (cpu_memory_is_device(target) && cpu_memory_is_device(source)) return;
  atomic_fetch_add(&offloaded, 1);
}

CPU_EXPORT uint64_t l0rt_cpu_offloaded(void) { return atomic_load(&offloaded); }

static ze_result_t append_copy(ze_command_list_handle_t handle, void *target, const void *source, size_t size,
                               ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(target == NULL || source == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = cpu_list_reach(list, target, size, true);
  if (result == ZE_RESULT_SUCCESS) result = cpu_list_reach(list, source, size, false);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_command command = {.op = CPU_OP_COPY};
  command.copy.target = target;
  command.copy.source = source;
  command.copy.size = size;
  offload(list, target, source);
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendMemoryCopy(ze_command_list_handle_t list, void *target, const void *source,
                                                     size_t size, ze_event_handle_t signal, uint32_t wait_count,
                                                     ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_copy(list, target, source, size, signal, wait_count, waits);
}

/* All contexts see the same addresses. */
CPU_EXPORT ze_result_t zeCommandListAppendMemoryCopyFromContext(ze_command_list_handle_t list, void *target,
                                                                ze_context_handle_t source_context, const void *source,
                                                                size_t size, ze_event_handle_t signal,
                                                                uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_context_cast(source_context) == NULL, ERROR_INVALID_NULL_HANDLE);
  return append_copy(list, target, source, size, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendMemoryCopyWithParameters(ze_command_list_handle_t list, void *target,
                                                                   const void *source, size_t size, const void *next,
                                                                   ze_event_handle_t signal, uint32_t wait_count,
                                                                   ze_event_handle_t *waits) {
  CPU_ENTER();
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  return append_copy(list, target, source, size, signal, wait_count, waits);
}

static ze_result_t append_fill(ze_command_list_handle_t handle, void *target, const void *pattern, size_t pattern_size,
                               size_t size, ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(target == NULL || pattern == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(pattern_size == 0 || (pattern_size & (pattern_size - 1)) != 0 ||
                    pattern_size > cpu_device_groups()[list->ordinal].pattern,
                ERROR_INVALID_SIZE);
  CPU_REFUSE_IF(size % pattern_size != 0 && !cpu_knobs.neo_22_43, ERROR_INVALID_SIZE);
  CPU_REFUSE_IF((uintptr_t)target % pattern_size != 0 && !cpu_knobs.neo_22_43, ERROR_UNSUPPORTED_ALIGNMENT);
  ze_result_t result = cpu_list_reach(list, target, size, true);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_command command = {.op = CPU_OP_FILL};
  command.fill.target = target;
  command.fill.size = size;
  command.fill.pattern_size = pattern_size;
  memcpy(command.fill.pattern, pattern, pattern_size);
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendMemoryFill(ze_command_list_handle_t list, void *target, const void *pattern,
                                                     size_t pattern_size, size_t size, ze_event_handle_t signal,
                                                     uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_fill(list, target, pattern, pattern_size, size, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendMemoryFillWithParameters(ze_command_list_handle_t list, void *target,
                                                                   const void *pattern, size_t pattern_size,
                                                                   size_t size, const void *next,
                                                                   ze_event_handle_t signal, uint32_t wait_count,
                                                                   ze_event_handle_t *waits) {
  CPU_ENTER();
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  return append_fill(list, target, pattern, pattern_size, size, signal, wait_count, waits);
}

/* One side of a region copy, as a start, strides and the bytes from first to last. */
typedef struct {
  uintptr_t start;
  size_t pitch, slice, extent;
} side;

static side side_of(const void *pointer, const ze_copy_region_t *region, uint32_t pitch, uint32_t slice) {
  size_t depth = region->depth == 0 ? 1 : region->depth;
  side s;
  s.pitch = pitch == 0 ? region->width : pitch;
  s.slice = slice == 0 ? s.pitch * region->height : slice;
  s.start = (uintptr_t)pointer + region->originZ * s.slice + region->originY * s.pitch + region->originX;
  s.extent = (depth - 1) * s.slice + (region->height - 1) * s.pitch + region->width;
  return s;
}

/* Do two regions of the same shape and strides share a byte? Only the nearest rows and slices can. */
static bool regions_meet(const side *a, const side *b, int64_t width, int64_t height, int64_t depth) {
  if (a->pitch != b->pitch || a->slice != b->slice) return false;
  int64_t distance = a->start > b->start ? (int64_t)(a->start - b->start) : (int64_t)(b->start - a->start);
  int64_t pitch = (int64_t)a->pitch, slice = (int64_t)a->slice;
  for (int64_t z = distance / slice; z <= distance / slice + 1 && z < depth; z++) {
    int64_t in_slice = distance - z * slice;
    for (int64_t y = in_slice / pitch - 1; y <= in_slice / pitch + 1; y++) {
      int64_t x = in_slice - y * pitch;
      if (y > -height && y < height && x > -width && x < width) return true;
    }
  }
  return false;
}

CPU_EXPORT ze_result_t zeCommandListAppendMemoryCopyRegion(ze_command_list_handle_t handle, void *target,
                                                           const ze_copy_region_t *target_region, uint32_t target_pitch,
                                                           uint32_t target_slice, const void *source,
                                                           const ze_copy_region_t *source_region, uint32_t source_pitch,
                                                           uint32_t source_slice, ze_event_handle_t signal,
                                                           uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(target == NULL || target_region == NULL || source == NULL || source_region == NULL,
                ERROR_INVALID_NULL_POINTER);
  const ze_copy_region_t *r = source_region;
  CPU_REFUSE_IF(r->width != target_region->width || r->height != target_region->height ||
                    r->depth != target_region->depth,
                ERROR_INVALID_SIZE);
  cpu_command command = {.op = CPU_OP_NONE};
  if (r->width == 0 || r->height == 0) return cpu_list_append(list, &command, signal, wait_count, waits);
  size_t depth = r->depth == 0 ? 1 : r->depth;
  side to = side_of(target, target_region, target_pitch, target_slice);
  side from = side_of(source, source_region, source_pitch, source_slice);
  CPU_REFUSE_IF(regions_meet(&to, &from, r->width, r->height, (int64_t)depth), ERROR_OVERLAPPING_REGIONS);
  ze_result_t result = cpu_list_reach(list, (void *)to.start, to.extent, true);
  if (result == ZE_RESULT_SUCCESS) result = cpu_list_reach(list, (void *)from.start, from.extent, false);
  if (result != ZE_RESULT_SUCCESS) return result;
  command.op = CPU_OP_REGION;
  command.region.target = (char *)to.start;
  command.region.source = (const char *)from.start;
  command.region.width = r->width;
  command.region.height = r->height;
  command.region.depth = depth;
  command.region.target_pitch = to.pitch;
  command.region.target_slice = to.slice;
  command.region.source_pitch = from.pitch;
  command.region.source_slice = from.slice;
  offload(list, target, source);
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

/* Memory has one place only, so prefetching and advice are checked and change nothing. */
CPU_EXPORT ze_result_t zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t handle, const void *pointer,
                                                         size_t size) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = cpu_memory_check(pointer, size, false);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_command command = {.op = CPU_OP_NONE};
  return cpu_list_append(list, &command, NULL, 0, NULL);
}

CPU_EXPORT ze_result_t zeCommandListAppendMemAdvise(ze_command_list_handle_t handle, ze_device_handle_t device,
                                                    const void *pointer, size_t size, ze_memory_advice_t advice) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL || cpu_device_cast(device) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(pointer == NULL, ERROR_INVALID_NULL_POINTER);
  uint32_t last = cpu_knobs.neo_22_43 ? ZE_MEMORY_ADVICE_BIAS_UNCACHED
                                      : ZE_MEMORY_ADVICE_CLEAR_SYSTEM_MEMORY_PREFERRED_LOCATION;
  CPU_REFUSE_IF((uint32_t)advice > last, ERROR_INVALID_ENUMERATION);
  ze_result_t result = cpu_memory_check(pointer, size, false);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_command command = {.op = CPU_OP_NONE};
  return cpu_list_append(list, &command, NULL, 0, NULL);
}
