/* SPDX-License-Identifier: Apache-2.0 */
/* test_failures.c: a launch that goes wrong: who is told, how often, and what goes on meanwhile. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "children.h"
#include "modules.h"

static const ze_group_count_t ONE = {1, 1, 1};
static ze_module_handle_t module;

static void start(void) {
  begin();
  module = module_of("launch");
}

static void stop(const char *name) {
  OK(zeModuleDestroy(module));
  finish(name);
}

static ze_kernel_handle_t wild_kernel(void *near, int64_t distance) {
  ze_kernel_handle_t wild = kernel_of(module, "wild");
  SET(wild, 0, near);
  SET(wild, 1, distance);
  return wild;
}

static void description_names(const char *kernel) {
  const char *text;
  OK(zeDriverGetLastErrorDescription(driver, &text));
  CHECK(strstr(text, kernel) != NULL && strlen(text) > strlen(kernel) + 20);
}

/* The event is signalled and what depends on it runs; the first wait is told, the next is not. */
static void a_wild_access_is_told_once(void) {
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t event = event_of(pool, 0);
  ze_command_list_handle_t list = in_order_list(), other = immediate_on(0, 1, ZE_COMMAND_QUEUE_FLAG_IN_ORDER);
  int *memory = shared_memory(64);
  ze_kernel_handle_t wild = wild_kernel(memory, 1ll << 40);
  for (int who = 0; who < 2; who++) {
    memory[0] = 0;
    OK(zeCommandListAppendLaunchKernel(list, wild, &ONE, event, 0, NULL));
    OK(zeCommandListAppendMemoryFill(other, memory, "\1", 1, 4, NULL, 1, &event));
    OK(zeCommandListHostSynchronize(other, FOREVER)); /* of another list: not its failure */
    CHECK(memory[0] == 0x01010101);
    if (who == 0) GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER));
    else GIVES(ERROR_UNKNOWN, zeEventHostSynchronize(event, FOREVER));
    description_names("wild");
    OK(zeCommandListHostSynchronize(list, FOREVER));
    OK(zeEventHostSynchronize(event, FOREVER));
    OK(zeEventHostReset(event));
  }
  OK(zeDeviceGetStatus(device));
  OK(zeKernelDestroy(wild));
  OK(zeMemFree(context, memory));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(other));
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
}

/* Some indices go once around all of memory and are right; of those between them each is looked at. */
static void an_access_between_two_right_ones_is_found(void) {
  enum { ITEMS = 32, LENGTH = 64 };
  const int64_t turn = INT64_MAX / 4 + 1; /* of elements of 8 bytes */
  uint64_t *near = shared_memory(LENGTH * 8), *out = shared_memory(ITEMS * 8);
  int64_t *places = shared_memory(ITEMS * 8);
  ze_command_list_handle_t list = in_order_list();
  ze_kernel_handle_t around = kernel_of(module, "around");
  OK(zeKernelSetGroupSize(around, ITEMS, 1, 1));
  SET(around, 0, near);
  SET(around, 1, places);
  SET(around, 2, out);
  for (int i = 0; i < LENGTH; i++) near[i] = 100 + i;
  for (int wrong = -1; wrong < ITEMS; wrong++) {
    for (int i = 0; i < ITEMS; i++) places[i] = i % 2 * turn + i;
    if (wrong >= 0) places[wrong] = wrong % 3 == 0 ? 1 << 20 : wrong % 3 == 1 ? -1 : turn - 1;
    OK(zeCommandListAppendLaunchKernel(list, around, &ONE, NULL, 0, NULL));
    if (wrong >= 0) {
      GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER));
      description_names("around");
      continue;
    }
    OK(zeCommandListHostSynchronize(list, FOREVER));
    for (int i = 0; i < ITEMS; i++) CHECK(out[i] == 100 + (uint64_t)i);
  }
  OK(zeKernelDestroy(around));
  OK(zeMemFree(context, near));
  OK(zeMemFree(context, out));
  OK(zeMemFree(context, places));
  OK(zeCommandListDestroy(list));
}

