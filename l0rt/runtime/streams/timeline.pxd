# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint32_t, uint64_t

from l0rt.runtime.streams.hooks cimport TIMELINE, hooked
from l0rt.runtime.streams.types cimport l0rt_stream
from l0rt.ze.api cimport ze_result_t


# Where an address is, as far as it is known.
cdef enum:
    PLACE_UNKNOWN = 0
    PLACE_HOST
    PLACE_DEVICE
    PLACE_SHARED

cdef enum:
    COMMAND_BEGUN = 0       # a thread is appending it
    COMMAND_APPENDED
    COMMAND_FAILED          # it, or one of its stamps, was refused

# A command of a stream, between two stamps.
cdef struct l0rt_command:
    l0rt_stream* stream
    uint64_t* stamps            # the device writes its clock here, before the command and behind it
    uint64_t number             # of the second stamp, in the stream
    uint64_t called_ns          # by the host's CLOCK_MONOTONIC_RAW: when appending began,
    uint64_t returned_ns        # and when it ended
    uint64_t nbytes             # of a graph: how many nodes it has
    const char* name            # of a kernel
    uint32_t groups[3]
    uint32_t group_size[3]
    int thread
    int kind                    # as hooks have them
    int state
    int source                  # a place,
    int source_device           # and the device that it belongs to
    int target
    int target_device


# Not for use but by the two functions below.
cdef l0rt_command* timeline_add(
    l0rt_stream* stream, int kind, const void* target, const void* source, uint64_t nbytes) noexcept nogil
cdef l0rt_command* timeline_add_kernel(
    l0rt_stream* stream, const char* name, const uint32_t* groups, const uint32_t* group_size) noexcept nogil


# The stream's lock is held around a command and both of these. NULL: no profile runs, or it is full.
cdef inline l0rt_command* begin_command(
        l0rt_stream* stream, int kind, const void* target, const void* source, uint64_t nbytes) noexcept nogil:
    return timeline_add(stream, kind, target, source, nbytes) if hooked >> TIMELINE & 1 else NULL


cdef inline l0rt_command* begin_kernel(
        l0rt_stream* stream, const char* name, const uint32_t* groups, const uint32_t* group_size) noexcept nogil:
    return timeline_add_kernel(stream, name, groups, group_size) if hooked >> TIMELINE & 1 else NULL


# With what the driver answered to the command.
cdef void end_command(l0rt_command* command, ze_result_t result) noexcept nogil

# Free a kernel's name, once no profile can show it any more.
cdef void timeline_free(char* name) noexcept
