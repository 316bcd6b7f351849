# SPDX-License-Identifier: Apache-2.0
"""`l0rt.debug`: the state of a process as a text, on request and on a signal."""

import pytest

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2", "L0RT_CPU_PROFILE": None}
HUNG = {**CPU, "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}


def test_a_process_without_a_driver_opens_none():
    code = "import l0rt\ntext = l0rt.debug.dump_state()\nassert not l0rt.xpu.is_initialized()\nprint(text)"
    result = run_python(code, CPU)
    assert result.returncode == 0, result
    assert "no driver is open" in result.stdout
    assert "thread MainThread:" in result.stdout


def test_the_state_has_devices_streams_settings_and_stacks(tmp_path):
    result = run_python(
        """
import io, threading
from pathlib import Path
import l0rt, l0rt.accelerator as acc
from l0rt import config, debug
config.set("xpu:1.wait_policy", "spin")
go = threading.Event()
def named_function():
    go.wait()
thread = threading.Thread(target=named_function, name="helper")
thread.start()
kept = l0rt.empty(3 << 20)
acc.set_device_index(1)
out = io.StringIO()
text = debug.dump_state(out)
assert out.getvalue() == text
debug.dump_state("state.txt")
debug.dump_state(Path("state.txt"))
assert Path("state.txt").read_text().count("l0rt in process") == 1
go.set()
print(text)
""",
        CPU,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result
    for words in ("xpu:0, l0rt CPU device\n", "xpu:1, l0rt CPU device, current in this thread", "allocated 3.00 MiB",
                  "no stream has work", "xpu:1.wait_policy = spin (set)", "driver = cpu (L0RT_DRIVER)",
                  "thread helper:", "in named_function", "thread MainThread:"):  # fmt: skip
        assert words in result.stdout, (words, result.stdout)


@pytest.mark.parametrize("wait", ["stream.synchronize()", "time.sleep(60)"])
def test_a_signal_shows_what_a_process_hangs_in(wait):
    result = run_python(
        f"""
import os, signal, sys, threading, time
import l0rt, l0rt.accelerator as acc
from l0rt import debug
called = []
signal.signal(signal.SIGUSR1, lambda number, frame: called.append(number))
debug.dump_on_signal()
stream = acc.Stream()
l0rt.empty(64).fill(1, stream=stream)
def send():
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGUSR1)
    while not called:
        time.sleep(0.01)
    os._exit(0)
threading.Thread(target=send).start()
def hangs_here():
    {wait}
hangs_here()
""",
        HUNG,
        timeout=60,
    )
    assert result.returncode == 0, result
    assert "in hangs_here" in result.stderr
    assert "stream_id=" in result.stderr


def test_the_previous_handler_comes_back(tmp_path):
    result = run_python(
        """
import os, signal, threading
from l0rt import debug
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
undo = debug.dump_on_signal(signal.SIGUSR2, "state.txt")
os.kill(os.getpid(), signal.SIGUSR2)
assert open("state.txt").read().startswith("l0rt in process")
undo()
assert signal.getsignal(signal.SIGUSR2) is signal.SIG_IGN
def elsewhere():
    try:
        debug.dump_on_signal()
    except ValueError as e:
        print(e)
thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
""",
        CPU,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result
    assert "main thread" in result.stdout
