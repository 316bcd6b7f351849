# SPDX-License-Identifier: Apache-2.0
"""The raw driver: what its calls cost from C with nothing of l0rt around them, for the bench to compare with.

Every loop runs its calls ``n`` times and returns the nanoseconds that they took. What a loop needs before or leaves
behind (resetting events, draining the list) is not counted.
"""

from libc.stdint cimport UINT64_MAX, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.core.cmdlist cimport CommandList
from l0rt.core.context cimport Context
from l0rt.core.device cimport Device
from l0rt.core.event cimport EventPool
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, CHECK_READY
from l0rt.ze.table cimport ze

from l0rt.errors import UnsupportedError


def open_list(Context context, Device device):
    """Return an immediate list like that of a stream."""
    return CommandList.immediate(context, device, device.info.compute_ordinal, 0, 0, device.driver.caps.inorder)


def open_events(Context context, unsigned int count):
    """Return a pool with ``count`` events."""
    return EventPool.create(context, count, False, False)


# Memory.

cdef int _allocate(Context context, Device device, size_t nbytes, void** out) except -1 nogil:
    cdef ze_device_mem_alloc_desc_t desc
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC
    return CHECK(ze.zeMemAllocDevice(context._h, &desc, nbytes, 0, device._h, out))


def allocate_free(Context context, Device device, const uint64_t[::1] sizes, uint64_t n):
    """zeMemAllocDevice and zeMemFree, going round the ``sizes``, whose number is a power of two."""
    cdef uint64_t i, start, spent, mask = sizes.shape[0] - 1
    cdef const uint64_t* size = &sizes[0]
    cdef void* ptr
    with nogil:
        start = now_ns()
        for i in range(n):
            _allocate(context, device, size[i & mask], &ptr)
            CHECK(ze.zeMemFree(context._h, ptr))
        spent = now_ns() - start
    return spent


def replay(Context context, Device device, const unsigned char[::1] ops, const uint64_t[::1] slots,
           const uint64_t[::1] sizes, uint64_t n):
    """The first ``n`` operations of a trace, each one driver call: 0 allocates into a slot, 1 frees it."""
    cdef uint64_t i, start, spent, count = 0
    cdef const unsigned char* op = &ops[0]
    cdef const uint64_t* slot = &slots[0]
    cdef const uint64_t* size = &sizes[0]
    for i in range(n):
        count = max(count, slot[i] + 1)
    cdef void** live = <void**>calloc(count + 1, sizeof(void*))
    if live == NULL:
        raise MemoryError()
    try:
        with nogil:
            start = now_ns()
            for i in range(n):
                if op[i] == 0:
                    _allocate(context, device, size[i], &live[slot[i]])
                else:
                    CHECK(ze.zeMemFree(context._h, live[slot[i]]))
                    live[slot[i]] = NULL
            spent = now_ns() - start
        return spent
    finally:
        with nogil:
            for i in range(count):
                if live[i] != NULL:
                    CHECK(ze.zeMemFree(context._h, live[i]))
        free(live)


# Events.

def event_create_destroy(Context context, Device device, uint64_t n):
    """zeEventCreate and zeEventDestroy in a pool that is there already."""
    cdef ze_event_pool_desc_t pool_desc
    cdef ze_event_desc_t desc
    cdef ze_event_pool_handle_t pool = NULL
    cdef ze_event_handle_t event
    cdef uint64_t _i, start, spent
    memset(&pool_desc, 0, sizeof(pool_desc))
    pool_desc.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC
    pool_desc.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE
    pool_desc.count = 1
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_EVENT_DESC
    desc.signal = desc.wait = ZE_EVENT_SCOPE_FLAG_HOST
    with nogil:
        CHECK(ze.zeEventPoolCreate(context._h, &pool_desc, 1, &device._h, &pool))
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeEventCreate(pool, &desc, &event))
            CHECK(ze.zeEventDestroy(event))
        spent = now_ns() - start
        CHECK(ze.zeEventPoolDestroy(pool))
    return spent


def signal(CommandList list, EventPool pool, uint64_t n):
    """zeCommandListAppendSignalEvent; ``n`` is at most the pool's count."""
    cdef uint64_t i, start, spent
    with nogil:
        start = now_ns()
        for i in range(n):
            CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[i]))
        spent = now_ns() - start
        _drain(list, pool)
        _reset(pool, n)
    return spent


def wait_on(CommandList list, EventPool pool, uint64_t n):
    """zeCommandListAppendWaitOnEvents for an event that is complete when the device comes to it."""
    cdef uint64_t _i, start, spent
    with nogil:
        CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[0]))
        _drain(list, pool)
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListAppendWaitOnEvents(list._h, 1, &pool.events[0]))
        spent = now_ns() - start
        _drain(list, pool)
        _reset(pool, 1)
    return spent


