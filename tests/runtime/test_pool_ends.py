# SPDX-License-Identifier: Apache-2.0
"""A pool that goes gives everything back: its memory once no work uses it, its addresses, and its records to others."""

import gc
import threading
import time
import weakref
from random import Random

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import memory
from l0rt.errors import OutOfMemoryError
from l0rt.memory import MemPool, PluggableAllocator, use_mem_pool
from l0rt.runtime.alloc.allocator import Pool

from helpers.process import run_python
from helpers.source import ROOT

KIB, MIB = 1 << 10, 1 << 20


# --- Of any allocator.


def test_a_pool_that_goes_gives_its_memory_and_addresses_back(make):
    allocator = make()
    for _ in range(100):
        pool = Pool()
        for stream in (1, 2):
            allocator.free(allocator.malloc(KIB, stream, pool))
            allocator.free(allocator.malloc(3 * MIB, stream, pool))
    del pool
    assert allocator.reserved_bytes == 0
    counters = allocator.memory.counters
    assert (counters["used"], counters["physicals"], counters["ranges"]) == (0, 0, 0)


def test_blocks_outlive_their_pool_and_what_they_are_in_goes_with_the_last(make):
    allocator, pool = make(), Pool()
    small, large = allocator.malloc(KIB, 1, pool), allocator.malloc(3 * MIB, 1, pool)
    allocator.free(allocator.malloc(5 * MIB, 1, pool))
    del pool
    held = allocator.reserved_bytes
    assert 4 * MIB <= held < 8 * MIB                    # without the 5 MiB
    assert allocator.stats()["allocated_bytes.all.current"] == KIB + 3 * MIB
    allocator.free(large)
    assert 0 < allocator.reserved_bytes < 3 * MIB
    allocator.free(small)
    assert allocator.reserved_bytes == allocator.memory.counters["used"] == 0
    assert allocator.memory.counters["ranges"] == 0


def test_work_in_flight_is_waited_for_by_nobody(make):
    allocator, pool = make(), Pool()
    plain = allocator.memory
    plain.hold()
    allocator.free(allocator.malloc(3 * MIB, 1, pool))
    shared = allocator.malloc(5 * MIB, 1, pool)
    allocator.record_stream(shared, 2)
    allocator.free(shared)
    del pool
    assert allocator.reserved_bytes >= 5 * MIB
    assert plain.counters["waits"] == 0
    plain.hold(False)
    plain.finish()
    allocator.free(allocator.malloc(KIB, 3))            # who grows finds what no work uses any more
    allocator.empty_cache()
    assert allocator.reserved_bytes == 0


def test_what_another_stream_used_goes_with_its_pool_once_that_is_done(make):
    """Nobody allocates meanwhile: whoever asks for the statistics finds out."""
    allocator, pool = make(), Pool()
    allocator.memory.hold()
    address = allocator.malloc(5 * MIB, 1, pool)
    allocator.record_stream(address, 2)
    allocator.free(address)
    del pool
    assert allocator.reserved_bytes >= 5 * MIB
    allocator.memory.hold(False)
    allocator.memory.finish()
    assert allocator.reserved_bytes == allocator.memory.counters["used"] == 0


def test_a_pool_that_goes_asleep_gives_its_addresses_back(make):
    if not make.has_ranges:
        return
    allocator = make()
    for _ in range(50):
        pool = Pool()
        kept = allocator.malloc(3 * MIB, 1, pool)
        allocator.free(allocator.malloc(KIB, 1, pool))
        allocator.sleep(pool)
        del pool
        assert allocator.memory.counters["ranges"] > 0
        allocator.free(kept)
        assert allocator.reserved_bytes == 0
        assert allocator.memory.counters["ranges"] == 0


def test_pools_that_come_and_go_take_no_longer_and_no_more(make):
    """The same work in the first and the last of many pools takes as many operations; records are used again."""
    allocator, seen = make(), []
    kept = [(Pool(), stream) for stream in range(1, 200)]
    kept = [(pool, allocator.malloc(KIB, stream, pool)) for pool, stream in kept]
    for _ in range(300):
        pool = Pool()
        before = dict(allocator.memory.counters)
        allocator.free(allocator.malloc(3 * MIB, 7, pool))
        del pool
        assert allocator.reserved_bytes
        after = allocator.memory.counters
        seen.append(tuple(after[name] - before[name] for name in sorted(before)))
    assert set(seen[1:]) == {seen[-1]}
    for _, address in kept:
        allocator.free(address)


