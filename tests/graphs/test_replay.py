# SPDX-License-Identifier: Apache-2.0
"""Replays: on which streams, of what memory, how often; what a graph keeps, and what it gives back."""

import gc
import html
import html.parser
import re
import threading
import xml.etree.ElementTree

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

from helpers.graph_programs import BUFFER as NBYTES
from helpers.graph_programs import KERNELS, read

MIB = 1 << 20


def reserved():
    return l0rt.memory.memory_stats()["reserved_bytes.all.current"]


@pytest.mark.checks_data
def test_replays_on_several_streams_run_one_after_another(buffer, kernels):
    graph, streams = acc.Graph(), [l0rt.Stream() for _ in range(4)]
    one, total = l0rt.empty(256).fill(pattern=np.float32(1).tobytes()), l0rt.empty(256).fill(0)
    acc.synchronize()
    with acc.graph(graph):
        kernels["vector_add"][2, 32](total, total, one, 64)
    for turn in range(40):
        with streams[turn % 4]:
            graph.replay()
    acc.synchronize()
    assert (read(total, np.float32) == 40).all()


@pytest.mark.checks_data
def test_a_replay_is_in_the_order_of_its_stream(buffer):
    graph, stream = acc.Graph(), l0rt.Stream()
    big = l0rt.empty(4 * MIB)
    copy = l0rt.empty(4 * MIB)
    with acc.graph(graph):
        copy.copy_from(big, stream=acc.current_stream())
    for value in range(1, 6):
        big.fill(value, stream=stream)
        with stream:
            graph.replay()
        big.fill(0, stream=stream)
        assert (read(copy) == value).all()


