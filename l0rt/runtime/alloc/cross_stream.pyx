# SPDX-License-Identifier: Apache-2.0
"""Handing over: memory that another stream used last, made safe by a wait on the device and none on the host.

A block stays in its arena. While another stream has it, `order` names that stream, and the stream counts as one that
uses it: so it comes home like any block that others use, once their work is done. Memory of a pool stays in the pool.
"""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc, free

from l0rt.runtime.alloc.arena cimport MISS, TIGHT, arena_take, arena_unstack, oversize_count
from l0rt.runtime.alloc.atomics cimport (
    load_i64,
    load_int,
    mutex_lock,
    mutex_unlock,
    spin_close,
    spin_lock,
    spin_unlock,
    store,
    store_i64,
)
from l0rt.runtime.alloc.bins cimport bins_find
from l0rt.runtime.alloc.block cimport block_is_small
from l0rt.runtime.alloc.deferred_free cimport pending_finish, queues_add, pending_drop
from l0rt.runtime.alloc.headroom cimport headroom_take, headroom_unpark
from l0rt.runtime.alloc.history cimport FREE_COMPLETED, note_alloc, note_free
from l0rt.runtime.alloc.share cimport is_asleep
from l0rt.runtime.alloc.stats cimport recount_lock, recount_all, recount_unlock
from l0rt.runtime.alloc.types cimport (
    L0RT_ASLEEP,
    L0RT_OK,
    LARGE,
    LIVE,
    LIVE_LARGE,
    SMALL,
    SMALL_LIMIT,
    USED,
    l0rt_queue,
    l0rt_pending_use,
    l0rt_use,
    l0rt_uses,
)

cdef enum:
    LOOKS = 1024                    # uses that a search visits, so that it takes no longer than a driver call
    WASTE_SHIFT = 3                 # a block that others may still use is not split, and may be so much too large


cdef int code_when_closed(l0rt_arena* arena) noexcept nogil:
    # again, should a holder have reopened the lock since
    spin_close(&arena.lock)
    return load_int(&arena.heap.closed)


cdef inline int pool_of(l0rt_block* block, uint64_t size) noexcept nogil:
    """The pool from which a block was taken; if there is no block, the pool that was asked."""
    if block != NULL:
        return block.segment.pool
    return SMALL if size <= SMALL_LIMIT else LARGE


