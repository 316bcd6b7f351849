# SPDX-License-Identifier: Apache-2.0
"""Device types that bring a C guard table: copies of the built-in one under other names, with callbacks in them."""

import ctypes
import threading
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt.interface import DeviceGuard, get_interface_for_device, register_guard_impl
from l0rt.runtime.current.guard_table import Table, built_in_table

from helpers.door import Door, Failed, GuardDoor
from helpers.guard_tables import OPTIONAL, PTR, GuardImpl, api

kept = []  # tables live as long as the process


def table_named(name, **changes):
    """A copy of the built-in table."""
    table = GuardImpl.from_buffer_copy(ctypes.string_at(built_in_table(), ctypes.sizeof(GuardImpl)))
    table.type = name
    for field, value in changes.items():
        setattr(table, field, value)
    kept.append((table, name, changes))
    return table


@pytest.fixture
def twin():
    xpu.init()
    interface = register_guard_impl(ctypes.addressof(table_named(b"twin")))
    acc.set_accelerator("twin")
    yield interface
    acc.set_accelerator("xpu")


def test_the_facade_goes_through_the_table(twin):
    assert get_interface_for_device("twin:0") is twin
    assert acc.device_count() == twin.device_count() == xpu.device_count()
    stream = l0rt.Stream("twin:0", -1)
    assert stream.device == l0rt.device("twin", 0)
    before = acc.current_stream()
    assert before == acc.default_stream() != stream
    with acc.stream(stream), stream:
        assert acc.current_stream() == stream
        assert xpu.current_stream().native_handle == stream.native_handle  # the same runtime is behind it
    assert acc.current_stream() == before
    acc.set_stream(stream)
    assert acc.current_stream(0) == stream
    acc.set_stream(before)
    acc.synchronize()


def test_a_block_that_cannot_be_entered_changes_nothing():
    """The header's guard stops at the first function that fails."""
    xpu.init()
    kinds = dict(GuardImpl._fields_)
    switched = []
    for name, changes in (
        (b"deviceless", {"get_device": kinds["get_device"](lambda: -1)}),
        (b"streamless", {"get_stream": kinds["get_stream"](lambda device: None)}),
    ):
        changes["exchange_stream"] = kinds["exchange_stream"](lambda stream: switched.append(stream) or stream)
        table = Table(ctypes.addressof(table_named(name, **changes)))
        stream = table.new_stream(0)
        with pytest.raises(RuntimeError, match="failed"), stream:
            pass
        with pytest.raises(RuntimeError, match="has not entered"):
            stream.__exit__(None, None, None)
    assert switched == []


def test_events_go_through_the_table(twin):
    stream, event = l0rt.Stream(), l0rt.Event()
    assert event.query()
    event.synchronize()
    event.wait(stream)
    event.record(stream)
    event.record(stream)  # anew
    acc.current_stream().wait_event(event)
    stream.wait_stream(acc.current_stream())
    assert isinstance(event.query(), bool)
    event.synchronize()
    stream.synchronize()
    assert isinstance(stream.query(), bool)
    assert stream.record_event() is not event


def test_what_is_of_another_type_is_refused(twin):
    """A table's functions take pointers: those of another type's streams and events mean nothing to them."""
    stream, event = l0rt.Stream("twin:0"), twin.Event(enable_timing=True)
    others = [l0rt.Stream("cpu"), l0rt.Event("cpu", enable_timing=True), xpu.Stream(0), xpu.Event(enable_timing=True)]
    for other in (*others, 3, None, "cpu"):
        calls = [(call, "a Stream") for call in (stream.wait_stream, twin.set_stream)]
        calls += [(call, "an Event") for call in (stream.wait_event, event.elapsed_time)]
        if other is not None:
            calls += [(event.record, "a Stream"), (event.wait, "a Stream"), (stream.record_event, "an Event")]
        for call, noun in calls:
            with pytest.raises(TypeError, match=rf"{call.__name__}\(\) takes {noun} of twin, not "):
                call(other)
        with pytest.raises(TypeError, match="takes a Stream of twin"):
            twin.record_data_ptr_on_stream(0, other)
    assert event.event_id == 0
    for other in (stream, xpu.Stream(0)):
        host = l0rt.Stream("cpu")
        with pytest.raises(TypeError, match=r"wait_stream\(\) takes a Stream of cpu, not \w+ of (twin|xpu)"):
            host.wait_stream(other)


