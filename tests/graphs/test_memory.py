# SPDX-License-Identifier: Apache-2.0
"""Memory of a capture: what any thread allocates for its streams stays the graph's, as long as there is the graph."""

import threading

import l0rt
import l0rt.accelerator as acc
import l0rt.memory
import pytest

from helpers.door import Door
from helpers.graph_threads import in_thread

NBYTES = 1 << 12


@pytest.fixture
def source():
    made = l0rt.empty(NBYTES).fill(7)
    acc.synchronize()
    return made


def by_buffer(stream):
    return l0rt.empty(NBYTES, stream=stream)


def by_current_stream(stream):
    with stream:
        return l0rt.empty(NBYTES)


def in_a_block(stream):
    with l0rt.memory.use_mem_pool(l0rt.memory.MemPool()):
        return l0rt.empty(NBYTES, stream=stream)


def pinned(stream):
    return l0rt.empty(NBYTES, kind="host", stream=stream)


def pool_of(buffer):
    return [tuple(segment["segment_pool_id"]) for segment in l0rt.memory.memory_snapshot()
            if any(block["address"] == buffer.ptr for block in segment["blocks"])]  # fmt: skip


WAYS = [by_buffer, by_current_stream, in_a_block, pinned]


def here(function):
    return function()


@pytest.mark.checks_data
@pytest.mark.parametrize("run", [here, in_thread])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("joins", [False, True])
def test_a_replay_leaves_memory_that_was_allocated_later_alone(source, run, way, joins):
    stream, result, graph = l0rt.Stream(), l0rt.empty(NBYTES), acc.Graph()
    side = l0rt.Stream() if joins else stream

    def issue():
        between = way(side)
        between.copy_from(source, non_blocking=True, stream=side)
        result.copy_from(between, non_blocking=True, stream=side)
        return between.ptr

    with acc.graph(graph, stream=stream):
        side.wait_stream(stream)
        place = run(issue)
        stream.wait_stream(side)
    l0rt.memory.empty_cache()
    l0rt.memory.empty_host_cache()
    kept = [way(side).fill(1) for _ in range(8)]
    acc.synchronize()
    assert place not in [buffer.ptr for buffer in kept]
    graph.replay()
    acc.synchronize()
    assert [set(buffer.numpy().tolist()) for buffer in kept] == [{1}] * 8
    assert set(result.numpy().tolist()) == {7}


def test_the_c_api_allocates_for_a_captured_stream_from_the_graphs_pool():
    door, stream, graph = Door(), l0rt.Stream(), acc.Graph()

    def pair():
        return door.malloc(NBYTES, -1, None), door.host_malloc(NBYTES, -1)

    def allocate():
        with stream:
            place, host = pair()
        door.free(place)
        door.host_free(host)
        return place, host

    with acc.graph(graph, stream=stream):
        by_another, by_this = in_thread(allocate), allocate()
    assert by_another == by_this  # freed, and allocated again
    with stream:
        kept = [pair() for _ in range(8)]
    assert not set(by_this) & {place for pair in kept for place in pair}
    for place, host in kept:
        door.free(place)
        door.host_free(host)
    graph.reset()


def test_threads_that_allocate_on_other_streams_meanwhile_have_the_default_pool():
    stream, other, graph = l0rt.Stream(), l0rt.Stream(), acc.Graph()

    with acc.graph(graph, stream=stream):
        outside, inside = in_thread(lambda: [l0rt.empty(NBYTES, stream=on) for on in (other, stream)])
        assert (pool_of(outside), pool_of(inside)) == ([(0, 0)], [graph.pool()])


