# SPDX-License-Identifier: Apache-2.0
"""Handing over: memory that another stream used last, made safe by a wait on the device and none on the host."""

from libc.stdint cimport uint64_t

from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block, l0rt_heap

# From what is cached: a status, or MISS.
cdef int take_cached(l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil
cdef int merged(l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil
cdef int code_when_closed(l0rt_arena* arena) noexcept nogil

# The growth mutex is held. A status, or MISS: a block that was freed in the order of the arena's stream, or, `any`, in
# whatever order; one that another stream's arena caches; one that is there once all arenas have theirs back.
cdef int returned(l0rt_heap* heap, l0rt_arena* arena, bint any, uint64_t size, size_t nbytes,
                  l0rt_block** out) noexcept nogil
cdef int lent(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil
cdef int recovered(l0rt_heap* heap, l0rt_arena* arena, uint64_t size, size_t nbytes, l0rt_block** out) noexcept nogil
