# SPDX-License-Identifier: Apache-2.0
"""Buffers in others' hands: protocols, memory of other software, pickles; and what breaks their rules."""

import copy
import ctypes
import gc
import pickle
import weakref
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import memory, xpu

from helpers.process import run_python

KINDS = ("device", "host", "shared")
ARRAY = ctypes.create_string_buffer(4096)  # which no driver knows
STRANGE = ctypes.addressof(ARRAY)
ANYWHERE = [{"kind": kind} for kind in KINDS] + [{"device": "cpu", "kind": "host"}]
kinds = pytest.mark.parametrize("kind", KINDS)
anywhere = pytest.mark.parametrize("options", ANYWHERE, ids=lambda options: "-".join(options.values()))


class Owner:
    """Whoever allocated something; with an interface of SYCL's, if it is told one."""

    def __init__(self, told=None):
        if told is not None:
            self.__sycl_usm_array_interface__ = told


def usm(x, **changes):
    told = {**x.__sycl_usm_array_interface__, **changes}
    return Owner({name: value for name, value in told.items() if value is not Ellipsis})


@pytest.mark.checks_data
@kinds
def test_memory_at_an_address_is_a_buffer(kind):
    x = l0rt.empty(4096, kind=kind).fill(1)
    owner = Owner()
    alive = weakref.ref(owner)
    y = l0rt.Buffer.from_handle(x.ptr + 96, 1000, owner=owner)
    del owner
    assert isinstance(y, l0rt.Buffer)
    assert (y.ptr, y.nbytes, y.kind, y.device) == (x.ptr + 96, 1000, kind, x.device)
    y.fill(9)
    y[:4].copy_from(b"abcd")
    data = x.numpy()
    assert data[96:102].tolist() == [97, 98, 99, 100, 9, 9]
    assert data[95] == data[1096] == 1
    part = y[10:20]
    gc.collect()
    assert alive() is not None
    y.free()
    gc.collect()
    assert alive() is None
    for gone in (y, part):
        with pytest.raises(ValueError, match="freed"):
            gone.fill(0)
    assert x.nbytes == 4096
    x.fill(3)


def test_dropping_borrowed_memory_lets_go_of_its_owner():
    x = l0rt.empty(64)
    owner = Owner()
    alive = weakref.ref(owner)
    y = x.from_handle(x.ptr, 64, owner=owner)
    del owner
    part = y[1:2]
    del y
    gc.collect()
    assert alive() is not None
    del part
    gc.collect()
    assert alive() is None


def test_a_stream_keeps_the_owner_until_its_work_is_done():
    x, stream, owner = l0rt.empty(64), acc.Stream(), Owner()
    y = l0rt.Buffer.from_handle(x.ptr, 64, owner=owner)
    y.fill(3, stream=stream)
    y.free(stream)
    assert "freed" in repr(y)


@pytest.mark.parametrize(
    ("address", "nbytes", "error"),
    [
        (0, 1, ValueError), (1 << 70, 1, ValueError), (-5, 5, ValueError), ("x", 1, TypeError), (None, 1, TypeError),
        (4096, -1, ValueError), (4096, 1 << 62, ValueError), (2**64 - 1, 2, ValueError), (1.5, 1, TypeError),
    ],
)  # fmt: skip
def test_nonsense_is_no_memory(address, nbytes, error):
    with pytest.raises(error):
        l0rt.Buffer.from_handle(address, nbytes)


def test_memory_must_be_the_contexts():
    plain = ctypes.create_string_buffer(4096)
    with pytest.raises(ValueError, match="knows no memory"):
        l0rt.Buffer.from_handle(ctypes.addressof(plain), 100)
    x = l0rt.empty(1 << 20)
    address = x.ptr
    with pytest.raises(ValueError, match="not"):
        l0rt.Buffer.from_handle(address, (1 << 30))
    with pytest.raises(IndexError):
        l0rt.Buffer.from_handle(address, 100, device=77)
    assert l0rt.Buffer.from_handle(address, 0).nbytes == 0
    x.free()
    with pytest.raises(ValueError, match="freed"):
        l0rt.Buffer.from_handle(address, 100)


@pytest.mark.needs_two_devices
def test_memory_of_another_device_is_refused():
    x = l0rt.empty(1 << 12, device=1)
    assert l0rt.Buffer.from_handle(x.ptr, 100).device.index == 1
    with pytest.raises(ValueError, match="xpu:1, not of xpu:0"):
        l0rt.Buffer.from_handle(x.ptr, 100, device=0)
    with pytest.raises(ValueError, match="xpu:1, not of xpu:0"):
        l0rt.from_usm(x, device=0)


