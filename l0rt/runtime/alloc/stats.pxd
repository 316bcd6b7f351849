# SPDX-License-Identifier: Apache-2.0
"""Statistics of a heap: exact sums and peaks over all its arenas, and all of them under torch's keys."""

from libc.stdint cimport int64_t, uint64_t

from l0rt.runtime.alloc.atomics cimport load, load_i64
from l0rt.runtime.alloc.types cimport (
    l0rt_arena,
    l0rt_heap,
    l0rt_private_pool,
    l0rt_segment,
    l0rt_share,
    l0rt_stats,
    l0rt_tuning,
)

cdef enum:
    FAMILIES = 9                    # the first members of l0rt_stats, and
    STATS_OF_FAMILY = 3             # what each consists of
    ACCUMULATED = FAMILIES * STATS_OF_FAMILY + 2

cdef dict stats_of_heap(l0rt_heap* heap)

# The recount of a heap: all arenas of one moment, exact peaks, and statistics.
#
# Only arenas that may have changed are locked. The others rest: each was found idle by a recount, which counted it and
# left it no headroom, so that its next allocation or free wakes it, before it changes anything.
cdef bint recount_lock(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil
cdef bint recount_lock_all(l0rt_heap* heap) noexcept nogil
cdef void recount_unlock(l0rt_heap* heap) noexcept nogil
cdef void recount_all(l0rt_heap* heap, l0rt_arena* eager, int pool) noexcept nogil
# Bytes that an arena of this pool (NULL: the default one) may still reserve; less than 0 where a limit has come down.
cdef int64_t heap_available(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil
cdef int64_t pool_available(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil
cdef int64_t heap_private_bytes(l0rt_heap* heap) noexcept nogil
cdef void count_reserved(l0rt_heap* heap, l0rt_segment* segment, int64_t bytes, int segments, int calls) noexcept nogil
cdef void count_up(l0rt_heap* heap, int64_t* counter) noexcept nogil
cdef void count_oom(l0rt_heap* heap, bint by_limit) noexcept nogil

cdef void heap_stats(l0rt_heap* heap, l0rt_stats* out) noexcept nogil
cdef int64_t heap_stats_of_pools(l0rt_heap* heap, l0rt_stats* out, l0rt_share* shares, int64_t capacity) noexcept nogil
cdef void heap_reset_peak(l0rt_heap* heap) noexcept nogil
# With the recount's lock: sum up allocated and freed; begin new peaks, while the statistics and the open scopes keep
# those so far.
cdef void totals(l0rt_heap* heap) noexcept nogil
cdef void peaks_begin(l0rt_heap* heap) noexcept nogil
cdef void heap_rest(l0rt_heap* heap) noexcept nogil
cdef void heap_reset_accumulated(l0rt_heap* heap) noexcept nogil
cdef int64_t heap_allocated_bytes(l0rt_heap* heap) noexcept nogil
cdef int64_t heap_reserved_bytes(l0rt_heap* heap) noexcept nogil
cdef int64_t heap_cached_bytes(l0rt_heap* heap) noexcept nogil


# These may change while a thread reads them that holds neither the recount nor the growth mutex.


cdef inline l0rt_arena* heap_arenas(l0rt_heap* heap) noexcept nogil:
    """The first of all arenas; `next` leads to those that were made before it."""
    return <l0rt_arena*>load(<void**>&heap.arenas)


cdef inline const l0rt_tuning* heap_tuning(l0rt_heap* heap) noexcept nogil:
    return <const l0rt_tuning*>load(<void**>&heap.tuning)


cdef inline int64_t heap_limit(l0rt_heap* heap) noexcept nogil:
    """Bytes that may be reserved; INT64_MAX: no limit."""
    return load_i64(&heap.limit)


cdef inline bint heap_is_over(l0rt_heap* heap, uint64_t more) noexcept nogil:
    """Are more bytes free than the bound allows, or would they be with ``more``?"""
    cdef uint64_t most = heap_tuning(heap).cached_most
    if most == 0 or <uint64_t>load_i64(&heap.reserved) <= most:
        return False
    return heap_cached_bytes(heap) + <int64_t>more > <int64_t>most
