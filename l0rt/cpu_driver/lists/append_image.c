/* SPDX-License-Identifier: Apache-2.0 */
/* append_image.c: appending copies of images: between images, and to and from memory. The texels of an image are rows
 * of memory, so these are copies of regions. */
#include <string.h>

#include "base/gate.h"
#include "lists/list.h"
#include "memory/image.h"

/* One side of a copy: where it begins, and its strides in bytes. */
typedef struct {
  uintptr_t start;
  size_t row, slice;
} side;

/* In texels: of an array of 1-D images, the elements are rows; of an array of 2-D images, slices. */
typedef struct {
  uint32_t origin[3], extent[3];
} box;

static void size_of(const cpu_image *image, uint32_t extent[3]) {
  const spirv_image *s = &image->shape;
  for (int d = 0; d < 3; d++) extent[d] = s->extent[d];
  if (s->array) extent[s->dimension + 1] = s->elements;
}

/* Sets the box: the region, or the whole image if it is NULL. */
static ze_result_t read_region(const cpu_image *image, const ze_image_region_t *region, box *b) {
  uint32_t size[3];
  size_of(image, size);
  *b = (box){.extent = {size[0], size[1], size[2]}};
  if (region != NULL)
    *b = (box){.origin = {region->originX, region->originY, region->originZ},
               .extent = {region->width, region->height, region->depth}};
  for (int d = 0; d < 3; d++)
    if (b->extent[d] == 0 || b->origin[d] > size[d] || b->extent[d] > size[d] - b->origin[d])
      return CPU_REFUSED(ERROR_INVALID_SIZE,
                         "the region is empty, or leaves the image; extents that an image lacks are 1");
  return ZE_RESULT_SUCCESS;
}

static ze_result_t check_image(const cpu_list *list, const cpu_image *image) {
  if (image->context != list->context || image->device != list->device)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the image is of another context or device than the list");
  return cpu_image_is_there(image) ? ZE_RESULT_SUCCESS
                                   : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the image's memory has been freed");
}

static side side_of(const cpu_image *image, const box *b) {
  const spirv_image *s = &image->shape;
  side at = {.row = s->row_pitch, .slice = s->slice_pitch};
  if (image->type == ZE_IMAGE_TYPE_1DARRAY) at.row = s->slice_pitch;
  at.start = s->address + b->origin[2] * at.slice + b->origin[1] * at.row + (size_t)b->origin[0] * s->texel_size;
  return at;
}

