# SPDX-License-Identifier: Apache-2.0
"""Ranges: memory is mapped where it is needed, moved from where it is free, and given back granule by granule."""

import ctypes
import random

import pytest
from l0rt.errors import OutOfMemoryError
from l0rt.runtime.alloc.allocator import Pool

GROWTH = ("ranges",)
KIB, MIB = 1 << 10, 1 << 20
GRANULE = 2 * MIB


def counters(allocator):
    return allocator.memory.counters


def test_a_range_grows_by_granules_at_one_place(make):
    allocator = make()
    pointers = [allocator.malloc(3 * MIB, 1) for _ in range(4)]
    assert [b - a for a, b in zip(pointers, pointers[1:], strict=False)] == [3 * MIB] * 3
    assert allocator.reserved_bytes == counters(allocator)["used"] == 12 * MIB
    assert counters(allocator)["ranges"] == allocator.stats()["segment.all.current"] == 1
    for address in pointers:
        allocator.free(address)
    allocator.empty_cache()
    assert counters(allocator)["ranges"] == allocator.stats()["segment.all.current"] == 0


def test_small_and_large_have_ranges_of_their_own(make):
    allocator = make()
    small, large = allocator.malloc(KIB, 1), allocator.malloc(3 * MIB, 1)
    stats = allocator.stats()
    assert stats["reserved_bytes.small_pool.current"] == GRANULE
    assert stats["reserved_bytes.large_pool.current"] == 2 * GRANULE
    allocator.free(small)
    allocator.free(large)


def of_pool(allocator, pool):
    stats = allocator.stats()
    return [stats[f"{key}.{pool}_pool.current"] for key in ("allocation", "allocated_bytes", "reserved_bytes")]


def test_before_a_range_grows_small_requests_are_served_from_the_large_one(make):
    allocator = make()
    large = allocator.malloc(7 * MIB, 1)
    small = allocator.malloc(MIB, 1)                # behind it, where 1 MiB is free
    assert of_pool(allocator, "small") == [0, 0, 0]
    assert of_pool(allocator, "large") == [2, 8 * MIB, 8 * MIB]
    ctypes.memset(small, 1, MIB)
    assert allocator.find(small + MIB - 1) == (small, MIB, MIB)
    tiny = allocator.malloc(128 * KIB, 1)           # no rest of the large range: it is full
    assert of_pool(allocator, "small") == [1, 128 * KIB, GRANULE]
    for address in (small, tiny, large):
        allocator.free(address)
    assert of_pool(allocator, "small") == [0, 0, GRANULE]
    assert of_pool(allocator, "large") == [0, 0, 8 * MIB]
    assert allocator.malloc(8 * MIB, 1) == large    # all of it is one again
    allocator.free(large)


def test_what_is_smaller_than_two_pages_is_never_served_from_the_large_range(make):
    allocator = make()
    large = allocator.malloc(7 * MIB, 1)
    tiny = allocator.malloc(127 * KIB, 1)
    assert of_pool(allocator, "small") == [1, 127 * KIB, GRANULE]
    allocator.free(tiny)
    allocator.free(large)


def test_before_a_range_grows_large_requests_are_served_from_the_small_one(make):
    allocator = make()
    small = [allocator.malloc(MIB, 1) for _ in range(8)]
    kept = allocator.malloc(4 * KIB, 1)
    for address in small:
        allocator.free(address)
    large = allocator.malloc(5 * MIB, 1)
    assert large == small[0]
    assert of_pool(allocator, "large") == [0, 0, 0]
    assert of_pool(allocator, "small") == [2, 5 * MIB + 4 * KIB, 10 * MIB]
    ctypes.memset(large, 1, 5 * MIB)
    assert allocator.find(large + 4 * MIB) == (large, 5 * MIB, 5 * MIB)
    again = allocator.malloc(MIB, 1)                # the rest is small requests' as before
    assert of_pool(allocator, "small") == [3, 6 * MIB + 4 * KIB, 10 * MIB]
    for address in (large, again, kept):
        allocator.free(address)
    assert allocator.find(large) is None
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0


def test_ordinary_segments_serve_one_pool_only(make):
    allocator = make(virtual=1 << 60)
    large = allocator.malloc(8 * MIB, 1)
    kept = allocator.malloc(4 * MIB, 1)
    allocator.free(large)
    small = allocator.malloc(MIB, 1)
    assert of_pool(allocator, "small") == [1, MIB, 2 * MIB]
    allocator.free(small)
    allocator.free(kept)


def test_freed_granules_move_to_where_memory_is_needed(make):
    allocator = make(capacity=24 * MIB)
    first = [allocator.malloc(4 * MIB, 1) for _ in range(6)]
    for address in first[::2]:
        allocator.free(address)
    pieces = counters(allocator)["physicals"]
    held = allocator.malloc(12 * MIB, 1)            # three gaps of 4 MiB become 12 MiB in one piece
    ctypes.memset(held, 1, 12 * MIB)
    assert counters(allocator)["physicals"] == pieces
    assert allocator.reserved_bytes == counters(allocator)["used"] == 24 * MIB
    assert allocator.stats()["num_alloc_retries"] == 0
    for address in [held, *first[1::2]]:
        allocator.free(address)


