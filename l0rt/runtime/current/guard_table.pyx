# SPDX-License-Identifier: Apache-2.0
"""Device types that bring a guard table: streams, events and the current device of any of them, through its functions;
and the host, which brings one.

Every function of a table is called without the GIL, so a function that blocks does not stop other threads.
"""

from _thread import get_ident

cimport cython
from cpython.exc cimport PyErr_Occurred
from cpython.pycapsule cimport PyCapsule_CheckExact, PyCapsule_GetPointer
from libc.stdint cimport uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

from l0rt.arguments cimport address_in, clamped_priority
from l0rt.factory cimport made_by
from l0rt.runtime.current.guard cimport (
    L0RT_EVENT_TIMING,
    L0RT_GUARD_IMPL_VERSION,
    add_guard_impl,
    int_int,
    int_int_bits,
    int_place_ptr,
    int_place_ptr_flags,
    int_ptrs_double,
    l0rt_guard_impl,
    l0rt_stream_guard,
    l0rt_stream_guard_enter,
    l0rt_stream_guard_reset,
    ptr_int,
    ptr_int_int,
    ptr_ptr,
    publish,
    xpu_guard_impl,
)
from l0rt.runtime.streams.naming cimport device as device_named, index_of
from l0rt.runtime.streams.wait cimport host_clock_ns

from l0rt.runtime.current.guard import DTYPES


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

    def new_stream(self, device=None, priority=0):
        """Return the next stream of the pool of ``device``."""
        cdef int level = clamped_priority(priority)
        cdef int index = self.current_device() if device is None else index_of(device, -1, self.type)
        cdef void* found
        if index < 0:
            index = self.current_device()
        with nogil:
            found = self.impl.get_stream_from_pool(index, level)
        return stream_at(self, found, "get_stream_from_pool")

    def new_event(self, device=None, *, bint enable_timing=False, bint blocking=False, bint interprocess=False):
        """Return an event; the native one is made when it is recorded."""
        cdef TableEvent event = TableEvent.__new__(TableEvent)
        if enable_timing:
            need(self, &self.impl.record_event, "record_event")
            need(self, &self.impl.elapsed_time, "elapsed_time")
        if interprocess:
            raise NotImplementedError("torch.Event ipc is not supported yet for a device type's guard table")
        event.table = self
        event.index = -1 if device is None else index_of(device, -1, self.type)
        event.enable_timing = enable_timing
        return event

    def supported_dtypes(self, device=None):
        """Return the names of the element types that ``device`` computes with."""
        cdef int index = self.current_device() if device is None else device
        cdef uint64_t dtypes = 0
        cdef int status
        need(self, &self.impl.device_capability, "device_capability")
        with nogil:
            status = self.impl.device_capability(index, &dtypes)
        if status < 0:
            failed(self, "device_capability")
        return {name for i, name in enumerate(DTYPES) if dtypes >> i & 1}

    def record_data_ptr_on_stream(self, data_ptr, TableStream stream not None):
        """Let the memory at this address, once freed, not be reused before the stream's present work is done."""
        cdef void* ptr = <void*><uintptr_t>address_in(data_ptr, 0)
        cdef int status
        need(self, &self.impl.record_data_ptr_on_stream, "record_data_ptr_on_stream")
        with nogil:
            status = self.impl.record_data_ptr_on_stream(ptr, stream.pointer)
        if status < 0:
            failed(self, "record_data_ptr_on_stream")

    def publish(self):
        """Let C code find the table by its type."""
        add_guard_impl(self.impl)

    def set_stream(self, TableStream stream not None):
        """Make ``stream`` and its device current."""
        cdef void* before
        with nogil:
            before = self.impl.exchange_stream(stream.pointer)
        if before == NULL:
            failed(self, "exchange_stream")


cdef object stream_at(Table table, void* pointer, str what):
    cdef TableStream stream
    if pointer == NULL:
        failed(table, what)
    stream = TableStream.__new__(TableStream)
    stream.table = table
    stream.pointer = pointer
    return stream


@cython.final
@cython.binding(False)
cdef class TableBlock:
    """What a with block of a stream has found."""
    cdef l0rt_stream_guard guard


made_by(TableBlock, "blocks of a stream of a guard table are made when they are entered")


@cython.final
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

    @property
    def stream_id(self):
        """The number of the stream: the address that its device type uses for it."""
        return <uintptr_t>self.pointer

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


@cython.final
@cython.binding(False)
cdef class TableEvent:
    """A point in the work of a stream of a device type that brought a guard table."""
    cdef Table table
    cdef void* pointer
    cdef int index              # the device of the first record; -1: not bound yet
    cdef readonly bint enable_timing

    def __init__(self):
        raise TypeError("events of a guard table come from its functions")

    def record(self, TableStream stream=None):
        """Mark the point that ``stream`` (the current one by default) has been given work up to."""
        cdef TableStream on = self.table.current_stream() if stream is None else stream
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
        return device_named(self.table.type) if self.index < 0 else device_named(self.table.type, self.index)

    @property
    def event_id(self):
        """The native event of the last record as an integer, 0 if there is none."""
        return <uintptr_t>self.pointer

    def elapsed_time(self, TableEvent end_event not None):
        """Return the milliseconds between this event and ``end_event``, both timed, recorded and complete."""
        cdef double milliseconds = 0
        cdef int status
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self.pointer == NULL or end_event.pointer == NULL:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        with nogil:
            status = self.table.impl.elapsed_time(self.pointer, end_event.pointer, &milliseconds)
        if status < 0:
            failed(self.table, "elapsed_time")
        return milliseconds

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
        """Return whether all work before the record is complete. It is True if the event was never recorded."""
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


