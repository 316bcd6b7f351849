# SPDX-License-Identifier: Apache-2.0
"""A heap: one memory, cached. Made, asked for blocks, given them back, emptied, put to sleep, woken, closed."""

from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from l0rt.runtime.alloc.arena cimport (
    MISS,
    arena_give,
    arena_take_part,
    arena_unstack,
    block_drop,
    block_return,
    is_uncached,
    pinned_try_free,
    raw_try_free,
    size_round,
)
from l0rt.runtime.alloc.arena_index cimport arenas_destroy, arenas_reclaim, heap_reclaim
from l0rt.runtime.alloc.atomics cimport (
    load,
    load_int,
    mutex_destroy,
    mutex_init,
    mutex_lock,
    mutex_unlock,
    spin_close,
    spin_lock,
    spin_unlock,
    store,
    store_i64,
    store_int,
)
from l0rt.runtime.alloc.block cimport block_is_allocated, block_kind
from l0rt.runtime.alloc.cross_stream cimport code_when_closed, take_cached
from l0rt.runtime.alloc.deferred_free cimport pending_add, pending_destroy, pending_wait
from l0rt.runtime.alloc.expandable_segment cimport ranges_release, ranges_trim
from l0rt.runtime.alloc.growth cimport EMPTY_MAP_NS, SLOW_MAP_NS, TIMED_MAPS, now
from l0rt.runtime.alloc.history cimport context_begin, context_end, history_drop
from l0rt.runtime.alloc.reclaim cimport (
    bound_keep,
    give_back,
    grow_waiting,
    heap_wait,
    uncached_malloc,
    uncached_return,
    unstack_all,
)
from l0rt.runtime.alloc.segment cimport segments_release, segments_settle, segments_wait
from l0rt.runtime.alloc.share cimport is_asleep, private_pool_of, share_find, share_freed, shares_destroy
from l0rt.runtime.alloc.stats cimport (
    count_oom,
    count_reserved,
    heap_arenas,
    heap_available,
    heap_limit,
    heap_tuning,
    recount_all,
    recount_lock,
    recount_lock_all,
    recount_unlock,
)
from l0rt.runtime.alloc.types cimport (
    L0RT_ASLEEP,
    L0RT_CLOSED,
    L0RT_DOUBLE_FREE,
    L0RT_HELD_UP,
    L0RT_INTERRUPTED,
    L0RT_INVALID_POINTER,
    L0RT_INVALID_SIZE,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    L0RT_OUT_OF_MEMORY,
    L0RT_OWNED,
    BINNED,
    BY_ADDRESS,
    GRAIN,
    LIVE,
    LIVE_LARGE,
    PAGE,
    RAW,
    SMALL,
    SPARE,
    UNCACHED,
    USED,
    l0rt_arena,
    l0rt_block,
    l0rt_granule,
    l0rt_segment,
    l0rt_share,
    l0rt_ways,
)


cdef l0rt_heap* heap_create(const l0rt_memory_ops* ops, void* self,
                            const l0rt_heap_options* options) noexcept nogil:
    """A heap without memory; NULL without host memory. ``options`` may be NULL, ``ops`` has to outlive the heap."""
    cdef l0rt_heap* heap = <l0rt_heap*>calloc(1, sizeof(l0rt_heap))
    if heap == NULL:
        return NULL
    mutex_init(&heap.growth, NULL)
    mutex_init(&heap.waiting, NULL)
    mutex_init(&heap.recount, NULL)
    heap.ops = ops
    heap.self = self
    heap.stats.max_split_size = -1
    heap.tuning = &heap.default_tuning
    heap_set_limit(heap, 0 if options == NULL else options.limit)
    if options != NULL:
        heap.granule = options.granule
        heap.large_page = max(options.large_page, options.granule)
        heap.parts = max(options.parts, 1)
        heap.moves = options.moves if options.moves != 0 else MOVES
        heap.range = options.range
        heap.least_growth = options.least_growth
        heap.growth_share = options.growth_share if options.growth_share != 0 else GROWTH_SHARE
        heap.whole, heap.least_move, heap.capacity = options.whole, options.least_move, options.capacity
        heap.moving, heap.small_segment = options.moving, options.small_segment
        heap.has_clock, heap.judges_maps = options.has_clock, options.judges_maps
        heap.maps_nothing = options.maps_nothing
        heap.begun = now(heap)
        heap.has_ranges = options.granule != 0
    return heap


