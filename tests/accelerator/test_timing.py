# SPDX-License-Identifier: Apache-2.0
"""Timer and l0rt.bench.time: times of the device and of the host, in their units, of calls that are complete."""

import time
from contextlib import nullcontext

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

MIB = 1 << 20


@pytest.mark.checks_data
def test_a_block_has_a_time_on_the_device_and_one_on_the_host():
    x, start, end = l0rt.empty(64 * MIB), l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
    x.fill(0)
    start.record()
    with acc.Timer() as timer:
        x.fill(1)
    end.record()
    end.synchronize()
    assert 0 < timer.elapsed_time() <= start.elapsed_time(end)
    assert timer.elapsed_time() == timer.elapsed_time()
    assert 0 < timer.host_time() < 60_000


@pytest.mark.checks_data
def test_the_times_are_milliseconds():
    began = time.perf_counter()
    with acc.Timer() as timer:
        time.sleep(0.05)
    assert 50 <= timer.host_time() <= 1e3 * (time.perf_counter() - began)
    assert 40 <= timer.elapsed_time() <= 1e3 * (time.perf_counter() - began) + 1


@pytest.mark.checks_data
@pytest.mark.parametrize("given", [True, False])
def test_the_events_are_in_the_order_of_the_stream(given):
    stream, x = acc.Stream(), l0rt.empty(256 * MIB)
    start, end = l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
    with nullcontext() if given else stream, acc.Timer(stream if given else None) as timer:
        start.record(stream)
        x.fill(1, stream=stream)
        end.record(stream)
    assert timer.elapsed_time() >= start.elapsed_time(end)  # on another stream its end would not wait for the fill


@pytest.mark.checks_data
def test_a_timer_has_the_time_of_its_last_block_also_of_one_that_raised():
    timer, x = acc.Timer(), l0rt.empty(128 * MIB)
    with timer:
        x.fill(1)
    first, raised = timer.elapsed_time(), []
    for _ in range(5):  # nothing takes as long as 128 MiB if its thread is not kept waiting each time
        with pytest.raises(ZeroDivisionError), timer:
            1 / 0  # noqa: B018
        raised.append(timer.elapsed_time())
    assert min(raised) < first


def test_a_timer_is_asked_or_entered_at_the_wrong_time():
    timer = acc.Timer()
    with pytest.raises(RuntimeError, match="measures a block"):
        timer.elapsed_time()
    with timer:
        with pytest.raises(RuntimeError, match="inside its own block"):
            timer.__enter__()
        with pytest.raises(RuntimeError, match="measures a block"):
            timer.host_time()
    for wrong in (3, "xpu:0", object(), acc.Stream):
        with pytest.raises(TypeError, match="expected a Stream"):
            acc.Timer(wrong)


@pytest.mark.checks_data
def test_a_function_is_called_as_often_as_it_says():
    calls, setups = [], []

    def function(number, *, word):
        calls.append((number, word))

    found = l0rt.bench.time(
        function, (3,), {"word": "x"}, repeats=7, warmup=2, setup=lambda: setups.append(len(calls))
    )
    assert calls == [(3, "x")] * 9
    assert setups == list(range(9))
    assert found.device.shape == found.host.shape == (7,)
    assert found.device.dtype == found.host.dtype == np.float64
    assert (found.device >= 0).all()
    assert (found.host > 0).all()


@pytest.mark.checks_data
def test_time_is_of_complete_calls_on_the_given_stream():
    stream, x = acc.Stream(), l0rt.empty(32 * MIB)
    seen = set()

    def fill():
        seen.add((acc.current_stream(), stream.query()))
        x.fill(1)

    found = l0rt.bench.time(fill, repeats=5, stream=stream)
    assert {on for on, _ in seen} == {stream}
    assert np.median(found.device) > 1e-5  # 32 MiB: not below what memory of 3 TB/s would take
    assert stream.query()


@pytest.mark.checks_data
def test_seconds_bound_the_calls():
    found = l0rt.bench.time(time.sleep, (0.02,), seconds=0.1, warmup=0)
    assert 1 <= len(found.host) <= 5
    assert (found.host >= 0.02).all()
    assert len(l0rt.bench.time(time.sleep, (0.02,), seconds=1e-9, warmup=0).host) == 1


@pytest.mark.checks_data
def test_the_text_has_name_units_and_number_of_calls():
    class Callable:
        def __call__(self):
            pass

    found = str(l0rt.bench.time(Callable(), repeats=3))
    assert found.startswith("Callable: device ")
    assert found.endswith(" of 3 calls")
    assert "host" in found
    assert any(unit in found for unit in (" ns", " µs", " ms"))


@pytest.mark.checks_data
def test_an_error_of_the_function_passes():
    with pytest.raises(ZeroDivisionError):
        l0rt.bench.time(lambda: 1 / 0)


@pytest.mark.parametrize(
    ("arguments", "error", "told"),
    [
        ({"function": 3}, TypeError, "function must be callable"),
        ({"function": None}, TypeError, "function must be callable"),
        ({"setup": 3}, TypeError, "setup must be callable"),
        ({"repeats": 0}, ValueError, "at least 1"),
        ({"repeats": 1.5}, TypeError, "repeats must be an int"),
        ({"warmup": -1}, ValueError, "at least 0"),
        ({"seconds": 0}, ValueError, "positive"),
        ({"seconds": float("nan")}, ValueError, "positive"),
        ({"seconds": float("inf")}, ValueError, "finite"),
        ({"stream": 3}, TypeError, "Stream"),
    ],
)
def test_wrong_arguments_are_told_before_anything_is_called(arguments, error, told):
    calls = []
    with pytest.raises(error, match=told):
        l0rt.bench.time(**{"function": lambda: calls.append(1), **arguments})
    assert calls == []


def test_a_timing_without_calls_has_a_text():
    nothing = np.array([])
    assert str(l0rt.bench.Timing("f", nothing, nothing)).startswith("f: device never, host never")
