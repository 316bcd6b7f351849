# SPDX-License-Identifier: Apache-2.0
"""Random numbers in graphs: a replay draws what the eager step draws with the same state, and moves it on as that."""

import gc
import random
import struct
import threading

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import numpy as np
import pytest
from l0rt import philox

COUNT = 1000


@pytest.fixture
def generator():
    return l0rt.Generator().manual_seed(11)


def captured(step, generators=(), **options):
    """Return a graph of what ``step`` gives to the current stream."""
    graph = acc.Graph(**options)
    for generator in generators:
        graph.register_generator_state(generator)
    with acc.graph(graph):
        step()
    return graph


DRAWS = {
    "uniform": lambda x, g: x.uniform_(-1.0, 2.0, generator=g),
    "normal": lambda x, g: x.normal_(3.0, 0.5, dtype="f2", generator=g),
    "exponential": lambda x, g: x.exponential_(2.0, generator=g),
    "bernoulli": lambda x, g: x.bernoulli_(0.25, dtype="u1", generator=g),
    "randint": lambda x, g: x.randint_(-5, 1 << 40, generator=g),
    "double": lambda x, g: x.normal_(dtype="f8", generator=g),
}


@pytest.mark.checks_data
@pytest.mark.parametrize("kind", DRAWS)
def test_a_replay_equals_the_eager_step_with_the_same_state(kind, generator):
    if kind == "double" and not xpu.get_device_properties().has_fp64:
        pytest.skip("the device has no double precision")
    first, second = l0rt.empty(8 * COUNT), l0rt.empty(8 * COUNT)

    def step():
        DRAWS[kind](first, generator)
        DRAWS[kind](second[: 8 * 333], generator)

    graph = captured(step, [generator])
    assert generator.get_offset() == 0  # nothing was drawn
    eager = generator.clone_state()
    found, wanted = [], []
    for _ in range(3):
        graph.replay()
        found.append((first.numpy().tobytes(), second[: 8 * 333].numpy().tobytes(), generator.get_offset()))
    generator.graphsafe_set_state(eager)
    for _ in range(3):
        step()
        wanted.append((first.numpy().tobytes(), second[: 8 * 333].numpy().tobytes(), generator.get_offset()))
    assert found == wanted
    assert len({one for one, _, _ in found}) == 3


@pytest.mark.checks_data
def test_the_default_generator_is_registered_by_itself():
    x = l0rt.empty(4 * COUNT)
    graph = captured(x.uniform_)
    acc.manual_seed(5)
    graph.replay()
    assert x.numpy("f4").tolist() == philox.uniform(5, 0, COUNT).tolist()
    assert acc.default_generator().get_offset() == COUNT
    x.uniform_()
    graph.replay()
    assert x.numpy("f4").tolist() == philox.uniform(5, 2 * COUNT, COUNT).tolist()
    acc.manual_seed(6)
    graph.replay()
    assert x.numpy("f4").tolist() == philox.uniform(6, 0, COUNT).tolist()


@pytest.mark.checks_data
def test_eager_draws_and_replays_of_several_graphs_take_turns(generator):
    choice, x = random.Random(3), l0rt.empty(4 * 64)
    counts = (64, 12, 1)
    steps = [lambda n=n: x[: 4 * n].uniform_(generator=generator) for n in counts]
    graphs = [captured(step, [generator]) for step in steps]
    streams, offset, turns = [acc.current_stream(), l0rt.Stream()], 0, []
    for _ in range(60):
        which, eager, stream = choice.randrange(3), choice.random() < 0.3, choice.choice(streams)
        stream.wait_stream(streams[1 - streams.index(stream)])
        with stream:
            (steps[which] if eager else graphs[which].replay)()
            turns.append((x[: 4 * counts[which]].numpy("f4").tolist(), offset, counts[which]))
        offset += (counts[which] + 3) // 4 * 4
    assert generator.get_offset() == offset
    for got, begins, count in turns:
        assert got == philox.uniform(11, begins, count).tolist()


