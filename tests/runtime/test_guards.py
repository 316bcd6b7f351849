"""Device guards restore the original on any exit."""

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
