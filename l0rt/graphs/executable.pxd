# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.graphs.recording cimport Recording
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream
from l0rt.ze.api cimport ze_command_list_handle_t, ze_command_queue_handle_t, ze_event_handle_t


@cython.final
cdef class Executable:
    cdef list owners                # of the lists, the queues and the events
    cdef readonly Recording recording
    cdef object turn                # a replay is one step
    cdef l0rt_device* device
    cdef ze_command_list_handle_t* lists
    cdef ze_command_queue_handle_t* queues  # that executes each
    cdef uint32_t count
    cdef ze_event_handle_t begun    # by the stream, for the lists,
    cdef ze_event_handle_t ended    # and by the lists
    cdef bint is_broken             # a part of a replay was refused
    cdef l0rt_stream* last          # which replayed it last; it is over
    cdef uint64_t last_seq          # once that has completed so many commands

    @staticmethod
    cdef Executable build(Recording recording)
    # Issue everything once, in the order of the stream.
    cdef int replay(self, l0rt_stream* stream) except -1
    cdef bint is_idle(self) except -1
    cdef bint are_queues_idle(self, uint64_t timeout_ns) noexcept
    # Wait until it is.
    cdef int rest(self) except -1
    cdef int close(self) except -1
