# SPDX-License-Identifier: Apache-2.0
cimport cython

from l0rt.buffers.buffer cimport Buffer
from l0rt.runtime.memory.transfer cimport l0rt_operand


# One side of a copy: what a Buffer or a view of an object keeps, until it is closed.
@cython.final
cdef class Side:
    cdef l0rt_operand operand
    cdef bint is_plain              # memory of the process that no driver knows
    cdef Buffer buffer
    cdef Py_buffer view
    cdef bint has_view


# `nbytes` bytes of some memory, kept for as long as the answer lives; `where` is the function that the user called.
cdef Side side_of(what, size_t nbytes, bint writes, str where)
