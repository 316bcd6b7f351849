# SPDX-License-Identifier: Apache-2.0
"""Streams as Python sees them, and the calling thread's current one."""

import ctypes

from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
cimport cython
from libc.stdint cimport int64_t, uint64_t
from posix.unistd cimport getpid

from l0rt._base.arguments cimport clamped_priority, is_whole, known_as, list_of_protocol, whole
from l0rt._base.interrupts cimport enter_at_once
from l0rt.runtime.current.event cimport Event, Event_record, Event_wait, built_in_event
from l0rt.runtime.current.waits cimport log_stuck
from l0rt.runtime.current.thread cimport (
    current_device,
    current_stream as c_current_stream,
    current_stream_object,
    exchange_stream,
    restore_saved,
    save,
)
from l0rt.runtime.streams.capture cimport capture_callback, capture_refuse, captures
from l0rt.runtime.streams.stream_pool cimport (
    adopt_list,
    device_synchronize,
    hold_adopted,
    pool_stream,
    release_adopted,
    stream_by_id,
)
from l0rt.runtime.streams.devices cimport device_at
from l0rt.runtime.streams.ledger cimport process_began
from l0rt.runtime.streams.naming cimport (
    call,
    device as device_named,
    get_slots,
    index_of,
    maker_for,
    maker_of,
    set_slots,
    slots,
)
from l0rt.runtime.streams.queue cimport (
    Queue,
    queue_face,
    queue_name,
    queue_query,
    queue_share,
    queue_synchronize_by,
    queue_wait_queue,
)
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport stream_policy, timeout_ns
from l0rt.ze.api cimport ze_command_list_handle_t

from l0rt._base.described import takes_device
from l0rt.runtime.current import callbacks
from l0rt.runtime.streams.devices import device_count, lazy


