# SPDX-License-Identifier: Apache-2.0
"""`empty`, `Stream`, `Event`, `Generator` and `device` take a device of any type: a registered one, and the host."""

import gc
import pickle
from types import SimpleNamespace

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import numpy as np
import pytest
from l0rt import philox
from l0rt.interface import DeviceInterface, get_allocator, register_allocator, register_interface_for_device

from helpers import demo
from helpers.process import run_python


@pytest.fixture(params=["xpu", "demo"])
def current(request):
    """Whichever accelerator is current, a name says what is meant."""
    demo.register()
    acc.set_accelerator(request.param)
    yield request.param
    acc.set_accelerator("xpu")


def test_streams_and_events_are_of_the_type_that_is_named(current):
    assert isinstance(l0rt.Stream("demo:1"), demo.DemoStream)
    assert isinstance(l0rt.Stream(device=l0rt.device("demo:1")), demo.DemoStream)
    assert isinstance(l0rt.Stream(SimpleNamespace(type="demo", index=1)), demo.DemoStream)
    assert isinstance(l0rt.Event("demo:0"), demo.DemoEvent)
    assert isinstance(l0rt.Event(device="demo"), demo.DemoEvent)
    assert isinstance(l0rt.Stream("xpu:0"), xpu.Stream)
    assert type(l0rt.Event("xpu:0")) is l0rt.Event
    assert l0rt.Event("xpu:0").device == l0rt.device("xpu:0")
    own = (demo.DemoStream, demo.DemoEvent) if current == "demo" else (xpu.Stream, l0rt.Event)
    assert isinstance(l0rt.Stream(), own[0])
    assert isinstance(l0rt.Stream(0), own[0])
    assert isinstance(l0rt.Event(), own[1])
    assert isinstance(l0rt.Event(enable_timing=True), own[1])
    for make in (l0rt.Stream, l0rt.Event):
        with pytest.raises(RuntimeError, match="Expected one of"):
            make("nowhere:0")


def test_the_host_has_streams_and_events_that_wait_for_nothing(current):
    stream, event = l0rt.Stream("cpu"), l0rt.Event("cpu", enable_timing=True)
    assert stream.device == event.device == l0rt.device("cpu")
    assert stream == l0rt.Stream(device="cpu:0")
    assert (stream.device_type, stream.stream_id, stream.priority) == ("cpu", 0, 0)
    assert event.query()
    with pytest.raises(ValueError, match="must be recorded"):
        event.elapsed_time(event)
    with stream as entered:
        assert entered is stream
        event.record(stream)
        event.wait(stream)
        event.wait()
    stream.wait_event(event)
    stream.wait_stream(stream)
    end = stream.record_event(l0rt.Event("cpu", enable_timing=True))
    assert event.elapsed_time(end) >= 0
    assert stream.query()
    assert stream.synchronize() is None
    assert event.synchronize(timeout=1) is True
    assert not stream.is_capturing()
    with pytest.raises(IndexError, match=r"must be in \[0, 1\), but got 1"):
        l0rt.Stream("cpu:1")
    with pytest.raises(ValueError, match="enable_timing=True"):
        l0rt.Event("cpu").elapsed_time(end)


def test_generators_are_for_any_device(current):
    for name in ("cpu", "demo:1", "xpu:0"):
        generator = l0rt.Generator(name).manual_seed(7)
        assert generator.device == l0rt.device(name)
        assert generator.philox_engine_inputs(4) == (7, 0)
        assert generator.clone_state().device == l0rt.device(name)
        assert pickle.loads(pickle.dumps(generator)).get_state() == generator.get_state()
    assert l0rt.Generator().device == l0rt.device(f"{current}:0")
    with pytest.raises(RuntimeError, match="Expected one of"):
        l0rt.Generator("nowhere")


def test_a_type_may_bring_its_own_generator():
    class Own(DeviceInterface):
        Generator = SimpleNamespace

        def current_device():
            return 0

    register_interface_for_device("dice", Own)
    assert type(l0rt.Generator(device="dice")) is SimpleNamespace


