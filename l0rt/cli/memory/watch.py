# SPDX-License-Identifier: Apache-2.0
"""`l0rt memory watch`: how much memory a process has that lets itself be watched, again and again."""

import json
import os
import select
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from contextlib import nullcontext, suppress
from functools import partial

from rich.live import Live
from rich.text import Text

from l0rt._base.integers import size_text
from l0rt.bench import report
from l0rt.cli import keys
from l0rt.cli.memory.stacks import printable
from l0rt.telemetry import Sample, monitor

PATIENCE = 5.0  # seconds for an answer
TICK = 0.05  # seconds between two looks where nothing wakes
MOST = 16 << 20  # bytes of an answer
TAG = "component_bytes."
TYPES = {"index": int, "name": str, "uuid": str, "is_software": bool, "total_memory": int, "memory": dict,
         "streams": list, "sensors": dict}  # fmt: skip


class CannotWatch(Exception):
    """The process cannot be watched; one line says why."""


class Question:
    """What a process is asked. Nothing here waits: `step` does what can be done at once.

    Parameters
    ----------
    pid : int
        The process.
    with_sensors : bool, optional
        Whether the answer has what the sensors of its devices say.
    """

    def __init__(self, pid, with_sensors=False):
        self.pid, self.asks = pid, monitor.SENSORS if with_sensors else b""
        self.found, self.is_connected = bytearray(), False
        self.deadline = time.monotonic() + PATIENCE  # of the whole answer
        self.channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.channel.setblocking(False)

    def fileno(self):
        """Return the channel's descriptor, which can be read when a step has something to do."""
        return self.channel.fileno()

    def step(self):
        """Return the process's answer, None before it arrives; `CannotWatch` if the process gives none."""
        is_over = True
        try:
            if self._is_complete():
                return checked(json.loads(self.found), self.pid)
            if time.monotonic() > self.deadline:
                raise CannotWatch(f"process {self.pid} does not answer: no thread of it may hold the GIL for long")
            is_over = False
        except (FileNotFoundError, ConnectionRefusedError) as e:
            raise CannotWatch(f"process {self.pid} {self._absent(e)}") from None
        except (OSError, ValueError, RecursionError) as e:
            raise CannotWatch(f"process {self.pid} cannot be watched: {printable(str(e), 200)}") from None
        finally:
            if is_over:
                self.close()
        return None

    def close(self):
        """Ask no more."""
        self.channel.close()

    def _is_complete(self):
        try:
            if not self.is_connected:
                self._connect()
            while part := self.channel.recv(1 << 16):
                self.found += part
                if len(self.found) > MOST:
                    raise CannotWatch(f"process {self.pid} sends too much")
        except BlockingIOError:
            return False
        return True

    def _connect(self):
        """BlockingIOError while too many others wait."""
        if not monitor.is_private(monitor.folder()):
            raise CannotWatch(f"others may enter {printable(monitor.folder())}: what is in it is not trusted")
        self.channel.connect(monitor.path(self.pid))
        self.is_connected = True
        if monitor.peer(self.channel) != os.getuid():
            raise CannotWatch(f"the channel of process {self.pid} is not this user's")
        self.channel.sendall(self.asks)
        self.channel.shutdown(socket.SHUT_WR)

    def _absent(self, error):
        if is_alive(self.pid):
            return "does not let itself be watched: start it with L0RT_MONITOR=1"
        if isinstance(error, ConnectionRefusedError):
            remove_channel(self.pid)
        return "is not there"


def wait(questions, limit):
    """Wait until one of the questions can go on, at most so many seconds."""
    connected = [question for question in questions if question.is_connected]
    if len(connected) < len(questions):
        limit = min(limit, TICK)
    select.select(connected, [], [], max(limit, 0))


def ask(pid, with_sensors=False, pause=None):
    """Return a process's answer; `CannotWatch` if there is no process or no answer.

    ``pause`` waits for so many seconds, and is true if the answer is no longer wanted: then it is None.
    """
    question = Question(pid, with_sensors)
    while (answer := question.step()) is None:
        if pause is None:
            wait([question], question.deadline - time.monotonic())
        elif pause(TICK):
            question.close()
            break
    return answer


def remove_channel(pid):
    """Remove the channel of a process that was killed. One that begins has it a moment before it listens; it may be of
    another container, with numbers of its own."""
    place = monitor.path(pid)
    with suppress(OSError):
        about = os.lstat(place)
        if stat.S_ISSOCK(about.st_mode) and time.time() - about.st_mtime > PATIENCE:
            os.unlink(place)


def checked(value, pid):
    """Return an answer of which all that is printed has the right type."""
    good = type(value) is dict and value.get("format") == monitor.FORMAT and value.get("pid") == pid
    if good and type(value.get("error")) is str:
        raise ValueError(value["error"])
    good = good and type(value.get("devices")) is list
    good = good and type(value.get("command")) is list and all(type(word) is str for word in value["command"])
    if not good or not all(map(is_well_formed, value["devices"])):
        raise ValueError("its answer is not of this version of l0rt")
    return value


def is_well_formed(device):
    """Whether all that is printed of a device has the right type."""
    if type(device) is not dict or any(type(device.get(name)) is not kind for name, kind in TYPES.items()):
        return False
    sensors, missing = device["sensors"], device["sensors"].get("missing")
    return (
        all(type(number) is int for number in device["memory"].values())
        and all(type(line) is str for line in device["streams"])
        and all(sensors.get(name) is None or type(sensors[name]) is int for name in Sample.FIGURES)
        and type(missing) is dict
        and all(type(why) is str for why in missing.values())
    )


