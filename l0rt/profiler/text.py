# SPDX-License-Identifier: Apache-2.0
"""What a profile says: a table for people, and a trace for Perfetto."""

import json
import os
from collections import defaultdict

from l0rt._base.integers import time_text
from l0rt._base.paths import plain_path

COMMANDS = ("kernel", "copy", "fill", "wait", "graph")
LONGEST = 60  # letters of a name in the table
DEVICE_PID = 1 << 22  # above all processes of Linux


class Row:
    """The times of everything that has one name."""

    def __init__(self):
        self.count = self.total = self.most = self.nbytes = 0
        self.least = None
        self.kind = ""

    def add(self, record):
        took = record.duration_ns
        self.count += 1
        self.total += took
        self.least = took if self.least is None else min(self.least, took)
        self.most = max(self.most, took)
        self.nbytes += record.nbytes or 0
        self.kind = record.kind


def rows_of(records):
    """Return (name, Row) of each name, the longest total first."""
    rows = defaultdict[str, Row](Row)
    for record in records:
        rows[record.name].add(record)
    return sorted(rows.items(), key=lambda item: (-item[1].total, item[0]))


def aligned(lines):
    """Return a table whose first column is text and whose others are figures."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]


def section(title, rows, total, limit):
    lines = [(title, "count", "total", "mean", "min", "max", "share")]
    for whole_name, row in rows[:limit]:
        name = " ".join(whole_name.split())
        name = name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."
        share = f"{100 * row.total / total:.1f} %" if total and row.kind != "wait" else "-"
        times = (row.total, row.total / row.count, row.least, row.most)
        lines.append((name, str(row.count), *map(time_text, times), share))
    result = aligned(lines)
    if limit is not None and len(rows) > limit:
        result.append(f"and {len(rows) - limit} more")
    return result


def table(profile, limit):
    """Return the text of a profile's table."""
    commands = [record for record in profile.events if record.kind in COMMANDS]
    ranges = [record for record in profile.events if record.kind == "range"]
    work = sum(record.duration_ns for record in commands if record.kind != "wait")
    streams = {(record.device, record.stream) for record in commands}
    lines = section("device time", rows_of(commands), work, limit)
    if ranges:
        lines += ["", *section("host time of ranges", rows_of(ranges), profile.end_ns - profile.begin_ns, limit)]
    lines += [
        "",
        f"{time_text(work)} of work in {len(commands)} commands on {len(streams)} streams; "
        f"the block took {time_text(profile.end_ns - profile.begin_ns)}",
    ]
    if profile.dropped:
        lines.append(f"{profile.dropped} more came after max_records, and are missing here")
    if profile.unfinished:
        lines.append(f"{profile.unfinished} more were not finished by their device, and are missing here")
    return "\n".join(lines)


def write_chrome_trace(profile, path, threads):
    """Write the trace, one event a line."""
    path = plain_path(path)
    events = chrome_events(profile, threads)
    other = {"clock": "CLOCK_MONOTONIC_RAW", "begin_ns": profile.begin_ns, "dropped": profile.dropped}
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(other)}, "traceEvents": [\n')
        file.write(",\n".join(map(json.dumps, events)))
        file.write("\n]}\n")


def chrome_events(profile, threads):
    """Return the trace's events, whose times are microseconds from the beginning of the profile."""
    host = os.getpid()
    named = dict[tuple[int, int], str]()
    events = []

    def at(ns):
        return (ns - profile.begin_ns) / 1000

    def name_track(pid, tid, name):
        named.setdefault((pid, tid), name)

    for number, record in enumerate(profile.events, 1):
        name_track(host, record.thread, threads.get(record.thread, f"thread {record.thread}"))
        common = {"name": record.name, "cat": record.kind}
        if record.kind == "mark":
            events.append({**common, "ph": "i", "s": "t", "ts": at(record.begin_ns), "pid": host, "tid": record.thread})
            continue
        times = {"ph": "X", "ts": at(record.begin_ns), "dur": record.duration_ns / 1000}
        if record.kind == "range":
            events.append({**common, **times, "pid": host, "tid": record.thread})
            continue
        pid = DEVICE_PID + record.device
        name_track(pid, record.stream, f"stream {record.stream}")
        events.append({**common, **times, "pid": pid, "tid": record.stream, "args": facts(record)})
        call = {"pid": host, "tid": record.thread, "ts": at(record.call_ns)}
        verb = "launch" if record.kind == "kernel" else "append"
        took = (record.return_ns - record.call_ns) / 1000
        events.append({"name": f"{verb} {record.name}", "cat": "call", "ph": "X", "dur": took, **call})
        arrow = {"name": "call", "cat": "call", "id": number}
        events.append({**arrow, "ph": "s", **call})
        events.append({**arrow, "ph": "f", "bp": "e", "pid": pid, "tid": record.stream, "ts": at(record.begin_ns)})
    return [*names_of(named, host), *events]


def facts(record):
    """Return what a trace shows of a command beside its times."""
    values = {"bytes": record.nbytes, "groups": record.groups, "group size": record.group_size}
    if record.nbytes and record.duration_ns:
        values["GB/s"] = round(record.nbytes / record.duration_ns, 3)
    return {name: value for name, value in values.items() if value is not None}


def names_of(named, host):
    """Return the events that name processes, which devices pass for, and their tracks."""
    events = []
    for pid in sorted({pid for pid, _ in named}):
        name = "host" if pid == host else f"device {pid - DEVICE_PID}"
        events.append({"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": name}})
        order = 0 if pid == host else 1 + pid - DEVICE_PID
        events.append({"name": "process_sort_index", "ph": "M", "pid": pid, "tid": 0, "args": {"sort_index": order}})
    for (pid, tid), name in sorted(named.items()):
        events.append({"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}})
    return events
