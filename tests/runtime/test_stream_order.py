# SPDX-License-Identifier: Apache-2.0
"""Device memory in the order of streams: handed over, told to be used, freed on another stream, filled before use."""

import gc
import threading
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config, memory
from l0rt.memory import MemPool, use_mem_pool
from l0rt.runtime.memory.device import retune

from helpers.door import Door, Failed
from helpers.orders import wrong_steps
from helpers.process import run_python

MIB = 1 << 20
BIG = 38 * MIB  # a multiple of 2 MiB, to which segments round large requests
TESTS = str(Path(__file__).parents[1])
CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": "2"}


@pytest.fixture(autouse=True)
def tidy():
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    with config.patch({"alloc_conf": ""}):
        yield
    retune()
    memory.set_memory_limit(None)
    gc.collect()
    acc.synchronize()
    acc.empty_cache()


@pytest.fixture
def streams():
    return [acc.Stream() for _ in range(3)]


def bytes_of(buffer, stream=None):
    return buffer.copy_to(np.empty(buffer.nbytes, "u1"), stream=stream)


# --- Handed over.


def test_at_the_limit_another_streams_cache_serves(streams):
    a, b, _ = streams
    x = l0rt.empty(BIG, stream=a)
    address = x.ptr
    x.fill(1, stream=a)
    x.free()
    memory.set_memory_limit(acc.memory_reserved())
    syncs = acc.memory_stats()["num_sync_all_streams"]
    y = l0rt.empty(BIG, stream=b)
    if acc.memory_stats()["num_sync_all_streams"] == syncs and y.ptr == address:
        assert memory.pointer_info(address)["stream"] == b.stream_id
    y.fill(2, stream=b)
    y.free()
    z = l0rt.empty(BIG, stream=a)
    z.free()


HANDED_OVER = """
import l0rt, l0rt.accelerator as acc, os
from l0rt import memory
a, b = acc.Stream(), acc.Stream()
x = l0rt.empty(40 << 20, stream=a); p = x.ptr
x.fill(1, stream=a)                                 # never ends
x.free()
memory.set_memory_limit(acc.memory_reserved() + (10 << 20))
y = l0rt.empty(40 << 20, stream=b)                  # behind it, and the host does not wait
assert y.ptr == p and acc.memory_stats()["num_sync_all_streams"] == 0
y.fill(2, stream=b)
assert not b.query() and memory.pointer_info(p)["stream"] == b.stream_id
y.free()
z = l0rt.empty(40 << 20, stream=a)                  # and back again
assert z.ptr == p
z.free(stream=b)
w = l0rt.empty(40 << 20, stream=b)
assert w.ptr == p and acc.memory_stats()["num_ooms"] == 0
os._exit(0)
"""
ASYNC = """
import l0rt, l0rt.accelerator as acc, os
a, b, c = acc.Stream(), acc.Stream(), acc.Stream()
x = l0rt.empty(40 << 20, stream=a); p = x.ptr
x.fill(1, stream=a)                                 # never ends
x.record_stream(b)
x.free()
for s in (b, c, a, c):
    y = l0rt.empty(40 << 20, stream=s)              # freed memory goes to whoever wants it, and nobody waits
    assert y.ptr == p
    y.free()
assert acc.memory_reserved() == 40 << 20
l0rt.memory.set_memory_limit(60 << 20)
try:
    l0rt.empty(50 << 20, stream=c)
except l0rt.OutOfMemoryError as error:
    assert "with backend:async no allocation waits" in str(error), error
else:
    raise AssertionError("that took a wait")
os._exit(0)
"""
HANG = {**CPU, "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang", "L0RT_ALLOC_CONF": None}


@pytest.mark.parametrize("disable", ["", "vmm", "cb_events", "inorder,vmm"])
@pytest.mark.parametrize(("code", "conf"), [(HANDED_OVER, ""), (ASYNC, "backend:async")])
def test_memory_that_is_still_in_use_is_handed_over_without_a_host_wait(code, conf, disable):
    result = run_python(code, {**HANG, "L0RT_DISABLE": disable, "L0RT_ALLOC_CONF": conf}, timeout=60)
    assert (result.returncode, result.stderr) == (0, ""), result


# --- Never before its last use: the bytes tell.


@pytest.mark.checks_data
@pytest.mark.parametrize("conf", ["", "backend:async"])
def test_no_memory_is_reused_before_its_last_use(conf, extent):
    memory.set_alloc_conf(conf)
    assert memory.get_allocator_backend() == ("async" if conf else "native")
    assert {seed: out for seed in range(extent(3, 3, 100)) if (out := wrong_steps(seed))[0]} == {}


CHAOS = """
from helpers.orders import wrong_steps
print([wrong_steps(seed, careless={careless}) for seed in range({count})])
"""


