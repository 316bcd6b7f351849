/* SPDX-License-Identifier: Apache-2.0 */
/* test_atomic_access.c: the attributes of atomics of shared allocations: what is set is there, by device, until it is set
 * again or the allocation ends. */
#include "children.h"

enum { SIZE = 5000, ALL = 0x7f, NO_ATOMICS = ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_ATOMICS };

static ze_device_handle_t devices[3];

static uint32_t attributes(int number, const void *memory) {
  ze_memory_atomic_attr_exp_flags_t flags = 0xff;
  OK(zeMemGetAtomicAccessAttributeExp(context, devices[number], memory, 1, &flags));
  return flags;
}

/* Each of the 128 combinations, of which those are refused that say yes and no. */
static void every_combination(char *memory) {
  for (uint32_t flags = 0; flags <= ALL; flags++) {
    bool contradicts = false;
    for (int no = 1; no <= 5; no += 2)
      contradicts |= (flags >> (no + 1) & 1) != 0 && ((flags >> no & 1) != 0 || (flags & NO_ATOMICS) != 0);
    uint32_t before = attributes(0, memory);
    ze_result_t result = zeMemSetAtomicAccessAttributeExp(context, devices[0], memory + flags, SIZE - flags, flags);
    CHECK(result == (contradicts ? ZE_RESULT_ERROR_INVALID_ARGUMENT : ZE_RESULT_SUCCESS));
    CHECK(attributes(0, memory + SIZE - 1) == (contradicts ? before : flags));
    CHECK(attributes(1, memory) == 0);
  }
}

static void devices_have_their_own(char *memory) {
  const uint32_t yes = ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_DEVICE_ATOMICS;
  OK(zeMemSetAtomicAccessAttributeExp(context, NULL, memory, SIZE, NO_ATOMICS)); /* all devices */
  for (int i = 0; i < 3; i++) CHECK(attributes(i, memory) == NO_ATOMICS);
  OK(zeMemSetAtomicAccessAttributeExp(context, devices[2], memory, SIZE, yes));
  for (int i = 0; i < 3; i++) CHECK(attributes(i, memory) == (i == 2 ? yes : NO_ATOMICS));
}

static void what_is_refused(char *memory) {
  ze_memory_atomic_attr_exp_flags_t flags;
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  ze_context_handle_t other;
  OK(zeContextCreateEx(driver, &desc, 1, &devices[1], &other));
  void *wrong[] = {host_memory(SIZE), device_memory(SIZE), &flags};
  for (int i = 0; i < 3; i++) {
    GIVES(ERROR_INVALID_ARGUMENT, zeMemSetAtomicAccessAttributeExp(context, devices[0], wrong[i], 1, 0));
    GIVES(ERROR_INVALID_ARGUMENT, zeMemGetAtomicAccessAttributeExp(context, devices[0], wrong[i], 1, &flags));
  }
  GIVES(ERROR_INVALID_ARGUMENT, zeMemSetAtomicAccessAttributeExp(context, devices[0], memory + 1, SIZE, 0));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemGetAtomicAccessAttributeExp(context, devices[0], memory, SIZE + 1, &flags));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemSetAtomicAccessAttributeExp(other, devices[1], memory, SIZE, 0));
  GIVES(ERROR_INVALID_ENUMERATION, zeMemSetAtomicAccessAttributeExp(context, devices[0], memory, SIZE, ALL + 1));
  GIVES(ERROR_INVALID_NULL_POINTER, zeMemSetAtomicAccessAttributeExp(context, devices[0], NULL, SIZE, 0));
  GIVES(ERROR_INVALID_NULL_POINTER, zeMemGetAtomicAccessAttributeExp(context, devices[0], memory, SIZE, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeMemGetAtomicAccessAttributeExp(context, NULL, memory, SIZE, &flags));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeMemSetAtomicAccessAttributeExp(context, (void *)context, memory, SIZE, 0));
  ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
  ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
  void *of_other;
  OK(zeMemAllocShared(other, &on_device, &on_host, SIZE, 0, devices[1], &of_other));
  OK(zeMemSetAtomicAccessAttributeExp(other, devices[1], of_other, SIZE, 0));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemSetAtomicAccessAttributeExp(other, devices[0], of_other, SIZE, 0));
  OK(zeContextDestroy(other)); /* with its memory */
  OK(zeMemFree(context, wrong[0]));
  OK(zeMemFree(context, wrong[1]));
}

static void three_devices(void) {
  begin();
  uint32_t count = 3;
  OK(zeDeviceGet(driver, &count, devices));
  char *memory = shared_memory(SIZE);
  CHECK(attributes(0, memory) == 0);
  every_combination(memory);
  devices_have_their_own(memory);
  what_is_refused(memory);
  OK(zeMemFree(context, memory));
  char *again = shared_memory(SIZE); /* in the same place */
  CHECK(again == memory && attributes(0, again) == 0);
  OK(zeMemFree(context, again));
  finish("atomic_access");
}

int main(void) {
  CHECK(in_child("L0RT_CPU_DEVICES", "3", three_devices, NULL, 0) == 0);
  return 0;
}