/* Every way of waiting. */
static void fences_queues_and_synchronous_lists_are_told(void) {
  int *memory = shared_memory(64);
  ze_kernel_handle_t wild = wild_kernel(memory, -(1ll << 40));
  ze_command_list_desc_t list_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_command_queue_desc_t queue_desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC};
  ze_fence_desc_t fence_desc = {.stype = ZE_STRUCTURE_TYPE_FENCE_DESC};
  ze_command_list_handle_t list, at_once;
  ze_command_queue_handle_t queue;
  ze_fence_handle_t fence;
  OK(zeCommandListCreate(context, device, &list_desc, &list));
  OK(zeCommandListAppendLaunchKernel(list, wild, &ONE, NULL, 0, NULL));
  OK(zeCommandListClose(list));
  OK(zeCommandQueueCreate(context, device, &queue_desc, &queue));
  OK(zeFenceCreate(queue, &fence_desc, &fence));
  OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, fence));
  GIVES(ERROR_UNKNOWN, zeFenceHostSynchronize(fence, FOREVER));
  OK(zeCommandQueueSynchronize(queue, FOREVER));
  OK(zeCommandQueueExecuteCommandLists(queue, 1, &list, NULL));
  GIVES(ERROR_UNKNOWN, zeCommandQueueSynchronize(queue, FOREVER));
  description_names("wild");
  queue_desc.mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS;
  OK(zeCommandListCreateImmediate(context, device, &queue_desc, &at_once));
  GIVES(ERROR_UNKNOWN, zeCommandListAppendLaunchKernel(at_once, wild, &ONE, NULL, 0, NULL));
  OK(zeFenceDestroy(fence));
  OK(zeCommandQueueDestroy(queue));
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(at_once));
  OK(zeKernelDestroy(wild));
  OK(zeMemFree(context, memory));
}

/* However many launches fail elsewhere, no list's failure is lost; a wait tells of all that it waited for at once. */
static void no_failure_pushes_out_another(void) {
  enum { MANY = 200 };
  ze_event_pool_handle_t pool = pool_of(2, 0);
  ze_event_handle_t events[] = {event_of(pool, 0), event_of(pool, 1)};
  ze_command_list_handle_t one = in_order_list(), many = in_order_list();
  int *memory = shared_memory(64);
  ze_kernel_handle_t wild = wild_kernel(memory, 1ll << 40);
  const char *text;
  OK(zeCommandListAppendLaunchKernel(one, wild, &ONE, events[0], 0, NULL));
  OK(zeCommandListAppendLaunchKernel(many, wild, &ONE, events[1], 0, NULL));
  for (int i = 0; i < MANY; i++) OK(zeCommandListAppendLaunchKernel(many, wild, &ONE, NULL, 0, NULL));
  GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(many, FOREVER));
  OK(zeDriverGetLastErrorDescription(driver, &text));
  CHECK(strstr(text, "wild") != NULL && strstr(text, "the first of 201 that failed") != NULL);
  OK(zeCommandListHostSynchronize(many, FOREVER));
  OK(zeEventHostSynchronize(events[1], FOREVER));
  GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(one, FOREVER));
  OK(zeDriverGetLastErrorDescription(driver, &text));
  CHECK(strstr(text, "that failed") == NULL);
  OK(zeEventHostSynchronize(events[0], FOREVER));
  OK(zeEventHostReset(events[0]));
  OK(zeEventHostReset(events[1]));
  OK(zeCommandListAppendLaunchKernel(one, wild, &ONE, events[0], 0, NULL));
  OK(zeCommandListAppendLaunchKernel(one, wild, &ONE, NULL, 1, &events[1]));
  OK(zeCommandListAppendMemoryFill(many, memory, "\1", 1, 4, events[1], 1, &events[0]));
  OK(zeCommandListHostSynchronize(many, FOREVER));
  while (zeCommandListDestroy(one) == ZE_RESULT_ERROR_HANDLE_OBJECT_IN_USE) continue;
  GIVES(ERROR_UNKNOWN, zeEventHostSynchronize(events[0], FOREVER)); /* the list is gone, its event still tells */
  OK(zeEventHostSynchronize(events[0], FOREVER));
  OK(zeCommandListDestroy(many));
  OK(zeKernelDestroy(wild));
  OK(zeMemFree(context, memory));
  for (int i = 0; i < 2; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
}

