# SPDX-License-Identifier: Apache-2.0
"""What waits unmerged for its next use: small blocks on class stacks, and the large block that was freed last."""

from l0rt.config import alloc_options

KIB, MIB = 1 << 10, 1 << 20


def states(allocator, pool="large"):
    return [block["state"] for block in allocator.snapshot() if block["pool"] == pool and block["state"] != "live"]


def test_a_cached_block_up_to_an_eighth_larger_is_taken_as_it_is(make):
    allocator = make()
    guard = allocator.malloc(512)
    for nbytes, size in ((63 * KIB + 512, 63 * KIB + 512), (64 * KIB, 72 * KIB), (72 * KIB, 72 * KIB)):
        allocator.free(allocator.malloc(72 * KIB))
        address = allocator.malloc(nbytes)
        assert allocator.find(address) == (address, size, nbytes)
        assert allocator.stats()["allocated_bytes.all.current"] == size + 512
        assert allocator.stats()["requested_bytes.all.current"] == nbytes + 512
        other = allocator.malloc(64 * KIB)              # the stack may be empty again
        assert allocator.find(other)[1] == (72 * KIB if size < 64 * KIB else 64 * KIB)
        allocator.free(other)
        allocator.free(address)
        allocator.empty_cache()
    allocator.free(guard)


def test_small_sizes_have_no_larger_ones_that_are_near(make):
    allocator = make()
    for nbytes in range(1024, 4097, 512):
        allocator.free(allocator.malloc(nbytes))
        address = allocator.malloc(nbytes - 512)
        assert allocator.find(address)[1] == nbytes - 512
        allocator.free(address)
        allocator.empty_cache()


def test_sizes_that_are_rounded_already_have_none_that_are_near(make):
    allocator = make()
    allocator.tune(alloc_options.make(roundup_power2_divisions=8))
    allocator.free(allocator.malloc(80 * KIB))
    address = allocator.malloc(65 * KIB)
    assert allocator.find(address)[1] == 72 * KIB
    allocator.free(address)


def large_neighbours(allocator, count=4):
    """Blocks of 8 MiB next to each other in one segment or range, none of which is at an end."""
    allocator.free(allocator.malloc(8 * (count + 2) * MIB))
    held = [allocator.malloc(8 * MIB) for _ in range(count + 2)]
    assert [b - a for a, b in zip(held, held[1:], strict=False)] == [8 * MIB] * (count + 1)
    return held


def test_the_large_block_that_was_freed_last_is_not_merged_yet(make):
    allocator = make()
    ends = large_neighbours(allocator, 3)
    first, second, third = ends[1:4]
    allocator.free(first)
    assert states(allocator) == ["cached"]
    allocator.free(third)
    assert states(allocator) == ["binned", "cached"]
    allocator.free(second)
    assert states(allocator) == ["binned", "cached", "binned"]
    assert allocator.stats()["inactive_split.large_pool.current"] == 3
    assert allocator.malloc(8 * MIB - 32 * KIB) == second       # less than 64 KiB more: as it is
    assert states(allocator) == ["binned", "binned"]
    allocator.free(second)
    for address in (ends[0], ends[4]):
        allocator.free(address)


def test_it_is_merged_before_memory_is_taken(make):
    allocator = make()
    ends = large_neighbours(allocator)
    reserved = allocator.reserved_bytes
    for address in ends[1:5]:
        allocator.free(address)
    held = allocator.malloc(32 * MIB)
    assert held == ends[1]
    assert allocator.reserved_bytes == reserved
    for address in (held, ends[0], ends[5]):
        allocator.free(address)


def test_it_is_not_handed_out_for_much_less(make):
    allocator = make()
    ends = large_neighbours(allocator)
    allocator.free(ends[1])
    allocator.free(ends[3])
    assert allocator.malloc(8 * MIB - 64 * KIB) == ends[1]      # from a bin, where it was split
    assert allocator.find(ends[1])[1] == 8 * MIB - 64 * KIB
    for address in (ends[0], ends[1], ends[2], ends[4], ends[5]):
        allocator.free(address)


def test_it_goes_back_with_the_rest_of_its_segment(make):
    allocator = make()
    for address in large_neighbours(allocator):
        allocator.free(address)
    assert "cached" in states(allocator)
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0


def test_nothing_waits_where_nothing_is_cached(make):
    allocator = make()
    held = large_neighbours(allocator)
    allocator.tune(alloc_options.make(), uncached=True)
    for address in held:
        allocator.free(address)
    allocator.free(allocator.malloc(3 * MIB))
    assert "cached" not in states(allocator)
    assert make.has_ranges or allocator.reserved_bytes == 0     # ranges give back when they are asked to
    allocator.empty_cache()


def test_another_streams_segment_is_merged_before_garbage_is_collected(make):
    allocator = make(limit=100 * MIB)
    allocator.tune(alloc_options.make(garbage_collection_threshold=0.5, expandable_segments=False))
    for address in large_neighbours(allocator, 2):              # 32 MiB
        allocator.free(address)
    held = allocator.malloc(40 * MIB, 2)                        # together above 50
    assert allocator.reserved_bytes == 40 * MIB
    assert allocator.stats()["num_alloc_retries"] == 0
    allocator.free(held)
