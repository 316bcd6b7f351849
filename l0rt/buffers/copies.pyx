# SPDX-License-Identifier: Apache-2.0
"""Copies and fills by address, of rows, and from and to NumPy arrays, for whatever memory they are given.

Memory is a Buffer, an object with the buffer protocol, or an address. What is at an address is found out: memory of
l0rt by the page map, memory of other software by the driver. Everything else, registered memory too, is ordinary memory
of the process.
"""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_CheckBuffer
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport UINT64_MAX, uint64_t
from libc.string cimport memset as host_fill

from l0rt._base.arguments cimport (
    address_in, checked_pattern, checked_shape, checked_size, get_view, is_address, known_as,
)
from l0rt.buffers.buffer cimport (
    ELSEWHERE, SHARED, Buffer, Buffer_check_open, Buffer_hold, Buffer_operand, Buffer_take, Buffer_unhold, array_like,
    own_types,
)
from l0rt.core.memory cimport memory_kind
from l0rt.buffers.dlpack cimport Loan, dlpack_borrow
from l0rt.buffers.foreign cimport keep_layout
from l0rt.buffers.interchange cimport buffer_of
from l0rt.runtime.alloc.heap cimport block_find
from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.current.thread cimport current_device, current_stream
from l0rt.runtime.memory.operations cimport l0rt_extent, shared_find
from l0rt.runtime.memory.registration cimport is_registered
from l0rt.runtime.memory.transfer cimport (
    l0rt_operand, rows_span, transfer, transfer_fill, transfer_host, transfer_in, transfer_out)
from l0rt.runtime.streams.copy cimport l0rt_rows, queue_hint
from l0rt.runtime.streams.devices cimport device_at, device_record, device_total
from l0rt.runtime.streams.naming cimport device as device_name, index_of
from l0rt.runtime.streams.queue cimport Queue, about_to_wait, queue_synchronize
from l0rt.runtime.streams.types cimport *
from l0rt.ze.api cimport ZE_MEMORY_TYPE_DEVICE, ZE_MEMORY_TYPE_HOST, ZE_MEMORY_TYPE_SHARED, ze_memory_type_t

from l0rt._base import lazynumpy as np
from l0rt.errors import InvalidArgumentError
from l0rt.buffers.buffer import _given
from l0rt.buffers.empty import empty
from l0rt.runtime.streams.devices import lazy


cdef enum:
    MOST_NBYTES = 0x3fffffffffffffff  # as a shift it would be computed as an int in C


@cython.final
@cython.no_gc
@cython.binding(False)
cdef class Side:
    """Made by ``side_of()``."""

    def __init__(self):
        raise TypeError("made by side_of()")

    def __dealloc__(self):
        if self.buffer is not None:
            Buffer_unhold(self.buffer)
        if self.has_view:
            PyBuffer_Release(&self.view)


cdef Side side_of(what, size_t nbytes, bint writes, str where):
    """``nbytes`` bytes of some memory, kept for as long as the answer lives."""
    cdef Side side = Side.__new__(Side)
    cdef object address
    if isinstance(what, Buffer) and (<Buffer>what).memory != ELSEWHERE:
        Buffer_hold(<Buffer>what)
        side.buffer = <Buffer>what
        check_within(nbytes, side.buffer.nbytes, where)
        side.operand = Buffer_operand(side.buffer)
    elif is_address(what):
        address = address_in(what, 0)
        if nbytes != 0 and (address == 0 or address > UINT64_MAX - nbytes):
            raise ValueError(f"{where}(): there is no memory of {nbytes} bytes at {address:#x}")
        side.operand.pointer = <void*><uint64_t>address
        find(side, nbytes, True, where)
    else:
        if isinstance(what, Buffer) and what.kind != "host":
            raise TypeError(f"{where}() works on memory of the device type {lazy.device_type} and of the host; for a "
                            f"Buffer on {what.device} there are copy_from(), copy_to() and fill()")
        if not PyObject_CheckBuffer(what):
            raise TypeError(f"{where}() takes a Buffer, an object with the buffer protocol or an address, not "
                            f"{type(what).__name__}")
        get_view(what, &side.view, PyBUF_C_CONTIGUOUS | (PyBUF_WRITABLE if writes else 0), where)
        side.has_view = True
        check_within(nbytes, side.view.len, where)
        side.operand.pointer = side.view.buf
        find(side, nbytes, False, where)
    side.operand.nbytes = nbytes
    return side


cdef int check_within(size_t nbytes, size_t there, str where) except -1:
    if nbytes > there:
        raise ValueError(f"{where}() needs {nbytes} bytes, got memory of {there}")
    return 0


