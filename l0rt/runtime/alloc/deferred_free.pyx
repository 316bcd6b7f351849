# SPDX-License-Identifier: Apache-2.0
"""Blocks that other streams use: on free they wait until those streams' work is done.

One pending use for each using stream, in that stream's queue. The end of a stream's work is reached in order, so only
the oldest pending use of a queue is worth a query.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport calloc, free, realloc

from l0rt.runtime.alloc.arena cimport arena_give, oversize_count
from l0rt.runtime.alloc.atomics cimport (
    wakeup_post,
    load,
    load_i64,
    mutex_lock,
    mutex_unlock,
    sem_t,
    spin_lock,
    spin_unlock,
    store,
    store_i64,
    store_int,
)
from l0rt.runtime.alloc.block cimport block_is_allocated, block_kind, uses_drop
from l0rt.runtime.alloc.headroom cimport headroom_park
from l0rt.runtime.alloc.history cimport FREE_COMPLETED, FREE_REQUESTED, note_alloc, note_free
from l0rt.runtime.alloc.share cimport share_freed
from l0rt.runtime.alloc.stats cimport recount_lock, recount_all, recount_unlock
from l0rt.runtime.alloc.types cimport (
    L0RT_DOUBLE_FREE,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    L0RT_OWNED,
    BY_ADDRESS,
    LIVE,
    LIVE_LARGE,
    PENDING,
    USED,
    l0rt_arena,
    l0rt_block,
    l0rt_heap,
    l0rt_queue,
    l0rt_pending_use,
    l0rt_use,
    l0rt_uses,
)


cdef enum:
    POLL_EVERY = 32


cdef l0rt_use* use_find(l0rt_block* block, void* stream) noexcept nogil:
    cdef int i
    if block.uses != NULL:
        for i in range(block.uses.count):
            if block.uses.entries[i].stream == stream:
                return &block.uses.entries[i]
    return NULL


cdef l0rt_use* use_of(l0rt_block* block, void* stream) noexcept nogil:
    """What is known of a stream's use, found or made; NULL without host memory. The arena's lock is held."""
    cdef l0rt_uses* uses = block.uses
    cdef l0rt_use* use = use_find(block, stream)
    cdef int capacity
    if use != NULL:
        return use
    if uses == NULL or uses.count == uses.capacity:
        capacity = 4 if uses == NULL else 2 * uses.capacity
        uses = <l0rt_uses*>realloc(uses, sizeof(l0rt_uses) + capacity * sizeof(l0rt_use))
        if uses == NULL:
            return NULL
        if block.uses == NULL:
            uses.count = 0
        uses.capacity = capacity
        block.uses = uses
    use = &uses.entries[uses.count]
    use.stream = stream
    use.event = NULL
    use.is_marked = False
    uses.count += 1
    store_int(<int*>&block.state, USED | (block.state & BY_ADDRESS))
    return use


cdef int block_use(l0rt_block* block, void* stream) noexcept nogil:
    """Another stream uses the block: freed, it waits for what that stream has been given by then."""
    cdef l0rt_heap* heap = block.arena.heap
    cdef l0rt_use* use
    cdef void* old = NULL
    cdef int status = L0RT_OK
    if not spin_lock(&block.arena.lock):
        return L0RT_OK
    if not block_is_allocated(block):
        status = L0RT_DOUBLE_FREE
    elif stream != block_order(block):
        use = use_of(block, stream)
        if use == NULL:
            status = L0RT_NO_HOST_MEMORY
        else:
            old = use.event         # what is given until the free comprises what a mark stands for
            use.event = NULL
            use.is_marked = False
    spin_unlock(&block.arena.lock)
    if old != NULL:
        heap.ops.drop(heap.self, old)
    return status


cdef int block_mark(l0rt_block* block, void* stream) noexcept nogil:
    """Another stream has used the block: freed, it waits for what that stream has been given until now."""
    cdef l0rt_heap* heap = block.arena.heap
    cdef l0rt_use* use
    cdef void* event = NULL
    cdef void* old = NULL
    cdef int count, status
    if stream == block_order(block):
        return L0RT_OK if block_is_allocated(block) else L0RT_DOUBLE_FREE
    status = heap.ops.record(heap.self, stream, &event)
    if status != L0RT_OK:
        return status
    old = event                     # what is dropped below: the new event, or the one that it replaces
    if spin_lock(&block.arena.lock):
        if not block_is_allocated(block):
            status = L0RT_DOUBLE_FREE
        elif event != NULL or use_find(block, stream) != NULL:
            count = 0 if block.uses == NULL else block.uses.count
            use = use_of(block, stream)
            if use == NULL:
                status = L0RT_NO_HOST_MEMORY
            elif use.is_marked or block.uses.count > count:
                old = use.event
                use.event = event
                use.is_marked = True
        spin_unlock(&block.arena.lock)
    if old != NULL:
        heap.ops.drop(heap.self, old)
    return status


cdef void* block_user(l0rt_block* block, int* next) noexcept nogil:
    cdef void* stream = NULL
    cdef l0rt_use* use
    if not spin_lock(&block.arena.lock):
        return NULL
    while block.uses != NULL and next[0] < block.uses.count and stream == NULL:
        use = &block.uses.entries[next[0]]
        next[0] += 1
        if not use.is_marked or use.event != NULL:
            stream = use.stream
    spin_unlock(&block.arena.lock)
    return stream


cdef int block_share(l0rt_block* block, uint32_t number) noexcept nogil:
    """A block with a number takes the slow way out, where its owner decides."""
    cdef int status = L0RT_OK
    if not spin_lock(&block.arena.lock):
        return L0RT_OK
    if not block_is_allocated(block):
        status = L0RT_DOUBLE_FREE
    elif block.state & BY_ADDRESS != 0:
        status = L0RT_OWNED
    else:
        if block.state == LIVE:
            block.state = LIVE_LARGE
        block.shared = number
    spin_unlock(&block.arena.lock)
    return status


cdef int block_move(l0rt_block* block, void* stream) noexcept nogil:
    """From its free on, the block is reused in this stream's order, and behind whatever used it before."""
    cdef l0rt_arena* arena = block.arena
    cdef l0rt_heap* heap = arena.heap
    cdef l0rt_use* use
    cdef void* before
    cdef void* old = NULL
    cdef int status = L0RT_OK
    if not spin_lock(&arena.lock):
        return L0RT_OK
    before = block_order(block)
    if not block_is_allocated(block):
        status = L0RT_DOUBLE_FREE
    elif stream != before:
        if (before != NULL and use_of(block, before) == NULL) or use_of(block, stream) == NULL:
            status = L0RT_NO_HOST_MEMORY
        else:
            use = use_find(block, stream)
            old = use.event
            use.event = NULL
            use.is_marked = False
            if arena.stream != NULL:        # otherwise there is no order to which it could return
                store(&block.order, NULL if stream == arena.stream else stream)
    spin_unlock(&arena.lock)
    if old != NULL:
        heap.ops.drop(heap.self, old)
    return status


