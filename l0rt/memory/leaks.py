# SPDX-License-Identifier: Apache-2.0
"""What is allocated by stack and tag, as a text: on request, and when the process exits."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from l0rt import config
from l0rt._base.integers import size_text
from l0rt._base.paths import numbered_file, plain_path
from l0rt.memory.history import record_memory_history
from l0rt.memory.stats import is_opened
from l0rt.runtime.memory import trace
from l0rt.runtime.memory.pools import index_or_current
from l0rt.runtime.streams.devices import lazy

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from l0rt._base.paths import _Path
    from l0rt.runtime.streams.naming import _Device

_MOST_FRAMES = 12  # of a stack, and
_MOST_STACKS = 50  # of a report
_where = None  # the report at exit goes: None, "" for stderr, or a path
_is_registered = False


def leak_report(device: _Device = None) -> str:
    """Return what is allocated now as a text: bytes and blocks by stack and tag, most bytes first.

    It has device memory and pinned memory. Stacks are there of what was allocated while `record_memory_history` kept
    them. Memory that the host shares is not in it.

    Parameters
    ----------
    device : int, str, device or None, optional
        Only this device's memory. None is every device.

    Returns
    -------
    str
        Empty if nothing is allocated.

    Raises
    ------
    DeviceIndexError
        There is no device with this index.
    """
    if lazy.opened:
        lazy.init()  # raises in a forked child, with the reason
    index = None if device is None else index_or_current(device)
    return _report(index) if is_opened() else ""


def _report(index):
    owned, _, pinned, _ = trace.snapshot(index, False)
    sums: dict = {}  # where, stack, tag -> [bytes, blocks]
    totals: dict = {}
    for is_host, segments in ((False, owned), (True, pinned)):
        for segment in segments:
            where = "pinned memory" if is_host else f"xpu:{segment['device']}"
            for block in segment["blocks"]:
                if block["state"] == "active_allocated":
                    stack = tuple((f["filename"], f["line"], f["name"]) for f in block["frames"])
                    for key, table in ((where, totals), ((where, stack, block.get("category", "")), sums)):
                        row = table.setdefault(key, [0, 0])
                        row[0] += block["requested_size"]
                        row[1] += 1
    if not sums:
        return ""
    text = ", ".join(f"{size_text(nbytes)} in {_blocks(count)} of {where}" for where, (nbytes, count) in totals.items())
    lines = [f"l0rt: allocated and not freed: {text}"]
    rows = sorted(sums.items(), key=lambda row: -row[1][0])
    for (where, stack, tag), (nbytes, count) in rows[:_MOST_STACKS]:
        tagged = f", tag {_plain(tag)}" if tag else ""
        lines.append(f"  {size_text(nbytes)} in {_blocks(count)} of {where}{tagged}{'' if stack else ': no stack'}")
        lines += [f"    {_plain(file)}:{line} ({_plain(name)})" for file, line, name in stack[:_MOST_FRAMES]]
        if len(stack) > _MOST_FRAMES:
            lines.append(f"    and {len(stack) - _MOST_FRAMES} more")
    if len(rows) > _MOST_STACKS:
        rest = rows[_MOST_STACKS:]
        lines.append(f"  {size_text(sum(row[1][0] for row in rest))} by {len(rest)} more")
    return "\n".join(lines) + "\n"


def _blocks(count):
    return f"{count} block{'' if count == 1 else 's'}"


def _plain(text):
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def enable_leak_report(where: _Path | bool | None = True) -> None:
    """Write `leak_report` when the process exits, unless nothing is allocated then.

    From now on the stacks of what is allocated are kept, unless the history is recorded already. What is still held by
    variables of modules at exit is allocated too. Unreachable objects are collected before. A forked child reports what
    it has allocated itself.

    Parameters
    ----------
    where : bool, str, path or None, optional
        True is the standard error; a path is a file, which gets a number as that of `enable_oom_snapshot` does, so
        that the processes of a program do not replace each other's. False and None write nothing.

    Raises
    ------
    ValueError
        The path is empty.

    Notes
    -----
    The environment variable ``L0RT_LEAK_REPORT`` does the same for a whole process: ``1``, or a path.
    """
    global _where, _is_registered
    if where is None or where is False:
        _where = None
        return
    place = "" if where is True else plain_path(where)
    if where is not True and not place:
        raise ValueError("a leak report needs the name of a file, got ''")
    if not trace.recorded():
        record_memory_history(enabled="state", context="state")
    _where = os.path.abspath(place) if place else ""
    if not _is_registered:
        _is_registered = True
        lazy.call(atexit.register, _at_exit)  # behind the hook that closes everything, and so before it


def _at_exit():
    """No caller is left to handle an error here."""
    if _where is None or not lazy.initialized:
        return
    try:
        gc.collect()
        text = _report(None)
        if text and _where:
            with numbered_file(_where) as (file, _):
                file.write(text.encode("utf-8", "backslashreplace"))
        elif text and sys.stderr is not None:
            sys.stderr.write(text.encode("ascii", "backslashreplace").decode())
            sys.stderr.flush()
    except Exception:
        return


def begin():
    """Do what the setting ``leak_report`` says."""
    setting = config.get("leak_report")
    enable_leak_report(True if setting == "1" else None if setting in ("", "0") else setting)
