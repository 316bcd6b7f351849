# SPDX-License-Identifier: Apache-2.0
"""A state machine: whatever is done in whatever order, the allocator agrees with a model that counts the slow way.

After every step no two live blocks overlap, every byte is what its owner wrote, no memory is handed out or taken away
before its last use is done (the plain memory tells who recorded, waited and finished what, and `Order` draws the
conclusions), the counters are the model's, and memory taken is memory in use. L0RT_TEST_SOAK=1 makes
100,000 operations and more.
"""

import ctypes

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from l0rt.config import alloc_options
from l0rt.errors import OutOfMemoryError
from l0rt.runtime.alloc.allocator import Allocator, Pool

from helpers.extents import SOAK
from helpers.plain import PlainMemory

KIB, MIB = 1 << 10, 1 << 20
CAPACITY = 96 * MIB
STREAMS = st.sampled_from((0, 1, 2, 3))
SIZES = st.one_of(
    st.integers(1, 8 * KIB),
    st.sampled_from((512, 513, MIB, MIB + 1, 2 * MIB, 10 * MIB)),
    st.integers(MIB, 12 * MIB),
)
CONFIGURATIONS = st.sampled_from((
    {}, {"expandable_segments": False}, {"segments": "torch"}, {"roundup_power2_divisions": 4},
    {"expandable_segments": False, "max_split_size_mb": 20}, {"garbage_collection_threshold": 0.5},
    {"backend": "async"}, {"backend": "async", "expandable_segments": False},
))  # fmt: skip
RECORDED, ORDERED, DONE, TAKEN_AWAY = range(4)


class Order:
    """Which work is behind which, and which is done: every use of memory is a stream and a number."""

    def __init__(self, memory):
        self.memory = memory
        self.memory.take_notes()
        self.behind = {}                        # stream: {other stream: up to this number}
        self.events = {}                        # number: what its stream was behind, and itself
        self.done = {}                          # stream: up to this number
        self.uses = []                          # [start, end, stream, number] of memory that is free

    def follow(self):
        """Take in what happened since the last time; memory that was taken away must be done with."""
        for kind, subject, number in self.memory.take_notes():
            if kind == RECORDED:
                self.events[number] = {**self.behind.get(subject, {}), subject: number}
            elif kind == ORDERED:
                self.merge(self.behind.setdefault(subject, {}), self.events[number])
            elif kind == DONE:
                self.merge(self.done, {subject: number})
            else:
                self.take(subject, subject + number, lambda stream, n: self.done.get(stream, 0) >= n)

    @staticmethod
    def merge(into, what):
        for stream, number in what.items():
            into[stream] = max(into.get(stream, 0), number)

    def hand_out(self, start, end, stream):
        """All that used this memory is done, or ``stream`` comes behind it."""
        behind = self.behind.get(stream, {})
        self.take(start, end, lambda s, n: s == stream or self.done.get(s, 0) >= n or behind.get(s, 0) >= n)

    def take(self, start, end, is_safe):
        left = []
        for low, high, stream, number in self.uses:
            if high <= start or end <= low:
                left.append([low, high, stream, number])
                continue
            assert is_safe(stream, number), f"stream {stream} may still use {max(low, start):#x}"
            left += [[a, b, stream, number] for a, b in ((low, start), (end, high)) if a < b]
        self.uses = left