cdef int pending_add(l0rt_heap* heap, l0rt_block* block) noexcept nogil:
    """Free a used block. On a failure nothing has changed: it is still allocated."""
    cdef l0rt_uses* uses
    cdef l0rt_pending_use* pending_list = NULL
    cdef uint32_t state
    cdef int i, count, status = L0RT_OK
    if not spin_lock(&block.arena.lock):
        return L0RT_OK
    state = block.state
    if block_kind(block) != USED:
        status = L0RT_DOUBLE_FREE
    else:
        block.state = PENDING       # from here on no other thread uses it
        headroom_park(block.arena, block.segment.pool, block.size, 1)
        note_free(block, FREE_REQUESTED)
        if block.is_oversize:
            oversize_count(block)
        share_freed(block.arena)
    spin_unlock(&block.arena.lock)
    if status != L0RT_OK:
        return status
    uses = block.uses
    count = uses.count
    for i in range(count):
        status = use_defer(heap, block, &uses.entries[i], &pending_list)
        if status != L0RT_OK:
            break
    if status == L0RT_OK and pending_list == NULL:
        pending_finish(heap, block)
        return status
    if status == L0RT_OK:
        if load_i64(&heap.pending) % POLL_EVERY == POLL_EVERY - 1:
            pending_poll(heap)      # else hits alone would let pending uses pile up
        status = queues_add(heap, block, pending_list)
    if status == L0RT_OK:
        return status
    pending_drop(heap, pending_list)
    if recount_lock(heap, block.arena):  # what is allocated grows without headroom
        block.state = state
        headroom_park(block.arena, block.segment.pool, block.size, -1)
        note_free(block, FREE_COMPLETED)
        note_alloc(block)
        if block.arena.tuning.max_split != 0:
            oversize_count(block)
        recount_all(heap, block.arena, block.segment.pool)
        recount_unlock(heap)
    return status


