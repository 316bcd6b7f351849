# SPDX-License-Identifier: Apache-2.0
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from l0rt.kernels.built cimport l0rt_kernel
from l0rt.kernels.launch cimport l0rt_arg
from l0rt.runtime.streams.types cimport l0rt_stream


cdef enum:
    FEW = 128           # arguments for which a launch has space on its stack

# A value in the course of a launch. What it holds is let go when the launch is over.
cdef struct Slot:
    uint64_t word
    int viewed
    Py_buffer view
    PyObject* buffer    # a Buffer that is held
    size_t nbytes       # of it, from `word` on


# What an argument must be.
cdef struct Expected:
    int kind
    uint32_t size
    int access          # 1: reads, 2: writes
    char[16] format     # of the last memory whose elements were those of a vector or a structure; empty: none


cdef class Parameters:
    cdef l0rt_kernel* ptr       # the Kernel that has it keeps the module
    cdef str name
    cdef tuple arguments        # None: the module does not tell
    cdef Expected* expected     # NULL: the same


# `arguments` is what the module tells of them, None if it does not.
cdef Parameters new_parameters(l0rt_kernel* kernel, str name, tuple arguments)
# Turn a Python object into what the driver is given for an argument. The slot is let go of, whatever comes of it.
# `on` uses the memory of Buffers; NULL: nobody has to be told of that.
cdef int argument_take(Parameters self, Py_ssize_t at, value, Slot* slot, l0rt_arg* out, l0rt_stream* on) except -1
cdef void slot_let_go(Slot* slot) noexcept
# The arguments of a launch as far as they are local memory: the others have the size 0. Return their number.
cdef uint32_t local_arguments(Parameters self, tuple args, l0rt_arg* out) except? 0
# The value of an argument as a Python object: an int, a float, LocalMemory, or bytes where the type is not known.
cdef object argument_value(Parameters self, Py_ssize_t at, const l0rt_arg* value)
# An argument as a declaration, as far as the module tells.
cdef str argument_told(argument)
