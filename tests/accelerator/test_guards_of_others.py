# SPDX-License-Identifier: Apache-2.0
"""Guard objects on another accelerator: they change what is current there, and nowhere else."""

import itertools
import threading
from types import SimpleNamespace

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt.interface import DeviceGuard, register_interface_for_device

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


@pytest.fixture
def broken(monkeypatch):
    """Let one function of the interface fail from its nth call on; return how to."""

    def let_fail(name, nth, failure):
        original, calls = getattr(demo.DemoInterface, name), []

        def function(*args):
            calls.append(args)
            if len(calls) >= nth:
                raise failure
            return original(*args)

        monkeypatch.setattr(demo.DemoInterface, name, staticmethod(function))

    return let_fail


def test_a_guard_that_cannot_be_entered_has_changed_nothing(broken):
    before, s = now(), l0rt.Stream("demo:1")
    set_stream = demo.DemoInterface.set_stream
    broken("current_stream", 1, OSError("no stream is current"))
    demo.DemoInterface.set_stream, switched = switched_by(set_stream)
    for guard in (acc.StreamGuard(s), acc.MultiStreamGuard([s])):
        with pytest.raises(OSError, match="no stream is current"), guard:
            pass
        with pytest.raises(RuntimeError, match="not inside the guard"):
            guard.__exit__(None, None, None)
    demo.DemoInterface.set_stream = staticmethod(set_stream)
    assert switched == []
    assert demo.DemoInterface.current_device() == before[0]


def switched_by(set_stream):
    switched = []

    def noting(stream):
        switched.append(stream)
        set_stream(stream)

    return staticmethod(noting), switched


def test_what_fails_while_a_guard_restores_is_raised_and_the_rest_is_restored(broken):
    s = l0rt.Stream("demo:1")
    broken("set_stream", 2, OSError("the stream is gone"))
    with pytest.raises(OSError, match="the stream is gone"), acc.StreamGuard(s):
        assert acc.current_device_index() == 1
    assert acc.current_device_index() == 0


def test_a_device_that_cannot_be_restored_is_told(broken):
    broken("maybe_exchange_device", 1, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt), acc.DeviceGuard(1):
        pass
    demo.exchange_device(0)


def test_several_streams_of_two_types_are_restored_though_one_cannot_be(broken):
    x, xpus = xpu.Stream(), xpu.current_stream()
    broken("set_stream", 2, OSError("the stream is gone"))
    with pytest.raises(OSError, match="the stream is gone"), acc.MultiStreamGuard([x, l0rt.Stream("demo:1")]):
        assert xpu.current_stream() == x
    assert xpu.current_stream() == xpus


def test_a_function_of_one_type_may_use_guards_of_another(monkeypatch):
    """The C guards call back without a context: whose block is at work must be right again after any call."""
    s, t, x = l0rt.Stream("demo:1"), l0rt.Stream("demo:0"), xpu.Stream()
    other = type("Other", (demo.DemoInterface,), {})
    other.current, other.asked = 0, []

    def exchange(index):
        before, other.current = other.current, other.current if index < 0 else index
        other.asked.append(index)
        return before

    other.exchange_device = other.maybe_exchange_device = staticmethod(exchange)
    current_stream = demo.DemoInterface.current_stream

    def busy(device=None):
        with DeviceGuard(other, 7), acc.StreamGuard(x):
            assert other.current == 7
        return current_stream(device)

    before = now()
    monkeypatch.setattr(demo.DemoInterface, "current_stream", staticmethod(busy))
    with acc.StreamGuard(s) as g:
        g.reset_stream(t)
        with acc.MultiStreamGuard([s, t]):
            pass
        assert g.original_device == 0
    monkeypatch.undo()
    assert now() == before
    assert (other.current, len(other.asked) > 0, set(other.asked)) == (0, True, {7, 0})


def test_an_interface_that_tells_minus_one_where_nothing_changes_is_restored(monkeypatch):
    """As torch's do: `_exchange_device(-1)` is -1 there."""
    exchange = demo.exchange_device
    monkeypatch.setattr(
        demo.DemoInterface, "exchange_device", staticmethod(lambda index: exchange(index) if index >= 0 else -1)
    )
    with acc.StreamGuard(l0rt.Stream("demo:1")) as g:
        assert (g.original_device, acc.current_device_index()) == (0, 1)
    assert acc.current_device_index() == 0
    with acc.DeviceGuard(-1) as g:
        acc.set_device_index(1)
    assert acc.current_device_index() == 0


def test_an_interface_that_tells_no_index_is_refused(monkeypatch):
    for answer, failure in ((None, TypeError), ("0", TypeError), (-1, RuntimeError)):
        for name in ("exchange_device", "current_device"):
            monkeypatch.setattr(demo.DemoInterface, name, staticmethod(lambda *args, answer=answer: answer))
        with pytest.raises(failure), acc.DeviceGuard(1):
            pass
        monkeypatch.undo()


def test_a_stream_stays_alive_as_long_as_a_block_brings_it_back(monkeypatch):
    """Nothing else may hold it: an interface may make a new object at each call."""
    made, numbers = [], itertools.count(1)

    class Fleeting(SimpleNamespace):
        __hash__ = object.__hash__

        def __del__(self):
            made.remove(self.number)

    def fleeting(device=None):
        made.append(next(numbers))
        return Fleeting(device_index=device or 0, device_type="demo", number=made[-1])

    monkeypatch.setattr(demo.DemoInterface, "current_stream", staticmethod(fleeting))
    monkeypatch.setattr(demo.DemoInterface, "set_stream", staticmethod(lambda stream: None))
    s = Fleeting(device_index=1, device_type="demo", number=0)
    made.append(0)
    guard = acc.OptionalStreamGuard()
    with guard:
        for _ in range(3):
            guard.reset_stream(s)
            assert len(made) == 3  # its own, the original, and the one that it has replaced
            assert guard.original_stream.device_index == 0
    assert made == [0]
