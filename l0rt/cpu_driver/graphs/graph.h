/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h: graphs: what immediate lists would have done while they were captured, to be done again and again. */
#ifndef L0RT_CPU_GRAPH_H
#define L0RT_CPU_GRAPH_H

#include "lists/list.h"

enum { CPU_NODE_NONE = UINT32_MAX };

/* One recorded command. A counter-based event that is not external is a matter of the graph alone: the command does not
 * name it, but the node whose signal it was last when the wait was recorded. */
typedef struct {
  cpu_command command;
  uint32_t branch;
  uint32_t place;              /* its number in its branch */
  uint32_t from[CPU_WAITS]; /* whose signal each wait of the command is for, or CPU_NODE_NONE: for one from outside */
  uint32_t sources[CPU_WAITS]; /* nodes whose internal signals it waits for */
  uint8_t source_count;
  bool signals; /* internally; once the capture is over, only if a node of another branch waits for it */
} cpu_node;

/* What one list has recorded. */
typedef struct {
  cpu_list *list; /* while it is captured */
  cpu_device *device;
  uint32_t ordinal, index;
  uint32_t parent; /* the branch that it was forked from */
  uint32_t count; /* of its nodes */
  uint32_t joined; /* how many of them the primary branch has waited for, once the capture is over */
  uint8_t urgency;
  bool in_order;
} cpu_branch;

typedef struct {
  zex_mem_graph_free_callback_fn_t function;
  void *data;
} cpu_graph_callback;

typedef enum { CPU_GRAPH_EMPTY, CPU_GRAPH_RECORDING, CPU_GRAPH_RECORDED, CPU_GRAPH_INVALID } cpu_graph_state;

typedef struct cpu_graph {
  cpu_object base;
  cpu_context *context; /* held */
  _Atomic uint32_t state;
  bool given; /* made by the program before the capture */
  bool broken; /* something could not be recorded */
  uint64_t session; /* no two captures have the same */
  cpu_list *primary;
  uint64_t primary_serial; /* of its fifo: another list may have its address later */
  cpu_node *nodes;
  uint32_t count, capacity;
  cpu_branch *branches; /* the primary one first */
  uint32_t branch_count;
  uint32_t callback_count;
  cpu_graph_callback *callbacks;
  _Atomic uint32_t executables; /* alive: they use what is recorded */
} cpu_graph;

_Static_assert(sizeof(cpu_graph) <= CPU_SLOT, "an object must fit its slot");

static inline cpu_graph *cpu_graph_cast(ze_graph_handle_t handle) { return cpu_cast(handle, CPU_GRAPH); }

/* A graph without anything in it, or NULL. */
cpu_graph *cpu_graph_new(cpu_context *context, bool given);

/* Ends a graph; its callbacks are called. False: another thread did. */
bool cpu_graph_delete(cpu_graph *graph);

/* Holds all captures where they are: graphs that are recorded, the capture mode of lists, and which signals of events
 * were captured; lets them go on. */
void cpu_captures_hold(void);
void cpu_captures_go(void);

/* Has a node work to do, so that its branch must be joined behind it? */
static inline bool cpu_node_works(const cpu_node *node) {
  return node->command.op != CPU_OP_NONE && node->command.op != CPU_OP_RESET;
}

#endif
