# SPDX-License-Identifier: Apache-2.0
"""The registry of device types, its guard, and device types that registered stream methods only."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt.interface import (
    DeviceGuard,
    DeviceInterface,
    StreamMethodContainer,
    get_interface_for_device,
    get_registered_device_interfaces,
    register_interface_for_device,
    register_stream_method,
    stream_methods,
)

from helpers.process import run_python


def test_the_built_in_interface_answers_for_every_way_to_name_it():
    xpu = get_interface_for_device("xpu")
    assert issubclass(xpu, DeviceInterface)
    assert get_interface_for_device("xpu:1") is xpu
    assert get_interface_for_device(l0rt.device("xpu", 0)) is xpu
    assert get_interface_for_device(SimpleNamespace(type="xpu", index=3)) is xpu
    assert dict(get_registered_device_interfaces())["xpu"] is xpu
    assert xpu.is_available() is True
    assert xpu.device_count() == acc.device_count()
    assert xpu.Stream is l0rt.xpu.Stream
    assert xpu.Event is l0rt.xpu.Event


@pytest.mark.parametrize("name", ["bogus", "bogus:1", SimpleNamespace(type="cuda", index=0)])
def test_asking_for_an_unknown_type_names_the_known_ones(name):
    with pytest.raises(NotImplementedError, match=r"No interface for device (bogus|cuda) \(registered: .*xpu"):
        get_interface_for_device(name)


@pytest.mark.parametrize("name", ["xpu:", "xpu:x", "xpu:-1"])
def test_a_malformed_index_is_no_device(name):
    with pytest.raises(NotImplementedError, match="No interface for device"):
        get_interface_for_device(name)


@pytest.mark.parametrize("name", [None, 3, 1.5])
def test_what_is_no_name_is_a_type_error(name):
    with pytest.raises(TypeError, match="expected a str or an object with a type"):
        get_interface_for_device(name)


def test_registering_and_asking_touch_no_driver():
    result = run_python(
        """
import l0rt.interface as i, l0rt.xpu
class Mine(i.DeviceInterface): pass
i.register_interface_for_device("mine", Mine)
assert i.get_interface_for_device("mine:7") is Mine
assert i.get_interface_for_device("xpu:0") is i.XpuInterface
assert [name for name, _ in i.get_registered_device_interfaces()] == ["xpu", "cpu", "mine"]
i.register_stream_method("theirs", dict.fromkeys(i.StreamMethodContainer.KEYS, print))
assert not l0rt.xpu.is_initialized()
""",
        {"L0RT_DRIVER": "/nonexistent/libze.so"},
    )
    assert result.returncode == 0, result


def test_a_device_type_may_know_what_is_allocated_without_statistics():
    code = """
import l0rt.accelerator as acc, l0rt.interface as interface
class Mine(interface.DeviceInterface):
    def device_count(): return 1
    def current_device(): return 0
    def memory_allocated(device=None): return 77
interface.register_interface_for_device("mine", Mine)
acc.set_accelerator("mine")
print(acc.memory_allocated(), acc.memory_allocated("mine:0"))
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu"})
    assert (result.returncode, result.stdout) == (0, "77 77\n"), result


def test_what_an_interface_does_not_give_says_so():
    class Bare(DeviceInterface):
        def device_count():
            return 1

    assert Bare.is_available() is True
    for call in (Bare.current_device, Bare.Stream, Bare.Event, Bare.device, Bare.Worker.current_device, Bare.init):
        with pytest.raises(NotImplementedError, match="this device type's interface has no"):
            call()
    with pytest.raises(RuntimeError, match="not capable of supporting Triton"):
        Bare.raise_if_triton_unavailable()


def test_an_interface_is_a_class():
    with pytest.raises(TypeError, match="an interface must be a class"):
        register_interface_for_device("demo", DeviceInterface())


def test_an_interface_has_every_name():
    own = {name: getattr(DeviceInterface, name) for name in dir(DeviceInterface) if not name.startswith("_")}
    register_interface_for_device("whole", type("Whole", (), own))
    for lost in own:
        part = type("Part", (), {name: value for name, value in own.items() if name != lost})
        with pytest.raises(TypeError, match=f"have its names, {lost} is missing"):
            register_interface_for_device("part", part)


