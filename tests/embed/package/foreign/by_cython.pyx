# SPDX-License-Identifier: Apache-2.0
"""What a foreign Cython module does with l0rt: everything without the GIL."""

from l0rt.capi cimport *


cdef int copy_through_device(const unsigned char* source, unsigned char* target, size_t n) except -1 nogil:
    cdef l0rt_stream* stream = l0rt_pool_stream(0, -1)
    cdef void* block = l0rt_malloc(n, -1, stream)
    try:
        l0rt_memcpy_async(block, source, n, stream)
        l0rt_memcpy_async(target, block, n, stream)
        l0rt_stream_synchronize(stream)
    finally:
        l0rt_free(block)
    return 0


def round_trip(const unsigned char[::1] source):
    """Copy bytes to the device and back."""
    cdef bytearray result = bytearray(source.shape[0])
    cdef unsigned char[::1] target = result
    with nogil:
        copy_through_device(&source[0], &target[0], source.shape[0])
    return bytes(result)


def filled(int value, size_t n):
    """Fill device memory on the current stream and copy it back; freed in another stream's order."""
    cdef bytearray result = bytearray(n)
    cdef unsigned char[::1] target = result
    cdef l0rt_stream* stream
    cdef l0rt_stream* other
    cdef void* block
    with nogil:
        stream = l0rt_current_stream(-1)
        other = l0rt_pool_stream(l0rt_current_device(), 0)
        block = l0rt_malloc(n, -1, NULL)
        l0rt_memset_async(block, value, n, stream)
        l0rt_memcpy_async(&target[0], block, n, stream)
        l0rt_record_stream(block, other)
        l0rt_record_use(block, other)
        l0rt_stream_synchronize(stream)
        l0rt_free_async(block, stream)
        l0rt_device_synchronize(-1)
    return bytes(result)


def allocate(size_t n, int device):
    """Return the address of a block that is freed again; what fails in nogil code raises here."""
    cdef void* block
    with nogil:
        block = l0rt_malloc(n, device, NULL)
        l0rt_free(block)
    return <size_t>block


def current():
    """Return (devices, current device, whether the current stream's native handle is there, previous device)."""
    cdef int count, device, previous
    cdef void* handle
    with nogil:
        l0rt_init()
        count = l0rt_device_count()
        device = l0rt_current_device()
        previous = l0rt_exchange_device(device)
        handle = l0rt_stream_handle(l0rt_current_stream(device))
        l0rt_exchange_stream(l0rt_current_stream(device))
    return count, device, handle != NULL, previous


def last_error():
    """Return the text of this thread's last failure."""
    cdef char text[512]
    cdef int code
    with nogil:
        code = l0rt_last_error(text, sizeof(text))
    return code, text.decode()
