/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.h: what tests of graphs share: lists, events, and the way from a capture to a replay. */
#ifndef L0RT_CPU_TEST_GRAPHS_H
#define L0RT_CPU_TEST_GRAPHS_H

#include "modules.h"

static inline ze_event_handle_t counter_event(uint32_t flags) {
  ze_event_counter_based_desc_t desc = {.stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC, .flags = flags};
  ze_event_handle_t event;
  OK(zeEventCounterBasedCreate(context, device, &desc, &event));
  return event;
}

static inline ze_event_handle_t external_event(void) {
  return counter_event(ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE | ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL);
}

static inline ze_graph_handle_t end_capture(ze_command_list_handle_t list) {
  ze_graph_handle_t graph;
  OK(zeCommandListEndGraphCaptureExt(list, NULL, &graph));
  return graph;
}

static inline ze_executable_graph_handle_t executable_of(ze_graph_handle_t graph) {
  ze_executable_graph_handle_t executable;
  OK(zeGraphInstantiateExt(graph, NULL, &executable));
  return executable;
}

static inline void replay(ze_command_list_handle_t list, ze_executable_graph_handle_t executable) {
  OK(zeCommandListAppendGraphExt(list, executable, NULL, NULL, 0, NULL));
}

static inline void synchronize(ze_command_list_handle_t list) { OK(zeCommandListHostSynchronize(list, FOREVER)); }

static inline void destroy_both(ze_graph_handle_t graph, ze_executable_graph_handle_t executable) {
  OK(zeExecutableGraphDestroyExt(executable));
  OK(zeGraphDestroyExt(graph));
}

static inline void copy_int(ze_command_list_handle_t list, int *to, const int *from) {
  OK(zeCommandListAppendMemoryCopy(list, to, from, sizeof(int), NULL, 0, NULL));
}

static inline int *numbers(size_t count) {
  int *memory = shared_memory(count * sizeof(int));
  for (size_t i = 0; i < count; i++) memory[i] = (int)i;
  return memory;
}

#endif
