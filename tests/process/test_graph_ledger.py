# SPDX-License-Identifier: Apache-2.0
"""What is left of a capture that something ends: a fork, the exit, the end of an adopted stream, an interrupt."""

import pytest

from helpers.process import run_python
from helpers.rings import TESTS

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None}
HEAD = f"""
import atexit, ctypes, gc, os, random, signal, sys
sys.path.insert(0, {str(TESTS)!r})
from helpers import ledger
def at_exit():      # registered before l0rt's own: runs after it
    if os.getpid() == here:
        left = {{name: count for name, count in ledger.counted().items() if count and name not in ("driver", "device")}}
        print("left", left)
atexit.register(at_exit)
here = os.getpid()
import l0rt, l0rt.accelerator as acc
ledger.warm_up()
x, a, b, noise = l0rt.empty(4096).fill(0), l0rt.Stream(), l0rt.Stream(), l0rt.Generator()
acc.synchronize()
def begin():
    graph = acc.Graph()
    graph.register_generator_state(noise)
    a.__enter__()
    graph.capture_begin()
    return graph
def work(times=3):
    first = acc.current_stream()
    for _ in range(times):
        x.fill(1, stream=first)
        b.wait_stream(first)
        inside = l0rt.empty(4096, stream=b).fill(1, stream=b)
        inside.record_use(b)
        inside.free()
        first.wait_stream(b)
        first.add_callback(int)
        x.uniform_(generator=noise, stream=first)
def end(graph):
    if not graph.__repr__().endswith("empty>"):
        graph.reset()
    while acc.current_stream() == a:
        a.__exit__(None, None, None)
def is_as_before():
    streams = not (a.is_capturing() or b.is_capturing() or acc.is_current_stream_capturing())
    inside = l0rt.empty(1 << 16)
    ids = {{s["segment_pool_id"] for s in acc.memory_snapshot()
           if s["address"] <= inside.ptr < s["address"] + s["total_size"]}}
    return streams and ids == {{(0, 0)}}
def whole():
    graph = begin()
    work()
    graph.capture_end()
    graph.replay()
    acc.synchronize()
    end(graph)
whole()
before = ledger.live()
"""
WAYS = {"native": {}, "lists": {"L0RT_DISABLE": "graph"}}
ways = pytest.mark.parametrize("way", WAYS)


def check(code, way, expected="[]\n", timeout=60):
    result = run_python(HEAD + code, {**CPU, **WAYS[way]}, timeout=timeout)
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, ""), result


POINT = """
def reach(point):
    graph = begin()
    if point != "begun":
        work()
    if point in ("ended", "replayed"):
        graph.capture_end()
    if point == "replayed":
        graph.replay()
        acc.synchronize()
    if point == "refused":
        try:
            a.synchronize()
        except RuntimeError:
            pass
    return graph
"""
POINTS = ["work", "refused", "begun", "ended", "replayed"]


@ways
def test_a_fork_in_a_capture_leaves_nothing_in_parent_and_child(way):
    code = f"""{POINT}
for point in {POINTS}:
    for leave in (os._exit, sys.exit):
        graph = reach(point)
        ledger.settle_callbacks()
        there = ledger.counted()
        child = os.fork()
        if child == 0:
            leave(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, (point, leave)
        assert ledger.counted() == there, (point, leave)
        if point in ("begun", "work"):
            work()
            graph.capture_end()
            graph.replay()
        acc.synchronize()
        end(graph)
        assert is_as_before(), (point, leave)
        whole()
        assert ledger.leaks(before, ledger.live()) == [], (point, leave)
print("[]", flush=True)
os._exit(0)
"""
    check(code, way)


@ways
def test_an_exit_in_a_capture_leaves_nothing(way, extent):
    """But for the pinned memory of a graph's callbacks, which the graph holds as anybody would: the system has it."""
    for point in POINTS[: extent(1, len(POINTS))]:
        held = "{'context': 1, 'usm': 1}" if point in ("ended", "replayed") else "{}"
        check(f"{POINT}graph = reach({point!r})\n", way, f"left {held}\n")


