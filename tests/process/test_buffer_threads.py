# SPDX-License-Identifier: Apache-2.0
"""Threads and callbacks that free what others use: refused or done, but never memory that is somebody else's."""

import pytest

from helpers.extents import HANG_LIMIT
from helpers.process import run_python
from helpers.rings import TESTS

TOLD = ("copy", "fill", "memory_use", "memory_allocation", "memory_deallocation", "host_access", "event_record")


@pytest.mark.parametrize("chaos", [None, 3])
@pytest.mark.parametrize("told", [(), TOLD], ids=["no callbacks", "callbacks"])
@pytest.mark.parametrize("conf", ["", "backend:async", "expandable_segments:False", "pinned_max_cached_size_mb:1"])
def test_who_keeps_to_its_own_buffers_does_not_notice_what_others_do(conf, told, chaos, extent):
    code = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from helpers.vandals import run
print(run(range({extent(3, 12, 400)}), told={told!r}))
"""
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_CPU_CHAOS": chaos, "L0RT_ALLOC_CONF": conf}
    result = run_python(code, env, timeout=HANG_LIMIT)
    assert (result.returncode, result.stdout, result.stderr) == (0, "{}\n", "")
