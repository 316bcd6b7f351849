# SPDX-License-Identifier: Apache-2.0
"""Private pools: nobody else gets their memory, unless they say so; and they can sleep."""

import ctypes
from random import Random

import pytest
from l0rt.errors import OutOfMemoryError, UnsupportedError
from l0rt.runtime.alloc.allocator import Pool

from helpers import memory_keys

KIB, MIB = 1 << 10, 1 << 20


def test_a_pool_has_its_own_memory(make):
    allocator, pool = make(), Pool()
    mine = allocator.malloc(KIB, 1, pool)
    allocator.free(mine)
    other = allocator.malloc(KIB, 1)
    assert other != mine
    assert allocator.malloc(KIB, 1, pool) == mine
    allocator.free(mine)
    allocator.free(other)


@pytest.mark.parametrize("stream", [1, 2])
def test_a_pool_gives_its_cache_on_oom_only_if_it_says_so(make, stream):
    allocator = make(limit=50 * MIB)
    private, generous = Pool(), Pool(use_on_oom=True)
    allocator.free(allocator.malloc(40 * MIB, 1, private))
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(40 * MIB, stream)
    assert allocator.reserved_bytes == 40 * MIB
    allocator.empty_cache(private)
    assert allocator.reserved_bytes == 0
    allocator.free(allocator.malloc(40 * MIB, 1, generous))
    address = allocator.malloc(40 * MIB, stream)
    assert allocator.stats()["num_ooms"] == 1
    allocator.free(address)


def test_a_pool_may_use_what_the_default_pool_caches(make):
    allocator, pool = make(limit=50 * MIB), Pool()
    allocator.free(allocator.malloc(40 * MIB, 1))
    address = allocator.malloc(40 * MIB, 1, pool)
    assert allocator.reserved_bytes <= 50 * MIB
    assert allocator.stats()["num_ooms"] == 0
    allocator.free(address)


def test_caches_are_emptied_by_pool_and_by_stream(make):
    allocator, pool = make(), Pool()
    for stream in (1, 2):
        allocator.free(allocator.malloc(4 * MIB, stream))
        allocator.free(allocator.malloc(4 * MIB, stream, pool))
    for arguments, left in (((pool, 1), 12), ((pool,), 8), ((None, 2), 4), ((), 0)):
        allocator.empty_cache(*arguments)
        assert allocator.reserved_bytes == left * MIB


def test_a_pool_that_does_not_split(make):
    allocator, pool = make(), Pool(no_split=True)
    first = allocator.malloc(6 * MIB, 1, pool)
    small = allocator.malloc(512, 1, pool)
    assert allocator.find(small)[1] == 64 * KIB
    allocator.free(first)
    again = allocator.malloc(2 * MIB, 1, pool)
    assert again == first
    assert allocator.find(again)[1] == 6 * MIB
    allocator.free(again)
    allocator.free(small)


def test_the_arenas_of_pools_that_are_gone_serve_new_ones(make):
    allocator = make()
    for _ in range(200):
        pool = Pool()
        allocator.free(allocator.malloc(3 * MIB, 1, pool))
        del pool
        allocator.empty_cache()
    assert allocator.reserved_bytes == 0
    pool = Pool()
    kept = allocator.malloc(3 * MIB, 1, pool)
    del pool                                        # what is allocated outlives its pool
    ctypes.memset(kept, 1, 3 * MIB)
    allocator.free(kept)
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0


def test_a_recycled_arena_gives_nothing_back_that_its_new_stream_still_uses(make):
    allocator, pool = make(), Pool()
    allocator.free(allocator.malloc(3 * MIB, 0, pool))      # no stream: what is free is in no use
    allocator.empty_cache(pool)
    allocator.empty_cache()                                 # addresses of ranges, too
    del pool
    pool = Pool()                                           # has the same arena, for a stream
    plain = allocator.memory
    plain.hold()
    plain.take_notes()
    allocator.free(allocator.malloc(3 * MIB, 5, pool))
    larger = allocator.malloc(5 * MIB, 5, pool)             # grows, and gives back what is settled
    assert [note for note in plain.take_notes() if note[0] == 3] == []
    plain.hold(False)
    plain.finish()
    allocator.free(larger)


def test_a_pool_sleeps_and_wakes_at_the_same_addresses(make):
    allocator, pool = make(), Pool()
    kept = [allocator.malloc(nbytes, 1, pool) for nbytes in (KIB, 3 * MIB, 9 * MIB)]
    other = allocator.malloc(3 * MIB, 1)
    if not make.has_ranges:
        with pytest.raises(UnsupportedError, match="cannot sleep"):
            allocator.sleep(pool)
    else:
        before = allocator.reserved_bytes
        allocator.sleep(pool)
        assert allocator.reserved_bytes == allocator.memory.counters["used"] == 4 * MIB
        with pytest.raises(RuntimeError, match="asleep"):
            allocator.malloc(KIB, 1, pool)
        allocator.free(kept.pop())                  # freeing is fine
        allocator.empty_cache()
        allocator.wake(pool)
        assert allocator.reserved_bytes == allocator.memory.counters["used"] == before
        for address, nbytes in zip(kept, (KIB, 3 * MIB), strict=True):
            assert allocator.find(address)[0] == address
            ctypes.memset(address, 1, nbytes)
        allocator.empty_cache(pool)
        assert allocator.reserved_bytes < before
    for address in [*kept, other]:
        allocator.free(address)


