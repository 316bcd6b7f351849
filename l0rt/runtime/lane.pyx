"""A lane is what a stream is below Python: one list, its lock, its order.

Where the driver keeps the order, commands are appended as they are. Where it does not, a barrier stands between a
command and what came before it, so that both kinds of list behave alike.
"""

from libc.stdint cimport UINT64_MAX, uint64_t

from l0rt.core.cmdlist cimport (
    CommandList,
    list_barrier,
    list_copy,
    list_fill,
    list_signal,
    list_synchronize,
    list_timestamp,
    list_wait,
)
from l0rt.core.event cimport event_query, event_reset
from l0rt.runtime.devices cimport core_context, core_device
from l0rt.runtime.eventcache cimport (
    ask_progress_with,
    device_fails,
    host_clock_ns,
    refuse,
    slot_acquire,
    slot_add_waiter,
    slot_completed,
    slot_query,
    slot_release,
    slot_retain,
    slot_wait,
)
from l0rt.runtime.records cimport *
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_NOT_READY, ZE_RESULT_SUCCESS, ze_result_t

from l0rt.runtime.lazy import LISTS, on_exit

_owners = []   # every CommandList that a lane uses


cdef class Lane:
    """A stream as the lower floors know it. Users make ``l0rt.Stream``."""

    def __init__(self, *args, **kwargs):
        if self.ptr == NULL:
            raise TypeError("runtime.Lane is the base of l0rt.Stream; users make l0rt.Stream")


cdef int lane_open(l0rt_stream* stream) except -1 nogil:
    """Make the lane's list, unless it has one; refuse a device that may not be used."""
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    if l0rt_load_list(&stream.list) != NULL:
        return 0
    with gil:
        return lane_create(stream)


cdef int lane_create(l0rt_stream* stream) except -1:
    cdef CommandList made = CommandList.immediate(
        core_context(stream.device.index), core_device(stream.device.index),
        stream.device.info.compute_ordinal, stream.id % max(stream.device.info.compute_queues, 1),
        stream.priority, stream.in_order)
    cdef l0rt_slot* mark
    with nogil:
        mark = slot_acquire(stream.device, False)
    if stream.list != NULL:     # another thread was quicker while this one was in the driver
        made.close()
        slot_release(mark)
        return 0
    stream.mark = mark
    _owners.append(made)
    l0rt_store_list(&stream.list, made._h)
    return 0


cdef inline int lock(l0rt_stream* stream) except -1 nogil:
    if not table.alive or stream.list == NULL or stream.device.lost:
        lane_open(stream)
    pthread_mutex_lock(&stream.lock)
    return 0


cdef inline int unlock(l0rt_stream* stream, ze_result_t result) except -1 nogil:
    pthread_mutex_unlock(&stream.lock)
    if result != ZE_RESULT_SUCCESS:
        return device_fails(stream.device, result)
    return 0


cdef inline ze_result_t before(l0rt_stream* stream) noexcept nogil:
    """Put what comes next behind everything appended so far."""
    cdef ze_result_t r = ZE_RESULT_SUCCESS
    stream.issued += 1
    if not stream.in_order:
        if stream.dirty:
            r = list_barrier(stream.list, NULL)
        stream.dirty = True
    return r


cdef int lane_copy(l0rt_stream* stream, void* dst, const void* src, size_t nbytes) except -1 nogil:
    cdef ze_result_t r
    if nbytes == 0:
        return 0
    lock(stream)
    r = before(stream)
    if r == ZE_RESULT_SUCCESS:
        r = list_copy(stream.list, dst, src, nbytes)
    return unlock(stream, r)


cdef int lane_fill(
        l0rt_stream* stream, void* dst, const void* pattern, size_t pattern_size, size_t nbytes) except -1 nogil:
    cdef ze_result_t r
    if nbytes == 0:
        return 0
    lock(stream)
    r = before(stream)
    if r == ZE_RESULT_SUCCESS:
        r = list_fill(stream.list, dst, pattern, pattern_size, nbytes)
    return unlock(stream, r)


cdef ze_result_t record_locked(l0rt_stream* stream, l0rt_slot* slot) noexcept nogil:
    cdef ze_result_t r
    slot.stream = stream
    slot.seq = stream.issued + 1
    if slot.ticks != NULL:
        slot.host_ns = host_clock_ns()
        r = before(stream)
        return r if r != ZE_RESULT_SUCCESS else list_timestamp(stream.list, slot.ticks, slot.event)
    stream.issued += 1
    if stream.in_order:
        return list_signal(stream.list, slot.event)
    stream.dirty = False
    return list_barrier(stream.list, slot.event)


