# SPDX-License-Identifier: Apache-2.0
"""How a heap grows: what its options say, unless the configuration says otherwise."""

from libc.stdint cimport int64_t, uint64_t

from l0rt.runtime.alloc.types cimport SMALL_SEGMENT, l0rt_arena, l0rt_heap

cdef enum:
    MOVING_SHARE = 100              # moves may take 1 % of the time that passes
    NEAR_PERCENT = 85               # of the memory: above it even little moves
    SMALL_STEPS = 2                 # a segment for small requests may double so often, up to
    SMALL_SHARE = 5                 # 1/32 of what its arena has
    TIMED_MAPS = 8                  # the first mappings are timed:
    SLOW_MAP_NS = 500000            # above this in the mean, ranges grow by more at once;
    EMPTY_MAP_NS = 3000             # below this nothing was mapped: every submission would do it


cdef inline uint64_t least_growth(l0rt_heap* heap) noexcept nogil:
    """Of a range of the default pool. What a range of another pool has is doubled up to that."""
    return heap.tuning.least_growth if heap.tuning.least_growth != 0 else heap.least_growth


cdef inline uint64_t least_move(l0rt_heap* heap) noexcept nogil:
    return heap.tuning.least_move if heap.tuning.least_move != 0 else heap.least_move


cdef inline int64_t moving(l0rt_heap* heap) noexcept nogil:
    """How many nanoseconds moves may take at first; 0: they are counted."""
    if not heap.has_clock:
        return 0
    return heap.tuning.moving if heap.tuning.moving != 0 else heap.moving


cdef inline int64_t now(l0rt_heap* heap) noexcept nogil:
    return heap.ops.clock(heap.self) if heap.has_clock else 0


cdef inline bint may_pay(l0rt_heap* heap) noexcept nogil:
    """Is time left for a move?"""
    return heap.moved < moving(heap) + (now(heap) - heap.begun) // MOVING_SHARE


cdef inline bint is_near(l0rt_heap* heap, uint64_t more, int64_t limit) noexcept nogil:
    """Will memory be short with so many bytes more?"""
    cdef uint64_t most = min(<uint64_t>limit, heap.capacity) if heap.capacity != 0 else <uint64_t>limit
    return <uint64_t>heap.reserved + more > most // 100 * NEAR_PERCENT


cdef inline uint64_t small_segment(l0rt_arena* arena) noexcept nogil:
    """The size of the next segment for small requests of an arena."""
    cdef uint64_t size = arena.tuning.small_segment, most
    if size == 0:
        size = arena.heap.small_segment
    if size == 0 or arena.private_pool != NULL:
        return SMALL_SEGMENT
    most = size << SMALL_STEPS
    while size < most and size << SMALL_SHARE < <uint64_t>arena.reserved:
        size <<= 1
    return size


cdef inline bint has_small_segments(l0rt_arena* arena) noexcept nogil:
    """Do small requests have segments, although large ones have ranges? Not in pools, which may sleep."""
    return (arena.heap.small_segment != 0 or arena.tuning.small_segment != 0) and arena.private_pool == NULL