cdef int find(Side side, size_t nbytes, bint asks_driver, str where) except -1:
    """Find out what is at the address. An operand's stream stays NULL: its block is always known, and so is checked."""
    cdef l0rt_operand* operand = &side.operand
    cdef size_t address = <size_t>operand.pointer
    cdef l0rt_block* block = block_find(operand.pointer)
    cdef const l0rt_extent* extent
    cdef l0rt_device* device
    cdef ze_memory_type_t kind
    cdef int i
    if nbytes == 0:
        side.is_plain = True
        return 0
    if block != NULL:
        for i in range(device_total()):
            device = device_record(i)
            if block.arena.heap == device.heap or block.arena.heap == device.host_heap:
                check_within(nbytes, <size_t>block.ptr + block.size - address, where)
                operand.block, operand.device, operand.on_device = block, device, block.arena.heap == device.heap
                return 0
    elif map_find(operand.pointer) != NULL:
        raise InvalidArgumentError(f"invalid device pointer: {address:#x} is in no allocation of l0rt, but in memory "
                                   "that was freed")
    extent = shared_find(address)
    if extent != NULL:
        check_within(nbytes, extent.base + extent.nbytes - address, where)
        operand.device, operand.on_device = device_record(extent.device), extent.is_imported
        return 0
    if asks_driver and not is_registered(operand.pointer, nbytes):
        lazy.init()
        for i in range(device_total()):
            device = device_record(i)
            with nogil:
                kind = memory_kind(device.context, operand.pointer)
            if kind in (ZE_MEMORY_TYPE_DEVICE, ZE_MEMORY_TYPE_HOST, ZE_MEMORY_TYPE_SHARED):
                operand.device, operand.on_device = device, kind == ZE_MEMORY_TYPE_DEVICE
                return 0
    side.is_plain = True
    return 0


cdef l0rt_stream* stream_of(Side first, Side second, Queue stream) except NULL:
    """The stream that an argument means; None: the current one of the first device that has one of the memories."""
    if stream is not None:
        return stream.ptr
    for side in (first, second):
        if side is not None and not (<Side>side).is_plain and (<Side>side).operand.on_device:
            return current_stream((<Side>side).operand.device.index)
    return current_stream(-1)


cdef int copy(Side target, Side source, const l0rt_rows* rows, Queue stream, bint non_blocking, str where) except -1:
    cdef l0rt_stream* on = stream_of(source, target, stream)
    cdef l0rt_stream* target_on = NULL
    cdef bint wait = not non_blocking and not (target.operand.on_device and source.operand.on_device)
    if target.is_plain and source.is_plain:
        if non_blocking:
            raise ValueError(f"{where}(): non_blocking=True needs memory of a device on one side at least")
        transfer_host(target.operand.pointer, source.operand.pointer, source.operand.nbytes, rows, on,
                      f"{where}() within the host")
    elif source.is_plain:
        transfer_in(&target.operand, source.operand.pointer, rows, on, non_blocking, not target.operand.on_device)
    elif target.is_plain:
        transfer_out(target.operand.pointer, &source.operand, rows, on, non_blocking)
    else:
        if (stream is None and target.operand.on_device and source.operand.on_device
                and target.operand.device != source.operand.device):
            target_on = current_stream(target.operand.device.index)
        transfer(&target.operand, &source.operand, rows, on, target_on, wait)
    return 0


def memcpy(dst, src, nbytes, Queue stream=None, *, bint non_blocking=False):
    """Copy ``nbytes`` bytes from ``src`` to ``dst``, in the order of ``stream``.

    What returns when is the same as with `Buffer.copy_from` and `Buffer.copy_to`. Memory at an address is the caller's
    to keep until the copy is complete; l0rt knows its own, and reuses it only behind the copy.

    Parameters
    ----------
    dst : Buffer, writable bytes-like or int
        The memory to copy to, or its address.
    src : Buffer, bytes-like or int
        The memory to copy from, or its address. It does not overlap ``dst``.
    nbytes : int
        The number of bytes, at most as many as either memory has.
    stream : Stream or None, optional
        None is the current stream of the device that has ``src``; if none has, of the device that has ``dst``.
    non_blocking : bool, optional
        Return before the data is there. For copies from and to the host this needs pinned memory.

    Raises
    ------
    ValueError
        A memory is smaller than ``nbytes``, was freed, or overlaps the other.
    TypeError
        ``dst`` or ``src`` is neither memory of numbers nor an address.

    Notes
    -----
    The order of the arguments is that of C's ``memcpy`` and of ``cudaMemcpyAsync``.
    """
    cdef size_t size = checked_size(nbytes)
    cdef Side target = side_of(dst, size, True, "memcpy")
    cdef Side source = side_of(src, size, False, "memcpy")
    if size != 0:
        copy(target, source, NULL, stream, non_blocking, "memcpy")


