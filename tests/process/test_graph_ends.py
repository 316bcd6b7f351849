# SPDX-License-Identifier: Apache-2.0
"""How captures and graphs end where something goes wrong: a fork, the exit of the process, a driver that refuses."""

import pytest

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None}
HEAD = """
import gc, os, sys
import numpy as np
import l0rt, l0rt.accelerator as acc
x, y = l0rt.empty(1 << 12).fill(0), l0rt.empty(1 << 12).fill(0)
a, b = l0rt.Stream(), l0rt.Stream()
acc.synchronize()
graph = acc.Graph()
def capture():
    with acc.graph(graph, stream=a):
        x.fill(7, stream=a)
        b.wait_stream(a)
        y.copy_from(x, stream=b)
        a.wait_stream(b)
def check():
    found = np.zeros(1 << 12, np.uint8)
    acc.synchronize()
    y.copy_to(found)
    assert (found == 7).all(), found
"""


def check(code, env=CPU, out="works\n"):
    result = run_python(HEAD + code, env, timeout=60)
    assert (result.returncode, result.stdout) == (0, out), result
    assert "Traceback" not in result.stderr, result
    assert "Error" not in result.stderr, result


def test_a_child_has_no_capture_and_the_parents_goes_on():
    code = """
with a:
    graph.capture_begin()
    x.fill(7, stream=a)
    y.copy_from(x, stream=a)
    child = os.fork()
    if child == 0:
        assert not a.is_capturing() and not acc.is_current_stream_capturing()
        for call in (a.synchronize, graph.replay, graph.capture_begin, acc.Graph):
            try:
                call()
                os._exit(3)
            except RuntimeError:
                pass
        try:
            graph.capture_end()
            os._exit(4)
        except RuntimeError as error:
            assert "a fork" in str(error), error
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert a.is_capturing()
    graph.capture_end()
    graph.replay()
check()
print("works")
"""
    check(code)


def test_a_child_cannot_replay_and_drops_the_graph_in_silence():
    code = """
capture()
graph.replay()
drawing, generator = acc.Graph(), l0rt.Generator()
drawing.register_generator_state(generator)
with acc.graph(drawing):
    x.uniform_(generator=generator)
drawing.replay()
child = os.fork()
if child == 0:
    for replay in (graph.replay, drawing.replay):
        try:
            replay()
            os._exit(3)
        except RuntimeError:
            pass
    del graph, drawing, replay
    gc.collect()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
drawing.replay()
assert generator.get_offset() == 2048
graph.replay()
check()
print("works")
"""
    check(code)


@pytest.mark.parametrize(
    "end",
    [
        "with a: graph.capture_begin()",
        "with a: graph.capture_begin(); x.fill(1, stream=a); b.wait_stream(a)",
        "capture()",
        "capture(); graph.replay()",
        "capture(); [graph.replay() for _ in range(100)]",
        "capture(); graph.replay(); del graph",
        "with a: graph.capture_begin(); x.fill(1, stream=a); sys.exit(0)",
        "with a: graph.capture_begin(); x.uniform_(); sys.exit(0)",
        "with a: graph.capture_begin(); x.uniform_(); graph.capture_end(); graph.replay(); graph.replay()",
        "with acc.graph(graph): x.uniform_()\ngraph.replay(); del graph",
    ],
)
def test_a_process_exits_whatever_its_graph_does(end):
    check(f"print('works', flush=True)\n{end}\n")


LISTS = {"L0RT_DISABLE": "graph"}  # the driver's own graphs otherwise
REFUSED = """
found = 0
for attempt in range(40):
    try:
        capture()
        graph.replay()
        check()
        graph.reset()
    except MemoryError:
        found += 1
        assert repr(graph) == "<l0rt.Graph empty>"
        assert not a.is_capturing() and not b.is_capturing()
assert found == 1, found
print("works")
"""