def query(CommandList list, EventPool pool, uint64_t n):
    """zeEventQueryStatus of a complete event."""
    cdef uint64_t _i, start, spent
    with nogil:
        CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[0]))
        CHECK(ze.zeEventHostSynchronize(pool.events[0], UINT64_MAX))
        start = now_ns()
        for _i in range(n):
            CHECK_READY(ze.zeEventQueryStatus(pool.events[0]))
        spent = now_ns() - start
        _reset(pool, 1)
    return spent


def query_pending(CommandList list, EventPool pool, size_t dst, size_t nbytes, int fills, uint64_t n):
    """zeEventQueryStatus while ``fills`` long fills stand before the event; scaled to ``n`` if they end before."""
    cdef uint64_t start, spent, done = 0
    cdef unsigned char zero = 0
    cdef int _i
    with nogil:
        for _i in range(fills):
            CHECK(ze.zeCommandListAppendMemoryFill(list._h, <void*>dst, &zero, 1, nbytes, NULL, 0, NULL))
        CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[0]))
        start = now_ns()
        while done < n and not CHECK_READY(ze.zeEventQueryStatus(pool.events[0])):
            done += 1
        spent = now_ns() - start
        CHECK(ze.zeEventHostSynchronize(pool.events[0], UINT64_MAX))
        _drain(list, pool)
        _reset(pool, 1)
    return spent * n / <double>(done + 1)


def event_synchronize(CommandList list, EventPool pool, uint64_t n):
    """zeEventHostSynchronize of a complete event."""
    cdef uint64_t _i, start, spent
    with nogil:
        CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[0]))
        CHECK(ze.zeEventHostSynchronize(pool.events[0], UINT64_MAX))
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeEventHostSynchronize(pool.events[0], UINT64_MAX))
        spent = now_ns() - start
        _reset(pool, 1)
    return spent


def signal_query_synchronize(CommandList list, EventPool pool, uint64_t n):
    """AppendSignalEvent, EventQueryStatus, EventHostSynchronize; ``n`` is at most the pool's count."""
    cdef uint64_t i, start, spent
    with nogil:
        start = now_ns()
        for i in range(n):
            CHECK(ze.zeCommandListAppendSignalEvent(list._h, pool.events[i]))
            CHECK_READY(ze.zeEventQueryStatus(pool.events[i]))
            CHECK(ze.zeEventHostSynchronize(pool.events[i], UINT64_MAX))
        spent = now_ns() - start
        _reset(pool, n)
    return spent


# Copies, fills, waits.

def copy(CommandList list, EventPool pool, size_t dst, size_t src, size_t nbytes, uint64_t n):
    """zeCommandListAppendMemoryCopy: the append alone."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListAppendMemoryCopy(list._h, <void*>dst, <void*>src, nbytes, NULL, 0, NULL))
        spent = now_ns() - start
        _drain(list, pool)
    return spent


def copy_synchronize(CommandList list, EventPool pool, size_t dst, size_t src, size_t nbytes, uint64_t n):
    """A copy and the wait for its end."""
    cdef uint64_t _i, start, spent
    with nogil:
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListAppendMemoryCopy(list._h, <void*>dst, <void*>src, nbytes, NULL, 0, NULL))
            _drain(list, pool)
        spent = now_ns() - start
    return spent


def fill(CommandList list, EventPool pool, size_t dst, size_t nbytes, uint64_t n):
    """zeCommandListAppendMemoryFill with a pattern of one byte: the append alone."""
    cdef uint64_t _i, start, spent
    cdef unsigned char zero = 0
    with nogil:
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListAppendMemoryFill(list._h, <void*>dst, &zero, 1, nbytes, NULL, 0, NULL))
        spent = now_ns() - start
        _drain(list, pool)
    return spent


def idle_synchronize(CommandList list, uint64_t n):
    """zeCommandListHostSynchronize of an idle list."""
    cdef uint64_t _i, start, spent
    if not list.device.driver.caps.list_sync:
        raise UnsupportedError("this driver has no zeCommandListHostSynchronize")
    with nogil:
        CHECK(ze.zeCommandListHostSynchronize(list._h, UINT64_MAX))
        start = now_ns()
        for _i in range(n):
            CHECK(ze.zeCommandListHostSynchronize(list._h, UINT64_MAX))
        spent = now_ns() - start
    return spent


cdef int _drain(CommandList list, EventPool pool) except -1 nogil:
    """Wait for everything appended, in the way that this driver has. The pool's last event is kept for this."""
    cdef ze_event_handle_t last = pool.events[pool.count - 1]
    if list.device.driver.caps.list_sync:
        return CHECK(ze.zeCommandListHostSynchronize(list._h, UINT64_MAX))
    CHECK(ze.zeCommandListAppendBarrier(list._h, last, 0, NULL))
    CHECK(ze.zeEventHostSynchronize(last, UINT64_MAX))
    return CHECK(ze.zeEventHostReset(last))


cdef int _reset(EventPool pool, uint64_t n) except -1 nogil:
    cdef uint64_t i
    for i in range(n):
        CHECK(ze.zeEventHostReset(pool.events[i]))
    return 0
