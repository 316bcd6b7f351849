/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h: bytes as a sequence of calls, with valid, destroyed and garbage handles. Nothing may crash, hang or leak:
 * what is left over at a sequence's end is signalled, destroyed and counted.
 *
 * Pointers to memory are in allocations, alive or freed, or in a buffer of this program: the driver takes any other
 * address for the program's own memory, as the specification says. Only calls that return at once are made. */
#ifndef L0RT_CPU_TEST_FUZZ_H
#define L0RT_CPU_TEST_FUZZ_H

#include <time.h>
#include <unistd.h>

#include "modules.h"

enum {
  CONTEXT,
  QUEUE,
  LIST,
  FENCE,
  POOL,
  EVENT,
  PHYSICAL,
  MODULE,
  KERNEL,
  GRAPH,
  EXECUTABLE,
  KINDS,
  SLOTS = 6,
  BLOCKS = 6,
  SPAN = 1 << 16
};
enum { PATIENCE = 20 }; /* seconds: a sequence that takes longer hangs */

static void *handles[KINDS][SLOTS]; /* the last ones made, destroyed or not */
static void *blocks[BLOCKS], *reserved[2];
static char buffer[2 * SPAN];
static ze_ipc_mem_handle_t block_handle;
static binary good_module, native_module;
static ze_ipc_event_pool_handle_t pool_handle;
static const uint8_t *bytes;
static size_t left;

static uint32_t byte(void) {
  if (left == 0) return 0;
  left--;
  return *bytes++;
}

static uint32_t below(uint32_t n) { return byte() % n; }

/* Usually one of this kind; at times of another, at times none at all. */
static void *handle(int kind) {
  uint32_t how = byte();
  if (how < 224) return handles[kind][how % SLOTS];
  if (how < 240) return handles[how % KINDS][how / KINDS % SLOTS];
  void *garbage[] = {NULL, (void *)1, (void *)UINTPTR_MAX, buffer, &left, (char *)context + 8, device, driver};
  return garbage[how % 8];
}

static void *a_context(void) { return below(8) != 0 ? context : handle(CONTEXT); }
static void *a_device(void) { return below(16) != 0 ? device : handle(EVENT); }
static ze_event_handle_t an_event(void) { return below(2) ? NULL : handle(EVENT); }
static void *a_chain(ze_base_desc_t *desc, uint32_t stype) {
  desc->stype = stype;
  desc->pNext = NULL;
  return below(4) == 0 ? desc : NULL;
}

static char *memory(void) {
  uint32_t how = byte();
  char *start = how < 160 ? blocks[how % BLOCKS] : how < 192 ? reserved[1] : how < 250 ? buffer : NULL;
  return start == NULL ? NULL : start + 16 * byte();
}

static size_t a_size(void) {
  static const size_t sizes[] = {0, 1, 4, 64, 4096, SPAN - 16, SPAN, SPAN + 1, (size_t)2 << 20, SIZE_MAX, SIZE_MAX / 2};
  uint32_t how = byte();
  return how < 16 ? sizes[how % 11] : how; /* a small one keeps within the buffer */
}

/* Sizes of work on memory: the buffer's end is not the driver's to know. */
static size_t work_size(void) {
  size_t size = a_size();
  return size <= SPAN ? size : size % SPAN;
}

static ze_result_t destroy(int kind, void *h) {
  ze_result_t result;
  switch (kind) {
    case CONTEXT: return zeContextDestroy(h);
    case QUEUE: return zeCommandQueueDestroy(h);
    case LIST: return zeCommandListDestroy(h);
    case FENCE: return zeFenceDestroy(h);
    case EVENT: return zeEventDestroy(h);
    case MODULE: return zeModuleDestroy(h);
    case KERNEL: return zeKernelDestroy(h);
    case GRAPH: return zeGraphDestroyExt(h);
    case EXECUTABLE: return zeExecutableGraphDestroyExt(h);
    case POOL:
      result = zeEventPoolDestroy(h);
      return result == ZE_RESULT_ERROR_INVALID_ARGUMENT ? zeEventPoolCloseIpcHandle(h) : result;
    default:
      result = zePhysicalMemDestroy(context, h);
      for (int i = 0; i < SLOTS && result == ZE_RESULT_ERROR_INVALID_ARGUMENT; i++) { /* of another context */
        ze_result_t other = zePhysicalMemDestroy(handles[CONTEXT][i], h);
        if (other != ZE_RESULT_ERROR_INVALID_NULL_HANDLE) result = other;
      }
      return result;
  }
}

