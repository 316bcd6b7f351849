# SPDX-License-Identifier: Apache-2.0
"""Buffers: what an allocation is in Python. Device memory in a stream's order, pinned host memory, shared memory."""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release
from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject, PyTypeObject, destructor
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport UINT64_MAX, uint64_t

from l0rt._base.arguments cimport (
    array_of, check_sizes, checked_pattern, checked_size, get_view, is_whole, known_as, part_of, whole as whole_number,
)
from l0rt.buffers.dlpack cimport (
    DL_CPU, DL_ONEAPI, dlpack_capsule, dlpack_choose, dlpack_is_versioned, dlpack_order, exchange,
)
from l0rt.launch.random cimport random_begins, random_fill
from l0rt.runtime.alloc.arena cimport block_drop
from l0rt.runtime.alloc.deferred_free cimport block_move
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.current.thread cimport current_device, current_stream
from l0rt.runtime.memory.device cimport malloc_slow, raise_status
from l0rt.runtime.memory.exported cimport export_handle
from l0rt.runtime.memory.imported cimport import_handle, l0rt_import
from l0rt.runtime.memory.operations cimport block_let_go, shared_free
from l0rt.runtime.memory.pinned cimport host_malloc_for
from l0rt.runtime.memory.transfer cimport l0rt_operand, operand_use, transfer, transfer_fill, transfer_in, transfer_out
from l0rt.runtime.streams.devices cimport device_at, pickled_uuid
from l0rt.runtime.streams.hooks cimport HOST_ACCESS, MEMORY_ALLOCATION, MEMORY_DEALLOCATION, MEMORY_USE, has_hooks, note
from l0rt.runtime.streams.naming cimport device as device_name, index_of
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.sleep cimport check_awake
from l0rt.runtime.streams.types cimport *

import copyreg
import gc
import pickle
import sys
import threading
from weakref import ref

from l0rt import philox
from l0rt._base import lazynumpy as np
from l0rt._base.callers import warn
from l0rt._base.instead import Elsewhere
from l0rt.errors import UnsupportedError
from l0rt.runtime.current.generator import default_generator
from l0rt.runtime.memory.importedpool import ImportedPool
from l0rt.runtime.streams.devices import context_owner, lazy

KINDS = ("device", "host", "shared")


