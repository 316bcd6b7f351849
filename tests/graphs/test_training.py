# SPDX-License-Identifier: Apache-2.0
"""A step of training as a graph: 40 kernels, three streams, memory that is allocated inside, one generator."""

import gc

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt.runtime.streams import hooks

from helpers.graph_programs import Step, wrong_steps


@pytest.mark.checks_data
def test_a_step_is_replayed_as_often_as_one_likes(kernels, extent):
    assert wrong_steps(kernels, 1, extent(100, 1000)) == []


@pytest.mark.checks_data
def test_a_step_is_replayed_between_eager_ones(kernels):
    """The eager step and the replay are the same function of the same state."""
    step = Step(kernels, 2)
    graph = step.capture()
    for turn in range(12):
        with step.streams[0]:
            graph.replay() if turn % 3 else step.issue()
        step.model()
        assert step.wrong() == []


def test_a_step_has_40_kernels_on_three_streams(kernels, tmp_path):
    step, launched = Step(kernels, 3), []

    def note(stream, kernel):
        launched.append(stream)

    hooks.add("kernel_launch", note)
    try:
        with step.streams[0]:
            step.issue()
    finally:
        hooks.remove("kernel_launch", note)
    assert (len(launched), len(set(launched))) == (40, 3)
    step.capture().debug_dump(tmp_path / "step.dot")
    text = (tmp_path / "step.dot").read_text()
    assert (text.count("kernel "), text.count("subgraph")) == (40, 3)
    acc.synchronize()


def test_the_memory_of_a_step_is_bounded_and_given_back(kernels):
    step = Step(kernels, 4)
    gc.collect()
    acc.synchronize()
    acc.empty_cache()
    before = l0rt.memory.memory_stats()["reserved_bytes.all.current"]
    graph = step.capture()
    share = "reserved_bytes_by_private_pools.{}_{}.all.current".format(*graph.pool())
    inside = l0rt.memory.memory_stats()[share]
    assert 0 < inside <= 8 << 20
    for _ in range(50):
        graph.replay()
    acc.synchronize()
    acc.empty_cache()
    stats = l0rt.memory.memory_stats()
    assert stats[share] == inside
    assert stats["reserved_bytes.all.current"] <= before + inside
    graph.reset()
    acc.empty_cache()
    stats = l0rt.memory.memory_stats()
    assert stats.get(share, 0) == 0
    assert stats["reserved_bytes.all.current"] <= before
