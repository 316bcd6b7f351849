# SPDX-License-Identifier: Apache-2.0
"""Memory passes from one stream to another by a wait on the device: never before its last use, never with the host.

The plain memory's streams stand still while it is held, and it tells who was ordered behind whom.
"""

import pytest
from l0rt.config import alloc_options
from l0rt.errors import OutOfMemoryError
from l0rt.runtime.alloc.allocator import Pool

KIB, MIB = 1 << 10, 1 << 20
RECORDED, ORDERED = 0, 1
RECORDED_BY = {}                                            # of each memory: event -> stream


@pytest.fixture
def standing(make):
    """Make allocators whose streams' work takes until somebody waits for it; with a limit of 4 MiB, or so many."""
    made = []

    def standing(limit=4, **conf):
        allocator = make(limit=None if limit is None else limit * MIB)
        allocator.tune(alloc_options.make(**conf))
        allocator.memory.hold()
        allocator.memory.take_notes()
        made.append(allocator.memory)
        return allocator

    yield standing
    RECORDED_BY.clear()
    for memory in made:
        memory.fail()
        memory.hold(False)


def orders(allocator):
    """Return ``{stream: the streams that it was ordered behind}`` since the last call."""
    found = {}
    recorded_by = RECORDED_BY.setdefault(id(allocator.memory), {})
    for kind, stream, number in allocator.memory.take_notes():
        if kind == RECORDED:
            recorded_by[number] = stream
        elif kind == ORDERED:
            found.setdefault(stream, set()).add(recorded_by[number])
    return found


def never_waited(allocator):
    return allocator.memory.counters["waits"] == allocator.stats()["num_sync_all_streams"] == 0


def test_at_the_limit_what_another_stream_caches_is_handed_over(standing):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    allocator.free(address)
    assert allocator.malloc(3 * MIB, 2) == address
    assert orders(allocator) == {2: {1}}
    assert never_waited(allocator)
    assert allocator.allocated_bytes == 3 * MIB
    allocator.free(address)


def test_small_blocks_are_handed_over_too(standing):
    allocator = standing(limit=2)
    small = [allocator.malloc(4 * KIB, 1) for _ in range(3)]
    for address in small:
        allocator.free(address)
    taken = [allocator.malloc(4 * KIB, 2) for _ in range(512)]     # all there is
    assert set(small) <= set(taken)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(4 * KIB, 3)
    for address in taken:
        allocator.free(address)


def test_below_the_limit_streams_do_not_wait_for_each_other(standing):
    allocator = standing(limit=None)
    address = allocator.malloc(4 * MIB, 1)
    allocator.free(address)
    other = allocator.malloc(4 * MIB, 2)
    assert other != address
    assert orders(allocator) == {}
    allocator.free(other)


def test_what_was_handed_over_comes_home_behind_its_last_use(standing):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    allocator.free(address)
    assert allocator.malloc(4 * MIB, 2) == address
    allocator.free(address)                         # used on stream 2: pending for stream 1
    assert allocator.stats()["active_bytes.all.current"] == 4 * MIB
    orders(allocator)
    assert allocator.malloc(4 * MIB, 2) == address      # in its own order: nobody waits
    assert orders(allocator) == {}
    allocator.record_stream(address, 1)             # the home stream uses it as any other does
    allocator.free(address)
    assert allocator.malloc(4 * MIB, 1) == address
    assert orders(allocator) == {1: {2}}
    assert never_waited(allocator)
    allocator.free(address)


def test_a_pending_block_is_handed_over_behind_every_use(standing):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    allocator.record_stream(address, 2)
    allocator.record_use(address, 3)
    allocator.free(address)
    orders(allocator)
    before = allocator.stats()
    assert allocator.malloc(4 * MIB - 700, 4) == address
    assert orders(allocator) == {4: {1, 2, 3}}
    after = allocator.stats()
    assert after["allocation.all.allocated"] == before["allocation.all.allocated"] + 1
    assert after["active.all.current"] == after["allocation.all.current"] == 1
    assert after["requested_bytes.all.current"] == 4 * MIB - 700
    assert never_waited(allocator)
    allocator.free(address)


def test_a_stream_gets_its_own_block_back_behind_others(standing):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    allocator.record_stream(address, 2)
    allocator.free(address)
    assert allocator.malloc(4 * MIB, 1) == address
    assert orders(allocator) == {1: {2}}
    assert never_waited(allocator)
    allocator.free(address)


