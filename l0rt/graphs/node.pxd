# SPDX-License-Identifier: Apache-2.0
cimport cython
from libc.stdint cimport uint32_t

from l0rt.graphs.recording cimport Recording
from l0rt.kernels.kernel cimport Kernel


@cython.final
cdef class Node:
    cdef Recording recording
    cdef uint32_t number        # in the order of the capture, from 1 on
    cdef readonly str kind
    cdef Kernel kernel          # of a launch, once something has been asked of it


cdef tuple nodes_of(Recording recording)
