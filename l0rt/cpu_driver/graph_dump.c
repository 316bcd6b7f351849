/* SPDX-License-Identifier: Apache-2.0 */
/* graph_dump.c: a graph as a picture: a file for Graphviz's dot, a box for each branch. */
#include <stdio.h>
#include <string.h>

#include "capture.h"
#include "gate.h"
#include "graph.h"
#include "launch.h"

static const char *kind_of(const spirv_argument *argument) {
  switch (argument->kind) {
    case SPIRV_LOCAL_POINTER: return "local";
    case SPIRV_GLOBAL_POINTER: return "global pointer";
    case SPIRV_CONSTANT_POINTER: return "constant pointer";
    default: return "value";
  }
}

/* Highest byte first, as numbers are written; long values by their first bytes. */
static void write_value(FILE *file, const uint8_t *bytes, uint32_t size) {
  enum { SHOWN = 16 };
  uint32_t shown = size < SHOWN ? size : SHOWN;
  fprintf(file, "0x");
  for (uint32_t i = shown; i > 0; i--) fprintf(file, "%02x", bytes[i - 1]);
  if (shown < size) fprintf(file, " ...");
}

static void write_launch(FILE *file, const cpu_launch *launch, bool detailed) {
  fprintf(file, "%s", spirv_kernel_look(launch->kernel)->name);
  if (!detailed) return;
  const uint32_t *n = launch->group_count, *s = launch->group_size;
  if (launch->counts == NULL) fprintf(file, "\\ngroups %u x %u x %u", n[0], n[1], n[2]);
  else fprintf(file, "\\ngroups at %p", (const void *)launch->counts);
  fprintf(file, " of %u x %u x %u", s[0], s[1], s[2]);
  for (uint32_t i = 0; i < launch->argument_count; i++) {
    fprintf(file, "\\narg %u: %s ", i, kind_of(&launch->kinds[i]));
    if (launch->kinds[i].kind == SPIRV_LOCAL_POINTER)
      fprintf(file, "of %llu bytes", (unsigned long long)launch->local_sizes[i]);
    else write_value(file, launch->arguments[i], launch->kinds[i].size);
  }
}

static void write_label(FILE *file, const cpu_command *c, bool detailed) {
  switch ((cpu_op)c->op) {
    case CPU_OP_COPY:
      fprintf(file, "copy %zu bytes", c->copy.size);
      if (detailed) fprintf(file, "\\n%p to %p", c->copy.source, c->copy.target);
      break;
    case CPU_OP_FILL:
      fprintf(file, "fill %zu bytes", c->fill.size);
      if (!detailed) break;
      fprintf(file, "\\nat %p with ", c->fill.target);
      write_value(file, c->fill.pattern, (uint32_t)c->fill.pattern_size);
      break;
    case CPU_OP_REGION:
      fprintf(file, "copy %zu x %zu x %zu bytes", c->region.width, c->region.height, c->region.depth);
      if (detailed) fprintf(file, "\\n%p to %p", (const void *)c->region.source, (const void *)c->region.target);
      break;
    case CPU_OP_CLOCK: fprintf(file, "global timestamp"); break;
    case CPU_OP_QUERY: fprintf(file, "kernel timestamp"); break;
    case CPU_OP_RESET: fprintf(file, "event reset"); break;
    case CPU_OP_CALL: fprintf(file, "host function"); break;
    case CPU_OP_LAUNCH: write_launch(file, c->launch.launch, detailed); break;
    default: fprintf(file, "%s", c->barrier ? "barrier" : c->signal != NULL ? "signal" : "wait");
  }
}

static void write_nodes(FILE *file, const cpu_graph *graph, uint32_t branch, bool detailed) {
  uint32_t before = CPU_NODE_NONE;
  fprintf(file, "  subgraph cluster_%u {\n    label=\"list %u%s\";\n", branch, branch, branch == 0 ? ", primary" : "");
  for (uint32_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i].branch != branch) continue;
    fprintf(file, "    n%u [shape=%s, label=\"", i, cpu_node_works(&graph->nodes[i]) ? "box" : "ellipse");
    write_label(file, &graph->nodes[i].command, detailed);
    fprintf(file, "\"];\n");
    if (before != CPU_NODE_NONE) fprintf(file, "    n%u -> n%u;\n", before, i);
    before = i;
  }
  fprintf(file, "  }\n");
}

static void write_graph(FILE *file, const cpu_graph *graph, bool detailed) {
  fprintf(file, "digraph graph_%llu {\n", (unsigned long long)graph->session);
  for (uint32_t i = 0; i < graph->branch_count; i++) write_nodes(file, graph, i, detailed);
  for (uint32_t i = 0; i < graph->count; i++) {
    const cpu_node *node = &graph->nodes[i];
    for (unsigned k = 0; k < node->command.wait_count; k++)
      if (node->from[k] == CPU_NODE_NONE) fprintf(file, "  e%u_%u [shape=point];\n  e%u_%u -> n%u;\n", i, k, i, k, i);
      else fprintf(file, "  n%u -> n%u [style=dashed];\n", node->from[k], i);
    for (unsigned k = 0; k < node->source_count; k++)
      fprintf(file, "  n%u -> n%u [style=dashed];\n", node->sources[k], i);
  }
  fprintf(file, "}\n");
}

static ze_result_t read_chain(const ze_base_desc_t *d, bool *detailed) {
  *detailed = true;
  for (; d != NULL; d = d->pNext) {
    CPU_REFUSE_IF(d->stype != ZE_STRUCTURE_TYPE_RECORD_REPLAY_GRAPH_EXT_DUMP_DESC, ERROR_UNSUPPORTED_FEATURE);
    uint32_t mode = (uint32_t)((const ze_record_replay_graph_ext_dump_desc_t *)d)->mode;
    CPU_REFUSE_IF(mode > ZE_RECORD_REPLAY_GRAPH_EXT_DUMP_MODE_SIMPLE, ERROR_INVALID_ENUMERATION);
    *detailed = mode == ZE_RECORD_REPLAY_GRAPH_EXT_DUMP_MODE_DETAILED;
  }
  return ZE_RESULT_SUCCESS;
}

CPU_EXPORT ze_result_t zeGraphDumpContentsExt(ze_graph_handle_t handle, const char *path, const void *next) {
  CPU_ENTER();
  const cpu_graph *graph = cpu_graph_cast(handle);
  bool detailed;
  CPU_REFUSE_IF(graph == NULL, ERROR_INVALID_NULL_HANDLE);
  CPU_REFUSE_IF(path == NULL, ERROR_INVALID_NULL_POINTER);
  ze_result_t result = read_chain(next, &detailed);
  if (result != ZE_RESULT_SUCCESS) return result;
  FILE *file = fopen(path, "we");
  if (file == NULL) return CPU_REFUSED(ERROR_INVALID_ARGUMENT, "the file cannot be opened");
  cpu_captures_hold();
  write_graph(file, graph, detailed);
  cpu_captures_go();
  bool good = ferror(file) == 0;
  return fclose(file) == 0 && good
             ? ZE_RESULT_SUCCESS
             : CPU_REFUSED(ERROR_UNKNOWN, "the file cannot be written to its end"); /* such as a full disk */
}
