# SPDX-License-Identifier: Apache-2.0
"""Shared memory: straight from the driver, and which address is in which of it. The GIL is the lock.

It is not cached, so the allocators' map does not know it, and each of it costs a driver call far above a search.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport realloc
from libc.string cimport memmove

from l0rt.core.memory cimport memory_release, memory_shared
from l0rt.runtime.memory.operations cimport told
from l0rt.runtime.streams.stream_pool cimport context_rest
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport device_fails, refuse
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_result_t
from l0rt.ze.status cimport DROP

cdef l0rt_extent* extents = NULL        # in the order of addresses
cdef int64_t count = 0
cdef int64_t capacity = 0


cdef int64_t above(size_t address) noexcept:
    """How many begin at the address or below it."""
    cdef int64_t low = 0, high = count, middle
    while low < high:
        middle = (low + high) // 2
        if extents[middle].base <= address:
            low = middle + 1
        else:
            high = middle
    return low


cdef void* shared_malloc(l0rt_device* device, size_t nbytes) except NULL:
    """Memory of the device and the host."""
    cdef void* ptr = NULL
    cdef ze_result_t r
    if not table.alive or device.lost:
        refuse(device)
    with nogil:
        r = memory_shared(device.context, device.handle, nbytes, &ptr)
        if r != ZE_RESULT_SUCCESS:
            device_fails(device, r)
    try:
        remember(ptr, nbytes, device.index)
    except MemoryError:
        with nogil:
            DROP(memory_release(device.context, False, ptr), b"zeMemFree")
        raise
    return ptr


cdef void shared_free(l0rt_device* device, void* ptr) noexcept:
    """Give it back; the driver waits for who uses it, or l0rt does."""
    cdef bint blocking = device.caps.free_ext
    forget(ptr)                         # first: another thread may be given the address at once
    if table.alive:
        with nogil:
            if not blocking:
                context_rest(device)
            told(device, memory_release(device.context, blocking, ptr), b"zeMemFree")


cdef int remember(void* ptr, size_t nbytes, int device) except -1:
    global extents, count, capacity
    cdef int64_t place
    cdef l0rt_extent* grown
    if count == capacity:
        grown = <l0rt_extent*>realloc(extents, (2 * capacity + 16) * sizeof(l0rt_extent))
        if grown == NULL:
            raise MemoryError("no host memory to remember shared memory by")
        extents, capacity = grown, 2 * capacity + 16
    place = above(<size_t>ptr)
    memmove(&extents[place + 1], &extents[place], (count - place) * sizeof(l0rt_extent))
    extents[place].base, extents[place].nbytes, extents[place].device = <size_t>ptr, nbytes, device
    count += 1
    return 0


cdef void forget(void* ptr) noexcept:
    global count
    cdef int64_t place = above(<size_t>ptr) - 1
    if place >= 0 and extents[place].base == <size_t>ptr:
        count -= 1
        memmove(&extents[place], &extents[place + 1], (count - place) * sizeof(l0rt_extent))


cdef const l0rt_extent* shared_find(size_t address) noexcept:
    """What holds the address, wherever in it; NULL if nothing does. To be read before the GIL is given up."""
    cdef int64_t place = above(address) - 1
    if place >= 0 and address - extents[place].base < extents[place].nbytes:
        return &extents[place]
    return NULL