/* Work-items of one wave, then of two. */
static void a_divergent_barrier_is_told(void) {
  static const int most[][2] = {{64, 17}, {1024, 512}};
  int *memory = shared_memory(4096);
  ze_command_list_handle_t list = in_order_list();
  ze_kernel_handle_t divergent = kernel_of(module, "divergent");
  SET(divergent, 0, memory);
  for (int i = 0; i < 2; i++) {
    OK(zeKernelSetGroupSize(divergent, (uint32_t)most[i][0], 1, 1));
    SET(divergent, 1, most[i][1]);
    OK(zeCommandListAppendLaunchKernel(list, divergent, &ONE, NULL, 0, NULL));
    GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER));
    const char *text;
    char item[60];
    OK(zeDriverGetLastErrorDescription(driver, &text));
    CHECK(strstr(text, "kernel divergent, instruction at byte ") != NULL);
    snprintf(item, sizeof(item), "work-item (%d, 0, 0): it did not come", most[i][1]);
    CHECK(strstr(text, item) != NULL);
    SET(divergent, 1, most[i][0]);
    OK(zeCommandListAppendLaunchKernel(list, divergent, &ONE, NULL, 0, NULL));
    OK(zeCommandListHostSynchronize(list, FOREVER));
    CHECK(memory[most[i][0] - 1] == 1);
  }
  OK(zeKernelDestroy(divergent));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
}

/* The kernel `empty` with OpUnreachable in the place of OpReturn. */
static void a_trap_is_told(void) {
  enum { ENTRY_POINT = 15, FUNCTION = 54, RETURN = 1 << 16 | 253, UNREACHABLE = 1 << 16 | 255 };
  binary b = binary_of("launch");
  uint32_t *words = (uint32_t *)b.bytes, function = 0;
  bool inside = false, changed = false;
  for (size_t at = 5; at < b.size / 4 && !changed; at += words[at] >> 16) {
    uint32_t op = words[at] & 0xffff;
    if (op == ENTRY_POINT && strcmp((const char *)&words[at + 3], "empty") == 0) function = words[at + 2];
    if (op == FUNCTION) inside = words[at + 2] == function;
    changed = inside && words[at] == RETURN;
    if (changed) words[at] = UNREACHABLE;
  }
  CHECK(changed);
  ze_module_desc_t desc = spirv_desc(b);
  ze_module_handle_t trapped;
  OK(zeModuleCreate(context, device, &desc, &trapped, NULL));
  ze_kernel_handle_t empty = kernel_of(trapped, "empty");
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendLaunchKernel(list, empty, &ONE, NULL, 0, NULL));
  GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER));
  const char *text;
  OK(zeDriverGetLastErrorDescription(driver, &text));
  CHECK(strstr(text, "kernel empty, instruction at byte ") != NULL && strstr(text, "OpUnreachable") != NULL);
  OK(zeCommandListDestroy(list));
  OK(zeKernelDestroy(empty));
  OK(zeModuleDestroy(trapped));
  free(b.bytes);
}

/* Freed, read-only and the program's own memory are none of a kernel's. */
static void memory_that_is_not_the_kernels(void) {
  static int own[16];
  int *freed = shared_memory(64), *memory;
  ze_host_mem_alloc_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC,
                                   .flags = ZE_HOST_MEM_ALLOC_FLAG_MEM_READ_ONLY};
  OK(zeMemAllocHost(context, &desc, 64, 0, (void **)&memory));
  OK(zeMemFree(context, freed));
  void *wrong[] = {own, freed, memory, NULL};
  ze_command_list_handle_t list = in_order_list();
  for (int i = 0; i < 4; i++) {
    ze_kernel_handle_t wild = wild_kernel(wrong[i], 0);
    OK(zeCommandListAppendLaunchKernel(list, wild, &ONE, NULL, 0, NULL));
    GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER));
    OK(zeKernelDestroy(wild));
  }
  CHECK(own[0] == 0 && memory[0] == 0);
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
}

static ze_kernel_handle_t endless_kernel(int *memory) {
  ze_kernel_handle_t endless = kernel_of(module, "endless");
  memory[0] = 0;
  SET(endless, 0, memory);
  return endless;
}

static uint64_t now(void) {
  uint64_t host, ticks;
  OK(zeDeviceGetGlobalTimestamps(device, &host, &ticks));
  return host;
}

