from libc.stdint cimport uint64_t

from l0rt.runtime.streams.types cimport l0rt_stream


# 1: idle, 0: not yet.
cdef int lane_query(l0rt_stream* stream) except -1 nogil
cdef int lane_synchronize(l0rt_stream* stream, uint64_t timeout_ns) except -1 nogil
cdef int lane_synchronize_by(l0rt_stream* stream, uint64_t timeout_ns, int policy) except -1 nogil
# Make `stream` wait for what `other` has been given so far.
cdef int lane_wait_lane(l0rt_stream* stream, l0rt_stream* other) except -1 nogil
