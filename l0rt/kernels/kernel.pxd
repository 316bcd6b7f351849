# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t

from l0rt.kernels.launch cimport l0rt_kernel


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
