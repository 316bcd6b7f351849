# SPDX-License-Identifier: Apache-2.0
"""Buffers: what an allocation is in Python. Device memory in a stream's order, pinned host memory, shared memory."""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release
from cpython.exc cimport PyErr_Clear, PyErr_Fetch, PyErr_Restore
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject, PyTypeObject, destructor
from libc.stdint cimport UINT64_MAX, uint64_t

cdef extern from "Python.h":
    size_t PyLong_AsSize_t(object) noexcept     # -1 with an error set: looked at below

from l0rt.arguments cimport bytes_of, check_sizes, checked_size, get_view, is_whole, known_as, whole
from l0rt.runtime.alloc.arena cimport arena_hit, block_drop
from l0rt.runtime.alloc.atomics cimport load
from l0rt.runtime.alloc.deferred_free cimport block_mark, block_move, block_use
from l0rt.runtime.alloc.types cimport l0rt_arena, l0rt_block
from l0rt.runtime.current.thread cimport current_stream, stream_or_current, thread_peek
from l0rt.runtime.memory.active_pool cimport arena_asked, fill_host
from l0rt.runtime.memory.device cimport malloc_slow, raise_status, shared_take
from l0rt.runtime.memory.operations cimport block_let_go, shared_free
from l0rt.runtime.memory.pinned cimport host_malloc
from l0rt.runtime.memory.registration cimport copy_pinned
from l0rt.runtime.memory.staging cimport copy_in, copy_out
from l0rt.runtime.streams.hooks cimport (
    HOST_ACCESS, MEMORY_ALLOCATION, MEMORY_DEALLOCATION, MEMORY_USE, STREAM_SYNCHRONIZATION, has_hooks,
    note)
from l0rt.runtime.streams.naming cimport current_type, device as device_name, other, type_named
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

_elsewhere = None       # makes buffers of other device types, once their module is there
cdef str DEVICE_NAME = "device"
cdef tuple KINDS = (DEVICE_NAME, "host", "shared")
cdef size_t MOST = (<size_t>1 << 62) - 1


@cython.freelist(256)
@cython.binding(False)
cdef class Buffer:
    """An allocation. Made by `l0rt.empty`; freed by `free`, or when it is dropped.

    Device memory may be used on the stream that it was allocated for, in that stream's order, without further ado;
    other streams' use is announced by `record_stream`.
    """

    def __init__(self):
        raise TypeError("a Buffer is made by l0rt.empty(nbytes)")

    @property
    def ptr(self):
        """The address as an integer, 0 if the buffer is empty."""
        Buffer_check_open(self)
        return <size_t>self.pointer

    @property
    def kind(self):
        """``device``, ``host`` or ``shared``."""
        return KINDS[self.memory]

    @property
    def device(self):
        """The device that owns the memory; for host memory, the one that it was allocated for."""
        Buffer_check_made(self)
        return device_name(lazy.device_type, self.owner.index)

    def copy_from(self, source, *, bint non_blocking=False, Queue stream=None):
        """Copy ``source`` into the buffer, in the order of ``stream``; return the buffer.

        ``source`` is a Buffer, or anything with the buffer protocol that holds plain numbers; it has as many bytes as
        this buffer. Between device buffers the call returns at once; from host memory it returns when the source may
        be reused, or, with ``non_blocking=True`` and pinned memory, at once; into a host or shared buffer, when the
        data is there, unless ``non_blocking=True``. The default stream is the current one of the buffer's device.
        Between two devices it is the source's, and the copy is ordered behind the current streams of both devices, and
        what both are given later behind the copy; with ``stream``, that stream alone decides.
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
        """Copy the buffer into ``target``, in the order of ``stream``; return ``target``.

        ``target`` is a Buffer, or anything with a writable buffer protocol that holds plain numbers, of the same size.
        Into host memory the call returns when the data is there; with ``non_blocking=True`` and pinned memory, at
        once. For streams see `copy_from`.
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
        """Fill with the byte ``value``, 0 to 255, or with ``pattern``, 1, 2, 4, 8 or 16 bytes; return the buffer.

        Device memory is filled in the order of ``stream``. For host and shared memory the call returns when it is
        filled, unless ``non_blocking=True``.
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
        """Fill with numbers of ``dtype`` from [low, high), as `l0rt.philox.uniform` makes them; return self."""
        return Buffer_draw(self, "uniform", dtype, generator, stream, non_blocking, low, high)

    def normal_(self, mean=0.0, std=1.0, *, dtype="float32", generator=None, bint non_blocking=False,
                Queue stream=None):
        """Fill with normally distributed numbers of ``dtype``, as `l0rt.philox.normal` makes them; return self."""
        return Buffer_draw(self, "normal", dtype, generator, stream, non_blocking, mean, std)

    def randint_(self, low, high, *, dtype="int64", generator=None, bint non_blocking=False,
                 Queue stream=None):
        """Fill with whole numbers of ``dtype`` from [low, high), as `l0rt.philox.randint` makes them; return self."""
        return Buffer_draw(self, "randint", dtype, generator, stream, non_blocking, low, high)

    def record_stream(self, Queue stream not None):
        """Let freed memory not be reused before what ``stream`` has been given by then is done."""
        Buffer_hold(self)
        try:
            Buffer_use(self, stream.ptr)
        finally:
            self.exports -= 1

    def record_use(self, Queue stream=None):
        """Let freed memory not be reused before what ``stream`` has been given until now is done.

        To be called right after the work was given. Unlike `record_stream`, what the stream is given later does not
        count, and freeing asks the driver for nothing.
        """
        cdef l0rt_stream* on = Buffer_stream(self, stream)
        Buffer_hold(self)
        try:
            Buffer_use(self, on, True)
        finally:
            self.exports -= 1

    def free(self, Queue stream=None):
        """Give the memory back; later use raises ValueError. Freeing twice is an error.

        It is reused in the order of the stream that it was allocated for. With ``stream`` it is reused in the order of
        that one, behind what it and the other has been given so far. BufferError while a memoryview or an array looks
        at it, or another call, in another thread or further out on this one, works on it.
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
            raise BufferError("device memory is not the host's to read: copy_to() copies it")
        PyBuffer_FillInfo(view, self, self.pointer, self.nbytes, 0, flags)
        self.exports += 1
        note(HOST_ACCESS, <uint64_t>self.pointer, self.nbytes, flags & PyBUF_WRITABLE != 0)

    def __releasebuffer__(self, Py_buffer* view):
        self.exports -= 1

    def __copy__(self):
        raise TypeError("a Buffer is not copied by copy.copy: allocate another and copy_from() this one")

    def __reduce__(self):
        raise TypeError("a Buffer cannot be pickled: copy_to() a host array")

    def __repr__(self):
        if self.freed:
            return f"<l0rt.Buffer freed, {self.nbytes} bytes>"
        if self.owner == NULL:
            return "<l0rt.Buffer never allocated>"
        return f"<l0rt.Buffer {self.kind} {<size_t>self.pointer:#x} {self.nbytes} bytes on {self.device}>"


