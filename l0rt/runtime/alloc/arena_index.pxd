# SPDX-License-Identifier: Apache-2.0
"""The arenas of a heap by stream and pool: lookup, creation, and recycling after their pool was dropped."""

from l0rt.runtime.alloc.atomics cimport load_int
from l0rt.runtime.alloc.deferred_free cimport pending_poll
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_heap, l0rt_private_pool

# Without a lock.
cdef l0rt_arena* heap_find_arena(l0rt_heap* heap, void* stream, l0rt_private_pool* private_pool) noexcept nogil
cdef l0rt_arena* heap_arena(l0rt_heap* heap, void* stream, l0rt_private_pool* private_pool) noexcept nogil
cdef void heap_reclaim(l0rt_heap* heap) noexcept nogil
# The growth mutex is held, but for the calls of an upstream.
cdef void arenas_reclaim(l0rt_heap* heap) noexcept nogil
cdef void arenas_destroy(l0rt_heap* heap) noexcept nogil


cdef inline void heap_poll(l0rt_heap* heap) noexcept:
    """heap_reclaim for a caller that asks for statistics and holds the GIL, which the calls of an upstream need."""
    if load_int(&heap.has_gone) != 0:
        with nogil:
            pending_poll(heap)      # what other streams used may be in use no more
            heap_reclaim(heap)
