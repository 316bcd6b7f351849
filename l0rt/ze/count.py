# SPDX-License-Identifier: Apache-2.0
"""How many GPUs a driver has, found out without opening it in this process.

Level Zero cannot be asked without initialising it, which a forked child would not survive: another process asks. It
uses nothing of l0rt, so that it starts quickly.
"""

import os
import warnings
from _signal import SIGKILL
from errno import EMFILE
from fcntl import F_DUPFD_CLOEXEC, fcntl
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from select import POLLIN, poll

from l0rt import config
from l0rt._base.paths import interpreter
from l0rt.ze import affinity, loader

_COUNT = """
import ctypes, os
def count(library):
    ze = ctypes.CDLL(library)
    u32, p = ctypes.c_uint32, ctypes.c_void_p
    total = integrated = 0
    if ze.zeInit(1) == 0:
        n = u32(0); ze.zeDriverGet(ctypes.byref(n), None)
        drivers = (p * n.value)(); ze.zeDriverGet(ctypes.byref(n), drivers)
        for driver in drivers:
            m = u32(0); ze.zeDeviceGet(p(driver), ctypes.byref(m), None)
            devices = (p * m.value)(); ze.zeDeviceGet(p(driver), ctypes.byref(m), devices)
            for device in devices:
                properties = ctypes.create_string_buffer(1024); properties[0:4] = (3).to_bytes(4, "little")
                ze.zeDeviceGetProperties(p(device), properties)
                if int.from_bytes(properties[16:20], "little") == 1:
                    total += 1
                    integrated += properties[28][0] & 1
    os.write(1, b"\\n%d %d\\n" % (total, integrated))     # a driver may write to it, too
"""
_counted: dict = {}


def count_without_opening(driver):
    """Return how many GPUs the driver ``gpu``, ``cpu`` or a path would give, leaving this process free to fork.

    What could not be found out is 0 and is asked again the next time, but for a driver that gives no answer at all.
    """
    name = loader.library_name(driver)
    asked = name, affinity.environment()  # a mask that is set since then shows others
    if asked not in _counted:
        try:
            answer = _ask_with_descriptors(name)
            total, integrated = (0, 0) if answer is None else map(int, answer.split()[-2:])
            _counted[asked] = total, integrated
        except (OSError, ValueError, IndexError):
            return 0
    total, integrated = _counted[asked]
    hides = total > integrated and config.get("integrated") == "hide"
    return total - integrated if hides else total


def _ask_with_descriptors(library):
    """Ask, above the limit of open descriptors if this process has come up to it."""
    try:
        return _ask(library)
    except OSError as full:
        soft, hard = getrlimit(RLIMIT_NOFILE)
        if full.errno != EMFILE or hard < soft + 4:
            raise
    setrlimit(RLIMIT_NOFILE, (soft + 4, hard))
    try:
        return _ask(library)
    finally:
        setrlimit(RLIMIT_NOFILE, (soft, hard))


def _ask(library, patience=60):
    """Return what a child process writes that counts a driver's GPUs, None if that takes over ``patience`` seconds.

    Not by `subprocess`, whose import costs more than that of all of l0rt's device floor.
    """
    readable, writable = _pipe()
    with open(readable, "rb") as answer:
        try:
            child = _start(library, writable)
        finally:
            os.close(writable)
        answered = False
        try:
            ready = poll()  # select() knows no descriptor above 1023
            ready.register(answer, POLLIN)
            answered = bool(ready.poll(1000 * patience))
            return answer.read() if answered else None
        finally:
            if not answered:
                os.kill(child, SIGKILL)
            _reap(child)


def _reap(child):
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        return  # other code collects every child of this process


def _pipe():
    """Return a pipe apart from the standard descriptors, which the child's are made of and this process may lack."""
    ends = os.pipe()
    try:
        return [fcntl(end, F_DUPFD_CLOEXEC, 3) if end < 3 else end for end in ends]
    finally:
        for end in ends:
            if end < 3:
                os.close(end)


def _start(library, writable):
    """Start a child that writes the count to ``writable``; return its process id."""
    python = interpreter()
    if python is None:
        return _fork(library, writable)
    nowhere = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 2)]
    command = [python, "-I", "-S", "-c", f"{_COUNT}\nimport sys; count(sys.argv[1])", library]
    return os.posix_spawn(python, command, os.environ, file_actions=[*nowhere, (os.POSIX_SPAWN_DUP2, writable, 1)])


def _fork(library, writable):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads that hold locks: a child that hangs is killed
        child = os.fork()
    if child == 0:
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for target, source in enumerate((nowhere, writable, nowhere)):
                os.dup2(source, target)
            made: dict = {}
            exec(_COUNT, made)
            made["count"](library)
        finally:
            os._exit(0)
    return child
