/* SPDX-License-Identifier: Apache-2.0 */
/* image_format.h: the formats of images' texels. */
#ifndef L0RT_CPU_IMAGE_FORMAT_H
#define L0RT_CPU_IMAGE_FORMAT_H

#include "l0rt/ze.h"
#include "spirv/spirv.h"

/* Sets what a description says of texels. False: there are no images of this format. */
bool cpu_image_format_read(const ze_image_format_t *format, spirv_image *image);

#endif
