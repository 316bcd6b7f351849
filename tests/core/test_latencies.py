# SPDX-License-Identifier: Apache-2.0
"""What calls cost on a simulated device, by name: those that the CPU driver's own tests in C leave out."""

from pathlib import Path

import pytest

from helpers.process import run_python

KERNELS = Path(__file__).parents[1] / "kernels/basic.spv"
HEAD = """
import ctypes, threading, time
import l0rt, l0rt.accelerator as acc
from l0rt.selftest.driver import Driver
from l0rt.runtime.streams import devices
driver = ctypes.CDLL(l0rt.cpu_driver_path())
driver.l0rt_cpu_charged.restype, driver.l0rt_cpu_charged.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
charged = lambda name: driver.l0rt_cpu_charged(name.encode()) // 1000
devices.lazy.init()
bare = Driver(0)
"""
COSTS = {
    "append_launch": (
        f"""
store, before = l0rt.Module({str(KERNELS)!r})["store"], charged("append_launch")
held = l0rt.empty(4096)
for _ in range(3):
    store.launch(held, 1, global_size=64)
print(charged("append_launch") - before)
""",
        lambda cost: cost == 3 * 700,
    ),
    "record_scope0": (
        """
device, host, list_ = bare.events(1, counter_based=True, signal=0), bare.events(1, counter_based=True), bare.list()
before = charged("record_scope0")
for event in (*device, *host, *device):
    bare.signal(list_, event)
bare.drain(list_)
print(charged("record_scope0") - before)
bare.close()
""",
        lambda cost: cost == 2 * 700,
    ),
    "wake_up": (
        """
before, held = charged("wake_up"), l0rt.empty(64 << 20)
for _ in range(20):  # the work may be over before the wait begins
    held.fill(1)
    acc.current_stream().synchronize()
print(charged("wake_up") - before)
""",
        lambda cost: cost >= 700 and cost % 700 == 0,
    ),
}


@pytest.mark.parametrize("name", COSTS)
def test_a_call_costs_what_is_set_for_it(name):
    program, right = COSTS[name]
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "arc-b580", "L0RT_CPU_LATENCY": f"virtual,{name}=700"}
    result = run_python(HEAD + program, {**env, "L0RT_CPU_DEVICES": None, "L0RT_DISABLE": None})
    assert (result.returncode, result.stderr) == (0, ""), result
    assert right(int(result.stdout)), result


MAPS = """
base, part, list_, buffer = bare.reserve(2 << 20), bare.physical(2 << 20), bare.list(), bare.allocate(4096)
begun, before = threading.Event(), charged("map_fresh")
def map():
    begun.set()
    bare.map(base, 2 << 20, part)
thread = threading.Thread(target=map)
thread.start()
begun.wait()
while charged("map_fresh") == before:  # charged when the mapping begins
    pass
start = time.monotonic()
bare.fill(list_, buffer, 1, 4096)
print(time.monotonic() - start > 0.2)
thread.join()
bare.drain(list_)
bare.unmap(base, 2 << 20)
bare.destroy_physical(part)
bare.close()
"""


@pytest.mark.parametrize("blocks", [0, 1])
def test_a_mapping_holds_up_the_appends_of_other_threads_where_it_does(blocks):
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": None, "L0RT_DISABLE": None}
    result = run_python(HEAD + MAPS, {**env, "L0RT_CPU_LATENCY": f"map_fresh=500000,map_blocks={blocks}"})
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.strip() == str(bool(blocks))
