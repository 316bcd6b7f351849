# SPDX-License-Identifier: Apache-2.0
cimport cython

from l0rt.core.cmdlist cimport CommandList
from l0rt.ze.api cimport ze_command_list_handle_t, ze_executable_graph_handle_t, ze_graph_handle_t, ze_result_t


# The list, which is immediate, records what it is given from now on.
cdef ze_result_t list_begin_capture(ze_command_list_handle_t list) noexcept nogil
# Append all that a graph has.
cdef ze_result_t list_append_graph(
    ze_command_list_handle_t list, ze_executable_graph_handle_t graph) noexcept nogil


@cython.final
cdef class Graph:
    cdef ze_graph_handle_t _h
    cdef readonly CommandList first     # that the recording began with; the driver may use it in each replay

    @staticmethod
    cdef Graph end_capture(CommandList first)


@cython.final
cdef class ExecutableGraph:
    cdef ze_executable_graph_handle_t _h
    cdef readonly Graph graph

    @staticmethod
    cdef ExecutableGraph of(Graph graph)
