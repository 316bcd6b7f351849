# SPDX-License-Identifier: Apache-2.0
"""Running programs apart from the test process: never in the source tree, never for ever."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass

_running = set()


def kill_all():
    """Kill what still runs, with its children: pytest ends."""
    for child in tuple(_running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


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
    path = os.environ.get("BREAK_DRIVER_PATH")  # helpers/broken.py
    changed = {**os.environ, "PYTHONPATH": path, "PYTHONFAULTHANDLER": "1", "PYTHONWARNINGS": forks, **(env or {})}
    with tempfile.TemporaryDirectory(prefix="l0rt-") as empty:
        child = subprocess.Popen(
            [os.fspath(arg) for arg in args],
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
                os.killpg(child.pid, signal.SIGKILL)
                return Result(-signal.SIGKILL, *child.communicate(), timed_out=True)
            finally:
                _running.discard(child)
        return Result(child.returncode, out, err)


def run_python(code, env=None, cwd=None, timeout=60.0):
    """Run Python source in a process of its own; see `run`."""
    return run([sys.executable, "-c", code], env, cwd, timeout)
