# SPDX-License-Identifier: Apache-2.0
"""The caching allocator in Python: one heap over any kind of memory."""

import itertools

cimport cython
from libc.stdint cimport INT64_MAX, UINT64_MAX, int64_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from l0rt._base.arguments cimport is_whole, whole
from l0rt._base.interrupts cimport interrupt_raise
from l0rt.runtime.alloc.arena cimport arena_hit, block_drop
from l0rt.runtime.alloc.arena_index cimport heap_arena, heap_find_arena, heap_poll
from l0rt.runtime.alloc.atomics cimport store_int
from l0rt.runtime.alloc.block cimport heap_snapshot, l0rt_block_info
from l0rt.runtime.alloc.deferred_free cimport block_mark, block_move, block_use
from l0rt.runtime.alloc.heap cimport (
    arena_malloc,
    block_find,
    heap_close,
    heap_create,
    heap_destroy,
    heap_restore,
    heap_set_limit,
    heap_sleep,
    every_pool,
    heap_trim,
    heap_tune,
    heap_wake,
    l0rt_place,
    pointer_free,
)
from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.alloc.share cimport is_asleep, private_pool_drop, private_pool_leave
from l0rt.runtime.alloc.stats cimport (
    heap_allocated_bytes,
    heap_limit,
    heap_reserved_bytes,
    heap_reset_accumulated,
    heap_reset_peak,
    heap_stats,
    stats_of_heap,
)
from l0rt.runtime.alloc.types cimport (
    L0RT_ASLEEP,
    L0RT_CLOSED,
    L0RT_DOUBLE_FREE,
    L0RT_INTERRUPTED,
    L0RT_INVALID_POINTER,
    L0RT_INVALID_SIZE,
    L0RT_NO_HOST_MEMORY,
    L0RT_OK,
    L0RT_OUT_OF_MEMORY,
    L0RT_OWNED,
    PAGE,
    SMALL,
    l0rt_arena,
    l0rt_block,
    l0rt_heap_options,
    l0rt_private_pool,
    l0rt_stats,
    l0rt_tuning,
)

from l0rt.errors import InvalidArgumentError, L0Error, OutOfMemoryError, UnsupportedError
from l0rt._base.integers import size_text

_numbers = itertools.count(1)


@cython.no_gc
@cython.binding(False)
cdef class Memory:
    """A kind of memory: subclasses set ``ops`` and ``self`` in ``__cinit__`` (docs/embedding.md has an example)."""


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Pool:
    """A private pool of any allocator: its memory is cached for allocations that name the pool.

    With ``use_on_oom``, an allocation from the default pool that would fail is served from here. With ``no_split``,
    free blocks are handed out as they are. With ``limit``, it reserves at most so many bytes. The
    statistics name it by its ``id``, two numbers. A ``plain`` pool has ordinary segments only.
    """

    def __cinit__(self, bint use_on_oom=False, bint no_split=False, limit=None, bint plain=False):
        cdef uint64_t most = checked_limit(limit)
        self.private_pool = <l0rt_private_pool*>calloc(1, sizeof(l0rt_private_pool))
        if self.private_pool == NULL:
            raise MemoryError("no host memory for a pool")
        self.private_pool.refs = 1
        self.private_pool.is_private = True
        self.private_pool.serves = use_on_oom
        self.private_pool.no_split = no_split
        self.private_pool.plain = plain
        self.private_pool.limit = most
        self.private_pool.id[1] = next(_numbers)

    def keep(self, bint keeps):
        """Give no memory of the pool back until it is kept no more: by nobody, if it is kept several times."""
        store_int(&self.private_pool.holders, self.private_pool.holders + (1 if keeps else -1))

    @property
    def id(self):
        """Two numbers."""
        return self.private_pool.id[0], self.private_pool.id[1]

    def __dealloc__(self):
        if self.private_pool != NULL:  # stays while arenas point to it
            private_pool_leave(self.private_pool)
            private_pool_drop(self.private_pool)


cdef int check_granules(const l0rt_heap_options* options) except -1:
    if options.granule % PAGE != 0:
        raise ValueError(f"a granule of virtual memory is a multiple of 64 KiB, not {options.granule} bytes")
    cdef uint64_t page = options.granule
    while 0 < page < options.large_page:
        page <<= 1
    if page > options.granule and page != options.large_page:
        raise ValueError(f"large pages are the granule of {options.granule} bytes times a power of two, "
                         f"not {options.large_page} bytes")
    return 0