@pytest.mark.checks_data
def test_draws_on_several_streams_and_of_several_generators(generator):
    other, shared = l0rt.Generator().manual_seed(12), generator.graphsafe_get_state()
    side, parts = l0rt.Stream(), [l0rt.empty(4 * COUNT) for _ in range(4)]

    def step():
        stream = acc.current_stream()
        side.wait_stream(stream)
        parts[0].uniform_(generator=generator)
        parts[1].uniform_(generator=other, stream=side)
        parts[2].uniform_(generator=shared, stream=side)
        stream.wait_stream(side)
        parts[3].uniform_(generator=other)

    graph = captured(step, [generator, other, shared])
    for turn in range(3):
        graph.replay()
        found = [part.numpy("f4").tolist() for part in parts]
        begins = turn * 2 * COUNT
        assert found[0] == philox.uniform(11, begins, COUNT).tolist()
        assert found[1] == philox.uniform(12, begins, COUNT).tolist()
        assert found[2] == philox.uniform(11, begins + COUNT, COUNT).tolist()
        assert found[3] == philox.uniform(12, begins + COUNT, COUNT).tolist()


@pytest.mark.checks_data
def test_a_kernel_of_a_graph_finds_where_the_numbers_of_the_replay_begin(generator):
    places = l0rt.empty(48)

    def step():
        for i, words in enumerate((5, 100, 1)):
            seed, offset, before = generator.philox_state(words)
            assert offset == seed + 8
            assert before == (0, 8, 108)[i]
            l0rt.memcpy(places[16 * i : 16 * i + 16], seed, 16, acc.current_stream())

    graph = captured(step, [generator])
    generator.set_offset(40)
    for turn in range(3):
        graph.replay()
        assert struct.unpack("<6Q", places.numpy().tobytes()) == (11, 40 + 112 * turn) * 3
    assert generator.get_offset() == 40 + 3 * 112


@pytest.mark.checks_data
def test_an_offset_wraps_in_a_replay_too(generator):
    x = l0rt.empty(4 * 8)
    graph = captured(lambda: [x.uniform_(generator=generator) for _ in range(2)], [generator])
    generator.set_offset(2**64 - 12)
    graph.replay()
    assert generator.get_offset() == 4
    assert x.numpy("f4").tolist() == philox.uniform(11, 2**64 - 4, 8).tolist()


def test_a_graph_without_draws_moves_no_generator(generator):
    x = l0rt.empty(64)
    graph = captured(lambda: x.fill(1, stream=acc.current_stream()), [generator])
    before = acc.default_generator().get_offset()
    for _ in range(3):
        graph.replay()
    assert (generator.get_offset(), acc.default_generator().get_offset()) == (0, before)
    acc.synchronize()


class Odd:
    def philox_engine_inputs(self, increment):
        return 5, 0


