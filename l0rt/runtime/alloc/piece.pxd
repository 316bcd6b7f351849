"""Pieces of memory: taken, mapped over a held block's addresses, unmapped.

A piece is one granule or, as the heap grows, more: at most one part in 32 of it, so that the number of calls does
not follow the sizes. It is mapped and given back as a whole."""

from libc.stdint cimport uint32_t, uint64_t

from l0rt.runtime.alloc.types cimport l0rt_block, l0rt_heap, l0rt_segment

cdef struct l0rt_spare:             # a piece that is mapped nowhere
    void* piece
    uint32_t count
    l0rt_spare* next

cdef int pieces_map(l0rt_heap* heap, l0rt_block* held, l0rt_spare** spares, uint64_t* mapped) noexcept nogil
cdef uint64_t pieces_unmap(l0rt_heap* heap, l0rt_block* held, l0rt_spare** spares) noexcept nogil
cdef bint piece_back(l0rt_heap* heap, l0rt_segment* segment, uint64_t granule) noexcept nogil
cdef void spares_destroy(l0rt_heap* heap, l0rt_spare** spares) noexcept nogil
