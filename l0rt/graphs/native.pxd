# SPDX-License-Identifier: Apache-2.0
cimport cython

from l0rt.core.event cimport EventPool
from l0rt.core.graph cimport ExecutableGraph, Graph
from l0rt.graphs.recording cimport Recording
from l0rt.runtime.streams.types cimport l0rt_stream
from l0rt.ze.api cimport ze_event_handle_t


# Can the driver's own graph have what was recorded?
cdef bint native_can(Recording recording) noexcept


@cython.final
cdef class NativeGraph:
    cdef Recording recording
    cdef l0rt_stream* streams       # one a branch, whose native list has recorded
    cdef list lists                 # their owners, by branch; None for those that nothing waits for
    cdef EventPool points           # between branches; None: it needs no event
    cdef ze_event_handle_t callback_event    # as a Plan's
    cdef Graph graph
    cdef ExecutableGraph executable

    @staticmethod
    cdef NativeGraph build(Recording recording)
    # Can the graph be appended to the stream's list?
    cdef bint fits(self, const l0rt_stream* stream) noexcept nogil
