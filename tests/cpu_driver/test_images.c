/* SPDX-License-Identifier: Apache-2.0 */
/* test_images.c: images, views and samplers; copies of regions of images; what kernels do with them. What kernels read
 * and write in every format is tested in tests/kernels/test_images.py. */
#include "modules.h"

static const ze_image_format_t rgba8 = {ZE_IMAGE_FORMAT_LAYOUT_8_8_8_8, ZE_IMAGE_FORMAT_TYPE_UNORM,
                                        ZE_IMAGE_FORMAT_SWIZZLE_R,      ZE_IMAGE_FORMAT_SWIZZLE_G,
                                        ZE_IMAGE_FORMAT_SWIZZLE_B,      ZE_IMAGE_FORMAT_SWIZZLE_A};

static ze_image_desc_t desc_of(ze_image_type_t type, uint32_t width, uint32_t height, uint32_t depth, uint32_t count) {
  return (ze_image_desc_t){.stype = ZE_STRUCTURE_TYPE_IMAGE_DESC,
                           .flags = ZE_IMAGE_FLAG_KERNEL_WRITE,
                           .type = type,
                           .format = rgba8,
                           .width = width,
                           .height = height,
                           .depth = depth,
                           .arraylevels = count};
}

static ze_image_handle_t image_of(ze_image_desc_t desc) {
  ze_image_handle_t image;
  OK(zeImageCreate(context, device, &desc, &image));
  return image;
}

static void the_device_has_images(void) {
  ze_device_image_properties_t p = {.stype = ZE_STRUCTURE_TYPE_DEVICE_IMAGE_PROPERTIES};
  OK(zeDeviceGetImageProperties(device, &p));
  CHECK(p.maxImageDims1D == 16384 && p.maxImageDims2D == 16384 && p.maxImageDims3D == 2048);
  CHECK(p.maxImageArraySlices == 2048 && p.maxSamplers == 16 && p.maxReadImageArgs == 128);
}

static void images_are_described(void) {
  ze_image_desc_t desc = desc_of(ZE_IMAGE_TYPE_2D, 30, 20, 7, 9); /* depth and elements are ignored */
  ze_image_properties_t p = {.stype = ZE_STRUCTURE_TYPE_IMAGE_PROPERTIES};
  OK(zeImageGetProperties(device, &desc, &p));
  CHECK(p.samplerFilterFlags == (ZE_IMAGE_SAMPLER_FILTER_FLAG_POINT | ZE_IMAGE_SAMPLER_FILTER_FLAG_LINEAR));
  ze_image_handle_t image = image_of(desc);
  ze_image_memory_properties_exp_t m = {.stype = ZE_STRUCTURE_TYPE_IMAGE_MEMORY_EXP_PROPERTIES};
  OK(zeImageGetMemoryPropertiesExp(image, &m));
  CHECK(m.rowPitch == 128 && m.slicePitch == 2560 && m.size == 2560);
  ze_image_allocation_ext_properties_t a = {.stype = ZE_STRUCTURE_TYPE_IMAGE_ALLOCATION_EXT_PROPERTIES};
  OK(zeImageGetAllocPropertiesExt(context, image, &a));
  CHECK(a.id != 0);
  OK(zeContextMakeImageResident(context, device, image));
  OK(zeContextEvictImage(context, device, image));
  uint64_t offset;
  GIVES(ERROR_INVALID_ARGUMENT, zeImageGetDeviceOffsetExp(image, &offset));
  OK(zeImageDestroy(image));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeImageDestroy(image));
  desc.format.type = ZE_IMAGE_FORMAT_TYPE_UINT;
  OK(zeImageGetProperties(device, &desc, &p));
  CHECK(p.samplerFilterFlags == ZE_IMAGE_SAMPLER_FILTER_FLAG_POINT);
  desc.format.type = ZE_IMAGE_FORMAT_TYPE_FLOAT; /* of eight bits */
  OK(zeImageGetProperties(device, &desc, &p));
  CHECK(p.samplerFilterFlags == 0);
}

