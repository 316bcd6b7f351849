# SPDX-License-Identifier: Apache-2.0
"""Files of snapshots: read without running anything that is in them.

A snapshot is a pickle or JSON. A pickle may name any function of Python's and call it; here it may name none, so that
it is plain containers, numbers and texts or is refused. What it contains is not trusted either: `history` checks it.
"""

import gc
import json
import os
import pickle
import resource
import signal
import stat
import warnings
from contextlib import contextmanager

from l0rt._base.integers import size_text
from l0rt._base.paths import plain_path
from l0rt.cli.memory.stacks import printable

MOST_BYTES = 8 << 30
MARGIN = 64 << 20  # of memory, for what a limit has to leave free
SMALL = 32 << 10  # bytes of a pickle that is read in a moment, whatever is in it
LEAST_SECONDS, BYTES_PER_SECOND = 2, 1 << 20  # of processor time for a larger one: honest ones take a twentieth


class NotASnapshot(Exception):
    """The file is no snapshot of memory; one line says why."""


class _Plain(pickle.Unpickler):
    """An unpickler that makes no object of any class."""

    def find_class(self, module, name):
        raise NotASnapshot(f"its pickle asks for {printable(f'{module}.{name}')}, and a snapshot has only plain values")

    def persistent_load(self, _):
        raise NotASnapshot("its pickle asks for an object from elsewhere")


def load(path):
    """Return the snapshot in a file: a dict with ``segments`` and ``device_traces``. `NotASnapshot` says what is wrong.

    Parameters
    ----------
    path : str or os.PathLike
        A file that ``dump_snapshot`` wrote, of l0rt or of torch, or the same as JSON.
    """
    path = plain_path(path)
    name = printable(path)
    try:
        with open(path, "rb", opener=_open_at_once) as file, bounded_memory():
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise NotASnapshot("it is no regular file")
            if about.st_size > MOST_BYTES:
                raise NotASnapshot(f"it has {size_text(about.st_size)}, more than {size_text(MOST_BYTES)}")
            return _bounded(_checked(_parsed(file)), about.st_size)
    except OSError as e:
        raise NotASnapshot(f"cannot read {name}: {e.strerror or e}") from None
    except NotASnapshot as e:
        raise NotASnapshot(f"{name} is no snapshot of memory: {e}") from None
    except MemoryError:
        raise NotASnapshot(f"{name} does not fit into this machine's memory: record fewer entries") from None


def _open_at_once(path, flags):
    """A named pipe without a writer is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _parsed(file):
    start = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    file.seek(0)
    if not start:
        raise NotASnapshot("it is empty")
    was_enabled = gc.isenabled()
    gc.disable()  # it would look at millions of new objects again and again
    try:
        if start in (b"{", b"["):
            return json.loads(file.read().decode("utf-8-sig"), parse_constant=_no_number)
        _check_time(file, os.fstat(file.fileno()).st_size)
        return _Plain(file).load()
    except (NotASnapshot, MemoryError):
        raise
    except RecursionError:
        raise NotASnapshot("its values are nested too deeply") from None
    except Exception as e:  # what a damaged pickle raises is any exception at all
        kind = "JSON" if start in (b"{", b"[") else "pickle"
        raise NotASnapshot(f"it is a damaged {kind}, or none: {printable(str(e) or type(e).__name__, 200)}") from None
    finally:
        if was_enabled:
            gc.enable()


def _check_time(file, nbytes):
    """Refuse a pickle that takes more time than its size accounts for: a file can have keys that all collide.

    Nothing can interrupt the unpickler, so another process reads the file first, with a limit."""
    if nbytes <= SMALL:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads: the child only reads, and ends
        child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGXCPU, signal.SIG_DFL)
            for what, most in (
                (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, LEAST_SECONDS + nbytes // BYTES_PER_SECOND)
            ):  # fmt: skip
                soft, hard = resource.getrlimit(what)
                limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
                resource.setrlimit(what, (min([most, *limits]), hard))
            _Plain(file).load()
        finally:
            os._exit(0)  # what it raises the parent raises again
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        raise NotASnapshot("it takes more time to read than a file of its size may: its keys collide")
    file.seek(0, os.SEEK_END)  # the position is both processes'; a seek to the start alone may trust the buffer
    file.seek(0)


def _no_number(text):
    raise NotASnapshot(f"it has {text}, which is no number of JSON")


def _checked(value):
    """Return the snapshot as a dict of lists; what ``memory_snapshot`` returns has only segments."""
    if type(value) is list:
        value = {"segments": value, "device_traces": []}
    if type(value) is not dict:
        raise NotASnapshot(f"it has a {type(value).__name__}, not a dict")
    missing = [key for key in ("segments", "device_traces") if key not in value]
    if missing:
        raise NotASnapshot(f"it has no {missing[0]!r}")
    return value


def _bounded(value, nbytes):
    """Refuse what is more than its file: each element of a list takes a byte, but a list can occur again and again."""
    lists = [value.get(key) for key in ("device_traces", "host_traces")]
    parts = [trace for traces in lists if type(traces) is list for trace in traces if type(trace) is list]
    segments = [value.get(key) for key in ("segments", "host_segments")]
    rows = [row for some in segments if type(some) is list for row in some if type(row) is dict]
    parts += [blocks for row in rows if type(blocks := row.get("blocks")) is list]
    total = sum(map(len, parts))
    if total > nbytes:
        raise NotASnapshot(f"it has {nbytes:,} bytes, and lists of {total:,} entries: the same ones again and again")
    return value


@contextmanager
def bounded_memory():
    """A damaged file may ask for any amount of memory: it gets what the machine has, and then MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = _mapped() + max(_available() - MARGIN, MARGIN)
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([most, *limits]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _mapped():
    """Return how much address space this process has taken; without /proc, more than it has at this point."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 8 << 30


def _available():
    """Return how much memory the machine has left; without /proc, what is free in the narrow sense."""
    try:
        with open("/proc/meminfo") as file:
            facts = dict(line.split(":", 1) for line in file)
    except OSError:
        return os.sysconf("SC_AVPHYS_PAGES") * resource.getpagesize()
    return int(facts.get("MemAvailable", facts["MemFree"]).split()[0]) << 10
