# SPDX-License-Identifier: Apache-2.0
"""What a heap consists of at one moment: every block, segment by segment."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t

from l0rt.runtime.alloc.block cimport block_is_allocated, block_kind
from l0rt.runtime.alloc.stats cimport recount_lock_all, recount_unlock
from l0rt.runtime.alloc.types cimport HELD, UNMAPPED, PENDING, l0rt_arena, l0rt_block, l0rt_segment


cdef int64_t heap_snapshot(l0rt_heap* heap, l0rt_block_info* out, int64_t capacity) noexcept nogil:
    """Write at most ``capacity`` blocks and return how many there are (then ask again). -1: the heap is closed."""
    cdef int64_t count = 0
    cdef l0rt_arena* arena
    cdef l0rt_segment* segment
    cdef l0rt_block* block
    cdef l0rt_block* start          # of a range, every stretch that has memory counts as a segment
    if not recount_lock_all(heap):
        return -1
    arena = heap.arenas
    while arena != NULL:
        segment = arena.segments
        while segment != NULL:
            start = block = segment.first
            while block != NULL:
                if has_memory(block):
                    if not has_memory(start):
                        start = block
                    if count < capacity:
                        describe(block, start, &out[count])
                    count += 1
                else:
                    start = block
                block = block.after
            segment = segment.next
        arena = arena.next
    recount_unlock(heap)
    return count


cdef inline bint has_memory(l0rt_block* block) noexcept nogil:
    return block.state != UNMAPPED and block.state != HELD


cdef inline uint64_t stretch(l0rt_block* start) noexcept nogil:
    """Bytes from ``start`` to the next unmapped span."""
    cdef l0rt_block* block = start
    while block.after != NULL and has_memory(block.after):
        block = block.after
    return <uintptr_t>block.ptr + block.size - <uintptr_t>start.ptr


cdef inline void describe(l0rt_block* block, l0rt_block* start, l0rt_block_info* info) noexcept nogil:
    info.segment = <uintptr_t>start.ptr
    info.segment_size = (info - 1).segment_size if block != start else stretch(start)
    info.is_expandable = block.segment.granules != NULL
    info.address = <uintptr_t>block.ptr
    info.size = block.size
    info.requested = block.requested if block_is_allocated(block) or block.state == PENDING else 0
    info.pool_id[0] = block.arena.private_pool.id[0] if block.arena.private_pool != NULL else 0
    info.pool_id[1] = block.arena.private_pool.id[1] if block.arena.private_pool != NULL else 0
    info.stream = block.arena.stream
    info.state = block_kind(block)
    info.pool = block.segment.pool
