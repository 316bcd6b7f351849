# SPDX-License-Identifier: Apache-2.0
"""memcpy, memcpy2d and memset for Buffers, host memory and addresses; arrays from and to buffers, and pinned ones."""

import ctypes
import gc
import itertools
import pickle
import random
import weakref

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt.runtime.streams import hooks

from helpers.process import run_python

NBYTES = 4096


class Memory:
    """Memory of some kind, as what a copy is given, and what is in it."""

    def __init__(self, kind, nbytes=NBYTES, data=None):
        self.kind, self.nbytes = kind, nbytes
        self.model = np.random.default_rng(nbytes).integers(0, 256, nbytes, "u1") if data is None else data.copy()
        name, _, form = kind.partition(" ")
        if name == "pageable":
            self.owner = self.model.copy()
            self.address = self.owner.ctypes.data
        elif name == "array":
            self.owner = l0rt.pinned(nbytes, "u1")
            self.owner[:] = self.model
            self.address = self.owner.ctypes.data
        else:
            self.owner = l0rt.empty(nbytes, **({"device": "cpu"} if name == "cpu" else {"kind": name}))
            self.owner.copy_from(self.model)
            self.address = self.owner.ptr
        self.by_address = form == "address"

    def at(self, offset):
        return self.address + offset if self.by_address else self.owner[offset:]

    def is_as_expected(self):
        got = self.owner if isinstance(self.owner, np.ndarray) else self.owner.copy_to(np.empty(self.nbytes, "u1"))
        return np.array_equal(got, self.model)


KINDS = ["device", "host", "shared", "pageable", "array", "cpu",
         "device address", "host address", "shared address", "pageable address"]  # fmt: skip


def model_copy(target, target_at, target_pitch, source, source_at, source_pitch, width, height):
    for i in range(height):
        here, there = target_at + i * target_pitch, source_at + i * source_pitch
        target[here : here + width] = source[there : there + width]


@pytest.mark.checks_data
@pytest.mark.parametrize("source_kind", KINDS)
@pytest.mark.parametrize("target_kind", KINDS)
def test_bytes_are_copied_between_all_memories(target_kind, source_kind):
    source, target = Memory(source_kind), Memory(target_kind, data=np.zeros(NBYTES, "u1"))
    for target_at, source_at, nbytes in ((0, 0, NBYTES), (100, 3, 1000), (4095, 0, 1), (7, 7, 0)):
        assert l0rt.memcpy(target.at(target_at), source.at(source_at), nbytes) is None
        acc.synchronize()
        model_copy(target.model, target_at, 1, source.model, source_at, 1, nbytes, 1)
        assert target.is_as_expected()
    assert source.is_as_expected()


