# SPDX-License-Identifier: Apache-2.0
"""Launches: right results, every kind of argument, sizes, streams, faults; and what is refused before anything is."""

import ctypes
import gc
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt.ze import table

from helpers.process import run_python

PATH = Path(__file__).with_name("basic.spv")


@pytest.fixture(scope="module")
def module():
    made = l0rt.Module(PATH)
    kept = [made[name] for name in made]  # so that no test makes one that stays
    yield made
    del kept
    made.close()


def filled(array, **options):
    return l0rt.empty(max(array.nbytes, 1), **options).copy_from(np.ascontiguousarray(array).view(np.uint8).ravel())


def read(buffer, dtype, count=None):
    out = np.empty(buffer.nbytes // np.dtype(dtype).itemsize, dtype)
    buffer.copy_to(out)
    return out[:count]


# Right results.


@pytest.mark.checks_data
@pytest.mark.parametrize("n", [1, 63, 1000])
def test_vector_add(module, n):
    x, y = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
    to = l0rt.empty(4 * n)
    module["vector_add"][-(-n // 32), 32](to, filled(x), filled(y), n)
    assert (read(to, np.float32) == x + y).all()


@pytest.mark.checks_data
def test_reduction_with_local_memory_and_barriers(module):
    x = np.arange(1000, dtype=np.int32)
    sums = l0rt.empty(8 * 8)
    module["reduce"][8, 128](sums, filled(x), 1000, l0rt.LocalMemory(8 * 128))
    assert read(sums, np.int64).sum() == x.sum()


@pytest.mark.checks_data
def test_histogram_with_atomics(module):
    x = np.random.default_rng(1).integers(0, 256, 4096, dtype=np.uint8)
    counts = l0rt.empty(4 * 256).fill(0)
    module["histogram"].launch(counts, filled(x), global_size=4096)
    assert (read(counts, np.uint32) == np.bincount(x, minlength=256)).all()


@pytest.mark.checks_data
def test_tiled_matmul(module):
    n = 32
    a, b = np.random.default_rng(2).integers(-4, 5, (2, n, n)).astype(np.float32)
    c = l0rt.empty(4 * n * n)
    module["matmul"].launch(c, filled(a), filled(b), n, global_size=(n, n))
    assert (read(c, np.float32).reshape(n, n) == a @ b).all()


@pytest.mark.checks_data
def test_three_axes_count_x_first(module):
    out = l0rt.empty(4 * 3 * 24)
    module["where"][(2, 3, 1), (2, 1, 2)](out)
    places = [[x, y, z] for z in range(2) for y in range(3) for x in range(4)]
    assert read(out, np.uint32).reshape(-1, 3).tolist() == places


@pytest.mark.checks_data
def test_a_cooperative_launch(module):
    most = module["meet"].max_cooperative_groups(1)
    count = min(most, 8)
    arrived, out = l0rt.empty(4).fill(0), l0rt.empty(4 * count)
    module["meet"].launch(arrived, out, groups=count, group_size=1, cooperative=True)
    assert (read(out, np.int32) == count).all()


# Arguments.


class Pair(ctypes.Structure):
    _fields_ = [("first", ctypes.c_int), ("second", ctypes.c_int64)]


VALUES = [
    (-1, -2, -3, -4, 1.5, np.arange(4, dtype=np.float32), Pair(7, -8)),
    (255, 65534, (1 << 32) - 3, (1 << 64) - 4, np.float32(1.5), bytes(np.arange(4, dtype=np.float32)),
     bytes(Pair(7, -8))),
    (np.int8(-1), np.int16(-2), np.int32(-3), np.int64(-4), 1.5, (ctypes.c_float * 4)(0, 1, 2, 3), Pair(7, -8)),
    (np.uint8(255), ctypes.c_int16(-2), ctypes.c_uint32((1 << 32) - 3), np.uint64((1 << 64) - 4), ctypes.c_float(1.5),
     memoryview(np.arange(4, dtype=np.float32)), Pair(7, -8)),
]  # fmt: skip


@pytest.mark.checks_data
@pytest.mark.parametrize("values", VALUES)
def test_every_kind_of_value(module, values):
    out = l0rt.empty(64).fill(0)
    module["values"][1, 1](out, *values)
    raw = read(out, np.uint8).tobytes()
    assert raw[0] == 255
    assert np.frombuffer(raw[2:16], "<i2,<i4,<i8")[0].tolist() == (-2, -3, -4)
    assert np.frombuffer(raw[16:20], np.float32)[0] == 1.5
    assert np.frombuffer(raw[32:48], np.float32).tolist() == [0, 1, 2, 3]
    assert np.frombuffer(raw[48:52], np.int32)[0] == 7
    assert np.frombuffer(raw[56:64], np.int64)[0] == -8


@pytest.mark.checks_data
@pytest.mark.parametrize("kind", ["device", "host", "shared"])
def test_every_kind_of_memory_and_addresses(module, kind):
    x = l0rt.empty(64, kind=kind).fill(0)
    module["store"][1, 8](x, 5)
    module["store"][1, 8](x.ptr + 32, np.int32(6))
    acc.synchronize()
    assert read(x, np.int32).tolist() == [5] * 8 + [6] * 8


@pytest.mark.parametrize(
    ("args", "error", "why"),
    [
        ((), TypeError, r"store\(\) takes 2 arguments, got 0"),
        (("x", 1, 2), TypeError, r"store\(\) takes 2 arguments, got 3"),
        ((np.zeros(4, np.int32), 1), TypeError, r"\(to\) must be a Buffer, .* got ndarray, which is host memory"),
        ((b"1234", 1), TypeError, r"argument 0 \(to\) must be a Buffer, an address, .* or None, got bytes"),
        ((1.5, 1), TypeError, r"argument 0 \(to\) must be a Buffer, an address, .* or None, got float"),
        ((-1, 1), ValueError, "an address must be from 0"),
        ((1 << 64, 1), ValueError, "an address must be from 0"),
        ((l0rt.LocalMemory(4), 1), TypeError, r"argument 0 \(to\) must be a Buffer"),
        ((0, None), TypeError, r"argument 1 \(value\) must be an int of 4 bytes, got NoneType"),
        ((0, 1.0), TypeError, r"argument 1 \(value\) must be an int of 4 bytes, got float"),
        ((0, "1"), TypeError, r"argument 1 \(value\) must be an int of 4 bytes, got str"),
        ((0, 1 << 32), ValueError, "must fit an int of 4 bytes, got 4294967296"),
        ((0, 1 << 70), ValueError, "must fit an int of 4 bytes"),
        ((0, -(1 << 31) - 1), ValueError, "must fit an int of 4 bytes"),
        ((0, np.int64(1)), TypeError, "must have 4 bytes, got int64 of 8 bytes"),
        ((0, np.float32(1)), TypeError, "must be an int of 4 bytes, got float32"),
        ((0, ctypes.c_int64(1)), TypeError, "must have 4 bytes, got c_long of 8 bytes"),
        ((0, ctypes.c_void_p(1)), TypeError, "objects or pointers"),
        ((0, np.array(None)), TypeError, "objects or pointers"),
        ((0, l0rt.LocalMemory(4)), TypeError, "must be an int of 4 bytes, got"),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(module, args, error, why):
    with pytest.raises(error, match=why):
        module["store"][1, 1](*args)


def test_more_that_are_refused(module):
    x, freed = l0rt.empty(64), l0rt.empty(64)
    freed.free()
    with pytest.raises(ValueError, match="the buffer was freed"):
        module["store"][1, 1](freed, 1)
    with pytest.raises(ValueError, match=r"must be memory of"):
        module["store"][1, 1](l0rt.empty(64, device="cpu"), 1)
    with pytest.raises(TypeError, match=r"argument 3 \(scratch\) must be l0rt.LocalMemory\(nbytes\), got int"):
        module["reduce"][1, 8](x, x, 1, 64)
    with pytest.raises(ValueError, match="must fit an int of 8 bytes"):
        module["values"][1, 1](x, 1, 1, 1, 1 << 64, 1.0, bytes(16), bytes(16))
    with pytest.raises(TypeError, match=r"argument 6 \(v\|p\)|bytes or a ctypes structure of 16 bytes, got float"):
        module["values"][1, 1](x, 1, 1, 1, 1, 1.0, bytes(16), 1.5)
    with pytest.raises(TypeError, match="must have 16 bytes, got bytes of 15 bytes"):
        module["values"][1, 1](x, 1, 1, 1, 1, 1.0, bytes(15), bytes(16))
    x.free()  # nothing holds it after launches that were refused


def test_local_memory_has_a_size():
    assert l0rt.LocalMemory(64).nbytes == 64
    assert repr(l0rt.LocalMemory(np.int8(3))) == "l0rt.LocalMemory(3)"
    for wrong, error in ((0, ValueError), (-1, ValueError), (1 << 62, ValueError), (1.5, TypeError), (None, TypeError)):
        with pytest.raises(error):
            l0rt.LocalMemory(wrong)


# Sizes.


@pytest.mark.parametrize(
    ("sizes", "error", "why"),
    [
        ({}, ValueError, "groups= or global_size=, one of the two"),
        ({"groups": 1, "global_size": 8}, ValueError, "groups= or global_size=, one of the two"),
        ({"groups": 0, "group_size": 1}, ValueError, "groups must be 1 to"),
        ({"groups": -1, "group_size": 1}, ValueError, "groups must be 1 to"),
        ({"groups": 1 << 32, "group_size": 1}, ValueError, "groups must be 1 to"),
        ({"groups": (1, 1, 1, 1), "group_size": 1}, ValueError, "groups must have 1 to 3 sizes, got 4"),
        ({"groups": (), "group_size": 1}, ValueError, "groups must have 1 to 3 sizes, got 0"),
        ({"groups": 1.0, "group_size": 1}, TypeError, "groups must be an int or a tuple of ints, got float"),
        ({"groups": "2", "group_size": 1}, TypeError, "groups must be an int or a tuple of ints, got str"),
        ({"groups": 1, "group_size": 1 << 20}, ValueError, "group_size must be 1 to .* along x, got 1048576"),
        ({"groups": 1, "group_size": (64, 64, 64)}, ValueError, "at most|along z"),
        ({"global_size": 10, "group_size": 3, "cooperative": True}, ValueError,
         r"multiple of group_size, .*got \[10, 1, 1\] and \[3, 1, 1\]"),
        ({"global_size": None, "group_size": 3}, ValueError, "one of the two"),
    ],
)  # fmt: skip
def test_sizes_that_are_refused(module, sizes, error, why):
    with pytest.raises(error, match=why):
        module["store"].launch(l0rt.empty(64), 1, **sizes)


def test_the_required_group_size_is_kept(module):
    x = l0rt.empty(4 * 64)
    with pytest.raises(ValueError, match=r"matmul\(\) requires group_size=\(8, 8, 1\), got \(4, 4, 1\)"):
        module["matmul"][(1, 1), (4, 4)](x, x, x, 8)
    module["matmul"].launch(x, x, x, 8, groups=1)
    acc.synchronize()


@pytest.mark.checks_data
@pytest.mark.parametrize("n", [1, 7, 64, 96, 1000])
def test_without_a_group_size_the_driver_suggests_one(module, n):
    x = l0rt.empty(4 * n).fill(0)
    module["store"].launch(x, 3, global_size=n)
    assert (read(x, np.int32) == 3).all()


def test_a_kernel_is_not_called_without_sizes(module):
    with pytest.raises(TypeError, match=r"a launch needs its sizes: store\[groups, group_size\]"):
        module["store"](1, 2)
    for wrong in (1, (1,), (1, 1, None, 1)):
        with pytest.raises(TypeError, match=r"kernel\[groups, group_size\]"):
            module["store"][wrong]
    with pytest.raises(TypeError, match="a stream must be a Stream, got int"):
        module["store"][1, 1, 5]


# Streams.


@pytest.mark.checks_data
def test_launches_keep_the_order_of_their_stream(module):
    x, one = l0rt.empty(4).fill(0), filled(np.ones(1, np.float32))
    first, second = acc.Stream(), acc.Stream()
    acc.synchronize()
    for _ in range(50):
        module["axpy"][1, 1, first](x, one, 1.0)
        second.wait_stream(first)
        module["axpy"].launch(x, one, 2.0, groups=1, group_size=1, stream=second)
        first.wait_stream(second)
    acc.synchronize()
    assert read(x, np.float32)[0] == 150


@pytest.mark.checks_data
def test_memory_that_is_dropped_behind_a_launch_on_another_stream_is_not_reused_before(module):
    """The kernel waits for a flag, while its Buffer is dropped: what is allocated next must be other memory."""
    flag = l0rt.empty(4, kind="host")
    word = np.frombuffer(flag, np.int32)
    word[0] = 0
    stream = acc.Stream()
    x = l0rt.empty(1 << 20).fill(0)
    acc.synchronize()
    address = x.ptr
    module["wait_until"].launch(flag, 1, groups=1, group_size=1, stream=stream)
    module["store"].launch(x, 1, groups=64, group_size=64, stream=stream)
    del x
    others = [l0rt.empty(1 << 20) for _ in range(4)]
    assert address not in [other.ptr for other in others]
    word[0] = 1
    stream.synchronize()


@pytest.mark.needs_two_devices
def test_a_stream_of_another_device_is_refused(module):
    with pytest.raises(ValueError, match=r"store\(\) is of device 0, the stream of device 1"):
        module["store"].launch(l0rt.empty(64), 1, groups=1, group_size=1, stream=acc.Stream(1))


@pytest.mark.needs_two_devices
@pytest.mark.checks_data
def test_a_module_of_the_second_device_launches_there():
    with l0rt.Module(PATH, device=1) as made:
        x = l0rt.empty(64, device=1).fill(0)
        made["store"][1, 16](x, 3)
        assert read(x, np.int32).tolist() == [3] * 16


# Faults.


def describes():
    """Whether the driver, and the loader in front of it, has a text for an error."""
    return "zeDriverGetLastErrorDescription" not in table.missing()


@pytest.mark.checks_data
@pytest.mark.survives_faults
@pytest.mark.parametrize("wait", ["stream", "device", "event"])
def test_a_launch_that_fails_is_told_of_once_and_the_device_goes_on(module, wait):
    x = l0rt.empty(64).fill(1)
    stream = acc.Stream()
    event = l0rt.Event()
    module["store"].launch(l0rt.Pointer(1 << 46), 1, groups=1, group_size=1, stream=stream)
    event.record(stream)
    told = r"kernel store, .*work-item \(0, 0, 0\)" if describes() else "ERROR_UNKNOWN"
    with pytest.raises(l0rt.KernelFaultError, match=told):
        {"stream": stream.synchronize, "device": acc.synchronize, "event": event.synchronize}[wait]()
    stream.synchronize()
    acc.synchronize()
    module["store"].launch(x, 2, groups=1, group_size=16, stream=stream)
    stream.synchronize()
    assert read(x, np.int32).tolist() == [2] * 16


def test_a_launch_that_fails_prints_nothing_since_l0rt_raises_an_error():
    """Other programs' launches print a line: test_failures.c."""
    code = f"""
import l0rt, l0rt.accelerator as acc
module = l0rt.Module({str(PATH)!r})
module["store"].launch(l0rt.Pointer(1 << 46), 1, groups=1, group_size=1)
try:
    acc.synchronize()
except l0rt.KernelFaultError as e:
    print("store" in str(e))
module.close()
"""
    result = run_python(code, {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_QUIET": None})
    assert (result.returncode, result.stdout, result.stderr) == (0, "True\n", ""), result


@pytest.mark.checks_data
@pytest.mark.survives_faults
def test_work_between_a_fault_and_the_wait_does_not_swallow_it(module):
    stream = acc.Stream()
    module["store"].launch(l0rt.Pointer(1 << 46), 1, groups=1, group_size=1, stream=stream)
    for _ in range(200):  # slots are recycled, and the stream is asked how far it is
        l0rt.Event().record(stream)
        l0rt.empty(64).record_stream(stream)
    gc.collect()
    with pytest.raises(l0rt.KernelFaultError):
        stream.synchronize()