def test_a_type_has_classes_of_its_own(twin):
    stream, event = l0rt.Stream(), l0rt.Event(blocking=True)
    assert isinstance(stream, twin.Stream)
    assert isinstance(acc.current_stream(), twin.Stream)
    assert isinstance(event, twin.Event)
    assert (event.blocking, event.interprocess, event.device_type) == (True, False, "twin")
    assert not isinstance(l0rt.Stream("cpu"), twin.Stream)
    assert not isinstance(l0rt.Event("cpu"), twin.Event)
    assert isinstance(type("Heir", (twin.Stream,), {})(), twin.Stream)
    with pytest.raises(NotImplementedError, match="finds no stream by its number"):
        twin.Stream(stream_id=stream.stream_id)
    assert repr(event) == "<l0rt.Event device=twin not recorded>"
    event.record(stream)
    event.synchronize()
    assert repr(event) == "<l0rt.Event device=twin:0 complete>"
    with pytest.raises(NotImplementedError, match="ipc is not supported yet for twin"):
        event.ipc_handle()
    for wrong in (-1, 63):
        with pytest.raises(IndexError, match=r"must be in \[0, "):
            twin.Event(wrong)


def test_what_an_interface_has_beside_the_functions(twin):
    assert twin.get_raw_stream() == acc.current_stream().native_handle == xpu.current_raw_stream()
    assert (twin.exchange_device("twin:0"), twin.maybe_exchange_device(-1), twin.maybe_exchange_device(0)) == (0, 0, 0)
    with twin.device("twin:0"), twin.device(-1), twin.device():
        assert twin.current_device() == 0
    with pytest.raises(IndexError), twin.device(63):
        pass
    with pytest.raises(NotImplementedError, match="no wait for a device with a timeout"):
        acc.synchronize(timeout=1)


def test_waits_with_a_timeout_ask_the_table():
    kinds = dict(GuardImpl._fields_)
    asked = []
    waits = lambda what: asked.append(what) or 0  # noqa: E731
    asks = lambda what: asked.append(what) or len(asked) > 3  # noqa: E731
    changes = {name: kinds[name](asks if name.startswith("query") else waits) for name in (
        "query_stream", "query_event", "synchronize_stream", "synchronize_event")}  # fmt: skip
    table = Table(ctypes.addressof(table_named(b"asked", **changes)))
    stream, event = table.new_stream(0), table.new_event()
    assert event.synchronize(timeout=0) is True  # never recorded
    assert asked == []
    event.record(stream)
    for item in (stream, event):
        asked.clear()
        assert item.synchronize(0) is False
        assert len(asked) == 1
        assert item.synchronize(timeout=60, policy="yield") is True
        assert len(asked) == 4
        assert item.synchronize() is None
        assert len(asked) == 5
        with pytest.raises(ValueError, match="timeout must be"):
            item.synchronize(-1)
        with pytest.raises(ValueError, match="a wait policy must be"):
            item.synchronize(policy="often")
    broken = Table(ctypes.addressof(table_named(b"broken", query_stream=kinds["query_stream"](lambda stream: -1))))
    with pytest.raises(RuntimeError, match="broken: query_stream failed"):
        broken.new_stream(0).synchronize(1)


@pytest.mark.needs_two_devices
def test_devices_are_switched_through_the_table(twin):
    with acc.device_index(1), DeviceGuard(twin, 0):
        assert acc.current_device_index() == xpu.current_device() == 0
    with l0rt.Stream("twin:1"):
        assert acc.current_device_index() == 1
    assert acc.current_device_index() == 0
    acc.set_device_index("twin:1")
    assert xpu.current_device() == 1
    acc.set_device_index(0)
    with pytest.raises(IndexError, match=r"must be in \[0, "):
        acc.set_device_index(63)


