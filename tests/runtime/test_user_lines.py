# SPDX-License-Identifier: Apache-2.0
"""Warnings and log lines name streams by their repr, and the user's own line: never a frame of l0rt."""

import re
import sys
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import pytest

from helpers.process import run

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": None, "PYTHONWARNINGS": "always"}
STREAM = r"<l0rt\.Stream device=xpu:0 stream_id=\d+ priority=-?\d>"


def told_by(tmp_path, code, **env):
    """What a script prints, and the number of its line that ends in ``#!``."""
    script = tmp_path / "theirs.py"
    script.write_text(code)
    line = next(i for i, text in enumerate(code.splitlines(), 1) if text.endswith("#!"))
    result = run([sys.executable, str(script)], {**CPU, **env})
    assert result.returncode == 0, result
    return result.stderr, line


def test_the_repr_of_a_stream_is_what_the_tests_below_look_for():
    assert re.fullmatch(STREAM, repr(acc.Stream(0)))


WARNINGS = {
    "implicit synchronisation": (
        """
import l0rt, l0rt.accelerator as acc
acc.set_sync_debug_mode("warn")
x = l0rt.empty(64)
x.copy_from(bytes(64)) #!
""",
        {},
        r"UserWarning: copy_from\(\), .* from memory that is not pinned synchronizes implicitly with " + STREAM,
    ),
    "a race": (
        """
import l0rt, l0rt.accelerator as acc
a, b, x = acc.Stream(), acc.Stream(), l0rt.empty(64)
x.fill(0, stream=a)
x.fill(1, stream=b) #!
acc.synchronize()
""",
        {"L0RT_SANITIZE": "stream"},
        rf"StreamRaceWarning: nothing orders these two[^\n]*\n  first, fill by {STREAM}, 64 bytes at 0x",
    ),
    "a race with what is announced": (
        """
import l0rt, l0rt.accelerator as acc
from l0rt import sanitizer
a, h = acc.Stream(), l0rt.empty(64, kind="host")
h.fill(0, stream=a, non_blocking=True)
sanitizer.host_access(h) #!
acc.synchronize()
""",
        {"L0RT_SANITIZE": "stream"},
        rf"StreamRaceWarning: nothing orders these two[^\n]*\n  first, fill by {STREAM}",
    ),
    "no GPU": (
        """
import l0rt.accelerator as acc
def ask():
    return acc.get_device_name() #!
ask()
""",
        {"L0RT_DRIVER": "auto", "ZE_ENABLE_ALT_DRIVERS": "/nonexistent.so"},
        r"UserWarning: no GPU .*: using the bundled CPU driver",
    ),
    "a variable set too late": (
        """
import os, l0rt.accelerator as acc
acc.init()
os.environ["ZE_AFFINITY_MASK"] = "0"
acc.is_available() #!
""",
        {"ZE_AFFINITY_MASK": None},
        r"RuntimeWarning: ZE_AFFINITY_MASK has no effect any more",
    ),
    "an unknown variable": (
        "import l0rt #!",
        {"L0RT_DRIVERS": "cpu"},
        r"UserWarning: L0RT_DRIVERS is no environment variable of l0rt",
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_a_warning_names_the_users_line(name, tmp_path):
    code, env, text = WARNINGS[name]
    told, line = told_by(tmp_path, code, **env)
    assert re.search(rf"theirs\.py:{line}: {text}", told), told
    assert "site-packages" not in told, told


def test_a_races_stacks_have_the_users_frames_alone(tmp_path):
    code, env, _ = WARNINGS["a race with what is announced"]
    told, _ = told_by(tmp_path, code, **env)
    files = re.findall(r'File "([^"]*)"', told)
    assert files
    assert {file.rpartition("/")[2] for file in files} == {"theirs.py"}, told


LOGS = {
    "alloc": ("x = l0rt.empty(64, stream=s) #!", rf"allocated 0x[0-9a-f]+, 64 bytes, for {STREAM}"),
    "stream": ("s.synchronize() #!", rf"the host knows that {STREAM} is idle"),
    "stream wait": ("s.wait_stream(t) #!", rf"{STREAM} waits for {STREAM}"),
    "copy": ("y.copy_from(x, stream=s) #!", rf"{STREAM} copies to 0x[0-9a-f]+ from 0x[0-9a-f]+, 64 bytes"),
    "event": ("s.record_event() #!", rf"point 0x[0-9a-f]+ recorded on {STREAM}"),
    "init": ("acc.init() #!", r"device 0: .*, driver .*"),
    "host memory": ("l0rt.empty(64, kind='host') #!", rf"allocated 0x[0-9a-f]+, 64 bytes, for (no stream|{STREAM})"),
}


NUMBER = r"\d+\.\d{3} ms"
BUILDS = {  # the last line -> what is told of it
    "l0rt.Module(PATH) #!": [rf"\d+ bytes of SPIR-V: built for xpu:0 in {NUMBER}"],
    "l0rt.Module(l0rt.Module(PATH).native_binary()) #!": [
        rf"\d+ bytes of SPIR-V: built for xpu:0 in {NUMBER}",
        rf"\d+ bytes of native code: built for xpu:0 in {NUMBER}",
    ],
    "for _ in range(2): l0rt.compile(TEXT) #!": [
        rf"\d+ bytes of SPIR-V: built for xpu:0 in {NUMBER}",
        rf"<source>: compiled by ocloc for xpu:0 in {NUMBER}",
        rf"\d+ bytes of SPIR-V: built for xpu:0 in {NUMBER}",
        rf"<source>: taken from memory for xpu:0 in {NUMBER}",
    ],
    "l0rt.compile(TEXT), forget(), l0rt.compile(FILE), forget(), l0rt.compile(FILE) #!": [
        rf"\d+ bytes of SPIR-V: built for xpu:0 in {NUMBER}",
        rf"<source>: compiled by ocloc for xpu:0 in {NUMBER}",
        rf"\d+ bytes of SPIR-V: built for xpu:0 in {NUMBER}",
        rf"\S+/k.cl: compiled by ocloc for xpu:0 in {NUMBER}",
        rf"\d+ bytes of SPIR-V: built for xpu:0 in {NUMBER}",
        rf"\S+/k.cl: taken from the cache for xpu:0 in {NUMBER}",
    ],
    "made.before = fail\nwith contextlib.suppress(l0rt.ModuleBuildError): l0rt.compile(TEXT) #!": [
        rf"<source>: refused by ocloc or the driver for xpu:0 in {NUMBER}"
    ],
    "l0rt.specialize(TEXT, [])['add'].select() #!": [
        rf"\d+ bytes of SPIR-V: built for xpu:0 in {NUMBER}",
        rf"<source>: compiled by ocloc for xpu:0 in {NUMBER}",
    ],
}


@pytest.mark.parametrize("last", BUILDS)
def test_compiles_and_builds_are_logged_with_the_users_line(last, tmp_path):
    path = Path(__file__).parents[1] / "kernels/add.spv"
    begin = f"""
import contextlib, pathlib, l0rt
from helpers.compilers import StandIn, forget
made = StandIn("builds").install()
PATH, TEXT, FILE = {str(path)!r}, "kernel void add() {{}}", pathlib.Path("k.cl").absolute()
FILE.write_text(TEXT)
def fail():
    raise l0rt.ModuleBuildError("no luck")
"""
    env = {"L0RT_LOGS": "kernel", "L0RT_CACHE_DIR": tmp_path / "cache", "PYTHONPATH": Path(__file__).parents[1]}
    told, line = told_by(tmp_path, begin + last + "\n", **env)
    expected = [rf"l0rt\.kernel: {text} \(theirs\.py:{line}\)" for text in BUILDS[last]]
    assert re.fullmatch("\n".join(expected) + "\n", told), told


@pytest.mark.parametrize("name", LOGS)
def test_a_log_line_names_the_users_line(name, tmp_path):
    last, text = LOGS[name]
    begin = "import l0rt, l0rt.accelerator as acc\n"
    if name != "init":
        begin += "s, t = acc.Stream(), acc.Stream()\nx, y = l0rt.empty(64), l0rt.empty(64)\n"
        begin += "x.fill(0, stream=s), y.fill(0, stream=t)\n"
    told, line = told_by(tmp_path, begin + last + "\n", L0RT_LOGS="alloc,stream,event,init")
    assert re.search(rf": {text} \(theirs\.py:{line}\)\n", told), told


def test_a_wait_that_timed_out_is_told_with_the_stream_and_the_line(tmp_path):
    code = """
import logging, os
import l0rt, l0rt.accelerator as acc
logging.basicConfig(level=logging.INFO, format="%(filename)s:%(lineno)d: %(message)s")
a, b, x = acc.Stream(), acc.Stream(), l0rt.empty(64)
x.fill(0, stream=a)
b.wait_stream(a)
b.synchronize(timeout=0.01) #!
os._exit(0)
"""
    told, line = told_by(tmp_path, code, L0RT_CPU_FAIL="zeCommandListAppendMemoryFill:1:hang")
    assert re.match(rf"theirs\.py:{line}: a wait for {STREAM} timed out\n", told), told
    assert re.search(rf"\n{STREAM}: 0 of \d commands done, on queue", told), told
    assert re.search(rf"\n    command \d waits for command \d of {STREAM}, which has done 0", told), told


def test_who_is_told_by_number_finds_the_stream():
    from l0rt.runtime.current.waits import name_at

    assert (name_at(0), name_at(0x10)) == ("no stream", "stream 0x10")
    assert l0rt.Stream is acc.Stream
