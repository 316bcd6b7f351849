# SPDX-License-Identifier: Apache-2.0
"""Guards: change what is current for a while, and restore the original on any exit. The table of functions by which
the built-in device type lets anybody do so."""

import functools
from _thread import get_ident

cimport cython
from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from l0rt._base.arguments cimport known_as
from l0rt._base.interrupts cimport enter_at_once
from l0rt.runtime.current.event cimport slots_elapsed_ms
from l0rt.runtime.current.failure cimport attach, note_failure
from l0rt.runtime.current.thread cimport (
    current_device,
    current_stream,
    exchange_device,
    exchange_stream,
    restore,
    restore_saved,
    save,
    thread_peek,
)
from l0rt.runtime.current.stream cimport stream_object
from l0rt.runtime.streams.capture cimport captures
from l0rt.runtime.streams.devices cimport device_at, device_total
from l0rt.runtime.streams.event_pool cimport slot_acquire, slot_release
from l0rt.runtime.streams.guard_impl cimport *
from l0rt.runtime.streams.naming cimport current_type, index_of, needed, other, other_index, publish
from l0rt.runtime.streams.queue cimport Queue, queue_query, queue_record, queue_share, queue_synchronize, queue_wait
from l0rt.runtime.streams.stream_pool cimport device_synchronize, pool_stream
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport slot_query, slot_wait

from l0rt.runtime.streams.devices import device_count, lazy
from l0rt.runtime.streams.naming import DTYPES, supported_dtypes

cdef str _type = lazy.device_type       # a C variable: a block of device_index asks for it each time


cdef const l0rt_guard_impl* xpu_guard_impl() noexcept nogil:
    return &xpu_impl


cdef int impl_device_count() except -1 nogil:
    if device_total() > 0:
        return device_total()
    with gil:
        return device_count()


cdef int impl_unchecked_set_device(int device) noexcept nogil:
    return restore(device, NULL) if device < device_total() else 0     # a device that is not there was never current


cdef void* impl_get_default_stream(int device) except NULL nogil:
    return &device_at(current_device() if device == -1 else device).default_stream


cdef void* impl_get_stream_from_pool(int device, int priority) except NULL nogil:
    return pool_stream(device_at(current_device() if device == -1 else device), priority)


cdef void* impl_exchange_stream(void* stream) except NULL nogil:
    needed(stream, b"a stream")
    return exchange_stream(<l0rt_stream*>stream)


cdef int impl_stream_device(void* stream) except -1 nogil:
    needed(stream, b"a stream")
    return (<l0rt_stream*>stream).device.index


cdef void* impl_stream_native_handle(void* stream) except NULL nogil:
    needed(stream, b"a stream")
    return queue_share(<l0rt_stream*>stream)


cdef int impl_query_stream(void* stream) except -1 nogil:
    needed(stream, b"a stream")
    return queue_query(<l0rt_stream*>stream)


cdef int impl_synchronize_stream(void* stream) except -1 nogil:
    needed(stream, b"a stream")
    queue_synchronize(<l0rt_stream*>stream, UINT64_MAX)
    return 0


cdef int impl_synchronize_device(int device) except -1 nogil:
    device_synchronize(device_at(device), UINT64_MAX)
    return 0


cdef int impl_record(void** event, void* stream) except -1 nogil:
    return record_slot(event, <l0rt_stream*>stream, False)


cdef int record_slot(void** event, l0rt_stream* stream, bint timing) except -1 nogil:
    needed(stream, b"a stream")
    needed(event, b"a place for the event")
    cdef l0rt_slot* slot = slot_acquire(stream, timing)
    cdef bint recorded = False
    try:
        queue_record(stream, slot)
        recorded = True
    finally:
        if not recorded:
            slot_release(slot)
    slot_release(<l0rt_slot*>event[0])
    event[0] = slot
    return 0


cdef int impl_block(void* event, void* stream) except -1 nogil:
    needed(stream, b"a stream")
    return queue_wait(<l0rt_stream*>stream, <l0rt_slot*>event) if event != NULL else 0


cdef int impl_query_event(void* event) except -1 nogil:
    return slot_query(<l0rt_slot*>event) if event != NULL else 1


cdef int impl_synchronize_event(void* event) except -1 nogil:
    if event != NULL:
        slot_wait(<l0rt_slot*>event, UINT64_MAX)
    return 0


cdef void impl_destroy_event(void* event) noexcept nogil:
    slot_release(<l0rt_slot*>event)