cdef void heap_destroy(l0rt_heap* heap) noexcept nogil:
    """Give everything back, allocated or not. No work uses any of it, and no thread the heap.

    What a closed heap has is left to the end of the process.
    """
    cdef l0rt_ways* ways
    if load_int(&heap.closed) != 0:
        return
    pending_destroy(heap)
    arenas_destroy(heap)
    shares_destroy(heap)
    history_drop(heap)
    while heap.ways != NULL:
        ways = heap.ways
        heap.ways = ways.older
        free(ways)
    mutex_destroy(&heap.growth)
    mutex_destroy(&heap.waiting)
    mutex_destroy(&heap.recount)
    free(heap)


cdef int arena_malloc(l0rt_arena* arena, size_t nbytes, l0rt_block** out) noexcept nogil:
    """A block of at least ``nbytes``, whatever it takes: may call memory operations, and wait."""
    cdef bint by_limit = False
    cdef int status = arena_attempt(arena, nbytes, out, &by_limit)
    if status == L0RT_OUT_OF_MEMORY:
        count_oom(arena.heap, by_limit)
    return status


cdef int arena_attempt(l0rt_arena* arena, size_t nbytes, l0rt_block** out, bint* by_limit) noexcept nogil:
    """The same for who may try again: out of memory is not counted, which is the caller's to do when it gives up, by
    `count_oom` with ``by_limit``."""
    cdef uint32_t before = context_begin(arena, NULL)
    cdef int status = attempt(arena, nbytes, out, by_limit)
    context_end(before)
    return status


cdef int attempt(l0rt_arena* arena, size_t nbytes, l0rt_block** out, bint* by_limit) noexcept nogil:
    cdef l0rt_heap* heap = arena.heap
    cdef const l0rt_tuning* tuning
    cdef uint64_t size
    cdef int status
    out[0] = NULL
    if load_int(&heap.closed) != 0:
        return code_when_closed(arena)
    if nbytes == 0:
        return L0RT_INVALID_SIZE
    if nbytes > <size_t>1 << 62:    # a negative number, most likely; nothing below overflows
        by_limit[0] = heap_limit(heap) != INT64_MAX
        return L0RT_OUT_OF_MEMORY
    tuning = heap_tuning(heap)
    if is_uncached(tuning, nbytes):
        return uncached_malloc(heap, arena, nbytes, out, by_limit)
    size = size_round(tuning, nbytes)
    status = take_cached(arena, size, nbytes, out)
    if status == MISS:
        status = grow_waiting(heap, arena, size, nbytes, out, by_limit)
        if heap.timed == TIMED_MAPS:
            judge_maps(heap)
        bound_keep(heap)            # memory that was freed meanwhile
    return status


cdef void judge_maps(l0rt_heap* heap) noexcept nogil:
    """The first mappings were timed: grow by more where they take long, and by segments where they do nothing."""
    cdef l0rt_tuning tuning
    cdef int64_t mean
    mutex_lock(&heap.growth)
    mean = heap.mapping // TIMED_MAPS
    if heap.timed == TIMED_MAPS and mean > SLOW_MAP_NS:
        heap.least_growth *= 2
    heap.maps_nothing |= heap.timed == TIMED_MAPS and mean < EMPTY_MAP_NS
    heap.timed += 1                 # it is judged
    tuning = heap.tuning[0]
    mutex_unlock(&heap.growth)
    if heap.maps_nothing:
        heap_tune(heap, &tuning)


cdef void* block_raw(l0rt_block* block, uint32_t raw) noexcept nogil:
    if spin_lock(&block.arena.lock):
        block.state |= raw
        spin_unlock(&block.arena.lock)
    return block.ptr


cdef int block_free(l0rt_block* block) noexcept nogil:
    """Free a block for its owner, whatever it takes. Of a closed heap: silently nothing. L0RT_INTERRUPTED: it is freed,
    but a wait before it could be given back ended early."""
    return free_slowly(block, 0)


cdef int free_slowly(l0rt_block* block, uint32_t raw) noexcept nogil:
    cdef uint32_t before
    cdef int status
    if block.arena == NULL:
        return L0RT_INVALID_POINTER
    before = context_begin(block.arena, block)
    status = free_as(block, raw)
    context_end(before)
    return status


