# SPDX-License-Identifier: Apache-2.0
"""An arena: taking and giving blocks behind the class stacks."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport spin_lock, spin_try, spin_unlock, unlikely
from l0rt.runtime.alloc.bins cimport bins_find, leading_zeros, trailing_zeros
from l0rt.runtime.alloc.block cimport (
    block_bin,
    block_is_small,
    block_is_split,
    block_merge,
    block_split,
    block_unbin,
    records_ready,
)
from l0rt.runtime.alloc.headroom cimport (
    headroom_give,
    headroom_inactive,
    headroom_suffices,
    headroom_take,
    headroom_unpark,
)
from l0rt.runtime.alloc.history cimport (
    FREE,
    FREE_COMPLETED,
    RECORDS_BLOCKS,
    STACKS_OF_ALLOC,
    STACKS_OF_FREE,
    context_begin,
    context_end,
    context_leave,
    guard_bytes,
    history_alloc,
    history_free,
    note_alloc,
    note_free,
)
from l0rt.runtime.alloc.page_map cimport map_expect, map_set
from l0rt.runtime.alloc.share cimport is_gone
from l0rt.runtime.alloc.stats cimport heap_is_over
from l0rt.runtime.alloc.types cimport (
    BINNED,
    CACHED,
    CLASSES,
    GRAIN,
    GRAIN_SHIFT,
    L0RT_NO_HOST_MEMORY,
    LARGE,
    LARGE_SEGMENT,
    LIVE,
    LIVE_LARGE,
    PAGE,
    PENDING,
    POOLS,
    RAW,
    RAW_PINNED,
    SMALL,
    SMALL_LIMIT,
    l0rt_headroom,
    l0rt_arena,
    l0rt_block,
    l0rt_heap,
)

cdef enum:
    RELIEF_BLOCKS = 8               # what overfull stacks give to the bins at once, so that no free takes long
    NEAR_SHIFT = 3                  # a stacked block may be an eighth larger than what is asked for
    STACK_LEAST = 1 << 20           # the stacks may hold this and
    STACK_SHARE = 6                 # 1/64 of what is reserved: more costs real traces memory, less costs time
    # From this size on one pool's range serves the other. Blocks of the large one never start in one page of the map,
    # so that up to a page stays with each: of less than two pages it could be more than half.
    ACROSS_LEAST = 2 * PAGE


cdef struct l0rt_join:              # what giving a block to the bins would come to
    int64_t neighbours
    int64_t size
    bint is_split


cdef l0rt_block* arena_try(l0rt_arena* arena, size_t nbytes, bint locked) noexcept nogil:
    """The hit path's other half: stacks and bins, without waiting for the lock."""
    return try_take(arena, nbytes, locked, 0)


cdef l0rt_block* raw_try(l0rt_arena* arena, size_t nbytes, bint locked) noexcept nogil:
    return try_take(arena, nbytes, locked, RAW)


cdef inline l0rt_block* try_take(l0rt_arena* arena, size_t nbytes, bint locked, uint32_t raw) noexcept nogil:
    if not locked and (nbytes - 1 >= <size_t>1 << 62 or not spin_try(&arena.lock)):
        return NULL
    if unlikely(arena.recording & (STACKS_OF_ALLOC | RECORDS_BLOCKS)):
        return take_gathering(arena, nbytes, raw)
    if locked and arena.recording < 0:
        return take_recorded(arena, nbytes, raw)
    return take_locked(arena, nbytes, raw)


cdef l0rt_block* take_recorded(l0rt_arena* arena, size_t nbytes, uint32_t raw) noexcept nogil:
    """A hit that was none only because it is recorded."""
    cdef size_t klass = (nbytes + guard_bytes - 1) >> GRAIN_SHIFT
    cdef l0rt_block* block = arena.stacks[klass] if klass < CLASSES else NULL
    if block == NULL or signs_of_pop(arena, klass, nbytes) < 0:
        return take_locked(arena, nbytes, raw)
    stack_pop(arena, klass, nbytes, LIVE | raw)
    history_alloc(block)
    spin_unlock(&arena.lock)
    return block


