# SPDX-License-Identifier: Apache-2.0
"""Events: recorded anew, waited for, timed, and in the order of torch's errors."""

import copy
import functools
import gc
import pickle
import threading
import time
from collections import deque
from fractions import Fraction

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt.runtime.current.event import elapsed_ms
from l0rt.runtime.streams import hooks
from l0rt.runtime.streams.event_pool import cache_state

from helpers.process import run_python
from helpers.source import ROOT


def test_an_event_that_was_never_recorded_is_complete_and_holds_nobody_up():
    e = l0rt.Event()
    assert e.query() is True
    assert e.synchronize() is None
    assert e.synchronize(timeout=0) is True
    e.wait()
    acc.Stream().wait_event(e)
    assert e.event_id == 0
    assert str(e.device) == "xpu"


def test_a_recorded_event_completes():
    s, e = acc.Stream(), l0rt.Event()
    e.record(s)
    assert e.synchronize(timeout=60) is True
    assert e.query() is True
    assert e.event_id != 0
    assert e.device == s.device == l0rt.device("xpu", 0)


@pytest.mark.checks_data
def test_recording_anew_leaves_those_who_wait_alone():
    """The waits were given to the streams before; hundreds of new records must not disturb one of them."""
    rounds, nbytes = 250, 1 << 16
    a, b, e = acc.Stream(), acc.Stream(), l0rt.Event()
    x, seen = l0rt.empty(nbytes, stream=a), l0rt.empty(rounds * nbytes, kind="host")
    rows = np.asarray(seen).reshape(rounds, nbytes)
    for i in range(rounds):
        x.fill(i, stream=a)
        e.record(a)
        b.wait_event(e)
        x.copy_to(rows[i], non_blocking=True, stream=b)
        e.record(b)
        a.wait_event(e)
    assert b.synchronize(timeout=60)
    assert a.synchronize(timeout=60)
    assert (rows == np.arange(rounds, dtype="u1")[:, None]).all()


@pytest.mark.checks_data
def test_a_wait_orders_two_streams():
    a, b = acc.Stream(), acc.Stream()
    x, y = l0rt.empty(1 << 20, stream=a), l0rt.empty(1 << 20, stream=b)
    for i in range(1, 50):
        x.fill(i, stream=a)
        e = a.record_event()
        b.wait_event(e)
        y.copy_from(x, stream=b)
        a.wait_stream(b)
    out = y.copy_to(np.empty(1 << 20, "u1"), stream=b)
    assert (out == 49).all()


@pytest.mark.checks_data
def test_events_dropped_in_flight_are_recycled():
    s = acc.Stream()
    x = l0rt.empty(1 << 20, stream=s)
    before = cache_state(0)["made"]
    for i in range(3000):
        x.fill(i % 256, stream=s)
        l0rt.Event().record(s)
        if i % 100 == 0:
            s.synchronize()
    s.synchronize()
    assert cache_state(0)["made"] - before <= 1024


@pytest.mark.checks_data
def test_a_stream_that_only_waits_lets_slots_be_recycled():
    a, b = acc.Stream(), acc.Stream()
    before = cache_state(0)["made"]
    for i in range(4000):
        b.wait_event(a.record_event())
        if i % 500 == 0:
            acc.synchronize()
    acc.synchronize()
    assert cache_state(0)["made"] - before <= 2048


def test_events_are_dropped_by_other_threads():
    s, dropped = acc.Stream(), []
    before = cache_state(0)["made"]
    for _ in range(200):
        dropped.append([s.record_event() for _ in range(10)])
        t = threading.Thread(target=dropped.clear)
        t.start()
        s.record_event()
        t.join()
    gc.collect()
    s.synchronize()
    assert cache_state(0)["made"] - before <= 200 * 11 + 256  # what was recorded, in pools of 256


@pytest.mark.checks_data
def test_elapsed_time_of_work():
    s, a, b = acc.Stream(), l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
    x = l0rt.empty(64 << 20, stream=s)
    a.record(s)
    x.fill(1, stream=s)
    b.record(s)
    b.synchronize()
    a.synchronize()
    assert 0 < a.elapsed_time(b) < 60_000
    assert a.elapsed_time(a) == 0
    assert b.elapsed_time(a) == pytest.approx(-a.elapsed_time(b))


def test_elapsed_time_names_what_is_missing_in_torchs_order():
    plain, timed, s = l0rt.Event(), l0rt.Event(enable_timing=True), acc.Stream()
    with pytest.raises(TypeError, match="takes an Event"):
        timed.elapsed_time(3)
    with pytest.raises(ValueError, match="Both events must be created with argument 'enable_timing=True'"):
        plain.elapsed_time(timed)
    with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time"):
        timed.elapsed_time(timed)
    timed.record(s)
    timed.synchronize()
    assert timed.elapsed_time(timed) == 0