/* A place for a new handle: none that is alive may be forgotten. NULL while the one that is there is in use. */
static void *vacant(int kind) {
  void **slot = &handles[kind][below(SLOTS)];
  ze_result_t result = *slot == context ? ZE_RESULT_SUCCESS : destroy(kind, *slot);
  return result == ZE_RESULT_SUCCESS || result == ZE_RESULT_ERROR_INVALID_NULL_HANDLE ? slot : NULL;
}

/* Frees a block of whatever context; one that is not freed by this is gone already. */
static void vacate(void *block) {
  for (int i = -1; i < SLOTS && block != NULL; i++) {
    ze_context_handle_t owner = i < 0 ? context : handles[CONTEXT][i];
    if (zeMemFree(owner, block) == ZE_RESULT_SUCCESS || zeMemCloseIpcHandle(owner, block) == ZE_RESULT_SUCCESS) return;
  }
}

static void allocate(void) {
  void **block = &blocks[below(BLOCKS)];
  ze_base_desc_t next;
  ze_device_mem_alloc_desc_t on_device = {.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC,
                                          .flags = below(10),
                                          .ordinal = below(16) == 0,
                                          .pNext = a_chain(&next, byte())};
  ze_host_mem_alloc_desc_t on_host = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC, .flags = below(18)};
  size_t size = a_size(), alignment = below(4) ? 0 : byte();
  uint32_t how = below(4);
  vacate(*block);
  if (how == 0) zeMemAllocDevice(a_context(), &on_device, size, alignment, a_device(), block);
  if (how == 1) zeMemAllocHost(a_context(), &on_host, size, alignment, block);
  if (how == 2) zeMemAllocShared(a_context(), &on_device, &on_host, size, alignment, a_device(), block);
  if (how == 3) zeMemOpenIpcHandle(a_context(), a_device(), block_handle, below(5), block);
}

/* Kernels that end by themselves, whatever their arguments. */
static const char *const kernels[] = {"add",      "empty", "where", "constants", "reverse",
                                      "by_value", "count", "wild",  "follow",    "required"};

/* A good module stays; a damaged one goes at once: nobody knows how long its kernels would run. */
static void make_module(void *out) {
  binary b = below(4) ? good_module : native_module;
  ze_module_desc_t desc = spirv_desc(b);
  desc.format = b.bytes == native_module.bytes ? ZE_MODULE_FORMAT_NATIVE : ZE_MODULE_FORMAT_IL_SPIRV;
  if (below(4)) {
    zeModuleCreate(a_context(), a_device(), &desc, out, NULL);
    return;
  }
  ze_module_handle_t module;
  ze_kernel_handle_t kernel;
  uint8_t *copy = malloc(b.size);
  memcpy(copy, b.bytes, b.size);
  desc.pInputModule = copy;
  for (uint32_t i = below(3); i > 0; i--) copy[(byte() << 8 | byte()) % b.size] ^= (uint8_t)(1u << below(8));
  if (below(4) == 0) desc.inputSize = (byte() << 8 | byte()) % (b.size + 1);
  if (zeModuleCreate(context, device, &desc, &module, NULL) == ZE_RESULT_SUCCESS) {
    ze_kernel_desc_t kernel_desc = {.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .pKernelName = kernels[below(10)]};
    if (zeKernelCreate(module, &kernel_desc, &kernel) == ZE_RESULT_SUCCESS) OK(zeKernelDestroy(kernel));
    OK(zeModuleDestroy(module));
  }
  free(copy);
}