static void bad_descriptions_are_refused(void) {
  ze_image_handle_t image;
  ze_image_desc_t good = desc_of(ZE_IMAGE_TYPE_2D, 4, 4, 1, 1), bad = good;
#define REFUSED(result, change)                                                                                        \
  bad = good;                                                                                                          \
  bad.change;                                                                                                          \
  GIVES(result, zeImageCreate(context, device, &bad, &image))
  REFUSED(ERROR_INVALID_ENUMERATION, flags = 4);
  REFUSED(ERROR_INVALID_ENUMERATION, type = 6);
  REFUSED(ERROR_INVALID_ARGUMENT, miplevels = 1);
  REFUSED(ERROR_UNSUPPORTED_IMAGE_FORMAT, format.layout = ZE_IMAGE_FORMAT_LAYOUT_BRGP);
  REFUSED(ERROR_UNSUPPORTED_IMAGE_FORMAT, format.layout = 14); /* Y8 */
  REFUSED(ERROR_UNSUPPORTED_IMAGE_FORMAT, format.layout = 46);
  REFUSED(ERROR_UNSUPPORTED_IMAGE_FORMAT, format.type = 5);
  REFUSED(ERROR_UNSUPPORTED_IMAGE_FORMAT, format.x = 8);
  REFUSED(ERROR_UNSUPPORTED_IMAGE_FORMAT, format.type = ZE_IMAGE_FORMAT_TYPE_FLOAT);
  REFUSED(ERROR_UNSUPPORTED_SIZE, width = 16385);
  REFUSED(ERROR_UNSUPPORTED_SIZE, width = 0);
  REFUSED(ERROR_UNSUPPORTED_SIZE, height = 0);
#undef REFUSED
  bad = desc_of(ZE_IMAGE_TYPE_3D, 4, 4, 2049, 1);
  GIVES(ERROR_UNSUPPORTED_SIZE, zeImageCreate(context, device, &bad, &image));
  bad = desc_of(ZE_IMAGE_TYPE_1DARRAY, 4, 4, 1, 0);
  GIVES(ERROR_UNSUPPORTED_SIZE, zeImageCreate(context, device, &bad, &image));
  GIVES(ERROR_INVALID_NULL_POINTER, zeImageCreate(context, device, NULL, &image));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeImageCreate(context, NULL, &good, &image));
  ze_sampler_handle_t sampler;
  ze_sampler_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_SAMPLER_DESC, .addressMode = 5};
  GIVES(ERROR_INVALID_ENUMERATION, zeSamplerCreate(context, device, &desc, &sampler));
  desc.addressMode = ZE_SAMPLER_ADDRESS_MODE_REPEAT;
  desc.filterMode = 2;
  GIVES(ERROR_INVALID_ENUMERATION, zeSamplerCreate(context, device, &desc, &sampler));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeSamplerDestroy(NULL));
}

/* Copies with row and slice pitches against loops over bytes: regions of images of each type, in both directions. */
static uint8_t *filled(size_t size, unsigned seed) {
  uint8_t *bytes = malloc(size);
  for (size_t i = 0; i < size; i++) bytes[i] = (uint8_t)(i * 31 + i / 251 + seed);
  return bytes;
}

