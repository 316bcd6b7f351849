# SPDX-License-Identifier: Apache-2.0
"""SPIR-V with one word changed: what the reader lets through, a driver builds or refuses, and the process goes on.

Intel's driver checks next to nothing itself.
"""

import pytest

from helpers.extents import HANG_LIMIT
from helpers.rings import INTEL, LOADER, NO_HARDWARE, TESTS, installed
from helpers.spirv_mutations import fatal


@pytest.fixture(scope="module")
def intel():
    if not installed(LOADER) or not installed(INTEL):
        pytest.skip("needs Intel's driver (Debian: apt install intel-opencl-icd)")
    return {**NO_HARDWARE, "ProductFamilyOverride": "tgllp"}


def test_no_word_that_is_let_through_ends_the_process_of_intels_driver(intel, extent):
    found, tried = fatal(TESTS / "kernels" / "add.spv", 3, extent(30, 200, 900), intel, timeout=HANG_LIMIT)
    assert (found, tried > 3) == ([], True)


@pytest.mark.parametrize("name", ["add.spv", "basic.spv"])
def test_no_word_that_is_let_through_ends_the_process_of_the_cpu_driver(name, extent):
    path = TESTS / "kernels" / name
    found, tried = fatal(path, 11, extent(100, 1000, 30_000), {"L0RT_DRIVER": "cpu"}, timeout=HANG_LIMIT)
    assert (found, tried > 10) == ([], True)
