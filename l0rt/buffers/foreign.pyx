# SPDX-License-Identifier: Apache-2.0
"""Buffers of other device types than the built-in one, and of the host.

Memory comes from the allocator that was registered for the device; ``cpu`` is plain memory of the process. Copies and
fills are the device type's ``copy_memory`` and ``fill_memory``; without them they are the host's, where the allocator
says that the host reaches its memory (``host_accessible``).
"""

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free
from libc.string cimport memcpy

from l0rt._base.arguments cimport check_overlap, check_sizes, checked_pattern, checked_size, get_view, part_of
from l0rt.buffers.buffer cimport (
    ELSEWHERE,
    Buffer,
    Buffer_check_free,
    Buffer_count_export,
    Buffer_end_export,
    Buffer_is_freed,
    Buffer_slice,
    Buffer_unhold,
    array_like,
)
from l0rt.buffers.dlpack cimport DL_CPU, Loan, dlpack_capsule, dlpack_choose, dlpack_is_versioned, dlpack_order
from l0rt.runtime.memory.active_pool cimport fill_host
from l0rt.runtime.streams.naming cimport (
    NO_INDEX, current_type, device as device_name, index_of, interface_of, other_index, registered, type_named,
)
from l0rt.runtime.streams.queue cimport Queue
from l0rt.runtime.streams.types cimport *

from l0rt import philox
from l0rt.errors import DeviceIndexError
from l0rt.runtime.current.generator import default_generator_of

cdef extern from "stdlib.h" nogil:
    int posix_memalign(void** out, size_t alignment, size_t size) noexcept

cdef enum:
    ALIGNMENT = 64

cdef object HOST_DEVICE = device_name("cpu")
cdef dict _allocators = {}      # (device type, index, or None for every device) -> allocator


class HostAllocator:
    """Plain memory of the process: the allocator of ``cpu``, unless another is registered."""

    host_accessible = True

    @staticmethod
    def malloc(nbytes, stream=0):
        """Return the address of ``nbytes`` bytes, a multiple of 64."""
        cdef size_t size = checked_size(nbytes)
        cdef void* memory = NULL
        if size == 0:
            return 0
        if posix_memalign(&memory, ALIGNMENT, size) != 0:
            raise MemoryError(f"the host has no {nbytes} bytes")
        return <uintptr_t>memory

    @staticmethod
    def free(ptr, stream=None):
        """Free what `malloc` returned."""
        free(<void*><uintptr_t>ptr)


cdef object host_allocator = HostAllocator


def add_allocator(type, index, allocator):
    """Let ``allocator`` serve a device, or with None for an index every device of the type without one of its own."""
    for name in ("malloc", "free"):
        if not callable(getattr(allocator, name, None)):
            raise TypeError(f"an allocator has malloc(nbytes, stream) and free(ptr), {allocator!r} has no {name}")
    _allocators[type, index] = allocator


def allocator_of(str type, index):
    """Return the allocator of a device; NotImplementedError if none was registered."""
    allocator = _allocators.get((type, index)) or _allocators.get((type, None))
    if allocator is None and type == "cpu":
        return HostAllocator
    if allocator is None:
        raise NotImplementedError(f"no allocator for {type}:{index}: l0rt.interface.register_allocator() gives one")
    return allocator


cdef object word_of(stream):
    """What an allocator knows a stream by: its number, 0 for memory that no stream orders."""
    number = getattr(stream, "stream_id", 0)
    return number if isinstance(number, int) else 0


