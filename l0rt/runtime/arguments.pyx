"""Arguments about bytes, checked before anything is done with them."""

from cpython.buffer cimport PyObject_CheckBuffer, PyObject_GetBuffer


cdef int check_sizes(size_t source, size_t target) except -1:
    if source != target:
        raise ValueError(f"sizes differ: the source has {source} bytes, the target {target}")
    return 0


cdef int get_view(what, Py_buffer* view, int flags, str where) except -1:
    if not PyObject_CheckBuffer(what):
        raise TypeError(f"{where}() takes a Buffer or an object with the buffer protocol, not {type(what).__name__}")
    PyObject_GetBuffer(what, view, flags)
    return 0


cdef size_t checked_size(nbytes) except? 0:
    if isinstance(nbytes, bool) or not hasattr(nbytes, "__index__"):
        raise TypeError(f"a size is an int of bytes, not {type(nbytes).__name__}")
    size = nbytes.__index__()
    if size < 0:
        raise ValueError(f"a size must not be negative, got {size}")
    if size >= 1 << 62:
        raise ValueError(f"a size must be below 2**62, got {size}")
    return size
