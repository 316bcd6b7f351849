# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t, uint64_t

from l0rt.runtime.alloc.allocator cimport Pool
from l0rt.runtime.streams.capture cimport l0rt_capture, l0rt_node
from l0rt.runtime.streams.types cimport l0rt_stream


# A capture that is over, and what its replays need.
@cython.final
cdef class Recording:
    cdef l0rt_capture* capture
    cdef list pools                 # each MemPool that it allocated from; the first is its own
    cdef Pool pinned_pool           # and its pool of pinned memory
    # How far each branch is joined: what a branch was given after that node, the capture's end does not wait for.
    cdef uint32_t* joined
    cdef list states                # what it draws from, each a CapturedState
    cdef list called                # (branch, place, function, arguments) of each callback; None: there is none
    # Pinned memory: the number of the replay that runs, and for each callback that of the last one that was there.
    cdef object places
    cdef uint64_t number            # how many replays were begun
    cdef readonly object turn       # one thread at a time replays, builds, changes or drops
    cdef bint is_busy               # a thread that has the turn is between take_turn and end_turn
    # Changes of nodes are counted. What was built of the nodes looks at those that were changed since, and clears them.
    cdef uint64_t now
    cdef uint64_t* changed          # when each node was changed last; NULL: none was
    cdef uint32_t* news             # the nodes that were changed since the last look
    cdef uint32_t news_count
    cdef uint64_t looked            # which was after so many changes

    @staticmethod
    cdef Recording begin(l0rt_stream* stream, int mode, pool, list states)
    # The capture is over. RuntimeError where there is no graph: a call has ended it, or a branch was not joined.
    cdef int end(self) except -1
    # Each generator advances by what a replay uses, and the stream writes where that begins, and the number of the
    # replay. Before the first node.
    cdef int advance(self, l0rt_stream* stream) except -1
    # Does the capture's end wait for node `i`?
    cdef bint is_needed(self, uint32_t i) noexcept nogil
    # RuntimeError: what it uses is in a memory pool that sleeps.
    cdef int check_asleep(self) except -1
    # Use of the whole graph, which the thread that has the turn must not begin again inside of it.
    cdef int take_turn(self) except -1
    cdef int end_turn(self) except -1
    # RuntimeError: it was dropped, so that its nodes cannot be changed any more.
    cdef int check_open(self) except -1
    # Before node `i` is changed: what may fail; behind it: what cannot. Both in one turn.
    cdef int announce_change(self) except -1
    cdef void note_change(self, uint32_t i) noexcept
    cdef void take_news(self) noexcept
    cdef int close(self) except -1


# The place of a callback in one replay, as what callbacks wait for.
@cython.final
cdef class Place:
    cdef object places
    cdef uint64_t* reached
    cdef uint64_t number
    cdef object end                 # an event behind the replay

    @staticmethod
    cdef Place of(Recording recording, size_t at, end)


# Wait for the current device; RuntimeError where a capture of this thread forbids that.
cdef int rest_before_capture() except -1
# What a capture of streams of this device draws from: the device's default generator, and those that were registered.
cdef list states_of(list generators, int index)
# What a node is called: its kind; and the name of a kernel or of a callback's function, None of others.
cdef str node_kind(const l0rt_node* node)
cdef node_name(Recording self, const l0rt_node* node)
