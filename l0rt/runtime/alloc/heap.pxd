# SPDX-License-Identifier: Apache-2.0
"""A heap: one memory, cached. Made over a table of operations; everything here runs without the GIL.

The fast half is in arena.pxd: arena_hit, then arena_malloc if that gave NULL; block_drop, then block_free if that
gave False. Blocks are borrowed: a block's record may be reused once it is freed."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from l0rt.runtime.alloc.block cimport block_is_allocated
from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.alloc.types cimport (
    LIVE_LARGE,
    l0rt_arena,
    l0rt_block,
    l0rt_heap,
    l0rt_heap_options,
    l0rt_memory_ops,
    l0rt_private_pool,
    l0rt_tuning,
)

cdef enum:
    GRANULE = 1 << 21               # what large pages are, and what every driver with virtual memory takes
    FINE_GRANULE = 1 << 18
    FINE_PARTS = 6
    FINE_MOVES = 2048
    MOVES = 512
    GROWTH_SHARE = 128
    # Where a mapping costs a hundred microseconds: memory that is missing for long costs less than many of them.
    LEAST_GROWTH = 8 << 20
    DEAR_GROWTH_SHARE = 32
    LEAST_MOVE = 16 << 20
    MOVING_NS = 20000000


cdef inline void options_map(l0rt_heap_options* options, bint is_fine) noexcept nogil:
    """Grow by mapping memory. ``is_fine``: a mapping costs microseconds, so that many small ones are worth the memory
    that they save. Elsewhere moves are paid for by time, if the operations have a
    clock."""
    options.large_page = GRANULE
    options.granule = FINE_GRANULE if is_fine else GRANULE
    options.parts = FINE_PARTS if is_fine else 1
    options.moves = FINE_MOVES if is_fine else MOVES
    if not is_fine:
        options.least_growth, options.growth_share, options.whole = LEAST_GROWTH, DEAR_GROWTH_SHARE, True
        options.least_move, options.moving, options.small_segment = LEAST_MOVE, MOVING_NS, LEAST_GROWTH


cdef l0rt_heap* heap_create(const l0rt_memory_ops* ops, void* self,
                            const l0rt_heap_options* options) noexcept nogil
cdef void heap_destroy(l0rt_heap* heap) noexcept nogil
cdef int heap_trim(l0rt_heap* heap, void* stream, l0rt_private_pool* private_pool) noexcept nogil


cdef inline l0rt_private_pool* every_pool() noexcept nogil:
    """For `heap_trim`: the memory outside of pools, and that of every pool."""
    return <l0rt_private_pool*>-1


cdef int heap_tune(l0rt_heap* heap, const l0rt_tuning* asked) noexcept nogil
cdef void heap_set_limit(l0rt_heap* heap, uint64_t nbytes) noexcept nogil
cdef void heap_close(l0rt_heap* heap, int code) noexcept nogil

cdef int arena_malloc(l0rt_arena* arena, size_t nbytes, l0rt_block** out) noexcept nogil
cdef int arena_attempt(l0rt_arena* arena, size_t nbytes, l0rt_block** out, bint* by_limit) noexcept nogil
cdef int block_free(l0rt_block* block) noexcept nogil
# By the start: of an allocation of this heap; or of what was handed out by its address, of whichever heap.
cdef int pointer_free(l0rt_heap* heap, const void* ptr) noexcept nogil
cdef int raw_free(const void* ptr, uint32_t raw) noexcept nogil
# Hand a block out by its address, which frees it from now on: no private_pool does.
cdef void* block_raw(l0rt_block* block, uint32_t raw) noexcept nogil


cdef inline l0rt_block* block_find(const void* ptr) noexcept nogil:
    """The allocation that holds ``ptr``, wherever in it; NULL for any other address."""
    cdef l0rt_block* block = map_find(ptr)
    return block if block != NULL and block_is_allocated(block) else NULL


cdef struct l0rt_place:             # of an allocation
    void* ptr
    uint64_t size                   # that it takes
    uint64_t requested

# Allocate the same again that a pool had at these places, without by whom: all or nothing. L0RT_INVALID_POINTER: the
# place of number `failed` is not free, or is no place of the pool. Waits for freed blocks that other streams use.
cdef int heap_restore(l0rt_heap* heap, l0rt_private_pool* private_pool, const l0rt_place* places, int64_t count,
                      l0rt_block** out, int64_t* failed) noexcept nogil

# A pool without memory keeps its addresses.
cdef bint heap_can_sleep(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil
cdef int heap_sleep(l0rt_heap* heap, l0rt_private_pool* private_pool, bint takes_memory=*) noexcept nogil
cdef int heap_wake(l0rt_heap* heap, l0rt_private_pool* private_pool, bint is_last) noexcept nogil