def random_rows(choice, nbytes):
    """Return a width, a height, and for both sides an offset and a pitch that fit into so many bytes."""
    width, height = choice.randrange(1, 200), choice.randrange(1, 20)
    sides = []
    for _ in range(2):
        pitch = width + choice.choice(
            (
                0,
                0,
                1,
                choice.randrange((nbytes - width) // max(1, height - 1) - width + 1)
                if height > 1 and (nbytes - width) // (height - 1) > width
                else 0,
            )
        )
        free = nbytes - (height - 1) * pitch - width
        if free < 0:
            return random_rows(choice, nbytes)
        sides.append((choice.randrange(free + 1), pitch))
    return width, height, *sides


@pytest.mark.checks_data
@pytest.mark.parametrize("source_kind", KINDS)
@pytest.mark.parametrize("target_kind", KINDS)
def test_rows_are_copied_between_all_memories(target_kind, source_kind):
    choice = random.Random(target_kind + source_kind)
    source, target = Memory(source_kind), Memory(target_kind, data=np.zeros(NBYTES, "u1"))
    for _ in range(20):
        width, height, (target_at, target_pitch), (source_at, source_pitch) = random_rows(choice, NBYTES)
        l0rt.memcpy2d(target.at(target_at), target_pitch, source.at(source_at), source_pitch, width, height)
        acc.synchronize()
        model_copy(target.model, target_at, target_pitch, source.model, source_at, source_pitch, width, height)
        assert target.is_as_expected()
    assert source.is_as_expected()


@pytest.mark.checks_data
@pytest.mark.parametrize("kind", ["device", "pageable", "array", "shared"])
def test_rows_of_one_memory_may_lie_between_each_other(kind):
    memory = Memory(kind)
    l0rt.memcpy2d(memory.at(10), 64, memory.at(32), 64, 22, 30)
    acc.synchronize()
    model_copy(memory.model, 10, 64, memory.model.copy(), 32, 64, 22, 30)
    assert memory.is_as_expected()
    for target, target_pitch, source, source_pitch, width, height in (
        (10, 64, 31, 64, 22, 30), (0, 64, 64, 64, 64, 2), (0, 64, 5, 63, 10, 30), (63, 64, 0, 64, 2, 9),
        (64 * 9, 64, 1, 64, 3, 10), (1, 64, 64 * 9, 64, 3, 10),
    ):  # fmt: skip
        cells = [
            {at + i * pitch + j for i in range(height) for j in range(width)}
            for at, pitch in ((target, target_pitch), (source, source_pitch))
        ]
        if cells[0] & cells[1]:
            with pytest.raises(ValueError, match=r"overlap: row \d+ of the source and row \d+ of the target"):
                l0rt.memcpy2d(memory.at(target), target_pitch, memory.at(source), source_pitch, width, height)
        else:
            l0rt.memcpy2d(memory.at(target), target_pitch, memory.at(source), source_pitch, width, height)
    assert memory.owner is not None
    with pytest.raises(ValueError, match="overlap"):
        l0rt.memcpy(memory.at(0), memory.at(10), 11)


def test_the_overlap_of_rows_is_found_exactly():
    """Two regions of small numbers in one Buffer are refused if and only if they share a byte."""
    x = l0rt.empty(200)
    seen = set()
    for target, source, target_pitch, source_pitch, width, height in itertools.product(
        (0, 3, 7), (0, 4, 12, 21), (3, 5), (3, 5, 9), (2, 3), (2, 4)
    ):
        if target == source and target_pitch == source_pitch:
            continue
        cells = [
            {at + i * pitch + j for i in range(height) for j in range(width)}
            for at, pitch in ((target, target_pitch), (source, source_pitch))
        ]
        try:
            l0rt.memcpy2d(x[target:], target_pitch, x[source:], source_pitch, width, height)
            is_refused = False
        except ValueError:
            is_refused = True
        assert is_refused == bool(cells[0] & cells[1])
        seen.add(is_refused)
    assert seen == {False, True}


@pytest.mark.checks_data
@pytest.mark.needs_two_devices
def test_rows_are_copied_between_devices_in_the_order_of_both_current_streams():
    x, y, width, height, pitch = l0rt.empty(4 << 20, device=0), l0rt.empty(4 << 20, device=1), 1000, 4000, 1024
    for i in range(10):
        x.fill(i)
        y.fill(255)
        l0rt.memcpy2d(y[24:], pitch, x, pitch, width, height)
        x.fill(254)  # behind the read
        out = y.numpy(shape=(-1, pitch))[:height]
        assert (out[:, 24:] == i).all()
        assert (out[:, :24] == 255).all()
        l0rt.memcpy(x, y, 4 << 20)
        y.fill(253)
        assert np.array_equal(x.numpy()[: height * pitch], out.reshape(-1))


CODE = """
import l0rt, numpy as np
x, y = l0rt.empty(1 << 16), l0rt.empty(1 << 16)
data = np.random.default_rng(0).integers(0, 256, 1 << 16, "u1")
x.copy_from(data)
for _ in range(3):
    y.fill(0)
    l0rt.memcpy2d(y[7:], 300, x[1:], 200, 99, 100)
    expected = np.zeros(1 << 16, "u1")
    for i in range(100):
        expected[7 + 300 * i :][:99] = data[1 + 200 * i :][:99]
    assert np.array_equal(y.numpy(), expected)
    out = np.zeros(1 << 16, "u1")
    l0rt.memcpy2d(out, 100, x, 200, 99, 100)
    assert np.array_equal(out[: 100 * 100].reshape(100, 100)[:, :99], data[: 200 * 100].reshape(100, 200)[:, :99])
"""
REGION = "zeCommandListAppendMemoryCopyRegion"


@pytest.mark.parametrize("disabled", ["", "inorder"])
@pytest.mark.parametrize("result", ["ERROR_UNSUPPORTED_FEATURE", "ERROR_UNINITIALIZED"])
def test_rows_are_copied_one_by_one_where_the_engine_refuses(result, disabled):
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_FAIL": f"{REGION}:1:{result}", "L0RT_DISABLE": disabled or None}
    told = run_python(f"""{CODE}
import ctypes
driver = ctypes.CDLL(l0rt.cpu_driver_path())
driver.l0rt_cpu_faults.restype = ctypes.c_uint64
print(driver.l0rt_cpu_faults())
""", env)  # fmt: skip
    assert told.stdout == "1\n", told


def test_another_failure_of_the_region_command_is_raised():
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_FAIL": f"{REGION}:1:ERROR_OUT_OF_DEVICE_MEMORY"}
    code = """
import l0rt
x, y = l0rt.empty(4096), l0rt.empty(4096)
try:
    l0rt.memcpy2d(x, 64, y, 64, 32, 10)
except l0rt.OutOfMemoryError:
    print("raised")
l0rt.memcpy2d(x, 64, y, 64, 32, 10)
"""
    assert run_python(code, env).stdout == "raised\n"


@pytest.mark.checks_data
@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_filled(kind):
    memory = Memory(kind)
    for offset, value, nbytes in ((0, 7, NBYTES), (5, 255, 100), (4095, 0, 1), (10, 3, 0)):
        assert l0rt.memset(memory.at(offset), value, nbytes) is None
        acc.synchronize()
        memory.model[offset : offset + nbytes] = value
        assert memory.is_as_expected()


@pytest.mark.checks_data
def test_host_memory_is_copied_and_filled_behind_the_work_of_the_stream():
    """And when the call returns: the stream is kept busy, so that it could not be so by chance."""
    stream, busy = acc.Stream(), l0rt.empty(16 << 20)
    x, h = l0rt.empty(1 << 20, stream=stream), l0rt.pinned(1 << 20, "u1")
    for i in range(5):
        with stream:
            busy.fill(i)
            x.fill(i)
            x.copy_to(h, non_blocking=True)
        target = np.zeros(1 << 20, "u1")
        l0rt.memcpy(target, bytes(1 << 20), 1 << 20, stream)
        assert (h == i).all()  # a copy within the host waits for the stream
        with stream:
            busy.fill(i)
            x.copy_to(h, non_blocking=True)
        l0rt.memset(target, 9, 1 << 20, stream)
        assert (h == i).all()
        assert (target == 9).all()


def test_only_what_waits_is_told_to_the_debug_mode():
    x, y, h = l0rt.empty(4096), l0rt.empty(4096), l0rt.empty(4096, kind="host")
    hooks.set_sync_debug_mode("error")
    try:
        l0rt.memcpy(x, y, 100)
        l0rt.memcpy2d(x, 64, y, 64, 32, 10)
        l0rt.memset(x, 1, 100)
        for call in (
            lambda **given: l0rt.memcpy(x, h, 100, **given),
            lambda **given: l0rt.memcpy2d(h.ptr, 64, x, 64, 32, 10, **given),
            lambda **given: l0rt.memset(h, 1, 100, **given),
        ):
            with pytest.raises(RuntimeError, match="synchronizes"):
                call()
            call(non_blocking=True)
        for call in (lambda: l0rt.memcpy(bytearray(8), x, 8), lambda: l0rt.memcpy(x, bytes(8), 8),
                     lambda: l0rt.memcpy2d(bytearray(64), 8, bytes(64), 8, 4, 4),
                     lambda: l0rt.memset(bytearray(8), 1, 8)):  # fmt: skip
            with pytest.raises(RuntimeError, match="synchronizes"):
                call()
    finally:
        hooks.set_sync_debug_mode("default")
    acc.synchronize()


@pytest.mark.checks_data
def test_memory_at_an_address_is_not_reused_under_a_copy():
    a, b = acc.Stream(), acc.Stream()
    for i in range(15):
        x, big = l0rt.empty(1 << 20, stream=a), l0rt.empty(16 << 20, stream=b)
        x.fill(i, stream=a)
        b.wait_stream(a)
        big.fill(0, stream=b)
        out = l0rt.empty(1 << 20, stream=b)
        l0rt.memcpy(out.ptr, x.ptr, 1 << 20, b)
        x.free()
        l0rt.empty(1 << 20, stream=a).fill(255, stream=a)
        assert (out.numpy(stream=b) == i).all()


def test_the_buffers_of_a_copy_are_not_freed_meanwhile():
    x, y, told = l0rt.empty(4096), l0rt.empty(4096), []

    def free(*values):
        for buffer in (x, y):
            with pytest.raises(BufferError, match="has not returned"):
                buffer.free()
        told.append(values)

    hooks.add("copy", free)
    try:
        l0rt.memcpy(x, y[100:], 100, acc.Stream())
        l0rt.memcpy2d(x[100:], 64, y, 64, 10, 10, acc.Stream())
    finally:
        hooks.remove("copy", free)
    assert len(told) == 11  # of rows each: what lies between them is not copied
    x.free()
    y.free()


@pytest.mark.checks_data
def test_memory_of_other_software_is_found_by_its_address():
    """The driver knows it; and registered memory is known as such, by which `unregister` waits for its copies."""
    data = np.arange(1 << 16, dtype="u1")
    x = l0rt.empty(1 << 16).copy_from(data)
    array = np.zeros(1 << 16, "u1")
    try:
        held = l0rt.memory.register(array)
    except l0rt.UnsupportedError as error:
        pytest.skip(str(error))
    l0rt.memcpy(array.ctypes.data, x, 1 << 16, non_blocking=True)
    held.unregister()
    assert np.array_equal(array, data)


def test_wrong_arguments_say_what_is_right():
    x, y = l0rt.empty(100), l0rt.empty(100)
    freed = l0rt.empty(100)
    part = freed[10:]
    freed.free()
    for dst, src in ((x, y[1:]), (x[1:], y), (x, bytes(99)), (bytearray(99), x)):
        with pytest.raises(ValueError, match=r"memcpy\(\) needs 100 bytes, got memory of 99"):
            l0rt.memcpy(dst, src, 100)
    with pytest.raises(ValueError, match=r"memset\(\) needs 101 bytes, got memory of 100"):
        l0rt.memset(x, 0, 101)
    with pytest.raises(ValueError, match=r"memcpy\(\) needs 1048576 bytes, got memory of"):
        l0rt.memcpy(x.ptr, bytes(1 << 20), 1 << 20)
    for buffer in (freed, part):
        for call in (lambda b: l0rt.memcpy(x, b, 1), lambda b: l0rt.memcpy(b, x, 1), lambda b: l0rt.memset(b, 0, 1),
                     lambda b: b.numpy()):  # fmt: skip
            with pytest.raises(ValueError, match="the buffer was freed"):
                call(buffer)
    address = l0rt.empty(1 << 20).ptr  # dropped at once
    with pytest.raises(l0rt.InvalidArgumentError):
        l0rt.memcpy(address, x, 1)
    for wrong in (None, "text", 1.5, [1], True):
        for call in (lambda w: l0rt.memcpy(w, x, 1), lambda w: l0rt.memcpy(x, w, 1), lambda w: l0rt.memset(w, 0, 1)):
            with pytest.raises(TypeError, match="takes a Buffer, an object with the buffer protocol or an address"):
                call(wrong)
    with pytest.raises(ValueError, match="no memory of 10 bytes at 0x0"):
        l0rt.memcpy(0, x, 10)
    with pytest.raises(ValueError, match="no memory of 10 bytes at 0xfffffffffffffffe"):
        l0rt.memset((1 << 64) - 2, 0, 10)
    with pytest.raises(ValueError, match="an address must be from 0 to"):
        l0rt.memcpy(-1, x, 1)
    with pytest.raises((TypeError, ValueError, BufferError)):
        l0rt.memcpy(bytes(10), x, 10)
    for size in (-1, 1 << 62):
        with pytest.raises(ValueError, match="a size must"):
            l0rt.memcpy(x, y, size)
    for value in (-1, 256):
        with pytest.raises(ValueError, match="takes a byte, 0 to 255"):
            l0rt.memset(x, value, 1)
    for call in (lambda s: l0rt.memcpy(x, y, 1, s), lambda s: l0rt.memset(x, 0, 1, s),
                 lambda s: l0rt.memcpy2d(x, 1, y, 1, 1, 1, s)):  # fmt: skip
        with pytest.raises(TypeError):
            call(3)
    for call in (lambda: l0rt.memcpy(x, bytes(8), 8, non_blocking=True),
                 lambda: l0rt.memcpy(bytearray(8), bytes(8), 8, non_blocking=True),
                 lambda: l0rt.memset(bytearray(8), 1, 8, non_blocking=True)):  # fmt: skip
        with pytest.raises(ValueError, match="non_blocking=True needs"):
            call()


@pytest.mark.checks_data
def test_rows_that_do_not_fit_are_refused_before_anything_is_copied():
    x, y = l0rt.empty(1000).fill(1), l0rt.empty(1000).fill(2)
    for pitches, name in (((9, 10), "dst_pitch"), ((10, 9), "src_pitch")):
        with pytest.raises(ValueError, match=f"{name} must be at least the width, 10 bytes, got 9"):
            l0rt.memcpy2d(x, pitches[0], y, pitches[1], 10, 10)
    for dst, dst_pitch, src, src_pitch in ((x, 110, y, 100), (x, 100, y, 110), (x[1:], 100, y, 100)):
        with pytest.raises(ValueError, match=r"memcpy2d\(\) needs \d+ bytes, got memory of"):
            l0rt.memcpy2d(dst, dst_pitch, src, src_pitch, 100, 10)
    for height in (1 << 61, 1 << 40):
        with pytest.raises(ValueError, match="exceed the address space|needs"):
            l0rt.memcpy2d(x, 1 << 30, y, 1 << 30, 10, height)
    for wrong in (-1, 1 << 62):
        for at in (1, 3, 4, 5):
            arguments = [x, 10, y, 10, 10, 10]
            arguments[at] = wrong
            with pytest.raises(ValueError, match="a size must"):
                l0rt.memcpy2d(*arguments)
    l0rt.memcpy2d(x, 0, y, 0, 0, 10)
    l0rt.memcpy2d(x, 10, y, 10, 10, 0)
    assert (x.numpy() == 1).all()


@pytest.mark.checks_data
def test_buffers_become_arrays_and_arrays_buffers():
    data = np.arange(24, dtype="f4").reshape(2, 3, 4)
    for options in ({"kind": "device"}, {"kind": "host"}, {"kind": "shared"}, {"device": "cpu", "kind": "host"}):
        x = l0rt.from_numpy(data, **options)
        assert (x.nbytes, x.kind) == (data.nbytes, options["kind"])
        assert np.array_equal(x.numpy("f4", (2, 3, 4)), data)
        assert np.array_equal(x.numpy("f4", (-1, 4)), data.reshape(6, 4))
        assert np.array_equal(x.numpy("f4", 24), data.reshape(-1))
        assert np.array_equal(x.numpy("u1"), data.view("u1").reshape(-1))
        assert np.array_equal(x[16:32].numpy("f4"), data.reshape(-1)[4:8])
        array = x.numpy("f4")
        array[:] = 0
        assert np.array_equal(x.numpy("f4", data.shape), data)
    for strange in (data[:, ::2], data.T, np.asfortranarray(data), data[::-1]):
        assert np.array_equal(l0rt.from_numpy(strange).numpy("f4", strange.shape), strange)
    for empty in (np.zeros(0), np.zeros((3, 0, 2), "i4")):
        x = l0rt.from_numpy(empty)
        assert x.nbytes == 0
        assert x.numpy(empty.dtype, empty.shape).shape == empty.shape
    stream = acc.Stream()
    x = l0rt.from_numpy(data, stream=stream)
    assert np.array_equal(x.numpy("f4", data.shape, stream=stream), data)
    times = np.array(["2020-01-01"], "M8[D]")
    assert np.array_equal(l0rt.from_numpy(times).numpy("M8[D]"), times)


LAYOUTS = [
    np.arange(24, dtype="f4").reshape(2, 3, 4),
    np.arange(24, dtype="f4").reshape(2, 3, 4)[:, ::2],
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array(7, "i8"),
    np.zeros((3, 0, 2), "c16"),
    np.array([["2020-01-01"]], "M8[D]"),
    np.array([(1, 2.5), (3, 4.5)], [("number", ">i2"), ("share", "f8")]),
    np.array([True, False]),
]


@pytest.mark.checks_data
@pytest.mark.parametrize("array", LAYOUTS, ids=lambda array: f"{array.dtype}-{array.shape}")
@pytest.mark.parametrize("where", [{}, {"kind": "host"}, {"kind": "shared"}, {"device": "cpu", "kind": "host"}])
def test_an_array_comes_back_with_its_dtype_and_shape(array, where):
    x = l0rt.from_numpy(array, **where)
    again = x.numpy()
    assert (again.dtype, again.shape, again.flags.c_contiguous) == (array.dtype, array.shape, True)
    assert again.tobytes() == np.ascontiguousarray(array).tobytes()
    assert x.numpy(shape=-1).dtype == array.dtype
    assert x.numpy(shape=-1).shape == (array.size,)
    assert x.numpy("u1").shape == x[:].numpy().shape == (array.nbytes,)  # bytes for everything else
    assert (x[:].numpy().dtype, len(x), x.nbytes) == (np.uint8, array.nbytes, array.nbytes)
    assert repr(x).startswith(f"<l0rt.Buffer {x.kind} ")


@pytest.mark.checks_data
def test_a_buffer_of_an_array_is_a_buffer_in_all_else():
    array = np.arange(6, dtype="i2").reshape(2, 3)
    x = l0rt.from_numpy(array)
    assert isinstance(x, l0rt.Buffer)
    assert type(x).__name__ == "Buffer"
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(x, protocol))
        assert type(copy) is l0rt.Buffer
        assert copy.numpy().tobytes() == array.tobytes()
    assert l0rt.from_dlpack(x).numpy().tobytes() == array.tobytes()
    x.free()
    for use in (x.numpy, lambda: pickle.dumps(x), x.free):
        with pytest.raises(ValueError, match="was freed"):
            use()
    before = acc.memory_allocated()
    y = l0rt.from_numpy(np.zeros(1 << 20, "u1"))
    y.record_stream(acc.Stream())
    del y
    acc.synchronize()
    assert acc.memory_allocated() == before


