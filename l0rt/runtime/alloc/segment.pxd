# SPDX-License-Identifier: Apache-2.0
"""Segments: taken from the memory's operations, and given back. The heap's growth mutex is held throughout,
but for the calls of an upstream and for waits."""

from libc.stdint cimport uint64_t

from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block, l0rt_heap, l0rt_upstream


cdef inline l0rt_upstream* upstream_of(l0rt_arena* arena) noexcept nogil:
    """Where this arena's segments come from; NULL: from the operations."""
    if arena.private_pool != NULL and arena.private_pool.upstream != NULL:
        return arena.private_pool.upstream
    return arena.heap.upstream


cdef inline size_t* padding_of(l0rt_arena* arena) noexcept nogil:
    cdef l0rt_upstream* upstream = upstream_of(arena)
    return &arena.heap.padding if upstream == NULL else &upstream.padding


cdef int segment_new(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size, l0rt_block** held) noexcept nogil
cdef uint64_t segments_release(l0rt_heap* heap, l0rt_arena* only, uint64_t wanted, bint by_age) noexcept nogil
cdef void segments_settle(l0rt_heap* heap, l0rt_arena* only) noexcept nogil
cdef int segments_wait(l0rt_heap* heap, l0rt_arena* only) noexcept nogil
cdef void segments_destroy(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil
