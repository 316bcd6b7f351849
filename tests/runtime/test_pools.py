# SPDX-License-Identifier: Apache-2.0
"""MemPool and use_mem_pool on a device: routing by thread, nesting, the memory limit, sleep."""

import gc
import os
import threading
import time
import weakref

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config, memory
from l0rt.errors import OutOfMemoryError, UnsupportedError
from l0rt.memory import MemPool, use_mem_pool
from l0rt.runtime.streams import hooks
from l0rt.runtime.streams.devices import capabilities

from helpers.process import run_python

pytestmark = pytest.mark.usefixtures("emptied")

MIB = 1 << 20


def addresses(pool):
    return [block["address"] for segment in pool.snapshot() for block in segment["blocks"]
            if block["state"] == "active_allocated"]


def test_what_is_allocated_inside_belongs_to_the_pool():
    pool, outside = MemPool(), l0rt.empty(MIB)
    with use_mem_pool(pool) as entered:
        assert entered is pool
        assert pool.use_count() == 2
        inside = [l0rt.empty(n) for n in (100, MIB, 5 * MIB)]
    after = l0rt.empty(MIB)
    assert sorted(addresses(pool)) == sorted(b.ptr for b in inside)
    assert {segment["segment_pool_id"] for segment in pool.snapshot()} == {pool.id}
    assert after.ptr not in addresses(pool)
    assert pool.use_count() == 1
    everything = memory.memory_snapshot()
    assert sum(segment["allocated_size"] for segment in everything) == acc.memory_allocated()
    usable = sum(segment["total_size"] for segment in everything)  # drivers may take some pages more for each
    assert usable <= acc.memory_reserved() < usable + MIB
    del inside
    with use_mem_pool(pool):
        again = l0rt.empty(5 * MIB)
    assert again.ptr in addresses(pool)
    outside.free(), after.free(), again.free()


def test_pools_nest_and_the_hit_path_comes_back():
    outer, inner = MemPool(), MemPool()
    l0rt.empty(512).free()
    with use_mem_pool(outer):
        a = l0rt.empty(512)
        with use_mem_pool(inner):
            b = l0rt.empty(512)
            with use_mem_pool(outer):
                c = l0rt.empty(512)
        d = l0rt.empty(512)
    e = l0rt.empty(512)
    assert set(addresses(outer)) == {a.ptr, c.ptr, d.ptr}
    assert addresses(inner) == [b.ptr]
    assert e.ptr not in {*addresses(outer), *addresses(inner)}


def test_only_the_thread_itself_is_routed():
    pool, made = MemPool(), []
    ready, done = threading.Event(), threading.Event()

    def work():
        ready.wait()
        made.extend(l0rt.empty(MIB) for _ in range(20))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with use_mem_pool(pool):
        ready.set()
        mine = [l0rt.empty(MIB) for _ in range(20)]
        done.wait()
    thread.join()
    assert sorted(addresses(pool)) == sorted(b.ptr for b in mine)
    assert not {b.ptr for b in made} & set(addresses(pool))


def test_a_thread_that_ends_in_a_pool_leaves_it():
    pool = MemPool()

    def enter(pool):
        use_mem_pool(pool).__enter__()
        l0rt.empty(512).free()

    thread = threading.Thread(target=enter, args=[pool])
    thread.start()
    thread.join()
    end = time.monotonic() + 60
    while pool.use_count() > 1 and time.monotonic() < end:
        with use_mem_pool(MemPool()):   # lets go of what a thread held that has ended; one that is joined is about to
            pass
    assert pool.use_count() == 1
    gone = weakref.ref(pool)
    del pool
    assert gone() is None


def test_a_pool_stays_while_a_thread_is_in_it():
    found = []

    def work():
        route = use_mem_pool(MemPool())
        pool = weakref.ref(route.__enter__())
        blocks = [l0rt.empty(512)]
        del route                                       # nobody can leave any more
        blocks.append(l0rt.empty(512))
        found.append(pool() is not None and sorted(addresses(pool())) == sorted(b.ptr for b in blocks))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    while os.path.exists(f"/proc/self/task/{thread.native_id}"):  # it is joined a little before it has ended
        time.sleep(0.001)
    assert found == [True]


