/* SPDX-License-Identifier: Apache-2.0 */
/* capture.c: recording what immediate lists are given into graphs: beginning, forks by events, joins, and the end. */
#include "graphs/capture.h"

#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "graphs/graph.h"
#include "lists/launch.h"
#include "simulate/quirk.h"

/* What Intel's driver answered before the extension's codes were final. */
#define EARLY_CODE ((ze_result_t)0x7fff0000)

_Atomic uint32_t cpu_captures;

static bool is_internal(const cpu_event *event) {
  return cpu_event_is_counter_based(event) && (event->counter_flags & ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL) == 0;
}

/* The graph into which the event's last signal was recorded, while that is going on. */
static cpu_graph *graph_of(const cpu_event *event) {
  cpu_graph *graph = cpu_cast(event->graph, CPU_GRAPH);
  bool recorded = graph != NULL && graph->session == event->session && graph->state == CPU_GRAPH_RECORDING;
  return recorded ? graph : NULL;
}

/* Was it ever signalled outside? */
static bool is_signalled(cpu_event *event) {
  cpu_event *point = cpu_event_take(event);
  cpu_event_put_back(point);
  return point != NULL;
}

/* Into which graph does the command go; NULL: it is none's. */
static ze_result_t route(const cpu_list *list, ze_event_handle_t signal, uint32_t count, ze_event_handle_t *waits,
                         cpu_graph **out) {
  cpu_graph *graph = list->graph;
  for (uint32_t i = 0; i < count; i++) {
    const cpu_event *event = cpu_event_cast(waits[i]);
    cpu_graph *other = event == NULL ? NULL : graph_of(event);
    if (other == NULL) continue;
    CPU_REFUSE_IF(!list->immediate && is_internal(event), ERROR_GRAPH_INTERNAL_EVENT);
    if (!list->immediate || list->left_session == (uint32_t)other->session) continue;
    CPU_REFUSE_IF(graph != NULL && graph != other, ERROR_GRAPH_CAPTURE_MERGE_ATTEMPT);
    graph = other;
  }
  for (uint32_t i = 0; i < count && graph != NULL; i++) {
    cpu_event *event = cpu_event_cast(waits[i]);
    CPU_REFUSE_IF(event != NULL && is_internal(event) && graph_of(event) == NULL && is_signalled(event),
                  ERROR_GRAPH_INTERNAL_EVENT);
  }
  const cpu_event *event = signal == NULL ? NULL : cpu_event_cast(signal);
  cpu_graph *before = event == NULL || !is_internal(event) ? NULL : graph_of(event);
  CPU_REFUSE_IF(before != NULL && before != graph, ERROR_GRAPH_INTERNAL_EVENT);
  if (graph != NULL && list->graph == NULL) { /* a fork */
    CPU_REFUSE_IF(list->synchronous, ERROR_GRAPH_CAPTURE_UNSUPPORTED);
    if (list->context != graph->context) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the graph is of another context");
  }
  *out = graph;
  return graph != NULL && graph->broken ? CPU_REFUSED(ERROR_GRAPH_CAPTURE_INVALIDATED, NULL) : ZE_RESULT_SUCCESS;
}

/* A new branch of a graph, for a list that enters its capture. */
static bool enter(cpu_graph *graph, cpu_list *list, uint32_t parent) {
  cpu_branch *branches = realloc(graph->branches, (graph->branch_count + 1) * sizeof(*branches));
  if (branches == NULL) return false;
  graph->branches = branches;
  branches[graph->branch_count] = (cpu_branch){.list = list,
                                               .device = list->device,
                                               .ordinal = list->ordinal,
                                               .index = list->index,
                                               .parent = parent,
                                               .urgency = list->priority,
                                               .in_order = list->in_order};
  list->graph = graph;
  list->branch = graph->branch_count++;
  return true;
}

static bool fork_to(cpu_graph *graph, cpu_list *list, uint32_t count, ze_event_handle_t *waits) {
  for (uint32_t i = 0; i < count; i++) {
    const cpu_event *event = cpu_event_cast(waits[i]);
    if (event != NULL && graph_of(event) == graph) return enter(graph, list, graph->nodes[event->node].branch);
  }
  return false;
}

