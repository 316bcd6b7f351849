# SPDX-License-Identifier: Apache-2.0
"""DLPack between devices of one context, and its exchange API: a table of C functions, called as C calls them."""

import ctypes
import gc
import importlib.util
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import xpu

spec = importlib.util.spec_from_file_location("dlpack_of_others", Path(__file__).with_name("test_dlpack.py"))
others = importlib.util.module_from_spec(spec)
spec.loader.exec_module(others)
CPU, ONEAPI, INT64S = others.CPU, others.ONEAPI, others.INT64S
Producer, Tensor, Versioned = others.Producer, others.Tensor, others.Versioned
VERSIONED = ctypes.POINTER(Versioned)
ARRAY = ctypes.create_string_buffer(4096)  # which no driver knows
STRANGE = ctypes.addressof(ARRAY)
TELL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)


def INT(*arguments):  # noqa: N802 - the type of a function that returns int
    return ctypes.PYFUNCTYPE(ctypes.c_int, *arguments)


class Table(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocate", INT(ctypes.POINTER(Tensor), ctypes.POINTER(VERSIONED), ctypes.c_void_p, TELL)),
        ("lend", INT(ctypes.py_object, ctypes.POINTER(VERSIONED))),
        ("take", INT(VERSIONED, ctypes.POINTER(ctypes.py_object))),
        ("look", INT(ctypes.py_object, ctypes.POINTER(Tensor))),
        ("current_stream", INT(ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def table():
    capsule = l0rt.Buffer.__dlpack_c_exchange_api__
    assert others.capsule_name(capsule) == b"dlpack_exchange_api"
    return Table.from_address(others.capsule_pointer(capsule, b"dlpack_exchange_api"))


@pytest.fixture
def anywhere():
    return [l0rt.empty(100, kind=kind) for kind in ("device", "host", "shared")] + [
        l0rt.empty(100, device="cpu", kind="host")
    ]


def end(managed):
    managed.contents.deleter(ctypes.addressof(managed.contents))


def test_the_table_has_a_version(table):
    assert (table.major, table.minor, table.previous) == (1, 3, None)
    assert type(l0rt.empty(4, device="cpu", kind="host")).__dlpack_c_exchange_api__ is not None


def test_what_is_lent_is_held(table, anywhere):
    for x in anywhere:
        for whole in (x, x[10:30]):
            managed = VERSIONED()
            assert table.lend(whole, ctypes.byref(managed)) == 0
            tensor = managed.contents.tensor
            assert (tensor.data, tensor.ndim, tensor.shape[0], tensor.strides[0]) == (whole.ptr, 1, whole.nbytes, 1)
            assert (tensor.device_type, tensor.device_id) == whole.__dlpack_device__()
            assert (managed.contents.major, managed.contents.minor) == (1, 3)
            with pytest.raises(BufferError, match="in use"):
                x.free()
            end(managed)
        x.free()
        with pytest.raises(ValueError, match="freed"):
            table.lend(x, ctypes.byref(VERSIONED()))


def test_a_place_that_is_null_is_refused(table, anywhere):
    x, managed, texts = anywhere[0], VERSIONED(), []
    table.lend(x, ctypes.byref(managed))
    like = managed.contents.tensor
    for call in (
        lambda: table.lend(x, None),
        lambda: table.look(x, None),
        lambda: table.take(managed, None),
        lambda: table.current_stream(ONEAPI, 0, None),
        lambda: table.current_stream(CPU, 0, None),
    ):
        with pytest.raises(ValueError, match="DLPack's exchange API of l0rt takes a place for the result, got NULL"):
            call()
    tell = TELL(lambda _, kind, text: texts.append((kind, text)))
    assert table.allocate(ctypes.byref(like), None, None, tell) == -1
    assert [kind for kind, _ in texts] == [b"ValueError"]
    with pytest.raises(BufferError, match="in use"):  # what was refused was not taken
        x.free()
    end(managed)
    x.free()


def test_a_look_costs_nothing(table, anywhere):
    for x in anywhere:
        tensor = Tensor()
        assert table.look(x, ctypes.byref(tensor)) == 0
        assert (tensor.data, tensor.shape[0], tensor.strides[0]) == (x.ptr, 100, 1)
        assert (tensor.code, tensor.bits, tensor.per_element) == (1, 8, 1)
        x.free()
        with pytest.raises(ValueError, match="freed"):
            table.look(x, ctypes.byref(tensor))


def test_what_is_taken_is_a_buffer(table, anywhere):
    for x in anywhere:
        managed, found = VERSIONED(), ctypes.py_object()
        table.lend(x[20:40], ctypes.byref(managed))
        assert table.take(managed, ctypes.byref(found)) == 0
        y = found.value
        ctypes.pythonapi.Py_DecRef(found)  # the reference that C was given
        del found
        assert (y.ptr, y.nbytes) == (x.ptr + 20, 20)
        assert y.kind == ("device" if x.kind == "device" else "host")
        with pytest.raises(BufferError, match="in use"):
            x.free()
        del y
        gc.collect()
        x.free()


def test_what_is_refused_stays_the_callers(table):
    for broken in ({"version": (2, 0)}, {"flags": 1}, {"device_type": 2}, {"bits": 4}, {"code": 3}, {"data": STRANGE,
                   "device_type": ONEAPI}):  # fmt: skip
        producer, found = Producer(**broken), ctypes.py_object()
        with pytest.raises(BufferError):
            table.take(ctypes.pointer(producer.whole), ctypes.byref(found))
        gc.collect()
        assert producer.ended == 0
    with pytest.raises(BufferError, match="NULL"):
        table.take(VERSIONED(), ctypes.byref(ctypes.py_object()))
    for wrong in (None, 5, np.zeros(3)):
        with pytest.raises(TypeError, match="takes a Buffer"):
            table.lend(wrong, ctypes.byref(VERSIONED()))
        with pytest.raises(TypeError, match="takes a Buffer"):
            table.look(wrong, ctypes.byref(Tensor()))


def test_memory_is_allocated_like_another_tensor(table):
    told = []
    tell = TELL(lambda context, kind, text: told.append((kind, text)))
    shape = (ctypes.c_int64 * 3)(2, 3, 4)
    for device_type, index in ((CPU, 0), (ONEAPI, 0)):
        like = Tensor(device_type=device_type, device_id=index, ndim=3, code=2, bits=32, per_element=1,
                      shape=ctypes.cast(shape, INT64S))  # fmt: skip
        managed = VERSIONED()
        assert table.allocate(like, ctypes.byref(managed), None, tell) == 0
        tensor = managed.contents.tensor
        assert (tensor.shape[:3], tensor.strides[:3]) == ([2, 3, 4], [12, 4, 1])
        assert (tensor.code, tensor.bits, tensor.device_type) == (2, 32, device_type)
        assert tensor.data
        end(managed)
    for wrong in ({"device_type": 2}, {"device_type": ONEAPI, "device_id": 77}, {"ndim": -1}, {"bits": 3}):
        like = Tensor(**{"device_type": CPU, "ndim": 3, "code": 2, "bits": 32, "per_element": 1,
                         "shape": ctypes.cast(shape, INT64S), **wrong})  # fmt: skip
        count = len(told)
        assert table.allocate(like, ctypes.byref(VERSIONED()), None, tell) == -1
        assert len(told) == count + 1
    assert table.allocate(None, ctypes.byref(VERSIONED()), None, tell) == -1
    assert told[0][0] == b"BufferError"


def test_the_current_stream_is_a_native_handle(table):
    out, stream = ctypes.c_void_p(), acc.Stream()
    with stream:
        assert table.current_stream(ONEAPI, 0, ctypes.byref(out)) == 0
        assert out.value == stream.native_handle
    assert table.current_stream(CPU, 0, ctypes.byref(out)) == 0
    assert out.value is None
    for wrong, error in (((2, 0), BufferError), ((ONEAPI, 77), IndexError), ((ONEAPI, -1), IndexError)):
        with pytest.raises(error):
            table.current_stream(*wrong, ctypes.byref(out))
    assert xpu.current_raw_stream() > 0


class Wrapped:
    """Another library's array over memory of l0rt's context."""

    def __init__(self, x, legacy):
        self.x, self.legacy = x, legacy

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()

    def __dlpack__(self, **options):
        if self.legacy and options:
            raise TypeError("no options before version 1")
        return self.x.__dlpack__(**options)


@pytest.mark.checks_data
@pytest.mark.parametrize("legacy", [False, True])
def test_device_memory_comes_back_without_a_copy(legacy):
    x = l0rt.empty(1000).fill(1)
    y = l0rt.from_dlpack(Wrapped(x[100:200], legacy))
    assert (y.ptr, y.nbytes, y.kind, y.device) == (x.ptr + 100, 100, "device", x.device)
    y.fill(8)
    assert x.numpy()[99:101].tolist() == [1, 8]
    with pytest.raises(BufferError, match="in use"):
        x.free()
    copied = l0rt.from_dlpack(Wrapped(x, legacy), device="cpu")
    assert copied.kind == "host"
    assert np.asarray(copied)[100] == 8
    again = l0rt.from_dlpack(Wrapped(x, legacy), copy=True)
    assert again.ptr != x.ptr
    y.free()
    del copied, again
    gc.collect()
    x.free()


def test_device_memory_of_nobody_is_refused():
    plain = np.zeros(4096, "u1")
    producer = Producer(device=(ONEAPI, 0), device_type=ONEAPI, data=plain.ctypes.data, shape=(64,))
    with pytest.raises(BufferError, match="knows no memory"):
        l0rt.from_dlpack(producer)
    gc.collect()
    assert producer.ended == 1
    x = l0rt.empty(64)
    address = x.ptr
    x.free()
    producer = Producer(device=(ONEAPI, 0), device_type=ONEAPI, data=address, shape=(64,))
    with pytest.raises(BufferError, match="freed"):
        l0rt.from_dlpack(producer)
