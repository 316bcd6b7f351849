# SPDX-License-Identifier: Apache-2.0
"""Buffers: what an allocation is in Python. Device memory in a stream's order, pinned host memory, shared memory."""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release
from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject, PyTypeObject, destructor
from libc.stdint cimport UINT64_MAX, uint64_t

from l0rt.arguments cimport bytes_of, check_sizes, get_view, is_whole, known_as, whole
from l0rt.runtime.alloc.arena cimport block_drop
from l0rt.runtime.alloc.deferred_free cimport block_mark, block_move, block_use
from l0rt.runtime.alloc.types cimport l0rt_block
from l0rt.runtime.current.thread cimport current_stream
from l0rt.runtime.memory.device cimport raise_status
from l0rt.runtime.memory.operations cimport block_let_go, shared_free
from l0rt.runtime.memory.registration cimport copy_pinned
from l0rt.runtime.memory.staging cimport copy_in, copy_out
from l0rt.runtime.streams.hooks cimport (
    HOST_ACCESS, MEMORY_ALLOCATION, MEMORY_DEALLOCATION, MEMORY_USE, STREAM_SYNCHRONIZATION, has_hooks,
    note)
from l0rt.runtime.streams.naming cimport device as device_name
from l0rt.runtime.streams.queue cimport (
    Queue,
    about_to_wait,
    queue_copy,
    queue_fill,
    queue_synchronize,
    queue_wait_queue,
)
from l0rt.runtime.streams.types cimport *