static void copies_of_type(ze_command_list_handle_t list, void (*wait)(ze_command_list_handle_t), ze_image_type_t type,
                           const uint32_t size[3]) {
  enum { TEXEL = 4, ROW_GAP = 12, SLICE_GAP = 40 };
  bool line = type == ZE_IMAGE_TYPE_1D, rows = type == ZE_IMAGE_TYPE_1DARRAY, flat = type == ZE_IMAGE_TYPE_2D;
  uint32_t w = size[0], h = size[1], d = size[2];
  ze_image_handle_t image = image_of(desc_of(type, w, h, d, rows ? h : d));
  size_t all = (size_t)w * h * d * TEXEL;
  uint8_t *content = filled(all, 1), *whole = malloc(all);
  OK(zeCommandListAppendImageCopyFromMemory(list, image, content, NULL, NULL, 0, NULL));
  ze_image_region_t r = {.originX = 2, .width = w - 3, .height = 1, .depth = 1};
  if (!line) r.originY = 1, r.height = h - 2;
  if (!line && !rows && !flat) r.originZ = 1, r.depth = d - 2;
  size_t width = (size_t)r.width * TEXEL, row = line ? 0 : width + ROW_GAP;
  size_t slice = line || flat ? 0 : rows ? width + SLICE_GAP : row * r.height + SLICE_GAP;
  size_t step = line ? width : rows ? slice : row, level = rows || line || flat ? step * r.height : slice;
  size_t bytes = level * r.depth;
  uint8_t *part = filled(bytes, 9), *back = filled(bytes, 77), *want = filled(bytes, 77);
  OK(zeCommandListAppendImageCopyFromMemoryExt(list, image, part, &r, (uint32_t)row, (uint32_t)slice, NULL, 0, NULL));
  OK(zeCommandListAppendImageCopyToMemoryExt(list, back, image, &r, (uint32_t)row, (uint32_t)slice, NULL, 0, NULL));
  OK(zeCommandListAppendImageCopyToMemory(list, whole, image, NULL, NULL, 0, NULL));
  wait(list);
  for (uint32_t z = 0; z < r.depth; z++)
    for (uint32_t y = 0; y < r.height; y++) {
      size_t place = (((size_t)(r.originZ + z) * h + r.originY + y) * w + r.originX) * TEXEL;
      memcpy(want + z * level + y * step, part + z * level + y * step, width);
      memcpy(content + place, part + z * level + y * step, width);
    }
  CHECK(memcmp(back, want, bytes) == 0); /* the gaps stay as they were */
  CHECK(memcmp(whole, content, all) == 0);
  free(content), free(whole), free(part), free(back), free(want);
  OK(zeImageDestroy(image));
}

static void wait_for_immediate(ze_command_list_handle_t list) { OK(zeCommandListHostSynchronize(list, FOREVER)); }

static ze_command_queue_handle_t queue;
static void execute(ze_command_list_handle_t list) {
  OK(zeCommandListClose(list));
  OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
  OK(zeCommandQueueSynchronize(queue, FOREVER));
  OK(zeCommandListReset(list));
}

static void regions_are_copied(void) {
  static const struct {
    ze_image_type_t type;
    uint32_t size[3];
  } cases[] = {{ZE_IMAGE_TYPE_1D, {37, 1, 1}},
               {ZE_IMAGE_TYPE_1DARRAY, {19, 6, 1}},
               {ZE_IMAGE_TYPE_2D, {33, 21, 1}},
               {ZE_IMAGE_TYPE_2DARRAY, {18, 9, 5}},
               {ZE_IMAGE_TYPE_3D, {17, 8, 6}}};
  ze_command_list_handle_t immediate = in_order_list(), engine = immediate_on(1, 0, ZE_COMMAND_QUEUE_FLAG_IN_ORDER);
  ze_command_list_handle_t regular;
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .flags = ZE_COMMAND_LIST_FLAG_IN_ORDER};
  ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
  OK(zeCommandListCreate(context, device, &desc, &regular));
  OK(zeCommandQueueCreate(context, device, &queue_desc, &queue));
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    copies_of_type(immediate, wait_for_immediate, cases[i].type, cases[i].size);
    copies_of_type(engine, wait_for_immediate, cases[i].type, cases[i].size);
    copies_of_type(regular, execute, cases[i].type, cases[i].size);
  }
  OK(zeCommandListDestroy(immediate));
  OK(zeCommandListDestroy(engine));
  OK(zeCommandListDestroy(regular));
  OK(zeCommandQueueDestroy(queue));
}

