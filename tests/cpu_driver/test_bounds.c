/* SPDX-License-Identifier: Apache-2.0 */
/* test_bounds.c: what an allocator marks as allocated, and what launches may reach of it. */
#include "children.h"
#include "modules.h"

enum { RANGE, NO_RANGE, BLOCK, FREED, KEPT_BLOCK, KEPT_FREED };
enum { SIZE = 1 << 16, ROUNDS = 4000 };

typedef ze_result_t (*mark_function)(uint32_t mark, const void *base, size_t size, size_t requested);
static mark_function mark;
static ze_command_list_handle_t list;
static ze_module_handle_t module;
static ze_kernel_handle_t wild, around;
static const ze_group_count_t ONE = {1, 1, 1};
static char *memory;

static void open_all(void) {
  begin();
  OK(zeDriverGetExtensionFunctionAddress(driver, "l0rtCpuMarkMemory", (void **)&mark));
  module = module_of("launch");
  wild = kernel_of(module, "wild");
  around = kernel_of(module, "around");
  OK(zeKernelSetGroupSize(wild, 1, 1, 1));
  OK(zeKernelSetGroupSize(around, 1, 1, 1));
  list = in_order_list();
  memory = device_memory(SIZE);
}

static void close_all(void) {
  OK(zeCommandListDestroy(list));
  OK(zeKernelDestroy(wild));
  OK(zeKernelDestroy(around));
  OK(zeModuleDestroy(module));
  if (memory != NULL) OK(zeMemFree(context, memory));
  OK(zeContextDestroy(context));
}

/* Appends a store of four bytes; the argument points to `near`. */
static void append_store(ze_command_list_handle_t to, const char *near, long offset) {
  long distance = offset / 4;
  const char *base = near + offset % 4;
  SET(wild, 0, base);
  SET(wild, 1, distance);
  OK(zeCommandListAppendLaunchKernel(to, wild, &ONE, NULL, 0, NULL));
}

/* Why the wait for the list failed; NULL: it did not. */
static const char *failure(void) {
  ze_result_t result = zeCommandListHostSynchronize(list, FOREVER);
  if (result == ZE_RESULT_SUCCESS) return NULL;
  CHECK(result == ZE_RESULT_ERROR_UNKNOWN);
  const char *text;
  OK(zeDriverGetLastErrorDescription(driver, &text));
  return text;
}

static const char *stored(const char *near, long offset) {
  append_store(list, near, offset);
  return failure();
}

static void says(const char *text, const char *what) {
  bool good = text != NULL && strstr(text, what) != NULL;
  if (!good) fprintf(stderr, "expected \"%s\", got %s\n", what, text != NULL ? text : "success");
  CHECK(good);
}

static void a_block_has_the_bytes_that_were_asked_for(void) {
  open_all();
  CHECK(stored(memory, SIZE - 4) == NULL); /* nothing is marked */
  OK(mark(RANGE, memory, SIZE / 2, 0));
  says(stored(memory, 0), "a store to address");
  CHECK(stored(memory, SIZE / 2) == NULL);
  says(stored(memory, SIZE / 2 - 2), "a store to address"); /* half of it is in the range */
  OK(mark(BLOCK, memory + 512, 1024, 1000));
  char expected[200];
  snprintf(expected, sizeof(expected), "offset 1000 of the 1000 bytes at 0x%llx; argument 0, near points to them",
           (unsigned long long)(uintptr_t)(memory + 512));
  says(stored(memory + 512, 1000), expected);
  says(stored(memory + 512, 998), "offset 998 of the 1000 bytes");
  says(stored(memory + 512, -4), "offset -4 of the 1000 bytes");
  CHECK(stored(memory + 512, 996) == NULL && stored(memory + 512, 0) == NULL);
  OK(mark(BLOCK, memory + 1536, 512, 100));
  says(stored(memory + 1536, -4),
       "offset -4 of the 100 bytes"); /* not behind the other, since an argument points here */
  says(stored(memory + 512, 1004), "offset 1004 of the 1000 bytes");
  OK(mark(FREED, memory + 512, 1024, 1000));
  says(stored(memory + 512, 40), "offset 40 of the 1000 bytes at");
  says(stored(memory + 512, 40), ", which were freed before the launch; argument 0, near points to them");
  OK(mark(BLOCK, memory + 512, 512, 64));
  says(stored(memory + 512, 64), "offset 64 of the 64 bytes at"); /* the older block of 1000 is no excuse */
  CHECK(stored(memory + 512, 60) == NULL);
  OK(mark(NO_RANGE, memory, SIZE / 2, 0));
  CHECK(stored(memory + 512, 64) == NULL);
  close_all();
}

