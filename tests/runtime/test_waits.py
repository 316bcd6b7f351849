# SPDX-License-Identifier: Apache-2.0
"""Waits for many at once, how the host passes its time, callbacks, and what is told of streams that are stuck."""

import os
import threading

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import config

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": "2"}
HANG = {**CPU, "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}
QUIET = (0, "", "")


def outcome(code, env):
    result = run_python(code, env)
    return result.returncode, result.stdout, result.stderr


def test_wait_all_and_any_of_nothing_in_flight():
    assert acc.wait_all() is None
    assert acc.wait_all(timeout=0) is True
    assert acc.wait_any(l0rt.Event(), timeout=0) == 0
    with pytest.raises(ValueError, match="needs something to wait for"):
        acc.wait_any()
    for wait in (acc.wait_all, acc.wait_any):
        with pytest.raises(TypeError, match="expected Events and Streams, got int"):
            wait(3)
    with pytest.raises(TypeError, match="only for a wait of the host"):
        acc.wait_all(stream=acc.Stream(), timeout=1)


@pytest.mark.checks_data
@pytest.mark.parametrize("devices", [1, 2])
def test_a_stream_waits_for_many_at_once(devices):
    """More events than one append takes, never recorded ones among them."""
    devices = min(devices, acc.device_count())
    streams = [acc.Stream(i % devices) for i in range(40)]
    sources = [l0rt.empty(4096, stream=s) for s in streams]
    gather = acc.Stream(0)
    events = []
    for i, (s, x) in enumerate(zip(streams, sources, strict=True)):
        x.fill(i, stream=s)
        events += [s.record_event(), l0rt.Event()]
    acc.wait_all(*events[:40], *streams[20:], stream=gather)
    for i, x in enumerate(sources):
        assert (x.copy_to(np.empty(4096, "u1"), stream=gather) == i).all()


def test_many_waits_are_one_append():
    code = """
import l0rt, l0rt.accelerator as acc
streams = [acc.Stream() for _ in range(10)]
x = [l0rt.empty(1 << 20, stream=s) for s in streams]
for s, b in zip(streams, x): b.fill(1, stream=s)
acc.wait_all(*[s.record_event() for s in streams], stream=acc.Stream())    # the second append of a wait would fail
acc.synchronize()
"""
    assert outcome(code, {**CPU, "L0RT_CPU_FAIL": "zeCommandListAppendWaitOnEvents:2:ERROR_UNKNOWN"}) == QUIET


def test_wait_any_gives_the_first_and_a_timeout_none():
    code = """
import l0rt, l0rt.accelerator as acc
a, b, x = acc.Stream(), acc.Stream(), l0rt.empty(64)
x.fill(0, stream=a)
stuck, quick = a.record_event(), b.record_event()
for policy in (None, "spin", "yield", "block"):
    assert acc.wait_any(stuck, quick, policy=policy) == 1
    assert acc.wait_any(stuck, timeout=0.02, policy=policy) is None
    assert acc.wait_all(stuck, quick, timeout=0.02, policy=policy) is False
    assert stuck.synchronize(timeout=0.02, policy=policy) is False
    assert a.synchronize(timeout=0, policy=policy) is False
assert acc.wait_all(quick, timeout=60) is True
assert acc.wait_any(a, b) == 1
"""
    assert outcome(code, HANG) == QUIET


def test_a_lost_device_ends_waits_that_began_before():
    """The host waits for work that never ends; meanwhile another thread is told that the device is lost."""
    code = """
import threading
import l0rt, l0rt.accelerator as acc
a, b, x = acc.Stream(), acc.Stream(), l0rt.empty(64)
x.fill(0, stream=a)
stuck, told = a.record_event(), []
def wait(how):
    try:
        how()
    except l0rt.DeviceLostError:
        told.append(1)
waits = [stuck.synchronize, a.synchronize, acc.synchronize, lambda: acc.wait_any(stuck), lambda: acc.wait_all(stuck)]
threads = [threading.Thread(target=wait, args=(how,)) for how in waits]
for t in threads: t.start()
try:
    x.copy_from(x if False else l0rt.empty(64), stream=b)
except l0rt.DeviceLostError:
    told.append(1)
for t in threads: t.join()
assert len(told) == 6, told
"""
    fail = "zeCommandListAppendMemoryFill:1:hang,zeCommandListAppendMemoryCopy:1:ERROR_DEVICE_LOST"
    assert outcome(code, {**CPU, "L0RT_CPU_FAIL": fail}) == QUIET


@pytest.mark.parametrize(
    "function",
    "zeCommandListCreateImmediate zeEventPoolCreate zeCommandListAppendSignalEvent zeCommandListAppendWaitOnEvents "
    "zeCommandListAppendBarrier zeCommandListAppendWriteGlobalTimestamp zeEventHostSynchronize zeEventQueryStatus "
    "zeCommandListHostSynchronize".split(),
)
def test_a_device_lost_in_any_call_stays_lost(function):
    code = """
import l0rt, l0rt.accelerator as acc
def work():
    a, b, e, t = acc.Stream(), acc.Stream(), l0rt.Event(), l0rt.Event(enable_timing=True)
    x = l0rt.empty(8 << 20, stream=a)
    x.fill(1, stream=a)
    e.record(a), e.query(), t.record(a), b.wait_event(e), b.wait_event(t)
    x.fill(1, stream=a)
    a.query(), t.synchronize(), b.synchronize(), a.synchronize()
lost = 0
for _ in range(200):
    try:
        work()
    except l0rt.DeviceLostError:
        lost += 1
    else:
        assert not lost, "works again"
assert lost, "never called"
"""
    for disabled in ("", "inorder,list_sync"):
        if (function, disabled) in {
            ("zeCommandListAppendBarrier", ""),
            ("zeCommandListHostSynchronize", "inorder,list_sync"),
            ("zeCommandListAppendSignalEvent", "inorder,list_sync"),
        }:
            continue
        # The probes of the capabilities come first.
        nth = 4 if function in ("zeCommandListCreateImmediate", "zeCommandListHostSynchronize") else 2
        fail = f"{function}:{nth}:ERROR_DEVICE_LOST"
        env = {**CPU, "L0RT_CPU_DEVICES": "1", "L0RT_DISABLE": disabled, "L0RT_CPU_FAIL": fail}
        assert outcome(code, env) == QUIET, disabled


@pytest.mark.checks_data  # a driver that executes nothing ends no spin: a stream of the pool may have earlier work
def test_policies_are_words_of_three():
    for wait in (acc.Stream().synchronize, l0rt.Event().synchronize, lambda **k: acc.wait_all(**k)):
        for policy in ("spin", "yield", "block", None):
            wait(policy=policy)
        for wrong in ("sleep", 3, ""):
            with pytest.raises(ValueError, match="a wait policy must be one of spin, yield, block"):
                wait(policy=wrong)


@pytest.mark.checks_data
def test_every_policy_waits_to_the_end():
    s, e = acc.Stream(), l0rt.Event(blocking=True)
    x, y = l0rt.empty(32 << 20, stream=s), l0rt.empty(32 << 20, kind="host")
    for i, policy in enumerate(("spin", "yield", "block", "none")):
        with config.patch({"xpu.wait_policy": policy}):
            x.fill(i, stream=s)
            y.copy_from(x, non_blocking=True, stream=s)
            s.synchronize()
            assert (np.asarray(memoryview(y)) == i).all()
            x.fill(i + 100, stream=s)
            y.copy_from(x, non_blocking=True, stream=s)
            e.record(s)
            e.synchronize()
            assert (np.asarray(memoryview(y)) == i + 100).all()


def test_a_blocking_wait_burns_no_cpu():
    """The thread's own CPU time, against that of a spinning wait of the same length on the same machine."""
    code = """
import time
import l0rt, l0rt.accelerator as acc
x = l0rt.empty(64)
x.fill(0)
def burnt(e, policy=None):
    e.record()
    before = time.thread_time()
    e.synchronize(timeout=0.5, policy=policy)
    return time.thread_time() - before
# Other processes take time from one that spins, and make each wake-up of one that blocks dearer.
spin = max(burnt(l0rt.Event(), "spin") for _ in range(3))
block = min(burnt(l0rt.Event(blocking=True)) for _ in range(3))
named = min(burnt(l0rt.Event(), "block") for _ in range(3))
assert block < spin / 4 and named < spin / 4, (spin, block, named)
"""
    assert outcome(code, HANG) == QUIET


def test_callbacks_run_in_stream_order_after_the_work():
    s, seen, done = acc.Stream(), [], threading.Event()
    x = l0rt.empty(16 << 20, stream=s)
    for i in range(20):
        x.fill(i, stream=s)
        e = s.record_event()
        s.add_callback(lambda i, e: seen.append((i, e.query())), i, e)
    s.add_callback(done.set)
    assert done.wait(60)
    if os.environ.get("L0RT_TEST_NO_DATA") != "1":
        assert seen == [(i, True) for i in range(20)]
    with pytest.raises(TypeError, match="a callback must be callable"):
        s.add_callback(3)


def test_a_failing_callback_is_reported_and_the_next_runs(monkeypatch):
    s, told, done = acc.Stream(), [], threading.Event()
    monkeypatch.setattr("sys.unraisablehook", told.append)
    s.add_callback(lambda: 1 // 0)
    s.add_callback(done.set)
    assert done.wait(60)
    assert [t.exc_type for t in told] == [ZeroDivisionError]
    del told[:]


def test_callbacks_use_streams_and_exit_waits_for_them():
    code = """
import l0rt, l0rt.accelerator as acc
s = acc.Stream()
x = l0rt.empty(64 << 20, stream=s)
x.fill(3, stream=s)
def then():
    print(bytes(x.copy_to(bytearray(64 << 20), stream=s)[:1]))
s.add_callback(then)
"""
    assert outcome(code, CPU) == (0, "b'\\x03'\n", "")


def test_a_stuck_stream_says_what_it_waits_for():
    code = """
import logging, io
import l0rt, l0rt.accelerator as acc
assert acc.stuck_report() == ""
a, b, x = acc.Stream(), acc.Stream(1), l0rt.empty(64)
x.fill(0, stream=a)
b.wait_event(a.record_event())
text = io.StringIO()
logging.getLogger("l0rt.stream").addHandler(logging.StreamHandler(text))
logging.getLogger("l0rt.stream").setLevel(logging.INFO)
assert b.synchronize(timeout=0.01) is False
for report in (acc.stuck_report(), text.getvalue()):
    lines = report.splitlines()
    assert any(f"waits for command 2 of {a}, which has done 0" in line for line in lines), report
assert f"{a}: 0 of" in acc.stuck_report(0) and f"{b}: 0 of" in acc.stuck_report(1)
"""
    assert outcome(code, HANG) == QUIET


def test_a_stuck_stream_with_an_append_that_blocks_says_so():
    code = """
import threading
import l0rt, l0rt.accelerator as acc
s, x, over = acc.Stream(), l0rt.empty(64), []
x.fill(0, stream=s)
def work():
    x.fill(1, stream=s)
    over.append(1)
threading.Thread(target=work, daemon=True).start()
while "a command is being appended" not in acc.stuck_report():
    assert not over
import os; os._exit(0)
"""
    fail = "zeCommandListAppendMemoryFill:1:hang,zeCommandListAppendMemoryFill:2:slow=3000"
    assert outcome(code, {**CPU, "L0RT_CPU_FAIL": fail}) == QUIET


@pytest.mark.checks_data
def test_a_long_fill_is_still_running_when_it_and_the_record_return():
    """A machine that stops this thread for as long as the fill takes may spoil a try: a call that waits spoils each.

    Data is checked: a fill that is not executed takes no time.
    """
    s, x = acc.Stream(), l0rt.empty(1 << 30)
    for i in range(5):
        x.fill(i, stream=s)
        e = s.record_event()
        pending = not e.query() and not s.query()
        assert s.synchronize(timeout=300)
        if pending:
            break
    assert pending
    assert e.query()


def test_nothing_is_secretly_synchronous():
    """After a fill that never ends, everything asynchronous returns: whatever waited for it would hang."""
    code = """
import l0rt, l0rt.accelerator as acc
s, t = acc.Stream(), acc.Stream()
x, y, h = l0rt.empty(1 << 20), l0rt.empty(1 << 20), l0rt.empty(1 << 20, kind="host")
x.fill(1, stream=s)                         # never ends: what waits for it, hangs
e = s.record_event()
assert not e.query() and not s.query()
t.wait_event(e); t.wait_stream(s); acc.wait_all(e, stream=t); acc.wait_all(s, t, stream=acc.Stream())
y.copy_from(x, stream=t); h.copy_from(y, non_blocking=True, stream=t); y.copy_from(h, non_blocking=True, stream=t)
y.fill(2, stream=t); y.fill(pattern=b"12345678", stream=t); t.record_event(l0rt.Event(enable_timing=True))
e.record(t); e.wait(s)
x.record_stream(t); s.add_callback(print); s.native_handle
for _ in range(100): e.record(s); t.wait_event(e)
assert not acc.wait_all(e, timeout=0) and acc.wait_any(s, t, timeout=0) is None
with acc.stream_pool.lease() as leased, leased:
    leased.wait_event(e); z = l0rt.empty(1 << 20); z.fill(3); z.copy_from(x); leased.record_event(l0rt.Event())
    acc.current_stream(); acc.stuck_report(); del z
copies = acc.stream_pool.copy_stream()
copies.wait_stream(s); y.copy_from(x, stream=copies); y.copy_to(h, non_blocking=True, stream=copies)
other = acc.Stream(1); w = l0rt.empty(1 << 20, stream=other)
other.wait_event(e); w.fill(1, stream=other); other.record_event(); del w
acc.Event().record(s); acc.set_stream(t); acc.memory_stats(); l0rt.Event(blocking=True).record(t)
b = l0rt.empty(4096, stream=s); b.record_stream(t); b.free(); l0rt.empty(8 << 20, stream=t).free()
del e, x, y, h
l0rt.empty(1 << 20, stream=t)
print("asynchronous", flush=True)
import os; os._exit(0)
"""
    for extra in ({}, {"L0RT_DISABLE": "inorder,list_sync"}, {"L0RT_EVENTS": "cb"}):
        assert outcome(code, {**HANG, **extra}) == (0, "asynchronous\n", "")
