# SPDX-License-Identifier: Apache-2.0
"""Devices are counted in another process, whatever this one looks like; what could not be counted is asked again."""

import os
import subprocess
import sys

import pytest

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}
QUIET = (0, "", "")


def outcome(code, env=CPU):
    result = run_python(code, env)
    return result.returncode, result.stdout, result.stderr


FULL = """
import os, resource
import l0rt.accelerator as acc, l0rt.ze.count
LIMIT = {limit}
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard))
kept = []
try:
    while len(kept) < {most}:
        kept.append(os.dup(2))
except OSError:
    pass
assert acc.device_count() == 2 and acc.is_available()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (LIMIT, hard)
"""


def test_devices_are_counted_beside_1500_open_descriptors():
    assert outcome(FULL.format(limit=2000, most=1500)) == QUIET


def test_devices_are_counted_when_no_descriptor_is_left():
    assert outcome(FULL.format(limit=300, most=1000)) == QUIET


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_devices_are_counted_with_standard_descriptors_closed(closed, tmp_path):
    """A pipe's ends are the lowest free descriptors: those of the child's output and errors."""
    script = tmp_path / "closed.py"
    script.write_text("""
import os
import l0rt.accelerator as acc
os._exit(acc.device_count() + 40)
""")
    shut = " ".join(f"{descriptor}>&-" for descriptor in closed)
    command = ["sh", "-c", f'exec "$0" "$1" {shut}', sys.executable, str(script)]
    done = subprocess.run(command, env={**os.environ, **CPU}, cwd=tmp_path, timeout=60)
    assert done.returncode == 42


@pytest.mark.parametrize("away", ["sys.executable = None", "sys.executable = ''", "sys.executable = '/nowhere/python'"])
def test_devices_are_counted_without_the_interpreters_path(away):
    for elsewhere in ("", "sys._base_executable = None; sys.exec_prefix = '/nowhere'"):
        code = f"""
import os, sys
import l0rt, l0rt.accelerator as acc
{away}
{elsewhere}
assert acc.device_count() == 2
assert "libze_" not in open("/proc/self/maps").read()
if os.fork() == 0:
    l0rt.empty(64).fill(1)
    acc.synchronize()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
"""
        assert outcome(code) == QUIET


def test_what_could_not_be_counted_is_asked_again():
    code = """
import os, resource
import l0rt.accelerator as acc
spawn = os.posix_spawn
def refused(*a, **k):
    raise OSError(11, "Resource temporarily unavailable")
os.posix_spawn = refused
before = len(os.listdir("/proc/self/fd"))
assert acc.device_count() == 0
assert len(os.listdir("/proc/self/fd")) == before
os.posix_spawn = lambda path, command, *a, **k: spawn(path, [path, "-c", "pass"], *a, **k)
assert acc.device_count() == 0      # a child that died
os.posix_spawn = spawn
assert acc.device_count() == 2
"""
    assert outcome(code) == QUIET


def test_devices_are_counted_where_somebody_else_reaps_all_children():
    code = """
import signal
import l0rt.accelerator as acc
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
assert acc.device_count() == 2
"""
    assert outcome(code) == QUIET