cdef l0rt_block* take_gathering(l0rt_arena* arena, size_t nbytes, uint32_t raw) noexcept nogil:
    """The same with the thread's stack, which takes Python: it is gathered without the lock."""
    cdef l0rt_block* block = NULL
    cdef uint32_t before
    spin_unlock(&arena.lock)
    before = context_begin(arena, NULL)
    if spin_try(&arena.lock):
        block = take_locked(arena, nbytes, raw)
    context_end(before)
    return block


cdef inline l0rt_block* take_locked(l0rt_arena* arena, size_t nbytes, uint32_t raw) noexcept nogil:
    cdef l0rt_block* block = NULL
    if not is_uncached(arena.tuning, nbytes):
        arena_take(arena, size_round(arena.tuning, nbytes), nbytes, False, &block)
    if raw != 0 and block != NULL:
        block.state |= raw
    spin_unlock(&arena.lock)
    return block


cdef int block_try(l0rt_block* block, bint locked) noexcept nogil:
    """The fast free's other half: whatever needs no memory operation and no recount."""
    return try_free(block, locked, 0)


cdef int raw_try_free(l0rt_block* block, bint locked) noexcept nogil:
    return try_free(block, locked, RAW)


cdef int pinned_try_free(l0rt_block* block, bint locked) noexcept nogil:
    return try_free(block, locked, RAW_PINNED)


cdef inline int try_free(l0rt_block* block, bint locked, uint32_t raw) noexcept nogil:
    cdef l0rt_arena* arena = block.arena
    if not locked:
        return False
    if unlikely(arena.recording & STACKS_OF_FREE):
        return free_gathering(block, raw)
    if arena.recording < 0 and block.state == LIVE | raw and signs_of_push(block) >= 0:
        history_free(block, FREE)
        stack_push(block)
        spin_unlock(&arena.lock)
        return True
    return free_locked(block, raw)


cdef bint free_gathering(l0rt_block* block, uint32_t raw) noexcept nogil:
    cdef l0rt_arena* arena = block.arena
    cdef bint done = False
    cdef uint32_t before
    spin_unlock(&arena.lock)
    before = context_begin(arena, block)
    if spin_try(&arena.lock):
        done = free_locked(block, raw)
    if not done:
        context_leave(block)
    context_end(before)
    return done


cdef inline bint free_locked(l0rt_block* block, uint32_t raw) noexcept nogil:
    cdef l0rt_arena* arena = block.arena
    cdef bint done = ((block.state == LIVE | raw or block.state == LIVE_LARGE | raw) and block.shared == 0
                      and not (unlikely(arena.tuning.cached_most != 0) and passes_bound(block))
                      and not (unlikely(arena.stack_cap == 0) and is_gone(arena))
                      and arena_give(block, False))
    spin_unlock(&arena.lock)
    return done


cdef bint passes_bound(l0rt_block* block) noexcept nogil:
    """Would the heap cache too much with this block? Then its free calls memory operations. The lock is held."""
    cdef l0rt_arena* arena = block.arena
    if heap_is_over(arena.heap, block.size):
        return True
    if arena.stack_cap == 0:
        arena_resize(arena, 0)      # the heap was over its bound, and is not any more
    return False


cdef uint64_t size_step(const l0rt_tuning* tuning, uint64_t nbytes) noexcept nogil:
    """The next of the steps that the tuning puts between two powers of two, and of 512 bytes."""
    nbytes += guard_bytes
    cdef int log = 63 - leading_zeros(nbytes | 1), interval = log - 20
    cdef uint64_t power = <uint64_t>1 << log, step
    interval = 0 if interval < 0 else 15 if interval > 15 else interval
    cdef uint64_t divisions = tuning.divisions[interval]
    if divisions > 1 and nbytes > GRAIN * divisions and nbytes != power:
        step = power // divisions
        nbytes = power + (nbytes - power + step - 1) // step * step
    return (nbytes + GRAIN - 1) & ~<uint64_t>(GRAIN - 1)


cdef size_t stack_next(l0rt_arena* arena, size_t klass, size_t last) noexcept nogil:
    """The first class from ``klass`` to ``last`` whose stack has a block; CLASSES if none has."""
    cdef size_t word = klass >> 6
    cdef uint64_t bits = arena.filled[word] & (~<uint64_t>0 << (klass & 63))
    while True:
        while bits != 0:
            klass = (word << 6) | <size_t>trailing_zeros(bits)
            if klass > last:
                return CLASSES
            if arena.stacks[klass] != NULL:
                return klass
            arena.filled[word] &= ~(<uint64_t>1 << (klass & 63))
            bits &= bits - 1
        word += 1
        if word << 6 > last:
            return CLASSES
        bits = arena.filled[word]


