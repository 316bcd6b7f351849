# SPDX-License-Identifier: Apache-2.0
"""The covering set asks of the driver all that the tests on the interface ask, and sees what is wrong with one."""

import itertools
import json
import re

import l0rt
import pytest

from helpers import broken, covering, driver_notes
from helpers.extents import HANG_LIMIT
from helpers.rings import SIMULATED, TESTS, Ring

CPU = Ring("cpu", (), {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2})
BROKEN = (
    "stranger",
    "without_zeKernelSuggestGroupSize",
    "unshared",  # the third: on the first two, events are not shared
    "equal",
    "unadvised",
    "impatient",
    "local",
    "constant",
    "unfilled",
    "queries",
)


def test_the_set_asks_everything(tmp_path):
    notes = tmp_path / "notes.json"
    environment = {"L0RT_TEST_PART": 0, "L0RT_TEST_NOTES": notes}
    result = CPU.run(None, tmp_path, covering.paths(0), HANG_LIMIT, environment)
    assert result.returncode == 0, result
    asked = {what for _, whole, _ in json.loads(notes.read_text()).values() for what in whole}
    counted = {what for whole in covering.listed().values() for what in whole}
    assert covering.steady(counted - asked) == set(), "`make rings` writes tests/rings.txt"


def test_the_set_sees_what_is_wrong_with_a_driver(tmp_path, extent):
    """Those of its tests that are counted for a broken function, each time on another simulated device."""
    library, missed = broken.build(tmp_path), []
    for how, ring in zip(BROKEN[: extent(3, len(BROKEN))], itertools.cycle(SIMULATED)):
        calls = tuple(f"{name}(" for name in broken.functions(how))
        tests = [test for test, counted in covering.listed().items() if any(w.startswith(calls) for w in counted)]
        assert tests, how
        environment = {"BREAK_DRIVER": how, "BREAK_DRIVER_LIBRARY": library, "PYTHONPATH": TESTS}
        paths = [TESTS.parent / test for test in tests]
        result = ring.run(l0rt.cpu_driver_path(), tmp_path, ["-x", *paths], HANG_LIMIT, environment)
        if result.returncode != pytest.ExitCode.TESTS_FAILED:
            missed.append(f"{how} on {ring}, which ran {len(tests)} tests: {result}")
    assert not missed, "\n".join(missed)


PLANTED_CONFTEST = """
import l0rt.accelerator as acc
from helpers import covering, driver_notes

known = {what for what in covering.asked() if not what.startswith("zeMemAllocHost(")}
covering.asked = lambda: known

def pytest_configure(config):
    config.pluginmanager.register(driver_notes.Noting(LIBRARY))
    acc.synchronize()
"""
PLANTED = """
import l0rt
def test_old(): l0rt.empty(64).fill(1)
def test_new(): l0rt.empty(64, kind="host")
def test_old_again(): l0rt.empty(64).fill(1)
"""


def test_a_test_that_asks_something_new_fails(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # pytest cuts lines of its summary
    folder = tmp_path / "core"
    folder.mkdir()
    (folder / "conftest.py").write_text(f"LIBRARY = {driver_notes.build(tmp_path)!r}{PLANTED_CONFTEST}")
    (folder / "test_planted.py").write_text(PLANTED)
    result = CPU.run(None, tmp_path, ["--reruns=0", folder / "test_planted.py"], timeout=60)
    assert "3 passed, 1 error" in result.stdout, str(result)
    assert "test_new - Failed: it asks of the driver what" in result.stdout, str(result)
    assert "zeMemAllocHost(HOST_MEM_ALLOC_DESC.flags=0x0) = SUCCESS" in result.stdout, str(result)


def test_every_test_of_the_set_is_there():
    for test in covering.listed():
        file, _, name = test.partition("[")[0].partition("::")
        assert re.search(rf"^(async )?def {name}\(", (TESTS.parent / file).read_text(), re.MULTILINE), test


def test_every_file_is_in_one_part():
    parts = [covering.files(part) for part in range(1, covering.PARTS + 1)]
    assert sum(map(len, parts)) == len(set().union(*parts)) > 100
    assert {covering.part_of(number) for number in range(covering.PARTS)} == set(range(1, covering.PARTS + 1))


def test_the_part_turns_with_the_commit(monkeypatch):
    monkeypatch.setenv("L0RT_TEST_TURN", "19")
    covering.turn.cache_clear()
    assert [covering.part_of(number) for number in (0, 1, 2)] == [20, 1, 2]
    monkeypatch.delenv("L0RT_TEST_TURN")
    covering.turn.cache_clear()
    assert 0 <= covering.turn() < covering.PARTS


def test_a_small_set_is_chosen(monkeypatch):
    asked = {"a::all": ["x", "y", "z"], "a::x": ["x"], "b::xy": ["x", "y"], "c::slow": ["x", "z"], "c::x": ["x"]}
    seconds = dict.fromkeys(asked, 0.01) | {"c::slow": 9}
    monkeypatch.setattr(covering, "TIMES", 1)
    assert covering.cover(asked, seconds) == {"a::all": ["x", "y", "z"]}
    assert covering.cover(asked, seconds, ["c::slow", "gone::y"]) == {"a::all": ["y"], "c::slow": ["x", "z"]}
    monkeypatch.setattr(covering, "TIMES", 2)
    assert covering.cover(asked, seconds) == {"a::all": ["x", "y", "z"], "b::xy": ["x", "y"], "c::slow": ["z"]}
