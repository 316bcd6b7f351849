# SPDX-License-Identifier: Apache-2.0
"""Memory that other software lends, as a Buffer: SYCL's and DLPack's; DLPack's exchange API, for both directions."""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_SetName
from cpython.ref cimport Py_INCREF
from libc.stdint cimport UINT64_MAX, int32_t, int64_t

from l0rt._base.arguments cimport is_whole, known_as
from l0rt.buffers cimport buffer as buffer_module
from l0rt.buffers.buffer cimport (
    DEVICE,
    ELSEWHERE,
    HOST,
    SHARED,
    Buffer,
    Buffer_check_free,
    Buffer_check_open,
    Buffer_end_export,
    Buffer_hold,
)
from l0rt.buffers.dlpack cimport (
    DL_CPU,
    DL_ONEAPI,
    MAJOR,
    MINOR,
    DLDataType,
    DLManagedTensorVersioned,
    DLTensor,
    Loan,
    dlpack_keep,
    dlpack_lend,
    dlpack_reshape,
    dlpack_size,
    dlpack_take,
    exchange,
)
from l0rt.buffers.foreign cimport new_borrowed
from l0rt.core.memory cimport memory_allocation
from l0rt.runtime.alloc.heap cimport block_find
from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.current.thread cimport current_device, current_stream
from l0rt.runtime.streams.devices cimport device_at, device_record, device_total, ensure
from l0rt.runtime.streams.queue cimport Queue, queue_share
from l0rt.runtime.streams.sleep cimport check_awake
from l0rt.runtime.streams.types cimport l0rt_device, l0rt_stream
from l0rt.ze.api cimport (
    ZE_MEMORY_TYPE_DEVICE,
    ZE_MEMORY_TYPE_HOST,
    ZE_MEMORY_TYPE_SHARED,
    ZE_RESULT_SUCCESS,
    ze_device_handle_t,
    ze_memory_type_t,
    ze_result_t,
)

import math

from l0rt._base import lazynumpy as np
from l0rt.buffers.empty import empty
from l0rt.errors import DeviceIndexError
from l0rt.runtime.streams.devices import lazy


@cython.final
@cython.binding(False)
cdef class Borrowed(Buffer):
    """Memory of other software. `free` and dropping it let go of its owner, and free nothing themselves."""
    cdef object lender

    def free(self, Queue stream=None):
        """Let go of the memory's owner. With ``stream``, after all work that the stream was given so far."""
        lender = self.lender
        Buffer_check_open(self)
        Buffer_check_free(self)
        forget(self)
        if stream is not None and lender is not None:
            stream.add_callback(lender_returned, lender)

    def __dealloc__(self):
        self.freed, self.block, self.pointer = True, NULL, NULL     # so that the base class gives nothing back


cdef void forget(Borrowed self) noexcept:
    self.freed, self.block, self.pointer = True, NULL, NULL
    self.lender = None


def lender_returned(lender):
    """Nothing to do: the callback has kept an object alive until now."""


cdef Buffer borrow_at(size_t address, size_t nbytes, int index, lender):
    """The memory at an address of the device's context, with an index of -1 wherever it is; ValueError if there is
    none, or less than so many bytes."""
    cdef Borrowed buffer
    cdef l0rt_device* device = NULL
    cdef l0rt_block* block = NULL
    cdef int memory = DEVICE
    ensure()
    if address > UINT64_MAX - nbytes or (address == 0 and nbytes != 0):
        raise ValueError(f"there is no memory of {nbytes} bytes at {address:#x}")
    if nbytes == 0:
        device = device_at(current_device() if index < 0 else index)
        address = 0
    else:
        device = owner_of(address, nbytes, index, &memory, &block)
    if index >= 0 and device.index != index:
        raise ValueError(f"the memory at {address:#x} is of {lazy.device_type}:{device.index}, not of "
                         f"{lazy.device_type}:{index}")
    buffer = Borrowed.__new__(Borrowed)
    buffer.nbytes, buffer.pointer = nbytes, <void*>address
    buffer.owner, buffer.memory, buffer.block, buffer.lender = device, memory, block, lender
    return buffer


