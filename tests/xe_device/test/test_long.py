# SPDX-License-Identifier: Apache-2.0
"""Long programs on Intel's driver: what is replayed runs, and memory of the program's own stays the program's."""

import random
import time

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

from helpers.rings import TESTS
from helpers.xe_device import kernels_run

PAGE = 4096


@pytest.fixture
def add():
    with l0rt.Module(TESTS / "kernels/basic.spv") as module:
        yield module["vector_add"]


def launches_of(seed, add, replays):
    """Run a random program of replays, launches and waits over streams; return how many kernels it should run."""
    rng = random.Random(seed)
    streams = [l0rt.Stream(priority=rng.choice((0, -1))) for _ in range(4)]
    memory = [l0rt.empty(256) for _ in range(6)]
    launched = 0

    def launch(stream):
        nonlocal launched
        with stream:
            add[2, 32](*rng.choices(memory, k=3), 64)
        launched += 1

    def order():
        before, after = rng.sample(streams, 2)
        after.wait_event(before.record_event()) if rng.random() < 0.5 else after.wait_stream(before)

    graphs = []
    for _ in range(2):
        graph, (first, *others) = acc.Graph(), rng.sample(streams, rng.randint(1, 3))
        acc.synchronize()
        captured = launched
        with acc.graph(graph, stream=first):
            launch(first)
            for other in others:
                other.wait_stream(first)
                for _ in range(rng.randint(1, 3)):
                    launch(other)
                first.wait_stream(other)
        graphs.append((graph, launched - captured))
        launched = captured
    for _ in range(replays):
        graph, size = rng.choice(graphs)
        with rng.choice(streams):
            graph.replay()
        launched += size
        for _ in range(rng.choice((0, 0, 1, 3))):
            rng.choice((order, lambda: launch(rng.choice(streams))))()
        if rng.random() < 0.003:
            rng.choice(streams).synchronize()
    acc.synchronize()
    return launched


def test_replays_in_random_programs_run_all_their_kernels(add, extent):
    """Two thousand of them, and nobody waits for most."""
    for seed in range(extent(3, 30)):
        before = kernels_run()
        launched = launches_of(seed, add, 2000)
        assert kernels_run() - before == launched, seed


def test_registered_memory_stays_the_programs(extent):
    """Intel's driver has a cache of host memory that was freed, in which such memory must never be."""
    rng, ends, rounds = random.Random(1), time.monotonic() + extent(3, 60), 0
    own, kept = {}, []
    while time.monotonic() < ends:
        rounds += 1
        size = PAGE * rng.choice((1, 2, 16, 256, 4096))
        array = np.full(size, rounds % 251, "u1")
        with l0rt.memory.register(array):
            l0rt.empty(size).copy_from(array)
        own[rounds] = array
        host = l0rt.empty(size, kind="host")
        view = np.frombuffer(host, "u1")
        view[:] = 255
        kept.append((host, view))
        if len(kept) > 8:
            kept.pop(rng.randrange(8))
        for number, array in own.items():
            assert (array == number % 251).all(), (number, rounds)
        while len(own) > 8:
            del own[next(iter(own))]
    assert rounds > 1
    assert all((view == 255).all() for _, view in kept)
