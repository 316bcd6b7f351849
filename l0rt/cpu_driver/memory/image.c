/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: making images and views, and asking about them. */
#include "memory/image.h"

#include <string.h>

#include "base/gate.h"
#include "base/knobs.h"
#include "lists/work.h"
#include "memory/image_format.h"
#include "memory/sampler.h"
#include "memory/usm.h"
#include "simulate/profile.h"

enum { ROW = 64 }; /* a row begins at a multiple of it, so that no program relies on rows without gaps */

static uint64_t aligned(uint64_t bytes) { return (bytes + ROW - 1) / ROW * ROW; }

bool cpu_image_is_there(const cpu_image *image) {
  cpu_found found = cpu_usm_find((const void *)(uintptr_t)image->shape.address);
  return found.block != NULL && found.block->id == image->id;
}

/* The copy is read before its image is looked at again: it may end meanwhile. */
bool cpu_image_describe(void *context, uint64_t handle, spirv_image *shape) {
  (void)context;
  const cpu_image *image = cpu_image_cast((ze_image_handle_t)(uintptr_t)handle);
  if (image == NULL) return false;
  *shape = image->shape;
  return cpu_image_is_there(image);
}

/* A sampled image has the sampler itself. */
bool cpu_sampler_describe(void *context, uint64_t handle, uint32_t *bits) {
  const cpu_sampler *sampler = cpu_sampler_cast((ze_sampler_handle_t)(uintptr_t)handle);
  if (sampler != NULL) {
    *bits = sampler->bits;
    return true;
  }
  spirv_image image;
  if (!cpu_image_describe(context, handle, &image)) return false;
  *bits = image.sampler;
  return true;
}

/* ---- Descriptions ------------------------------------------------------------------------------------------------------ */

static bool is_within(uint64_t extent, uint64_t limit) { return extent != 0 && extent <= limit; }

/* Sets the extents. False: one is 0, or larger than the device's images may be. */
static bool read_extents(const ze_image_desc_t *desc, spirv_image *s) {
  const cpu_image_limits *limits = cpu_image_limits_of_device();
  bool two = desc->type == ZE_IMAGE_TYPE_2D || desc->type == ZE_IMAGE_TYPE_2DARRAY,
       three = desc->type == ZE_IMAGE_TYPE_3D;
  uint64_t width = desc->width, limit = three ? limits->three : two ? limits->two : limits->one;
  s->array = desc->type == ZE_IMAGE_TYPE_1DARRAY || desc->type == ZE_IMAGE_TYPE_2DARRAY;
  s->dimension = three ? 2 : two ? 1 : desc->type == ZE_IMAGE_TYPE_BUFFER ? 5 : 0;
  if (desc->type == ZE_IMAGE_TYPE_BUFFER) {
    if (width > limits->buffer || width % s->texel_size != 0) return false;
    width /= s->texel_size;
    limit = UINT32_MAX;
  }
  s->extent[0] = (uint32_t)width;
  s->extent[1] = two || three ? desc->height : 1;
  s->extent[2] = three ? desc->depth : 1;
  s->elements = s->array ? desc->arraylevels : 1;
  return is_within(width, limit) && is_within(s->extent[1], limit) && is_within(s->extent[2], limit) &&
         is_within(s->elements, limits->elements);
}

/* The bytes from the first texel to the last. */
static uint64_t span_of(const spirv_image *s) {
  uint64_t slices = (uint64_t)s->extent[2] * s->elements;
  return (slices - 1) * s->slice_pitch + (s->extent[1] - 1) * s->row_pitch + (uint64_t)s->extent[0] * s->texel_size;
}

static ze_result_t check_desc(const ze_image_desc_t *desc) {
  CPU_REFUSE_IF(desc->flags > 0x3, ERROR_INVALID_ENUMERATION);
  CPU_REFUSE_IF((uint32_t)desc->type > ZE_IMAGE_TYPE_BUFFER, ERROR_INVALID_ENUMERATION);
  return ZE_RESULT_SUCCESS;
}

