# SPDX-License-Identifier: Apache-2.0
"""Guards restore the original on any exit."""

import copy
import pickle
import threading

import l0rt
import l0rt.accelerator as acc
import pytest


def test_none_and_negative_change_nothing():
    for index in (None, -1, -5):
        with acc.device_index(index) as entered:
            assert entered is None
            assert acc.current_device_index() == 0
    acc.set_device_index(-1)
    assert acc.current_device_index() == 0


def test_construction_checks_nothing_and_entering_does():
    for index, error in (
        (63, IndexError),
        (1 << 40, IndexError),
        (-(1 << 31) - 1, IndexError),
        (1 << 70, IndexError),
        ("xpu:01", RuntimeError),
        ("cpu", ValueError),
        (1.5, TypeError),
        (object(), TypeError),
    ):
        guard = acc.device_index(index)
        with pytest.raises(error), guard:
            pass
        assert acc.current_device_index() == 0


def test_set_device_index_names_what_it_takes():
    for wrong in (None, 1.5, [], l0rt.device("xpu"), "xpu"):
        with pytest.raises(ValueError, match="Expected a torch.device with a specified index or an integer, but got:"):
            acc.set_device_index(wrong)
    with pytest.raises(IndexError, match="It must be in \\[0, "):
        acc.set_device_index(63)
    with pytest.raises(ValueError, match="cpu doesn't match the current accelerator xpu"):
        acc.set_device_index("cpu:0")
    with pytest.raises(TypeError):
        acc.device_index(device=0)


def test_a_guard_decorates():
    @acc.device_index(0)
    def inside(a, b=2):
        """What it does."""
        return acc.current_device_index(), a, b

    assert inside(1) == (0, 1, 2)
    assert inside.__doc__ == "What it does."


def test_leaving_without_entering():
    with pytest.raises(RuntimeError, match="has not entered the guard"):
        acc.device_index(0).__exit__(None, None, None)


@pytest.mark.needs_two_devices
def test_guards_nest_and_are_reused():
    guard = acc.device_index(1)
    for _ in range(3):
        with guard:
            assert acc.current_device_index() == 1
            with acc.device_index(0), guard:
                acc.set_device_index(0)
            assert acc.current_device_index() == 1
        assert acc.current_device_index() == 0
    with pytest.raises(KeyError), acc.device_index("xpu:1"):
        raise KeyError
    assert acc.current_device_index() == 0


@pytest.mark.needs_two_devices
def test_the_device_is_the_threads_own():
    seen = []

    def look():
        seen.append(acc.current_device_index())
        acc.set_device_index(0)

    with acc.device_index(1):
        t = threading.Thread(target=look)
        t.start()
        t.join()
        assert acc.current_device_index() == 1
    assert seen == [0]


@pytest.mark.needs_two_devices
def test_the_guards_of_xpu():
    xpu, x = l0rt.xpu, l0rt.empty(64, device=1)
    for guard in (
        xpu.device(1),
        xpu.device("xpu:1"),
        xpu.device_of(x),
        xpu.device_of(acc.Stream(1)),
        xpu._DeviceGuard(1),
    ):
        with guard:
            assert xpu.current_device() == 1
        assert xpu.current_device() == 0
    for nothing in (xpu.device(None), xpu.device(-1), xpu.device_of(3), xpu.device_of(None), xpu._DeviceGuard(-1)):
        with nothing:
            assert xpu.current_device() == 0
    xpu.set_device(1)
    xpu.set_device(-1)
    assert xpu.current_device() == 1
    xpu.set_device("xpu:0")
    assert xpu.current_device() == 0


def now():
    return acc.current_device_index(), acc.current_stream(0), acc.current_stream(acc.device_count() - 1)


@pytest.mark.needs_two_devices
def test_guards_tell_the_original_and_restore_it():
    before, s = now(), acc.Stream(1)
    with acc.DeviceGuard(1) as g:
        assert (g.original_device, g.current_device, acc.current_device_index()) == (0, 1, 1)
        g.set_index(0)
        assert (g.original_device, g.current_device, acc.current_device_index()) == (0, 0, 0)
        g.set_index("xpu:1")
        g.reset_device()
        assert acc.current_device_index() == g.current_device == 0
        g.set_index(1)
    assert now() == before
    with acc.StreamGuard(s) as g:
        assert (g.original_device, g.current_device) == (0, 1)
        assert (g.original_stream, g.current_stream) == (before[1], s)  # the original device's, as in CUDA
        assert now() == (1, before[1], s)
        other = acc.Stream(0)
        g.reset_stream(other)
        assert now() == (0, other, before[2])
        assert g.original_stream == before[1]
    assert now() == before
    with acc.MultiStreamGuard([s, other]) as g:
        assert now() == (0, other, s)
        assert set(g.original_streams) == set(before[1:])
    assert now() == before
    for guard in (acc.DeviceGuard(1), acc.StreamGuard(s), acc.MultiStreamGuard([s, other])):
        with pytest.raises(KeyError), guard:
            raise KeyError
        assert now() == before


@pytest.mark.needs_two_devices
def test_optional_guards_may_be_empty():
    before, s = now(), acc.Stream(1)
    with acc.OptionalDeviceGuard() as g:
        assert g.original_device is None
        assert g.current_device is None
        acc.set_device_index(1)
    assert acc.current_device_index() == 1
    acc.set_device_index(0)
    with acc.OptionalDeviceGuard() as g:
        g.set_index(1)
        assert (g.original_device, g.current_device) == (0, 1)
        g.reset()
        assert g.current_device is None
        assert now() == before
        g.set_index(1)
    assert now() == before
    with acc.OptionalStreamGuard() as g:
        assert g.original_stream is None
        assert g.current_stream is None
        assert g.current_device is None
        g.reset_stream(s)
        assert now() == (1, before[1], s)
        assert g.original_stream == before[1]
        g.reset()
        assert now() == before
        g.reset_stream(s)
    assert now() == before
    with acc.OptionalDeviceGuard(1) as g, acc.OptionalStreamGuard(s):
        assert now() == (1, before[1], s)
    assert now() == before


def test_guard_objects_serve_many_blocks_and_are_not_copied():
    s = acc.Stream()
    for guard in (
        acc.DeviceGuard(0),
        acc.OptionalDeviceGuard(),
        acc.StreamGuard(s),
        acc.OptionalStreamGuard(),
        acc.MultiStreamGuard([s]),
    ):
        before = now()
        with guard, guard:
            pass
        assert now() == before
        with pytest.raises(RuntimeError, match="not inside the guard"):
            guard.__exit__(None, None, None)
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be"):
                attempt(guard)
    for wrong in (None, 3, "xpu"):
        with pytest.raises(TypeError, match="expected a Stream"):
            acc.StreamGuard(wrong)
    with pytest.raises(IndexError), acc.DeviceGuard(63):
        pass


def test_sixteen_threads_never_see_each_others_stream(extent, hasty):
    """Blocks of with, guards and set_stream on 16 threads; each sees its own, and exceptions restore the original."""
    wrong, gate = [], threading.Barrier(16)

    def work(thread):
        mine = [acc.Stream(i % acc.device_count()) for i in range(2)]
        gate.wait()
        for i in range(extent(300, 1_000, 10_000)):
            s = mine[i % 2]
            try:
                with s:
                    if acc.current_stream() != s or acc.current_device_index() != s.device_index:
                        wrong.append(thread)
                    if i % 3 == 0:
                        raise KeyError
            except KeyError:
                pass
            if acc.current_stream() != acc.default_stream(0) or acc.current_device_index() != 0:
                wrong.append(-thread)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, 17)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
