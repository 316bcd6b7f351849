# SPDX-License-Identifier: Apache-2.0
"""`l0rt top` shows devices and processes: once, as JSON, and on a terminal with keys."""

import contextlib
import io
import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

import pytest
from l0rt.cli import top
from l0rt.cli.memory import watch
from l0rt.telemetry import Sample, monitor
from rich.console import Console

from helpers.cli import complaint, l0rt

PROGRAM = """
import sys
import l0rt
import l0rt.accelerator as acc
from l0rt import memory
l0rt.config.set("driver", "cpu")
memory.record_memory_history()
with memory.tag("weights"):
    kept = l0rt.empty(3 << 20)
pool = memory.MemPool()
with memory.use_mem_pool(pool):
    other = l0rt.empty(5 << 20)
stream, second = acc.Stream(), acc.Stream()
kept.fill(1, stream=stream)     # hangs
second.wait_stream(stream)
print("ready", flush=True)
sys.stdin.readline()
import os
os._exit(0)
"""


@pytest.fixture
def folder(monkeypatch):
    """A folder of the test's own for channels; its path is short, as that of a socket must be."""
    with tempfile.TemporaryDirectory(prefix="l0rt-", dir="/tmp") as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        yield Path(base, "l0rt")


@pytest.fixture
def watched(folder):
    """The number of a process that has memory with a tag, a pool, and a stream that waits for one that hangs."""
    hang = {"L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang", "L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "1"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env={**os.environ, **hang, "L0RT_MONITOR": "1"}, cwd=folder.parent,
        text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "ready\n"
        yield process.pid
    finally:
        process.kill()
        process.communicate()


CPU = {"L0RT_DRIVER": "cpu"}


def test_one_look_has_devices_processes_pools_tags_and_what_streams_wait_for(watched):
    result = l0rt("top", "--json", env=CPU)
    assert (result.returncode, result.stderr) == (0, ""), result
    seen = json.loads(result.stdout)
    assert (seen["format"], seen["others"], seen["problems"]) == (1, [], [])
    [device] = seen["devices"]
    assert (device["name"], device["process"]) == ("l0rt CPU device", watched)
    assert device["sensors"].keys() == {"time", "missing", *Sample.FIGURES}
    [process] = seen["processes"]
    [told] = process["devices"]
    assert told["memory"]["component_bytes.weights.current"] == 3 << 20
    assert top.pools(told)[1] == ("0.1", told["memory"]["reserved_bytes.all.current"] - top.pools(told)[0][1])
    assert len(told["streams"]) == 3
    text = l0rt("top", "--once", env=CPU).stdout
    for expected in (
        rf"xpu:0 .*process {watched}: l0rt CPU device",
        rf"{watched} xpu:0 +8.00 MiB",
        "tag weights",
        "pool default",
        r"pool 0\.1",
        "streams that are not idle",
        rf"{watched} xpu:0 stream \d+: 0 of \d commands done",
        r"waits for command \d of stream \d+",
    ):
        assert re.search(expected, text), (expected, text)  # fmt: skip


def test_nobody_is_there(folder):
    result = l0rt("top", env=CPU)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert "none" in result.stdout
    assert "no process of this user runs with L0RT_MONITOR=1" in result.stdout
    seen = json.loads(l0rt("top", "--json", env=CPU).stdout)
    assert (seen["devices"], seen["processes"]) == ([], [])


def test_a_process_that_does_not_answer_is_told_and_a_dead_one_is_not(watched, folder, monkeypatch):
    os.kill(watched, signal.SIGSTOP)
    os.waitid(os.P_PID, watched, os.WSTOPPED)
    monkeypatch.setattr(watch, "PATIENCE", 0.5)
    (folder / "999999999.sock").touch()
    (folder / "notes.txt").touch()
    monkeypatch.setattr(top.devices, "device_count", lambda: 0)
    seen = top.Observer().observe()
    assert seen["processes"] == []
    assert seen["problems"] == [f"process {watched} does not answer: no thread of it may hold the GIL for long"]
    assert (folder / "999999999.sock").exists()  # a file, and no socket that a process has left


class Others:
    """Processes with channels that this test serves: for each a number, and a socket that listens."""

    def __init__(self, folder, count):
        folder.mkdir(mode=0o700, exist_ok=True)
        self.processes = [subprocess.Popen(["sleep", "1000"]) for _ in range(count)]
        self.pids = [process.pid for process in self.processes]
        self.sockets = [socket.socket(socket.AF_UNIX) for _ in range(count)]
        for pid, listener in zip(self.pids, self.sockets, strict=True):
            listener.bind(str(folder / f"{pid}.sock"))
            listener.listen(1)

    def answer(self, at, connection):
        told = {"format": monitor.FORMAT, "pid": self.pids[at], "command": ["sleep"], "time": 1.0, "devices": []}
        with connection:
            while connection.recv(64):
                pass
            connection.sendall(json.dumps(told).encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process, listener in zip(self.processes, self.sockets, strict=True):
            process.kill()
            process.wait()
            listener.close()


def test_all_processes_are_asked_before_any_has_answered(folder, monkeypatch):
    """The first one answers only once the last one was asked; one of them never does, and hides nobody."""
    monkeypatch.setattr(top.devices, "device_count", lambda: 0)
    monkeypatch.setattr(watch, "PATIENCE", 3.0)
    with Others(folder, 4) as others:
        def serve():
            asked = [listener.accept()[0] for listener in others.sockets]
            for at in (0, 1, 3):
                others.answer(at, asked[at])
            seen_all.wait(60)
            asked[2].close()

        seen_all = threading.Event()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        observer = top.Observer()
        observer.begin()
        while observer.state()["unanswered"] != [others.pids[2]]:
            observer.poll(0.1)
        seen = observer.state()
        answered = sorted(set(others.pids) - {others.pids[2]})
        assert ([process["pid"] for process in seen["processes"]], seen["problems"]) == (answered, [])
        seen_all.set()
        thread.join(60)
        while observer.questions:
            observer.poll(0.1)
        assert [line.split()[1] for line in observer.state()["problems"]] == [str(others.pids[2])]


def test_an_answer_has_one_deadline(folder, monkeypatch):
    """A process that says a little again and again has no more time than one that says nothing."""
    monkeypatch.setattr(watch, "PATIENCE", 0.5)
    with Others(folder, 1) as others:
        ended = threading.Event()

        def drip():
            connection, _ = others.sockets[0].accept()
            with connection, contextlib.suppress(OSError):  # who asked has closed it
                while not ended.wait(0.05):
                    connection.sendall(b" ")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        said = []

        def ask():
            try:
                watch.ask(others.pids[0])
            except watch.CannotWatch as e:
                said.append(str(e))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(30)
        ended.set()
        thread.join(60)
        assert said == [f"process {others.pids[0]} does not answer: no thread of it may hold the GIL for long"]


def test_a_process_with_too_many_who_ask_is_asked_again(folder, monkeypatch):
    """Its backlog is full: connecting would wait."""
    with Others(folder, 1) as others:
        waiting = []
        for _ in range(4):
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting[-1].connect(str(folder / f"{others.pids[0]}.sock"))
        question = watch.Question(others.pids[0])
        assert (question.step(), question.is_connected) == (None, False)
        for connection in waiting:
            connection.close()
        others.sockets[0].setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                others.sockets[0].accept()[0].close()
        assert (question.step(), question.is_connected) == (None, True)
        connection, _ = others.sockets[0].accept()
        connection.setblocking(True)
        others.answer(0, connection)
        assert question.step()["pid"] == others.pids[0]


def test_sockets_of_the_dead_go(folder, monkeypatch):
    monkeypatch.setattr(top.devices, "device_count", lambda: 0)
    with Others(folder, 2) as others:
        old, young = (folder / f"{pid}.sock" for pid in others.pids)
    os.utime(old, (1, 1))  # the other one may be of a process that begins
    assert top.Observer().observe()["problems"] == []
    assert (old.exists(), young.exists()) == (False, True)
    os.utime(young, (1, 1))
    with pytest.raises(watch.CannotWatch, match="is not there"):
        watch.ask(others.pids[1])
    assert not young.exists()


SHOWN = """
import sys
from l0rt.cli import main
from l0rt.cli.memory import watch
watch.PATIENCE = 3600.0
sys.exit(main({words}))
"""


@pytest.mark.parametrize("command", ["top", "watch"])
def test_a_process_that_is_stopped_keeps_no_key_waiting(watched, command):
    os.kill(watched, signal.SIGSTOP)
    os.waitid(os.P_PID, watched, os.WSTOPPED)
    words = ["top"] if command == "top" else ["memory", "watch", str(watched)]
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (40, 100)) if hasattr(termios, "tcsetwinsize") else None
    shown = subprocess.Popen(
        [sys.executable, "-c", SHOWN.format(words=words)], stdin=slave, stdout=slave, stderr=slave,
        env={**os.environ, **CPU, "TERM": "xterm"}, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    try:
        deadline = time.monotonic() + 120
        while shown.poll() is None and time.monotonic() < deadline:
            os.write(master, b"q")  # before it listens, a key is lost
            if select.select([master], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    os.read(master, 1 << 16)
        assert shown.poll() == 0
    finally:
        shown.kill()
        shown.wait()
        os.close(master)


def test_bad_words_are_one_line():
    for words in (["--interval", "0"], ["--interval", "nan"], ["--sort", "x"], ["more"]):
        assert complaint(l0rt("top", *words))


def device(index, memory, software=False, streams=(), uuid="00"):
    return {
        "index": index, "name": "Intel Arc B580", "uuid": uuid, "is_software": software, "total_memory": 12 << 30,
        "memory": {"reserved_bytes.all.current": memory}, "streams": list(streams), "sensors": sensors(),
    }  # fmt: skip


def sensors(**figures):
    return {**dict.fromkeys(Sample.FIGURES), "time": 0.0, "missing": {}, **figures}


def process(pid, command, *devices):
    return {"pid": pid, "command": [command], "devices": list(devices)}


SEEN = {
    "devices": [
        {"index": 0, "name": "Intel Arc B580", "uuid": "00", "process": None, "total_memory": 12 << 30,
         "sensors": sensors(temperature=61, power_draw=151_400, clock_rate=2850, utilization=97,
                            device_memory_used=9 << 30, missing={"memory_usage": "the call wants privileges"})},
    ],
    "processes": [
        process(30, "/opt/tools/b\x1b[31m.py",
                device(0, 2 << 30, streams=["s: 1 of 2", "    command 2 waits", "t: 0 of 1"])),
        process(20, "c.py", device(0, 5 << 30)),
        process(10, "a.py"),
    ],
    "others": [{"pid": 7, "index": 0, "memory": 1 << 30, "command": "/usr/lib/xorg/Xorg :0"}],
    "problems": ["process 9 does not answer"],
}  # fmt: skip


def drawn(order, details, width):
    out = Console(width=width, file=io.StringIO(), highlight=False, markup=False, emoji=False)
    out.print(top.page(SEEN, order, details, True))
    return out.file.getvalue()


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("details", [True, False])
def test_a_page_fits_its_terminal(width, details):
    text = drawn("memory", details, width)
    assert max(map(len, text.splitlines())) <= width
    assert re.search(r"xpu:0 +61 +151 +2850 +97% +- 9.00 GiB \(75%\) Intel Arc B580", text)
    assert "\x1b" not in text
    assert re.search(r" 2 b\\x1b\[31m\.py", text)  # the program's name, without its folder
    assert "30     command 2 waits" in text or not details
    for expected in (
        "       7  xpu:0      1.00 GiB  /usr/lib/xorg/Xorg :0",
        "process 9 does not answer",
        "memory_usage: the call wants privileges",
    ):
        assert expected in text  # fmt: skip


@pytest.mark.parametrize(
    ("order", "expected"),
    [("memory", "20 30 10"), ("streams", "30 20 10"), ("pid", "10 20 30"), ("command", "30 10 20")],
)
def test_processes_are_sorted(order, expected):
    rows = re.findall(r"^ +(\d+) (?:xpu:0|-) +[-\d ]", drawn(order, False, 160).partition("command")[2], re.MULTILINE)
    assert rows[:3] == expected.split()


def test_a_device_that_two_processes_use_is_shown_once_and_each_of_the_cpu_drivers(monkeypatch):
    answers = [process(pid, "a", device(0, 1, pid > 2, uuid="cc" if pid > 2 else "aa")) for pid in (1, 2, 3, 4)]
    monkeypatch.setattr(top.devices, "device_count", lambda: 0)
    observer = top.Observer()
    observer.answers = {answer["pid"]: answer for answer in answers}
    assert [(row["uuid"], row["process"]) for row in observer.state()["devices"]] == [
        ("aa", None), ("cc", 3), ("cc", 4),
    ]  # fmt: skip


class Terminal:
    """`l0rt top` on a terminal of its own."""

    def __init__(self, lines=40):
        self.main, self.end = pty.openpty()
        self.before = termios.tcgetattr(self.end)
        self.told = ""
        self.child = subprocess.Popen(
            [sys.executable, "-m", "l0rt", "top", "--interval", "0.1"], stdin=self.end, stdout=self.end,
            stderr=subprocess.PIPE, env={**os.environ, **CPU, "TERM": "xterm", "COLUMNS": "100", "LINES": str(lines)},
        )  # fmt: skip

    @property
    def page(self):
        """The last page that is whole."""
        return self.told.rpartition("\x1b[H")[0].rpartition("\x1b[H")[2]

    def read_until(self, wanted):
        self.told, end = "", time.monotonic() + 60
        while not wanted(self):
            assert time.monotonic() < end, self.told
            if select.select([self.main], [], [], 1)[0]:
                self.told += os.read(self.main, 1 << 16).decode(errors="replace")

    def press(self, keys):
        os.write(self.main, keys)

    def wait(self):
        """Read what it writes until it ends; return how it ended and what it complained of."""
        while self.child.poll() is None:
            if select.select([self.main], [], [], 0.1)[0]:
                self.told += os.read(self.main, 1 << 16).decode(errors="replace")
        while select.select([self.main], [], [], 0)[0]:  # what it wrote last
            self.told += os.read(self.main, 1 << 16).decode(errors="replace")
        return self.child.returncode, self.child.stderr.read()

    def is_as_before(self):
        return termios.tcgetattr(self.end) == self.before

    def close(self):
        self.child.kill()
        self.child.wait()
        self.child.stderr.close()
        for file in (self.main, self.end):
            with contextlib.suppress(OSError):
                os.close(file)


@pytest.fixture
def terminal(folder):
    made = []

    def make(**how):
        made.append(Terminal(**how))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_keys_sort_hide_and_end_it_and_the_terminal_is_as_before(watched, terminal):
    shown = terminal()
    shown.read_until(lambda t: "pool default" in t.told and "not idle" in t.told)
    assert not shown.is_as_before()
    shown.press(b"xd")
    shown.read_until(lambda t: str(watched) in t.page and "pool default" not in t.page)
    shown.press(b"q")
    assert shown.wait() == (0, b"")
    assert shown.is_as_before()


@contextlib.contextmanager
def answering(folder, answers):
    """Processes that are watched: of each ``answers`` has what it tells. Their numbers are those of sleeping ones."""
    sleeping = [subprocess.Popen(["sleep", "600"]) for _ in answers]
    listeners = []

    def serve(listener, told):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(100)  # what is asked for: closing without that would reset the connection
                    connection.sendall(json.dumps(told).encode())

    try:
        folder.mkdir(mode=0o700)
        for process, told in zip(sleeping, answers, strict=True):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(folder / f"{process.pid}.sock"))
            listener.listen()
            listeners.append(listener)
            about = {"format": 1, "time": 0.0, **told, "pid": process.pid}
            threading.Thread(target=serve, args=(listener, about), daemon=True).start()
        yield [process.pid for process in sleeping]
    finally:
        for listener in listeners:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for process in sleeping:
            process.kill()
            process.wait()


def test_each_key_that_sorts_does_so_on_a_terminal(folder, terminal):
    answers = [
        {"command": ["b.py"], "devices": [device(0, 2 << 30, True, ["s: 1 of 2", "t: 0 of 1"])]},
        {"command": ["c.py"], "devices": [device(0, 5 << 30, True)]},
        {"command": ["a.py"], "devices": [device(0, 3 << 30, True, ["s: 1 of 2"])]},
    ]

    def order(page):
        return re.findall(r"\b([abc])\.py", page)

    with answering(folder, answers):
        shown = terminal()
        shown.read_until(lambda t: order(t.page) == ["c", "a", "b"])
        for key, expected in (("c", "abc"), ("s", "bac"), ("p", "bca"), ("m", "cab"), ("p", "bca")):
            shown.press(key.encode())
            shown.read_until(lambda t, expected=expected: order(t.page) == list(expected))


MORE = r"\.\.\. (\d+) lines above, (\d+) below: j, k, arrows and page keys move; d hides details"


def test_a_page_that_is_longer_than_the_terminal_is_moved_by_keys(folder, terminal, extent):
    extent.skip_unless_whole()
    answers = [{"command": [f"{number}.py"], "devices": [device(0, number << 20, True)]} for number in range(12)]
    with answering(folder, answers):
        shown = terminal(lines=9)
        shown.read_until(lambda t: re.search(MORE, t.page))
        assert shown.page.count("\n") == 8
        assert "°C" in shown.page
        above, below = map(int, re.search(MORE, shown.page).groups())
        assert above == 0
        moved = [("j", 1), ("\x1b[B", 2), ("k", 1), ("\x1b[6~", 8), ("\x1b[5~", 1), ("\x1bOA", 0), ("k", 0),
                 ("\x1b[F", below), ("j", below), ("k", below - 1), ("\x1b[1~", 0)]  # fmt: skip
        for key, expected in moved:
            shown.press(key.encode())
            shown.read_until(lambda t, n=expected: re.search(MORE, t.page) and re.search(MORE, t.page)[1] == str(n))
            assert re.search(MORE, shown.page)[2] == str(below - expected)


def test_each_line_of_a_long_page_is_on_one_of_its_parts():
    whole = top.page(SEEN, "memory", True, True)
    out = Console(width=80, height=6, file=io.StringIO(), highlight=False, markup=False, emoji=False)
    lines, first, seen = drawn("memory", True, 80).splitlines(), 0, []
    assert len(lines) > 12
    for key in ("home", "page down", "page down", "page down", "page down", "page down", "page down"):
        shown, first = top.part(out, whole, first + top.moves(6)[key])
        with out.capture() as told:
            out.print(shown)
        rows = told.get().splitlines()
        assert len(rows) == 6
        assert rows[:5] == lines[first : first + 5]
        assert f"{first} lines above, {len(lines) - first - 5} below" in rows[5]
        seen += rows[:5]
    assert set(seen) == set(lines)
    assert first == len(lines) - 5
    assert top.part(out, whole, 1 << 40)[1] == len(lines) - 5
    for height in (1, 2):
        small = Console(width=80, height=height, file=io.StringIO())
        assert top.part(small, whole, top.moves(height)["down"])[1] == 1
    high = Console(width=80, height=len(lines), file=io.StringIO())
    assert top.part(high, whole, 3) == (whole, 0)


@pytest.mark.usefixtures("default_hangup")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(terminal, number, extent):
    if number == signal.SIGHUP:
        extent.skip_unless_whole()
    shown = terminal()
    shown.read_until(lambda t: "no process of this user" in t.page)
    assert not shown.is_as_before()
    shown.child.send_signal(number)
    assert shown.wait() == (-number, b"")
    assert shown.is_as_before()
    assert "\x1b[?1049l" in shown.told  # the screen too


def test_a_terminal_that_goes_away_ends_it_in_silence(terminal):
    shown = terminal()
    shown.read_until(lambda t: "no process of this user" in t.page)
    os.close(shown.main)
    os.close(shown.end)
    assert (shown.child.wait(60), shown.child.stderr.read()) == (1, b"")


def test_a_folder_that_others_may_enter_is_not_trusted(folder):
    folder.mkdir(mode=0o755)
    (folder / f"{os.getppid()}.sock").touch()
    assert monitor.folder() == str(folder)
    assert "is not trusted" in l0rt("top", env=CPU).stdout