def test_live_pools_cost_nobody(make):
    """What grows and what is a new peak takes as long among 2,000 pools with memory as among 20."""
    least = {}
    for count in (20, 2000):
        allocator = make(capacity=1 << 36)
        pools = [Pool() for _ in range(count)]
        held = [allocator.malloc(KIB, 1, pool) for pool in pools]
        held.append(allocator.malloc(KIB, 1))
        times = []
        for _ in range(40):
            pools.append(Pool())
            start = time.thread_time_ns()
            held.append(allocator.malloc(KIB, 1, pools[-1]))        # a first allocation,
            held.append(allocator.malloc(3 * MIB, 1))               # growing,
            held.append(allocator.malloc(KIB, 1))                   # and a new peak
            times.append(time.thread_time_ns() - start)
        least[count] = min(times)
        assert allocator.stats()["allocation.all.peak"] == len(held)
        for address in held:
            allocator.free(address)
        del pools
        allocator.empty_cache()
    # A walk over the pools would take some 100 times as long; page faults and neighbours on the machine a few times.
    assert least[2000] < 40 * least[20], least


@pytest.mark.parametrize("seed", range(6))
def test_random_pools_against_a_model(make, seed):
    """Pools made, dropped while blocks live, slept and trimmed, by streams that work or have finished: what is
    allocated is what the model says, and nothing is reserved in the end."""
    rng, allocator = Random(seed), make(limit=1 << 30)
    pools, blocks, asleep = {0: None}, {}, set()
    number = 0
    for _ in range(1500):
        act = rng.random()
        name = rng.choice(list(pools))
        if act < 0.45:
            nbytes = rng.choice([rng.randrange(1, 4 * KIB), rng.randrange(1, MIB), rng.randrange(MIB, 9 * MIB)])
            stream = rng.randrange(4)
            if name in asleep:
                with pytest.raises(RuntimeError, match="asleep"):
                    allocator.malloc(nbytes, stream, pools[name])
                continue
            address = allocator.malloc(nbytes, stream, pools[name])
            blocks[address] = (nbytes, name)
            if rng.random() < 0.2:
                allocator.record_stream(address, rng.randrange(1, 4))
        elif act < 0.85 and blocks:
            address = rng.choice(list(blocks))
            del blocks[address]
            allocator.free(address)
        elif act < 0.90:
            number += 1
            pools[number] = Pool(use_on_oom=rng.random() < 0.3, no_split=rng.random() < 0.2)
        elif act < 0.94 and name != 0:
            del pools[name]                             # its blocks live on
            asleep.discard(name)
        elif act < 0.96 and name != 0:
            try:
                (allocator.wake if name in asleep else allocator.sleep)(pools[name])
                asleep ^= {name}
            except NotImplementedError:                 # it has segments
                assert name not in asleep
        elif act < 0.97:
            allocator.empty_cache(pools[name])
        elif act < 0.98:
            allocator.memory.hold(rng.random() < 0.5)
            if rng.random() < 0.5:
                allocator.memory.hold(False)
                allocator.memory.finish()
        stats = allocator.stats()
        asked = sum(nbytes for nbytes, _ in blocks.values())
        assert asked <= min(stats["requested_bytes.all.current"], stats["allocated_bytes.all.current"])
        assert stats["allocation.all.current"] == len(blocks)
        assert stats["reserved_bytes.all.current"] == allocator.memory.counters["used"]
    allocator.memory.hold(False)
    allocator.memory.finish()
    for address in blocks:
        allocator.free(address)
    pools.clear()
    allocator.empty_cache()
    assert allocator.reserved_bytes == allocator.memory.counters["used"] == 0
    assert allocator.memory.counters["ranges"] == 0


# --- Of devices.


@pytest.mark.checks_data  # work has to end
@pytest.mark.usefixtures("emptied")
def test_a_pool_of_a_device_gives_everything_back():
    before = acc.memory_reserved()
    for _ in range(50):
        with use_mem_pool(MemPool()):
            l0rt.empty(1000).free()
            l0rt.empty(30 * MIB).free()
    assert acc.memory_reserved() == before