def memcpy2d(dst, dst_pitch, src, src_pitch, width, height, Queue stream=None, *, bint non_blocking=False):
    """Copy ``height`` rows of ``width`` bytes from ``src`` to ``dst``, in the order of ``stream``.

    The rows begin a pitch apart. What lies between them is neither read nor written. Copy from and to the middle of a
    Buffer with a slice of it: ``x[offset:]``.

    Parameters
    ----------
    dst : Buffer, writable bytes-like or int
        The memory to copy to, or its address.
    dst_pitch : int
        Bytes from the start of one row of ``dst`` to that of the next, ``width`` or more.
    src : Buffer, bytes-like or int
        The memory to copy from, or its address. Its rows do not overlap those of ``dst``.
    src_pitch : int
        The same of ``src``.
    width : int
        Bytes of a row.
    height : int
        The number of rows.
    stream : Stream or None, optional
        As in `memcpy`.
    non_blocking : bool, optional
        Return before the data is there. For copies from and to the host this needs pinned memory.

    Raises
    ------
    ValueError
        A pitch is smaller than ``width``, a memory is too small for the rows or was freed, or rows overlap.
    TypeError
        ``dst`` or ``src`` is neither memory of numbers nor an address.

    Notes
    -----
    The arguments are those of ``cudaMemcpy2DAsync`` and of SYCL's ``ext_oneapi_memcpy2d``. It appends
    ``zeCommandListAppendMemoryCopyRegion``, or one copy for each row where the queue has no such command. Pageable
    memory is staged.
    """
    cdef l0rt_rows rows
    cdef size_t dst_span, src_span
    cdef Side target, source
    rows.width, rows.height = checked_size(width), checked_size(height)
    rows.target_pitch, rows.source_pitch = checked_size(dst_pitch), checked_size(src_pitch)
    dst_span = checked_span(&rows, rows.target_pitch, "dst_pitch")
    src_span = checked_span(&rows, rows.source_pitch, "src_pitch")
    target = side_of(dst, dst_span, True, "memcpy2d")
    source = side_of(src, src_span, False, "memcpy2d")
    if rows.width != 0 and rows.height != 0:
        copy(target, source, &rows, stream, non_blocking, "memcpy2d")


cdef size_t checked_span(const l0rt_rows* rows, size_t pitch, str name) except? 0:
    if pitch < rows.width:
        raise ValueError(f"{name} must be at least the width, {rows.width} bytes, got {pitch}")
    if rows.width != 0 and rows.height != 0 and rows.height - 1 > (MOST_NBYTES - rows.width) // pitch:
        raise ValueError(f"{rows.height} rows with a {name} of {pitch} bytes exceed the address space")
    return rows_span(rows, pitch)


def memset(dst, value, nbytes, Queue stream=None, *, bint non_blocking=False):
    """Fill ``nbytes`` bytes of ``dst`` with the byte ``value``, in the order of ``stream``.

    Parameters
    ----------
    dst : Buffer, writable bytes-like or int
        The memory to fill, or its address.
    value : int
        The byte, 0 to 255.
    nbytes : int
        The number of bytes, at most as many as the memory has.
    stream : Stream or None, optional
        None is the current stream of the device that has the memory, or of the current device.
    non_blocking : bool, optional
        Return before memory that the host reaches is filled.

    Raises
    ------
    ValueError
        The memory is smaller than ``nbytes`` or was freed, or the byte is out of range.
    TypeError
        ``dst`` is neither memory of numbers nor an address.

    Notes
    -----
    The order of the arguments is that of C's ``memset`` and of ``cudaMemsetAsync``.
    """
    cdef size_t size = checked_size(nbytes)
    cdef unsigned char byte = checked_pattern(value, None, 0)[0]
    cdef Side target = side_of(dst, size, True, "memset")
    cdef l0rt_stream* on = stream_of(target, None, stream)
    if size == 0:
        return
    if target.is_plain and non_blocking:
        raise ValueError("memset(): non_blocking=True needs memory of a device, or pinned or shared memory")
    if not target.is_plain:
        transfer_fill(&target.operand, bytes((byte,)), on, not target.operand.on_device and not non_blocking)
        return
    about_to_wait("fill() or memset() of host memory without non_blocking=True", on)
    with nogil:
        queue_synchronize(on, UINT64_MAX)
        host_fill(target.operand.pointer, byte, size)


