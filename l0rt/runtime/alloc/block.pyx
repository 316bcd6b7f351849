# SPDX-License-Identifier: Apache-2.0
"""Block records, and the chains of blocks that segments are: of memory, and of addresses without."""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free
from libc.string cimport memset

from l0rt.runtime.alloc.atomics cimport mutex_lock, mutex_unlock, pthread_mutex_t, spin_lock, spin_unlock
from l0rt.runtime.alloc.growth cimport least_growth
from l0rt.runtime.alloc.history cimport history_copy
from l0rt.runtime.alloc.page_map cimport map_set
from l0rt.runtime.alloc.share cimport is_asleep, is_kept
from l0rt.runtime.alloc.stats cimport heap_available, recount_lock_all, recount_unlock
from l0rt.runtime.alloc.types cimport (
    BINNED,
    CACHED,
    HELD,
    PENDING,
    UNMAPPED,
    l0rt_arena,
    l0rt_block,
    l0rt_heap,
    l0rt_segment,
    l0rt_uses,
)

cdef enum:
    SLAB = 64                       # records taken from the C library at once

cdef extern from "stdlib.h" nogil:
    void* aligned_alloc(size_t alignment, size_t size) noexcept

cdef extern from *:
    """
    static pthread_mutex_t l0rt_orphans_lock = PTHREAD_MUTEX_INITIALIZER;
    """
    pthread_mutex_t orphans_lock "l0rt_orphans_lock"

# Records of destroyed arenas. None is ever given back to the C library: a reader of the pointer map may look at it.
cdef l0rt_block* orphans


cdef bint records_ready(l0rt_arena* arena) noexcept nogil:
    """Are there two spare records, for cutting a block in three? False without host memory."""
    cdef l0rt_block* slab
    cdef int i
    global orphans
    if arena.spare != NULL and arena.spare.next != NULL:
        return True
    if arena.spare == NULL:
        mutex_lock(&orphans_lock)
        arena.spare = orphans
        orphans = NULL
        mutex_unlock(&orphans_lock)
        if arena.spare != NULL and arena.spare.next != NULL:
            return True
    slab = <l0rt_block*>aligned_alloc(64, SLAB * sizeof(l0rt_block))
    if slab == NULL:
        return False
    memset(slab, 0, SLAB * sizeof(l0rt_block))
    for i in range(SLAB - 1):
        slab[i].next = &slab[i + 1]
    slab[SLAB - 1].next = arena.spare
    arena.spare = slab
    return True


cdef void records_leave(l0rt_arena* arena) noexcept nogil:
    """The arena ends; its spare records serve others."""
    cdef l0rt_block* last = arena.spare
    global orphans
    if last == NULL:
        return
    while last.next != NULL:
        last = last.next
    mutex_lock(&orphans_lock)
    last.next = orphans
    orphans = arena.spare
    mutex_unlock(&orphans_lock)
    arena.spare = NULL


cdef l0rt_block* segment_attach(l0rt_arena* arena, l0rt_segment* segment) noexcept nogil:
    """A new segment as one held block, which is not handed out before the caller releases it. There is a spare record,
    and the map
    knows the segment."""
    cdef l0rt_block* block = record_take(arena)
    block.ptr = segment.base
    block.size = segment.size
    block.segment = segment
    block.before = block.after = NULL
    segment.first = block
    segment_list(arena, segment)
    block.state = HELD
    map_set(block.ptr, block)
    return block


cdef void segment_list(l0rt_arena* arena, l0rt_segment* segment) noexcept nogil:
    segment.arena = arena
    segment.previous = NULL
    segment.next = arena.segments
    if segment.next != NULL:
        segment.next.previous = segment
    arena.segments = segment


cdef void segment_detach(l0rt_segment* segment) noexcept nogil:
    """A wholly free segment leaves its arena, and its block's record is spare again."""
    cdef l0rt_block* block = segment.block
    block_unbin(block)
    map_set(block.ptr, NULL)
    record_drop(block)
    segment_unlist(segment)


cdef void segment_unlist(l0rt_segment* segment) noexcept nogil:
    if segment.next != NULL:
        segment.next.previous = segment.previous
    if segment.previous != NULL:
        segment.previous.next = segment.next
    else:
        segment.arena.segments = segment.next


cdef void uses_drop(l0rt_block* block) noexcept nogil:
    """Forget what uses a block. No lock is held, for events are dropped."""
    cdef l0rt_uses* uses = block.uses
    cdef l0rt_heap* heap = block.arena.heap
    cdef int i
    block.uses = NULL
    if uses != NULL:
        for i in range(uses.count):
            if uses.entries[i].event != NULL:
                heap.ops.drop(heap.self, uses.entries[i].event)
        free(uses)