cdef int free_as(l0rt_block* block, uint32_t raw) noexcept nogil:
    """``raw``: as in block_return."""
    cdef l0rt_arena* arena = block.arena
    cdef l0rt_heap* heap
    cdef int status = L0RT_OK
    cdef bint done = False
    heap = arena.heap
    if load_int(&heap.closed) != 0 or not spin_lock(&arena.lock):
        return L0RT_OK
    if block_is_allocated(block) and block.state & BY_ADDRESS != raw:
        spin_unlock(&arena.lock)
        return L0RT_OWNED
    if block_kind(block) == USED:
        spin_unlock(&arena.lock)
        status = pending_add(heap, block)
        bound_keep(heap)            # its uses, or others', may be over
        heap_reclaim(heap)
        return status
    if block_kind(block) == UNCACHED:
        block.state = LIVE_LARGE | raw
        spin_unlock(&arena.lock)
        status = free_as(block, raw)
        if status == L0RT_OK:
            status = uncached_return(heap, arena)
        bound_keep(heap)
        heap_reclaim(heap)
        return status
    if block_is_allocated(block):
        done = arena_give(block, False)
    else:
        status = L0RT_INVALID_POINTER if block.state == SPARE else L0RT_DOUBLE_FREE
    if done:
        share_freed(arena)
    spin_unlock(&arena.lock)
    if done:
        bound_keep(heap)
        heap_reclaim(heap)
    if done or status != L0RT_OK or not recount_lock(heap, arena):
        return status
    if block.state == LIVE | raw or block.state == LIVE_LARGE | raw:
        arena_give(block, True)
        recount_all(heap, arena, block.segment.pool)
        share_freed(arena)
    else:
        status = L0RT_DOUBLE_FREE   # another thread's, in between
    recount_unlock(heap)
    bound_keep(heap)
    heap_reclaim(heap)
    return status


cdef int find_start(const void* ptr, l0rt_block** out) noexcept nogil:
    """What starts at ``ptr``; a status if nothing does."""
    cdef l0rt_block* block = map_find(ptr)
    out[0] = block
    if block == NULL or block.arena == NULL:
        return L0RT_INVALID_POINTER
    if block.ptr != ptr:            # inside of something allocated, or of something freed and merged since
        return L0RT_INVALID_POINTER if block_find(ptr) != NULL else L0RT_DOUBLE_FREE
    return L0RT_OK


cdef int pointer_free(l0rt_heap* heap, const void* ptr) noexcept nogil:
    """Without the GIL (which map_find and block_drop may keep). NULL is fine."""
    cdef l0rt_block* block
    cdef int status = L0RT_OK
    if ptr == NULL:
        return status
    status = find_start(ptr, &block)
    if status != L0RT_OK:
        return status
    if block.arena.heap != heap:
        return L0RT_OWNED
    return L0RT_OK if block_drop(block) else block_free(block)


cdef int raw_free(const void* ptr, uint32_t raw) noexcept nogil:
    """``raw``: RAW or RAW_PINNED. Without the GIL. NULL is fine."""
    cdef l0rt_block* block
    cdef bint done
    cdef int status = L0RT_OK
    if ptr == NULL:
        return status
    status = find_start(ptr, &block)
    if status != L0RT_OK:
        return status
    done = block_return(block, True, raw, raw_try_free if raw == RAW else pinned_try_free)
    return L0RT_OK if done else free_slowly(block, raw)


cdef inline bint is_meant(l0rt_arena* arena, void* stream, l0rt_private_pool* private_pool) noexcept nogil:
    return (private_pool == every_pool() or private_pool_of(arena) == private_pool) and (
        stream == NULL or load(&arena.stream) == stream)


cdef int heap_trim(l0rt_heap* heap, void* stream, l0rt_private_pool* private_pool) noexcept nogil:
    """Give back every segment that is wholly free, once no work uses it: waits for that. Of one stream, or with NULL of
    any; of one pool, of every one, or with NULL of none and of those that were dropped. L0RT_INTERRUPTED: the wait
    ended early, and nothing was given back."""
    cdef l0rt_arena* first = heap_arenas(heap)
    cdef uint32_t before
    cdef int status
    if first == NULL:
        return L0RT_OK
    before = context_begin(first, NULL)
    status = give_back_of(heap, stream, private_pool)
    context_end(before)
    return status