# The advice that a device takes about shared memory, as Level Zero's numbers: how to say it, and how to take it back.
_ADVICE = {
    "read_mostly": (0, 1),
    "preferred_location": (2, 3),
    "non_atomic_mostly": (4, 5),
    "cached": (6, 7),
    "system_memory_preferred_location": (8, 9),
}


cdef int hint(Buffer what, Queue stream, l0rt_device* device, int advice, str where) except -1:
    cdef l0rt_stream* on
    Buffer_check_open(what)
    if what.memory != SHARED:
        raise ValueError(f"{where}() takes shared memory, and this is {what.kind} memory")
    on = stream.ptr if stream is not None else current_stream(-1 if device == NULL else device.index)
    Buffer_hold(what)
    try:
        with nogil:
            queue_hint(on, what.pointer, what.nbytes, device, advice)
    finally:
        Buffer_unhold(what)
    return 0


def prefetch(Buffer buffer not None, Queue stream=None):
    """Let the driver move shared memory to a device before work there needs it.

    It is a hint, in the order of ``stream``. The contents stay the same.

    Parameters
    ----------
    buffer : Buffer
        Shared memory, or a slice of it.
    stream : Stream or None, optional
        A stream of the device that will need the memory. None is the current stream.

    Raises
    ------
    ValueError
        The buffer is not shared memory, or was freed.

    Notes
    -----
    It appends ``zeCommandListAppendMemoryPrefetch``, as ``cudaMemPrefetchAsync`` does for CUDA.
    """
    hint(buffer, stream, NULL, 0, "prefetch")


def advise(Buffer buffer not None, str advice not None, bint value=True, *, device=None, Queue stream=None):
    """Tell the driver how a device will use shared memory.

    It is a hint, in the order of ``stream``. The contents stay the same.

    Parameters
    ----------
    buffer : Buffer
        Shared memory, or a slice of it.
    advice : "read_mostly", "preferred_location", "non_atomic_mostly", "cached" or "system_memory_preferred_location"
        What is said of the memory.
    value : bool, optional
        False takes the advice back.
    device : int, str, device or None, optional
        The device that the advice is about. None is the current device.
    stream : Stream or None, optional
        None is the current stream of the device.

    Raises
    ------
    ValueError
        The buffer is not shared memory, or was freed, or there is no such advice.

    Notes
    -----
    It appends ``zeCommandListAppendMemAdvise``, as ``cudaMemAdvise`` does for CUDA at once.
    """
    if advice not in _ADVICE:
        raise ValueError(f"advice must be one of {', '.join(_ADVICE)}, got {advice!r}")
    lazy.init()
    index = index_of(device, current_device(), lazy.device_type)
    hint(buffer, stream, device_at(index), _ADVICE[advice][0 if value else 1], "advise")


def from_numpy(array, *, kind="device", device=None, stream=None):
    """Return a Buffer with a copy of ``array``.

    Parameters
    ----------
    array : array
        A NumPy array of numbers. Its elements are copied in C's order.
    kind : "device", "host" or "shared", optional
        As in `l0rt.empty`.
    device : int, str, device or None, optional
        As in `l0rt.empty`.
    stream : Stream or None, optional
        The stream in whose order the memory is allocated and the copy is made. None is the device's current stream.

    Returns
    -------
    Buffer
        It has ``array.nbytes`` bytes. Its `numpy` without arguments returns an array with the dtype and the shape of
        ``array``; everything else takes it as bytes.

    Raises
    ------
    TypeError
        ``array`` is no NumPy array, or an array of objects.
    OutOfMemoryError
        The device or the limit has no memory left.

    Notes
    -----
    ``torch.from_numpy`` does not copy: its tensor is on the host.
    """
    cdef Buffer buffer
    if not isinstance(array, np.ndarray):
        raise TypeError(f"from_numpy() takes a NumPy array, not {type(array).__name__}")
    if np.ndarray.dtype.__get__(array).hasobject:
        raise TypeError("from_numpy() takes an array of numbers, not of objects")
    plain = np.ascontiguousarray(array)
    buffer = empty(plain.nbytes, kind=kind, device=device, stream=stream)
    buffer = with_layout(buffer, (np.ndarray.dtype.__get__(array), np.ndarray.shape.__get__(array)))
    return buffer.copy_from(plain, stream=stream)


