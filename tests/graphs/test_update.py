# SPDX-License-Identifier: Apache-2.0
"""Nodes: what they tell, what a change of one does to later replays, and which changes are refused."""

import gc
import inspect
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

from helpers.graph_programs import COUNT, KERNELS, NBYTES
from helpers.graph_updates import wrong_updates


def floats(value):
    return l0rt.empty(NBYTES).fill(pattern=np.float32(value).tobytes())


def read(buffer):
    acc.synchronize()
    return buffer.numpy("float32")[: buffer.nbytes // 4]


class Captured:
    """A graph with a node of each kind: z = x + y, x = z, y = 5.0, rows of y from x, and a callback."""

    def __init__(self, kernels):
        self.x, self.y, self.z = floats(1), floats(2), floats(3)
        self.called = []
        acc.synchronize()
        self.graph, self.stream, self.side = acc.Graph(), l0rt.Stream(), l0rt.Stream()
        with acc.graph(self.graph, stream=self.stream):
            kernels["vector_add"][2, 32](self.z, self.x, self.y, COUNT)
            self.side.wait_stream(self.stream)
            self.x.copy_from(self.z, stream=self.side)
            self.y.fill(pattern=np.float32(5).tobytes(), stream=self.stream)
            self.stream.wait_stream(self.side)
            l0rt.memcpy2d(self.y, 32, self.x, 32, 16, 8, self.stream)
            self.stream.add_callback(self.called.append, 1)
        self.nodes = self.graph.nodes
        self.add, self.waits, self.copy, self.fill, _, self.rows, self.callback = self.nodes


@pytest.fixture
def captured(kernels):
    made = Captured(kernels)
    yield made
    made.graph.reset()


@pytest.mark.checks_data
def test_random_changes_equal_the_sequential_model(kernels, extent):
    add = kernels["vector_add"]
    assert {seed: wrong for seed in range(extent(40, 200, 2000)) if (wrong := wrong_updates(seed, add))} == {}


def test_random_changes_run(kernels):
    for seed in range(5):
        wrong_updates(seed, kernels["vector_add"])


def test_nodes_tell_what_they_do(captured):
    c = captured
    kinds = ["kernel", "wait", "copy", "fill", "wait", "copy", "callback"]
    assert [node.kind for node in c.nodes] == kinds
    assert [node.stream for node in c.nodes] == [c.stream, c.side, c.side, c.stream, c.stream, c.stream, c.stream]
    assert [node.nbytes for node in c.nodes] == [0, 0, NBYTES, NBYTES, 0, 128, 0]
    assert [node.name for node in c.nodes] == ["vector_add", None, None, None, None, None, "append"]
    assert c.add.arguments == (c.z.ptr, c.x.ptr, c.y.ptr, COUNT)
    assert (c.add.groups, c.add.group_size) == ((2, 1, 1), (32, 1, 1))
    assert (c.copy.groups, c.copy.group_size) == (None, None)
    assert (c.copy.arguments, c.rows.arguments) == ((c.x.ptr, c.z.ptr), (c.y.ptr, c.x.ptr))
    assert c.fill.arguments == (c.y.ptr, np.float32(5).tobytes())
    assert (c.waits.arguments, c.callback.arguments) == ((), (1,))
    assert c.graph.nodes == c.nodes
    assert len(set(c.nodes) | set(c.graph.nodes)) == len(c.nodes)
    assert "vector_add" in repr(c.add)
    c.add.update(args={3: 7}, groups=1)
    assert c.add.arguments == (c.z.ptr, c.x.ptr, c.y.ptr, 7)
    assert (c.add.groups, c.add.group_size) == ((1, 1, 1), (32, 1, 1))
    c.copy.update(src=c.y)
    assert c.copy.arguments == (c.x.ptr, c.y.ptr)
    c.fill.update(value=9)
    assert c.fill.arguments == (c.y.ptr, b"\x09")


@pytest.mark.checks_data
def test_a_change_is_for_later_replays_only(captured):
    """The replays run behind a copy that takes its time: all are issued before the first of them begins."""
    c, big, results = captured, l0rt.empty(64 << 20), [floats(0) for _ in range(12)]
    other = l0rt.empty(64 << 20)
    with c.stream:
        other.copy_from(big, stream=c.stream)
        for value, result in enumerate(results):
            c.fill.update(value=np.float32(value).tobytes())
            c.add.update(args={0: result})
            c.graph.replay()
    expected, y = [], 2.0
    for value in range(12):
        expected.append(1.0 + y if value == 0 else 3.0 + y)  # x = z: nobody writes z any more
        y = float(value)
    found = [read(result) for result in results]
    assert [float(array[7]) for array in found] == expected
    # the rows of y are x's
    assert float(found[1][0]) == 3.0 + 3.0


@pytest.mark.checks_data
def test_every_part_of_a_launch_can_be_changed(kernels):
    x, y, z = floats(1), floats(2), floats(0)
    graph = acc.Graph()
    acc.synchronize()
    with acc.graph(graph):
        kernels["vector_add"][2, 32](z, x, y, COUNT)
    (node,) = graph.nodes
    node.update(args={1: y, 2: y.ptr, 3: np.uint32(40)}, groups=(40, 1), group_size=1)
    graph.replay()
    assert read(z).tolist() == [4.0] * 40 + [0.0] * 24
    node.update(groups=(8, 1, 1), group_size=(8, 1, 1))
    node.update(args={3: 64})
    graph.replay()
    assert read(z).tolist() == [4.0] * 64


@pytest.mark.checks_data
def test_a_graph_that_is_built_later_has_the_changes(kernels):
    graph, x = acc.Graph(keep_graph=True), floats(0)
    with acc.graph(graph):
        x.fill(1, stream=acc.current_stream())
    graph.nodes[0].update(value=2)
    graph.instantiate()
    graph.replay()
    assert x.numpy()[0] == 2
    acc.synchronize()
    graph.nodes[0].update(value=3)
    graph.instantiate()
    graph.replay()
    acc.synchronize()
    assert x.numpy()[0] == 3


@pytest.mark.checks_data
def test_a_kernel_can_be_changed_when_its_module_was_closed(kernels):
    module, x = l0rt.Module(KERNELS), floats(1)
    native = l0rt.Module(module.native_binary())
    acc.synchronize()
    graph = acc.Graph()
    with acc.graph(graph):
        module["vector_add"][2, 32](x, x, x, COUNT)
        native["vector_add"][2, 32](x, x, x, np.int32(COUNT))
    module.close()
    native.close()
    del module, native
    gc.collect()
    for node in graph.nodes:
        node.update(args={3: np.int32(32)})
    with pytest.raises(TypeError, match="must have 4 bytes, as in the launch that was captured, got 8"):
        graph.nodes[1].update(args={3: np.int64(32)})
    with pytest.raises(TypeError, match="native module does not tell"):
        graph.nodes[1].update(args={3: 32})
    assert graph.nodes[1].arguments[3] == (32).to_bytes(4, "little")
    graph.replay()
    assert read(x).tolist() == [4.0] * 32 + [1.0] * 32


HOSTILE = [
    # node, arguments, what is raised, what it says
    ("add", {}, TypeError, "takes at least one of args, groups, group_size"),
    ("add", {"src": 0}, TypeError, "a kernel has no src="),
    ("add", {"value": 1}, TypeError, "a kernel has no value="),
    ("add", {"args": 7}, TypeError, "args must be a dict"),
    ("add", {"args": [1]}, TypeError, "args must be a dict"),
    ("add", {"args": {"x": 1}}, TypeError, "an index is an int, got str"),
    ("add", {"args": {True: 1}}, TypeError, "an index is an int"),
    ("add", {"args": {-1: 1}}, IndexError, "none of index -1"),
    ("add", {"args": {4: 1}}, IndexError, "none of index 4"),
    ("add", {"args": {1 << 80: 1}}, IndexError, "none of index"),
    ("add", {"args": {3: None}}, TypeError, "argument 3"),
    ("add", {"args": {3: "64"}}, TypeError, "argument 3"),
    ("add", {"args": {3: 1 << 40}}, ValueError, "must fit an int of 4 bytes"),
    ("add", {"args": {3: l0rt.LocalMemory(4)}}, TypeError, "argument 3"),
    ("add", {"args": {0: -1}}, (ValueError, OverflowError), "-1"),
    ("add", {"args": {0: 1 << 64}}, (ValueError, OverflowError), ""),
    ("add", {"args": {0: np.zeros(4, "f4")}}, TypeError, "copy it to a Buffer first"),
    ("add", {"args": {0: "closed"}}, ValueError, "freed"),
    ("add", {"groups": 0}, ValueError, "groups must be 1 to"),
    ("add", {"groups": -1}, ValueError, "groups must be 1 to"),
    ("add", {"groups": (1, 2, 3, 4)}, ValueError, "1 to 3 sizes"),
    ("add", {"groups": 1.5}, TypeError, "groups must be"),
    ("add", {"group_size": 1 << 31}, ValueError, "group_size must be 1 to"),
    ("add", {"group_size": (64, 64, 64)}, ValueError, ""),
    ("add", {"args": {3: 5}, "group_size": 0}, ValueError, "group_size"),
    ("copy", {}, TypeError, "takes at least one of src, dst"),
    ("copy", {"args": {}}, TypeError, "a copy has no args="),
    ("copy", {"value": 1}, TypeError, "a copy has no value="),
    ("copy", {"src": "text"}, TypeError, "takes a Buffer"),
    ("copy", {"src": -1}, (ValueError, OverflowError), ""),
    ("copy", {"src": (1 << 64) - 1}, ValueError, "no memory"),
    ("copy", {"src": 1 << 64}, (ValueError, OverflowError), ""),
    ("copy", {"src": "closed"}, ValueError, "freed"),
    ("copy", {"src": "short"}, ValueError, "needs 256 bytes, got memory of 64"),
    ("copy", {"src": np.zeros(NBYTES, "u1")}, ValueError, "pinned"),
    ("copy", {"dst": bytearray(NBYTES)}, ValueError, "pinned"),
    ("copy", {"dst": bytes(NBYTES)}, (ValueError, TypeError, BufferError), ""),
    ("copy", {"dst": "source", "src": "overlap"}, ValueError, "overlap"),
    ("rows", {"src": "short"}, ValueError, "needs 240 bytes, got memory of 64"),
    ("fill", {"src": 1}, TypeError, "a fill has no src="),
    ("fill", {"value": 256}, ValueError, "0 to 255"),
    ("fill", {"value": -1}, ValueError, "0 to 255"),
    ("fill", {"value": 1.5}, TypeError, ""),
    ("fill", {"value": b"123"}, ValueError, "a pattern must have"),
    ("fill", {"value": b""}, ValueError, "a pattern must have"),
    ("fill", {"value": 1, "dst": "closed"}, ValueError, "freed"),
    ("waits", {"value": 1}, TypeError, "a wait cannot be updated"),
    ("callback", {"args": {0: 1}}, TypeError, "a callback cannot be updated"),
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_wrong_change_is_refused_and_changes_nothing(number, captured):
    name, changes, error, says = HOSTILE[number]
    closed = l0rt.empty(NBYTES)
    closed.free()
    whole = l0rt.empty(2 * NBYTES)
    stand_ins = {"closed": closed, "short": whole[:64], "source": whole[:NBYTES], "overlap": whole[8 : NBYTES + 8]}

    def meant(value):
        if isinstance(value, dict):
            return {index: meant(item) for index, item in value.items()}
        return stand_ins.get(value, value) if isinstance(value, str) else value

    node = getattr(captured, name)
    before = node.arguments, node.groups, node.group_size
    with pytest.raises(error, match=says or None):
        node.update(**{key: meant(value) for key, value in changes.items()})
    assert (node.arguments, node.groups, node.group_size) == before
    captured.graph.replay()
    acc.synchronize()


def test_a_change_takes_no_positional_and_no_other_arguments(captured):
    with pytest.raises(TypeError):
        captured.fill.update(1)
    with pytest.raises(TypeError):
        captured.fill.update(colour=1)
    node = type(captured.fill)
    for make in (node, lambda: node.__new__(node), lambda: object.__new__(node)):
        with pytest.raises(TypeError):
            make()


def test_local_memory_is_counted_before_the_driver_is_asked(kernels):
    name = next(name for name in kernels if "local" in name or "reduce" in name)
    kernel = kernels[name]
    at = next((i for i, argument in enumerate(kernel.arguments) if argument.kind == "local"), None)
    if at is None:
        pytest.skip("no kernel with local memory as an argument")
    args = [l0rt.LocalMemory(256) if a.kind == "local" else l0rt.empty(1024) if a.kind == "pointer" else 16
            for a in kernel.arguments]  # fmt: skip
    graph = acc.Graph()
    with acc.graph(graph):
        kernel[1, 16](*args)
    (node,) = graph.nodes
    with pytest.raises(ValueError, match="bytes of local memory: the device has"):
        node.update(args={at: l0rt.LocalMemory(1 << 30)})
    node.update(args={at: l0rt.LocalMemory(512)})
    assert node.arguments[at].nbytes == 512
    graph.replay()
    acc.synchronize()


def test_nodes_are_there_between_the_capture_and_the_reset(captured):
    graph = acc.Graph()
    assert not hasattr(graph, "nodes")
    with pytest.raises(RuntimeError, match="nothing captured yet"):
        graph.nodes  # noqa: B018
    with acc.graph(graph):
        captured.y.fill(1, stream=acc.current_stream())
        with pytest.raises(RuntimeError, match="nothing captured yet"):
            graph.nodes  # noqa: B018
    (node,) = graph.nodes
    assert hasattr(graph, "nodes")
    graph.reset()
    assert not hasattr(graph, "nodes")
    assert [name for name, _ in inspect.getmembers(node) if name in ("kind", "stream", "nbytes")] == ["kind"]
    for use in (lambda: node.update(value=1), lambda: node.arguments, lambda: node.stream, lambda: node.nbytes):
        with pytest.raises(RuntimeError, match="the graph was reset or dropped"):
            use()
    assert "reset" in repr(node)
    dropped = acc.Graph()
    with acc.graph(dropped):
        captured.y.fill(1, stream=acc.current_stream())
    (node,) = dropped.nodes
    del dropped
    acc.synchronize()
    acc.Graph()
    with pytest.raises(RuntimeError, match="the graph was reset or dropped"):
        node.update(value=1)


@pytest.mark.needs_two_devices
def test_memory_of_another_device_is_checked_as_a_launch_does(captured):
    other = l0rt.empty(NBYTES, device=1)
    captured.add.update(args={0: other})  # a peer: the launch would take it too
    captured.copy.update(dst=other)
    captured.graph.replay()
    acc.synchronize()


@pytest.mark.checks_data
def test_a_copy_takes_pinned_memory(captured):
    pinned = l0rt.empty(NBYTES, kind="host")
    captured.copy.update(dst=pinned)
    captured.graph.replay()
    acc.synchronize()
    assert np.frombuffer(pinned, "f4").tolist() == [3.0] * COUNT


@pytest.mark.checks_data
def test_threads_change_and_replay_one_graph(captured, hasty):
    errors = []

    def work(number):
        try:
            for turn in range(50):
                captured.fill.update(value=(number + turn) % 256)
                captured.add.update(args={3: turn % (COUNT + 1)})
                captured.graph.replay()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    captured.fill.update(value=np.float32(8).tobytes())
    captured.graph.replay()
    assert read(captured.y)[7] == 8.0
