"""Programs on eight streams leave the bytes that running them in order leaves."""

import os

import pytest

from helpers.programs import wrong_buffers

SEEDS = range(2000 if os.environ.get("L0RT_TEST_SOAK") == "1" else 200)


@pytest.mark.checks_data
def test_programs_equal_the_sequential_model():
    assert {seed: wrong for seed in SEEDS if (wrong := wrong_buffers(seed))} == {}


def test_programs_run():
    """Also where the driver executes nothing, every call is the right one."""
    for seed in range(20):
        wrong_buffers(seed)
