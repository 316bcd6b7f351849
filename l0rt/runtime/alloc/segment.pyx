# SPDX-License-Identifier: Apache-2.0
"""Segments: taken from the memory's operations, and given back.

A free block may still be in use: its own stream's work is only queued when it is freed, and the stream's order is
what makes reuse safe. Giving memory back needs more: the stream must have come past that point. An arena knows by
one event at a time up to which epoch it has."""

from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free

from l0rt.runtime.alloc.arena cimport arena_resize, oversize_bump
from l0rt.runtime.alloc.atomics cimport load, mutex_lock, mutex_unlock, spin_lock, spin_unlock
from l0rt.runtime.alloc.block cimport block_bin, chain_drop, is_settled, records_ready, segment_attach, segment_detach
from l0rt.runtime.alloc.expandable_segment cimport may_release, range_destroy
from l0rt.runtime.alloc.history cimport SEGMENT_ALLOC, SEGMENT_FREE, note_segment
from l0rt.runtime.alloc.page_map cimport map_forget, map_memory
from l0rt.runtime.alloc.share cimport private_pool_hold, private_pool_release
from l0rt.runtime.alloc.stats cimport count_reserved, heap_arenas, heap_available
from l0rt.runtime.alloc.types cimport (
    L0RT_CLOSED,
    L0RT_INTERRUPTED,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    L0RT_OUT_OF_MEMORY,
    PAGE,
    l0rt_arena,
    l0rt_heap,
    l0rt_private_pool,
    l0rt_segment,
)


cdef int segment_reserve(l0rt_heap* heap, l0rt_arena* arena, l0rt_segment* segment) noexcept nogil:
    """Memory for ``segment.size`` bytes at a multiple of 64 KiB, within the limits."""
    cdef size_t* padding = padding_of(arena)
    cdef int status
    cdef uintptr_t raw
    while True:
        segment.raw_size = segment.size + padding[0]
        if <int64_t>segment.raw_size > heap_available(heap, arena.private_pool):
            heap.by_limit = True
            return L0RT_OUT_OF_MEMORY
        heap.by_limit = False
        status = ask(heap, arena, segment)
        if status != L0RT_OK:
            return status
        raw = <uintptr_t>segment.raw
        segment.base = <void*>((raw + PAGE - 1) & ~<uintptr_t>(PAGE - 1))
        if <uintptr_t>segment.base + segment.size > raw + segment.raw_size:
            back(heap, segment)
            padding[0] = PAGE       # from now on there is space to align
        elif <int64_t>segment.raw_size > heap_available(heap, arena.private_pool):
            back(heap, segment)
            heap.by_limit = True
            return L0RT_OUT_OF_MEMORY  # another thread took what the limit left while an upstream was asked
        else:
            return L0RT_OK


cdef int ask(l0rt_heap* heap, l0rt_arena* arena, l0rt_segment* segment) noexcept nogil:
    cdef l0rt_upstream* upstream = upstream_of(arena)
    cdef l0rt_arena* requester = heap.requester
    cdef bint pool_limit_hit = heap.pool_limit_hit, takes_all = heap.takes_all
    cdef int status
    segment.upstream = upstream
    segment.stream = arena.stream
    if upstream == NULL:
        status = heap.ops.reserve(heap.self, segment.raw_size, &segment.raw)
        return L0RT_OUT_OF_MEMORY if status != L0RT_OK and heap.ops.is_oom(status) else status
    # An upstream may wait for a thread that allocates, or allocate itself: who grows meanwhile finds nothing half done.
    heap.pool_limit_hit = heap.takes_all = False
    mutex_unlock(&heap.growth)
    status = upstream.reserve(upstream, heap.self, arena.stream, segment.raw_size, &segment.raw)
    mutex_lock(&heap.growth)
    heap.requester = requester
    heap.pool_limit_hit, heap.takes_all = pool_limit_hit, takes_all
    heap.by_limit = False           # another thread's answer, if any
    return status


