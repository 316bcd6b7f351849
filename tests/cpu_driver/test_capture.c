/* SPDX-License-Identifier: Apache-2.0 */
/* test_capture.c: what cannot be captured, what leaves a capture behind, and programs of several lists that, replayed,
 * do what they did. */
#include <pthread.h>

#include "graphs.h"

// Long: each call that a capture refuses.
static void calls_are_refused(void) {
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC};
  ze_command_queue_desc_t waiting = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                     .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS};
  ze_context_desc_t other_desc = {.stype = ZE_STRUCTURE_TYPE_CONTEXT_DESC};
  ze_command_list_handle_t list = in_order_list(), loose = loose_list(), copying = immediate_on(1, 0, 2), regular, sync;
  ze_context_handle_t other;
  ze_graph_handle_t graph, foreign, same;
  ze_executable_graph_handle_t executable;
  OK(zeCommandListCreate(context, device, &desc, &regular));
  OK(zeCommandListCreateImmediate(context, device, &waiting, &sync));
  OK(zeContextCreate(driver, &other_desc, &other));
  OK(zeGraphCreateExt(other, NULL, &foreign));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeGraphCreateExt(NULL, NULL, &graph));
  GIVES(ERROR_INVALID_NULL_POINTER, zeGraphCreateExt(context, NULL, NULL));
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeGraphCreateExt(context, &desc, &graph));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListBeginGraphCaptureExt(NULL, NULL));
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeCommandListBeginGraphCaptureExt(list, &desc));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListBeginGraphCaptureExt(regular, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListBeginGraphCaptureExt(sync, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListBeginCaptureIntoGraphExt(list, foreign, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListBeginCaptureIntoGraphExt(list, NULL, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListIsGraphCaptureEnabledExt(NULL));
  GIVES(ERROR_COMMAND_LIST_NOT_CAPTURING, zeCommandListEndGraphCaptureExt(list, NULL, &graph));
  GIVES(ERROR_INVALID_NULL_POINTER, zeCommandListEndGraphCaptureExt(list, NULL, NULL));
  graph = foreign;
  GIVES(ERROR_COMMAND_LIST_NOT_CAPTURING, zeCommandListGetGraphExt(list, &graph));
  CHECK(graph == NULL);
  GIVES(ERROR_INVALID_NULL_HANDLE, zeGraphInstantiateExt(NULL, NULL, &executable));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeGraphIsEmptyExt(NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeGraphDestroyExt(NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeExecutableGraphDestroyExt(NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeExecutableGraphGetSourceGraphExt(NULL, &graph));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeGraphSetDestructionCallbackExt(NULL, NULL, NULL, NULL));
  GIVES(ERROR_INVALID_NULL_POINTER, zeGraphSetDestructionCallbackExt(foreign, NULL, NULL, NULL));
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListBeginGraphCaptureExt(list, NULL));
  OK(zeCommandListGetGraphExt(list, &graph));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListBeginCaptureIntoGraphExt(loose, graph, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeGraphInstantiateExt(graph, NULL, &executable));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeGraphDestroyExt(graph));
  GIVES(ERROR_GRAPH_CAPTURE_UNSUPPORTED, zeCommandListHostSynchronize(list, 0));
  GIVES(ERROR_GRAPH_CAPTURE_UNSUPPORTED, zeCommandListClose(list));
  GIVES(ERROR_GRAPH_CAPTURE_UNSUPPORTED, zeCommandListReset(list));
  OK(zeDeviceSynchronize(device)); /* that is of what was submitted */
  OK(zeCommandListAppendBarrier(list, NULL, 0, NULL));
  CHECK(end_capture(list) == graph);
  GIVES(ERROR_INVALID_NULL_POINTER, zeGraphInstantiateExt(graph, NULL, NULL));
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeGraphInstantiateExt(graph, &desc, &executable));
  executable = executable_of(graph);
  GIVES(ERROR_INVALID_NULL_POINTER, zeExecutableGraphGetSourceGraphExt(executable, NULL));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeCommandListAppendGraphExt(list, NULL, NULL, NULL, 0, NULL));
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeCommandListAppendGraphExt(list, executable, &desc, NULL, 0, NULL));
  GIVES(ERROR_INVALID_SIZE, zeCommandListAppendGraphExt(list, executable, NULL, NULL, 1, NULL));
  GIVES(ERROR_INVALID_COMMAND_LIST_TYPE, zeCommandListAppendGraphExt(regular, executable, NULL, NULL, 0, NULL));
  GIVES(ERROR_INVALID_COMMAND_LIST_TYPE, zeCommandListAppendGraphExt(copying, executable, NULL, NULL, 0, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendGraphExt(loose, executable, NULL, NULL, 0, NULL)); /* not in order */
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListAppendGraphExt(sync, executable, NULL, NULL, 0, NULL));
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  GIVES(ERROR_GRAPH_CAPTURE_UNSUPPORTED, zeCommandListAppendGraphExt(list, executable, NULL, NULL, 0, NULL));
  same = end_capture(list);
  OK(zeGraphDestroyExt(same));
  destroy_both(graph, executable);
  OK(zeGraphDestroyExt(foreign));
  OK(zeContextDestroy(other));
  ze_command_list_handle_t lists[] = {list, loose, copying, regular, sync};
  for (int i = 0; i < 5; i++) OK(zeCommandListDestroy(lists[i]));
}

