# SPDX-License-Identifier: Apache-2.0
"""Interrupts: exceptions of signal handlers that are raised where no caller could catch them.

Signal handlers run in the main thread alone. So one list is enough, and whatever it keeps is that thread's to raise.
"""

import os
import sys
from threading import get_ident, main_thread

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_DECREF, Py_INCREF

from l0rt._base.arguments cimport add_to_type

from l0rt.errors import L0Error

ctypedef int (*pending_call)(void*) except -1

cdef extern from "Python.h":
    int Py_AddPendingCall(pending_call function, void* argument)

cdef list _kept = []
cdef list _later = []           # interrupts that came during callbacks, to be raised when the outermost callback ends
cdef int _holds = 0
# Kept here, because asking Python for it runs byte codes, at which another interrupt may come.
_main = main_thread().ident


def _forked():
    global _main, _holds
    if get_ident() != _main:        # what the parent's main thread was in the middle of has no end here
        _main = get_ident()
        _holds = 0
        _later.clear()


os.register_at_fork(after_in_child=_forked)


@cython.final
@cython.binding(False)
cdef class at_once:
    """``at_once(function)[argument]`` calls the function. Python runs handlers of signals after a call, but not after
    an operator: no exception of theirs comes between the function's work and the next step of its caller."""
    cdef object function

    def __init__(self, function):
        self.function = function

    def __getitem__(self, argument):
        return self.function(argument)


cdef int enter_at_once(tuple types) except -1:
    """Let ``with`` call `__exit__` of compiled classes whenever `__enter__` has returned.

    Python 3.14 alone runs handlers of signals between the two (https://github.com/python/cpython/issues/148874): after
    calls of compiled functions, not after those of Python's own.
    """
    cdef dict names
    # In l0rt's folder by its name, so that it is no frame of the user's.
    place = os.path.join(os.path.dirname(__file__), "<enter>")
    for type in types if sys.version_info[:2] == (3, 14) else ():
        names = {"enter": at_once(type.__enter__)}
        exec(compile("def __enter__(self): return enter[self]", place, "exec"), names)
        add_to_type(type, "__enter__", names["__enter__"])
    return 0


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


cdef bint interrupts_hold() noexcept:
    """Raise nothing before `interrupts_let_go`: it would end in functions whose errors nobody catches. False on other
    threads than the main one, where nothing is raised."""
    global _holds
    cdef bint is_main = get_ident() == _main
    _holds += is_main
    return is_main


cdef void interrupts_let_go() noexcept:
    global _holds
    _holds -= 1
    while _holds == 0 and _later:
        raise_later(_later.pop(0))


def raise_later(failure):
    """Let the main thread raise ``failure`` at its next bytecode, once no callback runs; return whether it will."""
    if _holds:
        _later.append(failure)
        return True
    Py_INCREF(failure)
    if Py_AddPendingCall(raise_now, <void*>failure) == 0:
        return True
    Py_DECREF(failure)              # as many calls as fit are on their way already
    return False


def belongs_to_main_thread(failure):
    """Whether ``failure`` is an interrupt that came to this thread while it ran a user's function: no error of that
    function, and raised by `raise_later` where no exception can be raised."""
    return not isinstance(failure, Exception) and get_ident() == _main
