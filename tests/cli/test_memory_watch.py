# SPDX-License-Identifier: Apache-2.0
"""`l0rt memory watch` shows the memory of a process that lets itself be watched, and of no other."""

import contextlib
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
from pathlib import Path

import pytest
from l0rt.cli.memory import watch
from l0rt.telemetry import monitor

from helpers.cli import complaint, l0rt
from helpers.process import run_python

PROGRAM = """
import sys
import l0rt
from l0rt import memory
print("ready", flush=True)
sys.stdin.readline()
kept = l0rt.empty(3 << 20)
print("allocated", flush=True)
sys.stdin.readline()
{more}
"""


@pytest.fixture
def folder(monkeypatch):
    """A folder of the test's own for channels; its path is short, as that of a socket must be."""
    with tempfile.TemporaryDirectory(prefix="l0rt-", dir="/tmp") as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        yield Path(base, "l0rt")


class Watched:
    """A process that does one thing for each line, and may let itself be watched."""

    def __init__(self, folder, is_watched=True, more=""):
        environment = {**os.environ, "L0RT_DRIVER": "cpu", "L0RT_MONITOR": "1" if is_watched else "0"}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(more=more)],
            env=environment, cwd=folder.parent, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        self.pid = str(self.process.pid)

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def step(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


def test_what_a_process_has_is_shown(folder):
    with Watched(folder) as watched:
        before = json.loads(l0rt("memory", "watch", "--count", "1", "--json", watched.pid).stdout)
        assert (before["pid"], before["devices"]) == (int(watched.pid), [])
        watched.step()
        result = l0rt("memory", "watch", "--count", "2", "--interval", "0.05", watched.pid)
        assert (result.returncode, result.stderr) == (0, ""), result
        line = f"process {watched.pid} device 0: allocated 3.00 MiB, peak 3.00 MiB, reserved"
        assert len(re.findall(line, result.stdout)) == 2, result
        found = json.loads(l0rt("memory", "watch", "--count", "1", "--json", watched.pid).stdout)
        assert found["devices"][0]["memory"]["allocated_bytes.all.current"] == 3 << 20
        assert os.stat(folder).st_mode & 0o777 == 0o700
        watched.step()
        watched.process.wait(60)
    assert list(folder.iterdir()) == []
    assert "is not there" in l0rt("memory", "watch", watched.pid).stderr


def test_a_process_that_does_not_want_it_is_not_watched(folder):
    with Watched(folder, is_watched=False) as watched:
        result = l0rt("memory", "watch", watched.pid)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == (
            f"l0rt: process {watched.pid} does not let itself be watched: start it with L0RT_MONITOR=1\n"
        )
        assert not folder.exists()


def test_a_command_is_started_and_its_exit_status_is_kept(folder):
    program = "import l0rt, time; kept = l0rt.empty(1 << 20); time.sleep(1); raise SystemExit(7)"
    words = ("--interval", "0.1", sys.executable, "-c", program)
    result = l0rt("memory", "watch", *words, env={"L0RT_DRIVER": "cpu"})
    assert result.returncode == 7, result
    assert "allocated 1.00 MiB" in result.stdout
    assert l0rt("memory", "watch", sys.executable, "-c", "pass").returncode == 0
    assert "cannot start" in l0rt("memory", "watch", "/nowhere/program").stderr
    assert "needs a process's number or a command" in complaint(l0rt("memory", "watch"))
    assert "no number of seconds" in complaint(l0rt("memory", "watch", "--interval", "nan", "1"))


# A handler may run inside of print, which cannot be called again there.
COMMAND = """
import os, signal, sys
told = []
for number in NUMBERS:
    signal.signal(number, lambda number, _: (told.append(number), os.write(1, b"told %d\\n" % number)))
print("ready", flush=True)
sys.stdin.readline()
print("in all", *map(int, told), flush=True)
sys.exit(9)
"""
NUMBERS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def command(numbers=NUMBERS):
    """Return a program that tells what signals it gets until it has read a line."""
    return [sys.executable, "-c", COMMAND.replace("NUMBERS", repr([int(number) for number in numbers]))]


@pytest.mark.usefixtures("default_hangup")
@pytest.mark.parametrize("number", NUMBERS, ids=[number.name for number in NUMBERS])
@pytest.mark.parametrize("handles", [True, False])
def test_a_signal_to_the_watcher_is_passed_on_to_the_command(folder, number, handles, extent):
    if number != signal.SIGTERM:
        extent.skip_unless_whole()
    words = [sys.executable, "-m", "l0rt", "memory", "watch", "--interval", "0.05"]
    watcher = subprocess.Popen(
        [*words, *command(NUMBERS if handles else NUMBERS - {number, signal.SIGINT})], cwd=folder.parent, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert watcher.stdout.readline() == "ready\n"
        watcher.send_signal(number)
        if handles:  # and does not end
            assert watcher.stdout.readline() == f"told {int(number)}\n"
            out, err = watcher.communicate("\n", timeout=60)
            assert (watcher.returncode, out, err) == (9, f"in all {int(number)}\n", "")
        else:
            assert watcher.stdout.read() == ""  # the command's end of the pipe is closed too
            assert watcher.wait(60) == 128 + number
    finally:
        watcher.kill()
        watcher.communicate()


def test_ctrl_c_reaches_the_command_once_and_it_is_watched_until_it_ends(folder, extent):
    """The terminal itself sends SIGINT to the command too."""
    extent.skip_unless_whole()
    program = f"import l0rt; kept = l0rt.empty(3 << 20)\n{command()[2]}"
    words = [sys.executable, "-m", "l0rt", "memory", "watch", "--interval", "0.05", sys.executable, "-c", program]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder.parent)
        os.execve(sys.executable, words, {**os.environ, "TERM": "xterm", "COLUMNS": "80", "L0RT_DRIVER": "cpu"})
    told = b""

    def until(text, count):
        nonlocal told
        while told.count(text) < count:
            assert select.select([terminal], [], [], 60)[0], told
            told += os.read(terminal, 1 << 16)

    try:
        until(b"ready", 1)
        until(b"3.00 MiB", 2)
        os.write(terminal, b"\x03")
        until(b"told 2", 1)
        until(b"3.00 MiB", told.count(b"3.00 MiB") + 6)  # a second signal would have come by now
        os.write(terminal, b"\n")
        until(b"in all 2\r\n", 1)
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while os.read(terminal, 1 << 16):
                pass
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
        pid = None
    finally:
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(terminal)


def test_a_command_ends_when_nobody_reads_what_is_told_of_it(folder, extent):
    extent.skip_unless_whole()
    words = [sys.executable, "-m", "l0rt", "memory", "watch", "--interval", "0.05", sys.executable, "-c"]
    program = f"import sys, l0rt; kept = l0rt.empty(1); sys.stdout = sys.stderr\n{command({signal.SIGHUP})[2]}"
    watcher = subprocess.Popen(
        [*words, program], cwd=folder.parent, text=True, env={**os.environ, "L0RT_DRIVER": "cpu"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert watcher.stdout.readline()
        watcher.stdout.close()
        assert watcher.stderr.read() in ("", "ready\n")  # which the command has too, until it ends
        assert watcher.wait(60) == 1
    finally:
        watcher.kill()
        watcher.wait()
        watcher.stdin.close()
        watcher.stderr.close()


def test_what_is_ignored_stays_so(folder, extent):
    """As under nohup."""
    extent.skip_unless_whole()
    words = [sys.executable, "-m", "l0rt", "memory", "watch", sys.executable, "-c"]
    program = "import signal; print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)"
    result = run_python(f"""
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execv(sys.executable, {[*words, program]})
""")
    assert (result.returncode, result.stdout) == (0, "True\n"), result


@pytest.mark.parametrize("ended_by", ["q", signal.SIGINT, signal.SIGTERM])
def test_a_terminal_has_a_table_of_its_width_and_is_as_before_in_the_end(folder, ended_by, extent):
    if ended_by != "q":
        extent.skip_unless_whole()
    main, end = pty.openpty()
    before, told = termios.tcgetattr(end), b""
    words = [sys.executable, "-m", "l0rt", "memory", "watch", "--interval", "0.05"]
    with Watched(folder) as watched:
        watched.step()
        child = subprocess.Popen(
            [*words, watched.pid], stdin=end, stdout=end, stderr=subprocess.PIPE, cwd=folder.parent,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        )  # fmt: skip
        try:
            while told.count(b"3.00 MiB") < 12:  # three tables of sizes and their peaks
                assert select.select([main], [], [], 60)[0], told
                told += os.read(main, 1 << 16)
            moved = re.sub(r"\x1b\[\d*[A-HJK]|\r", "\n", told.decode())
            rows = re.sub(r"\x1b\[[\d;?]*[a-z]", "", moved).split("\n")
            assert any(f"process {watched.pid}" in row for row in rows)
            assert 60 < max(map(len, rows)) <= 80, rows
            if ended_by == "q":
                os.write(main, b"xq")
            else:
                child.send_signal(ended_by)
            _, complaint = child.communicate(timeout=60)
            while select.select([main], [], [], 0)[0]:
                told += os.read(main, 1 << 16)
            status = {"q": 0, signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM}[ended_by]
            assert (child.returncode, complaint) == (status, b"")
            assert termios.tcgetattr(end) == before
        finally:
            child.kill()
            child.wait()
            os.close(main), os.close(end)
    assert told.rfind(b"\x1b[?25l") < told.rfind(b"\x1b[?25h")  # the cursor is hidden, and shown again


def test_a_forked_child_is_not_watched_and_leaves_its_parents_channel(folder):
    more = "import os; child = os.fork()\nif not child: os._exit(0)\nos.waitpid(child, 0); print('x', flush=True)\n"
    with Watched(folder, more=more + "sys.stdin.readline()") as watched:
        watched.step()
        assert watched.step() == "x\n"
        assert l0rt("memory", "watch", "--count", "1", watched.pid).returncode == 0
    child = "import os, sys; sys.exit(os.waitstatus_to_exitcode(os.waitpid(os.fork() or sys.exit(3), 0)[1]))"
    result = run_python(f"import l0rt\n{child}", {"L0RT_MONITOR": "1"})
    assert (result.returncode, result.stderr) == (3, ""), result
    assert [path.name for path in folder.iterdir()] == [f"{watched.pid}.sock"]  # that one was killed


def test_a_folder_that_others_may_enter_is_not_used(folder):
    folder.mkdir(mode=0o755)
    result = run_python("import l0rt; l0rt.config.get('monitor')", {"L0RT_MONITOR": "1"})
    assert result.returncode == 0, result
    assert f"this process cannot be watched: others may enter {folder}" in result.stderr
    assert "is not trusted" in l0rt("memory", "watch", str(os.getpid())).stderr


def test_what_is_told_of_a_device_is_believed_only_if_all_has_the_right_type():
    sensors = {"missing": {"temperature": "no sensor"}, "clock_rate": 300, "temperature": None}
    good = {"index": 0, "name": "x", "uuid": "00", "is_software": False, "total_memory": 1, "memory": {"a": 1},
            "streams": ["s"], "sensors": sensors}  # fmt: skip
    assert watch.is_well_formed(good)
    for name in good:
        for wrong in (None, 1.5, "x" if type(good[name]) is not str else 1, [None], {"a": "b"}, {"missing": {"a": 1}}):
            assert not watch.is_well_formed({**good, name: wrong}), (name, wrong)
    for wrong in ({}, {"missing": {}, "clock_rate": 1.5}, {"missing": {}, "temperature": "hot"}, {"missing": []}):
        assert not watch.is_well_formed({**good, "sensors": wrong})


@pytest.mark.parametrize(
    "answer",
    [b"", b"{", b"[]", b'{"pid": 1}', b'{"format": 2, "pid": PID, "devices": []}',
     b'{"format": 1, "pid": PID, "devices": [1]}', b"[" * 100_000, b"\xff",
     b'{"format": 1, "pid": PID, "devices": [{"index": 0, "name": "x", "memory": {"a": "b"}}]}',
     b'{"format": 1, "pid": PID, "devices": []}', b'{"format": 1, "pid": PID, "command": [1], "devices": []}',
     b'{"format": 1, "pid": PID, "error": "no memory"}', b'{"format": 1, "pid": PID, "error": 1}'],
    ids=range(13),
)  # fmt: skip
def test_an_answer_that_is_none_is_told_in_a_line(folder, answer):
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(monitor.path(os.getpid()))
        listener.listen(1)
        watcher = subprocess.Popen(
            [sys.executable, "-m", "l0rt", "memory", "watch", str(os.getpid())],
            cwd=folder.parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        connection, _ = listener.accept()
        assert connection.recv(100) == b""  # all that it sends
        connection.sendall(answer.replace(b"PID", str(os.getpid()).encode()))
        connection.close()
        out, err = watcher.communicate(timeout=60)
    assert (watcher.returncode, out) == (1, "")
    assert err.startswith(f"l0rt: process {os.getpid()} cannot be watched: ")
    assert err.count("\n") == 1


SENSORS = """
from l0rt.runtime.streams import devices
devices.sensors = lambda index: print("opened", flush=True) or 1 / 0
print("replaced", flush=True)
sys.stdin.readline()
"""


def test_only_who_asks_for_sensors_opens_them(folder):
    with Watched(folder, more=SENSORS) as watched:
        watched.step()
        assert watched.step() == "replaced\n"
        found = watch.ask(int(watched.pid))
        assert found["devices"][0]["sensors"] == {"missing": {}}
        with pytest.raises(watch.CannotWatch, match="ZeroDivisionError"):
            watch.ask(int(watched.pid), with_sensors=True)
        assert watch.ask(int(watched.pid))["devices"] == found["devices"]  # what failed has not ended the thread
        assert watched.step() == "opened\n"  # once, and by the second


def test_who_neither_sends_nor_ends_is_answered_too(folder):
    with Watched(folder) as watched, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.connect(monitor.path(watched.pid))
        assert json.loads(channel.makefile("rb").read())["pid"] == int(watched.pid)


def test_a_wrong_value_of_the_variable_is_an_error():
    assert "L0RT_MONITOR" in run_python("import l0rt", {"L0RT_MONITOR": "yes"}).stderr