def test_two_captures_have_a_pool_each_whichever_thread_allocates():
    streams, graphs, pools = [l0rt.Stream(), l0rt.Stream()], [acc.Graph(), acc.Graph()], {}
    begun, done = threading.Barrier(2, timeout=60), threading.Barrier(2, timeout=60)

    def capture(i):
        with acc.graph(graphs[i], stream=streams[i], capture_error_mode="thread_local"):
            begun.wait()
            buffer = l0rt.empty(NBYTES, stream=streams[1 - i])
            done.wait()
            pools[i] = pool_of(buffer)
            done.wait()

    threads = [threading.Thread(target=capture, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pools == {0: [graphs[1].pool()], 1: [graphs[0].pool()]}


def test_a_graph_keeps_the_pool_of_a_block_inside_of_its_capture(source):
    pool, stream, graph = l0rt.memory.MemPool(), l0rt.Stream(), acc.Graph()
    with acc.graph(graph, stream=stream):
        for _ in range(2):
            with l0rt.memory.use_mem_pool(pool):
                l0rt.empty(NBYTES).copy_from(source, non_blocking=True)
        assert pool.use_count() == 2
    assert pool.use_count() == 2
    pool.empty_cache()
    assert pool.snapshot()
    number = pool.id
    del pool
    assert l0rt.memory.memory_snapshot(number)
    graph.replay()
    acc.synchronize()
    graph.reset()
    assert not l0rt.memory.memory_snapshot(number)


def test_pinned_memory_of_a_graph_goes_back_with_it(source):
    stream, graph = l0rt.Stream(), acc.Graph()

    def reserved():
        return l0rt.memory.host_memory_stats().get("allocated_bytes.current", 0)

    l0rt.memory.empty_host_cache()
    before = reserved()
    with acc.graph(graph, stream=stream):
        l0rt.empty(1 << 24, kind="host")[:NBYTES].copy_from(source, non_blocking=True)
    l0rt.memory.empty_host_cache()
    assert reserved() >= before + (1 << 24)
    graph.reset()
    assert reserved() == before


def test_pinned_memory_of_a_node_cannot_be_captured():
    stream, graph = l0rt.Stream(), acc.Graph()
    with stream:
        graph.capture_begin()
        with pytest.raises(RuntimeError, match=r"numa=.* cannot be captured"):
            l0rt.empty(NBYTES, kind="host", numa=0)
        graph.reset()


@pytest.mark.checks_data
def test_a_tree_of_graphs_shares_one_pool_by_checkpoints(source):
    """A is followed by B or by C: each is captured after A, in the same memory, and the path can change at any time."""
    handle, results = acc.graph_pool_handle(), bytearray(NBYTES)
    a, b, c = acc.Graph(), acc.Graph(), acc.Graph()
    with acc.graph(a, pool=handle):
        x, scratch = l0rt.empty(NBYTES), l0rt.empty(NBYTES)
        scratch.copy_from(source)
        x.copy_from(scratch)
        del scratch
    after_a = l0rt.memory.get_checkpoint_state(0, handle)
    assert after_a.live_addresses == {x.ptr}
    with acc.graph(b, pool=handle):
        y = l0rt.empty(NBYTES)
        y.copy_from(x)
    address, after_b = y.ptr, l0rt.memory.get_checkpoint_state(0, handle)
    assert l0rt.memory.set_checkpoint_pool_state(0, after_a, [y]) == []
    with acc.graph(c, pool=handle):
        z = l0rt.empty(NBYTES)
        z.fill(9)
    assert z.ptr == address                                 # B's memory, of which nothing is left
    after_c = l0rt.memory.get_checkpoint_state(0, handle)
    result = z
    for state, graph, byte in ((after_b, b, 7), (after_c, c, 9), (after_c, c, 9), (after_b, b, 7)):
        (result,) = l0rt.memory.set_checkpoint_pool_state(0, state, [result])
        assert l0rt.memory.check_pool_live_allocations(0, handle, [x.ptr, address])
        assert result.ptr == address
        x.fill(0)
        a.replay()
        graph.replay()
        assert bytes(result.copy_to(results)) == bytes([byte]) * NBYTES