cdef int impl_stream_priority(void* stream, int* priority) except -1 nogil:
    needed(stream, b"a stream")
    needed(priority, b"a place for the priority")
    priority[0] = (<l0rt_stream*>stream).priority
    return 0


cdef int impl_is_stream_capturing(void* stream) except -1 nogil:
    needed(stream, b"a stream")
    return captures(<l0rt_stream*>stream)


cdef int impl_record_event(void** event, void* stream, uint32_t flags) except -1 nogil:
    return record_slot(event, <l0rt_stream*>stream, flags & L0RT_EVENT_TIMING != 0)


cdef int impl_elapsed_time(void* start, void* end, double* milliseconds) except -1 nogil:
    cdef l0rt_slot* first = <l0rt_slot*>start
    cdef l0rt_slot* last = <l0rt_slot*>end
    needed(milliseconds, b"a place for the time")
    if first != NULL and last != NULL and slot_query(first) == 1 and slot_query(last) == 1:
        with gil:
            milliseconds[0] = slots_elapsed_ms(first, last)
            return 0
    with gil:
        if first == NULL or last == NULL:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        raise RuntimeError("Both events must be completed before calculating elapsed time.")


cdef int impl_device_capability(int device, uint64_t* dtypes) except -1 nogil:
    needed(dtypes, b"a place for the types")
    with gil:
        names = supported_dtypes(device)
        dtypes[0] = sum(1 << i for i, name in enumerate(DTYPES) if name in names)
    return 0


# The functions of the table: they note a failure for l0rt_last_error. One that changes nothing as it fails is called
# again where its exception was lost with a thread state of its own.


cdef inline int checked(int status) noexcept nogil:
    return status if status >= 0 else (<int (*)() noexcept nogil>note_failure)()


cdef inline void* present(void* pointer) noexcept nogil:
    if pointer == NULL:
        (<int (*)() noexcept nogil>note_failure)()
    return pointer


cdef int table_device_count() noexcept nogil:
    attach()
    return checked((<int (*)() noexcept nogil>impl_device_count)())


cdef int table_exchange_device(int device) noexcept nogil:
    cdef int before = (<int_int>exchange_device)(device)
    return before if before >= 0 else checked((<int_int>exchange_device)(device) if attach() else before)


cdef int table_set_device(int device) noexcept nogil:
    cdef int before = table_exchange_device(device)
    return before if before < 0 else 0


cdef void* table_get_stream(int device) noexcept nogil:
    cdef void* stream = (<ptr_int>current_stream)(device)
    return stream if stream != NULL else present((<ptr_int>current_stream)(device) if attach() else stream)


cdef void* table_get_default_stream(int device) noexcept nogil:
    cdef void* stream = (<ptr_int>impl_get_default_stream)(device)
    return stream if stream != NULL else present((<ptr_int>impl_get_default_stream)(device) if attach() else stream)


cdef void* table_get_stream_from_pool(int device, int priority) noexcept nogil:
    attach()
    return present((<ptr_int_int>impl_get_stream_from_pool)(device, priority))


cdef void* table_exchange_stream(void* stream) noexcept nogil:
    attach()
    return present((<ptr_ptr>impl_exchange_stream)(stream))


cdef int table_stream_device(void* stream) noexcept nogil:
    attach()
    return checked((<int_ptr>impl_stream_device)(stream))


cdef void* table_stream_native_handle(void* stream) noexcept nogil:
    attach()
    return present((<ptr_ptr>impl_stream_native_handle)(stream))


cdef int table_query_stream(void* stream) noexcept nogil:
    attach()
    return checked((<int_ptr>impl_query_stream)(stream))


cdef int table_synchronize_stream(void* stream) noexcept nogil:
    attach()
    return checked((<int_ptr>impl_synchronize_stream)(stream))


cdef int table_synchronize_device(int device) noexcept nogil:
    attach()
    return checked((<int_int>impl_synchronize_device)(device))


cdef int table_record(void** event, void* stream) noexcept nogil:
    attach()
    return checked((<int_place_ptr>impl_record)(event, stream))


cdef int table_block(void* event, void* stream) noexcept nogil:
    attach()
    return checked((<int_ptrs>impl_block)(event, stream))


cdef int table_query_event(void* event) noexcept nogil:
    attach()
    return checked((<int_ptr>impl_query_event)(event))


cdef int table_synchronize_event(void* event) noexcept nogil:
    attach()
    return checked((<int_ptr>impl_synchronize_event)(event))


cdef int table_stream_priority(void* stream, int* priority) noexcept nogil:
    attach()
    return checked((<int (*)(void*, int*) noexcept nogil>impl_stream_priority)(stream, priority))


