# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream

# The kinds of memory. For ELSEWHERE, memory of another device type, this class has only the size: see otherbuffer.pyx.
cdef enum:
    DEVICE = 0
    HOST = 1
    SHARED = 2
    ELSEWHERE = 3


cdef class Buffer:
    cdef l0rt_block* block      # NULL: shared memory, empty, or freed
    cdef void* pointer          # NULL: empty or freed
    cdef readonly size_t nbytes
    cdef l0rt_stream* stream    # allocated in this stream's order
    cdef l0rt_device* owner
    cdef int memory             # one of the kinds above
    cdef int exports            # memoryviews that look at it, and calls that work on it: it is not freed meanwhile
    cdef bint freed
    cdef object __weakref__


# What fill() fills with: the byte or the pattern that it was given.
cdef bytes checked_pattern(value, pattern, size_t nbytes)

cdef tuple KINDS        # their names, in the order of the numbers

# A buffer that owns the block that it is given.
cdef Buffer new_buffer(size_t nbytes, l0rt_stream* stream, l0rt_device* owner, int memory, l0rt_block* block)
