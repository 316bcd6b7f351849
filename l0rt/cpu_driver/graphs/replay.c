/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: executable graphs.
 *
 * The primary branch goes into the list that the graph is appended to; every other one has a list of its own, on the
 * engine where it was recorded. Nodes are submitted in the order of their recording, so that whatever one waits for has
 * been submitted before it. */
#include <stdlib.h>

#include "base/gate.h"
#include "base/invariant.h"
#include "graphs/capture.h"
#include "graphs/graph.h"
#include "lists/submit.h"
#include "memory/usm.h"

typedef struct {
  cpu_object base;
  cpu_graph *graph; /* borrowed: one with executable graphs can't be destroyed */
  pthread_mutex_t lock; /* one submission at a time */
  cpu_list **lists;     /* of all branches but the first */
  cpu_event **points;   /* of the nodes that signal, while they are submitted */
  cpu_event *last;      /* held: the end of the last execution, or NULL */
} cpu_executable;

_Static_assert(sizeof(cpu_executable) <= CPU_SLOT, "an object must fit its slot");

static cpu_executable *cast(ze_executable_graph_handle_t handle) { return cpu_cast(handle, CPU_EXECUTABLE); }

/* All but the handle. */
static void end(cpu_executable *x) {
  for (uint32_t i = 1; i < x->graph->branch_count && x->lists != NULL; i++)
    if (x->lists[i] != NULL) cpu_list_end(x->lists[i]);
  if (x->last != NULL) cpu_event_let_go(x->last);
  free(x->lists);
  free(x->points);
  pthread_mutex_destroy(&x->lock);
  atomic_fetch_sub(&x->graph->executables, 1);
}

static bool prepare(cpu_executable *x) {
  const cpu_graph *graph = x->graph;
  x->points = calloc((size_t)graph->count + 1, sizeof(*x->points));
  x->lists = calloc((size_t)graph->branch_count + 1, sizeof(*x->lists));
  bool good = x->points != NULL && x->lists != NULL;
  for (uint32_t i = 1; i < graph->branch_count && good; i++) {
    const cpu_branch *b = &graph->branches[i];
    x->lists[i] = cpu_list_immediate(graph->context, b->device, b->ordinal, b->index,
                                     (ze_command_queue_priority_t)b->urgency, b->in_order);
    good = x->lists[i] != NULL;
  }
  return good;
}

