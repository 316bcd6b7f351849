# SPDX-License-Identifier: Apache-2.0
"""Blocks that other streams use: on free they wait until those streams' work is done."""

from libc.stdint cimport int64_t, uint32_t

from l0rt.runtime.alloc.atomics cimport load
from l0rt.runtime.alloc.types cimport l0rt_block, l0rt_heap, l0rt_pending_use

# The stream uses the block, from now until it is freed; or it has used it, until now; or from its free on the block is
# reused in that stream's order.
cdef int block_use(l0rt_block* block, void* stream) noexcept nogil
cdef int block_mark(l0rt_block* block, void* stream) noexcept nogil
# The streams that use the block beside its own, one a call: `next` is 0 at first. NULL: no more.
cdef void* block_user(l0rt_block* block, int* next) noexcept nogil
# Other processes have a handle of the block: a number other than 0 that its owner gives. 0: they have none any more.
cdef int block_share(l0rt_block* block, uint32_t number) noexcept nogil
cdef int block_move(l0rt_block* block, void* stream) noexcept nogil

cdef int pending_add(l0rt_heap* heap, l0rt_block* block) noexcept nogil
cdef int64_t pending_poll(l0rt_heap* heap) noexcept nogil
cdef int pending_wait(l0rt_heap* heap) noexcept nogil
cdef void pending_destroy(l0rt_heap* heap) noexcept nogil

# For cross-stream reuse: take pending blocks out of the queues and put them back; cache blocks without uses.
cdef int queues_add(l0rt_heap* heap, l0rt_block* block, l0rt_pending_use* pending_list) noexcept nogil
cdef void pending_drop(l0rt_heap* heap, l0rt_pending_use* pending) noexcept nogil
cdef void pending_finish(l0rt_heap* heap, l0rt_block* block) noexcept nogil


cdef inline void* block_order(l0rt_block* block) noexcept nogil:
    """The stream in whose order the block was allocated."""
    cdef void* order = load(&block.order)
    return order if order != NULL else block.arena.stream
