# SPDX-License-Identifier: Apache-2.0
"""Block records, and the chains of blocks that segments are. The arena's lock is held throughout."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport load_i64, load_int
from l0rt.runtime.alloc.bins cimport bins_add, bins_remove
from l0rt.runtime.alloc.page_map cimport map_set
from l0rt.runtime.alloc.share cimport is_kept
from l0rt.runtime.alloc.types cimport (
    BINNED,
    BY_ADDRESS,
    LIVE,
    SMALL,
    SMALL_LIMIT,
    SPARE,
    UNCACHED,
    USED,
    l0rt_arena,
    l0rt_block,
    l0rt_heap,
    l0rt_segment,
    l0rt_trace,
)

cdef bint records_ready(l0rt_arena* arena) noexcept nogil
cdef void records_leave(l0rt_arena* arena) noexcept nogil
cdef l0rt_block* segment_attach(l0rt_arena* arena, l0rt_segment* segment) noexcept nogil
cdef void segment_detach(l0rt_segment* segment) noexcept nogil
cdef void segment_list(l0rt_arena* arena, l0rt_segment* segment) noexcept nogil
cdef void segment_unlist(l0rt_segment* segment) noexcept nogil
cdef void chain_drop(l0rt_block* block) noexcept nogil
cdef void uses_drop(l0rt_block* block) noexcept nogil


cdef inline uint32_t block_kind(l0rt_block* block) noexcept nogil:
    """The state without the owner's bit. Without the lock, an allocated block may be getting its first use at this
    moment."""
    return <uint32_t>load_int(<int*>&block.state) & ~<uint32_t>BY_ADDRESS


cdef inline bint block_is_allocated(l0rt_block* block) noexcept nogil:
    cdef uint32_t kind = block_kind(block)
    return LIVE <= kind <= USED or kind == UNCACHED


cdef inline bint block_is_small(l0rt_block* block) noexcept nogil:
    """Has its size a class stack, and its page a table?"""
    return block.size <= SMALL_LIMIT and block.segment.pool == SMALL


cdef inline bint block_is_split(l0rt_block* block) noexcept nogil:
    return block.before != NULL or block.after != NULL


cdef inline bint block_is_segment(l0rt_block* block) noexcept nogil:
    """Is it all of an ordinary segment, which may be given back as one?"""
    return not block_is_split(block) and block.segment.granules == NULL


cdef inline bint is_settled(l0rt_block* block) noexcept nogil:
    """Is the arena's stream known to be done with a free block? What no stream orders is not in use once it is free.
    What is free of a graph's pool is in use by the graph."""
    return ((block.arena.stream == NULL or block.epoch <= block.arena.settled)
            and not is_kept(block.arena.private_pool))


cdef inline l0rt_block* record_take(l0rt_arena* arena) noexcept nogil:
    cdef l0rt_block* block = arena.spare
    arena.spare = block.next
    block.arena = arena
    return block


cdef inline void record_drop(l0rt_block* block) noexcept nogil:
    block.state = SPARE
    block.next = block.arena.spare
    block.arena.spare = block


cdef inline void block_bin(l0rt_block* block) noexcept nogil:
    """A free block goes into its bin; as a whole segment, it becomes idle too."""
    cdef l0rt_segment* segment = block.segment
    cdef l0rt_arena* arena = block.arena
    block.state = BINNED
    block.epoch = arena.epoch
    bins_add(&arena.bins[segment.pool], block)
    if block.size >= arena.heap.granule:
        arena.granule_epoch = arena.epoch
    if block_is_segment(block):
        segment.block = block
        segment.idle_since = load_i64(&arena.heap.growths)
        segment.previous_idle = NULL
        segment.next_idle = arena.idle
        if segment.next_idle != NULL:
            segment.next_idle.previous_idle = segment
        arena.idle = segment


cdef inline void block_unbin(l0rt_block* block) noexcept nogil:
    """A free block leaves its bin, to be given out, split or merged."""
    cdef l0rt_segment* segment = block.segment
    bins_remove(&block.arena.bins[segment.pool], block)
    if block_is_segment(block):
        segment.block = NULL
        if segment.next_idle != NULL:
            segment.next_idle.previous_idle = segment.previous_idle
        if segment.previous_idle != NULL:
            segment.previous_idle.next_idle = segment.next_idle
        else:
            block.arena.idle = segment.next_idle


cdef inline void swallow(l0rt_block* block, l0rt_block* after) noexcept nogil:
    block.after = after.after
    if block.after != NULL:
        block.after.before = block
    map_set(after.ptr, NULL)
    block.size += after.size
    record_drop(after)


cdef inline l0rt_block* block_split(l0rt_block* block, uint64_t size) noexcept nogil:
    """Cut a block that is in no bin after ``size`` bytes and return the rest. There is a spare record."""
    cdef l0rt_block* rest = block_cut(block, size)
    map_set(rest.ptr, rest)
    return rest


cdef inline l0rt_block* block_cut(l0rt_block* block, uint64_t size) noexcept nogil:
    """The same where the map does not know what starts there."""
    cdef l0rt_block* rest = record_take(block.arena)
    rest.ptr = <char*>block.ptr + size
    rest.size = block.size - size
    rest.segment = block.segment
    rest.before = block
    rest.after = block.after
    if rest.after != NULL:
        rest.after.before = rest
    block.after = rest
    block.size = size
    return rest


cdef inline l0rt_block* block_merge(l0rt_block* block) noexcept nogil:
    """Join a free block that is in no bin with its binned neighbours; the first of them stays."""
    cdef l0rt_block* other = block.before
    if other != NULL and other.state == BINNED:
        block_unbin(other)
        swallow(other, block)
        block = other
    other = block.after
    if other != NULL and other.state == BINNED:
        block_unbin(other)
        swallow(block, other)
    return block


# Unmapped spans: addresses of ranges that have no memory, and the places among them that are about to get some.
cdef void span_list(l0rt_block* span) noexcept nogil
cdef void span_join(l0rt_block* block) noexcept nogil

# The growth mutex is held: no other thread changes unmapped spans.
cdef l0rt_block* place_hold(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size) noexcept nogil
cdef uint64_t place_extend(l0rt_heap* heap, l0rt_block* held, uint64_t step) noexcept nogil
cdef bint place_move_end(l0rt_block* held, int64_t more) noexcept nogil


cdef struct l0rt_block_info:
    uint64_t segment                # its address; blocks of a segment follow each other by address
    uint64_t segment_size
    uint64_t address
    uint64_t size
    uint64_t requested              # of an allocation
    void* stream
    int64_t[2] pool_id
    uint32_t state
    int pool
    uint32_t stack
    uint32_t tag
    bint is_expandable


cdef uint64_t heap_largest_free(l0rt_heap* heap, uint64_t* releasable, uint64_t* asleep) noexcept nogil
cdef int64_t heap_snapshot(l0rt_heap* heap, l0rt_block_info* out, int64_t capacity, l0rt_trace* trace) noexcept nogil
