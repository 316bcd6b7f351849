# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.core.cmdlist cimport CommandList
from l0rt.core.event cimport EventPool
from l0rt.graphs.recording cimport Recording
from l0rt.runtime.streams.capture cimport l0rt_branch, l0rt_node
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream
from l0rt.ze.api cimport ze_event_handle_t


# A list of a graph's, as a stream of its own kind: it is given commands as any other, and has no native list yet.
cdef void fill_list(l0rt_stream* list, const l0rt_branch* branch) noexcept
# Give a list what a node does; `event` is waited for, or signalled behind all so far if it is not NULL.
cdef int append_node(l0rt_stream* list, const l0rt_node* node, uint64_t* number) except -1 nogil
cdef int append_wait(l0rt_stream* list, ze_event_handle_t event) except -1 nogil
cdef int append_signal(l0rt_stream* list, ze_event_handle_t event) except -1 nogil


# A closed list with the nodes of a segment, as they were after so many changes.
@cython.final
cdef class Version:
    cdef CommandList commands
    cdef uint64_t now
    cdef bint is_mutable
    cdef uint64_t* ids              # of a mutable list: the driver's numbers of the launches, by place in the segment


@cython.final
cdef class Segment:
    cdef uint32_t at                # among the segments, in the order in which they are executed
    cdef uint32_t branch
    cdef uint32_t first             # its nodes are those of the branch from this one
    cdef uint32_t last              # to this one. 0: it has none
    cdef uint32_t count
    cdef bint is_opening            # the first of its branch
    cdef bint is_mutable            # new lists are
    cdef uint32_t* news             # nodes that were ever changed
    cdef uint32_t news_count

    # It has a node that was changed.
    cdef int add(self, uint32_t i) except -1


# A recording in segments, and the events between them.
@cython.final
cdef class Plan:
    cdef readonly Recording recording
    cdef list segments
    cdef l0rt_device* device
    cdef l0rt_stream* lists         # one a branch, of its own kind: commands are appended as to any other stream
    cdef uint32_t* where            # the segment of each node,
    cdef uint32_t* place            # and its place there
    cdef EventPool pool
    cdef ze_event_handle_t* behind  # each node, 0 being the beginning; NULL: nothing waits for it
    cdef ze_event_handle_t* opened  # of each branch but the first: in each replay, its first list waits for that of all
    cdef ze_event_handle_t start_event   # by the stream that replays, for the lists,
    cdef ze_event_handle_t end_event     # and by the lists
    cdef ze_event_handle_t callback_event    # before callbacks: the host sees finished work; no call waits for it

    @staticmethod
    cdef Plan make(Recording recording)
    # A new list with the nodes of a segment.
    cdef Version record(self, Segment segment)
    # Has a node been changed since a list was recorded?
    cdef bint is_stale(self, Segment segment, Version version) noexcept
    # The same nodes in a list that is there and does not run.
    cdef int record_anew(self, Segment segment, Version version) except -1
    # Let a list have the changes since it was recorded. False: it must be recorded anew.
    cdef bint change(self, Segment segment, Version version) except -1
