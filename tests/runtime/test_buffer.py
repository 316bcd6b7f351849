# SPDX-License-Identifier: Apache-2.0
"""Buffers: allocation, copies, fills, what the host may see, and every wrong way to use one."""

import array
import copy
import ctypes
import gc
import sys

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt.runtime.streams import hooks

CHARACTERS = "w" if sys.version_info >= (3, 13) else "u"
CHUNK = 4 << 20  # staging copies pageable memory in pieces of this size


@pytest.mark.checks_data
@pytest.mark.parametrize("nbytes", [1, 3, 511, 4096, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK + 7])
@pytest.mark.parametrize("kind", ["device", "host", "shared"])
def test_what_goes_in_comes_out(nbytes, kind):
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, "u1")
    x = l0rt.empty(nbytes, kind=kind)
    assert x.copy_from(data) is x
    out = np.zeros(nbytes, "u1")
    assert x.copy_to(out) is out
    assert np.array_equal(out, data)


def test_every_call_of_a_copy_is_accepted():
    a, b = l0rt.empty(4096), l0rt.empty(4096)
    h = l0rt.empty(4096, kind="host")
    copied = []

    def note(stream, target, source, nbytes):
        copied.append(nbytes)

    hooks.add("copy", note)
    try:
        a.copy_from(b"\1" * 4096)
        b.copy_from(a)
        h.copy_from(b)
        b.copy_from(h, non_blocking=True)
        b.copy_to(h, non_blocking=True)
        b.copy_to(np.empty(1024, "f4"))
        a.copy_to(b, stream=acc.Stream())
        acc.synchronize()
    finally:
        hooks.remove("copy", note)
    assert copied == [4096] * 7


@pytest.mark.checks_data
def test_any_object_with_the_buffer_protocol():
    x = l0rt.empty(16)
    for source in (
        b"0123456789abcdef",
        bytearray(range(16)),
        memoryview(bytes(16)),
        np.arange(4, dtype="i4"),
        np.arange(16, dtype="u1").reshape(4, 4),
        (np.arange(2, dtype="c8")),
    ):
        x.copy_from(source)
        out = bytearray(16)
        x.copy_to(out)
        assert bytes(out) == bytes(
            memoryview(source).cast("B") if not isinstance(source, np.ndarray) else source.tobytes()
        )


@pytest.mark.checks_data
def test_the_source_may_be_reused_when_copy_from_returns():
    x, source = l0rt.empty(3 * CHUNK), np.zeros(3 * CHUNK, "u1")
    for value in range(1, 6):
        source[:] = value
        x.copy_from(source)
        source[:] = 0
        assert (x.copy_to(np.empty(3 * CHUNK, "u1")) == value).all()


@pytest.mark.checks_data
def test_pinned_memory_is_not_reused_under_a_copy():
    """The pinned buffer is dropped at once; whoever gets its memory next must not change what is copied."""
    x = l0rt.empty(1 << 20)
    for value in range(1, 100):
        h = l0rt.empty(1 << 20, kind="host")
        np.frombuffer(h, "u1")[:] = value
        x.copy_from(h, non_blocking=True)
        del h
        other = l0rt.empty(1 << 20, kind="host")
        np.frombuffer(other, "u1")[:] = 0
        assert (x.copy_to(np.empty(1 << 20, "u1")) == value).all()


@pytest.mark.checks_data
def test_arrays_over_pinned_memory_count_as_pinned():
    h, x = l0rt.empty(4096, kind="host"), l0rt.empty(4096)
    array = np.frombuffer(h, "f4")
    array[:] = 1.5
    x.copy_from(array, non_blocking=True)
    out = np.frombuffer(l0rt.empty(4096, kind="host"), "f4")
    x.copy_to(out, non_blocking=True)
    acc.synchronize()
    assert (out == 1.5).all()