static void images_are_copied_to_images(void) {
  enum { W = 16, H = 8 };
  ze_image_desc_t desc = desc_of(ZE_IMAGE_TYPE_2D, W, H, 1, 1);
  ze_image_handle_t a = image_of(desc), b = image_of(desc);
  uint32_t from[H][W], to[H][W];
  for (int i = 0; i < W * H; i++) from[i / W][i % W] = 0x01010101u * (unsigned)i;
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendImageCopyFromMemory(list, a, from, NULL, NULL, 0, NULL));
  OK(zeCommandListAppendImageCopy(list, b, a, NULL, 0, NULL));
  ze_image_region_t target = {2, 1, 0, 5, 3, 1}, source = {9, 4, 0, 5, 3, 1}, wider = {9, 4, 0, 6, 3, 1};
  OK(zeCommandListAppendImageCopyRegion(list, b, a, &target, &source, NULL, 0, NULL));
  OK(zeCommandListAppendImageCopyToMemory(list, to, b, NULL, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int y = 0; y < H; y++)
    for (int x = 0; x < W; x++) {
      bool inside = x >= 2 && x < 7 && y >= 1 && y < 4;
      CHECK(to[y][x] == (inside ? from[y + 3][x + 7] : from[y][x]));
    }
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendImageCopyRegion(list, b, a, &target, &wider, NULL, 0, NULL));
  ze_image_region_t near = {4, 3, 0, 5, 3, 1};
  GIVES(ERROR_OVERLAPPING_REGIONS, zeCommandListAppendImageCopyRegion(list, a, a, &target, &near, NULL, 0, NULL));
  OK(zeCommandListAppendImageCopyRegion(list, a, a, &target, &source, NULL, 0, NULL));
  GIVES(ERROR_OVERLAPPING_REGIONS, zeCommandListAppendImageCopy(list, a, a, NULL, 0, NULL));
  desc.format.type = ZE_IMAGE_FORMAT_TYPE_UINT;
  ze_image_handle_t other = image_of(desc);
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendImageCopy(list, other, a, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeImageDestroy(other));
  OK(zeImageDestroy(a));
  OK(zeImageDestroy(b));
  OK(zeCommandListDestroy(list));
}

static void bad_copies_are_refused(void) {
  ze_image_handle_t image = image_of(desc_of(ZE_IMAGE_TYPE_2D, 8, 8, 1, 1));
  ze_image_handle_t line = image_of(desc_of(ZE_IMAGE_TYPE_1D, 8, 8, 1, 1));
  ze_command_list_handle_t list = in_order_list();
  uint32_t *memory = device_memory(256);
  ze_image_region_t good = {0, 0, 0, 8, 8, 1}, deep = {0, 0, 0, 8, 8, 2}, out = {1, 0, 0, 8, 8, 1},
                    none = {0, 0, 0, 0, 8, 1}, row = {0, 0, 0, 8, 1, 1};
#define COPY(image, region, pitch, slice)                                                                              \
  zeCommandListAppendImageCopyToMemoryExt(list, memory, image, region, pitch, slice, NULL, 0, NULL)
  OK(COPY(image, &good, 32, 0));
  GIVES(ERROR_INVALID_SIZE, COPY(image, &deep, 0, 0));
  GIVES(ERROR_INVALID_SIZE, COPY(image, &out, 0, 0));
  GIVES(ERROR_INVALID_SIZE, COPY(image, &none, 0, 0));
  GIVES(ERROR_INVALID_ARGUMENT, COPY(image, &good, 28, 0));
  GIVES(ERROR_INVALID_ARGUMENT, COPY(image, &good, 32, 256)); /* a slice pitch is for more than two dimensions */
  GIVES(ERROR_INVALID_ARGUMENT, COPY(image, &good, 36, 0));   /* beyond the memory */
  GIVES(ERROR_INVALID_ARGUMENT, COPY(line, &row, 32, 0));
  GIVES(ERROR_INVALID_NULL_HANDLE, COPY(NULL, &row, 0, 0));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListAppendImageCopyToMemory(list, NULL, image, NULL, NULL, 0, NULL));
  ze_context_handle_t other;
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  OK(zeContextCreate(driver, &desc, &other));
  ze_image_desc_t image_desc = desc_of(ZE_IMAGE_TYPE_2D, 8, 8, 1, 1);
  ze_image_handle_t foreign;
  OK(zeImageCreate(other, device, &image_desc, &foreign));
  GIVES(ERROR_INVALID_ARGUMENT, COPY(foreign, NULL, 0, 0));