cdef void chain_drop(l0rt_block* block) noexcept nogil:
    """The records of a whole segment, whatever its blocks are, become spare. The arena ends."""
    cdef l0rt_block* next
    while block != NULL:
        next = block.after
        uses_drop(block)
        block.order = NULL
        block.waits = 0
        record_drop(block)
        block = next


# Unmapped spans: addresses of ranges that have no memory, and the places among them that are about to get some.

cdef void span_list(l0rt_block* span) noexcept nogil:
    cdef l0rt_segment* segment = span.segment
    span.state = UNMAPPED
    span.previous = NULL
    span.next = segment.unmapped
    if span.next != NULL:
        span.next.previous = span
    segment.unmapped = span


cdef inline void span_unlist(l0rt_block* span) noexcept nogil:
    if span.next != NULL:
        span.next.previous = span.previous
    if span.previous != NULL:
        span.previous.next = span.next
    else:
        span.segment.unmapped = span.next


cdef inline void span_swallow(l0rt_block* span, l0rt_block* after) noexcept nogil:
    span.size += after.size
    span.after = after.after
    if span.after != NULL:
        span.after.before = span
    record_drop(after)


cdef void span_join(l0rt_block* block) noexcept nogil:
    """A held block is an unmapped span from now on, one with those beside it."""
    cdef l0rt_block* other = block.after
    if other != NULL and other.state == UNMAPPED:
        span_unlist(other)
        span_swallow(block, other)
    other = block.before
    if other != NULL and other.state == UNMAPPED:
        span_swallow(other, block)
    else:
        span_list(block)


cdef inline uint64_t free_size(l0rt_block* block) noexcept nogil:
    return block.size if block != NULL and block.state == BINNED else 0


cdef l0rt_block* span_find(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size, uint64_t* map) noexcept nogil:
    """The unmapped span that needs the least memory for ``size``, with what is free around it; ``map`` is how much."""
    cdef l0rt_segment* segment = arena.segments
    cdef l0rt_block* span
    cdef l0rt_block* best = NULL
    cdef uint64_t before, need
    map[0] = UINT64_MAX
    while segment != NULL:
        span = segment.unmapped if segment.pool == pool else NULL
        while span != NULL:
            before = free_size(span.before)
            need = size - before if before < size else 1
            need = (need + heap.granule - 1) // heap.granule * heap.granule
            if need > span.size and before + span.size + free_size(span.after) >= size:
                need = span.size
            if need <= span.size and (need < map[0] or (need == map[0] and span.ptr < best.ptr)):
                best = span
                map[0] = need
            span = span.next
        segment = segment.next
    return best


cdef l0rt_block* place_hold(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size) noexcept nogil:
    """Hold the part of an unmapped span that has to get memory; NULL if no range has enough addresses."""
    cdef uint64_t nbytes
    cdef l0rt_block* span
    if not spin_lock(&arena.lock):
        return NULL
    span = span_find(heap, arena, pool, size, &nbytes)
    if span != NULL and nbytes < span.size:
        if records_ready(arena):
            block_cut(span, nbytes)
            span_list(span.after)
        else:
            span = NULL
    if span != NULL:
        span_unlist(span)
        span.state = HELD
    spin_unlock(&arena.lock)
    return span