static void loads_and_parts_of_elements_count_too(void) {
  open_all();
  uint64_t *out = shared_memory(8);
  int64_t *place = shared_memory(8);
  OK(mark(RANGE, memory, SIZE, 0));
  OK(mark(BLOCK, memory, 512, 100));
  for (int i = 0; i < 14; i++) {
    *place = i;
    SET(around, 0, memory);
    SET(around, 1, place);
    SET(around, 2, out);
    OK(zeCommandListAppendLaunchKernel(list, around, &ONE, NULL, 0, NULL));
    const char *text = failure();
    if (i < 12) CHECK(text == NULL);
    else says(text, i == 12 ? "a load from address" : "offset 104 of the 100 bytes");
  }
  OK(zeMemFree(context, out));
  OK(zeMemFree(context, place));
  close_all();
}

/* What was freed, and given to another, behind a launch that has not run is the launch's. */
static void a_launch_reaches_what_was_allocated_when_it_was_submitted(void) {
  open_all();
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t event = event_of(pool, 0);
  OK(mark(RANGE, memory, SIZE, 0));
  for (int late = 0; late < 2; late++) {
    OK(zeCommandListAppendWaitOnEvents(list, 1, &event));
    OK(mark(BLOCK, memory, 1024, 1000));
    append_store(list, memory, 996);
    OK(mark(FREED, memory, 1024, 1000));
    OK(mark(BLOCK, memory, 512, 64));
    append_store(list, memory, late ? 64 : 60);
    OK(zeEventHostSignal(event));
    if (late) says(failure(), "offset 64 of the 64 bytes");
    else CHECK(failure() == NULL);
    OK(mark(FREED, memory, 512, 64));
    OK(zeEventHostReset(event));
  }
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_command_list_handle_t closed;
  OK(zeCommandListCreate(context, device, &desc, &closed));
  append_store(closed, memory, 996); /* what counts is when it is executed */
  OK(zeCommandListClose(closed));
  for (int freed = 0; freed < 2; freed++) {
    OK(mark(freed ? FREED : BLOCK, memory, 1024, 1000));
    OK(zeCommandListImmediateAppendCommandListsExp(list, 1, &closed, NULL, 0, NULL));
    if (freed) says(failure(), "which were freed before the launch");
    else CHECK(failure() == NULL);
  }
  OK(zeCommandListDestroy(closed));
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
  close_all();
}

static void a_graph_keeps_what_its_capture_frees(void) {
  open_all();
  OK(mark(RANGE, memory, SIZE, 0));
  OK(mark(KEPT_BLOCK, memory, 1024, 1000));
  OK(mark(KEPT_FREED, memory, 1024, 1000));
  CHECK(stored(memory, 996) == NULL);
  says(stored(memory, 1000), "offset 1000 of the 1000 bytes");
  OK(mark(KEPT_BLOCK, memory, 512, 100));
  OK(mark(KEPT_FREED, memory, 512, 100));
  OK(mark(KEPT_BLOCK, memory + 512, 512, 10));
  CHECK(stored(memory, 996) == NULL);
  OK(mark(BLOCK, memory, 512, 100)); /* the graph is gone */
  says(stored(memory, 100), "offset 100 of the 100 bytes");
  CHECK(stored(memory, 96) == NULL);
  close_all();
}

