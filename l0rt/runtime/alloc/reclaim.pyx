# SPDX-License-Identifier: Apache-2.0
"""Reclaiming: what is tried, in which order, when nothing that is cached fits; what goes back above the limit of what
is cached; what the background thread does of both before anybody asks.

Growing holds the growth mutex, but not while anybody waits: a signal handler runs then, and what it calls may want it.
"""

from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint64_t
from posix.time cimport nanosleep, timespec

from l0rt.runtime.alloc.arena cimport MISS, arena_unstack
from l0rt.runtime.alloc.arena_index cimport arenas_reclaim, heap_arena
from l0rt.runtime.alloc.atomics cimport (
    load,
    load_i64,
    load_int,
    mutex_lock,
    mutex_trylock,
    mutex_unlock,
    sem_t,
    spin_lock,
    spin_unlock,
    store,
    store_i64,
    store_int,
    wakeup_init,
    wakeup_post,
    wakeup_wait,
)
from l0rt.runtime.alloc.cross_stream cimport code_when_closed, lent, merged, recovered, returned, take_cached
from l0rt.runtime.alloc.deferred_free cimport pending_poll, pending_wait
from l0rt.runtime.alloc.expandable_segment cimport range_grow, ranges_release
from l0rt.runtime.alloc.growth cimport has_small_segments, small_segment
from l0rt.runtime.alloc.history cimport guard_bytes, note_alloc
from l0rt.runtime.alloc.headroom cimport headroom_take
from l0rt.runtime.alloc.segment cimport (
    padding_of,
    segment_new,
    segments_release,
    segments_settle,
    segments_wait,
    upstream_of,
)
from l0rt.runtime.alloc.share cimport is_asleep, private_pool_hold_alive, private_pool_release
from l0rt.runtime.alloc.stats cimport (
    count_up,
    recount_lock,
    recount_all,
    recount_unlock,
    heap_arenas,
    heap_cached_bytes,
    heap_is_over,
    heap_limit,
    heap_available,
    heap_tuning,
    pool_available,
)
from l0rt.runtime.alloc.types cimport (
    L0RT_ASLEEP,
    L0RT_INTERRUPTED,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    L0RT_OUT_OF_MEMORY,
    LARGE,
    LARGE_SEGMENT,
    PAGE,
    SMALL,
    SMALL_LIMIT,
    SMALL_SEGMENT,
    UNCACHED,
    l0rt_arena,
    l0rt_heap,
    l0rt_share,
)
from l0rt._base.threads cimport pthread_t, thread_join, thread_start


