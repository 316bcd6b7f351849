"""Streams keep their order, whatever the driver offers for it and however it uses its freedom."""

import os

import pytest

from helpers.process import run_python
from helpers.rings import TESTS

SEEDS = 2000 if os.environ.get("L0RT_TEST_SOAK") == "1" else 200
CHAOS = 2000 if os.environ.get("L0RT_TEST_SOAK") == "1" else 40
PROGRAMS = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.programs import wrong_buffers
"""


@pytest.mark.parametrize("disabled", ["", "inorder", "list_sync", "inorder,list_sync"])
def test_programs_equal_the_sequential_model_without(disabled):
    code = PROGRAMS + f"print({{seed: w for seed in range({SEEDS}) if (w := wrong_buffers(seed))}})"
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_DISABLE": disabled}, timeout=1800)
    assert (result.returncode, result.stdout, result.stderr) == (0, "{}\n", "")


@pytest.mark.parametrize("disabled", ["", "inorder,list_sync"])
def test_programs_equal_the_sequential_model_on_a_driver_that_uses_its_freedom(disabled):
    for chaos in range(1, 4):
        code = PROGRAMS + f"print({{seed: w for seed in range({CHAOS}) if (w := wrong_buffers(seed))}})"
        result = run_python(
            code, {"L0RT_DRIVER": "cpu", "L0RT_DISABLE": disabled, "L0RT_CPU_CHAOS": chaos}, timeout=3600
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, "{}\n", "")


def test_a_program_without_its_waits_is_found_out():
    """The check above can fail: leave the waits out, and some bytes come out wrong."""
    code = PROGRAMS + "print(any(wrong_buffers(seed, forgetful=True) for seed in range(100)))"
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_CHAOS": 1}, timeout=600)
    assert (result.returncode, result.stdout, result.stderr) == (0, "True\n", "")