def test_a_type_without_generators_has_l0rts():
    class Plain(DeviceInterface):
        def device_count():
            return 2

        def current_device():
            return 0

    register_interface_for_device("plain", Plain)
    acc.set_accelerator("plain")
    try:
        acc.manual_seed_all(5)
        assert [acc.initial_seed(i) for i in range(2)] == [5, 5]
        assert acc.default_generator("plain:1").device == l0rt.device("plain:1")
        acc.set_rng_state((9).to_bytes(8, "little"), 1)
        assert acc.initial_seed(1) == 9
    finally:
        acc.set_accelerator("xpu")


@pytest.mark.parametrize("named", ["cpu", "cpu:0", l0rt.device("cpu"), SimpleNamespace(type="cpu", index=None)])
def test_the_hosts_memory_is_plain(current, named):
    buffer = l0rt.empty(64, device=named)
    assert isinstance(buffer, l0rt.Buffer)
    assert (buffer.kind, buffer.device, buffer.nbytes, len(buffer)) == ("host", l0rt.device("cpu"), 64, 64)
    assert buffer.ptr % 64 == 0
    assert not l0rt.memory.is_pinned(buffer)
    assert buffer.fill(7) is buffer
    assert bytes(buffer) == b"\x07" * 64
    buffer.fill(pattern=np.arange(2, dtype="u4"))
    assert np.frombuffer(buffer, "u4").tolist() == [0, 1] * 8
    gc.collect()
    out = bytearray(64)
    assert buffer.copy_from(bytes(range(64))).copy_to(out) is out
    assert bytes(out) == bytes(range(64))
    view = memoryview(buffer)
    with pytest.raises(BufferError):
        buffer.free()
    view.release()
    stream = l0rt.Stream("cpu")
    buffer.record_stream(stream)
    buffer.record_use()
    buffer.free(stream)
    for call in (buffer.free, lambda: buffer.fill(0), lambda: buffer.ptr, lambda: memoryview(buffer)):
        with pytest.raises(ValueError, match="freed"):
            call()
    assert l0rt.empty(0, device=named).ptr == 0
    assert l0rt.empty(8, device=named, kind="host").kind == "host"


@pytest.mark.checks_data
def test_memory_of_any_two_devices_is_copied(current):
    data = bytes(range(256)) * 16
    places = [("cpu", {}), ("demo:0", {}), ("demo:1", {}), ("xpu:0", {}), ("xpu:0", {"kind": "host"})]
    for source_on, source_kind in places:
        for target_on, target_kind in places:
            source = l0rt.empty(len(data), device=source_on, **source_kind).copy_from(data)
            for way in ("from", "to"):
                target = l0rt.empty(len(data), device=target_on, **target_kind).fill(0)
                target.copy_from(source) if way == "from" else source.copy_to(target)
                assert bytes(target.copy_to(bytearray(len(data)))) == data, (source_on, target_on, way)


def test_a_copy_that_cannot_go_on_by_itself_says_so(current):
    """Between buffers of one device type copies need no host; everything else waits, and does not claim otherwise."""
    other, second, host, own = (l0rt.empty(64, device=name).fill(1) for name in ("demo:0", "demo:1", "cpu", "xpu:0"))
    assert other.copy_from(second, non_blocking=True) is other
    assert other.copy_to(second, non_blocking=True) is second
    assert host.copy_from(bytes(64), non_blocking=True) is host
    acc.synchronize()
    for call, what in (
        (other.copy_from, bytes(64)),
        (other.copy_to, bytearray(64)),
        (other.copy_from, own),
        (other.copy_to, own),
        (other.copy_from, host),
        (other.copy_to, host),
        (own.copy_from, other),
        (own.copy_to, other),
        (host.copy_from, other),
        (host.copy_to, other),
        (host.copy_from, own),
        (host.copy_to, own),
    ):
        with pytest.raises(ValueError, match="non_blocking=True"):
            call(what, non_blocking=True)
        call(what)