cdef int lane_record(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil:
    cdef ze_result_t r
    lock(stream)
    r = record_locked(stream, slot)
    if r != ZE_RESULT_SUCCESS:
        slot.stream = NULL      # nothing will signal it
    return unlock(stream, r)


cdef l0rt_slot* lane_ticket(l0rt_stream* stream) except NULL nogil:
    cdef l0rt_slot* slot
    cdef l0rt_slot* old
    cdef bint recorded = False
    lock(stream)
    slot = stream.ticket
    if slot != NULL and slot.seq == stream.issued:
        slot_retain(slot)
        unlock(stream, ZE_RESULT_SUCCESS)
        return slot
    unlock(stream, ZE_RESULT_SUCCESS)
    slot = slot_acquire(stream.device, False)
    try:
        lane_record(stream, slot)
        recorded = True
    finally:
        if not recorded:
            slot_release(slot)
    slot_retain(slot)           # one reference is the stream's, one the caller's
    lock(stream)
    old = stream.ticket
    stream.ticket = slot
    unlock(stream, ZE_RESULT_SUCCESS)
    slot_release(old)
    return slot


cdef int lane_wait(l0rt_stream* stream, l0rt_slot* slot) except -1 nogil:
    cdef ze_result_t r
    cdef uint64_t seq
    if slot.stream == stream or l0rt_load_int(&slot.complete):
        if not table.alive or stream.device.lost:
            return refuse(stream.device)
        return 0
    if slot.device.context != stream.device.context:
        slot_wait(slot, UINT64_MAX)     # another driver's event means nothing to this list: the host waits
        return 0
    lock(stream)
    stream.issued += 1
    seq = stream.issued
    r = list_wait(stream.list, 1, &slot.event)
    unlock(stream, r)
    return slot_add_waiter(slot, stream, seq)


cdef void progress(l0rt_stream* stream) noexcept nogil:
    """Find out how far the stream is, without waiting: its mark is put behind everything, and looked at later."""
    if pthread_mutex_trylock(&stream.lock) != 0:
        return
    if stream.marked:
        if event_query(stream.mark.event) == ZE_RESULT_SUCCESS:
            slot_completed(stream.mark)
            stream.marked = event_reset(stream.mark.event) != ZE_RESULT_SUCCESS
    elif stream.mark != NULL:
        stream.marked = record_locked(stream, stream.mark) == ZE_RESULT_SUCCESS
    pthread_mutex_unlock(&stream.lock)


ask_progress_with(progress)


cdef int lane_wait_lane(l0rt_stream* stream, l0rt_stream* other) except -1 nogil:
    cdef l0rt_slot* slot
    if stream == other or l0rt_load64(&other.done) >= other.issued:
        return 0
    slot = lane_ticket(other)
    try:
        return lane_wait(stream, slot)
    finally:
        slot_release(slot)


cdef int poll(l0rt_stream* stream) except -1 nogil:
    """Ask the driver once, where it can be asked about a whole list. 1: idle, 0: not yet or unknown."""
    cdef ze_result_t r
    if l0rt_load_list(&stream.list) == NULL or l0rt_load64(&stream.done) >= stream.issued:
        return 1
    if not stream.device.caps.list_sync:
        return 0
    lock(stream)
    r = list_synchronize(stream.list, 0)
    if r == ZE_RESULT_SUCCESS:
        l0rt_store64(&stream.done, stream.issued)
    elif r == ZE_RESULT_NOT_READY:
        unlock(stream, ZE_RESULT_SUCCESS)
        return 0
    unlock(stream, r)
    return 1


cdef int lane_query(l0rt_stream* stream) except -1 nogil:
    cdef l0rt_slot* slot
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    if poll(stream):
        return 1
    if stream.device.caps.list_sync:
        return 0
    slot = lane_ticket(stream)
    try:
        return slot_query(slot)
    finally:
        slot_release(slot)


cdef int lane_synchronize(l0rt_stream* stream, uint64_t timeout_ns) except -1 nogil:
    """Wait for what has been appended so far; others may go on appending meanwhile."""
    cdef l0rt_slot* slot
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    if poll(stream):
        return 1
    slot = lane_ticket(stream)
    try:
        return slot_wait(slot, timeout_ns)
    finally:
        slot_release(slot)


def _close():
    for owner in _owners:
        owner.close()
    _owners.clear()


on_exit(LISTS, _close)
