# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t

from l0rt.runtime.streams.capture cimport l0rt_capture
from l0rt.runtime.streams.types cimport l0rt_stream


# A capture that is over, and what its replays need.
@cython.final
cdef class Recording:
    cdef l0rt_capture* capture
    cdef readonly object pool       # the MemPool that it allocated from
    # How far each branch is joined: what a branch was given after that node, the capture's end does not wait for.
    cdef uint32_t* joined
    cdef list states                # what it draws from, each a CapturedState

    @staticmethod
    cdef Recording begin(l0rt_stream* stream, int mode, pool, list states)
    # The capture is over. RuntimeError where there is no graph: a call has ended it, or a branch was not joined.
    cdef int end(self) except -1
    # Each generator advances by what a replay uses, and the stream writes where that begins. Before the first node.
    cdef int advance(self, l0rt_stream* stream) except -1
    cdef int close(self) except -1