#undef COPY
  OK(zeContextDestroy(other)); /* its images end when they are destroyed, their texels now */
  OK(zeImageDestroy(foreign));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeMemFree(context, memory));
  OK(zeImageDestroy(image));
  OK(zeImageDestroy(line));
  OK(zeCommandListDestroy(list));
}

/* A view reads the texels as another type; it ends with the image. */
static void views_show_an_image_otherwise(void) {
  ze_image_desc_t desc = desc_of(ZE_IMAGE_TYPE_2D, 8, 4, 1, 1);
  ze_image_handle_t image = image_of(desc), view, second;
  desc.format.type = ZE_IMAGE_FORMAT_TYPE_SINT;
  desc.height = 2;
  OK(zeImageViewCreateExt(context, device, &desc, image, &view));
  OK(zeImageViewCreateExp(context, device, &desc, image, &second));
  desc.height = 5;
  GIVES(ERROR_INVALID_ARGUMENT, zeImageViewCreateExt(context, device, &desc, image, &second));
  desc.height = 4;
  desc.format.layout = ZE_IMAGE_FORMAT_LAYOUT_8;
  GIVES(ERROR_INVALID_ARGUMENT, zeImageViewCreateExt(context, device, &desc, image, &second));
  ze_command_list_handle_t list = in_order_list();
  uint8_t from[128], to[64];
  for (int i = 0; i < 128; i++) from[i] = (uint8_t)(i * 3);
  OK(zeCommandListAppendImageCopyFromMemory(list, image, from, NULL, NULL, 0, NULL));
  OK(zeCommandListAppendImageCopyToMemory(list, to, view, NULL, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(memcmp(from, to, 64) == 0);
  OK(zeImageDestroy(image));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendImageCopyToMemory(list, to, view, NULL, NULL, 0, NULL));
  OK(zeImageDestroy(view));
  OK(zeImageDestroy(second));
  OK(zeCommandListDestroy(list));
}

/* An image in a program's memory has rows where zeMemGetPitchFor2dImage says. */
static void an_image_lies_in_memory_of_the_program(void) {
  size_t pitch;
  OK(zeMemGetPitchFor2dImage(context, device, 10, 5, 4, &pitch));
  CHECK(pitch == 64);
  uint8_t *memory = shared_memory(pitch * 5);
  ze_image_pitched_exp_desc_t pitched = {.stype = ZE_STRUCTURE_TYPE_PITCHED_IMAGE_EXP_DESC, .ptr = memory};
  ze_image_bindless_exp_desc_t bindless = {.stype = ZE_STRUCTURE_TYPE_BINDLESS_IMAGE_EXP_DESC, .pNext = &pitched};
  ze_image_desc_t desc = desc_of(ZE_IMAGE_TYPE_2D, 10, 5, 1, 1);
  desc.pNext = &bindless;
  ze_image_handle_t image;
  GIVES(ERROR_INVALID_ARGUMENT, zeImageCreate(context, device, &desc, &image));
  bindless.flags = ZE_IMAGE_BINDLESS_EXP_FLAG_BINDLESS;
  OK(zeImageCreate(context, device, &desc, &image));
  uint64_t offset = 0;
  OK(zeImageGetDeviceOffsetExp(image, &offset));
  CHECK(offset != 0);
  uint32_t from[5][10];
  for (int i = 0; i < 50; i++) from[i / 10][i % 10] = (unsigned)i * 77777u;
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendImageCopyFromMemory(list, image, from, NULL, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int y = 0; y < 5; y++) CHECK(memcmp(memory + (size_t)y * pitch, from[y], 40) == 0);
  desc.height = 6;
  ze_image_handle_t larger;
  GIVES(ERROR_INVALID_ARGUMENT, zeImageCreate(context, device, &desc, &larger));
  OK(zeCommandListDestroy(list));
  OK(zeImageDestroy(image));
  OK(zeMemFree(context, memory));
}

static ze_sampler_handle_t sampler_of(ze_sampler_address_mode_t mode, ze_sampler_filter_mode_t filter) {
  ze_sampler_desc_t desc = {
      .stype = ZE_STRUCTURE_TYPE_SAMPLER_DESC, .addressMode = mode, .filterMode = filter, .isNormalized = 0};
  ze_sampler_handle_t sampler;
  OK(zeSamplerCreate(context, device, &desc, &sampler));
  return sampler;
}

static bool is_about(const float *texel, float x, float y, float z, float w) {
  const float want[4] = {x, y, z, w};
  for (int c = 0; c < 4; c++)
    if (texel[c] - want[c] > 1e-6f || want[c] - texel[c] > 1e-6f) return false;
  return true;
}

static void kernels_sample_images(void) {
  ze_image_handle_t image = image_of(desc_of(ZE_IMAGE_TYPE_2D, 2, 2, 1, 1));
  ze_image_handle_t cube = image_of(desc_of(ZE_IMAGE_TYPE_3D, 2, 2, 2, 1));
  ze_sampler_handle_t sampler = sampler_of(ZE_SAMPLER_ADDRESS_MODE_CLAMP_TO_BORDER, ZE_SAMPLER_FILTER_MODE_LINEAR);
  ze_module_handle_t module = module_of("images");
  ze_kernel_handle_t kernel = kernel_of(module, "sample2");
  const uint8_t texels[16] = {255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255, 255, 255, 0};
  float *at = shared_memory(64), *out = shared_memory(256);
  const float coordinates[] = {0.5f, 0.5f, 1, 1, 2, 0.5f, -1, 0};
  memcpy(at, coordinates, sizeof(coordinates));
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendImageCopyFromMemory(list, image, texels, NULL, NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeKernelSetArgumentValue(kernel, 0, sizeof(sampler), &sampler));
  GIVES(ERROR_INVALID_ARGUMENT, zeKernelSetArgumentValue(kernel, 1, sizeof(image), &image));
  GIVES(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, zeKernelSetArgumentValue(kernel, 0, 4, &image));
  SET(kernel, 0, image);
  SET(kernel, 1, sampler);
  SET(kernel, 2, at);
  SET(kernel, 3, out);
  OK(zeKernelSetGroupSize(kernel, 4, 1, 1));
  const ze_group_count_t one = {1, 1, 1};
  OK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(is_about(out, 1, 0, 0, 1));
  CHECK(is_about(out + 4, 0.5f, 0.5f, 0.5f, 0.75f));
  CHECK(is_about(out + 8, 0, 0.5f, 0, 0.5f)); /* half of it is the border */
  CHECK(is_about(out + 12, 0, 0, 0, 0));
  SET(kernel, 0, cube); /* of another shape than the module declares */
  CHECK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL) == ZE_RESULT_SUCCESS);
  CHECK(zeCommandListHostSynchronize(list, FOREVER) != ZE_RESULT_SUCCESS);
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, at));
  OK(zeMemFree(context, out));
  OK(zeKernelDestroy(kernel));
  OK(zeModuleDestroy(module));
  OK(zeSamplerDestroy(sampler));
  OK(zeImageDestroy(image));
  OK(zeImageDestroy(cube));
}

