# SPDX-License-Identifier: Apache-2.0
"""How a profile ends where something goes wrong: a hung or lost device, Ctrl-C, a fork, the exit of the process."""

import pytest

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None}
HANG = {**CPU, "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}
HEAD = """
import os, signal, sys, threading
import l0rt, l0rt.accelerator as acc
from l0rt import profiler
x, y = l0rt.empty(1 << 20), l0rt.empty(1 << 20)
a, b = acc.Stream(), acc.Stream()
def fills(p):
    return [r for r in p.events if r.kind == "fill"]
"""


def check(code, env=CPU, out="works\n", status=0):
    result = run_python(HEAD + code, env, timeout=60)
    assert (result.returncode, result.stdout) == (status, out), result
    assert "Traceback" not in result.stderr, result


def test_ctrl_c_ends_the_wait_of_a_block_and_the_device_goes_on():
    code = """
def interrupt(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.3)
p = profiler.profile()
try:
    with p:
        x.fill(1, stream=a)             # never ends
    print("lost")
except KeyboardInterrupt:
    pass
with profiler.profile() as q:           # it is over nevertheless
    y.fill(2, stream=b)
assert len(fills(q)) == 1
signal.setitimer(signal.ITIMER_REAL, 0.3)
try:
    p.events                            # waits on
    print("lost")
except KeyboardInterrupt:
    print("works", flush=True)
del p                                   # the device may still write its stamps
with profiler.profile() as q:
    y.fill(2, stream=b)
assert len(fills(q)) == 1
os._exit(0)
"""
    check(code, HANG)


LOST = "zeCommandListHostSynchronize:{0}:ERROR_DEVICE_LOST,zeEventHostSynchronize:{0}:ERROR_DEVICE_LOST"


def test_a_device_that_is_lost_while_the_end_of_the_block_waits():
    code = """
p = profiler.profile()
try:
    with p:
        y.fill(2, stream=b)
    print("no error")
except l0rt.DeviceLostError:
    pass
assert len(fills(p)) + p.unfinished == 1, (p.events, p.unfinished)
p.table()
q = profiler.profile()                  # a lost device is left out
with q:
    profiler.mark("m")
assert [r.name for r in q.events] == ["m"]
print("works", flush=True)
os._exit(0)
"""
    check(code, {**CPU, "L0RT_CPU_FAIL": LOST.format(1)})


@pytest.mark.parametrize("error", ["", "1 / 0"])
def test_a_device_that_is_lost_inside_the_block_which_says_so_itself(error):
    code = f"""
p = profiler.profile()
try:
    with p:
        y.fill(2, stream=b)
        try:
            b.synchronize()
            print("no error")
        except l0rt.DeviceLostError:
            {error or "pass"}
except ZeroDivisionError:
    assert "{error}"
assert len(fills(p)) + p.unfinished == 1, (p.events, p.unfinished)
print("works", flush=True)
os._exit(0)
"""
    check(code, {**CPU, "L0RT_CPU_FAIL": LOST.format(1)})


def test_a_forked_child_leaves_the_block_and_has_no_profile():
    code = """
with profiler.profile() as p:
    x.fill(1, stream=a)
    child = os.fork()
    profiler.range_push("both")
    profiler.range_pop()
if child == 0:
    try:
        p.events
    except RuntimeError as error:
        os._exit(0 if "from which this one was forked" in str(error) else 3)
    os._exit(4)
assert os.waitpid(child, 0)[1] == 0
assert len(fills(p)) == 1
print("works")
"""
    check(code)


def test_a_forked_child_can_profile_ranges_of_nothing_but_says_why_not():
    code = """
p = profiler.profile().__enter__()
child = os.fork()
if child == 0:
    try:
        profiler.profile().start()
    except RuntimeError as error:
        os._exit(0 if "forked" in str(error) else 3)
    os._exit(4)
assert os.waitpid(child, 0)[1] == 0
p.stop()
print("works")
"""
    check(code)


@pytest.mark.parametrize("how", ["sys.exit(7)", "os.kill(os.getpid(), signal.SIGINT)"])
def test_an_exit_inside_the_block(how):
    code = f"""
print("works", flush=True)
try:
    with profiler.profile() as p:
        x.fill(1, stream=a)
        {how}
except KeyboardInterrupt:
    sys.exit(7)
"""
    check(code, status=7)


def test_an_exit_with_a_profile_that_nobody_ends():
    code = """
p = profiler.profile()
p.start()
x.fill(1, stream=a)
print("works")
"""
    check(code)


def test_an_exit_with_a_profile_of_another_thread():
    code = """
begun = threading.Event()
def work():
    with profiler.profile():
        while True:
            x.fill(1, stream=a)
            begun.set()
threading.Thread(target=work, daemon=True).start()
begun.wait()
print("works")
"""
    check(code)


@pytest.mark.parametrize("disable", ["inorder", "inorder,list_sync", "cb_events", "list_sync"])
def test_order_that_l0rt_keeps_itself_and_every_kind_of_events(disable):
    code = """
with profiler.profile() as p:
    for _ in range(50):
        x.fill(1, stream=a)
        b.wait_stream(a)
        y.copy_from(x, stream=b)
        a.wait_stream(b)
work = [r for r in p.events if r.kind != "wait"]
assert [r.kind for r in work] == ["fill", "copy"] * 50
for one, two in zip(work, work[1:]):
    assert one.end_ns <= two.begin_ns
print("works")
"""
    check(code, {**CPU, "L0RT_DISABLE": disable, "L0RT_CPU_CHAOS": "3"})


def test_a_clock_that_wraps_around_during_the_profile():
    code = """
import time
WRAP = (1 << 28)                        # nanoseconds
with profiler.profile() as p:
    done = []
    while not done or done[-1] - p.begin_ns < 3 * WRAP:
        x.fill(1, stream=a)
        a.synchronize()
        done.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW))
        time.sleep(0.01)                # not for an order: for time to pass
found = fills(p)
assert len(found) == len(done)
for r, until in zip(found, done):
    assert r.call_ns - WRAP // 4 <= r.begin_ns <= until + WRAP // 4, r
assert found[-1].begin_ns - found[0].begin_ns >= 2 * WRAP
print("works")
"""
    check(code, {**CPU, "L0RT_CPU_TIMESTAMP_BITS": "28", "L0RT_CPU_TIMESTAMP_HZ": "1000000000"})


def test_a_driver_that_cannot_read_both_clocks():
    code = """
try:
    profiler.profile().start()
except l0rt.UnsupportedError as error:
    assert "cannot read both clocks" in str(error)
x.fill(1)
print("works")
"""
    check(code, {**CPU, "L0RT_DISABLE": "global_ts"})


def test_stamps_that_the_driver_refuses_do_not_fail_the_commands():
    code = """
with profiler.profile() as p:
    for _ in range(4):
        x.fill(1, stream=a)
assert len(fills(p)) == 2, p.events
print("works")
"""
    env = {"L0RT_CPU_FAIL": "zeCommandListAppendWriteGlobalTimestamp:1:ERROR_UNKNOWN,"
           "zeCommandListAppendWriteGlobalTimestamp:5:ERROR_UNKNOWN"}  # fmt: skip
    check(code, {**CPU, **env})


@pytest.mark.parametrize("call", ["zeMemAllocHost", "zeDeviceGetGlobalTimestamps"])
def test_a_profile_that_cannot_begin_leaves_nothing(call):
    code = """
from l0rt.runtime.streams import timeline
acc.synchronize()
failed = 0
for _ in range(6):
    try:
        with profiler.profile() as p:
            x.fill(1, stream=a)
        assert len(fills(p)) == 1
    except l0rt.L0Error:
        failed += 1
assert failed == 1, failed
assert timeline.kept() == 0
print("works")
"""
    check(code, {**CPU, "L0RT_CPU_FAIL": f"{call}:2:ERROR_OUT_OF_HOST_MEMORY"})
