# SPDX-License-Identifier: Apache-2.0
"""DLPack 1.3: capsules of memory that l0rt lends, and capsules of others. l0rt's have one dimension of bytes.

The layouts are those of ``dlpack.h``. Whoever takes a capsule renames it and calls its deleter once, on any thread.
"""

cimport cython
from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject
from cpython.pycapsule cimport (
    PyCapsule_CheckExact,
    PyCapsule_GetPointer,
    PyCapsule_IsValid,
    PyCapsule_New,
    PyCapsule_SetName,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport UINT64_MAX, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from l0rt.arguments cimport is_whole, whole
from l0rt.runtime.streams.queue cimport Queue, about_to_wait, queue_synchronize, queue_wait_queue
from l0rt.runtime.streams.types cimport l0rt_stream

cdef extern from "Python.h":
    int Py_IsInitialized() noexcept nogil

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

cdef enum:
    MAJOR = 1
    MINOR = 3
    OPAQUE = 3                  # the code of types that are no numbers
    UINT = 1
    READ_ONLY = 1
    IS_COPIED = 2
    MOST_DIMENSIONS = 64

cdef const char* PLAIN = "dltensor"
cdef const char* VERSIONED = "dltensor_versioned"
cdef object ASKED = (MAJOR, MINOR)


# What l0rt lends. Each form begins with what the consumer sees.
cdef struct Lent:
    DLManagedTensorVersioned versioned
    DLManagedTensor plain
    int64_t shape
    int64_t stride
    PyObject* owner
    dl_release release


cdef void end_loan(Lent* lent) noexcept with gil:
    owner = <object>lent.owner
    lent.release(owner)
    Py_DECREF(owner)
    free(lent)


cdef void delete_versioned(DLManagedTensorVersioned* managed) noexcept nogil:
    if Py_IsInitialized():      # after the interpreter's end nothing is given back
        end_loan(<Lent*>managed.manager_ctx)


cdef void delete_plain(DLManagedTensor* managed) noexcept nogil:
    if Py_IsInitialized():
        end_loan(<Lent*>managed.manager_ctx)


cdef void drop_capsule(object capsule) noexcept:
    """The end of a capsule. One that nobody took has its old name."""
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    cdef DLManagedTensorVersioned* versioned
    cdef DLManagedTensor* plain
    PyErr_Fetch(&kind, &value, &trace)
    if PyCapsule_IsValid(capsule, VERSIONED):
        versioned = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, VERSIONED)
        versioned.deleter(versioned)
    elif PyCapsule_IsValid(capsule, PLAIN):
        plain = <DLManagedTensor*>PyCapsule_GetPointer(capsule, PLAIN)
        plain.deleter(plain)
    PyErr_Restore(kind, value, trace)


cdef bint dlpack_is_versioned(max_version) except -1:
    if max_version is None:
        return False
    if not isinstance(max_version, tuple) or len(max_version) != 2:
        raise TypeError(f"max_version must be a tuple of two ints or None, got {type(max_version).__name__}")
    major = whole(max_version[0], "max_version[0]")
    whole(max_version[1], "max_version[1]")
    return major >= MAJOR


cdef tuple dlpack_device(dl_device):
    if not isinstance(dl_device, tuple) or len(dl_device) != 2:
        raise TypeError(f"dl_device must be a tuple of two ints or None, got {type(dl_device).__name__}")
    return whole(dl_device[0], "dl_device[0]"), whole(dl_device[1], "dl_device[1]")


cdef tuple dlpack_choose(tuple own, int index, dl_device, copy):
    if dl_device is None:
        return own, bool(copy)
    asked = dlpack_device(dl_device)
    if asked == own or (asked == (DL_ONEAPI, index) and own[0] == DL_CPU):
        return asked, bool(copy)
    if asked != (DL_CPU, 0):
        raise BufferError(f"DLPack's device {asked} does not reach this memory, which is on {own}")
    if copy is not None and not copy:
        raise BufferError("the host cannot read device memory: without copy=False it gets a copy")
    return asked, True


cdef int dlpack_order(l0rt_stream* on, stream, bint for_host) except -1:
    cdef l0rt_stream* behind
    if stream is None:
        if on != NULL:
            about_to_wait("__dlpack__() without a stream", on)
            with nogil:
                queue_synchronize(on, UINT64_MAX)
    elif for_host:
        raise BufferError(f"host memory has no stream: stream must be None, got {type(stream).__name__}")
    elif isinstance(stream, Queue):
        behind = (<Queue>stream).ptr
        if behind != on:
            with nogil:
                queue_wait_queue(behind, on)
    elif not is_whole(stream) or whole(stream, "stream") != -1:
        raise BufferError("stream must be an l0rt.Stream, None for a wait of the host, or -1 for no wait, got "
                          f"{type(stream).__name__}")
    return 0


