# SPDX-License-Identifier: Apache-2.0
"""Streams with one holder: leased, of a copy engine, adopted; and events that processes share."""

import gc
import weakref

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt.bench import loops
from l0rt.runtime.streams import devices
from l0rt.ze import table

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2"}
QUIET = (0, "", "")


def outcome(code, env=CPU):
    result = run_python(code, env, timeout=120)
    return result.returncode, result.stdout, result.stderr


def foreign_list(device=0):
    """Return an immediate list that another library might have made in l0rt's context."""
    acc.current_stream()
    return loops.open_list(devices._context_of[device], devices._devices[device])


def leased():
    return acc.stream_pool.state()["leased"]


def test_a_leased_stream_is_nobody_elses():
    before = leased()
    with acc.stream_pool.lease() as a, acc.stream_pool.lease(priority=-5) as b, acc.stream_pool.lease() as c:
        assert len({a, b, c}) == 3
        assert b.priority == -1
        handed_out = {acc.Stream(priority=p) for p in (-1, 0, 1) for _ in range(40)}
        assert not {a, b, c} & handed_out
        assert acc.current_stream() not in {a, b, c}
        again = acc.Stream(stream_id=a.stream_id, device_index=0)
        assert again == a
        assert leased() == before + 3
    assert leased() == before
    with pytest.raises(ValueError, match="no stream with the id"):
        acc.Stream(stream_id=a.stream_id, device_index=0)
    with acc.stream_pool.lease() as d:
        assert d in {a, c}


def test_leases_begin_and_end_once():
    lease, before = acc.stream_pool.lease(), leased()
    with pytest.raises(RuntimeError, match="was not entered"):
        lease.__exit__(None, None, None)
    with lease, pytest.raises(RuntimeError, match="was entered before"):
        lease.__enter__()
    with pytest.raises(KeyError), lease:
        raise KeyError
    assert leased() == before
    with pytest.raises(ValueError, match="engine must be one of compute, copy"):
        acc.stream_pool.lease(engine="video")
    with pytest.raises(TypeError):
        acc.stream_pool.lease(priority="high")
    with pytest.raises(IndexError):
        acc.stream_pool.lease(63)


@pytest.mark.checks_data
def test_a_lease_that_ends_with_work_pending_does_all_of_it():
    """The list stays, whoever leases it next: nothing is destroyed under its work, and nothing of it overtakes."""
    x, out = l0rt.empty(16 << 20), np.empty(16 << 20, "u1")
    acc.synchronize()
    for i in range(1, 20):
        with acc.stream_pool.lease() as s:
            x.fill(i, stream=s)
            e = s.record_event()
        del s
        gc.collect()
        with acc.stream_pool.lease() as t:
            t.wait_event(e)
            assert (x.copy_to(out, stream=t) == i).all()


