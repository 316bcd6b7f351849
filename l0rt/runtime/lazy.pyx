# SPDX-License-Identifier: Apache-2.0
"""Lazy initialisation: once, on first use, under a lock, aware of fork; one mechanism for every device type."""

import atexit
import gc
import os
import sys
import threading
import time

cimport cython
from libc.stdlib cimport realloc

from l0rt.ze cimport table

cdef extern from "<pthread.h>" nogil:
    int pthread_atfork(void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil,
                       void (*child)() noexcept nogil)

cdef enum:
    UNOPENED = 0
    READY = 1
    FORKED = 2
    CLOSED = 3

ctypedef void (*forget_fn)() noexcept nogil

cdef forget_fn* _forgetters = NULL
cdef int _forgetter_count = 0
cdef bint _forked = False
cdef bint _has_handlers = False

_instances = []   # every LazyInit
_everybody = []   # every LazyInit that was ever opened
_closers = []     # (phase, closer)


cdef int on_fork_child(void (*forget)() noexcept nogil) except -1:
    global _forgetters, _forgetter_count
    cdef forget_fn* grown = <forget_fn*>realloc(_forgetters, (_forgetter_count + 1) * sizeof(forget_fn))
    if grown == NULL:
        raise MemoryError()
    grown[_forgetter_count] = forget
    _forgetters = grown
    _forgetter_count += 1
    return 0


cdef void _in_child() noexcept nogil:
    """The driver's handles and threads stayed in the parent: nothing may call it again here."""
    global _forked
    _forked = True
    table.leave_driver()
    for i in range(_forgetter_count):
        _forgetters[i]()


def _after_fork():
    """Another thread of the parent may have held a lock, or have been opening a driver half of which is now here."""
    cdef LazyInit lazy
    for lazy in _instances:
        lazy.lock = threading.RLock()
        if lazy.opening:
            lazy.opening = False
            lazy.state = FORKED
            lazy.origin = "a thread that was just doing so"
            _in_child()


os.register_at_fork(after_in_child=_after_fork)


# The order at exit: running work ends first; then each object is destroyed before the objects that it uses.
# VIEWS asks whether the host may still read memory of l0rt: then what it needs stays, and the system ends it.
DRAIN, LISTS, MODULES, EVENTS, MEMORY, VIEWS, CONTEXTS = range(7)


cdef double EXIT_WAIT = 5.0     # seconds in which all that still runs may end while the interpreter exits
cdef double _exit_deadline = 0.0


def exit_time_left():
    """Return how many seconds the exiting interpreter may still wait for what runs: one budget for everything."""
    return max(_exit_deadline - time.monotonic(), 0.0)


def on_exit(phase, closer):
    """Run ``closer`` once at interpreter exit, in the order of the phases, if anything was initialised.

    One that returns False ends it there.
    """
    _closers.append((phase, closer))


cdef str line_of_caller():
    """The innermost line of Python code; compiled code has no lines."""
    try:
        frame = sys._getframe()
    except ValueError:
        return "a thread that Python did not start"
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


cdef int close_all(list closers) except -1:
    """All of this is compiled, so that no signal handler runs in between; and no finalizer: each might use the rest."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        for closer in closers:
            if closer() is False:
                break
    finally:
        if collecting:
            gc.enable()
    return 0


def _at_exit():
    """Leave in order. What cannot come to rest is left to the system: to destroy what a hung device or another thread
    still uses would hang or crash."""
    global _exit_deadline
    _exit_deadline = time.monotonic() + EXIT_WAIT
    if not _forked:
        ordered = sorted(_closers, key=lambda entry: entry[0])
        drained = [closer() for phase, closer in ordered if phase == DRAIN]
        if threading.active_count() == 1 and False not in drained:
            close_all([closer for phase, closer in ordered if phase != DRAIN])
    for lazy in _everybody:
        (<LazyInit>lazy).state = CLOSED
    table.alive = 0


@cython.binding(False)
cdef class LazyInit:
    """The state of one device type, which is opened at its first use."""

    def __cinit__(self, str device_type, opener):
        self.device_type = device_type
        self.opener = opener
        self.lock = threading.RLock()
        self.queued = []
        self.state = UNOPENED
        _instances.append(self)

    @property
    def initialized(self):
        """Whether this process opened the device type and may use it."""
        return self.is_ready()

    cdef bint is_ready(self) noexcept:
        return self.state == READY and not _forked

    @property
    def opened(self):
        """Whether this process or the one that it was forked from ever opened the device type."""
        return self.state != UNOPENED

    cdef int ensure(self) except -1:
        if self.is_ready():
            return 0
        self._open()
        return 0

    def init(self):
        """Initialise now, unless that has been done; after a failure the next call tries again."""
        self.ensure()

    def call(self, function, *args):
        """Run ``function`` now if initialised, else right after initialisation."""
        if self.initialized or self.opening:
            function(*args)
            return
        # its import and its work are expensive: l0rt's own modules give the name of the caller
        import traceback
        self.enqueue(function, args, traceback.format_stack())      # compiled code has no frame

    cdef int call_for(self, str whom, function) except -1:
        """The same for actions of l0rt itself, on behalf of ``whom``."""
        self.enqueue(function, (), [f"  {whom}\n"])
        return 0

    cdef int enqueue(self, function, tuple args, list origin) except -1:
        with self.lock:
            if self.initialized or self.opening:
                function(*args)
            else:
                self.queued.append((function, args, origin))
        return 0

    def _open(self):
        name = self.device_type.upper()
        if _forked and self.state != UNOPENED:
            raise RuntimeError(
                f"Cannot re-initialize {name} in forked subprocess. To use {name} with multiprocessing, "
                f"you must use the 'spawn' start method (the parent initialised it at {self.origin})")
        if self.state == CLOSED:
            raise RuntimeError(f"{name} was shut down: the interpreter is exiting")
        with self.lock:
            if self.state == READY:
                return
            if self.opening:
                if self.origin is None:
                    raise RuntimeError(f"{name} is being initialised now: a signal handler or a finalizer that "
                                       "interrupts this cannot use it yet")
                return
            self.opening = True
            try:
                self._open_locked()
            finally:
                self.opening = False

    def _open_locked(self):
        global _has_handlers
        self.opener()
        self.origin = line_of_caller()
        if not _has_handlers:
            _has_handlers = True
            pthread_atfork(NULL, NULL, _in_child)
            atexit.register(_at_exit)
        _everybody.append(self)
        try:
            self._run_queued()
        finally:
            self.state = READY      # not before: another thread's first use comes behind the queued calls

    def _run_queued(self):
        """Run all queued calls; raise for the first that failed."""
        failed = None
        while self.queued:
            function, args, origin = self.queued.pop(0)
            try:
                function(*args)
            except Exception as e:
                failed = failed or (e, origin)
        if failed is not None:
            e, origin = failed
            raise Exception(
                f"{self.device_type.upper()} call failed lazily at initialization with error: {e}\n\n"
                f"{self.device_type.upper()} call was originally invoked at:\n\n{''.join(origin)}") from e
