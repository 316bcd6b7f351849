# SPDX-License-Identifier: Apache-2.0
"""`l0rt top`: what devices and processes do now, in a table that renews itself."""

import argparse
import json
import os
import re
import time
import warnings

from rich.console import Group
from rich.live import Live
from rich.segment import SegmentLines
from rich.table import Table
from rich.text import Text

from l0rt._base.integers import size_text
from l0rt.bench import report
from l0rt.cli import keys
from l0rt.cli.memory.stacks import printable
from l0rt.cli.memory.watch import TICK, CannotWatch, Question, figures, is_alive, wait
from l0rt.errors import L0Error
from l0rt.runtime.streams import devices
from l0rt.telemetry import PERIOD, Meter, monitor

FORMAT = 1  # of the JSON
ORDERS = ("memory", "streams", "pid", "command")
PRIVATE = "reserved_bytes_by_private_pools."
OTHERS = "other processes that use the device; L0RT_MONITOR=1 lets a process of l0rt be shown above"
NOBODY = "no process of this user runs with L0RT_MONITOR=1, which lets it be shown here"
MISSING = "-"
MOVING = "j, k, arrows and page keys"
LINES = 1 << 30  # more than a page has
STREAM, STREAM_TEXT = re.compile(r"<[\w.]*Stream device=\S+ stream_id=(\d+)[^>]*>"), r"stream \1"


def add(commands):
    """Add the words of `l0rt top` to the command line."""
    command = commands.add_parser(
        "top",
        help="what devices and processes do now: sensors, memory by pool and tag, streams",
        description="Show devices and processes while they work: temperature, power and use of each device, and of "
        "each process with L0RT_MONITOR=1 its memory by pool and tag, and its streams with what they wait for.",
        epilog="Keys: m, s, p and c sort by memory, streams, process number or command; d shows or hides details; "
        "j and k, arrows, Page Up, Page Down, Home and End move a page that is longer than the terminal; q ends it.",
    )
    command.add_argument("--interval", type=seconds, default=1.0, metavar="S", help="seconds between two looks (1)")
    command.add_argument("--sort", choices=ORDERS, default="memory", help="the order of processes (memory)")
    command.add_argument("--once", action="store_true", help="print it once; so it is where the output is no terminal")
    command.add_argument("--json", action="store_true", help="print one look as JSON")
    command.set_defaults(run=run)


