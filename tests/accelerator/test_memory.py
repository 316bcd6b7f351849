# SPDX-License-Identifier: Apache-2.0
"""Statistics, limits and caches of device and host memory."""

import gc

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt import memory

MIB = 1 << 20


@pytest.fixture(autouse=True)
def emptied():
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    acc.reset_peak_memory_stats()
    yield
    memory.set_memory_limit(None)


def test_allocations_are_counted():
    before = acc.memory_allocated()
    x, y = l0rt.empty(1000), l0rt.empty(3 * MIB)
    stats = acc.memory_stats()
    assert acc.memory_allocated() - before == 1024 + 3 * MIB
    assert stats["allocated_bytes.all.current"] == acc.memory_allocated()
    assert stats["requested_bytes.small_pool.current"] >= 1000
    assert acc.memory_reserved() >= acc.memory_allocated()
    x.free()
    del y
    assert acc.memory_allocated() == before
    assert acc.max_memory_allocated() - before == 1024 + 3 * MIB
    assert acc.max_memory_reserved() >= acc.max_memory_allocated()
    acc.reset_peak_memory_stats()
    assert acc.max_memory_allocated() == before
    acc.reset_accumulated_memory_stats()
    assert acc.memory_stats()["allocation.all.freed"] == 0


def test_freed_memory_is_cached_and_given_back():
    base = acc.memory_reserved()
    l0rt.empty(64 * MIB).free()
    assert acc.memory_reserved() - base >= 64 * MIB
    again = acc.memory_stats()["num_device_alloc"]
    l0rt.empty(64 * MIB).free()
    assert acc.memory_stats()["num_device_alloc"] == again
    acc.synchronize()
    acc.empty_cache()
    assert acc.memory_reserved() == base


def test_pending_memory_is_active_but_not_allocated():
    a, b = acc.Stream(), acc.Stream()
    x = l0rt.empty(8 * MIB, stream=a)
    x.record_stream(b)
    l0rt.empty(64 * MIB, stream=b).fill(1, stream=b)
    base = acc.memory_allocated()
    x.free()
    assert acc.memory_allocated() == base - 8 * MIB
    acc.synchronize()
    acc.empty_cache()
    stats = acc.memory_stats()
    assert stats["active_bytes.all.current"] == stats["allocated_bytes.all.current"]


def test_a_limit_in_bytes():
    assert memory.get_memory_limit() is None
    memory.set_memory_limit(acc.memory_reserved() + 64 * MIB)
    assert memory.get_memory_limit() == acc.memory_reserved() + 64 * MIB
    x = l0rt.empty(48 * MIB)
    with pytest.raises(l0rt.OutOfMemoryError, match="limit .*MiB"):
        l0rt.empty(32 * MIB)
    x.free()
    y = l0rt.empty(32 * MIB)  # the cached 48 MiB are given back for it
    assert acc.memory_stats()["num_ooms"] >= 1
    y.free()
    memory.set_memory_limit(None)
    assert memory.get_memory_limit() is None


def test_what_unreachable_objects_hold_can_be_freed():
    memory.set_memory_limit(acc.memory_reserved() + 64 * MIB)
    cycle = [l0rt.empty(48 * MIB)]
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        assert l0rt.empty(48 * MIB).nbytes == 48 * MIB
    finally:
        gc.enable()


def test_a_limit_as_a_fraction():
    memory.set_per_process_memory_fraction(0.5)
    total = acc.get_memory_info()[1]
    assert memory.get_per_process_memory_fraction() == pytest.approx(0.5)
    assert memory.get_memory_limit() == int(total * 0.5)
    memory.set_per_process_memory_fraction(1.0)
    for wrong in (1, "0.5", None):
        with pytest.raises(TypeError, match="Invalid type for fraction argument, must be `float`"):
            memory.set_per_process_memory_fraction(wrong)
    for wrong in (0.0, -0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"^invalid fraction:.*\. Please set within \(0, 1\]\.$"):
            memory.set_per_process_memory_fraction(wrong)


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (1 << 64, ValueError),
        (1.5, TypeError),
        ("1GiB", TypeError),
        (True, TypeError),
    ],
)
def test_wrong_limits(limit, error):
    with pytest.raises(error, match="memory limit"):
        memory.set_memory_limit(limit)


def test_free_memory_says_who_says_so():
    free, total = acc.get_memory_info()
    assert 0 <= free <= total
    told = memory.memory_info()
    assert set(told) == {"free", "total", "source", "trust"}
    assert type(told["trust"]) is bool
    assert told["trust"] == told["source"].startswith("reported by")


def test_host_memory_is_counted_apart():
    before = acc.memory_allocated()
    x = l0rt.empty(5 * MIB, kind="host")
    assert acc.memory_allocated() == before
    assert memory.host_memory_stats()["active_bytes.current"] >= 5 * MIB
    x.free()
    acc.empty_host_cache()
    assert memory.host_memory_stats()["allocated_bytes.current"] == 0


def test_the_facades_and_the_module_name_the_same_things():
    pool = acc.MemPool()
    assert type(pool) is xpu.MemPool is memory.MemPool
    assert acc.MemPool is acc.memory.MemPool is memory.MemPool.__base__
    assert memory.use_mem_pool is xpu.use_mem_pool
    with xpu.use_mem_pool(pool, device="xpu:0"):
        inside = l0rt.empty(MIB)
    outside = l0rt.empty(MIB)

    def addresses(segments):
        blocks = [block for segment in segments for block in segment["blocks"]]
        return {block["address"] for block in blocks if block["state"] == "active_allocated"}

    assert addresses(xpu.memory_snapshot(pool.id)) == {inside.ptr}
    assert outside.ptr in addresses(xpu.memory_snapshot((0, 0)))
    assert inside.ptr not in addresses(xpu.memory_snapshot((0, 0)))
    assert addresses(xpu.memory_snapshot()) == addresses(acc.memory_snapshot()) >= {inside.ptr, outside.ptr}
    assert pool.id in {segment["segment_pool_id"] for segment in xpu.memory_snapshot()}
    assert xpu.memory_snapshot((7, 7)) == []
    assert acc.memory_stats_as_nested_dict() == memory.memory_stats_as_nested_dict()
    assert acc.memory_summary() == memory.memory_summary(0) != acc.memory_summary(abbreviated=True)
    inside.free()
    outside.free()


@pytest.mark.parametrize("wrong", [5, "pool", (1, 2, 3), (0,), [0, 1], 1.5])
def test_a_pools_id_is_two_numbers(wrong):
    with pytest.raises(TypeError, match="id of a MemPool"):
        xpu.memory_snapshot(wrong)
