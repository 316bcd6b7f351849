"""A heap: one memory, cached. Growing, and what is tried before memory is said to be out."""

from libc.stdint cimport UINT64_MAX, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.runtime.arena cimport (
    MISS,
    TIGHT,
    arena_give,
    arena_resize,
    arena_take,
    arena_unstack,
    block_drop,
)
from l0rt.runtime.atomics cimport (
    load_int,
    mutex_destroy,
    mutex_init,
    mutex_lock,
    mutex_unlock,
    spin_close,
    spin_lock,
    spin_unlock,
    store,
    store_int,
)
from l0rt.runtime.blocks cimport records_leave
from l0rt.runtime.census cimport (
    census_count,
    census_lock,
    census_take,
    census_unlock,
)
from l0rt.runtime.pending cimport (
    pending_add,
    pending_destroy,
    pending_poll,
    pending_wait,
)
from l0rt.runtime.segments cimport (
    segment_new,
    segments_destroy,
    segments_release,
    segments_settle,
)
from l0rt.runtime.structs cimport (
    GRAIN,
    L0RT_CLOSED,
    L0RT_DOUBLE_FREE,
    L0RT_INVALID_POINTER,
    L0RT_INVALID_SIZE,
    L0RT_OK,
    L0RT_OUT_OF_MEMORY,
    LARGE,
    PAGE,
    SMALL,
    SMALL_LIMIT,
    SMALL_SEGMENT,
    SPARE,
)

cdef extern from "stdlib.h" nogil:
    void* aligned_alloc(size_t alignment, size_t size) noexcept

cdef enum:
    ARENA_BYTES = (sizeof(l0rt_arena) + 63) & ~63


cdef l0rt_heap* heap_create(const l0rt_memory_ops* ops, void* self,
                            const l0rt_heap_options* options) noexcept nogil:
    """A heap without memory; NULL without host memory. ``options`` may be NULL, ``ops`` has to outlive the heap."""
    cdef l0rt_heap* heap = <l0rt_heap*>calloc(1, sizeof(l0rt_heap))
    if heap == NULL:
        return NULL
    mutex_init(&heap.growth, NULL)
    mutex_init(&heap.waiting, NULL)
    mutex_init(&heap.census, NULL)
    heap.ops = ops
    heap.self = self
    heap_set_limit(heap, 0 if options == NULL else options.limit)
    return heap


cdef void heap_destroy(l0rt_heap* heap) noexcept nogil:
    """Give everything back, allocated or not. No work uses any of it, and no thread the heap.

    What a closed heap has is left to the end of the process.
    """
    cdef l0rt_arena* arena = heap.arenas
    cdef l0rt_arena* next
    if load_int(&heap.closed) != 0:
        return
    pending_destroy(heap)
    while arena != NULL:
        segments_destroy(heap, arena)
        records_leave(arena)
        next = arena.next
        free(arena)
        arena = next
    mutex_destroy(&heap.growth)
    mutex_destroy(&heap.waiting)
    mutex_destroy(&heap.census)
    free(heap)


cdef l0rt_arena* heap_find_arena(l0rt_heap* heap, void* stream) noexcept nogil:
    """The stream's arena or NULL, without a lock."""
    cdef l0rt_arena* arena = heap.arenas
    while arena != NULL and arena.stream != stream:
        arena = arena.next
    return arena


cdef l0rt_arena* heap_arena(l0rt_heap* heap, void* stream) noexcept nogil:
    """The stream's arena, found or made; NULL without host memory, or if a closed heap has none."""
    cdef l0rt_arena* arena = heap_find_arena(heap, stream)
    if arena != NULL or load_int(&heap.closed) != 0:
        return arena
    mutex_lock(&heap.census)
    arena = heap_find_arena(heap, stream)
    if arena == NULL:
        arena = <l0rt_arena*>aligned_alloc(64, ARENA_BYTES)
        if arena != NULL:
            memset(arena, 0, ARENA_BYTES)
            arena.heap = heap
            arena.stream = stream
            arena.epoch = 1
            arena_resize(arena, 0)
            arena.next = heap.arenas
            store(<void**>&heap.arenas, arena)
    mutex_unlock(&heap.census)
    return arena


