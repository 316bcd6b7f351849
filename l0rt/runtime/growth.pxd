"""Growing: what is tried, in which order, when nothing that is cached fits."""

from libc.stdint cimport uint64_t

from l0rt.runtime.structs cimport l0rt_arena, l0rt_block, l0rt_heap, l0rt_tuning

# The growth mutex is held.
cdef int grow(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil
cdef int sole(l0rt_heap* heap, l0rt_arena* arena, size_t nbytes, l0rt_block** out) noexcept nogil
cdef uint64_t give_back(l0rt_heap* heap, uint64_t wanted) noexcept nogil
cdef void unstack_all(l0rt_heap* heap) noexcept nogil
