# SPDX-License-Identifier: Apache-2.0
"""torch.xpu's names: XPUGraph, the block around a capture, and callables that replay graphs."""

import gc

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import numpy as np
import pytest

from helpers.graph_programs import COUNT, NBYTES, read


def full(value):
    made = l0rt.empty(NBYTES).fill(pattern=np.float32(value).tobytes())
    acc.synchronize()
    return made


def values(buffer):
    found = set(read(buffer, np.float32).tolist())
    assert len(found) == 1
    return found.pop()


@pytest.fixture
def add(kernels):
    """A function that returns a new buffer with the sum of two."""

    def sum_of(x, y):
        made = l0rt.empty(NBYTES)
        kernels["vector_add"][2, 32](made, x, y, COUNT)
        return made

    return sum_of


@pytest.mark.checks_data
def test_the_names_of_torch_capture_and_replay(buffer):
    handle, stream = xpu.graph_pool_handle(), xpu.Stream()
    one, two, three = xpu.XPUGraph(), xpu.XPUGraph(keep_graph=True), xpu.XPUGraph()
    with xpu.graph(one, handle, stream):
        assert xpu.is_current_stream_capturing()
        assert xpu.current_stream() == stream
        buffer.fill(3)
    with xpu.graph(two, pool=one.pool()):
        buffer.fill(4)
    with stream:
        three.capture_begin(handle)
        buffer.fill(5)
        three.capture_end()
    two.instantiate()
    assert not xpu.is_current_stream_capturing()
    for graph, value in ((one, 3), (two, 4), (three, 5), (one, 3)):
        graph.replay()
        assert (read(buffer) == value).all()
        assert graph.pool() == handle
        assert isinstance(graph, acc.Graph)
    one.reset()
    assert repr(one) == "<l0rt.Graph empty>"
    for call in (one.raw_xpu_graph, two.raw_xpu_graph_exec):
        with pytest.raises(l0rt.UnsupportedError, match="no graph of SYCL"):
            call()


def test_what_the_names_of_torch_refuse(buffer):
    for wrong in (None, 3, "graph"):
        with pytest.raises(TypeError):
            xpu.graph(wrong)
    with pytest.raises(TypeError):
        xpu.XPUGraph(pool=xpu.graph_pool_handle())
    graph = xpu.XPUGraph()
    with xpu.Stream() as stream:
        for wrong, error in (("pool", TypeError), ((1 << 40, 7), ValueError)):
            with pytest.raises(error):
                graph.capture_begin(wrong)
            assert not stream.is_capturing()
    with pytest.raises(ZeroDivisionError), xpu.graph(graph, stream=stream):
        raise ZeroDivisionError
    assert repr(graph) == "<l0rt.Graph empty>"


@pytest.mark.checks_data
def test_a_callable_replays_with_other_arguments(add):
    x, y = full(1), full(2)
    calls = []

    def twice(x, y):
        calls.append(1)
        return add(add(x, y), y), x

    graphed = xpu.make_graphed_callables(twice, (x, y))
    assert len(calls) == 3 + 1
    for a, b in ((1, 2), (5, 7), (-1, 0.5)):
        found, same = graphed(full(a), full(b))
        assert values(found) == a + 2 * b
        assert same is x
    assert graphed(x, full(3))[0] is found  # x has the last argument
    assert values(found) == -1 + 6
    assert len(calls) == 4


@pytest.mark.checks_data
def test_several_callables_run_in_order_in_one_pool(add):
    handle = xpu.graph_pool_handle()
    x = full(1)
    first, second, third = xpu.make_graphed_callables(
        (lambda x: add(x, x), lambda x, y: add(x, y), lambda x: x.fill(0) and None),
        ((x,), (full(1), full(1)), (x,)),
        num_warmup_iters=0,
        pool=handle,
    )
    for value in (1, 4):
        given = full(value)
        assert values(second(first(given), given)) == 3 * value
    assert third(x) is None
    assert values(x) == 0


class Scale:
    """y = w * x + w * x, of which the backward pass needs what the forward pass has left."""

    def __init__(self, add):
        self.add = add

    def forward(self, x):
        self.twice = self.add(x, x)
        return self.add(self.twice, x)

    def backward(self, gradient):
        return self.add(self.add(gradient, gradient), self.twice)


