# SPDX-License-Identifier: Apache-2.0
"""What a capture records, which streams are in it, what cannot be captured, and how it ends."""

import gc
import threading
import time

import l0rt
import l0rt.accelerator as acc
import pytest

from helpers.graph_programs import BUFFER as NBYTES
from helpers.graph_programs import read
from helpers.graph_threads import in_thread


@pytest.mark.checks_data
def test_a_capture_runs_nothing_and_each_replay_runs_all(buffer):
    graph, stream = acc.Graph(), l0rt.Stream()
    other = l0rt.empty(NBYTES).fill(1)
    with acc.graph(graph, stream=stream):
        buffer.fill(3, stream=stream)
        l0rt.memcpy(other, buffer, NBYTES, stream)
    acc.synchronize()
    assert not read(buffer).any()
    for _ in range(3):
        buffer.fill(0, stream=stream)
        other.fill(0, stream=stream)
        with stream:
            graph.replay()
        assert (read(other) == 3).all()


def test_streams_are_captured_from_their_first_wait_to_the_end(buffer):
    graph, first, second, third = acc.Graph(), l0rt.Stream(), l0rt.Stream(), l0rt.Stream()
    assert not acc.is_current_stream_capturing()
    with acc.graph(graph, stream=first):
        assert acc.is_current_stream_capturing()
        second.wait_event(first.record_event())
        third.wait_stream(second)
        assert [s.is_capturing() for s in (first, second, third)] == [True] * 3
        buffer.fill(1, stream=third)
        second.wait_stream(third)
        first.wait_stream(second)
        with l0rt.Stream():
            assert not acc.is_current_stream_capturing()
    assert not any(s.is_capturing() for s in (first, second, third))
    assert not acc.is_current_stream_capturing()
    graph.replay()


def test_the_default_stream_can_be_captured(buffer):
    graph = acc.Graph()
    with graph as inside:
        assert inside is graph
        assert acc.current_stream().is_capturing()
        buffer.fill(1, stream=acc.current_stream())
    graph.replay()
    acc.synchronize()


def test_the_end_of_a_capture_that_a_call_has_ended_names_the_call(buffer):
    graph = acc.Graph()
    with l0rt.Stream() as stream:
        graph.capture_begin()
        with pytest.raises(RuntimeError, match=r"Stream\.query\(\) cannot be captured"):
            stream.query()
        with pytest.raises(RuntimeError, match=r"there is no graph: Stream\.query\(\) ended the capture"):
            graph.capture_end()
        with pytest.raises(RuntimeError, match="capture_end"):
            graph.capture_end()
        with pytest.raises(RuntimeError, match="nothing captured"):
            graph.replay()


def test_other_threads_cannot_wait_for_a_captured_stream_and_do_not_end_the_capture(buffer):
    graph, stream = acc.Graph(), l0rt.Stream()
    with acc.graph(graph, stream=stream):
        event = stream.record_event()
        for call in (stream.synchronize, stream.query, event.synchronize, event.query):
            error = in_thread(call)
            assert isinstance(error, RuntimeError), call
            assert "another thread captures" in str(error), call
        assert stream.is_capturing()
        buffer.fill(1, stream=stream)
    graph.replay()
    acc.synchronize()


def test_there_are_no_other_modes():
    with pytest.raises(ValueError, match="capture_error_mode must be one of"):
        acc.Graph(capture_error_mode="strict")


def test_events_of_a_capture_mean_nothing_outside(buffer):
    graph, stream, outside = acc.Graph(), l0rt.Stream(), l0rt.Stream()
    with acc.graph(graph, stream=stream):
        event = stream.record_event()
    for call in (event.query, event.synchronize, lambda: outside.wait_event(event), lambda: stream.wait_event(event)):
        with pytest.raises(RuntimeError, match="is over: record it again"):
            call()
    assert not outside.is_capturing()
    event.record(stream)
    event.synchronize()
    outside.wait_event(event)


def test_two_captures_do_not_merge(buffer):
    first, second = l0rt.Stream(), l0rt.Stream()
    one, two = acc.Graph(), acc.Graph()
    with first:
        one.capture_begin()
    with second:
        two.capture_begin()
        with pytest.raises(RuntimeError, match="an event of another capture cannot be captured"):
            second.wait_stream(first)
        two.reset()
    assert first.is_capturing()
    assert not second.is_capturing()
    one.capture_end()


def test_a_stream_that_was_not_joined_is_named(buffer):
    graph, stream, lost = acc.Graph(), l0rt.Stream(), l0rt.Stream()

    def capture():
        with acc.graph(graph, stream=stream):
            lost.wait_stream(stream)
            buffer.fill(1, stream=lost)

    with pytest.raises(RuntimeError, match=f"stream_id={lost.stream_id} .*was not joined"):
        capture()
    assert not lost.is_capturing()
    with acc.graph(graph, stream=stream):  # one that only waits has nothing to be joined
        lost.wait_stream(stream)
        buffer.fill(2, stream=stream)
    for _ in range(2):
        graph.replay()
    acc.synchronize()


