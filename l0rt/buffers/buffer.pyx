# SPDX-License-Identifier: Apache-2.0
"""Buffers: what an allocation is in Python. Device memory in a stream's order, pinned host memory, shared memory."""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release
from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject, PyTypeObject, destructor
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t

from l0rt._base.arguments cimport array_of, check_sizes, checked_pattern, get_view, known_as, part_of
from l0rt.buffers.dlpack cimport DL_CPU, DL_ONEAPI, dlpack_capsule, dlpack_choose, dlpack_is_versioned, dlpack_order
from l0rt.launch.random cimport random_begins, random_fill
from l0rt.runtime.alloc.arena cimport block_drop
from l0rt.runtime.alloc.deferred_free cimport block_move
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.current.thread cimport current_stream
from l0rt.runtime.memory.device cimport malloc_slow, raise_status
from l0rt.runtime.memory.operations cimport block_let_go, shared_free
from l0rt.runtime.memory.pinned cimport host_malloc_for
from l0rt.runtime.memory.transfer cimport l0rt_operand, operand_use, transfer, transfer_fill, transfer_in, transfer_out
from l0rt.runtime.streams.hooks cimport HOST_ACCESS, MEMORY_ALLOCATION, MEMORY_DEALLOCATION, MEMORY_USE, has_hooks, note
from l0rt.runtime.streams.naming cimport device as device_name
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport *

from l0rt import philox
from l0rt._base import lazynumpy as np
from l0rt.runtime.current.generator import default_generator
from l0rt.runtime.streams.devices import lazy

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

    def __len__(self):
        return self.nbytes

    def __getitem__(self, index):
        cdef size_t start = 0
        cdef size_t nbytes = part_of(index, self.nbytes, &start)
        cdef Buffer made
        Buffer_check_open(self)     # an index may run any code
        made = Buffer.__new__(Buffer)
        made.nbytes = nbytes
        made.stream, made.owner, made.memory = self.stream, self.owner, self.memory
        Buffer_slice(made, self, start)
        Py_INCREF(<object>made.base)
        return made

    def __getbuffer__(self, Py_buffer* view, int flags):
        Buffer_check_open(self)
        if self.memory == DEVICE:
            raise BufferError("the host cannot read device memory: copy_to() copies it")
        PyBuffer_FillInfo(view, self, self.pointer, self.nbytes, 0, flags)
        Buffer_hold(self)
        note(HOST_ACCESS, <uint64_t>self.pointer, self.nbytes, flags & PyBUF_WRITABLE != 0)

    def __releasebuffer__(self, Py_buffer* view):
        Buffer_unhold(self)

    def numpy(self, dtype="uint8", shape=None, *, stream=None):
        """Copy the buffer into a new NumPy array, in the order of ``stream``, and return the array.

        Parameters
        ----------
        dtype : str or NumPy dtype, optional
            The element type.
        shape : int or tuple of int, optional
            The shape, where one -1 stands for what follows from the size. None is one dimension.
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
        return self.copy_to(array_of(self.nbytes, dtype, shape), stream=stream)

    def __array__(self, dtype=None, copy=None):
        if self.kind == "device":
            raise TypeError("the host cannot read device memory: x.numpy(dtype, shape) copies it into an array, and "
                            "x.copy_to(array) into one that there is")
        return np.array(memoryview(self), dtype, copy=copy) if copy else np.asarray(memoryview(self), dtype)

    def __dlpack_device__(self):
        return Buffer_dlpack_device(self)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        cdef bint versioned = dlpack_is_versioned(max_version), is_copied = False
        cdef Buffer made = self
        device = Buffer_dlpack_device(self)
        if dl_device is not None or copy is not None:
            device, is_copied = dlpack_choose(device, self.owner.index, dl_device, copy)
        if is_copied:
            made = Buffer_clone(self, self.memory == DEVICE and device[0] == DL_ONEAPI)
        Buffer_lend(made, stream, device[0] == DL_CPU)
        return dlpack_capsule(made.pointer, made.nbytes, device, is_copied, versioned, made, Buffer_end_export)

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
    wanted = philox.draw(kind, generator, self.nbytes, first, second, dtype)
    on = Buffer_stream(self, stream)
    begins = random_begins(wanted, generator, on)
    Buffer_hold(self)
    try:
        operand = Buffer_operand(self)
        random_fill(&operand, wanted, generator, begins, on, self.memory != DEVICE and not non_blocking)
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
        made = new_buffer(nbytes, on, on.device, DEVICE if on_device else HOST, block)
        Buffer_copy(made, self, None, False)
    finally:
        Buffer_unhold(self)
    return made


cdef Buffer new_buffer(size_t nbytes, l0rt_stream* stream, l0rt_device* owner, int memory, l0rt_block* block):
    cdef Buffer made = Buffer.__new__(Buffer)
    made.nbytes, made.memory = nbytes, memory
    made.owner, made.stream, made.block = owner, stream, block
    if block != NULL:
        made.pointer = block.ptr
        note(MEMORY_ALLOCATION, <uint64_t>made.pointer, nbytes, <uint64_t>stream)
    return made


known_as(Buffer, b"l0rt.Buffer")
