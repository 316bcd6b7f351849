# SPDX-License-Identifier: Apache-2.0
"""Every wrong way to call the door, from nogil code; and guards over the guard table."""

from l0rt.capi cimport *
from l0rt.runtime.current.guard cimport (
    l0rt_device_guard,
    l0rt_device_guard_enter,
    l0rt_device_guard_reset_device,
    l0rt_device_guard_set_index,
    l0rt_guard_impl,
    l0rt_multi_stream_guard,
    l0rt_multi_stream_guard_enter,
    l0rt_multi_stream_guard_reset,
    l0rt_optional_device_guard,
    l0rt_optional_device_guard_reset,
    l0rt_optional_device_guard_set_index,
    l0rt_optional_stream_guard,
    l0rt_optional_stream_guard_reset,
    l0rt_optional_stream_guard_reset_stream,
    l0rt_stream_guard,
    l0rt_stream_guard_enter,
    l0rt_stream_guard_reset,
    xpu_guard_impl,
)


def malloc(size_t n, int device, int device_of_stream=-2):
    cdef void* block
    cdef l0rt_stream* stream = NULL
    with nogil:
        if device_of_stream != -2:
            stream = l0rt_current_stream(device_of_stream)
        block = l0rt_malloc(n, device, stream)
    return <size_t>block


def free(size_t address):
    with nogil:
        l0rt_free(<void*>address)


def free_async(size_t address, bint null_stream=False):
    cdef l0rt_stream* stream = NULL
    with nogil:
        if not null_stream:
            stream = l0rt_pool_stream(-1, 0)
        l0rt_free_async(<void*>address, stream)


def record_stream(size_t address, bint null_stream=False):
    cdef l0rt_stream* stream = NULL
    with nogil:
        if not null_stream:
            stream = l0rt_pool_stream(-1, 0)
        l0rt_record_stream(<void*>address, stream)


def null_stream(int which):
    with nogil:
        if which == 0:
            l0rt_exchange_stream(NULL)
        elif which == 1:
            l0rt_stream_handle(NULL)
        elif which == 2:
            l0rt_stream_synchronize(NULL)


def null_memory(int which, size_t n):
    cdef char byte = 0
    with nogil:
        if which == 0:
            l0rt_memcpy_async(NULL, &byte, n, NULL)
        elif which == 1:
            l0rt_memcpy_async(&byte, NULL, n, NULL)
        else:
            l0rt_memset_async(NULL, 0, n, NULL)


def by_device(int which, int device):
    with nogil:
        if which == 0:
            l0rt_exchange_device(device)
        elif which == 1:
            l0rt_current_stream(device)
        elif which == 2:
            l0rt_pool_stream(device, 0)
        else:
            l0rt_device_synchronize(device)


def guards(int device):
    """Return what was current inside and after a device guard and a stream guard."""
    cdef l0rt_device_guard guard
    cdef l0rt_stream_guard stream_guard
    cdef const l0rt_guard_impl* impl
    cdef void* stream
    cdef int inside, moved, after, streamed, restored
    with nogil:
        l0rt_init()
        impl = xpu_guard_impl()
        l0rt_device_guard_enter(&guard, impl, device)
        inside = impl.get_device()
        l0rt_device_guard_set_index(&guard, 0)
        moved = impl.get_device()
        l0rt_device_guard_reset_device(&guard)
        after = impl.get_device()
        stream = impl.get_stream_from_pool(device, -1)
        l0rt_stream_guard_enter(&stream_guard, impl, stream)
        streamed = impl.get_device() == device and impl.get_stream(-1) == stream
        l0rt_stream_guard_reset(&stream_guard)
        restored = impl.get_device() == after and impl.get_stream(device) == impl.get_default_stream(device)
    return inside, moved, after, streamed, restored


def more_guards(int device):
    """Return what optional guards and one of several streams make of what is current: inside, and after."""
    cdef l0rt_optional_device_guard by_device
    cdef l0rt_optional_stream_guard by_stream
    cdef l0rt_multi_stream_guard several
    cdef const l0rt_guard_impl* impl
    cdef void* streams[2]
    cdef void* originals[2]
    cdef int empty, engaged, streamed, both, after
    by_device.engaged = by_stream.engaged = 0
    with nogil:
        l0rt_init()
        impl = xpu_guard_impl()
        l0rt_optional_device_guard_reset(&by_device)
        l0rt_optional_stream_guard_reset(&by_stream)
        empty = impl.get_device()
        l0rt_optional_device_guard_set_index(&by_device, impl, 0)
        l0rt_optional_device_guard_set_index(&by_device, impl, device)
        engaged = impl.get_device()
        l0rt_optional_device_guard_reset(&by_device)
        streams[0] = impl.get_stream_from_pool(device, 0)
        streams[1] = impl.get_stream_from_pool(0, 0)
        l0rt_optional_stream_guard_reset_stream(&by_stream, impl, streams[1])
        l0rt_optional_stream_guard_reset_stream(&by_stream, impl, streams[0])
        streamed = impl.get_stream(-1) == streams[0]
        l0rt_optional_stream_guard_reset(&by_stream)
        l0rt_multi_stream_guard_enter(&several, impl, streams, 2, originals)
        both = impl.get_stream(0) == streams[1] and (device == 0 or impl.get_stream(device) == streams[0])
        both = both and impl.get_device() == 0
        l0rt_multi_stream_guard_reset(&several)
        after = impl.get_device() == 0 and impl.get_stream(0) == impl.get_default_stream(0)
        after = after and impl.get_stream(device) == impl.get_default_stream(device)
    return empty, engaged, streamed, both, after


def events():
    """Record, wait for and destroy an event through the table."""
    cdef const l0rt_guard_impl* impl
    cdef void* event = NULL
    cdef int first, done
    with nogil:
        l0rt_init()
        impl = xpu_guard_impl()
        first = impl.query_event(event)
        impl.record(&event, impl.get_stream(-1))
        impl.record(&event, impl.get_stream(-1))
        impl.block(event, impl.get_stream_from_pool(-1, 0))
        impl.synchronize_event(event)
        done = impl.query_event(event)
        impl.destroy_event(event)
        impl.synchronize_device(0)
    return first, done
