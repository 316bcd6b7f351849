# SPDX-License-Identifier: Apache-2.0
"""Guards, which change the current device or stream and restore the original on any exit; the guard tables of the
built-in device type and of the host."""

import functools
from _thread import get_ident

cimport cython
from libc.stdint cimport UINT64_MAX, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport strcmp

from l0rt.arguments cimport is_whole, known_as
from l0rt.runtime.current.event cimport slots_elapsed_ms
from l0rt.runtime.current.thread cimport (
    current_device,
    current_stream,
    exchange_device,
    exchange_stream,
    restore,
    restore_saved,
    save,
)
from l0rt.runtime.streams.devices cimport device_at, device_total
from l0rt.runtime.streams.event_pool cimport slot_acquire, slot_release
from l0rt.runtime.streams.naming cimport current_type, device_like, index_of, other
from l0rt.runtime.streams.queue cimport Queue, queue_query, queue_record, queue_share, queue_synchronize, queue_wait
from l0rt.runtime.streams.stream_pool cimport device_synchronize, pool_stream
from l0rt.runtime.streams.types cimport *
from l0rt.runtime.streams.wait cimport host_clock_ns, slot_query, slot_wait

from l0rt.runtime.streams.devices import lazy
from l0rt.runtime.streams.naming import supported_dtypes

cdef str _type = lazy.device_type       # a C variable: a block of device_index asks for it each time


cdef const l0rt_guard_impl* xpu_guard_impl() noexcept nogil:
    return &xpu_impl


cdef int impl_device_count() noexcept nogil:
    return device_total()


cdef int impl_set_device(int device) except -1 nogil:
    exchange_device(device)
    return 0


cdef int impl_unchecked_set_device(int device) noexcept nogil:
    return restore(device, NULL)


cdef void* impl_get_default_stream(int device) except NULL nogil:
    return &device_at(current_device() if device == -1 else device).default_stream


cdef void* impl_get_stream_from_pool(int device, int priority) except NULL nogil:
    return pool_stream(device_at(current_device() if device == -1 else device), priority)


cdef int impl_stream_device(void* stream) noexcept nogil:
    return (<l0rt_stream*>stream).device.index


cdef void* impl_stream_native_handle(void* stream) except NULL nogil:
    return queue_share(<l0rt_stream*>stream)


cdef int impl_synchronize_stream(void* stream) except -1 nogil:
    queue_synchronize(<l0rt_stream*>stream, UINT64_MAX)
    return 0


cdef int impl_synchronize_device(int device) except -1 nogil:
    device_synchronize(device_at(device), UINT64_MAX)
    return 0


cdef int impl_record(void** event, void* stream) except -1 nogil:
    return record_slot(event, <l0rt_stream*>stream, False)


cdef int record_slot(void** event, l0rt_stream* stream, bint timing) except -1 nogil:
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
    return queue_wait(<l0rt_stream*>stream, <l0rt_slot*>event) if event != NULL else 0


cdef int impl_query_event(void* event) except -1 nogil:
    return slot_query(<l0rt_slot*>event) if event != NULL else 1


cdef int impl_synchronize_event(void* event) except -1 nogil:
    if event != NULL:
        slot_wait(<l0rt_slot*>event, UINT64_MAX)
    return 0


cdef void impl_destroy_event(void* event) noexcept nogil:
    slot_release(<l0rt_slot*>event)


cdef int impl_stream_priority(void* stream, int* priority) noexcept nogil:
    priority[0] = (<l0rt_stream*>stream).priority
    return 0


cdef int impl_is_stream_capturing(void* stream) noexcept nogil:
    return 0


cdef int impl_record_event(void** event, void* stream, uint32_t flags) except -1 nogil:
    return record_slot(event, <l0rt_stream*>stream, flags & L0RT_EVENT_TIMING != 0)


cdef int impl_elapsed_time(void* start, void* end, double* milliseconds) except -1 nogil:
    cdef l0rt_slot* first = <l0rt_slot*>start
    cdef l0rt_slot* last = <l0rt_slot*>end
    if first != NULL and last != NULL and slot_query(first) == 1 and slot_query(last) == 1:
        with gil:
            milliseconds[0] = slots_elapsed_ms(first, last)
            return 0
    with gil:
        if first == NULL or last == NULL:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        raise RuntimeError("Both events must be completed before calculating elapsed time.")


cdef int impl_device_capability(int device, uint64_t* dtypes) except -1 nogil:
    with gil:
        names = supported_dtypes(device)
        dtypes[0] = sum(1 << i for i, name in enumerate(DTYPES) if name in names)
    return 0


# The bits of a device's capability, lowest first.
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "bfloat16",
          "float32", "float64", "complex64", "complex128")


cdef struct Known:
    const l0rt_guard_impl* impl
    Known* next

cdef Known* _known = NULL       # newest first; no table is ever removed, since a thread may be inside a call of it


cdef int add_guard_impl(const l0rt_guard_impl* impl) except -1:
    cdef Known* made = <Known*>malloc(sizeof(Known))
    if made == NULL:
        raise MemoryError()
    made.impl = impl
    made.next = _known
    l0rt_store64(<uint64_t*>&_known, <uint64_t>made)    # complete before a walker without the GIL sees it
    return 0


cdef const l0rt_guard_impl* guard_impl_of(const char* type) noexcept nogil:
    cdef Known* known = <Known*>l0rt_load64(<uint64_t*>&_known)
    while known != NULL:
        if strcmp(known.impl.type, type) == 0:
            return known.impl
        known = known.next
    return NULL


