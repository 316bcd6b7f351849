# SPDX-License-Identifier: Apache-2.0
"""Command lists, immediate and regular, and the commands that are appended to them."""

cimport cython
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from l0rt.core.driver cimport Context
from l0rt.core.device cimport Device
from l0rt._base.factory cimport made_by
from l0rt.ze cimport table
from l0rt.ze.api cimport *
from l0rt.ze.status cimport CHECK, DROP
from l0rt.ze.table cimport ze


cdef ze_result_t list_barrier(ze_command_list_handle_t list, ze_event_handle_t signal) noexcept nogil:
    """Hold back every later command until all earlier ones are done; then signal, if ``signal`` is not NULL."""
    return ze.zeCommandListAppendBarrier(list, signal, 0, NULL)


cdef ze_result_t list_signal(ze_command_list_handle_t list, ze_event_handle_t event) noexcept nogil:
    """Signal ``event`` when its turn comes: on an in-order list, once everything earlier is done."""
    return ze.zeCommandListAppendSignalEvent(list, event)


cdef ze_result_t list_wait(
    ze_command_list_handle_t list, uint32_t count, ze_event_handle_t* events) noexcept nogil:
    """Hold back every later command of the list until all ``events`` are signalled."""
    return ze.zeCommandListAppendWaitOnEvents(list, count, events)


cdef ze_result_t list_copy(
    ze_command_list_handle_t list, void* dst, const void* src, size_t nbytes, ze_event_handle_t signal) noexcept nogil:
    """Copy ``nbytes``, then signal, if ``signal`` is not NULL; the ranges must not overlap."""
    return ze.zeCommandListAppendMemoryCopy(list, dst, src, nbytes, signal, 0, NULL)


cdef ze_result_t list_copy_rows(
    ze_command_list_handle_t list, void* dst, uint32_t dst_pitch, const void* src, uint32_t src_pitch,
    uint32_t width, uint32_t height, ze_event_handle_t signal) noexcept nogil:
    """Copy ``height`` rows of ``width`` bytes, which must not overlap, then signal, if ``signal`` is not NULL.

    UNSUPPORTED_FEATURE without such a command.
    """
    cdef ze_copy_region_t region
    cdef ze_result_t r
    if ze.zeCommandListAppendMemoryCopyRegion == NULL:
        return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE
    memset(&region, 0, sizeof(region))
    region.width, region.height = width, height
    r = ze.zeCommandListAppendMemoryCopyRegion(
        list, dst, &region, dst_pitch, 0, src, &region, src_pitch, 0, signal, 0, NULL)
    return ZE_RESULT_ERROR_UNSUPPORTED_FEATURE if r == ZE_RESULT_ERROR_UNINITIALIZED else r


cdef ze_result_t list_fill(
    ze_command_list_handle_t list, void* dst, const void* pattern, size_t pattern_size,
    size_t nbytes) noexcept nogil:
    """Repeat ``pattern`` over ``nbytes``; its size is a power of two. The pattern is read now."""
    return ze.zeCommandListAppendMemoryFill(list, dst, pattern, pattern_size, nbytes, NULL, 0, NULL)


cdef ze_result_t list_timestamp(
    ze_command_list_handle_t list, uint64_t* ticks, ze_event_handle_t signal) noexcept nogil:
    """Write the device's clock to ``ticks`` (USM, 8-byte aligned), then signal."""
    return ze.zeCommandListAppendWriteGlobalTimestamp(list, ticks, signal, 0, NULL)


cdef ze_result_t list_reset_event(ze_command_list_handle_t list, ze_event_handle_t event) noexcept nogil:
    return ze.zeCommandListAppendEventReset(list, event)


cdef ze_result_t list_reset(ze_command_list_handle_t list) noexcept nogil:
    return ze.zeCommandListReset(list)


cdef ze_result_t list_next_id(ze_command_list_handle_t list, uint64_t* number) noexcept nogil:
    cdef ze_mutable_command_id_exp_desc_t desc
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC
    desc.flags = (ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT
                  | ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE)
    return ze.zeCommandListGetNextCommandIdExp(list, &desc, number)


cdef ze_result_t list_change(ze_command_list_handle_t list, const void* chain) noexcept nogil:
    cdef ze_mutable_commands_exp_desc_t desc
    memset(&desc, 0, sizeof(desc))
    desc.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC
    desc.pNext = chain
    return ze.zeCommandListUpdateMutableCommandsExp(list, &desc)


cdef ze_result_t list_synchronize(ze_command_list_handle_t list, uint64_t timeout_ns) noexcept nogil:
    """Wait for everything appended. Only where the capability record says ``list_sync``."""
    return ze.zeCommandListHostSynchronize(list, timeout_ns)