static bool reserve(cpu_graph *graph, uint32_t more) {
  uint32_t capacity = graph->capacity == 0 ? 16 : graph->capacity;
  while (capacity - graph->count < more) capacity *= 2;
  if (capacity == graph->capacity) return true;
  cpu_node *nodes = realloc(graph->nodes, capacity * sizeof(*nodes));
  if (nodes == NULL) return false;
  graph->nodes = nodes;
  graph->capacity = capacity;
  return true;
}

static void put(cpu_graph *graph, uint32_t branch, const cpu_command *command, uint32_t count,
                ze_event_handle_t *waits) {
  cpu_node *node = &graph->nodes[graph->count++];
  memset(node, 0, sizeof(*node));
  node->command = *command;
  node->command.wait_count = 0;
  node->command.signal = NULL;
  node->command.hangs = false;
  node->branch = branch;
  node->place = graph->branches[branch].count++;
  for (uint32_t i = 0; i < count; i++) {
    cpu_event *event = cpu_event_cast(waits[i]);
    if (event == NULL) continue;
    bool captured = graph_of(event) == graph;
    if (!is_internal(event)) {
      node->from[node->command.wait_count] = captured ? event->node : CPU_NODE_NONE;
      node->command.waits[node->command.wait_count++] = event;
    } else if (captured) node->sources[node->source_count++] = event->node;
  }
  if (command->op == CPU_OP_LAUNCH) cpu_launch_hold(command->launch.launch);
}

/* With the defect: whom this command has waited for is not part of the capture any more. */
static void lose_waited(cpu_graph *graph, const cpu_list *list, uint32_t count, ze_event_handle_t *waits) {
  for (uint32_t i = 0; i < count; i++) {
    const cpu_event *event = cpu_event_cast(waits[i]);
    if (event == NULL || graph_of(event) != graph) continue;
    cpu_branch *branch = &graph->branches[graph->nodes[event->node].branch];
    if (branch == &graph->branches[0] || branch->list == NULL || branch->list == list) continue;
    branch->list->graph = NULL;
    branch->list->left_session = (uint32_t)graph->session;
    branch->list = NULL;
  }
}

