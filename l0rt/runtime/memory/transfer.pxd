# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.streams.copy cimport l0rt_rows
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream


# What a copy or a fill works on: a Buffer, or a part of one. Whoever makes it keeps the memory from being freed.
cdef struct l0rt_operand:
    void* pointer
    size_t nbytes
    l0rt_block* block       # that the bytes are in; NULL: nobody has to be told who uses them
    l0rt_stream* stream     # that the block was allocated for
    l0rt_device* device
    bint on_device          # the host cannot reach it


# How many bytes there are from the start of the first row to the end of the last.
cdef size_t rows_span(const l0rt_rows* rows, size_t pitch) noexcept nogil

# ValueError: a copy onto some of its own bytes. Rows may lie between each other.
cdef int check_apart(const void* target, const void* source, size_t nbytes, const l0rt_rows* rows) except -1

# Remember that ``stream`` uses the memory, or has used it, unless its order covers that already.
cdef int operand_use(l0rt_operand* what, l0rt_stream* stream, bint is_past=*) except -1

# Let later work of `behind`, or the host where that is NULL, wait for what may use the memory: for what `on` has been
# given, for the stream that the memory was allocated for, and for those that were seen to use it. Memory that has no
# block may be used by each stream of its device.
cdef int operand_order(l0rt_operand* what, l0rt_stream* on, l0rt_stream* behind) except -1 nogil

# Of these copies each takes all bytes of the operand, or with ``rows`` the rows that begin there.

# From host memory, which may be reused from then on. With ``wait`` the data is there by then, too.
cdef int transfer_in(l0rt_operand* target, const void* source, const l0rt_rows* rows, l0rt_stream* on,
                     bint non_blocking, bint wait) except -1

# To host memory.
cdef int transfer_out(void* target, l0rt_operand* source, const l0rt_rows* rows, l0rt_stream* on,
                      bint non_blocking) except -1

# Between two operands. ``target_on``: the stream of another device, in whose order the copy is too; else NULL.
cdef int transfer(l0rt_operand* target, l0rt_operand* source, const l0rt_rows* rows, l0rt_stream* on,
                  l0rt_stream* target_on, bint wait) except -1

# Repeat ``pattern``; with ``wait``, until that is done.
cdef int transfer_fill(l0rt_operand* target, bytes pattern, l0rt_stream* on, bint wait) except -1

# Within host memory, behind what the stream was given.
cdef int transfer_host(void* target, const void* source, size_t nbytes, const l0rt_rows* rows, l0rt_stream* on,
                       str what) except -1
