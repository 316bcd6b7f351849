# SPDX-License-Identifier: Apache-2.0
"""Random programs on several streams, captured and replayed, leave the bytes that running them in order leaves."""

import os

import pytest

from helpers.graph_programs import wrong_replays


@pytest.mark.checks_data
def test_replays_equal_the_sequential_model(kernels, extent):
    add = kernels["vector_add"]
    assert {seed: wrong for seed in range(extent(40, 200, 2000)) if (wrong := wrong_replays(seed, add))} == {}


def test_programs_run(kernels):
    """Also where the driver executes nothing, every call is the right one.

    There without the programs of two devices: Intel's 22.43 reads freed memory, in zeMemFree and in launches, after a
    module of a simulated second device was destroyed.
    """
    for seed in range(15):
        if os.environ.get("L0RT_TEST_NO_DATA") != "1" or seed % 3 != 2:
            wrong_replays(seed, kernels["vector_add"])