def is_alive(pid):
    """Whether there is a process with this number."""
    try:
        os.kill(pid, 0)
    except OSError as e:
        return isinstance(e, PermissionError)  # it is another user's
    except OverflowError:
        return False
    return pid > 0


def figures(device):
    """Return a device's figures, and tag -> (current, peak)."""
    memory = device["memory"]
    sums = [
        memory.get(key, 0)
        for key in (
            "allocated_bytes.all.current",
            "allocated_bytes.all.peak",
            "reserved_bytes.all.current",
            "reserved_bytes.all.peak",
            "allocation.all.current",
            "num_ooms",
        )
    ]
    tags = {
        key[len(TAG) : -len(".current")]: (value, memory.get(f"{key[: -len('.current')]}.peak", 0))
        for key, value in memory.items()
        if key.startswith(TAG) and key.endswith(".current")
    }
    return sums, tags


def table(answer):
    """Return the table of a process."""
    grid = report.table(f"process {answer['pid']}", "allocated", "peak", "reserved", "peak", "blocks", "out of memory")
    for device in answer["devices"]:
        (allocated, most, reserved, most_reserved, blocks, failures), tags = figures(device)
        sizes = map(size_text, (allocated, most, reserved, most_reserved))
        grid.add_row(
            Text(printable(f"{device['index']}: {device['name']}", 60)), *sizes, f"{blocks:,}", f"{failures:,}"
        )
        for tag, (current, peak) in sorted(tags.items(), key=lambda row: -row[1][0]):
            grid.add_row(Text(f"   {printable(tag, 60)}"), size_text(current), size_text(peak), "", "", "", "")
    if not answer["devices"]:
        grid.add_row("no device is open", *[""] * 6)
    return grid


def lines(answer):
    """Return a line for each device, for a file or a pipe."""
    clock = time.strftime("%H:%M:%S", time.localtime(answer["time"] if type(answer.get("time")) is float else None))
    for device in answer["devices"]:
        (allocated, most, reserved, _, _, _), _ = figures(device)
        sizes = f"allocated {size_text(allocated)}, peak {size_text(most)}, reserved {size_text(reserved)}"
        yield f"{clock} process {answer['pid']} device {device['index']}: {sizes}"


def watch(out, pid, interval, count, as_json, process=None):
    """Print a process's answer every ``interval`` seconds: ``count`` times, or until it ends or the user presses q.

    ``process`` is one that was started for this, which needs a moment before it can be watched. The keys are its own.
    """
    is_shown = out.is_terminal and not as_json
    with (
        Live(console=out, auto_refresh=False) if is_shown else nullcontext() as live,
        keys.Keys() if is_shown and process is None else nullcontext() as pressed,
    ):
        turn = 0
        pause = None if pressed is None else partial(pressed.is_pressed, "q")
        while count is None or turn < count:
            try:
                answer = ask(pid, pause=pause)
                if answer is None:
                    return
            except CannotWatch:
                if process is None and not (turn and not is_alive(pid)):
                    raise
                if process is None or process.poll() is not None:
                    return
                time.sleep(min(interval, 0.05))
                continue
            turn += 1
            if as_json:
                print(json.dumps(answer), flush=True)
            elif live is not None:
                live.update(table(answer), refresh=True)
            else:
                for line in lines(answer):
                    print(line, flush=True)
            if count is None or turn < count:
                if process is not None:
                    if not still_runs(process, interval):
                        return
                elif pressed is None:
                    time.sleep(interval)
                elif pressed.is_pressed("q", interval):
                    return


def still_runs(process, seconds):
    """Wait; return whether the process still runs then."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def start(words):
    """Start a command that lets itself be watched."""
    try:
        return subprocess.Popen(words, env={**os.environ, "L0RT_MONITOR": "1"})
    except OSError as e:
        raise CannotWatch(f"cannot start {printable(words[0])}: {e.strerror}") from None


def run(words, interval, count, as_json):
    """Watch the process that is a number, or the command that the words are; return the exit status."""
    out = report.console()
    if len(words) == 1 and words[0].isascii() and words[0].isdigit():
        return 0 if keys.show(out, watch, out, int(words[0]), interval, count, as_json) else 1
    with PassedOn() as signals:
        process = start(words)
        signals.begin(process)
        try:
            watch(out, process.pid, interval, count, as_json, process)
            status = process.wait()
        except BaseException:
            if process.poll() is None:
                process.terminate()
                process.wait()
            raise
        finally:
            sys.stdout.flush()
    return status if status >= 0 else 128 - status  # as shells report that a signal has ended it


class PassedOn:
    """Inside of this, signals that would end this process are for a command; that one decides what they do."""

    def __enter__(self):
        self.process, self.early = None, []
        may_set = threading.current_thread() is threading.main_thread()
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if may_set else ()
        self.before = {number: signal.getsignal(number) for number in numbers}
        for number, handler in self.before.items():
            if handler is not signal.SIG_IGN:  # else the command ignores it too
                signal.signal(number, self.tell)
        return self

    def begin(self, process):
        """Name the command; it gets what came before."""
        self.process = process
        while self.early:
            process.send_signal(self.early.pop(0))

    def tell(self, number, _):
        if self.process is None:
            self.early.append(number)
        elif number != signal.SIGINT or not has_terminal():
            self.process.send_signal(number)

    def __exit__(self, *_):
        for number, handler in self.before.items():
            signal.signal(number, handler)


def has_terminal():
    """Whether this process is of a terminal's foreground: the terminal sends SIGINT to whatever it has started too."""
    try:
        file = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(file) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(file)
