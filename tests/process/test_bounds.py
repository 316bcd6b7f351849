# SPDX-License-Identifier: Apache-2.0
"""``L0RT_CPU_BOUNDS=1``: a kernel that misses a Buffer by four bytes fails, and the error names the Buffer."""

import re
from pathlib import Path

import pytest

from helpers import bounds_programs
from helpers.process import run_python

ON = {"L0RT_DRIVER": "cpu", "L0RT_CPU_BOUNDS": 1}
BEGIN = f"""
import gc, l0rt, l0rt.accelerator as acc
wild = l0rt.Module({str(bounds_programs.PATH)!r})["wild"]
def stored(near, offset):
    wild[1, 1](near, offset // 4)
    try:
        acc.synchronize()
    except l0rt.KernelFaultError as error:
        return str(error)
"""


def run(code, changes=None):
    result = run_python(BEGIN + code, {**ON, **(changes or {})}, timeout=300)
    assert (result.returncode, result.stderr) == (0, ""), str(result)
    return result.stdout


CONFIGS = {
    "default": {}, "segments": {"L0RT_ALLOC_CONF": "expandable_segments:False"},
    "uncached": {"L0RT_NO_MEMORY_CACHING": "1"}, "no virtual memory": {"L0RT_DISABLE": "vmm"},
    "lists": {"L0RT_DISABLE": "inorder"}, "hidden": {"L0RT_CPU_STRICT": 1},
    "power of two": {"L0RT_ALLOC_CONF": "roundup_power2_divisions:4"},
}  # fmt: skip


@pytest.mark.parametrize("config", CONFIGS)
def test_a_store_behind_or_before_a_buffer_names_it(config):
    run("""
for kind in ("device", "host"):
    for size in (4, 500, 508, 512, 1000, 1024, 65536, 1 << 20, (1 << 20) + 4, 2 << 20, 20 << 20):
        x = l0rt.empty(size, kind=kind)
        others = [l0rt.empty(size, kind=kind) for _ in range(3)]
        for good in (0, size - 4):
            assert stored(x, good) is None, (kind, size, good)
        for bad in (size, size + 4, size + 256):
            text = stored(x, bad)
            where = f"offset {bad} of the {size} bytes at {x.ptr:#x}; argument 0, near points to them"
            assert text and "kernel wild, instruction at byte" in text and where in text, (kind, size, bad, text)
            assert "work-item (0, 0, 0): a store to address" in text
        for middle in (*others, x):
            text = stored(middle, -4)
            assert text, (kind, size)
            where = f"offset -4 of the {size} bytes at {middle.ptr:#x}; argument 0, near points to them"
            assert where in text or "offset" not in text, (kind, size, text)
        x.free()
        for other in others:
            other.free()
x = l0rt.empty(4096, kind="shared")
assert stored(x, 4092) is None and "a store to address" in stored(x, 4096)
""", CONFIGS[config])


def test_memory_that_was_freed_is_named():
    run("""
s = acc.Stream()
for kind in ("device", "host"):
    x = l0rt.empty(1000, kind=kind)
    address = x.ptr
    x.free()
    text = stored(l0rt.Pointer(address), 40)
    assert f"offset 40 of the 1000 bytes at {address:#x}, which were freed before the launch; argument 0" in text, text
    y = l0rt.empty(900, kind=kind)
    assert y.ptr == address
    assert stored(y, 896) is None and "offset 900 of the 900 bytes" in stored(y, 900)
    y.free()
x = l0rt.empty(1000)                                # in the order of the stream, the launch comes before the free
wild[1, 1](x, 249)
x.free()
y = l0rt.empty(64)
wild[1, 1](y, 15)
acc.synchronize()
x = l0rt.empty(1000)                                # a deferred free: another stream uses it
x.record_stream(s)
address = x.ptr
wild.launch(x, 0, groups=1, group_size=1, stream=s)
x.free()
acc.synchronize()
assert "which were freed before the launch" in stored(l0rt.Pointer(address), 0)
acc.empty_cache()
assert "a store to address" in stored(l0rt.Pointer(address), 0)
""")


