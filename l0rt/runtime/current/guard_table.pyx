# SPDX-License-Identifier: Apache-2.0
"""Device types that have a guard table: streams, events and the current device of any of them, through its functions.

The host is one of them. Every function of a table is called without the GIL, so a function that blocks does not stop
other threads.
"""

from _thread import get_ident

cimport cython
from cpython.exc cimport PyErr_CheckSignals, PyErr_Clear, PyErr_Occurred
from cpython.object cimport PyObject, PyTypeObject
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer
from cpython.ref cimport Py_DECREF
from libc.stdint cimport UINT64_MAX, uint64_t, uintptr_t

from l0rt._base.arguments cimport address_in, clamped_priority
from l0rt._base.factory cimport made_by
from l0rt._base.interrupts cimport enter_at_once
from l0rt.runtime.streams.guard_impl cimport *
from l0rt.runtime.streams.naming cimport (
    NO_INDEX,
    add_guard_impl,
    cpu_impl,
    device as device_named,
    get_slots,
    guard_impl_of,
    index_of,
    slots,
    type_named,
)
from l0rt.runtime.streams.wait cimport WAIT_BLOCK, event_policy, host_clock_ns, nap, stream_policy, timeout_ns

from l0rt.runtime.streams import naming
from l0rt.runtime.streams.naming import DTYPES


cdef int failed(Table table, str what) except -1:
    """Pass on the exception that the function has set, or say which function failed."""
    if PyErr_Occurred() == NULL:
        raise RuntimeError(f"{table.type}: {what} failed")
    return -1


cdef size_t required_size(const l0rt_guard_impl* impl) noexcept:
    """The bytes of the entries that every table has."""
    return <char*>&impl.get_new_stream - <char*>impl


cdef int need(Table table, const void* entry, str what) except -1:
    """NotImplementedError if the table ends before ``entry``, one of its optional ones, or leaves it out."""
    if <char*>entry + sizeof(void*) > <char*>table.impl + table.impl.size or (<void**>entry)[0] == NULL:
        raise NotImplementedError(f"the guard table of {table.type} has no {what}")
    return 0


