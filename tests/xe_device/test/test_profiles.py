# SPDX-License-Identifier: Apache-2.0
"""The CPU driver's profiles beside Intel's driver on the same device: each difference has a row, with its reason."""

import json
import os
import sys

import pytest

from helpers import driver_facts
from helpers.driver_facts import ANY, PROFILES
from helpers.process import run
from helpers.rings import TESTS

DEVICE = os.environ["XE_DEVICE"].partition(",")[0]


@pytest.mark.skipif(DEVICE not in PROFILES, reason="has no profile")
def test_differences_from_the_profile_are_those_of_the_table():
    cpu = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": PROFILES[DEVICE], "LD_PRELOAD": None, "PYTHONPATH": TESTS}
    result = run([sys.executable, "-m", "helpers.driver_facts"], cpu)
    assert result.returncode == 0, str(result)
    found = driver_facts.differences(driver_facts.facts(), json.loads(result.stdout))
    table = {
        what: (intel, cpu) for products, what, intel, cpu, _ in driver_facts.rows() if DEVICE in products.split(",")
    }
    unexplained = {
        what: values
        for what, values in found.items()
        if not all(known in (ANY, value) for known, value in zip(table.get(what, ("", "")), values, strict=True))
    }
    assert unexplained == {}
    assert table.keys() - found.keys() == set()


def test_every_row_has_a_reason():
    assert all(len(row) == 5 and row[-1] for row in driver_facts.rows())
