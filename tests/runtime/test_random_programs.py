# SPDX-License-Identifier: Apache-2.0
"""Programs on eight streams, and programs that name no stream, leave the bytes that running them in order leaves."""

import pytest
from l0rt.selftest.programs import PlainProgram, wrong_buffers


@pytest.mark.checks_data
def test_programs_equal_the_sequential_model(extent):
    assert {seed: wrong for seed in range(extent(50, 200, 2000)) if (wrong := wrong_buffers(seed))} == {}


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_plain_programs_on_two_devices_equal_the_sequential_model(extent):
    assert {seed: wrong for seed in range(extent(50, 200, 2000)) if (wrong := wrong_buffers(seed, PlainProgram))} == {}


@pytest.mark.checks_data
def test_plain_programs_on_one_device_equal_the_sequential_model():
    assert {seed: wrong for seed in range(50) if (wrong := wrong_buffers(seed, PlainProgram, devices=1))} == {}


def test_programs_run():
    """Also where the driver executes nothing, every call is the right one."""
    for seed in range(20):
        wrong_buffers(seed)
        wrong_buffers(seed, PlainProgram, devices=1)
