# SPDX-License-Identifier: Apache-2.0
"""Functions that memory comes from and returns to, in place of the driver's: given by users, in C or in Python."""

import ctypes
from _thread import get_ident

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport UINT64_MAX, uintptr_t
from libc.stdlib cimport calloc, free as c_free

from l0rt._base.arguments cimport is_whole, known_as, whole
from l0rt.runtime.alloc.page_map cimport LEAF_SHIFT, map_leaf, map_page
from l0rt.runtime.alloc.types cimport *
from l0rt.runtime.current.thread cimport thread_record
from l0rt.runtime.streams.queue cimport queue_share
from l0rt.runtime.streams.types cimport *

from l0rt.errors import L0Error
from l0rt.runtime.streams.hooks import report_unraisable

ctypedef void* (*l0rt_alloc_function)(size_t nbytes, int device, void* stream) noexcept nogil
ctypedef void (*l0rt_free_function)(void* ptr, size_t nbytes, int device, void* stream) noexcept nogil

cdef struct l0rt_call:              # a thread is inside of a function
    void* plugged
    void* outer

_failures = {}                      # by thread: what a function raised, until its caller has it
_current = None                     # in place of the driver's own memory, and
cdef l0rt_plugged* current = NULL   # the same as a source


@cython.binding(False)
cdef class PluggableAllocator:
    """PluggableAllocator(alloc, free)
--

The source of the memory of a `MemPool`.

Addresses are ints, the device is an index, and the stream is a native handle, or 0 where it is closed. An ``alloc``
that returns None or 0 is out of memory. ``free`` is called once no work uses the memory.

Parameters
----------
alloc : callable or int
    ``alloc(nbytes, device, stream)``: a Python function, a ctypes function, or a C function's address.
free : callable or int
    ``free(ptr, nbytes, device, stream)``, of the same kinds.

Raises
------
TypeError
    An argument is neither a function nor an address.

Notes
-----
The functions are called as those of ``torch.cuda.memory.CUDAPluggableAllocator``.
"""

    def __cinit__(self, alloc, free):
        self.alloc_address = address_of(alloc, "alloc")
        self.free_address = address_of(free, "free")
        self.alloc = alloc
        self.free = free

    def allocator(self):
        """Return what a `MemPool` takes: the object itself."""
        return self

    def __repr__(self):
        return f"<l0rt.PluggableAllocator {self.alloc!r} {self.free!r}>"


cdef PluggableAllocator functions_of(allocator):
    found = allocator
    if not isinstance(found, PluggableAllocator) and callable(getattr(found, "allocator", None)):
        found = found.allocator()
    if not isinstance(found, PluggableAllocator):
        raise TypeError("Argument 'allocator' has incorrect type (expected l0rt.memory.PluggableAllocator or an "
                        f"adaptor, got {type(allocator).__name__})")
    return found


cdef void* address_of(function, str role) except? NULL:
    """The address of a C function; NULL for one that Python calls."""
    if isinstance(function, ctypes._CFuncPtr):
        function = ctypes.cast(function, ctypes.c_void_p).value or 0
    elif callable(function):
        return NULL
    if not is_whole(function):
        raise TypeError(f"{role} must be a function or the address of a C function, got {type(function).__name__}")
    address = whole(function, role)
    if not 0 < address <= UINT64_MAX:
        raise ValueError(f"{role} must be the address of a C function, got {address:#x}")
    return <void*><uintptr_t>address


cdef l0rt_plugged* plugged_new(PluggableAllocator functions) except NULL:
    cdef l0rt_plugged* plugged = <l0rt_plugged*>calloc(1, sizeof(l0rt_plugged))
    if plugged == NULL:
        raise MemoryError()
    plugged.upstream.reserve = plugged_reserve
    plugged.upstream.release = plugged_release
    plugged.upstream.drop = drop
    plugged.functions = <PyObject*>functions
    return plugged


cdef object functions_behind(l0rt_upstream* upstream):
    cdef l0rt_plugged* plugged = <l0rt_plugged*>upstream
    return <object>plugged.functions if plugged != NULL and plugged.functions != NULL else None


cdef void plugged_leave(l0rt_plugged* plugged) noexcept:
    """The pool was dropped: there are no more allocations."""
    if plugged.is_gone:
        return
    plugged.is_gone = True
    if plugged.segments == 0:
        plugged.functions = NULL
    else:
        Py_INCREF(<object>plugged.functions)


cdef void segment_over(l0rt_plugged* plugged) noexcept:
    """A segment is given back, or was not given."""
    cdef PyObject* functions = plugged.functions
    plugged.segments -= 1
    if plugged.segments == 0 and plugged.is_gone:
        plugged.functions = NULL
        Py_DECREF(<object>functions)


cdef void drop(l0rt_upstream* upstream) noexcept nogil:
    c_free(<l0rt_plugged*>upstream)


# --- What the core calls. No lock is held.


cdef int plugged_reserve(l0rt_upstream* upstream, void* memory, void* stream, size_t nbytes, void** out) noexcept nogil:
    with gil:
        return reserve_held(<l0rt_plugged*>upstream, <l0rt_device*>memory, <l0rt_stream*>stream, nbytes, out)


cdef void plugged_release(l0rt_upstream* upstream, void* memory, void* stream, void* ptr, size_t nbytes) noexcept nogil:
    with gil:
        release_held(<l0rt_plugged*>upstream, <l0rt_device*>memory, <l0rt_stream*>stream, ptr, nbytes)


