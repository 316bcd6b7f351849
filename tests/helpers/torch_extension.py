# SPDX-License-Identifier: Apache-2.0
"""The extension of l0rt.interop.torch_device, compiled once for all processes of a run."""

import os
import sys

import pytest

from helpers.once import shared
from helpers.process import run

LONG = 600.0  # seconds: the compiler reads torch's headers


def variables(folder, **more):
    return {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_CACHE_DIR": folder, **more}


def build(folder):
    command = [sys.executable, "-m", "l0rt.interop.torch_device", "build"]
    result = run(command, variables(folder), timeout=2 * LONG)
    assert result.returncode == 0, result
    assert "l0rt: compiling the extension for torch" in result.stderr, result
    again = run(command, variables(folder), timeout=LONG)
    assert (again.returncode, again.stderr) == (0, ""), again


@pytest.fixture(scope="module")
def cache():
    """A cache with the compiled extension: TESTS_TORCH_CACHE names one that is there."""
    if "L0RT_TEST_TORCH" not in os.environ:
        pytest.skip("needs torch: set L0RT_TEST_TORCH=1 where pip has installed it")
    return os.environ.get("TESTS_TORCH_CACHE") or shared("torch_device", build)
