/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"

#include <errno.h>
#include <string.h>

#include "report.h"

#define SPACE 8192 /* for any answer */
#define HOST_MEMORY (24ull << 30)

static void *at(uint8_t *answer) { return answer; }

static size_t config(const xe_device *device, uint8_t *answer) {
  const xe_product *product = device->product;
  struct drm_xe_query_config *config = at(answer);
  config->num_params = DRM_XE_QUERY_CONFIG_MAX_EXEC_QUEUE_PRIORITY + 1;
  config->info[DRM_XE_QUERY_CONFIG_REV_AND_DEVICE_ID] = product->id | (uint64_t)product->revision << 16;
  config->info[DRM_XE_QUERY_CONFIG_FLAGS] = (product->vram ? DRM_XE_QUERY_CONFIG_FLAG_HAS_VRAM : 0) |
                                            DRM_XE_QUERY_CONFIG_FLAG_HAS_LOW_LATENCY;
  config->info[DRM_XE_QUERY_CONFIG_MIN_ALIGNMENT] = xe_product_page(product);
  config->info[DRM_XE_QUERY_CONFIG_VA_BITS] = product->address_bits;
  config->info[DRM_XE_QUERY_CONFIG_MAX_EXEC_QUEUE_PRIORITY] = 2;
  return sizeof *config + config->num_params * sizeof *config->info;
}

/* The hardware's own table: a key, the number of words, the words. */
static size_t hardware_table(const xe_device *device, uint8_t *answer) {
  const xe_product *product = device->product;
  uint32_t *words = at(answer);
  size_t used = 0;
  int subslices = product->slices * product->subslices;
  bool xe2 = xe_product_is_xe2(product), hbm = product->memory == 3;
  const struct {
    uint32_t key, value;
    bool there;
  } entries[] = {
      {1, product->slices, true},
      {2, subslices, !xe2},
      {3, product->eus, !xe2},
      {65, product->slm_kib, !xe2},
      {70, subslices, xe2},
      {71, product->eus, xe2},
      {73, product->slm_kib, xe2},
      {11, product->memory, true},
      {15, product->threads, true},
      {23, product->render, true},
      {24, product->compute, true},
      {64, product->l3_bank_kib, true},
      {10, 12, !hbm}, /* channels of memory */
      {74, 4, hbm}, /* stacks, and the channels of each */
      {75, 8, hbm},
  };
  for (unsigned i = 0; i < sizeof entries / sizeof *entries; i++)
    if (entries[i].there) {
      words[used++] = entries[i].key;
      words[used++] = 1;
      words[used++] = entries[i].value;
    }
  return used * sizeof *words;
}

static size_t tiles(const xe_device *device, uint8_t *answer) {
  const xe_product *product = device->product;
  struct drm_xe_query_gt_list *list = at(answer);
  uint64_t regions = product->vram ? ((1ull << product->tiles) - 1) << 1 | 1 : 1; /* the first is the host's */
  list->num_gt = xe_product_gts(product);
  for (int i = 0; i < xe_product_gts(product); i++) {
    bool media = i >= product->tiles;
    int tile = media ? 0 : i;
    uint64_t near = product->vram ? 2ull << tile : 1;
    list->gt_list[i] = (struct drm_xe_gt){
        .type = media ? DRM_XE_QUERY_GT_TYPE_MEDIA : DRM_XE_QUERY_GT_TYPE_MAIN,
        .tile_id = tile,
        .gt_id = i,
        .reference_clock = product->clock,
        .near_mem_regions = near,
        .far_mem_regions = regions & ~near,
        .ip_ver_major = product->ip[0],
        .ip_ver_minor = product->ip[1],
        .ip_ver_rev = product->ip[2],
    };
  }
  return sizeof *list + list->num_gt * sizeof *list->gt_list;
}

static size_t engines(const xe_device *device, uint8_t *answer) {
  const xe_product *product = device->product;
  struct drm_xe_query_engines *list = at(answer);
  const struct {
    int class, number;
    bool media;
  } kinds[] = {
      {DRM_XE_ENGINE_CLASS_RENDER, product->render, false}, /* rcs */
      {DRM_XE_ENGINE_CLASS_COPY, product->copy, false}, /* bcs */
      {DRM_XE_ENGINE_CLASS_COMPUTE, product->compute, false}, /* ccs */
      {DRM_XE_ENGINE_CLASS_VIDEO_DECODE, 2, true}, /* vcs */
      {DRM_XE_ENGINE_CLASS_VIDEO_ENHANCE, 2, true}, /* vecs */
  };
  for (int gt = 0; gt < xe_product_gts(product); gt++)
    for (unsigned kind = 0; kind < sizeof kinds / sizeof *kinds; kind++)
      for (int i = 0; i < kinds[kind].number && kinds[kind].media == (gt >= product->tiles); i++)
        list->engines[list->num_engines++].instance = (struct drm_xe_engine_class_instance){
            .engine_class = kinds[kind].class, .engine_instance = i, .gt_id = gt};
  return sizeof *list + list->num_engines * sizeof *list->engines;
}

