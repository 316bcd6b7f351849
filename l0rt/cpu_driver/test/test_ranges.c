/* SPDX-License-Identifier: Apache-2.0 */
/* test_ranges.c: one handle for addresses that several physical memories are mapped to (extension of 1.18). */
#include <string.h>
#include <unistd.h>

#include "harness.h"

enum { PAGE = 64 << 10, PARTS = 5, BEFORE = 8192 };

static ze_physical_mem_handle_t parts[PARTS];
static unsigned char *range, *copy;
static ze_command_list_handle_t list;

static ze_result_t share(const void *pointer, size_t size, ze_ipc_mem_handle_t *handle) {
  ze_ipc_mem_handle_type_ext_desc_t sort = {.stype = ZE_STRUCTURE_TYPE_IPC_MEM_HANDLE_TYPE_EXT_DESC, .typeFlags = 1};
  ze_ipc_phys_mem_handle_range_ext_desc_t desc = {
      .stype = ZE_STRUCTURE_TYPE_IPC_PHYS_MEM_HANDLE_RANGE_EXT_DESC, .pNext = &sort, .size = size};
  return zeMemGetIpcHandleWithProperties(context, pointer, &desc, handle);
}

static void fill(unsigned char *at, unsigned char value, size_t size) {
  OK(zeCommandListAppendMemoryFill(list, at, &value, 1, size, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
}

/* All these bytes have this value. */
static bool has(const unsigned char *at, unsigned char value, size_t size) {
  OK(zeCommandListAppendMemoryCopy(list, copy, at, size, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  return copy[0] == value && memcmp(copy, copy + 1, size - 1) == 0;
}

/* Each physical memory has two pages, and shows its second one; the last page has none. */
static void map(void) {
  ze_physical_mem_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC, .size = 2 * PAGE};
  OK(zeVirtualMemReserve(context, NULL, (PARTS + 1) * PAGE, (void **)&range));
  for (int i = 0; i < PARTS; i++) {
    OK(zePhysicalMemCreate(context, device, &desc, &parts[i]));
    OK(zeVirtualMemMap(context, range + i * PAGE, PAGE, parts[i], PAGE, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE));
    fill(range + i * PAGE, (unsigned char)(i + 1), PAGE);
  }
}

static void open_and_change(void) {
  ze_ipc_mem_handle_t handle;
  unsigned char *opened;
  void *base;
  size_t size;
  OK(share(range + BEFORE, 3 * PAGE, &handle));
  for (int turn = 0; turn < 2; turn++) {
    OK(zeMemOpenIpcHandle(context, device, handle, 0, (void **)&opened));
    OK(zeMemGetAddressRange(context, opened + PAGE, &base, &size));
    CHECK(base == opened && size == 3 * PAGE);
    CHECK(has(opened, 1, PAGE - BEFORE) && has(opened + PAGE - BEFORE, 2, PAGE));
    CHECK(has(opened + 2 * PAGE - BEFORE, 3, PAGE) && has(opened + 3 * PAGE - BEFORE, 4, BEFORE));
    fill(opened + PAGE - BEFORE, 9, PAGE);
    CHECK(has(range + PAGE, 9, PAGE) && has(range, 1, PAGE) && has(range + 2 * PAGE, 3, PAGE));
    fill(range + PAGE, 2, PAGE);
    OK(zeMemCloseIpcHandle(context, opened));
    GIVES(ERROR_INVALID_ARGUMENT, zeMemCloseIpcHandle(context, opened));
  }
  OK(zeMemOpenIpcHandle(context, device, handle, 0, (void **)&opened));
  OK(zeMemPutIpcHandle(context, handle)); /* what was opened stays */
  OK(zeMemPutIpcHandle(context, handle)); /* and a handle that is gone is none */
  CHECK(has(opened + PAGE - BEFORE, 2, PAGE));
  void *again;
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, handle, 0, &again));
  OK(zeMemCloseIpcHandle(context, opened));
}

static void refuse(void) {
  ze_ipc_mem_handle_t handle;
  unsigned char *plain = device_memory(4 * PAGE);
  uint64_t descriptor;
  GIVES(ERROR_ADDRESS_NOT_FOUND, share(range + PAGE, PARTS * PAGE, &handle));
  GIVES(ERROR_ADDRESS_NOT_FOUND, share(range + PARTS * PAGE, PAGE, &handle));
  GIVES(ERROR_ADDRESS_NOT_FOUND, share(range, SIZE_MAX - PAGE, &handle));
  GIVES(ERROR_INVALID_SIZE, share(range, 0, &handle));
  GIVES(ERROR_INVALID_NULL_POINTER, share(NULL, PAGE, &handle));
  GIVES(ERROR_INVALID_ARGUMENT, share(plain, PAGE, &handle));
  GIVES(ERROR_UNSUPPORTED_ALIGNMENT, share(range + 1, PAGE, &handle));
  OK(share(range, PARTS * PAGE, &handle));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemGetFileDescriptorFromIpcHandleExp(context, handle, &descriptor));
  /* A part whose memory has gone. */
  void *opened;
  OK(zeVirtualMemUnmap(context, range + 2 * PAGE, PAGE));
  OK(zePhysicalMemDestroy(context, parts[2]));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemOpenIpcHandle(context, device, handle, 0, &opened));
  GIVES(ERROR_ADDRESS_NOT_FOUND, share(range, PARTS * PAGE, &handle));
  OK(zeMemFree(context, plain));
}

int main(void) {
  begin();
  copy = host_memory(PAGE);
  list = in_order_list();
  map();
  open_and_change();
  refuse();
  for (int i = 0; i < PARTS; i++) {
    if (i == 2) continue;
    OK(zeVirtualMemUnmap(context, range + i * PAGE, PAGE));
    OK(zePhysicalMemDestroy(context, parts[i]));
  }
  OK(zeVirtualMemFree(context, range, (PARTS + 1) * PAGE));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, copy));
  finish("ranges");
}