static void events_of_captures_are_guarded(void) {
  ze_command_queue_desc_t waiting = {.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
                                     .flags = ZE_COMMAND_QUEUE_FLAG_IN_ORDER,
                                     .mode = ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS};
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .flags = ZE_COMMAND_LIST_FLAG_IN_ORDER};
  ze_command_list_handle_t one = in_order_list(), two = in_order_list(), third = in_order_list(), sync, regular;
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t inner = counter_event(0), outer = counter_event(0), other = counter_event(0),
                    silent = counter_event(0), plain = event_of(pool, 0);
  OK(zeCommandListCreateImmediate(context, device, &waiting, &sync));
  OK(zeCommandListCreate(context, device, &desc, &regular));
  OK(zeCommandListAppendSignalEvent(third, outer)); /* outside, before */
  OK(zeCommandListBeginGraphCaptureExt(one, NULL));
  OK(zeCommandListBeginGraphCaptureExt(two, NULL));
  GIVES(ERROR_GRAPH_INTERNAL_EVENT, zeCommandListAppendWaitOnEvents(one, 1, &outer));
  OK(zeCommandListAppendWaitOnEvents(one, 1, &silent)); /* it has never been signalled */
  OK(zeCommandListAppendSignalEvent(one, inner));
  OK(zeCommandListAppendSignalEvent(one, plain));
  OK(zeCommandListAppendSignalEvent(two, other));
  GIVES(ERROR_GRAPH_CAPTURE_UNSUPPORTED, zeEventHostSynchronize(inner, 0));
  GIVES(ERROR_GRAPH_CAPTURE_UNSUPPORTED, zeEventQueryStatus(inner));
  GIVES(ERROR_GRAPH_CAPTURE_UNSUPPORTED, zeEventHostSynchronize(plain, 0));
  GIVES(NOT_READY, zeEventQueryStatus(plain));
  GIVES(SUCCESS, zeEventHostSynchronize(outer, FOREVER));
  GIVES(ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT, zeCommandListAppendWaitOnEvents(two, 1, &inner));
  ze_event_handle_t both[] = {inner, other};
  GIVES(ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT, zeCommandListAppendWaitOnEvents(third, 2, both));
  GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(third));
  GIVES(ERROR_GRAPH_INTERNAL_EVENT, zeCommandListAppendSignalEvent(third, inner));
  GIVES(ERROR_GRAPH_INTERNAL_EVENT, zeCommandListAppendSignalEvent(two, inner));
  GIVES(ERROR_GRAPH_INTERNAL_EVENT, zeCommandListAppendWaitOnEvents(regular, 1, &inner));
  OK(zeCommandListAppendWaitOnEvents(regular, 1, &plain));
  GIVES(ERROR_GRAPH_CAPTURE_UNSUPPORTED, zeCommandListAppendWaitOnEvents(sync, 1, &inner));
  OK(zeCommandListAppendBarrier(third, NULL, 0, NULL)); /* others go on as ever */
  synchronize(third);
  ze_graph_handle_t graphs[] = {end_capture(one), end_capture(two)};
  GIVES(SUCCESS, zeEventQueryStatus(inner));
  OK(zeCommandListAppendWaitOnEvents(third, 1, &inner)); /* no fork any more */
  GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(third));
  OK(zeCommandListAppendSignalEvent(third, inner));
  OK(zeEventHostSynchronize(inner, FOREVER));
  synchronize(third);
  for (int i = 0; i < 2; i++) OK(zeGraphDestroyExt(graphs[i]));
  ze_command_list_handle_t lists[] = {one, two, third, sync, regular};
  for (int i = 0; i < 5; i++) OK(zeCommandListDestroy(lists[i]));
  ze_event_handle_t events[] = {inner, outer, other, silent, plain};
  for (int i = 0; i < 5; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
}