@pytest.mark.parametrize("disable", ["", "vmm", "inorder,cb_events"])
@pytest.mark.parametrize("conf", ["", "backend:async", "segments:torch"])
def test_chaos_finds_no_reuse_before_the_last_use(conf, disable, extent):
    env = {**CPU, "L0RT_ALLOC_CONF": conf, "L0RT_DISABLE": disable, "L0RT_CPU_CHAOS": "5", "PYTHONPATH": TESTS}
    result = run_python(CHAOS.format(count=extent(1, 3, 50), careless=False), env, timeout=600)
    assert result.returncode == 0, result
    assert {wrong for wrong, _ in eval(result.stdout)} == {0}, result
    if conf == "":                  # three threads hold 15 MiB at most, of 20
        assert {refused for _, refused in eval(result.stdout)} == {0}, result


def test_chaos_finds_what_is_not_told():
    """The test above is worth something: a use that nobody announced shows."""
    result = run_python(CHAOS.format(count=3, careless=True), {**CPU, "L0RT_CPU_CHAOS": "5", "PYTHONPATH": TESTS})
    assert result.returncode == 0, result
    assert sum(wrong for wrong, _ in eval(result.stdout)) > 0, result


# --- Freed on a stream.


def test_a_buffer_freed_on_another_stream_is_that_streams(streams):
    a, b, c = streams
    gc.collect()  # what other tests have left must not go meanwhile
    x = l0rt.empty(BIG, stream=a)
    address = x.ptr
    x.fill(1, stream=a)
    allocated = acc.memory_allocated()
    x.free(stream=b)
    assert acc.memory_allocated() == allocated - BIG
    y = l0rt.empty(BIG, stream=b)
    assert y.ptr == address
    y.fill(2, stream=b)
    y.free(stream=c)
    z = l0rt.empty(BIG, stream=c)
    assert z.ptr == address
    z.free(stream=a)
    acc.synchronize()
    acc.empty_cache()
    assert acc.memory_stats()["active.all.current"] == acc.memory_stats()["allocation.all.current"]


def test_the_door_frees_on_a_stream(streams):
    door = Door()
    a, b, _ = map(door.pointer, streams)
    address = door.malloc(BIG, -1, a)
    for wrong in (address + 512, address - 512):
        with pytest.raises(Failed, match="is not the start|freed already"):
            door.free_async(wrong, b)
    door.free_async(address, b)
    assert door.malloc(BIG, -1, b) == address
    door.free_async(address, b)
    assert door.malloc(BIG, -1, b) == address
    door.free(address)
    with pytest.raises(Failed, match="freed already"):
        door.free_async(address, a)
    assert door.free_async(None, a) == 0


@pytest.mark.checks_data
def test_pinned_memory_freed_on_its_own_stream_waits_for_it(streams):
    """No stream orders host memory: who frees it on a stream means that stream's work."""
    a = streams[0]
    door = Door()
    source, target = l0rt.empty(8 * MIB, kind="host", stream=a), l0rt.empty(8 * MIB, stream=a)
    np.frombuffer(source, "u1")[:] = 7
    door.memcpy_async(target.ptr, source.ptr, 8 * MIB, door.pointer(a))
    source.free(stream=a)
    other = l0rt.empty(8 * MIB, kind="host")
    np.frombuffer(other, "u1")[:] = 9
    assert (bytes_of(target, a) == 7).all()


# --- Told to be used.


def test_uses_are_told_to_buffers_addresses_and_the_door(streams):
    a, b, c = streams
    door = Door()
    x = l0rt.empty(4096, stream=a)
    x.record_use(b)
    x.record_use(a)
    memory.record_use(x, c)
    memory.record_use(x.ptr + 100, c)
    door.record_use(x.ptr, door.pointer(b))
    with c:
        x.record_use()
        memory.record_use(x)
    with pytest.raises(TypeError):
        x.record_use(3)
    with pytest.raises(Failed, match="a stream is needed"):
        door.record_use(x.ptr, None)
    assert door.record_use(None, None) == 0
    address = x.ptr
    x.free()
    with pytest.raises(ValueError, match="was freed"):
        x.record_use(b)
    with pytest.raises(ValueError, match="in no allocation"):
        memory.record_use(address, b)
    with pytest.raises(Failed, match="not the start"):
        door.record_use(address, door.pointer(b))
    acc.synchronize()


@pytest.mark.checks_data
def test_a_told_use_is_forgotten_once_it_is_over(streams):
    a, b, _ = streams
    x = l0rt.empty(BIG, stream=a)
    address = x.ptr
    l0rt.empty(64, stream=b).fill(1, stream=b)
    x.record_use(b)
    b.synchronize()
    active = acc.memory_stats()["active_bytes.all.current"]
    x.free()
    assert acc.memory_stats()["active_bytes.all.current"] == active - BIG
    y = l0rt.empty(BIG, stream=a)
    assert y.ptr == address
    y.free()


# --- Filled before use.


