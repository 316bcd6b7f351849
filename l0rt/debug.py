# SPDX-License-Identifier: Apache-2.0
"""The state of l0rt in this process as a text, on request or on a signal: for programs that hang."""

from __future__ import annotations

import io
import os
import signal as _signal
import sys
import threading
import traceback

from l0rt import config as _config
from l0rt._base.integers import size_text as _size
from l0rt._base.paths import whole_file as _whole_file
from l0rt.memory.stats import memory_stats as _stats
from l0rt.runtime.current.guard import current_device_index as _current_device
from l0rt.runtime.current.waits import stuck_report as _stuck_report
from l0rt.runtime.streams import devices as _devices

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike
    from typing import Protocol

    class _Writes(Protocol):
        def write(self, text: str, /) -> object: ...


__all__ = ["dump_on_signal", "dump_state"]

_STATS = ("allocated_bytes", "reserved_bytes", "active_bytes")


def dump_state(file: str | PathLike[str] | _Writes | None = None) -> str:
    """Return a text about what this process does with l0rt, and write it.

    It has the devices with their memory, the streams that have work and what they wait for, the settings, and the
    Python stack of every thread. Nothing waits for a device, and no driver is opened.

    Parameters
    ----------
    file : str, path, file or None, optional
        A path, whose file is replaced, or an object with ``write``. None writes nothing.

    Returns
    -------
    str
    """
    text = _state()
    if file is not None and hasattr(file, "write"):
        file.write(text)
    elif file is not None:
        with _whole_file(os.fspath(file), "w", encoding="utf-8") as opened:
            opened.write(text)
    return text


def dump_on_signal(
    signum: int = _signal.SIGUSR1, file: str | PathLike[str] | _Writes | None = None
) -> Callable[[], None]:
    """Write what `dump_state` returns whenever the process gets a signal.

    Python runs handlers of signals on the main thread, which also notices them while it waits for a device. The
    handler that there was before is called afterwards.

    Parameters
    ----------
    signum : int, optional
        The signal.
    file : str, path, file or None, optional
        Where the text goes. None is the standard error output.

    Returns
    -------
    callable
        A function without parameters that brings back the previous handler.

    Raises
    ------
    ValueError
        This is not the main thread, or there is no such signal.
    """

    def dump(number, frame):
        dump_state(sys.stderr if file is None else file)
        if callable(previous):
            previous(number, frame)

    def undo():
        _signal.signal(signum, _signal.SIG_DFL if previous is None else previous)

    previous = _signal.signal(signum, dump)
    return undo


def _state():
    out = io.StringIO()
    print(f"l0rt in process {os.getpid()}", file=out)
    if _devices.lazy.initialized:
        for index in range(_devices.device_count()):
            _device(index, out)
    else:
        print("no driver is open" + (", in a forked child" if _devices.lazy.opened else ""), file=out)
    print("settings that have a value:", file=out)
    for line in _config.explain().splitlines():
        if not line.endswith("(default)") and "(from " not in line:
            print(f"  {line}", file=out)
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        print(f"thread {names.get(ident, ident)}:", file=out)
        print("".join(traceback.format_stack(frame)).rstrip(), file=out)
    return out.getvalue()


def _device(index, out):
    current = ", current in this thread" if index == _current_device() else ""
    print(f"xpu:{index}, {_devices.properties(index)['name']}{current}", file=out)
    stats = _stats(index)
    if stats:
        parts = [f"{name.removesuffix('_bytes')} {_size(stats[f'{name}.all.current'])}" for name in _STATS]
        print(f"  memory: {', '.join(parts)}", file=out)
    report = _stuck_report(f"xpu:{index}")
    print(f"  {report}" if report else "  no stream has work that is not done", file=out)


def __dir__():
    return __all__