@pytest.mark.checks_data
def test_the_stream_that_is_named_orders_a_copy_to_the_host(current):
    own, host, stream = l0rt.empty(1 << 20, device="xpu:0"), l0rt.empty(1 << 20, device="cpu"), xpu.Stream(0)
    own.fill(3, stream=stream)
    assert bytes(host.copy_from(own, stream=stream)) == b"\x03" * (1 << 20)
    host.fill(4).copy_to(own, stream=stream)
    assert bytes(own.copy_to(bytearray(1 << 20), stream=stream)) == b"\x04" * (1 << 20)
    for wrong, error in ((3, TypeError), (l0rt.Stream("demo:0"), ValueError)):
        with pytest.raises(error):
            host.copy_from(own, stream=wrong)


def test_memory_of_another_type_is_its_allocators(current):
    before = demo.allocator(1).allocated_bytes
    buffer = l0rt.empty(1000, device="demo:1")
    assert demo.allocator(1).allocated_bytes == before + 1024
    assert (buffer.kind, str(buffer.device)) == ("device", "demo:1")
    assert buffer.fill(3).copy_to(bytearray(1000)) == b"\x03" * 1000
    with pytest.raises(BufferError, match="cannot read device memory"):
        memoryview(buffer)
    stream = l0rt.Stream("demo:1")
    buffer.record_stream(stream)
    for wrong, error in ((xpu.Stream(), ValueError), (3, TypeError)):
        with pytest.raises(error):
            buffer.free(wrong)
    buffer.free()
    assert demo.allocator(1).allocated_bytes == before
    with pytest.raises(ValueError, match="freed"):
        buffer.free()
    with acc.stream(stream):
        ordered = l0rt.empty(64, stream=stream)
    assert str(ordered.device) == "demo:1"
    del ordered
    assert demo.allocator(1).allocated_bytes == before
    for arguments, error in (
        ({"device": "demo:2"}, IndexError),
        ({"device": "demo:0", "stream": stream}, ValueError),
        ({"device": "demo:0", "kind": "shared"}, ValueError),
        ({"device": "cpu", "kind": "shared"}, ValueError),
        ({"device": "cpu:1"}, IndexError),
        ({"device": "nowhere"}, RuntimeError),
        ({"device": "demo:0", "stream": 3}, TypeError),
        ({"device": "xpu:0", "stream": 3}, TypeError),
    ):
        with pytest.raises(error):
            l0rt.empty(64, **arguments)


def test_a_slice_that_its_stream_holds_is_collected(current):
    """The slice keeps the buffer, which keeps the stream, which keeps the slice."""
    before, stream = demo.allocator(1).allocated_bytes, l0rt.Stream("demo:1")
    stream.scratch = l0rt.empty(1000, stream=stream)[100:200][50:]
    assert demo.allocator(1).allocated_bytes == before + 1024
    del stream
    gc.collect()
    assert demo.allocator(1).allocated_bytes == before


def test_empty_is_of_the_current_accelerator(current):
    assert str(l0rt.empty(64).device) == f"{current}:0"
    assert str(l0rt.empty(64, device=0).device) == f"{current}:0"
    assert str(l0rt.empty(64, device="xpu:0").device) == "xpu:0"


def test_random_numbers_are_philoxs_on_every_device(current):
    expected = philox.uniform(5, 0, 16)
    for name in ("cpu", "demo:0", "xpu:0"):
        buffer = l0rt.empty(64, device=name)
        buffer.uniform_(generator=l0rt.Generator(name).manual_seed(5))
        assert np.array_equal(np.frombuffer(buffer.copy_to(bytearray(64)), "f4"), expected) or name == "xpu:0"
        buffer.normal_()
        buffer.randint_(0, 9)


