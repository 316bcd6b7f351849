# SPDX-License-Identifier: Apache-2.0
"""Arguments of a launch: what a kernel takes, and what the driver is given for a Python object."""

import re
from numbers import Integral

cimport cython
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_CheckBuffer
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.long cimport PyLong_AsLongLong, PyLong_AsUnsignedLongLong, PyLong_CheckExact
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, strchr, strcmp, strcpy, strlen

from l0rt._base.arguments cimport address_in, checked_size, get_view, is_address, is_whole, known_as, whole
from l0rt.buffers.buffer cimport DEVICE, ELSEWHERE, Buffer, Buffer_hold, Buffer_operand, Buffer_unhold
from l0rt.buffers.dlpack cimport DL_CPU, DL_ONEAPI
from l0rt.core.memory cimport memory_kind
from l0rt.kernels.image cimport Image, Image_use, Sampler, Sampler_use
from l0rt.launch.built cimport l0rt_kernel
from l0rt.launch.launch cimport l0rt_access, l0rt_arg
from l0rt.runtime.alloc.heap cimport block_find
from l0rt.runtime.alloc.page_map cimport map_find
from l0rt.runtime.memory.operations cimport shared_find
from l0rt.runtime.memory.registration cimport is_registered
from l0rt.runtime.memory.transfer cimport l0rt_operand, operand_use
from l0rt.runtime.streams.naming cimport device as device_name
from l0rt.runtime.streams.types cimport *
from l0rt.ze.api cimport ZE_MEMORY_TYPE_UNKNOWN, ze_memory_type_t

from l0rt._base import lazynumpy as np
from l0rt.errors import UnsupportedError
from l0rt.runtime.streams.devices import can_access_peer, lazy

# What an argument must be.
cdef enum:
    POINTER = 0
    LOCAL = 1
    INT = 2
    FLOAT = 3
    VALUE = 4           # bytes of a known size: a vector, an array, a structure
    ANY = 5             # of a native module, which does not tell
    IMAGE = 6
    SAMPLER = 7
    UNSUPPORTED = 8

cdef dict KINDS = {
    "pointer": POINTER, "local": LOCAL, "image": IMAGE, "sampler": SAMPLER,
    **dict.fromkeys(("pipe", "queue", "handle"), UNSUPPORTED),
}
cdef dict NUMBERS = {"int": INT, "float": FLOAT, "": VALUE}
cdef dict _reached = {}     # (a device, another one) -> whether the first reaches the other one's memory


@cython.final
@cython.binding(False)
cdef class LocalMemory:
    """LocalMemory(nbytes)
--

Local memory of each group, as an argument of a launch.

Parameters
----------
nbytes : int
    The size in bytes, at least 1.

Raises
------
ValueError
    The size is not positive.
"""
    cdef readonly size_t nbytes

    def __cinit__(self, nbytes):
        cdef size_t size = checked_size(nbytes)
        if size == 0:
            raise ValueError("local memory must have at least 1 byte, got 0")
        self.nbytes = size

    def __repr__(self):
        return f"l0rt.LocalMemory({self.nbytes})"


@cython.final
@cython.binding(False)
cdef class Pointer:
    """Pointer(address)
--

An address as an argument of a launch, whatever is there.

An int is taken as a pointer only if there is memory at it that l0rt or the driver knows. This is taken always: for
memory that only the program knows, such as that of a driver's extension.

Parameters
----------
address : int
    The address, from 0 on, which is the null pointer.

Raises
------
ValueError
    The address is negative, or has more than 64 bits.
"""
    cdef readonly uint64_t address

    def __cinit__(self, address):
        if not is_address(address):
            raise TypeError(f"an address must be an int, got {type(address).__name__}")
        self.address = address_in(address, 0)

    def __eq__(self, other):
        return isinstance(other, Pointer) and (<Pointer>other).address == self.address

    def __hash__(self):
        return hash((Pointer, self.address))

    def __repr__(self):
        return f"l0rt.Pointer({self.address:#x})"


@cython.final
@cython.binding(False)
cdef class Parameters:
    """What a kernel takes, as far as its module tells."""

    def __init__(self):
        raise TypeError("what a kernel takes is kernel.arguments")

    def __dealloc__(self):
        free(self.expected)


