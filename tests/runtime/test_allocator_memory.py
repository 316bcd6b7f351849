# SPDX-License-Identifier: Apache-2.0
"""Sizes, reuse, limits, refusals and pending frees: what happens off the hit path."""

import random

import pytest
from l0rt.errors import L0Error, OutOfMemoryError

from helpers.process import run_python

GROWTH = ("segments",)              # test_allocator_ranges.py has the other way

KIB, MIB = 1 << 10, 1 << 20


def states(allocator):
    return [block["state"] for block in allocator.snapshot()]


@pytest.mark.parametrize(("nbytes", "size"), [(1, 512), (512, 512), (513, 1024), (MIB, MIB), (MIB - 1, MIB)])
def test_sizes_are_multiples_of_512(make, nbytes, size):
    allocator = make()
    address = allocator.malloc(nbytes)
    assert allocator.find(address) == (address, size, nbytes)
    allocator.free(address)


@pytest.mark.parametrize("nbytes", [(1 << 62) + 1, (1 << 63) - 1, (1 << 64) - 1, 1 << 64, 1 << 100, 1 << 62, 1 << 48])
def test_a_huge_size_is_out_of_memory(make, nbytes):
    allocator = make(capacity=64 * MIB)
    with pytest.raises(OutOfMemoryError, match="requested.*allocated.*cached.*limit"):
        allocator.malloc(nbytes)
    assert allocator.stats()["num_ooms"] == 1
    allocator.free(allocator.malloc(512))