static void make_kernel(void *out) {
  ze_kernel_desc_t desc = {
      .stype = ZE_STRUCTURE_TYPE_KERNEL_DESC, .flags = below(5), .pKernelName = kernels[below(10)]};
  zeKernelCreate(handle(MODULE), &desc, out);
}

static void use_kernel(void) {
  ze_kernel_handle_t kernel = handle(KERNEL);
  void *values[32] = {memory()}; /* as long as any argument */
  uint32_t x, y, z, count = 0;
  switch (below(4)) {
    case 0: zeKernelSetGroupSize(kernel, byte(), below(4), below(3)); break;
    case 1: zeKernelSetGlobalOffsetExp(kernel, byte(), byte(), byte()); break;
    case 2: zeKernelSuggestGroupSize(kernel, a_size() & 0xffff, byte(), byte(), &x, &y, &z); break;
    default: zeKernelGetAllocationPropertiesExp(kernel, &count, NULL);
  }
  zeKernelSetArgumentValue(kernel, below(4), below(4) ? sizeof(void *) : a_size() & 0xff, below(8) ? values : NULL);
}

static void launch(ze_command_list_handle_t list, ze_event_handle_t signal, uint32_t count, ze_event_handle_t *all) {
  ze_group_count_t groups = {below(4), below(3), below(3)};
  ze_kernel_handle_t several[] = {handle(KERNEL), handle(KERNEL)};
  use_kernel();
  switch (below(4)) {
    case 0: zeCommandListAppendLaunchKernelIndirect(list, several[0], NULL, signal, count, all); break;
    case 1: zeCommandListAppendLaunchCooperativeKernel(list, several[0], &groups, signal, count, all); break;
    default: zeCommandListAppendLaunchKernel(list, several[0], &groups, signal, count, all);
  }
}

// Long: an object of each kind.
static void create(void) {
  int kind = (int)below(KINDS);
  void *out = vacant(kind);
  if (out == NULL) return;
  ze_base_desc_t next;
  uint32_t a = byte(), b = byte(), wild = below(16) == 0 ? byte() : 0;
  ze_command_queue_desc_t queue = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                   .ordinal = a & 1,
                                   .index = wild & 3,
                                   .flags = b % 10,
                                   .mode = wild & 4 ? 3
                                           : b & 16 ? 0
                                                    : 2,
                                   .priority = wild & 7};
  ze_mutable_command_list_exp_desc_t is_mutable = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC,
                                                   .flags = wild & 3};
  ze_command_list_desc_t list = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC,
                                 .pNext = a & 8 ? &is_mutable : NULL,
                                 .flags = b % 66,
                                 .commandQueueGroupOrdinal = wild != 0 ? wild : a & 1};
  ze_fence_desc_t fence = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC, .flags = b % 3};
  ze_event_pool_counter_based_exp_desc_t counter = {.stype = ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC,
                                                    .flags = a % 5};
  ze_event_pool_desc_t pool = {.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC,
                               .pNext = b & 64 ? &counter : NULL,
                               .flags = b % 17,
                               .count = wild != 0 ? wild - 1 : 8};
  ze_event_desc_t event = {.stype = ZE_STRUCTURE_TYPE_EVENT_DESC, .index = a % 9, .signal = b % 9, .wait = wild};
  ze_event_counter_based_desc_t alone = {
      .stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC, .flags = b % 129, .pNext = a_chain(&next, a)};
  ze_physical_mem_desc_t physical = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_DESC,
                                     .flags = wild,
                                     .size = wild != 0 ? a_size() : (size_t)SPAN << (a % 7)};
  ze_context_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC, .flags = wild};
  ze_device_handle_t devices[2] = {device, a_device()};
  switch (kind) {
    case CONTEXT: zeContextCreateEx(driver, &desc, a % 3, devices, out); break;
    case QUEUE: zeCommandQueueCreate(a_context(), a_device(), &queue, out); break;
    case LIST:
      if (a & 2) zeCommandListCreateImmediate(a_context(), a_device(), &queue, out);
      else if (a & 4) zeCommandListCreate(a_context(), a_device(), &list, out);
      else zeCommandListCreateCloneExp(handle(LIST), out);
      break;
    case FENCE: zeFenceCreate(handle(QUEUE), &fence, out); break;
    case POOL:
      if (a < 224) zeEventPoolCreate(a_context(), &pool, a % 3, devices, out);
      else zeEventPoolOpenIpcHandle(a_context(), pool_handle, out);
      break;
    case EVENT:
      if (a < 192) zeEventCreate(handle(POOL), &event, out);
      else zeEventCounterBasedCreate(a_context(), a_device(), &alone, out);
      break;
    case MODULE: make_module(out); break;
    case KERNEL: make_kernel(out); break;
    case GRAPH:
      if (a < 64) zeGraphCreateExt(a_context(), NULL, out);
      else zeCommandListEndGraphCaptureExt(handle(LIST), NULL, out);
      break;
    case EXECUTABLE: zeGraphInstantiateExt(handle(GRAPH), NULL, out); break;
    default: zePhysicalMemCreate(a_context(), a_device(), &physical, out);
  }
}

