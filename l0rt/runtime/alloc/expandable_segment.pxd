# SPDX-License-Identifier: Apache-2.0
"""Ranges: addresses that get memory where it is needed and lose it where it is not."""

from libc.stdint cimport uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport load_int
from l0rt.runtime.alloc.share cimport private_pool_of
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block, l0rt_heap, l0rt_private_pool, l0rt_segment

cdef inline bint may_release(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    """May cached memory of this arena be given back for the requester?"""
    cdef l0rt_private_pool* private_pool = private_pool_of(arena)
    if heap.pool_limit_hit:
        return private_pool == heap.requester.private_pool
    return (private_pool == NULL or load_int(&private_pool.is_private) == 0 or heap.requester == NULL
            or heap.requester.private_pool == private_pool
            or (heap.takes_all and private_pool.serves and private_pool.upstream == NULL))


# The growth mutex is held throughout.
cdef int range_grow(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size, size_t requested,
                    l0rt_block** out) noexcept nogil
cdef uint64_t ranges_release(l0rt_heap* heap, l0rt_arena* only, uint64_t wanted) noexcept nogil
cdef void ranges_trim(l0rt_heap* heap, l0rt_arena* only) noexcept nogil
cdef void range_close(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil
cdef void range_destroy(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil

# Physicals of memory: taken, mapped over a held block's addresses, unmapped.
#
# Physical memory is made one granule at a time or, as the heap grows, more: between 1/64 and 1/16 of it, so that the
# number of calls does not follow the sizes, and a part of what one growth needs (heap.parts), so that what is used of
# it does not hold much else in its place. It is mapped and given back as a whole.
cdef struct l0rt_spare:             # physical memory that is mapped nowhere
    void* physical
    uint32_t count
    bint has_moved                  # it was mapped elsewhere
    l0rt_spare* next

cdef int physicals_map(l0rt_heap* heap, l0rt_block* held, l0rt_spare** spares, uint64_t* mapped) noexcept nogil
cdef uint64_t physicals_unmap(l0rt_heap* heap, l0rt_block* held, l0rt_spare** spares) noexcept nogil
cdef bint physical_back(l0rt_heap* heap, l0rt_segment* segment, uint64_t granule) noexcept nogil
cdef void spares_destroy(l0rt_heap* heap, l0rt_spare** spares) noexcept nogil