@pytest.mark.checks_data
def test_forks_of_forks_are_joined_in_any_order(buffer):
    graph, streams = acc.Graph(), [l0rt.Stream() for _ in range(6)]
    parts = [buffer[512 * i : 512 * (i + 1)] for i in range(6)]
    with acc.graph(graph, stream=streams[0]):
        for before, after, part in zip(streams, streams[1:], parts[1:], strict=False):
            after.wait_stream(before)
            part.fill(7, stream=after)
        for stream in reversed(streams[1:]):
            streams[0].wait_stream(stream)
        for part in parts[1:]:
            l0rt.memcpy(parts[0], part, 512, streams[0])
            part.fill(8, stream=streams[0])
    for _ in range(3):
        buffer.fill(0)
        graph.replay()
        found = read(buffer)
        assert (found[:512] == 7).all()
        assert (found[512:3072] == 8).all()


@pytest.mark.checks_data
def test_callbacks_are_called_at_each_replay(buffer):
    graph, stream, called = acc.Graph(), l0rt.Stream(), []
    done = threading.Event()
    with acc.graph(graph, stream=stream):
        buffer.fill(4, stream=stream)
        stream.add_callback(called.append, 1)
        stream.add_callback(lambda: (called.append(2), done.set()))
    assert called == []
    for turn in range(1, 4):
        done.clear()
        graph.replay()
        assert done.wait(20)
        assert called == [1, 2] * turn
    with pytest.raises(TypeError, match="must be callable"), acc.graph(acc.Graph(), stream=stream):
        stream.add_callback(None)


def test_an_exception_in_the_block_is_the_one_that_is_raised(buffer):
    graph, stream = acc.Graph(), l0rt.Stream()
    before = acc.current_stream()

    def capture(block):
        with block:
            buffer.fill(1, stream=acc.current_stream())
            raise ZeroDivisionError

    for make in (lambda: acc.graph(graph, stream=stream), lambda: graph):
        with pytest.raises(ZeroDivisionError):
            capture(make())
        assert not stream.is_capturing()
        assert not before.is_capturing()
        assert acc.current_stream() == before
        assert repr(graph) == "<l0rt.Graph empty>"


def test_what_is_called_out_of_turn_is_refused(buffer):
    graph, stream = acc.Graph(), l0rt.Stream()
    for call in (graph.capture_end, graph.replay, graph.pool, lambda: graph.debug_dump("g.dot"), graph.instantiate):
        with pytest.raises(RuntimeError):
            call()
    with stream:
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="has a capture already"):
            graph.capture_begin()
        with pytest.raises(RuntimeError, match="the stream is in a capture already"):
            acc.Graph().capture_begin()
        with pytest.raises(RuntimeError, match="nothing captured yet"):
            graph.replay()
        error = in_thread(graph.capture_end)
        assert isinstance(error, RuntimeError)
        assert "on the thread on which it began" in str(error)
        graph.capture_end()
    with pytest.raises(RuntimeError, match="reset"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="keep_graph=True"):
        graph.instantiate()
    with pytest.raises(RuntimeError, match="not entered"):
        acc.graph(graph).__exit__(None, None, None)
    graph.reset()
    graph.reset()


def test_an_empty_graph_is_replayed():
    graph = acc.Graph()
    with acc.graph(graph):
        pass
    graph.replay()
    graph.replay()
    acc.synchronize()


def test_the_end_of_a_lease_or_thread_ends_the_capture(buffer):
    graph = acc.Graph()
    with acc.stream_pool.lease() as stream, stream:
        graph.capture_begin()
    assert not stream.is_capturing()
    with pytest.raises(RuntimeError, match="the end of a stream ended the capture"):
        graph.capture_end()

    stream = l0rt.Stream()

    def capture():
        with stream:
            graph.capture_begin()

    assert in_thread(capture) is None
    deadline = time.monotonic() + 20
    while stream.is_capturing() and time.monotonic() < deadline:  # a thread is joined a little before it has ended
        time.sleep(0.001)
    assert not stream.is_capturing()
    graph.reset()
    assert (stream.query(), repr(graph)) == (True, "<l0rt.Graph empty>")


def test_a_graph_that_is_dropped_while_it_captures_ends_the_capture(buffer):
    with l0rt.Stream() as stream:
        graph = acc.Graph()
        graph.capture_begin()
        buffer.fill(1, stream=stream)
        del graph
        gc.collect()
        assert not stream.is_capturing()
        before = l0rt.memory.memory_stats()["allocated_bytes.all.current"]
        after = l0rt.empty(1 << 16)  # from the default pool again
        assert l0rt.memory.memory_stats()["allocated_bytes.all.current"] > before
        assert all(block["segment_pool_id"] == (0, 0) for block in acc.memory_snapshot() if holds(block, after.ptr))


