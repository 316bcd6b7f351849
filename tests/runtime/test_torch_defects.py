# SPDX-License-Identifier: Apache-2.0
"""Defects of torch's allocators, and the test that shows l0rt without each.

features of torch.xpu's caching allocator that are missing or broken
  no garbage collection, max_split_size, rounding, uncached mode   test_alloc_conf.py
  no observers, no way to free memory before an allocation fails     test_pools.py, test_memory_ladder.py
  num_ooms, num_device_alloc and num_device_free stay 0            test_failures_and_driver_calls_are_counted
  one mutex for all pointers                                       test_allocator_threads.py (no lock at all: page_map)
  cached memory keyed by a queue's address, which may be another's test_an_adopted_lists_memory_is_not_the_next_ones
  one barrier for each block and stream that uses it               test_blocks_share_the_mark_of_a_stream
  expandable segments not together with pools                      test_allocator_pools.py, on both kinds of growth
configuration
  unknown keys are ignored; a missing value is an internal error,
  a number that is none a bare "stoull"; "true" a riddle           test_alloc_conf.py (every malformed text)
pools
  dropping a pool that is in use is an internal error              test_a_pool_may_be_dropped_while_it_is_used
the message when memory is out
  what pools have cached is called allocated                       test_the_message_tells_cached_from_allocated
pinned memory
  a cached block smaller than the request is handed out            test_pinned_blocks_are_never_too_small
"""

import gc
import random
import re
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import memory
from l0rt.bench import loops
from l0rt.memory import MemPool, use_mem_pool
from l0rt.runtime.streams import devices

from helpers.process import run_python

MIB = 1 << 20
CPU = {
    "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": "1",
    "PYTHONPATH": str(Path(__file__).parents[1]),
}  # fmt: skip


@pytest.fixture(autouse=True)
def tidy():
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    yield
    memory.set_memory_limit(None)
    gc.collect()
    acc.synchronize()
    acc.empty_cache()


def test_failures_and_driver_calls_are_counted():
    before = acc.memory_stats()
    l0rt.empty(30 * MIB).free()
    acc.synchronize()
    acc.empty_cache()
    memory.set_memory_limit(acc.memory_reserved() + MIB)
    with pytest.raises(l0rt.OutOfMemoryError):
        l0rt.empty(30 * MIB)
    after = acc.memory_stats()
    for key in ("num_ooms", "num_device_alloc", "num_device_free", "num_alloc_retries", "num_sync_all_streams"):
        assert after[key] > before.get(key, 0), key


@pytest.mark.checks_data
def test_an_adopted_lists_memory_is_not_the_next_ones():
    """A list ends in flight, and the next may have its address: what its work still uses stays out of reach."""
    acc.current_stream()
    for i in range(20):
        lists = [loops.open_list(devices._context_of[0], devices._devices[0]) for _ in range(2)]
        first = acc.Stream.from_handle(lists[0].handle)
        x = l0rt.empty(24 * MIB, stream=first)
        x.fill(i, stream=first)
        x.free()
        del first, x
        second = acc.Stream.from_handle(lists[1].handle)
        y = l0rt.empty(24 * MIB, stream=second)
        y.fill(100 + i, stream=second)
        acc.synchronize()
        lists[0].close()
        assert (y.copy_to(np.empty(24 * MIB, "u1"), stream=second) == 100 + i).all()
        y.free()
        del second, y
        acc.synchronize()
        lists[1].close()


SHARED = """
import l0rt, l0rt.accelerator as acc, os
from l0rt.runtime.streams.event_pool import cache_state
a, b = acc.Stream(), acc.Stream()
l0rt.empty(64, stream=b).fill(1, stream=b)      # never ends
blocks = [l0rt.empty(4096, stream=a) for _ in range(2000)]
for x in blocks:
    x.record_stream(b)
while blocks:
    blocks.pop().free()
assert acc.memory_stats()["active.all.current"] >= 2000
assert cache_state(0)["made"] <= 512, cache_state(0)
os._exit(0)
"""


def test_blocks_share_the_mark_of_a_stream():
    env = {**CPU, "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}
    result = run_python(SHARED, env)
    assert (result.returncode, result.stderr) == (0, ""), result


def test_a_pool_may_be_dropped_while_it_is_used():
    before = acc.memory_reserved()
    pool = MemPool()
    with use_mem_pool(pool):
        x = l0rt.empty(3 * MIB)
        del pool
        gc.collect()
        y = l0rt.empty(3 * MIB)
    x.fill(1), y.fill(2)
    assert x.ptr + x.nbytes <= y.ptr or y.ptr + y.nbytes <= x.ptr
    x.free(), y.free()
    acc.synchronize()
    acc.empty_cache()
    assert acc.memory_reserved() <= before


def test_the_message_tells_cached_from_allocated():
    pool = MemPool()
    with use_mem_pool(pool):
        l0rt.empty(40 * MIB).free()
    kept = l0rt.empty(8 * MIB)
    memory.set_memory_limit(acc.memory_reserved() + MIB)
    with pytest.raises(l0rt.OutOfMemoryError) as error:
        l0rt.empty(40 * MIB)
    found = dict(re.findall(r"(requested|allocated|cached) ([\d.]+) MiB", str(error.value)))
    assert float(found["requested"]) == 40
    assert float(found["allocated"]) == acc.memory_allocated() / MIB
    assert float(found["cached"]) >= 40
    kept.free()
    pool.empty_cache()


def test_pinned_blocks_are_never_too_small():
    choice = random.Random(3)
    live = []
    for i in range(300):
        n = choice.choice((1, 511, 512, 513, 4096, 5000, 70000, MIB - 1, MIB + 1, 3 * MIB))
        x = l0rt.empty(n, kind="host")
        assert memory.pointer_info(x.ptr)["size"] >= n
        view = np.frombuffer(x, "u1")
        view[:] = i % 256
        del view
        live.append((x, i % 256))
        if len(live) > 8:
            x, value = live.pop(choice.randrange(len(live)))
            assert (np.frombuffer(x, "u1") == value).all()
            x.free()