def test_pools_that_come_and_go_leave_no_memory_of_the_host():
    """Each left 0.17 MiB resident: records of what it had had."""
    script = """
import ctypes, gc
import l0rt, l0rt.accelerator as acc
from l0rt.memory import MemPool, use_mem_pool

class Allocated(ctypes.Structure):                      # glibc's struct mallinfo2
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keep")]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Allocated

def come_and_go(count):
    "Return the bytes that are resident then, and those that malloc has given out."
    for _ in range(count):
        with use_mem_pool(MemPool()):
            l0rt.empty(1000).free()
            l0rt.empty(3 << 20).free()
    acc.synchronize()
    gc.collect()
    info = mallinfo2()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096, info.uordblks + info.hblkhd

assert acc.memory_reserved() == 0
come_and_go(1000)                                       # what grows once
before = come_and_go(1000)
after = come_and_go(5000)
assert acc.memory_reserved() == 0
print(*((now - then) / 5000 for now, then in zip(after, before)))
"""
    done = run_python(script, env={"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1})
    assert done.returncode == 0, done
    resident, allocated = map(float, done.stdout.split())
    assert resident < 200, done
    assert allocated < 10, done


@pytest.mark.checks_data  # work has to end
@pytest.mark.usefixtures("emptied")
def test_a_buffer_outlives_its_pool_and_then_goes_with_its_segment():
    before = acc.memory_reserved()
    with use_mem_pool(MemPool()):
        kept = [l0rt.empty(1000), l0rt.empty(30 * MIB)]
        l0rt.empty(50 * MIB).free()
    gc.collect()
    assert acc.memory_reserved() < before + 50 * MIB
    kept[0].fill(1)
    del kept[0]
    kept.pop().free()
    acc.synchronize()
    assert acc.memory_reserved() == before


@pytest.mark.usefixtures("emptied")
def test_a_pool_that_goes_inside_of_its_own_function(host):
    """The function drops the last reference to the pool that asks it, while the thread is in it."""
    made = []

    def alloc(nbytes, device, stream):
        made.clear()
        gc.collect()
        return host.alloc(nbytes, device, stream)

    def work():
        route = use_mem_pool(MemPool(PluggableAllocator(alloc, host.free)))
        made.append(route)
        route.__enter__()
        del route
        made.append(l0rt.empty(3 * MIB))
        made.append(l0rt.empty(5 * MIB))
        made.clear()

    for _ in range(5):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    end = time.monotonic() + 10
    while host.live and time.monotonic() < end:         # a thread that is joined is about to end
        with use_mem_pool(MemPool()):                   # what ended threads were in goes
            pass
        acc.empty_cache()


@pytest.mark.usefixtures("emptied")
def test_a_pool_that_an_observer_leaves_and_drops_stays_for_the_allocation():
    """Python code that runs inside of an allocation takes the pool away that the allocation is from."""
    held = []
    memory.set_memory_limit(acc.memory_reserved() + 64 * MIB)

    def leave(nbytes):
        if held:
            held.pop().__exit__()
            gc.collect()
            return True
        return False

    route = use_mem_pool(MemPool(on_oom=leave))
    held.append(route)
    pool = weakref.ref(route.__enter__())
    with pytest.raises(OutOfMemoryError):
        l0rt.empty(100 * MIB)
    del route
    gc.collect()
    assert pool() is None
    assert not held


@pytest.mark.checks_data  # work has to end
@pytest.mark.usefixtures("emptied")
def test_an_owner_whose_methods_are_the_functions_is_collected(host):
    class Owner:
        def __init__(self):
            self.pool = MemPool(PluggableAllocator(self.alloc, self.give))

        def alloc(self, nbytes, device, stream):
            return host.alloc(nbytes, device, stream)

        def give(self, *what):
            host.free(*what)

    before, owner = acc.memory_reserved(), Owner()
    with use_mem_pool(owner.pool):
        l0rt.empty(3 * MIB).free()
        kept = l0rt.empty(5 * MIB)
    assert host.live
    del owner
    gc.collect()
    assert len(host.live) == sum(isinstance(thing, Owner) for thing in gc.get_objects()) == 1
    kept.free()                                         # what is allocated has to go back to it
    acc.synchronize()
    assert acc.memory_reserved() == before
    gc.collect()
    assert not host.live
    assert not any(isinstance(thing, Owner) for thing in gc.get_objects())


# --- Pools that serve what fails outside.


@pytest.mark.usefixtures("emptied")
@pytest.mark.parametrize("other", [False, True])
def test_what_fails_outside_is_served_from_a_free_block(other):
    stream = acc.Stream() if other else acc.current_stream()
    pool = MemPool(use_on_oom=True)
    with use_mem_pool(pool):
        block = l0rt.empty(40 * MIB, stream=stream)
        address = block.ptr
        block.free()
    memory.set_memory_limit(acc.memory_reserved())
    before = acc.memory_stats()
    block = l0rt.empty(40 * MIB)
    after = acc.memory_stats()
    assert block.ptr == address
    assert after["num_oom_fallback"] == before["num_oom_fallback"] + 1
    assert after["num_device_free"] == before["num_device_free"]
    assert after["num_ooms"] == before["num_ooms"]
    block.free()
    with use_mem_pool(pool):
        again = l0rt.empty(40 * MIB, stream=stream)
    assert again.ptr == address                         # it is the pool's still
    again.free()


@pytest.mark.checks_data  # work has to end
@pytest.mark.usefixtures("emptied")
def test_a_pool_with_functions_serves_what_fails_outside_and_keeps_its_memory(host):
    pool = MemPool(PluggableAllocator(host.alloc, host.free), use_on_oom=True)
    with use_mem_pool(pool):
        l0rt.empty(4 * MIB).free()
    taken, before = len(host.live), acc.memory_stats()["num_oom_fallback"]
    x = l0rt.empty(MIB)
    memory.set_memory_limit(acc.memory_reserved())
    cached = l0rt.empty(4 * MIB)
    assert len(host.live) == taken
    memory.set_memory_limit(acc.memory_reserved() + 12 * MIB)
    kept = [l0rt.empty(12 * MIB)]
    assert acc.memory_stats()["num_oom_fallback"] == before + 1
    for buffer in (x, cached, *kept):
        buffer.free()


def test_what_fails_outside_lets_a_pool_grow_that_has_functions_of_its_own():
    """The device has no more, and the pool's functions have."""
    script = f"""
import sys
sys.path.insert(0, {str(ROOT / "tests")!r})
import l0rt, l0rt.accelerator as acc
from l0rt.memory import MemPool, PluggableAllocator, use_mem_pool
from helpers.hostmemory import Host
host, MIB = Host(), 1 << 20
pool = MemPool(PluggableAllocator(host.alloc, host.free), use_on_oom=True)
with use_mem_pool(pool):
    l0rt.empty(MIB).free()
held = [l0rt.empty(64 * MIB) for _ in range(8)]
taken = len(host.live)
held += [l0rt.empty(48 * MIB) for _ in range(4)]
assert len(host.live) > taken
assert acc.memory_stats()["num_oom_fallback"] >= 3
del held
import gc; gc.collect()
acc.synchronize()
del pool
acc.empty_cache()
assert not host.live
"""
    done = run_python(script, env={"L0RT_DRIVER": "cpu", "L0RT_CPU_MEMORY": "512MiB", "L0RT_CPU_DEVICES": 1})
    assert done.returncode == 0, done


def test_a_pool_may_go_inside_of_the_function_that_takes_its_memory_back():
    """What is known of the functions is needed once more when they return: to let go of them."""
    script = f"""
import ctypes, gc, sys
sys.path.insert(0, {str(ROOT / "tests")!r})
import l0rt, l0rt.accelerator as acc
from helpers.hostmemory import Host
from l0rt import memory

host, pools = Host(), []

class Free:
    def __call__(self, *args):
        host.free(*args)
        pools.clear()

pools.append(memory.MemPool(memory.PluggableAllocator(host.alloc, Free())))
with memory.use_mem_pool(pools[0]):
    l0rt.empty(1 << 20).free()
pools[0].empty_cache()
assert not pools and not host.live
gc.collect()
print([thing for thing in gc.get_objects() if isinstance(thing, Free)])
"""
    overwritten = {"MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}  # what was freed
    done = run_python(script, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1, **overwritten})
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