from l0rt import philox
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
            The buffer itself.

        Raises
        ------
        ValueError
            The buffer was freed, or the sizes differ.
        TypeError
            ``source`` is not memory of numbers.
        """
        cdef Py_buffer view
        Buffer_check_open(self)
        if isinstance(source, Buffer) and (<Buffer>source).memory == ELSEWHERE:
            source = source.host_bytes()
        elif isinstance(source, Buffer):
            Buffer_copy(self, <Buffer>source, stream, non_blocking)
            return self
        get_view(source, &view, PyBUF_C_CONTIGUOUS, "copy_from")
        try:
            Buffer_copy_in(self, &view, stream, non_blocking, self.memory != DEVICE)
        finally:
            PyBuffer_Release(&view)
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
        cdef Py_buffer view
        Buffer_check_open(self)
        if isinstance(target, Buffer) and (<Buffer>target).memory == ELSEWHERE:
            if target.kind != "host":
                return target.copy_from(self, non_blocking=non_blocking)
        elif isinstance(target, Buffer):
            Buffer_copy(<Buffer>target, self, stream, non_blocking)
            return target
        get_view(target, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, "copy_to")
        try:
            Buffer_copy_out(self, &view, stream, non_blocking)
        finally:
            PyBuffer_Release(&view)
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
            The buffer itself.

        Raises
        ------
        ValueError
            The buffer was freed, the byte is out of range, or the pattern has a different size.

        Notes
        -----
        A pattern above Level Zero's ``maxMemoryFillPatternSize`` of the queue group is written in parts.
        """
        cdef l0rt_stream* on
        cdef bint wait = self.memory != DEVICE and not non_blocking
        cdef const unsigned char* c_pattern
        cdef size_t size
        pattern = checked_pattern(value, pattern, self.nbytes)
        c_pattern = pattern
        size = len(pattern)
        on = Buffer_stream(self, stream)
        Buffer_hold(self)
        try:
            Buffer_use(self, on)
            if wait:
                about_to_wait("a fill of host memory without non_blocking=True", on)
            with nogil:
                queue_fill(on, self.pointer, c_pattern, size, self.nbytes)
                if wait:
                    queue_synchronize(on, UINT64_MAX)
        finally:
            self.exports -= 1
        return self

    def uniform_(self, low=0.0, high=1.0, *, dtype="float32", generator=None, bint non_blocking=False,
                 Queue stream=None):
        """Fill the buffer with uniform random numbers from [low, high), and return the buffer.

        Parameters
        ----------
        low, high : float, optional
            The bounds. ``high`` itself is excluded.
        dtype : str or NumPy dtype, optional
            The element type.
        generator : Generator or None, optional
            The source of the random numbers. None is the default generator of the device.
        non_blocking, stream : optional, optional
            As in `copy_from`.

        Returns
        -------
        Buffer
            The buffer itself.

        Notes
        -----
        They are the numbers of `l0rt.philox.uniform` (Philox4x32-10 of Salmon et al., SC11).
        """
        return Buffer_draw(self, "uniform", dtype, generator, stream, non_blocking, low, high)

    def normal_(self, mean=0.0, std=1.0, *, dtype="float32", generator=None, bint non_blocking=False,
                Queue stream=None):
        """Fill the buffer with normally distributed random numbers, and return the buffer.

        Parameters
        ----------
        mean : float, optional
            The mean.
        std : float, optional
            The standard deviation.
        dtype : str or NumPy dtype, optional
            The element type.
        generator : Generator or None, optional
            The source of the random numbers. None is the default generator of the device.
        non_blocking, stream : optional, optional
            As in `copy_from`.

        Returns
        -------
        Buffer
            The buffer itself.

        Notes
        -----
        They are the numbers of `l0rt.philox.normal` (Philox4x32-10 of Salmon et al., SC11; Box and Muller).
        """
        return Buffer_draw(self, "normal", dtype, generator, stream, non_blocking, mean, std)

    def randint_(self, low, high, *, dtype="int64", generator=None, bint non_blocking=False,
                 Queue stream=None):
        """Fill the buffer with random whole numbers from [low, high), and return the buffer.

        Parameters
        ----------
        low, high : int
            The bounds. ``high`` itself is excluded.
        dtype : str or NumPy dtype, optional
            The element type.
        generator : Generator or None, optional
            The source of the random numbers. None is the default generator of the device.
        non_blocking, stream : optional, optional
            As in `copy_from`.

        Returns
        -------
        Buffer
            The buffer itself.

        Raises
        ------
        ValueError
            The buffer was freed, or ``low`` is not below ``high``.

        Notes
        -----
        They are the numbers of `l0rt.philox.randint` (Philox4x32-10 of Salmon et al., SC11).
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
        Buffer_hold(self)
        try:
            Buffer_use(self, stream.ptr)
        finally:
            self.exports -= 1

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
        cdef l0rt_stream* on = Buffer_stream(self, stream)
        Buffer_hold(self)
        try:
            Buffer_use(self, on, True)
        finally:
            self.exports -= 1

    def free(self, Queue stream=None):
        """Free the memory. It is reused in the order of the stream for which it was allocated.

        Parameters
        ----------
        stream : Stream or None, optional
            Reuse the memory in the order of this stream instead, after all work that both streams were given so far.

        Raises
        ------
        ValueError
            The buffer was freed before.
        BufferError
            A memoryview, an array or another call still uses the memory.
        """
        cdef l0rt_block* block
        cdef l0rt_stream* on
        cdef void* pointer
        cdef int status
        Buffer_check_open(self)
        if self.exports:
            raise BufferError("the buffer is in use by a memoryview, an array or a call that has not returned: "
                              "release that first")
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

    def __getbuffer__(self, Py_buffer* view, int flags):
        Buffer_check_open(self)
        if self.memory == DEVICE:
            raise BufferError("the host cannot read device memory: copy_to() copies it")
        PyBuffer_FillInfo(view, self, self.pointer, self.nbytes, 0, flags)
        self.exports += 1
        note(HOST_ACCESS, <uint64_t>self.pointer, self.nbytes, flags & PyBUF_WRITABLE != 0)

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1

    def __copy__(self):
        raise TypeError("a Buffer cannot be copied by copy.copy: allocate another and copy_from() this one")

    def __reduce__(self):
        raise TypeError("a Buffer cannot be pickled: copy_to() a host array")

    def __repr__(self):
        if self.freed:
            return f"<l0rt.Buffer freed, {self.nbytes} bytes>"
        if self.owner == NULL:
            return "<l0rt.Buffer never allocated>"
        return f"<l0rt.Buffer {self.kind} {<size_t>self.pointer:#x} {self.nbytes} bytes on {self.device}>"


# Cython puts the exception that is being raised aside around every __dealloc__, which takes as long as freeing does.
# Here only a miss needs that. The rest of the destructor is Cython's.
cdef void (*rest_of_end)(Buffer) noexcept
rest_of_end = <void (*)(Buffer) noexcept>(<PyTypeObject*>Buffer).tp_dealloc
(<PyTypeObject*>Buffer).tp_dealloc = <destructor>Buffer_end


cdef void Buffer_end(Buffer self) noexcept:
    cdef PyObject* kind
    cdef PyObject* value
    cdef PyObject* trace
    if not self.freed:
        if self.block != NULL and not has_hooks() and block_drop(self.block):
            self.freed = True
        else:
            PyErr_Fetch(&kind, &value, &trace)
            Buffer_release(self)
            PyErr_Restore(kind, value, trace)
    rest_of_end(self)


cdef bytes checked_pattern(value, pattern, size_t nbytes):
    if (value is None) == (pattern is None):
        raise TypeError("fill() takes a byte value or a pattern=, one of the two")
    if pattern is None:
        if not is_whole(value):
            raise TypeError(f"fill() takes an int from 0 to 255, not {type(value).__name__}")
        value = whole(value, "a byte")
        if not 0 <= value <= 255:
            raise ValueError(f"fill() takes a byte, 0 to 255, got {value}")
        return bytes((value,))
    pattern = bytes_of(pattern, "fill")
    if len(pattern) not in (1, 2, 4, 8, 16):
        raise ValueError(f"a pattern must have 1, 2, 4, 8 or 16 bytes, got {len(pattern)}")
    if nbytes % len(pattern):
        raise ValueError(f"{nbytes} bytes are not a multiple of the pattern's {len(pattern)}")
    return pattern


cdef int Buffer_check_open(Buffer self) except -1:
    if self.freed:
        raise ValueError("the buffer was freed")
    return Buffer_check_made(self)


cdef int Buffer_check_made(Buffer self) except -1:
    if self.owner == NULL:
        raise ValueError("the buffer was never allocated: make a Buffer with l0rt.empty(nbytes)")
    return 0


cdef inline int Buffer_hold(Buffer self) except -1:
    """Keep `free` away, until ``exports`` is lowered again: around whatever gives up the GIL or runs other code."""
    Buffer_check_open(self)
    self.exports += 1
    return 0


cdef l0rt_stream* Buffer_stream(Buffer self, Queue stream) except NULL:
    """The stream that an argument means; None: the current one, of the buffer's own device if it is device memory."""
    if stream is not None:
        return stream.ptr
    Buffer_check_made(self)
    return current_stream(self.owner.index if self.memory == DEVICE else -1)


