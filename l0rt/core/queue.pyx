# SPDX-License-Identifier: Apache-2.0
"""Command queues: they execute closed lists, which immediate lists cannot do on every driver; and their fences."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from l0rt.core.cmdlist cimport queue_priority
from l0rt.core.device cimport Device
from l0rt.core.driver cimport Context
from l0rt._base.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP
from l0rt.ze.table cimport ze


cdef ze_result_t queue_execute(ze_command_queue_handle_t queue, uint32_t count, ze_command_list_handle_t* lists,
                               ze_fence_handle_t fence) noexcept nogil:
    return ze.zeCommandQueueExecuteCommandLists(queue, count, lists, fence)


cdef ze_result_t queue_rest(ze_command_queue_handle_t queue, uint64_t timeout_ns) noexcept nogil:
    return ze.zeCommandQueueSynchronize(queue, timeout_ns)


cdef bint queue_is_idle(ze_command_queue_handle_t queue, uint64_t timeout_ns) noexcept nogil:
    return queue_rest(queue, timeout_ns) != ZE_RESULT_NOT_READY     # with an error nothing runs on


cdef bint has_queues() noexcept nogil:
    return (ze.zeCommandQueueCreate != NULL and ze.zeCommandQueueDestroy != NULL
            and ze.zeCommandQueueSynchronize != NULL
            and ze.zeCommandQueueExecuteCommandLists != NULL and ze.zeCommandListCreate != NULL
            and ze.zeCommandListClose != NULL and ze.zeCommandListReset != NULL
            and ze.zeCommandListAppendEventReset != NULL
            and ze.zeFenceCreate != NULL and ze.zeFenceDestroy != NULL and ze.zeFenceHostSynchronize != NULL
            and ze.zeFenceQueryStatus != NULL and ze.zeFenceReset != NULL)


cdef ze_result_t fence_wait(ze_fence_handle_t fence, uint64_t timeout_ns) noexcept nogil:
    return ze.zeFenceHostSynchronize(fence, timeout_ns) if timeout_ns else ze.zeFenceQueryStatus(fence)


cdef ze_result_t fence_reset(ze_fence_handle_t fence) noexcept nogil:
    return ze.zeFenceReset(fence)


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class CommandQueue:
    """An asynchronous queue. Made by ``CommandQueue.create(...)``."""

    def __init__(self):
        raise TypeError("core.CommandQueue is made by CommandQueue.create()")

    @staticmethod
    cdef CommandQueue create(Context context, Device device, uint32_t ordinal, uint32_t index, int priority):
        cdef CommandQueue self = CommandQueue.__new__(CommandQueue)
        cdef ze_command_queue_desc_t desc
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC
        desc.ordinal = ordinal
        desc.index = index
        desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS
        desc.priority = queue_priority(priority)
        self.context = context
        self.device = device
        with nogil:
            CHECK(ze.zeCommandQueueCreate(context._h, device._h, &desc, &self._h))
        return self

    def close(self):
        """Destroy the queue, which must be idle; closing twice is harmless."""
        CommandQueue_release(self)

    def __dealloc__(self):
        CommandQueue_release(self)


made_by(CommandQueue, "core.CommandQueue is made by CommandQueue.create()")


cdef void CommandQueue_release(CommandQueue self) noexcept:
    cdef ze_command_queue_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeCommandQueueDestroy(h), b"zeCommandQueueDestroy")


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Fence:
    """A fence of a queue, not signalled. Made by ``Fence.create(queue)``."""

    def __init__(self):
        raise TypeError("core.Fence is made by Fence.create()")

    @staticmethod
    cdef Fence create(CommandQueue queue):
        cdef Fence self = Fence.__new__(Fence)
        cdef ze_fence_desc_t desc
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_FENCE_DESC
        self.queue = queue
        with nogil:
            CHECK(ze.zeFenceCreate(queue._h, &desc, &self._h))
        return self

    def close(self):
        """Destroy the fence, which no execution signals any more; closing twice is harmless."""
        Fence_release(self)

    def __dealloc__(self):
        Fence_release(self)


made_by(Fence, "core.Fence is made by Fence.create()")


cdef void Fence_release(Fence self) noexcept:
    cdef ze_fence_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeFenceDestroy(h), b"zeFenceDestroy")
