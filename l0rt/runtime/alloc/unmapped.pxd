# SPDX-License-Identifier: Apache-2.0
"""Unmapped spans: addresses of ranges that have no memory, and the places among them that are about to get some."""

from libc.stdint cimport int64_t, uint64_t

from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block, l0rt_heap

# The arena's lock is held.
cdef void span_list(l0rt_block* span) noexcept nogil
cdef void span_join(l0rt_block* block) noexcept nogil

# The growth mutex is held: nobody else changes unmapped spans.
cdef l0rt_block* place_hold(l0rt_heap* heap, l0rt_arena* arena, int pool, uint64_t size) noexcept nogil
cdef uint64_t place_extend(l0rt_heap* heap, l0rt_block* held) noexcept nogil
cdef bint place_move_end(l0rt_block* held, int64_t more) noexcept nogil
