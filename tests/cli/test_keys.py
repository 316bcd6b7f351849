# SPDX-License-Identifier: Apache-2.0
"""Keys are read one at a time, in whatever parts they arrive, and only from a terminal that is this process's."""

import contextlib
import fcntl
import os
import pty
import subprocess
import sys
import termios

import pytest
from l0rt.cli import keys


@pytest.fixture
def terminal(monkeypatch):
    """A terminal in place of the input; what is written to it is what was pressed."""
    main, end = pty.openpty()
    monkeypatch.setattr(keys, "PATIENCE", 60.0)
    with os.fdopen(end, "r") as file:
        monkeypatch.setattr(sys, "stdin", file)
        yield main
        monkeypatch.undo()
    with contextlib.suppress(OSError):
        os.close(main)


def pressed(sent, count):
    with keys.Keys() as found:
        os.write(sent[0], sent[1])
        return [found.wait(60) for _ in range(count)]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"jkq", ["j", "k", "q"]),
        (b"\x1b[A\x1bOA\x1b[B\x1bOBx", ["up", "up", "down", "down", "x"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[F\x1b[1~\x1b[4~", ["page up", "page down", "home", "end", "home", "end"]),
        (b"\x1b[1;5Cj\x1b[15~k\x1bOPq", ["", "j", "", "k", "", "q"]),  # Ctrl and an arrow, F5, F1
        (b"\x1bq\x1b\x1b[Aq", ["", "q", "", "up", "q"]),  # Alt and q; Escape before an arrow
        (b"\xc3\xa4q", ["\ufffd", "\ufffd", "q"]),
        (b"\x1b[" + b"1" * 20 + b"qj", ["", "j"]),
        (b"\x1b[" + b"1" * 20, ["", "[", *"1" * 20]),  # no key sends that
    ],
)
def test_what_a_terminal_sends_is_a_key(terminal, sent, expected):
    assert pressed((terminal, sent), len(expected)) == expected


def test_a_key_that_arrives_in_parts_is_one(terminal, monkeypatch):
    parts, read = [b"\x1b", b"[", b"6", b"~", b"q"], os.read

    def read_and_send(file, count):
        found = read(file, count)
        if parts:
            os.write(terminal, parts.pop(0))
        return found

    monkeypatch.setattr(os, "read", read_and_send)
    with keys.Keys() as found:  # which forgets what was typed before
        os.write(terminal, b"j")
        assert [found.wait(60) for _ in range(3)] == ["j", "page down", "q"]


def test_escape_alone_is_no_key(terminal, monkeypatch):
    monkeypatch.setattr(keys, "PATIENCE", 0.0)
    assert pressed((terminal, b"\x1b"), 1) == [""]


def test_one_key_is_waited_for_and_others_do_not_shorten_the_wait(terminal):
    with keys.Keys() as found:
        os.write(terminal, b"xy\x1b[Aq")
        assert found.is_pressed("q", 60)
        os.write(terminal, b"z")
        assert not found.is_pressed("q", 0.01)


def test_a_terminal_that_is_gone_has_no_keys(terminal):
    with keys.Keys() as found:
        os.close(terminal)
        with pytest.raises(keys.Gone):
            found.wait(60)


def test_the_terminal_is_set_while_keys_are_read_and_is_as_before_after_an_error(terminal):
    before = termios.tcgetattr(sys.stdin.fileno())
    with contextlib.suppress(KeyError), keys.Keys():
        assert termios.tcgetattr(sys.stdin.fileno()) != before
        raise KeyError
    assert termios.tcgetattr(sys.stdin.fileno()) == before


@pytest.mark.parametrize("stdin", [None, os.devnull])
def test_where_the_input_is_no_terminal_there_are_no_keys(monkeypatch, stdin):
    with open(os.devnull) as file:
        monkeypatch.setattr(sys, "stdin", stdin and file)
        with keys.Keys() as found:
            assert found.wait(0.0) == ""


IN_THE_BACKGROUND = """
import os, sys
from l0rt.cli import keys
with keys.Keys() as found:
    print(found.file, flush=True)
"""
A_SHELL = f"""
import os, subprocess, sys
words = [sys.executable, "-c", {IN_THE_BACKGROUND!r}]
before, behind = (subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=own)
                  for own in (None, os.setpgrp))
print(before.communicate()[0], before.returncode)
print(behind.stdout.readline())
_, status = os.waitpid(behind.pid, os.WUNTRACED)
if os.WIFSTOPPED(status):
    behind.kill()
print(status, flush=True)
"""


def test_a_process_of_the_background_leaves_the_terminal_alone(tmp_path, extent):
    """It would be stopped otherwise."""
    extent.skip_unless_whole()
    main, end = pty.openpty()
    shell = subprocess.Popen(
        [sys.executable, "-c", A_SHELL], stdin=end, stdout=subprocess.PIPE, text=True, start_new_session=True,
        cwd=tmp_path, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    try:
        told, _ = shell.communicate(timeout=60)
    finally:
        shell.kill()
        os.close(main), os.close(end)
    assert told.split() == ["0", "0", "None", "0"]