@cython.freelist(256)
@cython.binding(False)
cdef class Buffer:
    """An allocation. `l0rt.empty` makes it; `free` frees it, and so does dropping it.

    Device memory belongs to the stream for which it was allocated: this stream may use it at once, and it is reused in
    the order of this stream. Announce the use by other streams with `record_stream` or `record_use`. After the buffer
    is freed, every method raises ValueError.

    A slice ``x[a:b]`` is a Buffer too: a part of the same memory, without a copy. It keeps ``x`` from being dropped,
    and ends when ``x`` is freed.
    """

    def __init__(self):
        raise TypeError("make a Buffer with l0rt.empty(nbytes)")

    @property
    def ptr(self):
        """The address as an integer; 0 for an empty buffer."""
        Buffer_check_open(self)
        return <size_t>self.pointer

    @property
    def kind(self):
        """``device``, ``host`` or ``shared``."""
        return KINDS[self.memory]

    @property
    def device(self):
        """The device that owns the memory. For host memory it is the device for which the memory was allocated."""
        Buffer_check_made(self)
        return device_name(lazy.device_type, self.owner.index)

    def copy_from(self, source, *, bint non_blocking=False, Queue stream=None):
        """Copy ``source`` into the buffer, in the order of ``stream``, and return the buffer.

        A copy between device buffers returns at once. A copy from host memory returns when the source may be changed.
        A copy into a host or shared buffer returns when the data is there. Between two devices, and without
        ``stream``, the copy runs on the current stream of the source's device, after all earlier work and before all
        later work of the current streams of both devices. With ``stream``, only that stream orders the copy.

        Parameters
        ----------
        source : Buffer or bytes-like
            Memory of numbers, with as many bytes as the buffer.
        non_blocking : bool, optional
            Return before the data is there. For copies from and to the host this needs pinned memory.
        stream : Stream or None, optional
            None is the current stream of the buffer's device.

        Returns
        -------
        Buffer

        Raises
        ------
        ValueError
            The buffer was freed, or the sizes differ.
        TypeError
            ``source`` is not memory of numbers.
        """
        Buffer_check_open(self)
        if isinstance(source, Buffer) and (<Buffer>source).memory == ELSEWHERE:
            source = source.host_bytes()
        elif isinstance(source, Buffer):
            Buffer_copy(self, <Buffer>source, stream, non_blocking)
            return self
        Buffer_copy_host(self, source, True, stream, non_blocking)
        return self

    def copy_to(self, target, *, bint non_blocking=False, Queue stream=None):
        """Copy the buffer into ``target``, in the order of ``stream``, and return ``target``.

        A copy into host memory returns when the data is there.

        Parameters
        ----------
        target : Buffer or writable bytes-like
            Memory of numbers, with as many bytes as the buffer.
        non_blocking, stream : optional, optional
            As in `copy_from`.

        Returns
        -------
        object
            ``target``.

        Raises
        ------
        ValueError
            The buffer was freed, or the sizes differ.
        TypeError
            ``target`` is not memory of numbers.
        """
        Buffer_check_open(self)
        if isinstance(target, Buffer) and (<Buffer>target).memory == ELSEWHERE:
            if target.kind != "host":
                return target.copy_from(self, non_blocking=non_blocking)
        elif isinstance(target, Buffer):
            Buffer_copy(<Buffer>target, self, stream, non_blocking)
            return target
        Buffer_copy_host(self, target, False, stream, non_blocking)
        return target

    def fill(self, value=None, *, pattern=None, bint non_blocking=False, Queue stream=None):
        """Fill the buffer with a byte or a pattern, in the order of ``stream``, and return the buffer.

        For host and shared memory the call returns when the memory is filled.

        Parameters
        ----------
        value : int, optional
            The byte, 0 to 255. Pass either this or ``pattern``.
        pattern : bytes-like, optional
            1, 2, 4, 8 or 16 bytes, which are repeated.
        non_blocking : bool, optional
            Return before host or shared memory is filled.
        stream : optional, optional
            As in `copy_from`.

        Returns
        -------
        Buffer

        Raises
        ------
        ValueError
            The buffer was freed, the byte is out of range, or the pattern has a different size.

        Notes
        -----
        A pattern above Level Zero's ``maxMemoryFillPatternSize`` of the queue group is written in parts.
        """
        cdef l0rt_operand operand
        cdef l0rt_stream* on
        pattern = checked_pattern(value, pattern, self.nbytes)
        on = Buffer_stream(self, stream)
        Buffer_hold(self)
        try:
            operand = Buffer_operand(self)
            transfer_fill(&operand, pattern, on, self.memory != DEVICE and not non_blocking)
        finally:
            Buffer_unhold(self)
        return self

    def uniform_(self, low=0.0, high=1.0, *, dtype="float32", generator=None, bint non_blocking=False,
                 Queue stream=None):
        """Fill the buffer with uniform random numbers from [low, high), and return the buffer.

        They are the numbers of `l0rt.philox.uniform`.

        Parameters
        ----------
        low, high : float, optional
            The bounds. ``high`` itself is excluded.
        dtype : str or NumPy dtype, optional
            The element type.
        generator : Generator or None, optional
            The source of the random numbers. None is the default generator of the device.
        non_blocking, stream : optional, optional
            As in `fill`.

        Returns
        -------
        Buffer
        """
        return Buffer_draw(self, "uniform", dtype, generator, stream, non_blocking, low, high)

    def normal_(self, mean=0.0, std=1.0, *, dtype="float32", generator=None, bint non_blocking=False,
                Queue stream=None):
        """Fill the buffer with normally distributed random numbers, and return the buffer.

        They are the numbers of `l0rt.philox.normal`, up to the last places.

        Parameters
        ----------
        mean, std : float, optional
            The mean and the standard deviation.
        dtype, generator, non_blocking, stream : optional, optional
            As in `uniform_`.

        Returns
        -------
        Buffer
        """
        return Buffer_draw(self, "normal", dtype, generator, stream, non_blocking, mean, std)

    def exponential_(self, lambd=1.0, *, dtype="float32", generator=None, bint non_blocking=False,
                     Queue stream=None):
        """Fill the buffer with exponentially distributed random numbers, and return the buffer.

        They are the numbers of `l0rt.philox.exponential`, up to the last places.

        Parameters
        ----------
        lambd : float, optional
            The rate: the mean is ``1 / lambd``.
        dtype, generator, non_blocking, stream : optional, optional
            As in `uniform_`.

        Returns
        -------
        Buffer
        """
        return Buffer_draw(self, "exponential", dtype, generator, stream, non_blocking, lambd)

    def bernoulli_(self, p=0.5, *, dtype="float32", generator=None, bint non_blocking=False, Queue stream=None):
        """Fill the buffer with numbers that are 1 with probability ``p`` and otherwise 0, and return the buffer.

        They are the numbers of `l0rt.philox.bernoulli`.

        Parameters
        ----------
        p : float, optional
            The probability of 1, from 0 to 1.
        dtype, generator, non_blocking, stream : optional, optional
            As in `uniform_`.

        Returns
        -------
        Buffer
        """
        return Buffer_draw(self, "bernoulli", dtype, generator, stream, non_blocking, p)

    def randint_(self, low, high, *, dtype="int64", generator=None, bint non_blocking=False,
                 Queue stream=None):
        """Fill the buffer with random whole numbers from [low, high), and return the buffer.

        They are the numbers of `l0rt.philox.randint`.

        Parameters
        ----------
        low, high : int
            The bounds, ``low`` below ``high``. ``high`` itself is excluded.
        dtype, generator, non_blocking, stream : optional, optional
            As in `uniform_`.

        Returns
        -------
        Buffer
        """
        return Buffer_draw(self, "randint", dtype, generator, stream, non_blocking, low, high)

    def record_stream(self, Queue stream not None):
        """Announce that ``stream`` uses the memory.

        Parameters
        ----------
        stream : Stream
            The stream that uses the memory.

        Notes
        -----
        The freed memory waits for the work that ``stream`` has at that time, as with ``torch.Tensor.record_stream``.
        """
        Buffer_record(self, stream.ptr, False)

    def record_use(self, Queue stream=None):
        """Announce that ``stream`` has used the memory, up to the work that it has now.

        After the memory is freed, it is not reused before that work is complete. Call this right after the work was
        given to the stream. Unlike with `record_stream`, later work of the stream does not count, and freeing makes no
        driver call.

        Parameters
        ----------
        stream : Stream or None, optional
            The stream that uses the memory. None is the current stream of the buffer's device.
        """
        Buffer_record(self, Buffer_stream(self, stream), True)

    def free(self, Queue stream=None):
        """Free the memory. It is reused in the order of the stream for which it was allocated.

        Parameters
        ----------
        stream : Stream or None, optional
            Reuse the memory in the order of this stream instead, after all work that both streams were given so far.

        Raises
        ------
        ValueError
            The buffer was freed before, or it is a slice of another.
        BufferError
            A memoryview, an array or another call still uses the memory.
        """
        cdef l0rt_block* block
        cdef l0rt_stream* on
        cdef void* pointer
        cdef int status
        Buffer_check_open(self)
        Buffer_check_free(self)
        block, pointer = self.block, self.pointer
        Buffer_take(self)
        if stream is not None and block != NULL:
            on = stream.ptr
            with nogil:
                status = block_move(block, on)
            if status != 0:     # nothing has changed: it is the buffer's again
                self.block, self.pointer, self.freed = block, pointer, False
                raise_status(status, pointer)
            note(MEMORY_USE, <uint64_t>pointer, <uint64_t>on, 0)
        let_go(self.owner, block, pointer)

    def __enter__(self):
        """Return the buffer, which is freed at the end of the block."""
        return self

    def __exit__(self, *error):
        """Free the buffer unless it was freed before."""
        if not Buffer_is_freed(self):
            self.free()

    @staticmethod
    def from_handle(address, nbytes, *, device=None, owner=None):
        """Return a Buffer of memory that other software has allocated in l0rt's context. Nothing is copied.

        The driver reports the kind of the memory and its device. The buffer's `free` releases ``owner``, and frees
        nothing itself.

        Parameters
        ----------
        address : int
            The address, anywhere in an allocation of device, host or shared memory.
        nbytes : int
            The size in bytes, not more than the allocation has from there on.
        device : int, str, device or None, optional
            The device that the memory is expected on. None is the one that has it; of host memory the current device.
        owner : object, optional
            An object that keeps the memory. It is kept alive until the buffer is freed or dropped.

        Returns
        -------
        Buffer

        Raises
        ------
        ValueError
            There is no such memory in l0rt's context, it is smaller, or it is on another device.

        Notes
        -----
        The memory must stay until the work that streams were given is complete. The owner is released at once:
        synchronise first, or call ``free(stream)``. The names are those of ``cuda.core.Buffer.from_handle``.
        """
        cdef size_t size = checked_size(nbytes)
        if not is_whole(address):
            raise TypeError(f"an address must be an int, got {type(address).__name__}")
        index = -1
        if device is not None:
            lazy.init()
            index = index_of(device, current_device(), lazy.device_type)
            device_at(index)
        number = whole_number(address, "an address")
        if not 0 <= number <= UINT64_MAX:
            raise ValueError(f"there is no memory at {number:#x}")
        return borrow(number, size, index, owner)

    def ipc_handle(self):
        """Return bytes with which another process can use this memory, through `from_ipc_handle`.

        Returns
        -------
        bytes

        Raises
        ------
        UnsupportedError
            It is no device memory, it is in an expandable segment, or the driver cannot share it.
        ValueError
            The buffer was freed.

        Notes
        -----
        Keep the buffer until the other process has imported it. From then on its memory is not reused before the other
        process drops its Buffer, or ends. Nothing orders the work of the processes: synchronize, or share an Event.
        """
        return export(self, False)

    @staticmethod
    def from_ipc_handle(handle, *, pool=None):
        """Return the memory that another process has exported, as a Buffer on the same device.

        Parameters
        ----------
        handle : bytes
            The bytes that `ipc_handle` returned.
        pool : l0rt.ipc.ImportedPool or None, optional
            The pool that the memory has to be of. None: any, or none.

        Returns
        -------
        Buffer
            In the process that exported it, a slice of its Buffer.

        Raises
        ------
        ValueError
            The handle is damaged or stale, its process has ended, or this process does not have the device; or the
            pool is closed, or the memory is not of it.
        TypeError
            ``handle`` is not bytes, or ``pool`` is no pool of another process.
        PermissionError
            The kernel does not let this process open memory of the other one.
        """
        cdef l0rt_import record
        cdef Buffer buffer
        if pool is not None and not isinstance(pool, ImportedPool):
            raise TypeError(f"pool must be what MemPool.from_ipc_handle returns of another process, or None, got "
                            f"{type(pool).__name__}")
        own = import_handle(handle, &record, None if pool is None else pool.names)
        if own is not None:
            return own[record.offset:record.offset + record.nbytes]
        try:
            buffer = new_buffer(record.nbytes, current_stream(record.device.index), record.device, DEVICE, NULL)
        except BaseException:
            if record.pointer != NULL:
                shared_free(record.device, record.pointer)
            raise
        buffer.pointer = record.pointer
        return buffer

    def __len__(self):
        return self.nbytes

    def __getitem__(self, index):
        cdef size_t start = 0
        cdef size_t nbytes = part_of(index, self.nbytes, &start)
        cdef Buffer part
        Buffer_check_open(self)     # an index may run any code
        part = Buffer.__new__(Buffer)
        part.nbytes = nbytes
        part.stream, part.owner, part.memory = self.stream, self.owner, self.memory
        Buffer_slice(part, self, start)
        Py_INCREF(<object>part.base)
        return part

    def __getbuffer__(self, Py_buffer* view, int flags):
        Buffer_check_open(self)
        if self.memory == DEVICE:
            raise BufferError("the host cannot read device memory: copy_to() copies it")
        PyBuffer_FillInfo(view, self, self.pointer, self.nbytes, 0, flags)
        Buffer_hold(self)
        note(HOST_ACCESS, <uint64_t>self.pointer, self.nbytes, flags & PyBUF_WRITABLE != 0)

    def __releasebuffer__(self, Py_buffer* view):
        Buffer_unhold(self)

    def numpy(self, dtype=None, shape=None, *, stream=None):
        """Copy the buffer into a new NumPy array, in the order of ``stream``, and return the array.

        Parameters
        ----------
        dtype : str or NumPy dtype or None, optional
            The element type. None is that of the array that `l0rt.from_numpy` was given, and ``uint8`` for any other
            buffer.
        shape : int or tuple of int or None, optional
            The shape, where one -1 stands for what follows from the size. None is one dimension; without ``dtype`` it
            is the shape of the array that `l0rt.from_numpy` was given.
        stream : optional, optional
            As in `copy_from`.

        Returns
        -------
        array

        Raises
        ------
        ValueError
            The buffer was freed, or its size does not fit ``dtype`` and ``shape``.
        """
        return self.copy_to(array_of(self.nbytes, "uint8" if dtype is None else dtype, shape), stream=stream)

    def __array__(self, dtype=None, copy=None):
        if self.kind == "device":
            raise TypeError("the host cannot read device memory: x.numpy(dtype, shape) copies it into an array, and "
                            "x.copy_to(array) into one that there is")
        return np.array(memoryview(self), dtype, copy=copy) if copy else np.asarray(memoryview(self), dtype)

    def __dlpack_device__(self):
        return Buffer_dlpack_device(self)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        cdef bint versioned = dlpack_is_versioned(max_version), is_copied = False
        cdef Buffer source = self
        device = Buffer_dlpack_device(self)
        if dl_device is not None or copy is not None:
            device, is_copied = dlpack_choose(device, self.owner.index, dl_device, copy)
        if is_copied:
            source = Buffer_clone(self, self.memory == DEVICE and device[0] == DL_ONEAPI)
        Buffer_lend(source, stream, device[0] == DL_CPU)
        return dlpack_capsule(source.pointer, source.nbytes, device, is_copied, versioned, source, Buffer_end_export)

    __dlpack_c_exchange_api__ = PyCapsule_New(&exchange, b"dlpack_exchange_api", NULL)

    # What an array or a tensor has. An error says what to type; `__getattr__` would slow every other name.
    shape = Elsewhere("l0rt.Buffer", "shape")
    dtype = Elsewhere("l0rt.Buffer", "dtype")
    size = Elsewhere("l0rt.Buffer", "size")
    item = Elsewhere("l0rt.Buffer", "item")
    cpu = Elsewhere("l0rt.Buffer", "cpu")
    to = Elsewhere("l0rt.Buffer", "to")
    clone = Elsewhere("l0rt.Buffer", "clone")
    zero_ = Elsewhere("l0rt.Buffer", "zero_")
    data_ptr = Elsewhere("l0rt.Buffer", "data_ptr")

    def __dir__(self):
        return [name for name in object.__dir__(self) if not isinstance(vars(Buffer).get(name), Elsewhere)]

    @property
    def __sycl_usm_array_interface__(self):
        """The memory as ``__sycl_usm_array_interface__``: bytes, writable."""
        if self.memory == ELSEWHERE:
            raise AttributeError(f"memory on {self.device} is not SYCL's: no __sycl_usm_array_interface__")
        Buffer_check_open(self)
        check_awake(self.pointer, NULL)
        holder = context_owner(self.owner.index)
        return {
            "data": (<size_t>self.pointer, True),
            "shape": (self.nbytes,),
            "strides": None,
            "offset": 0,
            "typestr": "|u1",
            "syclobj": holder if hasattr(holder, "_get_capsule") else f"level_zero:gpu:{self.owner.index}",
            "version": 1,
        }

    @property
    def __array_interface__(self):
        """The memory as ``__array_interface__``, where the host can read it."""
        if self.kind == "device":
            raise AttributeError("the host cannot read device memory: no __array_interface__")
        return {"data": (self.ptr, False), "shape": (self.nbytes,), "strides": None, "typestr": "|u1", "version": 3}

    def __reduce_ex__(self, protocol=0, /):
        """Pickle the contents with their kind of memory and their device; or share, where that is asked for."""
        if type(self) is Buffer and not _is_in_multiprocessing and add_to_multiprocessing():
            return _given, (_undecided(self),)
        if _asked and any([reference() is self for reference in _asked]):
            return _reduce_for_process(self) if _is_asked_by_multiprocessing() else contents(self, protocol)
        return (reduce_shared(self) if getattr(here, "depth", 0) else None) or contents(self, protocol)

    def __copy__(self):
        raise TypeError("a Buffer cannot be copied by copy.copy: allocate another and copy_from() this one")

    def __repr__(self):
        if Buffer_is_freed(self):
            return f"<l0rt.Buffer freed, {self.kind} {self.nbytes} bytes on {self.device}>"
        if self.owner == NULL and self.memory != ELSEWHERE:
            return "<l0rt.Buffer never allocated>"
        what = "Buffer slice" if self.base != NULL else "Buffer of another process" if is_imported(self) else "Buffer"
        return (f"<l0rt.{what} {self.kind} {<size_t>self.pointer:#x} {self.nbytes} bytes on {self.device}"
                f"{Buffer_pool(self)}>")