def test_allocators_are_registered_by_type_and_index(current):
    assert isinstance(get_allocator("demo", 1), demo.DemoAllocator)
    assert get_allocator("demo").index == 0
    for index, wrong, error in ((0, object(), TypeError), (-1, demo.DemoAllocator(0), IndexError)):
        with pytest.raises(error):
            register_allocator("demo", index, wrong)
    with pytest.raises(ValueError, match="xpu has its own"):
        register_allocator("xpu", 0, demo.DemoAllocator(0))
    for name, error in (("nowhere", NotImplementedError), ("demo:1", ValueError)):
        with pytest.raises(error):
            register_allocator(name, 0, demo.DemoAllocator(0))
        with pytest.raises(error):
            get_allocator(name, 0)
    for name in ("cpu", "xpu"):
        allocator = get_allocator(name, 0)
        address = allocator.malloc(64)
        assert address % 64 == 0
        allocator.free(address)

    class Poor(DeviceInterface):
        def device_count():
            return 2

    poor = f"poor{current}"
    register_interface_for_device(poor, Poor)
    with pytest.raises(NotImplementedError, match=f"no allocator for {poor}:1"):
        l0rt.empty(64, device=f"{poor}:1")
    register_allocator(poor, None, get_allocator("cpu"))
    buffer = l0rt.empty(64, device=f"{poor}:1")
    assert buffer.fill(9).copy_to(bytearray(64)) == b"\x09" * 64


def test_the_host_needs_no_driver():
    result = run_python(
        """
import l0rt, l0rt.xpu
x = l0rt.empty(64, device="cpu").fill(1)
x.uniform_()
with l0rt.Stream("cpu") as s:
    l0rt.Event("cpu").record(s)
l0rt.Generator("cpu").seed()
assert not l0rt.xpu.is_initialized()
""",
        {"L0RT_DRIVER": "/nonexistent/libze.so"},
    )
    assert (result.returncode, result.stderr) == (0, ""), result


@pytest.mark.checks_data
@pytest.mark.parametrize("name", ["demo:1", "cpu"])
def test_slices_of_buffers_of_other_types(name):
    demo.register()
    data = np.arange(200, dtype="u1")
    buffer = l0rt.empty(200, device=name).copy_from(data)
    buffer[10:20].copy_from(buffer[100:110])
    buffer[20:24].fill(pattern=b"ab")
    buffer[30:40].copy_from(bytes(10))
    buffer[190:].copy_to(buffer[40:50])
    data[10:20], data[20:24], data[30:40], data[40:50] = data[100:110], [97, 98, 97, 98], 0, data[190:]
    assert np.array_equal(buffer.numpy(), data)
    assert np.array_equal(buffer[100:][:50].numpy("u2"), data[100:150].view("u2"))
    part = buffer[50:][50:60]
    assert part.ptr == buffer.ptr + 100
    assert (part.device, part.kind) == (buffer.device, buffer.kind)
    part.record_use()
    if name != "cpu":
        part.record_stream(l0rt.Stream(name))
        for call in (lambda: l0rt.memcpy(buffer, bytes(8), 8), lambda: l0rt.memset(part, 0, 8)):
            with pytest.raises(TypeError, match="works on memory of the device type xpu and of the host"):
                call()
        with pytest.raises(TypeError, match=r"x.numpy\(dtype, shape\)"):
            np.asarray(part)
    elsewhere = l0rt.empty(10).copy_from(part)
    assert np.array_equal(elsewhere.numpy(), data[100:110])
    buffer.free()
    for call in (lambda: part.ptr, lambda: part.fill(0), lambda: part.free(), lambda: part[1:], part.record_use):
        with pytest.raises(ValueError, match="the buffer was freed"):
            call()


def test_the_allocator_of_another_type_is_told_of_the_whole_allocation():
    demo.register()
    told = []

    class Telling(demo.DemoAllocator):
        def record_stream(self, ptr, stream):
            told.append(ptr)

        def record_use(self, ptr, stream):
            told.append(ptr)

        def free(self, ptr, stream=None):
            told.append(("free", ptr))
            super().free(ptr, stream)

    register_allocator("demo", 1, Telling(1))
    try:
        buffer = l0rt.empty(200, device="demo:1")
        address, part = buffer.ptr, buffer[100:]
        part.record_stream(l0rt.Stream("demo:1"))
        part.record_use()
        assert told == [address] * 2
        del buffer
        gc.collect()
        assert told == [address] * 2  # the slice keeps it
        del part
        gc.collect()
        assert told[2:] == [("free", address)]
    finally:
        register_allocator("demo", 1, demo.DemoAllocator(1))
