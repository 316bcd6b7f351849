# SPDX-License-Identifier: Apache-2.0
"""Waits for many events and streams at once; a report of what streams wait for.

Events and streams of other device types are asked one by one, by the methods that every event and stream has.
"""

import sys

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from l0rt.runtime.alloc.atomics cimport mutex_trylock, mutex_unlock
from l0rt.runtime.current.event cimport Event
from l0rt.runtime.current.thread cimport current_device
from l0rt.runtime.streams.capture cimport captures
from l0rt.runtime.streams.devices cimport device_at, device_record, device_total
from l0rt.runtime.streams.event_pool cimport slot_release, slot_retain
from l0rt.runtime.streams.hooks cimport EVENT_RECORD, EVENT_SYNCHRONIZATION, call_hooks, hooked
from l0rt.runtime.streams.ledger cimport process_began
from l0rt.runtime.streams.naming cimport index_of, only_built_in
from l0rt.runtime.streams.queue cimport (
    Queue,
    progress,
    queue_end_event,
    queue_name,
    queue_synchronize,
    queue_wait_all,
)
from l0rt.runtime.streams.stream_pool cimport next_stream
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport (
    check_device,
    event_policy,
    host_clock_ns,
    nap,
    slot_query,
    slot_wait_by,
    timeout_ns,
)
from l0rt.ze cimport table

from l0rt._base import callers
from l0rt.runtime.streams.devices import lazy

cdef uint64_t CHECK_NS = 50_000_000


@cython.binding(False)
cdef class Many:
    """The slots behind some events and streams of the built-in type, each with a reference; NULL for an event that
    was never recorded."""
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
            elif isinstance(item, Queue):
                stream = (<Queue>item).ptr
                if stream.list != NULL:
                    with nogil:
                        slot = queue_end_event(stream)
                        if hooked:
                            call_hooks(EVENT_RECORD, <uint64_t>slot, <uint64_t>stream, 0, 0)
            else:
                raise TypeError(f"an event or a stream of another type: {type(item).__name__}")
            self.slots[self.count] = slot
            self.count += 1

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            slot_release(self.slots[i])
        free(self.slots)


cdef bint any_other(tuple events) except -1:
    """Whether any of them is of another device type; TypeError for what is neither an event nor a stream."""
    cdef bint found = False
    for item in events:
        if not isinstance(item, (Event, Queue)):
            if isinstance(item, type) or not callable(getattr(item, "query", None)) or not callable(
                    getattr(item, "synchronize", None)):
                raise TypeError(f"expected Events and Streams, got {type(item).__name__}")
            found = True
    return found


cdef int device_of_all(tuple events) except? -2:
    """The index of the device that all events and streams are of; -1 if there is none."""
    indices = {(<Event>item).index if isinstance(item, Event) else (<Queue>item).ptr.device.index
               for item in events if isinstance(item, (Event, Queue))}
    return indices.pop() if len(indices) == 1 else -1


cdef list events_of(tuple items):
    """The events, and one for what each stream has been given so far."""
    return [item.record_event() if hasattr(item, "record_event") else item for item in items]


cdef str type_of(item):
    """The device type of an event or a stream, None if it does not tell."""
    if isinstance(item, (Event, Queue)):
        return lazy.device_type
    told = getattr(item, "device_type", None) or getattr(getattr(item, "device", None), "type", None)
    return told if isinstance(told, str) else None


cdef int stream_waits(stream, tuple events) except -1:
    """Make a stream of any type wait; a stream waits for its own type's events and streams alone."""
    if not hasattr(stream, "wait_event") or not hasattr(stream, "wait_stream"):
        raise TypeError(f"expected a Stream, got {type(stream).__name__}")
    own = type_of(stream)
    for item in events:
        other = type_of(item)
        if other is not None and own is not None and other != own:
            what = "a stream" if hasattr(item, "wait_stream") else "an event"
            raise ValueError(f"a stream of {own} cannot wait for {what} of {other}: "
                             "the host can, by wait_all() without stream=")
    for item in events:
        if hasattr(item, "wait_stream"):
            stream.wait_stream(item)
        else:
            stream.wait_event(item)
    return 0


cdef object first_of(list events, uint64_t limit, int how):
    """The index of the first that is complete, None if the time is up."""
    cdef uint64_t start = host_clock_ns(), spent = 0
    while True:
        for i, event in enumerate(events):
            if event.query():
                return i
        spent = host_clock_ns() - start
        if spent >= limit:
            return None
        PyErr_CheckSignals()
        with nogil:
            nap(how, spent, limit - spent)


