"""Device types that bring a guard table: streams, events and the current device of any of them, through its functions.

Every function of a table is called without the GIL, so that one that blocks holds up nobody.
"""

from _thread import get_ident

cimport cython
from cpython.exc cimport PyErr_Occurred
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer
from libc.stdint cimport uintptr_t

from l0rt.runtime.guard cimport L0RT_GUARD_IMPL_VERSION, l0rt_guard_impl, xpu_guard_impl
from l0rt.runtime.naming cimport device as device_named, index_of


cdef int failed(Table table, str what) except -1:
    """Pass on the exception that the function has set, or say which function failed."""
    if PyErr_Occurred() == NULL:
        raise RuntimeError(f"{table.type}: {what} failed")
    return -1


@cython.final
cdef class Table:
    """A checked guard table. ``source`` is a capsule named ``l0rt_guard_impl``, or its address; it is never freed."""
    cdef const l0rt_guard_impl* impl
    cdef readonly str type

    def __cinit__(self, source):
        if PyCapsule_CheckExact(source):
            self.impl = <const l0rt_guard_impl*>PyCapsule_GetPointer(source, b"l0rt_guard_impl")
        else:
            self.impl = <const l0rt_guard_impl*><uintptr_t>source
        if self.impl == NULL:
            raise ValueError("a guard table is at address 0")
        if self.impl.version != L0RT_GUARD_IMPL_VERSION or self.impl.size < sizeof(l0rt_guard_impl):
            raise ValueError(
                f"a guard table of version {self.impl.version} and {self.impl.size} bytes: expected version "
                f"{L0RT_GUARD_IMPL_VERSION} and {sizeof(l0rt_guard_impl)} bytes or more")
        # Behind the head, everything is a pointer.
        for i in range(2, sizeof(l0rt_guard_impl) // sizeof(void*)):
            if (<void**>self.impl)[i] == NULL:
                raise ValueError(f"entry {i - 2} of the guard table is missing")
        if self.impl.type == NULL:
            raise ValueError("the guard table names no type")
        self.type = (<bytes>self.impl.type).decode()

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

    def exchange_device(self, int device):
        """Make ``device`` current unless it is negative; return the previous index."""
        cdef int before
        with nogil:
            before = self.impl.exchange_device(device)
        if before < 0:
            failed(self, "exchange_device")
        return before

    def set_device(self, int device):
        """Make ``device`` current."""
        cdef int status
        with nogil:
            status = self.impl.set_device(device)
        if status < 0:
            failed(self, "set_device")

    def maybe_exchange_device(self, int device):
        """Bring ``device`` back, which cannot fail; negative: no change."""
        if device >= 0:
            with nogil:
                self.impl.unchecked_set_device(device)

    def synchronize(self, device=None):
        """Wait for all work of ``device``."""
        cdef int index = self.current_device() if device is None else device
        cdef int status
        with nogil:
            status = self.impl.synchronize_device(index)
        if status < 0:
            failed(self, "synchronize_device")

    def current_stream(self, device=None):
        """Return the calling thread's stream on ``device``."""
        cdef int index = -1 if device is None else device
        cdef void* found
        with nogil:
            found = self.impl.get_stream(index)
        return stream_at(self, found, "get_stream")

    def default_stream(self, device=None):
        """Return the default stream of ``device``."""
        cdef int index = self.current_device() if device is None else device
        cdef void* found
        with nogil:
            found = self.impl.get_default_stream(index)
        return stream_at(self, found, "get_default_stream")

    def new_stream(self, device=None, int priority=0):
        """Return the next stream of the pool of ``device``."""
        cdef int index = index_of(device, self.current_device(), self.type)
        cdef void* found
        with nogil:
            found = self.impl.get_stream_from_pool(index, priority)
        return stream_at(self, found, "get_stream_from_pool")

    def new_event(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        """Return an event; the native one is made when it is recorded."""
        cdef TableEvent event = TableEvent.__new__(TableEvent)
        event.table = self
        return event

    def set_stream(self, TableStream stream not None):
        """Make ``stream`` and its device current."""
        exchange_stream(self, stream.pointer)


cdef object stream_at(Table table, void* pointer, str what):
    cdef TableStream stream
    if pointer == NULL:
        failed(table, what)
    stream = TableStream.__new__(TableStream)
    stream.table = table
    stream.pointer = pointer
    return stream


cdef void* exchange_stream(Table table, void* stream) except NULL:
    cdef void* before
    with nogil:
        before = table.impl.exchange_stream(stream)
    if before == NULL:
        failed(table, "exchange_stream")
    return before


@cython.final
cdef class TableStream:
    """A stream of a device type that brought a guard table; in a with block it and its device are current."""
    cdef Table table
    cdef void* pointer
    cdef list entered           # (thread, device, that device's stream) of the blocks that it is in

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
        return device_named(self.table.type, self.device_index)

    @property
    def native_handle(self):
        """The native stream as an integer."""
        cdef void* handle
        with nogil:
            handle = self.table.impl.stream_native_handle(self.pointer)
        if handle == NULL:
            failed(self.table, "stream_native_handle")
        return <uintptr_t>handle

    def query(self):
        """Return whether all work given so far is done."""
        cdef int idle
        with nogil:
            idle = self.table.impl.query_stream(self.pointer)
        if idle < 0:
            failed(self.table, "query_stream")
        return idle == 1

    def synchronize(self):
        """Wait for all work given so far."""
        cdef int status
        with nogil:
            status = self.table.impl.synchronize_stream(self.pointer)
        if status < 0:
            failed(self.table, "synchronize_stream")

    def record_event(self, TableEvent event=None):
        """Record ``event``, a new one by default; return it."""
        if event is None:
            event = self.table.new_event()
        event.record(self)
        return event

    def wait_event(self, TableEvent event not None):
        """Make later work wait for ``event``."""
        event.wait(self)

    def wait_stream(self, TableStream stream not None):
        """Make later work wait for everything given to ``stream`` so far."""
        self.wait_event(stream.record_event())

    def __enter__(self):
        cdef int device = self.table.current_device()
        cdef void* before = exchange_stream(self.table, self.pointer)
        if self.entered is None:
            self.entered = []
        self.entered.append((get_ident(), device, <uintptr_t>before))
        return self

    def __exit__(self, kind, value, trace):
        me = get_ident()
        for i in range(len(self.entered or ()) - 1, -1, -1):
            if self.entered[i][0] == me:
                _, device, before = self.entered.pop(i)
                exchange_stream(self.table, <void*><uintptr_t>before)
                self.table.maybe_exchange_device(device)
                return
        raise RuntimeError("this thread has not entered the stream: a with block begins and ends on one thread")

    def __eq__(self, other):
        if not isinstance(other, TableStream):
            return NotImplemented
        return self.pointer == (<TableStream>other).pointer and self.table is (<TableStream>other).table

    def __hash__(self):
        return hash(<uintptr_t>self.pointer)


@cython.final
cdef class TableEvent:
    """A point in the work of a stream of a device type that brought a guard table."""
    cdef Table table
    cdef void* pointer

    def __init__(self):
        raise TypeError("events of a guard table come from its functions")

    def record(self, TableStream stream=None):
        """Mark the point that ``stream`` (the current one by default) has been given work up to."""
        cdef TableStream on = self.table.current_stream() if stream is None else stream
        cdef int status
        with nogil:
            status = self.table.impl.record(&self.pointer, on.pointer)
        if status < 0:
            failed(self.table, "record")

    def wait(self, TableStream stream=None):
        """Make ``stream`` (the current one by default) wait for this event."""
        cdef TableStream on = self.table.current_stream() if stream is None else stream
        cdef int status = 0
        if self.pointer != NULL:
            with nogil:
                status = self.table.impl.block(self.pointer, on.pointer)
        if status < 0:
            failed(self.table, "block")

    def query(self):
        """Return whether everything before the recorded point is done; True if nothing was recorded."""
        cdef int done = 1
        if self.pointer != NULL:
            with nogil:
                done = self.table.impl.query_event(self.pointer)
        if done < 0:
            failed(self.table, "query_event")
        return done == 1

    def synchronize(self):
        """Wait until the event is complete."""
        cdef int status = 0
        if self.pointer != NULL:
            with nogil:
                status = self.table.impl.synchronize_event(self.pointer)
        if status < 0:
            failed(self.table, "synchronize_event")

    def __dealloc__(self):
        cdef void* pointer = self.pointer
        if pointer != NULL:
            with nogil:
                self.table.impl.destroy_event(pointer)


def built_in_table():
    """Return the address of the built-in device type's table: the first client of the functions above."""
    return <uintptr_t>xpu_guard_impl()