class Machine(RuleBasedStateMachine):
    virtual, fine = 0, False

    def __init__(self):
        super().__init__()
        self.memory = PlainMemory(capacity=CAPACITY, virtual=self.virtual, fine=self.fine)
        self.allocator = Allocator(self.memory)
        self.pools = {None: None, "private": Pool(), "generous": Pool(use_on_oom=True), "whole": Pool(no_split=True)}
        self.order = Order(self.memory)
        self.live = {}                          # address: [size, requested, value, stream, {stream: its last work}]
        self.refused = False
        self.count = self.bytes = self.peak = 0

    @rule(nbytes=SIZES, stream=STREAMS, pool=st.sampled_from((None, None, None, "private", "generous", "whole")),
          value=st.integers(0, 255))
    def malloc(self, nbytes, stream, pool, value):
        try:
            address = self.allocator.malloc(nbytes, stream, self.pools[pool])
        except OutOfMemoryError:
            assert self.refused or self.allocator.reserved_bytes + nbytes > CAPACITY // 2
            return
        start, size, requested = self.allocator.find(address)
        assert (start, requested) == (address, nbytes)
        assert size >= nbytes
        self.order.follow()
        self.order.hand_out(address, address + size, stream)
        ctypes.memset(address, value, nbytes)
        self.live[address] = [size, nbytes, value, stream, {stream: self.memory.work()} if stream else {}]
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        self.count += 1

    @precondition(lambda self: self.live)
    @rule(data=st.data(), on=st.sampled_from((None, None, None, 1, 2, 3)))
    def free(self, data, on):
        address = data.draw(st.sampled_from(list(self.live)))
        size, nbytes, value, stream, uses = self.live.pop(address)
        assert ctypes.string_at(address, nbytes) == bytes([value]) * nbytes
        if on is not None and stream:
            uses[on] = self.memory.work()       # freed behind that
        self.order.follow()
        self.order.uses += [[address, address + size, user, number] for user, number in uses.items()]
        self.allocator.free(address, on)
        with pytest.raises(ValueError, match="freed already|is not the address"):
            self.allocator.free(address)
        self.bytes -= size

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def work(self, data):
        address = data.draw(st.sampled_from(list(self.live)))
        stream, uses = self.live[address][3:]
        if stream:
            uses[stream] = self.memory.work()

    @precondition(lambda self: self.live)
    @rule(data=st.data(), stream=STREAMS, is_marked=st.booleans())
    def use(self, data, stream, is_marked):
        address = data.draw(st.sampled_from(list(self.live)))
        own, uses = self.live[address][3:]
        if stream:
            uses[stream] = self.memory.work()
        if is_marked or (stream == 0 and own):
            self.allocator.record_use(address, stream)
        else:
            self.allocator.record_stream(address, stream)

    @rule(on=st.booleans())
    def hold(self, on):
        self.memory.hold(on)
        if not on:
            self.memory.finish()

    @rule(stream=STREAMS, count=st.integers(1, 3))
    def finish(self, stream, count):
        self.memory.finish(stream, count)

    @rule(pool=st.sampled_from((None, "private", "generous", "whole")), stream=st.sampled_from((None, 1, 2)))
    def empty_cache(self, pool, stream):
        self.allocator.empty_cache(self.pools[pool], stream)

    @rule(values=CONFIGURATIONS)
    def tune(self, values):
        self.allocator.tune(alloc_options.make(**values))

    @rule(on=st.booleans())
    def refuse_order(self, on):
        self.memory.fail(order=7 if on else 0)

    @rule(times=st.integers(1, 3))
    def refuse(self, times):
        self.refused = True
        self.memory.refuse(times)

    @precondition(lambda self: self.virtual)
    @rule(nth=st.integers(1, 6))
    def refuse_map(self, nth):
        self.refused = True
        self.memory.refuse_map(nth)

    @rule()
    def reset_peaks(self):
        self.allocator.reset_peak_stats()
        self.peak = self.bytes

    @invariant()
    def agrees(self):
        self.order.follow()
        stats = self.allocator.stats()
        assert stats["allocation.all.current"] == len(self.live)
        assert stats["allocation.all.allocated"] == self.count
        assert stats["allocated_bytes.all.current"] == self.allocator.allocated_bytes == self.bytes
        assert stats["allocated_bytes.all.peak"] == self.peak
        assert stats["requested_bytes.all.current"] >= sum(block[1] for block in self.live.values())
        assert stats["reserved_bytes.all.current"] == self.memory.counters["used"] <= CAPACITY
        for family in ("allocated_bytes", "active_bytes", "reserved_bytes", "inactive_split_bytes"):
            parts = [stats[f"{family}.{pool}.current"] for pool in ("all", "small_pool", "large_pool")]
            assert parts[0] == parts[1] + parts[2]
        spans = sorted((address, address + block[0]) for address, block in self.live.items())
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))

    @invariant()
    def chains_are_whole(self):
        end, segment = None, None
        pending = 0
        for block in self.allocator.snapshot():
            if block["segment"] != segment:
                segment, end = block["segment"], block["segment"]
            assert block["address"] == end
            end += block["size"]
            assert (block["state"] == "live") == (block["address"] in self.live)
            pending += block["size"] * (block["state"] == "pending")
        stats = self.allocator.stats()
        assert pending == stats["active_bytes.all.current"] - self.bytes

    def teardown(self):
        self.memory.hold(False)
        self.memory.refuse(0)
        self.memory.refuse_map(0)
        self.memory.fail()
        for address in self.live:
            self.allocator.free(address)
        self.memory.finish()
        self.allocator.empty_cache()
        counters = self.memory.counters
        assert self.allocator.reserved_bytes == counters["used"] == counters["physicals"] == counters["ranges"] == 0
        assert counters["reserves"] == counters["releases"]
        assert counters["records"] == counters["drops"]
        self.order.follow()


@pytest.mark.parametrize(
    ("virtual", "fine"), [(0, False), (1 << 30, False), (1 << 30, True)], ids=["segments", "ranges", "fine ranges"]
)
def test_the_allocator_agrees_with_the_model(virtual, fine, extent):
    machine = type("Machine", (Machine,), {"virtual": virtual, "fine": fine})
    run_state_machine_as_test(machine, settings=settings(
        max_examples=extent(20, 60, 1000), stateful_step_count=extent(40, 40, 60), deadline=None,
        derandomize=not SOAK, suppress_health_check=list(HealthCheck)))  # fmt: skip