cdef l0rt_device* owner_of(size_t address, size_t nbytes, int index, int* memory, l0rt_block** block_out) except NULL:
    """Whose memory it is; of memory that a context's devices share, that of the index, or the current device's."""
    cdef l0rt_block* block = block_find(<void*>address)
    cdef int current = current_device() if index < 0 else index
    cdef l0rt_device* device
    cdef ze_memory_type_t kind = ZE_MEMORY_TYPE_HOST
    cdef ze_device_handle_t on = NULL
    cdef size_t base = 0, size = 0
    cdef ze_result_t r
    cdef int i
    if block != NULL:
        for i in range(device_total()):
            device = device_record(i)
            if block.arena.heap == device.heap or block.arena.heap == device.host_heap:
                check_ends(address, nbytes, <size_t>block.ptr, block.size)
                memory[0] = DEVICE if block.arena.heap == device.heap else HOST
                block_out[0] = block
                return device if memory[0] == DEVICE else sharing(device, current)
    elif map_find(<void*>address) != NULL:
        raise ValueError(f"{address:#x} is in no allocation of l0rt, but in memory that was freed")
    for i in range(device_total()):
        device = device_record(i)
        with nogil:
            r = memory_allocation(device.context, <void*>address, &kind, &on, &base, &size)
        if r == ZE_RESULT_SUCCESS and kind in (ZE_MEMORY_TYPE_DEVICE, ZE_MEMORY_TYPE_HOST, ZE_MEMORY_TYPE_SHARED):
            check_ends(address, nbytes, base, size)
            memory[0] = (DEVICE if kind == ZE_MEMORY_TYPE_DEVICE else HOST if kind == ZE_MEMORY_TYPE_HOST else SHARED)
            return with_handle(device, on) if on != NULL else sharing(device, current)
    raise ValueError(f"the driver knows no memory at {address:#x} in l0rt's context: memory of another context has to "
                     "be copied, or l0rt.xpu.adopt_context() shares the context")


cdef int check_ends(size_t address, size_t nbytes, size_t base, size_t size) except -1:
    if address + nbytes > base + size:
        raise ValueError(f"the allocation has {base + size - address} bytes from {address:#x} on, not {nbytes}")
    return 0


cdef l0rt_device* sharing(l0rt_device* device, int current) except NULL:
    """The wanted device if it has the same context."""
    cdef l0rt_device* other = device_at(current)
    return other if other.context == device.context else device


cdef l0rt_device* with_handle(l0rt_device* device, ze_device_handle_t handle) noexcept:
    """The device with this handle; the context's first for a part of a device."""
    cdef int i
    for i in range(device_total()):
        if device_record(i).handle == handle:
            return device_record(i)
    return device


buffer_module.borrow = borrow_at
known_as(Borrowed, b"l0rt.Buffer")


cdef Buffer buffer_of(Loan loan):
    """The memory of a loan as a Buffer. BufferError if it is nowhere that l0rt reaches."""
    if loan.device_type == DL_CPU:
        return new_borrowed(loan)
    try:
        return borrow_at(loan.ptr, loan.nbytes, -1, loan)
    except ValueError as e:
        raise BufferError(str(e)) from e


def from_usm(array, /, *, device=None):
    """Return a Buffer of the memory of an object with ``__sycl_usm_array_interface__``. Nothing is copied.

    Parameters
    ----------
    array : object
        An object with ``__sycl_usm_array_interface__``, such as one of dpctl or dpnp, whose memory is contiguous and
        in l0rt's context.
    device : int, str, device or None, optional
        The device that the memory is expected on. None is the one that has it.

    Returns
    -------
    Buffer
        The memory of ``array``, which it keeps alive until it is freed or dropped.

    Raises
    ------
    ValueError
        The interface has another version than 1 or a field that makes no sense, or there is no such memory in l0rt's
        context.
    BufferError
        The memory is not contiguous in C's order.
    TypeError
        ``array`` has no ``__sycl_usm_array_interface__``.

    Notes
    -----
    The protocol has no stream: the other library's work on the memory must be complete. Memory is in l0rt's context if
    l0rt has allocated it, or if both libraries work in one context: see `l0rt.xpu.adopt_context`.
    """
    description = getattr(array, "__sycl_usm_array_interface__", None)
    if not isinstance(description, dict):
        raise TypeError(f"from_usm() takes an object with __sycl_usm_array_interface__, not {type(array).__name__}")
    address, nbytes = usm_extent(description)
    return Buffer.from_handle(address, nbytes, device=device, owner=array)


cdef tuple usm_extent(dict description):
    """The address and the size in the interface; ValueError for nonsense, BufferError for gaps."""
    missing = [name for name in ("data", "shape", "typestr", "syclobj", "version") if name not in description]
    if missing:
        raise ValueError(f"__sycl_usm_array_interface__ lacks {', '.join(missing)}")
    if description["version"] != 1:
        raise ValueError(f"l0rt knows version 1 of __sycl_usm_array_interface__, got {description['version']!r}")
    data, shape = description["data"], description["shape"]
    strides, offset = description.get("strides"), description.get("offset", 0)
    if not isinstance(data, tuple) or len(data) != 2 or not is_whole(data[0]) or data[0] < 0:
        raise ValueError(f"'data' must be a tuple of an address and a bool, got {data!r}")
    if not isinstance(shape, tuple) or not all(is_whole(each) and each >= 0 for each in shape):
        raise ValueError(f"'shape' must be a tuple of lengths, got {shape!r}")
    if strides is not None and (not isinstance(strides, tuple) or len(strides) != len(shape)
                                or not all(is_whole(each) for each in strides)):
        raise ValueError(f"'strides' must be None or a tuple of {len(shape)} numbers of elements, got {strides!r}")
    if not is_whole(offset) or offset < 0:
        raise ValueError(f"'offset' must be a number of elements, got {offset!r}")
    try:
        kind = np.dtype(description["typestr"])
    except TypeError:
        kind = None
    if not isinstance(description["typestr"], str) or kind is None or kind.hasobject or kind.itemsize == 0:
        raise ValueError(f"'typestr' must name a type of numbers, got {description['typestr']!r}")
    nbytes = kind.itemsize * math.prod(shape)
    expected = 1
    for length, step in zip(reversed(shape), reversed(strides or ())):
        if nbytes and length != 1 and step != expected:
            raise BufferError("from_usm() takes contiguous memory, in C's order: copy it first")
        expected *= length
    return data[0] + offset * kind.itemsize, nbytes