# Cython puts the exception that is being raised aside around every __dealloc__, which takes as long as freeing does.
# Here only a miss needs that. The rest of the destructor is Cython's.
cdef void (*rest_of_end)(Buffer) noexcept
rest_of_end = <void (*)(Buffer) noexcept>(<PyTypeObject*>Buffer).tp_dealloc
(<PyTypeObject*>Buffer).tp_dealloc = <destructor>Buffer_end


cdef void Buffer_end(Buffer self) noexcept:
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    cdef PyObject* base
    cdef l0rt_block* block = self.block
    cdef void* pointer = self.pointer
    if not self.freed:
        if block != NULL and not has_hooks() and block_drop(block):
            self.freed = True
        elif self.base != NULL:
            base, self.base = self.base, NULL
            Py_DECREF(<object>base)
        else:
            PyErr_Fetch(&kind, &value, &trace)
            Buffer_take(self)
            let_go(self.owner, block, pointer)
            PyErr_Restore(kind, value, trace)
    rest_of_end(self)


cdef int Buffer_check_open(Buffer self) except -1:
    if Buffer_is_freed(self) and self.memory != ELSEWHERE:
        raise ValueError("the buffer was freed")
    return Buffer_check_made(self)


cdef int Buffer_check_made(Buffer self) except -1:
    if self.owner == NULL:
        if self.memory == ELSEWHERE:
            raise ValueError(f"this needs memory of the device type {lazy.device_type}, not a Buffer on {self.device}")
        raise ValueError("the buffer was never allocated: make a Buffer with l0rt.empty(nbytes)")
    return 0


