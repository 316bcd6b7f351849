from libc.stdint cimport int64_t, uint64_t

from l0rt.runtime.records cimport l0rt_device, l0rt_stream


cdef l0rt_stream* pool_stream(l0rt_device* device, int priority) except NULL nogil
cdef l0rt_stream* stream_by_id(l0rt_device* device, int64_t id) except NULL nogil
# 1: all streams of the device are idle, 0: the time is up or (query) not yet.
cdef int device_synchronize(l0rt_device* device, uint64_t timeout_ns) except -1 nogil