static void count_up(void *data) { __atomic_fetch_add((int *)data, 1, __ATOMIC_RELAXED); }

static void append(void) {
  static int calls;
  ze_command_list_handle_t list = handle(LIST);
  ze_event_handle_t signal = an_event(), waits[12];
  uint32_t count = below(4) ? 0 : below(13);
  for (uint32_t i = 0; i < count; i++) waits[i] = handle(EVENT);
  ze_event_handle_t *all = byte() == 0 ? NULL : waits;
  char *to = memory(), *from = memory();
  size_t size = work_size();
  ze_copy_region_t region = {below(9), below(9), below(3), below(32), below(32), below(8)}, other = region;
  if (below(4) == 0) other.originX = byte();
  if (below(16) == 0) other.width = byte();
  uint32_t pitch = below(64), slice = below(4) ? 0 : pitch * 32;
  ze_command_list_handle_t lists[] = {handle(LIST), handle(LIST)};
  size_t offsets[12] = {0}, pattern = below(8) ? (size_t)1 << below(9) : byte();
  const void *ranges[1] = {from};
  switch (below(16)) {
    case 0: zeCommandListAppendBarrier(list, signal, count, all); break;
    case 1: zeCommandListAppendMemoryRangesBarrier(list, 1, &size, ranges, signal, count, all); break;
    case 2: zeCommandListAppendSignalEvent(list, signal); break;
    case 3: zeCommandListAppendWaitOnEvents(list, count, all); break;
    case 4: zeCommandListAppendEventReset(list, signal); break;
    case 5: zeCommandListAppendWriteGlobalTimestamp(list, (uint64_t *)(void *)to, signal, count, all); break;
    case 6: zeCommandListAppendQueryKernelTimestamps(list, count, waits, to, offsets, signal, 0, NULL); break;
    case 7: zeCommandListAppendHostFunction(list, byte() ? count_up : NULL, &calls, NULL, signal, count, all); break;
    case 8: zeCommandListAppendMemoryFill(list, to, buffer, pattern, size, signal, count, all); break;
    case 9:
      zeCommandListAppendMemoryCopyRegion(list, to, &region, pitch, slice, from, &other, pitch, slice, signal, count,
                                          all);
      break;
    case 10: zeCommandListAppendMemoryPrefetch(list, from, size); break;
    case 11: zeCommandListAppendMemAdvise(list, a_device(), from, size, below(10)); break;
    case 12: zeCommandListImmediateAppendCommandListsExp(list, below(3), lists, signal, count, all); break;
    case 13: launch(list, signal, count, all); break;
    default: zeCommandListAppendMemoryCopy(list, to, from, size, signal, count, all);
  }
}