def seconds(text):
    """Parse a time between two looks."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.1 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.1 to 3600")
    return value


class Observer:
    """Looks at all devices and processes; rates are those since the look before.

    All processes are asked at once. One that does not answer delays nothing: it stays as it was seen last until it
    answers, or until the time for its answer is over.
    """

    def __init__(self):
        self.meters = [Meter(i) for i in range(devices.device_count()) if not devices.properties(i)["is_software"]]
        self.devices, self.others = [], []
        self.questions: dict = {}  # by process, that have no answer yet
        self.answers: dict = {}
        self.problems: dict = {}

    def observe(self):
        """Return what is seen, as plain values, once each process has answered or had the time for it."""
        self.begin()
        while self.questions:
            self.poll(min(q.deadline for q in self.questions.values()) - time.monotonic())
        return self.state()

    def begin(self):
        """Look at the devices, and ask each process that has answered what it was asked before."""
        self.poll()
        self.devices = [self._device(meter) for meter in self.meters]
        self.others = [row for meter in self.meters for row in _users(meter.index)]
        there = _channels()
        for table in (self.answers, self.problems):
            for pid in set(table) - set(there):
                del table[pid]
        for pid in there:
            if pid not in self.questions:
                self.questions[pid] = Question(pid, with_sensors=True)
        self.poll()

    def poll(self, limit=0.0):
        """Take what has been answered, after a wait for anything of ``limit`` seconds; return whether there is news."""
        is_new = self._step()
        if not is_new and limit > 0:
            wait(self.questions.values(), limit)
            is_new = self._step()
        return is_new

    def _step(self):
        is_new = False
        for pid, question in list(self.questions.items()):
            try:
                answer = question.step()
                if answer is None:
                    continue
                self.answers[pid] = answer
                self.problems.pop(pid, None)
            except CannotWatch as e:
                self.answers.pop(pid, None)
                self.problems.pop(pid, None)
                if is_alive(pid):  # of one that was killed the channel may stay a while
                    self.problems[pid] = str(e)
            del self.questions[pid]
            is_new = True
        return is_new

    def state(self):
        """Return what is seen at this point, as plain values."""
        devices, processes = list(self.devices), [self.answers[pid] for pid in sorted(self.answers)]
        uuids = {device["uuid"] for device in devices}
        for process in processes:
            for device in process["devices"]:
                if device["is_software"] or device["uuid"] not in uuids:
                    uuids.add(device["uuid"])
                    devices.append(_plain_device(device, process["pid"]))
        return {
            "format": FORMAT,
            "time": time.time(),
            "devices": devices,
            "processes": processes,
            "others": [row for row in self.others if row["pid"] not in self.answers],
            "problems": [self.problems[pid] for pid in sorted(self.problems)],
            "unanswered": sorted(set(self.questions) - set(self.answers)),
        }

    def _device(self, meter):
        about = devices.properties(meter.index)
        return {
            "index": meter.index,
            "name": about["name"],
            "uuid": about["uuid"].hex(),
            "process": None,
            "total_memory": about["total_memory"],
            "sensors": meter.read().as_dict(),
        }


def _plain_device(device, pid):
    """A device as a process reports it: one of the CPU driver belongs to that process."""
    facts = {name: device[name] for name in ("index", "name", "uuid", "total_memory", "sensors")}
    return {**facts, "process": pid if device["is_software"] else None}


def _channels():
    """Return the numbers of the processes of this user that have a channel."""
    try:
        names = os.listdir(monitor.folder())
    except OSError:
        names = []
    parts = (name.partition(".") for name in names)
    numbers = (int(pid) for pid, dot, end in parts if dot and end == "sock" and pid.isascii() and pid.isdigit())
    return sorted(pid for pid in numbers if pid != os.getpid())


def _users(index):
    """Return the processes that use a card, where its driver reports them."""
    try:
        rows = devices.processes(index)
    except L0Error:
        return []
    return [
        {"pid": pid, "index": index, "memory": nbytes, "command": _command(pid)}
        for pid, nbytes in rows
        if pid != os.getpid()
    ]


def _command(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).split(b"\0")
    except OSError:
        return ""
    return " ".join(word.decode(errors="replace") for word in words if word)


def page(state, order, details, expand):
    """Return what a terminal shows."""
    parts = [device_table(state["devices"], expand), Text(), process_table(state["processes"], order, details, expand)]
    if details and any(_busy(device) for process in state["processes"] for device in process["devices"]):
        parts += [Text(), Text("streams that are not idle", style="bold"), *stream_lines(state["processes"])]
    if not state["processes"] and not state["unanswered"]:
        parts.append(Text(NOBODY, style="dim"))
    if state["others"]:
        parts += [Text(), Text(f"{OTHERS}:", style="dim")]
        for row in sorted(state["others"], key=lambda row: -row["memory"]):
            text = f"{row['pid']:>8}  xpu:{row['index']}  {size_text(row['memory']):>12}  {printable(row['command'])}"
            parts.append(Text(text, no_wrap=True, overflow="ellipsis"))
    parts += [Text(printable(line), style="yellow") for line in state["problems"]]
    missing = [device["sensors"]["missing"].items() for device in state["devices"]]
    whys = sorted({f"{name}: {why}" for items in missing for name, why in items})
    parts += [Text(printable(why), style="dim") for why in whys]
    return Group(*parts)


def part(out, content, first):
    """Return as much of a page as the terminal is high, from its line ``first`` on, and which line that is: the last
    lines fill the terminal. The last line says how much is left out."""
    lines, height = out.render_lines(content, pad=False), out.size.height
    if len(lines) <= height:
        return content, 0
    first = max(min(first, len(lines) - height + 1), 0)
    below = len(lines) - height + 1 - first
    rest = Text(f"... {first} lines above, {below} below: {MOVING} move; d hides details", style="dim", no_wrap=True)
    rest.overflow = "ellipsis"
    return Group(SegmentLines(lines[first : first + height - 1], new_lines=True), rest), first


def moves(height):
    """Return by how many lines each key moves the page."""
    screen = max(height - 2, 1)  # one line stays in sight
    return {"j": 1, "down": 1, "k": -1, "up": -1, "page down": screen, "page up": -screen, "home": -LINES, "end": LINES}


def _table(expand, *columns):
    """A table; ``expand`` lets its last column take what the others leave. "<" is a text's column."""
    table = Table(box=None, padding=(0, 1, 0, 0), expand=expand, header_style="bold")
    for column in columns:
        is_text, is_last = column.startswith("<"), column == columns[-1]
        table.add_column(
            column.lstrip("<"),
            justify="left" if is_text else "right",
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if is_last and expand else None,
        )
    return table


def device_table(rows, expand):
    """Return the table of devices."""
    table = _table(expand, "<device", "°C", "W", "MHz", "busy", "bandwidth", "memory", "<name")
    for row in rows:
        s = row["sensors"]
        used, total = s["device_memory_used"], row["total_memory"]
        memory = MISSING if used is None else f"{size_text(used)} ({used * 100 // max(total, 1)}%)"
        watts = None if s["power_draw"] is None else f"{s['power_draw'] / 1000:.0f}"
        table.add_row(
            f"xpu:{row['index']}",
            *map(_text, (s["temperature"], watts, s["clock_rate"])),
            *(MISSING if s[name] is None else f"{s[name]}%" for name in ("utilization", "memory_usage")),
            memory,
            (f"process {row['process']}: " if row["process"] else "") + printable(row["name"], 60),
        )
    if not rows:
        table.add_row("none", *[""] * 7)
    return table