def test_the_dtype_of_an_array_is_kept_no_longer_than_its_buffer():
    class Mark:
        pass

    mark = Mark()
    x = l0rt.from_numpy(np.zeros(4, np.dtype("f4", metadata={"mark": mark})))
    gone = weakref.ref(mark)
    del mark
    assert gone() is not None
    del x
    assert gone() is None


def test_what_is_no_array_of_numbers_is_refused():
    x = l0rt.empty(24)
    for wrong in ([1, 2], b"12", 3, None):
        with pytest.raises(TypeError, match="takes a NumPy array"):
            l0rt.from_numpy(wrong)
    with pytest.raises(TypeError, match="of numbers, not of objects"):
        l0rt.from_numpy(np.array([{}]))
    for wrong in ("O", [("a", "O")]):
        with pytest.raises(TypeError, match="expected a dtype of numbers"):
            x.numpy(wrong)
        with pytest.raises(TypeError, match="expected a dtype of numbers"):
            l0rt.pinned(3, wrong)
    with pytest.raises(ValueError, match="24 bytes are not a multiple of the 16 bytes of complex128"):
        x.numpy("c16")
    with pytest.raises(ValueError, match="cannot reshape"):
        x.numpy("f4", (4, 2))
    with pytest.raises(ValueError, match="not a multiple of the 0 bytes"):
        x.numpy("V0")


