# SPDX-License-Identifier: Apache-2.0
"""Random work against a model: blocks never overlap, contents survive, and every statistic is exact."""

import ctypes
import random

import pytest
from l0rt.runtime.alloc.allocator import Pool

from helpers import memory_keys

KIB, MIB = 1 << 10, 1 << 20
STREAMS = (0, 1, 2)
BOTH = ("all", "small_pool", "large_pool")


def fill(address, size, value):
    ctypes.memset(address, value, size)


def is_filled(address, size, value):
    return ctypes.string_at(address, size) == bytes([value]) * size


class Model:
    """What must be true of an allocator, counted the slow way."""

    def __init__(self, allocator, padding=0, has_ranges=False, private=None):
        self.allocator = allocator
        self.private = private          # the pool that everything is allocated from
        self.has_ranges = has_ranges
        self.padding = padding          # of each segment, where the memory does not align
        self.live = {}                  # address: (requested, size, value, pool)
        self.peak = {}
        self.allocated = {}             # ever
        self.freed = {}

    def malloc(self, nbytes, stream, value):
        address = self.allocator.malloc(nbytes, stream, self.private)
        assert address % 512 == 0
        start, size, requested = self.allocator.find(address)
        assert (start, requested) == (address, nbytes)
        assert size >= nbytes
        assert size % 512 == 0
        pool = self.pool_of(address, nbytes)
        grains = -(-nbytes // 512)
        if pool == "small_pool" and nbytes <= MIB:
            assert grains <= size // 512 <= grains + grains // 8
        else:
            assert grains <= size // 512 < grains + 128
        self.live[address] = (nbytes, size, value, pool)
        fill(address, min(nbytes, 4096), value)
        fill(address + nbytes - 1, 1, value)
        self.count(self.allocated, nbytes, size, pool)

    def pool_of(self, address, nbytes):
        """The pool of an allocation: by its size, or of the range whose free memory it was served from."""
        pool = "small" if nbytes <= MIB else "large"
        if self.has_ranges and nbytes > 127.5 * KIB:
            blocks = self.allocator.snapshot()
            pool = next(block["pool"] for block in blocks if block["address"] == address)
        return f"{pool}_pool"

    def free(self, address):
        nbytes, size, value, pool = self.live.pop(address)
        assert is_filled(address, min(nbytes, 4096), value)
        assert is_filled(address + nbytes - 1, 1, value)
        self.allocator.free(address)
        self.count(self.freed, nbytes, size, pool)

    def count(self, totals, nbytes, size, pool):
        for key in ("all", pool):
            for name, change in (("allocation", 1), ("active", 1), ("allocated_bytes", size), ("active_bytes", size),
                                 ("requested_bytes", nbytes)):
                totals[f"{name}.{key}"] = totals.get(f"{name}.{key}", 0) + change

    def current(self):
        """Every family's current value, from the model and from a walk over the chains."""
        now = {key: self.allocated[key] - self.freed.get(key, 0) for key in self.allocated}
        segments = {}
        for block in self.allocator.snapshot():
            key = block["segment"], block["segment_size"], block["pool"], block["is_expandable"]
            segments.setdefault(key, []).append(block)
        for family in ("segment", "reserved_bytes", "inactive_split", "inactive_split_bytes"):
            for key in BOTH:
                now[f"{family}.{key}"] = 0
        for (base, size, pool, is_range), blocks in segments.items():
            end = base
            for block in blocks:
                assert block["address"] == end
                end += block["size"]
                assert block["pool"] == pool
                assert (block["state"] == "live") == (block["address"] in self.live)
            assert end == base + size
            states = [block["state"] for block in blocks]
            assert ("binned", "binned") not in zip(states, states[1:], strict=False)
            for key in ("all", f"{pool}_pool"):
                now[f"segment.{key}"] += not is_range
                now[f"reserved_bytes.{key}"] += size + (0 if is_range else self.padding)
                if len(blocks) > 1 or is_range:
                    quiet = [block["size"] for block in blocks if block["state"] != "live"]
                    now[f"inactive_split.{key}"] += len(quiet)
                    now[f"inactive_split_bytes.{key}"] += sum(quiet)
        return now

    def check(self):
        stats = self.allocator.stats()
        for key, value in self.current().items():
            if key.startswith("segment.") and self.has_ranges:
                continue            # a range counts once, and a snapshot shows its stretches that have memory
            assert stats[f"{key}.current"] == value, key
            self.peak[key] = max(self.peak.get(key, 0), value)
            assert stats[f"{key}.peak"] == self.peak[key], key
            assert stats[f"{key}.allocated"] - stats[f"{key}.freed"] == value, key
        for key, value in self.allocated.items():
            assert stats[f"{key}.allocated"] == value, key
        for key, value in self.freed.items():
            assert stats[f"{key}.freed"] == value, key
        spans = sorted((address, address + size) for address, (_, size, _, _) in self.live.items())
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False))


