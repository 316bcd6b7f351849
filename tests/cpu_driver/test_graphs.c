/* SPDX-License-Identifier: Apache-2.0 */
/* test_graphs.c: recorded graphs: what is captured, what a replay does, and what a graph says of itself. */
#include <stdatomic.h>
#include <unistd.h>

#include "graphs.h"

enum { N = 64 };

static ze_module_handle_t module;
static ze_kernel_handle_t add;

static void append_add(ze_command_list_handle_t list, int *to, const int *from, int more, ze_event_handle_t signal) {
  SET(add, 0, to);
  SET(add, 1, from);
  SET(add, 2, more);
  OK(zeKernelSetGroupSize(add, 16, 1, 1));
  ze_group_count_t four = {N / 16, 1, 1};
  OK(zeCommandListAppendLaunchKernel(list, add, &four, signal, 0, NULL));
}

static void the_device_tells_of_graphs(void) {
  ze_record_replay_graph_ext_properties_t found = {.stype = ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_PROPERTIES};
  ze_device_properties_t properties = {.stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES, .pNext = &found};
  OK(zeDeviceGetProperties(device, &properties));
  CHECK(found.graphFlags ==
        (ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_IMMUTABLE_GRAPH | ZE_RECORD_REPLAY_GRAPH_EXT_FLAG_APPEND_COMMANDLIST));
  ze_driver_extension_properties_t extensions[64];
  uint32_t number = 64, named = 0;
  OK(zeDriverGetExtensionProperties(driver, &number, extensions));
  for (uint32_t i = 0; i < number; i++)
    named += strcmp(extensions[i].name, "ZE_extension_record_replay_graph") == 0 && extensions[i].version == 0x10000;
  CHECK(named == 1);
}

static void one_list_is_replayed(void) {
  int *in = numbers(N), *out = numbers(N), *copy = numbers(N);
  ze_command_list_handle_t list = in_order_list(), other = in_order_list(), same;
  ze_graph_handle_t graph, again;
  GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(list));
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  GIVES(QUERY_TRUE, zeCommandListIsGraphCaptureEnabledExt(list));
  GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(other));
  OK(zeCommandListGetGraphExt(list, &graph));
  GIVES(QUERY_TRUE, zeGraphIsEmptyExt(graph));
  append_add(list, out, in, 100, NULL);
  OK(zeCommandListAppendMemoryCopy(list, copy, out, N * sizeof(int), NULL, 0, NULL));
  GIVES(QUERY_FALSE, zeGraphIsEmptyExt(graph));
  OK(zeGraphGetPrimaryCommandListExt(graph, &same));
  CHECK(same == list);
  again = end_capture(list);
  CHECK(again == graph);
  GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(list));
  synchronize(list);
  for (int i = 0; i < N; i++) CHECK(out[i] == i && copy[i] == i); /* nothing has run */
  ze_executable_graph_handle_t executable = executable_of(graph);
  OK(zeExecutableGraphGetSourceGraphExt(executable, &again));
  CHECK(again == graph);
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < N; i++) in[i] = i + round;
    replay(round & 1 ? list : other, executable);
    synchronize(round & 1 ? list : other);
    for (int i = 0; i < N; i++) CHECK(copy[i] == i + round + 100);
  }
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeGraphDestroyExt(graph));
  OK(zeCommandListDestroy(list));
  GIVES(ERROR_INVALID_ARGUMENT, zeGraphGetPrimaryCommandListExt(graph, &same));
  destroy_both(graph, executable);
  GIVES(ERROR_INVALID_NULL_HANDLE, zeGraphDestroyExt(graph));
  GIVES(ERROR_INVALID_NULL_HANDLE, zeExecutableGraphDestroyExt(executable));
  OK(zeCommandListDestroy(other));
  OK(zeMemFree(context, in));
  OK(zeMemFree(context, out));
  OK(zeMemFree(context, copy));
}

