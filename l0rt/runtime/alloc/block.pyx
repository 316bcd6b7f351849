# SPDX-License-Identifier: Apache-2.0
"""Block records, and the chains of blocks that segments are."""

from libc.stdlib cimport free
from libc.string cimport memset

from l0rt.runtime.alloc.atomics cimport mutex_lock, mutex_unlock, pthread_mutex_t
from l0rt.runtime.alloc.page_map cimport map_set
from l0rt.runtime.alloc.types cimport HELD, l0rt_arena, l0rt_block, l0rt_heap, l0rt_segment, l0rt_uses

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
    """A new segment, one held block: nobody is given it before its caller says so. There is a spare record, and the map
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
