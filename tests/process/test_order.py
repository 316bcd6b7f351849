# SPDX-License-Identifier: Apache-2.0
"""Streams keep their order, whatever the driver offers for it and however it uses its freedom."""

import pytest

from helpers.extents import HANG_LIMIT, SOAK
from helpers.process import run_python
from helpers.rings import TESTS

PROGRAMS = f"""
import sys
sys.path.insert(0, {str(TESTS)!r})
from l0rt.selftest.programs import PlainProgram, wrong_buffers, wrong_in_threads
"""
WAYS = {  # how the driver keeps order, and what its events are
    "in order": {},
    "in order, counter-based": {"L0RT_EVENTS": "cb"},
    "no list_sync, counter-based": {"L0RT_EVENTS": "cb", "L0RT_DISABLE": "list_sync"},
    "not in order": {"L0RT_DISABLE": "inorder"},
    "neither in order nor list_sync": {"L0RT_DISABLE": "inorder,list_sync"},
    "22.43": {"L0RT_CPU_PROFILE": "neo-22.43"},
    "counter-based events refused": {"L0RT_EVENTS": "cb", "L0RT_DISABLE": "cb_events"},
}


def check(code, env):
    result = run_python(PROGRAMS + code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, **env}, timeout=HANG_LIMIT)
    assert (result.returncode, result.stdout, result.stderr) == (0, "{}\n", "")


@pytest.mark.parametrize("way", WAYS)
def test_programs_equal_the_sequential_model(way, extent):
    seeds = extent(50, 150, 2000)
    check(f"print({{seed: w for seed in range({seeds}) if (w := wrong_buffers(seed))}})", WAYS[way])


@pytest.mark.parametrize("way", WAYS)
def test_programs_on_two_devices_and_a_driver_that_uses_its_freedom(way, extent):
    """The chaos seed decides the driver's delays, the program's seed what is done: a slice of both at once."""
    for chaos in range(1, 5 if SOAK else 2):
        first = 500 * (chaos - 1)
        seeds = range(first, first + extent(15, 40, 500))
        check(
            f"print({{seed: w for seed in {seeds!r} if (w := wrong_buffers(seed, devices=2))}})",
            {**WAYS[way], "L0RT_CPU_CHAOS": chaos},
        )


@pytest.mark.parametrize("way", WAYS)
def test_programs_of_several_threads_on_the_same_streams(way, extent):
    seeds = range(extent(4, 12, 500))
    code = f"print({{seed: w for seed in {seeds!r} if (w := wrong_in_threads(seed, devices=1 + seed % 2))}})"
    check(code, {**WAYS[way], "L0RT_CPU_CHAOS": 7})
    check(code, WAYS[way])


@pytest.mark.parametrize("way", ["in order", "in order, counter-based", "not in order", "22.43"])
def test_a_program_without_its_waits_is_found_out(way):
    """The check above can fail: leave the waits out, and some bytes come out wrong."""
    code = PROGRAMS + "print(any(wrong_buffers(seed, forgetful=True) for seed in range(100)))"
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_CHAOS": 1, **WAYS[way]}, timeout=600)
    assert (result.returncode, result.stdout, result.stderr) == (0, "True\n", "")


@pytest.mark.parametrize("way", WAYS)
def test_plain_programs_on_two_devices_equal_the_sequential_model(way, extent):
    """No stream and no event is named: the current streams of the devices order copies between them."""
    for chaos in range(1, 5 if SOAK else 2):
        first = 1000 * (chaos - 1)
        seeds = range(first, first + extent(30, 500 if way == "in order" else 60, 1000))
        check(
            f"print({{seed: w for seed in {seeds!r} if (w := wrong_buffers(seed, PlainProgram))}})",
            {**WAYS[way], "L0RT_CPU_CHAOS": chaos},
        )


@pytest.mark.parametrize("way", WAYS)
def test_plain_programs_of_several_threads_on_the_same_current_streams(way, extent):
    seeds = range(extent(5, 20, 500))
    code = f"print({{seed: w for seed in {seeds!r} if (w := wrong_in_threads(seed, PlainProgram, threads=3))}})"
    check(code, {**WAYS[way], "L0RT_CPU_CHAOS": 7})
    check(code, WAYS[way])


@pytest.mark.parametrize("way", ["in order", "in order, counter-based", "not in order", "22.43"])
def test_a_copy_between_devices_on_a_stream_that_is_named_has_that_order_alone(way):
    """So the plain programs can fail: name the streams, and some bytes come out wrong."""
    code = PROGRAMS + "print(any(wrong_buffers(seed, PlainProgram, forgetful=True) for seed in range(100)))"
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 2, "L0RT_CPU_CHAOS": 1, **WAYS[way]}
    result = run_python(code, env, timeout=600)
    assert (result.returncode, result.stdout, result.stderr) == (0, "True\n", "")


RECYCLED = """
import l0rt, numpy as np
from l0rt.accelerator import Event, Stream
one, other = Stream(), Stream()
small, big, out = l0rt.empty(64).fill(0), l0rt.empty(1 << 16).fill(0), l0rt.empty(1 << 16)
l0rt.accelerator.synchronize()
host, wrong = np.empty(64, np.uint8), {}
for i in range(ROUNDS):
    event = one.record_event()
    WAIT                                    # all before it is complete as well,
    assert event.query()
    del event                               # so this event is recycled at once
    big.fill(i % 256, stream=other)
    one.wait_event(other.record_event())    # a signal of the event's first use must not end this wait
    out.copy_from(big, stream=one)
    one.synchronize()
    if not (out.numpy() == i % 256).all():
        wrong[i] = "filled late"
    other.synchronize()
print(wrong)
"""


@pytest.mark.parametrize("way", ["in order", "not in order", "neither in order nor list_sync", "22.43"])
@pytest.mark.parametrize(
    "wait",
    [
        "small.copy_to(host, stream=one)",
        "timed = Event(enable_timing=True); timed.record(one); timed.synchronize()",
    ],
    ids=["copy", "timed event"],
)
def test_an_event_is_recycled_after_its_signal(wait, way, extent):
    code = RECYCLED.replace("ROUNDS", str(extent(100, 1000, 30000))).replace("WAIT", wait)
    check(code, {**WAYS[way], "L0RT_CPU_CHAOS": 7})