# DLPack's exchange API: what `__dlpack__` and `from_dlpack` do, in C and without waiting.

cdef int64_t ONE = 1        # the stride of bytes


cdef Buffer buffer_at(void* what):
    if what == NULL or not isinstance(<object>what, Buffer):
        raise TypeError("DLPack's exchange API of l0rt takes a Buffer")
    return <Buffer>what


cdef int require(const void* place) except -1:
    if place == NULL:
        raise ValueError("DLPack's exchange API of l0rt takes a place for the result, got NULL")
    return 0


cdef int exchange_lend(void* what, DLManagedTensorVersioned** out) except -1:
    cdef Buffer self = buffer_at(what)
    require(out)
    if self.memory == ELSEWHERE:        # it says itself whether it is the host's
        capsule = self.__dlpack__(max_version=(MAJOR, MINOR))
        out[0] = <DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        return 0
    Buffer_check_open(self)
    check_awake(self.pointer, NULL)
    Buffer_hold(self)
    if self.memory == DEVICE:
        out[0] = dlpack_lend(self.pointer, self.nbytes, DL_ONEAPI, self.owner.index, self, Buffer_end_export)
    else:
        out[0] = dlpack_lend(self.pointer, self.nbytes, DL_CPU, 0, self, Buffer_end_export)
    return 0


cdef int exchange_take(DLManagedTensorVersioned* managed, void** out) except -1:
    cdef Loan loan
    require(out)
    loan = dlpack_take(managed)
    try:
        buffer = buffer_of(loan)
    except BaseException:
        dlpack_keep(loan)
        raise
    Py_INCREF(buffer)
    out[0] = <void*>buffer
    return 0


cdef int exchange_look(void* what, DLTensor* out) except -1:
    cdef Buffer self = buffer_at(what)
    require(out)
    if self.memory == ELSEWHERE:
        out.device.device_type, out.device.device_id = self.__dlpack_device__()
    else:
        Buffer_check_open(self)
        check_awake(self.pointer, NULL)
        out.device.device_type = DL_ONEAPI if self.memory == DEVICE else DL_CPU
        out.device.device_id = self.owner.index if self.memory == DEVICE else 0
    out.data, out.byte_offset, out.ndim = self.pointer, 0, 1
    out.dtype = DLDataType(1, 8, 1)
    out.shape, out.strides = <int64_t*>&self.nbytes, &ONE
    return 0


cdef int exchange_current_stream(int kind, int32_t index, void** out) except -1 with gil:
    cdef l0rt_stream* stream
    require(out)
    out[0] = NULL
    if kind == DL_ONEAPI:
        if index < 0:
            raise DeviceIndexError(f"The device index is out of range: {index}")
        lazy.init()
        stream = current_stream(index)
        with nogil:
            out[0] = <void*>queue_share(stream)
    elif kind != DL_CPU:
        raise BufferError(f"l0rt has no streams of DLPack's device type {kind}")
    return 0


cdef int exchange_allocate(
        DLTensor* like, DLManagedTensorVersioned** out, void* context,
        void (*tell)(void*, const char*, const char*) noexcept) noexcept with gil:
    try:
        require(out)
        out[0] = allocate(like)
        return 0
    except BaseException as e:
        kind, text = type(e).__name__.encode(), str(e).encode("utf-8", "replace")
        if tell != NULL:
            tell(context, kind, text)
    return -1


cdef DLManagedTensorVersioned* allocate(const DLTensor* like) except NULL:
    cdef DLManagedTensorVersioned* managed
    cdef size_t nbytes = 0
    if like == NULL:
        raise BufferError("there is no tensor to allocate like: NULL")
    dlpack_size(like, &nbytes)
    if like.device.device_type == DL_CPU:
        buffer = empty(nbytes, device="cpu", kind="host")
    elif like.device.device_type == DL_ONEAPI:
        buffer = empty(nbytes, device=f"{lazy.device_type}:{like.device.device_id}")
    else:
        raise BufferError(f"l0rt allocates nothing on DLPack's device type {like.device.device_type}")
    exchange_lend(<void*>buffer, &managed)
    try:
        dlpack_reshape(managed, like)
    except MemoryError:
        managed.deleter(managed)
        raise
    return managed


exchange.major, exchange.minor, exchange.previous = MAJOR, MINOR, NULL
exchange.allocate = exchange_allocate
exchange.lend = exchange_lend
exchange.take = exchange_take
exchange.look = exchange_look
exchange.current_stream = exchange_current_stream