@pytest.mark.checks_data
def test_numpy_reads_host_memory_and_says_how_to_read_device_memory():
    for options in ({"kind": "device"}, {"kind": "device", "device": 0}):
        x = l0rt.empty(64, **options)
        for call in (np.asarray, np.array, np.sum, lambda b: b[10:].__array__()):
            with pytest.raises(TypeError, match=r"x.numpy\(dtype, shape\) copies it into an array"):
                call(x)
    for options in ({"kind": "host"}, {"kind": "shared"}, {"device": "cpu"}):
        x = l0rt.empty(64, **options).fill(7)
        array = np.asarray(x)
        assert (array.dtype, array.shape, array.sum()) == (np.dtype("u1"), (64,), 7 * 64)
        array[:] = 1
        assert x.numpy().sum() == 64
        assert x.__array__().sum() == 64
        assert x.__array__("i8").dtype == np.dtype("i8")
        mine = x.__array__(copy=True)
        mine[:] = 0
        assert np.asarray(x[10:20]).sum() == 10
        del array
        x.free()
        with pytest.raises(ValueError, match="the buffer was freed"):
            np.asarray(x)


@pytest.mark.checks_data
def test_pinned_arrays_keep_their_memory_and_count_as_pinned():
    before = l0rt.memory.host_memory_stats()["active_bytes.current"]
    h = l0rt.pinned((3, 100), "i4")
    assert (h.shape, h.dtype, h.flags.writeable, h.flags.c_contiguous) == ((3, 100), np.dtype("i4"), True, True)
    assert l0rt.memory.is_pinned(h)
    gc.collect()
    h[:] = np.arange(300).reshape(3, 100)
    x = l0rt.empty(h.nbytes)
    x.copy_from(h, non_blocking=True)
    out = l0rt.pinned(300, "i4")
    x.copy_to(out, non_blocking=True)
    acc.synchronize()
    assert np.array_equal(out, np.arange(300))
    assert l0rt.memory.host_memory_stats()["active_bytes.current"] > before
    row = h[1]
    del h, out
    gc.collect()
    assert row[5] == 105
    assert l0rt.pinned(5).dtype == np.dtype("f8")
    assert l0rt.pinned(()).shape == ()
    assert l0rt.pinned((2, 0)).shape == (2, 0)
    for wrong in (-1, (2, -3), (1 << 40, 1 << 40)):
        with pytest.raises(ValueError, match="negative|too large|below"):
            l0rt.pinned(wrong)
    for wrong in ("a", 2.5, None):
        with pytest.raises(TypeError):
            l0rt.pinned(wrong)


class Endless:
    """What NumPy takes for a sequence: it has an item at every index."""

    def __getitem__(self, index):
        return 1


def test_a_shape_is_an_int_or_a_sequence_with_an_end():
    x = l0rt.empty(24)
    for use in (l0rt.pinned, lambda shape: x.numpy("f4", shape)):
        for wrong in (Endless(), {2: 3}, {6}, iter([6]), "6", b"6", 6.0, (2.0, 3), True, ("6",)):
            with pytest.raises(TypeError, match="must be an int"):
                use(wrong)
        with pytest.raises(ValueError, match="at most 64 lengths, got 65"):
            use((1,) * 65)
        for shape in (6, np.int64(6), [2, 3], np.array([3, 2]), range(1, 4), (1, 6)):
            assert use(shape).size == 6
    assert x.numpy("f4", (2, -1)).shape == (2, 3)


def test_ctypes_memory_is_memory_too():
    x = l0rt.empty(40)
    numbers = (ctypes.c_int * 10)(*range(10))
    l0rt.memcpy(x, numbers, 40)
    l0rt.memcpy(ctypes.addressof(numbers), x[4:], 4)
