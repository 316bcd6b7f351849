# SPDX-License-Identifier: Apache-2.0
"""Pools that sleep with a backup: what lives in them comes back, and nobody uses what is not there."""

import gc
import threading
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import memory
from l0rt.errors import OutOfMemoryError
from l0rt.memory import MemPool, use_mem_pool
from l0rt.runtime.memory.backup import Backup
from l0rt.runtime.streams.devices import capabilities

from helpers import ledger
from helpers.door import Door, Failed
from helpers.process import run_python
from helpers.source import ROOT

pytestmark = pytest.mark.usefixtures("emptied")

MIB = 1 << 20
SIZES = (100, 512, 5000, MIB, MIB + 1, 3 * MIB, 70 * MIB + 3)
KERNELS = Path(__file__).parents[1] / "kernels/basic.spv"
CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_DISABLE": None, "L0RT_CPU_DEVICES": "2"}


@pytest.fixture(autouse=True)
def can_sleep():
    if not all(capabilities(i)["vmm"] for i in range(acc.device_count())):
        pytest.skip("no virtual memory: no pool can sleep")


@pytest.fixture
def pool():
    return MemPool()


def filled(pool, sizes=SIZES, **where):
    """Return buffers of the pool, and what is in each."""
    rng = np.random.default_rng(sum(sizes))
    with use_mem_pool(pool):
        made = [l0rt.empty(nbytes, **where) for nbytes in sizes]
    data = [rng.integers(0, 256, nbytes, "u1") for nbytes in sizes]
    for buffer, expected in zip(made, data, strict=True):
        buffer.copy_from(expected)
    return made, data


def check(buffers, data):
    for buffer, expected in zip(buffers, data, strict=True):
        assert (buffer.numpy() == expected).all()


def physical():
    live = ledger.counted()
    return 0 if live is None else live["physical"]


@pytest.mark.checks_data
def test_what_lives_in_a_pool_comes_back_at_the_same_addresses(pool):
    before = physical()
    buffers, data = filled(pool)
    addresses, reserved, taken = [b.ptr for b in buffers], acc.memory_reserved(), physical()
    for _ in range(2):
        pool.sleep(backup="host")
        assert acc.memory_reserved() == 0
        assert physical() == before
        assert memory.host_memory_stats()["active_bytes.current"] >= sum(SIZES)
        assert [b.ptr for b in buffers] == addresses
        pool.wake()
        assert acc.memory_reserved() == reserved
        assert (physical() > before) == (taken > before)
        assert memory.host_memory_stats()["active_bytes.current"] == 0
        check(buffers, data)
    with use_mem_pool(pool):
        l0rt.empty(MIB).fill(1)


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_a_backup_is_of_every_device():
    pool = MemPool()
    sets = [filled(pool, device=i) for i in range(2)]
    pool.sleep(backup="host")
    assert [acc.memory_reserved(i) for i in range(2)] == [0, 0]
    memory.set_memory_limit(5 * MIB, 1)
    with pytest.raises(OutOfMemoryError, match="stays asleep"):
        pool.wake()
    assert [acc.memory_reserved(i) for i in range(2)] == [0, 0]
    memory.set_memory_limit(None, 1)
    pool.wake()
    for buffers, data in sets:
        check(buffers, data)


@pytest.mark.checks_data
def test_work_that_is_under_way_is_part_of_the_backup(pool):
    (first, second), _ = filled(pool, (16 * MIB, 16 * MIB))
    streams = [acc.Stream() for _ in range(4)]
    for value in range(20):
        for before, stream in zip(streams[-1:] + streams, streams, strict=False):
            stream.wait_stream(before)
            first.fill(value, stream=stream)
            second.copy_from(first, stream=stream)
    for stream in streams:
        first.record_stream(stream), second.record_stream(stream)
    pool.sleep(backup="host")
    pool.wake()
    check((first, second), (np.full(16 * MIB, 19, "u1"),) * 2)