@pytest.mark.checks_data
@kinds
def test_usm_goes_out_and_comes_back(kind):
    x = l0rt.empty(1000, kind=kind).fill(5)
    for whole in (x, x[100:300]):
        told = whole.__sycl_usm_array_interface__
        assert told["data"] == (whole.ptr, True)
        assert (told["shape"], told["typestr"], told["version"]) == ((whole.nbytes,), "|u1", 1)
        assert told["syclobj"] == f"level_zero:gpu:{x.device.index}"
        y = l0rt.from_usm(whole)
        assert (y.ptr, y.nbytes, y.kind, y.device) == (whole.ptr, whole.nbytes, kind, x.device)
    y = l0rt.from_usm(usm(x, shape=(10, 5), strides=(5, 1), typestr="<f4", offset=3))
    assert (y.ptr, y.nbytes) == (x.ptr + 12, 200)
    y.fill(7)
    assert x.numpy()[[11, 12, 211, 212]].tolist() == [5, 7, 7, 5]
    x.free()
    with pytest.raises(ValueError, match="freed"):
        x.__sycl_usm_array_interface__  # noqa: B018


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"version": 2}, ValueError), ({"version": ...}, ValueError), ({"data": ...}, ValueError),
        ({"data": 5}, ValueError), ({"data": ("x", True)}, ValueError), ({"data": (-4, True)}, ValueError),
        ({"shape": 5}, ValueError), ({"shape": (-1,)}, ValueError), ({"shape": ("a",)}, ValueError),
        ({"typestr": "|O"}, ValueError), ({"typestr": "nonsense"}, ValueError), ({"typestr": 4}, ValueError),
        ({"typestr": "|V0"}, ValueError), ({"offset": -1}, ValueError), ({"offset": 1 << 70}, ValueError),
        ({"strides": (2,)}, BufferError), ({"strides": (1, 1)}, ValueError), ({"strides": "x"}, ValueError),
        ({"shape": (1 << 40, 1 << 40)}, ValueError), ({"shape": (1 << 30,)}, ValueError),
        ({"syclobj": ...}, ValueError), ({"data": (STRANGE, True)}, ValueError),
    ],
)  # fmt: skip
def test_an_interface_that_makes_no_sense_is_refused(changes, error):
    x = l0rt.empty(1000)
    with pytest.raises(error):
        l0rt.from_usm(usm(x, **changes))


def test_from_usm_takes_what_has_the_interface():
    for wrong in (None, 5, b"bytes", np.zeros(3), l0rt.empty(64, device="cpu", kind="host"), Owner(7)):
        with pytest.raises(TypeError, match="__sycl_usm_array_interface__"):
            l0rt.from_usm(wrong)


@pytest.mark.checks_data
@anywhere
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_has_the_contents(options, protocol):
    data = np.arange(1000, dtype="u1")
    x = l0rt.empty(1000, **options).copy_from(data)
    for whole, expected in ((x, data), (x[7:19], data[7:19]), (x[:0], data[:0])):
        y = pickle.loads(pickle.dumps(whole, protocol))
        assert (y.kind, y.device, y.nbytes) == (whole.kind, whole.device, whole.nbytes)
        assert np.array_equal(y.numpy(), expected)
        y.free()
    assert copy.deepcopy(x).numpy().tolist() == data.tolist()


@pytest.mark.checks_data
def test_a_pickle_may_keep_the_contents_apart():
    x, apart = l0rt.empty(1 << 20).fill(3), []
    small = pickle.dumps(x, 5, buffer_callback=apart.append)
    assert len(small) < 1000
    assert (pickle.loads(small, buffers=apart).numpy() == 3).all()


def test_no_pickle_of_freed_memory():
    x = l0rt.empty(64)
    x.free()
    with pytest.raises(ValueError, match="freed"):
        pickle.dumps(x)


def test_arrays_of_device_memory_are_refused_with_advice():
    with pytest.raises(TypeError, match=r"x\.numpy\(dtype, shape\).*copy_to"):
        np.asarray(l0rt.empty(64))
    assert not hasattr(l0rt.empty(64), "__array_interface__")
    for kind in ("host", "shared"):
        x = l0rt.empty(64, kind=kind)
        assert x.__array_interface__["data"] == (x.ptr, False)
        assert np.asarray(x).ctypes.data == x.ptr


@anywhere
def test_a_repr_tells_what_it_is(options):
    x = l0rt.empty(64, **options)
    for word in ("64 bytes", x.kind, str(x.device), hex(x.ptr)):
        assert word in repr(x)
    assert "slice" in repr(x[3:5])
    x.free()
    assert "freed" in repr(x)


