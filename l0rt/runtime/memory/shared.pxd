# SPDX-License-Identifier: Apache-2.0
"""Shared memory: straight from the driver, and which address is in which of it. The GIL is the lock."""

from l0rt.runtime.streams.types cimport l0rt_device

cdef struct l0rt_extent:
    size_t base
    size_t nbytes
    int device

cdef void* shared_malloc(l0rt_device* device, size_t nbytes) except NULL
cdef void shared_free(l0rt_device* device, void* ptr) noexcept
cdef const l0rt_extent* shared_find(size_t address) noexcept
