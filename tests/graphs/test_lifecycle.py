# SPDX-License-Identifier: Apache-2.0
"""Hooks of graphs, callbacks at their end, and objects that live as long."""

import gc
import sys
import weakref

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt import memory
from l0rt.graphs import lifecycle

GLOBAL = {
    name: getattr(xpu.graphs, f"register_graph_{name}_hook")
    for name in ("capture_start", "capture_end", "instantiate", "replay_start", "replay_end")
}
OWN = {
    "capture_start": "register_capture_start_hook", "capture_end": "register_capture_end_hook",
    "instantiate": "register_post_instantiate_hook", "replay_start": "register_replay_start_hook",
    "replay_end": "register_replay_end_hook",
}  # fmt: skip
CAPTURED = ["capture_start", "capture_end", "instantiate"]
REPLAYED = ["replay_start", "replay_end"]


@pytest.fixture(autouse=True)
def no_hook_stays():
    yield
    assert lifecycle.listening == []
    acc.synchronize()
    gc.collect()


@pytest.fixture
def buffer():
    return l0rt.empty(64).fill(0)


def captured(graph, buffer):
    with acc.graph(graph):
        buffer.fill(7)
    return graph


@pytest.mark.parametrize("cls", [acc.Graph, xpu.XPUGraph])
@pytest.mark.parametrize("whose", ["all", "own"])
def test_hooks_are_called_in_the_order_of_a_graphs_life(cls, whose, buffer):
    seen, graph = [], cls()
    handles = []
    for name in GLOBAL:
        register = GLOBAL[name] if whose == "all" else getattr(graph, OWN[name])
        handles.append(register(lambda g, name=name: seen.append((name, g is graph))))
    captured(graph, buffer)
    assert seen == [(name, True) for name in CAPTURED]
    graph.replay()
    graph.replay()
    assert seen[3:] == [(name, True) for name in REPLAYED * 2]
    graph.reset()
    captured(graph, buffer)
    assert len(seen) == 10
    for handle in handles:
        handle.remove()
        handle.remove()
    graph.replay()
    graph.reset()
    captured(graph, buffer)
    assert len(seen) == 10


@pytest.mark.parametrize("explicit", [False, True])
def test_a_kept_graph_is_instantiated_before_its_first_replay(explicit, buffer):
    seen = []
    with xpu.graphs.register_graph_instantiate_hook(lambda g: seen.append("instantiate")):
        graph = acc.Graph(keep_graph=True)
        graph.register_replay_start_hook(lambda g: seen.append("replay"))
        captured(graph, buffer)
        assert seen == []
        if explicit:
            graph.instantiate()
            assert seen == ["instantiate"]
            graph.instantiate()
            assert seen.pop() == "instantiate"
        graph.replay()
        graph.replay()
        assert seen == ["instantiate", "replay", "replay"]


def test_hooks_of_all_graphs_come_first_and_see_the_capture(buffer):
    seen, graph = [], acc.Graph()
    graph.register_capture_start_hook(lambda g: seen.append(("own", acc.is_current_stream_capturing())))
    with GLOBAL["capture_start"](lambda g: seen.append(("all", acc.is_current_stream_capturing()))):
        captured(graph, buffer)
    assert seen == [("all", True), ("own", True)]


def test_what_a_hook_gives_to_the_stream_is_captured(buffer):
    graph, other = acc.Graph(), l0rt.empty(64)
    graph.register_capture_start_hook(lambda g: other.fill(3))
    captured(graph, buffer)
    assert len(graph.nodes) == 2


def fail(*args):
    raise KeyError("from a hook")


@pytest.mark.parametrize("name", GLOBAL)
def test_an_exception_of_a_hook_of_all_graphs_is_reported(name, buffer, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failed: told.append(failed.exc_type))
    with GLOBAL[name](fail):
        graph = captured(acc.Graph(), buffer)
        graph.replay()
    assert told == [KeyError]