cdef int table_is_stream_capturing(void* stream) noexcept nogil:
    attach()
    return checked((<int_ptr>impl_is_stream_capturing)(stream))


cdef int table_record_event(void** event, void* stream, uint32_t flags) noexcept nogil:
    attach()
    return checked((<int_place_ptr_flags>impl_record_event)(event, stream, flags))


cdef int table_elapsed_time(void* start, void* end, double* milliseconds) noexcept nogil:
    attach()
    return checked((<int_ptrs_double>impl_elapsed_time)(start, end, milliseconds))


cdef int table_device_capability(int device, uint64_t* dtypes) noexcept nogil:
    attach()
    return checked((<int_int_bits>impl_device_capability)(device, dtypes))


xpu_impl.device_count = table_device_count
xpu_impl.get_device = current_device
xpu_impl.exchange_device = table_exchange_device
xpu_impl.set_device = table_set_device
xpu_impl.unchecked_set_device = impl_unchecked_set_device
xpu_impl.get_stream = table_get_stream
xpu_impl.get_default_stream = table_get_default_stream
xpu_impl.get_stream_from_pool = table_get_stream_from_pool
xpu_impl.exchange_stream = table_exchange_stream
xpu_impl.stream_device = table_stream_device
xpu_impl.stream_native_handle = table_stream_native_handle
xpu_impl.query_stream = table_query_stream
xpu_impl.synchronize_stream = table_synchronize_stream
xpu_impl.synchronize_device = table_synchronize_device
xpu_impl.record = table_record
xpu_impl.block = table_block
xpu_impl.query_event = table_query_event
xpu_impl.synchronize_event = table_synchronize_event
xpu_impl.destroy_event = impl_destroy_event
xpu_impl.get_new_stream = table_get_stream_from_pool
xpu_impl.stream_priority = table_stream_priority
xpu_impl.is_stream_capturing = table_is_stream_capturing
xpu_impl.record_event = table_record_event
xpu_impl.elapsed_time = table_elapsed_time
xpu_impl.device_capability = table_device_capability
publish(&xpu_impl, b"xpu")


# --- Blocks: what a with block has found, and brings back. What is changed and restored when is written once, in
# guard_impl.h's guards: a block holds one of them. That of the built-in type stands on its table. An interface in
# Python has no table, and a table's functions take no context: so one table calls the interface of whichever block is
# at work on the thread. Its streams are Python's objects, which the block keeps alive.

cdef extern from *:
    """
    static __thread PyObject *l0rt_at_work; /* borrowed */
    """
    PyObject* at_work "l0rt_at_work"

cdef l0rt_guard_impl interface_impl


