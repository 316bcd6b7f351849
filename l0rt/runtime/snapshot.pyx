"""What a heap consists of at one moment: every block, segment by segment."""

from libc.stdint cimport int64_t, uintptr_t

from l0rt.runtime.blockmap cimport map_find
from l0rt.runtime.census cimport census_lock, census_unlock
from l0rt.runtime.structs cimport (
    LIVE,
    l0rt_arena,
    l0rt_block,
    l0rt_segment,
)


cdef int64_t heap_snapshot(l0rt_heap* heap, l0rt_block_info* out, int64_t room) noexcept nogil:
    """Write at most ``room`` blocks and return how many there are (then ask again). -1: the heap is closed."""
    cdef int64_t count = 0
    cdef l0rt_arena* arena
    cdef l0rt_segment* segment
    cdef l0rt_block* block
    if not census_lock(heap):
        return -1
    arena = heap.arenas
    while arena != NULL:
        segment = arena.segments
        while segment != NULL:
            block = map_find(segment.base)
            while block != NULL:
                if count < room:
                    describe(block, &out[count])
                count += 1
                block = block.after
            segment = segment.next
        arena = arena.next
    census_unlock(heap)
    return count


cdef inline void describe(l0rt_block* block, l0rt_block_info* info) noexcept nogil:
    info.segment = <uintptr_t>block.segment.base
    info.segment_size = block.segment.size
    info.address = <uintptr_t>block.ptr
    info.size = block.size
    info.requested = block.requested if block.state >= LIVE else 0
    info.stream = block.arena.stream
    info.state = block.state
    info.pool = block.segment.pool
