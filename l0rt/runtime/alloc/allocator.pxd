# SPDX-License-Identifier: Apache-2.0
"""The caching allocator in Python: one heap over any kind of memory."""

from libc.stdint cimport int64_t, uint64_t

from l0rt.runtime.alloc.types cimport l0rt_heap, l0rt_memory_ops, l0rt_private_pool, l0rt_tuning


# `conf` is an AllocConf; allocations of `uncached_from` bytes and more are not cached, 0: all are.
cdef int tuning_of(conf, uint64_t uncached_from, l0rt_tuning* out) except -1


cdef class Memory:
    cdef const l0rt_memory_ops* ops
    cdef void* self
    cdef uint64_t granule           # this and the next three as in l0rt_heap_options; 0: no virtual memory
    cdef uint64_t large_page
    cdef uint64_t parts
    cdef int64_t moves
    cdef uint64_t range


cdef class Pool:
    cdef l0rt_private_pool* private_pool


cdef class Allocator:
    cdef l0rt_heap* heap
    cdef readonly Memory memory
