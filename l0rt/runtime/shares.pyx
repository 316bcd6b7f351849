"""Shares: what a heap's private pools have of its reserved memory, each with its peak. The census mutex is held.

A pool that is gone keeps its share until all of its memory is given back and somebody resets the statistics: its peak
may still be asked for.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.runtime.structs cimport l0rt_arena, l0rt_family

cdef enum:
    GONE_MOST = 64                  # programs that never reset make pools for ever: so many that are gone are kept
    STATS_OF_FAMILY = 3


cdef inline bint is_over(l0rt_share* share) noexcept nogil:
    return share.owner.is_gone and share.reserved.all.current == 0


cdef void forget(l0rt_heap* heap, l0rt_share* share) noexcept nogil:
    """The arenas that had it serve other pools, if any."""
    cdef l0rt_arena* arena = heap.arenas
    while arena != NULL:
        if arena.share == share:
            arena.share = NULL
        arena = arena.next


cdef l0rt_share* share_of(l0rt_heap* heap, l0rt_owner* owner) noexcept nogil:
    """The share of a pool, found or made; NULL without host memory."""
    cdef l0rt_share* share = heap.shares
    cdef l0rt_share* oldest = NULL
    cdef int gone = 0
    while share != NULL and share.owner != owner:
        if is_over(share):
            oldest = share
            gone += 1
        share = share.next
    if share != NULL:
        return share
    if gone >= GONE_MOST:           # its place in the list is that of an old one, and it is found there all the same
        forget(heap, oldest)
        memset(&oldest.reserved, 0, sizeof(l0rt_family))
        memset(&oldest.base, 0, sizeof(l0rt_family))
        oldest.owner = owner
        return oldest
    share = <l0rt_share*>calloc(1, sizeof(l0rt_share))
    if share != NULL:
        share.owner = owner
        share.next = heap.shares
        heap.shares = share
    return share


cdef void drop_what_is_over(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_share** link = &heap.shares
    cdef l0rt_share* share
    while link[0] != NULL:
        share = link[0]
        if is_over(share):
            link[0] = share.next
            forget(heap, share)
            free(share)
        else:
            link = &share.next


cdef void shares_reset_peak(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_share* share
    cdef l0rt_stat* stat
    cdef int i
    drop_what_is_over(heap)
    share = heap.shares
    while share != NULL:
        stat = <l0rt_stat*>&share.reserved
        for i in range(STATS_OF_FAMILY):
            stat[i].peak = stat[i].current
        share = share.next


cdef void shares_reset_accumulated(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_share* share
    drop_what_is_over(heap)
    share = heap.shares
    while share != NULL:
        share.base = share.reserved
        share = share.next


cdef int64_t shares_reserved(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_share* share = heap.shares
    cdef int64_t bytes = 0
    while share != NULL:
        bytes += share.reserved.all.current
        share = share.next
    return bytes


cdef int64_t shares_copy(l0rt_heap* heap, l0rt_share* out, int64_t room) noexcept nogil:
    """Write at most ``room`` shares, counted since the last reset, and return how many there are."""
    cdef l0rt_share* share = heap.shares
    cdef l0rt_stat* stat
    cdef l0rt_stat* base
    cdef int64_t count = 0
    cdef int i
    while share != NULL:
        if count < room:
            out[count] = share[0]
            stat = <l0rt_stat*>&out[count].reserved
            base = <l0rt_stat*>&share.base
            for i in range(STATS_OF_FAMILY):
                stat[i].allocated -= base[i].allocated
                stat[i].freed -= base[i].freed
        count += 1
        share = share.next
    return count
