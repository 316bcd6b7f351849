# SPDX-License-Identifier: Apache-2.0
"""A producer that fills blocks of device memory and copies each to pinned memory, two at a time, without the GIL."""

from libc.string cimport memcmp

from l0rt.capi cimport *


def produce(size_t nbytes, int count):
    """Fill ``count`` blocks with the numbers 0, 1, 2, ... and return how many came back as they should."""
    cdef l0rt_event* done[2]
    cdef void* host[2]
    cdef int i, good = 0
    done[0] = done[1] = NULL
    host[0] = host[1] = NULL
    try:
        with nogil:
            host[0] = l0rt_host_malloc(nbytes, -1)
            host[1] = l0rt_host_malloc(nbytes, -1)
            for i in range(count + 1):
                if i < count:                       # one block is on its way
                    send(host[i % 2], i, nbytes, &done[i % 2])
                if i > 0:                           # while the one before is looked at
                    l0rt_event_synchronize(done[(i - 1) % 2])
                    good += is_filled(<const char*>host[(i - 1) % 2], i - 1, nbytes)
    finally:
        for i in range(2):
            l0rt_event_destroy(done[i])
            l0rt_host_free(host[i])
    return good


cdef int send(void* host, int value, size_t nbytes, l0rt_event** done) except -1 nogil:
    cdef l0rt_stream* stream = l0rt_pool_stream(-1, 0)
    cdef void* block = l0rt_malloc(nbytes, -1, stream)
    l0rt_memset_async(block, value, nbytes, stream)
    l0rt_memcpy_async(host, block, nbytes, stream)
    l0rt_event_record(done, stream, 0)
    return l0rt_free(block)                         # reused in the order of the stream: behind the copy


cdef bint is_filled(const char* host, int value, size_t nbytes) noexcept nogil:
    return host[0] == <char>value and memcmp(host, host + 1, nbytes - 1) == 0