def test_leaving_out_of_order_is_an_error():
    first, second = use_mem_pool(MemPool()), use_mem_pool(MemPool())
    first.__enter__()
    second.__enter__()
    with pytest.raises(RuntimeError, match="another order"):
        first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    first.__exit__(None, None, None)


@pytest.mark.parametrize("generous", [False, True])
def test_use_on_oom_at_the_limit(generous):
    pool = MemPool(use_on_oom=generous)
    with use_mem_pool(pool):
        l0rt.empty(40 * MIB).free()
    memory.set_memory_limit(acc.memory_reserved() + 10 * MIB)
    with acc.Stream():
        if generous:
            l0rt.empty(40 * MIB).free()
        else:
            with pytest.raises(OutOfMemoryError):
                l0rt.empty(40 * MIB)
    pool.empty_cache()
    l0rt.empty(40 * MIB).free()


def test_caches_are_emptied_by_device_stream_and_pool():
    pool, stream = MemPool(), acc.Stream()
    assert acc.memory_reserved() == 0
    with use_mem_pool(pool):
        l0rt.empty(4 * MIB).free()
    in_pool = acc.memory_reserved()
    with stream:
        l0rt.empty(8 * MIB).free()
    with_stream = acc.memory_reserved()
    l0rt.empty(16 * MIB).free()
    everything = acc.memory_reserved()
    assert 4 * MIB <= in_pool <= with_stream - 8 * MIB <= everything - 24 * MIB
    memory.empty_cache(pool=pool)
    assert acc.memory_reserved() == everything - in_pool
    memory.empty_cache(stream=stream)
    assert acc.memory_reserved() == everything - with_stream
    memory.empty_cache(device=0)
    assert acc.memory_reserved() == 0


def test_observers_hear_of_a_failure_and_may_free_memory():
    heard, kept = [], [l0rt.empty(30 * MIB)]
    memory.set_memory_limit(acc.memory_reserved() + 2 * MIB)

    def observer(device, nbytes, allowed, free):
        heard.append((device, nbytes, allowed))
        if kept:
            kept.pop().free()
            return True
        return None

    detach = memory.attach_oom_observer(observer)
    buffer = l0rt.empty(20 * MIB)
    assert heard == [(0, 20 * MIB, memory.get_memory_limit())]
    with pytest.raises(OutOfMemoryError):
        l0rt.empty(20 * MIB)
    assert len(heard) == 2
    detach()
    with pytest.raises(OutOfMemoryError):
        l0rt.empty(20 * MIB)
    assert len(heard) == 2
    buffer.free()


def test_a_pool_is_put_to_sleep_or_woken_by_one_call_at_a_time():
    """Both pass from device to device: a wake-up in the midst of a sleep would leave a pool awake without memory."""
    pool, told = MemPool(), []
    with use_mem_pool(pool):
        kept = l0rt.empty(MIB)

    def wake(*_):
        with pytest.raises(RuntimeError, match="another call is putting"):
            pool.wake()
        told.append("refused")

    if not capabilities(0)["vmm"]:
        return                                              # it cannot sleep
    hooks.add("device_synchronization", wake)
    pool.sleep()
    hooks.remove("device_synchronization", wake)
    assert told
    with use_mem_pool(pool), pytest.raises(RuntimeError, match="asleep"):
        l0rt.empty(MIB)
    pool.wake()
    kept.free()


def test_sleep_and_wake_keep_addresses():
    pool = MemPool()
    with use_mem_pool(pool):
        buffer = l0rt.empty(10 * MIB)
    address, reserved = buffer.ptr, acc.memory_reserved()
    if not capabilities(0)["vmm"]:
        with pytest.raises(UnsupportedError, match="cannot sleep"):
            pool.sleep()
        return
    pool.sleep()
    assert acc.memory_reserved() == 0
    with use_mem_pool(pool), pytest.raises(RuntimeError, match="asleep"):
        l0rt.empty(512)
    pool.wake()
    assert acc.memory_reserved() == reserved
    assert buffer.ptr == address


