# SPDX-License-Identifier: Apache-2.0
"""Arguments, checked before anything is done with them: whole numbers, and the memory of objects that have the buffer
protocol, if it holds plain numbers.

A conversion may run any Python code, an ``__index__``: callers look at state only afterwards.
"""

import ctypes
from collections.abc import Sequence
from numbers import Integral

from cpython.bool cimport PyBool_Check
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyIndex_Check
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Check, PySlice_Unpack
from libc.string cimport strchr

from l0rt._base import lazynumpy as np
from l0rt._base.integers import whole_number

cdef enum:
    MOST_DIMENSIONS = 64        # of an array of NumPy 2


cdef bint is_whole(value) noexcept:
    """Whether ``value`` is a whole number: an int, or an object with ``__index__``, but not a bool."""
    return PyLong_CheckExact(value) or (PyIndex_Check(value) and not PyBool_Check(value))


cdef object whole(value, str what):
    """``value`` as an int; TypeError, which says ``what`` an int is expected for."""
    return value if PyLong_CheckExact(value) else whole_number(value, what)


cdef bint is_address(value) except -1:
    """Whether ``value`` is a number, and not memory: arrays, tensors and NumPy's numbers are both by their methods."""
    if PyLong_CheckExact(value) or not is_whole(value):
        return PyLong_CheckExact(value)
    return isinstance(value, Integral) or not (PyObject_CheckBuffer(value) or hasattr(value, "__dlpack_device__"))


cdef object address_in(value, int low):
    """The address, from ``low`` on, that a number is."""
    address = whole(value, "an address")
    if not low <= address < 1 << 64:
        raise ValueError(f"an address must be from {low} to 2**64 - 1, got {address}")
    return address


def address_of(value):
    """Return the address that a number is, 0 too."""
    return address_in(value, 0)


cdef int clamped_priority(priority) except? 2:
    """The priority that a stream has for a number: -1 high, 0, or 1 low."""
    number = whole(priority, "priority")
    return -1 if number < 0 else 1 if number > 0 else 0


cdef size_t checked_size(nbytes) except? 0:
    if not is_whole(nbytes):
        hint = ": the product of the shape and the item size" if isinstance(nbytes, (tuple, list)) else ""
        raise TypeError(f"a size must be an int (bytes), got {type(nbytes).__name__}{hint}")
    size = whole(nbytes, "a size")
    if size < 0:
        raise ValueError(f"a size must not be negative, got {size}")
    if size >= 1 << 62:
        raise ValueError(f"a size must be below 2**62, got {size}")
    return size


cdef enum:
    DEEPEST = 32                    # structures within structures


cdef object list_of_protocol(what):
    if is_whole(what) or not hasattr(type(what), "__l0_stream__"):
        return what
    answer = what.__l0_stream__()
    if not isinstance(answer, tuple) or len(answer) != 3 or answer[0] != 0 or answer[1] != "cmdlist_immediate":
        raise TypeError(f"__l0_stream__() must return (0, 'cmdlist_immediate', handle), got {answer!r}")
    return answer[2]


cdef int check_sizes(size_t source, size_t target) except -1:
    if source != target:
        raise ValueError(f"sizes differ: the source has {source} bytes, the target {target}")
    return 0


cdef int check_overlap(const void* target, const void* source, size_t nbytes) except -1:
    """Refuse a copy of bytes onto some of themselves, for which no driver says what becomes of them."""
    cdef size_t low = min(<size_t>target, <size_t>source), high = max(<size_t>target, <size_t>source)
    if low != high and nbytes > high - low:
        raise ValueError(f"the source and the target overlap: {nbytes} bytes at {<size_t>source:#x} and at "
                         f"{<size_t>target:#x}. Copy through another buffer")
    return 0


cdef size_t part_of(index, size_t nbytes, size_t* start) except? 0:
    cdef Py_ssize_t first, stop, step, length
    if not PySlice_Check(index):
        raise TypeError("a Buffer has no items, only parts: x[a:b] is the part from byte a to byte b, and copy_to() "
                        f"copies it to the host; got {type(index).__name__} as the index")
    PySlice_Unpack(index, &first, &stop, &step)
    if step != 1:
        raise ValueError(f"a slice of a Buffer has step 1, got {step}")
    length = PySlice_AdjustIndices(<Py_ssize_t>nbytes, &first, &stop, step)
    start[0] = first
    return length


cdef int get_view(what, Py_buffer* view, int flags, str where) except -1:
    """The memory of an object, which has to hold plain numbers: of copied bytes no object and no pointer is made."""
    if not PyObject_CheckBuffer(what):
        raise TypeError(f"{where}() takes a Buffer or an object with the buffer protocol, not {type(what).__name__}")
    try:
        PyObject_GetBuffer(what, view, flags | PyBUF_FORMAT)
    except (ValueError, BufferError):
        if not is_plain_array(what):
            raise
        PyObject_GetBuffer(what, view, flags)
        return 0
    try:
        if not (is_plain(view.format) and is_plain_object(what)):
            format = "B" if view.format == NULL else view.format.decode("utf-8", "replace")
            raise TypeError(f"{where}() takes memory of plain numbers, not of objects or pointers: "
                            f"{type(what).__name__} of format {format!r}")
    except BaseException:
        PyBuffer_Release(view)
        raise
    return 0


