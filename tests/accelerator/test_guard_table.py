"""Device types that bring a C guard table: copies of the built-in one under other names, with callbacks in them."""

import ctypes
import threading

import l0rt
import l0rt.accelerator as acc
import l0rt.xpu as xpu
import pytest
from l0rt.interface import DeviceGuard, get_interface_for_device, register_guard_impl
from l0rt.runtime.guardtable import Table, built_in_table

INT, PTR = ctypes.c_int, ctypes.c_void_p
FUNCTIONS = [
    ("device_count", INT, ()),
    ("get_device", INT, ()),
    ("exchange_device", INT, (INT,)),
    ("set_device", INT, (INT,)),
    ("unchecked_set_device", INT, (INT,)),
    ("get_stream", PTR, (INT,)),
    ("get_default_stream", PTR, (INT,)),
    ("get_stream_from_pool", PTR, (INT, INT)),
    ("exchange_stream", PTR, (PTR,)),
    ("stream_device", INT, (PTR,)),
    ("stream_native_handle", PTR, (PTR,)),
    ("query_stream", INT, (PTR,)),
    ("synchronize_stream", INT, (PTR,)),
    ("synchronize_device", INT, (INT,)),
    ("record", INT, (ctypes.POINTER(PTR), PTR)),
    ("block", INT, (PTR, PTR)),
    ("query_event", INT, (PTR,)),
    ("synchronize_event", INT, (PTR,)),
    ("destroy_event", None, (PTR,)),
]


class GuardImpl(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("size", ctypes.c_uint32), ("type", ctypes.c_char_p)] + [
        (name, ctypes.CFUNCTYPE(result, *arguments)) for name, result, arguments in FUNCTIONS
    ]


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
        ({"type": None}, "names no type"),
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