cdef bint all_of(list events, uint64_t limit, int how) except -1:
    cdef uint64_t start = host_clock_ns()
    for event in events:
        if limit == UINT64_MAX:
            event.synchronize()
        elif first_of([event], limit - min(host_clock_ns() - start, limit), how) is None:
            return False
    return True


def wait_all(*events, stream=None, timeout=None, policy=None):
    """Wait for all ``events``.

    With ``stream``, later work of this stream waits, by one command for all events, and the host continues at once. The
    events must be of the stream's device type. Without ``stream`` the host waits.

    Parameters
    ----------
    *events : Event or Stream
        The events and streams to wait for, of any device type.
    stream : Stream or None, optional
        The stream whose later work waits. None makes the host wait.
    timeout : float or None, optional
        Seconds, not negative. None waits without a limit, and the call returns None.
    policy : "spin", "yield", "block" or None, optional
        How the host waits. None takes the setting ``xpu.event.wait_policy``.

    Returns
    -------
    bool or None
        With ``timeout``, whether all were complete in time.

    Raises
    ------
    ValueError
        ``timeout`` is negative, or ``policy`` is not one of these.
    TypeError
        An argument is neither an Event nor a Stream.

    Notes
    -----
    With ``stream`` it is one ``zeCommandListAppendWaitOnEvents`` of Level Zero for all events.
    """
    cdef uint64_t limit = timeout_ns(timeout), start = host_clock_ns(), spent
    cdef int i, n = 0, how = event_policy(policy, device_of_all(events))
    cdef bint fired = True, others = any_other(events)
    cdef Many many
    cdef l0rt_stream* waiting
    if stream is not None and timeout is not None:
        raise TypeError("timeout is only for a wait of the host, and stream= makes a stream wait")
    if stream is not None and (others or not isinstance(stream, Queue)):
        stream_waits(stream, events)
        return None
    if others:
        fired = all_of(events_of(events), limit, how)
        return None if timeout is None else fired
    many = Many(events)
    if stream is not None:
        waiting = (<Queue>stream).ptr
        for i in range(many.count):     # those without a slot are complete
            if many.slots[i] != NULL:
                many.slots[n], many.slots[i] = many.slots[i], many.slots[n]
                n += 1
        with nogil:
            queue_wait_all(waiting, n, many.slots)
        return None
    with nogil:
        for i in range(many.count):
            if many.slots[i] == NULL or not fired:
                continue
            spent = min(host_clock_ns() - start, limit) if limit != UINT64_MAX else 0
            fired = slot_wait_by(many.slots[i], limit - spent, how)
            if fired and hooked:
                call_hooks(EVENT_SYNCHRONIZATION, <uint64_t>many.slots[i], 0, 0, 0)
    return None if timeout is None else fired


def wait_any(*events, timeout=None, policy=None):
    """Wait until one of ``events`` is complete, and return its position.

    Parameters
    ----------
    *events : Event or Stream
        The events and streams to wait for, of any device type. At least one.
    timeout : float or None, optional
        Seconds, not negative. None waits without a limit.
    policy : "spin", "yield", "block" or None, optional
        How the host waits. None takes the setting ``xpu.event.wait_policy``.

    Returns
    -------
    int or None
        The position in ``events`` of one that is complete. None if the time was over.

    Raises
    ------
    ValueError
        ``events`` is empty, ``timeout`` is negative, or ``policy`` is not one of these.
    TypeError
        An argument is neither an Event nor a Stream.
    """
    if not events:
        raise ValueError("wait_any() needs something to wait for")
    cdef uint64_t limit = timeout_ns(timeout), start = host_clock_ns(), spent, checked = 0
    cdef int i, how = event_policy(policy, device_of_all(events)), found = -1
    cdef Many many
    if any_other(events):
        return first_of(events_of(events), limit, how)
    many = Many(events)
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
    if found >= 0 and many.slots[found] != NULL and hooked:
        call_hooks(EVENT_SYNCHRONIZATION, <uint64_t>many.slots[found], 0, 0, 0)
    return None if found < 0 else found


# The report of streams that are not idle, on demand and when a wait times out.

cdef l0rt_stream* stream_of_number(size_t address) noexcept:
    cdef l0rt_stream* stream
    cdef int i
    for i in range(device_total()):
        stream = next_stream(device_record(i), NULL)
        while stream != NULL and <size_t>stream != address:
            stream = next_stream(device_record(i), stream)
        if stream != NULL:
            return stream
    return NULL