@cython.binding(False)
cdef class Block:
    """What one guard has changed on a device type: the built-in one, or that of an ``interface`` in Python."""
    cdef readonly object interface      # None: the built-in type
    cdef list streams           # kept alive: what the guard's pointers are
    cdef object failure         # the first that a function of the interface raised in the call
    cdef bint leaving

    def __cinit__(self):
        self.streams = []

    cdef const l0rt_guard_impl* begin(self) noexcept:
        """The table for one call of the header's, which `end` follows."""
        global at_work
        if self.interface is None:
            return &xpu_impl
        at_work = <PyObject*>self
        return &interface_impl

    cdef int end(self, int status) except -1:
        """Raise what came of that call."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        if PyErr_Occurred() != NULL:
            return -1
        if status < 0:
            raise RuntimeError(f"{self.interface!r} told no index of a device")
        return 0

    cdef bint is_gone(self) noexcept:
        """In a child that was forked inside the block nothing of the built-in type is left to restore."""
        return self.interface is None and thread_peek() == NULL

    cdef int keep_first(self, failure) except -1:
        """Keep what a function of the interface raised until the guard is done: it restores what else there is."""
        if self.failure is None:
            self.failure = failure
        return 0

    cdef void* pointer_of(self, stream) except NULL:
        return <void*>(<Queue?>stream).ptr if self.interface is None else <void*>stream

    cdef object stream_at(self, void* pointer):
        return stream_object(<l0rt_stream*>pointer) if self.interface is None else <object>pointer


cdef int interface_exchange_device(int device) noexcept with gil:
    global at_work
    cdef Block block = <Block>at_work
    cdef int before = -1
    try:
        before = block.interface.exchange_device(device)
        if before < 0:          # what torch's answer where nothing changes
            before = block.interface.current_device()
    except BaseException as failure:
        block.keep_first(failure)
    at_work = <PyObject*>block  # other blocks may have been at work in it
    return before


cdef int interface_get_device() noexcept with gil:
    return interface_exchange_device(-1)


cdef int interface_unchecked_set_device(int device) noexcept with gil:
    global at_work
    cdef Block block = <Block>at_work
    try:
        block.interface.maybe_exchange_device(device)
    except BaseException as failure:
        block.keep_first(failure)
    at_work = <PyObject*>block
    return 0


cdef void* interface_get_stream(int device) noexcept with gil:
    global at_work
    cdef Block block = <Block>at_work
    cdef void* found = NULL
    try:
        stream = block.interface.current_stream(device)
        block.streams.append(stream)
        found = <void*>stream
    except BaseException as failure:
        block.keep_first(failure)
    at_work = <PyObject*>block
    return found


cdef void* interface_exchange_stream(void* pointer) noexcept with gil:
    global at_work
    cdef Block block = <Block>at_work
    cdef void* before = pointer
    try:
        stream = <object>pointer
        if not block.leaving:   # nobody asks what was current inside the block
            found = block.interface.current_stream(stream.device_index)
            block.streams.append(found)
            before = <void*>found
        block.interface.set_stream(stream)
    except BaseException as failure:
        block.keep_first(failure)
        before = NULL
    at_work = <PyObject*>block
    return before


interface_impl.get_device = interface_get_device
interface_impl.exchange_device = interface_exchange_device
interface_impl.unchecked_set_device = interface_unchecked_set_device
interface_impl.get_stream = interface_get_stream
interface_impl.exchange_stream = interface_exchange_stream


@cython.final
@cython.binding(False)
cdef class DeviceBlock(Block):
    """`l0rt_optional_device_guard`: empty until it is given an index."""
    cdef l0rt_optional_device_guard guard
    cdef readonly object type

    def set_index(self, type, interface, index):
        """Make a device that exists current; a negative index changes nothing. Only an empty block takes the type."""
        cdef int number = index_of(index, -1, type)
        if not self.guard.engaged:
            self.type, self.interface = type, interface
        self.end(l0rt_optional_device_guard_set_index(&self.guard, self.begin(), number))

    def go_back(self):
        """Make the original device current, and remember it on."""
        if self.guard.engaged:
            self.begin()
            l0rt_device_guard_reset_device(&self.guard.guard)
            self.end(0)

    def reset(self):
        """Make the original device current, and be empty."""
        if self.is_gone():
            self.guard.engaged = False
        self.begin()
        l0rt_optional_device_guard_reset(&self.guard)
        self.end(0)

    @property
    def original(self):
        """The index that was current; None while the block is empty."""
        return self.guard.guard.original_device if self.guard.engaged else None

    @property
    def current(self):
        """The index that the block has made current; None while it is empty."""
        return self.guard.guard.current_device if self.guard.engaged else None


@cython.final
@cython.binding(False)
cdef class StreamBlock(Block):
    """`l0rt_optional_stream_guard`: empty until it is given a stream."""
    cdef l0rt_optional_stream_guard guard

    def reset_stream(self, interface, stream):
        """Restore the originals, and make a stream of the device type and its device current."""
        cdef void* pointer
        if interface is not self.interface:
            self.reset()
            self.interface = interface
        if self.is_gone():
            self.guard.engaged = False      # to restore would raise, and so would what comes next
        pointer = self.pointer_of(stream)
        self.streams = self.streams + [stream]
        self.leaving = False
        self.end(l0rt_optional_stream_guard_reset_stream(&self.guard, self.begin(), pointer))
        try:
            self.streams = [self.stream_at(self.guard.guard.original_stream),
                            self.stream_at(self.guard.guard.left_stream), stream]
        except BaseException:   # an adopted list that was given back, and is current
            self.reset()
            raise

    def reset(self):
        """Restore the originals, and be empty."""
        if self.is_gone():
            self.guard.engaged = False
        self.begin()
        self.leaving = True
        l0rt_optional_stream_guard_reset(&self.guard)
        self.end(0)

    @property
    def original_device(self):
        """The index of the device that was current; None while the block is empty."""
        return self.guard.guard.original_device if self.guard.engaged else None

    @property
    def original_stream(self):
        """The stream that was current on that device; None while the block is empty."""
        return self.streams[0] if self.guard.engaged else None

    @property
    def current_stream(self):
        """The stream that the block has made current; None while it is empty."""
        return self.streams[2] if self.guard.engaged else None


@cython.final
@cython.binding(False)
cdef class MultiStreamBlock(Block):
    """`l0rt_multi_stream_guard`: several streams of one device type, each current on its device."""
    cdef l0rt_multi_stream_guard guard
    cdef void** pointers        # the streams', and behind them the originals

    def __cinit__(self, interface, list streams):
        cdef size_t count = len(streams), i
        self.interface = interface
        self.pointers = <void**>malloc(2 * max(count, <size_t>1) * sizeof(void*))
        if self.pointers == NULL:
            raise MemoryError()
        self.streams = list(streams)
        for i in range(count):
            self.pointers[i] = self.pointer_of(self.streams[i])
        self.end(l0rt_multi_stream_guard_enter(
            &self.guard, self.begin(), <void* const*>self.pointers, count, self.pointers + count))
        try:
            self.streams = self.originals()
        except BaseException:   # an adopted list that was given back, and is current
            self.reset()
            raise

    cdef list originals(self):
        return [self.stream_at(self.guard.originals[i]) for i in range(self.guard.count)]

    def reset(self):
        """Restore the originals."""
        if self.is_gone():
            return
        self.begin()
        self.leaving = True
        l0rt_multi_stream_guard_reset(&self.guard)
        self.end(0)

    @property
    def original_streams(self):
        """The streams that were current: of each device the first."""
        return list({stream.device_index: stream for stream in reversed(self.streams)}.values())[::-1]

    def __dealloc__(self):
        free(self.pointers)


@cython.final
@cython.binding(False)
cdef class Blocks:
    """Those that one guard has entered, each on its device type."""
    cdef readonly list entered

    def __cinit__(self):
        self.entered = []

    def add(self, interface, list streams):
        """Make streams of a device type current."""
        self.entered.append(MultiStreamBlock(interface, streams))

    def reset(self):
        """Restore the originals of all, also if that of one fails; the last one first."""
        try:
            while self.entered:
                self.entered.pop().reset()
        finally:
            if self.entered:
                self.reset()


@cython.freelist(16)
@cython.binding(False)
cdef class device_index:
    """device_index(device, /)
