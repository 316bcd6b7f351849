# SPDX-License-Identifier: Apache-2.0
cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from l0rt.kernels.launch cimport l0rt_arg, l0rt_kernel
from l0rt.runtime.streams.types cimport l0rt_stream


cdef enum:
    MOST = 128          # arguments of a kernel

# A value in the course of a launch. What it holds is let go when the launch is over.
cdef struct Slot:
    uint64_t word
    int viewed
    Py_buffer view
    PyObject* buffer    # a Buffer that is held


# What an argument must be.
cdef struct Expected:
    int kind
    uint32_t size
    int access          # 1: reads, 2: writes


@cython.final
cdef class Kernel:
    cdef l0rt_kernel* ptr       # with a reference to its module
    cdef Expected* expected     # NULL: the module does not tell
    cdef readonly str name
    cdef readonly tuple arguments
    cdef object required
    cdef object __weakref__


# `interface` is what the module tells of the kernel, None if it does not.
cdef Kernel new_kernel(l0rt_kernel* kernel, str name, interface)
# The kernel of a launch that was recorded, also if its module was closed since.
cdef Kernel kernel_of(l0rt_kernel* kernel)
# Turn a Python object into what the driver is given for an argument. The slot is let go of, whatever comes of it.
# `on` uses the memory of Buffers; NULL: nobody has to be told of that.
cdef int Kernel_take(Kernel self, Py_ssize_t at, value, Slot* slot, l0rt_arg* out, l0rt_stream* on) except -1
cdef void slot_let_go(Slot* slot) noexcept
# The value of an argument as a Python object: an int, a float, LocalMemory, or bytes where the type is not known.
cdef object Kernel_value(Kernel self, Py_ssize_t at, const l0rt_arg* value)
# ValueError: the kernel requires another group size.
cdef int Kernel_check_size(Kernel self, const uint32_t* size) except -1
# A size along x, or along up to three axes, as a launch takes it.
cdef int extent(str what, value, uint32_t* out) except -1