cdef int heap_grow(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """A new segment, unless merging or a use that has ended makes it needless. The growth mutex is held."""
    cdef int pool = SMALL if size <= SMALL_LIMIT else LARGE
    cdef uint64_t wanted = segment_size(arena, size)
    cdef int status
    if load_int(&heap.closed) != 0:
        return code_when_closed(arena)
    arenas_reclaim(heap)
    if is_asleep(arena.private_pool):  # another thread may have put it to sleep while this one waited for the mutex
        return L0RT_ASLEEP
    status = merged(arena, size, nbytes, out)
    if status != MISS:
        return status
    status = returned(heap, arena, False, size, nbytes, out)
    if status != MISS:
        return status
    if pending_poll(heap) != 0:
        status = merged(arena, size, nbytes, out)
        if status != MISS:
            return status
    if heap.tuning.is_async and pool == LARGE:      # a stream's small blocks cost little to have
        status = returned(heap, arena, True, size, nbytes, out)
        if status == MISS:
            status = lent(heap, arena, size, nbytes, out)
        if status != MISS:
            return status
    store_i64(&heap.growths, heap.growths + 1)
    heap.requester = arena
    collect_garbage(heap, wanted)
    segments_settle(heap, arena)
    if not takes_ranges(arena) and not is_torchs(arena):
        # What is wholly free and unused makes place: to grow costs a call anyway, and to keep both would waste memory.
        segments_release(heap, arena, wanted, False)
    status = more(heap, arena, pool, wanted, size, nbytes, out)
    if status == L0RT_OUT_OF_MEMORY:
        status = last_resort(heap, arena, pool, wanted, size, nbytes, out)
    return status


cdef inline bint takes_ranges(l0rt_arena* arena) noexcept nogil:
    """Does it grow by virtual memory?"""
    return (arena.heap.has_ranges and upstream_of(arena) == NULL
            and not (arena.private_pool != NULL and arena.private_pool.plain))


cdef inline bint is_torchs(l0rt_arena* arena) noexcept nogil:
    """Are segments of torch's sizes, and kept? Where that is for the driver's sake, it is not for memory of others."""
    cdef bint is_wanted = arena.tuning.has_choice or not arena.heap.maps_nothing
    return arena.tuning.torch_segments and (is_wanted or upstream_of(arena) == NULL)


cdef uint64_t segment_size(l0rt_arena* arena, uint64_t size) noexcept nogil:
    """How large an ordinary segment is made for a block of ``size``."""
    cdef const l0rt_tuning* tuning = arena.tuning
    cdef uint64_t least = (size + PAGE - 1) & ~<uint64_t>(PAGE - 1), segment
    if arena.private_pool != NULL and arena.private_pool.no_split:
        return least
    if size <= SMALL_LIMIT:
        return SMALL_SEGMENT if is_torchs(arena) else small_segment(arena)
    if not is_torchs(arena):
        return least
    if size < LARGE_SEGMENT >> 1:
        segment = tuning.large_segment if tuning.large_segment != 0 else LARGE_SEGMENT
    else:
        segment = (size + SMALL_SEGMENT - 1) & ~<uint64_t>(SMALL_SEGMENT - 1)
    # an oversize segment is never used for a smaller request
    return least if size < tuning.max_split <= segment else segment


cdef void collect_garbage(l0rt_heap* heap, uint64_t wanted) noexcept nogil:
    """Above a part of the limit, give back what has been free for longest, until below it; without waiting."""
    cdef int64_t limit = heap_limit(heap)
    cdef double most = heap.tuning.gc_threshold * <double>limit
    cdef uint64_t reserved = heap.reserved
    if heap.tuning.gc_threshold > 0 and limit != INT64_MAX and <double>(reserved + wanted) > most:
        unstack_all(heap)
        segments_settle(heap, NULL)
        segments_release(heap, NULL, reserved + wanted - <uint64_t>most, True)


cdef int uncached_malloc(
    l0rt_heap* heap, l0rt_arena* arena, size_t nbytes, l0rt_block** out, bint* by_limit
) noexcept nogil:
    """An allocation with a segment of its own. No lock is held."""
    cdef uint64_t size = (nbytes + guard_bytes + PAGE - 1) & ~<uint64_t>(PAGE - 1)
    cdef int status
    mutex_lock(&heap.growth)
    heap.requester = arena
    if pending_poll(heap) != 0:             # what other streams used, and use no more
        unstack_all(heap)
        segments_settle(heap, arena)
        segments_release(heap, arena, UINT64_MAX, False)
    status = uncached_new(heap, arena, size, nbytes, out)
    by_limit[0] = heap.by_limit
    mutex_unlock(&heap.growth)
    if status != L0RT_OUT_OF_MEMORY:
        return status
    count_up(heap, &heap.stats.num_alloc_retries)
    if heap_wait(heap, NULL) == L0RT_INTERRUPTED:
        return L0RT_INTERRUPTED
    mutex_lock(&heap.growth)
    heap.requester = arena
    segments_settle(heap, NULL)
    reclaim_cached(heap, arena, size, True)
    status = uncached_new(heap, arena, size, nbytes, out)
    by_limit[0] = heap.by_limit
    mutex_unlock(&heap.growth)
    return status


cdef int uncached_new(
    l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out
) noexcept nogil:
    cdef l0rt_block* block
    cdef int status
    if is_asleep(arena.private_pool):
        return L0RT_ASLEEP
    status = segment_new(heap, arena, LARGE, size, &block)
    if status != L0RT_OK:
        return status
    if not recount_lock(heap, arena):
        return code_when_closed(arena)
    headroom_take(&arena.headroom[LARGE], size, nbytes, 0, 0)
    block.requested = nbytes
    block.state = UNCACHED
    note_alloc(block)
    out[0] = block
    recount_all(heap, arena, LARGE)
    recount_unlock(heap)
    return L0RT_OK


cdef int uncached_return(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    """Such a block was freed: give it back, once the stream's work is done. No lock is held."""
    unstack_all(heap)
    if segments_wait(heap, arena) == L0RT_INTERRUPTED:
        return L0RT_INTERRUPTED
    mutex_lock(&heap.growth)
    segments_settle(heap, arena)
    segments_release(heap, arena, UINT64_MAX, False)
    mutex_unlock(&heap.growth)
    return L0RT_OK


cdef int more(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t wanted, uint64_t size, size_t nbytes,
              l0rt_block** out) noexcept nogil:
    """A block in memory that was not the heap's before; MISS if another thread got it first."""
    cdef int status
    if (takes_ranges(arena)
            and (arena.private_pool == NULL or not arena.private_pool.no_split)
            and not (pool == SMALL and has_small_segments(arena))):
        status = range_grow(heap, arena, pool, size, nbytes, out)
        if status != L0RT_NO_HOST_MEMORY:   # of addresses and of records of them an ordinary segment needs less
            return status
    status = segment_new(heap, arena, pool, wanted, NULL)
    return take_cached(arena, size, nbytes, out) if status == L0RT_OK else status


cdef uint64_t give_back(l0rt_heap* heap, uint64_t wanted) noexcept nogil:
    """Cached memory of all arenas that no work uses, the least for ``wanted`` bytes; how many it was."""
    cdef uint64_t released = segments_release(heap, NULL, wanted, False)
    if released < wanted:
        released += ranges_release(heap, NULL, wanted - released)
    return released


cdef uint64_t reclaim_cached(l0rt_heap* heap, l0rt_arena* arena, uint64_t wanted, bint everything) noexcept nogil:
    """Give back the least before ``wanted`` bytes fit below the limits, as many if these aren't why, or everything;
    of the pool alone where the pool's limit is why."""
    cdef int64_t size = wanted + padding_of(arena)[0], available = heap_available(heap, arena.private_pool)
    cdef uint64_t released
    heap.pool_limit_hit = pool_available(heap, arena.private_pool) < size
    released = give_back(heap, UINT64_MAX if everything else <uint64_t>(size - available if size > available else size))
    heap.pool_limit_hit = False
    return released


cdef void unstack_all(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_arena* arena = heap_arenas(heap)
    while arena != NULL:
        if spin_lock(&arena.lock):
            arena_unstack(arena)
            spin_unlock(&arena.lock)
        arena = arena.next


cdef int last_resort(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t wanted,
                     uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """Memory is out: other streams' cached segments, least first; then what streams can be made to wait for."""
    cdef int status
    unstack_all(heap)
    segments_settle(heap, NULL)
    if reclaim_cached(heap, arena, wanted, False) != 0:
        status = more(heap, arena, pool, wanted, size, nbytes, out)
        if status != L0RT_OUT_OF_MEMORY:
            return status
    status = returned(heap, arena, True, size, nbytes, out)
    if status == MISS:
        status = lent(heap, arena, size, nbytes, out)
    if status == MISS:
        status = recovered(heap, arena, size, nbytes, out)
    if status != MISS:
        return status
    return served(heap, arena, pool, size, nbytes, out) if heap.tuning.is_async else L0RT_OUT_OF_MEMORY


cdef int heap_wait(l0rt_heap* heap, l0rt_arena* only) noexcept nogil:
    """Wait until no work uses what is free by now, of one arena or of all, so that all of it can be given back. No lock
    is held, so code that runs meanwhile may allocate and free. L0RT_OK, or L0RT_INTERRUPTED."""
    if pending_wait(heap) == L0RT_INTERRUPTED:
        return L0RT_INTERRUPTED
    unstack_all(heap)
    return segments_wait(heap, only)


cdef int waited(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t wanted,
                uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """After the waits: what is cached by now, and then everything."""
    cdef int status = take_cached(arena, size, nbytes, out)
    if status != MISS:
        return status
    heap.requester = arena
    segments_settle(heap, NULL)
    reclaim_cached(heap, arena, wanted, False)
    status = more(heap, arena, pool, wanted, size, nbytes, out)
    # as much as is missing can be too little where the backend gives memory in units of its own
    if status == L0RT_OUT_OF_MEMORY and reclaim_cached(heap, arena, wanted, True) != 0:
        status = more(heap, arena, pool, wanted, size, nbytes, out)
    if status != L0RT_OUT_OF_MEMORY:
        return status
    status = served(heap, arena, pool, size, nbytes, out)
    if status != L0RT_OUT_OF_MEMORY:
        return status
    heap.takes_all = True
    if reclaim_cached(heap, arena, wanted, True) != 0:
        status = more(heap, arena, pool, wanted, size, nbytes, out)
    heap.takes_all = False
    return status


cdef int served(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size, size_t nbytes,
                l0rt_block** out) noexcept nogil:
    """What fails in the default pool, from those that serve it: a free block of any, or else by letting one grow."""
    cdef l0rt_share* share
    cdef l0rt_arena* other
    cdef int status = L0RT_OUT_OF_MEMORY
    cdef bint growing
    if arena.private_pool != NULL:
        return status
    for growing in range(2):
        share = <l0rt_share*>load(<void**>&heap.shares)
        while share != NULL and status == L0RT_OUT_OF_MEMORY:
            if (share.private_pool.serves and not is_asleep(share.private_pool)
                    and private_pool_hold_alive(share.private_pool)):
                other = heap_arena(heap, arena.stream, share.private_pool)
                if other != NULL:
                    status = serve(heap, other, pool, growing, size, nbytes, out)
                private_pool_release(share.private_pool)
            share = share.next
    if status == L0RT_OK:
        count_up(heap, &heap.stats.num_oom_fallback)
    return status


cdef int serve(l0rt_heap* heap, l0rt_arena* arena, int pool, bint growing, uint64_t size, size_t nbytes,
               l0rt_block** out) noexcept nogil:
    cdef l0rt_arena* requester = heap.requester
    cdef int status
    if growing:
        heap.requester = arena
        status = more(heap, arena, pool, segment_size(arena, size), size, nbytes, out)
        heap.requester = requester
    else:
        status = merged(arena, size, nbytes, out)
        if status == MISS:
            status = returned(heap, arena, True, size, nbytes, out)
        if status == MISS:
            status = lent(heap, arena, size, nbytes, out)
        if status == MISS:
            status = recovered(heap, arena, size, nbytes, out)
    return L0RT_OUT_OF_MEMORY if status == MISS or status == L0RT_ASLEEP else status


cdef bint prepare(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    """Get the arena's stream ready to wait for others. Was it not before?"""
    return heap.ops.prepare != NULL and arena.stream != NULL and heap.ops.prepare(heap.self, arena.stream) == 1


cdef int grow_waiting(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out,
                      bint* by_limit) noexcept nogil:
    """Grow, and where memory is out, wait on the host for work to end. No lock is held, and none while this waits."""
    cdef int pool = SMALL if size <= SMALL_LIMIT else LARGE
    cdef int status = MISS
    if load_i64(&heap.pending) != 0 or heap_tuning(heap).is_async:
        prepare(heap, arena)
    while status == MISS:           # another thread of the same stream may be faster
        mutex_lock(&heap.growth)
        while status == MISS:
            status = heap_grow(heap, arena, size, nbytes, out)
        by_limit[0] = heap.by_limit
        mutex_unlock(&heap.growth)
        if status == L0RT_OUT_OF_MEMORY and prepare(heap, arena):
            status = MISS
            continue
        if status != L0RT_OUT_OF_MEMORY or heap_tuning(heap).is_async:
            return status
        count_up(heap, &heap.stats.num_sync_all_streams)
        if pending_wait(heap) == L0RT_INTERRUPTED:
            return L0RT_INTERRUPTED
        status = merged(arena, size, nbytes, out)
        if status != MISS:
            return status
        count_up(heap, &heap.stats.num_alloc_retries)
        if heap_wait(heap, NULL) == L0RT_INTERRUPTED:
            return L0RT_INTERRUPTED
        mutex_lock(&heap.growth)
        status = waited(heap, arena, pool, segment_size(arena, size), size, nbytes, out)
        by_limit[0] = heap.by_limit
        mutex_unlock(&heap.growth)
    return status


# --- The limit on what a heap caches. Above it, the segments go back that have been free for longest, and then whatever
# is free of ranges; what is in use does not count.
#
# Only what a memory operation may give back can be: where free blocks lie between used ones, the heap stays above its
# bound, and then has no class stacks, so that the next block to be freed is merged, and seen, at once.


cdef void bound_keep(l0rt_heap* heap) noexcept nogil:
    """Give back memory above the bound. A thread that grows or gives back now checks the bound itself, and is not
    waited for:
    it may be waiting for work, which may wait for us."""
    if not heap_is_over(heap, 0) or load_int(&heap.closed) != 0 or mutex_trylock(&heap.growth) != 0:
        return
    heap.requester = NULL
    segments_settle(heap, NULL)
    release_excess(heap)
    if heap_is_over(heap, 0):
        close_stacks(heap)
        segments_settle(heap, NULL)
        release_excess(heap)
    mutex_unlock(&heap.growth)


cdef void release_excess(l0rt_heap* heap) noexcept nogil:
    cdef uint64_t excess
    if heap_is_over(heap, 0):
        excess = heap_cached_bytes(heap) - heap.tuning.cached_most
        segments_release(heap, NULL, excess, True)
    if heap_is_over(heap, 0):
        ranges_release(heap, NULL, heap_cached_bytes(heap) - heap.tuning.cached_most)


cdef void close_stacks(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_arena* arena = heap_arenas(heap)
    while arena != NULL:
        if spin_lock(&arena.lock):
            arena_unstack(arena)
            arena.stack_left -= arena.stack_cap
            arena.stack_cap = 0
            spin_unlock(&arena.lock)
        arena = arena.next


# --- The background thread: it caches what other streams have used and use no more, so that no allocation has to look,
# and keeps the limit.
#
# It is a plain thread, unknown to Python, which takes the GIL only where the driver fails. While blocks wait it looks
# every 100 us, as torch does; while none does it sleeps until a heap posts the semaphore. Who adds a heap and who ends
# the thread exclude one another.

cdef enum:
    MOST_HEAPS = 64                 # one a device at most
    LOOK_EVERY_NS = 100_000

cdef uint64_t PATIENCE_NS = 5_000_000_000   # for a driver call that the thread is in when it has to end
cdef l0rt_heap* _heaps[MOST_HEAPS]
cdef int _count = 0
cdef int _ending = 0
cdef bint _runs = False
cdef sem_t _wakeup
cdef pthread_t _thread


cdef void* look_after_heaps(void* nothing) noexcept nogil:
    cdef timespec pause
    cdef l0rt_heap* heap
    cdef bint waits
    cdef int i
    pause.tv_sec, pause.tv_nsec = 0, LOOK_EVERY_NS
    while not load_int(&_ending):
        waits = False
        for i in range(load_int(&_count)):
            heap = <l0rt_heap*>load(<void**>&_heaps[i])
            if load_int(&heap.closed) == 0:
                pending_poll(heap)
                bound_keep(heap)
                waits = waits or load_i64(&heap.pending) != 0
        if waits:
            nanosleep(&pause, NULL)
        else:
            wakeup_wait(&_wakeup)
    return NULL


cdef int background_add(l0rt_heap* heap) noexcept nogil:
    global _runs
    cdef int i, failed
    for i in range(_count):
        if _heaps[i] == heap:
            return 0
    if _count == MOST_HEAPS:
        return 0
    if not _runs:
        store_int(&_ending, 0)
        failed = thread_start(&_thread, look_after_heaps, NULL)
        if failed:
            return failed
        _runs = True
    store(<void**>&_heaps[_count], heap)
    store_int(&_count, _count + 1)
    store(<void**>&heap.wakeup, &_wakeup)
    wakeup_post(&_wakeup)           # something may wait in it already
    return 0


cdef bint background_end() noexcept nogil:
    if not _runs:
        return True
    store_int(&_ending, 1)
    wakeup_post(&_wakeup)
    if thread_join(_thread, PATIENCE_NS) != 0:
        return False                # it is asked again when this is
    background_forget()
    return True


cdef void background_forget() noexcept nogil:
    global _runs
    store_int(&_count, 0)
    _runs = False


wakeup_init(&_wakeup, 0, 0)         # once: whoever frees may post it although nobody listens any more
