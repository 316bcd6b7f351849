# SPDX-License-Identifier: Apache-2.0
"""Streams, events and memory under the thread sanitizer: their C state is read and written in an order that the locks
give, or by atomics."""

import os

import pytest

from helpers import races

WAYS = {
    "as it is": {},
    "counter-based": {"L0RT_EVENTS": "cb"},
    "without in-order lists and virtual memory": {"L0RT_DISABLE": "inorder,list_sync,vmm,free_ext"},
    "22.43": {"L0RT_CPU_PROFILE": "neo-22.43"},
    "chaos": {"L0RT_CPU_CHAOS": 3},
}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    if os.environ.get("L0RT_TEST_SOAK") != "1":
        pytest.skip("a build of its own takes minutes: make tsan-python, or make soak")
    return races.build(tmp_path_factory.mktemp("tsan"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", ["events", "allocators"])
def test_the_thread_sanitizer_is_silent(build, program, way):
    result = races.check(build, program, WAYS[way])
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
