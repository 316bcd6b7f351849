# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.runtime.streams.types cimport l0rt_stream


# What several generators may share, so that a captured graph and its generator stay together.
cdef class PhiloxState:
    cdef uint64_t seed
    cdef uint64_t offset
    cdef dict captures          # number of an open capture -> its CapturedState


cdef class Generator:
    cdef PhiloxState state
    cdef int index              # -1: the name has none
    cdef str type               # of the device
    cdef dict places            # stream's address -> where kernels of that stream find the state
    cdef object __weakref__


# What a capture draws from a state. In each replay, its kernels find the seed and the offset in memory of the device.
cdef class CapturedState:
    cdef PhiloxState state
    cdef int index              # of the device
    cdef object memory          # a Buffer of STATE_BYTES
    cdef readonly uint64_t place    # where that is
    cdef readonly uint64_t words    # what all draws so far use
    cdef uint64_t capture

    @staticmethod
    cdef CapturedState create(Generator generator, memory)
    cdef int begin(self, uint64_t capture) except -1
    cdef int end(self) except -1
    # Use so many words; return how many come before them. `words` is a multiple of 4.
    cdef uint64_t draw(self, uint64_t words) noexcept
    # Advance the state by what one replay uses, and write down where that begins.
    cdef int replayed(self, uint64_t* seed, uint64_t* offset) noexcept


cdef enum:
    STATE_BYTES = 16            # the seed and the offset

# What the capture that a stream is in draws from a generator. None: the stream is captured no more. RuntimeError: the
# generator is not one that the graph knows, and the capture has ended.
cdef CapturedState captured_state(Generator generator, l0rt_stream* stream)
# Advance the offset by so many words, rounded up to a multiple of 4; return what it was.
cdef uint64_t generator_advance(Generator generator, uint64_t words) noexcept