REFUSED = {
    "not registered": lambda x, g: x.uniform_(generator=l0rt.Generator()),
    r"not registered \(Graph.register_generator_state\)": lambda x, g: l0rt.Generator().philox_state(4),
    "not l0rt's": lambda x, g: x.uniform_(generator=Odd()),
    "into host memory": lambda x, g: l0rt.empty(64, kind="host").uniform_(generator=g),
    "no kernel can make": lambda x, g: x.uniform_(-3e38, 3e38, generator=g),
    r"philox_engine_inputs\(\)": lambda x, g: g.philox_engine_inputs(4),
    r"manual_seed\(\)": lambda x, g: g.manual_seed(4),
    r"Generator.manual_seed\(\)": lambda x, g: g.seed(),
    r"set_offset\(\)": lambda x, g: g.set_offset(4),
    r"set_state\(\)": lambda x, g: g.set_state(g.get_state()),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_no_replay_could_repeat_is_refused(call, generator):
    x, graph, stream = l0rt.empty(64), acc.Graph(), l0rt.Stream()
    graph.register_generator_state(generator)

    def capture():
        with acc.graph(graph, stream=stream):
            x.uniform_(generator=generator)
            try:
                REFUSED[call](x, generator)
            finally:
                assert not stream.is_capturing()

    with pytest.raises(RuntimeError, match=f"{call}.* cannot be captured: the capture has ended"):
        capture()
    assert generator.get_state() == struct.pack("<QQ", 11, 0)
    generator.manual_seed(3)
    x.uniform_(generator=generator)
    assert generator.get_offset() == 16
    acc.synchronize()


@pytest.mark.needs_two_devices
def test_a_generator_of_another_device_is_refused(generator):
    other, graph = l0rt.Generator(1), acc.Graph()
    x = l0rt.empty(64)
    graph.register_generator_state(other)
    with pytest.raises(ValueError, match="the graph is of device 0, a generator that was registered of xpu:1"):
        graph.capture_begin()
    assert not acc.is_current_stream_capturing()
    assert repr(graph) == "<l0rt.Graph empty>"
    with pytest.raises(RuntimeError, match="not registered"):
        captured(lambda: x.uniform_(generator=other))


@pytest.mark.needs_two_devices
def test_a_state_is_of_one_device(generator):
    stream, shared = l0rt.Stream(1), l0rt.Generator(1).graphsafe_set_state(generator)

    def step():
        stream.wait_stream(acc.current_stream())
        with stream:
            shared.philox_state(4)

    with pytest.raises(RuntimeError, match="another device than the generator's"):
        captured(step, [generator])


def test_what_can_be_registered(generator):
    graph = acc.Graph()
    for wrong in (None, 3, Odd()):
        with pytest.raises(TypeError):
            graph.register_generator_state(wrong)
    with pytest.raises(ValueError, match="graphs are of devices of type xpu"):
        graph.register_generator_state(l0rt.Generator("cpu"))
    for same in (generator, generator, generator.graphsafe_get_state(), acc.default_generator()):
        graph.register_generator_state(same)
    with l0rt.Stream():
        graph.capture_begin()
        with pytest.raises(RuntimeError, match="before the capture begins"):
            graph.register_generator_state(generator)
        l0rt.empty(64).uniform_(generator=generator)
        graph.capture_end()
    graph.replay()
    assert generator.get_offset() == 16
    acc.synchronize()


def test_a_registered_generator_outlives_reset_and_its_graph_drops_it(generator):
    x, graph = l0rt.empty(64), acc.Graph()
    graph.register_generator_state(generator)
    for _ in range(2):
        with acc.graph(graph):
            x.uniform_(generator=generator)
        graph.replay()
        graph.reset()
    assert generator.get_offset() == 32
    acc.synchronize()
    before = l0rt.memory.memory_allocated()
    with acc.graph(graph):
        x.uniform_(generator=generator)
    graph.replay()
    del graph
    acc.synchronize()
    acc.empty_cache()
    gc.collect()
    assert l0rt.memory.memory_allocated() == before


def test_draws_outside_of_the_capture_go_on_meanwhile(generator):
    x, inside, outside = l0rt.empty(64), l0rt.Stream(), l0rt.Stream()
    outside.wait_stream(acc.current_stream())
    graph = acc.Graph()
    graph.register_generator_state(generator)
    with acc.graph(graph, stream=inside):
        x.uniform_(generator=generator)
        x.uniform_(generator=generator, stream=outside)
        x.uniform_(generator=l0rt.Generator(), stream=outside)
        with outside:
            assert generator.philox_engine_inputs(4) == (11, 16)
            assert generator.philox_state(4)[2] == 0
    assert generator.get_offset() == 24
    graph.replay()
    assert generator.get_offset() == 40
    acc.synchronize()


def test_another_thread_draws_into_the_capture_or_is_refused(generator):
    x, inside, graph, found = l0rt.empty(64), l0rt.Stream(), acc.Graph(), []

    def draw():
        x.uniform_(generator=generator, stream=inside)
        try:
            x.uniform_(generator=l0rt.Generator(), stream=inside)
        except RuntimeError as error:
            found.append(str(error))

    graph.register_generator_state(generator)
    with acc.graph(graph, stream=inside):
        thread = threading.Thread(target=draw)
        thread.start()
        thread.join()
        assert inside.is_capturing()
    assert len(found) == 1
    assert "another thread captures" in found[0]
    graph.replay()
    assert generator.get_offset() == 16
    acc.synchronize()


def test_replays_of_two_threads_use_no_number_twice(generator):
    x, y = l0rt.empty(64), l0rt.empty(64)
    graphs = [captured(lambda one=one: one.uniform_(generator=generator), [generator]) for one in (x, y)]

    def replay(graph):
        with l0rt.Stream():
            for _ in range(200):
                graph.replay()

    threads = [threading.Thread(target=replay, args=(graph,)) for graph in graphs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert generator.get_offset() == 2 * 200 * 16
    acc.synchronize()


@pytest.mark.checks_data
def test_numbers_of_many_replays_are_of_one_stream(generator):
    x = l0rt.empty(4 * 16)
    graph = captured(lambda: x.randint_(0, 1 << 32, dtype="u4", generator=generator), [generator])
    found = []
    for _ in range(50):
        graph.replay()
        found.append(x.numpy("u4"))
    assert np.concatenate(found).tolist() == philox.randint(11, 0, 800, 0, 1 << 32, "u4").tolist()
