# SPDX-License-Identifier: Apache-2.0
"""The helper that runs programs keeps them apart from this process, and ends them."""

import os
import select
import subprocess
import sys
import time

import pytest

from helpers.process import WITH_PARENT, run_python
from helpers.source import ROOT


@pytest.mark.parametrize("fresh", [False, True])
def test_output_and_status_come_back(fresh):
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    result = run_python(code, fresh=fresh)
    assert (result.returncode, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert "exit status 3" in str(result)


def test_it_never_runs_in_the_source_tree(tmp_path):
    code = "import os, sys; print(os.getcwd()); print(os.listdir())"
    where, what = run_python(code).stdout.splitlines()
    assert not os.path.realpath(where).startswith(str(ROOT))
    assert what == "[]"
    assert run_python(code, cwd=tmp_path).stdout.startswith(str(tmp_path))


def test_the_environment_is_changed_and_no_more(monkeypatch):
    monkeypatch.setenv("L0RT_PLANTED_A", "1")
    monkeypatch.setenv("L0RT_PLANTED_B", "1")
    code = "import os; print({k: v for k, v in os.environ.items() if 'PLANTED' in k})"
    assert run_python(code, env={"L0RT_PLANTED_A": None, "L0RT_PLANTED_C": 2}).stdout.strip() == str(
        {"L0RT_PLANTED_B": "1", "L0RT_PLANTED_C": "2"}
    )


@pytest.mark.parametrize("fresh", [False, True])
def test_a_hang_ends_with_all_its_children(fresh):
    code = "import subprocess, sys; print(1, flush=True); subprocess.run([sys.executable, '-c', 'while True: pass'])"
    start = time.monotonic()
    result = run_python(code, timeout=2, fresh=fresh)
    assert time.monotonic() - start < 20
    assert result.timed_out
    assert result.returncode != 0
    assert result.stdout == "1\n"
    assert "took too long" in str(result)


SEEN = """
import faulthandler, multiprocessing, os, signal, sys, warnings
import l0rt.accelerator, numpy
sys.modules.pop("_distutils_hack", None)
print(__name__, sorted(vars()), sys.argv, sys.path, sys.flags, sys.stdin.read())
print(os.getcwd(), sorted(os.environ.items()))
print(*(signal.getsignal(n) for n in signal.valid_signals()), signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(os.getsid(0) == os.getpid(), faulthandler.is_enabled(), warnings.filters, sorted(os.listdir("/proc/self/fd")))
print([len(os.listdir("/proc/self/task")) == 1, sys.stdout.encoding, sys.stdout.line_buffering, sys.stdout.seekable()])
print([name for name in sys.modules if name.startswith("helpers")], open("/proc/self/maps").read().count("libze_"))
"""


def test_a_program_that_is_forked_sees_what_it_would_see_in_a_python_of_its_own(tmp_path):
    env = {"OPENBLAS_NUM_THREADS": None, "PYTHONPATH": f"{tmp_path}:/nowhere", "L0RT_CPU_DEVICES": "3"}
    forked = run_python(SEEN, env, cwd=tmp_path)
    env["OPENBLAS_NUM_THREADS"] = "1"  # is read at the start
    started = run_python(SEEN, env, cwd=tmp_path, fresh=True)
    assert (forked.returncode, forked.stderr) == (0, ""), forked
    assert forked.stdout == started.stdout.replace("('OPENBLAS_NUM_THREADS', '1'), ", "")


@pytest.mark.parametrize("end", ["", "raise SystemExit(4)", "os.kill(os.getpid(), 15)", "os._exit(7)", "1 / 0"])
def test_a_program_that_is_forked_ends_as_in_a_python_of_its_own(end):
    code = "import atexit, os, threading, time; atexit.register(print, 'end')\n"
    code += f"threading.Thread(target=lambda: (time.sleep(0.05), print('thread'))).start()\n{end}"
    forked, started = (run_python(code, fresh=fresh) for fresh in (False, True))
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]


@pytest.mark.parametrize(
    ("name", "value"),
    [("L0RT_LOGS", "alloc"), ("L0RT_PLANTED", "1"), ("PYTHONHASHSEED", "1"), ("LD_LIBRARY_PATH", "/"), ("TZ", "UTC")],
)
def test_what_a_start_reads_is_there_when_python_starts(name, value):
    code = "print(open('/proc/self/environ').read().split('\\0'), open('/proc/self/cmdline').read())"
    started, forked = run_python(code, {name: value}).stdout, run_python(code, {"L0RT_DISABLE": "vmm"}).stdout
    assert f"{name}={value}" in started
    assert "forkserver" not in started
    assert "L0RT_DISABLE=" not in forked
    assert "forkserver" in forked


def test_a_folder_with_an_l0rt_of_its_own_has_a_python_of_its_own(tmp_path):
    (tmp_path / "l0rt").mkdir()
    (tmp_path / "l0rt/__init__.py").write_text("other = 1\n")
    code = "import l0rt; print(l0rt.other)"
    assert run_python(code, cwd=tmp_path).stdout == run_python(code, {"PYTHONPATH": tmp_path}).stdout == "1\n"


@pytest.mark.skipif(not WITH_PARENT, reason="setpriv of util-linux is not installed")
def test_a_child_ends_when_its_parent_is_killed(tmp_path):
    os.mkfifo(fifo := tmp_path / "fifo")
    child = f"pipe = open({str(fifo)!r}, 'w', buffering=1); print('runs', file=pipe); import time; time.sleep(600)"
    code = f"from helpers.process import run_python; run_python({child!r}, timeout=600)"
    env = {**os.environ, "PYTHONPATH": ROOT / "tests"}
    with subprocess.Popen([sys.executable, "-c", code], env=env) as parent, open(fifo) as pipe:
        assert pipe.readline() == "runs\n"
        parent.kill()
        assert select.select([pipe], [], [], 60)[0], "the child still runs"
        assert pipe.read() == ""
