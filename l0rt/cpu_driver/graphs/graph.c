/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c: making and ending graphs, and what they say of themselves. */
#include "graphs/graph.h"

#include <stdlib.h>

#include "base/gate.h"
#include "lists/launch.h"

static pthread_mutex_t captures = PTHREAD_MUTEX_INITIALIZER;

void cpu_captures_hold(void) { pthread_mutex_lock(&captures); }
void cpu_captures_go(void) { pthread_mutex_unlock(&captures); }

cpu_graph *cpu_graph_new(cpu_context *context, bool given) {
  cpu_graph *graph = cpu_new(CPU_GRAPH);
  if (graph == NULL) return NULL;
  graph->context = context;
  graph->given = given;
  cpu_context_hold(context);
  return graph;
}

bool cpu_graph_delete(cpu_graph *graph) {
  if (!cpu_retire(graph)) return false;
  for (uint32_t i = 0; i < graph->callback_count; i++) graph->callbacks[i].function(graph->callbacks[i].data);
  for (uint32_t i = 0; i < graph->count; i++)
    if (graph->nodes[i].command.op == CPU_OP_LAUNCH) cpu_launch_let_go(graph->nodes[i].command.launch.launch);
  free(graph->nodes);
  free(graph->branches);
  free(graph->callbacks);
  cpu_context *context = graph->context;
  cpu_recycle(graph);
  cpu_context_let_go(context);
  return true;
}

CPU_EXPORT ze_result_t zeGraphCreateExt(ze_context_handle_t context_handle, const void *next, ze_graph_handle_t *out) {
  CPU_ENTER();
  cpu_context *context = cpu_context_cast(context_handle);
  CPU_REFUSE_IF(context == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  cpu_graph *graph = cpu_graph_new(context, true);
  CPU_REFUSE_IF(graph == NULL, ERROR_OUT_OF_HOST_MEMORY);
  *out = (ze_graph_handle_t)graph;
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeGraphDestroyExt(ze_graph_handle_t handle) {
  CPU_ENTER();
  cpu_graph *graph = cpu_graph_cast(handle);
  CPU_REFUSE_IF(graph == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(graph->state == CPU_GRAPH_RECORDING || atomic_load(&graph->executables) != 0,
                ERROR_HANDLE_OBJECT_IN_USE);
  return cpu_graph_delete(graph) ? ZE_RESULT_SUCCESS : CPU_REFUSED(ERROR_INVALID_NULL_HANDLE, NULL);
}

CPU_EXPORT ze_result_t zeGraphSetDestructionCallbackExt(ze_graph_handle_t handle,
                                                        zex_mem_graph_free_callback_fn_t function, void *data,
                                                        const void *next) {
  CPU_ENTER();
  cpu_graph *graph = cpu_graph_cast(handle);
  CPU_REFUSE_IF(graph == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(function == NULL, ERROR_INVALID_NULL_POINTER);
  CPU_REFUSE_IF(next != NULL, ERROR_UNSUPPORTED_FEATURE);
  cpu_captures_hold();
  cpu_graph_callback *callbacks = realloc(graph->callbacks, (graph->callback_count + 1) * sizeof(*callbacks));
  if (callbacks != NULL) {
    graph->callbacks = callbacks;
    callbacks[graph->callback_count++] = (cpu_graph_callback){.function = function, .data = data};
  }
  cpu_captures_go();
  return callbacks != NULL ? ZE_RESULT_SUCCESS : CPU_REFUSED(ERROR_OUT_OF_HOST_MEMORY, NULL);
}

CPU_EXPORT ze_result_t zeGraphIsEmptyExt(ze_graph_handle_t handle) {
  CPU_ENTER();
  const cpu_graph *graph = cpu_graph_cast(handle);
  CPU_REFUSE_IF(graph == NULL, ERROR_INVALID_NULL_HANDLE);
  cpu_captures_hold();
  ze_result_t result = graph->state == CPU_GRAPH_INVALID || graph->broken ? CPU_REFUSED(ERROR_INVALID_GRAPH, NULL)
                       : graph->count == 0                                ? ZE_RESULT_QUERY_TRUE
                                                                          : ZE_RESULT_QUERY_FALSE;
  cpu_captures_go();
  return result;
}

CPU_EXPORT ze_result_t zeGraphGetPrimaryCommandListExt(ze_graph_handle_t handle, ze_command_list_handle_t *out) {
  CPU_ENTER();
  const cpu_graph *graph = cpu_graph_cast(handle);
  CPU_REFUSE_IF(graph == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(out == NULL, ERROR_INVALID_NULL_POINTER);
  cpu_captures_hold();
  cpu_list *list = cpu_list_cast((ze_command_list_handle_t)graph->primary);
  bool same = list != NULL && list->immediate && list->fifo.serial == graph->primary_serial;
  cpu_captures_go();
  if (!same) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "nothing was captured, or the list is gone");
  *out = (ze_command_list_handle_t)list;
  return ZE_RESULT_SUCCESS;
}