cdef int give_back_of(l0rt_heap* heap, void* stream, l0rt_private_pool* private_pool) noexcept nogil:
    cdef bint is_one = private_pool != NULL and private_pool != every_pool()
    cdef l0rt_share* share = share_find(heap, private_pool) if is_one else NULL
    cdef l0rt_arena* arena = heap_arenas(heap)
    if load_int(&heap.closed) != 0 or (is_one and share == NULL):
        return L0RT_OK
    if pending_wait(heap) == L0RT_INTERRUPTED:
        return L0RT_INTERRUPTED
    while arena != NULL:
        if is_meant(arena, stream, private_pool) or (stream == NULL and private_pool == NULL):  # dropped pools' too
            if spin_lock(&arena.lock):
                arena_unstack(arena)
                spin_unlock(&arena.lock)
            if segments_wait(heap, arena) == L0RT_INTERRUPTED:
                return L0RT_INTERRUPTED
        arena = arena.next
    mutex_lock(&heap.growth)
    arenas_reclaim(heap)
    heap.requester = NULL
    arena = <l0rt_arena*>load(<void**>(&heap.arenas if share == NULL else &share.arenas))
    while arena != NULL:
        if is_meant(arena, stream, private_pool):
            segments_settle(heap, arena)
            segments_release(heap, arena, UINT64_MAX, False)
            ranges_release(heap, arena, UINT64_MAX)
            ranges_trim(heap, arena)
        arena = arena.next if share == NULL else arena.next_of_share
    mutex_unlock(&heap.growth)
    return L0RT_OK


cdef int heap_restore(l0rt_heap* heap, l0rt_private_pool* private_pool, const l0rt_place* places, int64_t count,
                      l0rt_block** out, int64_t* failed) noexcept nogil:
    cdef l0rt_arena* first = heap_arenas(heap)
    cdef uint32_t before
    cdef int status
    failed[0] = 0
    if first == NULL or count == 0:
        return L0RT_OK if count == 0 else L0RT_INVALID_POINTER
    status = pending_wait(heap)
    if status != L0RT_OK:
        return status
    before = context_begin(first, NULL)
    if recount_lock_all(heap):
        status = restore_all(heap, private_pool, places, count, out, failed)
        recount_all(heap, NULL, SMALL)
        recount_unlock(heap)
    else:
        status = load_int(&heap.closed)
    context_end(before)
    return status


cdef int restore_all(l0rt_heap* heap, l0rt_private_pool* private_pool, const l0rt_place* places, int64_t count,
                     l0rt_block** out, int64_t* failed) noexcept nogil:
    """All arenas are locked."""
    cdef l0rt_arena* arena = heap.arenas
    cdef l0rt_block* block
    cdef int64_t i = 0
    cdef int status = L0RT_ASLEEP if is_asleep(private_pool) else L0RT_OK
    while arena != NULL:
        if arena.private_pool == private_pool:
            arena_unstack(arena)    # else a place may be cut into several free blocks
        arena = arena.next
    while i < count and status == L0RT_OK:
        block = map_find(places[i].ptr)
        status = L0RT_INVALID_POINTER
        if is_free_there(block, heap, private_pool, &places[i]):
            status = arena_take_part(block, places[i].ptr, places[i].size, places[i].requested, &out[i])
        i += 1
    failed[0] = i - 1
    if status != L0RT_OK:
        for i in range(failed[0]):
            arena_give(out[i], True)
    return status


cdef bint is_free_there(l0rt_block* block, l0rt_heap* heap, const l0rt_private_pool* private_pool,
                        const l0rt_place* place) noexcept nogil:
    cdef uint64_t least, front, rest
    if (block == NULL or block.state != BINNED or block.arena.heap != heap or block.arena.private_pool != private_pool
            or place.size - 1 >= block.size or place.requested - 1 >= place.size):
        return False
    least = GRAIN if block.segment.pool == SMALL else PAGE
    front = <char*>place.ptr - <char*>block.ptr
    if front > block.size - place.size:
        return False
    rest = block.size - front - place.size
    return front % GRAIN == 0 and rest % GRAIN == 0 and (front == 0 or front >= least) and (rest == 0 or rest >= least)


cdef const l0rt_tuning* kept(l0rt_heap* heap, const l0rt_tuning* tuning) noexcept nogil:
    """The heap's own record of these ways; NULL without host memory. The growth mutex is held."""
    cdef l0rt_ways* ways = heap.ways
    while ways != NULL and memcmp(&ways.tuning, tuning, sizeof(l0rt_tuning)) != 0:
        ways = ways.older
    if ways == NULL:
        ways = <l0rt_ways*>calloc(1, sizeof(l0rt_ways))
        if ways == NULL:
            return NULL
        memcpy(&ways.tuning, tuning, sizeof(l0rt_tuning))
        ways.older = heap.ways
        heap.ways = ways
    return &ways.tuning


