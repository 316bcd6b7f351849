# SPDX-License-Identifier: Apache-2.0

from l0rt.runtime.alloc.types cimport l0rt_block, l0rt_heap, l0rt_heap_options, l0rt_memory_ops
from l0rt.runtime.streams.types cimport l0rt_device
from l0rt.ze.api cimport ze_result_t

cdef l0rt_memory_ops device_ops

# How much memory the machine has.
cdef size_t machine_memory() noexcept nogil

cdef void device_options(l0rt_device* device, l0rt_heap_options* options) noexcept nogil
# Let heaps mark for the CPU driver what they allocate, if it checks bounds.
cdef int mark_memory(l0rt_device* device) except -1
cdef void stream_ops(l0rt_memory_ops* ops) noexcept
# Are the streams that order this heap's memory l0rt's?
cdef bint knows_streams(const l0rt_heap* heap) noexcept nogil
# What a call that gives something back said: a failure is warned of once the GIL is there.
cdef int told(l0rt_device* device, ze_result_t result, const char* call) noexcept nogil
cdef void block_let_go(l0rt_block* block) noexcept nogil
cdef void forget_heap(l0rt_heap* heap) noexcept nogil
cdef int close_heap(l0rt_heap* heap, l0rt_device* device, bint* held) except -1

cdef struct l0rt_extent:
    size_t base
    size_t nbytes
    int device
    bint is_imported        # device memory of another process

cdef void* shared_malloc(l0rt_device* device, size_t nbytes) except NULL
cdef void shared_free(l0rt_device* device, void* ptr) noexcept
cdef const l0rt_extent* shared_find(size_t address) noexcept
cdef bint shared_is_held() noexcept
cdef int extent_add(void* ptr, size_t nbytes, int device, bint is_imported) except -1
cdef void extent_remove(void* ptr) noexcept
# Who decides about a block that other processes have a handle of, when its owner frees it. True: it stays.
cdef void set_shared_keeper(bint (*keep)(l0rt_block*) noexcept) noexcept
# Who ends a Buffer of memory of another process.
cdef void set_import_end(void (*end)(void*) noexcept) noexcept
