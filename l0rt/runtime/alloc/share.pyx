# SPDX-License-Identifier: Apache-2.0
"""Shares: what a pool has of a heap: its arenas, and its part of the reserved memory with its peak.

A pool that is gone keeps its share until all of its memory is given back.

Order of locks: the recount mutex, a private pool's, a heap's list of shares that are gone.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free

from l0rt.runtime.alloc.atomics cimport spin_lock, spin_unlock, store, store_int

cdef enum:
    STATS_OF_FAMILY = 3


# --- Owners: alive while their object or a share refers to them.


cdef void private_pool_hold(l0rt_private_pool* private_pool) noexcept nogil:
    """An allocation from the pool is under way: its arenas stay. The caller knows that the pool is alive."""
    spin_lock(&private_pool.lock)
    store_int(&private_pool.users, private_pool.users + 1)
    spin_unlock(&private_pool.lock)


cdef bint private_pool_hold_alive(l0rt_private_pool* private_pool) noexcept nogil:
    """The same if the caller does not know that the pool is alive; False: it was dropped. A share refers to the
    pool."""
    cdef bint alive
    spin_lock(&private_pool.lock)
    alive = not private_pool.is_gone
    store_int(&private_pool.users, private_pool.users + alive)
    spin_unlock(&private_pool.lock)
    return alive


cdef bint private_pool_release(l0rt_private_pool* private_pool) noexcept nogil:
    """The allocation is over. True: the pool went meanwhile, and nothing may be left of it now."""
    cdef bint went
    spin_lock(&private_pool.lock)
    went = private_pool.is_gone
    store_int(&private_pool.users, private_pool.users - 1)
    spin_unlock(&private_pool.lock)
    return went


cdef void private_pool_leave(l0rt_private_pool* private_pool) noexcept nogil:
    """The pool was dropped: there are no more allocations, and its memory is to be given back. May be called again."""
    cdef l0rt_share* share
    spin_lock(&private_pool.lock)
    store_int(&private_pool.is_private, False)
    store_int(&private_pool.is_gone, True)
    share = private_pool.shares
    while share != NULL:
        share_gone(share)
        share = share.next_of_pool
    spin_unlock(&private_pool.lock)


cdef void private_pool_drop(l0rt_private_pool* private_pool) noexcept nogil:
    """One reference less; the last one ends it."""
    cdef int left
    spin_lock(&private_pool.lock)
    private_pool.refs -= 1
    left = private_pool.refs
    spin_unlock(&private_pool.lock)
    if left == 0:
        if private_pool.upstream != NULL:
            private_pool.upstream.drop(private_pool.upstream)
        free(private_pool)


# --- Shares of dropped pools: a list of those that may have memory to give back.


cdef void share_gone(l0rt_share* share) noexcept nogil:
    """The share's pool was dropped, and the share may have new memory to give back."""
    cdef l0rt_heap* heap = share.heap
    spin_lock(&heap.gone_lock)
    if share.is_looked_at:
        share.look_again = True
    elif not share.is_listed:
        share.is_listed = True
        share.next_gone = heap.gone
        heap.gone = share
        store_int(&heap.has_gone, 1)
    spin_unlock(&heap.gone_lock)


cdef l0rt_share* shares_gone(l0rt_heap* heap) noexcept nogil:
    """Take all shares off the list: the caller looks at each, and says so."""
    cdef l0rt_share* share
    cdef l0rt_share* shares
    spin_lock(&heap.gone_lock)
    shares = share = heap.gone
    heap.gone = NULL
    store_int(&heap.has_gone, 0)
    while share != NULL:
        share.is_listed = False
        share.is_looked_at = True
        share.look_again = False
        share = share.next_gone
    spin_unlock(&heap.gone_lock)
    return shares


cdef void share_looked_at(l0rt_share* share, bint again) noexcept nogil:
    """The look is over. ``again``: there is more to give back, once the work that uses it is done."""
    spin_lock(&share.heap.gone_lock)
    share.is_looked_at = False
    again = again or share.look_again
    spin_unlock(&share.heap.gone_lock)
    if again:
        share_gone(share)


# --- Shares.


cdef l0rt_share* share_find(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """The share of a pool; NULL if it never had an arena here."""
    cdef l0rt_share* share
    spin_lock(&private_pool.lock)
    share = private_pool.shares
    while share != NULL and share.heap != heap:
        share = share.next_of_pool
    spin_unlock(&private_pool.lock)
    return share


cdef l0rt_share* share_of(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """The share of a pool, found or made; NULL without host memory."""
    cdef l0rt_share* share = share_find(heap, private_pool)
    if share != NULL:
        return share
    share = <l0rt_share*>calloc(1, sizeof(l0rt_share))
    if share == NULL:
        return NULL
    share.private_pool = private_pool
    share.id[0], share.id[1] = private_pool.id[0], private_pool.id[1]
    share.heap = heap
    share.next = heap.shares
    if share.next != NULL:
        share.next.previous = share
    store(<void**>&heap.shares, share)
    spin_lock(&private_pool.lock)
    private_pool.refs += 1
    share.next_of_pool = private_pool.shares
    private_pool.shares = share
    if private_pool.is_gone:        # in the middle of this allocation
        share_gone(share)
    spin_unlock(&private_pool.lock)
    return share


cdef void unlist(l0rt_heap* heap, l0rt_share* share) noexcept nogil:
    """The share's pool forgets it."""
    cdef l0rt_private_pool* private_pool = share.private_pool
    cdef l0rt_share** link = &private_pool.shares
    spin_lock(&private_pool.lock)
    while link[0] != share:
        link = &link[0].next_of_pool
    link[0] = share.next_of_pool
    spin_unlock(&private_pool.lock)
    share.private_pool = NULL
    private_pool_drop(private_pool)


cdef void share_end(l0rt_heap* heap, l0rt_share* share) noexcept nogil:
    """The pool was dropped and has no memory here any more. Only the caller uses the share."""
    if share.next != NULL:
        share.next.previous = share.previous
    if share.previous != NULL:
        share.previous.next = share.next
    else:
        heap.shares = share.next
    unlist(heap, share)
    free(share)


cdef void shares_destroy(l0rt_heap* heap) noexcept nogil:
    """The heap ends."""
    cdef l0rt_share* share
    while heap.shares != NULL:
        share = heap.shares
        heap.shares = share.next
        unlist(heap, share)
        free(share)


cdef void shares_reset_peak(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_share* share = heap.shares
    cdef l0rt_stat* stat
    cdef int i
    while share != NULL:
        stat = <l0rt_stat*>&share.reserved
        for i in range(STATS_OF_FAMILY):
            stat[i].peak = stat[i].current
        share = share.next


cdef void shares_reset_accumulated(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_share* share = heap.shares
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


cdef int64_t shares_copy(l0rt_heap* heap, l0rt_share* out, int64_t capacity) noexcept nogil:
    """Write ids and reserved bytes of at most ``capacity`` shares, counted since the last reset; how many there are."""
    cdef l0rt_share* share = heap.shares
    cdef l0rt_stat* stat
    cdef l0rt_stat* base
    cdef int64_t count = 0
    cdef int i
    while share != NULL:
        if count < capacity:
            out[count].id = share.id
            out[count].reserved = share.reserved
            stat = <l0rt_stat*>&out[count].reserved
            base = <l0rt_stat*>&share.base
            for i in range(STATS_OF_FAMILY):
                stat[i].allocated -= base[i].allocated
                stat[i].freed -= base[i].freed
        count += 1
        share = share.next
    return count