cdef uint64_t place_extend(l0rt_heap* heap, l0rt_block* held, uint64_t step) noexcept nogil:
    """Let a held block take a little more of the unmapped span behind it, up to a multiple of ``step`` in its range and
    within the limit; how much."""
    cdef uint64_t offset = <uintptr_t>held.ptr - <uintptr_t>held.segment.base
    cdef uint64_t least = <uint64_t>held.arena.reserved // heap.growth_share
    # There may be thousands of pools, most of which stay small: a range of theirs doubles, until it grows by as much.
    least = max(least, least_growth(heap) if held.arena.private_pool == NULL else
                min(least_growth(heap), <uint64_t>held.segment.mapped))
    cdef uint64_t end = max((offset + held.size + step - 1) // step * step,
                            (offset + least) // step * step)
    cdef uint64_t more = end - offset - held.size
    if more == 0 or <int64_t>(end - offset) > heap_available(heap, held.arena.private_pool):
        return 0
    return more if place_move_end(held, more) else 0


cdef bint place_move_end(l0rt_block* held, int64_t more) noexcept nogil:
    """Move the border between a held block and the unmapped span behind it, which is neither's end."""
    cdef l0rt_block* span
    cdef bint done = False
    if spin_lock(&held.arena.lock):
        span = held.after
        done = span != NULL and span.state == UNMAPPED and <int64_t>span.size > more
        if done:
            span.ptr = <char*>span.ptr + more
            span.size -= more
            held.size += more
        spin_unlock(&held.arena.lock)
    return done


# The snapshot: what a heap consists of at one moment, every block, segment by segment.


cdef int64_t heap_snapshot(l0rt_heap* heap, l0rt_block_info* out, int64_t capacity, l0rt_trace* trace) noexcept nogil:
    """Write at most ``capacity`` blocks and return how many there are (then ask again); and the history until this very
    moment, where ``trace`` is not NULL. -1: the heap is closed."""
    cdef int64_t count = 0
    cdef uint64_t active = 0
    cdef l0rt_arena* arena
    cdef l0rt_segment* segment
    cdef l0rt_block* block
    cdef l0rt_block* start          # of a range, every stretch that has memory counts as a segment
    if not recount_lock_all(heap):
        return -1
    arena = heap.arenas
    while arena != NULL:
        segment = arena.segments
        while segment != NULL:
            start = block = segment.first
            while block != NULL:
                if has_memory(block):
                    if not has_memory(start):
                        start = block
                    if count < capacity:
                        describe(block, start, &out[count])
                    count += 1
                    if block_is_allocated(block) or block.state == PENDING:
                        active += block.size
                else:
                    start = block
                block = block.after
            segment = segment.next
        arena = arena.next
    if trace != NULL and count <= capacity:
        history_copy(heap, trace, active)
    recount_unlock(heap)
    return count


cdef uint64_t heap_largest_free(l0rt_heap* heap, uint64_t* releasable, uint64_t* asleep) noexcept nogil:
    """The size of the largest block that is cached in the default pool; how much of what is cached, of all pools, can
    be given back, once no work uses it; and how much is allocated in pools that sleep, and so has no memory."""
    cdef uint64_t largest = 0
    cdef l0rt_arena* arena
    cdef l0rt_segment* segment
    cdef l0rt_block* block
    cdef bint sleeps
    releasable[0] = asleep[0] = 0
    if not recount_lock_all(heap):
        return 0
    arena = heap.arenas
    while arena != NULL:
        sleeps = is_asleep(arena.private_pool)
        segment = arena.segments
        while segment != NULL:
            block = segment.first if arena.private_pool == NULL or sleeps else NULL
            while block != NULL:
                if not sleeps and is_cached(block):
                    largest = max(largest, block.size)
                elif sleeps and (block_is_allocated(block) or block.state == PENDING):
                    asleep[0] += block.size
                block = block.after
            if not sleeps and not is_kept(arena.private_pool):
                releasable[0] += segment_releasable(heap, segment)
            segment = segment.next
        arena = arena.next
    recount_unlock(heap)
    return largest


cdef inline bint is_cached(l0rt_block* block) noexcept nogil:
    return block.state == BINNED or block.state == CACHED


cdef uint64_t segment_releasable(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    """How much of a segment is free as a whole: all of an ordinary one, or whole mappings of a range."""
    cdef l0rt_block* block = segment.first
    cdef uint64_t found = 0, start, end, i
    while block != NULL:
        if not is_cached(block):
            if segment.granules == NULL:
                return 0
            block = block.after
            continue
        start = <uintptr_t>block.ptr - <uintptr_t>segment.base
        while block != NULL and is_cached(block):
            end = <uintptr_t>block.ptr + block.size - <uintptr_t>segment.base
            block = block.after
        if segment.granules == NULL:
            continue
        i = (start + heap.granule - 1) // heap.granule
        while i < end // heap.granule:
            if segment.granules[i].count == 0:
                i += 1
                continue
            if segment.granules[i].first == i and (i + segment.granules[i].count) * heap.granule <= end:
                found += segment.granules[i].count * heap.granule
            i = segment.granules[i].first + segment.granules[i].count
    return found if segment.granules != NULL else segment.raw_size     # what is counted as reserved


cdef inline bint has_memory(l0rt_block* block) noexcept nogil:
    return block.state != UNMAPPED and block.state != HELD


cdef inline uint64_t stretch(l0rt_block* start) noexcept nogil:
    """Bytes from ``start`` to the next unmapped span."""
    cdef l0rt_block* block = start
    while block.after != NULL and has_memory(block.after):
        block = block.after
    return <uintptr_t>block.ptr + block.size - <uintptr_t>start.ptr


cdef inline void describe(l0rt_block* block, l0rt_block* start, l0rt_block_info* info) noexcept nogil:
    info.segment = <uintptr_t>start.ptr
    info.segment_size = (info - 1).segment_size if block != start else stretch(start)
    info.is_expandable = block.segment.granules != NULL
    info.address = <uintptr_t>block.ptr
    info.size = block.size
    info.requested = block.requested if block_is_allocated(block) or block.state == PENDING else 0
    info.pool_id[0] = block.arena.private_pool.id[0] if block.arena.private_pool != NULL else 0
    info.pool_id[1] = block.arena.private_pool.id[1] if block.arena.private_pool != NULL else 0
    info.stream = block.arena.stream
    info.state = block_kind(block)
    info.pool = block.segment.pool
    info.stack = block.stack if block.arena.recording != 0 and info.requested != 0 else 0
    info.tag = block.tag if block.arena.recording != 0 and info.requested != 0 else 0