cdef int take_cached(l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """From what is cached: a status, or MISS."""
    cdef int status
    if not spin_lock(&arena.lock):
        return code_when_closed(arena)
    if is_asleep(arena.private_pool):
        spin_unlock(&arena.lock)
        return L0RT_ASLEEP
    status = arena_take(arena, size, nbytes, False, out)
    spin_unlock(&arena.lock)
    if status != TIGHT:
        return status
    if not recount_lock(arena.heap, arena):
        return code_when_closed(arena)
    status = arena_take(arena, size, nbytes, True, out)
    recount_all(arena.heap, arena, pool_of(out[0], size))
    recount_unlock(arena.heap)
    return status


cdef int merged(l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """From what is cached, all of it merged."""
    if spin_lock(&arena.lock):
        arena_unstack(arena)
        spin_unlock(&arena.lock)
    return take_cached(arena, size, nbytes, out)


# --- Blocks that were freed, and that streams may still use.


cdef l0rt_block* pick(l0rt_heap* heap, l0rt_arena* arena, bint any, uint64_t size, uint64_t most) noexcept nogil:
    """The smallest pending block from ``size`` to ``most`` bytes. The waiting mutex is held."""
    cdef int pool = SMALL if size <= SMALL_LIMIT else LARGE, looks = LOOKS
    cdef l0rt_queue* queue = heap.queues
    cdef l0rt_pending_use* pending
    cdef l0rt_block* block
    cdef l0rt_block* best = NULL
    while queue != NULL:
        pending = queue.head
        while pending != NULL and looks > 0:
            block = pending.block
            if (block.arena.private_pool == arena.private_pool and block.arena.stream != NULL
                    and size <= block.size <= most
                    and (any or block.order == arena.stream) and (size == 0 or block.segment.pool == pool)
                    and (best == NULL or block.size < best.size)):
                best = block
            pending = pending.next
            looks -= 1
        queue = queue.next
    return best


cdef l0rt_block* pull(l0rt_heap* heap, l0rt_arena* arena, bint any, uint64_t size, uint64_t most,
                      l0rt_pending_use** pending_list) noexcept nogil:
    """Take a pending block out of the queues, with the pending uses that it waits for."""
    cdef l0rt_queue* queue
    cdef l0rt_pending_use* pending
    cdef l0rt_pending_use** link
    cdef l0rt_block* block
    pending_list[0] = NULL
    if load_i64(&heap.pending) == 0:
        return NULL
    mutex_lock(&heap.waiting)
    block = pick(heap, arena, any, size, most)
    queue = heap.queues if block != NULL else NULL
    while queue != NULL:
        link = &queue.head
        queue.tail = NULL
        while link[0] != NULL:
            pending = link[0]
            if pending.block == block:
                link[0] = pending.next
                pending.next = pending_list[0]
                pending_list[0] = pending
                block.waits -= 1
            else:
                queue.tail = pending
                link = &pending.next
        queue = queue.next
    if block != NULL:
        store_i64(&heap.pending, heap.pending - 1)
    mutex_unlock(&heap.waiting)
    return block


cdef bint order_behind(l0rt_heap* heap, void* stream, l0rt_pending_use* pending) noexcept nogil:
    """Put what the stream is given from now on behind all these uses."""
    while pending != NULL:
        if pending.stream != stream and pending.event != NULL:
            if heap.ops.order(heap.self, stream, pending.event) != L0RT_OK:
                return False
        pending = pending.next
    return True


cdef bint order_behind_stream(l0rt_heap* heap, void* stream, void* other) noexcept nogil:
    """The same, behind all that another stream has been given."""
    cdef void* event = NULL
    cdef bint done = True
    if other == stream or other == NULL:
        return True
    if heap.ops.record(heap.self, other, &event) != L0RT_OK:
        return False
    if event != NULL:
        done = heap.ops.order(heap.self, stream, event) == L0RT_OK
        heap.ops.drop(heap.self, event)
    return done


cdef void marks_drop(l0rt_heap* heap, l0rt_uses* uses) noexcept nogil:
    cdef int i
    for i in range(uses.count):
        if uses.entries[i].event != NULL:
            heap.ops.drop(heap.self, uses.entries[i].event)
            uses.entries[i].event = NULL


cdef void have(l0rt_block* block, void* stream, size_t nbytes) noexcept nogil:
    """The block is allocated, in this stream's order. Its arena's lock is held, and it has space for one use."""
    block.requested = nbytes
    if stream == block.arena.stream:
        store(&block.order, NULL)
        block.uses.count = 0
        block.state = LIVE if block_is_small(block) else LIVE_LARGE
        return
    store(&block.order, stream)
    block.uses.count = 1
    block.uses.entries[0].stream = stream
    block.uses.entries[0].event = NULL
    block.uses.entries[0].is_marked = False
    block.state = USED


cdef int returned(l0rt_heap* heap, l0rt_arena* arena, bint any, uint64_t size, size_t nbytes,
                  l0rt_block** out) noexcept nogil:
    cdef l0rt_pending_use* pending_list
    cdef l0rt_block* block
    cdef int pool
    if heap.ops.order == NULL or arena.stream == NULL:
        return MISS
    block = pull(heap, arena, any, size, size + (size >> WASTE_SHIFT), &pending_list)
    if block == NULL:
        return MISS
    # a block that another stream has had by then is behind its arena's stream already
    if not (order_behind(heap, arena.stream, pending_list)
            and (block.order != NULL or order_behind_stream(heap, arena.stream, block.arena.stream))):
        queues_add(heap, block, pending_list)
        return MISS
    marks_drop(heap, block.uses)
    if not recount_lock(heap, block.arena):
        pending_drop(heap, pending_list)
        return code_when_closed(arena)
    pool = block.segment.pool
    headroom_unpark(block.arena, pool, block.size, block.requested, 0, 0)
    headroom_take(&block.arena.headroom[pool], block.size, nbytes, 0, 0)
    note_free(block, FREE_COMPLETED)
    have(block, arena.stream, nbytes)
    note_alloc(block)
    if heap.tuning.max_split != 0:
        oversize_count(block)
    recount_all(heap, block.arena, pool)
    recount_unlock(heap)
    pending_drop(heap, pending_list)
    out[0] = block
    return L0RT_OK


# --- Blocks that another stream's arena caches.


cdef int lent(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    cdef l0rt_arena* other = heap.busy
    cdef l0rt_uses* uses
    cdef int64_t frees
    cdef int status = MISS
    if heap.ops.order == NULL or arena.stream == NULL:
        return MISS
    uses = <l0rt_uses*>calloc(1, sizeof(l0rt_uses) + 3 * sizeof(l0rt_use))
    if uses == NULL:
        return MISS
    uses.capacity = 4
    while other != NULL and status == MISS:
        # An allocation that is taken back would show in the statistics: so first the order, then the block, unless
        # something was freed in between, which the order says nothing of.
        if other != arena and other.private_pool == arena.private_pool and has_free(other, size, &frees):
            if order_behind_stream(heap, arena.stream, other.stream):
                status = lend(other, frees, arena.stream, uses, size, nbytes, out)
        other = other.next_busy
    if status != L0RT_OK:
        free(uses)
    return status


cdef inline int64_t frees_of(l0rt_arena* arena) noexcept nogil:
    return arena.headroom[SMALL].freed.count + arena.headroom[LARGE].freed.count


cdef bint has_free(l0rt_arena* arena, uint64_t size, int64_t* frees) noexcept nogil:
    """Is there a free block of this size? ``frees`` identifies the state for which the result is valid."""
    cdef bint found
    if not spin_lock(&arena.lock):
        return False
    arena_unstack(arena)
    found = bins_find(&arena.bins[SMALL if size <= SMALL_LIMIT else LARGE], size) != NULL
    frees[0] = frees_of(arena)
    spin_unlock(&arena.lock)
    return found


cdef int lend(l0rt_arena* arena, int64_t frees, void* stream, l0rt_uses* uses, uint64_t size, size_t nbytes,
              l0rt_block** out) noexcept nogil:
    """A block for another stream, which comes behind all that was freed here by then. MISS if more was freed since."""
    cdef bint recounting
    cdef int status = TIGHT
    for recounting in range(2):
        if status != TIGHT:
            break
        if not (recount_lock(arena.heap, arena) if recounting else spin_lock(&arena.lock)):
            return code_when_closed(arena)
        status = arena_take(arena, size, nbytes, recounting, out) if frees_of(arena) == frees else MISS
        if status == L0RT_OK:
            out[0].uses = uses
            have(out[0], stream, nbytes)
        if recounting:
            recount_all(arena.heap, arena, pool_of(out[0], size))
            recount_unlock(arena.heap)
        else:
            spin_unlock(&arena.lock)
    return status


# --- Everything that is free, wherever it is.


cdef int recovered(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """Streams of arenas wait for those that use their freed blocks, so that these are merged with what is beside."""
    cdef l0rt_pending_use* pending_list
    cdef l0rt_block* block
    cdef bint found = False
    cdef int status = MISS
    if heap.ops.order == NULL or arena.stream == NULL:
        return MISS
    while True:
        block = pull(heap, arena, True, 0, UINT64_MAX, &pending_list)
        if block == NULL:
            break
        if not order_behind(heap, block.arena.stream, pending_list):
            queues_add(heap, block, pending_list)
            break
        pending_drop(heap, pending_list)
        pending_finish(heap, block)
        found = True
    if found:
        status = merged(arena, size, nbytes, out)
        if status == MISS:
            status = lent(heap, arena, size, nbytes, out)
    return status
