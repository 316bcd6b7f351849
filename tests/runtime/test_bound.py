# SPDX-License-Identifier: Apache-2.0
"""A bound on what is cached: what has been free for longest goes first, and what is in use never counts."""

import random

import pytest
from l0rt.config import alloc_options

GROWTH = ("segments", "ranges")
KIB, MIB = 1 << 10, 1 << 20


def bounded(make, most, **values):
    allocator = make()
    allocator.tune(alloc_options.make(**values), cached_most=most)
    return allocator


def cached(allocator):
    stats = allocator.stats()
    return stats["reserved_bytes.all.current"] - stats["active_bytes.all.current"]


def test_memory_in_use_does_not_count(make):
    allocator = bounded(make, 4 * MIB)
    held = [allocator.malloc(3 * MIB) for _ in range(20)]
    assert allocator.allocated_bytes == 60 * MIB
    allocator.free(held.pop())
    used = allocator.malloc(3 * MIB)
    assert allocator.reserved_bytes <= 60 * MIB + 4 * MIB
    for address in [*held, used]:
        allocator.free(address)
        assert cached(allocator) <= 4 * MIB


def test_memory_that_other_streams_use_counts_once_it_is_free(make):
    allocator = bounded(make, 4 * MIB)
    allocator.memory.hold()
    used = allocator.malloc(6 * MIB)
    allocator.record_stream(used, 2)
    allocator.free(used)
    assert allocator.reserved_bytes >= 6 * MIB
    allocator.memory.finish()
    other = allocator.malloc(7 * MIB)
    assert cached(allocator) <= 4 * MIB
    allocator.free(other)


def test_a_bound_of_nothing_keeps_nothing_that_may_go(make):
    allocator = bounded(make, 0)
    for size in (1, 512, 300 * KIB, MIB, 3 * MIB):
        allocator.free(allocator.malloc(size))
        assert allocator.reserved_bytes == 0, size


def test_small_blocks_on_stacks_hold_no_segments_above_the_bound(make):
    allocator = bounded(make, 6 * MIB)
    held = [allocator.malloc(512 * KIB) for _ in range(80)]
    for address in held[1::4]:
        allocator.free(address)
    for address in held[::4] + held[2::4] + held[3::4]:
        allocator.free(address)
    assert cached(allocator) == allocator.reserved_bytes <= 6 * MIB
    # below its bound again, it is as quick as ever: what is freed is what comes next
    address = allocator.malloc(4 * KIB)
    for _ in range(3):
        allocator.free(address)
        assert allocator.malloc(4 * KIB) == address
    allocator.free(address)


def test_a_lower_bound_holds_at_once(make):
    allocator = bounded(make, None)
    for address in [allocator.malloc(3 * MIB) for _ in range(10)]:
        allocator.free(address)
    assert cached(allocator) >= 30 * MIB
    allocator.tune(alloc_options.make(), cached_most=7 * MIB)
    assert cached(allocator) <= 7 * MIB


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_done_no_more_is_cached_than_free_segments_and_the_bound(make, seed):
    rng = random.Random(seed)
    most = 16 * MIB
    allocator = bounded(make, most)
    held = []
    for _ in range(3000):
        if held and rng.random() < 0.5:
            allocator.free(held.pop(rng.randrange(len(held))))
        else:
            held.append(allocator.malloc(int(2 ** rng.uniform(0, 22.5)), rng.randrange(1, 4)))
        if len(held) > 60:
            for _ in range(50):
                allocator.free(held.pop())
        if not held:
            assert cached(allocator) <= most
    for address in held:
        allocator.free(address)
    assert allocator.allocated_bytes == 0
    assert allocator.reserved_bytes <= most
