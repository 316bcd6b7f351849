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


LEND = """
def waits(lend):
    thread = threading.Thread(target=lend, daemon=True)
    thread.start()
    thread.join(0.3)
    return thread.is_alive()
def check_held(z):
    assert waits(z.__dlpack__) and waits(lambda: z.__dlpack__(copy=True))
    if z.kind == "device":
        z.__dlpack__(stream=b)
        assert held_up(b)
    assert z.__dlpack__(**({"stream": -1} if z.kind == "device" else {"dl_device": (14, 0), "stream": -1}))
"""


@pytest.mark.parametrize("buffer", [
    "x", "x[64:]", "l0rt.empty(4096, stream=a)", "l0rt.empty(4096, kind='host')", "l0rt.empty(4096, kind='shared')",
])  # fmt: skip
def test_who_takes_a_capsule_waits_for_all_that_uses_the_memory(buffer):
    code = f"""
z = {buffer}
kept = [y.__dlpack__(), y.__dlpack__(stream=c)]
assert z.kind == "shared" or not waits(y.__dlpack__)
z.fill(1, stream=a, non_blocking=True)
check_held(z)
assert not waits(y.__dlpack__)          # memory that has nothing to do with it
"""
    check(LEND + code)


AWAIT = """
import asyncio
async def times_out(what):
    try:
        await asyncio.wait_for(what, 0.3)
    except asyncio.TimeoutError:
        return True
    return False
"""


def test_a_coroutine_waits_for_the_record_that_there_was():
    code = """
async def main():
    e = l0rt.Event()
    hang(a)
    e.record(a)
    waiting = asyncio.ensure_future(e)
    await asyncio.sleep(0)
    e.record(c)
    await e
    assert await times_out(asyncio.shield(waiting)) and not waiting.done()
    assert await times_out(a) and not await times_out(b)
    waiting.cancel()
    try:
        await waiting
    except asyncio.CancelledError:
        pass
asyncio.run(main())
"""
    check(AWAIT + code)


def test_a_thousand_coroutines_that_wait_take_one_timer():
    """Long waits do not keep the loop busy: what it calls does not grow with them."""
    code = """
async def main(tasks):
    turns = 0
    e = l0rt.Event()
    e.record(a)
    waiting = [asyncio.ensure_future(e) for _ in range(tasks)]
    await asyncio.sleep(0.1)
    loop, later, soon = asyncio.get_running_loop(), [], []
    plain_later, plain_soon = loop.call_later, loop.call_soon
    loop.call_later = lambda *args, **how: (later.append(1), plain_later(*args, **how))[1]
    loop.call_soon = lambda *args, **how: (soon.append(1), plain_soon(*args, **how))[1]
    await asyncio.sleep(0.2)
    loop.call_later, loop.call_soon = plain_later, plain_soon
    assert not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    return len(later) + len(soon)
hang(a)
assert asyncio.run(main(1000)) <= 110       # one look in at least two milliseconds, and the sleep's own
"""
    check(AWAIT + code)


def test_a_coroutine_learns_that_the_device_is_lost():
    code = """
async def main():
    hang(a)
    others = [asyncio.ensure_future(b) for _ in range(2)]
    for what in (a, a.record_event()):
        try:
            await asyncio.wait_for(what, 60)
        except l0rt.DeviceLostError:
            continue
        raise AssertionError("not told")
    await asyncio.wait(others)
    [task.exception() for task in others]
asyncio.run(main())
"""
    check(AWAIT + code, L0RT_CPU_FAIL=HANG["L0RT_CPU_FAIL"] + ",zeDeviceGetStatus:1:ERROR_DEVICE_LOST")
