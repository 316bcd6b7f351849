# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int64_t, uint64_t

from l0rt.runtime.alloc.types cimport l0rt_block, l0rt_heap, l0rt_private_pool
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream

cdef l0rt_heap* device_heap(l0rt_device* device) except NULL nogil
cdef int trim(int index, l0rt_stream* stream, l0rt_private_pool* private_pool) except -1 nogil
# Everything that a cached block cannot answer; never with the GIL held. `nbytes` is not 0.
cdef l0rt_block* malloc_slow(l0rt_stream* stream, size_t nbytes) except NULL nogil
cdef void* shared_take(l0rt_device* device, size_t nbytes) except NULL
# Of the device that Python names; 0 before anything was allocated.
cdef int64_t allocated_bytes(device) except -1
cdef int64_t reserved_bytes(device) except -1
cdef int raise_status(int status, const void* ptr) except -1 nogil

cdef int note_oom(l0rt_heap* heap, uint64_t free, uint64_t nbytes) except -1
cdef int raise_wake_oom(l0rt_device* device, l0rt_private_pool* private_pool) except -1