PERIOD32 = (1 << 32) / 19_200_000 * 1e3


@pytest.mark.parametrize(
    ("start", "end", "host_ms", "bits", "expected_ms"),
    [
        (0, 19_200, 1, 32, 1.0),
        ((1 << 32) - 9_600, 9_600, 1, 32, 1.0),  # wrapped once
        ((1 << 36) - 9_600, 9_600, 1, 36, 1.0),
        ((1 << 64) - 9_600, 9_600, 1, 64, 1.0),
        (0, 19_200, PERIOD32 + 1, 32, PERIOD32 + 1),  # longer than a period: the host's clock tells
        (0, 19_200, 3 * PERIOD32, 32, 3 * PERIOD32 + 1),
        (9_600, 0, 0, 32, -0.5),  # two streams: the second was a little earlier
        (5, 5, 0, 1, 0.0),
    ],
)
def test_elapsed_ticks(start, end, host_ms, bits, expected_ms):
    got = elapsed_ms(start, end, int(host_ms * 1e6), bits, 19_200_000)
    assert got == pytest.approx(expected_ms, rel=1e-9, abs=1e-9)


@pytest.mark.needs_two_devices
def test_an_event_belongs_to_the_device_of_its_first_record():
    e = l0rt.Event()
    e.record(acc.Stream(0))
    with pytest.raises(RuntimeError, match="Event device xpu:0 does not match recording stream's device xpu:1"):
        e.record(acc.Stream(1))
    acc.Stream(1).wait_event(e)
    acc.synchronize(1)


def test_events_are_neither_copied_nor_pickled():
    e = l0rt.Event()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be"):
            attempt(e)
    with pytest.raises(TypeError, match=r"ipc_handle\(\)"):
        pickle.dumps(e)
    with pytest.raises(NotImplementedError, match="ipc is not supported yet"):
        e.ipc_handle()
    with pytest.raises(NotImplementedError, match="ipc is not supported yet"):
        l0rt.Event(interprocess=True).ipc_handle()


def waits():
    e, s = l0rt.Event(), acc.Stream()
    e.record(s)
    e.synchronize()
    return [
        e.synchronize,
        s.synchronize,
        acc.synchronize,
        functools.partial(acc.wait_all, e, s),
        functools.partial(acc.wait_any, e, s),
    ]


@pytest.mark.checks_data
@pytest.mark.parametrize("timeout", [-1, float("nan"), -0.001, -float("inf"), -(10**400), np.float64(-1)])
def test_a_timeout_is_not_negative(timeout):
    for wait in waits():
        with pytest.raises(ValueError, match="timeout must be None or seconds"):
            wait(timeout=timeout)


@pytest.mark.checks_data
@pytest.mark.parametrize("timeout", ["1", b"1", bytearray(b"1"), True, False, 1j, [1], object(), np.zeros(2)])
def test_a_timeout_is_a_number(timeout):
    for wait in waits():
        with pytest.raises(TypeError):
            wait(timeout=timeout)


@pytest.mark.checks_data
@pytest.mark.parametrize("timeout", [10**400, float("inf"), 1e300, 2**64, np.float32(5), np.int8(5), Fraction(7, 2)])
def test_a_timeout_may_be_huge_and_of_any_kind_of_number(timeout):
    for wait in waits():
        assert wait(timeout=timeout) in (True, 0)


def test_a_bool_is_no_device():
    """The first argument of other frameworks' events may be enable_timing."""
    for wrong in (True, False):
        with pytest.raises(TypeError, match="a timed event is Event\\(enable_timing="):
            l0rt.Event(wrong)


