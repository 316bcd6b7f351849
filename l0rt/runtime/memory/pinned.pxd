# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t

from l0rt.runtime.alloc.atomics cimport l0rt_spin
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block, l0rt_memory_ops, l0rt_private_pool
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream

# Pinned memory that every device of the context reaches. `nbytes` is not 0.
cdef l0rt_arena* host_arena(l0rt_device* device) except NULL nogil
cdef l0rt_block* host_malloc(l0rt_device* device, size_t nbytes) except NULL nogil
# The same from a node's pool, which `pool_asked` finds for an argument `numa`; NULL: memory that is not placed.
# For work of a stream: if that is captured, the graph keeps the memory.
cdef l0rt_block* host_malloc_for(
    l0rt_stream* stream, size_t nbytes, l0rt_private_pool* pool, bint is_given) except NULL nogil
cdef l0rt_private_pool* pool_asked(l0rt_device* device, numa) except? NULL
cdef bint is_pinned(const void* ptr, l0rt_block** block) noexcept nogil

cdef struct l0rt_duration:          # of one kind of driver call, in ns
    uint64_t total
    uint64_t most
    uint64_t least                  # 0: there was no call
    uint64_t count


cdef struct l0rt_host_memory:       # the `self` of a host heap's operations
    l0rt_device* device
    l0rt_spin lock                  # of the durations
    l0rt_duration taken
    l0rt_duration given


cdef l0rt_memory_ops host_ops
cdef void durations_read(l0rt_host_memory* memory, l0rt_duration* taken, l0rt_duration* given) noexcept nogil
cdef void durations_reset(l0rt_host_memory* memory, bint peaks) noexcept nogil