/* What OpenCL does not define is an error: a read beyond an image without a sampler, a write to one that is only read. */
static void kernels_fail_where_nothing_is_defined(void) {
  ze_module_handle_t module = module_of("images");
  ze_kernel_handle_t beyond = kernel_of(module, "beyond"), doubled = kernel_of(module, "doubled");
  ze_image_desc_t desc = desc_of(ZE_IMAGE_TYPE_2D, 4, 4, 1, 1);
  desc.flags = 0;
  ze_image_handle_t image = image_of(desc);
  float *out = shared_memory(16);
  ze_command_list_handle_t list = in_order_list();
  const ze_group_count_t one = {1, 1, 1};
  SET(beyond, 0, image);
  SET(beyond, 1, out);
  OK(zeCommandListAppendLaunchKernel(list, beyond, &one, NULL, 0, NULL));
  CHECK(zeCommandListHostSynchronize(list, FOREVER) != ZE_RESULT_SUCCESS);
  SET(doubled, 0, image);
  OK(zeCommandListAppendLaunchKernel(list, doubled, &one, NULL, 0, NULL));
  CHECK(zeCommandListHostSynchronize(list, FOREVER) != ZE_RESULT_SUCCESS);
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, out));
  OK(zeImageDestroy(image));
  OK(zeKernelDestroy(beyond));
  OK(zeKernelDestroy(doubled));
  OK(zeModuleDestroy(module));
}

