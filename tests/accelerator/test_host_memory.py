# SPDX-License-Identifier: Apache-2.0
"""Pinned memory: torch's statistics of it, exactly; the bound on what is cached; observers; the background thread."""

import gc
import time

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import memory

from helpers.process import run_python

MIB = 1 << 20
FAMILIES = ("allocations", "allocated_bytes", "active_requests", "active_bytes")


@pytest.fixture(autouse=True)
def emptied():
    l0rt.empty(1, kind="host").free()
    gc.collect()
    acc.synchronize()
    acc.empty_host_cache()
    memory.reset_peak_host_memory_stats()
    memory.reset_accumulated_host_memory_stats()


def stats(*keys):
    flat = memory.host_memory_stats()
    return [flat[key] for key in keys]


def test_the_keys_are_torchs():
    flat = memory.host_memory_stats()
    assert list(flat) == sorted(flat)
    keys = {f"{f}.{s}" for f in FAMILIES for s in ("current", "peak", "allocated", "freed")}
    keys |= {f"{f}.{s}" for f in ("host_alloc_time", "host_free_time") for s in ("total", "max", "min", "count", "avg")}
    assert set(flat) == keys | {"num_host_alloc", "num_host_free", "num_alloc_retries", "num_ooms"}
    nested = memory.host_memory_stats_as_nested_dict()
    assert nested["active_bytes"]["peak"] == flat["active_bytes.peak"]
    assert nested["num_host_alloc"] == flat["num_host_alloc"]


def test_what_is_owned_and_what_is_in_use_are_told_apart():
    x = l0rt.empty(3 * MIB, kind="host")
    y = l0rt.empty(5 * MIB, kind="host")
    assert stats("allocations.current", "allocated_bytes.current") == [2, 8 * MIB]
    assert stats("active_requests.current", "active_bytes.current") == [2, 8 * MIB]
    x.free()
    assert stats("allocations.current", "allocated_bytes.current") == [2, 8 * MIB]
    assert stats("active_requests.current", "active_bytes.current") == [1, 5 * MIB]
    y.free()
    acc.empty_host_cache()
    assert stats(*(f"{f}.current" for f in FAMILIES)) == [0, 0, 0, 0]
    assert stats(*(f"{f}.peak" for f in FAMILIES)) == [2, 8 * MIB, 2, 8 * MIB]
    assert stats(*(f"{f}.allocated" for f in FAMILIES)) == [2, 8 * MIB, 2, 8 * MIB]
    assert stats(*(f"{f}.freed" for f in FAMILIES)) == [2, 8 * MIB, 2, 8 * MIB]


def test_peaks_are_those_of_the_sum_not_sums_of_peaks():
    for nbytes in (3 * MIB, 5 * MIB, 4096, 600, 3 * MIB):
        l0rt.empty(nbytes, kind="host").free()
    assert stats("active_requests.peak", "active_bytes.peak") == [1, 5 * MIB]
    held = l0rt.empty(MIB, kind="host")
    memory.reset_peak_host_memory_stats()
    assert stats("active_requests.peak", "active_bytes.peak") == [1, MIB]
    held.free()


def test_driver_calls_are_counted_and_timed():
    before = stats("num_host_alloc", "num_host_free")
    assert before == [0, 0]
    for _ in range(3):
        l0rt.empty(3 * MIB, kind="host").free()
    assert stats("num_host_alloc", "num_host_free", "host_free_time.count", "host_free_time.avg") == [1, 0, 0, 0.0]
    acc.empty_host_cache()
    flat = memory.host_memory_stats()
    assert flat["num_host_free"] == flat["host_free_time.count"] == flat["host_alloc_time.count"] == 1
    for kind in ("host_alloc_time", "host_free_time"):
        total, most, least, avg = (flat[f"{kind}.{s}"] for s in ("total", "max", "min", "avg"))
        assert total == most == least == int(avg)
        assert avg > 0
    memory.reset_accumulated_host_memory_stats()
    assert stats("num_host_alloc", "host_alloc_time.total", "host_alloc_time.avg") == [0, 0, 0]
    memory.reset_peak_host_memory_stats()
    assert stats("host_alloc_time.max", "host_alloc_time.min") == [0, 0]