made_by(TableEvent, "events of a guard table come from its functions")


def built_in_table():
    """Return the address of the built-in device type's table: the first client of the functions above."""
    return <uintptr_t>xpu_guard_impl()


# --- The host's own table, "cpu": one device, one stream, and events that are a moment of its clock. A call returns
# when its work is done, so nothing here waits.

cdef l0rt_guard_impl cpu_impl
cdef char _cpu_stream           # its address is what the host's stream is
cdef uint64_t _cpu_dtypes = (1 << len(DTYPES)) - 1


cdef int cpu_existing(int device) except -1 nogil:
    """The host's one device; -1 names it too."""
    if device > 0:
        with gil:
            raise IndexError(f"The device index is out of range. It must be in [0, 1), but got {device}.")
    return 0


cdef int cpu_device_count() noexcept nogil:
    return 1


cdef int cpu_get_device() noexcept nogil:
    return 0


cdef int cpu_no_change(int device) noexcept nogil:
    return 0


cdef void* cpu_get_stream(int device) except NULL nogil:
    cpu_existing(device)
    return &_cpu_stream


cdef void* cpu_new_stream(int device, int priority) except NULL nogil:
    return cpu_get_stream(device)


cdef void* cpu_exchange_stream(void* stream) noexcept nogil:
    return &_cpu_stream


cdef int cpu_of_stream(void* stream) noexcept nogil:
    """Its device, whether it is captured, and whether waiting for it has failed."""
    return 0


cdef void* cpu_native_handle(void* stream) except NULL nogil:
    with gil:
        raise NotImplementedError("the host's stream has no native handle")


cdef int cpu_is_complete(void* what) noexcept nogil:
    return 1


cdef int cpu_priority_of(void* stream, int* priority) noexcept nogil:
    priority[0] = 0
    return 0


cdef int cpu_record(void** event, void* stream) except -1 nogil:
    if event[0] == NULL:
        event[0] = malloc(sizeof(uint64_t))
        if event[0] == NULL:
            with gil:
                raise MemoryError()
    (<uint64_t*>event[0])[0] = host_clock_ns()
    return 0


cdef int cpu_record_event(void** event, void* stream, uint32_t flags) except -1 nogil:
    return cpu_record(event, stream)


cdef int cpu_two_are_fine(void* first, void* second) noexcept nogil:
    return 0


cdef void cpu_destroy_event(void* event) noexcept nogil:
    free(event)


cdef int cpu_elapsed_time(void* start, void* end, double* milliseconds) except -1 nogil:
    if start == NULL or end == NULL:
        with gil:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
    milliseconds[0] = (<double>(<uint64_t*>end)[0] - <double>(<uint64_t*>start)[0]) * 1e-6
    return 0


cdef int cpu_capability(int device, uint64_t* dtypes) except -1 nogil:
    cpu_existing(device)
    dtypes[0] = _cpu_dtypes
    return 0


cpu_impl.device_count = cpu_device_count
cpu_impl.get_device = cpu_get_device
cpu_impl.exchange_device = <int_int>cpu_existing
cpu_impl.set_device = <int_int>cpu_existing
cpu_impl.unchecked_set_device = cpu_no_change
cpu_impl.get_stream = <ptr_int>cpu_get_stream
cpu_impl.get_default_stream = <ptr_int>cpu_get_stream
cpu_impl.get_stream_from_pool = <ptr_int_int>cpu_new_stream
cpu_impl.exchange_stream = cpu_exchange_stream
cpu_impl.stream_device = cpu_of_stream
cpu_impl.stream_native_handle = <ptr_ptr>cpu_native_handle
cpu_impl.query_stream = cpu_is_complete
cpu_impl.synchronize_stream = cpu_of_stream
cpu_impl.synchronize_device = <int_int>cpu_existing
cpu_impl.record = <int_place_ptr>cpu_record
cpu_impl.block = cpu_two_are_fine
cpu_impl.query_event = cpu_is_complete
cpu_impl.synchronize_event = cpu_of_stream
cpu_impl.destroy_event = cpu_destroy_event
cpu_impl.get_new_stream = <ptr_int_int>cpu_new_stream
cpu_impl.stream_priority = cpu_priority_of
cpu_impl.is_stream_capturing = cpu_of_stream
cpu_impl.record_event = <int_place_ptr_flags>cpu_record_event
cpu_impl.elapsed_time = <int_ptrs_double>cpu_elapsed_time
cpu_impl.record_data_ptr_on_stream = cpu_two_are_fine
cpu_impl.device_capability = <int_int_bits>cpu_capability
publish(&cpu_impl, b"cpu")
