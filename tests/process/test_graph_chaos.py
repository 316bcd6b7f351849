# SPDX-License-Identifier: Apache-2.0
"""Graphs on a driver that delays and reorders whatever it may: random programs, also with changes of their nodes, and a
step of training."""

import pytest

from helpers.extents import SOAK
from helpers.process import run_python
from helpers.rings import TESTS

HEAD = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.graph_programs import under_chaos, wrong_replays, wrong_steps
from helpers.graph_updates import wrong_updates
"""
WAYS = {
    "in order": {},
    "not in order": {"L0RT_DISABLE": "inorder"},
    "counter-based": {"L0RT_EVENTS": "cb"},
    "own command lists": {"L0RT_DISABLE": "graph"},
    "recorded anew": {"L0RT_DISABLE": "graph,mutable_lists"},
}
PROGRAMS = 200


def check(code, way):
    result = run_python(HEAD + code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, **WAYS[way]}, timeout=7200)
    assert (result.returncode, result.stdout, result.stderr) == (0, "{}\n", "")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ["wrong_replays", "wrong_updates"])
def test_replays_equal_the_eager_run_and_the_sequential_model(what, way, extent):
    """Each chaos seed has a slice of the programs, and all of them together have each program. Those with changes of
    nodes between replays have no eager run, which has no nodes."""
    chaos, programs = extent(1, 10, 2000), extent(4, 10)
    check(
        f"""
def check(seed, kernels):
    some = [(seed * {programs} + i) % {PROGRAMS} for i in range({programs})]
    return {{one: wrong for one in some if (wrong := {what}(one, kernels["vector_add"]))}}
print(under_chaos(check, range(1, {chaos + 1})))
""",
        way,
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_step_of_training_is_replayed(way, extent):
    replays, seeds = extent(30, 1000), range(1, 21 if SOAK else 2)
    check(f"print(under_chaos(lambda seed, kernels: wrong_steps(kernels, seed, {replays}), {seeds}))", way)


def test_what_goes_wrong_in_a_process_is_found():
    code = """
def check(seed, kernels):
    if seed == 2:
        raise ZeroDivisionError
    if seed == 3:
        os._exit(1)
    return [[7, "x"]] if seed == 4 else []
print(under_chaos(check, range(1, 5)))
"""
    result = run_python(HEAD + "import os\n" + code, {"L0RT_DRIVER": "cpu"})
    assert result.stdout == "{2: 'ZeroDivisionError()', 3: 'it died', 4: [[7, 'x']]}\n", result