def test_what_is_asleep_is_not_used(pool):
    (buffer, other), _ = filled(pool, (4096, 4096))
    outside, part = l0rt.empty(4096).fill(1), buffer[8:]
    host = np.zeros(4096, "u1")
    module = l0rt.Module(KERNELS)
    door, stream = Door(), acc.current_stream()
    uses = [
        lambda: buffer.fill(1), lambda: part.fill(1), lambda: buffer.copy_from(host), lambda: buffer.copy_to(host),
        lambda: buffer.copy_from(outside), lambda: outside.copy_from(buffer), lambda: buffer.copy_from(other),
        lambda: buffer.numpy(), lambda: buffer.uniform_(), lambda: buffer.__dlpack__(), lambda: part.__dlpack__(),
        lambda: buffer.__dlpack__(copy=True), lambda: buffer.__sycl_usm_array_interface__,
        lambda: l0rt.memset(buffer.ptr + 5, 0, 10),
        lambda: l0rt.memcpy(outside.ptr, buffer.ptr, 10), lambda: l0rt.memcpy2d(outside, 64, buffer, 128, 32, 8),
        lambda: module["store"].launch(buffer, 1, global_size=64), lambda: module["store"][1, 64](buffer.ptr, 1),
    ]  # fmt: skip
    calls = [
        lambda: door.memset_async(buffer.ptr, 0, 8, None), lambda: door.memcpy_async(outside.ptr, part.ptr, 8, None),
    ]  # fmt: skip
    for pool_sleeps in (lambda: pool.sleep(), lambda: pool.sleep("host")):
        pool_sleeps()
        for use in uses:
            with pytest.raises(RuntimeError, match="is in a memory pool that is asleep"):
                use()
        for call in calls:
            with pytest.raises(Failed, match="is in a memory pool that is asleep"):
                call()
        assert buffer.nbytes == 4096
        assert buffer.__dlpack_device__()
        outside.fill(1)                                     # others go on
        module["store"].launch(outside, 1, global_size=64)
        pool.wake()
        for use in uses:
            use()
        for call in calls:
            assert call() == 0
        stream.synchronize()
        gc.collect()
    module.close()


@pytest.mark.checks_data
def test_a_graph_is_not_replayed_while_its_memory_sleeps(pool):
    (buffer,), _ = filled(pool, (4096,))
    graph, stream = acc.Graph(), acc.Stream()
    with acc.graph(graph, stream=stream):
        inside = l0rt.empty(4096, stream=stream).fill(7, stream=stream)
        buffer.copy_from(inside, stream=stream)
    pool.sleep("host")
    with pytest.raises(RuntimeError, match="asleep"):
        graph.replay()
    with pytest.raises(RuntimeError, match="asleep"), acc.graph(acc.Graph(), stream=acc.Stream()):
        buffer.fill(1, stream=acc.current_stream())
    pool.wake()
    graph.replay()
    acc.synchronize()
    check((buffer,), (np.full(4096, 7, "u1"),))
    graph.reset()


def test_a_sleep_in_a_capture_ends_the_capture_and_the_pool_stays_awake(pool):
    (buffer,), _ = filled(pool, (4096,))
    ended, refused = (pytest.raises(RuntimeError, match=text) for text in ("ended the capture", "captured"))
    with ended, acc.graph(acc.Graph(), stream=acc.Stream()), refused:
        pool.sleep("host")
    buffer.fill(1)
    with use_mem_pool(pool):
        l0rt.empty(512)


@pytest.mark.checks_data
def test_what_is_freed_meanwhile_is_free_afterwards(pool):
    buffers, data = filled(pool)
    pool.sleep("host")
    other = acc.Stream()
    buffers[1].record_stream(other)
    buffers[1].free()
    buffers[3].free(stream=other)
    buffers.pop(5)
    memory.empty_cache()
    pool.empty_cache()
    left = (0, 2, 4, 6)
    pool.wake()
    check([buffers[0], buffers[2], buffers[4], buffers[5]], [data[i] for i in left])
    with use_mem_pool(pool):
        more = [l0rt.empty(n).fill(1) for n in SIZES]
    check([buffers[0], buffers[2], buffers[4], buffers[5]], [data[i] for i in left])
    del more


def test_a_pool_that_is_dropped_while_it_sleeps_gives_everything_back():
    pool = MemPool()
    buffers, _ = filled(pool)
    pool.sleep("host")
    del pool
    gc.collect()
    assert memory.host_memory_stats()["active_bytes.current"] == 0
    with pytest.raises(RuntimeError, match="asleep"):
        buffers[0].fill(1)
    buffers.clear()
    assert acc.memory_allocated() == 0