CPU_EXPORT ze_result_t zeGraphInstantiateExt(ze_graph_handle_t handle, const void *next,
                                             ze_executable_graph_handle_t *out) {
  CPU_ENTER();
  cpu_graph *graph = cpu_graph_cast(handle);
  CPU_REFUSE_IF(graph == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  cpu_captures_hold();
  bool recording = graph->state == CPU_GRAPH_RECORDING, invalid = graph->state == CPU_GRAPH_INVALID;
  if (!recording && !invalid) atomic_fetch_add(&graph->executables, 1);
  cpu_captures_go();
  if (recording) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the graph is still being captured");
  CPU_REFUSE_IF(invalid, ERROR_INVALID_GRAPH);
  cpu_executable *x = cpu_new(CPU_EXECUTABLE);
  if (x == NULL) {
    atomic_fetch_sub(&graph->executables, 1);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  x->graph = graph;
  pthread_mutex_init(&x->lock, NULL);
  if (!prepare(x)) {
    end(x);
    cpu_delete(x);
    return CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
  }
  *out = (ze_executable_graph_handle_t)x;
  return ZE_RESULT_SUCCESS;
}

static bool is_busy(cpu_executable *x) {
  pthread_mutex_lock(&x->lock);
  bool busy = x->last != NULL && !cpu_latch_is_set(&x->last->state->latch);
  for (uint32_t i = 1; i < x->graph->branch_count && !busy; i++) busy = cpu_list_is_busy(x->lists[i]);
  pthread_mutex_unlock(&x->lock);
  return busy;
}

CPU_EXPORT ze_result_t zeExecutableGraphDestroyExt(ze_executable_graph_handle_t handle) {
  CPU_ENTER();
  cpu_executable *x = cast(handle);
  CPU_REFUSE_IF(x == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(is_busy(x), ERROR_HANDLE_OBJECT_IN_USE);
  CPU_REFUSE_IF(!cpu_retire(x), ERROR_INVALID_NULL_HANDLE); /* another thread was first */
  end(x);
  cpu_recycle(x);
  return ZE_RESULT_SUCCESS;
}

CPU_GETTER(zeExecutableGraphGetSourceGraphExt, ze_executable_graph_handle_t, cpu_executable, x, cast, ze_graph_handle_t,
           out, x->graph)

/* May the list take this graph: is it like the one that was captured, and is everything there that the nodes name? */
static ze_result_t check(const cpu_graph *graph, const cpu_list *list) {
  if (list->context != graph->context) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the graph is of another context");
  if (graph->branch_count != 0) {
    const cpu_branch *primary = &graph->branches[0];
    CPU_REFUSE_IF(list->ordinal != primary->ordinal, ERROR_INVALID_COMMAND_LIST_TYPE);
    if (list->device != primary->device || list->in_order != primary->in_order || list->synchronous)
      return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the list is none like the one that was captured");
  }
  CPU_REFUSE_IF(CPU_UNLIKELY(cpu_device_is_over(list->device)), ERROR_OUT_OF_DEVICE_MEMORY);
  for (uint32_t i = 0; i < graph->count; i++) {
    const cpu_command *c = &graph->nodes[i].command;
    CPU_REFUSE_IF(!cpu_command_valid(c), ERROR_INVALID_SYNCHRONIZATION_OBJECT);
    ze_result_t result = cpu_command_memory(c);
    if (result == ZE_RESULT_SUCCESS) result = cpu_command_walk(c);
    if (result != ZE_RESULT_SUCCESS) return result;
  }
  return ZE_RESULT_SUCCESS;
}

/* A point of this execution, held; NULL without memory. */
static cpu_event *point_on(const cpu_list *list) {
  cpu_event *point = cpu_event_new_point(NULL);
  if (point != NULL) point->device = list->device;
  return point;
}

/* A command waits for points as for other events; cpu_submit lets go of what it was given of them. */
static void wait_for(cpu_command *command, cpu_event *point) {
  CPU_INVARIANT(command->wait_count < CPU_WAITS);
  atomic_fetch_add(&point->users, 1);
  command->waits[command->wait_count++] = point;
}

/* How many nodes of a branch, from this one on, need nothing but a place in its list? */
static uint32_t run_from(const cpu_graph *graph, uint32_t first) {
  uint32_t end = first;
  for (const cpu_node *node = &graph->nodes[first]; end < graph->count; end++, node++)
    if (node->branch != graph->nodes[first].branch || node->signals || node->source_count != 0 ||
        !cpu_command_is_alone(&node->command))
      break;
  return end - first;
}

static cpu_list *list_of(const cpu_executable *x, cpu_list *primary, const cpu_node *node) {
  return node->branch == 0 ? primary : x->lists[node->branch];
}

static ze_result_t submit_node(cpu_executable *x, cpu_list *primary, uint32_t number) {
  const cpu_node *node = &x->graph->nodes[number];
  cpu_list *list = list_of(x, primary, node);
  cpu_command command;
  cpu_command_copy(&command, &node->command);
  command.blamed = primary->fifo.serial;
  if (node->signals) {
    CPU_REFUSE_IF((x->points[number] = point_on(list)) == NULL, ERROR_OUT_OF_HOST_MEMORY);
    command.signal = x->points[number];
    command.unnamed = true;
  }
  for (unsigned i = 0; i < node->source_count; i++) wait_for(&command, x->points[node->sources[i]]);
  return cpu_submit(&list->fifo, &command);
}

/* The execution is over when all branches are: those of which something stands behind the last join are waited for. */
static ze_result_t submit_ends(cpu_executable *x, cpu_list *primary) {
  const cpu_graph *graph = x->graph;
  cpu_event *over = point_on(primary);
  CPU_REFUSE_IF(over == NULL, ERROR_OUT_OF_HOST_MEMORY);
  cpu_command last = {.op = CPU_OP_NONE, .barrier = true, .signal = over, .unnamed = true};
  ze_result_t result = ZE_RESULT_SUCCESS;
  for (uint32_t i = 1; i < graph->branch_count && result == ZE_RESULT_SUCCESS; i++) {
    const cpu_branch *b = &graph->branches[i];
    if (b->in_order && b->joined == b->count) continue;
    cpu_event *tail = point_on(x->lists[i]);
    if (tail == NULL) result = CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
    if (tail == NULL) break;
    cpu_command end = {.op = CPU_OP_NONE, .barrier = true, .signal = tail, .unnamed = true};
    result = cpu_submit(&x->lists[i]->fifo, &end);
    if (result == ZE_RESULT_SUCCESS && last.wait_count == CPU_WAITS) {
      last.signal = NULL;
      result = cpu_submit(&primary->fifo, &last);
      last.wait_count = 0;
      last.signal = over;
    }
    if (result == ZE_RESULT_SUCCESS) wait_for(&last, tail);
    cpu_event_let_go(tail);
  }
  if (result == ZE_RESULT_SUCCESS) result = cpu_submit(&primary->fifo, &last);
  if (result == ZE_RESULT_SUCCESS) {
    if (x->last != NULL) cpu_event_let_go(x->last);
    x->last = over;
  } else cpu_event_let_go(over);
  return result;
}

/* With the executable graph's lock held. */
static ze_result_t submit_all(cpu_executable *x, cpu_list *list, uint32_t wait_count, ze_event_handle_t *waits) {
  const cpu_graph *graph = x->graph;
  cpu_command begin = {.op = CPU_OP_NONE};
  ze_result_t result = cpu_list_append(list, &begin, NULL, wait_count, waits);
  if (result == ZE_RESULT_SUCCESS && x->last != NULL && !cpu_latch_is_set(&x->last->state->latch)) {
    cpu_command after = {.op = CPU_OP_NONE};
    wait_for(&after, x->last);
    result = cpu_submit(&list->fifo, &after);
  }
  for (uint32_t i = 0; i < graph->count && result == ZE_RESULT_SUCCESS;) {
    const cpu_node *node = &graph->nodes[i];
    uint32_t run = run_from(graph, i);
    if (run != 0) {
      cpu_fifo *fifo = &list_of(x, list, node)->fifo;
      result = cpu_fifo_push_run(fifo, &node->command, sizeof(*node), run, list->fifo.serial);
      i += run;
    } else {
      result = submit_node(x, list, i++);
    }
  }
  for (uint32_t i = 0; i < graph->count; i++) {
    if (x->points[i] != NULL) cpu_event_let_go(x->points[i]);
    x->points[i] = NULL;
  }
  return result == ZE_RESULT_SUCCESS ? submit_ends(x, list) : result;
}

CPU_EXPORT ze_result_t zeCommandListAppendGraphExt(ze_command_list_handle_t handle,
                                                   ze_executable_graph_handle_t graph_handle, const void *next,
                                                   ze_event_handle_t signal, uint32_t wait_count,
                                                   ze_event_handle_t *waits) {
  CPU_ENTER();
  cpu_list *list = cpu_list_cast(handle);
  cpu_executable *x = cast(graph_handle);
  CPU_REFUSE_IF(list == NULL || x == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  CPU_REFUSE_IF(!list->immediate, ERROR_INVALID_COMMAND_LIST_TYPE);
  ze_result_t result = cpu_list_check(list, signal, wait_count, waits);
  if (result != ZE_RESULT_SUCCESS) return result;
  CPU_REFUSE_IF(cpu_capture_has(list) || cpu_capture_forks(wait_count, waits), ERROR_GRAPH_CAPTURE_UNSUPPORTED);
  result = check(x->graph, list);
  if (result != ZE_RESULT_SUCCESS) return result;
  pthread_mutex_lock(&x->lock);
  result = submit_all(x, list, wait_count, waits);
  for (uint32_t i = 1; i < x->graph->branch_count; i++) cpu_engine_ring(x->lists[i]->fifo.engine);
  pthread_mutex_unlock(&x->lock);
  cpu_command end = {.op = CPU_OP_NONE, .barrier = true};
  if (result == ZE_RESULT_SUCCESS && signal != NULL) result = cpu_list_append(list, &end, signal, 0, NULL);
  cpu_engine_ring(list->fifo.engine);
  return result;
}