@pytest.mark.needs_two_devices
def test_the_guard_restores_and_can_be_used_again_and_inside_itself():
    xpu = get_interface_for_device("xpu")
    guard = DeviceGuard(xpu, 1)
    for _ in range(2):
        with guard:
            assert acc.current_device_index() == 1
            acc.set_device_index(0)
            with guard:
                assert acc.current_device_index() == 1
            assert acc.current_device_index() == 0
        assert acc.current_device_index() == 0
    with pytest.raises(KeyError), guard:
        raise KeyError
    assert acc.current_device_index() == 0


@pytest.mark.needs_two_devices
@pytest.mark.parametrize("index", [None, -1])
def test_the_guard_of_no_index_changes_nothing(index):
    with acc.device_index(1), DeviceGuard(get_interface_for_device("xpu"), index):
        assert acc.current_device_index() == 1
        acc.set_device_index(0)
    assert acc.current_device_index() == 0


@pytest.mark.parametrize("index", [99, 1 << 31, 1 << 63, 1 << 70])
def test_the_guard_of_an_index_out_of_range_says_so(index):
    with pytest.raises(IndexError, match=f"{index}"), DeviceGuard(get_interface_for_device("xpu"), index):
        pass


@pytest.mark.needs_two_devices
def test_one_guard_serves_two_threads_at_once():
    guard = DeviceGuard(get_interface_for_device("xpu"), 1)
    inside, seen = threading.Barrier(2), []

    def enter(start):
        acc.set_device_index(start)
        with guard:
            inside.wait(30)
            seen.append(acc.current_device_index())
            inside.wait(30)
        seen.append((start, acc.current_device_index()))

    threads = [threading.Thread(target=enter, args=(start,)) for start in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen[:2] == [1, 1]
    assert sorted(seen[2:]) == [(0, 0), (1, 1)]


@pytest.mark.needs_two_devices
def test_the_interfaces_own_methods_work():
    xpu = get_interface_for_device("xpu")
    assert xpu.exchange_device(1) == 0
    assert xpu.maybe_exchange_device(-1) == -1
    assert xpu.current_device() == 1
    assert xpu.maybe_exchange_device(0) == 1
    stream = xpu.Stream(1)
    with xpu.stream(stream):
        assert xpu.current_stream() == stream
        assert xpu.get_raw_stream(1) == stream.native_handle
    xpu._set_stream_by_id(stream.stream_id, 1, "xpu")
    assert xpu.current_stream(1) == stream
    xpu.set_stream(acc.default_stream(1))
    xpu.set_device(0)
    xpu.synchronize(1)
    assert xpu.get_device_properties(1).index == 1
    assert isinstance(xpu.get_compute_capability(), dict)
    assert xpu.is_dtype_supported("float32")
    assert xpu.memory_allocated() == acc.memory_allocated()


METHODS = ("current_stream", "create_stream_context", "set_stream", "set_stream_by_id")


@pytest.mark.parametrize("key", METHODS)
def test_a_missing_stream_method_is_an_error_at_registration(key):
    with pytest.raises(ValueError, match=f"{key} missing"):
        register_stream_method("lens", {name: print for name in METHODS if name != key})
    assert "lens" not in stream_methods


def test_an_unknown_stream_method_is_an_error_at_registration():
    with pytest.raises(ValueError, match="synchronize unknown"):
        register_stream_method("camera", {**dict.fromkeys(METHODS, print), "synchronize": print})
    with pytest.raises(TypeError, match="set_stream of camera is not callable"):
        register_stream_method("camera", {**dict.fromkeys(METHODS, print), "set_stream": 3})


class Camera:
    """A backend that only knows streams, by number."""

    def __init__(self):
        self.now = SimpleNamespace(stream_id=0, device_index=0, device_type="camera")
        self.entered = []

    def current_stream(self, device=None):
        return self.now

    @contextmanager
    def create_stream_context(self, stream):
        before, self.now = self.now, stream
        yield
        self.now = before

    def set_stream(self, stream):
        self.now = stream

    def set_stream_by_id(self, stream_id, device_index, device_type):
        self.now = SimpleNamespace(stream_id=stream_id, device_index=device_index, device_type=device_type)


@pytest.fixture
def camera():
    backend = Camera()
    register_stream_method("camera", {name: getattr(backend, name) for name in METHODS})
    return backend


@pytest.mark.parametrize("current", ["xpu", "camera"])
def test_a_backend_is_driven_through_its_four_methods_alone(camera, current):
    acc.set_accelerator(current)
    try:
        first = camera.now
        stream = l0rt.Stream(stream_id=5, device_index=1, device_type="camera")
        assert (stream.stream_id, stream.device_index, camera.now) == (5, 1, first)
        with acc.stream(stream):
            assert camera.now is stream
        assert camera.now is first
        acc.set_stream(stream)
        assert camera.now is stream
        if current == "camera":
            assert acc.current_stream() is stream
            assert l0rt.Stream(stream_id=7, device_index=0).stream_id == 7
    finally:
        acc.set_accelerator("xpu")
    assert acc.current_stream() == acc.default_stream()


def test_the_container_holds_the_four_methods(camera):
    assert isinstance(stream_methods, StreamMethodContainer)
    assert set(stream_methods["camera"]) == set(METHODS) == set(StreamMethodContainer.KEYS)
    assert list(stream_methods) == ["camera"]


@pytest.mark.parametrize("wrong", [None, 3, "a stream"])
def test_what_is_no_stream_is_refused(wrong):
    with pytest.raises(TypeError, match="expected a Stream"):
        acc.set_stream(wrong)


@pytest.mark.parametrize("name", ["z:01", "z:", "z:x", "z:-1", "z:1:1", ":1", "", "1", "z z", "z-1", "é", "_z"])
def test_what_is_no_name_of_a_type_is_not_registered(name):
    before = dict(get_registered_device_interfaces())
    with pytest.raises(ValueError, match="a device type must be a name"):
        register_interface_for_device(name, DeviceInterface)
    with pytest.raises(ValueError, match="a device type must be a name"):
        register_stream_method(name, dict.fromkeys(METHODS, print))
    assert dict(get_registered_device_interfaces()) == before
    assert name not in stream_methods


def test_a_device_object_registers_its_type():
    class Mine(DeviceInterface):
        pass

    register_interface_for_device(SimpleNamespace(type="lamp", index=1), Mine)
    assert get_interface_for_device("lamp:2") is Mine


def test_a_device_may_have_an_interface_of_its_own():
    result = run_python(
        """
import l0rt, l0rt.interface as i
class Mine(i.DeviceInterface): pass
class First(i.DeviceInterface): pass
i.register_interface_for_device("mine:0", First)
try:
    i.get_interface_for_device("mine")
except NotImplementedError as e:
    print(e)
i.register_interface_for_device("mine", Mine)
i.register_interface_for_device("xpu:0", First)
for name, cls in (("mine", Mine), ("mine:0", First), ("mine:1", Mine), (l0rt.device("mine:0"), Mine),
                  ("xpu:0", First), ("xpu", i.XpuInterface), ("xpu:1", i.XpuInterface)):
    assert i.get_interface_for_device(name) is cls, name
assert dict(i.get_registered_device_interfaces()) == {
    "cpu": i.CpuInterface, "xpu": i.XpuInterface, "mine": Mine, "mine:0": First, "xpu:0": First}
for wrong in ("mine:x", "mine:", "mine:-1", "mine:0:1"):
    try:
        i.register_interface_for_device(wrong, First)
    except ValueError:
        continue
    raise SystemExit(wrong)
for k in range(3):
    i.register_interface_for_device(f"xpu:{k}", i.XpuInterface)
""",
        {"L0RT_DRIVER": "/nonexistent/libze.so"},
    )
    assert result.returncode == 0, result
    assert result.stdout.startswith("No interface for device mine (registered:")