/* A fork that work is left in: the capture is over, and the graph good for nothing. */
static void forks_must_be_joined(void) {
  int *data = numbers(4);
  ze_command_list_handle_t list = in_order_list(), child = in_order_list();
  ze_event_handle_t event = counter_event(0), back = counter_event(0);
  for (int how = 0; how < 4; how++) {
    ze_graph_handle_t graph, same;
    ze_executable_graph_handle_t executable;
    OK(zeCommandListBeginGraphCaptureExt(list, NULL));
    OK(zeCommandListGetGraphExt(list, &graph));
    OK(zeCommandListAppendSignalEvent(list, event));
    OK(zeCommandListAppendWaitOnEvents(child, 1, &event));
    GIVES(ERROR_INVALID_ARGUMENT, zeCommandListEndGraphCaptureExt(child, NULL, &same)); /* it is not the primary */
    if (how >= 1) copy_int(child, data, data + 1);
    if (how >= 1) OK(zeCommandListAppendSignalEvent(child, back));
    if (how >= 2) OK(zeCommandListAppendWaitOnEvents(list, 1, &back));
    if (how == 2) copy_int(child, data, data + 2); /* behind the join */
    if (how == 3) OK(zeCommandListAppendSignalEvent(child, back));
    if (how == 3) { /* without work that is no harm */
      CHECK(end_capture(list) == graph);
      OK(zeGraphDestroyExt(graph));
      continue;
    }
    GIVES(ERROR_GRAPH_UNJOINED_FORKS, zeCommandListEndGraphCaptureExt(list, NULL, &same));
    CHECK(same == graph);
    GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(child));
    GIVES(ERROR_INVALID_GRAPH, zeGraphIsEmptyExt(graph));
    GIVES(ERROR_INVALID_GRAPH, zeGraphInstantiateExt(graph, NULL, &executable));
    copy_int(child, data + 3, data);
    synchronize(child);
    OK(zeGraphDestroyExt(graph));
  }
  OK(zeCommandListDestroy(list));
  OK(zeCommandListDestroy(child));
  OK(zeEventDestroy(event));
  OK(zeEventDestroy(back));
  OK(zeMemFree(context, data));
}

static int ended;
static void note(void *data) { (void)data, ended++; }

