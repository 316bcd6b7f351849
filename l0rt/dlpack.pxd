# SPDX-License-Identifier: Apache-2.0
from l0rt.runtime.streams.types cimport l0rt_stream

cdef enum:
    DL_CPU = 1
    DL_ONEAPI = 14

ctypedef void (*dl_release)(object owner) noexcept


# What `__dlpack__` is asked for: whether a capsule of version 1, and which device as (type, index).
cdef bint dlpack_is_versioned(max_version) except -1
cdef tuple dlpack_device(dl_device)
# On which device the consumer gets memory that is on `own`, and whether that is a copy. `index` is of the device to
# which host memory belongs.
cdef tuple dlpack_choose(tuple own, int index, dl_device, copy)
# The consumer's later work, or with None the host's, comes behind what `on` has been given. `stream` is what the
# consumer passed.
cdef int dlpack_order(l0rt_stream* on, stream, bint for_host) except -1
# A capsule of so many bytes. `owner` lives until the consumer ends it by `release`, which a failure does too.
cdef object dlpack_capsule(
    void* pointer, size_t nbytes, tuple device, bint is_copied, bint versioned, owner, dl_release release)


# Memory that another library lends. `free` gives it back, and so does dropping the object.
cdef class Loan:
    cdef void* managed              # NULL: given back
    cdef bint versioned
    cdef readonly size_t ptr
    cdef readonly size_t nbytes
    cdef readonly bint read_only


# Borrow the memory of an object that has `__dlpack__`. BufferError unless it is contiguous host memory of numbers.
cdef Loan dlpack_borrow(what)
