"""Block records, and the chains of blocks that segments are."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free
from libc.string cimport memset

from l0rt.runtime.atomics cimport mutex_lock, mutex_unlock, pthread_mutex_t
from l0rt.runtime.bins cimport bins_add, bins_remove
from l0rt.runtime.blockmap cimport map_set
from l0rt.runtime.structs cimport (
    BINNED,
    SPARE,
    l0rt_arena,
    l0rt_block,
    l0rt_segment,
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

# Records of destroyed arenas. A record is never given back to the C library: a reader of the pointer map may look at it.
cdef l0rt_block* orphans


cdef bint records_ready(l0rt_arena* arena) noexcept nogil:
    """Is there a spare record for a split? False without host memory."""
    cdef l0rt_block* slab
    cdef int i
    global orphans
    if arena.spare != NULL:
        return True
    mutex_lock(&orphans_lock)
    arena.spare = orphans
    orphans = NULL
    mutex_unlock(&orphans_lock)
    if arena.spare != NULL:
        return True
    slab = <l0rt_block*>aligned_alloc(64, SLAB * sizeof(l0rt_block))
    if slab == NULL:
        return False
    memset(slab, 0, SLAB * sizeof(l0rt_block))
    for i in range(SLAB - 1):
        slab[i].next = &slab[i + 1]
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


cdef inline l0rt_block* record_take(l0rt_arena* arena) noexcept nogil:
    cdef l0rt_block* block = arena.spare
    arena.spare = block.next
    block.arena = arena
    return block


cdef inline void record_drop(l0rt_block* block) noexcept nogil:
    block.state = SPARE
    block.next = block.arena.spare
    block.arena.spare = block


cdef void segment_attach(l0rt_arena* arena, l0rt_segment* segment) noexcept nogil:
    """A new segment, one free block. There is a spare record, and the map knows the segment."""
    cdef l0rt_block* block = record_take(arena)
    block.ptr = segment.base
    block.size = segment.size
    block.segment = segment
    block.before = block.after = NULL
    segment.arena = arena
    segment.previous = NULL
    segment.next = arena.segments
    if segment.next != NULL:
        segment.next.previous = segment
    arena.segments = segment
    map_set(segment, block.ptr, block)
    block_bin(block)


cdef void segment_detach(l0rt_segment* segment) noexcept nogil:
    """A wholly free segment leaves its arena, and its block's record is spare again."""
    cdef l0rt_arena* arena = segment.arena
    cdef l0rt_block* block = segment.block
    block_unbin(block)
    map_set(segment, block.ptr, NULL)
    record_drop(block)
    if segment.next != NULL:
        segment.next.previous = segment.previous
    if segment.previous != NULL:
        segment.previous.next = segment.next
    else:
        arena.segments = segment.next


cdef void chain_drop(l0rt_block* block) noexcept nogil:
    """The records of a whole segment, whatever its blocks are, become spare. The arena ends."""
    cdef l0rt_block* next
    while block != NULL:
        next = block.after
        free(block.uses)
        block.uses = NULL
        block.waits = 0
        record_drop(block)
        block = next


cdef void block_bin(l0rt_block* block) noexcept nogil:
    """A free block goes into its bin; as a whole segment, it becomes idle too."""
    cdef l0rt_segment* segment = block.segment
    cdef l0rt_arena* arena = block.arena
    block.state = BINNED
    bins_add(&arena.bins[segment.pool], block)
    if not block_is_split(block):
        segment.idle_epoch = arena.epoch
        segment.block = block
        segment.previous_idle = NULL
        segment.next_idle = arena.idle
        if segment.next_idle != NULL:
            segment.next_idle.previous_idle = segment
        arena.idle = segment


cdef void block_unbin(l0rt_block* block) noexcept nogil:
    """A free block leaves its bin, to be given out, split or merged."""
    cdef l0rt_segment* segment = block.segment
    bins_remove(&block.arena.bins[segment.pool], block)
    if not block_is_split(block):
        segment.block = NULL
        if segment.next_idle != NULL:
            segment.next_idle.previous_idle = segment.previous_idle
        if segment.previous_idle != NULL:
            segment.previous_idle.next_idle = segment.next_idle
        else:
            block.arena.idle = segment.next_idle


cdef l0rt_block* block_split(l0rt_block* block, uint64_t size) noexcept nogil:
    """Cut a block that is in no bin after ``size`` bytes and return the rest. There is a spare record."""
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
    map_set(block.segment, rest.ptr, rest)
    return rest


cdef l0rt_block* block_merge(l0rt_block* block) noexcept nogil:
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


cdef inline void swallow(l0rt_block* block, l0rt_block* after) noexcept nogil:
    block.after = after.after
    if block.after != NULL:
        block.after.before = block
    map_set(after.segment, after.ptr, NULL)
    block.size += after.size
    record_drop(after)