static void freed_memory_is_in_no_range(void) {
  open_all();
  OK(mark(RANGE, memory, SIZE, 0));
  OK(zeMemFree(context, memory));
  memory = device_memory(SIZE);
  CHECK(stored(memory, SIZE - 4) == NULL);
  close_all();
}

static void marks_are_checked(void) {
  open_all();
  GIVES(ERROR_INVALID_ENUMERATION, mark(6, memory, SIZE, 0));
  GIVES(ERROR_INVALID_NULL_POINTER, mark(BLOCK, NULL, SIZE, 0));
  GIVES(ERROR_INVALID_SIZE, mark(BLOCK, memory, 0, 0));
  GIVES(ERROR_INVALID_SIZE, mark(BLOCK, memory, 8, 9));
  GIVES(ERROR_INVALID_SIZE, mark(RANGE, memory, SIZE_MAX, 0));
  OK(mark(FREED, memory, 512, 0)); /* of a block that was never marked */
  close_all();
}

/* A model with one entry for each byte: may launches of now reach it? */
typedef struct {
  uint32_t begin, size, requested;
} piece;

static uint64_t state;
static uint32_t below(uint32_t end) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % end;
}

static void random_marks_follow_a_model(void) {
  open_all();
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t event = event_of(pool, 0);
  static bool reachable[SIZE + 8];
  piece pieces[64];
  uint32_t count = 0, good = 0, bad = 0;
  OK(mark(RANGE, memory, SIZE, 0));
  for (int round = 0; round < ROUNDS; round++) {
    bool is_queued = below(2), expected = true;
    if (is_queued) OK(zeCommandListAppendWaitOnEvents(list, 1, &event));
    for (int step = 0; step < 4; step++) {
      piece p = {below(SIZE / 512) * 512, (1 + below(4)) * 512, 0};
      p.requested = 1 + below(p.size);
      bool is_free = p.begin + p.size <= SIZE && count < 64;
      for (uint32_t i = 0; i < count; i++)
        is_free = is_free && (p.begin >= pieces[i].begin + pieces[i].size || pieces[i].begin >= p.begin + p.size);
      if (is_free) {
        OK(mark(BLOCK, memory + p.begin, p.size, p.requested));
        memset(reachable + p.begin, true, p.requested);
        pieces[count++] = p;
      } else if (count != 0) {
        uint32_t i = below(count);
        OK(mark(FREED, memory + pieces[i].begin, pieces[i].size, pieces[i].requested));
        memset(reachable + pieces[i].begin, false, pieces[i].requested);
        pieces[i] = pieces[--count];
      }
      if (count == 0 || !expected) continue; /* the first failure of a wait is the one that it names */
      piece target = pieces[below(count)];
      bool is_inside = target.requested >= 4 && below(5) != 0;
      long at = is_inside ? below(target.requested - 3) : (long)(below(2) ? target.requested : 0) - 8 + below(16);
      at += target.begin;
      if (at < 0 || at + 4 > SIZE) continue;
      bool all = true;
      for (int i = 0; i < 4; i++) all = all && reachable[at + i];
      expected = all;
      append_store(list, memory + target.begin, at - (long)target.begin);
    }
    if (is_queued) OK(zeEventHostSignal(event));
    const char *text = failure();
    if ((text == NULL) != expected) fprintf(stderr, "round %d: %s\n", round, text != NULL ? text : "success");
    CHECK((text == NULL) == expected);
    good += expected;
    bad += !expected;
    if (is_queued) OK(zeEventHostReset(event));
  }
  CHECK(good > ROUNDS / 20 && bad > ROUNDS / 20);
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
  close_all();
}

static void mark_often(const char *base, int count) {
  for (int i = 0; i < count; i++) {
    const char *at = base + i % 100 * 512;
    OK(mark(BLOCK, at, 512, 200));
    OK(mark(FREED, at, 512, 200));
  }
}

static long resident_bytes(void) {
  long size, resident;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2);
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

/* More marks than freed blocks are remembered: what is allocated, or a launch under way may reach, stays so, and the list
 * does not grow for ever. */
