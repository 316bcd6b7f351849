# SPDX-License-Identifier: Apache-2.0
"""Guard objects on another accelerator: they change what is current there, and nowhere else."""

import threading

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt.interface import register_interface_for_device

from helpers import demo


@pytest.fixture(autouse=True)
def demo_is_current():
    register_interface_for_device("demo", demo.DemoInterface)
    acc.set_accelerator("demo")
    yield
    acc.set_device_index(0)
    for index in range(demo.DEVICES):
        acc.set_stream(acc.default_stream(index))
    acc.set_device_index(0)
    acc.set_accelerator("xpu")


def now():
    return acc.current_device_index(), acc.current_stream(0), acc.current_stream(1)


def test_a_device_guard_switches_the_current_accelerator():
    with acc.DeviceGuard(1) as g:
        assert (g.original_device, g.current_device, acc.current_device_index()) == (0, 1, 1)
        assert xpu.current_device() == 0
        g.set_index("demo:0")
        assert (g.current_device, acc.current_device_index()) == (0, 0)
        g.set_index(l0rt.device("demo:1"))
        g.reset_device()
        assert acc.current_device_index() == 0
        g.set_index(1)
    assert acc.current_device_index() == 0
    with acc.DeviceGuard(-1) as g:
        assert (g.original_device, g.current_device) == (0, 0)
    with acc.OptionalDeviceGuard() as g:
        assert g.original_device is None
        g.set_index(1)
        assert (g.original_device, acc.current_device_index()) == (0, 1)
        g.reset()
        assert g.current_device is None
    for wrong, error in (("xpu:0", ValueError), (2, IndexError), (1.5, TypeError)):
        with pytest.raises(error), acc.DeviceGuard(wrong):
            pass
        with acc.OptionalDeviceGuard() as g:
            with pytest.raises(error):
                g.set_index(wrong)
            assert g.original_device is None


def test_a_stream_guard_switches_the_streams_own_accelerator():
    before, s, t = now(), l0rt.Stream("demo:1"), l0rt.Stream("demo:0")
    with acc.StreamGuard(s) as g:
        assert (g.original_device, g.current_device) == (0, 1)
        assert (g.original_stream, g.current_stream) == (before[1], s)
        assert now() == (1, before[1], s)
        g.reset_stream(t)
        assert now() == (0, t, before[2])
    assert now() == before
    with acc.OptionalStreamGuard() as g:
        assert g.original_stream is None
        g.reset_stream(s)
        assert now() == (1, before[1], s)
        g.reset()
        assert now() == before
    with acc.MultiStreamGuard([s, t]) as g:
        assert now() == (0, t, s)
        assert set(g.original_streams) == {before[1], before[2]}
    assert now() == before
    for wrong in (3, None, "demo:1", object()):
        with pytest.raises(TypeError, match="expected a Stream"):
            acc.StreamGuard(wrong)


def test_guards_of_two_accelerators_nest():
    before, xpus = now(), xpu.current_stream()
    s, x = l0rt.Stream("demo:1"), xpu.Stream()
    with acc.StreamGuard(s), acc.StreamGuard(x) as g:
        assert (g.original_stream, xpu.current_stream()) == (xpus, x)
        assert acc.current_stream() == s
        g.reset_stream(s)
        assert xpu.current_stream() == xpus
    assert now() == before
    with acc.MultiStreamGuard([s, x]):
        assert xpu.current_stream() == x
        assert now() == (0, before[1], s)
    assert (now(), xpu.current_stream()) == (before, xpus)


def test_a_guard_restores_where_it_began():
    with acc.DeviceGuard(1):
        acc.set_accelerator("xpu")
        assert acc.current_device_index() == 0
    assert demo.DemoInterface.current_device() == 0
    acc.set_accelerator("demo")


def test_one_guard_serves_two_threads():
    guard, inside, seen = acc.DeviceGuard(1), threading.Barrier(2), []

    def enter():
        with guard as g:
            inside.wait(30)
            seen.append((g.original_device, acc.current_device_index()))
            inside.wait(30)
        seen.append(acc.current_device_index())

    threads = [threading.Thread(target=enter) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(0, 1), (0, 1), 0, 0]
