"""A bound on what a heap caches. Above it, the segments go back that have been free for longest, and then whatever is
free of ranges; what is in use does not count.

Only what a memory operation may give back can be: where free blocks lie between used ones, the heap stays above its
bound, and then has no class stacks, so that the next block to be freed is merged, and seen, at once.
"""

from libc.stdint cimport uint64_t

from l0rt.runtime.alloc.arena cimport arena_unstack
from l0rt.runtime.alloc.atomics cimport load_int, mutex_trylock, mutex_unlock, spin_lock, spin_unlock
from l0rt.runtime.alloc.expandable_segment cimport ranges_release
from l0rt.runtime.alloc.recount cimport heap_arenas, heap_cached_bytes, heap_is_over
from l0rt.runtime.alloc.segment cimport segments_release, segments_settle
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_heap


cdef void bound_keep(l0rt_heap* heap) noexcept nogil:
    """Give back what is above the bound. Whoever grows or gives back just now looks for itself, and is not waited for:
    it may be waiting for work, which may wait for us."""
    if not heap_is_over(heap, 0) or load_int(&heap.closed) != 0 or mutex_trylock(&heap.growth) != 0:
        return
    heap.asker = NULL
    segments_settle(heap, NULL)
    release(heap)
    if heap_is_over(heap, 0):
        close_stacks(heap)
        segments_settle(heap, NULL)
        release(heap)
    mutex_unlock(&heap.growth)


cdef void release(l0rt_heap* heap) noexcept nogil:
    cdef uint64_t excess
    if heap_is_over(heap, 0):
        excess = heap_cached_bytes(heap) - heap.tuning.cached_most
        segments_release(heap, NULL, excess, True)
    if heap_is_over(heap, 0):
        ranges_release(heap, NULL, heap_cached_bytes(heap) - heap.tuning.cached_most)


cdef void close_stacks(l0rt_heap* heap) noexcept nogil:
    cdef l0rt_arena* arena = heap_arenas(heap)
    while arena != NULL:
        if spin_lock(&arena.lock):
            arena_unstack(arena)
            arena.stack_room -= arena.stack_cap
            arena.stack_cap = 0
            spin_unlock(&arena.lock)
        arena = arena.next
