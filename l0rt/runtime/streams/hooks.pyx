# SPDX-License-Identifier: Apache-2.0
"""Hooks: functions that are called for streams, events and buffers, by kind; the mode for implicit synchronisation."""

from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable
from libc.stdint cimport uint64_t

from l0rt._base.arguments cimport is_whole, whole
from l0rt._base.interrupts cimport interrupts_hold, interrupts_let_go

from l0rt._base import callers
from l0rt._base.interrupts import belongs_to_main_thread, raise_later

cdef extern from *:
    """
    /* Some bits are changed with the GIL, others under a lock of C. */
    static void l0rt_set_bit(int *bits, int bit, int on) {
      if (on) __atomic_fetch_or(bits, 1 << bit, __ATOMIC_SEQ_CST);
      else __atomic_fetch_and(bits, ~(1 << bit), __ATOMIC_SEQ_CST);
    }
    """
    void set_bit "l0rt_set_bit" (int* bits, int bit, bint on) noexcept nogil

NAMES = ("event_creation", "event_deletion", "event_record", "event_wait", "event_synchronization",
         "memory_allocation", "memory_deallocation", "stream_creation", "stream_synchronization", "stream_wait",
         "device_synchronization", "copy", "fill", "memory_use", "host_access", "kernel_launch", "kernel_access",
         "graph_replay")
# How many numbers each kind hands over.
cdef tuple _counts = (1, 1, 2, 2, 1, 3, 1, 1, 1, 2, 1, 4, 3, 2, 3, 2, 4, 2)

cdef list _callbacks = [()] * len(NAMES)


cdef void call_hooks(int kind, uint64_t a, uint64_t b, uint64_t c, uint64_t d) noexcept nogil:
    if hooked >> kind & 1:
        with gil:
            call_all(kind, (a, b, c, d))


cdef void call_all(int kind, tuple values) noexcept:
    cdef bint holds = interrupts_hold()
    for callback, count in _callbacks[kind]:
        try:
            callback(*values[:count])
        except BaseException as failure:
            report_unraisable(callback, failure)
    if holds:
        interrupts_let_go()


def report_unraisable(function, failure):
    """Report the exception of a callback, which nothing could catch. An interrupt that came while it ran is not its
    own,
    and is raised once it is over."""
    if belongs_to_main_thread(failure) and raise_later(failure):
        return
    PyErr_SetObject(type(failure), failure)
    PyErr_WriteUnraisable(function)     # calls sys.unraisablehook, whose argument only the interpreter can make


def add(str name, callback, count=None):
    """Call ``callback`` at every ``name`` from now on, with the first ``count`` numbers, or all that there are."""
    if not callable(callback):
        raise TypeError(f"a callback must be callable, got {type(callback).__name__}")
    kind = NAMES.index(name)
    _callbacks[kind] += ((callback, _counts[kind] if count is None else count),)
    set_bit(&hooked, kind, True)


def remove(str name, callback):
    """Call ``callback`` no more; ValueError if it was not added."""
    kind = NAMES.index(name)
    kept = list(_callbacks[kind])
    del kept[[each for each, _ in kept].index(callback)]
    _callbacks[kind] = tuple(kept)
    if not kept:
        set_bit(&hooked, kind, False)


cdef void note_timeline(bint on) noexcept nogil:
    set_bit(&hooked, TIMELINE, on)


cdef void note_captures(bint on) noexcept nogil:
    set_bit(&hooked, CAPTURES, on)


cdef void note_sleep(bint on) noexcept nogil:
    set_bit(&hooked, SLEEP, on)


cdef int implicit_sync(str what, str whom) except -1:
    if sync_mode == 2:
        raise RuntimeError(f"{what} synchronizes implicitly with {whom}")
    callers.warn(f"{what} synchronizes implicitly with {whom}")
    return 0


def set_sync_debug_mode(mode):
    """Set what happens when a call makes the host wait implicitly.

    Parameters
    ----------
    mode : "default", "warn", "error", or 0, 1, 2
        Do nothing, warn, or raise RuntimeError.

    Raises
    ------
    RuntimeError
        There is no such mode.

    Notes
    -----
    The modes, and the text with which the error begins, are those of ``torch.cuda.set_sync_debug_mode``.
    """
    global sync_mode
    words = ("default", "warn", "error")
    number = whole(mode, "a mode") if is_whole(mode) else words.index(mode) if mode in words else -1
    if 0 <= number <= 2:
        sync_mode = number
    else:
        raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, got {mode!r}")


def get_sync_debug_mode():
    """Return the mode that `set_sync_debug_mode` has set: 0, 1 or 2.

    Returns
    -------
    int
    """
    return sync_mode
