# SPDX-License-Identifier: Apache-2.0
"""What a replay, and a replay behind a change of nodes, ask of the driver: which functions, and how often each."""

import json

import pytest

from helpers.process import run_python
from helpers.rings import TESTS

HEAD = f"""
import json, sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.driver_calls import of
import l0rt, l0rt.accelerator as acc
from helpers.graph_programs import KERNELS
add = l0rt.Module(KERNELS)["vector_add"]
x, y, z = (l0rt.empty(256).fill(0) for _ in range(3))
a, b = l0rt.Stream(), l0rt.Stream()
acc.synchronize()
graph, calls = acc.Graph(), []
with acc.graph(graph, stream=a):    # three lists: launches, a launch of the other stream, and a fill
    for _ in range(10):
        add[2, 32](z, x, y, 64)
    b.wait_stream(a)
    with b:
        add[2, 32](y, x, z, 64)
    a.wait_stream(b)
    x.fill(1, stream=a)
nodes = [node for node in graph.nodes if node.kind != "wait"]
def replay():
    with a:
        graph.replay()
def replayed():
    made = of(replay)
    a.synchronize()
    return made
def changed(*changes):
    for node, change in changes:
        assert of(lambda: nodes[node].update(**change)) == {{}}      # nothing before the next replay
    return replayed()
"""
CHANGES = """
for count in (1, 2, 3):
    calls.append(changed((0, {"args": {3: count}})))
calls.append(changed((0, {"args": {1: y, 2: x, 3: 5}, "groups": 1, "group_size": 16})))
calls.append(changed((0, {"args": {3: 6}}), (0, {"args": {3: 7}}), (1, {"args": {3: 8}})))
calls.append(changed((11, {"value": 6})))
calls.append(replayed())
"""
LISTS = {
    "CommandListAppendEventReset": 1,
    "CommandListAppendSignalEvent": 1,
    "CommandListAppendWaitOnEvents": 1,
    "CommandQueueExecuteCommandLists": 3,
}
AGAIN = LISTS | {"FenceQueryStatus": 2, "FenceReset": 2}  # is the last replay over? One fence for each queue
NATIVE = {"CommandListAppendGraphExt": 1}


def told(code, disable):
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_DISABLE": disable}
    result = run_python(f"{HEAD}{code}\nprint(json.dumps(calls))\n", env)
    assert (result.returncode, result.stderr) == (0, ""), result
    return json.loads(result.stdout)


def beyond(calls, common):
    """Return what was called beyond these, which were."""
    assert common.items() <= calls.items(), calls
    return {name: count for name, count in calls.items() if name not in common}


def test_a_replay_that_changes_nothing_builds_nothing():
    code = "calls += [replayed(), replayed()]"
    assert told(code, "graph") == [LISTS, AGAIN]
    assert told(code, "") == [NATIVE, NATIVE]


def test_a_change_of_a_launch_is_one_call_and_the_close_of_its_list():
    """The list becomes mutable with the first change, which records it anew. A list with a fill is recorded anew."""
    first, *later, four, two, fill, nothing = told(CHANGES, "graph")
    built = {name: first[f"CommandList{name}"] for name in ("Create", "GetNextCommandIdExp", "AppendLaunchKernel")}
    assert built == {"Create": 1, "GetNextCommandIdExp": 10, "AppendLaunchKernel": 10}
    one = {"CommandListUpdateMutableCommandsExp": 1, "CommandListClose": 1}
    assert [beyond(calls, AGAIN) for calls in (*later, four)] == [one] * 3
    assert beyond(two, AGAIN) == {"CommandListUpdateMutableCommandsExp": 2, "CommandListClose": 1}
    assert fill["CommandListReset"] == fill["CommandListClose"] == fill["CommandListAppendMemoryFill"] == 1
    assert not {"CommandListCreate", "CommandListAppendLaunchKernel"} & fill.keys()
    assert nothing == AGAIN


def test_without_mutable_lists_a_list_is_recorded_anew_once_for_all_changes():
    *_, two, fill, nothing = told(CHANGES, "graph,mutable_lists")
    assert (two["CommandListReset"], two["CommandListAppendLaunchKernel"], two["CommandListClose"]) == (1, 10, 1)
    assert (fill["CommandListReset"], fill["CommandListAppendMemoryFill"]) == (1, 1)
    assert "CommandListAppendLaunchKernel" not in fill
    assert nothing == AGAIN


@pytest.mark.parametrize("change", ["launch", "fill"])
def test_the_first_change_moves_the_drivers_own_graph_to_lists_once(change):
    fill = "calls.append(changed((11, {'value': 9})))\n" if change == "fill" else ""
    before, moved, *later = told("calls.append(replayed())\n" + fill + CHANGES, "")
    assert before == NATIVE
    assert (moved["CommandListCreate"], moved["CommandQueueCreate"], moved["CommandListClose"]) == (3, 2, 3)
    assert (moved["CommandListAppendLaunchKernel"], moved["CommandQueueExecuteCommandLists"]) == (11, 3)
    assert "CommandListAppendGraphExt" not in moved
    assert not any({"CommandListAppendGraphExt", "CommandQueueCreate"} & calls.keys() for calls in later)
    assert sum(calls.get("ExecutableGraphDestroyExt", 0) for calls in (moved, *later)) == 1  # its last replay is over
    one = {"CommandListUpdateMutableCommandsExp": 1, "CommandListClose": 1}
    assert beyond(later[-4], AGAIN) == one
    assert later[-1] == AGAIN
    if change == "launch":  # the list is mutable at once
        assert "CommandListCreate" not in later[0]


HELD_UP = """
big, other = l0rt.empty(64 << 20), l0rt.empty(64 << 20)
acc.synchronize()
for turn in range(10):
    if turn == 0:
        for _ in range(4):                  # which the replays wait for
            other.copy_from(big, stream=a)
    calls.append(of(replay))
a.synchronize()
for turn in range(2):
    calls.append(replayed())
"""


def test_replays_under_way_have_lists_of_their_own_and_more_than_eight_only_after_a_wait():
    first, *more = told(HELD_UP, "graph")
    assert first == LISTS
    made = {"CommandListCreate": 3, "FenceCreate": 2}
    created = [calls.get("CommandListCreate", 0) for calls in more]
    assert (created[:7], created[9:]) == ([3] * 7, [0, 0])
    assert all(made.items() <= calls.items() for calls in more[:7])
    assert "FenceHostSynchronize" in more[7]  # the ninth waits for the first, and the tenth may find the second ended;
    assert all("FenceHostSynchronize" in calls for calls in more[7:9] if calls.get("CommandListCreate"))  # or in vain
    assert more[-1] == AGAIN