@cython.binding(False)
cdef class Stream(Queue):
    """Stream(device=None, priority=0, *, stream_id=None, device_index=None, device_type=None)
--

A queue of device work. The work of one stream runs in order; two streams run independently.

Without ``stream_id`` the object is the next stream of the device's pool. Two objects are equal if they are the same
queue. In a with block the stream and its device are current.

Parameters
----------
device : int, str, device or None, optional
    An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
priority : int, optional
    -1 is high, 0 normal and 1 low. Other values are clamped.
stream_id : int, optional
    Find the existing stream with this `stream_id`, together with the next two parameters.
device_index : int, optional
    The index of that stream's device.
device_type : str, optional
    The type of that stream's device.

Raises
------
ValueError
    There is no stream with this id.
DeviceIndexError
    There is no device with this index.

Notes
-----
A stream is an immediate command list of Level Zero (specification, section "Low-Latency Immediate Command Lists"). As
in torch, the pool has 32 streams for each device and priority and hands them out in turn, and priorities are clamped
instead of refused.
"""

    def __cinit__(self, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None):
        cdef int64_t id
        cdef int level
        cdef int index
        if stream_id is None:
            if device_index is not None or device_type is not None:
                raise TypeError("device_index and device_type need stream_id")
            level = clamped_priority(priority)
            lazy.init()
            index = index_of(device, current_device(), lazy.device_type)
            self.ptr = pool_stream(device_at(index), level)
        else:
            if device_type not in (None, lazy.device_type):
                raise ValueError(f"{device_type} doesn't match the current accelerator {lazy.device_type}.")
            number = whole(stream_id, "stream_id")
            lazy.init()
            index = index_of(device_index if device is None else device, current_device(), lazy.device_type)
            if not 0 <= number < 1 << 63:
                raise ValueError(f"device {index} has no stream with the id {number}")
            id = number
            self.ptr = stream_by_id(device_at(index), id)
            if self.ptr.kind == STREAM_ADOPTED:
                hold_adopted(self.ptr)
                self.holds = True

    @staticmethod
    def priority_range():
        """Return the lowest and the highest priority, ``(1, -1)``.

        Returns
        -------
        tuple of two int
        """
        return 1, -1

    def query(self):
        """Return whether all work that the stream was given is complete.

        Returns
        -------
        bool
        """
        cdef bint idle
        with nogil:
            idle = queue_query(self.ptr)
        return idle

    def synchronize(self, timeout=None, *, policy=None):
        """Wait until all work that the stream was given is complete. Ctrl-C interrupts the wait.

        Parameters
        ----------
        timeout : float or None, optional
            Seconds, not negative. None waits without a limit, and the call returns None.
        policy : "spin", "yield", "block" or None, optional
            How the host waits. None takes the setting ``xpu.stream.wait_policy``.

        Returns
        -------
        bool or None
            With ``timeout``, whether the work was complete in time.

        Raises
        ------
        ValueError
            ``timeout`` is negative, or ``policy`` is not one of these.
        DeviceLostError
            The device hung or was reset.

        Notes
        -----
        It calls ``zeCommandListHostSynchronize`` in slices of at most a tenth of a second, so that signals and a lost
        device are noticed.
        """
        cdef uint64_t limit = timeout_ns(timeout)
        cdef int how = stream_policy(policy, self.ptr.device.index)
        cdef bint idle
        if captures(self.ptr):
            capture_refuse(self.ptr, b"Stream.synchronize()")
        with nogil:
            idle = queue_synchronize_by(self.ptr, limit, how)
        if not idle:
            log_stuck(self.ptr)
        return None if timeout is None else idle

    def add_callback(self, function, /, *args):
        """Call ``function(*args)`` on the host when all work that the stream was given so far is complete.

        The callbacks of one stream run one after another, on a thread of their own. Later work of the stream does not
        wait for them. An exception in a callback goes to `sys.unraisablehook`. While a graph is captured from the
        stream, the callback becomes a part of it: each replay calls it when what is before it in the graph is complete.

        Parameters
        ----------
        function : callable
            The function to call.
        *args : object
            Its arguments.

        Raises
        ------
        TypeError
            ``function`` is not callable.
        """
        if not callable(function):
            raise TypeError(f"a callback must be callable, got {type(function).__name__}")
        if captures(self.ptr) and capture_callback(self.ptr, function, args):
            return
        callbacks.add(<size_t>self.ptr, self.record_event(), function, args)

    @staticmethod
    def from_handle(handle, *, device=None, owner=None):
        """Use an immediate command list of other software as a stream of ``device``.

        l0rt uses the list while a stream object with this handle exists, and never destroys it. The caller must make
        sure that no two threads append to the list at the same time, as Level Zero's specification requires.

        Parameters
        ----------
        handle : int or object
            The ``ze_command_list_handle_t`` of an immediate list in l0rt's context, or an object whose method
            ``__l0_stream__`` tells it.
        device : int, str, device or None, optional
            An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
        owner : object, optional
            An object that is kept alive while the list is used.

        Returns
        -------
        Stream

        Raises
        ------
        InvalidArgumentError
            The driver knows no list with this handle.
        ValueError
            The list is not immediate, or is of another device or another context.
        TypeError
            ``__l0_stream__`` does not return ``(0, "cmdlist_immediate", handle)``.
        DeviceIndexError
            There is no device with this index.
        """
        cdef l0rt_device* on
        cdef l0rt_stream* stream
        cdef size_t address
        handle = list_of_protocol(handle)
        number = whole(handle, "a command list's handle") if is_whole(handle) else 0
        if not 0 < number < 1 << 64:
            raise ValueError(f"a command list's handle must be an address, got {handle!r}")
        address = number
        lazy.init()
        on = device_at(index_of(device, current_device(), lazy.device_type))
        stream = adopt_list(on, <ze_command_list_handle_t>address, owner)
        made = XpuStream.__new__(XpuStream, stream_id=stream.id, device_index=on.index)
        release_adopted(stream)     # the object has its own reference
        return made

    def wait_event(self, Event event not None):
        """Make later work of this stream wait for ``event``. The host continues at once.

        Parameters
        ----------
        event : Event
            The event to wait for. An event that was never recorded makes nothing wait.

        Notes
        -----
        As with ``cudaStreamWaitEvent``, the stream waits for the last record before this call. A later record of the
        event changes nothing.
        """
        Event_wait(event, self.ptr)

    def wait_stream(self, Queue stream not None):
        """Make later work of this stream wait for all work that ``stream`` was given so far.

        Parameters
        ----------
        stream : Stream
            The stream to wait for.
        """
        with nogil:
            queue_wait_queue(self.ptr, stream.ptr)

    def record_event(self, Event event=None):
        """Record ``event`` on this stream and return it.

        Parameters
        ----------
        event : Event or None, optional
            None makes a new event.

        Returns
        -------
        Event
            ``event``, or the new event.
        """
        if event is None:
            event = built_in_event(False)
        Event_record(event, self.ptr)
        return event

    def is_capturing(self):
        """Return whether a graph is being captured from this stream.

        Returns
        -------
        bool
        """
        return captures(self.ptr)

    @property
    def stream_id(self):
        """The number of the stream on its device. ``Stream(stream_id=...)`` finds the stream again."""
        return self.ptr.id

    @property
    def device_index(self):
        """The index of the stream's device."""
        return self.ptr.device.index

    @property
    def device_type(self):
        """The type of the stream's device."""
        return lazy.device_type

    @property
    def device(self):
        """The stream's device."""
        return device_named(lazy.device_type, self.ptr.device.index)

    @property
    def priority(self):
        """The priority: -1 is high, 0 normal, 1 low."""
        return self.ptr.priority

    @property
    def native_handle(self):
        """The ``ze_command_list_handle_t`` of the stream as an integer. The list is created if needed."""
        cdef ze_command_list_handle_t handle
        with nogil:
            handle = queue_share(self.ptr)
        return <size_t>handle

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.native_handle)

    @property
    def hw_queue(self):
        """The ``(ordinal, index)`` of the stream's hardware queue. Streams that share one run one after another."""
        return self.ptr.ordinal, self.ptr.queue

    def __l0_stream__(self):
        """Return ``(0, "cmdlist_immediate", handle)``: the protocol's version, the kind, the native handle."""
        return 0, "cmdlist_immediate", self.native_handle

    def __enter__(self):
        cdef int before = current_device()
        cdef l0rt_stream* previous = exchange_stream(self.ptr)
        save(<void*>self, before, previous)
        return self

    def __exit__(self, kind, value, trace):
        if restore_saved(<void*>self) < 0:
            raise RuntimeError("this thread has not entered the stream: a with block begins and ends on one thread")

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return self.ptr == (<Stream>other).ptr

    def __hash__(self):
        return hash((self.ptr.device.index, self.ptr.id))

    def __repr__(self):
        return queue_name(self.ptr)

    def __await__(self):
        """Wait in a coroutine of asyncio for all work that the stream was given so far. Other tasks run meanwhile."""
        if captures(self.ptr):
            capture_refuse(self.ptr, b"await stream")
        return self.record_event().__await__()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __dealloc__(self):
        if self.holds:
            release_adopted(self.ptr)

    def __reduce__(self):
        return _unpickled, (this_process(), self.ptr.id, self.ptr.device.index)