/* Sets what a description says of an image. */
static ze_result_t read_desc(const ze_image_desc_t *desc, spirv_image *s) {
  ze_result_t result = check_desc(desc);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(!cpu_device_has_images(), ERROR_UNSUPPORTED_FEATURE);
  CPU_REFUSE_IF(desc->type == ZE_IMAGE_TYPE_BUFFER && cpu_knobs.device != NULL, ERROR_UNSUPPORTED_FEATURE);
  CPU_REFUSE_IF(desc->miplevels != 0, ERROR_INVALID_ARGUMENT);
  CPU_REFUSE_IF(!cpu_image_format_read(&desc->format, s), ERROR_UNSUPPORTED_IMAGE_FORMAT);
  if (!read_extents(desc, s))
    return CPU_REFUSED(ERROR_UNSUPPORTED_SIZE, "an extent is 0, or larger than images may be");
  s->writable = (desc->flags & ZE_IMAGE_FLAG_KERNEL_WRITE) != 0;
  uint64_t row = (uint64_t)s->extent[0] * s->texel_size;
  s->row_pitch = s->dimension == 5 ? row : aligned(row);
  s->slice_pitch = s->row_pitch * s->extent[1];
  s->size = span_of(s);
  return ZE_RESULT_SUCCESS;
}

/* What is chained to a description. */
typedef struct {
  bool bindless, sampled, foreign; /* `foreign`: its memory would be from elsewhere */
  void *pitched;
  const ze_sampler_desc_t *sampler;
} chain;

static chain chain_of(const ze_base_desc_t *d) {
  chain c = {.bindless = false};
  for (; d != NULL; d = d->pNext) {
    if (d->stype == ZE_STRUCTURE_TYPE_BINDLESS_IMAGE_EXP_DESC) {
      uint32_t flags = ((const ze_image_bindless_exp_desc_t *)d)->flags;
      c.bindless = (flags & ZE_IMAGE_BINDLESS_EXP_FLAG_BINDLESS) != 0;
      c.sampled = (flags & ZE_IMAGE_BINDLESS_EXP_FLAG_SAMPLED_IMAGE) != 0;
    } else if (d->stype == ZE_STRUCTURE_TYPE_PITCHED_IMAGE_EXP_DESC) {
      c.pitched = ((const ze_image_pitched_exp_desc_t *)d)->ptr;
    } else if (d->stype == ZE_STRUCTURE_TYPE_SAMPLER_DESC) {
      c.sampler = (const ze_sampler_desc_t *)d;
    } else if (d->stype == ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC ||
               d->stype == ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD) {
      c.foreign = true;
    }
  }
  return c;
}

static ze_result_t read_chain(const ze_base_desc_t *next, chain *c, spirv_image *s) {
  *c = chain_of(next);
  CPU_REFUSE_IF(c->foreign, ERROR_UNSUPPORTED_ENUMERATION);
  if ((c->pitched != NULL || c->sampled) && !c->bindless)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "an image in memory, or with a sampler, must be bindless");
  if (!c->sampled) return ZE_RESULT_SUCCESS;
  if (c->sampler == NULL)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "a sampled image needs the description of a sampler");
  return cpu_sampler_read(c->sampler, &s->sampler);
}

/* ---- Images ------------------------------------------------------------------------------------------------------------ */

/* Takes the memory of the texels: the image's own, or a program's. */
static ze_result_t place(cpu_image *image, void *pitched) {
  spirv_image *s = &image->shape;
  if (pitched == NULL) {
    void *memory;
    ze_result_t result = cpu_usm_allocate(image->context, image->device, ZE_MEMORY_TYPE_DEVICE,
                                          s->slice_pitch * s->extent[2] * s->elements, 0, &memory);
    if (result != ZE_RESULT_SUCCESS) return result;
    image->owns = true;
    cpu_usm_find(memory).block->is_image = true;
    pitched = memory;
  }
  cpu_found found = cpu_usm_find(pitched);
  uint64_t offset = (uintptr_t)pitched - found.base;
  if (found.block == NULL || found.block->context != image->context || s->size > found.block->size - offset)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the image does not lie in one allocation of the context");
  s->address = (uintptr_t)pitched;
  image->id = found.block->id;
  return ZE_RESULT_SUCCESS;
}

static cpu_image *image_new(cpu_context *context, cpu_device *device, const ze_image_desc_t *desc) {
  cpu_image *image = cpu_new(CPU_IMAGE);
  if (image == NULL) return NULL;
  cpu_context_hold(context);
  image->context = context;
  image->device = device;
  image->format = desc->format;
  image->type = desc->type;
  return image;
}

