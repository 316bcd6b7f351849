# SPDX-License-Identifier: Apache-2.0
"""What `l0rt bench --instructions` counts: as many as the budgets say, whatever else is there."""

import ast
import json
import re
import shutil
from pathlib import Path

import l0rt as l0rt_package
import pytest
from l0rt.bench.command import select

from helpers import build_loops
from helpers.cli import l0rt
from helpers.process import run_python
from helpers.source import ROOT

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1, "COLUMNS": None}


def test_instructions_are_counted(extent, tmp_path):
    extent.skip_unless_whole()
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    path = tmp_path / "report.json"
    result = l0rt("bench", "allocator", "--smoke", "--instructions", "--json", str(path), env=CPU, timeout=400)
    assert result.returncode == 0, result
    found = json.loads(path.read_text())
    notes = {id: row.get("notes", {}) for id, row in found["rows"].items()}
    counts = {id: said["instructions"] for id, said in notes.items() if "instructions" in said}
    assert set(counts) == {row.id for row in select({"allocator"}) if row.counts}
    assert min(note["value"] for note in counts.values()) > 50
    assert counts["allocator.malloc_free.4KiB.c"]["limit"] == 160
    assert re.search(r"^allocator\.malloc_free\.4KiB\.c instructions +\d+ ", result.stdout, re.MULTILINE)


def test_pools_cost_little_inside_and_less_beside(extent):
    extent.skip_unless_whole()
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    result = run_python("""
from l0rt.bench import counts, rows
budgets = {id: row.budget.instructions for id, row in rows.ROWS.items() if id.startswith("allocator.pool.")}
counted = counts.counted(list(budgets))
assert len(counted) == len(budgets) == 8, counted
assert not {id: (figure, budgets[id]) for id, figure in counted.items() if figure > budgets[id]}, counted
""", env=CPU, timeout=300)
    assert result.returncode == 0, result


MANY = """
import ctypes, mmap
from contextlib import ExitStack, contextmanager
import l0rt, l0rt.accelerator as acc
from l0rt.bench import allocator_rows, counts, rows
from l0rt.memory import MemPool, PluggableAllocator, use_mem_pool

# Addresses that nobody touches: the CPU driver has too few for ten thousand pools where valgrind leaves it so little.
space = mmap.mmap(-1, 24 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)     # MAP_NORESERVE
place = -(-ctypes.addressof(ctypes.c_char.from_buffer(space)) // 65536) * 65536

def take(nbytes, device, stream):
    global place
    place += -(-nbytes // 65536) * 65536
    return place - -(-nbytes // 65536) * 65536

@contextmanager
def inside(count):
    functions = PluggableAllocator(take, lambda *what: None)
    pools = [MemPool(functions) for _ in range(count)]
    for pool in reversed(pools):
        with use_mem_pool(pool):
            l0rt.empty(4096)
    assert l0rt.memory.memory_reserved() >= count << 20
    with use_mem_pool(pools[count // 2]):
        yield

@contextmanager
def used_by(count):
    with ExitStack() as held, use_mem_pool(MemPool(PluggableAllocator(take, lambda *what: None))):
        streams = [held.enter_context(acc.stream_pool.lease()) for _ in range(count)]
        assert len({stream.stream_id for stream in streams}) == count
        for stream in streams:
            l0rt.empty(4096, stream=stream)
        held.enter_context(acc.stream(streams[count // 2]))
        yield

for situation, counted in (inside, (100, 10_000)), (used_by, (10, 1000)):
    for language in "c", "python":
        for count in counted:
            pair = allocator_rows.pool_pair(situation, (count,), language == "c")
            allocator_rows.row(f"{situation.__name__}.{count}.{language}", "", 4096)(pair)
"""


def test_a_cached_pair_takes_the_same_inside_any_of_ten_thousand_pools_and_of_a_thousand_streams(extent):
    extent.skip_unless_whole()
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    result = run_python(f"""{MANY}
program = counts.program
counts.program = lambda module: {MANY!r} + program(module)
counted = counts.counted([id for id in rows.ROWS if id.startswith(("inside.", "used_by."))])
print(counted)
assert len(counted) == 8
for language, most in ("c", 256), ("python", 980):
    for few, many in ("inside.100", "inside.10000"), ("used_by.10", "used_by.1000"):
        assert counted[f"{{many}}.{{language}}"] <= most
        assert abs(counted[f"{{many}}.{{language}}"] - counted[f"{{few}}.{{language}}"]) <= 2
""", env=CPU, timeout=300)  # fmt: skip
    assert result.returncode == 0, result