/* data[0] -> data[1] on the first list; from there two branches to data[2] and, by a third list, data[3], data[4]. */
static void capture_tree(ze_command_list_handle_t *lists, ze_event_handle_t *events, int *data) {
  copy_int(lists[0], data + 1, data);
  OK(zeCommandListAppendSignalEvent(lists[0], events[0]));
  OK(zeCommandListAppendWaitOnEvents(lists[1], 1, &events[0]));
  GIVES(QUERY_TRUE, zeCommandListIsGraphCaptureEnabledExt(lists[1]));
  GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(lists[2]));
  copy_int(lists[1], data + 3, data + 1);
  OK(zeCommandListAppendSignalEvent(lists[1], events[1]));
  OK(zeCommandListAppendMemoryCopy(lists[2], data + 4, data + 3, sizeof(int), events[2], 1, &events[1]));
  GIVES(QUERY_TRUE, zeCommandListIsGraphCaptureEnabledExt(lists[2]));
  copy_int(lists[0], data + 2, data + 1);
  OK(zeCommandListAppendWaitOnEvents(lists[1], 1, &events[2]));
  OK(zeCommandListAppendSignalEvent(lists[1], events[1])); /* the join, of the third by the second */
  OK(zeCommandListAppendWaitOnEvents(lists[0], 1, &events[1]));
  copy_int(lists[0], data + 5, data + 4);
}

static void forks_are_captured_and_joined(void) {
  int *data = numbers(6);
  ze_command_list_handle_t lists[] = {in_order_list(), in_order_list(), immediate_on(1, 0, 2)},
                           runner = in_order_list();
  ze_event_handle_t events[] = {counter_event(0), counter_event(0), counter_event(0)}, done = counter_event(0);
  OK(zeCommandListBeginGraphCaptureExt(lists[0], NULL));
  capture_tree(lists, events, data);
  ze_graph_handle_t graph;
  OK(zeCommandListGetGraphExt(lists[2], &graph));
  CHECK(end_capture(lists[0]) == graph);
  for (int i = 0; i < 3; i++) GIVES(QUERY_FALSE, zeCommandListIsGraphCaptureEnabledExt(lists[i]));
  for (int i = 0; i < 3; i++) GIVES(SUCCESS, zeEventQueryStatus(events[i])); /* outside they were never signalled */
  ze_executable_graph_handle_t first = executable_of(graph), second = executable_of(graph);
  for (int i = 0; i < 3; i++) OK(zeCommandListDestroy(lists[i]));
  for (int i = 0; i < 3; i++) OK(zeEventDestroy(events[i]));
  for (int round = 1; round < 200; round++) {
    data[0] = round;
    OK(zeCommandListAppendGraphExt(runner, round & 1 ? first : second, NULL, done, 0, NULL));
    OK(zeEventHostSynchronize(done, FOREVER));
    for (int i = 1; i < 6; i++) CHECK(data[i] == round);
  }
  synchronize(runner);
  OK(zeExecutableGraphDestroyExt(first));
  destroy_both(graph, second);
  OK(zeEventDestroy(done));
  OK(zeCommandListDestroy(runner));
  OK(zeMemFree(context, data));
}

/* Executions follow each other whatever lists they are appended to, and wait for what they are told to. */
static void executions_follow_each_other(void) {
  ze_event_pool_handle_t pool = pool_of(1, 0);
  ze_event_handle_t go = event_of(pool, 0), fork = counter_event(0), join = counter_event(0);
  int *data = numbers(2), *sum = numbers(1), one = 1;
  (void)one;
  ze_command_list_handle_t lists[] = {in_order_list(), in_order_list()}, runners[] = {in_order_list(), in_order_list()};
  OK(zeCommandListBeginGraphCaptureExt(lists[0], NULL));
  OK(zeCommandListAppendSignalEvent(lists[0], fork));
  OK(zeCommandListAppendWaitOnEvents(lists[1], 1, &fork));
  SET(add, 0, sum);
  SET(add, 1, sum);
  SET(add, 2, one);
  OK(zeKernelSetGroupSize(add, 1, 1, 1));
  ze_group_count_t group = {1, 1, 1};
  OK(zeCommandListAppendLaunchKernel(lists[1], add, &group, join, 0, NULL));
  OK(zeCommandListAppendBarrier(lists[0], NULL, 1, &join));
  OK(zeCommandListAppendSignalEvent(lists[1], fork)); /* behind the join, without work */
  ze_graph_handle_t graph = end_capture(lists[0]);
  ze_executable_graph_handle_t executable = executable_of(graph);
  OK(zeCommandListAppendGraphExt(runners[0], executable, NULL, NULL, 1, &go));
  for (int i = 0; i < 99; i++) replay(runners[i & 1], executable);
  GIVES(NOT_READY, zeCommandListHostSynchronize(runners[1], 1000000));
  GIVES(ERROR_HANDLE_OBJECT_IN_USE, zeExecutableGraphDestroyExt(executable));
  CHECK(*sum == 0);
  OK(zeEventHostSignal(go));
  for (int i = 0; i < 2; i++) synchronize(runners[i]);
  CHECK(*sum == 100);
  destroy_both(graph, executable);
  for (int i = 0; i < 2; i++) OK(zeCommandListDestroy(lists[i]));
  for (int i = 0; i < 2; i++) OK(zeCommandListDestroy(runners[i]));
  ze_event_handle_t events[] = {go, fork, join};
  for (int i = 0; i < 3; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, data));
  OK(zeMemFree(context, sum));
}

