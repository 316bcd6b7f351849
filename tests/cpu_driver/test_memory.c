/* SPDX-License-Identifier: Apache-2.0 */
/* test_memory.c: allocations: addresses, limits, what is said of a pointer, and freeing. */
#include <pthread.h>
#include <sys/mman.h>

#include "harness.h"

static ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC};
static ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC};
static const size_t capacity = (size_t)16 << 30;

static void sizes_and_alignments(void) {
  void *p;
  GIVES(ERROR_UNSUPPORTED_SIZE, zeMemAllocDevice(context, &on_device, 0, 0, device, &p));
  GIVES(ERROR_UNSUPPORTED_SIZE, zeMemAllocHost(context, &on_host, 0, 0, &p));
  GIVES(ERROR_UNSUPPORTED_ALIGNMENT, zeMemAllocDevice(context, &on_device, 64, 3, device, &p));
  GIVES(ERROR_INVALID_NULL_POINTER, zeMemAllocDevice(context, NULL, 64, 0, device, &p));
  GIVES(ERROR_INVALID_NULL_POINTER, zeMemAllocDevice(context, &on_device, 64, 0, device, NULL));
  ze_device_mem_alloc_desc_t odd = on_device;
  odd.flags = 0x8;
  GIVES(ERROR_INVALID_ENUMERATION, zeMemAllocDevice(context, &odd, 64, 0, device, &p));
  for (size_t alignment = 1; alignment <= (size_t)1 << 30; alignment *= 2) {
    OK(zeMemAllocDevice(context, &on_device, 100, alignment, device, &p));
    CHECK((uintptr_t)p % alignment == 0);
    OK(zeMemFree(context, p));
  }
}

static void capacity_is_kept(void) {
  void *p, *q;
  GIVES(ERROR_UNSUPPORTED_SIZE, zeMemAllocDevice(context, &on_device, capacity + 1, 0, device, &p));
  ze_relaxed_allocation_limits_exp_desc_t relaxed = {.stype = ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
                                                     .flags = ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE};
  ze_device_mem_alloc_desc_t with = on_device;
  with.pNext = &relaxed;
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeMemAllocDevice(context, &with, capacity + 1, 0, device, &p));
  OK(zeMemAllocDevice(context, &on_device, capacity, 0, device, &p));
  GIVES(ERROR_OUT_OF_DEVICE_MEMORY, zeMemAllocDevice(context, &on_device, 1, 0, device, &q));
  ze_device_usablemem_size_ext_properties_t usable = {.stype = ZE_STRUCTURE_TYPE_DEVICE_USABLEMEM_SIZE_EXT_PROPERTIES};
  ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, .pNext = &usable};
  OK(zeDeviceGetProperties(device, &properties));
  CHECK(usable.currUsableMemSize == 0);
  ((char *)p)[capacity - 1] = 1; /* committed at first touch only */
  OK(zeMemFree(context, p));
  OK(zeDeviceGetProperties(device, &properties));
  CHECK(usable.currUsableMemSize == capacity);
}

static void pointers_are_known(void) {
  char *pointers[] = {device_memory(5000), host_memory(5000), shared_memory(5000)};
  ze_memory_type_t types[] = {ZE_MEMORY_TYPE_DEVICE, ZE_MEMORY_TYPE_HOST, ZE_MEMORY_TYPE_SHARED};
  ze_memory_allocation_properties_t p = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  ze_device_handle_t owner;
  uint64_t last = 0;
  for (int i = 0; i < 3; i++) {
    for (int offset = 0; offset < 5000; offset += 4999) {
      void *base;
      size_t size;
      OK(zeMemGetAllocProperties(context, pointers[i] + offset, &p, &owner));
      CHECK(p.type == types[i] && p.id != last && owner == (i == 1 ? NULL : device));
      OK(zeMemGetAddressRange(context, pointers[i] + offset, &base, &size));
      CHECK(base == pointers[i] && size == 5000);
    }
    last = p.id;
    OK(zeMemGetAllocProperties(context, pointers[i] + 5000, &p, &owner));
    CHECK(p.type == ZE_MEMORY_TYPE_UNKNOWN);
    CHECK(zeMemFree(context, pointers[i] + 8) != ZE_RESULT_SUCCESS);
    OK(zeContextMakeMemoryResident(context, device, pointers[i], 5000));
    GIVES(ERROR_INVALID_ARGUMENT, zeContextMakeMemoryResident(context, device, pointers[i], 5001));
    OK(zeContextEvictMemory(context, device, pointers[i], 5000));
    OK(zeMemFree(context, pointers[i]));
    CHECK(zeMemFree(context, pointers[i]) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
  }
  int stack;
  OK(zeMemGetAllocProperties(context, &stack, &p, &owner));
  CHECK(p.type == ZE_MEMORY_TYPE_UNKNOWN && owner == NULL);
  GIVES(ERROR_ADDRESS_NOT_FOUND, zeMemGetAddressRange(context, &stack, NULL, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemFree(context, &stack));
  GIVES(ERROR_INVALID_NULL_POINTER, zeMemFree(context, NULL));
}

static void freeing_can_wait_for_the_device(void) {
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t go = event_of(pool, 0);
  ze_command_list_handle_t list = in_order_list();
  char *a = device_memory(4096), *b = host_memory(4096);
  memset(a, 7, 4096);
  OK(zeCommandListAppendMemoryCopy(list, b, a, 4096, NULL, 1, &go));
  ze_memory_free_ext_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                    .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE};
  OK(zeMemFreeExt(context, &desc, a));
  CHECK(live("usm") == 2); /* still there for the device, */
  CHECK(zeMemFree(context, a) == ZE_RESULT_ERROR_INVALID_ARGUMENT); /* gone for the host */
  OK(zeEventHostSignal(go));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(b[4095] == 7);
  desc.freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE;
  OK(zeMemFreeExt(context, &desc, b));
  CHECK(live("usm") == 0);
  desc.freePolicy = 4;
  GIVES(ERROR_INVALID_ENUMERATION, zeMemFreeExt(context, &desc, &pool));
  OK(zeCommandListDestroy(list));
  OK(zeEventDestroy(go));
  OK(zeEventPoolDestroy(pool));
}

static void *churn(void *seed) {
  uint32_t random = (uint32_t)(uintptr_t)seed;
  void *held[64] = {0};
  for (int i = 0; i < 20000; i++) {
    random = random * 1664525u + 1013904223u;
    void **place = &held[random >> 26];
    if (*place != NULL) {
      CHECK(**(char **)place == (char)(uintptr_t)place);
      OK(zeMemFree(context, *place));
      *place = NULL;
    } else {
      *place = random & 1 ? device_memory((random >> 8) & 0x3ffff ? (random >> 8) & 0x3ffff : 1) : host_memory(100);
      **(char **)place = (char)(uintptr_t)place;
    }
  }
  for (int i = 0; i < 64; i++)
    if (held[i] != NULL) OK(zeMemFree(context, held[i]));
  return NULL;
}

static void threads_allocate_together(void) {
  pthread_t threads[4];
  for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, churn, (void *)(i + 1));
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  CHECK(live("usm") == 0);
}

