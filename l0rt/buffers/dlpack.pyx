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
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from l0rt._base.arguments cimport is_whole, list_of_protocol, whole
from l0rt.runtime.memory.transfer cimport l0rt_operand, operand_order
from l0rt.runtime.streams.devices cimport device_at, device_total
from l0rt.runtime.streams.queue cimport Queue, about_to_wait
from l0rt.runtime.streams.sleep cimport check_awake
from l0rt.runtime.streams.stream_pool cimport find_list
from l0rt.runtime.streams.types cimport l0rt_stream
from l0rt.ze.api cimport ze_command_list_handle_t

cdef extern from "Python.h":
    int Py_IsInitialized() noexcept nogil

cdef enum:
    OPAQUE = 3                  # the code of types that are no numbers
    UINT = 1
    READ_ONLY = 1
    IS_COPIED = 2
    MOST_DIMENSIONS = 64

cdef size_t MOST = (<size_t>1 << 62) - 1

cdef const char* PLAIN = "dltensor"
cdef const char* VERSIONED = "dltensor_versioned"
cdef object ASKED = (MAJOR, MINOR)


# What l0rt lends. Each form begins with what the consumer sees.
cdef struct Lent:
    DLManagedTensorVersioned versioned
    DLManagedTensor plain
    int64_t shape
    int64_t stride
    int64_t* lengths            # shape and strides of more dimensions; NULL: the two above
    PyObject* owner
    dl_release release


cdef void end_loan(Lent* lent) noexcept:
    owner = <object>lent.owner
    lent.release(owner)
    Py_DECREF(owner)
    free(lent.lengths)
    free(lent)


cdef void end_loan_anywhere(Lent* lent) noexcept with gil:
    end_loan(lent)


cdef void delete_versioned(DLManagedTensorVersioned* managed) noexcept nogil:
    if Py_IsInitialized():      # after the interpreter's end nothing is given back
        end_loan_anywhere(<Lent*>managed.manager_ctx)


cdef void delete_plain(DLManagedTensor* managed) noexcept nogil:
    if Py_IsInitialized():
        end_loan_anywhere(<Lent*>managed.manager_ctx)


cdef void drop_capsule(object capsule) noexcept:
    """The end of a capsule. One that was not consumed has its old name, and what l0rt lent in it."""
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    PyErr_Fetch(&kind, &value, &trace)
    if PyCapsule_IsValid(capsule, VERSIONED):
        end_loan(<Lent*>(<DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, VERSIONED)).manager_ctx)
    elif PyCapsule_IsValid(capsule, PLAIN):
        end_loan(<Lent*>(<DLManagedTensor*>PyCapsule_GetPointer(capsule, PLAIN)).manager_ctx)
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
    target = dlpack_device(dl_device)
    if target == own or (target == (DL_ONEAPI, index) and own[0] == DL_CPU):
        return target, bool(copy)
    if target != (DL_CPU, 0):
        raise BufferError(f"DLPack's device {target} does not reach this memory, which is on {own}")
    if copy is not None and not copy:
        raise BufferError("the host cannot read device memory: without copy=False it gets a copy")
    return target, True


cdef int dlpack_order(l0rt_stream* on, l0rt_operand* what, stream, bint for_host) except -1:
    cdef l0rt_stream* behind = NULL
    if what != NULL:
        check_awake(what.pointer, NULL)
    if stream is not None:
        if for_host:
            raise BufferError(f"host memory has no stream: stream must be None, got {type(stream).__name__}")
        if is_whole(stream) and whole(stream, "stream") == -1:
            return 0
        behind = (<Queue>stream).ptr if isinstance(stream, Queue) else stream_named(stream)
    elif what != NULL:
        about_to_wait("__dlpack__() without a stream", on)
    if what != NULL:
        with nogil:
            operand_order(what, on, behind)
    return 0