@pytest.mark.checks_data
def test_a_second_sleep_or_wake_changes_nothing(pool):
    buffers, data = filled(pool, (5000,))
    pool.wake()
    pool.sleep("host")
    pool.sleep()
    pool.sleep("host")
    pool.wake()
    pool.wake()
    check(buffers, data)
    pool.sleep()
    pool.wake()
    buffers[0].fill(3)


@pytest.mark.parametrize("wrong", ["disk", "", 0, True, b"host", ["host"]])
def test_a_place_for_a_backup_is_named(pool, wrong):
    with pytest.raises(ValueError, match="backup must be 'host' or None"):
        pool.sleep(backup=wrong)
    with use_mem_pool(pool):
        l0rt.empty(512)                                     # it is awake


@pytest.mark.checks_data
def test_tags_choose_what_there_is_a_backup_of(pool):
    with memory.tag("weights"):
        (weights,), data = filled(pool, (3 * MIB,))
    with memory.tag("cache"):
        filled_cache, _ = filled(pool, (20 * MIB,))
    acc.synchronize()
    memory.empty_host_cache()
    before = memory.host_memory_stats().get("active_bytes.current", 0)
    pool.sleep("host", tags=("weights",))
    assert 3 * MIB <= memory.host_memory_stats()["active_bytes.current"] - before < 20 * MIB
    pool.wake()
    check((weights,), data)
    pool.sleep("host", tags="weights")
    pool.wake()
    check((weights,), data)
    with pytest.raises(ValueError, match="pass backup='host'"):
        pool.sleep(tags=("weights",))
    with pytest.raises(ValueError, match="there is no tag 'nobody'"):
        pool.sleep("host", tags=("nobody",))
    with pytest.raises(TypeError, match="a tag must be a str"):
        pool.sleep("host", tags=(3,))
    filled_cache[0].fill(1)


def test_a_pool_with_nothing_in_it_sleeps_too(pool):
    pool.sleep("host")
    with use_mem_pool(pool), pytest.raises(RuntimeError, match="asleep"):
        l0rt.empty(512)
    pool.wake()
    with use_mem_pool(pool):
        l0rt.empty(512)


@pytest.mark.checks_data
def test_threads_that_use_a_pool_are_refused_or_were_in_time(pool, hasty, extent):
    """A fill that returns is in the backup, and none touches memory that is not there."""
    (buffer, other), _ = filled(pool, (4096, 4096))
    with l0rt.Module(KERNELS) as module:
        store, stop, refused, wrong = module["store"], threading.Event(), [0, 0], []
        has_filled = threading.Event()

        def work(which):
            nonlocal wrong
            stream = acc.Stream()
            while not stop.is_set():
                try:
                    if which:
                        store.launch(buffer, 1, global_size=64, stream=stream)
                    else:
                        other.fill(1, stream=stream)
                        has_filled.set()
                except RuntimeError as error:
                    refused[which] += "asleep" in str(error)
                    wrong += [error] if "asleep" not in str(error) else []

        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(extent(10, 300, 3000)):
            pool.sleep("host")
            pool.wake()
        assert has_filled.wait(60), "the pool is awake"  # before, the thread may have met it asleep each time
        stop.set()
        for thread in threads:
            thread.join()
        acc.synchronize()
    assert not wrong
    check((other,), (np.full(4096, 1, "u1"),))


CHAOS = """
import l0rt, l0rt.accelerator as acc, numpy as np
from l0rt.memory import MemPool, use_mem_pool
from l0rt.runtime.memory.backup import Backup
from helpers import ledger
pool, rng = MemPool(), np.random.default_rng(1)
acc.get_memory_info()
before = ledger.counted()["physical"]
with use_mem_pool(pool):
    kept = [l0rt.empty(n, device=i) for n in (300, 40000, 5 << 20) for i in range(2)]
data = [rng.integers(0, 256, b.nbytes, "u1") for b in kept]
addresses = [b.ptr for b in kept]
taken = ledger.counted()["physical"]
assert taken > before
streams = [acc.Stream(device=i) for i in range(2)]
for _ in range(4):
    for b, d in zip(kept, data):
        d[:] = rng.integers(0, 256)
        b.fill(int(d[0]), stream=streams[b.device.index])
        b.record_stream(streams[b.device.index])
    pool.sleep("host")
    assert [acc.memory_reserved(i) for i in range(2)] == [0, 0]
    assert ledger.counted()["physical"] == before
    pool.wake()
    assert ledger.counted()["physical"] == taken
    assert [b.ptr for b in kept] == addresses
    assert all((b.numpy() == d).all() for b, d in zip(kept, data))
print("done")
"""


