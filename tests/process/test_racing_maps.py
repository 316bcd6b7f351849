# SPDX-License-Identifier: Apache-2.0
"""Appends beside mapping, on devices where the two race inside the driver (the quirk `racing_maps`)."""

from pathlib import Path

import pytest

from helpers.process import run_python

B580 = {
    "L0RT_DRIVER": "cpu",
    "L0RT_CPU_PROFILE": "arc-b580",
    **dict.fromkeys(("L0RT_DISABLE", "L0RT_EVENTS", "L0RT_QUIRKS", "L0RT_CPU_QUIRKS", "L0RT_CPU_DEVICES")),
}

# A pool of one buffer, and a thread that appends to a stream of its own, of which the driver takes long.
HELD_UP = """
import ctypes, threading
import l0rt, l0rt.accelerator as acc
from l0rt.memory import MemPool, use_mem_pool

charged = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_charged
charged.restype, charged.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
pool, begun, over, failed = MemPool(), threading.Event(), threading.Event(), []
with use_mem_pool(pool):
    buffer = l0rt.empty(64 << 20)
mine, source, target = [l0rt.empty(2 << 20) for _ in range(3)]
reserved = acc.memory_reserved()

def append(stream):
    begun.set()
    while not over.is_set():
        target.copy_from(source, stream=stream)
        target.fill(1, stream=stream)

def loop():
    try:
        append(acc.Stream())
    except Exception as e:
        failed.append(e)

threads = [threading.Thread(target=loop) for _ in range(THREADS)]
def start():
    for thread in threads:
        thread.start()
    begun.wait()
    while charged(b"append_copy") == 0:  # charged when an append begins
        pass

def stop():
    over.set()
    for thread in threads:
        thread.join()
    races = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_races
    races.restype = ctypes.c_uint64
    assert (failed, races()) == ([], 0)
    print("done")
"""


def run(program, latency, threads=1, **env):
    code = HELD_UP.replace("THREADS", str(threads)) + program
    result = run_python(code, {**B580, "L0RT_CPU_LATENCY": latency, **env}, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", ""), result


@pytest.mark.parametrize("threads", [1, 2])
def test_a_pool_wakes_beside_a_copy_that_takes_long(threads):
    program = """
pool.sleep()
assert acc.memory_reserved() == reserved - (64 << 20)
start()
pool.wake()
assert acc.memory_reserved() == reserved
buffer.fill(1)
stop()
"""
    run(program, "append_copy=50000", threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_pool_that_sleeps_beside_a_copy_that_takes_long_gives_its_memory_back(threads):
    program = """
start()
pool.sleep()
assert acc.memory_reserved() == reserved - (64 << 20)
pool.wake()
stop()
"""
    run(program, "append_copy=50000", threads)


def test_ctrl_c_ends_a_wake_that_is_held_up_and_the_pool_wakes_later():
    program = """
import signal
pool.sleep()
start()
signal.signal(signal.SIGALRM, signal.default_int_handler)
def ends():
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        pool.wake()
        raise SystemExit("it woke: the append is too short")
    except KeyboardInterrupt:
        pass
    try:
        buffer.fill(1)
    except RuntimeError as e:
        assert "asleep" in str(e)
        return True
    pool.sleep()    # the machine had other things to do than the append: the signal came when the pool was awake
for _ in range(5):
    if ends():
        break
else:
    raise SystemExit("a pool that is asleep was filled")
over.set()
for thread in threads:
    thread.join()
pool.wake()
buffer.fill(1)
assert acc.memory_reserved() == reserved
stop()
"""
    run(program, "append_copy=600000")


KERNELS = Path(__file__).parents[1] / "kernels/basic.spv"
KINDS = {  # what a thread does again and again, with a stream of its own current
    "copy": "do = lambda: target.copy_from(source)",
    "fill": "do = lambda: target.fill(1)",
    "rows": "do = lambda: l0rt.memcpy2d(target, 128, source, 128, 64, 8)",
    "launch": f"do = lambda store=l0rt.Module({str(KERNELS)!r})['store']: store.launch(target, 1, global_size=64)",
    "graph": """
graph = acc.Graph()
with acc.graph(graph):
    target.fill(1)
do = graph.replay
""",
}
BESIDE = """
import ctypes, threading
import l0rt, l0rt.accelerator as acc
from l0rt.memory import MemPool, use_mem_pool
races = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_races
races.restype = ctypes.c_uint64

pool, begun, over, failed = MemPool(), threading.Event(), threading.Event(), []
with use_mem_pool(pool):
    buffer = l0rt.empty(64 << 20)
source, target = l0rt.empty(2 << 20), l0rt.empty(2 << 20)  # in the range that the others come from
%s

def loop():
    stream, given = acc.Stream(), 0
    try:
        with stream:
            while not over.is_set():
                do()
                begun.set()
                given += 1
                if given & 15 == 0:    # otherwise more is given than done, and who waits for the device waits for ever
                    stream.synchronize()
    except Exception as e:
        failed.append(e)
        begun.set()

def grow_and_shrink():
    l0rt.empty(16 << 20).free()
    l0rt.memory.empty_cache()

def sleep_and_wake():
    pool.sleep()
    pool.wake()
    buffer.fill(1)

thread = threading.Thread(target=loop)
thread.start()
begun.wait()
try:
    for _ in range(%d):
        %s()
        if failed or races():
            break
except l0rt.L0Error as e:
    failed.append(e)
over.set()
thread.join()
print("wrong" if failed or races() else "right")
"""


def outcome(kind, way, quirks, turns=20000, **env):  # without the mend, until it goes wrong
    latencies = "append_copy=200,append_launch=200,map_fresh=200,unmap=200"
    env = {**B580, "L0RT_CPU_LATENCY": latencies, "L0RT_QUIRKS": quirks, **env}
    result = run_python(BESIDE % (KINDS[kind], turns, way), env, timeout=120)
    assert result.returncode == 0, result
    return result.stdout.strip() + result.stderr


@pytest.mark.parametrize("way", ["grow_and_shrink", "sleep_and_wake"])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_races_with_mapping(kind, way, extent):
    assert outcome(kind, way, "", extent(10, 40)) == "right"


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_races_without_the_mend(kind):
    assert outcome(kind, "grow_and_shrink", "racing_maps=0") == "wrong"


def test_graphs_of_lists_do_not_race_either(extent):
    assert outcome("graph", "grow_and_shrink", "", extent(10, 40), L0RT_DISABLE="graph") == "right"
    assert outcome("graph", "grow_and_shrink", "racing_maps=0", L0RT_DISABLE="graph") == "wrong"