GOING = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
from l0rt.bench import allocator_rows, counts, rows
from l0rt.runtime.alloc.allocator import Allocator, Pool
from helpers.plain import PlainMemory

def going(lab, count):
    "Each of so many pools goes, and with it its memory and addresses."
    allocator = Allocator(PlainMemory(virtual=1 << 27))
    pools = [Pool() for _ in range(count)]
    for pool in pools:
        allocator.free(allocator.malloc(1024, 1, pool))
    del pool
    def drop(n):
        for _ in range(n // 4):                         # valgrind has few places for mappings
            pools.pop()
            allocator.reserved_bytes
        return 1.0
    yield rows.Work(drop)
    assert allocator.memory.counters["ranges"] == len(pools) == 0

allocator_rows.row("going", "", (counts.MANY + counts.FEW + counts.MANY) // 4)(going)
"""


def test_pools_that_go_one_after_another_cost_the_same_each(extent):
    """The arenas of those that went before are looked at no more."""
    extent.skip_unless_whole()
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    result = run_python(f"""{GOING}
program = counts.program
counts.program = lambda module: {GOING!r} + program(module)
counted = counts.counted(["going"])
print(counted)
assert counted["going"] < 6000
""", env=CPU, timeout=300)  # fmt: skip
    assert result.returncode == 0, result


UNRECORDED = """
import importlib.util, sys
from l0rt.bench import allocator_rows, counts, rows

def work_of(path):
    spec = importlib.util.spec_from_file_location("allocator_loops", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    def pairs(lab, nbytes):
        bench = module.Loops()
        yield rows.Work(lambda n: bench.pairs(nbytes, n))
    return pairs

for name, path in FILES.items():
    allocator_rows.row(name, "", 4096)(work_of(path))
"""


def test_a_history_that_is_off_costs_three_instructions_a_pair(extent, tmp_path):
    """The same loop is compiled twice, the second time against declarations whose hit path knows of no history."""
    extent.skip_unless_whole()
    if shutil.which("valgrind") is None:
        pytest.skip("needs valgrind")
    package = Path(l0rt_package.__path__[0])
    names = shutil.ignore_patterns("*.so", "*.pyc", "__pycache__")
    without = shutil.copytree(package, tmp_path / "without" / "l0rt", ignore=names) / "runtime/alloc/arena.pxd"
    text, times = re.subn(r"\((signs_of_\w+\([^()]*\)) \| arena\.recording\) < 0", r"\1 < 0", without.read_text())
    assert times == 2, "an allocation and a free ask"
    without.write_text(text)
    build_loops.compile(tmp_path, "allocator_loops", declarations=tmp_path / "without")
    files = {"with": build_loops.compiled("allocator_loops"), "without": str(*tmp_path.glob("allocator_loops*.so"))}
    begun = UNRECORDED.replace("FILES", repr(files))
    result = run_python(f"""{begun}
program = counts.program
counts.program = lambda module: {begun!r} + program(module)
print(counts.counted(["with", "without"]))
""", env=CPU, timeout=300)  # fmt: skip
    assert result.returncode == 0, result
    counted = ast.literal_eval(result.stdout)
    assert 50 < counted["without"] < counted["with"] < counted["without"] + 3.5, counted  # the loops' beginnings differ


def test_without_valgrind_it_says_so(tmp_path):
    path = tmp_path / "report.json"
    words = ["bench", "allocator.malloc_free.4KiB.c", "--smoke", "--instructions", "--json", str(path)]
    result = l0rt(*words, env={**CPU, "PATH": str(tmp_path)})
    assert result.returncode == 0, result
    assert "no instruction counts: valgrind is not installed" in result.stdout
    assert "valgrind" in json.loads(path.read_text())["uncounted"]
