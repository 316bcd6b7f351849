# SPDX-License-Identifier: Apache-2.0
"""Who is asked before an allocation fails, and may free memory."""

from _thread import get_ident

_observers: list = []
_reporters: list = []
_asking: set[int] = set()  # threads whose observers are being asked


def attach_observer(observer):
    """Call ``observer(device, nbytes, allowed, free)`` before an allocation fails; return what detaches it."""
    if not callable(observer):
        raise TypeError(f"an observer must be a function of four arguments, got {type(observer).__name__}")
    _observers.append(observer)
    return lambda: _observers.remove(observer) if observer in _observers else None


def asked(*what):
    """Tell every observer; return whether one has freed memory."""
    return ask(_observers, *what)


def ask(observers, *what):
    """Call these observers, and return whether one has freed memory. A failure during these calls does not call them
    again."""
    thread = get_ident()
    if thread in _asking or not observers:
        return False
    _asking.add(thread)
    try:
        has_freed = [observer(*what) is True for observer in list(observers)]
        return any(has_freed)
    finally:
        _asking.discard(thread)


def set_reporter(reporter):
    """Call ``reporter(device)`` when an allocation has failed for good; None: nobody. It returns a sentence for the
    error."""
    _reporters[:] = [] if reporter is None else [reporter]


def reported(device):
    """Tell the reporter, and return what it says with a blank before it."""
    return "".join(f" {said}" for said in (reporter(device) for reporter in list(_reporters)) if said)
