"""Is a stream idle, and who waits until it is: the host, or another stream."""

from libc.stdint cimport uint64_t

from l0rt.core.cmdlist cimport list_synchronize
from l0rt.runtime.streams.event_pool cimport slot_release
from l0rt.runtime.streams.hooks cimport STREAM_SYNCHRONIZATION, STREAM_WAIT, tell, watched
from l0rt.runtime.streams.queue cimport lane_ticket, lock, unlock, wait_untold
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport WAIT_ADAPTIVE, refuse, slot_query, slot_wait_by
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_NOT_READY, ZE_RESULT_SUCCESS, ze_result_t


cdef int lane_wait_lane(l0rt_stream* stream, l0rt_stream* other) except -1 nogil:
    cdef l0rt_slot* slot
    if stream == other:
        return 0
    if watched:
        tell(STREAM_WAIT, <uint64_t>stream, <uint64_t>other, 0, 0)
    if known_idle(other):
        return 0
    slot = lane_ticket(other)
    try:
        return wait_untold(stream, 1, &slot)
    finally:
        slot_release(slot)


cdef int poll(l0rt_stream* stream) except -1 nogil:
    """Ask the driver once, where it can be asked about a whole list. 1: idle, 0: not yet or unknown."""
    cdef ze_result_t r
    if l0rt_load_list(&stream.list) == NULL:    # not made yet, or given back: then its ticket was its last command
        return stream.ticket == NULL or l0rt_load64(&stream.done) >= l0rt_load64(&stream.issued)
    if known_idle(stream):
        return 1
    if not stream.device.caps.list_sync:
        return 0
    lock(stream)
    r = list_synchronize(stream.list, 0)
    if r == ZE_RESULT_SUCCESS:
        l0rt_raise64(&stream.done, stream.issued)
    elif r == ZE_RESULT_NOT_READY:
        unlock(stream, ZE_RESULT_SUCCESS)
        return 0
    unlock(stream, r)
    return 1


cdef int lane_query(l0rt_stream* stream) except -1 nogil:
    cdef l0rt_slot* slot
    cdef int idle
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    idle = poll(stream)
    if not idle and (not stream.device.caps.list_sync or stream.list == NULL):
        slot = lane_ticket(stream)
        try:
            idle = slot_query(slot)
        finally:
            slot_release(slot)
    if idle and watched:
        tell(STREAM_SYNCHRONIZATION, <uint64_t>stream, 0, 0, 0)
    return idle


cdef int lane_synchronize(l0rt_stream* stream, uint64_t timeout_ns) except -1 nogil:
    return lane_synchronize_by(stream, timeout_ns, WAIT_ADAPTIVE)


cdef int lane_synchronize_by(l0rt_stream* stream, uint64_t timeout_ns, int policy) except -1 nogil:
    """Wait for what has been appended so far; others may go on appending meanwhile."""
    cdef l0rt_slot* slot
    cdef int idle
    if not table.alive or stream.device.lost:
        return refuse(stream.device)
    idle = poll(stream)
    if not idle:
        slot = lane_ticket(stream)
        try:
            idle = slot_wait_by(slot, timeout_ns, policy)
        finally:
            slot_release(slot)
    if idle and watched:
        tell(STREAM_SYNCHRONIZATION, <uint64_t>stream, 0, 0, 0)
    return idle