cdef int Buffer_check_free(Buffer self) except -1:
    if self.base != NULL:
        raise ValueError("a slice does not own its memory: free the Buffer that it was taken from")
    if self.exports:
        raise BufferError("the buffer is in use by a memoryview, an array or a call that has not returned: "
                          "release that first")
    return 0


cdef void let_go(l0rt_device* owner, l0rt_block* block, void* pointer) noexcept:
    """Free the memory of a buffer. The hooks are called before, since another buffer may get the address at once."""
    if pointer != NULL:
        note(MEMORY_DEALLOCATION, <uint64_t>pointer, 0, 0)
    if block != NULL:
        if not block_drop(block):
            with nogil:
                block_let_go(block)
    elif pointer != NULL:
        shared_free(owner, pointer)


cdef int Buffer_record(Buffer self, l0rt_stream* stream, bint is_past) except -1:
    cdef l0rt_operand what
    Buffer_hold(self)
    try:
        what = Buffer_operand(self)
        operand_use(&what, stream, is_past)
    finally:
        Buffer_unhold(self)
    return 0


cdef Buffer_draw(
        Buffer self, str kind, dtype, generator, Queue stream, bint non_blocking, first, second=None):
    cdef l0rt_operand operand
    cdef l0rt_stream* on
    Buffer_check_open(self)
    if generator is None:
        generator = default_generator(self.owner.index)
    plan = philox.draw(kind, generator, self.nbytes, first, second, dtype)
    on = Buffer_stream(self, stream)
    begins = random_begins(plan, generator, on)
    Buffer_hold(self)
    try:
        operand = Buffer_operand(self)
        random_fill(&operand, plan, generator, begins, on, self.memory != DEVICE and not non_blocking)
    finally:
        Buffer_unhold(self)
    return self


