# SPDX-License-Identifier: Apache-2.0
"""Work that never ends holds up all that comes behind it, whatever became of the objects that said so.

Where work takes its time, who does not wait for it may be late by chance; here that shows every time.
"""

import pytest

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2", "L0RT_CPU_PROFILE": None}
HANG = {"L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}
START = """
import os, threading
import l0rt, l0rt.accelerator as acc
a, b, c = acc.Stream(), acc.Stream(), acc.Stream()
x, y = l0rt.empty(4096), l0rt.empty(4096)
acc.synchronize()
def held_up(stream):
    return not stream.record_event().synchronize(timeout=0.3)
def hang(stream):
    x.fill(1, stream=stream)        # the process's first fill never ends
"""


def check(code, **env):
    """Run a program, which leaves without the wait at exit for what hangs."""
    result = run_python(f"{START}{code}os._exit(0)\n", {**CPU, **HANG, **env})
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("events", ["pool", "cb"])
def test_what_the_stream_is_given_later(events):
    """Trap 2: also where the driver ignores that a list is in order."""
    check("hang(a)\ny.fill(2, stream=a)\nassert held_up(a) and not held_up(b)\n", L0RT_EVENTS=events)


@pytest.mark.parametrize("events", ["pool", "cb"])
def test_a_stream_that_waits_for_an_event_that_is_recorded_anew(events):
    """Trap 7: the wait is for the record that there was."""
    code = """
e = l0rt.Event()
hang(a)
e.record(a)
b.wait_event(e)
e.record(c)
assert e.synchronize(timeout=60)
assert held_up(b) and not held_up(c)
"""
    check(code, L0RT_EVENTS=events)


@pytest.mark.parametrize("events", ["pool", "cb"])
def test_a_stream_that_waits_for_an_event_that_was_dropped(events):
    """Trap 8: nobody else is given the native event meanwhile, whose next record would end the wait."""
    code = """
hang(a)
b.wait_event(a.record_event())
for _ in range(600):                # more than there are in a pool
    c.record_event()
c.synchronize()
assert held_up(a) and held_up(b) and not held_up(c)
"""
    check(code, L0RT_EVENTS=events)


@pytest.mark.parametrize("free", ["y.free()", "t = threading.Thread(target=y.free)\nt.start()\nt.join()"])
@pytest.mark.parametrize("conf", ["", "backend:async"])
def test_who_takes_a_block_that_another_stream_uses(free, conf):
    """Traps 17 and 18: freed by whichever thread, it is reused behind that stream's work, and by default after it."""
    code = f"""
y = l0rt.empty(3 << 20, stream=b)
start = y.ptr
hang(a)
y.record_stream(a)
{free}
others = [l0rt.empty(3 << 20, stream=b) for _ in range(4)]
taken = any(z.ptr <= start < z.ptr + z.nbytes for z in others)
assert taken == {conf != ""} == held_up(b)
"""
    check(code, L0RT_ALLOC_CONF=conf)


def test_the_time_of_an_event():
    """Trap 6: of two that are not both complete there is none."""
    code = """
first, last, plain = l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True), l0rt.Event()
first.record(b)
b.synchronize()
hang(a)
last.record(a)
for ask in (lambda: first.elapsed_time(last), lambda: last.elapsed_time(first)):
    try:
        ask()
    except RuntimeError as error:
        assert str(error) == "Both events must be completed before calculating elapsed time."
    else:
        raise AssertionError
try:
    last.host_time()
except RuntimeError as error:
    assert str(error) == "the event must be recorded and completed"
else:
    raise AssertionError
"""
    check(code)