@pytest.mark.checks_data
def test_a_copy_engine_copies_and_fills_with_any_pattern():
    s = acc.stream_pool.copy_stream()
    assert s == acc.stream_pool.copy_stream(0)
    if devices.properties(0).get("copy_queues", 1):
        assert s.hw_queue != acc.default_stream().hw_queue
    with acc.stream_pool.lease(engine="copy") as t:
        x, y = l0rt.empty(4096 * 3, stream=t), l0rt.empty(4096 * 3, stream=t)
        for size in (1, 2, 4, 8, 16):
            pattern = bytes(range(1, size + 1))
            x.fill(pattern=pattern, stream=t)
            y.copy_from(x, stream=t)
            assert bytes(y.copy_to(bytearray(4096 * 3), stream=t)) == pattern * (4096 * 3 // size)


@pytest.mark.checks_data
def test_an_adopted_list_orders_its_work_and_counts_for_the_device():
    mine, owner = foreign_list(), type("Owner", (), {})()
    alive = weakref.ref(owner)
    s = acc.Stream.from_handle(mine.handle, owner=owner)
    del owner
    assert s.native_handle == mine.handle
    assert s == acc.Stream.from_handle(mine.handle)
    assert s == l0rt.xpu.get_stream_from_external(mine.handle)
    assert acc.Stream(stream_id=s.stream_id, device_index=0) == s
    x, y, other = l0rt.empty(1 << 16, stream=s), l0rt.empty(1 << 16, stream=s), acc.Stream()
    for i in range(100):
        x.fill(i, stream=s)
        y.copy_from(x, stream=s)
        other.wait_event(s.record_event())
        s.wait_stream(other)
    acc.synchronize()
    assert (y.copy_to(np.empty(1 << 16, "u1"), stream=other) == 99).all()
    with s:
        assert acc.current_stream() == s
        x.fill(7)
    assert (x.copy_to(np.empty(1 << 16, "u1"), stream=s) == 7).all()
    assert alive() is not None
    number = s.stream_id
    x.free(), y.free()
    del s, x, y
    gc.collect()
    assert alive() is None
    with pytest.raises(ValueError, match="no stream with the id"):
        acc.Stream(stream_id=number, device_index=0)
    acc.synchronize()
    mine.close()


@pytest.mark.checks_data
def test_work_that_other_hands_append_is_waited_for():
    """l0rt's own counts say idle; the list says otherwise."""
    code = """
import l0rt, l0rt.accelerator as acc
from l0rt.bench import loops
from l0rt.runtime.streams import devices
x = l0rt.empty(1 << 16)
own = acc.Stream()
foreign = loops.open_list(devices._context_of[0], devices._devices[0])
adopted = acc.Stream.from_handle(foreign.handle)
import ctypes
ze = ctypes.CDLL(l0rt.cpu_driver_path())
for s in (own, adopted):
    handle = ctypes.c_void_p(s.native_handle)
    s.synchronize()
    assert ze.zeCommandListAppendMemoryFill(handle, ctypes.c_void_p(x.ptr), b"1", ctypes.c_size_t(1),
                                            ctypes.c_size_t(1 << 16), None, 0, None) == 0
    assert not s.query(), s
    assert s.synchronize(timeout=0.01) is False
    e = l0rt.Event(); e.record(s)
    later = acc.Stream()
    later.wait_stream(s)
    assert later.synchronize(timeout=0.01) is False
    assert acc.synchronize(timeout=0.01) is False
import os; os._exit(0)
"""
    for disabled in ("", "inorder", "list_sync", "inorder,list_sync"):
        fail = "zeCommandListAppendMemoryFill:1:hang,zeCommandListAppendMemoryFill:2:hang"
        assert outcome(code, {**CPU, "L0RT_DISABLE": disabled, "L0RT_CPU_FAIL": fail}) == QUIET


def test_a_list_of_ponte_vecchios_engines_for_links_is_adopted_as_one_that_only_copies():
    code = """
import ctypes, l0rt, l0rt.accelerator as acc
from l0rt.runtime.streams import devices
acc.current_stream()
ze, P = ctypes.CDLL(l0rt.cpu_driver_path()), ctypes.c_void_p
class Desc(ctypes.Structure):
    _fields_ = [("stype", ctypes.c_uint32), ("pNext", P)]
    _fields_ += [(name, ctypes.c_uint32) for name in ("ordinal", "index", "flags", "mode", "priority")]
handle = P()
made = ze.zeCommandListCreateImmediate(
    P(l0rt.xpu.native_context()), P(l0rt.xpu.native_device(0)), ctypes.byref(Desc(0xe, None, 2, 6, 0, 2, 0)),
    ctypes.byref(handle))
assert made == 0, hex(made)
link = acc.Stream.from_handle(handle.value)
assert link.hw_queue[0] == 2, link.hw_queue
x, pattern = l0rt.empty(1 << 12, stream=link), bytes(range(1, 17))
x.fill(pattern=pattern, stream=link)      # of which its engine takes a byte at a time
assert x.copy_to(bytearray(1 << 12), stream=link) == pattern * 256
x.uniform_(stream=link)                   # and no kernel runs there
link.synchronize()
import os; os._exit(0)
"""
    assert outcome(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "pvc", "L0RT_DISABLE": None}) == QUIET


def test_adopted_lists_are_checked():
    for wrong in (0, -1, None, "1", 1 << 64, True):
        with pytest.raises(ValueError, match="a command list's handle must be an address"):
            acc.Stream.from_handle(wrong)


@pytest.mark.needs_two_devices
def test_a_list_of_another_device_is_not_adopted():
    mine = foreign_list(1)
    if "zeCommandListGetDeviceHandle" not in table.missing():  # a loader older than 1.9 cannot tell a list's device
        with pytest.raises(ValueError, match="belongs to another device than 0"):
            acc.Stream.from_handle(mine.handle, device=0)
    assert acc.Stream.from_handle(mine.handle, device=1).device_index == 1
    acc.synchronize(1)
    mine.close()


