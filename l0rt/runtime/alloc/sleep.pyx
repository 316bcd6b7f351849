# SPDX-License-Identifier: Apache-2.0
"""Sleep: a pool without memory that keeps its addresses, so that what points there is right again once it wakes."""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t

from l0rt.runtime.alloc.atomics cimport load_int, mutex_lock, mutex_unlock, spin_lock, spin_unlock, store_int
from l0rt.runtime.alloc.reclaim cimport give_back, heap_wait, unstack_all
from l0rt.runtime.alloc.segment cimport segments_settle
from l0rt.runtime.alloc.share cimport is_asleep, private_pool_of
from l0rt.runtime.alloc.stats cimport count_reserved, heap_arenas, heap_available
from l0rt.runtime.alloc.types cimport (
    L0RT_INVALID_POINTER,
    L0RT_OK,
    L0RT_OUT_OF_MEMORY,
    l0rt_arena,
    l0rt_granule,
    l0rt_segment,
)


cdef void range_sleep(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    """Take all memory out of a range and remember where it was."""
    cdef uint64_t count = segment.size // heap.granule, i
    cdef l0rt_granule* granule
    cdef int calls = 0
    cdef int64_t bytes = 0
    for i in range(count):
        granule = &segment.granules[i]
        if granule.count != 0 and granule.first == i and granule.physical != NULL:
            if heap.ops.physical_mem_unmap(heap.self, <char*>segment.base + i * heap.granule,
                                           granule.count * heap.granule, granule.physical) != L0RT_OK:
                continue            # it stays mapped: nothing else could be mapped there
            heap.ops.physical_mem_destroy(heap.self, granule.physical, granule.count * heap.granule)
            granule.physical = NULL
            bytes += granule.count * heap.granule
            calls += 1
    count_reserved(heap, segment, -bytes, 0, calls)


cdef int range_wake(l0rt_heap* heap, l0rt_segment* segment) noexcept nogil:
    """Memory, where there was some before the sleep. What was mapped until a failure stays."""
    cdef uint64_t count = segment.size // heap.granule, i, nbytes
    cdef l0rt_granule* granule
    cdef int status = L0RT_OK
    for i in range(count):
        granule = &segment.granules[i]
        if granule.count == 0 or granule.first != i or granule.physical != NULL:
            continue
        nbytes = granule.count * heap.granule
        if <int64_t>nbytes > heap_available(heap, NULL):
            return L0RT_OUT_OF_MEMORY
        status = heap.ops.physical_mem_create(heap.self, nbytes, &granule.physical)
        if status == L0RT_OK:
            status = heap.ops.physical_mem_map(
                heap.self, <char*>segment.base + i * heap.granule, nbytes, granule.physical)
            if status != L0RT_OK:
                heap.ops.physical_mem_destroy(heap.self, granule.physical, nbytes)
        if status != L0RT_OK:
            granule.physical = NULL
            return L0RT_OUT_OF_MEMORY if heap.ops.is_oom(status) else status
        count_reserved(heap, segment, nbytes, 0, 1)
    return status


cdef bint heap_can_sleep(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """False: the pool has ordinary segments, whose addresses go with their memory."""
    cdef bint can
    if load_int(&heap.closed) != 0:
        return True
    mutex_lock(&heap.growth)
    can = has_ranges_only(heap, private_pool)
    mutex_unlock(&heap.growth)
    return can


cdef bint has_ranges_only(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    cdef l0rt_arena* arena = heap_arenas(heap)
    cdef l0rt_segment* segment
    while arena != NULL:
        segment = arena.segments if private_pool_of(arena) == private_pool else NULL
        while segment != NULL:
            if segment.granules == NULL:
                return False
            segment = segment.next
        arena = arena.next
    return True


cdef int heap_sleep(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """Give back the memory of a pool, whatever is allocated there, and keep its addresses. Its streams' work is done.
    L0RT_INVALID_POINTER: the pool cannot sleep. Of a pool in several heaps, each is told."""
    cdef int status = L0RT_INVALID_POINTER
    if load_int(&heap.closed) != 0:
        return load_int(&heap.closed)
    mutex_lock(&heap.growth)
    if has_ranges_only(heap, private_pool):
        status = L0RT_OK
        store_int(&private_pool.is_asleep, True)
        pass_by(heap, private_pool)
        sleep_all(heap, private_pool)
    mutex_unlock(&heap.growth)
    return status


cdef void pass_by(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """Whoever has looked whether the pool sleeps, under an arena's lock, has got what it took."""
    cdef l0rt_arena* arena = heap_arenas(heap)
    while arena != NULL:
        if private_pool_of(arena) == private_pool and spin_lock(&arena.lock):
            spin_unlock(&arena.lock)
        arena = arena.next


cdef void sleep_all(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    cdef l0rt_arena* arena = heap_arenas(heap)
    cdef l0rt_segment* segment
    while arena != NULL:
        segment = arena.segments if private_pool_of(arena) == private_pool else NULL
        while segment != NULL:
            range_sleep(heap, segment)
            segment = segment.next
        arena = arena.next


cdef int wake_all(l0rt_heap* heap, l0rt_private_pool* private_pool) noexcept nogil:
    """Memory for all ranges that have none yet; what others cache, and no work uses, goes back where it is needed."""
    cdef l0rt_arena* arena = heap_arenas(heap)
    cdef l0rt_segment* segment
    cdef int status = L0RT_OK
    while arena != NULL and is_asleep(private_pool) and status == L0RT_OK:
        segment = arena.segments if private_pool_of(arena) == private_pool else NULL
        while segment != NULL and status == L0RT_OK:
            status = range_wake(heap, segment)
            if status == L0RT_OUT_OF_MEMORY:
                heap.requester = arena
                unstack_all(heap)
                segments_settle(heap, NULL)
                give_back(heap, UINT64_MAX)
                status = range_wake(heap, segment)
            segment = segment.next
        arena = arena.next
    return status


cdef int heap_wake(l0rt_heap* heap, l0rt_private_pool* private_pool, bint is_last) noexcept nogil:
    """Give a sleeping pool memory again; the last of its heaps ends the sleep. On a failure it has none in this one."""
    cdef int status
    if load_int(&heap.closed) != 0:
        return load_int(&heap.closed)
    mutex_lock(&heap.growth)
    status = wake_all(heap, private_pool)
    if status == L0RT_OUT_OF_MEMORY:
        sleep_all(heap, private_pool)  # others may need it meanwhile
        mutex_unlock(&heap.growth)
        status = heap_wait(heap, NULL)
        mutex_lock(&heap.growth)
        if status == L0RT_OK:
            status = wake_all(heap, private_pool)
    if status != L0RT_OK:
        sleep_all(heap, private_pool)
    elif is_last:
        store_int(&private_pool.is_asleep, False)
    mutex_unlock(&heap.growth)
    return status
