"""Events as Python sees them: a point in a stream's work, taken anew with every record."""

cimport cython
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport UINT64_MAX, int64_t, uint64_t

from l0rt.runtime.current cimport current_stream
from l0rt.runtime.eventcache cimport slot_acquire, slot_release, slot_retain
from l0rt.runtime.interfaces cimport call, get_slots, other, set_slots, slots
from l0rt.runtime.lane cimport Lane, lane_record, lane_wait
from l0rt.runtime.naming cimport device as device_named, index_of
from l0rt.runtime.records cimport *
from l0rt.runtime.waits cimport slot_query, slot_wait

from l0rt.errors import UnsupportedError
from l0rt.runtime.devices import lazy
from l0rt.runtime.interfaces import on_choice


@cython.freelist(64)
cdef class Event:
    """Event(device=None, *, enable_timing=False, blocking=False, interprocess=False)
--

A marker of a point in a stream's work.

``enable_timing``: the device writes its clock when the point is reached, for `elapsed_time`. ``blocking`` and
``interprocess`` are accepted as in torch. The native event is made at the first `record`, on that stream's
device. Recording anew never disturbs who waits for the earlier record.
"""

    def __cinit__(self, device=None, *, bint enable_timing=False, bint blocking=False, bint interprocess=False):
        self.index = -1 if device is None else index_of(device, -1, lazy.device_type)
        self.enable_timing = enable_timing
        self.blocking = blocking
        self.interprocess = interprocess

    def record(self, Lane stream=None):
        """Mark the point that ``stream`` (the current one by default) has been given work up to."""
        Event_record(self, stream_of(stream))

    def wait(self, Lane stream=None):
        """Make ``stream`` (the current one by default) wait for this event; the host goes on at once."""
        Event_wait(self, stream_of(stream))

    def query(self):
        """Return whether everything before the recorded point is done; True if nothing was recorded."""
        return self.slot == NULL or slot_query(self.slot) == 1

    def synchronize(self, timeout=None):
        """Block until the event is complete.

        With ``timeout`` in seconds, return whether it completed in that time. Ctrl-C interrupts.
        """
        cdef uint64_t limit = timeout_ns(timeout)
        cdef l0rt_slot* slot = self.slot
        cdef bint fired = True
        if slot != NULL and not slot.complete:
            slot_retain(slot)   # another thread may record anew meanwhile
            try:
                with nogil:
                    fired = slot_wait(slot, limit)
            finally:
                slot_release(slot)
        return None if timeout is None else fired

    def elapsed_time(self, end_event):
        """Return the milliseconds between this event and ``end_event``, both timed, recorded and complete."""
        cdef Event end
        if not isinstance(end_event, Event):
            raise TypeError(f"elapsed_time() takes an Event, not {type(end_event).__name__}")
        end = end_event
        if not (self.enable_timing and end.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.slot == NULL or end.slot == NULL:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        if self.slot.device != end.slot.device:
            raise ValueError(f"the events are of two devices, {self.device} and {end.device}: their clocks differ")
        return elapsed_ms(self.slot.ticks[0], end.slot.ticks[0], <int64_t>(end.slot.host_ns - self.slot.host_ns),
                          self.slot.device.info.timestamp_bits, self.slot.device.info.timer_hz)

    def ipc_handle(self):
        """Events are not shared between processes yet."""
        raise UnsupportedError("torch.Event ipc is not supported yet, nor is that of l0rt.Event")

    @staticmethod
    def from_ipc_handle(device, handle):
        """Events are not shared between processes yet."""
        raise UnsupportedError("torch.Event ipc is not supported yet, nor is that of l0rt.Event")

    @property
    def device(self):
        """The device that the event is bound to; without an index before the first record."""
        return device_named(lazy.device_type) if self.index < 0 else device_named(lazy.device_type, self.index)

    @property
    def event_id(self):
        """The native ``ze_event_handle_t`` of the last record as an integer, 0 if there is none."""
        return <size_t>self.slot.event if self.slot != NULL else 0

    def __copy__(self):
        raise TypeError("an Event cannot be copied")

    def __deepcopy__(self, memo):
        raise TypeError("an Event cannot be copied")

    def __reduce__(self):
        raise TypeError("an Event cannot be pickled")

    def __repr__(self):
        state = "not recorded" if self.slot == NULL else "complete" if self.slot.complete else "recorded"
        return f"<l0rt.Event device={self.device} {state}>"

    def __dealloc__(self):
        slot_release(self.slot)


cdef slots _built_in, _others


cdef PyObject* _make_other(PyTypeObject* cls, PyObject* args, PyObject* kwargs) except NULL:
    """``l0rt.Event(...)`` while another accelerator is current; a subclass stays what it is."""
    if other == NULL or cls != <PyTypeObject*>Event:
        return _built_in.make(cls, args, kwargs)
    return call((<object>other).Event, args, kwargs)


def _choose(bint built_in):
    """Give the class the slots of the choice, so that the built-in accelerator's events pay nothing for it."""
    set_slots(Event, &_built_in if built_in else &_others)


get_slots(Event, &_built_in)
_others.make = _make_other
on_choice(_choose)


cdef l0rt_stream* stream_of(Lane lane) except NULL:
    """The stream behind an argument; None means the current one."""
    return current_stream(-1) if lane is None else lane.ptr


cdef uint64_t timeout_ns(timeout) except? 0:
    """Seconds, None for no limit, as nanoseconds."""
    if timeout is None:
        return UINT64_MAX
    seconds = float(timeout)
    if not seconds >= 0:
        raise ValueError(f"timeout must be None or seconds that are not negative, got {timeout!r}")
    return UINT64_MAX - 1 if seconds >= 1e10 else <uint64_t>(seconds * 1e9)


cdef int Event_record(Event self, l0rt_stream* stream) except -1:
    cdef l0rt_slot* slot
    cdef l0rt_slot* old
    if self.index >= 0 and self.index != stream.device.index:
        raise RuntimeError(
            f"Event device {self.device} does not match recording stream's device "
            f"{device_named(lazy.device_type, stream.device.index)}.")
    with nogil:
        slot = slot_acquire(stream, self.enable_timing)
    try:
        with nogil:
            lane_record(stream, slot)
    except BaseException:
        slot_release(slot)
        raise
    old = self.slot
    self.slot = slot
    self.index = stream.device.index
    slot_release(old)
    return 0


cdef int Event_wait(Event self, l0rt_stream* stream) except -1:
    cdef l0rt_slot* slot = self.slot
    if slot == NULL:
        return 0
    slot_retain(slot)
    try:
        with nogil:
            lane_wait(stream, slot)
    finally:
        slot_release(slot)
    return 0


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