def test_memory_that_a_stream_still_uses_is_active():
    stream = acc.Stream()
    x = l0rt.empty(3 * MIB, kind="host")
    x.record_stream(stream)
    x.free()
    stream.synchronize()
    l0rt.empty(4 * MIB, kind="host").free()  # looks
    assert stats("active_requests.current", "active_bytes.current") == [0, 0]


@pytest.mark.parametrize("function", [
    memory.host_memory_stats, memory.host_memory_stats_as_nested_dict,
    memory.reset_peak_host_memory_stats, memory.reset_accumulated_host_memory_stats,
])  # fmt: skip
@pytest.mark.parametrize(("device", "error"), [
    (1.5, TypeError), (99, (ValueError, IndexError, RuntimeError)), ("cpu", (ValueError, RuntimeError)),
    (object(), TypeError),
])  # fmt: skip
def test_wrong_devices(function, device, error):
    with pytest.raises(error):
        function(device)


def test_what_is_cached_is_bounded():
    with l0rt.config.patch({"xpu.allocator.pinned_cache_limit_mb": 8}):
        buffers = [l0rt.empty(3 * MIB, kind="host") for _ in range(6)]
        assert stats("allocated_bytes.current") == [18 * MIB]  # in use: that does not count
        while buffers:
            buffers.pop().free()
            held, used = stats("allocated_bytes.current", "active_bytes.current")
            assert held - used <= 8 * MIB
        assert stats("allocated_bytes.current") == [6 * MIB]
        l0rt.config.set("xpu.allocator.pinned_cache_limit_mb", 0)
        assert stats("allocated_bytes.current") == [0]


def test_the_bound_is_of_all_together_and_the_other_of_each():
    with l0rt.config.patch({"xpu.allocator.pinned_max_cached_size_mb": 2}):
        l0rt.empty(3 * MIB, kind="host").free()
        assert stats("allocated_bytes.current") == [0]
        l0rt.empty(2 * MIB, kind="host").free()
        assert stats("allocated_bytes.current") == [2 * MIB]


@pytest.mark.parametrize("value", [-1, "x", 1.5, True])
def test_wrong_bounds(value):
    with pytest.raises((ValueError, TypeError), match="pinned_cache_limit_mb"):
        l0rt.config.set("xpu.allocator.pinned_cache_limit_mb", value)
    with pytest.raises(ValueError, match="pinned_cache_limit_mb"):
        memory.set_alloc_conf(pinned_cache_limit_mb=value)


def test_observers_are_told_of_pinned_memory_and_may_free_memory():
    told = []

    def observe(device, nbytes, allowed, free):
        told.append((device, nbytes))
        assert 0 < free <= allowed
        return len(told) < 3

    detach = memory.attach_oom_observer(observe)
    try:
        with pytest.raises(l0rt.OutOfMemoryError, match=r"pinned host memory ran out\. .*: requested .*, free .*Linux"):
            l0rt.empty(1 << 61, kind="host")
    finally:
        detach()
    assert told == [(-1, 1 << 61)] * 3
    assert stats("num_ooms") == [1]  # the request that failed in the end


def test_a_retry_that_succeeds_is_counted_and_nobody_asked():
    code = """
import l0rt
from l0rt import memory
memory.attach_oom_observer(lambda *told: print(told))
cached = [l0rt.empty(3 << 20, kind="host") for _ in range(2)]
cached.pop().free()
l0rt.empty(5 << 20, kind="host").free()
stats = memory.host_memory_stats()
assert (stats["num_alloc_retries"], stats["num_ooms"]) == (1, 0), stats
assert stats["num_host_alloc"] == stats["host_alloc_time.count"] == 3, stats    # the refusal is none
"""
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_FAIL": "zeMemAllocHost:3:ERROR_OUT_OF_HOST_MEMORY"}
    result = run_python(code, env)
    assert (result.returncode, result.stdout) == (0, ""), result


# --- The background thread, in processes of their own: it is there for a whole process.

THREADED = """
import os, threading, time
import l0rt, l0rt.accelerator as acc
from l0rt import memory
MIB = 1 << 20

def threads():
    return len(os.listdir("/proc/self/task"))

def until(true):
    end = time.monotonic() + 20
    while not true() and time.monotonic() < end:
        time.sleep(0.001)
    assert true()

def active():
    return memory.host_memory_stats()["active_bytes.current"]
"""


def assert_runs(code, **env):
    result = run_python(THREADED + code, env)
    assert result.returncode == 0, result
    assert "Error" not in result.stderr, result


