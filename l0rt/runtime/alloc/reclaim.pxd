# SPDX-License-Identifier: Apache-2.0
"""Reclaiming: when nothing that is cached fits, above the limit of what is cached, and in the background."""

from libc.stdint cimport uint64_t

from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block, l0rt_heap, l0rt_tuning

# No lock is held.
cdef int grow_waiting(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out,
                      bint* by_limit) noexcept nogil
cdef int uncached_malloc(
    l0rt_heap* heap, l0rt_arena* arena, size_t nbytes, l0rt_block** out, bint* by_limit
) noexcept nogil
cdef int uncached_return(l0rt_heap* heap, l0rt_arena* arena) noexcept nogil
cdef int heap_wait(l0rt_heap* heap, l0rt_arena* only) noexcept nogil
cdef void unstack_all(l0rt_heap* heap) noexcept nogil

# The growth mutex is held.
cdef uint64_t give_back(l0rt_heap* heap, uint64_t wanted) noexcept nogil

# The limit on what a heap caches. No lock is held, nor the GIL.
cdef void bound_keep(l0rt_heap* heap) noexcept nogil

# Let the background thread look after the heap too, and start it if there is none: 0, or why there is no thread.
cdef int background_add(l0rt_heap* heap) noexcept nogil
# End it, if there is one. False: it did not end in time, for it is in the driver.
cdef bint background_end() noexcept nogil
# In a forked child, which does not have it.
cdef void background_forget() noexcept nogil