cdef int Buffer_copy_host(Buffer self, other, bint is_in, Queue stream, bint non_blocking) except -1:
    cdef l0rt_stream* on
    cdef l0rt_operand operand
    cdef Py_buffer view
    get_view(other, &view, PyBUF_C_CONTIGUOUS | (0 if is_in else PyBUF_WRITABLE), "copy_from" if is_in else "copy_to")
    try:
        on = Buffer_stream(self, stream)
        Buffer_hold(self)
        try:
            operand = Buffer_operand(self)
            check_sizes(view.len if is_in else self.nbytes, self.nbytes if is_in else view.len)
            if is_in:
                transfer_in(&operand, view.buf, NULL, on, non_blocking, self.memory != DEVICE)
            else:
                transfer_out(view.buf, &operand, NULL, on, non_blocking)
        finally:
            Buffer_unhold(self)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int Buffer_copy(Buffer target, Buffer source, Queue stream, bint non_blocking) except -1:
    cdef bint wait = not non_blocking and (target.memory != DEVICE or source.memory != DEVICE)
    cdef l0rt_stream* on = Buffer_stream(source if source.memory == DEVICE else target, stream)
    cdef l0rt_stream* target_on = NULL
    cdef l0rt_operand here, there
    Buffer_check_open(source)
    Buffer_check_open(target)
    check_sizes(source.nbytes, target.nbytes)
    if target.owner != source.owner and stream is None and target.memory == DEVICE and source.memory == DEVICE:
        target_on = Buffer_stream(target, None)
    Buffer_hold(source)
    Buffer_hold(target)     # it is open: nothing has run since
    try:
        here, there = Buffer_operand(target), Buffer_operand(source)
        transfer(&here, &there, NULL, on, target_on, wait)
    finally:
        Buffer_unhold(source)
        Buffer_unhold(target)
    return 0


