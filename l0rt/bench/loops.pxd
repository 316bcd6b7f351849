# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t
from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec

from l0rt.core.cmdlist cimport CommandList
from l0rt.core.event cimport EventPool
from l0rt.ze.api cimport *

ctypedef ze_result_t (*signal_fn)(ze_event_handle_t) noexcept nogil


cdef class Gate:
    cdef EventPool pool
    cdef signal_fn signal

    cpdef int shut(self, size_t list) except -1 nogil
    cpdef int open(self) except -1 nogil


cdef inline uint64_t now_ns() noexcept nogil:
    cdef timespec t
    clock_gettime(CLOCK_MONOTONIC, &t)
    return <uint64_t>t.tv_sec * 1000000000 + <uint64_t>t.tv_nsec


cdef int _raw_drain(CommandList list, EventPool pool) except -1 nogil
