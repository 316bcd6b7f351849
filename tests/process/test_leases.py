# SPDX-License-Identifier: Apache-2.0
"""Leases cost the same however many were ever held."""

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}


def test_a_lease_costs_the_same_beside_20000_others():
    """The one given back is the oldest of all, which a search would come to last."""
    code = """
import time
from contextlib import ExitStack
import l0rt.accelerator as acc
def cost():
    took = []
    for _ in range(300):
        begun = time.perf_counter_ns()
        with acc.stream_pool.lease():
            pass
        took.append(time.perf_counter_ns() - begun)
    return min(took)
alone = cost()
with acc.stream_pool.lease() as oldest, ExitStack() as held:
    for _ in range(20_000):
        held.enter_context(acc.stream_pool.lease())
    first = oldest
    others = held.pop_all()
with others:
    with acc.stream_pool.lease() as again:
        assert again == first
    beside = cost()
assert beside < 5 * alone, (beside, alone)
state = acc.stream_pool.state()
assert (state["leased"], state["returned"]) == (0, 20_001), state
"""
    result = run_python(code, CPU, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