def test_an_exception_of_a_graphs_own_hook_is_the_callers(buffer):
    graph, seen = acc.Graph(), []
    with graph.register_capture_start_hook(fail):
        for begin in (lambda: captured(graph, buffer), graph.capture_begin):
            with pytest.raises(KeyError, match="from a hook"):
                begin()
            assert not acc.is_current_stream_capturing()
    captured(graph, buffer)
    graph.register_replay_end_hook(lambda g: seen.append("end"))
    with graph.register_replay_start_hook(fail), pytest.raises(KeyError, match="from a hook"):
        graph.replay()
    assert seen == []
    graph.replay()
    assert seen == ["end"]


def test_the_end_hook_is_called_if_the_replay_fails(buffer, monkeypatch):
    seen, graph = [], acc.Graph()
    graph.register_replay_end_hook(lambda g: seen.append("end"))
    graph.register_replay_start_hook(lambda g: g.reset())
    captured(graph, buffer)
    with pytest.raises(RuntimeError, match="nothing captured"):
        graph.replay()
    assert seen == ["end"]


@pytest.mark.parametrize("end", ["reset", "drop", "drop without a capture"])
@pytest.mark.parametrize("synchronizes", [False, True])
def test_callbacks_are_called_once_when_the_graph_ends(end, synchronizes, buffer, monkeypatch):
    told, seen, graph = [], [], acc.Graph()
    monkeypatch.setattr(sys, "unraisablehook", lambda failed: told.append(failed.exc_type))
    how = {"synchronize_before_release": synchronizes}
    graph.register_destroy_callback(lambda: seen.append("first"), **how)
    graph.register_destroy_callback(fail, **how)
    graph.register_destroy_callback(lambda: seen.append("removed"), **how).remove()
    graph.register_destroy_callback(lambda: seen.append("last"), **how)
    if "without" not in end:
        captured(graph, buffer).replay()
    if end == "reset":
        graph.reset()
        assert seen == ["first", "last"]
        captured(graph, buffer)
    del graph
    gc.collect()
    assert seen == ["first", "last"]
    assert told == [KeyError]


@pytest.mark.parametrize("end", ["reset", "drop", "remove"])
def test_an_object_is_kept_until_the_graph_ends(end, buffer):
    graph, source = acc.Graph(), l0rt.empty(64).fill(9)
    gone, where = weakref.ref(source), source.ptr
    with acc.graph(graph):
        buffer.copy_from(source, non_blocking=True)
    handle = graph.retain_object(source, synchronize_before_release=True)
    del source
    gc.collect()
    assert gone().ptr == where
    graph.replay()
    acc.synchronize()
    if end == "reset":
        graph.reset()
    elif end == "remove":
        handle.remove()
    else:
        del graph
    gc.collect()
    assert gone() is None


def test_a_hook_learns_which_graphs_have_ended(buffer):
    ended, made = [], []
    with xpu.graphs.register_graph_destroy_hook(ended.append):
        with xpu.graphs.register_graph_instantiate_hook(lambda g: made.append(g.exec_graph_id)):
            graph = captured(acc.Graph(keep_graph=True), buffer)
            graph.instantiate()
            graph.instantiate()
            other = captured(acc.Graph(), buffer)
        assert len(set(made)) == 3
        assert (graph.exec_graph_id, other.exec_graph_id) == (made[1], made[2])
        graph.reset()
        assert ended == [set(made[:2])]
        graph.reset()
        del other
        gc.collect()
        assert ended == [set(made[:2]), {made[2]}]
    assert acc.Graph().exec_graph_id is None


def test_a_registration_wants_a_function(buffer):
    graph = acc.Graph()
    own = [getattr(graph, name) for name in OWN.values()]
    for register in (*GLOBAL.values(), xpu.graphs.register_graph_destroy_hook, *own):
        with pytest.raises(TypeError, match="a hook must be callable, got int"):
            register(3)
    with pytest.raises(TypeError, match="cb must be callable"):
        graph.register_destroy_callback(None)


def test_the_pools_of_a_graph(buffer):
    graph = acc.Graph()
    assert graph.pools() == []
    captured(graph, buffer)
    assert graph.pools()[0] == graph.pool()
    shared = acc.generate_graph_pool_handle()
    other = acc.Graph(pool=shared)
    assert other.pools() == [shared]
    assert type(shared) is type(acc.graph_pool_handle())
    assert memory.memory_snapshot(shared) == []