cdef inline l0rt_block* stack_near(l0rt_arena* arena, uint64_t size) noexcept nogil:
    """The block on a class stack that is handed out for ``size``; NULL if none is near. torch's blocks are exact, and
    so are those of sizes that are rounded already.

    To split a block that is a little larger, and to merge it again, takes longer and leaves rests that fit nothing.
    """
    cdef size_t klass = (size - 1) >> GRAIN_SHIFT
    cdef bint is_exact = arena.tuning.torch_segments or arena.tuning.rounds
    cdef size_t wider = 0 if is_exact else (klass + 1) >> NEAR_SHIFT
    klass = stack_next(arena, klass, min(klass + wider, <size_t>CLASSES - 1))
    return arena.stacks[klass] if klass < CLASSES else NULL


cdef inline l0rt_block* last_near(l0rt_arena* arena, uint64_t size) noexcept nogil:
    """The large block that was freed last, if it were not split for ``size`` in a bin either."""
    cdef l0rt_block* block = arena.last
    return block if block != NULL and size <= block.size < size + PAGE else NULL


cdef l0rt_block* find_across(l0rt_arena* arena, uint64_t size) noexcept nogil:
    """What a range of the other pool has free; NULL if nothing fits."""
    cdef l0rt_block* block
    if size < ACROSS_LEAST or (arena.private_pool != NULL and arena.private_pool.no_split):
        return NULL
    block = bins_find(&arena.bins[LARGE if size <= SMALL_LIMIT else SMALL], size)
    return block if block != NULL and block.segment.granules != NULL else NULL


cdef int arena_take(l0rt_arena* arena, uint64_t size, uint64_t requested, bint recounting,
                    l0rt_block** out) noexcept nogil:
    cdef int pool = SMALL if size <= SMALL_LIMIT else LARGE
    cdef l0rt_headroom* headroom = &arena.headroom[pool]
    cdef l0rt_block* block
    cdef uint64_t rest
    cdef int64_t inactive = -1, inactive_bytes
    out[0] = NULL
    block = stack_near(arena, size) if pool == SMALL else last_near(arena, size)
    if block != NULL:
        inactive_bytes = -<int64_t>block.size
        if not (recounting or headroom_suffices(arena, pool, 1, block.size, requested, inactive, inactive_bytes)):
            return TIGHT
        if pool == SMALL:
            arena.stacks[(block.size >> GRAIN_SHIFT) - 1] = block.next
            arena.stack_left += block.size
        else:
            arena.last = NULL
        give_out(headroom, block, requested, inactive, inactive_bytes, out)
        return TAKEN
    block = bins_find(&arena.bins[pool], size)
    if block == NULL:
        block = find_across(arena, size)
        if block == NULL:
            return MISS
        pool = POOLS - 1 - pool
    rest = block.size - size
    if rest < (<uint64_t>GRAIN if pool == SMALL else <uint64_t>PAGE):
        rest = 0
    elif pool == LARGE and block.segment.granules == NULL and arena.tuning.max_split != 0:
        if not oversize_fits(arena.tuning, block.size, size):
            return MISS
        if size >= arena.tuning.max_split:
            rest = 0
    if rest != 0 and arena.private_pool != NULL and arena.private_pool.no_split:
        rest = 0
    if rest != 0 and arena.tuning.torch_segments and pool == LARGE and rest <= SMALL_LIMIT:
        rest = 0
    if rest != 0:
        map_expect(<char*>block.ptr + size)     # far from what was used last: most of what a random size costs
    if block_is_split(block):
        inactive_bytes = <int64_t>rest - <int64_t>block.size
    else:
        inactive_bytes = rest
        inactive = 0
    if rest != 0:
        inactive += 1
        if not records_ready(arena):
            return L0RT_NO_HOST_MEMORY
    if not (recounting or headroom_suffices(arena, pool, 1, block.size - rest, requested, inactive, inactive_bytes)):
        return TIGHT
    block_unbin(block)
    if rest != 0:
        block_bin(block_split(block, size))
    give_out(&arena.headroom[pool], block, requested, inactive, inactive_bytes, out)
    return TAKEN