def test_a_part_of_a_buffer_ends_where_the_buffer_ends():
    run("""
x = l0rt.empty(1000)
part = x[100:200]
assert stored(part, 400) is None and stored(part, -100) is None
text = stored(part, 900)
assert f"offset 1000 of the 1000 bytes at {x.ptr:#x}; argument 0, near points to them" in text, text
del x
assert stored(part, 896) is None
""")


def test_loads_and_other_arguments_are_named():
    run(f"""
add = l0rt.Module({str(bounds_programs.PATH)!r})["add"]
to, source = l0rt.empty(256), l0rt.empty(252)
add[2, 32](to, source, 1)
try:
    acc.synchronize()
except l0rt.KernelFaultError as error:
    text = str(error)
assert "work-item (63, 0, 0): a load from address" in text, text
assert f"offset 252 of the 252 bytes at {{source.ptr:#x}}; argument 1, from points to them" in text, text
""")


def test_a_graph_reaches_what_its_capture_freed_and_no_more():
    run("""
outer = l0rt.empty(1000)
graph = acc.Graph()
with acc.graph(graph):
    for size in (1000, 300, 2000):
        x = l0rt.empty(size)
        wild[1, 1](x, size // 4 - 1)
        del x
    wild[1, 1](outer, 249)
for _ in range(3):
    graph.replay()
    acc.synchronize()
bad = acc.Graph()
with acc.graph(bad):
    x = l0rt.empty(5000)
    wild[1, 1](x, 1250)
    del x
bad.replay()
try:
    acc.synchronize()
except l0rt.KernelFaultError as error:
    assert "of the 5000 bytes" in str(error), error
else:
    raise AssertionError("a store behind a Buffer of the capture")
bad.reset()
address = outer.ptr
outer.free()
del outer
graph.replay()
try:
    acc.synchronize()
except l0rt.KernelFaultError as error:
    assert "which were freed before the launch" in str(error), error
else:
    raise AssertionError("a store to what was freed before the replay")
graph.reset()
""")


def test_a_pool_that_sleeps_keeps_its_bounds():
    run("""
pool = l0rt.memory.MemPool()
with l0rt.memory.use_mem_pool(pool):
    x = l0rt.empty(1000)
acc.synchronize()
pool.sleep()
pool.wake()
assert stored(x, 996) is None and "offset 1000 of the 1000 bytes" in stored(x, 1000)
""")


def programs(first, last, steps, changes=None):
    folder = str(Path(bounds_programs.__file__).parent)
    code = f"import sys; sys.path.insert(0, {folder!r}); import bounds_programs as p; p.main({first}, {last}, {steps})"
    return run_python(code, {**ON, **(changes or {})}, timeout=1200)


@pytest.mark.parametrize("config", ["default", "segments"])
def test_random_programs_fail_where_a_model_says(config, extent):
    result = programs(0, extent(12, 400), 150, CONFIGS[config])
    assert (result.returncode, result.stderr) == (0, ""), str(result)
    good, bad, replays = map(int, re.findall(r"\d+", result.stdout))
    extent.note(f"{good + bad} launches, {bad} of them wrong, and {replays} replays")
    assert min(good, bad) > 100
    assert replays > 20


def test_the_random_programs_notice_what_no_bounds_let_pass():
    result = programs(0, 6, 150, {"L0RT_CPU_BOUNDS": 0})
    assert result.returncode == 1, str(result)
    assert re.search(r"seed \d+: (stores to .*: good, but|a replay succeeded)", result.stderr), str(result)


def test_nothing_is_marked_without_the_setting():
    """Then memory is as it always was: nothing behind a block."""
    run("""
assert acc.memory_allocated() == 0
x = l0rt.empty(512)
assert acc.memory_allocated() == 512
""", {"L0RT_CPU_BOUNDS": 0})
    run("""
x = l0rt.empty(512)
assert acc.memory_allocated() == 1024
""")