cdef tuple this_process():
    pid = getpid()
    return pid, process_began(pid)


def _unpickled(tuple process, stream_id, device_index):
    """Return the stream with this number, in the process that pickled it."""
    if process != this_process():
        raise TypeError(f"a Stream of the process {process[0]} cannot be unpickled in another, {getpid()}: an Event's "
                        "ipc_handle() brings its order there")
    return XpuStream(stream_id=stream_id, device_index=device_index)


@cython.binding(False)
cdef class XpuStream(Stream):
    """Stream(device=None, priority=0, **kwargs)
--

A stream of the built-in device type, independent of the current accelerator. See `l0rt.Stream`.

Parameters
----------
device : int, str, device or None, optional
    An index, a name such as ``xpu:1``, or an object that has a device. None is the current device.
priority : int, optional
    -1 is high, 0 normal and 1 low. Other values are clamped.
**kwargs : object
    ``stream_id``, ``device_index`` and ``device_type`` of `l0rt.Stream`.

Raises
------
ValueError
    There is no stream with this id.
DeviceIndexError
    There is no device with this index.
"""


@cython.binding(False)
cdef class StreamContext:
    """StreamContext(stream)
--

Make ``stream`` and its device current inside a with block. None changes nothing.

Parameters
----------
stream : Stream or None
    None changes nothing.
"""
    cdef readonly object stream

    def __init__(self, stream):
        if stream is not None and not isinstance(stream, XpuStream):
            raise TypeError(f"expected a Stream or None, got {type(stream).__name__}")
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, kind, value, trace):
        if self.stream is not None:
            self.stream.__exit__(kind, value, trace)