@pytest.mark.checks_data
def test_memory_of_a_pool_that_has_slept_holds_data():
    pool = MemPool()
    with use_mem_pool(pool):
        buffer = l0rt.empty(10 * MIB)
    if capabilities(0)["vmm"]:
        pool.sleep()
        pool.wake()
    data = np.arange(10 * MIB // 8)
    back = np.empty_like(data)
    buffer.copy_from(data)
    buffer.copy_to(back)
    assert (data == back).all()


def test_an_address_tells_what_it_is():
    with acc.Stream() as stream:
        buffer = l0rt.empty(1000)
    info = memory.pointer_info(buffer.ptr + 999)
    assert info == {"kind": "device", "device": 0, "base": buffer.ptr, "size": 1024, "requested": 1000,
                    "stream": acc.current_stream().stream_id if stream is None else info["stream"]}
    host = l0rt.empty(5000, kind="host")
    assert memory.pointer_info(host.ptr)["kind"] == "host"
    assert memory.pointer_info(host.ptr)["stream"] is None
    assert memory.pointer_info(id(host)) is None
    base = buffer.ptr
    buffer.free()
    assert memory.pointer_info(base) is None


def test_an_address_in_shared_memory_tells_what_it_is():
    buffers = {buffer.ptr: buffer for buffer in (l0rt.empty(n, kind="shared") for n in (1000, 1, 4096, 70000))}
    for base, buffer in buffers.items():
        expected = {"kind": "shared", "device": 0, "base": base, "size": buffer.nbytes, "requested": buffer.nbytes,
                    "stream": None}
        for address in {base, base + buffer.nbytes // 2, base + buffer.nbytes - 1}:
            assert memory.pointer_info(address) == expected
        assert memory.pointer_info(base + buffer.nbytes) is None
        assert memory.pointer_info(base - 1) is None
    for base in list(buffers):
        buffers.pop(base).free()
        assert memory.pointer_info(base) is None
        assert all(memory.pointer_info(other)["base"] == other for other in buffers)
    l0rt.empty(0, kind="shared").free()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [(None, TypeError), (True, TypeError), ("0x10", TypeError), (1.5, TypeError), (-1, ValueError),
     (1 << 64, ValueError)],
)
def test_what_is_no_address_is_told(wrong, error):
    with pytest.raises(error, match="an address must be"):
        memory.pointer_info(wrong)
    if isinstance(wrong, int):
        with pytest.raises(error, match="an address"):
            memory.record_use(wrong)


@pytest.mark.parametrize("address", [0, 1, (1 << 64) - 1])
def test_an_address_of_nothing_is_nothing(address):
    assert memory.pointer_info(address) is None


def test_a_snapshot_is_narrowed_by_pool_and_takes_torchs_arguments():
    pool = MemPool()
    with use_mem_pool(pool):
        inside = l0rt.empty(MIB)
    whole = memory.memory_snapshot(pool.id)
    assert [segment["segment_pool_id"] for segment in whole] == [pool.id]
    assert whole == pool.snapshot() == pool.snapshot(include_traces=False) == memory.memory_snapshot(pool)
    assert whole == memory.memory_snapshot(mempool_id=pool.id, include_traces=False)
    assert whole == memory.memory_snapshot(pool.id, True, device=0)
    with pytest.raises(TypeError, match="include_traces must be a bool"):
        memory.memory_snapshot(None, "all")
    named = pool.id
    del pool
    gc.collect()
    assert named in {segment["segment_pool_id"] for segment in memory.memory_snapshot()}  # what it holds is its own
    inside.free()


def test_the_summary_is_torchs_table():
    buffers = [l0rt.empty(3 * MIB), l0rt.empty(1000)]
    full, short = memory.memory_summary(), memory.memory_summary(abbreviated=True)
    for text in (full, short):
        lines = text.splitlines()
        assert {len(line) for line in lines} == {77}
        assert any(line.startswith("| GPU reserved memory") for line in lines)
    assert full.count("from large pool") == 9
    assert "pool" not in short
    row = next(line for line in full.splitlines() if line.startswith("| Allocations "))
    assert row.split("|")[2].split() == [str(acc.memory_stats()["allocation.all.current"])]
    del buffers


def test_the_recommended_maximum_leaves_some():
    info = memory.memory_info()
    assert 0 < memory.recommended_max_memory() < info["total"]


SLEEP_AND_GROWTH = """
import threading, time
import l0rt, l0rt.accelerator as acc
from l0rt import config, memory
pool, said = memory.MemPool(), []
with memory.use_mem_pool(pool):
    kept = l0rt.empty(4 << 20)
def grow_elsewhere():
    said.append(("elsewhere", l0rt.empty(8 << 20)))     # its memory takes 1.5 s: the others wait behind it
def sleep():
    time.sleep(0.4)
    pool.sleep()
def grow_inside():
    time.sleep(0.8)
    with memory.use_mem_pool(pool):
        try:
            said.append(("inside", l0rt.empty(64 << 20)))
        except RuntimeError as error:
            said.append(("refused", str(error)))
threads = [threading.Thread(target=work) for work in (grow_elsewhere, sleep, grow_inside)]
for thread in threads: thread.start()
for thread in threads: thread.join()
said = dict(said)
share = memory.memory_stats_as_nested_dict()["reserved_bytes_by_private_pools"][pool.id]["all"]["current"]
assert share == 0, share                                # whoever came first: a pool that sleeps has no memory
assert "inside" in said or "asleep" in said["refused"], said
address = kept.ptr
pool.wake()
assert kept.ptr == address
with memory.use_mem_pool(pool):
    l0rt.empty(64 << 20).fill(1)
kept.fill(1)
acc.synchronize()
print("done")
"""


def test_a_growth_that_waits_while_its_pool_goes_to_sleep_is_refused():
    result = run_python(SLEEP_AND_GROWTH, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": "1",
                                           "L0RT_CPU_FAIL": "zePhysicalMemCreate:2:slow=1500"})
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), result


