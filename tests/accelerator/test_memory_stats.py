# SPDX-License-Identifier: Apache-2.0
"""The device allocator's statistics: torch's keys, what each private pool has, and requests that the limit refuses."""

import gc

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import memory

from helpers import memory_keys

MIB = 1 << 20


@pytest.fixture(autouse=True)
def emptied():
    """No pool of an earlier test is listed, and nothing is counted yet."""
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    acc.reset_peak_memory_stats()
    acc.reset_accumulated_memory_stats()
    yield
    memory.set_memory_limit(None)


def of_pool(pool, part="all"):
    """Return (current, peak, allocated, freed) of the pool's reserved bytes, from the nested statistics."""
    stats = memory.memory_stats_as_nested_dict()[memory_keys.PRIVATE][pool.id][part]
    return tuple(stats[kind] for kind in memory_keys.KINDS)


def test_the_keys_are_all_of_torchs():
    l0rt.empty(1).free()
    before = acc.memory_stats()
    assert list(before) == sorted(before)
    assert set(before) == memory_keys.keys()
    pools = [memory.MemPool(), memory.MemPool()]
    for pool in pools:
        with memory.use_mem_pool(pool):
            l0rt.empty(MIB).free()
    stats = acc.memory_stats()
    assert list(stats) == sorted(stats)
    assert set(stats) == memory_keys.keys(*[pool.id for pool in pools])
    assert all(isinstance(value, int) for value in stats.values())


def test_the_nested_statistics_name_pools_by_their_ids():
    assert memory.memory_stats_as_nested_dict()[memory_keys.PRIVATE] == {}
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        l0rt.empty(MIB).free()
    nested, flat = acc.memory_stats_as_nested_dict(), acc.memory_stats()
    assert list(nested[memory_keys.PRIVATE]) == [pool.id]
    assert nested["active"]["all"]["current"] == flat["active.all.current"]
    a, b = pool.id
    for part in memory_keys.POOLS:
        for kind in memory_keys.KINDS:
            told = flat[f"{memory_keys.PRIVATE}.{a}_{b}.{part}.{kind}"]
            assert nested[memory_keys.PRIVATE][pool.id][part][kind] == told


def test_what_a_pool_has_is_counted_apart_and_with_the_rest():
    base = acc.memory_reserved()
    outside = l0rt.empty(20 * MIB)
    with_outside = acc.memory_reserved()
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        large, small = l0rt.empty(9 * MIB), l0rt.empty(100)
    now, peak, allocated, freed = of_pool(pool)
    assert now == peak == allocated == acc.memory_reserved() - with_outside > 9 * MIB
    assert freed == 0
    assert of_pool(pool, "large_pool")[0] >= 9 * MIB
    assert of_pool(pool, "large_pool")[0] + of_pool(pool, "small_pool")[0] == now
    large.free(), small.free()
    pool.empty_cache()
    assert of_pool(pool) == (0, peak, peak, peak)
    assert acc.memory_reserved() == with_outside
    acc.reset_accumulated_memory_stats()
    assert of_pool(pool) == (0, peak, 0, 0)
    acc.reset_peak_memory_stats()
    assert of_pool(pool) == (0, 0, 0, 0)
    outside.free()
    acc.empty_cache()
    assert acc.memory_reserved() == base


def test_a_pool_that_is_gone_is_listed_until_its_memory_is():
    pool = memory.MemPool()
    name = "{}.{}_{}.all.".format(memory_keys.PRIVATE, *pool.id)
    with memory.use_mem_pool(pool):
        buffer = l0rt.empty(9 * MIB)
    del pool
    acc.reset_peak_memory_stats()
    reserved = acc.memory_stats()[name + "current"]
    assert reserved >= 9 * MIB
    buffer.free()
    acc.empty_cache()
    assert set(acc.memory_stats()) == memory_keys.keys()


def test_what_the_limit_refuses_is_counted_once_a_request():
    memory.set_memory_limit(acc.memory_reserved() + 16 * MIB)
    for n in (1, 2, 3):
        with pytest.raises(l0rt.OutOfMemoryError):
            l0rt.empty(32 * MIB)
        stats = acc.memory_stats()
        assert (stats["num_oom_rejections"], stats["num_ooms"]) == (n, n)
    acc.reset_accumulated_memory_stats()
    assert acc.memory_stats()["num_oom_rejections"] == acc.memory_stats()["num_ooms"] == 0


def test_what_the_driver_refuses_is_no_rejection():
    with pytest.raises(l0rt.OutOfMemoryError):
        l0rt.empty(1 << 60)
    assert acc.memory_stats()["num_ooms"] == 1
    assert acc.memory_stats()["num_oom_rejections"] == 0


def test_a_request_that_found_memory_in_the_end_is_not_counted():
    memory.set_memory_limit(acc.memory_reserved() + 16 * MIB)
    cycle = [l0rt.empty(12 * MIB)]
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        l0rt.empty(12 * MIB).free()
    finally:
        gc.enable()
    assert acc.memory_stats()["num_ooms"] == acc.memory_stats()["num_oom_rejections"] == 0
