# SPDX-License-Identifier: Apache-2.0
"""How much of a long check runs, and in which order the tests do."""

import re
import sys

import pytest

from helpers import covering
from helpers.extents import CI, HANG_LIMIT
from helpers.process import run, run_python
from helpers.rings import FOLDERS, TESTS, Ring, verdict

SETTINGS = dict.fromkeys(("CI", "L0RT_TEST_ALL", "L0RT_TEST_SOAK"))
ASKED = """
from types import SimpleNamespace
import pytest
from helpers.extents import Extent
item = SimpleNamespace(user_properties=[])
extent = Extent(item)
print(extent(4, 100, 1000), extent(5, 1), extent(0, 1), extent(3, 3), extent(1, 50))
for ci in (False, True):
    try:
        extent.skip_unless_whole(ci)
        print("runs")
    except pytest.skip.Exception:
        print("is skipped")
print([text for _, text in item.user_properties])
"""


@pytest.mark.parametrize(
    ("env", "numbers", "runs", "notes"),
    [
        ({}, "4 5 0 3 1", (False, False), ["4 of 100", "5 of 1", "0 of 1", "1 of 50", "left out", "left out"]),
        ({"CI": "true"}, "20 2 0 3 7", (False, True), ["20 of 100", "2 of 1", "0 of 1", "7 of 50", "left out"]),
        ({"L0RT_TEST_ALL": "1"}, "100 1 1 3 50", (True, True), []),
        ({"L0RT_TEST_ALL": "1", "CI": "true"}, "100 1 1 3 50", (True, True), []),
        ({"L0RT_TEST_SOAK": "1"}, "1000 1 1 3 50", (True, True), []),
    ],
)
def test_each_run_takes_its_part_and_says_what_it_leaves_out(env, numbers, runs, notes):
    result = run_python(ASKED, {**SETTINGS, **env, "PYTHONPATH": TESTS})
    skipped = [("is skipped", "runs")[ran] for ran in runs]
    assert result.stdout.splitlines() == [numbers, *skipped, str(notes)], result


def test_a_seed_gives_an_order_and_loses_no_test(tmp_path):
    def order(*options):
        command = [sys.executable, "-m", "pytest", "-c", TESTS.parent / "pyproject.toml", "--rootdir", TESTS.parent]
        files = [TESTS / "core/test_errors.py", TESTS / "process/test_rings.py"]
        result = run([*command, "-p", "no:cacheprovider", "--collect-only", "-q", *options, *files], cwd=tmp_path)
        found = re.findall(r"^tests/(\S+::.*)$", result.stdout, re.MULTILINE)
        assert (result.returncode, len(found) > 20) == (0, True), result
        return found

    first, again, other, plain = (
        order(*options) for options in (["--shuffle=1"], ["--shuffle=1"], ["--shuffle=2"], [])
    )
    assert first == again
    assert len({tuple(found) for found in (first, other, plain)}) == 3
    assert sorted(first) == sorted(other) == sorted(plain)
    assert all("ring" in test or "simulated" in test for found in (first, other) for test in found[:5])  # take minutes


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_sample_of_the_tests_passes_in_a_random_order(seed, tmp_path, extent):
    extent.skip_unless_whole()
    ring = Ring("shuffled", (), {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2})
    if CI:
        paths, env = covering.paths(seed), {"L0RT_TEST_PART": seed}
    else:
        paths, env = [TESTS / name for name in (*FOLDERS, "cli")], None
    result = ring.run(None, tmp_path, [f"--shuffle={seed}", *paths], HANG_LIMIT, env)
    assert verdict(result), result
