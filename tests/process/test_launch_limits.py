# SPDX-License-Identifier: Apache-2.0
"""Limits of a device that are smaller than those of the drivers here: the driver's answers are changed on their way."""

import pytest

from helpers.process import run_python
from helpers.rings import TESTS

PATH = TESTS / "kernels" / "basic.spv"
CODE = f"""
import ctypes, sys
sys.path.insert(0, {str(TESTS)!r})
from helpers import wrapped
local, words = {{}}, ctypes.POINTER(ctypes.c_uint32)

def compute_properties(device, found, *rest):
    result = original["zeDeviceGetComputeProperties"](device, found, *rest)
    ctypes.cast(found, words)[8], ctypes.cast(found, words)[9], ctypes.cast(found, words)[10] = 6, 5, 4
    return result

def set_argument(kernel, at, size, value, *rest):
    if not value:
        local[at] = size
    return original["zeKernelSetArgumentValue"](kernel, at, size, value, *rest)

def cooperative(kernel, count, *_):
    ctypes.cast(count, words)[0] = 4096 // max(1, sum(local.values()))
    return 0

original = wrapped.replace({{
    "zeDeviceGetComputeProperties": compute_properties, "zeKernelSetArgumentValue": set_argument,
    "zeKernelSuggestMaxCooperativeGroupCount": cooperative}})
import l0rt, l0rt.accelerator as acc
module = l0rt.Module({str(PATH)!r})
store, reduce = module["store"], module["reduce"]
x = l0rt.empty(4096).fill(0)

def refused(call):
    try:
        call()
    except ValueError as error:
        print(error)
    else:
        print("not refused")

def run():
"""


def told(body):
    result = run_python(f"{CODE}{body}\nrun()\nacc.synchronize()\n", {"L0RT_DRIVER": "cpu"})
    assert (result.returncode, result.stderr) == (0, ""), result
    return result.stdout.splitlines()


@pytest.mark.parametrize(("groups", "most", "axis"), [((7,), 6, "x"), ((1, 6), 5, "y"), ((6, 5, 5), 4, "z")])
def test_a_grid_beyond_the_limit_of_an_axis_is_refused_with_the_limit(groups, most, axis):
    body = f"""
    largest = (6, 5, 4)
    store[largest, 1](x, 1)
    refused(lambda: store[{groups}, 1](x, 1))
    refused(lambda: store.launch(x, 1, groups={groups}))
    refused(lambda: store.launch(x, 1, global_size={groups}, group_size=1))
    graph = acc.Graph()
    with acc.Stream(), graph:
        store[1, 1](x, 1)
        refused(lambda: store[{groups}, 1](x, 1))
    refused(lambda: graph.nodes[0].update(groups={groups}))
    graph.replay()
"""
    assert told(body) == [f"store(): groups must be 1 to {most} along {axis}, got {groups['xyz'.index(axis)]}"] * 5


def test_local_memory_of_this_launch_limits_a_cooperative_one():
    body = """
    few, many = l0rt.LocalMemory(512), l0rt.LocalMemory(2048)
    print(reduce.max_cooperative_groups(8), reduce.max_cooperative_groups(8, x, x, 1, few),
          reduce.max_cooperative_groups(8, x, x, 1, many), reduce.max_cooperative_groups(8))
    def launch(groups, scratch):
        reduce.launch(x, x, 1, scratch, groups=groups, group_size=8, cooperative=True)
    launch(2, many)
    launch(4, few)
    refused(lambda: launch(4, many))
    launch(4, few)
    graph = acc.Graph()
    with acc.Stream(), graph:
        launch(4, few)
        refused(lambda: launch(4, many))
    reduce[1, 8](x, x, 1, l0rt.LocalMemory(64))
    refused(lambda: graph.nodes[0].update(args={3: many}))
    graph.nodes[0].update(args={3: many}, groups=2)
    refused(lambda: graph.nodes[0].update(groups=3))
    graph.replay()
"""
    most = "a cooperative launch of reduce() may have at most 2 groups of this size, got {} x 1 x 1"
    assert told(body) == ["4096 8 2 4096", *[most.format(4)] * 3, most.format(3)]
