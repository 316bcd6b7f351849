/* SPDX-License-Identifier: Apache-2.0 */
/* image.h: images. The texels of an image are an allocation of the device, row after row. */
#ifndef L0RT_CPU_IMAGE_H
#define L0RT_CPU_IMAGE_H

#include "base/context.h"
#include "spirv/spirv.h"

typedef struct {
  cpu_object base;
  cpu_context *context; /* held */
  cpu_device *device;
  ze_image_format_t format;
  ze_image_type_t type;
  uint64_t id; /* of the allocation with the texels: where another one begins at their address, they are gone */
  bool owns;   /* that allocation: not an image in a program's memory, and no view */
  bool bindless;
  spirv_image shape;
} cpu_image;

_Static_assert(sizeof(cpu_image) <= CPU_SLOT, "an object must fit its slot");

static inline cpu_image *cpu_image_cast(ze_image_handle_t handle) { return cpu_cast(handle, CPU_IMAGE); }

/* Are its texels there? A view's end with the image that it shows. */
bool cpu_image_is_there(const cpu_image *image);

/* What the engine asks of the handles that kernels have. */
bool cpu_image_describe(void *context, uint64_t handle, spirv_image *image);
bool cpu_sampler_describe(void *context, uint64_t handle, uint32_t *sampler);

#endif
