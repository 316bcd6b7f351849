# SPDX-License-Identifier: Apache-2.0
"""Memory of the default allocator between processes: its segments are mapped in parts, which one handle names."""

import os
import sys

import l0rt
import l0rt.accelerator as acc
import l0rt.ipc
import pytest

from helpers.ipc_worker import Failed, pattern, settled_worker, workers
from helpers.process import run, run_python

pytestmark = [pytest.mark.checks_data, pytest.mark.usefixtures("warm")]
SIZES = (1, 1000, 300_000, 1 << 20, (2 << 20) + 512, 5 << 20, 40 << 20)


@pytest.fixture(scope="module")
def other():
    with settled_worker() as worker:
        yield worker


def files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("nbytes", SIZES)
def test_memory_of_the_default_allocator_is_shared(other, nbytes):
    """Also where it lies across several physical memories, of which each is a file of its own."""
    kept = [l0rt.empty(n) for n in SIZES]  # so that it lies anywhere
    x = l0rt.empty(nbytes).copy_from(pattern(3, nbytes))
    acc.synchronize()
    for _ in range(2):
        other.open("x", x.ipc_handle().hex())
        assert other.wrong("x", 3, nbytes) == 0
        other.fill("x", 9)
        assert (x.numpy() == 9).all()
        x.copy_from(pattern(3, nbytes))
        acc.synchronize()
        assert other.wrong("x", 3, nbytes) == 0
        other.drop("x")
    del kept


def test_a_part_and_its_neighbours(other):
    x = l0rt.empty(6 << 20).fill(1)
    first, second = l0rt.empty(5000).fill(2), l0rt.empty(5000).fill(3)
    acc.synchronize()
    other.open("x", x[(3 << 20) + 7 : (5 << 20) + 9].ipc_handle().hex())
    other.open("first", first.ipc_handle().hex())
    other.open("second", second[1:].ipc_handle().hex())
    for name, value in (("x", 4), ("second", 5)):
        other.fill(name, value)
    data = x.numpy()
    assert (data[(3 << 20) + 7 : (5 << 20) + 9] == 4).all()
    assert (data[: (3 << 20) + 7] == 1).all()
    assert (data[(5 << 20) + 9 :] == 1).all()
    assert (first.numpy() == 2).all()
    assert second.numpy()[0] == 3
    assert (second.numpy()[1:] == 5).all()
    for name in ("x", "first", "second"):
        other.drop(name)


def test_it_stays_as_long_as_another_process_uses_it_and_no_longer(other):
    x = l0rt.empty(5 << 20).copy_from(pattern(1, 5 << 20))
    acc.synchronize()
    other.open("x", x.ipc_handle().hex())
    address = x.ptr
    x.free()
    l0rt.memory.empty_cache()
    assert l0rt.ipc.exported_count() == 1
    more = [l0rt.empty(5 << 20).fill(0) for _ in range(8)]
    assert address not in [y.ptr for y in more]
    acc.synchronize()
    assert other.wrong("x", 1, 5 << 20) == 0
    other.drop("x")
    assert l0rt.ipc.exported_count() == 0
    del more


def test_a_handle_of_freed_memory_is_stale(other):
    x = l0rt.empty(3 << 20)
    handle = x.ipc_handle()
    assert l0rt.Buffer.from_ipc_handle(handle).ptr == x.ptr
    x.free()
    x = l0rt.empty(3 << 20)
    x.ipc_handle()
    with pytest.raises(Failed, match="stale"):
        other.open("x", handle.hex())


def test_handles_leave_no_files_open(other):
    """Physical memory that was shared once keeps its file; a handle's own list goes with the export."""
    x = l0rt.empty(5 << 20)
    x.ipc_handle()
    x.free()
    l0rt.ipc.collect()
    before, there = files(), other.run("import os; found = len(os.listdir('/proc/self/fd'))")
    for _ in range(20):
        x = l0rt.empty(5 << 20)
        other.open("x", x.ipc_handle().hex())
        other.drop("x")
        x.free()
        l0rt.ipc.collect()
    assert files() <= before
    assert other.run("import os; found = len(os.listdir('/proc/self/fd'))") <= there


def test_multiprocessing_shares_it(tmp_path):
    """Without a warning: nothing is copied."""
    program = tmp_path / "program.py"
    program.write_text("""
import multiprocessing
import l0rt, l0rt.accelerator as acc
def child(x, back):
    x[100:].fill(7)
    acc.synchronize()
    back.put(int(x.numpy()[0]))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    x, back = l0rt.empty(5 << 20).fill(1), context.Queue()
    acc.synchronize()
    process = context.Process(target=child, args=(x, back))
    process.start()
    assert back.get(timeout=50) == 1
    process.join()
    assert int(x.numpy().astype(int).sum()) == 7 * (5 << 20) - 600
""")
    result = run([sys.executable, "-W", "error", program], {"L0RT_DRIVER": "cpu"})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result


def test_without_the_extension_the_message_says_what_to_do():
    with workers(1, {"L0RT_DISABLE": "range_ipc"}) as (worker,):
        with pytest.raises(Failed, match="UnsupportedError: .*interprocess=True.*expandable_segments:False"):
            worker.run("found = l0rt.empty(3 << 20).ipc_handle().hex()")
        worker.export("x", 100, 1)
        worker.drop("x")


def test_a_simulated_driver_that_is_older_has_no_extension():
    code = """
import l0rt
try:
    l0rt.empty(3 << 20).ipc_handle()
except l0rt.UnsupportedError as error:
    print(str(error)[:30])
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "neo-26.31,arc-b580"})
    assert (result.returncode, result.stdout) == (0, "this memory is mapped in parts\n"), result