static void a_context_takes_its_memory_along(void) {
  ze_context_handle_t first = context;
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  OK(zeContextCreateEx(driver, &desc, 1, &device, &context));
  void *left = device_memory(1 << 20);
  CHECK(zeMemFree(first, left) == ZE_RESULT_ERROR_INVALID_ARGUMENT);
  OK(zeContextDestroy(context));
  CHECK(live("usm") == 0);
  context = first;
}

/* Memory that devices may only read; a host and a copy from it may do what they like. */
static void read_only_memory_is_not_written(void) {
  ze_host_mem_alloc_desc_t desc = on_host;
  void *memory, *target = device_memory(4096);
  desc.flags = 0x20;
  GIVES(ERROR_INVALID_ENUMERATION, zeMemAllocHost(context, &desc, 4096, 0, &memory));
  desc.flags = ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY | ZE_HOST_MEM_ALLOC_FLAG_BIAS_WRITE_COMBINED;
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &desc, 4096, 0, &memory));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocShared(context, &on_device, &desc, 4096, 0, device, &memory));
  desc.flags = ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY;
  OK(zeMemAllocHost(context, &desc, 4096, 0, &memory));
  memset(memory, 7, 4096);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryCopy(list, target, memory, 4096, NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryCopy(list, memory, target, 4096, NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendMemoryFill(list, memory, "x", 1, 4096, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeMemFree(context, memory));
  void *again = host_memory(4096); /* what takes its place may be written */
  OK(zeCommandListAppendMemoryCopy(list, again, target, 4096, NULL, 0, NULL));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  CHECK(*(char *)again == 7);
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, again));
  OK(zeMemFree(context, target));
}

/* To leave these structures out of account would give the program other memory than it asked for. Device and host memory
 * are imported and exported by file descriptor: test_external.c. */
static void memory_from_elsewhere_is_refused(void) {
  uint32_t types[] = {ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC,
                      ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD};
  for (int i = 0; i < 3; i++) {
    ze_external_memory_import_fd_t extra = {.stype = (ze_structure_type_t)types[i]};
    ze_host_mem_alloc_desc_t host = on_host;
    ze_device_mem_alloc_desc_t local = on_device;
    host.pNext = local.pNext = &extra;
    void *memory;
    if (i == 0) GIVES(ERROR_UNSUPPORTED_ENUMERATION, zeMemAllocDevice(context, &local, 4096, 0, device, &memory));
    GIVES(ERROR_UNSUPPORTED_ENUMERATION, zeMemAllocShared(context, &local, &on_host, 4096, 0, device, &memory));
    GIVES(ERROR_UNSUPPORTED_ENUMERATION, zeMemAllocShared(context, &on_device, &host, 4096, 0, device, &memory));
  }
}

