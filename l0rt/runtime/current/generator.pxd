# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport uint64_t


# What several generators may share, so that a captured graph and its generator stay together.
cdef class PhiloxState:
    cdef uint64_t seed
    cdef uint64_t offset


cdef class Generator:
    cdef PhiloxState state
    cdef int index              # -1: the name has none
    cdef str type               # of the device
    cdef dict places            # stream's address -> where kernels of that stream find the state
    cdef object __weakref__