cdef bytes bytes_of(what, str where):
    """The bytes of an object with the buffer protocol."""
    cdef Py_buffer view
    get_view(what, &view, PyBUF_C_CONTIGUOUS, where)
    try:
        return PyBytes_FromStringAndSize(<const char*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef bytes checked_pattern(value, pattern, size_t nbytes):
    if (value is None) == (pattern is None):
        raise TypeError("fill() takes a byte value or a pattern=, one of the two")
    if pattern is None:
        if not is_whole(value):
            raise TypeError(f"fill() takes an int from 0 to 255, not {type(value).__name__}: "
                            "fill(pattern=numpy.float32(value).tobytes()) repeats a number of another type")
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


cdef tuple checked_shape(shape):
    if isinstance(shape, np.ndarray):
        if np.ndarray.dtype.__get__(shape).kind not in "iuO":   # a list has spans of time as ints
            raise TypeError(f"a shape must be an int or a tuple of ints, got an array of {shape.dtype}")
        shape = np.ndarray.tolist(shape)
    if is_whole(shape):
        return (whole(shape, "a shape"),)
    if not isinstance(shape, Sequence) or isinstance(shape, (str, bytes)):  # what has __getitem__ may have no end
        raise TypeError(f"a shape must be an int or a tuple of ints, got {type(shape).__name__}")
    count = len(shape)
    if count > MOST_DIMENSIONS:
        raise ValueError(f"a shape must have at most {MOST_DIMENSIONS} lengths, got {count}")
    return tuple([whole(shape[i], "a length of a shape") for i in range(count)])


cdef object array_of(Py_ssize_t nbytes, dtype, shape):
    kind = np.dtype(dtype)
    if kind.hasobject:
        raise TypeError(f"bytes are no objects: expected a dtype of numbers, got {kind}")
    if nbytes == -1:
        return np.empty(checked_shape(shape), kind)
    if kind.itemsize == 0 or nbytes % kind.itemsize:
        raise ValueError(f"{nbytes} bytes are not a multiple of the {kind.itemsize} bytes of {kind}")
    array = np.empty(nbytes // kind.itemsize, kind)
    return array if shape is None else array.reshape(checked_shape(shape))


cdef bint is_plain_array(what) except -1:
    """Whether NumPy says so where it names no format: that of times, and of other packages' numbers."""
    if isinstance(what, np.ndarray):
        return not np.ndarray.dtype.__get__(what).hasobject     # not what a subclass calls its dtype
    return isinstance(what, np.generic) and not np.generic.dtype.__get__(what).hasobject


cdef bint is_plain_object(what) except -1:
    """Does ctypes say so too? It calls unions and packed structures bytes, whatever they hold."""
    while isinstance(what, memoryview):
        what = what.obj
    if type(type(what)) is type or not isinstance(what, _CTYPES):
        return True
    return is_plain_type(type(what))


_CTYPES = (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData, ctypes._Pointer, ctypes._CFuncPtr)


def is_plain_type(kind):
    """Return whether a type of ctypes holds numbers and characters only."""
    if issubclass(kind, (ctypes.Structure, ctypes.Union)):
        fields = [field[1] for base in kind.__mro__ for field in base.__dict__.get("_fields_", ())]
        return all(is_plain_type(field) for field in fields)
    if issubclass(kind, ctypes.Array):
        return is_plain_type(kind._type_)
    return issubclass(kind, ctypes._SimpleCData) and kind._type_ not in "OPzZX"


cdef bint is_plain(const char* form) noexcept:
    """Does a format of the buffer protocol (PEP 3118; NULL: bytes) name numbers and characters only?

    What is not understood is not plain. A name follows its element, so that nothing hides in one.
    """
    cdef int depth = 0
    cdef bint is_named = True       # a name may not come next
    if form == NULL:
        return True
    if form[0] == 0:
        return False
    while form[0] != 0:
        if form[0] == b":":
            form = strchr(form + 1, b":")
            if is_named or form == NULL:
                return False
            is_named = True
        elif form[0] == b"T" and form[1] == b"{":
            depth += 1
            form += 1
            is_named = True
            if depth > DEEPEST:
                return False
        elif form[0] == b"}":
            depth -= 1
            is_named = False
            if depth < 0:
                return False
        elif form[0] == b"(":       # how often, along each axis
            form += 1
            while b"0" <= form[0] <= b"9" or form[0] == b",":
                form += 1
            if form[0] != b")":
                return False
            is_named = True
        elif form[0] == b"Z":       # complex numbers of two
            form += 1
            if form[0] == 0 or strchr(b"fdg", form[0]) == NULL:
                return False
            is_named = False
        elif strchr(b"@=<>!^ 0123456789", form[0]) != NULL:
            is_named = True
        elif strchr(b"xcbB?hHiIlLqQnNefdgFDGspuw", form[0]) != NULL:
            is_named = False
        else:
            return False
        form += 1
    return depth == 0
