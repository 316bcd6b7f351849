# SPDX-License-Identifier: Apache-2.0
"""A process tells at its end what it has not freed, if somebody asks for that: on stderr or in a file."""

import re

import l0rt
import pytest
from l0rt import memory

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": "2"}
MIB = 1 << 20

LEAKY = """
import gc, os, sys
import numpy as np
import l0rt
from l0rt import memory

def weights(kind="device", device=0):
    return l0rt.empty(3 << 20, kind=kind, device=device)

with memory.tag("model"):
    kept = [weights() for _ in range(2)]
pinned = weights("host")
second = weights(device=1)
raw = memory.caching_allocator_alloc(1 << 20)
"""
CLEAN = """
import numpy as np
import l0rt
from l0rt import memory
x = l0rt.empty(3 << 20)
x.copy_from(np.ones(3 << 20, "u1"))
x.copy_to(np.empty(3 << 20, "u1"))
y = l0rt.empty(1 << 20, kind="host")
pool = memory.MemPool()
with memory.use_mem_pool(pool):
    z = l0rt.empty(5)
cycle = [l0rt.empty(7)]
cycle.append(cycle)
x.free(), y.free(), z.free()
del cycle
"""


def run(program, where="1", **more):
    return run_python(program, {**CPU, "L0RT_LEAK_REPORT": where, **more})


def test_what_is_left_is_told_by_stack_and_tag():
    result = run(LEAKY)
    assert (result.returncode, result.stdout) == (0, ""), result
    lines = result.stderr.splitlines()
    assert lines[0] == ("l0rt: allocated and not freed: 7.00 MiB in 3 blocks of xpu:0, 3.00 MiB in 1 block of xpu:1, "
                        "3.00 MiB in 1 block of pinned memory")  # fmt: skip
    assert lines[1] == "  6.00 MiB in 2 blocks of xpu:0, tag model"
    assert re.fullmatch(r"    <string>:8 \(weights\)", lines[2])
    heads = [line for line in lines if re.match("  [^ ]", line)]
    assert heads[1:] == ["  3.00 MiB in 1 block of xpu:1", "  3.00 MiB in 1 block of pinned memory",
                         "  1.00 MiB in 1 block of xpu:0"]  # fmt: skip


def test_nothing_is_told_where_nothing_is_left():
    result = run(CLEAN)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result
    assert run("import l0rt").stderr == run("import l0rt.accelerator as a; a.device_count()").stderr == ""


@pytest.mark.parametrize("where", ["", "0", None])
def test_nothing_is_told_without_being_asked(where):
    result = run(LEAKY, where)
    assert (result.returncode, result.stderr) == (0, ""), result


def test_a_file_is_written_and_none_is_replaced(tmp_path):
    for _ in range(2):
        result = run(LEAKY, tmp_path / "leaks.txt")
        assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result
    run(CLEAN, tmp_path / "leaks.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["leaks.1.txt", "leaks.2.txt"]
    assert "tag model" in (tmp_path / "leaks.2.txt").read_text()


@pytest.mark.parametrize("end", [
    "sys.stderr = None", "sys.stderr.close()", "os.close(2)", "os.dup2(os.open('/dev/full', os.O_WRONLY), 2)",
    "sys.stderr = object()",
])  # fmt: skip
def test_an_end_where_nobody_can_be_told_is_quiet(end):
    result = run(LEAKY + end)
    assert result.returncode in (0, 120), result  # 120: Python itself could not flush
    assert "Traceback" not in result.stderr


def test_a_file_that_cannot_be_written_changes_nothing(tmp_path):
    result = run(LEAKY, tmp_path / "gone" / "leaks.txt")
    assert (result.returncode, result.stderr) == (0, ""), result


def test_a_forked_child_tells_only_of_its_own():
    after = run(LEAKY + "if os.fork() == 0: sys.exit(0)\nos.wait()")
    assert after.stderr.count("l0rt: allocated and not freed") == 1, after
    before = run("import os, l0rt\nif os.fork() == 0:\n kept = l0rt.empty(5)\nelse: os.wait()")
    assert before.stderr.startswith("l0rt: allocated and not freed: 5 bytes in 1 block of xpu:0"), before
    assert before.stderr.count("l0rt: allocated and not freed") == 1, before


def test_a_function_asks_too_and_takes_it_back():
    program = "import l0rt\nfrom l0rt import memory\n{}\nkept = l0rt.empty(5)\n{}"
    on, off = "memory.enable_leak_report()", "memory.enable_leak_report(None)"
    assert "5 bytes in 1 block of xpu:0" in run_python(program.format(on, ""), CPU).stderr
    late = run_python(program.format("", on), CPU).stderr
    assert "5 bytes in 1 block of xpu:0: no stack" in late
    assert run_python(program.format(on, off), CPU).stderr == ""
    assert run_python(program.format(on, "memory.enable_leak_report(False)\n" + on), CPU).stderr.count("l0rt:") == 1


def test_a_name_with_control_characters_is_told_without_them():
    program = "import l0rt\nexec(compile('kept = l0rt.empty(5)', 'a\\x1b[31m\\nb', 'exec'))"
    result = run(program)
    assert "    a?[31m?b:1 (<module>)" in result.stderr.splitlines()


def test_the_report_is_a_text_that_can_be_asked_for_at_any_time():
    memory.record_memory_history(context="state")
    try:
        before = memory.leak_report()
        kept = l0rt.empty(3 * MIB)
        told = memory.leak_report()
        line = test_the_report_is_a_text_that_can_be_asked_for_at_any_time.__code__.co_firstlineno + 4
        assert f"{__file__}:{line}" in told
        assert f"{__file__}:{line}" not in before
        assert "  3.00 MiB in 1 block of xpu:0\n" in memory.leak_report(0)
        kept.free()
        assert memory.leak_report() == before
    finally:
        memory.record_memory_history(None)
    with pytest.raises(IndexError):
        memory.leak_report(99)
    for wrong in ("", 5, 1.5, [], b""):
        with pytest.raises((TypeError, ValueError)):
            memory.enable_leak_report(wrong)