/* Records a command that `route` found to belong to the graph. */
static ze_result_t record(cpu_graph *graph, cpu_list *list, const cpu_command *command, ze_event_handle_t signal,
                          uint32_t count, ze_event_handle_t *waits) {
  if ((list->graph == NULL && !fork_to(graph, list, count, waits)) || !reserve(graph, 1 + count / CPU_WAITS)) {
    graph->broken = true;
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  const cpu_command wait = {.op = CPU_OP_NONE};
  for (; count > CPU_WAITS; count -= CPU_WAITS, waits += CPU_WAITS) put(graph, list->branch, &wait, CPU_WAITS, waits);
  put(graph, list->branch, command, count, waits);
  cpu_event *event = signal == NULL ? NULL : cpu_event_cast(signal);
  if (event == NULL) return ZE_RESULT_SUCCESS;
  cpu_node *node = &graph->nodes[graph->count - 1];
  node->signals = is_internal(event);
  node->command.signal = node->signals ? NULL : event;
  event->graph = graph;
  event->session = graph->session;
  event->node = graph->count - 1;
  return ZE_RESULT_SUCCESS;
}

ze_result_t cpu_capture_append(cpu_list *list, const cpu_command *command, ze_event_handle_t signal, uint32_t count,
                               ze_event_handle_t *waits, bool *captured) {
  cpu_graph *graph = NULL;
  cpu_captures_hold();
  ze_result_t result = route(list, signal, count, waits, &graph);
  *captured = graph != NULL;
  if (result == ZE_RESULT_SUCCESS && graph != NULL) result = record(graph, list, command, signal, count, waits);
  if (graph != NULL && cpu_has_quirk(CPU_QUIRK_UNJOINED_CAPTURES)) lose_waited(graph, list, count, waits);
  cpu_captures_go();
  return result;
}

ze_result_t cpu_capture_list(cpu_list *list, const cpu_list *closed, bool *captured) {
  ze_result_t result = ZE_RESULT_SUCCESS;
  cpu_captures_hold();
  cpu_graph *graph = list->graph, *same;
  *captured = graph != NULL;
  for (uint32_t i = 0; i < closed->count && graph != NULL && result == ZE_RESULT_SUCCESS; i++) {
    const cpu_command *c = &closed->recorded[i];
    result = route(list, (ze_event_handle_t)c->signal, c->wait_count, (ze_event_handle_t *)c->waits, &same);
    if (result == ZE_RESULT_SUCCESS)
      result = record(graph, list, c, (ze_event_handle_t)c->signal, c->wait_count, (ze_event_handle_t *)c->waits);
    if (result != ZE_RESULT_SUCCESS && i != 0) graph->broken = true; /* a part of a list is no list */
  }
  cpu_captures_go();
  return result;
}

bool cpu_capture_has(const cpu_list *list) {
  if (!cpu_capture_any()) return false;
  cpu_captures_hold();
  bool has = list->graph != NULL;
  cpu_captures_go();
  return has;
}

bool cpu_event_is_captured(const cpu_event *event, bool internal) {
  if (!cpu_capture_any()) return false;
  cpu_captures_hold();
  bool names = graph_of(event) != NULL && (!internal || is_internal(event));
  cpu_captures_go();
  return names;
}

bool cpu_capture_forks(uint32_t count, ze_event_handle_t *waits) {
  for (uint32_t i = 0; i < count && cpu_capture_any(); i++) {
    const cpu_event *event = cpu_event_cast(waits[i]);
    if (event != NULL && cpu_event_is_captured(event, false)) return true;
  }
  return false;
}

/* Ends the capture mode of all lists. */
static void stop(cpu_graph *graph, cpu_graph_state state) {
  for (uint32_t i = 0; i < graph->branch_count; i++) {
    if (graph->branches[i].list != NULL) graph->branches[i].list->graph = NULL;
    graph->branches[i].list = NULL;
  }
  graph->state = state;
  atomic_fetch_sub(&cpu_captures, 1);
}

void cpu_capture_forget(cpu_list *list) {
  if (!cpu_capture_any()) return;
  cpu_captures_hold();
  cpu_graph *graph = list->graph, *abandoned = NULL;
  if (graph != NULL && graph->branches[0].list == list) {
    stop(graph, CPU_GRAPH_INVALID);
    abandoned = graph->given ? NULL : graph; /* nobody has a handle of it that is to be destroyed */
  } else if (graph != NULL) graph->branches[list->branch].list = NULL; /* what it has recorded stays */
  list->graph = NULL;
  cpu_captures_go();
  if (abandoned != NULL) cpu_graph_delete(abandoned);
}

static void cover(cpu_graph *graph, uint32_t from) {
  const cpu_node *node = &graph->nodes[from];
  cpu_branch *branch = &graph->branches[node->branch];
  if (branch->joined <= node->place) branch->joined = node->place + 1;
}

/* From the end backwards: what a node of a branch waits for is joined if the node itself is. True: all work is. */
static bool join(cpu_graph *graph) {
  graph->branches[0].joined = graph->branches[0].count;
  for (uint32_t i = graph->count; i > 0; i--) {
    const cpu_node *node = &graph->nodes[i - 1];
    if (node->place >= graph->branches[node->branch].joined) {
      if (cpu_node_works(node)) return false;
      continue;
    }
    for (unsigned k = 0; k < node->command.wait_count; k++)
      if (node->from[k] != CPU_NODE_NONE) cover(graph, node->from[k]);
    for (unsigned k = 0; k < node->source_count; k++) cover(graph, node->sources[k]);
  }
  for (uint32_t i = 0; i < graph->branch_count; i++)
    if (graph->branches[i].count != 0 && graph->branches[i].joined == 0) return false;
  return true;
}

/* Order within an in-order branch needs no signal. */
static void prune(cpu_graph *graph) {
  for (uint32_t i = 0; i < graph->count; i++) graph->nodes[i].signals = false;
  for (uint32_t i = 0; i < graph->count; i++) {
    cpu_node *node = &graph->nodes[i];
    uint8_t kept = 0;
    for (unsigned k = 0; k < node->source_count; k++) {
      cpu_node *source = &graph->nodes[node->sources[k]];
      if (source->branch == node->branch && graph->branches[node->branch].in_order) continue;
      source->signals = true;
      node->sources[kept++] = node->sources[k];
    }
    node->source_count = kept;
  }
}

static ze_result_t check_begin(const cpu_list *list, const void *next) {
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  if (cpu_has_quirk(CPU_QUIRK_EARLY_GRAPHS)) return EARLY_CODE;
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  return !list->immediate || list->synchronous || list->closed
             ? CPU_REFUSED(ERROR_INVALID_ARGUMENT, "only an open, asynchronous immediate list can be captured")
             : ZE_RESULT_SUCCESS;
}

/* With the lock held. */
static ze_result_t start(cpu_graph *graph, cpu_list *list) {
  static uint64_t sessions;
  if (list->graph != NULL || graph->context != list->context)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is in a capture already, or the graph is of another context");
  if (graph->count != 0 || graph->state == CPU_GRAPH_RECORDING || graph->state == CPU_GRAPH_INVALID ||
      atomic_load(&graph->executables) != 0)
    return CPU_REFUSED(ERROR_INVALID_ARGUMENT,
                       "the graph has commands already, or is recorded, instantiated or not valid");
  graph->branch_count = 0; /* it may have been recorded before, without a command */
  CPU_REFUSE_IF(!enter(graph, list, 0), ERROR_OUT_OF_HOST_MEMORY);
  graph->session = ++sessions;
  graph->primary = list;
  graph->primary_serial = list->fifo.serial;
  graph->state = CPU_GRAPH_RECORDING;
  atomic_fetch_add(&cpu_captures, 1);
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t handle, const void *next) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  ze_result_t result = check_begin(list, next);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_graph *graph = cpu_graph_new(list->context, false);
  CPU_REFUSE_IF(graph == NULL, ERROR_OUT_OF_HOST_MEMORY);
  cpu_captures_hold();
  result = start(graph, list);
  cpu_captures_go();
  if (result != ZE_RESULT_SUCCESS) cpu_graph_delete(graph);
  return result;
}

