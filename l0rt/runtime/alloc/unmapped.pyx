# SPDX-License-Identifier: Apache-2.0
"""Unmapped spans: addresses of ranges that have no memory, and the places among them that are about to get some."""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t

from l0rt.runtime.alloc.atomics cimport spin_lock, spin_unlock
from l0rt.runtime.alloc.block cimport block_cut, record_drop, records_ready
from l0rt.runtime.alloc.stats cimport heap_available
from l0rt.runtime.alloc.types cimport BINNED, HELD, UNMAPPED, l0rt_segment

cdef enum:
    AHEAD = 7                       # an arena that grows does so by 1/128 of what it has at least


cdef void span_list(l0rt_block* span) noexcept nogil:
    cdef l0rt_segment* segment = span.segment
    span.state = UNMAPPED
    span.previous = NULL
    span.next = segment.unmapped
    if span.next != NULL:
        span.next.previous = span
    segment.unmapped = span


cdef inline void span_unlist(l0rt_block* span) noexcept nogil:
    if span.next != NULL:
        span.next.previous = span.previous
    if span.previous != NULL:
        span.previous.next = span.next
    else:
        span.segment.unmapped = span.next


cdef inline void span_swallow(l0rt_block* span, l0rt_block* after) noexcept nogil:
    span.size += after.size
    span.after = after.after
    if span.after != NULL:
        span.after.before = span
    record_drop(after)


cdef void span_join(l0rt_block* block) noexcept nogil:
    """A held block is an unmapped span from now on, one with those beside it."""
    cdef l0rt_block* other = block.after
    if other != NULL and other.state == UNMAPPED:
        span_unlist(other)
        span_swallow(block, other)
    other = block.before
    if other != NULL and other.state == UNMAPPED:
        span_swallow(other, block)
    else:
        span_list(block)


cdef inline uint64_t free_size(l0rt_block* block) noexcept nogil:
    return block.size if block != NULL and block.state == BINNED else 0


cdef l0rt_block* span_find(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size, uint64_t* map) noexcept nogil:
    """The unmapped span that needs the least memory for ``size``, with what is free around it; ``map`` is how much."""
    cdef l0rt_segment* segment = arena.segments
    cdef l0rt_block* span
    cdef l0rt_block* best = NULL
    cdef uint64_t before, need
    map[0] = UINT64_MAX
    while segment != NULL:
        span = segment.unmapped if segment.pool == pool else NULL
        while span != NULL:
            before = free_size(span.before)
            need = size - before if before < size else 1
            need = (need + heap.granule - 1) // heap.granule * heap.granule
            if need > span.size and before + span.size + free_size(span.after) >= size:
                need = span.size
            if need <= span.size and (need < map[0] or (need == map[0] and span.ptr < best.ptr)):
                best = span
                map[0] = need
            span = span.next
        segment = segment.next
    return best


cdef l0rt_block* place_hold(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size) noexcept nogil:
    """Hold the part of an unmapped span that has to get memory; NULL if no range has enough addresses."""
    cdef uint64_t nbytes
    cdef l0rt_block* span
    if not spin_lock(&arena.lock):
        return NULL
    span = span_find(heap, arena, pool, size, &nbytes)
    if span != NULL and nbytes < span.size:
        if records_ready(arena):
            block_cut(span, nbytes)
            span_list(span.after)
        else:
            span = NULL
    if span != NULL:
        span_unlist(span)
        span.state = HELD
    spin_unlock(&arena.lock)
    return span


cdef uint64_t place_extend(l0rt_heap* heap, l0rt_block* held) noexcept nogil:
    """Let a held block take a little more of the unmapped span behind it, within the limit; how much."""
    cdef uint64_t more = (<uint64_t>held.arena.reserved >> AHEAD) // heap.granule * heap.granule
    if more <= held.size or <int64_t>more > heap_available(heap, held.arena.private_pool):
        return 0
    more -= held.size
    return more if place_move_end(held, more) else 0


cdef bint place_move_end(l0rt_block* held, int64_t more) noexcept nogil:
    """Move the border between a held block and the unmapped span behind it, which is neither's end."""
    cdef l0rt_block* span
    cdef bint done = False
    if spin_lock(&held.arena.lock):
        span = held.after
        done = span != NULL and span.state == UNMAPPED and <int64_t>span.size > more
        if done:
            span.ptr = <char*>span.ptr + more
            span.size -= more
            held.size += more
        spin_unlock(&held.arena.lock)
    return done