static void events_outside_stay_outside(void) {
  ze_event_pool_handle_t pool = pool_of(2, 0);
  ze_event_handle_t plain = event_of(pool, 0), gate = event_of(pool, 1), in = external_event(), out = external_event();
  int *data = numbers(4);
  ze_command_list_handle_t list = in_order_list(), producer = in_order_list(), consumer = in_order_list();
  uint32_t flags;
  OK(zeEventGetCounterBasedFlags(in, &flags));
  CHECK((flags & ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL) != 0);
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  OK(zeCommandListAppendMemoryCopy(list, data + 1, data, sizeof(int), out, 1, &in)); /* never signalled: no wait */
  OK(zeCommandListAppendMemoryCopy(list, data + 2, data + 1, sizeof(int), plain, 0, NULL));
  ze_graph_handle_t graph = end_capture(list);
  ze_executable_graph_handle_t executable = executable_of(graph);
  GIVES(NOT_READY, zeEventQueryStatus(plain));
  for (int round = 1; round < 20; round++) {
    /* Each execution waits for the last signal submitted before, and the consumer for the last execution. */
    OK(zeCommandListAppendMemoryFill(producer, data, &round, sizeof(int), sizeof(int), in, 1, &gate));
    replay(list, executable);
    OK(zeCommandListAppendMemoryCopy(consumer, data + 3, data + 1, sizeof(int), NULL, 1, &out));
    GIVES(NOT_READY, zeEventHostSynchronize(out, 100000));
    OK(zeEventHostSignal(gate));
    synchronize(consumer);
    CHECK(data[3] == round);
    OK(zeEventHostSynchronize(plain, FOREVER));
    CHECK(data[2] == round);
    synchronize(list);
    OK(zeEventHostReset(plain));
    OK(zeEventHostReset(gate));
  }
  destroy_both(graph, executable);
  /* A graph that names an event which is gone. */
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  OK(zeCommandListAppendSignalEvent(list, plain));
  graph = end_capture(list);
  executable = executable_of(graph);
  OK(zeEventDestroy(plain));
  GIVES(ERROR_INVALID_SYNCHRONIZATION_OBJECT, zeCommandListAppendGraphExt(list, executable, NULL, NULL, 0, NULL));
  destroy_both(graph, executable);
  ze_command_list_handle_t lists[] = {list, producer, consumer};
  for (int i = 0; i < 3; i++) OK(zeCommandListDestroy(lists[i]));
  ze_event_handle_t events[] = {gate, in, out};
  for (int i = 0; i < 3; i++) OK(zeEventDestroy(events[i]));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, data));
}

static void count_up(void *data) { atomic_fetch_add((atomic_int *)data, 1); }