cdef l0rt_stream* stream_named(what) except NULL:
    """The stream of l0rt that a native handle names, or an object with ``__l0_stream__``; BufferError for none."""
    cdef l0rt_stream* match
    cdef int i
    try:
        handle = list_of_protocol(what)
    except TypeError as wrong:
        raise BufferError(str(wrong)) from None
    if is_whole(handle):
        number = whole(handle, "stream")
        if 0 < number < 1 << 64:
            for i in range(device_total()):
                match = find_list(device_at(i), <ze_command_list_handle_t><size_t>number)
                if match != NULL:
                    return match
        raise BufferError(f"stream must be an l0rt.Stream or its native handle, and {number} is the handle of none: "
                          "l0rt.Stream.from_handle() makes a stream of other software's list")
    raise BufferError("stream must be an l0rt.Stream, None for a wait of the host, or -1 for no wait, got "
                      f"{type(what).__name__}")


cdef Lent* lend(void* pointer, size_t nbytes, int32_t kind, int32_t index, bint is_copied, owner,
                dl_release release) except NULL:
    """What the consumer gets, without a reference to the owner yet. A failure ends the loan."""
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
    return lent


cdef object dlpack_capsule(
        void* pointer, size_t nbytes, tuple device, bint is_copied, bint versioned, owner, dl_release release):
    cdef Lent* lent = lend(pointer, nbytes, device[0], device[1], is_copied, owner, release)
    try:
        if versioned:
            capsule = PyCapsule_New(&lent.versioned, VERSIONED, drop_capsule)
        else:
            capsule = PyCapsule_New(&lent.plain, PLAIN, drop_capsule)
    except MemoryError:
        free(lent)
        release(owner)
        raise
    Py_INCREF(owner)
    return capsule


cdef DLManagedTensorVersioned* dlpack_lend(
        void* pointer, size_t nbytes, int kind, int index, owner, dl_release release) except NULL:
    cdef Lent* lent = lend(pointer, nbytes, kind, index, False, owner, release)
    Py_INCREF(owner)
    return &lent.versioned


cdef int dlpack_reshape(DLManagedTensorVersioned* managed, const DLTensor* like) except -1:
    cdef Lent* lent = <Lent*>managed.manager_ctx
    cdef int64_t stride = 1
    cdef int32_t i
    managed.dl_tensor.dtype, managed.dl_tensor.ndim = like.dtype, like.ndim
    lent.lengths = <int64_t*>calloc(2 * <size_t>like.ndim + 1, sizeof(int64_t))
    if lent.lengths == NULL:
        raise MemoryError("the host has no memory for a DLPack tensor")
    for i in reversed(range(like.ndim)):
        lent.lengths[i], lent.lengths[like.ndim + i] = like.shape[i], stride
        stride *= like.shape[i]
    managed.dl_tensor.shape, managed.dl_tensor.strides = lent.lengths, lent.lengths + like.ndim
    return 0


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
    cdef Loan loan
    cdef DLManagedTensorVersioned* head
    try:
        device, ask = what.__dlpack_device__, what.__dlpack__
    except AttributeError:
        raise TypeError(f"from_dlpack() takes an object with __dlpack__ and __dlpack_device__, not "
                        f"{type(what).__name__}") from None
    answer = device()
    if not isinstance(answer, (tuple, list)) or len(answer) != 2 or not is_whole(answer[0]) or not is_whole(answer[1]):
        raise TypeError(f"__dlpack_device__() must return a tuple of two ints, got {answer!r}")
    kind = dlpack_device(tuple(answer))[0]
    if kind != DL_CPU and kind != DL_ONEAPI:
        raise BufferError(f"from_dlpack() takes memory of the host or of oneAPI, and this is on DLPack's device type "
                          f"{kind}: have its library copy it to the host")
    try:
        capsule = ask(max_version=ASKED)
    except TypeError:           # a library from before version 1
        capsule = ask()
    if not PyCapsule_CheckExact(capsule):
        raise BufferError(f"__dlpack__() must return a capsule, not {type(capsule).__name__}")
    loan = Loan.__new__(Loan)
    if PyCapsule_IsValid(capsule, VERSIONED):
        head = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, VERSIONED)
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        loan.managed, loan.versioned = head, True
        if head.major != MAJOR:
            raise BufferError(f"this is DLPack {head.major}.{head.minor}: l0rt knows version {MAJOR}")
        loan.read_only = head.flags & READ_ONLY != 0
        look_at(loan, &head.dl_tensor)
    elif PyCapsule_IsValid(capsule, PLAIN):
        loan.managed = PyCapsule_GetPointer(capsule, PLAIN)
        PyCapsule_SetName(capsule, b"used_dltensor")
        look_at(loan, &(<DLManagedTensor*>loan.managed).dl_tensor)
    else:
        raise BufferError("the capsule was taken before, or it is none of DLPack's")
    return loan


