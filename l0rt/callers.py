"""Whose line a warning or a log line is about: the user's, which is the innermost one outside of l0rt."""

import os
import sys
import warnings

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def is_ours(frame):
    """Return whether a Python frame is l0rt's own; compiled functions have none."""
    return frame.f_code.co_filename.startswith(_HERE)


def level():
    """Return the ``stacklevel`` with which who calls this, and then warns or logs, names the user's line."""
    frame, found = sys._getframe(1), 1
    while frame is not None and (is_ours(frame) or _is_import(frame)):
        found += not _is_import(frame)  # Python does not count these either
        frame = frame.f_back
    return 1 if frame is None else found


def _is_import(frame):
    return "importlib" in frame.f_code.co_filename and "_bootstrap" in frame.f_code.co_filename


def warn(message, category=UserWarning):
    """Warn of something on the user's line."""
    warnings.warn(message, category, stacklevel=level())
