# SPDX-License-Identifier: Apache-2.0
"""Waits in a profile: of every stream that waits, and as long as what it waits for takes."""

import threading
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import profiler
from l0rt.bench import loops
from l0rt.runtime.streams import devices

KERNELS = Path(__file__).parents[1] / "kernels" / "basic.spv"
CLOCKS = 100_000  # nanoseconds: two clocks are read one after the other


@pytest.fixture(scope="module")
def module():
    made = l0rt.Module(KERNELS)
    kept = made["wait_until"]
    yield made
    del kept
    made.close()


def commands(profile, kind):
    return [record for record in profile.events if record.kind == kind]


def ways_to_wait(s, event, timed):
    """Each has the stream ``t`` wait for what ``s`` was given."""
    return {
        "wait_stream": lambda t: t.wait_stream(s),
        "wait_event": lambda t: t.wait_event(event),
        "Event.wait": event.wait,
        "a timed event": lambda t: t.wait_event(timed),
    }


@pytest.mark.checks_data
@pytest.mark.parametrize("way", ["wait_stream", "wait_event", "Event.wait", "a timed event"])
def test_a_wait_lasts_until_what_it_waits_for_has_ended(module, way):
    """On every stream that waits: one for computing, one for copies, an adopted one."""
    mine = loops.open_list(devices._context_of[0], devices._devices[0])
    waiting = [acc.Stream(), acc.stream_pool.copy_stream(), acc.Stream.from_handle(mine.handle, owner=mine)]
    s, flag = acc.Stream(), l0rt.empty(4, kind="host")
    word = np.frombuffer(flag, np.int32)
    word[0] = 0
    with profiler.profile() as p:
        module["wait_until"].launch(flag, 1, groups=1, group_size=1, stream=s)
        event, timed = l0rt.Event(), l0rt.Event(enable_timing=True)
        event.record(s)
        timed.record(s)
        wait = ways_to_wait(s, event, timed)[way]
        wait(s)  # for itself: it has nothing to wait for
        for t in waiting:
            wait(t)
        released_ns = profiler.now_ns()
        word[0] = 1
    (kernel,) = commands(p, "kernel")
    waits = commands(p, "wait")
    assert sorted(wait.stream for wait in waits) == sorted(t.stream_id for t in waiting)
    assert kernel.end_ns >= released_ns - CLOCKS
    for wait in waits:
        assert (wait.name, wait.device, wait.nbytes, wait.source, wait.groups) == ("wait", 0, None, None, None)
        assert wait.begin_ns <= wait.end_ns >= kernel.end_ns
        assert wait.call_ns <= wait.return_ns <= released_ns
    assert ["wait", "3"] in [line.split()[:2] for line in p.table().splitlines()]


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_a_wait_for_another_device_is_recorded_if_its_stream_makes_it(module):
    """Else the host waits in its place, and the stream is given nothing."""
    flag, t = l0rt.empty(4, kind="host"), acc.Stream(1)
    word, s = np.frombuffer(flag, np.int32), acc.Stream(0)
    word[0] = 0
    release = threading.Timer(0.05, word.__setitem__, (0, 1))
    with profiler.profile() as p:
        module["wait_until"].launch(flag, 1, groups=1, group_size=1, stream=s)
        release.start()
        t.wait_stream(s)
        l0rt.empty(1024, stream=t).fill(1, stream=t)
    release.join()
    (kernel,), (fill,) = commands(p, "kernel"), commands(p, "fill")
    assert kernel.end_ns <= fill.begin_ns + CLOCKS
    for wait in commands(p, "wait"):
        assert (wait.device, wait.stream) == (1, t.stream_id)
        assert kernel.end_ns - CLOCKS <= wait.end_ns <= fill.begin_ns
