# SPDX-License-Identifier: Apache-2.0
"""The history of memory as logs: JSON, RMM's CSV, and a trace for Chrome and Perfetto."""

from __future__ import annotations

import time

from l0rt._base.paths import plain_path, whole_file
from l0rt.errors import InvalidArgumentError
from l0rt.memory.history import snapshot_with_threads

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Literal

    from l0rt._base.paths import _Path

_RMM = {"alloc": "allocate", "free_requested": "free", "oom": "allocate failure"}


def dump_history(filename: _Path, format: Literal["json", "csv", "chrome"] = "json") -> None:
    """Write the entries of the history to a file, as a log that other tools read.

    Parameters
    ----------
    filename : str or path
        The file, which is replaced if there is one.
    format : "json", "csv" or "chrome", optional
        ``"json"``: one object a line, with ``device`` (-1 for pinned memory) and the keys of torch's entries.
        ``"csv"``: RMM's columns, of allocations, frees and failures. ``"chrome"``: the allocated bytes of each device
        over time, and the entries with their stacks, for Perfetto and chrome://tracing.

    Raises
    ------
    InvalidArgumentError
        There is no such format.
    OSError
        The file cannot be written.

    Notes
    -----
    RMM's columns are those of ``rmm.enable_logging``. A thread is Linux's number of it, as in ``/proc``; in JSON it is
    ``thread``, which torch's entries do not have.
    """
    path = plain_path(filename)
    if not path:
        raise ValueError("a log needs the name of a file, got ''")
    if format not in _WRITERS:
        raise InvalidArgumentError(f"the format of a log must be one of {', '.join(_WRITERS)}, got {format!r}")
    shot = snapshot_with_threads()
    with whole_file(path, "w", encoding="utf-8", newline="") as file:
        _WRITERS[format](file, shot)


def _entries(shot):
    """Return (device, entry), in the order of time; pinned memory is device -1."""
    entries = [(index, entry) for index, trace in enumerate(shot["device_traces"]) for entry in trace]
    entries += [(-1, entry) for trace in shot["host_traces"] for entry in trace]
    return sorted(entries, key=lambda pair: pair[1]["time_us"])


def _write_json(file, shot):
    import json  # here, not above: few programs write logs, and all of them import this

    for device, entry in _entries(shot):
        file.write(json.dumps({"device": device, **entry}) + "\n")


def _write_csv(file, shot):
    import csv

    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["Thread", "Time", "Action", "Pointer", "Size", "Stream"])
    for _, entry in _entries(shot):
        if entry["action"] in _RMM:
            seconds, micros = divmod(entry["time_us"], 10**6)
            clock = time.strftime("%H:%M:%S", time.localtime(seconds))
            address = hex(entry.get("addr", 0)) if entry["action"] != "oom" else "0x0"
            rows.writerow([entry["thread"], f"{clock}:{micros:06d}", _RMM[entry["action"]], address, entry["size"],
                           hex(entry["stream"])])  # fmt: skip


def _write_chrome(file, shot):
    """Counters of bytes, and instants for entries."""
    import json

    allocated: dict[int, int] = {}  # by device
    events = []
    for device, entry in _entries(shot):
        process = device if device >= 0 else len(shot["device_traces"])
        change = {"alloc": entry["size"], "free_completed": -entry["size"]}.get(entry["action"], 0)
        allocated[device] = allocated.get(device, 0) + change
        name = f"xpu:{device}" if device >= 0 else "pinned memory"
        args = {key: value for key, value in entry.items() if key not in ("frames", "time_us", "action")}
        args["frames"] = [f"{f['filename']}:{f['line']} ({f['name']})" for f in entry.get("frames", ())]
        place = {"ts": entry["time_us"], "pid": process, "tid": 0}
        events.append({"name": entry["action"], "ph": "i", "s": "t", "cat": "memory", "args": args, **place})
        if change:
            counted = {"bytes": max(0, allocated[device])}
            events.append({"name": f"allocated on {name}", "ph": "C", "args": counted, **place})
    # Ranges of threads overlap: each is an event of its own, and a pair of a beginning and an end has one number.
    starts = dict[tuple[int, str], list[int]]()
    for number, annotation in enumerate(shot["external_annotations"]):
        device, name = annotation["device"], annotation["name"]
        numbers = starts.setdefault((device, name), [])
        if annotation["stage"] == "START":
            numbers.append(number)
        elif not numbers:  # what began before the oldest that are kept
            continue
        phase, number = ("b", number) if annotation["stage"] == "START" else ("e", numbers.pop())
        events.append({"name": name, "cat": "annotation", "ph": phase, "id": number, "ts": annotation["time_us"],
                       "pid": device, "tid": 1})  # fmt: skip
    json.dump({"traceEvents": events, "displayTimeUnit": "ns"}, file)


_WRITERS = {"json": _write_json, "csv": _write_csv, "chrome": _write_chrome}
