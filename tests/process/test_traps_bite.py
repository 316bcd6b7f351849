# SPDX-License-Identifier: Apache-2.0
"""The tests of the known traps fail where a driver does what the trap is: each runs on one that was broken so.

The functions are in helpers/broken_driver.c; every process that the test starts has them too. The numbers are those of
tests/layout/test_traps.py and tests/runtime/test_traps.py.
"""

import os
import subprocess
import sys

import l0rt
import pytest

from helpers.process import run
from helpers.source import ROOT

TESTS = ROOT / "tests"

# trap -> (what the driver does, the file, which of its tests)
BROKEN = {
    2: ("in_order", "runtime/test_stream_order.py", "chaos_finds_no_reuse_before_the_last_use"),
    4: ("refuses", "process/test_traps.py", "refuses_has_a_fallback and zeDeviceSynchronize"),
    5: ("clock", "process/test_traps.py", "clock_that_wraps and 24"),
    7: ("waits", "process/test_order.py", "programs_of_several_threads_on_the_same_streams"),
    9: ("queries", "runtime/test_held_streams.py", "lease_that_ends_with_work_pending"),
    13: ("large", "runtime/test_traps.py", "trap_13"),
    14: ("pages", "runtime/test_traps.py", "trap_14"),
    17: ("queries", "runtime/test_stream_order.py", "chaos_finds_no_reuse_before_the_last_use"),
    18: ("waits", "runtime/test_stream_order.py", "chaos_finds_no_reuse_before_the_last_use"),
    23: ("lost", "runtime/test_waits.py", "lost_in_any_call_stays_lost and zeEventQueryStatus"),
    26: ("no_events", "process/test_traps.py", "pool_of_no_events"),
    36: ("mappings", "process/test_traps.py", "ten_thousand_streams_and_events"),
    40: ("queries", "runtime/test_held_streams.py", "adopted_list_orders"),
}
TRIES = 3  # a race is met by chance
# Events that lists of any kind take.
WITH = {2: {"L0RT_EVENTS": "pool"}}
# No driver can do these wrong: what they are about is l0rt's own, before a call or without one.
OURS = {3, 6, 10, 12, 16, 19, 20, 21, 22, 30, 32, 34, 37, 38, 39}
# Their tests take the driver's part themselves, function by function: a fault is their subject.
THEMSELVES = {1, 31}
# No broken driver yet that the test itself finds out every time, or no test of the subject yet.
OPEN = {8, 11, 15, 24, 25, 27, 28, 29, 33, 35}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The broken functions, compiled."""
    made = tmp_path_factory.mktemp("broken") / "libbroken.so"
    source = TESTS / "helpers/broken_driver.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", f"-I{l0rt.get_include()}", "-o", made, source], check=True)
    return made


def broken(library, folder, trap):
    """Run a trap's tests on the driver that has it."""
    how, file, which = BROKEN[trap]
    short = {"L0RT_TEST_ALL": None, "L0RT_TEST_SOAK": None}  # one failure is enough
    environment = {**short, "BREAK_DRIVER": how, "BREAK_DRIVER_LIBRARY": library, "BREAK_DRIVER_PATH": TESTS}
    pytest_ = [os.path.join(os.path.dirname(sys.executable), "pytest"), "-q", "-x", "-p", "no:cacheprovider"]
    command = [*pytest_, "-c", ROOT / "pyproject.toml", "-k", which, TESTS / file]
    return run(command, {**environment, "PYTHONPATH": TESTS, **WITH.get(trap, {})}, folder, timeout=120)


def test_a_traps_test_fails_on_a_driver_that_has_it(library, tmp_path, extent):
    missed = {}
    for trap in list(BROKEN)[: extent(3, 3, len(BROKEN))]:
        for _ in range(TRIES):
            result = broken(library, tmp_path, trap)
            if "1 failed" in result.stdout:
                break
        else:
            missed[trap] = result
    assert missed == {}


def test_every_trap_is_told():
    told = [*BROKEN, *OURS, *THEMSELVES, *OPEN]
    assert sorted(told) == list(range(1, 41))