/* Identifiers of mutable lists are small numbers, so the bytes often name one. */
static void change(void) {
  ze_command_list_handle_t list = handle(LIST);
  ze_kernel_handle_t kernels[] = {handle(KERNEL), handle(KERNEL)};
  ze_event_handle_t waits[12];
  ze_group_count_t groups = {below(4), below(3), below(3)};
  void *values[32] = {memory()};
  uint64_t ids[] = {below(8), below(8)}, made;
  uint32_t count = below(12), wild = below(16) == 0 ? byte() << 2 : 0;
  for (uint32_t i = 0; i < count; i++) waits[i] = an_event();
  ze_mutable_command_id_exp_desc_t id = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC,
                                         .flags = below(2) ? wild : below(128)};
  ze_mutable_group_size_exp_desc_t size = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC,
                                           .commandId = ids[0],
                                           .groupSizeX = below(40),
                                           .groupSizeY = 1 + wild,
                                           .groupSizeZ = 1};
  ze_mutable_group_count_exp_desc_t shape = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC,
                                             .pNext = below(2) ? &size : NULL,
                                             .commandId = ids[1],
                                             .pGroupCount = &groups};
  ze_mutable_kernel_argument_exp_desc_t argument = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC,
                                                    .pNext = below(2) ? &shape : NULL,
                                                    .commandId = ids[0],
                                                    .argIndex = below(4),
                                                    .argSize = below(4) ? sizeof(void *) : a_size() & 0xff,
                                                    .pArgValue = below(8) ? values : NULL};
  ze_mutable_commands_exp_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC,
                                         .pNext = below(2) ? (const void *)&argument : &shape};
  switch (below(8)) {
    case 0: zeCommandListGetNextCommandIdWithKernelsExp(list, &id, below(3), kernels, &made); break;
    case 1:
    case 2: zeCommandListGetNextCommandIdExp(list, &id, &made); break;
    case 3: zeCommandListUpdateMutableCommandSignalEventExp(list, ids[0], an_event()); break;
    case 4: zeCommandListUpdateMutableCommandWaitEventsExp(list, ids[0], count, below(8) ? waits : NULL); break;
    case 5: zeCommandListUpdateMutableCommandKernelsExp(list, below(3), ids, kernels); break;
    default: zeCommandListUpdateMutableCommandsExp(list, &desc);
  }
}

/* Whatever is captured becomes a graph and is replayed. */
static void end_captures(void) {
  for (int i = 0; i < SLOTS; i++) {
    ze_command_list_handle_t list = handles[LIST][i];
    if (zeCommandListIsGraphCaptureEnabledExt(list) != ZE_RESULT_QUERY_TRUE) continue;
    void **executable = vacant(EXECUTABLE), **graph = vacant(GRAPH);
    if (graph == NULL || executable == NULL) continue;
    if (zeCommandListEndGraphCaptureExt(list, NULL, (void *)graph) != ZE_RESULT_SUCCESS) continue;
    if (zeGraphInstantiateExt(*graph, NULL, (void *)executable) != ZE_RESULT_SUCCESS) continue;
    for (uint32_t k = below(4); k > 0; k--) zeCommandListAppendGraphExt(list, *executable, NULL, an_event(), 0, NULL);
  }
}

static void capture(void) {
  ze_command_list_handle_t list = handle(LIST), primary;
  ze_event_handle_t waits[] = {handle(EVENT), handle(EVENT)};
  ze_graph_handle_t graph;
  switch (below(16)) {
    case 0: zeCommandListBeginCaptureIntoGraphExt(list, handle(GRAPH), NULL); break;
    case 1: zeCommandListGetGraphExt(list, &graph); break;
    case 2: zeGraphIsEmptyExt(handle(GRAPH)); break;
    case 3: zeGraphGetPrimaryCommandListExt(handle(GRAPH), &primary); break;
    case 4:
    case 5:
    case 6:
    case 7:
      zeCommandListAppendGraphExt(list, handle(EXECUTABLE), NULL, an_event(), below(4) ? 0 : below(3), waits);
      break;
    case 8:
    case 9:
    case 10: end_captures(); break;
    default: zeCommandListBeginGraphCaptureExt(list, NULL);
  }
}