/* A list that is destroyed ends its running launch, and those behind it; others' events are signalled all the same. */
static void a_destroyed_list_ends_its_launch(void) {
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t event = event_of(pool, 0);
  int *memory = shared_memory(64);
  ze_kernel_handle_t endless = endless_kernel(memory);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendLaunchKernel(list, endless, &ONE, NULL, 0, NULL));
  OK(zeCommandListAppendLaunchKernel(list, endless, &ONE, event, 0, NULL));
  GIVES(NOT_READY, zeCommandListHostSynchronize(list, 1000000));
  uint64_t before = now();
  OK(zeCommandListDestroy(list));
  CHECK(now() - before < 50000000);
  OK(zeEventHostSynchronize(event, FOREVER));
  OK(zeKernelDestroy(endless));
  OK(zeMemFree(context, memory));
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
}

static void failures(void) {
  start();
  a_wild_access_is_told_once();
  fences_queues_and_synchronous_lists_are_told();
  no_failure_pushes_out_another();
  a_divergent_barrier_is_told();
  a_trap_is_told();
  memory_that_is_not_the_kernels();
  an_access_between_two_right_ones_is_found();
  a_destroyed_list_ends_its_launch();
  stop("failures");
}

static zes_event_type_flags_t listen(uint32_t milliseconds) {
  zes_event_type_flags_t events = 77;
  uint32_t number = 77;
  zes_device_handle_t one = device;
  OK(zesDriverEventListen(driver, milliseconds, 1, &one, &number, &events));
  CHECK(number == (events != 0));
  return events;
}

static void *listener(void *unused) {
  (void)unused;
  CHECK(listen(UINT32_MAX) == ZES_EVENT_TYPE_FLAG_DEVICE_RESET_REQUIRED);
  return NULL;
}

static void lost(void) {
  start();
  OK(zesDeviceEventRegister(device, ZES_EVENT_TYPE_FLAG_DEVICE_RESET_REQUIRED));
  CHECK(listen(0) == 0);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, listener, NULL) == 0);
  int *memory = shared_memory(64);
  ze_kernel_handle_t wild = wild_kernel(memory, 1ll << 40);
  ze_command_list_handle_t list = in_order_list();
  OK(zeDeviceGetStatus(device));
  OK(zeCommandListAppendLaunchKernel(list, wild, &ONE, NULL, 0, NULL));
  GIVES(ERROR_DEVICE_LOST, zeCommandListHostSynchronize(list, FOREVER));
  GIVES(ERROR_DEVICE_LOST, zeDeviceGetStatus(device));
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(listen(20) == 0); /* each loss is told once */
  zes_device_state_t state = {.stype = ZES_STRUCTURE_TYPE_DEVICE_STATE};
  OK(zesDeviceGetState(device, &state));
  CHECK(state.reset == ZES_RESET_REASON_FLAG_WEDGED);
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zesDeviceReset(device, 0)); /* memory of it is there */
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, memory));
  OK(zesDeviceReset(device, 0));
  OK(zesDeviceGetState(device, &state));
  CHECK(state.reset == 0);
  OK(zeDeviceGetStatus(device));
  memory = shared_memory(64);
  list = in_order_list();
  OK(zeCommandListAppendLaunchKernel(list, wild, &ONE, NULL, 0, NULL));
  GIVES(ERROR_DEVICE_LOST, zeCommandListHostSynchronize(list, FOREVER));
  CHECK(listen(0) == ZES_EVENT_TYPE_FLAG_DEVICE_RESET_REQUIRED);
  OK(zeCommandListDestroy(list));
  OK(zeKernelDestroy(wild));
  OK(zeMemFree(context, memory));
  stop("lost device");
}

static void out_of_fuel(void) {
  start();
  int *memory = shared_memory(64);
  ze_kernel_handle_t endless = endless_kernel(memory);
  ze_command_list_handle_t list = in_order_list();
  OK(zeCommandListAppendLaunchKernel(list, endless, &ONE, NULL, 0, NULL));
  GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER));
  description_names("endless");
  OK(zeCommandListDestroy(list));
  OK(zeKernelDestroy(endless));
  OK(zeMemFree(context, memory));
  stop("fuel");
}

static uint64_t *spent; /* processor time of a child when its end began; the parent sees it too */
static bool together;

static uint64_t microseconds(struct timeval t) { return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec; }

