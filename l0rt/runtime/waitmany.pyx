"""Waits for many events and streams at once."""

cimport cython
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.stdlib cimport calloc, free

from l0rt.runtime.event cimport Event, timeout_ns
from l0rt.runtime.eventcache cimport slot_release, slot_retain
from l0rt.runtime.lane cimport Lane, lane_ticket, lane_wait_all
from l0rt.runtime.records cimport *
from l0rt.runtime.waits cimport check_device, event_policy, host_clock_ns, nap, slot_query, slot_wait_by
from l0rt.runtime.watch cimport EVENT_RECORD, EVENT_SYNCHRONIZATION, tell, watched

cdef uint64_t CHECK_NS = 50_000_000


@cython.binding(False)
cdef class Many:
    """The slots behind some events and streams, each with a reference; NULL for an event that was never recorded."""
    cdef l0rt_slot** slots
    cdef int count

    def __cinit__(self, tuple what):
        cdef l0rt_stream* stream
        cdef l0rt_slot* slot
        self.slots = <l0rt_slot**>calloc(len(what) + 1, sizeof(l0rt_slot*))
        if self.slots == NULL:
            raise MemoryError()
        for item in what:
            slot = NULL
            if isinstance(item, Event):
                slot = (<Event>item).slot
                if slot != NULL:
                    slot_retain(slot)
            elif isinstance(item, Lane):
                stream = (<Lane>item).ptr
                if stream.list != NULL:
                    with nogil:
                        slot = lane_ticket(stream)
                        if watched:
                            tell(EVENT_RECORD, <uint64_t>slot, <uint64_t>stream, 0, 0)
            else:
                raise TypeError(f"expected Events and Streams, got {type(item).__name__}")
            self.slots[self.count] = slot
            self.count += 1

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            slot_release(self.slots[i])
        free(self.slots)


def wait_all(*events, Lane stream=None, timeout=None, policy=None):
    """Wait for all ``events``, Events and Streams.

    With ``stream``, its later work waits, by one command for all of them, and the host goes on at once. Without, the
    host waits; with ``timeout`` in seconds, return whether they were complete in that time.
    """
    cdef Many many = Many(events)
    cdef uint64_t limit = timeout_ns(timeout), start = host_clock_ns(), spent
    cdef int i, n = 0, how = event_policy(policy)
    cdef bint fired = True
    if stream is not None:
        if timeout is not None:
            raise TypeError("timeout is for the host's wait: a stream waits without one")
        for i in range(many.count):     # those without a slot are complete
            if many.slots[i] != NULL:
                many.slots[n], many.slots[i] = many.slots[i], many.slots[n]
                n += 1
        with nogil:
            lane_wait_all(stream.ptr, n, many.slots)
        return None
    with nogil:
        for i in range(many.count):
            if many.slots[i] == NULL or not fired:
                continue
            spent = min(host_clock_ns() - start, limit) if limit != UINT64_MAX else 0
            fired = slot_wait_by(many.slots[i], limit - spent, how)
            if fired and watched:
                tell(EVENT_SYNCHRONIZATION, <uint64_t>many.slots[i], 0, 0, 0)
    return None if timeout is None else fired


def wait_any(*events, timeout=None, policy=None):
    """Block until one of ``events``, Events and Streams, is complete; return its index, None if the time is up."""
    if not events:
        raise ValueError("wait_any() needs something to wait for")
    cdef Many many = Many(events)
    cdef uint64_t limit = timeout_ns(timeout), start = host_clock_ns(), spent, checked = 0
    cdef int i, how = event_policy(policy), found = -1
    with nogil:
        while found < 0:
            for i in range(many.count):
                if many.slots[i] == NULL or slot_query(many.slots[i]):
                    found = i
                    break
            else:
                spent = host_clock_ns() - start
                if spent >= limit:
                    break
                if spent - checked >= CHECK_NS:
                    checked = spent
                    for i in range(many.count):
                        check_device(many.slots[i].device)
                nap(how, spent, limit - spent)
    if found >= 0 and many.slots[found] != NULL and watched:
        tell(EVENT_SYNCHRONIZATION, <uint64_t>many.slots[found], 0, 0, 0)
    return None if found < 0 else found
