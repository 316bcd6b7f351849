# SPDX-License-Identifier: Apache-2.0
"""Arguments: whole numbers, checked before anything is done with them.

A conversion may run any Python code, an ``__index__``: whoever calls one looks at state only afterwards.
"""

from cpython.bool cimport PyBool_Check
from cpython.buffer cimport PyObject_CheckBuffer
from cpython.long cimport PyLong_CheckExact
from cpython.number cimport PyIndex_Check

from numbers import Integral

from l0rt.whole import whole_number


cdef bint is_whole(value) noexcept:
    """Whether ``value`` is a whole number: an int, or of a type that has an ``__index__``. A bool is none."""
    return PyLong_CheckExact(value) or (PyIndex_Check(value) and not PyBool_Check(value))


cdef object whole(value, str what):
    """``value`` as an int; TypeError, which says ``what`` an int is expected for."""
    return value if PyLong_CheckExact(value) else whole_number(value, what)


cdef bint is_address(value) except -1:
    """Whether ``value`` is a number, and not memory: arrays and NumPy's numbers are both of them by their methods."""
    return is_whole(value) and (not PyObject_CheckBuffer(value) or isinstance(value, Integral))


cdef object address_in(value, int low):
    """The address, from ``low`` on, that a number is."""
    address = whole(value, "an address")
    if not low <= address < 1 << 64:
        raise ValueError(f"an address is from {low} to 2**64 - 1, not {address}")
    return address


def address_of(value):
    """Return the address that a number is, 0 too."""
    return address_in(value, 0)


cdef int clamped_priority(priority) except? 2:
    """The priority that a stream has for a number: -1 high, 0, or 1 low."""
    asked = whole(priority, "priority")
    return -1 if asked < 0 else 1 if asked > 0 else 0


cdef size_t checked_size(nbytes) except? 0:
    if not is_whole(nbytes):
        raise TypeError(f"a size is an int of bytes, not {type(nbytes).__name__}")
    size = whole(nbytes, "a size")
    if size < 0:
        raise ValueError(f"a size must not be negative, got {size}")
    if size >= 1 << 62:
        raise ValueError(f"a size must be below 2**62, got {size}")
    return size