@ways
def test_an_exit_while_another_thread_captures_is_silent(way):
    """A daemon thread may use what there is, so everything is left to the system."""
    code = """
import threading
def capture():
    graph, stream = acc.Graph(), l0rt.Stream()
    with stream:
        graph.capture_begin()
        x.fill(2, stream=stream)
        begun.set()
        threading.Event().wait()
begun = threading.Event()
threading.Thread(target=capture, daemon=True).start()
assert begun.wait(30)
graph = begin()
atexit.unregister(at_exit)
"""
    check(code, way, "")


ADOPTED = """
def adopt():
    class Desc(ctypes.Structure):
        _fields_ = [("stype", ctypes.c_uint32), ("pNext", ctypes.c_void_p), ("values", ctypes.c_uint32 * 16)]
    lib, made = ctypes.CDLL(l0rt.cpu_driver_path()), ctypes.c_void_p()
    context, device = map(ctypes.c_void_p, (l0rt.xpu.native_context(), l0rt.xpu.native_device(0)))
    desc = Desc(0xE, None, (0, 0, 2, 2, 0))
    assert lib.zeCommandListCreateImmediate(context, device, ctypes.byref(desc), ctypes.byref(made)) == 0
    return acc.Stream.from_handle(made.value), lambda: lib.zeCommandListDestroy(made)
import l0rt.xpu
"""


@ways
def test_an_adopted_stream_that_goes_ends_the_capture(way):
    code = f"""{ADOPTED}
outer = acc.current_stream()
def capture(role):
    adopted, destroy = adopt()
    graph = acc.Graph()
    with a if role == "joined" else adopted:
        graph.capture_begin()
    (adopted if role == "joined" else b).wait_stream(a if role == "joined" else adopted)
    streams = [a if role == "joined" else b, adopted]
    for stream in streams:
        x.fill(1, stream=stream)
    assert all(stream.is_capturing() for stream in streams)
    del streams, stream, adopted
    gc.collect()
    return graph, destroy
for role in ("joined", "begun"):
    graph, destroy = capture(role)
    assert is_as_before(), role
    try:
        graph.capture_end()
        print("ended")
    except RuntimeError as error:
        assert "the end of a stream ended the capture" in str(error), error
    assert repr(graph) == "<l0rt.Graph empty>"
    assert acc.current_stream() == outer
    destroy()
    acc.synchronize()
    whole()
print(ledger.leaks(before, ledger.live()), flush=True)
os._exit(0)
"""
    check(code, way)


INTERRUPTED = """
class Stop(BaseException): pass
def stop(*_): raise Stop
signal.signal(signal.SIGALRM, stop)
choose, ended = random.Random(1), []
def blocks(graph):
    return choose.choice([lambda: acc.graph(graph, stream=a), lambda: acc.graph(graph), lambda: graph])()
outer = acc.current_stream()
for turn in range({turns}):
    graph = acc.Graph()
    graph.register_generator_state(noise)
    at_once = choose.random() < 0.3
    try:
        try:
            if at_once:     # in the midst of the beginning, too
                signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-4, 1e-2))
            with blocks(graph):
                if not at_once:
                    signal.setitimer(signal.ITIMER_REAL, choose.uniform(1e-5, 2e-3))
                work(20)
                while not at_once:
                    work(1)
            ended.append("ended")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Stop:
        ended.append("stopped")
    assert is_as_before(), (turn, ended[-1], graph)
    assert acc.current_stream() == outer
    graph.reset()
    assert noise.get_offset() == offset
assert "stopped" in ended
del graph
whole()
print(ledger.leaks(before, ledger.live()), flush=True)
os._exit(0)
"""


@ways
def test_an_interrupt_in_a_capture_leaves_nothing(way, extent):
    check("offset = noise.get_offset()\n" + INTERRUPTED.format(turns=extent(20, 400)), way, timeout=600)
