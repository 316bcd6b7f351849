# SPDX-License-Identifier: Apache-2.0
"""Running programs apart from the test process: never in the source tree, never for ever."""

import collections
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass

_running = set()
ended = collections.deque(maxlen=1)  # the last `Result`: a failure's report has it whole
_servers = {}  # modules -> the process that has imported them and forks for `run_python`, after its first call
_starting = threading.Lock()
# Before a command: the kernel kills it when the thread that started it ends, be it by SIGKILL.
WITH_PARENT = [setpriv, "--pdeathsig", "KILL", "--"] if (setpriv := shutil.which("setpriv")) else []


def kill_all():
    """Kill what still runs, with its children: pytest ends."""
    for child in tuple(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    while _servers:
        _servers.popitem()[1].end()


def python_path(folders=None):
    """Return PYTHONPATH for a process of a test: what breaks l0rt or its driver on purpose (test_traps_bite.py) stays
    in front."""
    found = [os.fspath(path) for path in (os.environ.get("BREAK_PATH"), folders) if path]
    return os.pathsep.join(found) or None


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str
    timed_out: bool = False

    def __post_init__(self):
        ended.append(self)

    def __str__(self):
        end = "was killed: it took too long" if self.timed_out else f"exit status {self.returncode}"
        return f"{end}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def environment(changes):
    """Return this process's environment with these changes, for a process of a test."""
    forks = "ignore:This process (pid=:DeprecationWarning"  # since Python 3.12, of a fork beside threads
    changed = {**os.environ, "PYTHONPATH": None, "PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": forks, **(changes or {})}
    changed["PYTHONPATH"] = python_path(changed["PYTHONPATH"])
    return {name: str(value) for name, value in changed.items() if value is not None}


def start(args, env, cwd):
    """Start a command in a session of its own."""
    return subprocess.Popen(
        [*WITH_PARENT, *(os.fspath(arg) for arg in args)],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def run(args, env=None, cwd=None, timeout=60.0, starting=start):
    """Run a command and return its `Result`.

    ``env`` changes this process's environment (None removes a variable). Without ``cwd`` it runs in an empty folder:
    in the repository's, the source tree would shadow the installed package. After ``timeout`` seconds the command
    and its children are killed.
    """
    with tempfile.TemporaryDirectory(prefix="l0rt-") as empty:
        child = starting(args, environment(env), cwd or empty)
        _running.add(child)
        with child:
            try:
                out, err = child.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                return Result(-signal.SIGKILL, *end(child), timed_out=True)
            finally:
                _running.discard(child)
        return Result(child.returncode, out, err)


def end(child):
    """Kill a process with its group, and return what it wrote; a pytest first ends those of other groups."""
    child.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=3)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    return child.communicate(timeout=60)


def run_python(code, env=None, cwd=None, timeout=60.0, fresh=False, modules=("numpy", "l0rt.accelerator")):
    """Run Python source in a process of its own; see `run`.

    Where nothing of a start is tested that is a fork of a process that has imported ``modules`` (`forkserver`), with
    one frame below the program's. ``fresh`` is a Python of its own.
    """

    def fork(args, env, cwd):
        """Fork for the program if it cannot tell the difference."""
        if "BREAK_PATH" in os.environ:  # l0rt or its driver is broken by what a start imports
            return start(args, env, cwd)
        from helpers import forkserver  # which imports l0rt: tests/layout does without

        with _starting:
            if modules not in _servers:
                _servers[modules] = forkserver.Server(environment(None), modules)  # what most calls have
        server = _servers[modules]
        return server.start(code, env, cwd) if server.serves(env, cwd) else start(args, env, cwd)

    return run([sys.executable, "-c", code], env, cwd, timeout, start if fresh else fork)
