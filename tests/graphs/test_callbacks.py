# SPDX-License-Identifier: Apache-2.0
"""Callbacks of a graph: when each is called in a replay, in which order, and what a replay that ends early does."""

import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

from helpers.graph_programs import read


class Gate:
    """A kernel that runs until the host opens the gate, which then stays open until it is shut."""

    def __init__(self, kernels):
        self.flag = l0rt.empty(64, kind="host").fill(0)
        self.view = np.frombuffer(self.flag, "i4")
        self.kernel = kernels["wait_until"]

    def wait(self, stream):
        with stream:
            self.kernel[1, 1](self.flag, 1)

    def set(self, value):
        self.view[0] = value


@pytest.mark.checks_data
@pytest.mark.parametrize("branch", ["the first stream", "another stream"])
def test_a_callback_is_called_where_it_was_captured(branch, buffer, kernels):
    """It sees what was before it, and waits for nothing behind it."""
    gate, note = Gate(kernels), l0rt.empty(64, kind="host").fill(0)
    first, second = l0rt.Stream(), l0rt.Stream()
    before, behind, seen = threading.Event(), threading.Event(), []
    sums = np.frombuffer(note, "f4")
    one = l0rt.empty(buffer.nbytes).fill(pattern=np.float32(1).tobytes())
    acc.synchronize()
    graph = acc.Graph()
    with acc.graph(graph, stream=first):
        second.wait_stream(first)
        on = first if branch == "the first stream" else second
        with on:
            kernels["vector_add"][2, 32](buffer, buffer, one, 64)
        note.copy_from(buffer[:64], stream=on, non_blocking=True)
        on.add_callback(lambda: (seen.append(float(sums[0])), before.set()))
        gate.wait(on)
        on.add_callback(lambda: (seen.append(int(gate.view[0])), behind.set()))
        first.wait_stream(second)
    try:
        for turn in range(1, 4):
            gate.set(0)
            graph.replay()
            assert before.wait(60), "a callback waits for what is behind it"
            assert not behind.is_set()
            gate.set(1)
            assert behind.wait(60)
            assert seen == [turn, 1]
            acc.synchronize()
            before.clear()
            behind.clear()
            seen.clear()
    finally:
        gate.set(1)
        acc.synchronize()
    graph.reset()


@pytest.mark.checks_data
def test_callbacks_of_replays_that_wait_for_each_other_are_called_in_their_order(buffer, kernels):
    gate, called, stream = Gate(kernels), [], l0rt.Stream()
    graph, done = acc.Graph(), threading.Event()
    with acc.graph(graph, stream=stream):
        gate.wait(stream)
        stream.add_callback(called.append, "first")
        buffer.fill(1, stream=stream)
        stream.add_callback(called.append, "second")
    with stream:
        for turn in range(5):
            graph.replay()
            stream.add_callback(called.append, turn)
    stream.add_callback(done.set)
    assert called == []
    gate.set(1)
    assert done.wait(60)
    assert called == [what for turn in range(5) for what in ("first", "second", turn)]
    graph.reset()


def test_callbacks_hold_nothing_once_they_were_called_and_the_graph_is_reset(buffer):
    before = l0rt.memory.host_memory_stats().get("active_bytes.current", 0)
    graph, stream, done = acc.Graph(), l0rt.Stream(), threading.Event()
    with acc.graph(graph, stream=stream):
        buffer.fill(1, stream=stream)
        stream.add_callback(int)
    with stream:
        for _ in range(3):
            graph.replay()
    stream.add_callback(done.set)
    graph.reset()
    assert done.wait(60)
    stream.synchronize()
    for thread in threading.enumerate():
        if thread.name == "l0rt callbacks":
            thread.join(60)
    assert l0rt.memory.host_memory_stats().get("active_bytes.current", 0) == before


@pytest.mark.checks_data
def test_a_graph_with_callbacks_keeps_them_when_a_node_is_changed(buffer):
    graph, stream, called = acc.Graph(), l0rt.Stream(), []
    done = threading.Semaphore(0)
    with acc.graph(graph, stream=stream):
        buffer.fill(1, stream=stream)
        stream.add_callback(lambda: (called.append(1), done.release()))
        buffer[:16].fill(2, stream=stream)
    for value in range(3, 7):
        graph.nodes[0].update(value=value)
        graph.replay()
        assert done.acquire(timeout=60)
        assert list(read(buffer)[15:17]) == [2, value]
    assert called == [1] * 4
    graph.reset()
