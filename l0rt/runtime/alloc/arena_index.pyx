# SPDX-License-Identifier: Apache-2.0
"""The arenas of a heap by stream and pool: lookup, creation, and recycling after their pool was dropped.

An arena's record stays for as long as the heap does, so who stands on one without a lock never falls. It is found by
its stream and pool until its pool is gone and has nothing here any more; then it may become another pool's.
"""

from libc.stdint cimport UINT64_MAX, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.runtime.alloc.arena cimport arena_resize, arena_unstack
from l0rt.runtime.alloc.atomics cimport (
    load,
    load_int,
    mutex_lock,
    mutex_trylock,
    mutex_unlock,
    spin_lock,
    spin_unlock,
    store,
)
from l0rt.runtime.alloc.block cimport records_leave
from l0rt.runtime.alloc.expandable_segment cimport ranges_release, ranges_trim
from l0rt.runtime.alloc.segment cimport segments_destroy, segments_release, segments_settle
from l0rt.runtime.alloc.share cimport share_end, share_looked_at, share_of, shares_gone
from l0rt.runtime.alloc.stats cimport heap_rest
from l0rt.runtime.alloc.types cimport LARGE, SMALL, l0rt_index, l0rt_share

cdef extern from "stdlib.h" nogil:
    void* aligned_alloc(size_t alignment, size_t size) noexcept

cdef enum:
    ARENA_BYTES = (sizeof(l0rt_arena) + 63) & ~63
    BUCKETS = 64                    # at first

cdef l0rt_private_pool nobody       # the owner of arenas without a pool
nobody.is_gone = True


# --- The index. The recount mutex is held where it changes; who reads it without may miss what is being moved.


cdef inline l0rt_arena** bucket_of(l0rt_index* index, void* stream, l0rt_private_pool* private_pool) noexcept nogil:
    cdef uint64_t hash = (<uint64_t><uintptr_t>stream * <uint64_t>0x9E3779B97F4A7C15
                          + <uint64_t><uintptr_t>private_pool * <uint64_t>0xC2B2AE3D27D4EB4F)
    return &index.buckets[(hash >> 32) & index.mask]


cdef void index_add(l0rt_index* index, l0rt_arena* arena) noexcept nogil:
    cdef l0rt_arena** bucket = bucket_of(index, arena.stream, arena.private_pool)
    store(<void**>&arena.next_same, bucket[0])
    store(<void**>bucket, arena)


cdef void index_remove(l0rt_index* index, l0rt_arena* arena) noexcept nogil:
    cdef l0rt_arena** link = bucket_of(index, arena.stream, arena.private_pool)
    while link[0] != arena:
        link = &link[0].next_same
    store(<void**>link, arena.next_same)


cdef l0rt_index* index_ready(l0rt_heap* heap) noexcept nogil:
    """The index, with as many buckets as arenas at least; NULL without host memory for a first one. An index that was
    too small stays, for who reads it just now."""
    cdef l0rt_index* old = heap.index
    cdef l0rt_index* index
    cdef l0rt_arena* arena
    cdef l0rt_arena* next
    cdef uint64_t buckets = BUCKETS if old == NULL else 2 * (old.mask + 1), i
    if old != NULL and heap.indexed <= old.mask:
        return old
    index = <l0rt_index*>calloc(1, sizeof(l0rt_index) + buckets * sizeof(l0rt_arena*))
    if index == NULL:
        return old
    index.mask = buckets - 1
    index.older = old
    if old != NULL:
        for i in range(old.mask + 1):
            arena = old.buckets[i]
            while arena != NULL:
                next = arena.next_same
                index_add(index, arena)
                arena = next
    store(<void**>&heap.index, index)
    return index


cdef l0rt_arena* heap_find_arena(l0rt_heap* heap, void* stream, l0rt_private_pool* private_pool) noexcept nogil:
    """The arena of the stream in the pool or NULL, without a lock."""
    cdef l0rt_index* index = <l0rt_index*>load(<void**>&heap.index)
    cdef l0rt_arena* arena
    if index == NULL:
        return NULL
    arena = <l0rt_arena*>load(<void**>bucket_of(index, stream, private_pool))
    # the pool first: a recycled arena gets its stream before it gets its pool
    while arena != NULL and (load(<void**>&arena.private_pool) != private_pool or load(&arena.stream) != stream):
        arena = <l0rt_arena*>load(<void**>&arena.next_same)
    return arena


# --- Making.


cdef l0rt_arena* recycled(l0rt_heap* heap) noexcept nogil:
    """Return an arena without a pool, NULL if there is none. Its earlier allocations stay counted."""
    cdef l0rt_arena* arena = heap.spare_arenas
    if arena == NULL:
        return NULL
    heap.spare_arenas = arena.next_of_share
    if spin_lock(&arena.lock):              # who has waited for its last stream says so still
        arena.epoch += 1
        arena.settled = arena.epoch - 1     # nothing of it is in use, whatever ordered it before
        arena.granule_epoch = 0
        arena.moves = 0
        arena.needed = 0
        spin_unlock(&arena.lock)
    return arena