@pytest.mark.parametrize(
    ("way", "function", "nth"),
    [
        (LISTS, "zeCommandListCreate", 2),
        (LISTS, "zeCommandQueueCreate", 2),
        (LISTS, "zeCommandListClose", 2),
        (LISTS, "zeCommandListAppendEventReset", 2),
        (LISTS, "zeEventPoolCreate", 20),  # behind the runtime's own
        ({}, "zeCommandListBeginGraphCaptureExt", 1),
        ({}, "zeCommandListBeginGraphCaptureExt", 3),
        ({}, "zeCommandListEndGraphCaptureExt", 1),
        ({}, "zeCommandListEndGraphCaptureExt", 2),
        ({}, "zeGraphInstantiateExt", 2),
        ({}, "zeCommandListAppendWaitOnEvents", 2),
        ({}, "zeCommandListCreateImmediate", 30),
        ({}, "zeEventPoolCreate", 20),
    ],
)
def test_a_driver_that_refuses_a_part_leaves_no_graph(way, function, nth):
    check(REFUSED, {**CPU, **way, "L0RT_CPU_FAIL": f"{function}:{nth}:ERROR_OUT_OF_HOST_MEMORY"})


@pytest.mark.parametrize(
    "function", ["zeCommandListBeginGraphCaptureExt", "zeCommandListEndGraphCaptureExt", "zeGraphInstantiateExt",
                 "zeCommandListAppendWaitOnEvents"]
)  # fmt: skip
@pytest.mark.parametrize("result", ["ERROR_UNSUPPORTED_FEATURE", "ERROR_GRAPH_CAPTURE_UNSUPPORTED"])
def test_what_the_driver_does_not_record_becomes_lists(function, result):
    code = """
for attempt in range(3):
    capture()
    graph.replay()
    check()
    graph.reset()
print("works")
"""
    check(code, {**CPU, "L0RT_CPU_FAIL": f"{function}:1:{result}"})


BEGINS = "zeCommandListBeginGraphCaptureExt:1:ERROR_OUT_OF_HOST_MEMORY"


@pytest.mark.parametrize(
    ("profile", "disable", "one", "two"),
    [
        (None, "", True, True),
        (None, "graph", False, False),
        (None, "inorder", False, False),
        (None, "cb_pool", False, False),
        (None, "graph_forks", True, False),  # as with Intel's driver
        ("neo-26.31,arc-b580", "", True, False),
        ("neo-22.43", "", False, False),
    ],
)
@pytest.mark.parametrize("streams", [1, 2])
def test_the_driver_records_what_it_is_trusted_with(profile, disable, one, two, streams):
    code = f"""
try:
    with acc.graph(graph, stream=a):
        x.fill(7, stream=a)
        if {streams} == 2:
            b.wait_stream(a)
            y.copy_from(x, stream=b)
            a.wait_stream(b)
    print("lists")
except MemoryError:
    print("recorded")
"""
    expected = "recorded\n" if (one if streams == 1 else two) else "lists\n"
    check(code, {**CPU, "L0RT_CPU_PROFILE": profile, "L0RT_DISABLE": disable, "L0RT_CPU_FAIL": BEGINS}, expected)


@pytest.mark.parametrize(
    "end", ["graph.reset()", "del graph", "sys.exit(0)", "graph.replay(); graph.nodes[0].update(value=6)"]
)
def test_a_graph_whose_lists_have_just_taken_the_drivers_place_ends(end):
    code = f"""
big = l0rt.empty(32 << 20)
print("works", flush=True)
with acc.graph(graph, stream=a):
    x.fill(7, stream=a)
    big.fill(1, stream=a)
for value in range(4):
    graph.replay()
    graph.nodes[0].update(value=value)
    graph.replay()
{end}
"""
    check(code)


@pytest.mark.parametrize(
    ("way", "function"), [(LISTS, "zeCommandQueueExecuteCommandLists"), ({}, "zeCommandListAppendGraphExt")]
)
def test_a_replay_that_the_driver_refuses_breaks_the_graph_and_not_the_stream(way, function):
    code = """
capture()
try:
    graph.replay()
    print("no error")
except MemoryError:
    pass
try:
    graph.replay()
    print("no error")
except RuntimeError as error:
    assert "can only be reset" in str(error), error
graph.reset()
capture()
graph.replay()
check()
print("works")
"""
    check(code, {**CPU, **way, "L0RT_CPU_FAIL": f"{function}:1:ERROR_OUT_OF_HOST_MEMORY"})