def test_a_pool_that_finds_no_memory_sleeps_on(make):
    if not make.has_ranges:
        pytest.skip("ordinary segments cannot sleep")
    allocator, pool = make(limit=20 * MIB), Pool()
    address = allocator.malloc(12 * MIB, 1, pool)
    allocator.sleep(pool)
    guest = allocator.malloc(12 * MIB, 1)
    for _ in range(2):
        with pytest.raises(OutOfMemoryError):
            allocator.wake(pool)
        assert allocator.reserved_bytes == allocator.memory.counters["used"] == 12 * MIB
    allocator.free(guest)                           # cached now: given back for the pool
    allocator.wake(pool)
    ctypes.memset(address, 1, 12 * MIB)
    allocator.free(address)


@pytest.mark.parametrize("stream", [1, 2])
def test_a_pool_keeps_to_its_limit(make, stream):
    allocator, pool = make(), Pool(limit=20 * MIB)
    allocator.free(allocator.malloc(30 * MIB, 1))
    first = allocator.malloc(12 * MIB, 1, pool)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(10 * MIB, stream, pool)
    assert allocator.reserved_bytes >= 30 * MIB       # others' caches would not have helped
    allocator.free(first)
    second = allocator.malloc(18 * MIB, stream, pool)
    elsewhere = allocator.malloc(40 * MIB, 1)
    allocator.free(second)
    allocator.free(elsewhere)


def test_memory_that_moves_into_a_pool_counts_there(make):
    allocator, pool = make(limit=40 * MIB), Pool(use_on_oom=True, limit=20 * MIB)
    allocator.free(allocator.malloc(38 * MIB, 1))
    held = [allocator.malloc(4 * MIB, 1, pool) for _ in range(5)]
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(4 * MIB, 1, pool)
    assert allocator.reserved_bytes <= 40 * MIB
    for address in held:
        allocator.free(address)


def test_a_limit_is_the_pools_and_not_a_streams(make):
    allocator, pool = make(), Pool(limit=6 * MIB)
    held = [allocator.malloc(2 * MIB, stream, pool) for stream in (1, 2, 3)]
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(2 * MIB, 4, pool)
    for address in held:
        allocator.free(address)
    allocator.free(allocator.malloc(6 * MIB, 4, pool))


def of_pool(allocator, pool):
    """(current, peak, allocated, freed) of the pool's reserved bytes."""
    name = "{}.{}_{}.all.".format(memory_keys.PRIVATE, *pool.id)
    stats = allocator.stats()
    return tuple(stats[name + kind] for kind in memory_keys.KINDS)


def test_a_pools_share_of_the_memory_is_exact(make):
    """Several streams and pools, grown and given back in any order, against what the snapshot adds up to."""
    allocator, pools = make(), [Pool(), Pool(), None]
    random, live, peaks = Random(7), [], [0, 0, 0]
    for _ in range(400):
        if random.random() < 0.6:
            which = random.randrange(3)
            live.append(allocator.malloc(random.randrange(1, 6 * MIB), random.randrange(1, 4), pools[which]))
        elif live:
            allocator.free(live.pop(random.randrange(len(live))))
        if random.random() < 0.05:
            allocator.empty_cache(random.choice(pools))
        shares = [of_pool(allocator, pool) if allocator.stats().get(
            "{}.{}_{}.all.peak".format(memory_keys.PRIVATE, *pool.id)) else (0, 0, 0, 0) for pool in pools[:2]]
        for i, (now, peak, allocated, freed) in enumerate(shares):
            peaks[i] = max(peaks[i], now)
            assert peak >= peaks[i]
            assert allocated - freed == now
        everything = {}
        for block in allocator.snapshot():
            everything[block["segment"]] = block["segment_size"]
        assert sum(everything.values()) == allocator.reserved_bytes >= shares[0][0] + shares[1][0]
    for address in live:
        allocator.free(address)
    allocator.empty_cache(pools[0])
    assert of_pool(allocator, pools[0])[0] == 0
    allocator.empty_cache()
    assert of_pool(allocator, pools[1])[0] == allocator.reserved_bytes == 0


def test_a_sleeping_pool_has_no_share(make):
    if not make.has_ranges:
        pytest.skip("ordinary segments cannot sleep")
    allocator, pool = make(), Pool()
    address = allocator.malloc(4 * MIB, 1, pool)
    assert of_pool(allocator, pool)[:2] == (4 * MIB, 4 * MIB)
    allocator.sleep(pool)
    assert of_pool(allocator, pool)[0] == 0
    allocator.wake(pool)
    assert of_pool(allocator, pool) == (4 * MIB, 4 * MIB, 8 * MIB, 4 * MIB)
    allocator.free(address)


def test_pools_that_are_gone_do_not_pile_up(make):
    """Made for ever, and never are the statistics reset: those that are alive are listed, and no others."""
    allocator, kept = make(), Pool()
    address = allocator.malloc(2 * MIB, 1, kept)
    for _ in range(300):
        pool = Pool()
        allocator.free(allocator.malloc(2 * MIB, 1, pool))
        allocator.empty_cache(pool)
    assert of_pool(allocator, pool) == (0, 2 * MIB, 2 * MIB, 2 * MIB)
    assert of_pool(allocator, kept)[0] == 2 * MIB
    assert set(allocator.stats()) == memory_keys.keys(kept.id, pool.id)
    del pool
    assert set(allocator.stats()) == memory_keys.keys(kept.id)
    allocator.free(address)


def test_a_limits_refusals_are_told_from_the_memorys(make):
    allocator = make(limit=50 * MIB, capacity=30 * MIB)
    for nbytes, ooms, rejections in ((60 * MIB, 1, 1), (40 * MIB, 2, 1), (1 << 62, 3, 2)):
        with pytest.raises(OutOfMemoryError):
            allocator.malloc(nbytes, 1)
        stats = allocator.stats()
        assert (stats["num_ooms"], stats["num_oom_rejections"]) == (ooms, rejections)
    allocator.reset_accumulated_stats()
    assert allocator.stats()["num_oom_rejections"] == 0
