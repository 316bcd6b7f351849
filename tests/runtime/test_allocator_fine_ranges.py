# SPDX-License-Identifier: Apache-2.0
"""Ranges whose memory comes in small granules, as where a mapping costs little. Plain memory refuses mappings of 2 MiB
and more that do not begin and end at multiples of 2 MiB."""

import ctypes
import random

import pytest
from l0rt.errors import OutOfMemoryError
from l0rt.runtime.alloc.allocator import Allocator

from helpers.plain import PlainMemory

GROWTH = ("ranges",)
KIB, MIB = 1 << 10, 1 << 20
GRANULE = 256 * KIB


@pytest.fixture
def fine(make):
    return lambda **options: make(fine=True, **options)


def used(allocator):
    counters = allocator.memory.counters
    assert allocator.reserved_bytes == counters["used"]
    return counters["used"]


def test_a_range_grows_by_small_granules(fine):
    allocator = fine()
    held = [allocator.malloc(KIB, 1)]
    assert used(allocator) == GRANULE
    held.append(allocator.malloc(1300 * KIB, 1))    # in a range of its own
    assert used(allocator) == GRANULE + 6 * GRANULE
    held.append(allocator.malloc(200 * KIB, 1))     # behind it
    assert used(allocator) == 7 * GRANULE
    for address in held:
        allocator.free(address)


def test_much_memory_comes_in_few_parts(fine):
    allocator = fine()
    held = allocator.malloc(1 << 30, 1)
    assert used(allocator) == 1 << 30
    assert allocator.memory.counters["physicals"] == 16
    allocator.free(held)


def test_new_memory_ends_at_large_pages_once_there_is_much(fine):
    allocator = fine()
    held = [allocator.malloc(1100 * KIB, 1)]
    held += [allocator.malloc(511 * MIB, 1) for _ in range(2)]
    assert used(allocator) % (2 * MIB) == 0
    for address in held:
        ctypes.memset(address, 1, MIB)
        allocator.free(address)


@pytest.mark.parametrize("where", ["limit", "capacity"])
def test_where_memory_ends_new_memory_ends_at_a_granule(fine, where):
    allocator = fine(**{where: 512 * MIB + 5 * GRANULE})
    held = [allocator.malloc(512 * MIB, 1), allocator.malloc(5 * GRANULE, 1)]
    assert used(allocator) == 512 * MIB + 5 * GRANULE
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(2 * MIB, 1)
    for address in held:
        allocator.free(address)


def test_free_granules_move_to_where_memory_is_needed(fine):
    allocator = fine(capacity=12 * MIB)
    held = [allocator.malloc(1280 * KIB, 1) for _ in range(9)]
    for address in held[::2]:
        allocator.free(address)
    large = allocator.malloc(5 * 1280 * KIB, 1)     # five gaps in one piece
    ctypes.memset(large, 1, 5 * 1280 * KIB)
    assert used(allocator) <= 12 * MIB
    assert allocator.stats()["num_alloc_retries"] == 0
    for address in [large, *held[1::2]]:
        allocator.free(address)


@pytest.mark.parametrize("seed", range(4))
def test_work_of_all_sizes_fits_where_it_just_fits(fine, seed):
    """Parts of all sizes move, to places of all alignments, and nothing that is allocated is ever touched."""
    chance = random.Random(seed)
    most = 96 * MIB
    allocator = fine(limit=most + most // 5)
    live, total = {}, 0
    for _ in range(1500):
        nbytes = int(2 ** chance.uniform(12, 24.5))
        while live and total + nbytes > most:
            address = chance.choice(list(live))
            size, value = live.pop(address)
            assert ctypes.string_at(address, 64) == ctypes.string_at(address + size - 64, 64) == bytes([value]) * 64
            total -= size
            allocator.free(address)
        address, value = allocator.malloc(nbytes, 1), chance.randrange(256)
        ctypes.memset(address, value, 64)
        ctypes.memset(address + nbytes - 64, value, 64)
        live[address] = nbytes, value
        total += nbytes
    assert allocator.memory.counters["unmaps"] > 50
    for address in live:
        allocator.free(address)


@pytest.mark.parametrize(
    ("granule", "message"),
    [(3 << 15, "multiple of 64 KiB, not 98304"), (3 << 18, "786432 bytes times a power of two, not 2097152")],
)
def test_granules_that_no_range_can_have_are_refused(granule, message):
    with pytest.raises(ValueError, match=message):
        Allocator(PlainMemory(virtual=1 << 30, granule=granule))