static void use(void) {
  ze_kernel_timestamp_result_t times;
  ze_command_list_handle_t lists[] = {handle(LIST), handle(LIST), handle(LIST)};
  uint32_t number = below(4);
  switch (below(28)) {
    case 0: zeCommandListClose(lists[0]); break;
    case 1: zeCommandListReset(lists[0]); break;
    case 2: zeCommandListHostSynchronize(lists[0], below(2) * 1000); break;
    case 3: zeCommandQueueSynchronize(handle(QUEUE), below(2) * 1000); break;
    case 4: zeFenceHostSynchronize(handle(FENCE), below(2) * 1000); break;
    case 5: zeFenceReset(handle(FENCE)); break;
    case 6: zeEventHostSynchronize(handle(EVENT), below(2) * 1000); break;
    case 7: zeEventHostReset(handle(EVENT)); break;
    case 8: zeEventQueryKernelTimestamp(handle(EVENT), &times); break;
    case 9: zeEventQueryTimestampsExp(handle(EVENT), a_device(), &number, &times); break;
    case 10: zeEventPoolGetIpcHandle(handle(POOL), &pool_handle); break;
    case 11: zeMemGetIpcHandle(a_context(), memory(), &block_handle); break;
    case 12: block_handle.data[byte() % sizeof(block_handle)] ^= (char)byte(); break;
    case 13: pool_handle.data[byte() % sizeof(pool_handle)] ^= (char)byte(); break;
    case 14: zeCommandQueueExecuteCommandLists(handle(QUEUE), number, lists, handle(FENCE)); break;
    case 15:
    case 16:
    case 17: zeCommandQueueExecuteCommandLists(handle(QUEUE), number, lists, NULL); break;
    case 18:
    case 19:
    case 20:
    case 21:
    case 22:
    case 23: change(); break;
    default: zeEventHostSignal(handle(EVENT));
  }
}

static void ask_about_memory(void) {
  ze_memory_allocation_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES};
  ze_physical_mem_properties_t physical = {.stype = ZE_STRUCTURE_TYPE_PHYSICAL_MEM_PROPERTIES};
  ze_device_handle_t owner;
  void *base;
  size_t size = a_size();
  ze_memory_free_ext_desc_t free_desc = {.stype = ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC,
                                         .freePolicy = below(3) ? ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE : 0};
  switch (below(8)) {
    case 0: zeMemGetAllocProperties(a_context(), memory(), &properties, &owner); break;
    case 1: zeMemGetAddressRange(a_context(), memory(), &base, &size); break;
    case 2: zeContextMakeMemoryResident(a_context(), a_device(), memory(), size); break;
    case 3: zeContextEvictMemory(a_context(), a_device(), memory(), size); break;
    case 4: zePhysicalMemGetProperties(a_context(), handle(PHYSICAL), &physical); break;
    case 5: zeMemFreeExt(a_context(), &free_desc, memory()); break;
    case 6: zeMemCloseIpcHandle(a_context(), memory()); break;
    default: zeMemFree(a_context(), below(2) ? blocks[below(BLOCKS)] : memory());
  }
}

/* Commands name addresses of one reservation only, which stays: others come and go. */
enum { PAGES = 16 };

static void map(void) {
  size_t size = (size_t)SPAN * below(PAGES + 2), offset = (size_t)SPAN * below(PAGES), result;
  ze_memory_access_attribute_t access = below(4);
  char *at = (char *)reserved[1] + (below(2) ? (size_t)SPAN * below(PAGES) + (below(16) == 0) : 0);
  if (below(2)) size = SPAN, offset = 0; /* what is likely to succeed, at the addresses that commands name */
  if (reserved[1] == NULL) return;
  switch (below(8)) {
    case 0: zeVirtualMemQueryPageSize(a_context(), a_device(), a_size(), &result); break;
    case 1: zeVirtualMemUnmap(a_context(), at, size); break;
    case 2: zeVirtualMemSetAccessAttribute(a_context(), at, size, access); break;
    case 3: zeVirtualMemGetAccessAttribute(a_context(), at, size, &access, &result); break;
    case 4:
      if (zeVirtualMemFree(context, reserved[0], SPAN) != ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE)
        zeVirtualMemReserve(context, NULL, SPAN, &reserved[0]);
      break;
    case 5: zeVirtualMemMap(a_context(), reserved[0], size, handle(PHYSICAL), offset, access); break;
    default: zeVirtualMemMap(a_context(), at, size, handle(PHYSICAL), offset, access);
  }
}

