# SPDX-License-Identifier: Apache-2.0
"""Each name that `L0RT_DISABLE` takes makes l0rt do something otherwise; any other name is refused."""

import json
from functools import cache

import pytest
from l0rt import config

from helpers.graph_programs import KERNELS
from helpers.process import run_python
from helpers.rings import TESTS

# What was asked of the driver once it was open, and how it was opened; and what came of what may be impossible.
PROGRAM = """
import ctypes, json, os
from helpers.wrapped import wrap
MAX_ALLOC_AT = 40   # of ze_device_properties_t
FLAGS_AT, OFFLOAD = 24, 4   # of ze_command_queue_desc_t
called, recordings = set(), []

def noted(name, original):
    def call(*args):
        called.add(name)
        if name == "zeCommandListBeginGraphCaptureExt":
            recordings.append(name)
            called.add(f"{len(recordings)} graphs")
        if name == "zeMemAllocDevice" and ctypes.c_uint64.from_address(args[1] + 8).value:   # its pNext
            called.add("zeMemAllocDevice with an extension")
        if name == "zeCommandListCreateImmediate" and ctypes.c_uint32.from_address(args[2] + FLAGS_AT).value & OFFLOAD:
            called.add("zeCommandListCreateImmediate with the hint to offload copies")
        result = original(*args)
        if name == "zeDeviceGetProperties":
            ctypes.c_uint64.from_address(args[1] + MAX_ALLOC_AT).value = 1 << 20
        return result
    return call if name.startswith("ze") else None

wrap(noted)
import l0rt, l0rt.accelerator as acc
from l0rt.runtime.streams import devices
devices.lazy.init()
opened_by = sorted(called & {"zeInit", "zeInitDrivers"})
called.clear()
outcomes = {"free memory": l0rt.memory.memory_info()["source"]}

def attempt(what, function):
    try:
        function()
        outcomes[what] = "works"
    except (l0rt.L0Error, NotImplementedError) as refused:
        outcomes[what] = type(refused).__name__

x, s, e, timed = l0rt.empty(4096), acc.Stream(), l0rt.Event(), l0rt.Event(enable_timing=True)
for i in range(3):
    x.fill(i, stream=s)
    e.record(s)
    e.synchronize()
x.fill(7, stream=s)
s.synchronize()
acc.synchronize()
l0rt.empty(64, kind="shared").fill(1).free()
shared = l0rt.Event(interprocess=True)
shared.record()
shared.synchronize()
graph, module = acc.Graph(), l0rt.Module(KERNELS)
attempt("offset", lambda: module["store"].launch(x, 1, groups=1, group_size=64, global_offset=64))
attempt("share default", x.ipc_handle)
with acc.graph(graph):
    module["store"][1, 64](x, 1)
for i in range(2, 4):
    graph.nodes[0].update(args={1: i})
    graph.replay()
    acc.synchronize()
graph.reset()
joined = acc.Stream()
with acc.graph(graph, stream=s):
    joined.wait_stream(s)
    x.fill(1, stream=joined)
    s.wait_stream(joined)
graph.reset()
timed.record()
timed.synchronize()
attempt("share", shared.ipc_handle)
with l0rt.memory.use_mem_pool(l0rt.memory.MemPool(interprocess=True)):
    attempt("share memory", l0rt.empty(64).ipc_handle)
attempt("time", timed.host_time)
attempt("register", lambda: l0rt.memory.register(bytearray(1 << 16)))
attempt("large", lambda: l0rt.empty(8 << 20))
l0rt.empty(4096).copy_from(x, stream=s)     # hangs
assert not s.synchronize(timeout=0.05)
print(json.dumps([opened_by, outcomes, sorted(called)]), flush=True)
os._exit(0)
"""
# What mapped memory makes no use of is looked at without it.
BESIDE = {"relaxed": "vmm", "free_ext": "vmm"}


@cache
def seen(*names):
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_EVENTS": "cb", "L0RT_ALLOC_CONF": None,
           "L0RT_CPU_FAIL": "zeCommandListAppendMemoryCopy:1:hang",
           "L0RT_DISABLE": ",".join(name for name in names if name)}  # fmt: skip
    result = run_python(f"KERNELS = {str(KERNELS)!r}\n{PROGRAM}", {**env, "PYTHONPATH": TESTS})
    assert (result.returncode, result.stderr) == (0, ""), result
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", config.CAPABILITIES)
def test_each_name_changes_what_is_done(name):
    beside = BESIDE.get(name, "")
    assert seen(name, beside) != seen(beside)


@pytest.mark.parametrize("name", ["graphs", "host_func", "inorde", "INORDER"])
def test_another_name_is_refused_with_a_list_of_those_that_there_are(name):
    with pytest.raises(ValueError, match=r"expected a comma-separated list of inorder, .*, graph_forks$"):
        config.set("disable", name)
