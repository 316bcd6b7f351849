# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.graphs.native cimport NativeGraph
from l0rt.graphs.recording cimport Recording
from l0rt.graphs.segment cimport Plan, Segment, Version
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_replayed, l0rt_stream
from l0rt.ze.api cimport ze_command_list_handle_t, ze_command_queue_handle_t, ze_fence_handle_t


cdef enum:
    MOST_SETS = 8       # replays that can be under way, each with lists of its own


cdef class Executable


# A closed list of each segment, for one replay at a time.
@cython.final
cdef class ListSet:
    cdef list versions              # by segment; None: the next replay has it recorded
    cdef list fences
    cdef ze_command_list_handle_t* lists
    cdef ze_fence_handle_t* behind  # what each list signals: the last of a queue a fence, the others nothing
    cdef uint32_t count
    cdef uint64_t now               # all lists have the nodes as they were after so many changes
    cdef bint is_issued             # a replay may execute it still

    @staticmethod
    cdef ListSet make(Executable executable)
    cdef int put(self, Segment segment, Version version) except -1
    cdef int close(self) except -1


@cython.final
cdef class Executable:
    cdef readonly Recording recording
    cdef NativeGraph native         # what replays append; None: they execute lists
    cdef NativeGraph retired        # what replays appended, until a stream has done so many commands; None: it is gone
    cdef l0rt_stream* retired_on
    cdef uint64_t retired_seq
    cdef Plan plan
    cdef list queues                # the owners, by branch
    cdef l0rt_device* device
    cdef list sets                  # that of the last replay is the last
    cdef ze_command_queue_handle_t* queue_of    # that executes the list of each segment
    cdef uint32_t count
    cdef int resting                # threads that wait to drop it: it is replayed no more
    cdef bint is_broken             # a part of a replay was refused
    cdef l0rt_stream* last          # which replayed it last; it is over
    cdef uint64_t last_seq          # once that has completed so many commands
    cdef bint may_fail              # it has launches, and the driver reports failed ones
    cdef l0rt_replayed replayed

    @staticmethod
    cdef Executable build(Recording recording)
    # Issue everything once, in the order of the stream. In a turn of the recording.
    cdef int replay(self, l0rt_stream* stream) except -1
    cdef bint is_idle(self, uint64_t timeout_ns) except -1
    cdef bint are_lists_idle(self, uint64_t timeout_ns) except -1
    # Wait until it is; return the KernelFaultError of a launch, which was not raised before, or None.
    cdef object rest(self)
    cdef int close(self) except -1