def test_what_the_table_cannot_do_is_said(twin):
    with pytest.raises(IndexError):
        twin.exchange_device(63)  # the function left an exception
    with pytest.raises(NotImplementedError, match="no memory_stats"):
        acc.memory_stats()


def test_a_function_that_fails_without_a_word_is_named():
    fails = GuardImpl._fields_[4][1]
    table = table_named(b"mute", get_device=fails(lambda: -1))
    interface = register_guard_impl(ctypes.addressof(table))
    with pytest.raises(RuntimeError, match="mute: get_device failed"):
        interface.current_device()


def test_a_function_that_blocks_holds_up_no_other_thread():
    entered, go = threading.Event(), threading.Event()
    field = dict(GuardImpl._fields_)["synchronize_device"]

    def wait(device):
        entered.set()
        return 0 if go.wait(60) else -1

    interface = register_guard_impl(ctypes.addressof(table_named(b"slow", synchronize_device=field(wait))))
    thread = threading.Thread(target=interface.synchronize, args=(0,))
    thread.start()
    assert entered.wait(60)
    assert interface.device_count() == xpu.device_count()
    go.set()
    thread.join()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"version": 2}, "of version 2"),
        ({"size": 8}, "8 bytes"),
        ({"type": None}, "has no type"),
        ({"record": ctypes.cast(None, dict(GuardImpl._fields_)["record"])}, "is missing"),
    ],
)
def test_a_wrong_table_is_refused(changes, told):
    with pytest.raises(ValueError, match=told):
        register_guard_impl(ctypes.addressof(table_named(b"wrong", **changes)))
    with pytest.raises(NotImplementedError):
        get_interface_for_device("wrong")


def test_a_table_is_a_capsule_or_an_address():
    table = table_named(b"capsule")
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (PTR, ctypes.c_char_p, PTR)
    kept.append(name := b"l0rt_guard_impl")
    assert Table(make(ctypes.addressof(table), name, None)).type == "capsule"
    with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
        Table(make(ctypes.addressof(table), None, None))
    with pytest.raises(ValueError, match="address 0"):
        Table(0)
    with pytest.raises(TypeError):
        Table("demo")


def test_optional_entries_are_used(twin):
    high, event, end = l0rt.Stream("twin:0", -1), l0rt.Event(enable_timing=True), l0rt.Event(enable_timing=True)
    assert (high.priority, l0rt.Stream(priority=7).priority, acc.current_stream().priority) == (-1, 1, 0)
    assert not high.is_capturing()
    assert acc.get_device_capability() == {"supported_dtypes": xpu.facts.supported_dtypes(0)}
    with pytest.raises(ValueError, match="Both events must be created with"):
        l0rt.Event().elapsed_time(end)
    with pytest.raises(ValueError, match="Both events must be recorded"):
        event.elapsed_time(end)
    event.record(high)
    end.record(high)
    high.synchronize()
    assert event.device == l0rt.device("twin:0")
    assert event.elapsed_time(end) >= 0
    assert event.event_id != end.event_id
    address = l0rt.memory.caching_allocator_alloc(64, 0)
    twin.record_data_ptr_on_stream(address, high)
    l0rt.memory.caching_allocator_delete(address)
    with pytest.raises(ValueError, match="an address"):
        twin.record_data_ptr_on_stream(-1, high)
    with pytest.raises(l0rt.InvalidArgumentError):
        twin.record_data_ptr_on_stream(12345, high)