# A C caller of a guard table sees a failure as the return value, so the entries have no `except` clause. These are the
# types without that clause.
ctypedef int (*int_int)(int) noexcept nogil
ctypedef int (*int_ptr)(void*) noexcept nogil
ctypedef int (*int_ptrs)(void*, void*) noexcept nogil
ctypedef int (*int_place_ptr)(void**, void*) noexcept nogil
ctypedef int (*int_place_ptr_flags)(void**, void*, uint32_t) noexcept nogil
ctypedef int (*int_ptrs_double)(void*, void*, double*) noexcept nogil
ctypedef int (*int_int_bits)(int, uint64_t*) noexcept nogil
ctypedef void* (*ptr_int)(int) noexcept nogil
ctypedef void* (*ptr_int_int)(int, int) noexcept nogil
ctypedef void* (*ptr_ptr)(void*) noexcept nogil


cdef int publish(l0rt_guard_impl* impl, const char* type) except -1:
    """Fill the head of a table of l0rt's own, and register it under its type."""
    impl.version = L0RT_GUARD_IMPL_VERSION
    impl.size = sizeof(l0rt_guard_impl)
    impl.type = type
    return add_guard_impl(impl)


xpu_impl.device_count = impl_device_count
xpu_impl.get_device = current_device
xpu_impl.exchange_device = <int_int>exchange_device
xpu_impl.set_device = <int_int>impl_set_device
xpu_impl.unchecked_set_device = impl_unchecked_set_device
xpu_impl.get_stream = <ptr_int>current_stream
xpu_impl.get_default_stream = <ptr_int>impl_get_default_stream
xpu_impl.get_stream_from_pool = <ptr_int_int>impl_get_stream_from_pool
xpu_impl.exchange_stream = <ptr_ptr>exchange_stream
xpu_impl.stream_device = impl_stream_device
xpu_impl.stream_native_handle = <ptr_ptr>impl_stream_native_handle
xpu_impl.query_stream = <int_ptr>queue_query
xpu_impl.synchronize_stream = <int_ptr>impl_synchronize_stream
xpu_impl.synchronize_device = <int_int>impl_synchronize_device
xpu_impl.record = <int_place_ptr>impl_record
xpu_impl.block = <int_ptrs>impl_block
xpu_impl.query_event = <int_ptr>impl_query_event
xpu_impl.synchronize_event = <int_ptr>impl_synchronize_event
xpu_impl.destroy_event = impl_destroy_event
xpu_impl.get_new_stream = <ptr_int_int>impl_get_stream_from_pool
xpu_impl.stream_priority = impl_stream_priority
xpu_impl.is_stream_capturing = impl_is_stream_capturing
xpu_impl.record_event = <int_place_ptr_flags>impl_record_event
xpu_impl.elapsed_time = <int_ptrs_double>impl_elapsed_time
xpu_impl.device_capability = <int_int_bits>impl_device_capability
publish(&xpu_impl, b"xpu")


# The host, "cpu": one device, one stream, and events that are a moment of its clock. A call returns when its work is
# done, so nothing here waits.

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
    before = interface.exchange_device(index if index < 0 else other_index(interface, index))
    if self.others is None:
        self.others = []
    self.others.append((get_ident(), interface, before))
    return 0


cdef object other_index(interface, int index):
    """``index`` if it exists on the other accelerator, or if that does not report how many devices it has."""
    try:
        count = interface.device_count()
    except NotImplementedError:
        return index
    if not 0 <= index < count:
        raise IndexError(f"The device index is out of range. It must be in [0, {count}), but got {index}.")
    return index


cdef bint leave_other(device_index self) except -1:
    """Leave this thread's newest block on another accelerator; False if there is none."""
    me = get_ident()
    for i in range(len(self.others) - 1, -1, -1):
        if self.others[i][0] == me:
            _, interface, before = self.others.pop(i)
            interface.maybe_exchange_device(before)
            return True
    return False


@cython.binding(False)
cdef class xpu_device_index(device_index):
    """`device_index` on the built-in device type, whichever accelerator is current."""

    def __enter__(self):
        self.enter()

    def __exit__(self, kind, value, trace):
        self.leave()


cdef int settable_index(device, str type) except? -1:
    """The index of ``device`` where a device is required. A negative index changes nothing."""
    cdef int index = NO_INDEX
    cdef bint numbered = is_whole(device)
    if numbered or isinstance(device, str) or device_like(device) is not None:
        index = index_of(device, NO_INDEX, type)
    if index == NO_INDEX and not numbered:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


def index_to_set(device):
    """Return the index of ``device``; ValueError if it has none. A negative index changes nothing."""
    return settable_index(device, lazy.device_type)


def exchange_device_index(int device):
    """Make ``device`` current unless it is negative; return the previous index."""
    return exchange_device(device)


def restore_device(int device):
    """Make ``device`` current again; nothing to do in a child that was forked meanwhile."""
    restore(device, NULL)


def restore_stream(Queue stream not None):
    """Make ``stream`` current on its device again, which need not be the current one."""
    restore(-1, stream.ptr)


def existing_index(interface, int index):
    """Return ``index`` if it exists on another accelerator, or if that does not report how many devices it has."""
    return other_index(interface, index)


known_as(device_index, b"l0rt.accelerator.device_index")