cdef int Buffer_lend(Buffer self, stream, bint for_host) except -1:
    """Hold the memory for a consumer, whose work comes behind all that may use it."""
    cdef l0rt_operand what
    Buffer_hold(self)
    try:
        what = Buffer_operand(self)
        dlpack_order(current_stream(self.owner.index), &what, stream, for_host)
        Buffer_hold(self)           # the consumer's
    finally:
        Buffer_unhold(self)
    return 0


cdef Buffer Buffer_clone(Buffer self, bint on_device):
    """A new Buffer with the same bytes, of device or of pinned memory."""
    cdef size_t nbytes = self.nbytes
    cdef l0rt_stream* on = Buffer_stream(self, None)
    cdef l0rt_block* block = NULL
    Buffer_lend(self, None, False)
    try:
        if nbytes != 0:
            with nogil:
                block = malloc_slow(on, nbytes) if on_device else host_malloc_for(on, nbytes, NULL, False)
        copy = new_buffer(nbytes, on, on.device, DEVICE if on_device else HOST, block)
        Buffer_copy(copy, self, None, False)
    finally:
        Buffer_unhold(self)
    return copy


cdef Buffer new_buffer(size_t nbytes, l0rt_stream* stream, l0rt_device* owner, int memory, l0rt_block* block):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.nbytes, buffer.memory = nbytes, memory
    buffer.owner, buffer.stream, buffer.block = owner, stream, block
    if block != NULL:
        buffer.pointer = block.ptr
        note(MEMORY_ALLOCATION, <uint64_t>buffer.pointer, nbytes, <uint64_t>stream)
    return buffer