cdef void back(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    """A segment that is in no list. A refusal changes nothing for us: its address is no longer ours, and the backend
    knows why. The segment's pool is held."""
    cdef l0rt_upstream* upstream = segment.upstream
    cdef l0rt_arena* requester = heap.requester
    cdef bint pool_limit_hit = heap.pool_limit_hit, takes_all = heap.takes_all
    if upstream == NULL:
        heap.ops.release(heap.self, segment.raw, segment.raw_size)
        return
    heap.pool_limit_hit = heap.takes_all = False
    mutex_unlock(&heap.growth)
    upstream.release(upstream, heap.self, segment.stream, segment.raw, segment.raw_size)
    mutex_lock(&heap.growth)
    heap.requester = requester
    heap.pool_limit_hit, heap.takes_all = pool_limit_hit, takes_all


cdef int segment_new(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size, l0rt_block** held) noexcept nogil:
    """Give the arena a new segment, one free block; with ``held``, one that no other thread is given."""
    cdef l0rt_segment* segment = <l0rt_segment*>calloc(1, sizeof(l0rt_segment))
    cdef l0rt_block* block
    cdef int status
    if segment == NULL:
        return L0RT_NO_HOST_MEMORY
    segment.size = size
    segment.pool = pool
    status = segment_reserve(heap, arena, segment)
    if status != L0RT_OK:
        free(segment)
        return status
    status = map_memory(segment.pool, segment.base, segment.size)
    if status == L0RT_OK:
        if not spin_lock(&arena.lock):
            return L0RT_CLOSED      # the process ends or is a forked child: nothing is given back any more
        if records_ready(arena):
            block = segment_attach(arena, segment)
            note_segment(arena, SEGMENT_ALLOC, segment.base, segment.size)
            arena_resize(arena, segment.raw_size)
            if held != NULL:
                held[0] = block
            else:
                block_bin(block)
        else:
            status = L0RT_NO_HOST_MEMORY
        spin_unlock(&arena.lock)
        if status != L0RT_OK:
            map_forget(segment.base, segment.size)
    if status != L0RT_OK:
        back(heap, segment)
        free(segment)
        return status
    count_reserved(heap, segment, segment.raw_size, 1, 1)
    if heap.tuning.max_split != 0 and size >= heap.tuning.max_split:
        segment.is_oversize = True
        oversize_bump(heap, &heap.stats.oversize_segments, True)
    return L0RT_OK


cdef void segment_release(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    cdef l0rt_private_pool* private_pool = segment.arena.private_pool
    if private_pool != NULL:        # the pool may go while its upstream is called, but neither that nor its share
        private_pool_hold(private_pool)
    back(heap, segment)
    count_reserved(heap, segment, -<int64_t>segment.raw_size, -1, 1)
    if private_pool != NULL:
        private_pool_release(private_pool)
    if segment.is_oversize:
        oversize_bump(heap, &heap.stats.oversize_segments, False)
    free(segment)


cdef l0rt_segment* fittest(l0rt_arena* arena, l0rt_segment* best, uint64_t wanted, bint by_age) noexcept nogil:
    """The idle segment to give back: the smallest that is enough, or else the largest; or the one that has been idle
    for longest. The arena's lock is held."""
    cdef l0rt_segment* segment = arena.idle
    while segment != NULL:
        if is_settled(segment.block):
            # of the same age, the last one of the list came there first
            if best == NULL or (by_age and segment.idle_since <= best.idle_since):
                best = segment
            elif by_age:
                pass
            elif best.raw_size < wanted:
                if segment.raw_size > best.raw_size:
                    best = segment
            elif wanted <= segment.raw_size < best.raw_size:
                best = segment
        segment = segment.next_idle
    return best


cdef uint64_t segments_release(l0rt_heap* heap, l0rt_arena* only, uint64_t wanted, bint by_age) noexcept nogil:
    """Give back wholly free segments that no work uses, the least for ``wanted`` bytes, or
    the oldest; how many bytes it was."""
    cdef l0rt_segment* best
    cdef l0rt_arena* arena
    cdef uint64_t released = 0
    cdef bint found
    while released < wanted:
        best = NULL
        arena = heap_arenas(heap) if only == NULL else only
        while arena != NULL:
            if (only != NULL or may_release(heap, arena)) and spin_lock(&arena.lock):
                best = fittest(arena, best, wanted - released, by_age)
                spin_unlock(&arena.lock)
            arena = arena.next if only == NULL else NULL
        if best == NULL:
            break
        # no other thread frees segments, but this one may have been used meanwhile
        arena = best.arena
        if not spin_lock(&arena.lock):
            break
        found = best.block != NULL and is_settled(best.block)
        if found:
            segment_detach(best)
            note_segment(arena, SEGMENT_FREE, best.base, best.size)
            arena_resize(arena, -<int64_t>best.raw_size)
            map_forget(best.base, best.size)
        spin_unlock(&arena.lock)
        if found:
            released += best.raw_size
            segment_release(heap, best)
    return released


cdef bint is_unsettled(l0rt_arena* arena) noexcept nogil:
    """Is there memory to give back of which it isn't known that the stream is done with it? The lock is held."""
    cdef l0rt_segment* segment = arena.idle
    if arena.heap.granule != 0 and arena.granule_epoch > arena.settled:
        return True
    while segment != NULL:
        if segment.block.epoch > arena.settled:
            return True
        segment = segment.next_idle
    return False


cdef void settle(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    cdef bint unsettled
    cdef uint64_t epoch
    if load(&arena.stream) == NULL:     # is_settled says so: a word kept here would outlive it in a recycled arena
        return
    while True:
        if not spin_lock(&arena.lock):
            return
        unsettled = is_unsettled(arena)
        epoch = arena.epoch
        if unsettled and arena.event == NULL:
            arena.epoch += 1
        spin_unlock(&arena.lock)
        if not unsettled:
            return
        if arena.event == NULL:
            if heap.ops.record(heap.self, arena.stream, &arena.event) != L0RT_OK:
                arena.event = NULL
                return
            arena.event_epoch = epoch
        if arena.event != NULL:
            if heap.ops.query(heap.self, arena.event) != L0RT_OK:
                return
            heap.ops.drop(heap.self, arena.event)
        arena.event = NULL
        if spin_lock(&arena.lock):
            arena.settled = arena.event_epoch
            spin_unlock(&arena.lock)


cdef void segments_settle(l0rt_heap* heap, l0rt_arena* only) noexcept nogil:
    """Find out which idle segments no work uses any more, without waiting: of one arena, or with NULL of all."""
    cdef l0rt_arena* arena = heap_arenas(heap) if only == NULL else only
    while arena != NULL:
        settle(heap, arena)
        arena = arena.next if only == NULL else NULL


cdef int arena_wait(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    """Wait for what an arena's stream has been given by now. No lock is held; the event is nobody else's meanwhile:
    who finds none takes another. An arena that serves another stream afterwards has no free block so old."""
    cdef void* event
    cdef uint64_t epoch = 0, now = 0
    cdef int status = L0RT_OK
    while status == L0RT_OK and load(&arena.stream) != NULL and (now == 0 or epoch < now):
        mutex_lock(&heap.growth)
        if now == 0 and spin_lock(&arena.lock):
            now = arena.epoch
            spin_unlock(&arena.lock)
        settle(heap, arena)
        event = arena.event
        epoch = arena.event_epoch
        arena.event = NULL
        mutex_unlock(&heap.growth)
        if event == NULL:
            break
        status = heap.ops.wait(heap.self, event)
        if status == L0RT_OK and spin_lock(&arena.lock):
            arena.settled = max(arena.settled, epoch)
            spin_unlock(&arena.lock)
        heap.ops.drop(heap.self, event)
    return status


cdef int segments_wait(l0rt_heap* heap, l0rt_arena* only) noexcept nogil:
    """Wait until no work uses what is idle by now. No lock is held. L0RT_INTERRUPTED, or L0RT_OK whatever else failed:
    what is not known to be over is not given back."""
    cdef l0rt_arena* arena = heap_arenas(heap) if only == NULL else only
    while arena != NULL:
        if arena_wait(heap, arena) == L0RT_INTERRUPTED:
            return L0RT_INTERRUPTED
        arena = arena.next if only == NULL else NULL
    return L0RT_OK


cdef void segments_destroy(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil:
    """Give all of an arena back, allocated or not."""
    cdef l0rt_segment* segment = arena.segments
    cdef l0rt_segment* next
    if arena.event != NULL:
        heap.ops.drop(heap.self, arena.event)
    while segment != NULL:
        next = segment.next
        chain_drop(segment.first)
        if segment.granules != NULL:
            range_destroy(heap, segment)
            free(segment)
        else:
            map_forget(segment.base, segment.size)
            segment_release(heap, segment)
        segment = next
    arena.segments = NULL