@pytest.mark.parametrize("stream", [1, 4])
def test_pending_neighbours_are_merged(standing, stream):
    allocator = standing()
    allocator.free(allocator.malloc(4 * MIB, 1))
    halves = [allocator.malloc(2 * MIB, 1) for _ in range(2)]
    for half, user in zip(halves, (2, 3), strict=True):
        allocator.record_stream(half, user)
        allocator.free(half)
    assert allocator.malloc(4 * MIB, stream) == min(halves)
    assert never_waited(allocator)
    assert orders(allocator)[1] == {2, 3}
    allocator.free(min(halves))


@pytest.mark.parametrize("uses", [(), (2,)])
def test_where_the_device_cannot_wait_the_host_does(standing, uses):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    for stream in uses:
        allocator.record_stream(address, stream)
    allocator.free(address)
    allocator.memory.fail(order=7)
    again = allocator.malloc(4 * MIB, 3)
    assert allocator.stats()["num_sync_all_streams"] == 1
    allocator.free(again)
    assert allocator.stats()["active.all.current"] == 0


@pytest.mark.parametrize("uses", [(), (2,), (2, 3)])
def test_nothing_is_lost_when_nobody_can_wait(standing, uses):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    for stream in uses:
        allocator.record_stream(address, stream)
    allocator.free(address)
    pending = 4 * MIB if uses else 0
    allocator.memory.fail(order=7, wait=5)
    for _ in range(2):
        with pytest.raises(OutOfMemoryError):
            allocator.malloc(4 * MIB, 4)
        stats = allocator.stats()
        assert stats["allocated_bytes.all.current"] == 0
        assert stats["active_bytes.all.current"] == pending
        assert stats["reserved_bytes.all.current"] == allocator.memory.counters["used"] == 4 * MIB
    allocator.memory.fail()
    allocator.free(allocator.malloc(4 * MIB, 4))


def test_a_pools_memory_stays_in_the_pool(standing):
    allocator, pool = standing(limit=8), Pool()
    mine = allocator.malloc(4 * MIB, 1, pool)
    allocator.free(mine)
    held = allocator.malloc(4 * MIB, 1)
    assert allocator.malloc(4 * MIB, 2, pool) == mine       # another stream of the same pool
    assert orders(allocator) == {2: {1}}
    allocator.free(mine)
    with pytest.raises(OutOfMemoryError):
        allocator.malloc(4 * MIB, 2)
    allocator.free(held)


def test_memory_that_no_stream_orders_waits_on_the_host(standing):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    allocator.free(address)
    other = allocator.malloc(4 * MIB, 0)
    assert allocator.memory.counters["waits"] == 1
    allocator.free(other)
    allocator.free(allocator.malloc(4 * MIB, 1))            # the other way there is nothing to wait for
    assert allocator.memory.counters["orders"] == 0


# --- Freed in another stream's order.


@pytest.mark.parametrize("limit", [None, 4])
def test_a_block_freed_on_another_stream_is_that_streams(standing, limit):
    allocator = standing(limit=limit)
    address = allocator.malloc(4 * MIB, 1)
    allocator.free(address, 2)
    assert allocator.allocated_bytes == 0
    orders(allocator)
    assert allocator.malloc(4 * MIB, 2) == address
    assert orders(allocator) == {2: {1}}                    # behind what both had by then, and no host wait
    assert never_waited(allocator)
    allocator.free(address)


def test_a_block_freed_on_another_stream_is_not_the_first_ones_before(standing):
    allocator = standing(limit=None)
    address = allocator.malloc(4 * MIB, 1)
    allocator.free(address, 2)
    first = allocator.malloc(4 * MIB, 1)
    assert first != address
    allocator.memory.finish(1)
    second = allocator.malloc(4 * MIB, 1)
    assert second != address
    allocator.memory.finish(2)
    assert allocator.malloc(4 * MIB, 1) == address
    for block in (first, second, address):
        allocator.free(block)


def test_what_was_handed_over_is_freed_at_home(standing):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    allocator.free(address, 2)
    assert allocator.malloc(4 * MIB, 2) == address
    allocator.free(address, 1)
    orders(allocator)
    assert allocator.malloc(4 * MIB, 1) == address
    assert orders(allocator) == {1: {2}}
    allocator.free(address, 1)                              # its own: nothing special
    assert allocator.malloc(4 * MIB, 1) == address
    assert orders(allocator) == {}
    allocator.free(address)


def test_freeing_on_a_stream_refuses_what_freeing_does(standing):
    allocator = standing()
    address = allocator.malloc(MIB, 1)
    for wrong in (address + 512, 4096):
        with pytest.raises(ValueError, match="is not the address"):
            allocator.free(wrong, 2)
    allocator.free(0, 2)
    allocator.free(address, 2)
    with pytest.raises(ValueError, match="freed already"):
        allocator.free(address, 2)