@pytest.mark.parametrize("disable", [None, "inorder", "cb_events,inorder"])
def test_backups_are_right_under_chaos(disable, extent):
    for seed in range(extent(2, 20, 200)):
        seeded = {"L0RT_DISABLE": disable, "L0RT_CPU_CHAOS": str(seed + 1), "PYTHONPATH": str(ROOT / "tests")}
        result = run_python(CHAOS, {**CPU, **seeded})
        assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), (seed, result)


INTERRUPTED = """
import signal
import l0rt, l0rt.accelerator as acc, numpy as np
from l0rt import memory
pool = memory.MemPool()
with memory.use_mem_pool(pool):
    kept = [l0rt.empty(1 << 20, device=i) for i in range(2)]
for b in kept: b.fill(5)
acc.synchronize(0); acc.synchronize(1)
reserved = [acc.memory_reserved(i) for i in range(2)]
signal.signal(signal.SIGALRM, signal.default_int_handler)
def interrupted(function):
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        function()
    except KeyboardInterrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
if %r == "sleep":
    assert interrupted(lambda: pool.sleep("host"))
    assert [acc.memory_reserved(i) for i in range(2)] == reserved
    kept[0].fill(5)
    pool.sleep("host")
else:
    pool.sleep("host")
    assert interrupted(pool.wake)
    assert [acc.memory_reserved(i) for i in range(2)] == [0, 0]
    try: kept[0].fill(1)
    except RuntimeError as error: assert "asleep" in str(error)
    else: raise SystemExit("not asleep")
pool.wake()
assert all((b.numpy() == 5).all() for b in kept)
print("done")
"""


@pytest.mark.parametrize("what", ["sleep", "wake"])
def test_an_interrupt_while_it_copies_is_raised_and_leaves_the_pool_as_it_was(what):
    env = {**CPU, "L0RT_CPU_LATENCY": "h2d_gbps=0.004,d2h_gbps=0.004"}      # 262 ms each
    result = run_python(INTERRUPTED % what, env)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), result


FORKED = """
import os
import l0rt
from l0rt import memory
pool = memory.MemPool()
with memory.use_mem_pool(pool):
    kept = l0rt.empty(1 << 20)
kept.fill(5)
pool.sleep("host")
child = os.fork()
if child == 0:
    for call in (pool.wake, pool.sleep, lambda: kept.fill(1)):
        try: call()
        except RuntimeError as error: assert "fork" in str(error), error
        else: os._exit(3)
    del pool, kept
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
pool.wake()
assert (kept.numpy() == 5).all()
pool.sleep("host")              # asleep at exit
print("done")
"""


def test_a_forked_child_has_no_pool_and_the_parents_wakes():
    result = run_python(FORKED, CPU)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), result


def test_a_backup_without_host_memory_leaves_the_pool_awake():
    program = """
import l0rt
from l0rt import memory
pool = memory.MemPool()
with memory.use_mem_pool(pool):
    kept = l0rt.empty(100 << 20).fill(5)
for attempt in range(9):
    try: pool.sleep("host")
    except l0rt.OutOfMemoryError: pass
    else: break
    assert memory.host_memory_stats()["active_bytes.current"] == 0
    kept.fill(5)
pool.wake()
assert (kept.numpy() == 5).all()
assert attempt
"""
    fails = ",".join(f"zeMemAllocHost:{nth}:ERROR_OUT_OF_HOST_MEMORY" for nth in range(2, 12))
    result = run_python(program, {**CPU, "L0RT_CPU_FAIL": fails})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", ""), result


def test_a_backup_is_no_object_of_users():
    with pytest.raises(TypeError, match="made by MemPool.sleep"):
        Backup()