@cython.final
@cython.no_gc_clear             # the allocator is needed in __dealloc__
@cython.binding(False)
cdef class OtherBuffer(Buffer):
    """A Buffer of a device type other than the built-in one."""
    cdef object named           # the device
    cdef object interface       # None: the host's own memory
    cdef object allocator
    cdef object order           # the stream that it was allocated for
    cdef object base_object     # a slice's base again: here the garbage collector sees the reference
    cdef tuple layout           # dtype and shape of the array that `from_numpy` was given
    cdef bint on_host

    @property
    def ptr(self):
        """The address as an integer; 0 for an empty buffer."""
        check_open(self)
        return <uintptr_t>self.pointer

    @property
    def kind(self):
        """``device``, or ``host`` for the host's own memory."""
        return "host" if self.on_host else "device"

    @property
    def device(self):
        """The device that owns the memory."""
        return self.named

    def numpy(self, dtype=None, shape=None, *, stream=None):
        """Copy the buffer into a new NumPy array and return the array. See `l0rt.Buffer`."""
        layout = ("uint8", (self.nbytes,)) if self.layout is None else self.layout
        return self.copy_to(array_like(layout, self.nbytes, dtype, shape), stream=stream)

    def copy_from(self, source, *, bint non_blocking=False, stream=None):
        """Copy ``source`` into the buffer, in the order of ``stream``, and return the buffer. See `l0rt.Buffer`.

        Between two buffers of one device type the call returns at once, as with ``non_blocking=True``; of any other
        copy from or to a device of another type than the built-in one, ValueError says that it cannot.
        """
        cdef Py_buffer view
        check_open(self)
        if isinstance(source, OtherBuffer) and not (<OtherBuffer>source).on_host:
            check_sizes(source.nbytes, self.nbytes)
            if (<OtherBuffer>source).interface is self.interface:
                move_between(self, <OtherBuffer>source, stream)
                return self
            check_blocking(source, non_blocking)
            source = source.host_bytes(stream)
        elif isinstance(source, Buffer) and not isinstance(source, OtherBuffer):
            if self.on_host:
                source.copy_to(self, non_blocking=non_blocking, stream=own_or_none(self, stream))
                return self
            check_blocking(self, non_blocking)
            staged = bytearray(source.nbytes)
            source = source.copy_to(staged)
        check_blocking(self, non_blocking)
        get_view(source, &view, PyBUF_C_CONTIGUOUS, "copy_from")
        try:
            move_host(self, &view, stream, True)
        finally:
            PyBuffer_Release(&view)
        return self

    def copy_to(self, target, *, bint non_blocking=False, stream=None):
        """Copy the buffer into ``target``, in the order of ``stream``, and return ``target``. See `l0rt.Buffer`."""
        cdef Py_buffer view
        check_open(self)
        if isinstance(target, Buffer) and not (isinstance(target, OtherBuffer) and (<OtherBuffer>target).on_host):
            if isinstance(target, OtherBuffer):
                target.copy_from(self, non_blocking=non_blocking, stream=stream)
            else:
                check_blocking(self, non_blocking)
                target.copy_from(self, non_blocking=non_blocking, stream=own_or_none(self, stream))
            return target
        check_blocking(self, non_blocking)
        get_view(target, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE, "copy_to")
        try:
            move_host(self, &view, stream, False)
        finally:
            PyBuffer_Release(&view)
        return target

    def host_bytes(self, stream=None):
        """What is in the buffer, as an object that the host reads."""
        if self.on_host:
            return self
        staged = bytearray(self.nbytes)
        return self.copy_to(staged, stream=stream)

    def fill(self, value=None, *, pattern=None, bint non_blocking=False, stream=None):
        """Fill with the byte ``value``, 0 to 255, or with ``pattern``, 1, 2, 4, 8 or 16 bytes; return the buffer."""
        pattern = checked_pattern(value, pattern, self.nbytes)
        check_open(self)
        function = getattr(self.interface, "fill_memory", None)
        if function is None or getattr(function, "is_missing", False):
            return self.copy_from(pattern * (self.nbytes // len(pattern)), stream=stream)
        hold(self)
        try:
            function(<uintptr_t>self.pointer, pattern, self.nbytes, order_of(self, stream))
        finally:
            Buffer_unhold(self)
        return self

    def uniform_(self, low=0.0, high=1.0, *, dtype="float32", generator=None, bint non_blocking=False, stream=None):
        """Fill the buffer with uniform random numbers from [low, high), and return the buffer."""
        return draw(self, "uniform", dtype, generator, stream, low, high)

    def normal_(self, mean=0.0, std=1.0, *, dtype="float32", generator=None, bint non_blocking=False, stream=None):
        """Fill the buffer with normally distributed random numbers, and return the buffer."""
        return draw(self, "normal", dtype, generator, stream, mean, std)

    def exponential_(self, lambd=1.0, *, dtype="float32", generator=None, bint non_blocking=False, stream=None):
        """Fill the buffer with exponentially distributed random numbers, and return the buffer."""
        return draw(self, "exponential", dtype, generator, stream, lambd)

    def bernoulli_(self, p=0.5, *, dtype="float32", generator=None, bint non_blocking=False, stream=None):
        """Fill the buffer with numbers that are 1 with probability ``p`` and otherwise 0, and return the buffer."""
        return draw(self, "bernoulli", dtype, generator, stream, p)

    def randint_(self, low, high, *, dtype="int64", generator=None, bint non_blocking=False, stream=None):
        """Fill the buffer with random whole numbers from [low, high), and return the buffer."""
        return draw(self, "randint", dtype, generator, stream, low, high)

    def record_stream(self, stream):
        """Let freed memory not be reused before what ``stream`` has been given by then is done."""
        note_use(self, "record_stream", stream)

    def record_use(self, stream=None):
        """Let freed memory not be reused before what ``stream`` has been given until now is done."""
        check_open(self)
        note_use(self, "record_use", order_of(self, stream))

    def free(self, stream=None):
        """Give the memory back, in the order of ``stream``, by default that which it was allocated for."""
        check_open(self)
        word = None if stream is None else word_of(checked_stream(self, stream))
        check_open(self)            # once more: a stream of another type may run any code
        Buffer_check_free(self)
        let_go(self, word)

    def __getbuffer__(self, Py_buffer* view, int flags):
        check_open(self)
        if not self.on_host:
            raise BufferError("the host cannot read device memory: copy_to() copies it")
        PyBuffer_FillInfo(view, self, self.pointer, self.nbytes, 0, flags)
        hold(self)

    def __releasebuffer__(self, Py_buffer* view):
        Buffer_unhold(self)

    def __dlpack_device__(self):
        check_open(self)
        if not self.on_host:
            raise BufferError(f"DLPack has no number for the device type {self.named.type}")
        return DL_CPU, 0

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        cdef bint versioned = dlpack_is_versioned(max_version)
        cdef OtherBuffer source = self
        device, is_copied = dlpack_choose(self.__dlpack_device__(), -1, dl_device, copy)
        dlpack_order(NULL, NULL, stream, True)
        if is_copied:
            source = serve(self.nbytes, self.named, None, "host").copy_from(self)
        hold(source)
        return dlpack_capsule(<void*>source.pointer, source.nbytes, device, is_copied, versioned, source,
                              Buffer_end_export)

    def __getitem__(self, index):
        cdef size_t start = 0
        cdef size_t nbytes = part_of(index, self.nbytes, &start)
        cdef OtherBuffer part
        check_open(self)            # an index may run any code
        part = new_other(nbytes, self.named, self.interface, self.order)
        part.allocator = self.allocator
        Buffer_slice(part, self, start)
        part.base_object = <object>part.base
        part.freed = True           # the base class has nothing to give back: whether it is freed, the whole says
        return part

    def __dealloc__(self):
        if not self.freed and self.allocator is not None and self.base == NULL:
            let_go(self, None)


cdef int check_open(OtherBuffer self) except -1:
    if Buffer_is_freed(self):
        raise ValueError("the buffer was freed")
    if self.allocator is None:
        raise ValueError("the buffer was never allocated: make a Buffer with l0rt.empty(nbytes)")
    return 0


cdef int hold(OtherBuffer self) except -1:
    """As Buffer_hold, for memory of another device type: Buffer_unhold ends it."""
    check_open(self)
    Buffer_count_export(self, 1)
    return 0


cdef int let_go(OtherBuffer self, word) except -1:
    cdef uintptr_t address = <uintptr_t>self.pointer
    self.freed = True
    self.pointer = NULL
    if self.allocator is host_allocator:    # which loses its functions before the interpreter has ended
        free(<void*>address)
    elif address != 0:
        self.allocator.free(*((address,) if word is None else (address, word)))
    return 0


cdef int check_blocking(OtherBuffer self, bint non_blocking) except -1:
    """Refuse a copy between the device and the host that is not to wait: only l0rt's own pinned memory can do it."""
    if non_blocking and not self.on_host:
        raise ValueError(f"non_blocking=True: a copy between {self.named} and memory of another kind waits for its end")
    return 0


cdef object own_or_none(OtherBuffer self, stream):
    """A stream of the built-in type as it is; one of the buffer's own type orders nothing there."""
    if stream is None or isinstance(stream, Queue):
        return stream
    checked_stream(self, stream)
    return None


cdef object checked_stream(OtherBuffer self, stream):
    """``stream`` if it is one of the buffer's device type."""
    if not hasattr(stream, "device_index"):
        raise TypeError(f"expected a Stream, got {type(stream).__name__}")
    if getattr(stream, "device_type", self.named.type) != self.named.type:
        raise ValueError(f"a stream of {stream.device_type} does not order memory of {self.named}")
    return stream


cdef object order_of(OtherBuffer self, stream):
    """The stream that an argument means; None: the current one of the buffer's device."""
    if stream is not None:
        return checked_stream(self, stream)
    return None if self.interface is None else current_stream_of(self.interface, self.named.index)


cdef object current_stream_of(interface, index):
    """None where the device type has no streams."""
    function = getattr(interface, "current_stream", None)
    return None if function is None or getattr(function, "is_missing", False) else function(index)


cdef int move_host(OtherBuffer self, Py_buffer* view, stream, bint is_in) except -1:
    """Copy from or to memory of the host, which may be used again from then on."""
    hold(self)
    try:
        if is_in:
            check_sizes(view.len, self.nbytes)
            move(self, self.pointer, view.buf, stream, True)
        else:
            check_sizes(self.nbytes, view.len)
            move(self, view.buf, self.pointer, stream, True)
    finally:
        Buffer_unhold(self)
    return 0


cdef int move_between(OtherBuffer self, OtherBuffer source, stream) except -1:
    hold(self)
    try:
        hold(source)
        try:
            move(self, self.pointer, source.pointer, stream, False)
        finally:
            Buffer_unhold(source)
    finally:
        Buffer_unhold(self)
    return 0


cdef int move(OtherBuffer self, void* target, const void* source, stream, bint wait) except -1:
    """Copy the buffer's bytes, to or from it, in a stream's order; ``wait`` until host memory may be used again."""
    cdef size_t nbytes = self.nbytes
    check_overlap(target, source, nbytes)
    on = order_of(self, stream)
    function = getattr(self.interface, "copy_memory", None)
    if nbytes == 0:
        return 0
    if function is not None and not getattr(function, "is_missing", False):
        function(<uintptr_t>target, <uintptr_t>source, nbytes, on)
        if wait and on is not None:
            on.synchronize()
        return 0
    if not self.on_host:
        if not is_reached(self.allocator):
            raise NotImplementedError(
                f"device type {self.named.type} has no copy_memory(target, source, nbytes, stream)")
        if on is not None:
            on.synchronize()
    with nogil:
        memcpy(target, source, nbytes)
    return 0


cdef bint is_reached(allocator) except -1:
    """Whether the host reads and writes the allocator's memory."""
    memory = getattr(allocator, "memory", None)
    return bool(getattr(allocator, "host_accessible", getattr(memory, "host_accessible", False)))


cdef int note_use(OtherBuffer self, str name, stream) except -1:
    cdef uintptr_t address = <uintptr_t>(self.pointer if self.base == NULL else (<Buffer>self.base).pointer)
    hold(self)
    try:
        function = getattr(self.allocator, name, None)
        if stream is not None:
            checked_stream(self, stream)
            if function is not None and address != 0:
                function(address, word_of(stream))
    finally:
        Buffer_unhold(self)
    return 0


cdef OtherBuffer draw(OtherBuffer self, str kind, dtype, generator, stream, first, second=None):
    check_open(self)
    if generator is None:
        generator = default_generator_of(self.named.type, self.named.index)
    plan = philox.draw(kind, generator, self.nbytes, first, second, dtype)
    return self.copy_from(plan.numbers(*generator.philox_engine_inputs(plan.words)), stream=stream)


cdef OtherBuffer new_other(size_t nbytes, named, interface, order):
    """A buffer without memory. It has some once it has an allocator."""
    cdef OtherBuffer buffer = OtherBuffer.__new__(OtherBuffer)
    buffer.memory = ELSEWHERE
    buffer.nbytes = nbytes
    buffer.named, buffer.interface, buffer.order, buffer.on_host = named, interface, order, interface is None
    return buffer


cdef int keep_layout(Buffer buffer, tuple layout) except -1:
    """Let `numpy` without arguments return an array of this dtype and shape."""
    (<OtherBuffer?>buffer).layout = layout
    return 0


cdef Buffer serve(size_t nbytes, device, stream, str kind):
    """Make what `l0rt.empty` was asked for, on another device type than the built-in one."""
    cdef OtherBuffer buffer
    type = type_named(device)
    if type is None:
        type = getattr(stream, "device_type", None) if stream is not None else None
    if type is None:
        type = current_type()
    interface = registered.get(type)
    index = index_of(device, NO_INDEX, type)
    if stream is not None:
        if not hasattr(stream, "device_index"):
            raise TypeError(f"expected a Stream, got {stream.__class__.__name__}")
        if getattr(stream, "device_type", type) != type or index not in (NO_INDEX, stream.device_index):
            raise ValueError(f"device {device_name(device)} is not the stream's device, "
                             f"{getattr(stream, 'device_type', type)}:{stream.device_index}")
        index = index_of(stream.device_index, NO_INDEX, type)
    if type == "cpu" and (interface is None or getattr(interface, "is_host", False)):
        interface = None            # plain memory, which no stream orders
        if index not in (NO_INDEX, 0):
            raise DeviceIndexError(f"The device index is out of range. It must be in [0, 1), but got {index}.")
        named, index = device_name("cpu"), None
    else:
        interface = interface_of(type)
        index = other_index(interface, interface.current_device() if index == NO_INDEX else index)
        named = device_name(type, index)
    allocator = allocator_of(type, index)
    on_host = interface is None
    if kind not in ("device", "host") if on_host else kind != "device":
        raise ValueError(f"kind must be {'host' if on_host else 'device'} on {named}, got {kind!r}")
    if not on_host and stream is None:
        stream = current_stream_of(interface, index)
    buffer = new_other(nbytes, named, interface, stream)
    buffer.pointer = NULL if nbytes == 0 else <void*><uintptr_t>allocator.malloc(nbytes, word_of(stream))
    buffer.allocator = allocator
    if on_host and nbytes != 0:
        fill_host(buffer.pointer, nbytes)
    return buffer


cdef Buffer new_borrowed(Loan loan):
    cdef OtherBuffer buffer = new_other(loan.nbytes, HOST_DEVICE, None, None)
    buffer.pointer, buffer.allocator = <void*>loan.ptr, loan
    return buffer