cdef ze_result_t list_prefetch(ze_command_list_handle_t list, const void* ptr, size_t nbytes) noexcept nogil:
    return ze.zeCommandListAppendMemoryPrefetch(list, ptr, nbytes)


cdef ze_result_t list_advise(
        ze_command_list_handle_t list, ze_device_handle_t device, const void* ptr, size_t nbytes,
        int advice) noexcept nogil:
    return ze.zeCommandListAppendMemAdvise(list, device, ptr, nbytes, <ze_memory_advice_t>advice)


cdef int list_facts(
        ze_command_list_handle_t list, bint* immediate, ze_context_handle_t* context, ze_device_handle_t* device,
        int* ordinal) except -1 nogil:
    cdef uint8_t is_immediate = 1
    cdef uint32_t group = 0
    if ze.zeCommandListIsImmediate != NULL and told(ze.zeCommandListIsImmediate(list, &is_immediate)):
        immediate[0] = is_immediate != 0
    if ze.zeCommandListGetContextHandle != NULL:
        told(ze.zeCommandListGetContextHandle(list, context))
    if ze.zeCommandListGetDeviceHandle != NULL:
        told(ze.zeCommandListGetDeviceHandle(list, device))
    if ze.zeCommandListGetOrdinal != NULL and told(ze.zeCommandListGetOrdinal(list, &group)):
        ordinal[0] = <int>group
    return 0


cdef bint told(ze_result_t r) except -1 nogil:
    """Did the driver tell? One that lacks the function behind the loader's says so."""
    if r == ZE_RESULT_ERROR_UNSUPPORTED_FEATURE or r == ZE_RESULT_ERROR_UNINITIALIZED:
        return False
    CHECK(r)
    return True


cdef ze_command_queue_priority_t queue_priority(int priority) noexcept nogil:
    if priority < 0:
        return ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH
    return ZE_COMMAND_QUEUE_PRIORITY_NORMAL if priority == 0 else ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class CommandList:
    """A list: immediate and asynchronous, or regular. Made by ``immediate(...)`` and ``regular(...)``."""

    def __init__(self):
        raise TypeError("core.CommandList is made by CommandList.immediate()")

    @staticmethod
    cdef CommandList immediate(
            Context context, Device device, uint32_t ordinal, uint32_t index, int priority, bint in_order,
            bint offloads=False):
        """``offloads``: copies from and to host memory are better given to a copy engine, the driver decides."""
        cdef CommandList self = CommandList.__new__(CommandList)
        cdef ze_command_queue_desc_t desc
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC
        desc.ordinal = ordinal
        desc.index = index
        desc.flags = ((ZE_COMMAND_QUEUE_FLAG_IN_ORDER if in_order else 0)
                      | (ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT if offloads else 0))
        desc.mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS
        desc.priority = queue_priority(priority)
        self.context = context
        self.device = device
        self.in_order = in_order
        with nogil:
            CHECK(ze.zeCommandListCreateImmediate(context._h, device._h, &desc, &self._h))
        return self

    @staticmethod
    cdef CommandList regular(Context context, Device device, uint32_t ordinal, bint in_order, bint is_mutable=False):
        """A list that a queue executes, as often as one likes, once it has its commands and its end."""
        cdef CommandList self = CommandList.__new__(CommandList)
        cdef ze_mutable_command_list_exp_desc_t changes
        cdef ze_command_list_desc_t desc
        memset(&changes, 0, sizeof(changes))
        changes.stype = ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC
        memset(&desc, 0, sizeof(desc))
        desc.stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC
        if is_mutable:
            desc.pNext = &changes
        desc.commandQueueGroupOrdinal = ordinal
        desc.flags = ZE_COMMAND_LIST_FLAG_IN_ORDER if in_order else 0
        self.context = context
        self.device = device
        self.in_order = in_order
        with nogil:
            CHECK(ze.zeCommandListCreate(context._h, device._h, &desc, &self._h))
        return self

    cdef int end(self) except -1:
        """No further command comes into a regular list."""
        with nogil:
            CHECK(ze.zeCommandListClose(self._h))
        return 0

    @property
    def handle(self):
        """The native ``ze_command_list_handle_t`` as an integer, 0 once closed."""
        return <size_t>self._h

    def close(self):
        """Destroy the list, which must be idle; closing twice is harmless."""
        CommandList_release(self)

    def __dealloc__(self):
        CommandList_release(self)


made_by(CommandList, "core.CommandList is made by CommandList.immediate()")


cdef void CommandList_release(CommandList self) noexcept:
    cdef ze_command_list_handle_t h = self._h
    self._h = NULL
    if h != NULL and table.alive:
        with nogil:
            DROP(ze.zeCommandListDestroy(h), b"zeCommandListDestroy")
