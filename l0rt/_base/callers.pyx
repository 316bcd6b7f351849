# SPDX-License-Identifier: Apache-2.0
"""Whose line a warning or a log line is about: the user's, which is the innermost one outside of l0rt.

Compiled, so that it has no frame of its own, and so that no signal handler runs in it: objects warn while they go.
"""

import os
import sys
import warnings

from l0rt._base.interrupts import belongs_to_main_thread, raise_later

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_ours(frame):
    """Return whether a Python frame is l0rt's own; compiled functions have none."""
    return frame.f_code.co_filename.startswith(_HERE)


cdef bint is_import(frame) except -1:
    return "importlib" in frame.f_code.co_filename and "_bootstrap" in frame.f_code.co_filename


def level():
    """Return the ``stacklevel`` with which the caller's warning or log entry names the user's line."""
    try:
        frame = sys._getframe(0)
    except ValueError:              # a thread that Python did not start
        return 1
    depth = 1
    while frame is not None and (is_ours(frame) or is_import(frame)):
        if not is_import(frame):    # Python does not count these either
            depth += 1
        frame = frame.f_back
    return 1 if frame is None else depth


def warn(message, category=UserWarning):
    """Warn of something on the user's line."""
    warnings.warn(message, category, stacklevel=level())


def warn_late(message, category):
    """Warn where no exception can be raised. An interrupt that comes meanwhile is raised after it."""
    try:
        warn(message, category)
    except BaseException as failure:
        if not belongs_to_main_thread(failure) or not raise_later(failure):
            raise