def test_who_grows_takes_a_little_more_for_who_comes_next(make):
    allocator = make()
    held = [allocator.malloc(1024 * MIB, 1), allocator.malloc(2 * MIB, 1)]
    assert allocator.reserved_bytes == counters(allocator)["used"] == (1024 + 8) * MIB
    pieces = counters(allocator)["physicals"]
    held += [allocator.malloc(2 * MIB, 1) for _ in range(3)]
    assert counters(allocator)["physicals"] == pieces
    for address in held:
        allocator.free(address)


@pytest.mark.parametrize("where", ["limit", "capacity"])
def test_where_memory_ends_nothing_is_taken_for_who_comes_next(make, where):
    allocator = make(**{where: 1028 * MIB})
    held = [allocator.malloc(1024 * MIB, 1), allocator.malloc(4 * MIB, 1)]
    assert allocator.reserved_bytes == counters(allocator)["used"] == 1028 * MIB
    assert allocator.stats()["num_alloc_retries"] == 0
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(2 * MIB, 1)
    for address in held:
        allocator.free(address)


@pytest.mark.parametrize(("limit", "moved"), [(None, 0), (260 * MIB, 2)])
def test_memory_does_not_move_for_little_unless_the_limit_is_near(make, limit, moved):
    allocator = make(**({} if limit is None else {"limit": limit}))
    held = [allocator.malloc(4 * MIB, 1) for _ in range(64)]
    allocator.free(held.pop(10))
    held.append(allocator.malloc(6 * MIB, 1))       # 262 MiB are reserved then, and 258 were needed at once
    assert counters(allocator)["unmaps"] == moved
    assert allocator.reserved_bytes == (262 if limit is None else 258) * MIB
    for address in held:
        allocator.free(address)


def test_moves_are_few_each_time_memory_is_taken_anew(make):
    """What was freed before the memory was last given back does not count as a reason to move more."""
    moved = []
    for frees in (0, 200_000):
        allocator = make()
        for _ in range(frees):
            allocator.free(allocator.malloc(4 * MIB, 1))
        allocator.empty_cache()
        before = counters(allocator)["unmaps"]
        for _ in range(16):
            held = [allocator.malloc(4 * MIB, 1) for _ in range(100)]
            for address in held[::2]:
                allocator.free(address)             # 50 gaps, none of which is large enough
            held = held[1::2] + [allocator.malloc(6 * MIB, 1) for _ in range(32)]
            for address in held:
                allocator.free(address)
        moved.append(counters(allocator)["unmaps"] - before)
    assert 240 < moved[0] < 9 * 256
    assert abs(moved[1] - moved[0]) < 200_000 >> 12


def test_memory_in_use_does_not_move(make):
    allocator = make()
    allocator.memory.hold()
    a, b = allocator.malloc(4 * MIB, 1), allocator.malloc(4 * MIB, 1)
    allocator.free(a)
    c = allocator.malloc(8 * MIB, 1)                # the work that uses a is not done
    assert counters(allocator)["unmaps"] == 0
    assert allocator.reserved_bytes == 16 * MIB
    allocator.memory.hold(False)
    allocator.memory.finish()
    d = allocator.malloc(6 * MIB, 1)
    assert counters(allocator)["unmaps"] == 2
    assert allocator.reserved_bytes == 18 * MIB
    for address in (b, c, d):
        allocator.free(address)


def test_an_allocation_keeps_its_bytes_while_memory_moves_around_it(make):
    allocator = make(capacity=40 * MIB)
    rng = random.Random(3)
    live = {}
    for step in range(600):
        nbytes = int(2 ** rng.uniform(9, 23))
        try:
            address = allocator.malloc(nbytes, rng.choice((1, 2)))
        except OutOfMemoryError:
            address = None
        if address is not None:
            live[address] = nbytes, step % 256
            ctypes.memset(address, step % 256, nbytes)
        if address is None or len(live) > 12:
            victim = rng.choice(list(live))
            size, value = live.pop(victim)
            assert ctypes.string_at(victim, size) == bytes([value]) * size
            allocator.free(victim)
        assert allocator.reserved_bytes == counters(allocator)["used"] <= 40 * MIB
    for victim, (size, value) in live.items():
        assert ctypes.string_at(victim, size) == bytes([value]) * size
        allocator.free(victim)