@pytest.mark.checks_data
@pytest.mark.parametrize("pattern", [b"\7", b"ab", b"abcd", b"01234567", bytes(range(16))])
def test_fill_patterns(pattern):
    x = l0rt.empty(4096)
    assert x.fill(pattern=pattern) is x
    out = bytearray(4096)
    x.copy_to(out)
    assert bytes(out) == pattern * (4096 // len(pattern))


@pytest.mark.checks_data
def test_fill_a_byte():
    x = l0rt.empty(777)
    for value in (0, 1, 255):
        x.fill(value)
        assert (x.copy_to(np.empty(777, "u1")) == value).all()


@pytest.mark.checks_data
@pytest.mark.parametrize("kind", ["device", "host", "shared"])
def test_a_copy_onto_itself_changes_nothing(kind):
    data = np.arange(4096, dtype="u1")
    x = l0rt.empty(4096, kind=kind)
    x.copy_from(data)
    x.copy_from(x)
    assert (x.copy_to(np.empty(4096, "u1")) == data).all()


class Mixed(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.py_object * 2)]


class Packed(ctypes.Structure):
    _pack_, _layout_ = 1, "ms"  # which 3.14 wants to be told
    _fields_ = [("a", ctypes.c_char), ("b", ctypes.py_object)]


class Either(ctypes.Union):
    _fields_ = [("a", ctypes.c_long), ("b", ctypes.py_object)]


class Outer(ctypes.Structure):
    _fields_ = [("a", Either * 3)]


class Liar(np.ndarray):
    """Times and objects, which calls them bytes."""

    dtype = np.dtype("u1")


NOT_PLAIN = {
    "objects": lambda: np.array([{}, "x"], "O"),
    "a field of objects": lambda: np.zeros(2, [("a", "i4"), ("b", "O"), ("c", "f8")]),
    "a field called as its type is not": lambda: np.zeros(2, [("i", "O")]),
    "a nested field of objects": lambda: np.zeros(2, [("a", [("b", "u1"), ("c", "O", (2, 3))])]),
    "a memoryview of them": lambda: memoryview(np.zeros(2, [("b", "O")])),
    "times and objects": lambda: np.zeros(2, [("a", "M8[s]"), ("b", "O")]),
    "objects that are called bytes": lambda: np.zeros(2, [("a", "M8[s]"), ("b", "O")]).view(Liar),
    "ctypes objects": lambda: (ctypes.py_object * 3)(),
    "a structure": Mixed,
    "a packed structure": Packed,
    "a union": Either,
    "a union within": lambda: (Outer * 2)(),
    "a memoryview of a union": lambda: memoryview(memoryview(Either())),
    "an address": ctypes.c_void_p,
    "a text's address": lambda: (ctypes.c_char_p * 2)(),
    "a pointer": lambda: ctypes.pointer(ctypes.c_int(3)),
    "a function": lambda: ctypes.CFUNCTYPE(ctypes.c_int)(int),
    "addresses as a view casts them": lambda: memoryview(bytearray(16)).cast("P"),
}


@pytest.mark.parametrize("what", NOT_PLAIN)
def test_no_object_and_no_pointer_is_made_of_bytes(what):
    host = NOT_PLAIN[what]()
    nbytes = host.nbytes if isinstance(host, np.ndarray) else memoryview(host).nbytes
    before = ctypes.string_at(host.ctypes.data, nbytes) if isinstance(host, np.ndarray) else None
    buffer = l0rt.empty(nbytes)
    for call in (buffer.copy_to, buffer.copy_from, lambda x: buffer.fill(pattern=x),
                 l0rt.Generator().set_state, l0rt.memory.register, l0rt.memory.is_pinned):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match="not of objects or pointers|cannot include dtype"):
            call(host)
    if before is not None:
        assert ctypes.string_at(host.ctypes.data, nbytes) == before


class Point(ctypes.Structure):
    _fields_ = [("Object", ctypes.c_double), ("P", ctypes.c_short * 3)]


@pytest.mark.checks_data
@pytest.mark.parametrize(
    "kind", "? i1 u1 <i2 >u4 i8 f2 f4 >f8 g c8 c16 G S5 U3 V7 M8[s] m8[ns]".split()
)
def test_arrays_of_any_numbers_are_copied(kind):
    source = np.arange(6).astype(kind) if kind != "V7" else np.zeros(6, kind)
    target, buffer = np.zeros_like(source), l0rt.empty(source.nbytes)
    buffer.copy_from(source)
    buffer.copy_to(target)
    assert target.tobytes() == source.tobytes()


