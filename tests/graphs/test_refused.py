# SPDX-License-Identifier: Apache-2.0
"""Every call that cannot be captured: it names itself, and leaves the streams as they were before the capture."""

import asyncio

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

from helpers.graph_programs import BUFFER as NBYTES
from helpers.graph_threads import in_thread


class World:
    """A capture on two streams, and what calls need: made before it begins."""

    def __init__(self, buffer):
        self.buffer = buffer
        self.first, self.second, self.outside = l0rt.Stream(), l0rt.Stream(), l0rt.Stream()
        self.pinned = l0rt.empty(NBYTES, kind="host")
        self.plain = np.zeros(NBYTES, np.uint8)
        self.recorded = self.outside.record_event()
        self.interprocess = l0rt.Event(interprocess=True)
        self.pool = l0rt.memory.MemPool()
        self.replayed = acc.Graph()
        with acc.graph(self.replayed):
            buffer.fill(2, stream=acc.current_stream())
        acc.synchronize()

    def begin(self, graph):
        graph.capture_begin()
        self.second.wait_stream(self.first)
        self.buffer.fill(1, stream=self.second)
        self.event = l0rt.Event(enable_timing=True)
        self.event.record(self.first)


async def waits(item):
    await item


COPY = "a copy from or to host memory without non_blocking=True"
# What the error says of the call, and the call.
REFUSED = [
    ("Stream.synchronize()", lambda w: w.first.synchronize()),
    ("Stream.synchronize()", lambda w: w.second.synchronize(timeout=1)),
    ("Stream.query()", lambda w: w.second.query()),
    ("Event.synchronize()", lambda w: w.event.synchronize()),
    ("Event.synchronize()", lambda w: w.event.synchronize(timeout=1)),
    ("Event.query()", lambda w: w.event.query()),
    ("Event.elapsed_time()", lambda w: w.event.elapsed_time(w.event)),
    ("Event.host_time()", lambda w: w.event.host_time()),
    ("await event", lambda w: asyncio.run(waits(w.event))),
    ("await stream", lambda w: asyncio.run(waits(w.second))),
    ("synchronize()", lambda w: acc.synchronize()),
    ("synchronize()", lambda w: acc.synchronize(timeout=1)),
    ("synchronize()", lambda w: l0rt.xpu.synchronize()),
    ("MemPool.sleep()", lambda w: w.pool.sleep()),
    ("copy_from()", lambda w: w.buffer.copy_from(w.plain, stream=w.first)),
    ("copy_to()", lambda w: w.buffer.copy_to(w.plain, stream=w.second)),
    ("memcpy()", lambda w: l0rt.memcpy(w.buffer, w.plain, NBYTES, w.first)),
    ("memcpy()", lambda w: l0rt.memcpy(w.plain, w.buffer, NBYTES, w.first)),
    ("memcpy2d()", lambda w: l0rt.memcpy2d(w.buffer, 32, w.plain, 32, 16, 8, w.first)),
    ("memcpy2d()", lambda w: l0rt.memcpy2d(w.plain, 32, w.buffer, 32, 16, 8, w.first)),
    (COPY, lambda w: w.buffer.copy_to(w.pinned, stream=w.first)),
    (COPY, lambda w: w.buffer.copy_from(w.pinned, stream=w.second)),
    (COPY, lambda w: l0rt.memcpy(w.buffer, w.pinned, NBYTES, w.first)),
    (COPY, lambda w: l0rt.memcpy2d(w.pinned, 32, w.buffer, 32, 16, 8, w.first)),
    ("fill() or memset() of host memory", lambda w: w.pinned.fill(1, stream=w.first)),
    ("fill() or memset() of host memory", lambda w: l0rt.memset(w.pinned, 1, NBYTES, w.second)),
    ("fill() or memset() of host memory", lambda w: l0rt.memset(w.plain, 1, NBYTES, w.second)),
    ("a draw from a generator that was not registered", lambda w: w.buffer.uniform_(generator=l0rt.Generator())),
    ("native_handle", lambda w: w.second.native_handle),
    ("wait_event() or wait_stream()", lambda w: w.second.wait_event(w.recorded)),
    ("wait_event() or wait_stream()", lambda w: w.recorded.wait(w.first)),
    ("wait_event() or wait_stream()", lambda w: w.first.wait_stream(w.outside)),
    ("Event.record() of an interprocess event", lambda w: w.interprocess.record(w.first)),
    ("Graph.replay()", lambda w: w.replayed.replay()),
]


