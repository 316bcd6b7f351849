# SPDX-License-Identifier: Apache-2.0
"""The guard table of the host, ``cpu``: one device, one stream, and events that are a moment of the host's clock.

A call returns when its work is done, so nothing here waits.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, malloc

from l0rt.runtime.current.guard cimport L0RT_GUARD_IMPL_VERSION, add_guard_impl, l0rt_guard_impl
from l0rt.runtime.streams.wait cimport host_clock_ns

from l0rt.runtime.current.guard import DTYPES

cdef l0rt_guard_impl _cpu
cdef char _stream               # its address is what the host's stream is
cdef uint64_t _dtypes = (1 << len(DTYPES)) - 1


cdef int existing(int device) except -1 nogil:
    """The host's one device; -1 names it too."""
    if device > 0:
        with gil:
            raise IndexError(f"The device index is out of range. It must be in [0, 1), but got {device}.")
    return 0


cdef int device_count() noexcept nogil:
    return 1


cdef int get_device() noexcept nogil:
    return 0


cdef int no_change(int device) noexcept nogil:
    return 0


cdef void* get_stream(int device) except NULL nogil:
    existing(device)
    return &_stream


cdef void* new_stream(int device, int priority) except NULL nogil:
    return get_stream(device)


cdef void* exchange_stream(void* stream) noexcept nogil:
    return &_stream


cdef int of_stream(void* stream) noexcept nogil:
    """Its device, whether it is captured, and whether waiting for it has failed."""
    return 0


cdef void* native_handle(void* stream) except NULL nogil:
    with gil:
        raise NotImplementedError("the host's stream is no native one")


cdef int is_complete(void* what) noexcept nogil:
    return 1


cdef int priority_of(void* stream, int* priority) noexcept nogil:
    priority[0] = 0
    return 0


cdef int record(void** event, void* stream) except -1 nogil:
    if event[0] == NULL:
        event[0] = malloc(sizeof(uint64_t))
        if event[0] == NULL:
            with gil:
                raise MemoryError()
    (<uint64_t*>event[0])[0] = host_clock_ns()
    return 0


cdef int record_event(void** event, void* stream, uint32_t flags) except -1 nogil:
    return record(event, stream)


cdef int two_are_fine(void* first, void* second) noexcept nogil:
    return 0


cdef void destroy_event(void* event) noexcept nogil:
    free(event)


cdef int elapsed_time(void* start, void* end, double* milliseconds) except -1 nogil:
    if start == NULL or end == NULL:
        with gil:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
    milliseconds[0] = (<double>(<uint64_t*>end)[0] - <double>(<uint64_t*>start)[0]) * 1e-6
    return 0


cdef int capability(int device, uint64_t* dtypes) except -1 nogil:
    existing(device)
    dtypes[0] = _dtypes
    return 0


# What a function may leave as a Python exception is, for a C caller, its return value.
ctypedef int (*int_int)(int) noexcept nogil
ctypedef void* (*ptr_int)(int) noexcept nogil
ctypedef void* (*ptr_ptr)(void*) noexcept nogil
ctypedef void* (*ptr_int_int)(int, int) noexcept nogil

_cpu.version = L0RT_GUARD_IMPL_VERSION
_cpu.size = sizeof(l0rt_guard_impl)
_cpu.type = b"cpu"
_cpu.device_count = device_count
_cpu.get_device = get_device
_cpu.exchange_device = <int_int>existing
_cpu.set_device = <int_int>existing
_cpu.unchecked_set_device = no_change
_cpu.get_stream = <ptr_int>get_stream
_cpu.get_default_stream = <ptr_int>get_stream
_cpu.get_stream_from_pool = <ptr_int_int>new_stream
_cpu.exchange_stream = exchange_stream
_cpu.stream_device = of_stream
_cpu.stream_native_handle = <ptr_ptr>native_handle
_cpu.query_stream = is_complete
_cpu.synchronize_stream = of_stream
_cpu.synchronize_device = <int_int>existing
_cpu.record = <int (*)(void**, void*) noexcept nogil>record
_cpu.block = two_are_fine
_cpu.query_event = is_complete
_cpu.synchronize_event = of_stream
_cpu.destroy_event = destroy_event
_cpu.get_new_stream = <ptr_int_int>new_stream
_cpu.stream_priority = priority_of
_cpu.is_stream_capturing = of_stream
_cpu.record_event = <int (*)(void**, void*, uint32_t) noexcept nogil>record_event
_cpu.elapsed_time = <int (*)(void*, void*, double*) noexcept nogil>elapsed_time
_cpu.record_data_ptr_on_stream = two_are_fine
_cpu.device_capability = <int (*)(int, uint64_t*) noexcept nogil>capability
add_guard_impl(&_cpu)


def host_table():
    """Return the address of the host's table."""
    return <size_t>&_cpu