def test_a_free_on_a_stream_that_fails_changes_nothing(standing):
    allocator = standing()
    address = allocator.malloc(4 * MIB, 1)
    before = allocator.stats()
    allocator.memory.fail(record=6)
    with pytest.raises(RuntimeError, match="6"):
        allocator.free(address, 2)
    assert allocator.stats() == before
    allocator.memory.fail()
    allocator.free(address, 2)


# --- Uses that are told with their moment.


def test_a_marked_use_that_is_over_costs_nothing_at_the_free(standing):
    allocator = standing(limit=None)
    address = allocator.malloc(4 * MIB, 1)
    allocator.record_use(address, 2)
    allocator.memory.finish(2)
    records = allocator.memory.counters["records"]
    allocator.free(address)
    assert allocator.stats()["active.all.current"] == 0
    assert allocator.memory.counters["records"] == records
    assert allocator.malloc(4 * MIB, 1) == address
    allocator.free(address)


def test_a_marked_use_does_not_wait_for_later_work(standing):
    allocator = standing(limit=None)
    address = allocator.malloc(4 * MIB, 1)
    allocator.record_use(address, 2)
    other = allocator.malloc(4 * MIB, 1)
    allocator.record_use(other, 2)                          # later on the same stream
    allocator.free(address)
    allocator.memory.finish(2, 1)
    assert allocator.malloc(4 * MIB, 1) == address
    for block in (address, other):
        allocator.free(block)


def test_a_later_mark_replaces_the_earlier_one(standing):
    allocator = standing(limit=None)
    address = allocator.malloc(4 * MIB, 1)
    for _ in range(3):
        allocator.record_use(address, 2)
    allocator.free(address)
    assert allocator.memory.finish(2) == 1                  # the two before it were dropped
    assert allocator.malloc(4 * MIB, 1) == address
    allocator.free(address)


@pytest.mark.parametrize("first", ["record_stream", "record_use"])
def test_a_use_until_the_free_comprises_a_marked_one(standing, first):
    allocator = standing(limit=None)
    address = allocator.malloc(4 * MIB, 1)
    getattr(allocator, first)(address, 2)
    getattr(allocator, {"record_stream": "record_use", "record_use": "record_stream"}[first])(address, 2)
    allocator.memory.finish(2)
    allocator.free(address)
    assert allocator.stats()["active.all.current"] == 1     # what stream 2 was given later counts too
    allocator.memory.finish(2)
    assert allocator.malloc(4 * MIB, 1) == address
    allocator.free(address)


def test_marking_refuses_what_is_not_allocated(standing):
    allocator = standing(limit=None)
    address = allocator.malloc(4 * KIB, 1)
    allocator.record_use(address + 100, 2)                  # interior pointers are fine
    allocator.record_use(address, 1)                        # its own order: nothing to remember
    allocator.memory.fail(record=9)
    with pytest.raises(RuntimeError, match="9"):
        allocator.record_use(address, 3)
    allocator.memory.fail()
    allocator.free(address)
    with pytest.raises(ValueError, match="is not the address"):
        allocator.record_use(address, 2)


# --- Ordered on the device alone.


def test_async_hands_over_before_it_takes_more(standing):
    allocator = standing(limit=None, backend="async")
    address = allocator.malloc(4 * MIB, 1)
    allocator.free(address)
    assert allocator.malloc(4 * MIB, 2) == address
    assert orders(allocator) == {2: {1}}
    allocator.free(address)
    assert allocator.malloc(4 * MIB, 3) == address          # pending, and passed on
    assert 2 in orders(allocator)[3]
    assert allocator.reserved_bytes == 4 * MIB
    assert allocator.memory.counters["waits"] == 0
    allocator.free(address)


def test_async_never_waits_on_the_host(standing):
    allocator = standing(limit=8, backend="async")
    halves = [allocator.malloc(4 * MIB, stream) for stream in (1, 2)]
    for half in halves:
        allocator.free(half)
    with pytest.raises(OutOfMemoryError):                   # two streams' memory could only be joined by a wait
        allocator.malloc(8 * MIB, 3)
    assert allocator.memory.counters["waits"] == 0
    assert allocator.stats()["num_ooms"] == 1
    allocator.tune(alloc_options.make())
    allocator.free(allocator.malloc(8 * MIB, 3))
    assert allocator.memory.counters["waits"] > 0