# Cython puts the exception that is being raised aside around every __dealloc__, which takes as long as freeing does.
# Here only what is no hit needs that. The rest of an object's end stays Cython's.
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
        raise ValueError(f"a pattern has 1, 2, 4, 8 or 16 bytes, got {len(pattern)}")
    if nbytes % len(pattern):
        raise ValueError(f"{nbytes} bytes are no multiple of the pattern's {len(pattern)}")
    return pattern


cdef int Buffer_check_open(Buffer self) except -1:
    if self.freed:
        raise ValueError("the buffer was freed")
    return Buffer_check_made(self)


cdef int Buffer_check_made(Buffer self) except -1:
    if self.owner == NULL:
        raise ValueError("the buffer was never allocated: a Buffer is made by l0rt.empty(nbytes)")
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
    """Free what was a buffer's. Told before, since the address may be another buffer's at once."""
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


def serve_elsewhere(function):
    """Let ``function(nbytes, device, stream, kind)`` make the buffers of other device types."""
    global _elsewhere
    _elsewhere = function


cdef bint is_elsewhere(device, stream) except -1:
    """Is a buffer asked for that another device type's allocator serves?"""
    type = type_named(device)
    if type is None and stream is not None:
        return not isinstance(stream, Queue) and hasattr(stream, "device_index")
    return (current_type() if type is None else type) != lazy.device_type


def empty(nbytes, *, device=None, stream=None, str kind="device"):
    """Return a Buffer of ``nbytes`` uninitialised bytes.

    ``kind`` is ``device``, ``host`` (pinned, cached) or ``shared``. Device memory is ordered by ``stream``: the
    current one of ``device`` (the current device by default). OutOfMemoryError says what is held by whom.
    ``device`` may be of any registered type, whose allocator `l0rt.interface.register_allocator` gave; ``"cpu"`` is
    plain memory of the process, of kind ``host``, which needs no driver.
    """
    cdef l0rt_thread* thread
    cdef l0rt_stream* on
    cdef l0rt_arena* arena
    cdef l0rt_block* block
    cdef size_t size
    if PyLong_CheckExact(nbytes):
        size = PyLong_AsSize_t(nbytes)
        if size - 1 >= MOST:            # 0, negative or huge: the slow way sorts them out
            PyErr_Clear()
            size = checked_size(nbytes)
    else:
        size = checked_size(nbytes)
    if device is None and stream is None and other == NULL and <void*>kind == <void*>DEVICE_NAME and size != 0:
        thread = thread_peek()
        if thread != NULL:
            on = thread.streams[thread.device]
            arena = <l0rt_arena*>load(&on.arena)
            if arena == NULL:
                arena = arena_asked(thread, on)
            if arena != NULL:
                block = arena_hit(arena, size)
                if block != NULL:
                    return new_buffer(size, on, on.device, DEVICE, block)
    return empty_slow(size, device, stream, kind)


cdef Buffer empty_slow(size_t size, device, stream, str kind):
    cdef l0rt_block* block = NULL
    cdef l0rt_stream* on
    cdef Buffer made
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    if is_elsewhere(device, stream):
        return _elsewhere(size, device, stream, kind)
    if stream is not None and not isinstance(stream, Queue):
        raise TypeError(f"expected a Stream, got {type(stream).__name__}")
    on = stream_or_current(device, <Queue>stream)
    if size == 0:
        return new_buffer(0, on, on.device, KINDS.index(kind), NULL)
    if kind == "device":
        with nogil:
            block = malloc_slow(on, size)
        return new_buffer(size, on, on.device, DEVICE, block)
    if kind == "host":
        with nogil:
            block = host_malloc(on.device, size)
        made = new_buffer(size, on, on.device, HOST, block)
        fill_host(block.ptr, block.size)
        return made
    made = new_buffer(size, on, on.device, SHARED, NULL)
    made.pointer = shared_take(on.device, size)
    fill_host(made.pointer, size)
    note(MEMORY_ALLOCATION, <uint64_t>made.pointer, size, <uint64_t>on)
    return made


known_as(Buffer, b"l0rt.Buffer")
