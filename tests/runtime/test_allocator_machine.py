"""A state machine: whatever is done in whatever order, the allocator agrees with a model that counts the slow way.

After every step no two live blocks overlap, every byte is what its owner wrote, memory that other streams use is not
handed out, the counters are the model's, and memory taken is memory in use. The slice of CI is short; L0RT_TEST_SOAK=1
makes 100,000 operations and more.
"""

import ctypes
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from l0rt import allocconf
from l0rt.errors import OutOfMemoryError
from l0rt.runtime.allocator import Allocator, Pool
from l0rt.runtime.plainmemory import PlainMemory

SOAK = os.environ.get("L0RT_TEST_SOAK") == "1"
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
))  # fmt: skip


class Machine(RuleBasedStateMachine):
    virtual = 0

    def __init__(self):
        super().__init__()
        self.memory = PlainMemory(capacity=CAPACITY, virtual=self.virtual)
        self.allocator = Allocator(self.memory)
        self.pools = {None: None, "private": Pool(), "generous": Pool(use_on_oom=True), "whole": Pool(no_split=True)}
        self.live = {}                          # address: [size, requested, value, stream, users]
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
        ctypes.memset(address, value, nbytes)
        self.live[address] = [size, nbytes, value, stream, set()]
        self.bytes += size
        self.peak = max(self.peak, self.bytes)
        self.count += 1

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def free(self, data):
        address = data.draw(st.sampled_from(sorted(self.live)))
        size, nbytes, value, stream, users = self.live.pop(address)
        assert ctypes.string_at(address, nbytes) == bytes([value]) * nbytes
        self.allocator.free(address)
        with pytest.raises(ValueError, match="freed already|is not the address"):
            self.allocator.free(address)
        self.bytes -= size

    @precondition(lambda self: self.live)
    @rule(data=st.data(), stream=STREAMS)
    def use(self, data, stream):
        address = data.draw(st.sampled_from(sorted(self.live)))
        self.allocator.record_stream(address, stream)
        if stream != self.live[address][3]:
            self.live[address][4].add(stream)

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
        self.allocator.tune(allocconf.make(**values))

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
        for address in self.live:
            self.allocator.free(address)
        self.memory.finish()
        self.allocator.empty_cache()
        counters = self.memory.counters
        assert self.allocator.reserved_bytes == counters["used"] == counters["pieces"] == counters["ranges"] == 0
        assert counters["reserves"] == counters["releases"]


@pytest.mark.parametrize("virtual", [0, 1 << 30], ids=["segments", "ranges"])
def test_the_allocator_agrees_with_the_model(virtual):
    machine = type("Machine", (Machine,), {"virtual": virtual})
    run_state_machine_as_test(machine, settings=settings(
        max_examples=1000 if SOAK else 15, stateful_step_count=60 if SOAK else 40, deadline=None,
        derandomize=not SOAK, suppress_health_check=list(HealthCheck)))  # fmt: skip
