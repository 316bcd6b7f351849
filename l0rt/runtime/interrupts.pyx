"""Interrupts: what a signal handler raises while code waits that has nobody to raise it to.

Signal handlers run in the main thread alone. So one list is enough, and whatever it keeps is that thread's to raise.
"""

from threading import get_ident, main_thread

from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_DECREF, Py_INCREF

from l0rt.errors import L0Error

ctypedef int (*pending_call)(void*) except -1

cdef extern from "Python.h":
    int Py_AddPendingCall(pending_call function, void* argument)

cdef list _kept = []


cdef bint signals_pass() noexcept nogil:
    with gil:
        try:
            PyErr_CheckSignals()
        except BaseException as raised:
            _kept.append(raised)
            return False
    return True


cdef int interrupt_raise() except -1:
    if _kept:
        raise _kept.pop()
    raise L0Error("a wait was interrupted")


cdef void interrupt_defer() noexcept nogil:
    with gil:
        if _kept:
            raise_later(_kept.pop())


cdef int raise_now(void* argument) except -1:
    failure = <object>argument
    Py_DECREF(failure)
    raise failure


def raise_later(failure):
    """Let the main thread raise ``failure`` at its next bytecode; return whether it will."""
    Py_INCREF(failure)
    if Py_AddPendingCall(raise_now, <void*>failure) == 0:
        return True
    Py_DECREF(failure)              # as many calls as fit are on their way already
    return False


def belongs_to_main_thread(failure):
    """Whether ``failure`` is an interrupt that came to this thread while it ran somebody's function: no error of that
    function, and to be raised where nobody can by `raise_later`."""
    return not isinstance(failure, Exception) and get_ident() == main_thread().ident
