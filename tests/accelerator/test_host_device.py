# SPDX-License-Identifier: Apache-2.0
"""The host as a device: its interface, its guard table, and guards on it."""

import ctypes

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt.interface import get_interface_for_device, get_registered_device_interfaces, register_guard_impl

from helpers.guard_tables import FUNCTIONS, INT, OPTIONAL, PTR, GuardImpl, api

HOST = l0rt.device("cpu")


def host_table():
    address = api().guard_impl_of(b"cpu")
    return address, GuardImpl.from_address(address)


def test_the_hosts_guard_table_is_inert():
    _, table = host_table()
    assert (table.type, table.device_count(), table.get_device()) == (b"cpu", 1, 0)
    for device in (-1, 0):
        assert (table.exchange_device(device), table.set_device(device), table.synchronize_device(device)) == (0, 0, 0)
        table.unchecked_set_device(device)
    stream = table.get_stream(-1)
    assert stream
    assert {table.get_stream(0), table.get_default_stream(0), table.get_stream_from_pool(0, -1),
            table.get_new_stream(0, 1), table.exchange_stream(stream)} == {stream}  # fmt: skip
    assert (table.stream_device(stream), table.query_stream(stream), table.synchronize_stream(stream)) == (0, 1, 0)
    assert table.is_stream_capturing(stream) == 0
    priority = INT(7)
    assert (table.stream_priority(stream, priority), priority.value) == (0, 0)
    first, last, took = PTR(), PTR(), ctypes.c_double(-1)
    assert table.record(first, stream) == 0
    assert table.record_event(last, stream, 1) == 0
    assert first.value != last.value
    assert (table.block(first, stream), table.query_event(first), table.synchronize_event(first)) == (0, 1, 0)
    assert table.elapsed_time(first, last, took) == 0
    assert took.value >= 0
    assert table.record_data_ptr_on_stream(0, stream) == 0
    dtypes = ctypes.c_uint64()
    assert (table.device_capability(0, dtypes), dtypes.value) == (0, (1 << 15) - 1)
    for event in (first, last):
        table.destroy_event(event)


def test_the_hosts_guard_table_refuses_what_is_not_there():
    address, _ = host_table()

    class Raising(ctypes.Structure):
        _fields_ = GuardImpl._fields_[:3] + [
            (name, ctypes.PYFUNCTYPE(result, *arguments)) for name, result, arguments in FUNCTIONS + OPTIONAL
        ]

    table = Raising.from_address(address)
    for function in (table.exchange_device, table.set_device, table.get_stream, table.synchronize_device):
        with pytest.raises(IndexError, match=r"must be in \[0, 1\), but got 1"):
            function(1)
    with pytest.raises(NotImplementedError, match="has no native handle"):
        table.stream_native_handle(table.get_stream(0))
    with pytest.raises(ValueError, match="must be recorded"):
        table.elapsed_time(None, None, ctypes.c_double())


def test_the_table_serves_whoever_registers_a_table():
    address, table = host_table()
    copy = GuardImpl.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(GuardImpl)))
    copy.type = b"hosted"
    interface = register_guard_impl(ctypes.addressof(copy))
    kept.append(copy)
    acc.set_accelerator("hosted")
    try:
        with acc.stream(acc.current_stream()), acc.DeviceGuard(0):
            event = acc.current_stream().record_event(l0rt.Event(enable_timing=True))
        event.synchronize()
        acc.synchronize()
        assert interface.Event().query()
    finally:
        acc.set_accelerator("xpu")


kept = []


def test_the_host_has_an_interface():
    interface = get_interface_for_device("cpu")
    assert dict(get_registered_device_interfaces())["cpu"] is interface
    assert (interface.device_count(), interface.current_device(), interface.is_available()) == (1, 0, True)
    assert (interface.exchange_device(-1), interface.maybe_exchange_device(0), interface.is_gpu()) == (0, 0, False)
    assert interface.get_raw_stream(0) == 0
    assert interface.synchronize(timeout=1) is True
    assert interface.current_stream() == interface.default_stream(0) == l0rt.Stream("cpu")
    with interface.device(0), interface.stream(interface.current_stream()):
        interface.set_stream(interface.current_stream())
    for refuses in (interface.set_device, interface.exchange_device, interface.current_stream, interface.synchronize,
                    interface.get_raw_stream, interface.Stream, interface.Event, interface.default_stream):  # fmt: skip
        with pytest.raises(IndexError, match=r"must be in \[0, 1\), but got 1"):
            refuses(1)
    with pytest.raises(NotImplementedError, match="no memory_stats"):
        interface.memory_stats()


def test_the_hosts_streams_and_events_are_of_its_interfaces_classes():
    interface = get_interface_for_device("cpu")
    stream, event = l0rt.Stream("cpu"), l0rt.Event("cpu:0", blocking=True, interprocess=True)
    assert isinstance(stream, interface.Stream)
    assert isinstance(event, interface.Event)
    assert (stream.native_handle, stream.device_index, hash(stream)) == (0, 0, hash(interface.Stream()))
    assert l0rt.Stream(stream_id=0, device_index=0, device_type="cpu") == stream
    assert repr(event) == "<l0rt.Event device=cpu not recorded>"
    event.record()
    assert repr(event) == "<l0rt.Event device=cpu complete>"
    assert (event.event_id, event.device, event.device_type) == (0, HOST, "cpu")
    assert (event.enable_timing, event.blocking, event.interprocess) == (False, True, True)
    with pytest.raises(NotImplementedError, match="torch.Event ipc is not supported yet for cpu"):
        event.ipc_handle()
    with pytest.raises(TypeError, match=r"elapsed_time\(\) takes an Event of cpu, not Event of xpu"):
        event.elapsed_time(l0rt.Event("xpu:0"))


def test_guards_of_the_hosts_stream_change_nothing():
    before, stream = (acc.current_device_index(), acc.current_stream()), l0rt.Stream("cpu")
    with acc.StreamGuard(stream) as guard:
        assert (guard.original_stream, guard.original_device, guard.current_device) == (stream, 0, 0)
        guard.reset_stream(l0rt.Stream("cpu"))
    with acc.OptionalStreamGuard() as guard:
        guard.reset_stream(stream)
        guard.reset()
    with acc.MultiStreamGuard([stream, before[1]]), acc.stream(stream):
        acc.set_stream(stream)
        assert (acc.current_device_index(), acc.current_stream()) == before
    assert (acc.current_device_index(), acc.current_stream()) == before


def test_with_the_host_as_the_accelerator_nothing_reaches_a_gpu():
    acc.set_accelerator("cpu")
    try:
        assert (acc.current_accelerator(), acc.device_count(), acc.current_device_index()) == (HOST, 1, 0)
        with acc.device_index(0), acc.current_stream() as stream, acc.DeviceGuard(0):
            event = stream.record_event(l0rt.Event(enable_timing=True))
        assert stream == acc.default_stream(0) == l0rt.Stream()
        assert event.device == HOST
        assert acc.wait_any(event, stream) == 0
        acc.synchronize()
        assert l0rt.empty(64).kind == "host"
        assert str(l0rt.Generator().device).startswith("cpu")
        for call in (acc.memory_stats, acc.memory_allocated, acc.empty_cache, acc.get_memory_info):
            with pytest.raises(NotImplementedError):
                call()
    finally:
        acc.set_accelerator("xpu")
    assert l0rt.empty(64, device="cpu").kind == "host"