cdef object dlpack_capsule(
        void* pointer, size_t nbytes, tuple device, bint is_copied, bint versioned, owner, dl_release release):
    cdef int32_t kind = device[0], index = device[1]
    cdef DLTensor tensor
    cdef Lent* lent = <Lent*>calloc(1, sizeof(Lent))
    if lent == NULL:
        release(owner)
        raise MemoryError("the host has no memory for a DLPack capsule")
    lent.shape, lent.stride = <int64_t>nbytes, 1
    lent.owner, lent.release = <PyObject*>owner, release
    tensor.data, tensor.device = pointer, DLDevice(kind, index)
    tensor.ndim, tensor.dtype = 1, DLDataType(UINT, 8, 1)
    tensor.shape, tensor.strides, tensor.byte_offset = &lent.shape, &lent.stride, 0
    lent.plain = DLManagedTensor(tensor, lent, delete_plain)
    lent.versioned = DLManagedTensorVersioned(MAJOR, MINOR, lent, delete_versioned, IS_COPIED * is_copied, tensor)
    try:
        if versioned:
            made = PyCapsule_New(&lent.versioned, VERSIONED, drop_capsule)
        else:
            made = PyCapsule_New(&lent.plain, PLAIN, drop_capsule)
    except MemoryError:
        free(lent)
        release(owner)
        raise
    Py_INCREF(owner)
    return made


@cython.final
@cython.binding(False)
cdef class Loan:
    def __init__(self):
        raise TypeError("l0rt.from_dlpack() borrows memory")

    def free(self, ptr=None, stream=None):
        """Give the memory back to its library."""
        give_back(self)

    def __dealloc__(self):
        give_back(self)


cdef void give_back(Loan self) noexcept:
    cdef void* managed = self.managed
    self.managed = NULL         # first: the other library's deleter may run any code
    if managed == NULL:
        return
    if self.versioned:
        if (<DLManagedTensorVersioned*>managed).deleter != NULL:
            (<DLManagedTensorVersioned*>managed).deleter(<DLManagedTensorVersioned*>managed)
    elif (<DLManagedTensor*>managed).deleter != NULL:
        (<DLManagedTensor*>managed).deleter(<DLManagedTensor*>managed)


cdef Loan dlpack_borrow(what):
    cdef Loan made
    cdef DLManagedTensorVersioned* head
    try:
        device, ask = what.__dlpack_device__, what.__dlpack__
    except AttributeError:
        raise TypeError(f"from_dlpack() takes an object with __dlpack__ and __dlpack_device__, not "
                        f"{type(what).__name__}") from None
    kind = dlpack_device(tuple(device()))[0]
    if kind != DL_CPU:
        raise BufferError(f"from_dlpack() takes memory of the host, and this is on DLPack's device type {kind}: have "
                          "its library copy it to the host")
    try:
        capsule = ask(max_version=ASKED)
    except TypeError:           # a library from before version 1
        capsule = ask()
    if not PyCapsule_CheckExact(capsule):
        raise BufferError(f"__dlpack__() must return a capsule, not {type(capsule).__name__}")
    made = Loan.__new__(Loan)
    if PyCapsule_IsValid(capsule, VERSIONED):
        head = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, VERSIONED)
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        made.managed, made.versioned = head, True
        if head.major != MAJOR:
            raise BufferError(f"this is DLPack {head.major}.{head.minor}: l0rt knows version {MAJOR}")
        made.read_only = head.flags & READ_ONLY != 0
        look_at(made, &head.dl_tensor)
    elif PyCapsule_IsValid(capsule, PLAIN):
        made.managed = PyCapsule_GetPointer(capsule, PLAIN)
        PyCapsule_SetName(capsule, b"used_dltensor")
        look_at(made, &(<DLManagedTensor*>made.managed).dl_tensor)
    else:
        raise BufferError("the capsule was taken before, or it is none of DLPack's")
    return made


cdef int look_at(Loan self, const DLTensor* tensor) except -1:
    """Where the bytes are and how many. BufferError for what is no contiguous host memory of numbers."""
    cdef int32_t i
    bits = <uint32_t>tensor.dtype.bits * tensor.dtype.count
    if tensor.device.device_type != DL_CPU:
        raise BufferError(f"the capsule is of DLPack's device type {tensor.device.device_type}, and not of the host")
    if tensor.dtype.code == OPAQUE:
        raise BufferError("from_dlpack() takes memory of numbers, not of handles")
    if bits == 0 or bits % 8:
        raise BufferError(f"from_dlpack() takes elements of whole bytes, and these have {bits} bits")
    if not 0 <= tensor.ndim <= MOST_DIMENSIONS or (tensor.ndim != 0 and tensor.shape == NULL):
        raise BufferError(f"the capsule has no valid shape: {tensor.ndim} dimensions")
    size = bits // 8
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    for length in shape:
        if length < 0:
            raise BufferError(f"the capsule has no valid shape: {shape}")
        size *= length
    if size >= 1 << 62:
        raise BufferError(f"the capsule has no valid shape: {shape} are {size} bytes")
    if size != 0 and tensor.strides != NULL:
        expected = 1
        for i in reversed(range(tensor.ndim)):
            if shape[i] != 1 and tensor.strides[i] != expected:
                raise BufferError("from_dlpack() takes contiguous memory, in C's order: copy it first")
            expected *= shape[i]
    if size != 0 and tensor.data == NULL:
        raise BufferError(f"the capsule has no address for its {size} bytes")
    self.nbytes = size
    self.ptr = <size_t>tensor.data + <size_t>tensor.byte_offset if size != 0 else 0
    return 0
