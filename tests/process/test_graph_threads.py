# SPDX-License-Identifier: Apache-2.0
"""Threads that capture at once, and that use one graph at once. In processes of their own: what goes wrong, crashes."""

import pytest

from helpers.process import run_python
from helpers.rings import TESTS

HEAD = f"""
import faulthandler, sys
faulthandler.enable()
sys.path.insert(0, {str(TESTS)!r})
from helpers.graph_threads import all_misused, lost_nodes
"""
WAYS = {"the driver's own": {}, "command lists": {"L0RT_DISABLE": "graph"}}


def check(code, expected, env):
    result = run_python(HEAD + code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, **env}, timeout=600)
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, ""), result


def test_captures_of_threads_lose_no_nodes(extent):
    check(f"print(lost_nodes(1, captures={extent(300, 3000)}))", "[]\n", {})


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("is_defined", [True, False])
def test_threads_use_one_graph_in_every_way(way, is_defined, extent):
    check(f"print(all_misused(range({extent(8, 60, 1000)}), is_defined={is_defined}))", "{}\n", WAYS[way])
