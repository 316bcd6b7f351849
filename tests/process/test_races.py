"""Streams and events under the thread sanitizer: their C state is read and written in an order that the locks give."""

import os

import pytest

from helpers import races

WAYS = {
    "as it is": {},
    "counter-based": {"L0RT_EVENTS": "cb"},
    "neither in order nor list_sync": {"L0RT_DISABLE": "inorder,list_sync"},
    "22.43": {"L0RT_CPU_PROFILE": "neo-22.43"},
    "chaos": {"L0RT_CPU_CHAOS": 3},
}


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    if os.environ.get("L0RT_TEST_SOAK") != "1":
        pytest.skip("a build of its own takes minutes: make tsan-python, or make soak")
    return races.build(tmp_path_factory.mktemp("tsan"))


@pytest.mark.parametrize("way", WAYS)
def test_the_thread_sanitizer_is_silent(build, way):
    result = races.check(build, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, **WAYS[way]})
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")