static void lists_that_end_leave_nothing_behind(void) {
  int *data = numbers(4);
  ze_event_handle_t event = counter_event(0), back = counter_event(0);
  /* The child's list: what it has recorded stays. */
  ze_command_list_handle_t list = in_order_list(), child = in_order_list();
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  OK(zeCommandListAppendSignalEvent(list, event));
  OK(zeCommandListAppendMemoryCopy(child, data, data + 3, sizeof(int), back, 1, &event));
  OK(zeCommandListDestroy(child));
  OK(zeEventDestroy(event));
  OK(zeCommandListAppendWaitOnEvents(list, 1, &back));
  ze_graph_handle_t graph = end_capture(list);
  ze_executable_graph_handle_t executable = executable_of(graph);
  replay(list, executable);
  synchronize(list);
  CHECK(data[0] == 3);
  destroy_both(graph, executable);
  /* The primary's: the capture is over. */
  child = in_order_list();
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  OK(zeCommandListGetGraphExt(list, &graph));
  OK(zeGraphSetDestructionCallbackExt(graph, note, NULL, NULL));
  OK(zeCommandListAppendSignalEvent(list, back));
  OK(zeCommandListAppendWaitOnEvents(child, 1, &back));
  OK(zeCommandListDestroy(list));
  CHECK(ended == 1);
  GIVES(ERROR_INVALID_NULL_HANDLE, zeGraphIsEmptyExt(graph));
  GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(child));
  copy_int(child, data + 1, data);
  synchronize(child);
  CHECK(data[1] == 3);
  /* The program's own graph stays its own. */
  OK(zeGraphCreateExt(context, NULL, &graph));
  OK(zeCommandListBeginCaptureIntoGraphExt(child, graph, NULL));
  OK(zeCommandListDestroy(child));
  GIVES(ERROR_INVALID_GRAPH, zeGraphIsEmptyExt(graph));
  OK(zeGraphDestroyExt(graph));
  OK(zeEventDestroy(back));
  OK(zeMemFree(context, data));
}

/* A launch that fails in a branch: the wait for the list that the graph was appended to tells of it. */
static void failures_are_told(void) {
  ze_module_handle_t module = module_of("launch");
  ze_kernel_handle_t wild = kernel_of(module, "wild");
  int *data = numbers(4), *at = data;
  long distance = 1L << 40;
  ze_group_count_t one = {1, 1, 1};
  ze_command_list_handle_t list = in_order_list(), child = in_order_list(), runner = in_order_list();
  ze_event_handle_t fork = counter_event(0), join = counter_event(0), done = counter_event(0);
  SET(wild, 0, at);
  SET(wild, 1, distance);
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  OK(zeCommandListAppendSignalEvent(list, fork));
  OK(zeCommandListAppendLaunchKernel(child, wild, &one, join, 1, &fork));
  OK(zeCommandListAppendWaitOnEvents(list, 1, &join));
  copy_int(list, data + 1, data + 3);
  ze_graph_handle_t graph = end_capture(list);
  ze_executable_graph_handle_t executable = executable_of(graph);
  replay(runner, executable);
  GIVES(ERROR_UNKNOWN, zeCommandListHostSynchronize(runner, FOREVER));
  const char *text;
  OK(zeDriverGetLastErrorDescription(driver, &text));
  CHECK(strstr(text, "wild") != NULL && data[1] == 3);
  synchronize(runner);
  OK(zeCommandListAppendGraphExt(runner, executable, NULL, done, 0, NULL));
  GIVES(ERROR_UNKNOWN, zeEventHostSynchronize(done, FOREVER));
  synchronize(runner);
  synchronize(child);
  destroy_both(graph, executable);
  ze_command_list_handle_t lists[] = {list, child, runner};
  for (int i = 0; i < 3; i++) OK(zeCommandListDestroy(lists[i]));
  ze_event_handle_t events[] = {fork, join, done};
  for (int i = 0; i < 3; i++) OK(zeEventDestroy(events[i]));
  OK(zeKernelDestroy(wild));
  OK(zeModuleDestroy(module));
  OK(zeMemFree(context, data));
}

enum { LISTS = 4, CELLS = 24, STEPS = 60, PROGRAMS = 40, ROUNDS = 5 };

static _Thread_local uint64_t state;
static uint32_t below(uint32_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(state >> 33) % n;
}

/* A program of copies on several lists. Each cell has a list that owns it, and a step that touches another list's cell
 * waits for that list first; so the outcome is the same whatever the timing is. */
