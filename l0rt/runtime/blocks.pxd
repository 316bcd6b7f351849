"""Block records, and the chains of blocks that segments are. The arena's lock is held throughout."""

from libc.stdint cimport uint64_t

from l0rt.runtime.structs cimport l0rt_arena, l0rt_block, l0rt_segment

cdef bint records_ready(l0rt_arena* arena) noexcept nogil
cdef void records_leave(l0rt_arena* arena) noexcept nogil
cdef void segment_attach(l0rt_arena* arena, l0rt_segment* segment) noexcept nogil
cdef void segment_detach(l0rt_segment* segment) noexcept nogil
cdef void chain_drop(l0rt_block* block) noexcept nogil

cdef l0rt_block* block_split(l0rt_block* block, uint64_t size) noexcept nogil
cdef l0rt_block* block_merge(l0rt_block* block) noexcept nogil
cdef void block_bin(l0rt_block* block) noexcept nogil
cdef void block_unbin(l0rt_block* block) noexcept nogil


cdef inline bint block_is_split(l0rt_block* block) noexcept nogil:
    return block.before != NULL or block.after != NULL