CPU_EXPORT ze_result_t zeCommandListBeginCaptureIntoGraphExt(ze_command_list_handle_t handle,
                                                             ze_graph_handle_t graph_handle, const void *next) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  cpu_graph *graph = cpu_graph_cast(graph_handle);
  CPU_REFUSE_IF(list == NULL || graph == NULL, ERROR_INVALID_NULL_HANDLE);
  ze_result_t result = check_begin(list, next);
  if (result != ZE_RESULT_SUCCESS) return result;
  cpu_captures_hold();
  result = start(graph, list);
  cpu_captures_go();
  return result;
}

CPU_EXPORT ze_result_t zeCommandListIsGraphCaptureEnabledExt(ze_command_list_handle_t handle) {
  CPU_ENTER();
  const cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  return cpu_capture_has(list) ? ZE_RESULT_QUERY_TRUE : ZE_RESULT_QUERY_FALSE;
}

/* The capture is over whatever the answer is; with an error the graph can only be asked and destroyed. */
CPU_EXPORT ze_result_t zeCommandListEndGraphCaptureExt(ze_command_list_handle_t handle, const void *next,
                                                       ze_graph_handle_t *out) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  ze_result_t result = ZE_RESULT_SUCCESS;
  cpu_captures_hold();
  cpu_graph *graph = list->graph;
  if (graph == NULL) result = CPU_REFUSED(ERROR_COMMAND_LIST_NOT_CAPTURING, NULL);
  else if (graph->branches[0].list != list)
    result = CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the capture began on another list");
  if (result != ZE_RESULT_SUCCESS) {
    cpu_captures_go();
    return result;
  }
  if (graph->broken) result = CPU_REFUSED(ERROR_GRAPH_CAPTURE_INVALIDATED, NULL);
  else if (!join(graph)) result = CPU_REFUSED(ERROR_GRAPH_UNJOINED_FORKS, NULL);
  else prune(graph);
  stop(graph, result == ZE_RESULT_SUCCESS ? CPU_GRAPH_RECORDED : CPU_GRAPH_INVALID);
  cpu_captures_go();
  *out = (ze_graph_handle_t)graph;
  return result;
}

CPU_EXPORT ze_result_t zeCommandListGetGraphExt(ze_command_list_handle_t handle, ze_graph_handle_t *out) {
  CPU_ENTER();
  const cpu_list *list = cpu_list_cast(handle);
  CPU_REFUSE_IF(list == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_captures_hold();
  *out = (ze_graph_handle_t)list->graph;
  cpu_captures_go();
  return *out == NULL ? CPU_REFUSED(ERROR_COMMAND_LIST_NOT_CAPTURING, NULL) : ZE_RESULT_SUCCESS;
}