@pytest.mark.checks_data
def test_an_adopted_stream_dropped_in_flight_leaves_nothing_behind():
    """Events that its list still has to pass are not recycled before, though the stream is gone; records are reused."""
    other, x = acc.Stream(), l0rt.empty(1 << 20)
    for i in range(30):
        mine = foreign_list()
        s = acc.Stream.from_handle(mine.handle)
        for _ in range(20):
            x.fill(i, stream=other)
            s.wait_event(other.record_event())
            other.wait_event(s.record_event())
        del s
        gc.collect()
        acc.synchronize()
        acc.synchronize()
        mine.close()
    assert acc.stream_pool.state()["adopted"] == 0


def test_a_current_stream_that_was_given_back_says_so():
    code = """
import l0rt, l0rt.accelerator as acc
from l0rt.bench import loops
from l0rt.runtime.streams import devices
acc.current_stream()
foreign = loops.open_list(devices._context_of[0], devices._devices[0])
acc.set_stream(acc.Stream.from_handle(foreign.handle))
x = None
for use in (acc.current_stream, lambda: l0rt.Event().record(), lambda: l0rt.empty(64).fill(1)):
    try:
        use()
    except RuntimeError as e:
        assert "given back" in str(e), e
    else:
        raise AssertionError(use)
acc.set_stream(acc.default_stream())
"""
    assert outcome(code) == QUIET


@pytest.mark.shares_events
def test_events_between_processes():
    code = """
import subprocess, sys, os
import l0rt, l0rt.accelerator as acc
e, s, x = l0rt.Event(interprocess=True), acc.Stream(), l0rt.empty(64)
for wrong in (lambda: l0rt.Event(interprocess=True).ipc_handle(), lambda: l0rt.Event().ipc_handle()):
    try: wrong()
    except NotImplementedError: pass
    else: raise AssertionError
e.record(s); e.synchronize()
CHILD = '''
import sys, l0rt, l0rt.accelerator as acc
e = l0rt.Event.from_ipc_handle("xpu:0", bytes.fromhex(sys.argv[1]))
print(e.query(), flush=True)
sys.stdin.readline()
print(e.query(), e.synchronize(timeout=0.05), flush=True)
s = acc.Stream()
s.wait_event(e)
print(s.query(), flush=True)
try: e.record(s)
except RuntimeError as error: print("recorded in that process" in str(error), flush=True)
try: e.ipc_handle()
except Exception as error: print(type(error).__name__, flush=True)
import os; os._exit(0)
'''
child = subprocess.Popen([sys.executable, "-c", CHILD, e.ipc_handle().hex()], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
assert child.stdout.readline() == "True\\n"
x.fill(1, stream=s)         # never ends
e.record(s)
child.stdin.write("go\\n"); child.stdin.flush()
assert child.stdout.readline() == "False False\\n"
assert child.stdout.readline() == "False\\n"
assert child.stdout.readline() == "True\\n"
child.stdout.read()
assert child.wait() == 0
os._exit(0)
"""
    env = {**CPU, "L0RT_CPU_FAIL": "zeCommandListAppendMemoryFill:1:hang"}
    result = run_python(code, env, timeout=120)
    assert (result.returncode, result.stdout) == (0, ""), result


@pytest.mark.checks_data  # without hardware Intel's driver shares no event pool
@pytest.mark.shares_events
def test_shared_events_are_recorded_anew_and_dropped():
    s = acc.Stream()
    for _ in range(20):
        e = l0rt.Event(interprocess=True)
        for _ in range(3):
            e.record(s)
            assert e.synchronize(timeout=60)
        assert len(e.ipc_handle()) == 136
    with pytest.raises(ValueError, match="cannot be timed and interprocess"):
        l0rt.Event(enable_timing=True, interprocess=True)
    with pytest.raises(TypeError, match="handle must be bytes"):
        l0rt.Event.from_ipc_handle(0, "x")
    with pytest.raises(ValueError, match="no handle of an Event"):
        l0rt.Event.from_ipc_handle(0, b"abc")
    with pytest.raises(ValueError, match="damaged: it has 135 bytes and not 136"):
        l0rt.Event.from_ipc_handle(0, e.ipc_handle()[:-1])
    s.synchronize()


@pytest.mark.checks_data
def test_a_shared_event_dropped_while_a_stream_waits_for_it_stays_until_then():
    a, b, x = acc.Stream(), acc.Stream(), l0rt.empty(8 << 20)
    for i in range(30):
        x.fill(i, stream=a)
        e = l0rt.Event(interprocess=True)
        e.record(a)
        b.wait_event(e)
        del e
    acc.synchronize()
    for _ in range(4):  # each new one looks after those that are leaving
        e = l0rt.Event(interprocess=True)
        e.record(a)
        acc.synchronize()
        e.synchronize()
        del e
