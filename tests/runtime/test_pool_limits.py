# SPDX-License-Identifier: Apache-2.0
"""Limits of pools, what a pool asks before an allocation from it fails, and what is no allocator."""


import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import memory
from l0rt.errors import OutOfMemoryError
from l0rt.memory import MemPool, PluggableAllocator, use_mem_pool

pytestmark = pytest.mark.usefixtures("emptied")

MIB = 1 << 20


@pytest.mark.parametrize("plugged", [False, True])
def test_a_pool_keeps_to_its_limit(host, plugged):
    pool = MemPool(host.allocator() if plugged else None, limit=16 * MIB)
    assert pool.limit == 16 * MIB
    elsewhere = l0rt.empty(30 * MIB)
    with use_mem_pool(pool):
        first = l0rt.empty(10 * MIB)
        with pytest.raises(OutOfMemoryError, match=r"limit none, of its pool 16\.00 MiB"):
            l0rt.empty(8 * MIB)
        first.free()
        with acc.Stream():      # what another stream of the pool has cached is given back for it
            second = l0rt.empty(12 * MIB)
    assert sum(segment["total_size"] for segment in pool.snapshot()) <= 16 * MIB
    elsewhere.free()
    second.free()


def test_a_pools_limit_takes_nothing_from_others():
    l0rt.empty(40 * MIB).free()
    reserved = memory.memory_reserved()
    with use_mem_pool(MemPool(limit=4 * MIB)), pytest.raises(OutOfMemoryError):
        l0rt.empty(8 * MIB)
    assert memory.memory_reserved() == reserved


@pytest.mark.parametrize("plugged", [False, True])
def test_a_pool_asks_before_it_fails(host, plugged):
    kept, asked = [], []

    def on_oom(nbytes):
        asked.append(nbytes)
        if kept:
            kept.pop().free()
            return True
        return None

    pool = MemPool(host.allocator() if plugged else None, limit=16 * MIB, on_oom=on_oom)
    assert pool.on_oom is on_oom
    with use_mem_pool(pool):
        kept.append(l0rt.empty(10 * MIB))
        buffer = l0rt.empty(12 * MIB)
        assert asked == [12 * MIB]
        with pytest.raises(OutOfMemoryError):
            l0rt.empty(12 * MIB)
    assert len(asked) == 2
    memory.set_memory_limit(memory.memory_reserved())
    with pytest.raises(OutOfMemoryError):       # not the pool's
        l0rt.empty(64 * MIB)
    assert len(asked) == 2
    buffer.free()


def test_what_it_raises_is_told():
    def on_oom(nbytes):
        raise LookupError("no memory")

    with use_mem_pool(MemPool(limit=2 * MIB, on_oom=on_oom)), pytest.raises(LookupError, match="no memory"):
        l0rt.empty(8 * MIB)


def test_wrong_limits_are_refused():
    for limit in ("1", 1.5, [], True):
        with pytest.raises(TypeError, match="a limit must be an int or None"):
            MemPool(limit=limit)
    for limit in (0, -5):
        with pytest.raises(ValueError, match="a limit must be positive"):
            MemPool(limit=limit)
    with pytest.raises(TypeError, match="on_oom must be a function"):
        MemPool(on_oom=3)
    with pytest.raises(TypeError):
        MemPool(None, False, False, MIB)


@pytest.mark.parametrize("wrong", [object(), len, 3, "libmine.so"])
def test_what_is_no_allocator_is_refused(wrong):
    with pytest.raises(TypeError, match="PluggableAllocator"):
        MemPool(wrong)
    with pytest.raises(TypeError, match="PluggableAllocator"):
        memory.change_current_allocator(wrong)


def test_functions_may_empty_the_cache(host):
    """What is given back in a function goes to the functions too, also of the same pool."""
    freed = []

    def free(*args):
        acc.empty_cache()
        freed.append(args[1])
        host.free(*args)

    def alloc(*args):
        acc.empty_cache()
        return host.alloc(*args)

    pool = MemPool(PluggableAllocator(alloc, free))
    with use_mem_pool(pool):
        buffers = [l0rt.empty(n * MIB) for n in (2, 3, 4)]
        for buffer in buffers:
            buffer.free()
        l0rt.empty(9 * MIB).free()
    pool.empty_cache()
    assert sorted(freed) == [2 * MIB, 3 * MIB, 4 * MIB, 9 * MIB]