static bool unmapped(void) {
  bool all = true;
  if (reserved[1] == NULL) return true;
  for (int page = 0; page < PAGES; page++) {
    char *at = (char *)reserved[1] + (size_t)SPAN * (size_t)page;
    for (size_t size = SPAN; size <= (size_t)SPAN * PAGES; size += SPAN)
      all &= zeVirtualMemUnmap(context, at, size) != ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE;
  }
  zeVirtualMemUnmap(context, reserved[0], SPAN);
  return all;
}

/* Ends everything, once what it waits for is signalled. */
static void clean_up(void) {
  static const int order[] = {LIST, EXECUTABLE, GRAPH, FENCE, QUEUE, EVENT, POOL, PHYSICAL, KERNEL, MODULE, CONTEXT};
  for (bool again = true; again;) {
    again = !unmapped();
    for (int i = 0; i < SLOTS; i++) zeEventHostSignal(handles[EVENT][i]);
    for (int k = 0; k < KINDS; k++)
      for (int i = 0; i < SLOTS; i++) {
        if (order[k] == CONTEXT && again) continue; /* it takes its memory along */
        if (destroy(order[k], handles[order[k]][i]) == ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE) again = true;
      }
  }
  zeVirtualMemFree(context, reserved[0], SPAN);
  for (int i = 0; i < BLOCKS; i++) vacate(blocks[i]);
  OK(zeMemFree(context, host_memory(1))); /* frees what was deferred, too */
  memset(handles, 0, sizeof(handles));
  memset(blocks, 0, sizeof(blocks));
  reserved[0] = NULL;
}

static void fuzz_begin(void) {
  begin();
  zeVirtualMemReserve(context, NULL, (size_t)SPAN * PAGES, &reserved[1]); /* a profile may refuse it */
  good_module = binary_of("launch");
  ze_module_handle_t module = module_of("launch");
  OK(zeModuleGetNativeBinary(module, &native_module.size, NULL));
  native_module.bytes = malloc(native_module.size);
  OK(zeModuleGetNativeBinary(module, &native_module.size, native_module.bytes));
  OK(zeModuleDestroy(module));
}

static void fuzz(const uint8_t *sequence, size_t size) {
  alarm(PATIENCE);
  bytes = sequence;
  left = size;
  while (left != 0) {
    switch (below(9)) {
      case 0: destroy((int)below(KINDS), handle((int)below(KINDS))); break;
      case 1: allocate(); break;
      case 2:
      case 3: create(); break;
      case 4: use(); break;
      case 5: below(2) ? map() : ask_about_memory(); break;
      case 6: capture(); break;
      default: append();
    }
  }
  clean_up();
  alarm(0);
  CHECK(live("context") == 1 && live("reservation") == (reserved[1] != NULL));
  for (int kind = 0; l0rt_cpu_kind_name(kind) != NULL; kind++) {
    static const char *const stay[] = {"driver", "device", "context", "reservation"};
    bool stays = false;
    for (int i = 0; i < 4; i++) stays |= strcmp(stay[i], l0rt_cpu_kind_name(kind)) == 0;
    if (stays || l0rt_cpu_live(kind) == 0) continue;
    fprintf(stderr, "%llu of kind %s left\n", (unsigned long long)l0rt_cpu_live(kind), l0rt_cpu_kind_name(kind));
    abort();
  }
}

#endif
