# SPDX-License-Identifier: Apache-2.0
"""`xpu._sleep`: a stream is busy for some cycles of the device's clock, and the host is not."""

import pytest

from helpers.process import run_python

CPU = {"L0RT_DRIVER": "cpu", "L0RT_CPU_DEVICES": "2", "L0RT_CPU_PROFILE": None}


@pytest.mark.parametrize("device", [0, 1])
def test_a_stream_sleeps_and_the_host_goes_on(device):
    result = run_python(
        f"""
import l0rt, l0rt.accelerator as acc, l0rt.xpu as xpu
acc.set_device_index({device})
rate = xpu.get_device_properties().core_clock_rate * 1e6
xpu._sleep(0)
acc.synchronize()
times = []
for seconds in (0.05, 0.4):
    begin, end = l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
    begin.record()
    xpu._sleep(int(rate * seconds))
    end.record()
    early = end.query()
    end.synchronize()
    times.append(begin.elapsed_time(end) / 1000)
assert not early
assert times[0] >= 0.005 and times[1] >= 0.04, times    # of a busy machine, whose speed was measured at its worst
assert times[1] > times[0], times
graph = acc.Graph()
with acc.graph(graph):
    xpu._sleep(1000)
graph.replay()
acc.synchronize()
for wrong, error in ((-1, ValueError), (1 << 63, ValueError), (1.5, TypeError), (True, TypeError), ("1", TypeError)):
    try:
        xpu._sleep(wrong)
    except error:
        continue
    raise SystemExit(repr(wrong))
""",
        CPU,
        timeout=120,
    )
    assert result.returncode == 0, result
