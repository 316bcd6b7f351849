# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t

from l0rt.kernels.arguments cimport Parameters
from l0rt.kernels.built cimport l0rt_kernel


@cython.final
cdef class Kernel:
    cdef l0rt_kernel* ptr       # with a reference to its module
    cdef Parameters takes
    cdef readonly str name
    cdef readonly tuple arguments
    cdef object required
    cdef bint counts_items      # it may ask how many groups or work-items there are, or which group it is in
    cdef object __weakref__


# `interface` is what the module tells of the kernel, None if it does not.
cdef Kernel new_kernel(l0rt_kernel* kernel, str name, interface)
# The kernel of a launch that was recorded, also if its module was closed since.
cdef Kernel kernel_of(l0rt_kernel* kernel)
# ValueError: the kernel requires another group size.
cdef int Kernel_check_size(Kernel self, const uint32_t* size) except -1
# A size along x, or along up to three axes, as a launch takes it.
cdef int extent(str what, value, uint32_t* out) except -1
