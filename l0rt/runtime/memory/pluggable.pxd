# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject

from l0rt.runtime.alloc.types cimport l0rt_upstream


# A PluggableAllocator as one pool's source; lives as long as the pool's owner does. The object is borrowed from the
# pool's object, where the garbage collector sees it: its functions may refer to the pool. Once the pool is gone, it is
# kept for as long as any segment lives.
cdef struct l0rt_plugged:
    l0rt_upstream upstream          # first: they are cast to each other
    PyObject* functions             # NULL: the pool was dropped, and it has no segments any more
    Py_ssize_t segments             # those that a function is being asked for, too
    bint is_gone


cdef class PluggableAllocator:
    cdef readonly object alloc
    cdef readonly object free
    cdef void* alloc_address        # NULL: it is Python's to call
    cdef void* free_address
    cdef object __weakref__


# The GIL is held for all of these.
# The functions of what a user gives as an allocator: its own, or those that its `allocator()` returns.
cdef PluggableAllocator functions_of(allocator)
cdef l0rt_plugged* plugged_new(PluggableAllocator functions) except NULL
cdef void plugged_leave(l0rt_plugged* plugged) noexcept
cdef l0rt_upstream* current_upstream() noexcept
cdef int raise_failure() except -1
# The object behind a source; None for NULL, and for a source that has no segment any more.
cdef object functions_behind(l0rt_upstream* upstream)