def test_a_repr_tells_the_pool():
    pool = memory.MemPool()
    with memory.use_mem_pool(pool):
        x = l0rt.empty(64)
    assert f"in pool {pool.id}" in repr(x)
    assert f"in pool {pool.id}" in repr(x[3:5])
    assert "pool" not in repr(l0rt.empty(64))
    del x


@anywhere
def test_a_with_block_frees(options):
    with l0rt.empty(64, **options) as x:
        assert x.nbytes == 64
    assert "freed" in repr(x)
    with l0rt.empty(64, **options) as x:
        x.free()
    with pytest.raises(RuntimeError, match="inside"), l0rt.empty(64, **options) as x:
        raise RuntimeError("inside")
    assert "freed" in repr(x)


@pytest.mark.checks_data
def test_shared_memory_takes_hints():
    x = l0rt.empty(1 << 16, kind="shared").fill(6)
    for advice in ("read_mostly", "preferred_location", "non_atomic_mostly", "cached"):
        for value in (True, False):
            l0rt.advise(x, advice, value)
            l0rt.advise(x[5:700], advice, value, device=0, stream=acc.Stream())
    l0rt.prefetch(x)
    l0rt.prefetch(x[100:200], stream=acc.Stream())
    l0rt.prefetch(x[:0])
    acc.synchronize()
    assert (x.numpy() == 6).all()


NOTED = """
import ctypes
from helpers import shim
shim.ARGUMENTS.update(zeCommandListAppendMemoryPrefetch=3, zeCommandListAppendMemAdvise=5)
import l0rt
x = l0rt.empty(1 << 16, kind="shared")
shim.calls.clear()
l0rt.prefetch(x[100:200])
for advice in ("read_mostly", "preferred_location", "non_atomic_mostly", "cached", "system_memory_preferred_location"):
    l0rt.advise(x[5:700], advice)
    l0rt.advise(x, advice, False)
said = [(name[19:], args[-2 if "Prefetch" in name else -3] - x.ptr, *args[-1 if "Prefetch" in name else -2:])
        for name, args, result, more in shim.calls if "Append" in name]
print(said)
"""
# ze_memory_advice_t of specification 1.17
ADVICE = {"read_mostly": (0, 1), "preferred_location": (2, 3), "non_atomic_mostly": (4, 5),
          "cached": (6, 7), "system_memory_preferred_location": (8, 9)}  # fmt: skip


def test_hints_reach_the_driver():
    plain = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None}  # an old driver refuses the newer advice
    result = run_python(NOTED, {**plain, "PYTHONPATH": str(Path(__file__).parents[1])}, timeout=60)
    said = [("MemoryPrefetch", 100, 100)]
    for is_set, is_cleared in ADVICE.values():
        said += [("MemAdvise", 5, 695, is_set), ("MemAdvise", 0, 1 << 16, is_cleared)]
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{said}\n", "")


def test_hints_are_for_shared_memory():
    for kind in ("device", "host"):
        with pytest.raises(ValueError, match="shared memory"):
            l0rt.prefetch(l0rt.empty(64, kind=kind))
        with pytest.raises(ValueError, match="shared memory"):
            l0rt.advise(l0rt.empty(64, kind=kind), "read_mostly")
    x = l0rt.empty(64, kind="shared")
    with pytest.raises(ValueError, match="must be one of"):
        l0rt.advise(x, "nicely")
    for wrong in (None, 5, b"x"):
        with pytest.raises(TypeError):
            l0rt.prefetch(wrong)
    x.free()
    with pytest.raises(ValueError, match="freed"):
        l0rt.prefetch(x)


def test_a_stream_is_named_by_its_handle_or_by_the_protocol():
    x, stream = l0rt.empty(64), acc.Stream()
    told = type("Foreign", (), {"__l0_stream__": lambda self: (0, "cmdlist_immediate", stream.native_handle)})()
    for named in (stream, stream.native_handle, told, xpu.current_raw_stream(), -1, None):
        assert x.__dlpack__(stream=named, max_version=(1, 3)) is not None
    for wrong in (0, 1, -2, 1 << 64, 1 << 80, "x", 1.5, object(), True):
        with pytest.raises(BufferError, match="stream must be"):
            x.__dlpack__(stream=wrong)
    for answer in (None, 5, (1, "cmdlist_immediate", 5), (0, "cmdqueue", 5), (0, "cmdlist_immediate")):
        foreign = type("Foreign", (), {"__l0_stream__": lambda self, answer=answer: answer})()
        with pytest.raises(BufferError, match="__l0_stream__"):
            x.__dlpack__(stream=foreign)
    x.free()
