# SPDX-License-Identifier: Apache-2.0
"""DLPack: what l0rt lends, what it borrows, and producers that break the rules."""

import ctypes
import gc
import itertools
import random
import threading
from types import SimpleNamespace

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import xpu

CPU, ONEAPI = 1, 14
KINDS = ("host", "shared")
INT64S = ctypes.POINTER(ctypes.c_int64)
capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype, capsule_new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("per_element", ctypes.c_uint16),
        ("shape", INT64S), ("strides", INT64S), ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class Plain(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", DELETER), ("flags", ctypes.c_uint64), ("tensor", Tensor)]  # fmt: skip


def tensor_of(capsule):
    """Return what a capsule holds, its shape and its strides."""
    name = capsule_name(capsule)
    whole = (Versioned if name == b"dltensor_versioned" else Plain).from_address(capsule_pointer(capsule, name))
    tensor = whole.tensor
    return whole, tensor.shape[: tensor.ndim], tensor.strides[: tensor.ndim]


class Producer:
    """A library's array, whose capsule says whatever the test likes."""

    def __init__(self, shape=(4,), strides=None, name=None, device=(CPU, 0), legacy=False, **fields):
        self.legacy, self.device, self.ended, self.name = legacy, device, 0, name
        self.memory = np.arange(4096, dtype="u1")
        self.lengths = (ctypes.c_int64 * 100)(*shape)
        self.steps = None if strides is None else (ctypes.c_int64 * 100)(*strides)
        self.whole = (Plain if legacy else Versioned)()
        if not legacy:
            self.whole.major, self.whole.minor = fields.pop("version", (1, 0))
            self.whole.flags = fields.pop("flags", 0)
        self.deleter = DELETER(self.end)
        if fields.pop("deleter", True):
            self.whole.deleter = self.deleter
        tensor = {"data": self.memory.ctypes.data, "device_type": CPU, "ndim": len(shape), "code": 1, "bits": 8,
                  "per_element": 1, **fields}  # fmt: skip
        for field, value in tensor.items():
            setattr(self.whole.tensor, field, value)
        self.whole.tensor.shape = ctypes.cast(self.lengths, INT64S)
        if fields.get("no_shape"):
            self.whole.tensor.shape = None
        if self.steps is not None:
            self.whole.tensor.strides = ctypes.cast(self.steps, INT64S)

    def end(self, pointer):
        assert pointer == ctypes.addressof(self.whole)
        self.ended += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if self.legacy and options:
            raise TypeError("no options before version 1")
        self.options = options
        name = self.name or (b"dltensor" if self.legacy else b"dltensor_versioned")
        return capsule_new(ctypes.addressof(self.whole), name, None)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.checks_data
def test_numpy_sees_the_memory_of_the_host_without_a_copy(kind):
    x = l0rt.empty(1000, kind=kind).fill(7)
    array = np.from_dlpack(x)
    assert array.shape == (1000,)
    assert array.dtype == np.uint8
    assert array.ctypes.data == x.ptr
    assert (array == 7).all()
    with pytest.raises(BufferError, match="in use by"):
        x.free()
    part = np.from_dlpack(x[100:200])
    assert part.ctypes.data == x.ptr + 100
    del array
    with pytest.raises(BufferError, match="in use by"):
        x.free()
    assert part[0] == 7
    del part
    x.free()


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.checks_data
def test_the_array_keeps_the_memory(device):
    array = np.from_dlpack(l0rt.empty(64, device=device, kind="host").fill(9))
    gc.collect()
    l0rt.empty(64, device=device, kind="host").fill(1)
    assert array.tolist() == [9] * 64
    array[3] = 5
    assert array.sum() == 9 * 63 + 5


def test_a_capsule_that_nobody_takes_ends_its_loan():
    for version, kind in itertools.product((None, (1, 0), (1, 3), (2, 0), (0, 8)), ("host", "shared", "device")):
        x = l0rt.empty(64, kind=kind)
        capsule = x.__dlpack__(max_version=version)
        with pytest.raises(BufferError):
            x.free()
        whole, shape, strides = tensor_of(capsule)
        assert isinstance(whole, Plain if version in (None, (0, 8)) else Versioned)
        assert (shape, strides) == ([64], [1])
        tensor = whole.tensor
        assert (tensor.data, tensor.byte_offset) == (x.ptr, 0)
        assert (tensor.code, tensor.bits, tensor.per_element) == (1, 8, 1)
        assert (tensor.device_type, tensor.device_id) == x.__dlpack_device__()
        if isinstance(whole, Versioned):
            assert (whole.major, whole.minor, whole.flags) == (1, 3, 0)
        del capsule, whole, tensor
        x.free()


@pytest.mark.needs_two_devices
def test_each_device_has_its_number():
    for index in range(2):
        assert l0rt.empty(64, device=index).__dlpack_device__() == (ONEAPI, index)
        assert l0rt.empty(64, device=index, kind="host").__dlpack_device__() == (CPU, 0)
        x = l0rt.empty(64, device=index, kind="shared")
        whole, *_ = tensor_of(x.__dlpack__(max_version=(1, 0), dl_device=(ONEAPI, index)))
        assert (whole.tensor.device_type, whole.tensor.device_id, whole.tensor.data) == (ONEAPI, index, x.ptr)
        for other in ((ONEAPI, 1 - index), (2, 0), (CPU, 1), (-1, -1), (1 << 70, 0)):
            with pytest.raises(BufferError, match="does not reach this memory"):
                x.__dlpack__(dl_device=other)


@pytest.mark.checks_data
def test_the_host_gets_a_copy_of_device_memory():
    x = l0rt.empty(4096).fill(3)
    with pytest.raises(BufferError, match="the host cannot read device memory"):
        x.__dlpack__(dl_device=(CPU, 0), copy=False)
    for copy in (None, True):
        capsule = x.__dlpack__(max_version=(1, 0), dl_device=(CPU, 0), copy=copy)
        whole, shape, _ = tensor_of(capsule)
        assert whole.flags == 2
        assert whole.tensor.device_type == CPU
        assert shape == [4096]
        assert ctypes.string_at(whole.tensor.data, 4096) == b"\x03" * 4096
        x.fill(4).fill(3)
        del capsule, whole
    x.free()  # the copies alone were lent


@pytest.mark.parametrize("kind", ["device", "host", "shared"])
@pytest.mark.checks_data
def test_copies_are_new_memory(kind):
    x = l0rt.empty(300, kind=kind).fill(8)
    capsule = x.__dlpack__(max_version=(1, 0), copy=True)
    whole, shape, _ = tensor_of(capsule)
    assert shape == [300]
    assert whole.flags == 2
    assert whole.tensor.device_type == x.__dlpack_device__()[0]
    assert whole.tensor.data != x.ptr
    back = np.empty(300, "u1")
    l0rt.memcpy(back, whole.tensor.data, 300)
    assert (back == 8).all()
    x.free()
    empty = l0rt.empty(0, kind=kind)
    for copy in (None, True):
        assert tensor_of(empty.__dlpack__(copy=copy))[1] == [0]


@pytest.mark.checks_data
def test_the_consumers_stream_comes_behind_the_work():
    ours, theirs = acc.Stream(), acc.Stream()
    with ours:
        for value in range(50):
            x = l0rt.empty(1 << 20).fill(value)
            capsule = x.__dlpack__(stream=theirs, max_version=(1, 0))
            back = l0rt.empty(1 << 20, kind="host")
            l0rt.memcpy(back, tensor_of(capsule)[0].tensor.data, 1 << 20, stream=theirs, non_blocking=True)
            theirs.synchronize()
            assert bytes(back) == bytes([value]) * (1 << 20)
            host = l0rt.empty(1 << 16, kind="shared").fill(value, non_blocking=True)
            assert (np.from_dlpack(host) == value).all()
            assert x.__dlpack__(stream=-1) is not None


def test_arguments_that_are_none():
    x, host = l0rt.empty(64), l0rt.empty(64, kind="host")
    for wrong in (7, -2, "stream", 1.0, 1 << 80, object()):
        with pytest.raises(BufferError, match=r"stream must be an l0rt\.Stream"):
            x.__dlpack__(stream=wrong)
    for wrong in (-1, 0, acc.current_stream()):
        with pytest.raises(BufferError, match="host memory has no stream"):
            host.__dlpack__(stream=wrong)
    for buffer in (x, host, l0rt.empty(64, device="cpu")):
        for wrong in (1, "10", (1,), [1, 0], (1, 0, 0), ("1", 0), (1, None)):
            with pytest.raises(TypeError, match=r"max_version|int"):
                buffer.__dlpack__(max_version=wrong)
            with pytest.raises(TypeError, match=r"dl_device|int"):
                buffer.__dlpack__(dl_device=wrong)
        buffer.free()
        with pytest.raises(ValueError, match="the buffer was freed"):
            buffer.__dlpack__()
        with pytest.raises(ValueError, match="the buffer was freed"):
            buffer.__dlpack_device__()


def test_what_frees_the_buffer_meanwhile_is_seen():
    x = l0rt.empty(64)

    class Freeing:
        def __index__(self):
            x.free()
            return ONEAPI

    with pytest.raises(ValueError, match="the buffer was freed"):
        x.__dlpack__(dl_device=(Freeing(), 0))


@pytest.mark.parametrize("array", [
    np.arange(12, dtype="f4").reshape(3, 4), np.zeros((0, 5)), np.array(7, dtype="i8"), np.ones((1, 6, 1), "c16"),
    np.array([True, False]), np.arange(5, dtype="u1")[2:]])  # fmt: skip
def test_arrays_are_borrowed_without_a_copy(array):
    x = l0rt.from_dlpack(array)
    assert x.nbytes == array.nbytes
    assert x.device == l0rt.device("cpu")
    assert x.kind == "host"
    assert bytes(x) == array.tobytes()
    if array.nbytes:
        assert x.ptr == array.ctypes.data
        x.fill(1)
        assert array.tobytes() == b"\x01" * array.nbytes
    y = l0rt.from_dlpack(array, copy=True)
    assert y.nbytes == array.nbytes
    assert not array.nbytes or y.ptr != array.ctypes.data


@pytest.mark.checks_data
def test_arrays_are_copied_to_a_device():
    array = np.arange(1000, dtype="f4")
    for device in (xpu.current_device(), "xpu", l0rt.device("xpu:0")):
        x = l0rt.from_dlpack(array, device=device)
        assert x.device.type == "xpu"
        assert x.kind == "device"
        assert x.numpy("f4").tolist() == array.tolist()
        with pytest.raises(BufferError, match="copy=False"):
            l0rt.from_dlpack(array, device=device, copy=False)


@pytest.mark.parametrize("kind", ["device", "host", "shared"])
@pytest.mark.checks_data
def test_buffers_are_taken_too(kind):
    x = l0rt.empty(64, kind=kind).fill(5)
    same = l0rt.from_dlpack(x)
    assert same.ptr == x.ptr
    assert same.kind == kind
    for device in (x.device, "xpu"):
        assert l0rt.from_dlpack(x, device=device, copy=False).ptr == x.ptr
    other = l0rt.from_dlpack(x, copy=True)
    assert other.ptr != x.ptr
    assert other.kind == kind
    assert other.numpy().tolist() == [5] * 64
    host = l0rt.from_dlpack(x, device="cpu")
    assert bytes(host) == b"\x05" * 64
    with pytest.raises(BufferError, match="copy=False"):
        l0rt.from_dlpack(x, device="cpu", copy=False)


@pytest.mark.parametrize("legacy", [False, True])
def test_the_loan_ends_once(legacy):
    lender = Producer((8,), legacy=legacy)
    x = l0rt.from_dlpack(lender)
    assert x.ptr == lender.memory.ctypes.data
    assert lender.options == ({} if legacy else {"max_version": (1, 3)})
    part = x[2:4]
    view = memoryview(x)
    with pytest.raises(BufferError):
        x.free()
    view.release()
    x.free()
    assert lender.ended == 1
    with pytest.raises(ValueError, match="freed"):
        bytes(part)
    del x, part
    assert lender.ended == 1
    x = l0rt.from_dlpack(lender)
    del x
    assert lender.ended == 2
    l0rt.from_dlpack(lender, copy=True)
    assert lender.ended == 3
    part = l0rt.from_dlpack(lender)[1:3]
    gc.collect()
    assert lender.ended == 3
    assert bytes(part) == bytes([1, 2])
    del part
    assert lender.ended == 4


def test_what_a_capsule_may_say():
    assert l0rt.from_dlpack(Producer((2, 3), (3, 1), bits=16)).nbytes == 12
    assert l0rt.from_dlpack(Producer((2, 1, 3), (3, 99, 1))).nbytes == 6
    assert l0rt.from_dlpack(Producer((2, 0), (77, -5))).nbytes == 0
    assert l0rt.from_dlpack(Producer((3,), bits=4, per_element=2)).nbytes == 3
    assert l0rt.from_dlpack(Producer((), version=(1, 99))).nbytes == 1
    moved = Producer((4,), byte_offset=10)
    assert bytes(l0rt.from_dlpack(moved)) == bytes([10, 11, 12, 13])
    x = l0rt.from_dlpack(Producer((4,), deleter=False))
    x.free()
    locked = Producer((4,), flags=1)
    with pytest.raises(BufferError, match="read-only"):
        l0rt.from_dlpack(locked)
    assert bytes(l0rt.from_dlpack(locked, copy=True)) == bytes(range(4))
    assert locked.ended == 2


@pytest.mark.parametrize(("fields", "error"), [
    ({"version": (2, 0)}, "DLPack 2.0: l0rt knows version 1"), ({"version": (0, 8)}, "DLPack 0.8"),
    ({"shape": (2, 3), "strides": (1, 2)}, "contiguous"), ({"shape": (4,), "strides": (-1,)}, "contiguous"),
    ({"shape": (4,), "strides": (0,)}, "contiguous"), ({"shape": (-1,)}, "no valid shape"),
    ({"shape": (1 << 62, 1 << 62)}, "no valid shape"), ({"ndim": -1}, "no valid shape"),
    ({"ndim": 65}, "no valid shape"), ({"no_shape": True}, "no valid shape"), ({"bits": 4}, "whole bytes"),
    ({"bits": 0}, "whole bytes"), ({"per_element": 0}, "whole bytes"), ({"code": 3, "bits": 64}, "not of handles"),
    ({"data": None}, "no address"), ({"device_type": 2}, "device type 2, and not of the host"),
])  # fmt: skip
def test_what_it_may_not_say(fields, error):
    for legacy in (False, True):
        if legacy and "version" in fields:
            continue
        lender = Producer(**{"shape": (4,), **fields}, legacy=legacy)
        with pytest.raises(BufferError, match=error):
            l0rt.from_dlpack(lender)
        assert lender.ended == 1


def test_producers_that_are_none():
    for wrong in (None, 7, b"bytes", object(), SimpleNamespace(__dlpack__=lambda **_: None)):
        with pytest.raises(TypeError, match="from_dlpack\\(\\) takes an object with __dlpack__"):
            l0rt.from_dlpack(wrong)
    with pytest.raises(BufferError, match="device type 2"):
        l0rt.from_dlpack(Producer(device=(2, 0)))
    for device in (7, None, (1,), ("cpu", 0)):
        with pytest.raises(TypeError, match=r"__dlpack_device__\(\) must return a tuple of two ints, got "):
            l0rt.from_dlpack(Producer(device=device))
    for answer in (None, 7, capsule_new(1 << 12, b"used_dltensor", None), capsule_new(1 << 12, b"other", None)):
        lender = Producer()
        lender.__class__ = type("Odd", (Producer,), {"__dlpack__": lambda self, answer=answer, **_: answer})
        with pytest.raises(BufferError, match=r"must return a capsule|taken before"):
            l0rt.from_dlpack(lender)
    x = l0rt.empty(8, kind="host")
    capsule = x.__dlpack__()
    lender = Producer()
    lender.__class__ = type("Twice", (Producer,), {"__dlpack__": lambda self, **_: capsule})
    taken = l0rt.from_dlpack(lender)
    with pytest.raises(BufferError, match="taken before"):
        l0rt.from_dlpack(lender)
    assert taken.ptr == x.ptr


def test_loans_end_on_any_thread():
    x = l0rt.empty(4096, kind="host")
    arrays = [np.from_dlpack(x[i : i + 1]) for i in range(400)]

    def drop():
        while arrays:
            arrays.pop()

    threads = [threading.Thread(target=drop) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    x.free()


def test_random_loans_against_a_model():
    """Who holds a buffer, and whether it may be freed."""
    for seed in range(30):
        choice = random.Random(seed)
        buffers = {i: l0rt.empty(64 * (i + 1), kind=choice.choice(["host", "shared"])) for i in range(4)}
        for buffer in buffers.values():
            buffer.fill(0)
        loans = []  # (number, array, capsule or Buffer)
        for _ in range(200):
            number = choice.choice(list(buffers))
            buffer = buffers[number]
            action = choice.randrange(6)
            if action == 0:
                loans.append((number, np.from_dlpack(buffer)))
            elif action == 1:
                loans.append((number, buffer.__dlpack__(max_version=choice.choice([None, (1, 0)]))))
            elif action == 2:
                loans.append((number, l0rt.from_dlpack(np.from_dlpack(buffer[8:32]))))
            elif action == 3 and loans:
                loans.pop(choice.randrange(len(loans)))
            elif action == 4 and loans:
                loan = choice.choice(loans)[1]
                if isinstance(loan, l0rt.Buffer):
                    loan[0:4].fill(choice.randrange(256))
                del loan
            else:
                if any(held == number for held, _ in loans):
                    with pytest.raises(BufferError):
                        buffer.free()
                else:
                    buffer.free()
                    buffers[number] = l0rt.empty(64, kind="host").fill(0)
        loans.clear()
        for buffer in buffers.values():
            buffer.free()


@pytest.mark.parametrize("copy", [None, True])
def test_strided_memory_says_what_it_is_and_what_makes_it_contiguous(copy):
    """A copy is of bytes: copying first is what the caller has asked for, and no help."""
    with pytest.raises(BufferError) as caught:
        l0rt.from_dlpack(np.zeros((4, 3), "f4").T, copy=copy)
    text = str(caught.value)
    assert "in C's order, with copy=True too, got the shape (3, 4) with the strides (1, 3): make it contiguous" in text