@cython.final
@cython.binding(False)
cdef class Table:
    """A checked guard table. ``source`` is a capsule named ``l0rt_guard_impl``, or its address; it is never freed."""
    cdef const l0rt_guard_impl* impl
    cdef readonly str type
    cdef readonly bint is_host          # its device has no number, its stream and events have no native ones
    cdef readonly object Stream         # the class of this table's streams, and of no other table's
    cdef readonly object Event

    def __cinit__(self, source):
        if PyCapsule_CheckExact(source):
            self.impl = <const l0rt_guard_impl*>PyCapsule_GetPointer(source, b"l0rt_guard_impl")
        else:
            self.impl = <const l0rt_guard_impl*><uintptr_t>source
        if self.impl == NULL:
            raise ValueError("a guard table cannot be at address 0")
        if self.impl.version != L0RT_GUARD_IMPL_VERSION or self.impl.size < required_size(self.impl):
            raise ValueError(
                f"a guard table of version {self.impl.version} and {self.impl.size} bytes: expected version "
                f"{L0RT_GUARD_IMPL_VERSION} and {required_size(self.impl)} bytes or more")
        # Behind the head, everything is a pointer.
        for i in range(2, required_size(self.impl) // sizeof(void*)):
            if (<void**>self.impl)[i] == NULL:
                raise ValueError(f"entry {i - 2} of the guard table is missing")
        if self.impl.type == NULL:
            raise ValueError("the guard table has no type: expected a name, got NULL")
        self.type = (<bytes>self.impl.type).decode()
        self.is_host = self.impl == &cpu_impl
        self.Stream = class_over(self, TableStream, "Stream", self.new_stream)
        self.Event = class_over(self, TableEvent, "Event", self.new_event)

    def members(self):
        """Return what an interface has by the table, by name."""
        return {name: getattr(self, name) for name in MEMBERS}

    cdef int index_named(self, device, int otherwise) except? -1:
        """The index that a number or a name means, ``otherwise`` where none is meant."""
        return otherwise if device is None else index_of(device, otherwise, self.type)

    cdef int index_or_current(self, device) except -1:
        cdef int index = self.index_named(device, -1)
        return self.current_device() if index < 0 else index

    cdef object device_at(self, int index):
        return device_named(self.type) if index < 0 or self.is_host else device_named(self.type, index)

    cdef object number_of(self, void* pointer):
        """What a stream or an event of the table is known by: an address; 0 on the host, as torch has it."""
        return 0 if self.is_host else <uintptr_t>pointer

    def device_count(self):
        """Return the number of devices."""
        cdef int count
        with nogil:
            count = self.impl.device_count()
        return count

    def current_device(self):
        """Return the calling thread's device index."""
        cdef int index
        with nogil:
            index = self.impl.get_device()
        if index < 0:
            failed(self, "get_device")
        return index

    def exchange_device(self, device):
        """Make ``device`` current unless it is negative; return the previous index."""
        cdef int before, index = self.index_named(device, -1)
        with nogil:
            before = self.impl.exchange_device(index)
        if before < 0:
            failed(self, "exchange_device")
        return before

    def set_device(self, device):
        """Make ``device`` current."""
        cdef int status, index = self.index_named(device, -1)
        with nogil:
            status = self.impl.set_device(index)
        if status < 0:
            failed(self, "set_device")

    def maybe_exchange_device(self, int device):
        """Bring ``device`` back, which cannot fail; negative: no change. Return the previous index, -1: unknown."""
        cdef int before
        with nogil:
            before = self.impl.get_device()
            if device >= 0:
                self.impl.unchecked_set_device(device)
        if before < 0:
            PyErr_Clear()
        return before

    def synchronize(self, device=None, *, timeout=None):
        """Wait for all work of ``device``. Only the host's ends in any time: no function asks how far it is."""
        if timeout_ns(timeout) != UINT64_MAX and not self.is_host:
            raise NotImplementedError(f"the guard table of {self.type} has no wait for a device with a timeout")
        cdef int index = self.index_or_current(device)
        cdef int status
        with nogil:
            status = self.impl.synchronize_device(index)
        if status < 0:
            failed(self, "synchronize_device")
        return None if timeout is None else True

    def current_stream(self, device=None):
        """Return the calling thread's stream on ``device``."""
        cdef int index = self.index_named(device, -1)
        cdef void* found
        with nogil:
            found = self.impl.get_stream(index)
        return stream_at(self, found, "get_stream")

    def get_raw_stream(self, device=None):
        """Return the native handle of the calling thread's stream on ``device``."""
        return self.current_stream(device).native_handle

    def default_stream(self, device=None):
        """Return the default stream of ``device``."""
        cdef int index = self.index_named(device, -1)
        cdef void* found
        with nogil:
            found = self.impl.get_default_stream(index)
        return stream_at(self, found, "get_default_stream")

    def new_stream(self, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None):
        """Return the next stream of the pool of ``device``. The host's one stream is found by its number too."""
        cdef int level = clamped_priority(priority)
        cdef int index = self.index_or_current(device_index if device is None else device)
        cdef void* found
        if stream_id is not None and not self.is_host:
            raise NotImplementedError(f"the guard table of {self.type} finds no stream by its number")
        with nogil:
            found = self.impl.get_stream_from_pool(index, level)
        return stream_at(self, found, "get_stream_from_pool")

    def new_event(self, device=None, *, bint enable_timing=False, bint blocking=False, bint interprocess=False):
        """Return an event; the native one is made when it is recorded."""
        cdef TableEvent event = blank(&_event_slots, self.Event)
        if enable_timing:
            need(self, &self.impl.record_event, "record_event")
            need(self, &self.impl.elapsed_time, "elapsed_time")
        if interprocess and not self.is_host:   # the host's say so when a handle is asked for
            raise NotImplementedError("torch.Event ipc is not supported yet for a device type's guard table")
        event.table = self
        event.index = self.index_named(device, NO_INDEX)
        event.index = -1 if event.index == NO_INDEX else naming.existing_index(self, event.index)
        event.enable_timing, event.blocking, event.interprocess = enable_timing, blocking, interprocess
        return event

    def supported_dtypes(self, device=None):
        """Return the names of the element types that ``device`` computes with."""
        cdef int index = self.index_or_current(device)
        cdef uint64_t dtypes = 0
        cdef int status
        need(self, &self.impl.device_capability, "device_capability")
        with nogil:
            status = self.impl.device_capability(index, &dtypes)
        if status < 0:
            failed(self, "device_capability")
        return {name for i, name in enumerate(DTYPES) if dtypes >> i & 1}

    def record_data_ptr_on_stream(self, data_ptr, stream):
        """Let the memory at this address, once freed, not be reused before the stream's present work is done."""
        cdef void* ptr = <void*><uintptr_t>address_in(data_ptr, 0)
        cdef TableStream user = own_stream(self, stream, "record_data_ptr_on_stream")
        cdef int status
        need(self, &self.impl.record_data_ptr_on_stream, "record_data_ptr_on_stream")
        with nogil:
            status = self.impl.record_data_ptr_on_stream(ptr, user.pointer)
        if status < 0:
            failed(self, "record_data_ptr_on_stream")

    def publish(self):
        """Let C code find the table by its type."""
        add_guard_impl(self.impl)

    def set_stream(self, stream):
        """Make ``stream`` and its device current."""
        cdef TableStream next = own_stream(self, stream, "set_stream")
        cdef void* before
        with nogil:
            before = self.impl.exchange_stream(next.pointer)
        if before == NULL:
            failed(self, "exchange_stream")


cdef object stream_at(Table table, void* pointer, str what):
    cdef TableStream stream
    if pointer == NULL:
        failed(table, what)
    stream = blank(&_stream_slots, table.Stream)
    stream.table = table
    stream.pointer = pointer
    return stream


cdef TableStream own_stream(Table table, stream, str call):
    return stream if is_own(table, stream, TableStream) else refuse_other(table, stream, f"{call}() takes a Stream")


cdef TableEvent own_event(Table table, event, str call):
    return event if is_own(table, event, TableEvent) else refuse_other(table, event, f"{call}() takes an Event")


cdef bint is_own(Table table, what, cls) except -1:
    """A table's functions must not get what is another device type's: it is pointers to them."""
    return isinstance(what, cls) and what.device_type == table.type


cdef object refuse_other(Table table, what, str told):
    type_told = None if isinstance(what, str) else type_named(what)
    of = "" if type_told in (None, table.type) else f" of {type_told}"
    raise TypeError(f"{told} of {table.type}, not {what.__class__.__name__}{of}")


cdef object table_wait(Table table, int_ptr ask, int_ptr wait, void* pointer, timeout, int how, str what):
    """Wait for a stream or an event. A table's own wait takes no limit: with one, it is asked again and again."""
    cdef uint64_t limit = timeout_ns(timeout), start = host_clock_ns(), spent
    cdef int status
    if timeout is None:
        with nogil:
            status = wait(pointer)
        return failed(table, f"synchronize_{what}") if status < 0 else None
    while True:
        with nogil:
            status = ask(pointer)
        if status < 0:
            failed(table, f"query_{what}")
        spent = host_clock_ns() - start
        if status == 1 or spent >= limit:
            return status == 1
        PyErr_CheckSignals()
        with nogil:
            nap(how, spent, limit - spent)


cdef object blank(slots* how, cls):
    """An object of a table's class, which nobody else can make: its functions fill it in."""
    cdef PyObject* made = how.make(<PyTypeObject*>cls, <PyObject*>(), NULL)
    result = <object>made
    Py_DECREF(result)           # one reference is the call's, one the name's
    return result


def class_over(Table table not None, base, str name, make):
    """Return a class of a table's own, whose call is ``make``."""
    def __new__(cls, *args, **kwargs):
        return make(*args, **kwargs)

    def __init__(self, *args, **kwargs):
        pass

    about = f"{'An event' if base is TableEvent else 'A stream'} of the device type {table.type}."
    return type(name, (base,), {"__new__": __new__, "__init__": __init__, "__slots__": ("__weakref__",),
                                "__doc__": about, "__module__": __name__})


@cython.final
@cython.binding(False)
cdef class TableBlock:
    """What a with block of a stream has found."""
    cdef l0rt_stream_guard guard


made_by(TableBlock, "blocks of a stream of a guard table are made when they are entered")


@cython.binding(False)
cdef class TableStream:
    """A stream of a device type that brought a guard table; in a with block it and its device are current."""
    cdef Table table
    cdef void* pointer
    cdef list entered           # (thread, TableBlock) of the blocks that it is in

    def __init__(self):
        raise TypeError("streams of a guard table come from its functions")

    @property
    def device_index(self):
        """The index of the stream's device."""
        return self.table.impl.stream_device(self.pointer)

    @property
    def device_type(self):
        """The type of the stream's device."""
        return self.table.type

    @property
    def device(self):
        """The stream's device."""
        return self.table.device_at(self.device_index)

    @property
    def native_handle(self):
        """The native stream as an integer; 0 on the host."""
        cdef void* handle
        if self.table.is_host:
            return 0
        with nogil:
            handle = self.table.impl.stream_native_handle(self.pointer)
        if handle == NULL:
            failed(self.table, "stream_native_handle")
        return <uintptr_t>handle

    @property
    def stream_id(self):
        """The number of the stream: the address that its device type uses for it; 0 on the host."""
        return self.table.number_of(self.pointer)

    @property
    def priority(self):
        """-1 high, 0 normal, 1 low; 0 where the table does not tell."""
        cdef int priority = 0
        cdef int status
        try:
            need(self.table, &self.table.impl.stream_priority, "stream_priority")
        except NotImplementedError:
            return 0
        with nogil:
            status = self.table.impl.stream_priority(self.pointer, &priority)
        if status < 0:
            failed(self.table, "stream_priority")
        return priority

    def is_capturing(self):
        """Return whether a graph is being captured from this stream; False where the table does not tell."""
        cdef int capturing
        try:
            need(self.table, &self.table.impl.is_stream_capturing, "is_stream_capturing")
        except NotImplementedError:
            return False
        with nogil:
            capturing = self.table.impl.is_stream_capturing(self.pointer)
        if capturing < 0:
            failed(self.table, "is_stream_capturing")
        return capturing == 1

    def query(self):
        """Return whether all work given so far is done."""
        cdef int idle
        with nogil:
            idle = self.table.impl.query_stream(self.pointer)
        if idle < 0:
            failed(self.table, "query_stream")
        return idle == 1

    def synchronize(self, timeout=None, *, policy=None):
        """Wait for all work given so far; with ``timeout``, return whether it was complete in time."""
        cdef const l0rt_guard_impl* impl = self.table.impl
        return table_wait(self.table, impl.query_stream, impl.synchronize_stream, self.pointer, timeout,
                        stream_policy(policy, -1), "stream")

    def record_event(self, event=None):
        """Record ``event``, a new one by default; return it."""
        event = self.table.new_event() if event is None else own_event(self.table, event, "record_event")
        event.record(self)
        return event

    def wait_event(self, event):
        """Make later work wait for ``event``."""
        own_event(self.table, event, "wait_event").wait(self)

    def wait_stream(self, stream):
        """Make later work wait for everything given to ``stream`` so far."""
        self.wait_event(own_stream(self.table, stream, "wait_stream").record_event())

    def __enter__(self):
        cdef TableBlock block = TableBlock.__new__(TableBlock)
        cdef int status
        with nogil:
            status = l0rt_stream_guard_enter(&block.guard, self.table.impl, self.pointer)
        if status < 0:
            failed(self.table, "get_device, get_stream or exchange_stream")
        if self.entered is None:
            self.entered = []
        self.entered.append((get_ident(), block))
        return self

    def __exit__(self, kind, value, trace):
        cdef TableBlock block
        me = get_ident()
        for i in range(len(self.entered or ()) - 1, -1, -1):
            if self.entered[i][0] == me:
                block = self.entered.pop(i)[1]
                with nogil:
                    l0rt_stream_guard_reset(&block.guard)
                if PyErr_Occurred() != NULL:
                    failed(self.table, "exchange_stream")
                return
        raise RuntimeError("this thread has not entered the stream: a with block begins and ends on one thread")

    def __repr__(self):
        return f"<l0rt.Stream device={self.device} stream_id={self.stream_id:#x} priority={self.priority}>"

    def __eq__(self, other):
        if not isinstance(other, TableStream):
            return NotImplemented
        return self.pointer == (<TableStream>other).pointer and self.table is (<TableStream>other).table

    def __hash__(self):
        return hash(<uintptr_t>self.pointer)


made_by(TableStream, "streams of a guard table come from its functions")
enter_at_once((TableStream,))


@cython.no_gc                       # the table is needed in __dealloc__, and is in no cycle that ends
@cython.binding(False)
cdef class TableEvent:
    """A point in the work of a stream of a device type that brought a guard table."""
    cdef Table table
    cdef void* pointer
    cdef int index              # the device of the first record; -1: not bound yet
    cdef readonly bint enable_timing
    cdef readonly bint blocking
    cdef readonly bint interprocess

    def __init__(self):
        raise TypeError("events of a guard table come from its functions")

    def record(self, stream=None):
        """Mark the point that ``stream`` (the current one by default) has been given work up to."""
        cdef TableStream on = own_stream(
            self.table, self.table.current_stream() if stream is None else stream, "record")
        cdef int status
        cdef int device = on.device_index
        if self.index >= 0 and self.index != device:
            raise RuntimeError(
                f"Event device {self.device} does not match recording stream's device {on.device}.")
        with nogil:
            if self.enable_timing:
                status = self.table.impl.record_event(&self.pointer, on.pointer, L0RT_EVENT_TIMING)
            else:
                status = self.table.impl.record(&self.pointer, on.pointer)
        if status < 0:
            failed(self.table, "record")
        self.index = device

    @property
    def device(self):
        """The device of the event. It has no index before the first record."""
        return self.table.device_at(self.index)

    @property
    def device_type(self):
        """The type of the event's device."""
        return self.table.type

    @property
    def event_id(self):
        """The native event of the last record as an integer, 0 if there is none."""
        return self.table.number_of(self.pointer)

    def elapsed_time(self, end_event):
        """Return the milliseconds between this event and ``end_event``, both timed, recorded and complete."""
        cdef TableEvent end = own_event(self.table, end_event, "elapsed_time")
        cdef double milliseconds = 0
        cdef int status
        if not (self.enable_timing and end.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.pointer == NULL or end.pointer == NULL:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        with nogil:
            status = self.table.impl.elapsed_time(self.pointer, end.pointer, &milliseconds)
        if status < 0:
            failed(self.table, "elapsed_time")
        return milliseconds

    def wait(self, stream=None):
        """Make ``stream`` (the current one by default) wait for this event."""
        cdef TableStream on = own_stream(self.table, self.table.current_stream() if stream is None else stream, "wait")
        cdef int status = 0
        if self.pointer != NULL:
            with nogil:
                status = self.table.impl.block(self.pointer, on.pointer)
        if status < 0:
            failed(self.table, "block")

    def query(self):
        """Return whether all work before the record is complete. It is True if the event was never recorded."""
        cdef int done = 1
        if self.pointer != NULL:
            with nogil:
                done = self.table.impl.query_event(self.pointer)
        if done < 0:
            failed(self.table, "query_event")
        return done == 1

    def synchronize(self, timeout=None, *, policy=None):
        """Wait until the event is complete; with ``timeout``, return whether it was in time."""
        cdef const l0rt_guard_impl* impl = self.table.impl
        cdef int how = WAIT_BLOCK if policy is None and self.blocking else event_policy(policy, -1)
        if self.pointer == NULL:
            return None if timeout_ns(timeout) == UINT64_MAX else True
        return table_wait(self.table, impl.query_event, impl.synchronize_event, self.pointer, timeout, how, "event")

    def ipc_handle(self):
        """Raise NotImplementedError: a table has no function that shares an event with another process."""
        raise NotImplementedError(f"torch.Event ipc is not supported yet for {self.table.type}")

    def __repr__(self):
        state = "not recorded" if self.pointer == NULL else "complete" if self.query() else "recorded"
        return f"<l0rt.Event device={self.device} {state}>"

    def __dealloc__(self):
        cdef void* pointer = self.pointer
        if pointer != NULL:
            with nogil:
                self.table.impl.destroy_event(pointer)


made_by(TableEvent, "events of a guard table come from its functions")


cdef slots _stream_slots, _event_slots
get_slots(TableStream, &_stream_slots)
get_slots(TableEvent, &_event_slots)

# What an interface has by a table alone.
MEMBERS = ("device_count", "current_device", "exchange_device", "maybe_exchange_device", "set_device", "synchronize",
           "current_stream", "default_stream", "set_stream", "get_raw_stream", "supported_dtypes",
           "record_data_ptr_on_stream", "Stream", "Event")


def built_in_table():
    """Return the address of the built-in device type's table, the first client of the functions above."""
    return <uintptr_t>guard_impl_of(b"xpu")


host = Table(<uintptr_t>&cpu_impl)
naming.add_maker("cpu", host)