@pytest.mark.needs_two_devices
def test_a_pool_sleeps_on_every_device():
    pool = MemPool()
    with use_mem_pool(pool):
        buffers = [l0rt.empty(10 * MIB, device=i) for i in range(2)]
    reserved = [acc.memory_reserved(i) for i in range(2)]
    if not all(capabilities(i)["vmm"] for i in range(2)):
        with pytest.raises(UnsupportedError, match="cannot sleep"):
            pool.sleep()
        return
    for _ in range(2):
        pool.sleep()
        assert [acc.memory_reserved(i) for i in range(2)] == [0, 0]
        pool.sleep()                # sleeps already
        memory.set_memory_limit(5 * MIB, 1)
        with pytest.raises(OutOfMemoryError):
            pool.wake()
        assert [acc.memory_reserved(i) for i in range(2)] == [0, 0]
        with use_mem_pool(pool), pytest.raises(RuntimeError, match="asleep"):
            l0rt.empty(512, device=0)
        memory.set_memory_limit(None, 1)
        pool.wake()
        assert [acc.memory_reserved(i) for i in range(2)] == reserved
    for buffer in buffers:
        buffer.fill(1)
        buffer.free()
    for i in range(2):
        acc.synchronize(i)


def test_a_cache_is_emptied_of_one_stream_in_one_pool():
    pool, stream = MemPool(), acc.Stream()
    held = lambda: sum(segment["total_size"] for segment in pool.snapshot())  # noqa: E731
    with use_mem_pool(pool):
        l0rt.empty(40 * MIB, stream=stream).free()
        l0rt.empty(40 * MIB).free()
    assert held() >= 80 * MIB
    memory.empty_cache(stream=stream)
    assert held() >= 80 * MIB
    memory.empty_cache(stream=stream, pool=pool)
    assert 40 * MIB <= held() < 80 * MIB
    memory.empty_cache(stream=stream, pool=pool)
    assert held() >= 40 * MIB
    memory.empty_cache(stream=acc.current_stream(), pool=pool)
    assert held() == 0