@pytest.mark.checks_data
def test_a_graph_of_one_engine_is_replayed_on_a_stream_of_another(buffer):
    graph, copies = acc.Graph(), acc.stream_pool.copy_stream()
    with acc.graph(graph):
        buffer.fill(pattern=bytes(range(8)), stream=acc.current_stream())
    with copies:
        graph.replay()
    copies.synchronize()
    assert read(buffer).tobytes() == bytes(range(8)) * (NBYTES // 8)
    with acc.graph(graph2 := acc.Graph(), stream=copies):
        buffer.fill(pattern=bytes(range(16)), stream=copies)
    graph2.replay()
    assert read(buffer).tobytes() == bytes(range(16)) * (NBYTES // 16)


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_a_graph_stays_on_its_device(buffer):
    graph = acc.Graph()
    with acc.device_index(1):
        other = l0rt.empty(NBYTES).fill(0)
        acc.synchronize()
        with acc.graph(graph):
            other.fill(3, stream=acc.current_stream())
    assert acc.current_device_index() == 0
    for value in (3, 4):
        graph.nodes[0].update(value=value)
        graph.replay()  # on device 1's current stream
        acc.synchronize(1)
        assert (other.numpy() == value).all()


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
@pytest.mark.parametrize("begins", [0, 1])
def test_one_capture_has_streams_of_two_devices(begins, kernels):
    """Forks to the other device and joins, with copies between both, memory of the pool on both, and kernels."""
    ends = 1 - begins
    with l0rt.Module(KERNELS, device=ends) as module:
        near, far = kernels["vector_add"] if begins == 0 else None, module["vector_add"]
        here, there = l0rt.Stream(device=begins), l0rt.Stream(device=ends)
        x, z = l0rt.empty(256, device=begins), l0rt.empty(256, device=begins).fill(0)
        kept = l0rt.empty(256, device=ends).fill(0)
        acc.synchronize(0)
        acc.synchronize(1)
        graph = acc.Graph()
        with acc.graph(graph, stream=here):
            if near is not None:
                near[2, 32](x, x, x, 64)  # 2 x
            there.wait_stream(here)
            with there:
                y = l0rt.empty(256)
                assert y.device.index == ends
                l0rt.memcpy(y, x, 256, there)
                far[2, 32](kept, y, y, 64)
            l0rt.memcpy(z, x, 256, here)
            here.wait_stream(there)
            l0rt.memcpy(x, kept, 256, here)
        assert {node.stream.device.index for node in graph.nodes} == {0, 1}
        for value in (1, 2, 3):
            x.fill(pattern=np.float32(value).tobytes(), stream=here)
            with here:
                graph.replay()
            acc.synchronize(0)
            acc.synchronize(1)
            doubled = value * (2 if near is not None else 1)
            for buffer, expected in ((z, doubled), (kept, 2 * doubled), (x, 2 * doubled), (y, doubled)):
                assert (buffer.numpy("float32") == expected).all()
        graph.reset()


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_captures_of_two_threads_and_devices_interleave(kernels):
    steps, found = threading.Barrier(2, timeout=60), {}

    def work(device):
        with acc.device_index(device):
            stream, side = l0rt.Stream(), l0rt.Stream()
            with l0rt.Module(KERNELS) as module:
                add = module["vector_add"]
                x, total = l0rt.empty(256).fill(pattern=np.float32(1 + device).tobytes()), l0rt.empty(256).fill(0)
                acc.synchronize()
                graph = acc.Graph()
                with stream:
                    steps.wait()
                    graph.capture_begin()
                    for _ in range(10):
                        steps.wait()
                        add[2, 32](total, total, x, 64)
                        side.wait_stream(stream)
                        with side:
                            between = l0rt.empty(256)
                            add[2, 32](between, total, x, 64)
                            add[2, 32](total, between, x, 64)
                        del between
                        stream.wait_stream(side)
                    steps.wait()
                    graph.capture_end()
                    for _ in range(5):
                        graph.replay()
                found[device] = read(total, np.float32)
                graph.reset()

    threads = [threading.Thread(target=work, args=(device,)) for device in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found[0] == 150).all()
    assert (found[1] == 300).all()


@pytest.mark.checks_data
def test_two_thousand_replays_behind_each_other_all_run(kernels):
    one, total = l0rt.empty(256).fill(pattern=np.float32(1).tobytes()), l0rt.empty(256).fill(0)
    graph, side = acc.Graph(), l0rt.Stream()
    acc.synchronize()
    with acc.graph(graph):
        stream = acc.current_stream()
        kernels["vector_add"][2, 32](total, total, one, 64)
        side.wait_stream(stream)
        with side:
            kernels["vector_add"][2, 32](total, total, one, 64)
        stream.wait_stream(side)
    for _ in range(2000):
        graph.replay()
    assert (read(total, np.float32) == 4000).all()


@pytest.mark.checks_data
def test_more_replays_than_there_are_lists_may_wait_for_what_the_program_does_next(kernels):
    """As lists, a graph has eight sets of them: the replays beyond wait, and have more sets."""
    graph, flag = acc.Graph(), l0rt.empty(4, kind="host").fill(0)
    x = l0rt.empty(4096)
    acc.synchronize()
    with acc.graph(graph):
        x.fill(7, stream=acc.current_stream())
    kernels["wait_until"][1, 1](flag, 1)
    for _ in range(11):
        graph.replay()
    assert not acc.current_stream().query()
    np.frombuffer(flag, "i4")[:] = 1
    acc.synchronize()
    assert (read(x, np.uint8) == 7).all()


def test_every_replay_behind_others_runs_its_kernels(walkers, extent):
    """The simulated kernel device counts what Intel's driver has it run: two fills each."""
    graph, side, number = acc.Graph(), l0rt.Stream(), extent(100, 2000)
    x, y = l0rt.empty(4096), l0rt.empty(4096)
    acc.synchronize()
    with acc.graph(graph):
        stream = acc.current_stream()
        x.fill(1, stream=stream)
        side.wait_stream(stream)
        y.fill(2, stream=side)
        stream.wait_stream(side)
    before = walkers()
    for _ in range(number):
        graph.replay()
    acc.synchronize()
    assert walkers() - before == 2 * number


def test_replays_behind_each_other_execute_no_list_that_may_still_run(buffer, kernels):
    """They stand behind copies that take their time. A driver may lose such an execution, and never end."""
    big, other, streams = l0rt.empty(32 * MIB).fill(0), l0rt.empty(32 * MIB).fill(0), [l0rt.Stream() for _ in range(3)]
    x, total = l0rt.empty(256).fill(pattern=np.float32(1).tobytes()), l0rt.empty(256).fill(0)
    acc.synchronize()
    graph = acc.Graph()
    with acc.graph(graph, stream=streams[0]):
        for _ in range(3):
            kernels["vector_add"][2, 32](total, total, x, 64)
            streams[1].wait_stream(streams[0])
            buffer.fill(1, stream=streams[1])
            streams[0].wait_stream(streams[1])
    for turn in range(30):
        with streams[turn % 3 if turn > 20 else 0] as stream:
            if turn % 7 == 0:
                other.copy_from(big, stream=stream)
            graph.replay()
    acc.synchronize()
    graph.reset()


# Memory.


@pytest.mark.checks_data
def test_memory_of_a_capture_has_the_same_addresses_in_each_replay(buffer):
    graph, stream = acc.Graph(), l0rt.Stream()
    with acc.graph(graph, stream=stream):
        made = l0rt.empty(NBYTES)
        made.fill(9)
        buffer.copy_from(made, stream=stream)
        address = made.ptr
        del made
        again = l0rt.empty(NBYTES)
        assert again.ptr == address  # freed inside of the capture: reused in the order of the stream
        again.fill(8)
    acc.empty_cache()
    others = [l0rt.empty(NBYTES).fill(1) for _ in range(64)]
    for _ in range(3):
        buffer.fill(0)
        graph.replay()
        acc.synchronize()
        assert (read(buffer) == 9).all()
        assert (read(again) == 8).all()
    assert all((read(other) == 1).all() for other in others)


def test_what_another_captured_stream_uses_is_not_reused_before_the_capture_ends(buffer):
    graph, stream, side = acc.Graph(), l0rt.Stream(), l0rt.Stream()
    with acc.graph(graph, stream=stream):
        made = l0rt.empty(NBYTES)
        address = made.ptr
        side.wait_stream(stream)
        made.fill(1, stream=side)
        made.free()
        again = l0rt.empty(NBYTES)
        assert again.ptr != address
        stream.wait_stream(side)
    graph.replay()
    acc.synchronize()


def test_the_pool_is_counted_bounded_and_given_back(buffer):
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    before = reserved()
    graph = acc.Graph()
    with acc.graph(graph):
        for _ in range(20):
            made = l0rt.empty(4 * MIB)
            made.fill(1)
            del made
    inside = reserved()
    assert 4 * MIB <= inside - before <= 24 * MIB  # a segment, where there is no virtual memory
    first, second = graph.pool()
    share = f"reserved_bytes_by_private_pools.{first}_{second}.all.current"
    assert l0rt.memory.memory_stats()[share] == inside - before
    for _ in range(10):
        graph.replay()
    acc.synchronize()
    acc.empty_cache()
    assert reserved() == inside  # the graph uses it, although it is free
    graph.reset()
    acc.empty_cache()
    assert reserved() == before


def test_graphs_share_a_pool(buffer):
    handle = acc.graph_pool_handle()
    assert len(handle) == 2
    assert all(type(number) is int for number in handle)
    one, two, alone = acc.Graph(pool=handle), acc.Graph(), acc.Graph()
    assert one.graph_pool == handle
    assert two.graph_pool is None
    addresses = []
    for graph, pool in ((one, None), (two, one.pool()), (alone, None)):
        with acc.graph(graph, pool=pool, stream=acc.default_stream()):
            made = l0rt.empty(MIB)
            made.fill(1)
            addresses.append(made.ptr)
            del made
    assert one.pool() == two.pool() == handle != alone.pool()
    assert addresses[0] == addresses[1] != addresses[2]
    one.reset()
    acc.empty_cache()
    two.replay()
    acc.synchronize()
    for wrong, error in ((tuple(alone.pool())[::-1], ValueError), ("pool", TypeError), (7, TypeError)):
        with pytest.raises(error):
            acc.Graph(pool=wrong)


# What a graph keeps.


@pytest.mark.checks_data
def test_a_module_lives_as_long_as_graphs_that_launch_it(buffer):
    module = l0rt.Module(KERNELS)
    graph, x = acc.Graph(), l0rt.empty(256).fill(pattern=np.float32(2).tobytes())
    acc.synchronize()
    with acc.graph(graph):
        module["vector_add"][2, 32](x, x, x, 64)
        with pytest.raises(TypeError, match="takes 4 arguments"):
            module["vector_add"][2, 32](x)
    module.close()
    del module
    gc.collect()
    for _ in range(3):
        graph.replay()
    assert (read(x, np.float32) == 16).all()


@pytest.mark.checks_data
def test_keep_graph_builds_when_it_is_told_to(buffer):
    graph = acc.Graph(keep_graph=True)
    with acc.graph(graph):
        buffer.fill(3, stream=acc.current_stream())
    for _ in range(2):
        graph.instantiate()
        buffer.fill(0)
        graph.replay()
        assert (read(buffer) == 3).all()


def test_a_graph_that_is_dropped_while_it_runs_goes_later(buffer):
    big = l0rt.empty(16 * MIB)
    for _ in range(5):
        graph = acc.Graph()
        with acc.graph(graph):
            for _ in range(10):
                big.fill(1, stream=acc.current_stream())
        graph.replay()
        del graph
    acc.synchronize()
    acc.Graph()  # what is left goes with the next graph


def test_reset_waits_for_the_replays(buffer):
    graph = acc.Graph()
    big = l0rt.empty(16 * MIB)
    with acc.graph(graph):
        big.fill(1, stream=acc.current_stream())
    for _ in range(20):
        graph.replay()
    graph.reset()
    assert repr(graph) == "<l0rt.Graph empty>"
    with pytest.raises(RuntimeError, match="nothing captured"):
        graph.replay()


def test_the_dump_has_nodes_streams_and_events(buffer, kernels, tmp_path):
    graph, stream, side = acc.Graph(), l0rt.Stream(), l0rt.Stream()
    graph.enable_debug_mode()
    with acc.graph(graph, stream=stream):
        side.wait_stream(stream)
        kernels["store"][1, 1](buffer, 1)
        buffer.fill(2, stream=side)
        stream.wait_stream(side)
        stream.add_callback(print, "at each replay")
    graph.debug_dump(tmp_path / "g.dot")
    text = (tmp_path / "g.dot").read_text()
    for expected in (
        "digraph captured {",
        'n0 [label="begin"];',
        "n0 -> n1 [style=dashed",
        '[label="kernel store"];',
        '[label="fill 4.00 KiB"];',
        "n3 -> n4 [style=dashed",
        '[label="callback print"];',
        f"stream_id={side.stream_id}",
    ):
        assert expected in text, expected


def test_the_page_has_nodes_streams_sizes_and_events(buffer, kernels, tmp_path):
    graph, stream, side, third = acc.Graph(), l0rt.Stream(), l0rt.Stream(), l0rt.Stream()

    def named():
        pass

    named.__name__ = "<script>&"
    with acc.graph(graph, stream=stream):
        side.wait_stream(stream)
        kernels["store"][1, 1](buffer, 1)
        buffer[:8].fill(2, stream=side)
        third.wait_stream(side)  # hands on what it waits for
        stream.wait_stream(third)
        stream.add_callback(named)
    text = graph.to_html(tmp_path / "g.html")
    assert (tmp_path / "g.html").read_text(encoding="utf-8") == text
    for expected in (
        "<title>Graph of 3 nodes</title>",
        "Streams: 3. Events that are waited for: 2. Copied and filled: 8 bytes.",
        "<td>kernel</td><td>store</td>",
        f"<td>fill</td><td></td><td>device={side.device} stream_id={side.stream_id}</td><td>8</td><td>begin</td>",
        "<td>callback</td><td>&lt;script&gt;&amp;</td>",
        "</td><td></td><td>3</td></tr>",
    ):
        assert expected in text, expected
    assert text.count('class="event"') == 2
    assert "<script" not in text
    assert "http" not in text
    parser = html.parser.HTMLParser()
    parser.feed(text)
    xml.etree.ElementTree.fromstring(re.search(r"<svg.*</svg>", text, re.DOTALL)[0])
    for wrong in (3, 1.5, b"\0"):
        with pytest.raises((TypeError, ValueError, OSError)):
            graph.to_html(wrong)
    graph.reset()
    with pytest.raises(RuntimeError, match="nothing captured"):
        graph.to_html()
    with acc.graph(graph):
        pass
    assert "Graph of 0 nodes" in graph.to_html()


@pytest.mark.checks_data
def test_a_profile_shows_each_replay_as_one_command(buffer, kernels):
    graph, stream, side = acc.Graph(), l0rt.Stream(), l0rt.Stream()
    big = l0rt.empty(16 * MIB)
    with l0rt.profiler.profile() as whole:
        with acc.graph(graph, stream=stream):
            side.wait_stream(stream)
            kernels["store"][1, 1](buffer, 1)
            big.fill(2, stream=side)
            stream.wait_stream(side)
        with stream:
            for _ in range(3):
                graph.replay()
            buffer.fill(1, stream=stream)
    replays = [record for record in whole.events if record.kind == "graph"]
    assert [record.name for record in replays] == ["graph of 4 nodes"] * 3
    assert all(record.stream == stream.stream_id and record.duration_ns > 0 for record in replays)
    assert all(a.end_ns <= b.begin_ns for a, b in zip(replays, replays[1:], strict=False))
    assert [record.kind for record in whole.events if record.kind in ("kernel", "fill")] == ["fill"]
    assert "graph of 4 nodes" in whole.table()


# Faults.


def faulty(kernels, buffer, side):
    """A graph of which the second stream's launch fails."""
    graph = acc.Graph()
    with acc.graph(graph):
        stream = acc.current_stream()
        side.wait_stream(stream)
        kernels["store"].launch(l0rt.Pointer(1 << 46), 1, groups=1, group_size=1, stream=side)
        buffer.fill(3, stream=stream)
        stream.wait_stream(side)
        buffer[:8].fill(4, stream=stream)
    return graph


@pytest.mark.checks_data
@pytest.mark.survives_faults
@pytest.mark.parametrize("wait", ["stream", "query", "device", "event", "reset"])
def test_a_launch_that_fails_in_a_replay_is_told_of_once(wait, buffer, kernels):
    graph, stream = faulty(kernels, buffer, l0rt.Stream()), l0rt.Stream()
    for _ in range(2):
        with stream:
            graph.replay()
            event = stream.record_event()
        waits = {
            "stream": stream.synchronize,
            "query": lambda: until_idle(stream),
            "device": acc.synchronize,
            "event": event.synchronize,
            "reset": graph.reset,
        }
        with pytest.raises(l0rt.KernelFaultError):
            waits[wait]()
        stream.synchronize()
        acc.synchronize()
        assert event.query()
        assert read(buffer)[:9].tolist() == [4] * 8 + [3]
        if wait == "reset":
            assert repr(graph) == "<l0rt.Graph empty>"
            graph.reset()
            graph = faulty(kernels, buffer, l0rt.Stream())


def until_idle(stream):
    while not stream.query():
        pass


@pytest.mark.checks_data
@pytest.mark.survives_faults
def test_the_stream_that_replays_last_tells_of_a_fault(buffer, kernels):
    graph, streams = faulty(kernels, buffer, l0rt.Stream()), [l0rt.Stream() for _ in range(3)]
    good = acc.Graph()
    with acc.graph(good):
        kernels["store"].launch(buffer, 5, groups=1, group_size=8)
    for stream in streams:
        with stream:
            good.replay()
            graph.replay()
    with pytest.raises(l0rt.KernelFaultError):
        streams[2].synchronize()
    for one in (graph, good):
        faults(one.reset)  # of an earlier replay
        assert repr(one) == "<l0rt.Graph empty>"
    for stream in streams:
        faults(stream.synchronize)  # of a graph of the driver's own, each stream tells
    for stream in streams:
        stream.synchronize()
    acc.synchronize()


def faults(wait):
    try:
        wait()
    except l0rt.KernelFaultError:
        return True
    return False


@pytest.mark.checks_data
@pytest.mark.survives_faults
def test_a_graph_that_failed_is_dropped_in_silence(buffer, kernels):
    graphs = [faulty(kernels, buffer, l0rt.Stream()) for _ in range(3)]
    while graphs:
        graphs.pop().replay()
    acc.empty_cache()
    told = sum(1 for _ in range(4) if faults(acc.synchronize))
    assert told <= 3  # those of graphs that were there still
    acc.synchronize()
    acc.empty_cache()
    buffer.fill(1)
    assert (read(buffer) == 1).all()