class PoolModel(Model):
    """The model of an allocator that serves a private pool, and of what the pool had before."""

    def restore(self, checkpoint):
        """Free what the checkpoint does not have, and have again what it has."""
        for address in list(self.live):
            if self.live[address][1] != checkpoint.get(address, (0, 0))[1]:
                self.free(address)
                self.check()        # a peak may be between two frees
        missing = {address: live for address, live in checkpoint.items() if address not in self.live}
        places = [(address, size, nbytes) for address, (nbytes, size, _, _) in missing.items()]
        self.allocator.restore(self.private, places)
        for address, (nbytes, size, value, pool) in missing.items():
            assert self.allocator.find(address) == (address, size, nbytes)
            fill(address, min(nbytes, 4096), value)
            fill(address + nbytes - 1, 1, value)
            self.live[address] = nbytes, size, value, pool
            self.count(self.allocated, nbytes, size, pool)


SIZES = {
    "small": lambda rng: rng.randint(1, 4 * KIB),
    "classes": lambda rng: rng.choice((512, 513, 4096, 100 * KIB, MIB)),
    "large": lambda rng: rng.randint(MIB - 600, 8 * MIB),
    "mixed": lambda rng: int(2 ** rng.uniform(0, 23)),
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_random_work_is_exact_at_every_step(make, sizes, seed):
    rng = random.Random(f"{sizes} {seed}")
    model = Model(make(skew=4096 * seed), 64 * KIB if seed else 0, make.has_ranges)
    for step in range(700):
        grow = 0.7 if step < 250 or step > 500 else 0.35
        if not model.live or rng.random() < grow:
            model.malloc(SIZES[sizes](rng), rng.choice(STREAMS), rng.randrange(256))
        else:
            model.free(rng.choice(list(model.live)))
        model.check()
    for address in list(model.live):
        model.free(address)
        model.check()
    model.allocator.empty_cache()
    model.check()
    assert model.allocator.reserved_bytes == 0


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_random_work_with_checkpoints_is_exact_at_every_step(make, sizes, seed):
    rng = random.Random(f"checkpoints {sizes} {seed}")
    pool = Pool()
    pool.keep(True)
    model = PoolModel(make(skew=4096 * seed), 64 * KIB if seed else 0, make.has_ranges, pool)
    checkpoints = [{}]
    for step in range(500):
        choice = rng.random()
        if choice < 0.03:
            checkpoints.append(dict(model.live))
        elif choice < 0.06:
            model.restore(rng.choice(checkpoints[-5:]))
        elif not model.live or choice < (0.65 if step % 200 < 120 else 0.4):
            model.malloc(SIZES[sizes](rng), rng.choice(STREAMS), rng.randrange(256))
        else:
            model.free(rng.choice(list(model.live)))
        model.check()
    for checkpoint in checkpoints[-5:]:
        model.restore(checkpoint)
        model.check()
    model.restore({})
    model.check()
    pool.keep(False)
    model.allocator.empty_cache(pool)
    assert model.allocator.reserved_bytes == 0


@pytest.mark.parametrize("seed", range(4))
def test_the_peaks_follow_what_other_streams_keep(make, seed):
    rng = random.Random(seed)
    allocator = make()
    live, peak = {}, {"allocation": 0, "allocated_bytes": 0, "active_bytes": 0}
    for step in range(1500):
        if rng.random() < 0.05:
            allocator.memory.hold(rng.random() < 0.5)
        if rng.random() < 0.05:
            allocator.memory.finish(2)
        if not live or rng.random() < (0.6 if step % 200 < 100 else 0.4):
            address = allocator.malloc(int(2 ** rng.uniform(9, 23)), rng.choice(STREAMS))
            live[address] = allocator.find(address)[1]
            if rng.random() < 0.4:
                allocator.record_stream(address, rng.choice(STREAMS))
        else:
            address = rng.choice(list(live))
            del live[address]
            allocator.free(address)
        pending = sum(block["size"] for block in allocator.snapshot() if block["state"] == "pending")
        now = {"allocation": len(live), "allocated_bytes": sum(live.values())}
        now["active_bytes"] = now["allocated_bytes"] + pending
        peak = {key: max(value, now[key]) for key, value in peak.items()}
        if rng.random() < 0.03:
            stats = allocator.stats()
            assert {key: stats[f"{key}.all.current"] for key in now} == now
            assert {key: stats[f"{key}.all.peak"] for key in now} == peak
    allocator.memory.hold(False)
    for address in live:
        allocator.free(address)


def test_the_peaks_follow_when_only_looked_at_in_the_end(make):
    # the model looks after every step, and looking hands out new headroom: here nobody looks in between
    rng = random.Random(5)
    allocator = make()
    live, sizes, now = [], {}, {"allocated_bytes": 0, "allocation": 0, "requested_bytes": 0}
    peak = dict(now)
    for step in range(20000):
        if not live or rng.random() < (0.6 if step % 4000 < 2000 else 0.4):
            nbytes = int(2 ** rng.uniform(0, 22))
            address = allocator.malloc(nbytes, rng.choice(STREAMS))
            sizes[address] = (allocator.find(address)[1], nbytes)
            live.append(address)
            sign = 1
        else:
            address = live.pop(rng.randrange(len(live)))
            allocator.free(address)
            sign = -1
        now["allocation"] += sign
        now["allocated_bytes"] += sign * sizes[address][0]
        now["requested_bytes"] += sign * sizes[address][1]
        peak = {key: max(peak[key], now[key]) for key in now}
        if step == 9000:
            allocator.reset_peak_stats()
            peak = dict(now)
    stats = allocator.stats()
    for key in now:
        assert stats[f"{key}.all.current"] == now[key]
        assert stats[f"{key}.all.peak"] == peak[key]
    assert allocator.allocated_bytes == now["allocated_bytes"]
    for address in live:
        allocator.free(address)


def test_stats_have_torchs_keys(make):
    stats = make().stats()
    assert set(stats) == memory_keys.keys()


def test_resets(make):
    allocator = make()
    pointers = [allocator.malloc(MIB, 1) for _ in range(10)]
    for address in pointers[3:]:
        allocator.free(address)
    assert allocator.stats()["allocation.all.peak"] == 10
    allocator.reset_peak_stats()
    assert allocator.stats()["allocated_bytes.all.peak"] == 3 * MIB
    allocator.reset_accumulated_stats()
    stats = allocator.stats()
    assert all(value == 0 for key, value in stats.items() if key.endswith((".allocated", ".freed")))
    assert stats["num_device_alloc"] == 0
    assert stats["allocation.all.current"] == 3
    allocator.free(pointers[0])
    assert allocator.stats()["allocation.all.freed"] == 1
    for address in pointers[1:3]:
        allocator.free(address)