cdef Loan dlpack_take(DLManagedTensorVersioned* managed):
    cdef Loan loan = Loan.__new__(Loan)
    if managed == NULL:
        raise BufferError("there is no tensor: NULL")
    if managed.major != MAJOR:
        raise BufferError(f"this is DLPack {managed.major}.{managed.minor}: l0rt knows version {MAJOR}")
    if managed.flags & READ_ONLY:
        raise BufferError("the memory is read-only, and a Buffer's is not")
    look_at(loan, &managed.dl_tensor)
    loan.managed, loan.versioned = managed, True
    return loan


cdef void dlpack_keep(Loan self) noexcept:
    """The memory stays the producer's after all: its deleter is not called here."""
    self.managed = NULL


cdef int dlpack_size(const DLTensor* tensor, size_t* nbytes) except -1:
    """How many bytes a tensor has. BufferError if it has no valid shape, or elements that are no numbers."""
    cdef uint32_t bits = <uint32_t>tensor.dtype.bits * tensor.dtype.count
    cdef bint is_empty = False
    cdef size_t size
    cdef int32_t i
    if tensor.dtype.code == OPAQUE:
        raise BufferError("from_dlpack() takes memory of numbers, not of handles")
    if bits == 0 or bits % 8:
        raise BufferError(f"from_dlpack() takes elements of whole bytes, and these have {bits} bits")
    if not 0 <= tensor.ndim <= MOST_DIMENSIONS or (tensor.ndim != 0 and tensor.shape == NULL):
        raise BufferError(f"the capsule has no valid shape: {tensor.ndim} dimensions")
    for i in range(tensor.ndim):
        if tensor.shape[i] < 0:
            raise BufferError(f"the capsule has no valid shape: {[tensor.shape[i] for i in range(tensor.ndim)]}")
        is_empty = is_empty or tensor.shape[i] == 0
    size = 0 if is_empty else bits // 8
    for i in range(0 if is_empty else tensor.ndim):
        if <uint64_t>tensor.shape[i] > MOST // size:
            raise BufferError(f"the capsule has no valid shape: {[tensor.shape[i] for i in range(tensor.ndim)]} of "
                              f"{bits} bits each are 2**62 bytes or more")
        size *= <size_t>tensor.shape[i]
    nbytes[0] = size
    return 0


cdef int look_at(Loan self, const DLTensor* tensor) except -1:
    """Where the bytes are and how many. BufferError for what is no contiguous memory of numbers."""
    cdef int32_t i
    cdef int64_t expected = 1
    cdef size_t size = 0
    if tensor.device.device_type != DL_CPU and tensor.device.device_type != DL_ONEAPI:
        raise BufferError(f"the capsule is of DLPack's device type {tensor.device.device_type}, and not of the host "
                          "or of oneAPI")
    dlpack_size(tensor, &size)
    if size != 0 and tensor.strides != NULL:
        for i in reversed(range(tensor.ndim)):
            if tensor.shape[i] != 1 and tensor.strides[i] != expected:
                shape = tuple([tensor.shape[k] for k in range(tensor.ndim)])
                strides = tuple([tensor.strides[k] for k in range(tensor.ndim)])
                raise BufferError(f"from_dlpack() takes contiguous memory, in C's order, with copy=True too, got the "
                                  f"shape {shape} with the strides {strides}: make it contiguous first, as "
                                  "numpy.ascontiguousarray() or Tensor.contiguous() do")
            expected *= tensor.shape[i]
    if size != 0 and tensor.data == NULL:
        raise BufferError(f"the capsule has no address for its {size} bytes")
    self.nbytes, self.device_type = size, tensor.device.device_type
    self.ptr = <size_t>tensor.data + <size_t>tensor.byte_offset if size != 0 else 0
    return 0
