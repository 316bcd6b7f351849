"""Blocks that other streams use: on free they wait until those streams' work is done."""

from libc.stdint cimport int64_t

from l0rt.runtime.structs cimport l0rt_block, l0rt_heap

cdef int block_use(l0rt_block* block, void* stream) noexcept nogil

cdef int pending_add(l0rt_heap* heap, l0rt_block* block) noexcept nogil
cdef int64_t pending_poll(l0rt_heap* heap) noexcept nogil
cdef int pending_wait(l0rt_heap* heap) noexcept nogil
cdef void pending_destroy(l0rt_heap* heap) noexcept nogil