cdef inline void Buffer_take(Buffer self) noexcept:
    """The memory is not the buffer's any more: first of all, for what follows runs callbacks and gives up the GIL."""
    self.freed = True
    self.block = NULL
    self.pointer = NULL


cdef void Buffer_release(Buffer self) noexcept:
    cdef l0rt_block* block = self.block
    cdef void* pointer = self.pointer
    Buffer_take(self)
    let_go(self.owner, block, pointer)


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


cdef int Buffer_use(Buffer self, l0rt_stream* stream, bint is_past=False) except -1:
    """Remember that ``stream`` uses the memory, or has used it, unless its order covers that already. It is held."""
    cdef int status
    if self.block != NULL and (stream != self.stream or self.memory != DEVICE):
        with nogil:
            status = block_mark(self.block, stream) if is_past else block_use(self.block, stream)
        if status != 0:
            raise_status(status, self.pointer)
        note(MEMORY_USE, <uint64_t>self.pointer, <uint64_t>stream, 0)
    return 0


cdef Buffer_draw(Buffer self, str kind, dtype, generator, Queue stream, bint non_blocking, first, second):
    """Random numbers, made on the host and copied."""
    cdef Py_buffer view
    Buffer_check_open(self)
    if generator is None:
        generator = default_generator(self.owner.index)
    numbers = philox.draw(kind, generator, self.nbytes, first, second, dtype)
    get_view(numbers, &view, PyBUF_C_CONTIGUOUS, kind)
    try:
        Buffer_copy_in(self, &view, stream, False, self.memory != DEVICE and not non_blocking)
    finally:
        PyBuffer_Release(&view)
    return self


