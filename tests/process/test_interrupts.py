# SPDX-License-Identifier: Apache-2.0
"""Signals while memory is waited for, and at both ends of with blocks: what a handler raises arrives, what it calls
does not hang, nothing is lost."""

import pytest

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}

HEAD = """
import os, signal, threading, l0rt, l0rt.accelerator as acc
from l0rt.memory import MemPool, use_mem_pool, set_memory_limit
MIB = 1 << 20
class Stop(BaseException): pass
def handler(*_):
    l0rt.empty(3 * MIB).free()              # wants the locks that the wait could hold
    l0rt.empty(4096, stream=t).free()
    raise Stop("as it is")
signal.signal(signal.SIGALRM, handler)
s, t, pool = acc.Stream(), acc.Stream(), MemPool()
def hung(nbytes, used=False):
    x = l0rt.empty(nbytes, stream=s)
    x.fill(0, stream=s)                     # never ends
    if used:
        x.record_stream(t)
        t.wait_stream(s)
        l0rt.empty(64, stream=t).fill(0)
    return x
"""
TAIL = """
held = acc.memory_reserved()
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    {call}
    for _ in range(100): pass
    print("lost")
except Stop as stop:
    assert str(stop) == "as it is"
    print("raised")
assert acc.memory_reserved() >= held        # what is still in use was not given back
l0rt.empty(4096, stream=t).free()
print("works", flush=True)
os._exit(0)
"""
CALLS = {
    "empty_cache": ("hung(5 * MIB).free()", "acc.empty_cache()"),
    "empty_cache, used by another stream": ("hung(5 * MIB, True).free()", "acc.empty_cache()"),
    "a pool's empty_cache": (
        "with use_mem_pool(pool): x = hung(5 * MIB)\nx.free()",
        "pool.empty_cache()",
    ),
    "out of memory": ("hung(6 * MIB).free(); set_memory_limit(14 * MIB)", "l0rt.empty(12 * MIB, stream=t)"),
    "the free of an uncached block": ("x = hung(5 * MIB)", "x.free()"),
    "dropping an uncached block": ("x = hung(5 * MIB)", "del x"),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_a_signal_handler_raises_ends_a_wait_for_memory(call):
    before, during = CALLS[call]
    uncached = {"L0RT_NO_MEMORY_CACHING": "1"} if "uncached" in call else {}
    result = run_python(HEAD + before + TAIL.format(call=during), {**CPU, **uncached}, timeout=60)
    assert (result.returncode, result.stdout) == (0, "raised\nworks\n"), result


WAKES = """
with use_mem_pool(pool):
    kept = l0rt.empty(8 * MIB)
pool.sleep()
hung(10 * MIB).free()
set_memory_limit(17 * MIB)
"""


def test_a_signal_ends_the_wait_of_a_pool_that_wakes_and_it_sleeps_on():
    result = run_python(HEAD + WAKES + TAIL.format(call="pool.wake()"), CPU, timeout=60)
    assert (result.returncode, result.stdout) == (0, "raised\nworks\n"), result


THREADS = """
hung(5 * MIB).free()
def wait():
    acc.empty_cache()
threading.Thread(target=wait, daemon=True).start()
while True:                                 # other threads' allocations go on while one waits
    with t:
        blocks = [l0rt.empty(n * MIB) for n in (2, 3, 4)]
        del blocks
    if acc.memory_reserved() > 9 * MIB:
        break
"""


def test_other_threads_grow_while_one_waits_for_memory():
    result = run_python(HEAD + THREADS + TAIL.format(call="acc.empty_cache()"), CPU, timeout=60)
    assert (result.returncode, result.stdout) == (0, "raised\nworks\n"), result


BLOCKS = {
    "with stream": "lambda: s",
    "xpu.stream": "lambda: xpu.stream(s)",
    "device_index": "lambda: acc.device_index(1)",
    "xpu.device": "lambda: xpu.device(1)",
    "StreamGuard": "lambda: acc.StreamGuard(s)",
    "DeviceGuard": "lambda: acc.DeviceGuard(1)",
    "MultiStreamGuard": "lambda: acc.MultiStreamGuard([s, acc.Stream(1)])",
    "use_mem_pool": "lambda: use_mem_pool(pool)",
    "lease": "acc.stream_pool.lease",
    "Timer": "acc.Timer",
    "profile": "lambda: profiler.profile(max_records=64)",
    "graph": "lambda: acc.graph(acc.Graph(), stream=s)",
}
AT_ENDS = """
import random, signal, l0rt, l0rt.accelerator as acc
from l0rt import profiler, xpu
from l0rt.memory import MemPool, use_mem_pool
class Stop(BaseException): pass
def stop(*_): raise Stop
signal.signal(signal.SIGALRM, stop)
s, pool, choose = acc.Stream(), MemPool(), random.Random(1)
make = {make}
def enter():
    while True:
        with make():
            pass
def state():
    x = l0rt.empty(4096)
    ids = [t["segment_pool_id"] for t in acc.memory_snapshot() if 0 <= x.ptr - t["address"] < t["total_size"]]
    streams = [acc.current_stream(device).stream_id for device in (0, 1)]
    return acc.current_device_index(), streams, ids, s.is_capturing(), acc.stream_pool.state()["leased"]
with make():
    pass
acc.stream_pool.lease().__enter__()         # dropped: it makes the one that all have
before, stopped = state(), 0
for turn in range({turns}):
    try:
        signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-6, {longest}))
        enter()
    except Stop:
        stopped += 1
    assert state() == before, (turn, before, state())
print("stopped", stopped == {turns})
"""


@pytest.mark.parametrize("name", BLOCKS)
def test_an_interrupt_at_either_end_of_a_with_block_leaves_nothing(name, extent):
    turns, longest = (extent(30, 300), 1e-2) if name == "graph" else (extent(500, 5000), 1e-4)
    code = AT_ENDS.format(make=BLOCKS[name], turns=turns, longest=longest)
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "stopped True\n", ""), result
