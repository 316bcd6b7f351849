/* SPDX-License-Identifier: Apache-2.0 */
/* image_format.c: the formats of images: those of Intel's driver, without the media formats, and without the pairs of
 * layout and type that it reads as other ones. */
#include "memory/image_format.h"

#include <string.h>

#define ALL (1u << SPIRV_TEXEL_UINT | 1u << SPIRV_TEXEL_SINT | 1u << SPIRV_TEXEL_UNORM | 1u << SPIRV_TEXEL_SNORM)
#define FLOATS (1u << SPIRV_TEXEL_FLOAT)
#define UNORMS (1u << SPIRV_TEXEL_UNORM)

typedef struct {
  uint8_t bits[4];
  uint8_t types; /* a bit for each spirv_texel */
  bool
      reversed; /* the first component is in the highest bits, but alpha above it, as OpenCL's packed formats have it */
} layout;

static const layout layouts[] = {
    [ZE_IMAGE_FORMAT_LAYOUT_8] = {{8}, ALL, false},
    [ZE_IMAGE_FORMAT_LAYOUT_16] = {{16}, ALL | FLOATS, false},
    [ZE_IMAGE_FORMAT_LAYOUT_32] = {{32}, ALL | FLOATS, false},
    [ZE_IMAGE_FORMAT_LAYOUT_8_8] = {{8, 8}, ALL, false},
    [ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8] = {{8, 8, 8, 8}, ALL, false},
    [ZE_IMAGE_FORMAT_LAYOUT_16_16] = {{16, 16}, ALL | FLOATS, false},
    [ZE_IMAGE_FORMAT_LAYOUT_16_16_16_16] = {{16, 16, 16, 16}, ALL | FLOATS, false},
    [ZE_IMAGE_FORMAT_LAYOUT_32_32] = {{32, 32}, ALL | FLOATS, false},
    [ZE_IMAGE_FORMAT_LAYOUT_32_32_32_32] = {{32, 32, 32, 32}, ALL | FLOATS, false},
    [ZE_IMAGE_FORMAT_LAYOUT_10_10_10_2] = {{10, 10, 10, 2}, ALL, false},
    [ZE_IMAGE_FORMAT_LAYOUT_11_11_10] = {{11, 11, 10}, FLOATS, false},
    [ZE_IMAGE_FORMAT_LAYOUT_5_6_5] = {{5, 6, 5}, UNORMS, true},
    [ZE_IMAGE_FORMAT_LAYOUT_5_5_5_1] = {{5, 5, 5, 1}, UNORMS, true},
    [ZE_IMAGE_FORMAT_LAYOUT_4_4_4_4] = {{4, 4, 4, 4}, UNORMS, true},
    [ZE_IMAGE_FORMAT_LAYOUT_8_8_8] = {{8, 8, 8}, ALL, false},
    [ZE_IMAGE_FORMAT_LAYOUT_16_16_16] = {{16, 16, 16}, ALL | FLOATS, false},
    [ZE_IMAGE_FORMAT_LAYOUT_32_32_32] = {{32, 32, 32}, ALL | FLOATS, false},
};

/* OpenCL's channel orders, which kernels ask for, without those that differ in what they store only. */
static uint32_t order_of(const uint8_t swizzle[4]) {
  enum { R, G, B, A, ZERO, ONE, X, D };
  static const struct {
    uint8_t swizzle[4], order;
  } orders[] = {
      {{R, ZERO, ZERO, ONE}, 0}, {{ZERO, ZERO, ZERO, R}, 1}, {{R, G, ZERO, ONE}, 2},     {{R, ZERO, ZERO, G}, 3},
      {{R, G, B, ONE}, 4},       {{R, G, B, A}, 5},          {{B, G, R, A}, 6},          {{A, R, G, B}, 7},
      {{R, R, R, R}, 8},         {{R, R, R, ONE}, 9},        {{D, ZERO, ZERO, ONE}, 13}, {{A, B, G, R}, 19},
  };
  for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
    if (memcmp(orders[i].swizzle, swizzle, 4) == 0) return orders[i].order;
  return UINT32_MAX;
}

/* OpenCL's channel data types; UINT32_MAX: it has none. */
static uint32_t data_type_of(ze_image_format_layout_t layout, const spirv_image *image) {
  static const uint8_t integers[3][4] = {{10, 7, 2, 0}, {11, 8, 3, 1}, {12, 9, UINT8_MAX, UINT8_MAX}};
  bool unorm = image->type == SPIRV_TEXEL_UNORM;
  if (layout == ZE_IMAGE_FORMAT_LAYOUT_5_6_5) return 4;
  if (layout == ZE_IMAGE_FORMAT_LAYOUT_5_5_5_1) return 5;
  if (layout == ZE_IMAGE_FORMAT_LAYOUT_10_10_10_2 && unorm) return 16;
  if (image->bits[0] % 8 != 0) return UINT32_MAX;
  if (image->type == SPIRV_TEXEL_FLOAT) return image->bits[0] == 16 ? 13 : 14;
  uint8_t number = integers[image->bits[0] / 16][image->type];
  return number == UINT8_MAX ? UINT32_MAX : number;
}

static void place_components(const layout *l, spirv_image *image) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < image->component_count; i++) {
    uint32_t c = l->reversed && i < 3 ? 2 - i : i;
    image->first_bit[c] = (uint8_t)at;
    at += l->bits[c];
  }
  image->texel_size = (uint8_t)(at / 8);
}

bool cpu_image_format_read(const ze_image_format_t *format, spirv_image *image) {
  const uint32_t swizzle[4] = {format->x, format->y, format->z, format->w};
  if ((uint32_t)format->layout >= sizeof(layouts) / sizeof(layouts[0]) || (uint32_t)format->type > SPIRV_TEXEL_FLOAT)
    return false;
  const layout *l = &layouts[format->layout];
  if ((l->types >> format->type & 1) == 0) return false;
  uint8_t names[4];
  for (int i = 0; i < 4; i++) {
    if (swizzle[i] > ZE_IMAGE_FORMAT_SWIZZLE_D) return false;
    names[i] = (uint8_t)swizzle[i];
    image->channels[i] = swizzle[i] == ZE_IMAGE_FORMAT_SWIZZLE_D   ? SPIRV_CHANNEL_R
                         : swizzle[i] == ZE_IMAGE_FORMAT_SWIZZLE_X ? SPIRV_CHANNEL_0
                                                                   : names[i];
  }
  image->type = (uint8_t)format->type;
  image->component_count = 0;
  for (int c = 0; c < 4; c++) {
    image->bits[c] = l->bits[c];
    image->component_count += l->bits[c] != 0;
  }
  place_components(l, image);
  image->order = order_of(names);
  image->data_type = data_type_of(format->layout, image);
  return true;
}