cdef object array_like(tuple layout, size_t nbytes, dtype, shape):
    """Return a new array for a Buffer's bytes, of the dtype and shape in ``layout`` where None is asked for."""
    if dtype is not None:
        return array_of(nbytes, dtype, shape)
    return np.empty(layout[1], layout[0]) if shape is None else array_of(nbytes, layout[0], shape)


own_types = {Buffer}


def is_own(Buffer self not None):
    """Whether it is of a class whose memory is l0rt's own: neither lent by others nor of another device type."""
    return type(self) in own_types


cdef bytes export(Buffer self, bint is_sent):
    cdef Buffer base = self if self.base == NULL else <Buffer>self.base
    Buffer_hold(self)
    try:
        if self.memory != DEVICE:
            raise UnsupportedError(f"processes share device memory, not {self.kind} memory: for this there is "
                                   "multiprocessing.shared_memory, and l0rt.memory.register makes it fast")
        if not is_own(base):
            raise UnsupportedError("this memory belongs to other software, which may share it: copy it to l0rt's own")
        return export_handle(base, base.block, self.owner, <char*>self.pointer - <char*>base.pointer, self.nbytes,
                             is_sent)
    finally:
        Buffer_unhold(self)


def unpickled_shared(handle):
    return Buffer.from_ipc_handle(handle)