@pytest.mark.needs_two_devices
def test_a_cache_is_emptied_of_a_pool_on_one_device():
    pool = MemPool()
    with use_mem_pool(pool):
        for device in range(2):
            l0rt.empty(40 * MIB, device=device).free()
    memory.empty_cache(1, pool=pool)
    assert {segment["device"] for segment in pool.snapshot()} == {0}
    memory.empty_cache(pool=pool)
    assert pool.snapshot() == []
    with pytest.raises(ValueError, match="device 1 is not the stream's device, 0"):
        memory.empty_cache(1, stream=acc.current_stream(0))
    with pytest.raises(TypeError, match="pool"):
        memory.empty_cache(pool=pool.id)


def test_a_function_allocates_from_the_pool():
    pool = MemPool()

    @use_mem_pool(pool)
    def made(nbytes):
        """Make it."""
        return l0rt.empty(nbytes), pool.use_count()

    buffer, count = made(4096)
    assert (count, pool.use_count()) == (2, 1)
    assert [segment["allocated_size"] for segment in pool.snapshot()] == [4096]
    assert (made.__name__, made.__doc__) == ("made", "Make it.")
    with pytest.raises(TypeError, match="decorates functions"):
        use_mem_pool(pool)(3)
    buffer.free()


INTERRUPTED_SLEEP = """
import signal
import l0rt
import l0rt.accelerator as acc
from l0rt import config, memory
pool = memory.MemPool()
with memory.use_mem_pool(pool):
    kept = [l0rt.empty(10 << 20, device=i) for i in range(2)]
reserved = [acc.memory_reserved(i) for i in range(2)]
kept[1].fill(1)                             # never ends
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try:
    pool.sleep()
except KeyboardInterrupt:
    print("interrupted")
print([acc.memory_reserved(i) for i in range(2)] == reserved)
with memory.use_mem_pool(pool):
    l0rt.empty(512, device=0)
"""


def test_a_sleep_that_is_interrupted_leaves_the_pool_awake_on_every_device():
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_DISABLE": None, "L0RT_CPU_DEVICES": "2",
           "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}
    result = run_python(INTERRUPTED_SLEEP, env)
    assert (result.returncode, result.stdout, result.stderr) == (0, "interrupted\nTrue\n", ""), result


@pytest.mark.parametrize("segments", ["fit", "torch"])
@pytest.mark.parametrize("by_stream", [False, True])
def test_emptying_the_cache_keeps_what_a_live_pool_has_cached(segments, by_stream):
    """As torch does: a pool is emptied by its own name, or once it is dropped."""
    with config.patch({"alloc_conf": f"segments:{segments}"}):
        gc.collect()
        acc.synchronize()
        acc.empty_cache()
        before = acc.memory_reserved()
        pools = [MemPool(), MemPool(no_split=True), MemPool(use_on_oom=True)]
        where = []
        for pool in pools:
            with use_mem_pool(pool):
                buffer = l0rt.empty(30 * MIB)
                where.append(buffer.ptr)
                buffer.free()
        l0rt.empty(40 * MIB).free()
        acc.synchronize()
        memory.empty_cache(stream=acc.current_stream() if by_stream else None)
        assert acc.memory_reserved() == before + 90 * MIB
        for pool, address in zip(pools, where, strict=True):
            with use_mem_pool(pool):
                assert l0rt.empty(30 * MIB).ptr == address
        memory.empty_cache(pool=pools[0])
        pools[1].empty_cache()
        assert acc.memory_reserved() == before + 30 * MIB
        del pool, pools[2]
        gc.collect()
        acc.empty_cache()
        assert acc.memory_reserved() == before
