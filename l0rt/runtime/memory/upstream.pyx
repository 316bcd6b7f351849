# SPDX-License-Identifier: Apache-2.0
"""Upstreams of adaptors: what an adaptor asks for memory, as a pair of functions, alloc(nbytes, device, stream) and
free(ptr, nbytes, device, stream)."""

cimport cython
from libc.stdint cimport uintptr_t

from l0rt._base.arguments cimport whole
from l0rt.runtime.current.thread cimport current_device
from l0rt.runtime.memory.device cimport raise_status
from l0rt.runtime.memory.operations cimport device_ops
from l0rt.runtime.memory.pluggable cimport PluggableAllocator
from l0rt.runtime.streams.devices cimport device_at, device_record
from l0rt.runtime.streams.naming cimport index_of
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_load_list

from l0rt.runtime.memory.device import free as cached_free
from l0rt.runtime.memory.device import malloc as cached_malloc
from l0rt.runtime.memory.pools import MemPool, use_mem_pool
from l0rt.runtime.streams.devices import lazy

ctypedef void* (*alloc_function)(size_t nbytes, int device, void* stream) noexcept nogil
ctypedef void (*free_function)(void* ptr, size_t nbytes, int device, void* stream) noexcept nogil


cdef int index_named(device) except -1:
    lazy.init()
    cdef int index = current_device() if device is None else index_of(device, current_device(), lazy.device_type)
    device_at(index)
    return index


cdef void* handle_of(stream, int index) except? NULL:
    """The native handle of a stream, which may be given by that; NULL: the stream has none yet."""
    if stream is None:
        return <void*>l0rt_load_list(&device_record(index).default_stream.list)
    if isinstance(stream, Queue):
        return <void*>l0rt_load_list(&(<Queue>stream).ptr.list)
    return <void*><uintptr_t>whole(stream, "a stream")


def driver_alloc(nbytes, device, stream):
    """Take memory from the driver."""
    cdef l0rt_device* on = device_record(index_named(device))
    cdef size_t size = nbytes
    cdef void* out = NULL
    cdef int status
    with nogil:
        status = device_ops.reserve(on, size, &out)
    if status == 0:
        return <uintptr_t>out
    if device_ops.is_oom(status):
        return 0
    raise_status(status, NULL)


def driver_free(ptr, nbytes, device, stream):
    """Give it back. Work that uses it must be complete."""
    cdef l0rt_device* on = device_record(index_named(device))
    cdef void* address = <void*><uintptr_t>ptr
    cdef size_t size = nbytes
    with nogil:
        device_ops.release(on, address, size)


@cython.final
@cython.binding(False)
cdef class Source:
    """An upstream of another kind as a pair of functions."""
    cdef object upstream

    def __init__(self):
        raise TypeError("made by an adaptor")

    def pool_alloc(self, nbytes, device, stream):
        with use_mem_pool(self.upstream):
            return cached_malloc(nbytes, device, stream)

    def pool_free(self, ptr, nbytes, device, stream):
        cached_free(ptr)

    def object_alloc(self, nbytes, device, stream):
        return self.upstream.malloc(nbytes, 0 if stream is None else stream)

    def object_free(self, ptr, nbytes, device, stream):
        self.upstream.free(ptr)

    def plugged_alloc(self, nbytes, device, stream):
        cdef PluggableAllocator functions = self.upstream
        cdef int index
        cdef size_t size = nbytes
        cdef void* handle
        cdef void* out
        index = index_named(device)
        handle = handle_of(stream, index)
        if functions.alloc_address == NULL:
            return functions.alloc(nbytes, index, <uintptr_t>handle)
        with nogil:
            out = (<alloc_function>functions.alloc_address)(size, index, handle)
        return <uintptr_t>out

    def plugged_free(self, ptr, nbytes, device, stream):
        cdef PluggableAllocator functions = self.upstream
        cdef int index = index_named(device)
        cdef size_t size = nbytes
        cdef void* address = <void*><uintptr_t>ptr
        cdef void* handle = handle_of(stream, index)
        if functions.free_address == NULL:
            functions.free(ptr, nbytes, index, <uintptr_t>handle)
            return
        with nogil:
            (<free_function>functions.free_address)(address, size, index, handle)


cdef tuple upstream_functions(upstream):
    cdef Source source = Source.__new__(Source)
    source.upstream = upstream
    if upstream is None:
        return driver_alloc, driver_free
    if isinstance(upstream, PluggableAllocator):
        return source.plugged_alloc, source.plugged_free
    if isinstance(upstream, MemPool):
        return source.pool_alloc, source.pool_free
    if callable(getattr(upstream, "malloc", None)) and callable(getattr(upstream, "free", None)):
        return source.object_alloc, source.object_free
    raise TypeError("an adaptor's upstream must be None, an adaptor, a PluggableAllocator, a MemPool or an object with "
                    f"malloc(nbytes, stream) and free(ptr), got {type(upstream).__name__}")