@pytest.mark.parametrize("number", range(len(REFUSED)), ids=lambda number: f"{number} {REFUSED[number][0]}")
def test_a_refused_call_names_itself_and_leaves_the_streams_as_they_were(number, buffer):
    name, call = REFUSED[number]
    world, graph = World(buffer), acc.Graph()
    with world.first:
        world.begin(graph)
        with pytest.raises(RuntimeError, match="cannot be captured: the capture has ended, without a graph") as error:
            call(world)
        assert name in str(error.value)
        assert not any(stream.is_capturing() for stream in (world.first, world.second, world.outside))
        for stream in (world.first, world.second, world.outside):
            stream.synchronize()
        with pytest.raises(RuntimeError, match="there is no graph: .* ended the capture") as error:
            graph.capture_end()
        assert name in str(error.value)
        assert graph.graph_pool is None
        graph.capture_begin()  # nothing is left that is in the way
        buffer.fill(3, stream=world.first)
        graph.capture_end()
    graph.replay()
    acc.synchronize()


@pytest.mark.parametrize("mode", ["default", "global"])
def test_a_capture_inside_of_a_capture_says_so(mode, buffer):
    """Of the same stream and of another one; the error names the capture, not the wait that comes first."""
    stream, other = l0rt.Stream(), l0rt.Stream()
    for inner in (acc.graph(acc.Graph()), acc.graph(acc.Graph(), stream=stream), acc.graph(acc.Graph(), stream=other),
                  acc.Graph()):  # fmt: skip
        graph = acc.Graph()
        told = result_of(lambda graph=graph, inner=inner: nest(acc.graph(graph, None, stream, mode), inner))
        assert "the beginning of another capture cannot be captured: the capture has ended, without a" in str(told)
        assert not stream.is_capturing()
        with pytest.raises(RuntimeError, match="nothing captured"):
            graph.replay()
    with acc.graph(graph, stream=stream):
        buffer.fill(1, stream=stream)
    relaxed, same = acc.graph(acc.Graph(), None, stream, "relaxed"), acc.graph(acc.Graph(), stream=stream)
    told = result_of(lambda: nest(relaxed, same))
    assert "the stream is in a capture already: end that first" in str(told)


def nest(outer, inner):
    with outer, inner:
        pass


OWN = ["acc.synchronize()", "first.synchronize()", "first.query()", "event.synchronize()", "first.wait_event(outside)"]
FREE = ["outside.synchronize()", "outside.query()", "recorded.synchronize()", "outside.wait_event(recorded)"]
# What the thread that captures, and what another one, cannot do under each mode. Another thread ends no capture.
MODES = {
    "default": (OWN, OWN[1:]),
    "thread_local": (OWN, OWN[1:]),
    "global": (OWN, OWN),
    "relaxed": (OWN[1:], OWN[1:]),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("call", OWN + FREE)
@pytest.mark.parametrize("own", [True, False])
def test_the_mode_says_which_waits_are_refused(mode, call, own, buffer):
    world, graph = World(buffer), acc.Graph(capture_error_mode=mode)
    calls = {
        "acc.synchronize()": acc.synchronize,
        "first.synchronize()": world.first.synchronize,
        "first.query()": world.first.query,
        "event.synchronize()": lambda: world.event.synchronize(),
        "first.wait_event(outside)": lambda: world.first.wait_event(world.recorded),
        "outside.synchronize()": world.outside.synchronize,
        "outside.query()": world.outside.query,
        "recorded.synchronize()": world.recorded.synchronize,
        "outside.wait_event(recorded)": lambda: world.outside.wait_event(world.recorded),
    }
    refused = call in MODES[mode][0 if own else 1]
    with world.first:
        world.begin(graph)
        found = result_of(calls[call]) if own else in_thread(lambda: result_of(calls[call]))
        assert ("cannot be captured" in str(found)) == refused, found
        assert refused or not isinstance(found, Exception), found
        assert world.first.is_capturing() == (not refused or not own)
        if world.first.is_capturing():
            world.first.wait_stream(world.second)
            graph.capture_end()
            graph.replay()
        else:
            graph.reset()
    acc.synchronize()


def result_of(function):
    """Return what a function returns, or the RuntimeError that it raises."""
    try:
        return function()
    except RuntimeError as error:
        return error
