# SPDX-License-Identifier: Apache-2.0
"""A process that has imported l0rt, opened no driver, and forks for each program that a test runs.

A Python of its own would take longer for the imports than most programs do for their work. What a start reads, a forked
program cannot be told any more; `serves` knows what that is.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from l0rt.config import variables

TESTS = Path(__file__).resolve().parents[1]
# In a Python that has exited from `serve` the program runs in __main__, as that of `python -c` does.
COMMAND = "exec(__import__('helpers.forkserver', fromlist='serve').serve{!r})"
LATER = ("L0RT_", "ZE_", "PYTEST_")  # prefixes of what is read when it is used
# Of these, what l0rt/__init__.py reads. Of an unknown name it warns.
AT_IMPORT = {"L0RT_LOGS", "L0RT_SANITIZE", "L0RT_OOM_SNAPSHOT", "L0RT_LEAK_REPORT", "L0RT_MONITOR"}
KNOWN = {*variables.KNOWN, *(f"L0RT_{name}" for name in variables.DEVELOPMENT)} - AT_IMPORT
PR_SET_PDEATHSIG = 1


def is_read_later(name):
    """Is this variable read after the imports?"""
    return name in KNOWN if name.startswith("L0RT_") else name.startswith(LATER)


class Server:
    """The process that forks, as the tests see it. It ends with this process."""

    def __init__(self, env, modules):
        self.env = {name: value for name, value in env.items() if not is_read_later(name)}
        self.path = self.env.pop("PYTHONPATH", None)
        self.lock = threading.Lock()
        self.door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # One thread of OpenBLAS: a fork has to end others.
            started = {**self.env, "PYTHONPATH": os.fspath(TESTS), "OPENBLAS_NUM_THREADS": "1"}
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND.format(modules)],
                env=started,
                cwd="/",
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )

    def serves(self, env, cwd):
        """Would a Python that starts with this environment in this folder be as one that is forked here?"""
        differ = {name for name, _ in self.env.items() ^ env.items()} - {"PYTHONPATH"}
        folders = [cwd, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
        return all(map(is_read_later, differ)) and not any((Path(folder) / "l0rt").exists() for folder in folders)

    def start(self, code, env, cwd):
        """Run a program in a fork; return it as a `Forked`."""
        request = json.dumps([code, env, os.fspath(cwd)]).encode()
        pipes = [os.pipe() for _ in range(3)]
        with self.lock:
            socket.send_fds(self.door, [request], [end for _, end in pipes])
        for _, end in pipes:
            os.close(end)
        try:
            return Forked(*(start for start, _ in pipes))
        except ValueError:
            raise RuntimeError(f"the process that forks has ended: {self.end()}") from None

    def end(self):
        """End the server, and its children with it; return what it wrote."""
        self.door.close()
        return self.process.communicate()


class Forked:
    """A program in a fork of the server; what `subprocess.Popen` has of these names does the same."""

    def __init__(self, out, err, reply):
        self.pipes, self.reply, self.returncode = (out, err), os.fdopen(reply), None
        self.written = {out: b"", err: b""}
        self.pid = int(self.reply.readline())  # written by the child, which has its session

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait()
        self.reply.close()
        for pipe in self.pipes:
            os.close(pipe)

    def send_signal(self, number):
        if self.returncode is None:
            os.kill(self.pid, number)

    def wait(self, timeout=None):
        if self.returncode is None:
            if not select.select([self.reply], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a fork", timeout)
            self.returncode = int(self.reply.readline())
        return self.returncode

    def communicate(self, timeout):
        """Return what it writes until nobody has the pipes any more, and it has ended."""
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for pipe in self.pipes:
                selector.register(pipe, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(deadline - time.monotonic())
                if not ready:
                    raise subprocess.TimeoutExpired("a fork", timeout)
                for key, _ in ready:
                    if not (chunk := os.read(key.fd, 1 << 16)):
                        selector.unregister(key.fd)
                    self.written[key.fd] += chunk
        self.wait(max(deadline - time.monotonic(), 0))
        texts = (self.written[pipe].decode(errors="replace") for pipe in self.pipes)
        return [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]


def serve(*modules):
    """Import these, and fork for each request until nobody can send any; in the child, return its program."""
    for name in modules:
        importlib.import_module(name)
    kept = open_files()  # of the imports: libffi maps its own file for each function that ctypes makes
    door = socket.socket(fileno=0)
    woken, wake = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal, which the tests' process ends for
    replies = {}
    gc.collect()
    gc.freeze()  # and so in the children: to look at all modules would take them longer than to start
    while True:
        ready = select.select([door, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 1 << 16)
            while replies and (ended := os.waitpid(-1, os.WNOHANG))[0]:
                reply = replies.pop(ended[0])
                with contextlib.suppress(BrokenPipeError):
                    os.write(reply, b"%d\n" % os.waitstatus_to_exitcode(ended[1]))
                os.close(reply)
        if door in ready:
            request, passed, _, _ = socket.recv_fds(door, 1 << 20, 3)
            if not request:
                os._exit(0)
            if (pid := os.fork()) == 0:
                door.detach()
                return become(request, kept, *passed)
            replies[pid] = passed.pop()
            for pipe in passed:
                os.close(pipe)


def open_files():
    """Return the descriptors of the files that are open."""
    return {int(name) for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


def become(request, kept, out, err, reply):
    """Make this child what a Python would be that started in the request's environment; return its program."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    os.write(reply, b"%d\n" % os.getpid())
    signal.set_wakeup_fd(-1)
    for number, action in (signal.SIGCHLD, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler):
        signal.signal(number, action)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    for file in open_files() - kept - {0, 1, 2}:
        os.close(file)
    code, env, cwd = json.loads(request)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    folders = filter(None, env.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = ["", *folders, *(path for path in sys.path[1:] if path != os.fspath(TESTS))]
    for name in [name for name in sys.modules if name.partition(".")[0] == "helpers"]:
        del sys.modules[name]
    return compile(code, "<string>", "exec", dont_inherit=True)