@pytest.mark.checks_data
@pytest.mark.shares_events
def test_one_interprocess_event_is_recorded_by_many_threads(hasty):
    """There is one native event in one pool of its own, whoever records it; each record waits for the one before."""
    for _ in range(20):
        shared, gate = l0rt.Event(interprocess=True), threading.Barrier(4)

        def record(shared=shared, gate=gate):
            stream = acc.Stream()
            gate.wait()
            for _ in range(5):
                shared.record(stream)
                shared.query()
                shared.synchronize()

        threads = [threading.Thread(target=record) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert shared.query()
        assert len(shared.ipc_handle()) == 136


def test_threads_that_record_an_interprocess_event_for_the_first_time_make_one_native_pool():
    """Each pool takes so long to make that all threads come while the first makes it."""
    slow = ",".join(f"zeEventPoolCreate:{call}:slow=50" for call in range(1, 61))
    script = f"""
import sys, threading
sys.path.insert(0, {str(ROOT / "tests")!r})
import l0rt, l0rt.accelerator as acc
from helpers import ledger
streams = [acc.Stream() for _ in range(4)]
for stream in streams:
    stream.record_event().synchronize()
def pools():
    return ledger.counted()["event_pool"]
for _ in range(3):
    before, shared, gate = pools(), l0rt.Event(interprocess=True), threading.Barrier(4)
    def record(stream):
        gate.wait()
        shared.record(stream)
    threads = [threading.Thread(target=record, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.synchronize()
    assert pools() == before + 1, (before, pools())
    del shared, record
    assert pools() == before, (before, pools())
"""
    done = run_python(script, env={"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": 1, "L0RT_CPU_FAIL": slow})
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.checks_data
def test_an_interprocess_event_is_recorded_from_a_callback_of_its_own_record():
    shared, stream, told = l0rt.Event(interprocess=True), acc.Stream(), []

    def again(*_):
        if len(told) < 3:
            told.append(1)
            shared.record(stream)

    hooks.add("event_record", again)
    try:
        shared.record(stream)
    finally:
        hooks.remove("event_record", again)
    shared.synchronize()
    assert len(told) == 3


def test_wrong_streams_are_refused():
    e = l0rt.Event()
    for wrong in (3, "xpu", e):
        with pytest.raises(TypeError):
            e.record(wrong)
        with pytest.raises(TypeError):
            e.wait(wrong)
    with pytest.raises(TypeError):
        acc.Stream().wait_event(None)


@pytest.mark.checks_data
def test_an_events_time_on_the_hosts_clock():
    s, e = acc.Stream(), l0rt.Event(enable_timing=True)
    for bad in (l0rt.Event().host_time, e.host_time):
        with pytest.raises((ValueError, RuntimeError), match="the event must be"):
            bad()
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    e.record(s)
    e.synchronize()
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    slack = 1_000_000  # the clocks are read one after the other
    assert before - slack <= e.host_time() <= after + slack
    assert before - slack <= e.host_time() <= after + slack


@pytest.mark.checks_data
def test_slots_stay_bounded_when_events_are_recorded_anew_while_waited_for_and_dropped_elsewhere(extent, hasty):
    """Recorders, waiters and a thread that drops: the number of native events follows what is in flight.

    100,000 records at full length. At most 1,000 events are held or in flight at a time, however slowly the dropper
    and the devices get on.
    """
    rounds = extent(200, 600, 10_000)
    dropped, stop = deque(maxlen=250), threading.Event()
    streams = [acc.Stream(i % acc.device_count()) for i in range(6)]

    def drop():
        while not stop.is_set():
            dropped.clear()
            time.sleep(0)

    def work(seed):
        own = [l0rt.Event(enable_timing=i % 2 == 0) for i in range(4)]
        for i in range(rounds):
            a, b = streams[(i + seed) % 6], streams[(i * 5 + seed + 1) % 6]
            e = own[i % 4] if a.device_index == 0 else l0rt.Event()
            e.record(a)
            b.wait_event(e)
            dropped.append(a.record_event())
            if i % 50 == 0:
                for stream in streams:
                    stream.synchronize()

    before = cache_state(0)["made"] + cache_state(acc.device_count() - 1)["made"]
    threads = [threading.Thread(target=drop), *(threading.Thread(target=work, args=(i,)) for i in range(5))]
    for t in threads:
        t.start()
    for t in threads[1:]:
        t.join()
    stop.set()
    threads[0].join()
    dropped.clear()
    for device in range(acc.device_count()):
        acc.synchronize(device)
    after = cache_state(0)["made"] + cache_state(acc.device_count() - 1)["made"]
    assert after - before <= 2048


MARKS = """
import ctypes
import l0rt, l0rt.accelerator as acc
charged = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_charged
charged.restype, charged.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
a, b, x = acc.Stream(), acc.Stream(), l0rt.empty(64 << 20)
for _ in range(16):
    x.fill(1, stream=b)
for _ in range(600):
    event = l0rt.Event(enable_timing=True)
    event.record(a)
    b.wait_event(event)     # dropped, its slot is used again once this stream, which is late, has come past
    event.synchronize()
print(charged(b"record_plain") // 1000, charged(b"record_host") // 1000)
"""


def test_a_stream_is_asked_how_far_it_is_by_a_counter_based_event_where_there_are_such():
    costs = {"L0RT_CPU_LATENCY": "virtual,record_plain=1,record_host=1,record_scope0=1"}
    for disable in (None, "cb_events"):
        env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": "arc-b580", "L0RT_EVENTS": None, "L0RT_DISABLE": disable}
        result = run_python(MARKS, {**env, **costs})
        assert (result.returncode, result.stderr) == (0, ""), result
        plain, counters = map(int, result.stdout.split())
        marks = counters if disable is None else plain - 600  # beside the program's own records, which are timed
        assert marks > 0
        assert plain + counters == 600 + marks