static void many_marks_are_forgotten(void) {
  open_all();
  ze_event_pool_handle_t pool = pool_of(1, ZE_EVENT_POOL_FLAG_HOST_VISIBLE);
  ze_event_handle_t event = event_of(pool, 0);
  OK(mark(RANGE, memory, SIZE, 0));
  OK(mark(BLOCK, memory, 512, 100));
  mark_often(memory + 512, 100000);
  long before = resident_bytes();
  mark_often(memory + 512, 400000);
  long grown = resident_bytes() - before;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  grown = 0; /* the sanitizer keeps what is freed */
#endif
  CHECK(grown < 8 << 20);
  CHECK(stored(memory, 96) == NULL);
  says(stored(memory, 100), "offset 100 of the 100 bytes");
  says(stored(memory + 512, 8), "which were freed");
  OK(zeCommandListAppendWaitOnEvents(list, 1, &event));
  append_store(list, memory, 96);
  OK(mark(FREED, memory, 512, 100));
  mark_often(memory + 512, 100000);
  OK(zeEventHostSignal(event));
  CHECK(failure() == NULL);
  OK(zeEventDestroy(event));
  OK(zeEventPoolDestroy(pool));
  close_all();
}

/* What the engine remembers of the memory in front of a range ends where the range begins. */
static void a_launch_that_runs_into_a_range_fails(void) {
  open_all();
  ze_kernel_handle_t add = kernel_of(module, "add");
  int *from = shared_memory(4096), more = 1;
  OK(zeKernelSetGroupSize(add, 64, 1, 1));
  OK(mark(RANGE, memory + SIZE / 2, SIZE / 2, 0));
  for (int over = 0; over < 2; over++) {
    const char *to = memory + SIZE / 2 - 256 + 4 * over;
    SET(add, 0, to);
    SET(add, 1, from);
    SET(add, 2, more);
    OK(zeCommandListAppendLaunchKernel(list, add, &ONE, NULL, 0, NULL));
    if (over) says(failure(), "work-item (63, 0, 0): a store to address");
    else CHECK(failure() == NULL);
  }
  OK(zeMemFree(context, from));
  OK(zeKernelDestroy(add));
  close_all();
}

static void a_new_range_has_no_blocks(void) {
  open_all();
  OK(mark(RANGE, memory, SIZE, 0));
  OK(mark(BLOCK, memory, 512, 100));
  OK(mark(NO_RANGE, memory, SIZE, 0));
  OK(mark(RANGE, memory, SIZE, 0));
  says(stored(memory, 0), "a store to address");
  close_all();
}

static void nothing_is_marked_without_the_setting(void) {
  begin();
  void *address;
  GIVES(ERROR_INVALID_ARGUMENT, zeDriverGetExtensionFunctionAddress(driver, "l0rtCpuMarkMemory", &address));
  OK(zeContextDestroy(context));
}

static void with_bounds(void (*body)(void)) {
  char text[512];
  int status = in_child("L0RT_CPU_BOUNDS", "1", body, text, sizeof(text));
  if (status != 0) fprintf(stderr, "%s", text);
  CHECK(status == 0);
}

int main(void) {
  for (state = 1; state < 4; state++) with_bounds(random_marks_follow_a_model);
  with_bounds(a_block_has_the_bytes_that_were_asked_for);
  with_bounds(loads_and_parts_of_elements_count_too);
  with_bounds(a_launch_reaches_what_was_allocated_when_it_was_submitted);
  with_bounds(a_graph_keeps_what_its_capture_frees);
  with_bounds(freed_memory_is_in_no_range);
  with_bounds(marks_are_checked);
  with_bounds(many_marks_are_forgotten);
  with_bounds(a_launch_that_runs_into_a_range_fails);
  with_bounds(a_new_range_has_no_blocks);
  CHECK(in_child("L0RT_CPU_BOUNDS", "0", nothing_is_marked_without_the_setting, NULL, 0) == 0);
  begin();
  finish("bounds");
}
