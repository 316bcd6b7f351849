# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.graphs.native cimport NativeGraph
from l0rt.graphs.recording cimport Recording
from l0rt.graphs.segment cimport Plan, Segment, Version
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_replayed, l0rt_slot, l0rt_stream
from l0rt.ze.api cimport ze_command_list_handle_t, ze_command_queue_handle_t


cdef enum:
    VERSIONS = 4        # lists of a segment, of which one can be changed while others run


# A replay whose end the host can ask about.
cdef struct l0rt_replay:
    uint64_t number
    l0rt_slot* slot


@cython.final
cdef class Executable:
    cdef readonly Recording recording
    cdef NativeGraph native         # what replays append; None: they execute lists
    cdef NativeGraph retired        # what the replays up to this number appended; None: that is gone
    cdef uint64_t retired_at
    cdef Plan plan
    cdef list queues                # the owners, by branch
    cdef l0rt_device* device
    cdef ze_command_list_handle_t* lists
    cdef ze_command_queue_handle_t* queue_of    # that executes each
    cdef uint32_t count
    cdef list stale                 # Segments whose list is not what the nodes are now
    cdef uint64_t replays           # issued so far,
    cdef uint64_t replayed          # and known to be over
    cdef l0rt_replay[VERSIONS] watched
    cdef int watched_count
    cdef int resting                # threads that wait to drop it: it is replayed no more
    cdef bint is_broken             # a part of a replay was refused
    cdef l0rt_stream* last          # which replayed it last; it is over
    cdef uint64_t last_seq          # once that has completed so many commands
    cdef bint may_fail              # it has launches, and the driver tells of failed ones
    cdef l0rt_replayed told

    @staticmethod
    cdef Executable build(Recording recording)
    # Issue everything once, in the order of the stream. In a turn of the recording.
    cdef int replay(self, l0rt_stream* stream) except -1
    cdef bint is_idle(self) except -1
    cdef bint are_queues_idle(self, uint64_t timeout_ns) noexcept
    # Wait until it is; return the KernelFaultError of a launch, which nobody was told of, or None.
    cdef object rest(self)
    cdef int close(self) except -1
