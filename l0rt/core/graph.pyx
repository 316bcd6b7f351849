# SPDX-License-Identifier: Apache-2.0
"""Graphs of the driver's: what immediate lists were given is recorded, and appended as a whole."""

cimport cython

from l0rt.core.cmdlist cimport CommandList
from l0rt._base.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP
from l0rt.ze.table cimport ze


cdef ze_result_t list_begin_capture(ze_command_list_handle_t list) noexcept nogil:
    return ze.zeCommandListBeginGraphCaptureExt(list, NULL)


cdef ze_result_t list_append_graph(
        ze_command_list_handle_t list, ze_executable_graph_handle_t graph) noexcept nogil:
    return ze.zeCommandListAppendGraphExt(list, graph, NULL, NULL, 0, NULL)


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Graph:
    """What lists have recorded. Made by ``Graph.end_capture(list)``."""

    def __init__(self):
        raise TypeError("core.Graph is made by Graph.end_capture()")

    @staticmethod
    cdef Graph end_capture(CommandList first):
        """End the recording that ``first`` has begun. Also with an error the list records no more, or is to be
        destroyed."""
        cdef Graph self = Graph.__new__(Graph)
        self.first = first
        with nogil:
            CHECK(ze.zeCommandListEndGraphCaptureExt(first._h, NULL, &self._h))
        return self

    def close(self):
        """Destroy the graph, of which no executable one may be left; closing twice is harmless."""
        Graph_release(self)

    def __dealloc__(self):
        Graph_release(self)


made_by(Graph, "core.Graph is made by Graph.end_capture()")


cdef void Graph_release(Graph self) noexcept:
    cdef ze_graph_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeGraphDestroyExt(h), b"zeGraphDestroyExt")


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class ExecutableGraph:
    """A graph that lists can be given. Made by ``ExecutableGraph.of(graph)``."""

    def __init__(self):
        raise TypeError("core.ExecutableGraph is made by ExecutableGraph.of()")

    @staticmethod
    cdef ExecutableGraph of(Graph graph):
        cdef ExecutableGraph self = ExecutableGraph.__new__(ExecutableGraph)
        self.graph = graph
        with nogil:
            CHECK(ze.zeGraphInstantiateExt(graph._h, NULL, &self._h))
        return self

    def close(self):
        """Destroy it; it must not run any more. Closing twice is harmless."""
        ExecutableGraph_release(self)

    def __dealloc__(self):
        ExecutableGraph_release(self)


made_by(ExecutableGraph, "core.ExecutableGraph is made by ExecutableGraph.of()")


cdef void ExecutableGraph_release(ExecutableGraph self) noexcept:
    cdef ze_executable_graph_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeExecutableGraphDestroyExt(h), b"zeExecutableGraphDestroyExt")
