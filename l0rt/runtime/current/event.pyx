# SPDX-License-Identifier: Apache-2.0
"""Events of Python: a mark in a stream's work, which each record places again."""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libc.stdlib cimport calloc, free

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t) noexcept
    int PyUnicode_CompareWithASCIIString(object, const char*) noexcept

from l0rt._base.arguments cimport is_whole, known_as
from l0rt.core.device cimport device_clocks
from l0rt.core.event cimport EventPool
from l0rt.runtime.current.awaiting cimport await_slot
from l0rt.runtime.current.thread cimport current_stream
from l0rt.runtime.streams.capture cimport capture_refuse, capture_refuse_slot, captures
from l0rt.runtime.streams.devices cimport device_at, device_total, event_pool_for
from l0rt.runtime.streams.event_pool cimport slot_acquire, slot_is_over, slot_release, slot_reset, slot_retain
from l0rt.runtime.streams.hooks cimport (
    EVENT_CREATION,
    EVENT_DELETION,
    EVENT_RECORD,
    EVENT_SYNCHRONIZATION,
    call_hooks,
    hooked,
)
from l0rt.runtime.streams.ledger cimport l0rt_peer, l0rt_told, peer_drop
from l0rt.runtime.streams.naming cimport (
    call,
    device as device_named,
    get_slots,
    index_of,
    maker_for,
    other,
    set_slots,
    slots,
)
from l0rt.runtime.streams.orphans cimport orphans_look
from l0rt.runtime.streams.queue cimport Queue, queue_open, queue_record, queue_wait, record_untold
from l0rt.runtime.streams.sharedevents cimport (
    event_export,
    event_export_end,
    event_identity,
    event_import,
    event_is_current,
    event_take,
    l0rt_foreign,
)
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport (
    WAIT_ADAPTIVE,
    WAIT_BLOCK,
    device_fails,
    event_policy,
    host_clock_ns,
    nap,
    refuse,
    slot_query,
    slot_wait_by,
    timeout_ns,
)
from l0rt.ze cimport table
from l0rt.ze.api cimport ZE_RESULT_SUCCESS, ze_result_t

from l0rt.errors import DeviceIndexError, InvalidArgumentError, UnsupportedError
import l0rt.runtime.current.guard_table  # no-cython-lint: gives l0rt.Event("cpu")
from l0rt.runtime.streams.devices import lazy