@cython.final
@cython.no_gc                       # the memory must outlive the heap, in __dealloc__ too
@cython.binding(False)
cdef class Allocator:
    """A caching allocator over ``memory``, at most ``limit`` bytes of it (None: no limit).

    With ``expandable`` it grows by mapping memory where the memory can do that. Pointers and streams are integers.
    Stream 0 means memory that no stream orders.
    """

    def __cinit__(self, Memory memory, limit=None, bint expandable=True):
        cdef l0rt_heap_options options
        if memory.ops == NULL:
            raise TypeError(f"{type(memory).__name__} has no operations: make a subclass of Memory that sets them")
        memset(&options, 0, sizeof(options))
        options.limit = checked_limit(limit)
        options.granule = memory.granule if expandable else 0
        options.large_page, options.parts, options.moves = memory.large_page, memory.parts, memory.moves
        check_granules(&options)
        options.range = memory.range
        self.memory = memory
        self.heap = heap_create(memory.ops, memory.self, &options)
        if self.heap == NULL:
            raise MemoryError("no host memory for a heap")

    def __dealloc__(self):
        if self.heap != NULL:
            with nogil:
                heap_destroy(self.heap)

    def malloc(self, nbytes, stream=0, Pool pool=None):
        """Allocate for use in the order of ``stream`` and return the address; from the default pool or another."""
        cdef l0rt_private_pool* private_pool = NULL if pool is None else &pool.private_pool[0]
        cdef size_t size = size_of(nbytes)
        cdef void* order = <void*><uintptr_t>stream
        if is_asleep(private_pool):
            raise RuntimeError("the pool is asleep: wake it before allocating from it")
        cdef l0rt_arena* arena = heap_find_arena(self.heap, order, private_pool)
        cdef l0rt_block* block
        cdef int status
        if arena == NULL:
            with nogil:
                arena = heap_arena(self.heap, order, private_pool)
            if arena == NULL:
                Allocator_raise(self, self.heap.closed if self.heap.closed != 0 else L0RT_NO_HOST_MEMORY, size)
        block = arena_hit(arena, size)
        if block == NULL:
            with nogil:
                status = arena_malloc(arena, size, &block)
            if status != L0RT_OK:
                Allocator_raise(self, status, size)
        return <uintptr_t>block.ptr

    def free(self, ptr, stream=None):
        """Free an allocation by its address; 0 is fine. With ``stream``, it is reused in that stream's order."""
        cdef const void* address = <const void*><uintptr_t>ptr
        cdef l0rt_block* block = map_find(address)
        cdef bint is_start = block != NULL and block.ptr == address and block.arena != NULL
        cdef void* order
        cdef int status
        if is_start and block.arena.heap != self.heap:
            Allocator_raise(self, L0RT_OWNED, <uintptr_t>ptr)
        if stream is not None and is_start:
            order = <void*><uintptr_t>stream
            with nogil:
                status = block_move(block, order)
            if status != L0RT_OK:
                Allocator_raise(self, status, <uintptr_t>ptr)
        if is_start and block_drop(block):
            return
        with nogil:
            status = pointer_free(self.heap, address)
        if status != L0RT_OK:
            Allocator_raise(self, status, <uintptr_t>ptr)

    def record_stream(self, ptr, stream):
        """Another stream uses this allocation: once freed, it is not reused before that stream's work is done."""
        Allocator_use(self, ptr, stream, block_use)

    def record_use(self, ptr, stream):
        """The same for the work that the stream was given until now. Later work does not count."""
        Allocator_use(self, ptr, stream, block_mark)

    def find(self, ptr):
        """``(address, size, requested)`` of the allocation that holds ``ptr``, or None."""
        cdef l0rt_block* block = block_find(<const void*><uintptr_t>ptr)
        return None if block == NULL else (<uintptr_t>block.ptr, block.size, block.requested)

    def empty_cache(self, Pool pool=None, stream=None):
        """Give all cached memory back, or a pool's, or a stream's, waiting for work that may still use it."""
        cdef l0rt_private_pool* private_pool = every_pool() if stream is None else NULL
        if pool is not None:
            private_pool = pool.private_pool
        cdef void* order = NULL if stream is None else <void*><uintptr_t>stream
        cdef int status
        with nogil:
            status = heap_trim(self.heap, order, private_pool)
        if status != L0RT_OK:
            Allocator_raise(self, status, 0)

    def sleep(self, Pool pool not None):
        """Give the memory of a pool back and keep its addresses; what was written is lost. Ranges only."""
        cdef int status
        with nogil:
            status = heap_sleep(self.heap, pool.private_pool)
        if status != L0RT_OK:
            raise UnsupportedError("a pool with ordinary segments cannot sleep: their addresses belong to the memory")

    def wake(self, Pool pool not None):
        """Give a sleeping pool memory again, at the same addresses."""
        cdef int status
        with nogil:
            status = heap_wake(self.heap, pool.private_pool, True)
        if status != L0RT_OK:
            Allocator_raise(self, status, 0)

    def restore(self, Pool pool not None, places):
        """Allocate again in a pool, at the same addresses, what was allocated there: ``(address, size, requested)`` of
        each, as `find` returns it. All or nothing."""
        cdef int64_t count = len(places), failed
        cdef l0rt_place* copied = <l0rt_place*>calloc(count + 1, sizeof(l0rt_place))
        cdef l0rt_block** blocks = <l0rt_block**>calloc(count + 1, sizeof(l0rt_block*))
        cdef int status = L0RT_NO_HOST_MEMORY
        try:
            if copied != NULL and blocks != NULL:
                for i, (address, size, requested) in enumerate(places):
                    copied[i].ptr, copied[i].size, copied[i].requested = <void*><uintptr_t>address, size, requested
                with nogil:
                    status = heap_restore(self.heap, pool.private_pool, copied, count, blocks, &failed)
            if status == L0RT_INVALID_POINTER:
                raise ValueError(f"the memory at {places[failed][0]:#x} is not free, or is not the pool's")
            if status != L0RT_OK:
                Allocator_raise(self, status, 0)
        finally:
            free(copied)
            free(blocks)

    def set_limit(self, limit):
        """Reserve at most ``limit`` bytes from now on; None for no limit."""
        heap_set_limit(self.heap, checked_limit(limit))

    def tune(self, conf, uncached=False, cached_most=None):
        """Behave as an AllocConf says; with ``uncached``, cache nothing, else ``cached_most`` bytes."""
        cdef l0rt_tuning tuning
        tuning_of(conf, 1 if uncached else 0, &tuning)
        tuning.cached_most = 0 if cached_most is None else max(1, cached_most)
        cdef int status
        with nogil:
            status = heap_tune(self.heap, &tuning)
        if status != L0RT_OK:
            Allocator_raise(self, status, 0)

    def stats(self):
        """All statistics in one dictionary, under torch's names."""
        heap_poll(self.heap)
        return stats_of_heap(self.heap)

    def snapshot(self):
        """Every block as a dictionary, segment by segment, in the order of addresses."""
        cdef int64_t capacity = 1024, count
        cdef l0rt_block_info* blocks = NULL
        while True:
            blocks = <l0rt_block_info*>realloc(blocks, capacity * sizeof(l0rt_block_info))
            if blocks == NULL:
                raise MemoryError("no host memory for a snapshot")
            with nogil:
                count = heap_snapshot(self.heap, blocks, capacity, NULL)
            if count <= capacity:
                break
            capacity = count + count // 4
        try:
            return [block_dict(&blocks[i]) for i in range(count)]
        finally:
            free(blocks)

    def reset_peak_stats(self):
        """Let every peak be the current value."""
        heap_poll(self.heap)
        with nogil:
            heap_reset_peak(self.heap)

    def reset_accumulated_stats(self):
        """Let everything that only grows start at zero."""
        heap_poll(self.heap)
        with nogil:
            heap_reset_accumulated(self.heap)

    @property
    def allocated_bytes(self):
        """Bytes that are allocated now."""
        return heap_allocated_bytes(self.heap)

    @property
    def reserved_bytes(self):
        """Bytes that are taken from the memory now."""
        heap_poll(self.heap)
        return heap_reserved_bytes(self.heap)

    def close(self, code=0):
        """From now on malloc fails with ``code`` and free does nothing; cached memory is kept. Never blocks."""
        heap_close(self.heap, code)


