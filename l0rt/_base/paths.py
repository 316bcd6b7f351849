# SPDX-License-Identifier: Apache-2.0
"""Paths of files, as users give them, and of Python; files that are read at once, or complete once they have names."""

import errno
import os
import stat
import sys
from contextlib import contextmanager
from itertools import count

from l0rt._base.integers import size_text

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import TypeAlias

    _Path: TypeAlias = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_numbers = count()  # of parts: threads may write at the same time


def plain_path(path):
    """Return the path as a str.

    open() takes an object with ``__index__`` for a descriptor, also one of a subclass of str or bytes, and closes the
    descriptor in the end: it could be that of the standard output.
    """
    return str.__str__(os.fsdecode(path))


def interpreter():
    """Return the path of a Python that child processes may run; None if no program is known to be one.

    In a program that contains Python, ``sys.executable`` may be the program: started as a child, it would begin anew,
    and start its own child.
    """
    if getattr(sys, "frozen", False):
        return None
    name = "python{}.{}".format(*sys.version_info)
    usual = [os.path.join(prefix, "bin", name) for prefix in (sys.exec_prefix, sys.base_exec_prefix)]
    for path in (sys.executable, getattr(sys, "_base_executable", None), *usual):
        if path and _is_python(os.path.basename(path)) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def _is_python(name):
    """Whether a program of this name is Python: ``python``, ``python3.13t``, ``python3-dbg``."""
    return name.startswith("python") and set(name[6:].removesuffix("-dbg")) <= set("0123456789.dt")


def known_interpreter():
    """The same; RuntimeError if there is none."""
    path = interpreter()
    if path is None:
        program = sys.executable or "this program"
        raise RuntimeError(f"this needs a Python in a process of its own, and {program} is not known to be one")
    return path
def read_file(path, most):
    """Return the bytes of a regular file that has ``most`` bytes at the most; OSError names what else it is.

    A device or a pipe may never end, or never begin.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        content = file.read(most + 1) if facts.st_size <= most else b""  # files of /proc have 0 bytes, and content
    if facts.st_size > most or len(content) > most:
        text = f"it has {size_text(facts.st_size)}, and " if facts.st_size > most else ""
        raise OSError(errno.EFBIG, f"{text}{size_text(most)} are the most", path)
    return content


def _open_at_once(path, flags):
    """A named pipe without a writer is not waited for, and no terminal becomes the process's own."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def write_text(path, text):
    """Write a text into a file, in UTF-8."""
    with open(plain_path(path), "w", encoding="utf-8") as file:
        file.write(text)


@contextmanager
def whole_file(path, mode="wb", **how):
    """Open a file for writing that replaces ``path`` when the block ends; after an exception there is no file."""
    while True:
        part = f"{path}.{os.getpid()}.{next(_numbers)}.part"
        try:
            descriptor = _opened(part, path)
        except FileExistsError:  # of a process that had this number before
            continue
        break
    with _renamed(part, path), open(descriptor, mode, **how) as file:
        yield file


@contextmanager
def numbered_file(path, mode="wb"):
    """The same for the next free name of ``x.1.y``, ``x.2.y`` and so on, if ``path`` is ``x.y``: yields the file and
    its name. Nothing is replaced."""
    stem, ending = os.path.splitext(path)
    for number in count(1):
        name = f"{stem}.{number}{ending}"
        part = f"{name}.part"
        try:
            descriptor = _opened(part, path)  # the process with the part has the number: a hard link could too,
        except FileExistsError:  # but not every file system has those
            continue
        if not os.path.lexists(name):
            break
        os.close(descriptor)
        os.unlink(part)
    with _renamed(part, name), open(descriptor, mode) as file:
        yield file, name


def _opened(part, path):
    try:
        return os.open(part, _NEW, 0o666)
    except FileExistsError:
        raise
    except OSError as e:
        raise _named(e, path) from None


def _named(error, path):
    """Return the error with the name that the user gave: the part's name is internal."""
    return OSError(error.errno, error.strerror, path)


@contextmanager
def _renamed(part, name):
    try:
        yield
        try:
            os.replace(part, name)
        except OSError as e:
            raise _named(e, name) from None
    except BaseException:
        if os.path.exists(part):
            os.unlink(part)
        raise