@pytest.mark.checks_data  # its work has to end, which the host does not wait for
@pytest.mark.parametrize("typed", [False, True])
def test_the_thread_brings_back_what_streams_use_no_more(typed):
    code = """
x, stream = l0rt.empty(3 * MIB, kind="host"), acc.Stream()
d = l0rt.empty(3 * MIB)
for _ in range(20):
    d.copy_from(x, stream=stream, non_blocking=True)
x.free()
stream.synchronize()
until(lambda: active() == 0)            # nobody allocates
assert memory.host_memory_stats()["num_host_alloc"] == 1
"""
    if typed:
        assert_runs("memory.set_alloc_conf(pinned_use_background_threads=True)\n" + code)
    else:
        assert_runs(code, L0RT_ALLOC_CONF="pinned_use_background_threads:True")


def test_the_thread_is_there_while_it_is_asked_for():
    assert_runs("""
l0rt.empty(1, kind="host").free()
before = threads()
for _ in range(3):
    memory.set_alloc_conf(pinned_use_background_threads=True)
    assert threads() == before + 1
    memory.set_alloc_conf(pinned_cache_limit_mb=7, pinned_use_background_threads=True)
    assert threads() == before + 1
    memory.set_alloc_conf("")
    until(lambda: threads() == before)
with l0rt.config.patch({"xpu.allocator.pinned_use_background_threads": True}):
    assert threads() == before + 1
until(lambda: threads() == before)
assert threading.active_count() == 1
""")


def test_the_thread_rests_while_nothing_waits():
    assert_runs("""
memory.set_alloc_conf(pinned_use_background_threads=True)
l0rt.empty(1, kind="host").free()
time.sleep(0.1)
start = time.process_time()
time.sleep(0.5)
assert time.process_time() - start < 0.1
""")


def test_a_forked_child_has_no_thread_and_ends():
    assert_runs("""
memory.set_alloc_conf(pinned_use_background_threads=True)
x = l0rt.empty(3 * MIB, kind="host")
pid = os.fork()
if pid == 0:
    assert threads() == 1
    x.free()
    try:
        memory.set_alloc_conf("")
    except RuntimeError as refused:
        assert "forked" in str(refused)
    else:
        raise AssertionError("a forked child has no allocator to configure")
    assert memory.host_memory_stats() == {}
    raise SystemExit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
x.free()
l0rt.empty(3 * MIB, kind="host").free()
""")


def test_the_process_ends_while_the_thread_has_work():
    assert_runs("""
memory.set_alloc_conf(pinned_use_background_threads=True, pinned_cache_limit_mb=1)
d, streams = l0rt.empty(3 * MIB), [acc.Stream() for _ in range(4)]
for i in range(40):
    x = l0rt.empty(3 * MIB, kind="host")
    d.copy_from(x, stream=streams[i % 4], non_blocking=True)
    del x
""")


@pytest.mark.parametrize("value", [1, "true", "", None])
def test_wrong_switches(value):
    with pytest.raises(ValueError, match="pinned_use_background_threads is True or False"):
        memory.set_alloc_conf(pinned_use_background_threads=value)


@pytest.mark.checks_data
def test_threads_that_free_meet_the_one_that_looks():
    start = time.monotonic()
    assert_runs("""
memory.set_alloc_conf(pinned_use_background_threads=True, pinned_cache_limit_mb=4)
def work():
    stream = acc.Stream()
    d = l0rt.empty(MIB)
    for n in range(200):
        x = l0rt.empty(MIB - n % 3 * 4096, kind="host")
        x.record_stream(stream)
        if n % 4 == 0:
            l0rt.empty(MIB, kind="host").copy_to(d, stream=stream, non_blocking=True)
        x.free()
    stream.synchronize()
workers = [threading.Thread(target=work) for _ in range(3)]
[w.start() for w in workers]; [w.join() for w in workers]
until(lambda: active() == 0)
until(lambda: memory.host_memory_stats()["allocated_bytes.current"] <= 4 * MIB)
""")
    assert time.monotonic() - start < 60


def test_nested_statistics_have_no_pools():
    l0rt.empty(4096, kind="host").free()
    assert set(memory.host_memory_stats_as_nested_dict()) == {key.split(".")[0] for key in memory.host_memory_stats()}