static void run_program(uint64_t seed, ze_command_list_handle_t *lists, ze_event_handle_t *events, int *data) {
  state = seed;
  for (int k = 1; k < LISTS; k++) { /* forks */
    OK(zeCommandListAppendSignalEvent(lists[0], events[0]));
    OK(zeCommandListAppendWaitOnEvents(lists[k], 1, &events[0]));
  }
  uint32_t last[CELLS] = {0}; /* the list that touched it last */
  for (int step = 0; step < STEPS; step++) {
    uint32_t list = below(LISTS), to = below(CELLS), from = below(CELLS);
    for (int k = 0; k < 2; k++) {
      uint32_t other = last[k == 0 ? to : from];
      if (other == list) continue;
      OK(zeCommandListAppendSignalEvent(lists[other], events[other]));
      OK(zeCommandListAppendWaitOnEvents(lists[list], 1, &events[other]));
    }
    last[to] = last[from] = list;
    if (below(4) == 0) {
      int value = (int)below(1000);
      OK(zeCommandListAppendMemoryFill(lists[list], data + to, &value, sizeof(int), sizeof(int), NULL, 0, NULL));
    } else copy_int(lists[list], data + to, data + from);
  }
  for (int k = 1; k < LISTS; k++) { /* joins */
    OK(zeCommandListAppendSignalEvent(lists[k], events[k]));
    OK(zeCommandListAppendWaitOnEvents(lists[0], 1, &events[k]));
  }
}

static void replays_do_what_the_program_did(uint64_t seed) {
  ze_command_list_handle_t lists[LISTS], runner = in_order_list();
  ze_event_handle_t events[LISTS];
  int *data = numbers(CELLS), expected[CELLS];
  for (uint32_t k = 0; k < LISTS; k++) lists[k] = k == 3 ? immediate_on(1, 0, 2) : immediate_on(0, k & 1, 2);
  for (int k = 0; k < LISTS; k++) events[k] = counter_event(0);
  for (int program = 0; program < PROGRAMS; program++, seed++) {
    for (int i = 0; i < CELLS; i++) data[i] = i;
    run_program(seed, lists, events, data);
    synchronize(lists[0]);
    memcpy(expected, data, sizeof(expected));
    OK(zeDeviceSynchronize(device));
    ze_event_handle_t fresh[LISTS]; /* those were signalled outside */
    for (int k = 0; k < LISTS; k++) fresh[k] = counter_event(0);
    OK(zeCommandListBeginGraphCaptureExt(lists[0], NULL));
    run_program(seed, lists, fresh, data);
    ze_graph_handle_t graph = end_capture(lists[0]);
    for (int k = 0; k < LISTS; k++) OK(zeEventDestroy(fresh[k]));
    ze_executable_graph_handle_t executable = executable_of(graph);
    for (int round = 0; round < ROUNDS; round++) {
      for (int i = 0; i < CELLS; i++) data[i] = i;
      replay(runner, executable);
      synchronize(runner);
      CHECK(memcmp(expected, data, sizeof(expected)) == 0);
    }
    for (int round = 0; round < ROUNDS; round++) replay(runner, executable); /* at once */
    synchronize(runner);
    destroy_both(graph, executable);
  }
  for (int k = 0; k < LISTS; k++) OK(zeCommandListDestroy(lists[k]));
  for (int k = 0; k < LISTS; k++) OK(zeEventDestroy(events[k]));
  OK(zeCommandListDestroy(runner));
  OK(zeMemFree(context, data));
}

static void *capture_alone(void *seed) {
  replays_do_what_the_program_did((uint64_t)(uintptr_t)seed);
  return NULL;
}

static void threads_capture_at_once(void) {
  pthread_t threads[3];
  for (uintptr_t i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, capture_alone, (void *)(i * 1000)) == 0);
  for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int count, char **arguments) {
  begin();
  calls_are_refused();
  events_of_captures_are_guarded();
  forks_must_be_joined();
  lists_that_end_leave_nothing_behind();
  failures_are_told();
  replays_do_what_the_program_did(count > 1 ? strtoull(arguments[1], NULL, 10) : 1);
  threads_capture_at_once();
  finish("capture");
}
