from libc.stdint cimport uint64_t

from l0rt.runtime.records cimport l0rt_slot, l0rt_stream


# Python's hold on a lane; l0rt.Stream is its face.
cdef class Lane:
    cdef l0rt_stream* ptr


# Every verb appends one thing in the stream's order, or raises. None is called with a C lock held.
cdef int lane_open(l0rt_stream* stream) except -1 nogil
cdef int lane_copy(l0rt_stream* stream, void* dst, const void* src, size_t nbytes) except -1 nogil
cdef int lane_fill(
    l0rt_stream* stream, void* dst, const void* pattern, size_t pattern_size, size_t nbytes) except -1 nogil
cdef int lane_record(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil
cdef int lane_wait(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil
# A slot with a reference, recorded behind everything that the stream has been given so far.
cdef l0rt_slot* lane_ticket(l0rt_stream* stream) except NULL nogil
# 1: idle, 0: not yet.
cdef int lane_query(l0rt_stream* stream) except -1 nogil
cdef int lane_synchronize(l0rt_stream* stream, uint64_t timeout_ns) except -1 nogil
# Make `stream` wait for what `other` has been given so far.
cdef int lane_wait_lane(l0rt_stream* stream, l0rt_stream* other) except -1 nogil
