/* SPDX-License-Identifier: Apache-2.0 */
/* random_graph_fp64.cl: the kernels of random_fp64.cl for launches of graphs. */
#define IN_GRAPH
#include "random_fp64.cl"