STRUCTURES = {
    "fields": lambda: np.zeros(3, [("O", "i4"), ("P", "f8", (2, 2)), ("n", [("O", "u1"), ("p", "S3")])]),
    "aligned fields": lambda: np.zeros(3, np.dtype([("a", "u1"), ("b", "f8")], align=True)),
    "an array": lambda: array.array("d", range(5)),
    "characters": lambda: array.array(CHARACTERS, "text"),
    "a view that is cast": lambda: memoryview(bytearray(16)).cast("@Q"),
    "a structure": Point,
    "structures": lambda: (Point * 4)(),
    "rows": lambda: (ctypes.c_float * 4 * 2)(),
    "a number": lambda: ctypes.c_longlong(5),
    "wide characters": lambda: (ctypes.c_wchar * 3)("x"),
}


@pytest.mark.checks_data
@pytest.mark.parametrize("what", STRUCTURES)
def test_structures_and_arrays_of_numbers_are_copied(what):
    host = STRUCTURES[what]()
    nbytes = memoryview(host).nbytes
    data = bytes(nbytes) if "character" in what else bytes(range(7, 7 + nbytes))
    buffer = l0rt.empty(nbytes).copy_from(data)
    buffer.copy_to(host)
    assert memoryview(host).tobytes() == data
    assert buffer.fill(0).copy_from(host).copy_to(bytearray(nbytes)) == data


@pytest.mark.checks_data
@pytest.mark.parametrize("kind", ["host", "shared"])
def test_memory_of_the_host_is_filled_when_the_call_returns(kind):
    """For its owner may look at it at once. The stream is kept busy, so that it could not be so by chance."""
    nbytes = 1 << 20
    busy, buffer = l0rt.empty(16 << 20), l0rt.empty(nbytes, kind=kind)
    view = np.frombuffer(buffer, "u1")
    generator = l0rt.Generator()
    for i in range(5):
        busy.fill(i)
        buffer.fill(i + 1)
        assert (view == i + 1).all()
        busy.fill(i)
        buffer.copy_from(np.full(nbytes, i + 7, "u1"))
        assert (view == i + 7).all()
        for name, dtype, arguments in (("uniform", "f4", ()), ("exponential", "f8", ()), ("randint", "u1", (0, 256))):
            state, count = generator.clone_state(), nbytes // np.dtype(dtype).itemsize
            busy.fill(i)
            getattr(buffer, name + "_")(*arguments, dtype=dtype, generator=generator)
            made = view.view(dtype).copy()
            place = state.initial_seed(), state.get_offset()
            expected = getattr(l0rt.philox, name)(*place, count, *arguments, dtype=dtype)
            np.testing.assert_allclose(made, expected, rtol=1e-14 if name == "exponential" else 0)
    buffer.fill(pattern=b"ab", non_blocking=True)
    buffer.uniform_(non_blocking=True)
    buffer.normal_(non_blocking=True)
    buffer.randint_(0, 3, dtype="uint8", non_blocking=True)
    acc.synchronize()
    assert set(view) <= {0, 1, 2}


def test_waiting_for_a_fill_is_told_where_waits_are():
    host = l0rt.empty(64, kind="host")
    hooks.set_sync_debug_mode("error")
    try:
        with pytest.raises(RuntimeError, match="host memory without non_blocking=True synchronizes"):
            host.fill(1)
        host.fill(1, non_blocking=True)
        l0rt.empty(64).fill(1)
    finally:
        hooks.set_sync_debug_mode("default")
    acc.synchronize()


def test_an_empty_buffer():
    for kind in ("device", "host", "shared"):
        x = l0rt.empty(0, kind=kind)
        assert (x.ptr, x.nbytes, len(x)) == (0, 0, 0)
        x.fill(1)
        x.copy_from(b"")
        x.copy_to(bytearray())
        x.copy_from(l0rt.empty(0))
        x.free()


def test_what_a_buffer_says_of_itself():
    x = l0rt.empty(1000, kind="host")
    assert (x.nbytes, x.kind, x.device) == (1000, "host", l0rt.device("xpu:0"))
    assert x.ptr % 64 == 0
    assert "host" in repr(x)
    assert "1000 bytes" in repr(x)
    x.free()
    assert "freed" in repr(x)
    assert l0rt.empty(1).ptr % 512 == 0


