/* SPDX-License-Identifier: Apache-2.0 */
/* ze_image.h: images, their views, and samplers.
 * Names, values and layouts are those of the Level Zero specification (core, 1.0 to 1.17). */
#ifndef L0RT_ZE_IMAGE_H
#define L0RT_ZE_IMAGE_H

#include "l0rt/ze_graph.h"

typedef enum {
  ZE_IMAGE_FLAG_KERNEL_WRITE = 1u << 0,
  ZE_IMAGE_FLAG_BIAS_UNCACHED = 1u << 1,
} ze_image_flag_t;
typedef uint32_t ze_image_flags_t;

typedef enum {
  ZE_IMAGE_TYPE_1D = 0,
  ZE_IMAGE_TYPE_1DARRAY = 1,
  ZE_IMAGE_TYPE_2D = 2,
  ZE_IMAGE_TYPE_2DARRAY = 3,
  ZE_IMAGE_TYPE_3D = 4,
  ZE_IMAGE_TYPE_BUFFER = 5,
} ze_image_type_t;

/* Of the media formats only the last. */
typedef enum {
  ZE_IMAGE_FORMAT_LAYOUT_8 = 0,
  ZE_IMAGE_FORMAT_LAYOUT_16 = 1,
  ZE_IMAGE_FORMAT_LAYOUT_32 = 2,
  ZE_IMAGE_FORMAT_LAYOUT_8_8 = 3,
  ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8 = 4,
  ZE_IMAGE_FORMAT_LAYOUT_16_16 = 5,
  ZE_IMAGE_FORMAT_LAYOUT_16_16_16_16 = 6,
  ZE_IMAGE_FORMAT_LAYOUT_32_32 = 7,
  ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32 = 8,
  ZE_IMAGE_FORMAT_LAYOUT_10_10_10_2 = 9,
  ZE_IMAGE_FORMAT_LAYOUT_11_11_10 = 10,
  ZE_IMAGE_FORMAT_LAYOUT_5_6_5 = 11,
  ZE_IMAGE_FORMAT_LAYOUT_5_5_5_1 = 12,
  ZE_IMAGE_FORMAT_LAYOUT_4_4_4_4 = 13,
  ZE_IMAGE_FORMAT_LAYOUT_BRGP = 42,
  ZE_IMAGE_FORMAT_LAYOUT_8_8_8 = 43, /* 1.11 */
  ZE_IMAGE_FORMAT_LAYOUT_16_16_16 = 44, /* 1.11 */
  ZE_IMAGE_FORMAT_LAYOUT_32_32_32 = 45, /* 1.11 */
} ze_image_format_layout_t;

typedef enum {
  ZE_IMAGE_FORMAT_TYPE_UINT = 0,
  ZE_IMAGE_FORMAT_TYPE_SINT = 1,
  ZE_IMAGE_FORMAT_TYPE_UNORM = 2,
  ZE_IMAGE_FORMAT_TYPE_SNORM = 3,
  ZE_IMAGE_FORMAT_TYPE_FLOAT = 4,
} ze_image_format_type_t;

typedef enum {
  ZE_IMAGE_FORMAT_SWIZZLE_R = 0,
  ZE_IMAGE_FORMAT_SWIZZLE_G = 1,
  ZE_IMAGE_FORMAT_SWIZZLE_B = 2,
  ZE_IMAGE_FORMAT_SWIZZLE_A = 3,
  ZE_IMAGE_FORMAT_SWIZZLE_0 = 4,
  ZE_IMAGE_FORMAT_SWIZZLE_1 = 5,
  ZE_IMAGE_FORMAT_SWIZZLE_X = 6,
  ZE_IMAGE_FORMAT_SWIZZLE_D = 7, /* 1.11 */
} ze_image_format_swizzle_t;

typedef struct {
  ze_image_format_layout_t layout;
  ze_image_format_type_t type;
  ze_image_format_swizzle_t x;
  ze_image_format_swizzle_t y;
  ze_image_format_swizzle_t z;
  ze_image_format_swizzle_t w;
} ze_image_format_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_image_flags_t flags;
  ze_image_type_t type;
  ze_image_format_t format;
  uint64_t width; /* of a buffer: bytes */
  uint32_t height;
  uint32_t depth;
  uint32_t arraylevels;
  uint32_t miplevels;
} ze_image_desc_t;

typedef enum {
  ZE_IMAGE_SAMPLER_FILTER_FLAG_POINT = 1u << 0,
  ZE_IMAGE_SAMPLER_FILTER_FLAG_LINEAR = 1u << 1,
} ze_image_sampler_filter_flag_t;
typedef uint32_t ze_image_sampler_filter_flags_t;

typedef struct {
  ze_structure_type_t stype;
  void *pNext;
  ze_image_sampler_filter_flags_t samplerFilterFlags;
} ze_image_properties_t;

typedef struct {
  uint32_t originX;
  uint32_t originY;
  uint32_t originZ;
  uint32_t width;
  uint32_t height;
  uint32_t depth;
} ze_image_region_t;

typedef struct { /* 1.3 */
  ze_structure_type_t stype;
  void *pNext;
  uint64_t id;
} ze_image_allocation_ext_properties_t;

typedef struct { /* 1.2 */
  ze_structure_type_t stype;
  const void *pNext;
  uint64_t size;
  uint64_t rowPitch;
  uint64_t slicePitch;
} ze_image_memory_properties_exp_t;

#define ZE_IMAGE_BINDLESS_EXP_FLAG_BINDLESS (1u << 0) /* 1.9 */
#define ZE_IMAGE_BINDLESS_EXP_FLAG_SAMPLED_IMAGE (1u << 1) /* 1.9 */

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  uint32_t flags;
} ze_image_bindless_exp_desc_t;

typedef struct { /* 1.9 */
  ze_structure_type_t stype;
  const void *pNext;
  void *ptr;
} ze_image_pitched_exp_desc_t;

typedef enum {
  ZE_SAMPLER_ADDRESS_MODE_NONE = 0,
  ZE_SAMPLER_ADDRESS_MODE_REPEAT = 1,
  ZE_SAMPLER_ADDRESS_MODE_CLAMP = 2, /* to the edge */
  ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER = 3,
  ZE_SAMPLER_ADDRESS_MODE_MIRROR = 4,
} ze_sampler_address_mode_t;

typedef enum {
  ZE_SAMPLER_FILTER_MODE_NEAREST = 0,
  ZE_SAMPLER_FILTER_MODE_LINEAR = 1,
} ze_sampler_filter_mode_t;

typedef struct {
  ze_structure_type_t stype;
  const void *pNext;
  ze_sampler_address_mode_t addressMode;
  ze_sampler_filter_mode_t filterMode;
  ze_bool_t isNormalized;
} ze_sampler_desc_t;

#endif
