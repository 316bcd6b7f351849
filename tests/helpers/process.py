# SPDX-License-Identifier: Apache-2.0
"""Running programs apart from the test process: never in the source tree, never for ever."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

_running = set()
# Before a command: the kernel kills it when the thread that started it ends, be it by SIGKILL.
WITH_PARENT = [setpriv, "--pdeathsig", "KILL", "--"] if (setpriv := shutil.which("setpriv")) else []


def kill_all():
    """Kill what still runs, with its children: pytest ends."""
    for child in tuple(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


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

    def __str__(self):
        end = "was killed: it took too long" if self.timed_out else f"exit status {self.returncode}"
        return f"{end}\n--- stdout\n{self.stdout}\n--- stderr\n{self.stderr}"


def run(args, env=None, cwd=None, timeout=60.0):
    """Run a command and return its `Result`.

    ``env`` changes this process's environment (None removes a variable). Without ``cwd`` it runs in an empty folder:
    in the repository's, the source tree would shadow the installed package. After ``timeout`` seconds the command
    and its children are killed.
    """
    forks = "ignore:This process (pid=:DeprecationWarning"  # since Python 3.12, of a fork beside threads
    changed = {**os.environ, "PYTHONPATH": None, "PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": forks, **(env or {})}
    changed["PYTHONPATH"] = python_path(changed["PYTHONPATH"])
    with tempfile.TemporaryDirectory(prefix="l0rt-") as empty:
        child = subprocess.Popen(
            [*WITH_PARENT, *(os.fspath(arg) for arg in args)],
            cwd=cwd or empty,
            env={name: str(value) for name, value in changed.items() if value is not None},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
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


def run_python(code, env=None, cwd=None, timeout=60.0):
    """Run Python source in a process of its own; see `run`."""
    return run([sys.executable, "-c", code], env, cwd, timeout)