/* Regular events are what they are: forks by them are captured, and their state is the program's. */
static void plain_events_and_loose_lists_are_captured(void) {
  enum { MANY = 20 };
  ze_event_pool_handle_t pool = pool_of(MANY + 1, 0);
  ze_event_handle_t waits[MANY], join = event_of(pool, MANY);
  for (uint32_t i = 0; i < MANY; i++) waits[i] = event_of(pool, i);
  atomic_int *calls = shared_memory(sizeof(*calls));
  atomic_init(calls, 0);
  ze_command_list_handle_t lists[] = {loose_list(), loose_list()};
  OK(zeCommandListBeginGraphCaptureExt(lists[0], NULL));
  for (uint32_t i = 0; i < MANY; i++)
    OK(zeCommandListAppendHostFunction(lists[0], count_up, calls, NULL, waits[i], 0, NULL));
  OK(zeCommandListAppendHostFunction(lists[1], count_up, calls, NULL, join, MANY, waits)); /* several commands */
  OK(zeCommandListAppendWaitOnEvents(lists[0], 1, &join));
  for (uint32_t i = 0; i < MANY; i++) OK(zeCommandListAppendEventReset(lists[0], waits[i]));
  OK(zeCommandListAppendEventReset(lists[0], join));
  ze_graph_handle_t graph = end_capture(lists[0]);
  ze_executable_graph_handle_t executable = executable_of(graph);
  for (int round = 1; round <= 50; round++) {
    replay(lists[0], executable);
    synchronize(lists[0]);
    CHECK(atomic_load(calls) == round * (MANY + 1));
    GIVES(NOT_READY, zeEventQueryStatus(join));
  }
  destroy_both(graph, executable);
  for (int i = 0; i < 2; i++) OK(zeCommandListDestroy(lists[i]));
  for (uint32_t i = 0; i < MANY; i++) OK(zeEventDestroy(waits[i]));
  OK(zeEventDestroy(join));
  OK(zeEventPoolDestroy(pool));
  OK(zeMemFree(context, calls));
}

static void closed_lists_are_captured_as_they_are(void) {
  int *data = numbers(3);
  ze_command_list_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC, .flags = ZE_COMMAND_LIST_FLAG_IN_ORDER};
  ze_command_list_handle_t closed, list = in_order_list();
  OK(zeCommandListCreate(context, device, &desc, &closed));
  copy_int(closed, data + 1, data);
  copy_int(closed, data + 2, data + 1);
  OK(zeCommandListClose(closed));
  ze_event_handle_t event = counter_event(0);
  OK(zeCommandListBeginGraphCaptureExt(list, NULL));
  OK(zeCommandListImmediateAppendCommandListsExp(list, 1, &closed, event, 0, NULL));
  ze_graph_handle_t graph = end_capture(list);
  OK(zeCommandListDestroy(closed));
  ze_executable_graph_handle_t executable = executable_of(graph);
  data[0] = 7;
  CHECK(data[2] == 2);
  replay(list, executable);
  synchronize(list);
  CHECK(data[1] == 7 && data[2] == 7);
  destroy_both(graph, executable);
  OK(zeEventDestroy(event));
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, data));
}

static int called[3], calls;
static void note(void *data) { called[calls++] = *(int *)data; }

static void graphs_of_the_program_are_filled(void) {
  int *data = numbers(2), numbers_of[] = {5, 6};
  ze_command_list_handle_t list = in_order_list(), same;
  ze_graph_handle_t graph;
  OK(zeGraphCreateExt(context, NULL, &graph));
  GIVES(QUERY_TRUE, zeGraphIsEmptyExt(graph));
  GIVES(ERROR_INVALID_ARGUMENT, zeGraphGetPrimaryCommandListExt(graph, &same));
  ze_executable_graph_handle_t nothing = executable_of(graph); /* an empty one can be replayed */
  replay(list, nothing);
  synchronize(list);
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListBeginCaptureIntoGraphExt(list, graph, NULL)); /* it has an instance */
  OK(zeExecutableGraphDestroyExt(nothing));
  OK(zeCommandListBeginCaptureIntoGraphExt(list, graph, NULL));
  CHECK(end_capture(list) == graph); /* nothing was captured: it may be filled later */
  OK(zeCommandListBeginCaptureIntoGraphExt(list, graph, NULL));
  OK(zeGraphSetDestructionCallbackExt(graph, note, &numbers_of[0], NULL));
  copy_int(list, data + 1, data);
  CHECK(end_capture(list) == graph);
  GIVES(ERROR_INVALID_ARGUMENT, zeCommandListBeginCaptureIntoGraphExt(list, graph, NULL)); /* it is not empty */
  OK(zeGraphSetDestructionCallbackExt(graph, note, &numbers_of[1], NULL));
  ze_executable_graph_handle_t executable = executable_of(graph);
  replay(list, executable);
  synchronize(list);
  CHECK(data[1] == 0 && calls == 0);
  destroy_both(graph, executable);
  CHECK(calls == 2 && called[0] == 5 && called[1] == 6);
  OK(zeCommandListDestroy(list));
  OK(zeMemFree(context, data));
}

