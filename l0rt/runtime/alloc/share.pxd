# SPDX-License-Identifier: Apache-2.0
"""Shares: what a pool has of a heap: its arenas, and its part of the reserved memory with its peak.

The recount mutex is held for all that does not say otherwise.
"""

from libc.stdint cimport int64_t

from l0rt.runtime.alloc.atomics cimport load, load_int
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_heap, l0rt_private_pool, l0rt_share, l0rt_stat

cdef l0rt_share* share_find(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil
cdef l0rt_share* share_of(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil
cdef void share_end(l0rt_heap* heap, l0rt_share* share) noexcept nogil
cdef void shares_destroy(l0rt_heap* heap) noexcept nogil
cdef void shares_reset_peak(l0rt_heap* heap) noexcept nogil
cdef void shares_reset_accumulated(l0rt_heap* heap) noexcept nogil
cdef int64_t shares_reserved(l0rt_heap* heap) noexcept nogil
cdef int64_t shares_copy(l0rt_heap* heap, l0rt_share* out, int64_t capacity) noexcept nogil

# Without any lock.
cdef void private_pool_hold(l0rt_private_pool* private_pool) noexcept nogil
cdef bint private_pool_hold_alive(l0rt_private_pool* private_pool) noexcept nogil
cdef bint private_pool_release(l0rt_private_pool* private_pool) noexcept nogil
cdef void private_pool_leave(l0rt_private_pool* private_pool) noexcept nogil
cdef void private_pool_drop(l0rt_private_pool* private_pool) noexcept nogil
cdef void share_gone(l0rt_share* share) noexcept nogil
cdef l0rt_share* shares_gone(l0rt_heap* heap) noexcept nogil
cdef void share_looked_at(l0rt_share* share, bint again) noexcept nogil


cdef inline bint is_asleep(l0rt_private_pool* private_pool) noexcept nogil:
    """Have the pool's ranges no memory just now? NULL is the default pool."""
    return private_pool != NULL and load_int(&private_pool.is_asleep) != 0


cdef inline bint is_kept(l0rt_private_pool* private_pool) noexcept nogil:
    """Does a graph use the pool's addresses?"""
    return private_pool != NULL and load_int(&private_pool.holders) != 0


cdef inline l0rt_private_pool* private_pool_of(l0rt_arena* arena) noexcept nogil:
    """For who walks over all arenas: one without memory may just be getting another pool."""
    return <l0rt_private_pool*>load(<void**>&arena.private_pool)


cdef inline bint is_gone(l0rt_arena* arena) noexcept nogil:
    """Does the arena belong to a dropped pool, which caches nothing?"""
    return arena.private_pool != NULL and load_int(&arena.private_pool.is_gone) != 0


cdef inline void share_freed(l0rt_arena* arena) noexcept nogil:
    """Memory was freed in an arena, whose lock is held. If its pool was dropped, mark the memory to be given back."""
    if is_gone(arena) and arena.share != NULL:
        share_gone(arena.share)


cdef inline void stat_move(l0rt_stat* stat, int64_t change) noexcept nogil:
    stat.current += change
    if change > 0:
        stat.allocated += change
    else:
        stat.freed -= change
    if stat.peak < stat.current:
        stat.peak = stat.current
