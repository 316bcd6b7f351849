# SPDX-License-Identifier: Apache-2.0
"""Holes: addresses of ranges that have no memory, and the places among them that are about to get some."""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t

from l0rt.runtime.alloc.atomics cimport spin_lock, spin_unlock
from l0rt.runtime.alloc.block cimport block_cut, record_drop, records_ready
from l0rt.runtime.alloc.stats cimport heap_room
from l0rt.runtime.alloc.types cimport BINNED, HELD, HOLE, l0rt_segment

cdef enum:
    AHEAD = 7                       # an arena that grows does so by 1/128 of what it has at least


cdef void hole_list(l0rt_block* hole) noexcept nogil:
    cdef l0rt_segment* segment = hole.segment
    hole.state = HOLE
    hole.previous = NULL
    hole.next = segment.holes
    if hole.next != NULL:
        hole.next.previous = hole
    segment.holes = hole


cdef inline void hole_unlist(l0rt_block* hole) noexcept nogil:
    if hole.next != NULL:
        hole.next.previous = hole.previous
    if hole.previous != NULL:
        hole.previous.next = hole.next
    else:
        hole.segment.holes = hole.next


cdef inline void hole_swallow(l0rt_block* hole, l0rt_block* after) noexcept nogil:
    hole.size += after.size
    hole.after = after.after
    if hole.after != NULL:
        hole.after.before = hole
    record_drop(after)


cdef void hole_join(l0rt_block* block) noexcept nogil:
    """A held block is a hole from now on, one with the holes beside it."""
    cdef l0rt_block* other = block.after
    if other != NULL and other.state == HOLE:
        hole_unlist(other)
        hole_swallow(block, other)
    other = block.before
    if other != NULL and other.state == HOLE:
        hole_swallow(other, block)
    else:
        hole_list(block)


cdef inline uint64_t free_size(l0rt_block* block) noexcept nogil:
    return block.size if block != NULL and block.state == BINNED else 0


cdef l0rt_block* hole_find(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size, uint64_t* map) noexcept nogil:
    """The hole where the least memory makes room for ``size``, with what is free around it; ``map`` is how much."""
    cdef l0rt_segment* segment = arena.segments
    cdef l0rt_block* hole
    cdef l0rt_block* best = NULL
    cdef uint64_t before, need
    map[0] = UINT64_MAX
    while segment != NULL:
        hole = segment.holes if segment.pool == pool else NULL
        while hole != NULL:
            before = free_size(hole.before)
            need = size - before if before < size else 1
            need = (need + heap.granule - 1) // heap.granule * heap.granule
            if need > hole.size and before + hole.size + free_size(hole.after) >= size:
                need = hole.size
            if need <= hole.size and (need < map[0] or (need == map[0] and hole.ptr < best.ptr)):
                best = hole
                map[0] = need
            hole = hole.next
        segment = segment.next
    return best


cdef l0rt_block* place_hold(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size) noexcept nogil:
    """Hold the part of a hole that has to get memory; NULL if no range has room."""
    cdef uint64_t nbytes
    cdef l0rt_block* hole
    if not spin_lock(&arena.lock):
        return NULL
    hole = hole_find(heap, arena, pool, size, &nbytes)
    if hole != NULL and nbytes < hole.size:
        if records_ready(arena):
            block_cut(hole, nbytes)
            hole_list(hole.after)
        else:
            hole = NULL
    if hole != NULL:
        hole_unlist(hole)
        hole.state = HELD
    spin_unlock(&arena.lock)
    return hole


cdef uint64_t place_extend(l0rt_heap* heap, l0rt_block* held) noexcept nogil:
    """Let a held block take a little more of the hole behind it, within the limit; how much."""
    cdef uint64_t more = (<uint64_t>held.arena.reserved >> AHEAD) // heap.granule * heap.granule
    if more <= held.size or <int64_t>more > heap_room(heap, held.arena.owner):
        return 0
    more -= held.size
    return more if place_move_end(held, more) else 0


cdef bint place_move_end(l0rt_block* held, int64_t more) noexcept nogil:
    """Move the border between a held block and the hole behind it, which is neither's end."""
    cdef l0rt_block* hole
    cdef bint done = False
    if spin_lock(&held.arena.lock):
        hole = held.after
        done = hole != NULL and hole.state == HOLE and <int64_t>hole.size > more
        if done:
            hole.ptr = <char*>hole.ptr + more
            hole.size -= more
            held.size += more
        spin_unlock(&held.arena.lock)
    return done