cdef slots _built_in, _choosing


cdef PyObject* _make(PyTypeObject* cls, PyObject* args, PyObject* kwargs) except NULL:
    """``l0rt.Stream(...)`` makes a stream of the current accelerator, or of the ``device_type`` that it names."""
    cdef object named = None
    if cls != <PyTypeObject*>Stream:
        return _built_in.make(cls, args, kwargs)
    if kwargs != NULL:
        named = (<dict>kwargs).get("device_type")
    maker = maker_of(named) if isinstance(named, str) else maker_for(args, kwargs)
    if maker is None:
        return _built_in.make(<PyTypeObject*>XpuStream, args, kwargs)
    return call(maker.Stream, args, kwargs)


queue_face(Stream)
get_slots(Stream, &_built_in)
_choosing.make = _make
set_slots(Stream, &_choosing)


cdef object stream_object(l0rt_stream* stream):
    """The stream's canonical object, made once and kept for the life of the process; a new one for an adopted list."""
    cdef XpuStream made
    if stream.kind == STREAM_ADOPTED:
        if not stream.live:
            raise RuntimeError("the stream's list was given back to its owner")
        return XpuStream.__new__(XpuStream, stream_id=stream.id, device_index=stream.device.index)
    if stream.object == NULL:
        made = XpuStream.__new__(XpuStream, stream_id=stream.id, device_index=stream.device.index)
        if stream.object == NULL:       # a finalizer may have run, and another thread in it
            Py_INCREF(made)
            stream.object = <PyObject*>made
    return <object>stream.object


def current_stream(device=None, /):
    """Return the calling thread's current stream on ``device`` (the current one by default)."""
    cdef PyObject* stream
    if device is None:
        stream = current_stream_object()
        if stream != NULL:
            return <object>stream
    lazy.init()
    return stream_object(c_current_stream(checked_index(device)))


def default_stream(device=None, /):
    """Return the default stream of ``device``, which the pool never hands out."""
    lazy.init()
    return stream_object(&device_at(checked_index(device)).default_stream)


def set_stream(Queue stream not None):
    """Make ``stream`` the calling thread's current stream, and its device the current device."""
    exchange_stream(stream.ptr)


@takes_device
def current_raw_stream(device=None):
    """Return the native handle of the current stream on ``device`` as an integer, without creating a Stream object.

    Returns
    -------
    int
        The ``ze_command_list_handle_t``.
    """
    cdef l0rt_stream* stream
    cdef ze_command_list_handle_t handle
    lazy.init()
    stream = c_current_stream(checked_index(device))
    with nogil:
        handle = queue_share(stream)
    return <size_t>handle


def synchronize(device=None, /, *, timeout=None):
    """Wait until the work of all streams of ``device`` is complete.

    Before the first use of a device it returns at once.
    """
    cdef uint64_t limit = timeout_ns(timeout)
    cdef l0rt_device* record
    cdef bint idle = True
    if lazy.opened or not device_count():
        record = device_at(checked_index(device))
        with nogil:
            idle = device_synchronize(record, limit)
        if not idle:
            log_stuck(&record.default_stream)
    return None if timeout is None else idle


def index_or_current(what):
    """Return the index of an existing device that ``what`` names, the current one's for None."""
    lazy.init()
    return checked_index(what)


cdef int checked_index(what) except -1:
    """The index of an existing device that ``what`` names."""
    cdef int index = index_of(what, current_device(), lazy.device_type)
    device_at(index)
    return index


known_as(Stream, b"l0rt.Stream")
enter_at_once((Stream, StreamContext))
known_as(XpuStream, b"l0rt.xpu.Stream")
known_as(StreamContext, b"l0rt.xpu.StreamContext")