cdef inline int code_when_closed(l0rt_arena* arena) noexcept nogil:
    # again, should a holder have reopened the lock since
    spin_close(&arena.lock)
    return load_int(&arena.heap.closed)


cdef int take(l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """From what is cached: a status, or MISS."""
    cdef int status
    if not spin_lock(&arena.lock):
        return code_when_closed(arena)
    status = arena_take(arena, size, nbytes, False, out)
    spin_unlock(&arena.lock)
    if status != TIGHT:
        return status
    if not census_lock(arena.heap):
        return code_when_closed(arena)
    status = arena_take(arena, size, nbytes, True, out)
    census_take(arena.heap, arena, SMALL if size <= SMALL_LIMIT else LARGE)
    census_unlock(arena.heap)
    return status


cdef int arena_malloc(l0rt_arena* arena, size_t nbytes, l0rt_block** out) noexcept nogil:
    """A block of at least ``nbytes``, whatever it takes: may call memory operations, and wait."""
    cdef l0rt_heap* heap = arena.heap
    cdef uint64_t size
    cdef int status
    out[0] = NULL
    if load_int(&heap.closed) != 0:
        return code_when_closed(arena)
    if nbytes == 0:
        return L0RT_INVALID_SIZE
    if nbytes > <size_t>1 << 62:    # a negative number, most likely; nothing below overflows
        census_count(heap, &heap.stats.num_ooms)
        return L0RT_OUT_OF_MEMORY
    size = (nbytes + GRAIN - 1) & ~<uint64_t>(GRAIN - 1)
    status = take(arena, size, nbytes, out)
    if status == MISS:
        mutex_lock(&heap.growth)
        while status == MISS:       # another thread of the same stream may be faster
            status = grow(heap, arena, size, nbytes, out)
        mutex_unlock(&heap.growth)
    return status


cdef int merged(l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """From what is cached, with the class stacks merged."""
    if spin_lock(&arena.lock):
        arena_unstack(arena)
        spin_unlock(&arena.lock)
    return take(arena, size, nbytes, out)


cdef int grow(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """A new segment, unless merging or a use that has ended makes it needless. The growth mutex is held."""
    cdef int pool = SMALL if size <= SMALL_LIMIT else LARGE
    cdef uint64_t wanted = SMALL_SEGMENT if pool == SMALL else (size + PAGE - 1) & ~<uint64_t>(PAGE - 1)
    cdef int status
    if load_int(&heap.closed) != 0:
        return code_when_closed(arena)
    status = merged(arena, size, nbytes, out)
    if status != MISS:
        return status
    if pending_poll(heap) != 0:
        status = merged(arena, size, nbytes, out)
        if status != MISS:
            return status
    # What is wholly free and unused makes place: to grow costs a call anyway, and to keep both would waste memory.
    segments_settle(heap, arena, False)
    segments_release(heap, arena, wanted)
    status = segment_new(heap, arena, pool, wanted)
    if status == L0RT_OUT_OF_MEMORY:
        status = last_resort(heap, arena, pool, wanted, size, nbytes, out)
    return take(arena, size, nbytes, out) if status == L0RT_OK and out[0] == NULL else status


cdef uint64_t missing(l0rt_heap* heap, uint64_t wanted) noexcept nogil:
    """How much has to be given back before ``wanted`` bytes fit below the limit; all of it if the limit isn't why."""
    cdef uint64_t reserved = heap.reserved
    if heap.limit != UINT64_MAX and reserved + wanted > heap.limit:
        return reserved + wanted - heap.limit
    return wanted


cdef void unstack_all(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_arena* arena = heap.arenas
    while arena != NULL:
        if spin_lock(&arena.lock):
            arena_unstack(arena)
            spin_unlock(&arena.lock)
        arena = arena.next


cdef int last_resort(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t wanted,
                     uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil:
    """Memory is out: other streams' cached segments, least first; then wait for work; then everything."""
    cdef int status
    unstack_all(heap)
    segments_settle(heap, NULL, False)
    if segments_release(heap, NULL, missing(heap, wanted + heap.padding)) != 0:
        status = segment_new(heap, arena, pool, wanted)
        if status != L0RT_OUT_OF_MEMORY:
            return status
    census_count(heap, &heap.stats.num_sync_all_streams)
    pending_wait(heap)
    unstack_all(heap)
    status = take(arena, size, nbytes, out)
    if status != MISS:
        return status
    segments_settle(heap, NULL, True)
    census_count(heap, &heap.stats.num_alloc_retries)
    segments_release(heap, NULL, missing(heap, wanted + heap.padding))
    status = segment_new(heap, arena, pool, wanted)
    # as much as is missing can be too little where the backend's memory is in pieces
    if status == L0RT_OUT_OF_MEMORY and segments_release(heap, NULL, UINT64_MAX) != 0:
        status = segment_new(heap, arena, pool, wanted)
    if status != L0RT_OUT_OF_MEMORY:
        return status
    census_count(heap, &heap.stats.num_ooms)
    return L0RT_OUT_OF_MEMORY


cdef int block_free(l0rt_block* block) noexcept nogil:
    """Free a block, whatever it takes. Of a closed heap: silently nothing."""
    cdef l0rt_arena* arena = block.arena
    cdef l0rt_heap* heap
    cdef int status = L0RT_OK
    cdef bint done = False
    if arena == NULL:
        return L0RT_INVALID_POINTER
    heap = arena.heap
    if load_int(&heap.closed) != 0 or not spin_lock(&arena.lock):
        return L0RT_OK
    if block.state == USED:
        spin_unlock(&arena.lock)
        return pending_add(heap, block)
    if block.state == LIVE or block.state == LIVE_LARGE:
        done = arena_give(block, False)
    else:
        status = L0RT_INVALID_POINTER if block.state == SPARE else L0RT_DOUBLE_FREE
    spin_unlock(&arena.lock)
    if done or status != L0RT_OK or not census_lock(heap):
        return status
    if block.state == LIVE or block.state == LIVE_LARGE:
        arena_give(block, True)
        census_take(heap, arena, block.segment.pool)
    else:
        status = L0RT_DOUBLE_FREE   # another thread's, in between
    census_unlock(heap)
    return status


cdef int pointer_free(const void* ptr) noexcept nogil:
    """Free an allocation by its start, without the GIL (which map_find and block_drop may keep). NULL is fine."""
    cdef l0rt_block* block
    if ptr == NULL:
        return L0RT_OK
    block = map_find(ptr)
    if block == NULL:
        return L0RT_INVALID_POINTER
    if block.ptr != ptr:            # inside of something allocated, or of something freed and merged since
        return L0RT_INVALID_POINTER if block_find(ptr) != NULL else L0RT_DOUBLE_FREE
    return L0RT_OK if block_drop(block) else block_free(block)


cdef void heap_empty_cache(l0rt_heap* heap) noexcept nogil:
    """Give back every segment that is wholly free, once no work uses it: waits for that."""
    if load_int(&heap.closed) != 0:
        return
    mutex_lock(&heap.growth)
    pending_wait(heap)
    unstack_all(heap)
    segments_settle(heap, NULL, True)
    segments_release(heap, NULL, UINT64_MAX)
    mutex_unlock(&heap.growth)


cdef void heap_set_limit(l0rt_heap* heap, uint64_t nbytes) noexcept nogil:
    """Reserve no more than this; 0 or UINT64_MAX for no limit. What is reserved already stays."""
    heap.limit = UINT64_MAX if nbytes == 0 else nbytes


cdef void heap_close(l0rt_heap* heap, int code) noexcept nogil:
    """From now on malloc answers ``code`` (0: L0RT_CLOSED) and free does nothing, without ever blocking.

    For a forked child, where another thread may have held any lock, and for the end of the process.
    """
    cdef l0rt_arena* arena = heap.arenas
    store_int(&heap.closed, code if code != 0 else L0RT_CLOSED)
    while arena != NULL:
        spin_close(&arena.lock)
        arena = arena.next