cdef int heap_tune(l0rt_heap* heap, const l0rt_tuning* asked) noexcept nogil:
    """Behave like this from now on. What is allocated and cached stays as it is, but for what is above a new bound.
    What `asked` leaves free is zero. L0RT_NO_HOST_MEMORY changes nothing."""
    cdef const l0rt_tuning* tuning
    cdef l0rt_tuning chosen
    cdef l0rt_arena* arena
    if load_int(&heap.closed) != 0:
        return L0RT_OK
    mutex_lock(&heap.growth)
    chosen = asked[0]
    chosen.torch_segments |= heap.maps_nothing and not asked.has_choice
    tuning = kept(heap, &chosen)
    if tuning != NULL:
        heap.has_ranges = heap.granule != 0 and not tuning.segmented and not tuning.torch_segments
        mutex_lock(&heap.recount)
        heap.stats.max_split_size = tuning.max_split if tuning.max_split != 0 else -1
        store(<void**>&heap.tuning, <void*>tuning)      # which an arena has that is made from here on
        mutex_unlock(&heap.recount)
        arena = heap_arenas(heap)
        while arena != NULL:
            if spin_lock(&arena.lock):
                arena_unstack(arena)
                arena.tuning = tuning
                spin_unlock(&arena.lock)
            arena = arena.next
    mutex_unlock(&heap.growth)
    bound_keep(heap)
    return L0RT_OK if tuning != NULL else L0RT_NO_HOST_MEMORY


cdef void heap_set_limit(l0rt_heap* heap, uint64_t nbytes) noexcept nogil:
    """Reserve no more than this; 0 or UINT64_MAX for no limit. What is reserved already stays."""
    store_i64(&heap.limit, INT64_MAX if nbytes == 0 else min(nbytes, <uint64_t>INT64_MAX))


cdef void heap_close(l0rt_heap* heap, int code) noexcept nogil:
    """From now on malloc returns ``code`` (0: L0RT_CLOSED) and free does nothing. Neither blocks.

    For a forked child, where another thread may have held any lock, and for the end of the process.
    """
    cdef l0rt_arena* arena = heap_arenas(heap)
    store_int(&heap.closed, code if code != 0 else L0RT_CLOSED)
    spin_close(&heap.rest_lock)
    spin_close(&heap.gone_lock)
    while arena != NULL:
        spin_close(&arena.lock)
        arena = arena.next


# Sleep: a pool without memory that keeps its addresses, so that what points there is right again once it wakes.