/* The program's own memory, in whole pages, each in one import at a time. */
// Long: each kind of memory that is refused, one after the other.
static void memory_of_the_program_is_imported(void) {
  enum { SIZE = 8 * 4096 };
  char *own = aligned_alloc(4096, SIZE);
  ze_external_memmap_sysmem_ext_desc_t extra = {
      .stype = ZE_STRUCTURE_TYPE_EXTERNAL_MEMMAP_SYSMEM_EXT_DESC, .pSystemMemory = own, .size = SIZE};
  ze_host_mem_alloc_desc_t host = on_host;
  host.pNext = &extra;
  void *memory, *again;
  OK(zeMemAllocHost(context, &host, SIZE, 0, &memory));
  CHECK(memory == own);
  ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  OK(zeMemGetAllocProperties(context, own + SIZE - 1, &properties, NULL));
  CHECK(properties.type == ZE_MEMORY_TYPE_HOST_IMPORTED && properties.pageSize == 4096);
  void *base;
  size_t size;
  OK(zeMemGetAddressRange(context, own + 5000, &base, &size));
  CHECK(base == own && size == SIZE);
  OK(zeContextMakeMemoryResident(context, device, own, SIZE));

  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &host, SIZE, 0, &again));
  extra.pSystemMemory = own + SIZE - 4096;
  extra.size = 4096;
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &host, 4096, 0, &again));
  extra.pSystemMemory = own + 64;
  GIVES(ERROR_UNSUPPORTED_ALIGNMENT, zeMemAllocHost(context, &host, 4096, 0, &again));
  extra.pSystemMemory = own;
  GIVES(ERROR_UNSUPPORTED_SIZE, zeMemAllocHost(context, &host, 100, 0, &again));
  GIVES(ERROR_UNSUPPORTED_SIZE, zeMemAllocHost(context, &host, 0, 0, &again));
  extra.pSystemMemory = NULL;
  GIVES(ERROR_INVALID_NULL_POINTER, zeMemAllocHost(context, &host, 4096, 0, &again));
  void *allocated = host_memory(4096);
  extra.pSystemMemory = allocated;
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &host, 4096, 0, &again));
  OK(zeMemFree(context, allocated));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &host, 4096, 0, &again)); /* the heap's even so */
  extra.pSystemMemory = allocated = device_memory(4096);
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &host, 4096, 0, &again));
  OK(zeMemFree(context, allocated));
  char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  extra.pSystemMemory = pages;
  extra.size = (size_t)3 * 4096;
  munmap(pages + 4096, 4096); /* in the middle */
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &host, 3 * 4096, 0, &again));
  munmap(pages, 4096), munmap(pages + 2 * 4096, 4096);
  extra.pSystemMemory = pages = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  extra.size = 4096;
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &host, 4096, 0, &again));
  munmap(pages, 4096);
  void *reserved;
  OK(zeVirtualMemReserve(context, NULL, (size_t)2 << 20, &reserved));
  extra.pSystemMemory = reserved;
  GIVES(ERROR_INVALID_ARGUMENT, zeMemAllocHost(context, &host, 4096, 0, &again));
  OK(zeVirtualMemFree(context, reserved, (size_t)2 << 20));

  void *target = device_memory(SIZE);
  memset(own, 3, SIZE);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendMemoryCopy(list, target, own, SIZE, NULL, 0, NULL));
  char byte = 4;
  OK(zeCommandListAppendMemoryFill(list, own, &byte, 1, SIZE, NULL, 0, NULL));
  OK(zeCommandListAppendMemoryCopy(list, own, target, SIZE / 2, NULL, 0, NULL));
  ze_memory_free_ext_desc_t blocking = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                        .freePolicy = ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE};
  OK(zeMemFreeExt(context, &blocking, own));
  CHECK(own[0] == 3 && own[SIZE - 1] == 4);
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, target));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemFree(context, own));
  GIVES(ERROR_INVALID_ARGUMENT, zeMemFreeExt(context, &blocking, own));
  OK(zeMemGetAllocProperties(context, own, &properties, NULL));
  CHECK(properties.type == ZE_MEMORY_TYPE_UNKNOWN);

  extra.pSystemMemory = own; /* and once more: nothing of it is left */
  extra.size = SIZE;
  OK(zeMemAllocHost(context, &host, SIZE, 0, &memory));
  OK(zeMemFree(context, memory));
  free(own);
}

static void advice_is_what_the_specification_lists(void) {
  void *memory = shared_memory(4096);
  ze_command_list_handle_t list = in_order_list();
  for (int advice = 0; advice <= 9; advice++)
    OK(zeCommandListAppendMemAdvise(list, device, memory, 4096, (ze_memory_advice_t)advice));
  GIVES(ERROR_INVALID_ENUMERATION, zeCommandListAppendMemAdvise(list, device, memory, 4096, (ze_memory_advice_t)10));
  OK(zeCommandListHostSynchronize(list, FOREVER));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
}

int main(void) {
  begin();
  read_only_memory_is_not_written();
  memory_from_elsewhere_is_refused();
  memory_of_the_program_is_imported();
  advice_is_what_the_specification_lists();
  sizes_and_alignments();
  capacity_is_kept();
  pointers_are_known();
  freeing_can_wait_for_the_device();
  threads_allocate_together();
  a_context_takes_its_memory_along();
  finish("memory");
  return 0;
}