cdef int reserve_held(l0rt_plugged* plugged, l0rt_device* device, l0rt_stream* stream, size_t nbytes,
                      void** out) noexcept:
    cdef PluggableAllocator functions
    if plugged.functions == NULL:
        return L0RT_OUT_OF_MEMORY
    functions = <PluggableAllocator>plugged.functions
    plugged.segments += 1           # the function may let the pool go
    try:
        out[0] = call_alloc(plugged, functions, device, stream, nbytes)
        if out[0] == NULL:
            segment_over(plugged)
            return L0RT_OUT_OF_MEMORY
        if is_ours(<uintptr_t>out[0], nbytes):
            # not given back: that would free memory that another caller has
            raise ValueError(f"{functions.alloc!r} returned {<uintptr_t>out[0]:#x} for {nbytes} bytes, which are no "
                             "memory, or l0rt's already")
    except MemoryError:
        segment_over(plugged)
        return L0RT_OUT_OF_MEMORY
    except BaseException as failure:
        _failures[get_ident()] = failure
        segment_over(plugged)
        return L0RT_UPSTREAM_FAILED
    return L0RT_OK


cdef void release_held(l0rt_plugged* plugged, l0rt_device* device, l0rt_stream* stream, void* ptr,
                       size_t nbytes) noexcept:
    cdef PluggableAllocator functions = <PluggableAllocator>plugged.functions
    call_free(plugged, functions, device, stream, ptr, nbytes)
    segment_over(plugged)


cdef bint is_ours(uintptr_t address, size_t nbytes) noexcept:
    """Is any page of this mapped already, or is it no memory at all?"""
    cdef uintptr_t page = address & ~<uintptr_t>(PAGE - 1)
    if nbytes > UINT64_MAX - address:
        return True
    while page < address + nbytes:
        if map_leaf(page >> LEAF_SHIFT) != NULL and map_page(page)[0] != NULL:
            return True
        page += PAGE
    return False


# --- Calling a function. Memory that it allocates itself comes from the default pool, so that it is not called for
# that.


cdef int refuse_itself(l0rt_plugged* plugged) except -1:
    cdef l0rt_call* outer = <l0rt_call*>thread_record().inside
    while outer != NULL:
        if outer.plugged == plugged:
            raise RuntimeError("an allocator's function allocates from its own pool, which would never end")
        outer = <l0rt_call*>outer.outer
    return 0


cdef l0rt_thread* call_enter(l0rt_plugged* plugged, l0rt_call* call, void** active_pools) except NULL:
    cdef l0rt_thread* thread = thread_record()
    call.plugged = plugged
    call.outer = thread.inside
    thread.inside = call
    active_pools[0] = thread.active_pools
    thread.active_pools = NULL
    return thread


cdef void call_leave(l0rt_thread* thread, l0rt_call* call, void* active_pools) noexcept:
    thread.inside = call.outer
    thread.active_pools = active_pools


cdef void* call_alloc(l0rt_plugged* plugged, PluggableAllocator functions, l0rt_device* device, l0rt_stream* stream,
                size_t nbytes) except? NULL:
    cdef l0rt_call call
    cdef void* active_pools
    cdef void* handle
    cdef void* ptr = NULL
    cdef int index = device.index
    cdef l0rt_thread* thread
    refuse_itself(plugged)
    thread = call_enter(plugged, &call, &active_pools)
    try:
        with nogil:
            handle = queue_share(stream)
            if functions.alloc_address != NULL:
                ptr = (<l0rt_alloc_function>functions.alloc_address)(nbytes, index, handle)
        if functions.alloc_address == NULL:
            ptr = pointer_of(functions.alloc(nbytes, index, <uintptr_t>handle), functions.alloc)
    finally:
        call_leave(thread, &call, active_pools)
    return ptr


cdef void* pointer_of(answer, function) except? NULL:
    if answer is None:
        return NULL
    if not is_whole(answer):
        raise TypeError(f"{function!r} must return an address, an int, got {type(answer).__name__}")
    address = whole(answer, "an address")
    if not 0 <= address <= UINT64_MAX:
        raise ValueError(f"{function!r} must return an address from 1 to 2**64 - 1, got {address:#x}")
    return <void*><uintptr_t>address


cdef void call_free(l0rt_plugged* plugged, PluggableAllocator functions, l0rt_device* device, l0rt_stream* stream,
               void* ptr, size_t nbytes) noexcept:
    """What a function raises has no caller: sys.unraisablehook hears of it."""
    cdef l0rt_call call
    cdef void* active_pools
    cdef void* handle = <void*>l0rt_load_list(&stream.list)
    cdef int index = device.index
    cdef l0rt_thread* thread
    try:
        thread = call_enter(plugged, &call, &active_pools)
        try:
            if functions.free_address != NULL:
                with nogil:
                    (<l0rt_free_function>functions.free_address)(ptr, nbytes, index, handle)
            else:
                functions.free(<uintptr_t>ptr, nbytes, index, <uintptr_t>handle)
        finally:
            call_leave(thread, &call, active_pools)
    except BaseException as failure:
        report_unraisable(functions.free, failure)


cdef int raise_failure() except -1:
    """Tell the caller of an allocation what a function raised on this thread."""
    failure = _failures.pop(get_ident(), None)
    if failure is not None and not isinstance(failure, Exception):
        raise failure
    raise L0Error(f"an allocator's function failed: {type(failure).__name__}: {failure}") from failure


# --- The default pool's.


cdef l0rt_upstream* current_upstream() noexcept:
    return <l0rt_upstream*>current


def set_current(PluggableAllocator functions not None):
    """Let the heaps that are made from now on have all their memory from these functions."""
    global current, _current
    current = plugged_new(functions)
    _current = functions


known_as(PluggableAllocator, b"l0rt.memory.PluggableAllocator")