cdef size_t size_of(nbytes) except? 0:
    size = whole(nbytes, "a size")
    if size <= 0:
        raise ValueError(f"a size must be positive, got {size}")
    return SIZE_OF_HUGE if size > SIZE_OF_HUGE else size


cdef int tuning_of(conf, uint64_t uncached_from, l0rt_tuning* out) except -1:
    cdef int i
    memset(out, 0, sizeof(l0rt_tuning))
    out.max_split = 0 if conf.max_split_size_mb is None else <uint64_t>conf.max_split_size_mb << 20
    out.max_non_split_rounding = <uint64_t>conf.max_non_split_rounding_mb << 20
    out.large_segment = <uint64_t>conf.large_segment_size_mb << 20
    # 0: as the heap does by itself
    out.small_segment = <uint64_t>(conf.small_segment_size_mb or 0) << 20
    out.least_growth = <uint64_t>(conf.range_growth_mb or 0) << 20
    out.least_move = <uint64_t>(conf.range_move_mb or 0) << 20
    out.moving = <int64_t>(conf.range_moving_ms or 0) * 1000000
    out.gc_threshold = conf.garbage_collection_threshold
    for i in range(16):
        out.divisions[i] = conf.roundup_power2_divisions[i]
        out.rounds |= out.divisions[i] > 1
    out.segmented = not conf.expandable_segments
    out.torch_segments = conf.segments == "torch"
    out.is_async = conf.backend == "async"
    out.uncached_from = uncached_from
    return 0