/* The strides in memory. Those that are 0 leave no gaps. */
static ze_result_t read_pitches(const cpu_image *image, const box *b, uint32_t row, uint32_t slice, side *at) {
  bool array = image->type == ZE_IMAGE_TYPE_1DARRAY,
       one = image->type == ZE_IMAGE_TYPE_1D || image->type == ZE_IMAGE_TYPE_BUFFER;
  uint64_t width = (uint64_t)b->extent[0] * image->shape.texel_size;
  if (one && row != 0) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the row pitch of a 1-D image must be 0");
  if ((one || image->type == ZE_IMAGE_TYPE_2D) && slice != 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the slice pitch of a 1-D or 2-D image must be 0");
  at->row = row != 0 ? row : width;
  if (array && slice != 0) at->row = slice; /* from one element to the next */
  at->slice = !array && slice != 0 ? slice : at->row * b->extent[1];
  CPU_REFUSE_IF(at->row < width || (row != 0 && row < width) || at->slice < at->row * b->extent[1],
                ERROR_INVALID_ARGUMENT);
  return ZE_RESULT_SUCCESS;
}

static cpu_command copy_of(const side *to, const side *from, const box *b, size_t texel_size) {
  cpu_command command = {.op = CPU_OP_REGION};
  command.region.target = (char *)to->start;
  command.region.source = (const char *)from->start;
  command.region.width = b->extent[0] * texel_size;
  command.region.height = b->extent[1];
  command.region.depth = b->extent[2];
  command.region.target_pitch = to->row;
  command.region.target_slice = to->slice;
  command.region.source_pitch = from->row;
  command.region.source_slice = from->slice;
  return command;
}

static bool boxes_meet(const box *a, const box *b) {
  for (int d = 0; d < 3; d++)
    if (a->origin[d] >= b->origin[d] + b->extent[d] || b->origin[d] >= a->origin[d] + a->extent[d]) return false;
  return true;
}

static ze_result_t append_images(ze_command_list_handle_t handle, ze_image_handle_t target_handle,
                                 ze_image_handle_t source_handle, const ze_image_region_t *target_region,
                                 const ze_image_region_t *source_region, ze_event_handle_t signal, uint32_t wait_count,
                                 ze_event_handle_t *waits) {
  cpu_list *list = cpu_list_cast(handle);
  const cpu_image *target = cpu_image_cast(target_handle), *source = cpu_image_cast(source_handle);
  CPU_REFUSE_IF(list == NULL || target == NULL || source == NULL, ERROR_INVALID_NULL_HANDLE);
  ze_result_t result = check_image(list, target);
  if (result == ZE_RESULT_SUCCESS) result = check_image(list, source);
  box to, from;
  if (result == ZE_RESULT_SUCCESS) result = read_region(target, target_region, &to);
  if (result == ZE_RESULT_SUCCESS) result = read_region(source, source_region, &from);
  if (result != ZE_RESULT_SUCCESS) return result;
  if (memcmp(&target->format, &source->format, sizeof(target->format)) != 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the images have different formats");
  CPU_REFUSE_IF(memcmp(to.extent, from.extent, sizeof(to.extent)) != 0, ERROR_INVALID_SIZE);
  bool same = target->shape.address == source->shape.address; /* views of one image, too */
  CPU_REFUSE_IF(same && boxes_meet(&to, &from), ERROR_OVERLAPPING_REGIONS);
  side there = side_of(target, &to), here = side_of(source, &from);
  cpu_command command = copy_of(&there, &here, &to, target->shape.texel_size);
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendImageCopy(ze_command_list_handle_t list, ze_image_handle_t target,
                                                    ze_image_handle_t source, ze_event_handle_t signal,
                                                    uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_images(list, target, source, NULL, NULL, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendImageCopyRegion(ze_command_list_handle_t list, ze_image_handle_t target,
                                                          ze_image_handle_t source,
                                                          const ze_image_region_t *target_region,
                                                          const ze_image_region_t *source_region,
                                                          ze_event_handle_t signal, uint32_t wait_count,
                                                          ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_images(list, target, source, target_region, source_region, signal, wait_count, waits);
}

/* `reads`: from the image to memory. */
static ze_result_t append_memory(ze_command_list_handle_t handle, ze_image_handle_t image_handle, uintptr_t memory,
                                 bool reads, const ze_image_region_t *region, uint32_t row, uint32_t slice,
                                 ze_event_handle_t signal, uint32_t wait_count, ze_event_handle_t *waits) {
  cpu_list *list = cpu_list_cast(handle);
  const cpu_image *image = cpu_image_cast(image_handle);
  CPU_REFUSE_IF(list == NULL || image == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(memory == 0, ERROR_INVALID_NULL_POINTER);
  box b;
  side there = {.start = memory};
  ze_result_t result = check_image(list, image);
  if (result == ZE_RESULT_SUCCESS) result = read_region(image, region, &b);
  if (result == ZE_RESULT_SUCCESS) result = read_pitches(image, &b, row, slice, &there);
  if (result != ZE_RESULT_SUCCESS) return result;
  size_t texel = image->shape.texel_size;
  size_t extent = (b.extent[2] - 1) * there.slice + (b.extent[1] - 1) * there.row + b.extent[0] * texel;
  result = cpu_list_reach(list, (const void *)memory, extent, reads);
  if (result != ZE_RESULT_SUCCESS) return result;
  side here = side_of(image, &b);
  cpu_command command = copy_of(reads ? &there : &here, reads ? &here : &there, &b, texel);
  return cpu_list_append(list, &command, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendImageCopyToMemory(ze_command_list_handle_t list, void *target,
                                                            ze_image_handle_t source, const ze_image_region_t *region,
                                                            ze_event_handle_t signal, uint32_t wait_count,
                                                            ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_memory(list, source, (uintptr_t)target, true, region, 0, 0, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendImageCopyFromMemory(ze_command_list_handle_t list, ze_image_handle_t target,
                                                              const void *source, const ze_image_region_t *region,
                                                              ze_event_handle_t signal, uint32_t wait_count,
                                                              ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_memory(list, target, (uintptr_t)source, false, region, 0, 0, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendImageCopyToMemoryExt(ze_command_list_handle_t list, void *target,
                                                               ze_image_handle_t source,
                                                               const ze_image_region_t *region, uint32_t row,
                                                               uint32_t slice, ze_event_handle_t signal,
                                                               uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_memory(list, source, (uintptr_t)target, true, region, row, slice, signal, wait_count, waits);
}

CPU_EXPORT ze_result_t zeCommandListAppendImageCopyFromMemoryExt(ze_command_list_handle_t list,
                                                                 ze_image_handle_t target, const void *source,
                                                                 const ze_image_region_t *region, uint32_t row,
                                                                 uint32_t slice, ze_event_handle_t signal,
                                                                 uint32_t wait_count, ze_event_handle_t *waits) {
  CPU_ENTER();
  return append_memory(list, target, (uintptr_t)source, false, region, row, slice, signal, wait_count, waits);
}