def test_host_and_shared_memory_speak_the_buffer_protocol():
    for kind in ("host", "shared"):
        x = l0rt.empty(64, kind=kind)
        view = memoryview(x)
        assert (view.format, view.nbytes, view.readonly, view.ndim) == ("B", 64, False, 1)
        with pytest.raises(BufferError, match="in use by a memoryview"):
            x.free()
        view.release()
        x.free()
    with pytest.raises(BufferError, match="copy_to\\(\\) copies it"):
        memoryview(l0rt.empty(64))


def test_the_memory_lives_as_long_as_a_view_of_it():
    array = np.frombuffer(l0rt.empty(64, kind="host"), "u1")
    gc.collect()
    array[:] = 7
    assert array.sum() == 7 * 64


def test_a_freed_buffer_refuses_everything():
    x, y = l0rt.empty(64), l0rt.empty(64)
    x.free()
    for attempt in (
        x.free,
        lambda: x.ptr,
        lambda: x.fill(0),
        lambda: x.copy_from(y),
        lambda: y.copy_from(x),
        lambda: x.copy_to(y),
        lambda: x.record_stream(acc.current_stream()),
    ):
        with pytest.raises(ValueError, match="was freed"):
            attempt()


@pytest.mark.parametrize("size", [-1, -(1 << 70), 1 << 62, 1 << 100])
def test_impossible_sizes_are_named(size):
    with pytest.raises(ValueError, match="size must"):
        l0rt.empty(size)


@pytest.mark.parametrize("size", [None, 1.5, "4096", b"1", True, []])
def test_a_size_is_an_int(size):
    with pytest.raises(TypeError, match="a size must be an int"):
        l0rt.empty(size)


def test_sizes_of_numpy_are_ints():
    assert l0rt.empty(np.int64(4096)).nbytes == 4096


def test_more_than_there_is_explains_itself():
    with pytest.raises(l0rt.OutOfMemoryError) as caught:
        l0rt.empty(1 << 50)
    text = str(caught.value)
    assert text.startswith("XPU out of memory. Tried to allocate 1048576.00 GiB.")
    for word in ("requested", "free", "allocated", "cached", "limit"):
        assert word in text
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.code[0] == "ERROR_OUT_OF_DEVICE_MEMORY"
    assert l0rt.empty(1 << 20).nbytes == 1 << 20


def test_wrong_arguments_of_empty():
    with pytest.raises(ValueError, match="kind must be one of device, host, shared"):
        l0rt.empty(64, kind="pinned")
    with pytest.raises(IndexError, match="out of range. It must be in"):
        l0rt.empty(64, device=63)
    with pytest.raises(IndexError, match="out of range"):
        l0rt.empty(64, device=-2)
    with pytest.raises(RuntimeError, match="Invalid device string"):
        l0rt.empty(64, device="xpu:01")
    with pytest.raises(TypeError):
        l0rt.empty(64, stream=3)
    with pytest.raises(TypeError, match="with l0rt.empty"):
        l0rt.Buffer()
    with pytest.raises(ValueError, match="never allocated"):
        l0rt.Buffer.__new__(l0rt.Buffer).fill(0)


def test_wrong_arguments_of_copies_and_fills():
    x = l0rt.empty(64)
    with pytest.raises(ValueError, match="sizes differ: the source has 63 bytes, the target 64"):
        x.copy_from(bytes(63))
    with pytest.raises(ValueError, match="sizes differ"):
        x.copy_to(bytearray(65))
    with pytest.raises(ValueError, match="sizes differ"):
        x.copy_from(l0rt.empty(65))
    for wrong in (None, 3, "text", [1, 2]):
        with pytest.raises(TypeError, match="takes a Buffer or an object with the buffer protocol"):
            x.copy_from(wrong)
    with pytest.raises((BufferError, ValueError)):
        x.copy_to(bytes(64))
    with pytest.raises((BufferError, ValueError)):
        x.copy_from(np.arange(128, dtype="u1")[::2])
    with pytest.raises(ValueError, match="non_blocking=True needs pinned memory"):
        x.copy_from(bytes(64), non_blocking=True)
    with pytest.raises(ValueError, match="non_blocking=True needs pinned memory"):
        x.copy_to(bytearray(64), non_blocking=True)
    for wrong in (-1, 256, 1 << 70):
        with pytest.raises(ValueError, match="takes a byte"):
            x.fill(wrong)
    for wrong in (1.0, "a"):
        with pytest.raises(TypeError, match="takes an int"):
            x.fill(wrong)
    for wrong in (b"", b"abc", bytes(32)):
        with pytest.raises(ValueError, match="a pattern must have 1, 2, 4, 8 or 16 bytes"):
            x.fill(pattern=wrong)
    with pytest.raises(ValueError, match="not a multiple"):
        l0rt.empty(6).fill(pattern=b"abcd")
    for wrong in ({}, {"value": 1, "pattern": b"a"}):
        with pytest.raises(TypeError, match="one of the two"):
            x.fill(**wrong)
    with pytest.raises(TypeError):
        x.record_stream(None)