static void ends_while_it_runs(void) {
  static const ze_group_count_t many = {8, 1, 1};
  start();
  int *memory = shared_memory(64);
  ze_kernel_handle_t endless = endless_kernel(memory);
  ze_command_list_handle_t list = in_order_list();
  if (together) OK(zeCommandListAppendLaunchCooperativeKernel(list, endless, &many, NULL, 0, NULL));
  else OK(zeCommandListAppendLaunchKernel(list, endless, &many, NULL, 0, NULL));
  GIVES(NOT_READY, zeCommandListHostSynchronize(list, 5000000));
  OK(zeKernelDestroy(endless));
  OK(zeModuleDestroy(module));
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  *spent = (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* The end of a process ends its launch: it computes for less than 50 ms from then on. Other programs may hold up the
 * thread that says so, so one of several attempts must come to it. */
static void a_process_that_ends_ends_its_launch(const char *variable, bool cooperative) {
  together = cooperative;
  for (int attempt = 0; attempt < 20; attempt++) {
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    CHECK(in_child(variable, "1", ends_while_it_runs, NULL, 0) == 0);
    getrusage(RUSAGE_CHILDREN, &after);
    uint64_t all = microseconds(after.ru_utime) + microseconds(after.ru_stime) - microseconds(before.ru_utime) -
                   microseconds(before.ru_stime);
    if (all < *spent + 50000) return;
  }
  CHECK(!"a process computes on after its end");
}

/* Who does not ask is told too: a line for each failed launch, of contexts that have not asked for silence. */
static void seen(void) {
  static const char *const names[] = {"wild", "divergent"};
  ze_result_t (*quieten)(ze_context_handle_t) = NULL;
  start();
  int *memory = shared_memory(4096);
  ze_kernel_handle_t kernels[] = {wild_kernel(memory, 1ll << 40), kernel_of(module, names[1])};
  SET(kernels[1], 0, memory);
  SET(kernels[1], 1, (int){3});
  OK(zeKernelSetGroupSize(kernels[1], 8, 1, 1));
  ze_command_list_handle_t list = in_order_list();
  OK(zeDriverGetExtensionFunctionAddress(driver, "l0rtCpuQuiet", (void **)&quieten));
  for (int asked = 0; asked < 2; asked++) {
    for (int i = 0; i < 2; i++) {
      OK(zeCommandListAppendLaunchKernel(list, kernels[i], &ONE, NULL, 0, NULL));
      GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(list, FOREVER));
    }
    GIVES(ERROR_INVALID_NULL_HANDLE, quieten(NULL));
    OK(quieten(context));
  }
  OK(zeCommandListDestroy(list));
  for (int i = 0; i < 2; i++) OK(zeKernelDestroy(kernels[i]));
  OK(zeMemFree(context, memory));
  stop("seen failures");
}

static void a_failed_launch_is_seen(void) {
  char text[2048];
  CHECK(in_child("L0RT_CPU_QUIET", "0", seen, text, sizeof(text)) == 0);
  const char *first = "l0rt CPU driver: kernel wild, instruction at byte ", *end = strchr(text, '\n');
  if (end == NULL) fprintf(stderr, "%s", text);
  CHECK(strncmp(text, first, strlen(first)) == 0 && end != NULL);
  const char *item = strstr(text, "work-item (0, 0, 0): a store to address 0x"), *next = strchr(end + 1, '\n');
  CHECK(item != NULL && item < end && strncmp(end + 1, "l0rt CPU driver: kernel divergent, ", 35) == 0);
  CHECK(next != NULL && next[1] == '\0');
  CHECK(in_child("L0RT_CPU_QUIET", "1", seen, text, sizeof(text)) == 0 && text[0] == '\0');
}

int main(void) {
  char text[2048];
  spent = mmap(NULL, sizeof(*spent), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(spent != MAP_FAILED);
  setenv("L0RT_CPU_THREADS", "2", 1);
  CHECK(in_child(NULL, NULL, failures, text, sizeof(text)) == 0);
  if (text[0] != '\0') fprintf(stderr, "%s", text);
  CHECK(text[0] == '\0'); /* who asks is told; and nobody else, because of L0RT_CPU_QUIET */
  a_failed_launch_is_seen();
  CHECK(in_child("L0RT_CPU_FAULT", "lost", lost, NULL, 0) == 0);
  CHECK(in_child("L0RT_CPU_FUEL", "100000", out_of_fuel, NULL, 0) == 0);
  a_process_that_ends_ends_its_launch(NULL, false);
  a_process_that_ends_ends_its_launch(NULL, true);
  a_process_that_ends_ends_its_launch("L0RT_CPU_CHAOS", false);
  return 0;
}
