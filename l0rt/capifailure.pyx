# SPDX-License-Identifier: Apache-2.0
"""Failures of the C API: the exception that is set, and its code and text for a caller without the GIL."""

from cpython.exc cimport PyErr_Fetch, PyErr_NormalizeException, PyErr_Restore
from cpython.object cimport PyObject
from libc.string cimport strncpy

from l0rt._base.interrupts import belongs_to_main_thread, raise_later

cdef extern from *:
    """
    /* What the thread's last failure was, for callers without the GIL. */
    static __thread struct { int code; char text[1024]; } l0rt_failure;
    static int *l0rt_failure_code(void) { return &l0rt_failure.code; }
    static char *l0rt_failure_text(void) { return l0rt_failure.text; }
    """
    int* l0rt_failure_code() noexcept nogil
    char* l0rt_failure_text() noexcept nogil


UNKNOWN_THREAD = ("a call failed in a thread that has no Python thread state, which the reason was lost with: "
                  "PyGILState_Ensure() and PyEval_SaveThread() at the thread's start keep one")


cdef int failed() except -1 nogil:
    """Store the exception that is set, for `l0rt_last_error`. It stays set."""
    cdef PyObject* kind = NULL
    cdef PyObject* value = NULL
    cdef PyObject* trace = NULL
    with gil:
        PyErr_Fetch(&kind, &value, &trace)
        if kind == NULL:    # the exception was lost with the thread state that only the raising code had
            note(RuntimeError(UNKNOWN_THREAD))
        else:
            PyErr_NormalizeException(&kind, &value, &trace)
            note(<object>value)
            PyErr_Restore(kind, value, trace)
    return -1


cdef void note(object error) noexcept:
    try:
        code = getattr(error, "code", None)
        text = f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:1023]
    except BaseException as failure:    # raised by a signal handler that ran during this code
        if belongs_to_main_thread(failure):
            raise_later(failure)
        code, text = None, type(error).__name__.encode()
    l0rt_failure_code()[0] = code[1] if code else -1
    strncpy(l0rt_failure_text(), <const char*>text, 1024)


cdef int refuse_null(const char* what) except -1 nogil:
    with gil:
        error = ValueError(f"{what.decode()} is needed, got NULL")
        note(error)
        raise error


cdef int refuse_flags(unsigned int flags, const char* whose, int known) except -1 nogil:
    with gil:
        error = ValueError(f"the flags of {whose.decode()} must be 0 or {known}, got {flags}")
        note(error)
        raise error


cdef int failure_last(char* text, size_t size) noexcept nogil:
    if text != NULL and size != 0:
        strncpy(text, l0rt_failure_text(), size - 1)
        text[size - 1] = 0
    return l0rt_failure_code()[0]
