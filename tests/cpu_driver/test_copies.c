/* SPDX-License-Identifier: Apache-2.0 */
/* test_copies.c: copies, fills and regions, on every kind of memory. */
#include "harness.h"

enum { SIZE = 1 << 20 };

static void copy_there_and_back(void *between) {
  unsigned char *from = malloc(SIZE), *to = calloc(1, SIZE);
  for (int i = 0; i < SIZE; i++) from[i] = (unsigned char)(i * 7);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryCopy(list, between, from, SIZE, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, to, between, SIZE, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(memcmp(from, to, SIZE) == 0);
  OK(zeCommandListDestroy(list));
  free(from);
  free(to);
}

static void fills_repeat_their_pattern(void) {
  unsigned char pattern[128], *memory = host_memory(SIZE);
  for (int i = 0; i < 128; i++) pattern[i] = (unsigned char)(i + 1);
  ze_command_list_handle_t list = in_order_list();
  for (size_t size = 1; size <= 128; size *= 2) {
    size_t bytes = 128 * 781; /* no power of two */
    memset(memory, 0, SIZE);
    OK(zeCommandListAppendMemoryFill(list, memory, pattern, size, bytes, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
    for (size_t i = 0; i < bytes; i++) CHECK(memory[i] == pattern[i % size]);
    CHECK(memory[bytes] == 0);
  }
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendMemoryFill(list, memory, pattern, 3, 6, NULL, 0, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendMemoryFill(list, memory, pattern, 0, 6, NULL, 0, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendMemoryFill(list, memory, pattern, 256, 256, NULL, 0, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendMemoryFill(list, memory, pattern, 8, 100, NULL, 0, NULL));
  GIVES(ERROR_UNSUPPORTED_ALIGNMENT, zeCommandListAppendMemoryFill(list, memory + 4, pattern, 8, 64, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryFill(list, memory + 1, pattern, 1, 3, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
}

/* Powers of two up to what the group says, on either group, and nothing else. */
static void groups_limit_patterns(void) {
  ze_command_queue_group_properties_t groups[2] = {{.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES},
                                                   {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES}};
  uint32_t count = 2;
  OK(zeDeviceGetCommandQueueGroupProperties(device, &count, groups));
  CHECK(count == 2 && groups[0].maxMemoryFillPatternSize > groups[1].maxMemoryFillPatternSize);
  unsigned char pattern[256] = {9}, *memory = device_memory(4096);
  for (uint32_t ordinal = 0; ordinal < count; ordinal++) {
    ze_command_list_handle_t list = immediate_on(ordinal, 0, 0);
    for (size_t size = 1; size <= sizeof(pattern); size++) {
      bool good = (size & (size - 1)) == 0 && size <= groups[ordinal].maxMemoryFillPatternSize;
      ze_result_t result = zeCommandListAppendMemoryFill(list, memory, pattern, size, 4096, NULL, 0, NULL);
      CHECK(result == (good ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_SIZE));
    }
    OK(zeCommandListHostSynchronize(list, FOREVER));
    OK(zeCommandListDestroy(list));
  }
  OK(zeMemFree(context, memory));
}

/* The target gets what the source held before, whichever begins first. */
static void ranges_may_overlap(void) {
  enum { BYTES = 100000 };
  unsigned char *memory = host_memory(BYTES);
  ze_command_list_handle_t list = in_order_list();
  static const int shifts[] = {1, 63, 4096, 50000};
  for (int i = 0; i < 8; i++) {
    int shift = shifts[i / 2], from = i & 1 ? shift : 0, to = i & 1 ? 0 : shift;
    for (int k = 0; k < BYTES; k++) memory[k] = (unsigned char)(k * 7 / 3);
    OK(zeCommandListAppendMemoryCopy(list, memory + to, memory + from, (size_t)(BYTES - shift), NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
    for (int k = 0; k < BYTES - shift; k++) CHECK(memory[to + k] == (unsigned char)((from + k) * 7 / 3));
  }
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
}

static void regions_copy_boxes(void) {
  enum { W = 64, H = 32, D = 4 };
  unsigned char *from = shared_memory(W * H * D), *to = shared_memory(W * H * D);
  for (int i = 0; i < W * H * D; i++) from[i] = (unsigned char)(i * 13 + 1);
  memset(to, 0, W * H * D);
  ze_copy_region_t source = {3, 5, 1, 10, 7, 2}, target = {20, 2, 0, 10, 7, 2};
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryCopyRegion(list, to, &target, W, W * H, from, &source, W, W * H, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  for (int z = 0; z < D; z++)
    for (int y = 0; y < H; y++)
      for (int x = 0; x < W; x++) {
        bool inside = x >= 20 && x < 30 && y >= 2 && y < 9 && z < 2;
        int expected = inside ? from[((z + 1) * H + y + 3) * W + x - 17] : 0;
        CHECK(to[(z * H + y) * W + x] == expected);
      }
  GIVES(ERROR_OVERLAPPING_REGIONS, zeCommandListAppendMemoryCopyRegion(list, to, &target, W, W * H, to, &source, W,
                                                                       W * H, NULL, 0, NULL) == ZE_RESULT_SUCCESS
                                       ? ZE_RESULT_ERROR_OVERLAPPING_REGIONS /* apart in x: no overlap */
                                       : ZE_RESULT_ERROR_UNKNOWN);
  ze_copy_region_t near = {12, 5, 1, 10, 7, 2};
  GIVES(ERROR_OVERLAPPING_REGIONS,
        zeCommandListAppendMemoryCopyRegion(list, to, &near, W, W * H, to, &source, W, W * H, NULL, 0, NULL));
  ze_copy_region_t other = {0, 0, 0, 9, 7, 2};
  GIVES(ERROR_INVALID_SIZE,
        zeCommandListAppendMemoryCopyRegion(list, to, &other, W, W * H, from, &source, W, W * H, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, from));
  OK(zeMemFree(context, to));
}

static void wrong_arguments_are_refused(void) {
  char *memory = device_memory(4096), plain[16];
  ze_command_list_handle_t list = in_order_list();
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListAppendMemoryCopy(NULL, memory, plain, 16, NULL, 0, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE,
        zeCommandListAppendMemoryCopy((ze_command_list_handle_t)plain, memory, plain, 16, NULL, 0, NULL));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListAppendMemoryCopy(list, NULL, plain, 16, NULL, 0, NULL));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListAppendMemoryCopy(list, memory, NULL, 16, NULL, 0, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendMemoryCopy(list, memory, plain, 16, NULL, 1, NULL));
  GIVES(ERROR_INVALID_SYNCHRONIZATION_OBJECT,
        zeCommandListAppendMemoryCopy(list, memory, plain, 16, (ze_event_handle_t)list, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryCopy(list, memory + 4090, plain, 16, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, memory + 4080, plain, 16, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, memory, plain, 0, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeMemFree(context, memory));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryCopy(list, memory, plain, 16, NULL, 0, NULL));
  OK(zeCommandListDestroy(list));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListAppendMemoryCopy(list, plain, plain, 16, NULL, 0, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListDestroy(list));
}

int main(void) {
  begin();
  void *memory[] = {device_memory(SIZE), host_memory(SIZE), shared_memory(SIZE), malloc(SIZE)};
  for (int i = 0; i < 4; i++) copy_there_and_back(memory[i]);
  for (int i = 0; i < 3; i++) OK(zeMemFree(context, memory[i]));
  free(memory[3]);
  fills_repeat_their_pattern();
  groups_limit_patterns();
  ranges_may_overlap();
  regions_copy_boxes();
  wrong_arguments_are_refused();
  finish("copies");
  return 0;
}