def name_at(size_t address):
    """Return the repr of the stream to which `l0rt.xpu.gpu_trace` gives this number."""
    cdef l0rt_stream* stream = stream_of_number(address)
    if stream != NULL:
        return queue_name(stream)
    return f"stream {address:#x}" if address else "no stream"


def is_captured_at(size_t address):
    """Return whether the stream to which `l0rt.xpu.gpu_trace` gives this number is being captured."""
    cdef l0rt_stream* stream = stream_of_number(address)
    return stream != NULL and captures(stream)


def synchronize_at(size_t address):
    """Wait for the stream to which `l0rt.xpu.gpu_trace` gives this number. Ctrl-C interrupts the wait."""
    cdef l0rt_stream* stream = stream_of_number(address)
    if stream == NULL:
        raise ValueError(f"there is no stream {address:#x}")
    with nogil:
        queue_synchronize(stream, UINT64_MAX)


cdef list waits_of(l0rt_stream* stream, uint64_t done):
    """One line for each remembered wait that the stream may still be in."""
    cdef l0rt_waited* wait
    cdef l0rt_waited last[4]
    cdef uint64_t have
    cdef uint32_t i, waits
    if mutex_trylock(&stream.lock) != 0:    # not waited for: an append holds it, which may block
        return ["    a command is being appended"]
    waits = stream.waits
    memcpy(last, stream.waited, sizeof(last))
    mutex_unlock(&stream.lock)
    lines = []
    for i in range(4):
        wait = &last[(waits + i) % 4]       # oldest first
        if wait.seq > done and wait.pid != 0:
            lives = process_began(wait.pid) == wait.began
            lines.append(f"    command {wait.seq} waits for an event of process {wait.pid}, which "
                         f"{'runs' if lives else 'has ended: the next wait of the host for this stream raises that'}")
        elif wait.seq > done and wait.stream != NULL:
            have = l0rt_load64(&wait.stream.done)
            if have < wait.stream_seq:
                lines.append(f"    command {wait.seq} waits for command {wait.stream_seq} of "
                             f"{queue_name(wait.stream)}, which has done {have} of {l0rt_load64(&wait.stream.issued)}")
    return lines


def stuck_report(device=None):
    """Return for each stream that is not idle what it has completed and what it waits for.

    The call itself does not wait. For another device type than the built-in one it raises NotImplementedError.

    Parameters
    ----------
    device : int or None, optional
        The index of a device. None is all devices.

    Returns
    -------
    str
        One line for each stream. Empty if all are idle.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    cdef int only = -1
    only_built_in(device, "report of streams that are stuck")
    if device is not None:
        only = index_of(device, current_device(), lazy.device_type)
        device_at(only)
    return report_of(only)


cdef str report_of(int only):
    """The report of one device, or with -1 of all."""
    cdef l0rt_stream* stream
    cdef int i
    lines = []
    for i in range(device_total()) if only < 0 else (only,):
        stream = next_stream(device_at(i), NULL)
        while stream != NULL:
            if stream.list != NULL and l0rt_load64(&stream.done) < l0rt_load64(&stream.issued) and table.alive:
                with nogil:             # once to put the mark behind everything, once to look at it
                    progress(stream)
                    progress(stream)
            stream = next_stream(device_at(i), stream)
        stream = next_stream(device_at(i), NULL)
        while stream != NULL:
            done = l0rt_load64(&stream.done)
            if stream.list != NULL and done < l0rt_load64(&stream.issued):
                lines.append(f"{queue_name(stream)}: {done} of {l0rt_load64(&stream.issued)} commands done, on queue "
                             f"{stream.ordinal}.{stream.queue}{', lost' if stream.device.lost else ''}")
                lines += waits_of(stream, done)
            stream = next_stream(device_at(i), stream)
    return "\n".join(lines)


cdef int log_stuck(l0rt_stream* stream) except -1:
    # its import takes a tenth of l0rt's; if no module has imported it, there is no logger
    logging = sys.modules.get("logging")
    if logging is None:
        return 0
    log = logging.getLogger("l0rt.stream")
    if log.isEnabledFor(logging.INFO):
        log.info("a wait for %s timed out\n%s", queue_name(stream), report_of(stream.device.index),
                 stacklevel=callers.level())
    return 0
