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


@pytest.mark.parametrize(
    "function",
    [
        "zeCommandListCreate",
        "zeCommandQueueCreate",
        "zeCommandListClose",
        "zeCommandListAppendEventReset",
        "zeEventPoolCreate",
    ],
)
def test_a_driver_that_refuses_a_part_leaves_no_graph(function):
    code = """
import ctypes
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
    nth = 20 if function == "zeEventPoolCreate" else 2  # behind the runtime's own
    check(code, {**CPU, "L0RT_CPU_FAIL": f"{function}:{nth}:ERROR_OUT_OF_HOST_MEMORY"})


def test_a_replay_that_the_driver_refuses_breaks_the_graph_and_not_the_stream():
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
    check(code, {**CPU, "L0RT_CPU_FAIL": "zeCommandQueueExecuteCommandLists:1:ERROR_OUT_OF_HOST_MEMORY"})