def test_buffers_are_not_copied():
    x = l0rt.empty(64)
    with pytest.raises(TypeError, match="copy_from"):
        copy.copy(x)


def test_freeing_for_another_stream():
    a, b = acc.Stream(), acc.Stream()
    x = l0rt.empty(1 << 20, stream=a)
    x.fill(1, stream=b)
    x.free(stream=b)
    with pytest.raises(ValueError, match="freed"):
        x.fill(1)
    y = l0rt.empty(1 << 20, stream=a)
    y.fill(2, stream=a)
    acc.synchronize()


@pytest.mark.checks_data
def test_a_recorded_stream_keeps_freed_memory_from_being_reused():
    a, b = acc.Stream(), acc.Stream()
    for i in range(50):
        x, big = l0rt.empty(1 << 20, stream=a), l0rt.empty(16 << 20, stream=b)
        x.fill(i, stream=a)
        b.wait_stream(a)
        big.fill(0, stream=b)  # keeps b busy for a while
        out = l0rt.empty(1 << 20, stream=b)
        x.record_stream(b)
        out.copy_from(x, stream=b)
        x.free()
        l0rt.empty(1 << 20, stream=a).fill(255, stream=a)
        assert (out.copy_to(np.empty(1 << 20, "u1"), stream=b) == i).all()


@pytest.mark.needs_two_devices
def test_buffers_on_two_devices():
    x, y = l0rt.empty(4096, device=0), l0rt.empty(4096, device="xpu:1")
    assert (x.device.index, y.device.index) == (0, 1)
    with pytest.raises(ValueError, match="device 0 is not the stream's device, 1"):
        l0rt.empty(64, device=0, stream=acc.Stream(1))
    del x
    y.free()


@pytest.mark.needs_two_devices
@pytest.mark.checks_data
def test_copies_between_devices_are_in_the_order_of_both_current_streams():
    """Large fills in front and behind: a copy that waited for one device alone would see them."""
    x, y, n = l0rt.empty(8 << 20, device=0), l0rt.empty(8 << 20, device=1), 8 << 20
    out = np.empty(n, "u1")
    for i in range(12):
        x.fill(i)
        y.fill(255)
        y.copy_from(x) if i % 2 else x.copy_to(y)
        x.fill(254)                             # behind the read
        assert (y.copy_to(out) == i).all()
        y.fill(i + 100)
        x.copy_from(y)
        y.fill(253)
        assert (x.copy_to(out) == i + 100).all()
    with acc.Stream(0), acc.Stream(1):          # the current streams, whichever they are
        x, y = l0rt.empty(n, device=0), l0rt.empty(n, device=1)
        x.fill(77)
        y.copy_from(x)
        del x
        l0rt.empty(n, device=0).fill(3)
        assert (y.copy_to(out) == 77).all()


@pytest.mark.needs_two_devices
@pytest.mark.checks_data
def test_copies_between_devices_on_a_stream_that_is_named():
    x, y = l0rt.empty(4096, device=0), l0rt.empty(4096, device=1)
    x.fill(9)
    s = acc.Stream(1)
    s.wait_stream(acc.current_stream(0))
    y.copy_from(x, stream=s)
    assert (y.copy_to(np.empty(4096, "u1"), stream=s) == 9).all()