cdef int Buffer_copy_in(Buffer self, Py_buffer* view, Queue stream, bint non_blocking, bint wait) except -1:
    """Copy from host memory, which may be reused from then on. With ``wait`` the data is there by then, too."""
    cdef l0rt_stream* on = Buffer_stream(self, stream)
    Buffer_hold(self)
    try:
        check_sizes(view.len, self.nbytes)
        Buffer_use(self, on)    # before the copy: one that fails half-way leaves work behind
        if not copy_pinned(self.pointer, view.buf, view.buf, view.len, on, non_blocking):
            about_to_wait("copy_from() from memory that is not pinned", on)
            with nogil:
                copy_in(on, self.pointer, view.buf, view.len)
                if wait:
                    queue_synchronize(on, UINT64_MAX)
    finally:
        self.exports -= 1
    return 0


cdef int Buffer_copy_out(Buffer self, Py_buffer* view, Queue stream, bint non_blocking) except -1:
    cdef l0rt_stream* on = Buffer_stream(self, stream)
    Buffer_hold(self)
    try:
        check_sizes(self.nbytes, view.len)
        Buffer_use(self, on)
        if not copy_pinned(view.buf, self.pointer, view.buf, view.len, on, non_blocking):
            about_to_wait("copy_to() into host memory", on)
            with nogil:
                copy_out(on, view.buf, self.pointer, view.len)
            note(STREAM_SYNCHRONIZATION, <uint64_t>on, 0, 0)
    finally:
        self.exports -= 1
    return 0


cdef int Buffer_copy(Buffer target, Buffer source, Queue stream, bint non_blocking) except -1:
    cdef bint wait = not non_blocking and (target.memory != DEVICE or source.memory != DEVICE)
    cdef l0rt_stream* on = Buffer_stream(source if source.memory == DEVICE else target, stream)
    cdef l0rt_stream* target_on = NULL
    Buffer_check_open(source)
    Buffer_check_open(target)
    check_sizes(source.nbytes, target.nbytes)
    if target.owner != source.owner and stream is None and target.memory == DEVICE and source.memory == DEVICE:
        target_on = Buffer_stream(target, None)
    source.exports += 1
    target.exports += 1
    try:
        Buffer_use(source, on)
        if target_on != NULL:
            Buffer_copy_across(target, source, on, target_on)
        else:
            Buffer_use(target, on)
            if wait:
                about_to_wait("a copy from or to host memory without non_blocking=True", on)
            with nogil:
                queue_copy(on, target.pointer, source.pointer, source.nbytes)
                if wait:
                    queue_synchronize(on, UINT64_MAX)
    finally:
        source.exports -= 1
        target.exports -= 1
    return 0


cdef int Buffer_copy_across(Buffer target, Buffer source, l0rt_stream* on, l0rt_stream* target_on) except -1:
    """To another device: behind the current streams of both devices, which both go on behind the copy."""
    cdef bint done = False
    if target_on != target.stream:
        Buffer_use(target, on)
    try:
        with nogil:
            queue_wait_queue(on, target_on)
            queue_copy(on, target.pointer, source.pointer, source.nbytes)
            queue_wait_queue(target_on, on)
        done = True
    finally:
        if not done:            # nothing orders the target's stream behind a copy that may have begun
            Buffer_use(target, on)
    return 0


cdef Buffer new_buffer(size_t nbytes, l0rt_stream* stream, l0rt_device* owner, int memory, l0rt_block* block):
    cdef Buffer made = Buffer.__new__(Buffer)
    made.nbytes = nbytes
    made.stream = stream
    made.owner = owner
    made.memory = memory
    made.block = block
    if block != NULL:
        made.pointer = block.ptr
        note(MEMORY_ALLOCATION, <uint64_t>made.pointer, nbytes, <uint64_t>stream)
    return made


known_as(Buffer, b"l0rt.Buffer")
