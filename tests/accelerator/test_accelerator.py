# SPDX-License-Identifier: Apache-2.0
"""The facade: torch.accelerator's functions, and what a device is."""

import pickle

import l0rt
import l0rt.accelerator as acc
import pytest


def test_there_is_an_accelerator():
    assert acc.is_available() is True
    assert acc.device_count() >= 1
    assert acc.current_accelerator() == acc.current_accelerator(check_available=True) == l0rt.device("xpu")
    assert acc.current_accelerator().index is None
    assert acc.current_device_index() == acc.current_device_idx() == acc.get_device_index() == 0


def test_every_name_of_all_exists():
    for module in (acc, acc.memory, l0rt.xpu, l0rt.memory, l0rt):
        assert [name for name in module.__all__ if not hasattr(module, name)] == []
        assert all(getattr(module, name).__doc__ for name in module.__all__ if callable(getattr(module, name)))


def test_the_script_of_the_readme_runs():
    import numpy as np

    x = l0rt.empty(1 << 20)
    x.copy_from(np.arange(1 << 18, dtype="f4"))
    y = np.empty(1 << 18, "f4")
    x.copy_to(y)
    s = acc.Stream(priority=-1)
    e = l0rt.Event(enable_timing=True)
    with s:
        x.fill(0)
        e.record()
    acc.current_stream().wait_event(e)
    acc.synchronize()
    assert (x.nbytes, x.kind) == (1 << 20, "device")
    x.record_stream(s)
    x.free()


def test_names_of_devices():
    device = l0rt.device
    assert device("xpu:1") == device("xpu", 1) == device(1) == device(device("xpu:1"))
    assert device("xpu") != device("xpu:0")
    assert {device(0): 1}[device("xpu:0")] == 1
    assert (str(device(1)), repr(device(1)), repr(device("xpu"))) == (
        "xpu:1",
        "device(type='xpu', index=1)",
        "device(type='xpu')",
    )
    assert pickle.loads(pickle.dumps(device(1))) == device(1)


@pytest.mark.parametrize("text", ["xpu:-1", "xpu:01", "xpu:", "1", "", "xpu:1:2", "xpu:a", "xpu: 1", "xpu:²"])
def test_malformed_names(text):
    with pytest.raises(RuntimeError, match="Invalid device string: "):
        l0rt.device(text)


def test_wrong_names():
    listed = r"Expected one of (\w+, )*cpu, (\w+, )*xpu device type at start of device string"
    for unknown in ("bogus", "XPU", "XPU:0"):
        with pytest.raises(RuntimeError, match=listed):
            l0rt.device(unknown)
    with pytest.raises(RuntimeError, match="Device index must not be negative"):
        l0rt.device("xpu", -1)
    with pytest.raises(RuntimeError, match="out of range"):
        l0rt.device("xpu:99999")
    with pytest.raises(RuntimeError, match="must not include an index"):
        l0rt.device("xpu:0", 0)
    for wrong in (None, 1.5, [], True):
        with pytest.raises(TypeError):
            l0rt.device(wrong)
    assert l0rt.device("xpu:128").index == 128  # no narrow integer in between
    with pytest.raises(IndexError, match="but got 128"):
        acc.set_device_index("xpu:128")


def test_capability_follows_the_current_device():
    names = acc.get_device_capability()["supported_dtypes"]
    assert {"float32", "int8", "uint64", "bool"} <= names
    assert acc.get_device_capability(0) == acc.get_device_capability("xpu:0") == acc.get_device_capability()


def test_index_arguments_are_checked_everywhere():
    for function in (
        acc.current_stream,
        acc.default_stream,
        acc.synchronize,
        acc.memory_stats,
        acc.memory_allocated,
        acc.memory_reserved,
        acc.max_memory_allocated,
        acc.max_memory_reserved,
        acc.get_memory_info,
        acc.reset_peak_memory_stats,
        acc.reset_accumulated_memory_stats,
        acc.get_device_capability,
        l0rt.memory.get_memory_limit,
        l0rt.xpu.get_device_name,
        acc.Stream,
    ):
        for index in (63, -1, -7):
            with pytest.raises(IndexError, match="The device index is out of range. It must be in"):
                function(index)
        with pytest.raises(IndexError, match="out of range"):
            function(1 << 70)
        if function is not acc.Stream:  # the host has streams too
            with pytest.raises(ValueError, match="cpu doesn't match the current accelerator xpu"):
                function("cpu")
        for wrong in (1.5, [], b"xpu"):
            with pytest.raises(TypeError):
                function(wrong)


def test_positional_only_arguments():
    for function in (acc.current_stream, acc.synchronize, acc.memory_stats, acc.get_memory_info):
        with pytest.raises(TypeError, match="positional-only|keyword"):
            function(device=0)


def test_the_names_of_xpu():
    xpu = l0rt.xpu
    assert xpu.is_available()
    assert xpu.is_initialized()
    assert xpu.device_count() == acc.device_count()
    assert xpu.get_device_name() == xpu.get_device_properties().name == xpu.get_device_properties("xpu:0").name
    assert xpu.get_device_capability()["total_memory"] == xpu.get_device_properties().total_memory > 0
    assert xpu.can_device_access_peer(0, 0) is True
    assert xpu.can_device_access_peer(None, None) is True
    assert xpu.mem_get_info() == acc.get_memory_info()
    s = xpu.Stream(priority=1)
    with xpu.stream(s):
        assert xpu.current_stream() == s
        with xpu.StreamContext(None):
            assert xpu.current_stream() == s
    xpu.set_stream(None)
    assert xpu.current_stream() == acc.default_stream()
    with pytest.raises(TypeError, match="expected a Stream or None"):
        xpu.stream(3)
    e = xpu.Event(True)
    assert e.enable_timing
    assert isinstance(e, l0rt.Event)
    e.record()
    xpu.synchronize()


@pytest.mark.needs_two_devices
def test_a_block_switches_the_device_and_none_switches_nothing():
    acc.set_device_index(0)
    with acc.device_index(1):
        assert acc.get_device_index() == 1
    assert acc.get_device_index() == 0
    with acc.device_index(None):
        assert acc.get_device_index() == 0
