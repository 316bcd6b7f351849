# SPDX-License-Identifier: Apache-2.0
"""Out of memory, rung by rung: a request succeeds whenever enough free memory exists in any form.

On a device of 64 MiB all of it is put into one form after the other; then 40 MiB are asked for. The same under a limit,
with the driver's refusals injected, with and without virtual memory. Nothing is lost on the way.
"""

from pathlib import Path

import pytest

from helpers.process import run_python

CPU = {
    "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": "2",
    "PYTHONPATH": str(Path(__file__).parents[1]),
}  # fmt: skip
LADDER = """
import gc, sys
import l0rt, l0rt.accelerator as acc
from l0rt import memory

MIB = 1 << 20
gc.disable()
a, b, c = acc.Stream(), acc.Stream(), acc.Stream()
for s in (a, b, c):
    l0rt.empty(512, stream=s).fill(1, stream=s).free()
acc.synchronize()
acc.empty_cache()
LIMIT = {limit}
if LIMIT:
    memory.set_memory_limit(LIMIT * MIB)


def all_of_it(stream, pieces=1):
    return [l0rt.empty(56 * MIB // pieces, stream=stream) for _ in range(pieces)]


def own_cache_in_pieces():
    for x in all_of_it(a, 14):
        x.free()


def another_streams_cache():
    for x in all_of_it(b):
        x.fill(1, stream=b).free()


def another_streams_cache_in_pieces():
    for x in all_of_it(b, 14):
        x.fill(1, stream=b).free()


def two_streams_caches():
    kept = [l0rt.empty(28 * MIB, stream=s).fill(1, stream=s) for s in (b, c)]
    while kept:
        kept.pop().free()


def small_blocks():
    kept = [l0rt.empty(1000 << 10, stream=b) for _ in range(50)]
    while kept:
        kept.pop().free()


def freed_but_used():
    for x in all_of_it(a, 2):
        b.wait_stream(a)
        x.fill(1, stream=b)
        x.record_stream(c)
        x.free()


def freed_but_marked():
    for x in all_of_it(a, 2):
        x.record_use(b)
        x.free()


def freed_on_another_stream():
    for x in all_of_it(b, 2):
        x.free(stream=c)


def handed_over_before():
    for x in all_of_it(b):
        x.fill(1, stream=b).free()
    l0rt.empty(50 * MIB, stream=c).fill(1, stream=c).free()


def a_generous_pools_cache():
    with memory.use_mem_pool(generous), b:
        l0rt.empty(56 * MIB).fill(1, stream=b).free()


def the_cache_of_a_pool_that_is_gone():
    pool = memory.MemPool()
    with memory.use_mem_pool(pool), b:
        l0rt.empty(56 * MIB).free()


def unreachable_objects():
    cycle = all_of_it(b)
    cycle.append(cycle)


def what_an_observer_gives_back():
    kept = all_of_it(b)
    detach.append(memory.attach_oom_observer(lambda *_: bool(kept) and (kept.pop().free() or True)))


generous, detach = memory.MemPool(use_on_oom=True), []
forms = [f for name, f in list(globals().items()) if callable(f) and getattr(f, "__module__", "") == "__main__"
         and name != "all_of_it"]
assert len(forms) == 13, forms
wrong = []
for form in forms:
    form()
    try:
        x = l0rt.empty(40 * MIB, stream=a)
        x.fill(2, stream=a)
        y = l0rt.empty(8 * MIB, stream=c)       # and what is left over
        x.free(), y.free()
    except l0rt.OutOfMemoryError as error:
        wrong.append((form.__name__, str(error)))
    x = y = None
    while detach:
        detach.pop()()
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    generous.empty_cache()
    stats = acc.memory_stats()
    left = {{k: stats[k + ".all.current"] for k in ("allocated_bytes", "active_bytes", "reserved_bytes")}}
    if any(left.values()):
        wrong.append((form.__name__, left))
memory.set_memory_limit(None)
x = l0rt.empty(62 * MIB)                        # the driver has it all back
x.free()
acc.synchronize()
assert not wrong, wrong
"""


@pytest.mark.parametrize("disable", ["", "vmm"])
@pytest.mark.parametrize("limit", [None, 60])
def test_every_form_of_free_memory_serves(limit, disable):
    ladder(limit, L0RT_DISABLE=disable)


@pytest.mark.parametrize("nth", [1, 2, 5, 9, 14, 20, 27])
@pytest.mark.parametrize(("function", "disable"), [
    ("zeMemAllocDevice", "vmm"), ("zeContextMakeMemoryResident", "vmm"), ("zePhysicalMemCreate", ""),
    ("zeVirtualMemMap", ""),
])  # fmt: skip
def test_a_refusal_of_the_driver_at_any_time_loses_nothing(function, disable, nth):
    ladder(60, L0RT_DISABLE=disable, L0RT_CPU_FAIL=f"{function}:{nth}:ERROR_OUT_OF_DEVICE_MEMORY")


def ladder(limit, **env):
    result = run_python(LADDER.format(limit=limit), {**CPU, "L0RT_CPU_MEMORY": "64MiB", **env})
    assert (result.returncode, result.stderr) == (0, ""), result


PRIVATE = """
import l0rt, l0rt.accelerator as acc
from l0rt import memory
MIB = 1 << 20
memory.set_memory_limit(50 * MIB)
for generous in (False, True):
    for stream in (acc.default_stream(), acc.Stream()):
        pool = memory.MemPool(use_on_oom=generous)
        with memory.use_mem_pool(pool):
            l0rt.empty(40 * MIB).free()
        try:
            l0rt.empty(40 * MIB, stream=stream).free()
            assert generous, "a pool is private"
        except l0rt.OutOfMemoryError:
            assert not generous
        assert acc.memory_stats()["num_ooms"] >= (not generous)
        pool.empty_cache()
        acc.empty_cache()
        assert acc.memory_reserved() == 0
"""


@pytest.mark.parametrize("disable", ["", "vmm"])
def test_a_pool_serves_others_at_the_limit_only_if_it_says_so(disable):
    result = run_python(PRIVATE, {**CPU, "L0RT_DISABLE": disable})
    assert (result.returncode, result.stderr) == (0, ""), result
