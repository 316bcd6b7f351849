# SPDX-License-Identifier: Apache-2.0
"""The history of a heap: what happened to its memory, when, and whose doing it was; sums by tag.

While nothing is recorded, `recording` of every arena is 0. It is negative otherwise, so that the hit path asks with
the signs of what it computes anyway."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from l0rt.runtime.alloc.atomics cimport unlikely
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block, l0rt_heap, l0rt_stat, l0rt_trace

cdef enum:                          # of an entry
    ALLOC = 1
    FREE = 2                        # requested and completed
    FREE_REQUESTED = 3
    FREE_COMPLETED = 4
    SEGMENT_ALLOC = 5
    SEGMENT_FREE = 6
    SEGMENT_MAP = 7
    SEGMENT_UNMAP = 8
    SNAPSHOT = 9
    OOM = 10
    ANNOTATE = 11                   # of something allocated, whose address and size it has

cdef enum:                          # flags of `recording`
    RECORDS_ENTRIES = 1
    RECORDS_BLOCKS = 2              # each allocation's stack
    STACKS_OF_ALLOC = 4
    STACKS_OF_FREE = 8
    RECORDS_TAGS = 16
    RECORDS_PINNED = 32             # of the wish alone: pinned memory too
    MARKS = 64                      # of the heap alone: its driver gets marks of what is allocated

# The driver's function that takes marks of ranges and blocks, so that kernels fail outside of them, and how many bytes
# behind each block belong to none; 0: the driver takes no marks. Set before there are heaps.
ctypedef int (*l0rt_mark)(uint32_t mark, const void* ptr, size_t nbytes, size_t requested) noexcept nogil
cdef void marks_begin(l0rt_mark function, uint64_t guard) noexcept nogil
cdef uint64_t guard_bytes

# The arena's lock is held.
cdef void history_alloc(l0rt_block* block) noexcept nogil
cdef void history_free(l0rt_block* block, int action) noexcept nogil
cdef void history_segment(l0rt_arena* arena, int action, void* ptr, uint64_t size) noexcept nogil

# No lock of the heap is held. The block may be freed meanwhile, and then the entry has what it was.
cdef void history_annotate(l0rt_block* block, uint32_t note) noexcept nogil

# No lock of the heap is held, or those of all arenas.
cdef void history_note(l0rt_heap* heap, int action, uint64_t address, uint64_t size) noexcept nogil

# Whose doing is what the thread does next: gathered without a lock. What was gathered before comes back at the end.
cdef uint32_t context_begin(l0rt_arena* arena, l0rt_block* freed) noexcept nogil
# The block is not freed yet: the thread's next attempt has the same stack.
cdef void context_leave(l0rt_block* freed) noexcept nogil
cdef void context_end(uint32_t before) noexcept nogil

# What all heaps that there will be record, and a heap of now.
cdef void history_want(int64_t flags, uint64_t capacity, uint32_t skipped) noexcept nogil
cdef int64_t history_wanted() noexcept nogil
cdef uint64_t history_limit() noexcept nogil
cdef void flags_add(int64_t flags) noexcept nogil
cdef int64_t host_flags(int64_t flags) noexcept nogil
cdef int history_follow(l0rt_heap* heap, int64_t flags, bint clears) noexcept nogil
cdef void history_drop(l0rt_heap* heap) noexcept nogil
# All arenas are locked.
cdef void history_copy(l0rt_heap* heap, l0rt_trace* trace, uint64_t active) noexcept nogil
# The GIL is held: the times of all entries that are told together, by one reading of the clock.
cdef void history_read_clock() noexcept nogil
cdef int64_t history_time(uint64_t ticks) noexcept nogil
cdef uint32_t history_sums(l0rt_heap* heap, l0rt_stat* out, uint32_t capacity) noexcept nogil
cdef void history_reset(l0rt_heap* heap, bint peaks) noexcept nogil

cdef uint32_t thread_tag() noexcept nogil
cdef void thread_set_tag(uint32_t tag) noexcept nogil
cdef uint32_t thread_note() noexcept nogil
cdef void thread_set_note(uint32_t note) noexcept nogil


cdef inline void note_alloc(l0rt_block* block) noexcept nogil:
    if unlikely(block.arena.recording < 0):
        history_alloc(block)


cdef inline void note_free(l0rt_block* block, int action) noexcept nogil:
    if unlikely(block.arena.recording < 0):
        history_free(block, action)


cdef inline void note_segment(l0rt_arena* arena, int action, void* ptr, uint64_t size) noexcept nogil:
    if unlikely(arena.recording < 0):
        history_segment(arena, action, ptr, size)
