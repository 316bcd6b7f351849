# SPDX-License-Identifier: Apache-2.0
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from l0rt.runtime.memory.transfer cimport l0rt_operand
from l0rt.runtime.streams.types cimport l0rt_stream

cdef enum:
    MAJOR = 1                   # the version of DLPack
    MINOR = 3
    DL_CPU = 1
    DL_ONEAPI = 14

cdef struct DLDevice:
    int32_t device_type
    int32_t device_id

cdef struct DLDataType:
    uint8_t code
    uint8_t bits
    uint16_t count              # of scalars in an element

cdef struct DLTensor:
    void* data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t* shape
    int64_t* strides            # in elements; NULL: contiguous
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor dl_tensor
    void* manager_ctx
    void (*deleter)(DLManagedTensor*) noexcept nogil

cdef struct DLManagedTensorVersioned:
    uint32_t major
    uint32_t minor
    void* manager_ctx
    void (*deleter)(DLManagedTensorVersioned*) noexcept nogil
    uint64_t flags
    DLTensor dl_tensor

ctypedef void (*dl_release)(object owner) noexcept


# What `__dlpack__` is asked for: whether a capsule of version 1, and which device as (type, index).
cdef bint dlpack_is_versioned(max_version) except -1
cdef tuple dlpack_device(dl_device)
# On which device the consumer gets memory that is on `own`, and whether that is a copy. `index` is of the device to
# which host memory belongs.
cdef tuple dlpack_choose(tuple own, int index, dl_device, copy)
# The consumer's later work, or with None the host's, comes behind what `on` has been given, and behind what is known to
# use the memory. `stream` is what the consumer passed. NULL: memory that no stream uses. RuntimeError: the memory is in
# a pool that sleeps.
cdef int dlpack_order(l0rt_stream* on, l0rt_operand* what, stream, bint for_host) except -1
# A capsule of so many bytes. `owner` lives until the consumer ends it by `release`, which a failure does too.
cdef object dlpack_capsule(
    void* pointer, size_t nbytes, tuple device, bint is_copied, bint versioned, owner, dl_release release)
# The same without a capsule: the receiver calls its deleter.
cdef DLManagedTensorVersioned* dlpack_lend(
    void* pointer, size_t nbytes, int kind, int index, owner, dl_release release) except NULL
# Give what was lent the element type and the shape of another tensor, of as many bytes.
cdef int dlpack_reshape(DLManagedTensorVersioned* managed, const DLTensor* like) except -1
cdef int dlpack_size(const DLTensor* tensor, size_t* nbytes) except -1


# Memory that another library lends. `free` gives it back, and so does dropping the object.
cdef class Loan:
    cdef void* managed              # NULL: given back
    cdef bint versioned
    cdef readonly size_t ptr
    cdef readonly size_t nbytes
    cdef readonly bint read_only
    cdef readonly int device_type   # DL_CPU or DL_ONEAPI


# Borrow the memory of an object that has `__dlpack__`. BufferError unless it is contiguous memory of numbers, of the
# host or of oneAPI.
cdef Loan dlpack_borrow(what)
# Take a tensor without a capsule; dlpack_keep undoes that. After a failure it is the caller's.
cdef Loan dlpack_take(DLManagedTensorVersioned* managed)
cdef void dlpack_keep(Loan self) noexcept

# DLPack's exchange API; interchange.pyx fills it.
cdef struct DLPackExchangeAPI:
    uint32_t major
    uint32_t minor
    void* previous
    int (*allocate)(
        DLTensor*, DLManagedTensorVersioned**, void*, void (*)(void*, const char*, const char*) noexcept) noexcept
    int (*lend)(void*, DLManagedTensorVersioned**) except -1
    int (*take)(DLManagedTensorVersioned*, void**) except -1
    int (*look)(void*, DLTensor*) except -1
    int (*current_stream)(int, int32_t, void**) except -1

cdef DLPackExchangeAPI exchange