@cython.freelist(64)
@cython.binding(False)
cdef class Event:
    """Event(device=None, *, enable_timing=False, blocking=False, interprocess=False)
--

A mark in the work of a stream, for which the host and other streams can wait.

The native event is created at the first `record`, on the device of that stream. A stream that waits for one record
continues to wait for that record when the event is recorded again.

Parameters
----------
device : int, str, device or None, optional
    The device on which the event is recorded. None is the device of the first record.
enable_timing : bool, optional
    The device writes its time when the event completes. `elapsed_time` and `host_time` need it.
blocking : bool, optional
    The host sleeps at once when it waits, instead of spinning first.
interprocess : bool, optional
    Other processes can wait for the event: see `ipc_handle`.
"""

    def __cinit__(self, device=None, *, bint enable_timing=False, bint blocking=False, bint interprocess=False):
        if isinstance(device, bool):
            raise TypeError(f"expected a device, got {device}: a timed event is Event(enable_timing={device})")
        self.index = -1 if device is None else index_of(device, -1, lazy.device_type)
        if self.index < 0 and is_whole(device):
            raise DeviceIndexError(f"The device index is out of range: {device}")
        if self.index >= 0 and device_total() != 0:     # before the driver is open, the first record says so
            device_at(self.index)
        if enable_timing and interprocess:
            raise ValueError("an event cannot be timed and interprocess: another process cannot read its clock")
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.interprocess = interprocess
        if hooked:
            call_hooks(EVENT_CREATION, <uint64_t><void*>self, 0, 0, 0)

    def record(self, Queue stream=None):
        """Record the event behind all work that ``stream`` was given so far.

        Parameters
        ----------
        stream : Stream or None, optional
            The stream. None is the current stream of the event's device.

        Notes
        -----
        It appends ``zeCommandListAppendSignalEvent``, or ``zeCommandListAppendWriteGlobalTimestamp`` for a timed
        event. As in CUDA (``cudaEventRecord``), a new record replaces the earlier one, and waits for the earlier
        record stay as they are.
        """
        Event_record(self, stream_of(stream))

    def wait(self, Queue stream=None):
        """Make later work of ``stream`` wait for this event. The host continues at once.

        Parameters
        ----------
        stream : Stream or None, optional
            None is the current stream.

        Notes
        -----
        It appends ``zeCommandListAppendWaitOnEvents``. As with ``cudaStreamWaitEvent``, an event that was never
        recorded makes nothing wait.
        """
        Event_wait(self, stream_of(stream))

    def query(self):
        """Return whether all work before the record is complete. It is True if the event was never recorded.

        Returns
        -------
        bool

        Notes
        -----
        As in CUDA (``cudaEventQuery``), an event that was never recorded is complete.
        """
        cdef bint complete = self.slot == NULL or slot_query(self.slot) == 1
        if hooked and complete and self.slot != NULL:
            call_hooks(EVENT_SYNCHRONIZATION, <uint64_t>self.slot, 0, 0, 0)
        return complete

    def synchronize(self, timeout=None, *, policy=None):
        """Wait until the event is complete. Ctrl-C interrupts the wait.

        Parameters
        ----------
        timeout : float or None, optional
            Seconds, not negative. None waits without a limit, and the call returns None.
        policy : "spin", "yield", "block" or None, optional
            How the host waits. None is ``block`` for a blocking event; otherwise it takes the setting
            ``xpu.event.wait_policy``.

        Returns
        -------
        bool or None
            With ``timeout``, whether the event was complete in time.

        Raises
        ------
        ValueError
            ``timeout`` is negative, or ``policy`` is not one of these.
        DeviceLostError
            The device hung or was reset.
        """
        cdef uint64_t limit = timeout_ns(timeout)
        cdef int how = WAIT_BLOCK if policy is None and self.blocking else event_policy(policy, self.index)
        cdef l0rt_slot* slot = self.slot
        cdef bint fired = True
        if slot != NULL and (not l0rt_load_int(&slot.complete) or hooked):
            slot_retain(slot)   # another thread may record it again meanwhile
            try:
                with nogil:
                    fired = slot_wait_by(slot, limit, how)
                    if fired and hooked:
                        call_hooks(EVENT_SYNCHRONIZATION, <uint64_t>slot, 0, 0, 0)
            finally:
                slot_release(slot)
        return None if timeout is None else fired

    def elapsed_time(self, end_event):
        """Return the time from this event to ``end_event`` in milliseconds.

        Parameters
        ----------
        end_event : Event
            The later event, which is timed too.

        Returns
        -------
        float
            Milliseconds. Negative if ``end_event`` completed first.

        Raises
        ------
        ValueError
            An event is not timed, or was not recorded.
        RuntimeError
            An event is not complete.

        Notes
        -----
        The formula is ``((end - start) mod 2**bits) * 1000 / frequency`` milliseconds, with ``timestampValidBits`` and
        ``timerResolution`` of Level Zero's ``ze_device_properties_t``. The host's clock says how often the counter
        wrapped around in between. The errors and their texts are those of ``torch.Event.elapsed_time``.
        """
        cdef Event end
        if not isinstance(end_event, Event):
            raise TypeError(f"elapsed_time() takes an Event, not {type(end_event).__name__}")
        end = end_event
        if not (self.enable_timing and end.enable_timing):
            raise InvalidArgumentError("Both events must be created with argument 'enable_timing=True'.")
        if self.slot == NULL or end.slot == NULL:
            raise InvalidArgumentError("Both events must be recorded before calculating elapsed time.")
        for each in (self, end):
            if (<Event>each).slot.event == NULL:
                capture_refuse_slot((<Event>each).slot, b"Event.elapsed_time()")
        if not (self.query() and end.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        return slots_elapsed_ms(self.slot, end.slot)

    def host_time(self):
        """Return when the event completed, in nanoseconds of the host's CLOCK_MONOTONIC_RAW.

        Both clocks are read anew at each call, which is slow. The answer is as exact as the driver's pair of readings
        and its clock's frequency, which is known to a few parts in a million.

        Returns
        -------
        int
            Nanoseconds.

        Raises
        ------
        ValueError
            The event is not timed.
        RuntimeError
            The event was not recorded, or is not complete.
        UnsupportedError
            The driver cannot read both clocks.

        Notes
        -----
        The device's time is converted with a pair of clock readings of Level Zero's ``zeDeviceGetGlobalTimestamps``.
        """
        cdef uint64_t host = 0, ticks = 0
        cdef ze_result_t r
        cdef l0rt_device* device
        if not self.enable_timing:
            raise ValueError("the event must be created with argument 'enable_timing=True'")
        if self.slot != NULL and self.slot.event == NULL:
            capture_refuse_slot(self.slot, b"Event.host_time()")
        if self.slot == NULL or not self.query():
            raise RuntimeError("the event must be recorded and completed")
        device = self.slot.device
        if not table.alive or device.lost:
            refuse(device)
        if not device.caps.global_ts:
            raise UnsupportedError("this driver cannot read both clocks (zeDeviceGetGlobalTimestamps)")
        with nogil:
            r = device_clocks(device.handle, &host, &ticks)
        if r != ZE_RESULT_SUCCESS:
            device_fails(device, r)
        return <int64_t>host - round(1e6 * elapsed_ms(
            self.slot.ticks[0], ticks, <int64_t>(host_clock_ns() - self.slot.host_ns),
            device.info.timestamp_bits, device.info.timer_hz))

    def ipc_handle(self):
        """Return bytes with which another process can wait for this event, through `from_ipc_handle`.

        The other process sees the last record. This object must live as long as the other process uses the event.

        Returns
        -------
        bytes

        Raises
        ------
        UnsupportedError
            The event was not made with ``interprocess=True``, or was not recorded.

        Notes
        -----
        It uses ``zeEventPoolGetIpcHandle`` of Level Zero (specification, section "Inter-Process Communication"): an
        interprocess event has a pool of its own.
        """
        if self.pool == NULL:
            raise UnsupportedError("torch.Event ipc is not supported yet for events of other kinds: "
                                   "an event is shared that was made with interprocess=True and was recorded here")
        handle = event_export(<EventPool><object>self.pool, self.slot)
        remember_shared(self, event_identity(None, handle))
        return handle

    @staticmethod
    def from_ipc_handle(device, handle):
        """Return the event that another process has exported, for waits on streams of ``device`` or on the host.

        Parameters
        ----------
        device : int, str, device or None
            The device on whose streams the event is used. None is the one that it was recorded on.
        handle : bytes
            The bytes that `ipc_handle` returned in the other process.

        Returns
        -------
        Event
            The same object as long as this process has it, and in the event's own process the event itself.

        Raises
        ------
        ValueError
            The handle is damaged or stale, its process has ended, or this process does not have the device that the
            event was recorded on, or not with the same driver as ``device``.
        PermissionError
            The kernel does not let this process open what the other one exports.

        Notes
        -----
        If the other process ends before the event is signalled, waits of the host for it raise an error, and so does
        the next wait for a stream that waits for it, which goes on.
        """
        cdef l0rt_foreign foreign
        cdef EventPool pool
        cdef Event event
        identity = event_identity(device, handle)
        if identity in _shared:
            event = <Event><PyObject*><size_t>_shared[identity]
            if event_is_current(event.slot, identity[-1]):
                return event
        pool = event_import(device, handle, &foreign)
        try:
            event = built_in_event(True)
            take_pool(event, pool, foreign.device, foreign.peer, foreign.told)
        except BaseException:
            peer_drop(foreign.peer)
            raise
        remember_shared(event, identity)
        return event

    @property
    def device(self):
        """The device of the event. It has no index before the first record."""
        return device_named(lazy.device_type) if self.index < 0 else device_named(lazy.device_type, self.index)

    @property
    def event_id(self):
        """The native ``ze_event_handle_t`` of the last record as an integer, or 0."""
        return <size_t>self.slot.event if self.slot != NULL else 0

    def __await__(self):
        """Wait in a coroutine of asyncio until the event is complete. The loop runs other tasks meanwhile."""
        return await_slot(self.slot)

    def __copy__(self):
        raise TypeError("an Event cannot be copied")

    def __deepcopy__(self, memo):
        raise TypeError("an Event cannot be copied")

    def __reduce__(self):
        raise TypeError("an Event cannot be pickled; the bytes of ipc_handle() reach another process, for "
                        "Event.from_ipc_handle() there")

    def __repr__(self):
        complete = self.slot != NULL and l0rt_load_int(&self.slot.complete)
        state = "not recorded" if self.slot == NULL else "complete" if complete else "recorded"
        return f"<l0rt.Event device={self.device} {state}>"

    def __dealloc__(self):
        if self.pool != NULL:
            forget_shared(self)         # first: hooks run Python
        if hooked:
            call_hooks(EVENT_DELETION, <uint64_t><void*>self, 0, 0, 0)
        if self.pool == NULL:
            slot_release(self.slot)
        else:
            give_up(self)


cdef slots _built_in, _choosing


cdef PyObject* _make(PyTypeObject* cls, PyObject* args, PyObject* kwargs) except NULL:
    """``l0rt.Event(...)`` makes an event of the device type that it names, else of the current accelerator.

    A subclass stays what it is.
    """
    if cls != <PyTypeObject*>Event:
        return _built_in.make(cls, args, kwargs)
    maker = maker_for(args, kwargs)
    return _built_in.make(cls, args, kwargs) if maker is None else call(maker.Event, args, kwargs)


cdef PyObject* _vectorcall(PyObject* cls, PyObject* const* args, size_t nargsf, PyObject* names) except NULL:
    """The same without a tuple and a dict where no device is named: most events are made so."""
    cdef Py_ssize_t i, count = PyVectorcall_NARGS(nargsf)
    if other == NULL and count == 0 and (names == NULL or not names_device(<tuple>names)):
        return _built_in.vectorcall(cls, args, nargsf, names)
    positional = tuple([<object>args[i] for i in range(count)])
    if names == NULL:
        return _make(<PyTypeObject*>cls, <PyObject*>positional, NULL)
    keywords = {name: <object>args[count + i] for i, name in enumerate(<tuple>names)}
    return _make(<PyTypeObject*>cls, <PyObject*>positional, <PyObject*>keywords)


cdef bint names_device(tuple names) noexcept:
    for name in names:
        if PyUnicode_CompareWithASCIIString(name, b"device") == 0:
            return True
    return False


get_slots(Event, &_built_in)
_choosing.make = _make
if _built_in.vectorcall != NULL:
    _choosing.vectorcall = _vectorcall
set_slots(Event, &_choosing)


cdef Event built_in_event(bint interprocess):
    how = {"interprocess": True} if interprocess else {}
    cdef PyObject* made = _built_in.make(<PyTypeObject*>Event, <PyObject*>(), <PyObject*>how)
    event = <Event>made
    Py_DECREF(event)            # one reference is the call's, one the name's
    return event


cdef l0rt_stream* stream_of(Queue queue) except NULL:
    """The stream behind an argument; None means the current one."""
    return current_stream(-1) if queue is None else queue.ptr


cdef int Event_record(Event self, l0rt_stream* stream) except -1:
    cdef l0rt_slot* slot
    cdef l0rt_slot* old
    if self.index >= 0 and self.index != stream.device.index:
        raise RuntimeError(
            f"Event device {self.device} does not match recording stream's device "
            f"{device_named(lazy.device_type, stream.device.index)}.")
    if self.interprocess:
        return record_shared(self, stream)
    with nogil:
        slot = slot_acquire(stream, self.enable_timing)
    try:
        with nogil:
            queue_record(stream, slot)
    except BaseException:
        slot_release(slot)
        raise
    old = self.slot
    self.slot = slot
    self.index = stream.device.index
    slot_release(old)
    return 0


# Identity -> address of the Event, which is here no longer than that lives. Where a process with two devices opens an
# event twice, Intel's driver (26.27, run) closes the second device's handle twice: it may be another buffer's by then.
cdef dict _shared = {}
cdef dict _identities = {}      # the other way round: address -> set of identities


cdef int remember_shared(Event self, tuple identity) except -1:
    address = <size_t><PyObject*>self
    _identities.setdefault(address, set()).add(identity)
    _shared[identity] = address
    return 0


cdef void forget_shared(Event self) noexcept:
    address = <size_t><PyObject*>self
    for identity in _identities.pop(address, ()):
        if _shared.get(identity) == address:    # else another thread has opened it at the same time
            del _shared[identity]


cdef dict _leaving_pools = {}   # slot -> pool of interprocess events that were dropped in flight


cdef int take_pool(Event self, EventPool pool, l0rt_device* device, l0rt_peer* peer, l0rt_told* told) except -1:
    """Make the pool's one event the Event's own: its slot never goes to a cache."""
    cdef l0rt_slot* slot
    for left in list(_leaving_pools):
        close_left_pool(<l0rt_slot*><size_t>left)
    slot = <l0rt_slot*>calloc(1, sizeof(l0rt_slot))
    if slot == NULL:
        raise MemoryError()
    slot.device = device
    slot.event = pool.events[0]
    slot.refs = 1
    slot.peer, slot.told = peer, told
    Py_INCREF(pool)
    self.pool = <PyObject*>pool
    self.slot = slot
    self.index = device.index
    return 0


cdef set _recording = set()     # addresses of the interprocess events that some thread records just now


cdef l0rt_slot* begin_recording(Event self) except? NULL:
    """Wait until no other thread records the event, its last record is complete, and no stream of any process waits for
    that any more. Then only this thread may record it, and has the gate of the slot, if there is one already."""
    cdef l0rt_slot* slot
    while True:
        slot = self.slot
        if <size_t><void*>self not in _recording and (slot == NULL or event_take(slot)):
            _recording.add(<size_t><void*>self)
            return slot
        with nogil:
            if slot != NULL:
                slot_wait_by(slot, UINT64_MAX, WAIT_ADAPTIVE)
            nap(WAIT_BLOCK, 0, UINT64_MAX)
        PyErr_CheckSignals()


cdef int record_shared(Event self, l0rt_stream* stream) except -1:
    """There is one native event, whose handle other processes have. So it is recorded again only after the last record
    is complete, and all streams have come past it."""
    cdef l0rt_slot* taken
    if self.pool != NULL and (<EventPool><object>self.pool).imported:
        raise RuntimeError("an event of another process can only be recorded in that process")
    if captures(stream):
        capture_refuse(stream, b"Event.record() of an interprocess event")
    with nogil:
        queue_open(stream)           # first: nothing that could record the event, too, runs between begin and end
    taken = begin_recording(self)
    try:
        if self.slot == NULL:
            take_pool(self, event_pool_for(stream.device.index, 1, False, True), stream.device, NULL, NULL)
        with nogil:
            if self.slot.stream != NULL or self.slot.complete:
                slot_reset(self.slot)
            record_untold(stream, self.slot)
    except BaseException:
        if self.slot != NULL:
            l0rt_store_int(&self.slot.complete, 1)      # nothing will signal it
        raise
    finally:
        _recording.discard(<size_t><void*>self)
        if taken != NULL:
            l0rt_gate_open(&taken.gate)
    if hooked:
        call_hooks(EVENT_RECORD, <uint64_t>self.slot, <uint64_t>stream, 0, 0)
    return 0


cdef void give_up(Event self) noexcept:
    """Destroy the pool when nothing is in flight on its event; until then it is in the list of leaving pools."""
    event_export_end(self.slot)
    _leaving_pools[<size_t>self.slot] = <object>self.pool
    Py_DECREF(<object>self.pool)
    close_left_pool(self.slot)


cdef void close_left_pool(l0rt_slot* slot) noexcept:
    cdef bint over
    pool = _leaving_pools.pop(<size_t>slot, None)   # first: whoever has it is the only one that looks at the slot
    if pool is None:
        return
    with nogil:
        orphans_look()
        over = slot.refs == 1 and slot_is_over(slot, True)
    if over or not table.alive:
        (<EventPool>pool).close()
        if slot.peer != NULL:
            peer_drop(slot.peer)
        free(slot.waiters)
        free(slot)
    else:
        _leaving_pools[<size_t>slot] = pool


cdef int Event_wait(Event self, l0rt_stream* stream) except -1:
    cdef l0rt_slot* slot = self.slot
    if slot == NULL:
        return 0
    slot_retain(slot)
    try:
        with nogil:
            queue_wait(stream, slot)
    finally:
        slot_release(slot)
    return 0


cdef object slots_elapsed_ms(l0rt_slot* start, l0rt_slot* end):
    """The milliseconds between two recorded points that are complete."""
    if start.ticks == NULL or end.ticks == NULL:
        raise InvalidArgumentError("Both events must be created with argument 'enable_timing=True'.")
    if start.device != end.device:
        raise ValueError(f"the events are of two devices, {device_named(lazy.device_type, start.device.index)} and "
                         f"{device_named(lazy.device_type, end.device.index)}: their clocks differ")
    return elapsed_ms(start.ticks[0], end.ticks[0], <int64_t>(end.host_ns - start.host_ns),
                      start.device.info.timestamp_bits, start.device.info.timer_hz)


def elapsed_ms(start, end, host_span_ns, bits, hz):
    """Return the milliseconds from tick ``start`` to tick ``end`` of a counter of ``bits`` bits at ``hz`` a second.

    The counter alone tells the span modulo its period; the host clock's span, ``host_span_ns``, tells how many whole
    periods to add (it may be off by half a period). Level Zero 1.17, "Kernel Timestamp Events".
    """
    period = 1 << bits
    ticks = (end - start) % period
    expected = host_span_ns * hz // 1_000_000_000
    ticks += (expected - ticks + period // 2) // period * period
    return ticks * 1000.0 / hz


known_as(Event, b"l0rt.Event")