SIZE_OF_HUGE = (1 << 63) - 1        # no memory has so much: this is answered as out of memory


cdef uint64_t checked_limit(limit) except? 0:
    if limit is None:
        return UINT64_MAX
    if not is_whole(limit):
        raise TypeError(f"a limit must be an int or None, got {type(limit).__name__}")
    most = whole(limit, "a limit")
    if most <= 0:
        raise ValueError(f"a limit must be positive, got {most}; None means no limit")
    return min(most, UINT64_MAX)


cdef int Allocator_use(Allocator self, ptr, stream, int (*note)(l0rt_block*, void*) noexcept nogil) except -1:
    """Let ``note`` record that the stream uses the allocation at ``ptr``."""
    cdef l0rt_block* block = block_find(<const void*><uintptr_t>ptr)
    cdef void* order = <void*><uintptr_t>stream
    cdef int status = L0RT_INVALID_POINTER
    if block != NULL and block.arena.heap != self.heap:
        status = L0RT_OWNED
    elif block != NULL:
        with nogil:
            status = note(block, order)
    return Allocator_raise(self, status, <uintptr_t>ptr) if status != L0RT_OK else 0


cdef int Allocator_raise(Allocator self, int status, object subject) except -1:
    """The exception for a status; ``subject`` is the size or the address it is about."""
    cdef l0rt_stats stats
    if status == L0RT_OUT_OF_MEMORY:
        with nogil:
            heap_stats(self.heap, &stats)
        allocated = stats.allocated_bytes.all.current
        pending = stats.active_bytes.all.current - allocated
        reserved = stats.reserved_bytes.all.current
        most = heap_limit(self.heap)
        limit = "none" if most == INT64_MAX else size_text(most)
        raise OutOfMemoryError(
            f"out of memory: requested {size_text(subject)}; allocated {size_text(allocated)}, "
            f"still in use after free {size_text(pending)}, cached {size_text(reserved - allocated - pending)}, "
            f"limit {limit}"
        )
    if status == L0RT_INVALID_POINTER:
        raise ValueError(f"{subject:#x} is not the address of an allocation")
    if status == L0RT_OWNED:
        raise InvalidArgumentError(f"{subject:#x} is memory of another allocator: free it there")
    if status == L0RT_DOUBLE_FREE:
        raise ValueError(f"{subject:#x} was freed already")
    if status == L0RT_ASLEEP:
        raise RuntimeError("the pool is asleep: wake it before allocating from it")
    if status == L0RT_INVALID_SIZE:
        raise ValueError("a size must be positive, got 0")
    if status == L0RT_NO_HOST_MEMORY:
        raise MemoryError("no host memory for the allocator's own records")
    if status == L0RT_CLOSED:
        raise L0Error("the allocator is closed")
    if status == L0RT_INTERRUPTED:
        interrupt_raise()
    raise L0Error(f"the memory operations returned the code {status}", ("BACKEND", status))


# By a block's state: its name here, and torch's.
STATES = (("spare", "inactive"), ("binned", "inactive"), ("cached", "inactive"), ("live", "active_allocated"),
          ("live", "active_allocated"), ("live", "active_allocated"), ("pending", "active_pending_free"),
          ("unmapped", "inactive"), ("held", "inactive"), ("live", "active_allocated"))


cdef dict block_dict(l0rt_block_info* block):
    return {
        "segment": block.segment,
        "segment_size": block.segment_size,
        "is_expandable": bool(block.is_expandable),
        "pool": "small" if block.pool == SMALL else "large",
        "stream": <uintptr_t>block.stream,
        "address": block.address,
        "size": block.size,
        "requested": block.requested,
        "state": STATES[block.state][0],
    }
