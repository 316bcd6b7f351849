# SPDX-License-Identifier: Apache-2.0
"""The CPU driver's own tests, in C: built and run by its Makefile, without Python in the process."""

import ctypes.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2] / "l0rt" / "cpu_driver" / "test"

pytestmark = pytest.mark.skipif(
    not TESTS.exists() or shutil.which("make") is None or shutil.which("cc") is None,
    reason="needs the source tree, make and a C compiler",
)

needs_loader = pytest.mark.skipif(
    ctypes.util.find_library("ze_loader") is None or not Path("/usr/include/level_zero").exists(),
    reason="needs the official loader to link with (Debian: apt install libze1 libze-dev)",
)


def make(word, tmp_path, timeout=600):
    # The tests set what they need, and expect the defaults otherwise.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("L0RT_CPU_", "ZE_", "MAKE"))}
    command = ["make", f"-j{os.cpu_count() or 1}", "--no-print-directory", "-C", TESTS, f"BUILD={tmp_path}", word]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.keeps_every_core_busy
def test_c_tests_pass(tmp_path):
    said = make("test", tmp_path)
    tests = {path.stem.removeprefix("test_") for path in TESTS.glob("test_*.c")}
    assert tests <= {line.split(":")[0] for line in said.splitlines() if line.endswith(": ok")}


@needs_loader
def test_the_official_loader_hosts_the_driver(tmp_path, extent):
    extent.skip_unless_whole()
    said = make("hosted", tmp_path).splitlines()
    assert "hosted: 2 driver(s) ok" in said
    assert said.count("stranger: ok") == 6, "plain and with two sanitizers, each without and with the validation layer"


@needs_loader
def test_soak(tmp_path, soak):
    if not soak:
        pytest.skip("takes minutes: make soak")
    said = make("soak", tmp_path, timeout=7200)
    assert "seeds: ok" in said
    assert "fuzz: ok" in said
    for suite in ("trixie", "sid"):
        print(next(line for line in said.splitlines() if line.startswith(f"loader of {suite}: ")))