@pytest.mark.checks_data
def test_pairs_of_forward_and_backward(add):
    layers = [Scale(add) for _ in range(3)]
    pairs = tuple((layer.forward, layer.backward) for layer in layers)
    made = xpu.make_graphed_callables(pairs, ((full(1),), (full(1),), (full(1),)))
    for begin, gradient in ((1, 1), (2, 5)):
        x, inputs = full(begin), []
        for forward, _ in made:
            inputs.append(values(x))
            x = forward(x)
        assert values(x) == begin * 27
        g, expected = full(gradient), gradient
        for (_, backward), value in zip(reversed(made), reversed(inputs), strict=True):
            g, expected = backward(g), 2 * expected + 2 * value
            assert values(g) == expected


@pytest.mark.checks_data
def test_a_pair_alone_is_told_from_two_callables(add):
    layer = Scale(add)
    forward, backward = xpu.make_graphed_callables((layer.forward, layer.backward), (full(1),))
    assert values(forward(full(4))) == 12
    assert values(backward(full(1))) == 2 + 8
    one, two = xpu.make_graphed_callables((layer.forward, layer.forward), ((full(1),), (full(1),)))
    assert values(two(one(full(1)))) == 9


def test_what_cannot_be_made_is_refused(add):
    x, layer = full(1), Scale(add)
    for callables, args, error, told in (
        (None, (x,), TypeError, "expected a callable"),
        (layer.forward, x, TypeError, "tuple of Buffers"),
        (layer.forward, None, TypeError, "tuple of Buffers"),
        (layer.forward, (3,), TypeError, "must be Buffers, got int"),
        ((layer.forward,) * 3, (x,), ValueError, "a tuple for each of 3 callables, got 1"),
        ((layer.forward,) * 3, x, TypeError, "sample_args must be a tuple"),
        ((layer.forward, 3), ((x,), (x,)), TypeError, "got int"),
        (lambda x: 3, (x,), TypeError, "what a callable returns must be Buffers, got int"),
        ((lambda x: x, lambda g: (g, g)), (x,), ValueError, "for each of 1 inputs, got 2"),
        ((lambda x: x, lambda g: None), (x,), RuntimeError, "allow_unused_input"),
        ((lambda x: x, lambda g: 3), (x,), TypeError, "gradients must be Buffers"),
        (lambda x: acc.synchronize(), (x,), RuntimeError, r"synchronize\(\) cannot be captured"),
    ):
        with pytest.raises(error, match=told):
            xpu.make_graphed_callables(callables, args)
        assert not acc.is_current_stream_capturing()
    for wrong, error in ((-1, ValueError), (1.5, TypeError), (None, TypeError)):
        with pytest.raises(error):
            xpu.make_graphed_callables(layer.forward, (x,), wrong)
    with pytest.raises(ValueError, match="no memory pool"):
        xpu.make_graphed_callables(layer.forward, (x,), pool=(1 << 40, 3))
    pair = xpu.make_graphed_callables((lambda x: x, lambda g: None), (x,), allow_unused_input=True)
    assert pair[1](full(1)) is None
    graphed = xpu.make_graphed_callables(layer.forward, (x,))
    for args, error, told in (
        ((), TypeError, "expected 1 arguments, got 0"),
        ((x, x), TypeError, "got 2"),
        ((None,), TypeError, "expected Buffers, got NoneType"),
        ((x[:4],), ValueError, "expected 256 bytes, as of the sample, got 4"),
    ):
        with pytest.raises(error, match=told):
            graphed(*args)
    freed = full(1)
    freed.free()
    with pytest.raises(ValueError, match="freed"):
        graphed(freed)
    acc.synchronize()


def test_the_memory_of_dropped_callables_is_given_back(add):
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    x = full(1)
    before = l0rt.memory.memory_stats()["reserved_bytes.all.current"]
    layer = Scale(add)
    pair = xpu.make_graphed_callables((layer.forward, layer.backward), (x,))
    pair[1](pair[0](x))
    del pair, layer
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    assert l0rt.memory.memory_stats()["reserved_bytes.all.current"] <= before