cdef l0rt_arena* made(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_arena* arena = <l0rt_arena*>aligned_alloc(64, ARENA_BYTES)
    if arena != NULL:
        memset(arena, 0, ARENA_BYTES)
        arena.heap = heap
        arena.private_pool = &nobody
        arena.tuning = heap.tuning
        arena.recording = heap.recording
        arena.epoch = 1
        arena.headroom[SMALL].resting = arena.headroom[LARGE].resting = arena
        arena.next = heap.arenas
        store(<void**>&heap.arenas, arena)
    return arena


cdef l0rt_arena* heap_arena(l0rt_heap* heap, void* stream, l0rt_private_pool* private_pool) noexcept nogil:
    """The arena of the stream in the pool (NULL: the default one), found or made; NULL without host memory, or if a
    closed heap has none. The pool is alive, or held."""
    cdef l0rt_arena* arena = heap_find_arena(heap, stream, private_pool)
    cdef l0rt_share* share = NULL
    cdef l0rt_index* index
    if arena != NULL or load_int(&heap.closed) != 0:
        return arena
    mutex_lock(&heap.recount)
    arena = heap_find_arena(heap, stream, private_pool)
    if arena == NULL:
        share = share_of(heap, private_pool) if private_pool != NULL else NULL
        index = index_ready(heap) if private_pool == NULL or share != NULL else NULL
        if index != NULL:
            arena = recycled(heap)
            if arena == NULL:
                arena = made(heap)
        if arena != NULL:
            arena.share = share
            if share != NULL:
                arena.next_of_share = share.arenas
                store(<void**>&share.arenas, arena)
            store(&arena.stream, stream)
            store(<void**>&arena.private_pool, private_pool)
            if spin_lock(&arena.lock):      # a walk over all arenas has found it already
                arena_resize(arena, 0)
                spin_unlock(&arena.lock)
            index_add(index, arena)
            heap.indexed += 1
    mutex_unlock(&heap.recount)
    return arena


# --- Dropped pools.


cdef void arena_end(l0rt_heap* heap, l0rt_arena** link) noexcept nogil:
    """An arena without memory leaves its share. The recount mutex is held."""
    cdef l0rt_arena* arena = link[0]
    index_remove(heap.index, arena)
    heap.indexed -= 1
    link[0] = arena.next_of_share
    arena.share = NULL
    store(<void**>&arena.private_pool, &nobody)
    arena.next_of_share = heap.spare_arenas
    heap.spare_arenas = arena


cdef bint arena_empty(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    """Give back what no work uses; True: there is more that only work uses. From now on nothing is cached here."""
    cdef bint others_use = False
    if spin_lock(&arena.lock):
        arena_unstack(arena)
        arena_resize(arena, 0)
        others_use = arena.headroom[SMALL].pending.count + arena.headroom[LARGE].pending.count != 0
        spin_unlock(&arena.lock)
    segments_settle(heap, arena)
    segments_release(heap, arena, UINT64_MAX, False)
    ranges_release(heap, arena, UINT64_MAX)
    ranges_trim(heap, arena)
    if arena.segments == NULL and arena.event != NULL:
        heap.ops.drop(heap.self, arena.event)
        arena.event = NULL
    return others_use or arena.event != NULL


cdef bint share_empty(l0rt_heap* heap, l0rt_share* share) noexcept nogil:
    """The same for all arenas of a share, which ends when none is left."""
    cdef l0rt_arena* arena = share.arenas
    cdef l0rt_arena** link
    cdef bint more = False, ended
    if load_int(&share.private_pool.users) != 0:
        return True
    while arena != NULL:
        more = arena_empty(heap, arena) or more
        arena = arena.next_of_share
    if load_int(&share.private_pool.users) != 0:  # another thread gives a segment back and calls its upstream
        return True
    mutex_lock(&heap.recount)
    link = &share.arenas
    while link[0] != NULL:
        if link[0].segments == NULL:
            arena_end(heap, link)
        else:
            link = &link[0].next_of_share
    ended = share.arenas == NULL
    if ended:
        share_end(heap, share)
    mutex_unlock(&heap.recount)
    if ended:
        heap_rest(heap)     # or each of a thousand pools that go in turn would look at all that went before
    else:
        share_looked_at(share, more)
    return False


cdef void arenas_reclaim(l0rt_heap* heap) noexcept nogil:
    """Give back the memory of dropped pools that no work uses. The growth mutex is held."""
    cdef l0rt_share* share
    cdef l0rt_share* next
    if load_int(&heap.has_gone) == 0:
        return
    heap.requester = NULL
    share = shares_gone(heap)
    while share != NULL:
        next = share.next_gone
        if share_empty(heap, share):
            share_looked_at(share, True)
        share = next


cdef void heap_reclaim(l0rt_heap* heap) noexcept nogil:
    """The same for who holds nothing, and doesn't wait for who grows just now, which may be this very thread."""
    if load_int(&heap.has_gone) != 0 and load_int(&heap.closed) == 0 and mutex_trylock(&heap.growth) == 0:
        arenas_reclaim(heap)
        mutex_unlock(&heap.growth)


cdef void arenas_destroy(l0rt_heap* heap) noexcept nogil:
    """The heap ends, and with it all memory of its arenas, allocated or not."""
    cdef l0rt_arena* arena = heap.arenas
    cdef l0rt_arena* next
    cdef l0rt_index* index = heap.index
    cdef l0rt_index* older
    while arena != NULL:
        segments_destroy(heap, arena)
        records_leave(arena)
        next = arena.next
        free(arena)
        arena = next
    while index != NULL:
        older = index.older
        free(index)
        index = older
