# SPDX-License-Identifier: Apache-2.0
from l0rt.buffers.buffer cimport Buffer
from l0rt.buffers.dlpack cimport Loan

# A buffer of the host's memory that another library lends: its end gives it back.
cdef Buffer new_borrowed(Loan loan)

# `numpy` without arguments returns an array of this dtype and shape.
cdef int keep_layout(Buffer buffer, tuple layout) except -1

# What `l0rt.empty` was asked for, on another device type than the built-in one.
cdef Buffer serve(size_t nbytes, device, stream, str kind)
