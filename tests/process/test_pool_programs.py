# SPDX-License-Identifier: Apache-2.0
"""Threads in and out of private pools on two devices: see `helpers.pool_programs`."""

import pytest

from helpers.extents import HANG_LIMIT, SOAK
from helpers.process import run_python
from helpers.rings import TESTS

PROGRAMS = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.ledger import leaks, live, warm_up
from helpers.pool_programs import wrong_pools
"""
WAYS = {
    "ranges": {},
    "segments": {"L0RT_DISABLE": "vmm"},
    "chaos": {"L0RT_CPU_CHAOS": "5"},
    "chaos, little memory": {"L0RT_CPU_CHAOS": "6", "L0RT_CPU_MEMORY": "24MiB"},
    "async": {"L0RT_ALLOC_CONF": "backend:async"},
}


@pytest.mark.parametrize("way", WAYS)
def test_pools_of_several_threads_agree_with_the_model(way):
    first = 1000 * list(WAYS).index(way)
    seeds = range(first, first + (200 if SOAK else 3))
    code = f"""{PROGRAMS}
warm_up()
before = live()
print({{seed: wrong for seed in {seeds!r} if (wrong := wrong_pools(seed))}}, leaks(before, live()))
"""
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, **WAYS[way]}
    result = run_python(code, env, timeout=HANG_LIMIT)
    assert (result.returncode, result.stdout, result.stderr) == (0, "{} []\n", ""), result