@cython.final
@cython.binding(False)
cdef class ArrayBuffer(Buffer):
    """A Buffer made of a NumPy array. Buffer has no field for the layout: each allocation would pay for it."""
    cdef PyObject* layout       # a tuple of dtype and shape, with a reference: as Buffer's own, no object field

    def numpy(self, dtype=None, shape=None, *, stream=None):
        """Copy the buffer into a new NumPy array and return the array. See `l0rt.Buffer.numpy`."""
        return self.copy_to(array_like(<tuple>self.layout, self.nbytes, dtype, shape), stream=stream)

    def __reduce_ex__(self, protocol=0, /):
        return _given, (self[:],)    # as a pickle of a plain Buffer of this memory

    def __dealloc__(self):
        Py_XDECREF(self.layout)


own_types.add(ArrayBuffer)
known_as(ArrayBuffer, b"l0rt.Buffer")


cdef Buffer with_layout(Buffer plain, tuple layout):
    """Return a Buffer that `numpy` without arguments makes an array of this layout from; it takes the memory over."""
    cdef ArrayBuffer buffer
    if plain.memory == ELSEWHERE:
        keep_layout(plain, layout)
        return plain
    buffer = ArrayBuffer.__new__(ArrayBuffer)
    buffer.nbytes, buffer.stream, buffer.owner, buffer.memory = plain.nbytes, plain.stream, plain.owner, plain.memory
    buffer.block, buffer.pointer = plain.block, plain.pointer
    Buffer_take(plain)
    Py_INCREF(layout)
    buffer.layout = <PyObject*>layout
    return buffer


def from_dlpack(array, /, *, device=None, copy=None):
    """Return a Buffer of the bytes of an object with ``__dlpack__``: an array or a tensor of another library.

    Parameters
    ----------
    array : object
        An object with ``__dlpack__`` and ``__dlpack_device__`` whose memory is contiguous, and the host's or of oneAPI
        in l0rt's context; or a Buffer.
    device : int, str, device or None, optional
        Where the bytes are wanted. None is where they are: ``"cpu"``, or the device that has the memory.
    copy : bool or None, optional
        Whether the memory is new. None copies only if that is needed; False never copies.

    Returns
    -------
    Buffer
        The memory of ``array`` itself, which it keeps until it is freed or dropped; or new memory.

    Raises
    ------
    BufferError
        The memory is not contiguous, of another device or context, read-only and not to be copied, or ``copy=False``
        cannot be had.
    TypeError
        ``array`` has no ``__dlpack__``.

    Notes
    -----
    The protocol is that of DLPack 1.3 and of the array API standard's ``from_dlpack``.
    """
    cdef Loan loan = None if isinstance(array, Buffer) else dlpack_borrow(array)
    cdef Buffer buffer = array[:] if loan is None else buffer_of(loan)
    if device is None and not copy and (loan is None or not loan.read_only):
        return buffer
    here = buffer.device
    target = here if device is None else device_name(device)
    is_here = target.type == here.type and (target.type == "cpu" or target.index in (None, here.index))
    if is_here and not copy:
        if loan is not None and loan.read_only:
            raise BufferError("the memory is read-only, and a Buffer's is not: copy=True copies it")
        return buffer
    if copy is not None and not copy:
        raise BufferError(f"copy=False: memory of {here} is on {target} as a copy only")
    kind = buffer.kind if is_here else "host" if target.type == "cpu" else "device"
    return empty(buffer.nbytes, device=here if is_here else target, kind=kind).copy_from(buffer)


def pinned(shape, dtype="float64", *, device=None, numa=None):
    """Return a new, uninitialised NumPy array on pinned memory, which the array keeps.

    Copies from and to the array need no staging, and may be non-blocking.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : str or NumPy dtype, optional
        The element type.
    device : int, str, device or None, optional
        The device in whose context the memory is pinned. None is the current device.
    numa : int, "any" or None, optional
        The node of the machine that the memory is on, as in `empty`.

    Returns
    -------
    array

    Raises
    ------
    ValueError
        The shape has a negative or too large number.
    TypeError
        ``dtype`` is no type of numbers.

    Notes
    -----
    The default is that of ``numpy.empty`` and of CuPy's ``cupyx.empty_pinned``.
    """
    kind = np.dtype(dtype)
    if kind.hasobject or kind.itemsize == 0:
        raise TypeError(f"expected a dtype of numbers, got {kind}")
    lengths = checked_shape(shape)
    count = kind.itemsize
    for length in lengths:
        count *= checked_size(length)
    # NumPy would give an array without bytes memory of its own: a kernel takes it as one on pinned memory all the same.
    return np.ndarray(lengths, kind, empty(max(checked_size(count), 1), device=device, kind="host", numa=numa))
