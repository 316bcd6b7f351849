# SPDX-License-Identifier: Apache-2.0
"""Events: a pool owns its events, all made with it; each is one native flag that the host can wait for."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from l0rt.core.driver cimport Context
from l0rt._base.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP
from l0rt.ze.table cimport ze


cdef ze_result_t event_wait(ze_event_handle_t event, uint64_t timeout_ns) noexcept nogil:
    """Wait on the host: SUCCESS, NOT_READY after ``timeout_ns``, or what went wrong."""
    return ze.zeEventHostSynchronize(event, timeout_ns)


cdef ze_result_t event_query(ze_event_handle_t event) noexcept nogil:
    """SUCCESS once signalled, NOT_READY before."""
    return ze.zeEventQueryStatus(event)


cdef ze_result_t event_signal(ze_event_handle_t event) noexcept nogil:
    """Make an event signalled by the host, in the place of a device that never will."""
    return ze.zeEventHostSignal(event)


cdef ze_result_t event_reset(ze_event_handle_t event) noexcept nogil:
    """Make a signalled event unsignalled. Never on one that a device may still signal or wait for."""
    return ze.zeEventHostReset(event)


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class EventPool:
    """A pool and its ``count`` events. Made by ``EventPool.create()`` and ``EventPool.open_ipc()``."""

    def __init__(self):
        raise TypeError("core.EventPool is made by EventPool.create()")

    @staticmethod
    cdef EventPool create(Context context, uint32_t count, bint counter_based, bint interprocess,
                          uint32_t device_count, ze_device_handle_t* devices):
        """A pool for these devices, any of which may wait for an event of another; 0: all of the context's. Some
        drivers keep its memory on the first."""
        if count == 0:
            raise ValueError("an event pool must have at least one event, got 0")  # some drivers abort on 0
        cdef EventPool self = EventPool.__new__(EventPool)
        cdef ze_event_pool_counter_based_exp_desc_t points
        cdef ze_event_pool_desc_t desc
        memset(&points, 0, sizeof(points))
        points.stype = ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC
        points.flags = ZE_EVENT_POOL_COUNTER_BASED_EXP_FLAG_IMMEDIATE
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC
        desc.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE | (ZE_EVENT_POOL_FLAG_IPC if interprocess else 0)
        desc.count = count
        if counter_based:
            desc.pNext = &points
        self.context = context
        with nogil:
            CHECK(ze.zeEventPoolCreate(context._h, &desc, device_count, devices, &self._h))
        EventPool_fill(self, count)
        return self

    @staticmethod
    cdef EventPool open_ipc(Context context, bytes handle):
        """The pool of one event that another process has exported."""
        cdef EventPool self = EventPool.__new__(EventPool)
        cdef ze_ipc_event_pool_handle_t ipc
        if len(handle) != sizeof(ipc.data):
            raise ValueError(f"an event's handle must have {sizeof(ipc.data)} bytes, got {len(handle)}")
        memcpy(ipc.data, <const char*>handle, sizeof(ipc.data))
        self.context = context
        with nogil:
            CHECK(ze.zeEventPoolOpenIpcHandle(context._h, ipc, &self._h))
        self.imported = True
        EventPool_fill(self, 1)
        return self

    cdef bytes ipc_handle(self):
        """What another process opens the pool with, as long as this pool is there."""
        cdef ze_ipc_event_pool_handle_t ipc
        with nogil:
            CHECK(ze.zeEventPoolGetIpcHandle(self._h, &ipc))
        return ipc.data[:sizeof(ipc.data)]

    def close(self):
        """Destroy the events and the pool; closing twice is harmless."""
        EventPool_release(self)

    def __dealloc__(self):
        EventPool_release(self)
        free(self.events)


made_by(EventPool, "core.EventPool is made by EventPool.create()")


cdef int EventPool_fill(EventPool self, uint32_t count) except -1:
    cdef ze_event_desc_t desc
    cdef uint32_t i
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_EVENT_DESC
    desc.signal = desc.wait = ZE_EVENT_SCOPE_FLAG_HOST
    self.events = <ze_event_handle_t*>calloc(count, sizeof(ze_event_handle_t))
    if self.events == NULL:
        raise MemoryError()
    with nogil:
        for i in range(count):
            desc.index = i
            CHECK(ze.zeEventCreate(self._h, &desc, &self.events[i]))
            self.count = i + 1
    return 0


cdef void EventPool_release(EventPool self) noexcept:
    cdef ze_event_pool_handle_t h = self._h
    cdef uint32_t i, count = self.count
    self._h = NULL
    self.count = 0
    if h != NULL and table.alive:
        with nogil:
            for i in range(count):
                DROP(ze.zeEventDestroy(self.events[i]), b"zeEventDestroy")
            if self.imported:
                DROP(ze.zeEventPoolCloseIpcHandle(h), b"zeEventPoolCloseIpcHandle")
            else:
                DROP(ze.zeEventPoolDestroy(h), b"zeEventPoolDestroy")
