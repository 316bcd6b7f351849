# SPDX-License-Identifier: Apache-2.0
cdef class LazyInit:
    cdef readonly str device_type
    cdef object opener
    cdef object lock
    cdef object origin          # where the process was initialised
    cdef list queued
    cdef int state
    cdef bint opening
    cdef bint is_ready(self) noexcept
    cdef int ensure(self) except -1
    cdef int call_for(self, str whom, function) except -1
    cdef int enqueue(self, function, tuple args, list origin) except -1


# Called in a forked child of an initialised parent, before anything else runs there.
cdef int on_fork_child(void (*forget)() noexcept nogil) except -1