cdef Parameters new_parameters(l0rt_kernel* kernel, str name, tuple arguments):
    cdef Parameters self = Parameters.__new__(Parameters)
    self.ptr, self.name, self.arguments = kernel, name, arguments
    if arguments is None:
        return self
    nbytes = sum([argument.size for argument in arguments])
    if nbytes > kernel.module.most_argument_bytes:
        raise ValueError(f"{name}() takes {nbytes} bytes of arguments: {device_of(self)} takes "
                         f"{kernel.module.most_argument_bytes}")
    self.expected = <Expected*>calloc(kernel.argument_count + 1, sizeof(Expected))
    if self.expected == NULL:
        raise MemoryError()
    for i, argument in enumerate(arguments):
        self.expected[i].kind = KINDS.get(argument.kind, NUMBERS[argument.number])
        self.expected[i].size = argument.size
        self.expected[i].access = argument.reads | argument.writes << 1
        if self.expected[i].kind == POINTER:
            kernel.pointers[i // 64] |= <uint64_t>1 << (i % 64)
    return self


cdef str argument_told(argument):
    """An argument as a declaration, as far as the module tells."""
    name = f" {argument.name}" if argument.name else ""
    if argument.kind == "value":
        return f"{argument.number or 'value'} of {argument.size} bytes{name}"
    return f"{argument.address_space} {argument.kind}{name}".strip()


cdef void slot_let_go(Slot* slot) noexcept:
    if slot.viewed:
        PyBuffer_Release(&slot.view)
    if slot.buffer != NULL:
        Buffer_unhold(<Buffer>slot.buffer)


cdef l0rt_access slot_access(Parameters self, Py_ssize_t at, const Slot* slot) noexcept:
    return l0rt_access(slot.nbytes if slot.buffer != NULL else 0,
                       3 if self.expected == NULL else self.expected[at].access)


cdef int argument_take(Parameters self, Py_ssize_t at, value, Slot* slot, l0rt_arg* out, l0rt_stream* on) except -1:
    cdef Expected unknown
    cdef Expected* expected = &unknown if self.expected == NULL else &self.expected[at]
    unknown.kind, unknown.size, unknown.access = ANY, 0, 3
    slot.viewed = 0
    slot.buffer = NULL
    out.value = &slot.word
    out.size = expected.size
    if isinstance(value, Buffer) and (expected.kind == POINTER or expected.kind == ANY):
        out.size = sizeof(void*)
        return take_buffer(self, at, <Buffer>value, slot, on)
    if expected.kind == INT and PyLong_CheckExact(value):
        return take_int(self, at, value, slot, expected.size)
    if expected.kind == FLOAT and PyFloat_CheckExact(value):
        return take_float(PyFloat_AS_DOUBLE(value), slot, expected.size)
    if isinstance(value, LocalMemory) and (expected.kind == LOCAL or expected.kind == ANY):
        out.value = NULL
        out.size = (<LocalMemory>value).nbytes
        return 0
    if expected.kind == POINTER and (value is None or is_address(value)):
        slot.word = 0 if value is None else known_address(self, at, value)
        return 0
    if isinstance(value, Pointer) and (expected.kind == POINTER or expected.kind == ANY):
        slot.word = (<Pointer>value).address
        out.size = sizeof(void*)
        return 0
    if isinstance(value, Image) and (expected.kind == IMAGE or expected.kind == ANY):
        slot.word = Image_use(<Image>value, self.ptr.module.device, on)
        out.size = sizeof(void*)
        return 0
    if isinstance(value, Sampler) and (expected.kind == SAMPLER or expected.kind == ANY):
        slot.word = Sampler_use(<Sampler>value, self.ptr.module.device, on)
        out.size = sizeof(void*)
        return 0
    if isinstance(value, np.ndarray) and (expected.kind == POINTER or expected.kind == ANY):
        out.size = sizeof(void*)
        return take_array(self, at, value, slot, on)
    if expected.kind in (INT, FLOAT, VALUE, ANY):
        return take_memory(self, at, value, slot, out, expected)
    wrong(self, at, value)


cdef uint64_t known_address(Parameters self, Py_ssize_t at, value) except? 0:
    """An address of memory that l0rt or the driver knows, or 0, the null pointer."""
    cdef uint64_t address = address_in(value, 0)
    cdef ze_context_handle_t context = self.ptr.module.device.context
    cdef ze_memory_type_t kind
    if address == 0 or block_find(<void*>address) != NULL or shared_find(address) != NULL or (
            is_registered(<void*>address, 1)):
        return address
    if map_find(<void*>address) != NULL:
        raise ValueError(f"{place(self, at)} is {address:#x}, an address in memory that was freed")
    with nogil:
        kind = memory_kind(context, <void*>address)
    if kind == ZE_MEMORY_TYPE_UNKNOWN:
        raise ValueError(f"{place(self, at)} is {address:#x}, and neither l0rt nor the driver knows memory there: give "
                         f"a Buffer, or l0rt.Pointer({address:#x}) if there is some")
    return address


cdef uint32_t local_arguments(Parameters self, tuple args, l0rt_arg* out) except? 0:
    """Without arguments, local memory has one byte where the module tells that it is taken."""
    cdef uint32_t at, count = self.ptr.argument_count
    for at in range(count):
        out[at] = l0rt_arg(NULL, 0)
        is_local = self.expected != NULL and self.expected[at].kind == LOCAL
        if not args:
            out[at].size = is_local
        elif isinstance(args[at], LocalMemory) and (is_local or self.expected == NULL):
            out[at].size = (<LocalMemory>args[at]).nbytes
        elif is_local or isinstance(args[at], LocalMemory):
            wrong(self, at, args[at])
    return count


cdef int take_buffer(Parameters self, Py_ssize_t at, Buffer buffer, Slot* slot, l0rt_stream* on) except -1:
    cdef l0rt_device* device = self.ptr.module.device
    cdef l0rt_operand operand
    if buffer.memory == ELSEWHERE:
        raise ValueError(f"{place(self, at)} must be memory of {device_of(self)}, got {buffer!r}")
    Buffer_hold(buffer)
    slot.buffer = <PyObject*>buffer
    if buffer.owner != device and not reaches(device, buffer):
        raise ValueError(f"{place(self, at)} must be memory that {device_of(self)} reaches, got {buffer!r}")
    if on != NULL and (buffer.stream != on or buffer.memory != DEVICE):    # its own stream has no need to be noted
        operand = Buffer_operand(buffer)
        operand_use(&operand, on)
    slot.word, slot.nbytes = <uint64_t>buffer.pointer, buffer.nbytes
    return 0


cdef bint reaches(l0rt_device* device, Buffer buffer) except -1:
    """Does a device reach memory that another one owns?"""
    if buffer.owner.context != device.context:
        return False
    if buffer.memory != DEVICE:
        return True
    pair = device.index, buffer.owner.index
    found = _reached.get(pair)
    if found is None:
        found = _reached[pair] = can_access_peer(*pair)
    return found


cdef int take_array(Parameters self, Py_ssize_t at, array, Slot* slot, l0rt_stream* on) except -1:
    """The address of an array, if its memory is a Buffer's, such as `l0rt.pinned` makes it."""
    below = array
    while isinstance(below, np.ndarray) or isinstance(below, memoryview):
        below = below.base if isinstance(below, np.ndarray) else below.obj
    if not isinstance(below, Buffer) or (<Buffer>below).memory == ELSEWHERE:
        wrong(self, at, array)
    if not array.flags.forc:
        raise TypeError(f"{place(self, at)} must be contiguous, got an array with strides {array.strides}")
    take_buffer(self, at, <Buffer>below, slot, on)
    slot.nbytes = array.nbytes
    slot.word = array.__array_interface__["data"][0] if slot.nbytes != 0 else 0
    return 0


cdef int take_int(Parameters self, Py_ssize_t at, value, Slot* slot, uint32_t size) except -1:
    cdef int64_t number
    try:
        number = PyLong_AsLongLong(value)
    except OverflowError:
        if size != 8 or value < 0:
            refuse_number(self, at, value, size)
        try:
            slot.word = PyLong_AsUnsignedLongLong(value)
        except OverflowError:
            refuse_number(self, at, value, size)
        return 0
    if size < 8 and not -(<int64_t>1 << (8 * size - 1)) <= number < <int64_t>1 << 8 * size:
        refuse_number(self, at, value, size)
    memcpy(&slot.word, &number, 8)      # the low bytes come first
    return 0


cdef int take_float(double number, Slot* slot, uint32_t size) except -1:
    """As C converts it: what is too large for the type becomes infinity."""
    cdef float single
    if size == 8:
        memcpy(&slot.word, &number, 8)
    elif size == 4:
        single = <float>number
        memcpy(&slot.word, &single, 4)
    else:
        with np.errstate(over="ignore"):
            slot.word = np.float16(number).view(np.uint16)
    return 0


cdef int take_memory(Parameters self, Py_ssize_t at, value, Slot* slot, l0rt_arg* out, Expected* expected) except -1:
    """A number of another type, or the bytes of a vector or a structure."""
    cdef bint is_number = isinstance(value, np.number)
    cdef bint is_index = not is_number and is_whole(value) and (
        not PyObject_CheckBuffer(value) or isinstance(value, Integral))
    if is_index and (expected.kind == FLOAT or expected.kind == INT):
        try:
            value = whole(value, "a number")
        except TypeError:       # a tensor of other than one integer
            wrong(self, at, value)
    if expected.kind == FLOAT and is_index:
        try:
            number = float(value)
        except OverflowError:
            raise ValueError(f"{place(self, at)} must fit a float of {expected.size} bytes, got an int of "
                             f"{value.bit_length()} bits") from None
        return take_float(number, slot, expected.size)
    if expected.kind == INT and not is_number and (
            isinstance(value, bool) or isinstance(value, np.bool_) or is_index):
        return take_int(self, at, int(value), slot, expected.size)
    if expected.kind == ANY and value is None:
        slot.word = 0
        out.size = sizeof(void*)
        return 0
    if isinstance(value, Buffer) or not PyObject_CheckBuffer(value) or (
            expected.kind in (INT, FLOAT) and isinstance(value, (bytes, bytearray))):
        wrong(self, at, value)
    get_view(value, &slot.view, PyBUF_C_CONTIGUOUS, self.name)
    slot.viewed = 1
    if expected.kind in (INT, FLOAT) and not (is_of_kind(&slot.view, expected.kind) and slot.view.itemsize
                                              == slot.view.len):
        wrong(self, at, value)
    if expected.kind != ANY and slot.view.len != expected.size:
        raise TypeError(f"{place(self, at)} must have {expected.size} bytes, got {type(value).__name__} of "
                        f"{slot.view.len} bytes")
    if expected.kind == VALUE and not is_plain(&slot.view) and (
            slot.view.format == NULL or strcmp(slot.view.format, expected.format) != 0):
        check_elements(self, at, value, slot.view.format, expected)
    out.value = slot.view.buf
    out.size = slot.view.len
    return 0


cdef inline bint is_plain(const Py_buffer* view) noexcept:
    """Are these bytes, of which nothing is known? Padding alone is what NumPy says of its void."""
    cdef const char* format = view.format
    return format == NULL or strcmp(format, b"B") == 0 or strcmp(format, b"<B") == 0 or (
        strchr(format, b"x") == &format[strlen(format) - 1])


cdef int check_elements(Parameters self, Py_ssize_t at, value, const char* format, Expected* expected) except -1:
    """TypeError: the elements of this memory are others than those of the vector or the structure."""
    layout = self.arguments[at].layout
    try:
        if any([base.__module__ == "_ctypes" for base in type(value).__mro__]):     # formats without members' places
            kind = np.dtype(type(value))
        else:
            kind = np.asarray(value if isinstance(value, np.ndarray) or isinstance(value, np.generic)
                              else memoryview(value)).dtype
    except (TypeError, ValueError, NotImplementedError):    # elements that NumPy does not have
        kind = np.dtype("O")
    found = letters_of(kind) * (expected.size // max(kind.itemsize, 1))
    if not all([wanted == "x" or wanted == got or wanted + got == "Pq" for wanted, got in zip(layout, found)]):
        raise TypeError(f"{place(self, at)} must be {layout_told(layout)}, got {type(value).__name__} of "
                        f"{kind if kind.subdtype is None else kind.subdtype[0]}")
    if format != NULL and strlen(format) < sizeof(expected.format) and strchr(format, b"{") == NULL:
        strcpy(expected.format, format)
    return 0


cdef dict LETTERS = {("f", 2): "e", ("f", 4): "f", ("f", 8): "d",
                     **{(kind, 1 << i): "bhiq"[i] for kind in "biu" for i in range(4)}}
cdef dict WORDS = {"b": "int of 1 byte", "h": "int of 2 bytes", "i": "int of 4 bytes", "q": "int of 8 bytes",
                   "e": "float of 2 bytes", "f": "float of 4 bytes", "d": "float of 8 bytes", "P": "pointer"}


cdef str letters_of(kind):
    """What each byte of a NumPy type is, as `Argument.layout` says it; ``?``: nothing that a kernel has."""
    if kind.subdtype is not None:
        element = kind.subdtype[0]
        return letters_of(element) * (kind.itemsize // max(element.itemsize, 1))
    if kind.names is not None:
        found = ["x"] * kind.itemsize
        for name in kind.names:
            field, offset = kind.fields[name][:2]
            found[offset:offset + field.itemsize] = letters_of(field)
        return "".join(found)
    if kind.kind == "c" and kind.isnative:
        return 2 * LETTERS.get(("f", kind.itemsize // 2), "?").ljust(kind.itemsize // 2, ".")
    if kind.kind == "V":
        return "x" * kind.itemsize
    letter = LETTERS.get((kind.kind, kind.itemsize), "?") if kind.isnative else "?"
    return letter.ljust(kind.itemsize, ".")


cdef str layout_told(str layout):
    """A layout in words."""
    parts = []
    for text in re.findall(r"[^.x]\.*|x+", layout):
        told = f"padding of {len(text)} bytes" if text[0] == "x" else WORDS[text[0]]
        if parts and parts[-1][0] == told:
            parts[-1][1] += 1
        else:
            parts.append([told, 1])
    told = [f"{count} x {what}" if count > 1 else what for what, count in parts]
    return ", ".join(told if len(told) <= 8 else [*told[:8], "..."])


cdef bint is_of_kind(const Py_buffer* view, int kind) noexcept:
    """Are these numbers of the kind? Bytes are none, and a structure is none either. See Python's module struct."""
    cdef const char* format = b"B"
    cdef size_t count
    if view.format != NULL:
        format = view.format
    count = strlen(format)
    if count == 2 and strchr(b"@=<", format[0]) != NULL:
        format, count = format + 1, 1
    return count == 1 and strchr(b"efd" if kind == FLOAT else b"cbB?hHiIlLqQnN", format[0]) != NULL


cdef object argument_value(Parameters self, Py_ssize_t at, const l0rt_arg* value):
    cdef int kind = ANY if self.expected == NULL else self.expected[at].kind
    cdef bytes found
    if value.value == NULL:
        made = LocalMemory(value.size)
        return made
    found = (<const char*>value.value)[:value.size]
    if kind == POINTER or kind == INT:
        return int.from_bytes(found, "little", signed=kind == INT)
    return np.frombuffer(found, f"f{value.size}")[0].item() if kind == FLOAT else found


cdef str place(Parameters self, Py_ssize_t at):
    """How an error names an argument."""
    name = self.arguments[at].name if self.arguments is not None else ""
    return f"{self.name}() argument {at}{f' ({name})' if name else ''}"


cdef int refuse_number(Parameters self, Py_ssize_t at, value, uint32_t size) except -1:
    raise ValueError(f"{place(self, at)} must fit an int of {size} bytes, got {value}")


cdef int wrong(Parameters self, Py_ssize_t at, value) except -1:
    got = type(value).__name__
    if self.arguments is None:
        raise TypeError(f"{place(self, at)}: a native module does not tell its types, so that it must be a Buffer, "
                        f"LocalMemory, None, an address as numpy.uint64(x.ptr), or a NumPy or ctypes number such as "
                        f"numpy.int32(1), got {got}")
    argument = self.arguments[at]
    if argument.kind == "pointer":
        told = "a Buffer, an address, l0rt.Pointer(address) or None"
        kind = dlpack_type(value)
        if kind == DL_CPU or (PyObject_CheckBuffer(value) and not isinstance(value, np.generic)):
            got += (", which is host memory that the kernel cannot reach: copy it to a Buffer first, or make it with "
                    "l0rt.pinned()")
        elif kind == DL_ONEAPI:
            got += ": l0rt.from_dlpack() makes a Buffer of memory of the device, without a copy"
        elif kind is not None:
            got += (f", which is memory of another kind of device (DLPack's type {kind}) that the kernel cannot reach: "
                    "copy it to the host, and to a Buffer from there")
    elif argument.kind == "local":
        told = "l0rt.LocalMemory(nbytes)"
    elif argument.kind == "image" or argument.kind == "sampler":
        told = f"a l0rt.{argument.kind.capitalize()}"
    elif argument.kind == "value":
        told = {"int": "an int", "float": "a float"}.get(argument.number, "bytes or a ctypes structure")
        told += f" of {argument.size} bytes"
    else:
        where = f" ({argument.source})" if argument.source else ""
        raise UnsupportedError(
            f"{place(self, at)} is {argument.kind}{where}: pipes and queues are not supported")
    raise TypeError(f"{place(self, at)} must be {told}, got {got}")


cdef object dlpack_type(value):
    """DLPack's type of the device of a tensor of other software; None of what is none."""
    if isinstance(value, (type, Buffer)) or not hasattr(value, "__dlpack_device__"):
        return None
    try:
        return int(value.__dlpack_device__()[0])
    except Exception:       # a tensor without memory, which says so in its own words
        return None


cdef object device_of(Parameters self):
    return device_name(lazy.device_type, self.ptr.module.device.index)


known_as(LocalMemory, b"l0rt.LocalMemory")
known_as(Pointer, b"l0rt.Pointer")
