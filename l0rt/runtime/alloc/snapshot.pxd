# SPDX-License-Identifier: Apache-2.0
"""What a heap consists of at one moment: every block, segment by segment."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from l0rt.runtime.alloc.types cimport l0rt_heap

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
    bint is_expandable

cdef int64_t heap_snapshot(l0rt_heap* heap, l0rt_block_info* out, int64_t capacity) noexcept nogil