@pytest.mark.parametrize("nth", [1, 2, 3, 5])
def test_a_refused_map_leaves_nothing_behind(make, nth):
    allocator = make()
    kept = allocator.malloc(3 * MIB, 1)
    before = allocator.snapshot(), allocator.stats(), counters(allocator)
    allocator.memory.refuse_map(nth)
    allocator.set_limit(before[1]["reserved_bytes.all.current"] + 10 * MIB)
    address = allocator.malloc(10 * MIB, 1)         # the ladder tries again, and finds memory this time
    allocator.free(address)
    allocator.empty_cache()
    after = allocator.snapshot(), allocator.stats(), counters(allocator)
    assert before[0] == after[0]
    assert before[1]["reserved_bytes.all.current"] == after[1]["reserved_bytes.all.current"]
    for key in ("used", "physicals", "ranges"):
        assert before[2][key] == after[2][key]
    allocator.free(kept)


def test_out_of_memory_in_the_middle_of_a_request_gives_it_all_back(make):
    allocator = make(capacity=8 * MIB)
    kept = allocator.malloc(3 * MIB, 1)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(6 * MIB, 1)                # two granules are there, three are needed
    assert allocator.reserved_bytes == counters(allocator)["used"] == 4 * MIB
    stats = allocator.stats()
    assert stats["num_ooms"] == stats["num_alloc_retries"] == 1
    more = allocator.malloc(5 * MIB, 1)             # 1 MiB of it lies behind `kept`
    assert counters(allocator)["used"] == 8 * MIB
    allocator.free(more)
    allocator.free(kept)


def test_other_streams_memory_is_taken_before_memory_is_out(make):
    allocator = make(capacity=16 * MIB)
    a = allocator.malloc(12 * MIB, 1)
    allocator.free(a)
    b = allocator.malloc(13 * MIB, 2)
    assert allocator.stats()["num_sync_all_streams"] == 0
    assert allocator.stats()["num_ooms"] == 0
    allocator.free(b)


def test_a_full_range_is_followed_by_another(make):
    allocator = make(virtual=8 * MIB)
    pointers = [allocator.malloc(3 * MIB, 1) for _ in range(6)]
    assert counters(allocator)["ranges"] == 3
    huge = allocator.malloc(20 * MIB, 1)            # larger than a range usually is
    assert counters(allocator)["ranges"] == 4
    for address in [*pointers, huge]:
        allocator.free(address)
    again = allocator.malloc(20 * MIB, 1)
    assert again == huge
    allocator.free(again)


def test_without_addresses_it_grows_by_ordinary_segments(make):
    allocator = make(virtual=1 << 60)               # more than any process has
    address = allocator.malloc(3 * MIB, 1)
    assert counters(allocator)["ranges"] == 0
    assert counters(allocator)["reserves"] == 1
    allocator.free(address)


def test_addresses_without_memory_belong_to_nobody(make):
    allocator = make()
    address = allocator.malloc(3 * MIB, 1)
    assert allocator.find(address + 3 * MIB - 1)[0] == address
    assert allocator.find(address + 4 * MIB) is None
    with pytest.raises(ValueError, match="is not the address of an allocation"):
        allocator.free(address + 4 * MIB)
    allocator.free(address)


def test_pieces_grow_with_the_heap(make):
    allocator = make()
    pointers = [allocator.malloc(256 * MIB, 1) for _ in range(8)]
    assert counters(allocator)["maps"] < 8 * 128 * 3 // 4
    reserved = allocator.reserved_bytes
    allocator.free(pointers.pop())
    one = allocator.malloc(300 * MIB, 2)            # what was free before is given back only if memory runs out
    assert allocator.reserved_bytes == reserved + 300 * MIB
    for address in [*pointers, one]:
        allocator.free(address)


def test_a_request_without_bounds_does_not_end_the_ranges(make):
    allocator = make(capacity=64 * MIB)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(1 << 60, 1)
    address = allocator.malloc(3 * MIB, 1)
    assert counters(allocator)["ranges"] == 1
    allocator.free(address)


def test_a_pool_reserves_addresses_in_steps(make):
    """The default pool reserves for all that it may ever need; ten thousand pools that did would have no addresses."""
    allocator = make(virtual=16 << 30)
    held = [allocator.malloc(KIB, 1)]
    assert counters(allocator)["addresses"] == 16 << 30
    pools = [Pool() for _ in range(100)]
    held += [allocator.malloc(KIB, 1, pool) for pool in pools]
    assert counters(allocator)["addresses"] == (16 << 30) + 100 * (256 << 20)
    steps = []
    for _ in range(9):                                  # a pool that grows has few ranges none the less
        before = counters(allocator)["addresses"]
        while counters(allocator)["addresses"] == before:
            held.append(allocator.malloc(128 * MIB, 1, pools[0]))
        steps.append(counters(allocator)["addresses"] - before >> 20)
    assert steps == [512, 1024, 2048, 4096, 8192, 16384, 16384, 16384, 16384]
    for address in held:
        allocator.free(address)
    pools.clear()
    allocator.empty_cache()
    assert counters(allocator)["addresses"] == 0