static char *dumped(ze_graph_handle_t graph, const void *next) {
  static char text[16384];
  char path[] = "/tmp/l0rt_graph_XXXXXX";
  int file = mkstemp(path);
  CHECK(file >= 0);
  OK(zeGraphDumpContentsExt(graph, path, next));
  ssize_t size = read(file, text, sizeof(text) - 1);
  CHECK(size > 0 && close(file) == 0 && unlink(path) == 0);
  text[size] = '\0';
  return text;
}

static void graphs_are_dumped(void) {
  int *data = numbers(2 * N);
  ze_command_list_handle_t lists[] = {in_order_list(), in_order_list(), immediate_on(1, 0, 2)};
  ze_event_handle_t events[] = {counter_event(0), counter_event(0), counter_event(0)};
  OK(zeCommandListBeginGraphCaptureExt(lists[0], NULL));
  append_add(lists[0], data, data + N, 0x1234, NULL);
  capture_tree(lists, events, data);
  ze_graph_handle_t graph = end_capture(lists[0]);
  const char *text = dumped(graph, NULL);
  CHECK(strncmp(text, "digraph", 7) == 0 && strstr(text, "label=\"add\\ngroups 4 x 1 x 1 of 16 x 1 x 1") != NULL);
  CHECK(strstr(text, "arg 2: value 0x00001234") != NULL && strstr(text, "arg 0: global pointer 0x") != NULL);
  CHECK(strstr(text, "cluster_2") != NULL && strstr(text, "cluster_3") == NULL && strstr(text, "copy 4 bytes") != NULL);
  CHECK(strstr(text, "[style=dashed]") != NULL);
  ze_record_replay_graph_ext_dump_desc_t simple = {.stype = ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_DUMP_DESC,
                                                   .mode = ZE_RECORD_REPLAY_GRAPH_EXT_DUMP_MODE_SIMPLE};
  text = dumped(graph, &simple);
  CHECK(strstr(text, "label=\"add\"") != NULL && strstr(text, "arg 2") == NULL);
  GIVES(ERROR_INVALID_NULL_POINTER, zeGraphDumpContentsExt(graph, NULL, NULL));
  GIVES(ERROR_INVALID_ARGUMENT, zeGraphDumpContentsExt(graph, "/nowhere/at/all", NULL));
  simple.mode = 2;
  GIVES(ERROR_INVALID_ENUMERATION, zeGraphDumpContentsExt(graph, "/nowhere/at/all", &simple));
  simple.stype = ZE_STRUCTURE_TYPE_KERNEL_DESC;
  GIVES(ERROR_UNSUPPORTED_FEATURE, zeGraphDumpContentsExt(graph, "/nowhere/at/all", &simple));
  OK(zeGraphDestroyExt(graph));
  for (int i = 0; i < 3; i++) OK(zeCommandListDestroy(lists[i]));
  for (int i = 0; i < 3; i++) OK(zeEventDestroy(events[i]));
  OK(zeMemFree(context, data));
}

int main(void) {
  begin();
  module = module_of("launch");
  add = kernel_of(module, "add");
  the_device_tells_of_graphs();
  one_list_is_replayed();
  forks_are_captured_and_joined();
  executions_follow_each_other();
  events_outside_stay_outside();
  plain_events_and_loose_lists_are_captured();
  closed_lists_are_captured_as_they_are();
  graphs_of_the_program_are_filled();
  graphs_are_dumped();
  OK(zeKernelDestroy(add));
  OK(zeModuleDestroy(module));
  finish("graphs");
}