cdef inline bint is_over(l0rt_heap* heap, void* event) noexcept nogil:
    return event == NULL or heap.ops.query(heap.self, event) == 0


cdef int use_defer(l0rt_heap* heap, l0rt_block* block, l0rt_use* use, l0rt_pending_use** pending_list) noexcept nogil:
    """What the block has to wait for because of one use: nothing, where that is over."""
    cdef l0rt_pending_use* pending
    cdef void* mark = use.event
    cdef int status = L0RT_OK
    if use.is_marked and is_over(heap, mark):
        return status               # the mark stays with the use, until that is dropped
    pending = <l0rt_pending_use*>calloc(1, sizeof(l0rt_pending_use))
    if pending == NULL:
        return L0RT_NO_HOST_MEMORY
    if use.is_marked:
        pending.event = mark
        use.event = NULL
        use.is_marked = False       # should the free fail, the next one waits for more
    else:
        status = heap.ops.record(heap.self, use.stream, &pending.event)
    # what was freed for a stream stays in its queue, though that may be idle: it comes there for it
    if status != L0RT_OK or (pending.event == NULL and use.stream != block.order):
        free(pending)
        return status
    pending.block = block
    pending.stream = use.stream
    pending.next = pending_list[0]
    pending_list[0] = pending
    return L0RT_OK


cdef void pending_drop(l0rt_heap* heap, l0rt_pending_use* pending) noexcept nogil:
    """Of a block that was in the queues, or should have come there."""
    cdef l0rt_pending_use* next
    mutex_lock(&heap.waiting)
    while pending != NULL:
        next = pending.next
        pending_end(heap, pending)
        pending = next
    mutex_unlock(&heap.waiting)


cdef void pending_end(l0rt_heap* heap, l0rt_pending_use* pending) noexcept nogil:
    """The pending use is in no queue; the thread that waits for it ends it. The mutex is held."""
    pending.block = NULL
    if pending.waiters != 0:
        return
    if pending.event != NULL:
        heap.ops.drop(heap.self, pending.event)
    free(pending)


cdef l0rt_queue* queue_of(l0rt_heap* heap, void* stream) noexcept nogil:
    """The stream's queue, found or made; NULL without host memory."""
    cdef l0rt_queue* queue = heap.queues
    while queue != NULL and queue.stream != stream:
        queue = queue.next
    if queue == NULL:
        queue = <l0rt_queue*>calloc(1, sizeof(l0rt_queue))
        if queue != NULL:
            queue.stream = stream
            queue.next = heap.queues
            heap.queues = queue
    return queue


cdef int queues_add(l0rt_heap* heap, l0rt_block* block, l0rt_pending_use* pending_list) noexcept nogil:
    cdef l0rt_pending_use* pending = pending_list
    cdef l0rt_queue* queue
    cdef sem_t* wakeup
    cdef int status = L0RT_OK
    mutex_lock(&heap.waiting)
    while pending != NULL:
        if queue_of(heap, pending.stream) == NULL:
            status = L0RT_NO_HOST_MEMORY
        pending = pending.next
    while pending_list != NULL and status == L0RT_OK:
        pending = pending_list
        pending_list = pending.next
        pending.next = NULL
        queue = queue_of(heap, pending.stream)
        if queue.head == NULL:
            queue.head = pending
        else:
            queue.tail.next = pending
        queue.tail = pending
        block.waits += 1
    if status == L0RT_OK:
        store_i64(&heap.pending, heap.pending + 1)
        wakeup = <sem_t*>load(<void**>&heap.wakeup)
        if heap.pending == 1 and wakeup != NULL:
            wakeup_post(wakeup)
    mutex_unlock(&heap.waiting)
    return status


