# SPDX-License-Identifier: Apache-2.0
"""The tests of known traps, long walks and sanitizers fail on a driver, or on lines of l0rt, that are broken.

The broken driver's functions are in helpers/broken_driver.c, and the changed lines in helpers/patches.py; every process
that a test starts has them too. The numbers are those of tests/layout/test_traps.py and tests/runtime/test_traps.py.
"""

import pytest

from helpers import broken, patches
from helpers.source import ROOT

TESTS = ROOT / "tests"

# trap -> (what the driver does, the file, which of its tests)
BROKEN = {
    2: ("in_order", "process/test_held_up.py", "given_later and pool"),
    4: ("refuses", "process/test_traps.py", "refuses_has_a_fallback and zeDeviceSynchronize"),
    5: ("clock", "process/test_traps.py", "clock_that_wraps and 24"),
    7: ("waits", "process/test_held_up.py", "recorded_anew and pool"),
    9: ("queries", "runtime/test_held_streams.py", "lease_that_ends_with_work_pending"),
    13: ("large", "runtime/test_traps.py", "trap_13"),
    14: ("pages", "runtime/test_traps.py", "trap_14"),
    17: ("queries", "process/test_held_up.py", "takes_a_block"),
    18: ("waits", "process/test_held_up.py", "takes_a_block and async"),
    23: ("lost", "runtime/test_waits.py", "lost_in_any_call_stays_lost and zeEventQueryStatus"),
    24: ("deaf", "process/test_lifecycle.py", "control_c"),
    26: ("no_events", "process/test_traps.py", "pool_of_no_events"),
    36: ("mappings", "process/test_traps.py", "ten_thousand_streams_and_events"),
    40: ("queries", "runtime/test_held_streams.py", "adopted_list_orders"),
}
# What no driver can break: the ring of the history is l0rt's own.
OWN = {39}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The broken functions, compiled."""
    return broken.build(tmp_path_factory.mktemp("broken"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return patches.Tree(tmp_path_factory.mktemp("tree"))


def test_a_traps_test_fails_on_a_driver_that_has_it(library, extent):
    missed = {}
    for trap in list(BROKEN)[: extent(3, 3, len(BROKEN))]:
        how, file, which = BROKEN[trap]
        environment = {"BREAK_DRIVER": how, "BREAK_DRIVER_LIBRARY": library, "BREAK_PATH": TESTS}
        found, result = patches.failure(ROOT, file, which, environment)
        if not found:
            missed[trap] = result
    assert missed == {}


def is_of_driver(patch):
    return patch.test.startswith(patches.DRIVER_TESTS)


# The driver's last: the package's tests need it, and it is compiled as a whole.
@pytest.mark.parametrize("patch", sorted((*patches.PATCHES, *patches.WALKS), key=is_of_driver), ids=str)
def test_a_test_fails_where_its_line_is_changed(patch, soak, request):
    if not soak:
        pytest.skip("builds l0rt for each line: make soak")
    patch.skip_unless_possible()
    found, result = request.getfixturevalue("tree").outcome(patch)
    assert found, result


def test_every_trap_is_told():
    told = {*BROKEN, *OWN, *(patch.trap for patch in patches.PATCHES)}
    assert sorted(told) == list(range(1, 41))