@pytest.mark.checks_data
@pytest.mark.parametrize("nbytes", [1, 700, MIB, 3 * MIB + 1])
def test_every_block_is_filled_in_stream_order(nbytes, streams):
    memory.set_alloc_conf(fill_uninitialized=0xA5)
    pool = MemPool()
    for _ in range(3):                              # new, then cached
        for stream in streams[:2]:
            x = l0rt.empty(nbytes, stream=stream)
            assert (bytes_of(x, stream) == 0xA5).all()
            x.fill(1, stream=stream)
            x.free()
            with stream:
                x = l0rt.empty(nbytes)
            assert (bytes_of(x, stream) == 0xA5).all()
            x.fill(2, stream=stream)
            x.free(stream=streams[2])
        with use_mem_pool(pool):
            x = l0rt.empty(nbytes)
        assert (bytes_of(x) == 0xA5).all()
        x.fill(3)
        del x
    door = Door()
    address, got = door.malloc(nbytes, -1, None), l0rt.empty(nbytes, kind="host")
    door.memcpy_async(got.ptr, address, nbytes, None)
    acc.synchronize()
    assert bytes(memoryview(got)) == b"\xa5" * nbytes
    door.free(address)


@pytest.mark.parametrize("kind", ["host", "shared"])
def test_what_the_host_reads_is_filled(kind):
    memory.set_alloc_conf("fill_uninitialized:0xC3")
    for _ in range(2):
        x = l0rt.empty(5000, kind=kind)
        view = np.frombuffer(x, "u1")
        assert (view == 0xC3).all()
        view[:] = 1
        del view
        x.free()
    memory.set_alloc_conf()
    if kind == "host":
        x = l0rt.empty(5000, kind=kind)
        assert (np.frombuffer(x, "u1") == 1).all()  # cached, and left as it was


FILLED = """
import l0rt, numpy as np
for kind in ("device", "device", "host", "shared"):
    for n in (64, 3 << 20):
        x = l0rt.empty(n, kind=kind)
        assert (x.copy_to(np.empty(n, "u1")) == 17).all(), kind
        x.fill(1)
        x.free()
"""


@pytest.mark.parametrize("uncached", [None, "1"])
def test_the_environment_fills_uncached_memory_too(uncached):
    env = {**CPU, "L0RT_ALLOC_CONF": "fill_uninitialized:17", "L0RT_NO_MEMORY_CACHING": uncached}
    result = run_python(FILLED, env)
    assert (result.returncode, result.stderr) == (0, ""), result


HOST_FIRST = """
import l0rt, numpy as np
for kind in ("host", "shared"):
    x = l0rt.empty(5000, kind=kind)
    assert (np.frombuffer(x, "u1") == 17).all(), kind
    del x
assert (np.frombuffer(l0rt.empty(5000, device="cpu"), "u1") == 17).all()
assert not l0rt.memory.memory_stats()           # nobody has asked for device memory yet
"""


@pytest.mark.parametrize("uncached", [None, "1"])
def test_host_memory_is_filled_before_any_device_memory_is_there(uncached):
    env = {**CPU, "L0RT_ALLOC_CONF": "fill_uninitialized:17", "L0RT_NO_MEMORY_CACHING": uncached}
    result = run_python(HOST_FIRST, env)
    assert (result.returncode, result.stderr) == (0, ""), result


FAILS = """
import l0rt, l0rt.accelerator as acc, pytest
x = l0rt.empty(4096); x.free()
with pytest.raises(RuntimeError):
    l0rt.empty(4096)
assert acc.memory_allocated() == 0
l0rt.empty(4096).free()
"""


def test_a_fill_that_fails_leaves_nothing_allocated():
    env = {**CPU, "L0RT_ALLOC_CONF": "fill_uninitialized:17",
           "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:2:ERROR_UNKNOWN"}  # fmt: skip
    result = run_python(FAILS, env)
    assert (result.returncode, result.stderr) == (0, ""), result


# --- From any thread, and with any device current.


def test_memory_is_freed_from_any_thread_and_with_any_device_current():
    """Trap 18 of Level Zero's: recorded on a stream, freed by a thread that knows neither."""
    s = acc.Stream()
    kept = [l0rt.empty(n, stream=s) for n in (512, MIB, 5 * MIB)]
    for x in kept:
        x.record_stream(acc.default_stream())
        x.record_use(acc.Stream())
    allocated = acc.memory_allocated()

    def work():
        with acc.device_index(acc.device_count() - 1):
            while kept:
                kept.pop().free()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert acc.memory_allocated(0) == allocated - 512 - 6 * MIB


@pytest.mark.needs_two_devices
def test_memory_freed_on_another_devices_stream_is_its_own_devices():
    """Trap 16: the stream says when, the block says where."""
    s = acc.Stream(1)
    x = l0rt.empty(BIG, device=0)
    address = x.ptr
    x.free(stream=s)
    y = l0rt.empty(BIG, device=1)
    assert memory.pointer_info(y.ptr)["device"] == 1
    acc.synchronize(1), acc.synchronize(0)
    z = l0rt.empty(BIG, device=0)
    assert memory.pointer_info(z.ptr + BIG - 1)["base"] == z.ptr
    assert memory.pointer_info(address) is None or memory.pointer_info(address)["device"] == 0
    y.free(), z.free()