def reduce_shared(Buffer self not None):
    """What a pickle keeps of a Buffer that is shared and not copied: it is kept here until it is unpickled once. None
    if only a copy can be sent."""
    global _has_warned
    base = self if self.base == NULL else <object>self.base
    if self.memory != DEVICE or not is_own(base):
        return None
    try:
        return unpickled_shared, (export(self, True),)
    except UnsupportedError as why:
        if not _has_warned:
            _has_warned = True
            warn(f"device memory is sent to another process as a copy, since it cannot be shared: {why}")
        return None


_has_warned = False
here = threading.local()        # `depth`: in how many blocks of `l0rt.ipc.sharing()` the thread is

# The first pickle after multiprocessing was loaded may be one that it makes, which does not know of Buffers yet: its
# pickler has copied the table of reducers before. Others look into the table itself. So a second Buffer of
# the same memory takes the place of the first, and the request for its reducer shows which pickler asks.

_asked = []     # weak references to such Buffers: one, for a moment


cdef Buffer _undecided(Buffer self):
    alias = self[:]
    _asked.append(ref(alias))
    copyreg.pickle(Buffer, _reduce_by_table)
    return alias


def _reduce_by_table(Buffer self not None):
    """A plain pickle copies. Once more for the protocol, which the table's reducers do not get."""
    copyreg.dispatch_table.pop(Buffer, None)
    _asked.clear()
    return _given, (self[:],)


cdef bint _is_asked_by_multiprocessing() except -1:
    """Not by another pickler with a table of its own?"""
    copyreg.dispatch_table.pop(Buffer, None)
    _asked.clear()
    pickler = sys.modules["multiprocessing.reduction"].ForkingPickler
    return any([isinstance(candidate, pickler) for candidate in gc.get_objects()])


cdef tuple contents(Buffer self, protocol):
    data = self.copy_to(bytearray(self.nbytes))
    payload = pickle.PickleBuffer(data) if is_whole(protocol) and protocol >= 5 else bytes(data)
    where = self.device
    uuid = None if self.memory == ELSEWHERE else pickled_uuid(where.index)
    return rebuild, (payload, self.kind, where.type, where.index, uuid)


def _given(buffer):
    return buffer


def _reduce_for_process(Buffer self not None):
    """Share what multiprocessing sends to a process; copy what cannot be shared."""
    return reduce_shared(self) or contents(self, 4)


_is_in_multiprocessing = False


def add_to_multiprocessing():
    """Let what multiprocessing sends to processes share Buffers, if it is loaded. Nothing reports when that is, so each
    pickle of a Buffer asks until it was loaded once.

    Returns
    -------
    bool
        Whether this call has made it so.
    """
    global _is_in_multiprocessing
    pickler = getattr(sys.modules.get("multiprocessing.reduction"), "ForkingPickler", None)
    if pickler is None or _is_in_multiprocessing:
        return False
    pickler.register(Buffer, _reduce_for_process)
    _is_in_multiprocessing = True
    return True


known_as(Buffer, b"l0rt.Buffer")
add_to_multiprocessing()