static size_t memory(const xe_device *device, uint8_t *answer) {
  const xe_product *product = device->product;
  struct drm_xe_query_mem_regions *list = at(answer);
  list->mem_regions[list->num_mem_regions++] = (struct drm_xe_mem_region){
      .mem_class = DRM_XE_MEM_REGION_CLASS_SYSMEM,
      .min_page_size = 4096,
      .total_size = HOST_MEMORY,
      .used = 1ull << 30,
  };
  for (int tile = 0; product->vram && tile < product->tiles; tile++)
    list->mem_regions[list->num_mem_regions++] = (struct drm_xe_mem_region){
        .mem_class = DRM_XE_MEM_REGION_CLASS_VRAM,
        .instance = 1 + tile,
        .min_page_size = xe_product_page(product),
        .total_size = product->vram,
        .used = device->vram_used[tile],
        .cpu_visible_size = product->vram,
        .cpu_visible_used = device->vram_used[tile],
    };
  return sizeof *list + list->num_mem_regions * sizeof *list->mem_regions;
}

static size_t topology(const xe_device *device, uint8_t *answer) {
  const xe_product *product = device->product;
  int subslices = product->slices * product->subslices;
  const struct {
    int type, bits, bytes;
  } masks[] = {
      {DRM_XE_TOPO_DSS_GEOMETRY, product->render ? subslices : 0, 16},
      {DRM_XE_TOPO_DSS_COMPUTE, subslices, 16},
      {DRM_XE_TOPO_L3_BANK, product->l3_banks, 16},
      {xe_product_is_xe2(product) ? DRM_XE_TOPO_SIMD16_EU_PER_DSS : DRM_XE_TOPO_EU_PER_DSS, product->eus, 4},
  };
  size_t used = 0;
  for (int gt = 0; gt < xe_product_gts(product); gt++)
    for (unsigned i = 0; i < sizeof masks / sizeof *masks; i++) {
      struct drm_xe_query_topology_mask *mask = at(answer + used);
      mask->gt_id = gt;
      mask->type = masks[i].type;
      mask->num_bytes = masks[i].bytes;
      int bits = gt < product->tiles ? masks[i].bits : 0; /* media engines have none of these */
      for (int bit = 0; bit < bits; bit++) mask->mask[bit / 8] |= 1 << bit % 8;
      used += sizeof *mask + masks[i].bytes;
    }
  return used;
}

static size_t cycles(const xe_device *device, const struct drm_xe_device_query *query, uint8_t *answer) {
  struct drm_xe_query_engine_cycles *cycles = at(answer);
  if (query->size && query->data) {
    memcpy(cycles, (const void *)(uintptr_t)query->data, sizeof *cycles);
    cycles->width = xe_product_timestamp_bits(device->product);
    cycles->cpu_timestamp = xe_device_now(cycles->clockid);
    cycles->engine_cycles = xe_device_timestamp(device);
    cycles->cpu_delta = 100;
  }
  return sizeof *cycles;
}

static size_t firmware(uint8_t *answer) {
  struct drm_xe_query_uc_fw_version *version = at(answer);
  version->major_ver = 70;
  version->minor_ver = 49;
  version->patch_ver = 4;
  return sizeof *version;
}

int xe_query(const xe_device *device, struct drm_xe_device_query *query) {
  _Alignas(8) uint8_t answer[SPACE] = {0};
  size_t size = 0;
  switch (query->query) {
    case DRM_XE_DEVICE_QUERY_CONFIG: size = config(device, answer); break;
    case DRM_XE_DEVICE_QUERY_HWCONFIG: size = hardware_table(device, answer); break;
    case DRM_XE_DEVICE_QUERY_GT_LIST: size = tiles(device, answer); break;
    case DRM_XE_DEVICE_QUERY_ENGINES: size = engines(device, answer); break;
    case DRM_XE_DEVICE_QUERY_MEM_REGIONS: size = memory(device, answer); break;
    case DRM_XE_DEVICE_QUERY_GT_TOPOLOGY: size = topology(device, answer); break;
    case DRM_XE_DEVICE_QUERY_ENGINE_CYCLES: size = cycles(device, query, answer); break;
    case DRM_XE_DEVICE_QUERY_UC_FW_VERSION: size = firmware(answer); break;
    default: return EINVAL; /* drivers try what only newer kernels answer */
  }
  if (!query->size || !query->data) {
    query->size = size;
    return 0;
  }
  if (query->size < size) return EINVAL;
  memcpy((void *)(uintptr_t)query->data, answer, size);
  query->size = size;
  return 0;
}