static void image_end(cpu_image *image) {
  cpu_context *context = image->context;
  if (image->owns && cpu_image_is_there(image))
    cpu_usm_end(cpu_usm_find((const void *)(uintptr_t)image->shape.address), CPU_BLOCK_LIVE);
  cpu_delete(image);
  cpu_context_let_go(context);
}

static ze_result_t check_owner(ze_context_handle_t context_handle, ze_device_handle_t device_handle) {
  cpu_context *context = cpu_context_cast(context_handle);
  cpu_device *device = cpu_device_cast(device_handle);
  CPU_REFUSE_IF(context == NULL || device == NULL, ERROR_INVALID_NULL_HANDLE);
  return cpu_context_has(context, device) ? ZE_RESULT_SUCCESS
                                          : CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the device is none of the context");
}

CPU_EXPORT ze_result_t zeImageCreate(ze_context_handle_t context, ze_device_handle_t device,
                                     const ze_image_desc_t *desc, ze_image_handle_t *out) {
  CPU_ENTER();
  ze_result_t result = check_owner(context, device);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  spirv_image shape = {.sampler = 0};
  chain next;
  result = read_desc(desc, &shape);
  if (result == ZE_RESULT_SUCCESS) result = read_chain(desc->pNext, &next, &shape);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_image *image = image_new(cpu_context_cast(context), cpu_device_cast(device), desc);
  CPU_REFUSE_IF(image == NULL, ERROR_OUT_OF_HOST_MEMORY);
  image->shape = shape;
  image->bindless = next.bindless;
  result = place(image, next.pitched);
  if (result != ZE_RESULT_SUCCESS) {
    image_end(image);
    return result;
  }
  *out = (ze_image_handle_t)image;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeImageDestroy(ze_image_handle_t handle) {
  CPU_ENTER();
  cpu_image *image = cpu_image_cast(handle);
  CPU_REFUSE_IF(image == NULL, ERROR_INVALID_NULL_HANDLE);
  uintptr_t first = (uintptr_t)image->shape.address;
  bool busy = cpu_image_is_there(image) && cpu_engines_touch(first, first + image->shape.size);
  if (busy) return CPU_REFUSED(ERROR_HANDLE_OBJECT_IN_USE, "the device is at work with the image");
  image_end(image);
  return ZE_RESULT_SUCCESS;
}

/* A view has the image's texels where they are: their size, and so the pitches, cannot change. */
static ze_result_t create_view(ze_context_handle_t context, ze_device_handle_t device, const ze_image_desc_t *desc,
                               ze_image_handle_t handle, ze_image_handle_t *out) {
  cpu_image *source = cpu_image_cast(handle);
  ze_result_t result = check_owner(context, device);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(source == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || out == NULL, ERROR_INVALID_NULL_POINTER);
  spirv_image shape = {.sampler = 0};
  chain next;
  result = read_desc(desc, &shape);
  if (result == ZE_RESULT_SUCCESS) result = read_chain(desc->pNext, &next, &shape);
  if (result != ZE_RESULT_SUCCESS) return result;
  const spirv_image *of = &source->shape;
  bool fits = shape.elements <= of->elements && desc->type == source->type && shape.texel_size == of->texel_size;
  for (int d = 0; d < 3; d++) fits = fits && shape.extent[d] <= of->extent[d];
  if (!fits || next.pitched != NULL || !cpu_image_is_there(source) || source->context != cpu_context_cast(context) ||
      source->device != cpu_device_cast(device))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the view leaves the image, or has other texels, device or context");
  cpu_image *image = image_new(source->context, source->device, desc);
  CPU_REFUSE_IF(image == NULL, ERROR_OUT_OF_HOST_MEMORY);
  shape.address = of->address;
  shape.row_pitch = of->row_pitch;
  shape.slice_pitch = of->slice_pitch;
  shape.size = span_of(&shape);
  image->shape = shape;
  image->id = source->id;
  image->bindless = next.bindless;
  *out = (ze_image_handle_t)image;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeImageViewCreateExt(ze_context_handle_t context, ze_device_handle_t device,
                                            const ze_image_desc_t *desc, ze_image_handle_t image,
                                            ze_image_handle_t *out) {
  CPU_ENTER();
  return create_view(context, device, desc, image, out);
}

CPU_EXPORT ze_result_t zeImageViewCreateExp(ze_context_handle_t context, ze_device_handle_t device,
                                            const ze_image_desc_t *desc, ze_image_handle_t image,
                                            ze_image_handle_t *out) {
  CPU_ENTER();
  return create_view(context, device, desc, image, out);
}

/* ---- Questions --------------------------------------------------------------------------------------------------------- */

/* No flags: there are no such images. Integers are not filtered. */
CPU_EXPORT ze_result_t zeImageGetProperties(ze_device_handle_t device, const ze_image_desc_t *desc,
                                            ze_image_properties_t *properties) {
  CPU_ENTER();
  CPU_REFUSE_IF(cpu_device_cast(device) == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(desc == NULL || properties == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = check_desc(desc);
  if (result != ZE_RESULT_SUCCESS) return result;
  spirv_image shape = {.sampler = 0};
  properties->samplerFilterFlags = 0;
  if (!cpu_device_has_images() || !cpu_image_format_read(&desc->format, &shape)) return ZE_RESULT_SUCCESS;
  properties->samplerFilterFlags = ZE_IMAGE_SAMPLER_FILTER_FLAG_POINT;
  if (shape.type >= SPIRV_TEXEL_UNORM) properties->samplerFilterFlags |= ZE_IMAGE_SAMPLER_FILTER_FLAG_LINEAR;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeImageGetAllocPropertiesExt(ze_context_handle_t context, ze_image_handle_t handle,
                                                    ze_image_allocation_ext_properties_t *properties) {
  CPU_ENTER();
  const cpu_image *image = cpu_image_cast(handle);
  CPU_REFUSE_IF(cpu_context_cast(context) == NULL || image == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(properties == NULL, ERROR_INVALID_NULL_POINTER);
  if (image->context != cpu_context_cast(context))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the image is none of the context");
  properties->id = image->id;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeImageGetMemoryPropertiesExp(ze_image_handle_t handle,
                                                     ze_image_memory_properties_exp_t *properties) {
  CPU_ENTER();
  const cpu_image *image = cpu_image_cast(handle);
  CPU_REFUSE_IF(image == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(properties == NULL, ERROR_INVALID_NULL_POINTER);
  const spirv_image *s = &image->shape;
  properties->rowPitch = s->row_pitch;
  properties->slicePitch = s->slice_pitch;
  properties->size = s->slice_pitch * s->extent[2] * s->elements;
  return ZE_RESULT_SUCCESS;
}

/* Kernels get it as a number, and make it an image by OpConvertHandleToImageINTEL and its like. */
CPU_GETTER_IF(zeImageGetDeviceOffsetExp, ze_image_handle_t, cpu_image, image, cpu_image_cast, uint64_t, offset,
              (uintptr_t)image, image->bindless, "the image is not bindless")

/* Where rows of an image in a program's memory begin. */
CPU_EXPORT ze_result_t zeMemGetPitchFor2dImage(ze_context_handle_t context, ze_device_handle_t device, size_t width,
                                               size_t height, unsigned texel_size, size_t *pitch) {
  CPU_ENTER();
  ze_result_t result = check_owner(context, device);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(pitch == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(!cpu_device_has_images(), ERROR_UNSUPPORTED_FEATURE);
  const cpu_image_limits *limits = cpu_image_limits_of_device();
  if (!is_within(width, limits->two) || !is_within(height, limits->two) || !is_within(texel_size, 16))
    return CPU_REFUSED(ERROR_UNSUPPORTED_SIZE, "an extent is 0, or larger than images may be");
  *pitch = aligned((uint64_t)width * texel_size);
  return ZE_RESULT_SUCCESS;
}

/* The memory is committed at first touch and never moves. */
static ze_result_t check_residency(ze_context_handle_t context, ze_device_handle_t device, ze_image_handle_t handle) {
  const cpu_image *image = cpu_image_cast(handle);
  ze_result_t result = check_owner(context, device);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(image == NULL, ERROR_INVALID_NULL_HANDLE);
  if (image->context != cpu_context_cast(context))
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the image is none of the context");
  return cpu_memory_check((const void *)(uintptr_t)image->shape.address, image->shape.size, false);
}

CPU_EXPORT ze_result_t zeContextMakeImageResident(ze_context_handle_t context, ze_device_handle_t device,
                                                  ze_image_handle_t image) {
  CPU_ENTER();
  return check_residency(context, device, image);
}

CPU_EXPORT ze_result_t zeContextEvictImage(ze_context_handle_t context, ze_device_handle_t device,
                                           ze_image_handle_t image) {
  CPU_ENTER();
  return check_residency(context, device, image);
}