--

Make a device current inside a with block, or inside a decorated function.

The original device is restored on any exit, on the accelerator to which it belongs. Blocks nest, and one object can be
used for any number of blocks, on any thread.

Parameters
----------
device : int, str, device or None
    An index, a name such as ``xpu:1``, or an object that has a device. None or a negative index changes nothing.
"""

    def __cinit__(self, device, /):
        self.device = device

    @property
    def idx(self):
        """What was asked for."""
        return self.device

    cdef int enter(self) except -1:
        cdef int before
        if self.device is not None:
            before = exchange_device(index_of(self.device, -1, _type))
            save(<void*>self, before, NULL)
        return 0

    cdef int leave(self) except -1:
        if self.device is not None and restore_saved(<void*>self) < 0:
            raise RuntimeError("this thread has not entered the guard: a with block begins and ends on one thread")
        return 0

    def __enter__(self):
        if other == NULL:
            self.enter()
        elif self.device is not None:
            enter_other(self, <object>other)

    def __exit__(self, kind, value, trace):
        if self.others is None or not leave_other(self):
            self.leave()

    def __call__(self, function):
        return guarded(self, function)

    def __repr__(self):
        return f"device_index({self.device!r})"


def guarded(guard, function):
    # outside of the class: a function without binding could not be given the name of another
    @functools.wraps(function)
    def inside(*args, **kwargs):
        with guard:
            return function(*args, **kwargs)
    return inside


def current_device_index():
    """Return the index of the calling thread's current device."""
    if device_total() == 0:
        lazy.init()
    return current_device()


cdef int enter_other(device_index self, interface) except -1:
    cdef int index = index_of(self.device, -1, current_type())
    cdef DeviceBlock block = DeviceBlock()
    block.set_index(current_type(), interface, index if index < 0 else other_index(interface, index))
    if self.others is None:
        self.others = []
    self.others.append((get_ident(), block))
    return 0


cdef bint leave_other(device_index self) except -1:
    """Leave this thread's newest block on another accelerator; False if there is none."""
    me = get_ident()
    for i in range(len(self.others) - 1, -1, -1):
        if self.others[i][0] == me:
            self.others.pop(i)[1].reset()
            return True
    return False


@cython.binding(False)
cdef class xpu_device_index(device_index):
    """`device_index` on the built-in device type, whichever accelerator is current."""

    def __enter__(self):
        self.enter()

    def __exit__(self, kind, value, trace):
        self.leave()


def exchange_device_index(int device):
    """Make ``device`` current unless it is negative; return the previous index."""
    return exchange_device(device)


known_as(device_index, b"l0rt.accelerator.device_index")
enter_at_once((device_index, xpu_device_index))