def holds(segment, address):
    return segment["address"] <= address < segment["address"] + segment["total_size"]


def test_a_capture_ends_inside_of_a_block_of_another_pool(buffer):
    graph, pool = acc.Graph(), l0rt.memory.MemPool()
    with l0rt.Stream():
        graph.capture_begin()
        with l0rt.memory.use_mem_pool(pool):
            with pytest.raises(RuntimeError, match="another order"):
                graph.capture_end()
            graph.reset()
            inside = l0rt.empty(1 << 16)
        outside = l0rt.empty(1 << 16)
    found = {segment["segment_pool_id"] for segment in acc.memory_snapshot() if holds(segment, inside.ptr)}
    assert found == {pool.id}
    assert {s["segment_pool_id"] for s in acc.memory_snapshot() if holds(s, outside.ptr)} == {(0, 0)}


def pool_of(address):
    return {segment["segment_pool_id"] for segment in acc.memory_snapshot() if holds(segment, address)}


def test_a_capture_that_cannot_begin_leaves_the_stream_as_it_was(buffer):
    class Held(l0rt.memory.MemPool):
        pass

    class Keeper:
        def __del__(self):
            saved.append(self.pool)

    saved = []
    pool, keeper = Held(), Keeper()
    pool.keeper, keeper.pool = keeper, pool
    del pool, keeper
    gc.collect()
    graph = acc.Graph(pool=saved[0])
    with l0rt.Stream() as stream:
        for _ in range(2):
            with pytest.raises(RuntimeError, match="pool was dropped"):
                graph.capture_begin()
            assert not stream.is_capturing()
            assert repr(graph) == "<l0rt.Graph empty>"
            for call in (graph.replay, graph.capture_end):
                with pytest.raises(RuntimeError, match="captured yet|needs a capture"):
                    call()
        buffer.fill(1, stream=stream)
        stream.synchronize()
        with acc.graph(graph, pool=acc.graph_pool_handle(), stream=stream):
            buffer.fill(2, stream=stream)
        graph.replay()
    del saved[0].keeper
    acc.synchronize()


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("end", ["a refused call", "the end of a lease", "a stream that is not joined"])
def test_a_capture_that_fails_leaves_the_pools_as_they_were(end, given, buffer):
    pool = acc.graph_pool_handle() if given else None
    graph, lost = acc.Graph(pool=pool), l0rt.Stream()
    with acc.stream_pool.lease() as stream, stream:
        graph.capture_begin()
        inside = l0rt.empty(1 << 16)
        assert pool_of(inside.ptr) == {tuple(graph.graph_pool)}
        if end == "a refused call":
            with pytest.raises(RuntimeError, match="cannot be captured"):
                stream.synchronize()
        elif end == "a stream that is not joined":
            lost.wait_stream(stream)
            buffer.fill(1, stream=lost)
    if end != "a stream that is not joined":
        outside = l0rt.empty(1 << 16)
        assert pool_of(outside.ptr) == {(0, 0)}  # at once: the capture is over
    with pytest.raises(RuntimeError, match="there is no graph"):
        graph.capture_end()
    assert graph.graph_pool == pool
    assert pool_of(l0rt.empty(1 << 16).ptr) == {(0, 0)}


def test_a_refused_call_leaves_the_threads_other_pools(buffer):
    graph, outer, inner = acc.Graph(), l0rt.memory.MemPool(), l0rt.memory.MemPool()
    with l0rt.Stream() as stream, l0rt.memory.use_mem_pool(outer):
        graph.capture_begin()
        with l0rt.memory.use_mem_pool(inner):
            with pytest.raises(RuntimeError, match="cannot be captured"):
                stream.query()
            first = l0rt.empty(1 << 16)
        second = l0rt.empty(1 << 16)
        graph.reset()
        third = l0rt.empty(1 << 16)
    assert [pool_of(made.ptr) for made in (first, second, third)] == [{inner.id}, {outer.id}, {outer.id}]


@pytest.mark.parametrize("block", [lambda graph: graph, acc.graph])
def test_a_block_gives_back_what_is_cached_of_all_memory(block, buffer):
    def reserved():
        return l0rt.memory.host_memory_stats()["allocated_bytes.current"]  # cached included

    l0rt.empty(64 << 20).free()
    l0rt.empty(64 << 20, kind="host").free()
    acc.synchronize()
    device, host = l0rt.memory.memory_stats()["reserved_bytes.all.current"], reserved()
    with block(acc.Graph()):
        assert l0rt.memory.memory_stats()["reserved_bytes.all.current"] <= device - (64 << 20)
        assert reserved() <= host - (64 << 20)
