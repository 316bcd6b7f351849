# SPDX-License-Identifier: Apache-2.0
"""The last failure of each thread, for C callers."""

from cpython.exc cimport PyErr_Fetch, PyErr_NormalizeException, PyErr_Restore
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.string cimport strncpy

from l0rt._base.interrupts import belongs_to_main_thread, raise_later
from l0rt.errors import OutOfMemoryError

cdef extern from *:
    """
    #include <pthread.h>

    #if PY_VERSION_HEX >= 0x030d0000
    #define l0rt_finalizing Py_IsFinalizing
    #else
    #define l0rt_finalizing _Py_IsFinalizing
    #endif

    static __thread struct { int code; char text[1024]; } l0rt_failure;
    static int *l0rt_failure_code(void) { return &l0rt_failure.code; }
    static char *l0rt_failure_text(void) { return l0rt_failure.text; }

    /* The thread state of a thread that Python did not start: deleted when the thread ends. */
    static pthread_key_t l0rt_attached;

    static void l0rt_detach(void *state) {
      if (!Py_IsInitialized() || l0rt_finalizing()) return; /* finalization deletes all thread states */
      /* Not PyGILState_Release(): the C library may have cleared Python's own key before it calls this. */
      PyEval_RestoreThread((PyThreadState *)state);
      PyThreadState_Clear((PyThreadState *)state);
      PyThreadState_DeleteCurrent();
    }

    static int l0rt_attach_start(void) { return pthread_key_create(&l0rt_attached, l0rt_detach); }

    static int l0rt_attach(void) {
      if (PyGILState_GetThisThreadState() != NULL || !Py_IsInitialized() || l0rt_finalizing()) return 0;
      PyGILState_Ensure();
      pthread_setspecific(l0rt_attached, PyEval_SaveThread());
      return 1;
    }

    /* Whether the exception that is set would stay for ever: no Python code has called this thread's functions. */
    static int l0rt_is_uncaught(void) {
      return pthread_getspecific(l0rt_attached) == (void *)PyGILState_GetThisThreadState() && PyEval_GetFrame() == NULL;
    }
    """
    int* l0rt_failure_code() noexcept nogil
    char* l0rt_failure_text() noexcept nogil
    int l0rt_attach_start() noexcept
    bint l0rt_attach() noexcept nogil
    bint l0rt_is_uncaught() noexcept


if l0rt_attach_start() != 0:
    raise MemoryError("no key for the thread states of threads that Python did not start")


cdef bint attach() noexcept nogil:
    return l0rt_attach()


cdef int note_failure() except -1 nogil:
    cdef PyObject* kind = NULL
    cdef PyObject* value = NULL
    cdef PyObject* trace = NULL
    with gil:
        PyErr_Fetch(&kind, &value, &trace)
        if kind == NULL:        # another function of the table has noted it already
            return -1
        PyErr_NormalizeException(&kind, &value, &trace)
        keep_failure(<object>value)
        if l0rt_is_uncaught():
            Py_XDECREF(kind)
            Py_XDECREF(value)
            Py_XDECREF(trace)
        else:
            PyErr_Restore(kind, value, trace)
    return -1


cdef int fail_with(error) except -1:
    keep_failure(error)
    if l0rt_is_uncaught():
        return -1
    raise error


cdef void keep_failure(object error) noexcept:
    try:
        code = getattr(error, "code", None)
        if code is None and isinstance(error, OutOfMemoryError):
            code = OUT_OF_MEMORY
        text = f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:1023]
    except BaseException as failure:    # raised by a signal handler that ran during this code
        if belongs_to_main_thread(failure):
            raise_later(failure)
        code, text = None, type(error).__name__.encode()
    l0rt_failure_code()[0] = code[1] if code else -1
    strncpy(l0rt_failure_text(), <const char*>text, 1024)


OUT_OF_MEMORY = ("ERROR_OUT_OF_DEVICE_MEMORY", 0x70000003)


cdef int failure_last(char* text, size_t size) noexcept nogil:
    if text != NULL and size != 0:
        strncpy(text, l0rt_failure_text(), size - 1)
        text[size - 1] = 0
    return l0rt_failure_code()[0]
