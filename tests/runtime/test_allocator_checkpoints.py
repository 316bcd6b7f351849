# SPDX-License-Identifier: Apache-2.0
"""Allocating again, at the same addresses, what a private pool had: all of it or nothing, whatever was there since."""

import pytest
from l0rt.runtime.alloc.allocator import Pool

KIB, MIB = 1 << 10, 1 << 20


@pytest.fixture
def pool():
    made = Pool()
    made.keep(True)
    yield made
    made.keep(False)


def test_a_kept_pool_has_the_memory_of_its_places_when_others_need_it(make, pool):
    allocator = make(limit=40 * MIB)
    places = [allocator.find(allocator.malloc(n, 1, pool)) for n in (512, 3 * MIB, 20 * MIB)]
    for address, _, _ in places:
        allocator.free(address)
    allocator.empty_cache(pool)
    with pytest.raises(MemoryError):
        allocator.malloc(30 * MIB, 1)
    allocator.restore(pool, places)
    assert [allocator.find(address) for address, _, _ in places] == places
    for address, _, _ in places:
        allocator.free(address)


def test_it_is_all_or_nothing(make, pool):
    allocator = make()
    first, second, third = (allocator.find(allocator.malloc(n, 1, pool)) for n in (4 * KIB, 2 * MIB, 5 * MIB))
    allocator.free(first[0])
    allocator.free(third[0])
    before = allocator.allocated_bytes
    for places in (
        [first, third, second],                                     # which is allocated
        [first, first],
        [first, (third[0], 1 << 40, 1)],
        [first, (third[0], 0, 0)],
        [first, (third[0], third[1], third[1] + 1)],
        [first, (third[0] + 1, 512, 512)],
        [first, (third[0] + 512, 64 * KIB, 512)],                   # large blocks are a page apart
        [first, (12345, 512, 512)],
    ):
        with pytest.raises(ValueError, match="is not free, or is not the pool's"):
            allocator.restore(pool, places)
        assert allocator.allocated_bytes == before
    with pytest.raises(ValueError, match="is not the pool's"):
        allocator.restore(Pool(), [first])
    with pytest.raises(ValueError, match="is not the pool's"):
        make().restore(pool, [first])
    allocator.restore(pool, [third, first])
    for address, _, _ in (first, second, third):
        allocator.free(address)
    allocator.restore(pool, [])


def test_a_place_that_another_stream_used_waits_for_it(make, pool):
    allocator = make()
    place = allocator.find(allocator.malloc(MIB, 1, pool))
    allocator.memory.hold()
    allocator.record_stream(place[0], 2)
    allocator.free(place[0])
    assert [block["state"] for block in allocator.snapshot() if block["address"] == place[0]] == ["pending"]
    before = allocator.memory.counters["waits"]
    allocator.memory.hold(False)
    allocator.restore(pool, [place])
    assert allocator.memory.counters["waits"] > before
    assert allocator.find(place[0]) == place
    allocator.free(place[0])


@pytest.mark.parametrize("kind", [{"no_split": True}, {"plain": True}, {"use_on_oom": True}])
def test_pools_of_every_kind(make, kind):
    allocator, pool = make(), Pool(**kind)
    pool.keep(True)
    places = [allocator.find(allocator.malloc(n, 1, pool)) for n in (100, 700 * KIB, MIB + 1, 9 * MIB)]
    for address, _, _ in places:
        allocator.free(address)
    between = [allocator.malloc(n, 1, pool) for n in (9 * MIB, 3 * MIB, 512, 8 * KIB)]
    for address in between:
        allocator.free(address)
    allocator.restore(pool, places)
    assert [allocator.find(address) for address, _, _ in places] == places
    for address, _, _ in places:
        allocator.free(address)
    pool.keep(False)


def test_a_sleeping_pool_is_refused(make, pool):
    if not make.has_ranges:
        pytest.skip("ordinary segments cannot sleep")
    allocator = make()
    place = allocator.find(allocator.malloc(MIB, 1, pool))
    allocator.free(place[0])
    allocator.sleep(pool)
    with pytest.raises(RuntimeError, match="asleep"):
        allocator.restore(pool, [place])
    allocator.wake(pool)
    allocator.restore(pool, [place])
    allocator.free(place[0])
