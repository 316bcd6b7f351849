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


def test_output_and_status_come_back():
    result = run_python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
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


def test_a_hang_ends_with_all_its_children():
    code = "import subprocess, sys; print(1, flush=True); subprocess.run([sys.executable, '-c', 'while True: pass'])"
    start = time.monotonic()
    result = run_python(code, timeout=2)
    assert time.monotonic() - start < 20
    assert result.timed_out
    assert result.returncode != 0
    assert result.stdout == "1\n"
    assert "took too long" in str(result)


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