cdef int range_sleep(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    """Take all memory out of a range and remember where it was. L0RT_HELD_UP: some could not be unmapped yet."""
    cdef uint64_t i
    cdef l0rt_granule* granule
    cdef int calls = 0, status = L0RT_OK
    cdef int64_t bytes = 0
    for i in range(segment.top):
        granule = &segment.granules[i]
        if granule.count != 0 and granule.first == i and granule.physical != NULL:
            status = heap.ops.physical_mem_unmap(heap.self, <char*>segment.base + i * heap.granule,
                                                 granule.count * heap.granule, granule.physical)
            if status == L0RT_HELD_UP:
                break
            if status != L0RT_OK:
                continue            # it stays mapped: nothing else could be mapped there
            heap.ops.physical_mem_destroy(heap.self, granule.physical, granule.count * heap.granule)
            granule.physical = NULL
            bytes += granule.count * heap.granule
            calls += 1
    count_reserved(heap, segment, -bytes, 0, calls)
    return L0RT_HELD_UP if status == L0RT_HELD_UP else L0RT_OK


cdef int range_wake(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    """Memory, where there was some before the sleep. What was mapped until a failure stays."""
    cdef uint64_t i, nbytes
    cdef l0rt_granule* granule
    cdef int status = L0RT_OK
    for i in range(segment.top):
        granule = &segment.granules[i]
        if granule.count == 0 or granule.first != i or granule.physical != NULL:
            continue
        nbytes = granule.count * heap.granule
        if <int64_t>nbytes > heap_available(heap, NULL):
            return L0RT_OUT_OF_MEMORY
        status = heap.ops.physical_mem_create(heap.self, nbytes, &granule.physical)
        if status == L0RT_OK:
            status = heap.ops.physical_mem_map(
                heap.self, <char*>segment.base + i * heap.granule, nbytes, granule.physical)
            if status != L0RT_OK:
                heap.ops.physical_mem_destroy(heap.self, granule.physical, nbytes)
        if status != L0RT_OK:
            granule.physical = NULL
            return L0RT_OUT_OF_MEMORY if heap.ops.is_oom(status) else status
        count_reserved(heap, segment, nbytes, 0, 1)
    return status


cdef bint heap_can_sleep(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """False: the pool has ordinary segments, whose addresses go with their memory."""
    cdef bint can
    if load_int(&heap.closed) != 0:
        return True
    mutex_lock(&heap.growth)
    can = has_ranges_only(heap, private_pool)
    mutex_unlock(&heap.growth)
    return can


cdef bint has_ranges_only(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    cdef l0rt_arena* arena = heap_arenas(heap)
    cdef l0rt_segment* segment
    while arena != NULL:
        segment = arena.segments if private_pool_of(arena) == private_pool else NULL
        while segment != NULL:
            if segment.granules == NULL:
                return False
            segment = segment.next
        arena = arena.next
    return True


cdef int heap_sleep(l0rt_heap* heap, l0rt_private_pool* private_pool, bint takes_memory=True) noexcept nogil:
    """Give back the memory of a pool, whatever is allocated there, and keep its addresses. Its streams' work is done.
    L0RT_INVALID_POINTER: the pool cannot sleep. If a pool is in several heaps, this is called for each. Without
    ``takes_memory`` the pool still has its memory, but nothing more can be allocated from it. L0RT_HELD_UP: it sleeps,
    and still has memory, which another call takes."""
    cdef int status = L0RT_INVALID_POINTER
    if load_int(&heap.closed) != 0:
        return load_int(&heap.closed)
    mutex_lock(&heap.growth)
    if has_ranges_only(heap, private_pool):
        status = L0RT_OK
        store_int(&private_pool.is_asleep, True)
        pass_by(heap, private_pool)
        if takes_memory:
            status = sleep_all(heap, private_pool)
    mutex_unlock(&heap.growth)
    return status


cdef void pass_by(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """Wait for each thread that has checked, with an arena's lock held, that the pool does not sleep."""
    cdef l0rt_arena* arena = heap_arenas(heap)
    while arena != NULL:
        if private_pool_of(arena) == private_pool and spin_lock(&arena.lock):
            spin_unlock(&arena.lock)
        arena = arena.next


cdef int sleep_all(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    cdef l0rt_arena* arena = heap_arenas(heap)
    cdef l0rt_segment* segment
    cdef int status = L0RT_OK
    while arena != NULL:
        segment = arena.segments if private_pool_of(arena) == private_pool else NULL
        while segment != NULL:
            if range_sleep(heap, segment) != L0RT_OK:
                status = L0RT_HELD_UP
            segment = segment.next
        arena = arena.next
    return status


cdef int wake_all(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """Memory for all ranges that have none yet; what others cache, and no work uses, goes back where it is needed."""
    cdef l0rt_arena* arena = heap_arenas(heap)
    cdef l0rt_segment* segment
    cdef int status = L0RT_OK
    while arena != NULL and is_asleep(private_pool) and status == L0RT_OK:
        segment = arena.segments if private_pool_of(arena) == private_pool else NULL
        while segment != NULL and status == L0RT_OK:
            status = range_wake(heap, segment)
            if status == L0RT_OUT_OF_MEMORY:
                heap.requester = arena
                unstack_all(heap)
                segments_settle(heap, NULL)
                give_back(heap, UINT64_MAX)
                status = range_wake(heap, segment)
            segment = segment.next
        arena = arena.next
    return status


cdef int heap_wake(l0rt_heap* heap, l0rt_private_pool* private_pool, bint is_last) noexcept nogil:
    """Give a sleeping pool memory again; the last of its heaps ends the sleep. On a failure it has none in this one, as
    far as it can be unmapped. L0RT_HELD_UP: another call goes on, and `heap_sleep` gives up."""
    cdef int status
    if load_int(&heap.closed) != 0:
        return load_int(&heap.closed)
    mutex_lock(&heap.growth)
    status = wake_all(heap, private_pool)
    if status == L0RT_OUT_OF_MEMORY:
        sleep_all(heap, private_pool)  # others may need it meanwhile
        mutex_unlock(&heap.growth)
        status = heap_wait(heap, NULL)
        mutex_lock(&heap.growth)
        if status == L0RT_OK:
            status = wake_all(heap, private_pool)
    if status != L0RT_OK and status != L0RT_HELD_UP:
        sleep_all(heap, private_pool)
    elif is_last and status == L0RT_OK:
        store_int(&private_pool.is_asleep, False)
    mutex_unlock(&heap.growth)
    return status