cdef int arena_take_part(l0rt_block* block, void* ptr, uint64_t size, uint64_t requested,
                         l0rt_block** out) noexcept nogil:
    cdef int pool = block.segment.pool
    cdef uint64_t front = <char*>ptr - <char*>block.ptr, rest = block.size - front - size
    cdef int64_t inactive = <int64_t>(front != 0) + <int64_t>(rest != 0), inactive_bytes = front + rest
    cdef l0rt_block* before = block
    if not records_ready(block.arena):
        return L0RT_NO_HOST_MEMORY
    if block_is_split(block):
        inactive -= 1
        inactive_bytes -= block.size
    block_unbin(block)
    if front != 0:
        block = block_split(block, front)
        block_bin(before)
    if rest != 0:
        block_bin(block_split(block, size))
    give_out(&block.arena.headroom[pool], block, requested, inactive, inactive_bytes, out)
    return TAKEN


cdef inline void give_out(l0rt_headroom* headroom, l0rt_block* block, uint64_t requested,
                          int64_t inactive, int64_t inactive_bytes, l0rt_block** out) noexcept nogil:
    headroom_take(headroom, block.size, requested, inactive, inactive_bytes)
    block.requested = requested
    block.state = LIVE if block_is_small(block) else LIVE_LARGE
    if unlikely(block.arena.tuning.max_split != 0):
        oversize_count(block)
    note_alloc(block)
    out[0] = block


cdef inline bint oversize_fits(const l0rt_tuning* tuning, uint64_t size, uint64_t wanted) noexcept nogil:
    """An oversize segment is not broken for less, nor wasted on much less."""
    cdef uint64_t rounding = tuning.max_non_split_rounding
    if size < tuning.max_split:
        return True
    return wanted >= tuning.max_split and size < wanted + (rounding if rounding != 0 else LARGE_SEGMENT)


cdef void oversize_count(l0rt_block* block) noexcept nogil:
    """Count an allocation of max_split or more, or that such a one is freed."""
    cdef l0rt_heap* heap = block.arena.heap
    if block.is_oversize or (block.arena.tuning.max_split != 0 and block.size >= block.arena.tuning.max_split):
        block.is_oversize = not block.is_oversize
        oversize_bump(heap, &heap.stats.oversize_allocations, block.is_oversize)


cdef void oversize_bump(l0rt_heap* heap, l0rt_stat* stat, bint more) noexcept nogil:
    spin_lock(&heap.oversize)
    if more:
        stat.current += 1
        stat.allocated += 1
        stat.peak = max(stat.peak, stat.current)
    else:
        stat.current -= 1
        stat.freed += 1
    spin_unlock(&heap.oversize)


cdef bint arena_give(l0rt_block* block, bint recounting) noexcept nogil:
    """Take an allocated block back, or one whose last use is over; False if the headroom needs a recount first."""
    cdef l0rt_arena* arena = block.arena
    cdef int pool = block.segment.pool
    cdef l0rt_headroom* headroom = &arena.headroom[pool]
    cdef l0rt_join join
    cdef size_t klass = (block.size >> GRAIN_SHIFT) - 1
    cdef bint parked = block.state == PENDING
    cdef int64_t size = block.size
    cdef int64_t inactive = 1, inactive_bytes = size
    cdef bint is_small = block_is_small(block)
    if is_small and arena.stack_left < size:
        relieve(arena, size)
    cdef bint stacked = is_small and arena.stack_left >= size
    cdef bint kept = pool == LARGE and size > SMALL_LIMIT and block_is_split(block) and may_wait(arena)
    if unlikely(block.is_oversize):
        oversize_count(block)
    if kept and arena.last != NULL:
        merge_last(arena)
    if not stacked and not kept:
        join_preview(block, &join)
        inactive = join.is_split - join.neighbours
        inactive_bytes = size if join.is_split else size - join.size
    if not (recounting or headroom_suffices(arena, pool, 0, 0, 0, inactive, inactive_bytes)):
        return False
    note_free(block, FREE_COMPLETED if parked else FREE)
    if parked:
        headroom_unpark(arena, pool, size, block.requested, inactive, inactive_bytes)
    else:
        headroom_give(headroom, size, block.requested, inactive, inactive_bytes)
    if stacked:
        block.state = CACHED
        block.next = arena.stacks[klass]
        arena.stacks[klass] = block
        arena.filled[klass >> 6] |= <uint64_t>1 << (klass & 63)
        arena.stack_left -= size
    elif kept:
        block.state = CACHED
        arena.last = block
    else:
        block_bin(block_merge(block))
    return True