def test_more_than_the_device_has_is_refused_before_anything_is_made_for_it():
    """A range has records of its addresses: 64 TiB of them are gigabytes of the host's memory, and a minute."""
    code = """
import resource
import l0rt
l0rt.empty(1 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for power in (40, 46, 47, 60):
    try:
        l0rt.empty(1 << power)
    except l0rt.OutOfMemoryError as error:
        assert "requested" in str(error)
    else:
        raise AssertionError(power)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000)
l0rt.empty(1 << 20).fill(1)
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"})
    assert (result.returncode, result.stdout) == (0, "True\n"), result


@pytest.mark.parametrize("nbytes", [0, -1, -(1 << 63), -(1 << 70)])
def test_a_size_is_positive(make, nbytes):
    with pytest.raises(ValueError, match="positive"):
        make().malloc(nbytes)


@pytest.mark.parametrize("nbytes", [1.5, "8", None])
def test_a_size_is_an_int(make, nbytes):
    with pytest.raises(TypeError, match="int"):
        make().malloc(nbytes)


def test_a_memory_without_operations_is_refused():
    from l0rt.runtime.alloc.allocator import Allocator, Memory

    with pytest.raises(TypeError, match="operations"):
        Allocator(Memory())
    with pytest.raises(TypeError):
        Allocator(None)


@pytest.mark.parametrize("nbytes", [512, MIB, 3 * MIB])
def test_memory_is_reused_on_its_stream_only(make, nbytes):
    allocator = make()
    address = allocator.malloc(nbytes, 1)
    allocator.free(address)
    other = allocator.malloc(nbytes, 2)
    assert other != address
    again = allocator.malloc(nbytes, 1)
    assert again == address
    allocator.free(other)
    allocator.free(again)


def test_neighbours_merge_and_serve_a_larger_request(make):
    allocator = make(capacity=2 * MIB)
    pointers = [allocator.malloc(256 * KIB, 1) for _ in range(8)]
    assert pointers == sorted(pointers)
    for address in pointers[::2] + pointers[1::2]:
        allocator.free(address)
    address = allocator.malloc(MIB, 1)
    assert address == pointers[0]
    allocator.free(address)
    assert allocator.memory.counters["reserves"] == 1


def test_a_large_remainder_below_64_kib_stays_with_its_block(make):
    allocator = make(limit=4 * MIB)
    allocator.free(allocator.malloc(4 * MIB, 1))
    address = allocator.malloc(4 * MIB - 60 * KIB, 1)
    assert allocator.find(address)[1] == 4 * MIB
    allocator.free(address)
    address = allocator.malloc(4 * MIB - 64 * KIB, 1)
    assert allocator.find(address)[1] == 4 * MIB - 64 * KIB
    allocator.free(address)


def test_the_limit_holds_and_can_be_moved(make):
    allocator = make(limit=8 * MIB)
    pointers = [allocator.malloc(2 * MIB, 1) for _ in range(4)]
    with pytest.raises(OutOfMemoryError, match=r"requested 2\.00 MiB.*limit 8\.00 MiB"):
        allocator.malloc(2 * MIB, 1)
    assert allocator.reserved_bytes == 8 * MIB
    allocator.set_limit(10 * MIB)
    pointers.append(allocator.malloc(2 * MIB, 1))
    allocator.set_limit(2 * MIB)            # what is reserved stays
    assert allocator.find(pointers[0]) is not None
    for address in pointers:
        allocator.free(address)
    allocator.set_limit(None)
    pointers = [allocator.malloc(2 * MIB, 2) for _ in range(9)]
    for address in pointers:
        allocator.free(address)
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="positive"):
            allocator.set_limit(wrong)
    with pytest.raises(TypeError):
        allocator.set_limit(1.5)


def test_other_streams_caches_are_given_back_least_first(make):
    allocator = make(limit=32 * MIB)
    for size in (16, 4, 8):
        allocator.free(allocator.malloc(size * MIB, size))
    address = allocator.malloc(7 * MIB, 1)          # 3 MiB are missing: the segment of 4 is enough
    assert sorted({block["segment_size"] // MIB for block in allocator.snapshot()}) == [7, 8, 16]
    assert allocator.stats()["num_sync_all_streams"] == 0
    allocator.free(address)


def test_growing_gives_back_the_streams_own_idle_segments_first(make):
    allocator = make()
    allocator.free(allocator.malloc(4 * MIB, 1))
    address = allocator.malloc(6 * MIB, 1)
    assert allocator.reserved_bytes == 6 * MIB
    allocator.free(address)


def test_an_idle_segment_in_use_by_its_stream_is_kept_unless_memory_runs_out(make):
    allocator = make(limit=12 * MIB)
    allocator.memory.hold()
    allocator.free(allocator.malloc(4 * MIB, 1))
    first = allocator.malloc(6 * MIB, 1)
    assert allocator.reserved_bytes == 10 * MIB     # the 4 MiB may still be written to
    assert allocator.memory.counters["waits"] == 0
    second = allocator.malloc(6 * MIB, 1)           # now there is no other way than to wait
    assert allocator.memory.counters["waits"] == 1
    assert allocator.reserved_bytes == 12 * MIB
    stats = allocator.stats()
    assert (stats["num_sync_all_streams"], stats["num_alloc_retries"], stats["num_ooms"]) == (1, 1, 0)
    allocator.free(first)
    allocator.free(second)


def test_refused_memory_is_tried_again_after_giving_back(make):
    allocator = make()
    memory = allocator.memory
    allocator.free(allocator.malloc(4 * MIB, 2))
    memory.refuse(1)
    address = allocator.malloc(4 * MIB, 1)
    assert memory.counters["releases"] == 1
    assert allocator.stats()["num_alloc_retries"] == 0
    memory.refuse(1)
    other = allocator.malloc(4 * MIB, 1)
    assert allocator.stats()["num_alloc_retries"] == 1
    memory.refuse(100)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(4 * MIB, 1)
    assert allocator.stats()["num_ooms"] == 1
    memory.refuse(0)
    allocator.free(address)
    allocator.free(other)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_another_code_of_the_backend_comes_through(make, times):
    allocator = make()
    allocator.memory.refuse(times, 77)
    for _ in range(times):
        with pytest.raises(L0Error, match="77") as caught:
            allocator.malloc(512)
        assert not isinstance(caught.value, OutOfMemoryError)
    allocator.free(allocator.malloc(512))


def test_every_refusal_leaves_the_books_right(make):
    rng = random.Random(3)
    allocator = make(limit=24 * MIB)
    live = {}
    ooms = 0
    for _ in range(3000):
        if rng.random() < 0.1:
            allocator.memory.refuse(rng.randrange(4), rng.choice((1, 1, 9)))
        if live and rng.random() < 0.45:
            address = rng.choice(list(live))
            del live[address]
            allocator.free(address)
        else:
            nbytes = int(2 ** rng.uniform(9, 23))
            try:
                address = allocator.malloc(nbytes, rng.choice((0, 1, 2)))
                live[address] = allocator.find(address)[1]
            except OutOfMemoryError:
                ooms += 1
            except L0Error:
                pass
        assert allocator.allocated_bytes == sum(live.values())
        assert allocator.reserved_bytes == allocator.memory.counters["used"] <= 24 * MIB
    assert allocator.stats()["num_ooms"] == ooms > 0
    for address in live:
        allocator.free(address)


def test_a_used_block_waits_for_every_using_stream(make):
    allocator = make(limit=2 * MIB)
    memory = allocator.memory
    memory.hold()
    address = allocator.malloc(MIB, 1)
    for stream in (1, 7, 8, 7):                     # its own stream and a second time count for nothing
        allocator.record_stream(address, stream)
    allocator.free(address)
    assert memory.counters["records"] == 2
    stats = allocator.stats()
    assert stats["allocation.all.current"] == 0
    assert stats["active.all.current"] == 1
    assert stats["active_bytes.small_pool.current"] == MIB
    assert stats["requested_bytes.all.current"] == MIB
    with pytest.raises(ValueError, match="freed already"):
        allocator.free(address)
    other = allocator.malloc(MIB, 1)
    assert other != address
    memory.finish(7)
    memory.refuse(100)
    memory.finish(8)
    again = allocator.malloc(MIB, 1)
    assert again == address
    assert memory.counters["waits"] == 0
    assert allocator.stats()["active.all.current"] == 2
    memory.refuse(0)
    allocator.free(again)
    allocator.free(other)
    memory.hold(False)


def test_running_out_waits_for_pending_blocks(make):
    allocator = make(limit=4 * MIB)
    memory = allocator.memory
    memory.hold()
    memory.fail(order=7)                # where streams cannot wait for each other, the host does
    address = allocator.malloc(4 * MIB, 1)
    allocator.record_stream(address, 2)
    allocator.free(address)
    assert allocator.malloc(4 * MIB, 1) == address
    assert memory.counters["waits"] == 1
    assert allocator.stats()["num_sync_all_streams"] == 1
    allocator.free(address)
    memory.hold(False)


def test_a_wait_that_fails_leaves_the_block_pending(make):
    allocator = make(limit=2 * MIB)
    memory = allocator.memory
    memory.hold()
    address = allocator.malloc(2 * MIB, 1)
    allocator.record_stream(address, 2)
    allocator.free(address)
    memory.fail(wait=5, order=7)
    with pytest.raises(OutOfMemoryError, match=r"in use after free 2\.00 MiB"):
        allocator.malloc(2 * MIB, 1)
    assert states(allocator) == ["pending"]
    memory.fail(order=7)
    assert allocator.malloc(2 * MIB, 1) == address
    allocator.free(address)


def test_a_record_that_fails_leaves_the_block_allocated(make):
    allocator = make()
    address = allocator.malloc(4096, 1)
    allocator.record_stream(address, 2)
    before = allocator.stats()
    allocator.memory.fail(record=6)
    with pytest.raises(L0Error, match="6"):
        allocator.free(address)
    assert allocator.stats() == before
    assert allocator.find(address) is not None
    allocator.memory.fail()
    allocator.free(address)
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0


def test_pending_blocks_come_back_in_any_order(make):
    rng = random.Random(11)
    allocator = make()
    memory = allocator.memory
    memory.hold()
    live = {}
    for step in range(4000):
        action = rng.random()
        if action < 0.5 or not live:
            nbytes = int(2 ** rng.uniform(9, 22))
            address = allocator.malloc(nbytes, rng.randrange(3))
            assert address not in live
            live[address] = allocator.find(address)[1]
        elif action < 0.6:
            allocator.record_stream(rng.choice(list(live)), rng.randrange(5))
        elif action < 0.98:
            address = rng.choice(list(live))
            del live[address]
            allocator.free(address)
        else:
            memory.finish(rng.randrange(5), rng.randrange(1, 20))
        if step % 16 == 0:
            stats = allocator.stats()
            assert stats["allocated_bytes.all.current"] == sum(live.values())
            pending = [block["size"] for block in allocator.snapshot() if block["state"] == "pending"]
            assert stats["active.all.current"] == len(live) + len(pending)
            assert stats["active_bytes.all.current"] == sum(live.values()) + sum(pending)
    for address in live:
        allocator.free(address)
    allocator.empty_cache()
    stats = allocator.stats()
    assert allocator.reserved_bytes == 0
    assert stats["active.all.allocated"] == stats["active.all.freed"] == stats["allocation.all.freed"]
    assert stats["requested_bytes.all.current"] == stats["inactive_split_bytes.all.current"] == 0


def test_only_the_oldest_event_of_a_stream_is_asked(make):
    allocator = make()
    memory = allocator.memory
    memory.hold()
    pointers = [allocator.malloc(MIB, 1) for _ in range(4)]
    for address in pointers:
        allocator.record_stream(address, 2)
        allocator.free(address)
    memory.finish(2, 3)
    assert states(allocator).count("pending") == 4      # not looked at yet
    taken = [allocator.malloc(MIB, 1) for _ in range(3)]
    assert set(taken) == set(pointers[:3])
    for address in taken:
        allocator.free(address)
    memory.finish()
