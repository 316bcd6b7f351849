"""Blocks that other streams use: on free they wait until those streams' work is done.

One ticket for each using stream, in that stream's queue. The end of a stream's work is reached in order, so only the
oldest ticket of a queue is worth a query.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, realloc

from l0rt.runtime.accounts cimport account_park
from l0rt.runtime.arena cimport arena_give, oversize_count
from l0rt.runtime.atomics cimport (
    load_i64,
    mutex_lock,
    mutex_unlock,
    spin_lock,
    spin_unlock,
    store_i64,
)
from l0rt.runtime.census cimport census_lock, census_take, census_unlock
from l0rt.runtime.structs cimport (
    L0RT_DOUBLE_FREE,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    LIVE,
    LIVE_LARGE,
    PENDING,
    SOLE,
    USED,
    l0rt_block,
    l0rt_heap,
    l0rt_queue,
    l0rt_ticket,
    l0rt_uses,
)


cdef enum:
    POLL_EVERY = 32


cdef int block_use(l0rt_block* block, void* stream) noexcept nogil:
    """Another stream uses the block: freed, it waits for what that stream has been given by then."""
    cdef l0rt_uses* uses
    cdef int room, status = L0RT_OK
    if not spin_lock(&block.arena.lock):
        return L0RT_OK
    if block.state != LIVE and block.state != LIVE_LARGE and block.state != USED and block.state != SOLE:
        status = L0RT_DOUBLE_FREE
    elif stream != block.arena.stream and not is_user(block.uses, stream):
        uses = block.uses
        if uses == NULL or uses.count == uses.room:
            room = 4 if uses == NULL else 2 * uses.room
            uses = <l0rt_uses*>realloc(uses, sizeof(l0rt_uses) + room * sizeof(void*))
            if uses != NULL:
                if block.uses == NULL:
                    uses.count = 0
                uses.room = room
                block.uses = uses
        if uses == NULL:
            status = L0RT_NO_HOST_MEMORY
        else:
            uses.streams[uses.count] = stream
            uses.count += 1
            block.state = USED
    spin_unlock(&block.arena.lock)
    return status


cdef bint is_user(l0rt_uses* uses, void* stream) noexcept nogil:
    cdef int i
    if uses != NULL:
        for i in range(uses.count):
            if uses.streams[i] == stream:
                return True
    return False


cdef int pending_add(l0rt_heap* heap, l0rt_block* block) noexcept nogil:
    """Free a used block. On a failure nothing has changed: it is still allocated."""
    cdef l0rt_uses* uses
    cdef l0rt_ticket* tickets = NULL
    cdef int i, count, status = L0RT_OK
    if not spin_lock(&block.arena.lock):
        return L0RT_OK
    if block.state != USED:
        status = L0RT_DOUBLE_FREE
    else:
        block.state = PENDING       # from here on nobody else touches it
        account_park(block.arena, block.segment.pool, block.size, 1)
        if block.is_oversize:
            oversize_count(block)
    spin_unlock(&block.arena.lock)
    if status != L0RT_OK:
        return status
    uses = block.uses
    count = uses.count
    for i in range(count):
        status = ticket_add(heap, block, uses.streams[i], &tickets)
        if status != L0RT_OK:
            break
    if status == L0RT_OK:
        status = queues_add(heap, block, tickets)
    if status == L0RT_OK:
        if load_i64(&heap.pending) % POLL_EVERY == 0:
            pending_poll(heap)      # else hits alone would let tickets pile up
        return status
    tickets_drop(heap, tickets)
    if spin_lock(&block.arena.lock):
        block.state = USED
        account_park(block.arena, block.segment.pool, block.size, -1)
        if block.arena.tuning.max_split != 0:
            oversize_count(block)
        spin_unlock(&block.arena.lock)
    return status


cdef int ticket_add(l0rt_heap* heap, l0rt_block* block, void* stream, l0rt_ticket** tickets) noexcept nogil:
    cdef l0rt_ticket* ticket = <l0rt_ticket*>calloc(1, sizeof(l0rt_ticket))
    cdef int status
    if ticket == NULL:
        return L0RT_NO_HOST_MEMORY
    status = heap.ops.record(heap.self, stream, &ticket.ticket)
    if status != L0RT_OK:
        free(ticket)
        return status
    ticket.block = block
    ticket.stream = stream
    ticket.next = tickets[0]
    tickets[0] = ticket
    return L0RT_OK


cdef void tickets_drop(l0rt_heap* heap, l0rt_ticket* ticket) noexcept nogil:
    cdef l0rt_ticket* next
    while ticket != NULL:
        next = ticket.next
        heap.ops.drop(heap.self, ticket.ticket)
        free(ticket)
        ticket = next


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
    mutex_unlock(&heap.waiting)
    return status


cdef inline l0rt_ticket* pop(l0rt_queue* queue) noexcept nogil:
    cdef l0rt_ticket* ticket = queue.head
    queue.head = ticket.next
    return ticket


cdef l0rt_block* complete(l0rt_heap* heap, l0rt_ticket* ticket) noexcept nogil:
    """The block, if this was the last ticket that it waited for. The mutex is held."""
    cdef l0rt_block* block = ticket.block
    heap.ops.drop(heap.self, ticket.ticket)
    free(ticket)
    block.waits -= 1
    if block.waits != 0:
        return NULL
    store_i64(&heap.pending, heap.pending - 1)
    return block


cdef void finish(l0rt_heap* heap, l0rt_block* block) noexcept nogil:
    """No stream uses the block any more: cache it."""
    cdef bint done
    free(block.uses)
    block.uses = NULL
    if not spin_lock(&block.arena.lock):
        return
    done = arena_give(block, False)
    spin_unlock(&block.arena.lock)
    if not done and census_lock(heap):
        arena_give(block, True)
        census_take(heap, block.arena, block.segment.pool)
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
        while queue.head != NULL and heap.ops.query(heap.self, queue.head.ticket) == 0:
            block = complete(heap, pop(queue))
            if block != NULL:
                block.next = done
                done = block
        queue = queue.next
    mutex_unlock(&heap.waiting)
    while done != NULL:
        block = done
        done = block.next
        finish(heap, block)
        count += 1
    return count


cdef int pending_wait(l0rt_heap* heap) noexcept nogil:
    """Wait until no block is in use by other streams."""
    cdef l0rt_queue* queue
    cdef l0rt_ticket* ticket
    cdef l0rt_block* block
    cdef int status
    while True:
        # a ticket is taken out before the wait, so that frees by other threads go on meanwhile
        mutex_lock(&heap.waiting)
        queue = heap.queues
        while queue != NULL and queue.head == NULL:
            queue = queue.next
        if queue == NULL:
            mutex_unlock(&heap.waiting)
            return L0RT_OK
        ticket = pop(queue)
        mutex_unlock(&heap.waiting)
        status = heap.ops.wait(heap.self, ticket.ticket)
        mutex_lock(&heap.waiting)
        if status != L0RT_OK:
            if queue.head == NULL:
                queue.tail = ticket
            ticket.next = queue.head
            queue.head = ticket
            mutex_unlock(&heap.waiting)
            return status
        block = complete(heap, ticket)
        mutex_unlock(&heap.waiting)
        if block != NULL:
            finish(heap, block)


cdef void pending_destroy(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_queue* queue = heap.queues
    cdef l0rt_queue* next
    while queue != NULL:
        tickets_drop(heap, queue.head)
        next = queue.next
        free(queue)
        queue = next
    heap.queues = NULL