@pytest.mark.parametrize("absent", ["short", "null"])
def test_a_table_without_them_does_what_it_can(absent):
    xpu.init()
    first = GuardImpl.get_new_stream.offset
    changes = {"size": first} if absent == "short" else {
        name: ctypes.cast(None, dict(GuardImpl._fields_)[name]) for name, _, _ in OPTIONAL
    }  # fmt: skip
    interface = register_guard_impl(ctypes.addressof(table_named(f"bare{absent}".encode(), **changes)))
    stream, event = interface.default_stream(0), interface.Event()
    assert (stream.priority, stream.is_capturing()) == (0, False)
    event.record(stream)
    event.synchronize()
    for call in (
        lambda: interface.Event(enable_timing=True),
        lambda: interface.supported_dtypes(0),
        lambda: interface.record_data_ptr_on_stream(0, stream),
    ):
        with pytest.raises(NotImplementedError, match=f"the guard table of bare{absent} has no"):
            call()
    with pytest.raises(NotImplementedError, match="ipc is not supported"):
        interface.Event(interprocess=True)


def test_a_table_is_found_by_its_type():
    assert api().size >= ctypes.sizeof(api())
    assert api().guard_impl_of(b"xpu") == built_in_table()
    first = ctypes.addressof(table_named(b"third"))
    register_guard_impl(first)
    assert api().guard_impl_of(b"third") == first
    anew = ctypes.addressof(table_named(b"third"))
    register_guard_impl(anew)
    assert api().guard_impl_of(b"third") == anew
    with pytest.raises(NotImplementedError, match="no guard table for device type nowhere"):
        api().guard_impl_of(b"nowhere")
    with pytest.raises(ValueError, match="a device type's name is needed"):
        api().guard_impl_of(None)


@pytest.mark.parametrize("name", [b"z:1", b"", b"1"])
def test_a_table_of_no_type_is_refused(name):
    with pytest.raises(ValueError, match="a device type must be a name"):
        register_guard_impl(ctypes.addressof(table_named(name)))


def test_an_event_that_is_recorded_again_is_another_one_as_the_headers_say():
    door = Door()
    guards, stream = GuardDoor(door), door.pointer(l0rt.Stream())
    for record, header in (
        (lambda place: door.event_record(place, stream, 1), "l0rt.h"),
        (lambda place: guards.record_event(place, stream, 1), "guard_impl.h"),
    ):
        place = PTR()
        record(ctypes.byref(place))
        first = place.value
        record(ctypes.byref(place))
        assert place.value not in (None, first)
        door.event_destroy(place)
        text = " ".join((Path(l0rt.get_include()) / "l0rt" / header).read_text().replace(" * ", " ").split())
        assert "copies of the pointer are not" in text or "copies of that pointer are not" in text


@pytest.mark.parametrize("type", ["xpu", "cpu"])
def test_null_is_refused_for_what_is_needed(type):
    """A stream, where the type has several, and a place to write to. An event that is NULL is complete."""
    door = Door()
    guards, is_xpu = GuardDoor(door, type.encode()), type == "xpu"
    stream = guards.get_stream(0)
    before = guards.get_device(), stream
    calls = {
        "record": (None, stream), "record_event": (None, stream, 0), "stream_priority": (stream, None),
        "device_capability": (0, None),
    }  # fmt: skip
    for name, arguments in calls.items():
        with pytest.raises(Failed, match="a place for .* is needed, got NULL"):
            getattr(guards, name)(*arguments)
    takers = ("exchange_stream", "stream_device", "stream_native_handle", "query_stream", "synchronize_stream",
              "is_stream_capturing")  # fmt: skip
    for name in takers if is_xpu else ():
        with pytest.raises(Failed, match="a stream is needed, got NULL"):
            getattr(guards, name)(None)
    for name, arguments in {"record": (ctypes.byref(PTR()), None), "block": (None, None),
                            "record_data_ptr_on_stream": (None, None)}.items():  # fmt: skip
        if is_xpu:
            with pytest.raises(Failed, match="a stream is needed, got NULL"):
                getattr(guards, name)(*arguments)
    assert guards.query_event(None) == 1
    assert guards.synchronize_event(None) == guards.block(None, stream) == 0
    guards.unchecked_set_device(1 << 20)  # it cannot fail
    assert (guards.get_device(), guards.get_stream(0)) == before
