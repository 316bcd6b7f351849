# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t


# What hooks are called for. The verbs of streams, events and buffers look at one integer, and at nothing else while it
# is 0.
cdef enum:
    EVENT_CREATION = 0
    EVENT_DELETION
    EVENT_RECORD            # slot, stream
    EVENT_WAIT              # slot, stream
    EVENT_SYNCHRONIZATION   # slot
    MEMORY_ALLOCATION       # address, bytes, stream
    MEMORY_DEALLOCATION     # address
    STREAM_CREATION         # stream
    STREAM_SYNCHRONIZATION  # stream
    STREAM_WAIT             # stream, and the one it waits for
    DEVICE_SYNCHRONIZATION  # device
    COPY                    # stream, target, source, bytes
    FILL                    # stream, target, bytes
    MEMORY_USE              # address, stream: freed memory is not reused before
    HOST_ACCESS             # address, bytes, writes
    KERNEL_LAUNCH           # stream, kernel
    KERNEL_ACCESS           # stream of the launch before, address, bytes, 1: reads, 2: writes, 3: both
    REPLAY                  # stream, graph
    KINDS
    SLEEP = 27              # no hook is called: a memory pool sleeps, and commands on its memory are refused
    GRAPH_REPLAY = 28       # no hook is called: a command of the timeline
    CAPTURES = 29           # no hook is called: a graph is being captured, and streams record instead
    TIMELINE = 30           # no hook is called: a profile runs, and streams stamp their commands


cdef int hooked            # one bit for each kind that has a hook
cdef void note_timeline(bint on) noexcept nogil
cdef void note_captures(bint on) noexcept nogil
cdef void note_sleep(bint on) noexcept nogil
# Call the hooks of `kind`. Never with a C lock held. What a callback raises is reported and goes no further.
cdef void call_hooks(int kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d) noexcept nogil

cdef int sync_mode          # 0: an implicit synchronisation is nothing special, 1: warn, 2: raise
# `what` is about to make the host wait for the stream `whom`, although its name does not say so.
cdef int implicit_sync(str what, str whom) except -1


cdef inline bint has_hooks() noexcept nogil:
    """Is there any hook, or a debug mode?"""
    return hooked


cdef inline void note(int kind, uint64_t a, uint64_t b, uint64_t c) noexcept nogil:
    if hooked:
        call_hooks(kind, a, b, c, 0)