cdef inline l0rt_pending_use* pop(l0rt_queue* queue) noexcept nogil:
    cdef l0rt_pending_use* pending = queue.head
    queue.head = pending.next
    return pending


cdef l0rt_block* complete(l0rt_heap* heap, l0rt_pending_use* pending) noexcept nogil:
    """The block, if this was the last pending use that it waited for. The mutex is held."""
    cdef l0rt_block* block = pending.block
    pending_end(heap, pending)
    block.waits -= 1
    if block.waits != 0:
        return NULL
    store_i64(&heap.pending, heap.pending - 1)
    return block


cdef void pending_finish(l0rt_heap* heap, l0rt_block* block) noexcept nogil:
    """No stream uses the block any more, but for its arena's: cache it."""
    cdef l0rt_arena* arena = block.arena
    cdef bint done
    uses_drop(block)
    if not spin_lock(&arena.lock):
        return
    store(&block.order, NULL)
    done = arena_give(block, False)
    if done:
        share_freed(arena)
    spin_unlock(&arena.lock)
    if not done and recount_lock(heap, arena):
        arena_give(block, True)
        recount_all(heap, arena, block.segment.pool)
        share_freed(arena)
        recount_unlock(heap)


cdef int64_t pending_poll(l0rt_heap* heap) noexcept nogil:
    """Cache all blocks that are no longer in use, without waiting, and return their number."""
    cdef l0rt_queue* queue
    cdef l0rt_block* block
    cdef l0rt_block* done = NULL
    cdef int64_t count = 0
    if load_i64(&heap.pending) == 0:
        return 0
    mutex_lock(&heap.waiting)
    queue = heap.queues
    while queue != NULL:
        while queue.head != NULL and is_over(heap, queue.head.event):
            block = complete(heap, pop(queue))
            if block != NULL:
                block.next = done
                done = block
        queue = queue.next
    mutex_unlock(&heap.waiting)
    while done != NULL:
        block = done
        done = block.next
        pending_finish(heap, block)
        count += 1
    return count


cdef int pending_wait(l0rt_heap* heap) noexcept nogil:
    """Wait for all that is in the queues by now. No lock is held: a use stays in its queue while threads wait for
    it, and each of them checks the result itself."""
    cdef l0rt_queue* queue
    cdef int64_t left
    cdef int status = L0RT_OK
    if load_i64(&heap.pending) == 0:
        return status
    mutex_lock(&heap.waiting)
    queue = heap.queues
    while queue != NULL and status == L0RT_OK:
        left = length(queue)
        while queue.head != NULL and left > 0 and status == L0RT_OK:
            status = head_wait(heap, queue)
            left -= 1
        queue = queue.next
    mutex_unlock(&heap.waiting)
    return status


cdef int64_t length(l0rt_queue* queue) noexcept nogil:
    cdef l0rt_pending_use* pending = queue.head
    cdef int64_t count = 0
    while pending != NULL:
        count += 1
        pending = pending.next
    return count


cdef int head_wait(l0rt_heap* heap, l0rt_queue* queue) noexcept nogil:
    """Wait for a queue's oldest pending use. The mutex is held, but not while this waits."""
    cdef l0rt_pending_use* pending = queue.head
    cdef l0rt_block* block = NULL
    cdef int status = L0RT_OK
    if pending.event != NULL:
        pending.waiters += 1
        mutex_unlock(&heap.waiting)
        status = heap.ops.wait(heap.self, pending.event)
        mutex_lock(&heap.waiting)
        pending.waiters -= 1
    if pending.block == NULL:       # another thread took it out
        pending_end(heap, pending)
    elif status == L0RT_OK and queue.head == pending:  # else another thread is just taking it out, or put it back
        block = complete(heap, pop(queue))
    if block != NULL:
        mutex_unlock(&heap.waiting)
        pending_finish(heap, block)
        mutex_lock(&heap.waiting)
    return status


cdef void pending_destroy(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_queue* queue = heap.queues
    cdef l0rt_queue* next
    while queue != NULL:
        pending_drop(heap, queue.head)
        next = queue.next
        free(queue)
        queue = next
    heap.queues = NULL