cdef inline void join_preview(l0rt_block* block, l0rt_join* join) noexcept nogil:
    cdef l0rt_block* before = block.before
    cdef l0rt_block* after = block.after
    join.neighbours = 0
    join.size = block.size
    if before != NULL and before.state == BINNED:
        join.neighbours += 1
        join.size += before.size
        before = before.before
    if after != NULL and after.state == BINNED:
        join.neighbours += 1
        join.size += after.size
        after = after.after
    join.is_split = before != NULL or after != NULL


cdef inline bint may_wait(l0rt_arena* arena) noexcept nogil:
    """May a large block stay unmerged? Not where torch would merge it, nor where memory is to go back soon."""
    return not arena.tuning.torch_segments and arena.tuning.uncached_from == 0 and arena.stack_cap != 0


cdef inline void merge_late(l0rt_arena* arena, l0rt_block* block, int pool) noexcept nogil:
    """A free block goes to the bins at last. It was inactive split already, so that can only fall."""
    cdef l0rt_join join
    join_preview(block, &join)
    headroom_inactive(
        &arena.headroom[pool],
        <int64_t>join.is_split - 1 - join.neighbours,
        0 if join.is_split else -join.size,
    )
    block_bin(block_merge(block))


cdef void merge_last(l0rt_arena* arena) noexcept nogil:
    cdef l0rt_block* block = arena.last
    arena.last = NULL
    merge_late(arena, block, LARGE)


cdef void unstack(l0rt_arena* arena, size_t klass) noexcept nogil:
    cdef l0rt_block* block = arena.stacks[klass]
    arena.stacks[klass] = block.next
    arena.stack_left += block.size
    merge_late(arena, block, SMALL)


cdef void arena_unstack(l0rt_arena* arena) noexcept nogil:
    """Everything on the class stacks, and the large block that waits, goes to the bins and is merged there."""
    cdef size_t klass = 0
    if arena.last != NULL:
        merge_last(arena)
    while arena.stack_left != arena.stack_cap:
        klass = stack_next(arena, klass, CLASSES - 1)
        unstack(arena, klass)


cdef void arena_gain(l0rt_block* block) noexcept nogil:
    """A block that had no memory has some now, and is free."""
    cdef l0rt_join join
    join_preview(block, &join)
    headroom_inactive(
        &block.arena.headroom[block.segment.pool],
        <int64_t>join.is_split - join.neighbours,
        <int64_t>block.size if join.is_split else <int64_t>block.size - join.size,
    )
    map_set(block.ptr, block)
    block_bin(block_merge(block))


cdef void relieve(l0rt_arena* arena, int64_t size) noexcept nogil:
    cdef int blocks = RELIEF_BLOCKS
    cdef size_t klass
    while arena.stack_left < size and arena.stack_left != arena.stack_cap and blocks > 0:
        klass = stack_next(arena, arena.cursor, CLASSES - 1)
        if klass == CLASSES:
            klass = stack_next(arena, 0, CLASSES - 1)
        arena.cursor = klass
        unstack(arena, klass)
        blocks -= 1


cdef void arena_resize(l0rt_arena* arena, int64_t reserved) noexcept nogil:
    """What the arena has reserved changed by this much, and with it the stacks' cap. The growth mutex is held."""
    cdef int64_t cap
    cdef l0rt_heap* heap = arena.heap
    if arena.reserved == 0 and reserved > 0:
        arena.previous_busy = NULL
        arena.next_busy = heap.busy
        if heap.busy != NULL:
            heap.busy.previous_busy = arena
        heap.busy = arena
    arena.reserved += reserved
    if arena.reserved == 0 and reserved < 0:
        if arena.next_busy != NULL:
            arena.next_busy.previous_busy = arena.previous_busy
        if arena.previous_busy != NULL:
            arena.previous_busy.next_busy = arena.next_busy
        else:
            heap.busy = arena.next_busy
    cap = 0 if is_gone(arena) else STACK_LEAST + (arena.reserved >> STACK_SHARE)
    arena.stack_left += cap - arena.stack_cap
    arena.stack_cap = cap