def _text(value):
    return MISSING if value is None else str(value)


def process_table(processes, order, details, expand):
    """Return the table of processes, with a line for each tag and pool if ``details``."""
    table = _table(expand, "process", "<device", "allocated", "peak", "reserved", "streams", "<command")
    rows = [(process, device) for process in processes for device in process["devices"]]
    rows += [(process, None) for process in processes if not process["devices"]]
    for process, device in sorted(rows, key=lambda row: _rank(row, order)):
        program, *words = process["command"] or [""]  # the program by its name: its path would fill 80 columns
        command = Text(printable(" ".join([os.path.basename(program), *words]), 300))
        if device is None:
            table.add_row(str(process["pid"]), MISSING, "", "", "", "", command)
            continue
        (allocated, most, reserved, *_), tags = figures(device)
        sizes = map(size_text, (allocated, most, reserved))
        table.add_row(str(process["pid"]), f"xpu:{device['index']}", *sizes, str(_busy(device)), command)
        if details:
            _add_details(table, device, tags)
    return table


def _add_details(table, device, tags):
    for tag, (current, peak) in sorted(tags.items(), key=lambda row: -row[1][0]):
        table.add_row(
            "", "", size_text(current), size_text(peak), "", "", Text(f"  tag {printable(tag, 60)}"), style="dim"
        )
    for pool, nbytes in pools(device):
        table.add_row("", "", "", "", size_text(nbytes), "", Text(f"  pool {printable(pool, 30)}"), style="dim")


def stream_lines(processes):
    """Return a line for each stream that is not idle, and for each wait that it is in."""
    lines = []
    for process in sorted(processes, key=lambda process: process["pid"]):
        for device in process["devices"]:
            for line in device["streams"]:
                where = "" if line.startswith(" ") else f"xpu:{device['index']} "
                text = f"{process['pid']:>7} {where}{printable(STREAM.sub(STREAM_TEXT, line))}"
                lines.append(Text(text, no_wrap=True, overflow="ellipsis"))
    return lines


def pools(device):
    """Return ``[(pool, reserved bytes)]``: private pools by their numbers, and what the others have."""
    end = ".all.current"
    memory = device["memory"]
    private = [
        (key[len(PRIVATE) : -len(end)].replace("_", "."), value)
        for key, value in memory.items()
        if key.startswith(PRIVATE) and key.endswith(end)
    ]
    if not private:
        return []
    rest = memory.get("reserved_bytes.all.current", 0) - sum(value for _, value in private)
    return [("default", max(rest, 0)), *sorted(private, key=lambda row: -row[1])]


def _busy(device):
    """How many streams are not idle: the lines of what one waits for are indented."""
    return sum(not line.startswith(" ") for line in device["streams"])


def _rank(row, order):
    process, device = row
    memory = device["memory"].get("reserved_bytes.all.current", 0) if device else -1
    ranks = {
        "memory": -memory,
        "streams": -_busy(device) if device else 1,
        "pid": 0,
        "command": " ".join(process["command"]),
    }
    return ranks[order], process["pid"], device["index"] if device else -1


def run(options):
    """`l0rt top`."""
    out = report.console()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no GPU: processes may have devices of the CPU driver
        observer = Observer()
    observer.begin()  # rates need two
    time.sleep(PERIOD)
    if options.json:
        print(json.dumps(observer.observe(), indent=1))
    elif options.once or not out.is_terminal:
        out.print(page(observer.observe(), options.sort, True, out.is_terminal))
    elif not keys.show(out, live, observer, out, options.interval, options.sort):
        return 1
    return 0


def live(observer, out, interval, order):
    """Renew the page until the user ends it."""
    keys_of = {name[0]: name for name in ORDERS}
    details, first = True, 0
    with keys.Keys() as pressed, Live(console=out, auto_refresh=False, screen=True) as screen:
        observer.begin()
        due, is_new = time.monotonic() + interval, True
        while True:
            if is_new:
                shown_part, first = part(out, page(observer.state(), order, details, True), first)
                screen.update(shown_part, refresh=True)
            remaining = due - time.monotonic()
            key = pressed.wait(min(remaining, TICK) if observer.questions else remaining)
            if key == "q":
                return
            order = keys_of.get(key, order)
            details = details != (key == "d")
            first += moves(out.size.height).get(key, 0)
            is_new = observer.poll() or bool(key)
            if time.monotonic() >= due:
                observer.begin()
                due, is_new = time.monotonic() + interval, True
