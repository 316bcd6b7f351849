"""Events: a pool owns its events, all made with it; each is one native flag that the host can wait for."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from l0rt.core.context cimport Context
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


cdef ze_result_t event_reset(ze_event_handle_t event) noexcept nogil:
    """Make a signalled event unsignalled. Never on one that a device may still signal or wait for."""
    return ze.zeEventHostReset(event)


@cython.final
@cython.no_gc
cdef class EventPool:
    """A pool and its ``count`` events. Made by ``EventPool.create(context, count)``."""

    def __init__(self):
        raise TypeError("core.EventPool is made by EventPool.create()")

    @staticmethod
    cdef EventPool create(Context context, uint32_t count):
        if count == 0:
            raise ValueError("an event pool has at least one event")  # some drivers abort on a pool of none
        cdef EventPool self = EventPool.__new__(EventPool)
        cdef ze_event_pool_desc_t pool_desc
        cdef ze_event_desc_t desc
        cdef uint32_t i
        memset(&pool_desc, 0, sizeof(pool_desc))
        pool_desc.stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC
        pool_desc.flags = ZE_EVENT_POOL_FLAG_HOST_VISIBLE
        pool_desc.count = count
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_EVENT_DESC
        desc.signal = desc.wait = ZE_EVENT_SCOPE_FLAG_HOST
        self.context = context
        self.events = <ze_event_handle_t*>calloc(count, sizeof(ze_event_handle_t))
        if self.events == NULL:
            raise MemoryError()
        with nogil:
            # No list of devices: all of the context's, so that any of them may wait for an event of another.
            CHECK(ze.zeEventPoolCreate(context._h, &pool_desc, 0, NULL, &self._h))
            for i in range(count):
                desc.index = i
                CHECK(ze.zeEventCreate(self._h, &desc, &self.events[i]))
                self.count = i + 1
        return self

    def close(self):
        """Destroy the events and the pool; closing twice is harmless."""
        EventPool_release(self)

    def __dealloc__(self):
        EventPool_release(self)
        free(self.events)


cdef void EventPool_release(EventPool self) noexcept:
    cdef ze_event_pool_handle_t h = self._h
    cdef uint32_t i, count = self.count
    self._h = NULL
    self.count = 0
    if h != NULL and table.alive:
        with nogil:
            for i in range(count):
                DROP(ze.zeEventDestroy(self.events[i]), b"zeEventDestroy")
            DROP(ze.zeEventPoolDestroy(h), b"zeEventPoolDestroy")
