# SPDX-License-Identifier: Apache-2.0
"""Blocks that other streams use: on free they wait until those streams' work is done.

One ticket for each using stream, in that stream's queue. The end of a stream's work is reached in order, so only the
oldest ticket of a queue is worth a query.
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
from l0rt.runtime.alloc.headroom cimport account_park
from l0rt.runtime.alloc.share cimport share_tell
from l0rt.runtime.alloc.stats cimport census_lock, census_take, census_unlock
from l0rt.runtime.alloc.types cimport (
    L0RT_DOUBLE_FREE,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    PENDING,
    RAW,
    USED,
    l0rt_arena,
    l0rt_block,
    l0rt_heap,
    l0rt_queue,
    l0rt_ticket,
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
    cdef int room
    if use != NULL:
        return use
    if uses == NULL or uses.count == uses.room:
        room = 4 if uses == NULL else 2 * uses.room
        uses = <l0rt_uses*>realloc(uses, sizeof(l0rt_uses) + room * sizeof(l0rt_use))
        if uses == NULL:
            return NULL
        if block.uses == NULL:
            uses.count = 0
        uses.room = room
        block.uses = uses
    use = &uses.entries[uses.count]
    use.stream = stream
    use.ticket = NULL
    use.is_marked = False
    uses.count += 1
    store_int(<int*>&block.state, USED | (block.state & RAW))
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
            old = use.ticket        # what is given until the free comprises what a mark stands for
            use.ticket = NULL
            use.is_marked = False
    spin_unlock(&block.arena.lock)
    if old != NULL:
        heap.ops.drop(heap.self, old)
    return status


cdef int block_mark(l0rt_block* block, void* stream) noexcept nogil:
    """Another stream has used the block: freed, it waits for what that stream has been given until now."""
    cdef l0rt_heap* heap = block.arena.heap
    cdef l0rt_use* use
    cdef void* ticket = NULL
    cdef void* old = NULL
    cdef int count, status
    if stream == block_order(block):
        return L0RT_OK if block_is_allocated(block) else L0RT_DOUBLE_FREE
    status = heap.ops.record(heap.self, stream, &ticket)
    if status != L0RT_OK:
        return status
    old = ticket                    # what is dropped below: the new ticket, or the one that it replaces
    if spin_lock(&block.arena.lock):
        if not block_is_allocated(block):
            status = L0RT_DOUBLE_FREE
        elif ticket != NULL or use_find(block, stream) != NULL:
            count = 0 if block.uses == NULL else block.uses.count
            use = use_of(block, stream)
            if use == NULL:
                status = L0RT_NO_HOST_MEMORY
            elif use.is_marked or block.uses.count > count:
                old = use.ticket
                use.ticket = ticket
                use.is_marked = True
        spin_unlock(&block.arena.lock)
    if old != NULL:
        heap.ops.drop(heap.self, old)
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
            old = use.ticket
            use.ticket = NULL
            use.is_marked = False
            if arena.stream != NULL:        # else there is no order to come home to
                store(&block.order, NULL if stream == arena.stream else stream)
    spin_unlock(&arena.lock)
    if old != NULL:
        heap.ops.drop(heap.self, old)
    return status


cdef int pending_add(l0rt_heap* heap, l0rt_block* block) noexcept nogil:
    """Free a used block. On a failure nothing has changed: it is still allocated."""
    cdef l0rt_uses* uses
    cdef l0rt_ticket* tickets = NULL
    cdef uint32_t state
    cdef int i, count, status = L0RT_OK
    if not spin_lock(&block.arena.lock):
        return L0RT_OK
    state = block.state
    if block_kind(block) != USED:
        status = L0RT_DOUBLE_FREE
    else:
        block.state = PENDING       # from here on nobody else touches it
        account_park(block.arena, block.segment.pool, block.size, 1)
        if block.is_oversize:
            oversize_count(block)
        share_tell(block.arena)
    spin_unlock(&block.arena.lock)
    if status != L0RT_OK:
        return status
    uses = block.uses
    count = uses.count
    for i in range(count):
        status = ticket_add(heap, block, &uses.entries[i], &tickets)
        if status != L0RT_OK:
            break
    if status == L0RT_OK and tickets == NULL:
        pending_finish(heap, block)
        return status
    if status == L0RT_OK:
        if load_i64(&heap.pending) % POLL_EVERY == POLL_EVERY - 1:
            pending_poll(heap)      # else hits alone would let tickets pile up
        status = queues_add(heap, block, tickets)
    if status == L0RT_OK:
        return status
    tickets_drop(heap, tickets)
    if census_lock(heap, block.arena):           # what is allocated grows without room
        block.state = state
        account_park(block.arena, block.segment.pool, block.size, -1)
        if block.arena.tuning.max_split != 0:
            oversize_count(block)
        census_take(heap, block.arena, block.segment.pool)
        census_unlock(heap)
    return status


cdef inline bint is_over(l0rt_heap* heap, void* ticket) noexcept nogil:
    return ticket == NULL or heap.ops.query(heap.self, ticket) == 0


cdef int ticket_add(l0rt_heap* heap, l0rt_block* block, l0rt_use* use, l0rt_ticket** tickets) noexcept nogil:
    """What the block has to wait for because of one use: nothing, where that is over."""
    cdef l0rt_ticket* ticket
    cdef void* mark = use.ticket
    cdef int status = L0RT_OK
    if use.is_marked and is_over(heap, mark):
        return status               # the mark stays with the use, until that is dropped
    ticket = <l0rt_ticket*>calloc(1, sizeof(l0rt_ticket))
    if ticket == NULL:
        return L0RT_NO_HOST_MEMORY
    if use.is_marked:
        ticket.ticket = mark
        use.ticket = NULL
        use.is_marked = False       # should the free fail, the next one waits for more
    else:
        status = heap.ops.record(heap.self, use.stream, &ticket.ticket)
    # what was freed for a stream stays in its queue, though that may be idle: it comes there for it
    if status != L0RT_OK or (ticket.ticket == NULL and use.stream != block.order):
        free(ticket)
        return status
    ticket.block = block
    ticket.stream = use.stream
    ticket.next = tickets[0]
    tickets[0] = ticket
    return L0RT_OK


cdef void tickets_drop(l0rt_heap* heap, l0rt_ticket* ticket) noexcept nogil:
    """Of a block that was in the queues, or should have come there."""
    cdef l0rt_ticket* next
    mutex_lock(&heap.waiting)
    while ticket != NULL:
        next = ticket.next
        ticket_end(heap, ticket)
        ticket = next
    mutex_unlock(&heap.waiting)


cdef void ticket_end(l0rt_heap* heap, l0rt_ticket* ticket) noexcept nogil:
    """The ticket is in no queue; whoever waits for it ends it then. The mutex is held."""
    ticket.block = NULL
    if ticket.waiters != 0:
        return
    if ticket.ticket != NULL:
        heap.ops.drop(heap.self, ticket.ticket)
    free(ticket)


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


cdef int queues_add(l0rt_heap* heap, l0rt_block* block, l0rt_ticket* tickets) noexcept nogil:
    cdef l0rt_ticket* ticket = tickets
    cdef l0rt_queue* queue
    cdef sem_t* wakeup
    cdef int status = L0RT_OK
    mutex_lock(&heap.waiting)
    while ticket != NULL:
        if queue_of(heap, ticket.stream) == NULL:
            status = L0RT_NO_HOST_MEMORY
        ticket = ticket.next
    while tickets != NULL and status == L0RT_OK:
        ticket = tickets
        tickets = ticket.next
        ticket.next = NULL
        queue = queue_of(heap, ticket.stream)
        if queue.head == NULL:
            queue.head = ticket
        else:
            queue.tail.next = ticket
        queue.tail = ticket
        block.waits += 1
    if status == L0RT_OK:
        store_i64(&heap.pending, heap.pending + 1)
        wakeup = <sem_t*>load(<void**>&heap.wakeup)
        if heap.pending == 1 and wakeup != NULL:
            wakeup_post(wakeup)
    mutex_unlock(&heap.waiting)
    return status


cdef inline l0rt_ticket* pop(l0rt_queue* queue) noexcept nogil:
    cdef l0rt_ticket* ticket = queue.head
    queue.head = ticket.next
    return ticket


cdef l0rt_block* complete(l0rt_heap* heap, l0rt_ticket* ticket) noexcept nogil:
    """The block, if this was the last ticket that it waited for. The mutex is held."""
    cdef l0rt_block* block = ticket.block
    ticket_end(heap, ticket)
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
        share_tell(arena)
    spin_unlock(&arena.lock)
    if not done and census_lock(heap, arena):
        arena_give(block, True)
        census_take(heap, arena, block.segment.pool)
        share_tell(arena)
        census_unlock(heap)


cdef int64_t pending_poll(l0rt_heap* heap) noexcept nogil:
    """Cache whatever is no longer in use, without waiting; how many blocks that were."""
    cdef l0rt_queue* queue
    cdef l0rt_block* block
    cdef l0rt_block* done = NULL
    cdef int64_t count = 0
    if load_i64(&heap.pending) == 0:
        return 0
    mutex_lock(&heap.waiting)
    queue = heap.queues
    while queue != NULL:
        while queue.head != NULL and is_over(heap, queue.head.ticket):
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
    """Wait for all that is in the queues by now. No lock is held: a ticket stays in its queue while threads wait for
    it, and each of them finds out for itself what came of it."""
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
    cdef l0rt_ticket* ticket = queue.head
    cdef int64_t count = 0
    while ticket != NULL:
        count += 1
        ticket = ticket.next
    return count


cdef int head_wait(l0rt_heap* heap, l0rt_queue* queue) noexcept nogil:
    """Wait for a queue's oldest ticket. The mutex is held, but not while this waits."""
    cdef l0rt_ticket* ticket = queue.head
    cdef l0rt_block* block = NULL
    cdef int status = L0RT_OK
    if ticket.ticket != NULL:
        ticket.waiters += 1
        mutex_unlock(&heap.waiting)
        status = heap.ops.wait(heap.self, ticket.ticket)
        mutex_lock(&heap.waiting)
        ticket.waiters -= 1
    if ticket.block == NULL:        # another thread took it out
        ticket_end(heap, ticket)
    elif status == L0RT_OK and queue.head == ticket:    # else another thread is just taking it out, or put it back
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
        tickets_drop(heap, queue.head)
        next = queue.next
        free(queue)
        queue = next
    heap.queues = NULL
