/* SPDX-License-Identifier: Apache-2.0 */
/* random_graph.cl: the kernels of random.cl for launches of graphs. */
#define IN_GRAPH
#include "random.cl"
