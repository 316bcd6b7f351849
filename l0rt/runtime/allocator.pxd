"""The caching allocator in Python: one heap over any kind of memory."""

from libc.stdint cimport uint64_t

from l0rt.runtime.structs cimport l0rt_heap, l0rt_memory_ops


cdef class Memory:
    cdef const l0rt_memory_ops* ops
    cdef void* self
    cdef uint64_t granule           # 0: no virtual memory
    cdef uint64_t range


cdef class Allocator:
    cdef l0rt_heap* heap
    cdef readonly Memory memory