static void work_items_have_their_own_images(void) {
  enum { N = 100 };
  ze_module_handle_t module = module_of("images");
  ze_kernel_handle_t kernel = kernel_of(module, "chosen");
  ze_image_desc_t desc = desc_of(ZE_IMAGE_TYPE_2D, 4, 1, 1, 1);
  ze_image_handle_t a = image_of(desc), b = image_of(desc);
  uint8_t ones[16], twos[16];
  memset(ones, 51, 16);
  memset(twos, 102, 16);
  float *out = shared_memory(N * sizeof(float));
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendImageCopyFromMemory(list, a, ones, NULL, NULL, 0, NULL));
  OK(zeCommandListAppendImageCopyFromMemory(list, b, twos, NULL, NULL, 0, NULL));
  SET(kernel, 0, a);
  SET(kernel, 1, b);
  SET(kernel, 2, out);
  OK(zeKernelSetGroupSize(kernel, N, 1, 1));
  const ze_group_count_t one = {1, 1, 1};
  OK(zeCommandListAppendLaunchKernel(list, kernel, &one, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int i = 0; i < N; i++) {
    float want = (float)(i % 5) * (i % 2 ? 0.2f : 0.4f);
    CHECK(out[i] - want < 1e-6f && want - out[i] < 1e-6f);
  }
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, out));
  OK(zeImageDestroy(a));
  OK(zeImageDestroy(b));
  OK(zeKernelDestroy(kernel));
  OK(zeModuleDestroy(module));
}

static void a_closed_list_with_a_destroyed_image_is_refused(void) {
  ze_image_handle_t image = image_of(desc_of(ZE_IMAGE_TYPE_2D, 4, 4, 1, 1));
  ze_command_list_handle_t list;
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
  uint8_t bytes[64];
  OK(zeCommandListCreate(context, device, &desc, &list));
  OK(zeCommandQueueCreate(context, device, &queue_desc, &queue));
  OK(zeCommandListAppendImageCopyToMemory(list, bytes, image, NULL, NULL, 0, NULL));
  OK(zeCommandListClose(list));
  OK(zeImageDestroy(image));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
  OK(zeCommandListDestroy(list));
  OK(zeCommandQueueDestroy(queue));
}

int main(void) {
  begin();
  the_device_has_images();
  images_are_described();
  bad_descriptions_are_refused();
  regions_are_copied();
  images_are_copied_to_images();
  bad_copies_are_refused();
  views_show_an_image_otherwise();
  an_image_lies_in_memory_of_the_program();
  kernels_sample_images();
  kernels_fail_where_nothing_is_defined();
  work_items_have_their_own_images();
  a_closed_list_with_a_destroyed_image_is_refused();
  finish("images");
  return 0;
}
