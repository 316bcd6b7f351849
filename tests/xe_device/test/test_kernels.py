# SPDX-License-Identifier: Apache-2.0
"""Kernels compute on simulated devices: what Intel's compiler has made of their SPIR-V is found by its code."""

import ctypes
import random
from itertools import count, takewhile
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest

from helpers.process import run_python

BASIC = Path(__file__).parents[2] / "kernels" / "basic.spv"
SIZES = """
kernel void numbers(global uint *to, uint width, uint height) {
  size_t x = get_global_id(0), y = get_global_id(1);
  to[y * width + x] = get_local_id(0) + 100 * get_local_id(1) + 10000 * get_group_id(0) + 1000000 * get_group_id(1);
}
kernel void count(global uint *to) { atomic_inc(to); }
kernel void items(global uint *to) { to[get_local_id(0)] = get_local_id(0); }
"""
LOCAL = """
kernel void turn(global int *to, local int *a, global const int *from, local int *b, int by) {
  local int c[16];
  size_t i = get_local_id(0), n = get_local_size(0), first = get_group_id(0) * n;
  a[i] = from[first + i];
  b[i] = by * from[first + i];
  if (i < 16) c[i] = i;
  barrier(CLK_LOCAL_MEM_FENCE);
  to[first + i] = a[n - 1 - i] + b[n - 1 - i] + c[i % 16];
}
"""
FILL = """
kernel void sum(global uint *to, local uint *all, uint n) {
  for (uint i = get_local_id(0); i < n; i += get_local_size(0)) all[i] = i;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) != 0) return;
  uint total = 0;
  for (uint i = 0; i < n; i++) total += all[i];
  *to = total;
}
"""
FAULT = f"""
import l0rt, l0rt.accelerator as acc
module = l0rt.Module({str(BASIC)!r})
module["store"].launch(l0rt.Pointer(1 << 46), 1, groups=1, group_size=1)
try:
    acc.synchronize()
except l0rt.DeviceLostError:
    print("lost")
"""
WITHOUT = f"""
import l0rt, l0rt.accelerator as acc
module, to = l0rt.Module({str(BASIC)!r}), l0rt.empty(64, kind="host")
module["store"].launch(to, 1, groups=1, group_size=1)
acc.synchronize()
"""


def walkers():
    """Return how many kernels were launched in this process, and how many of them did not compute."""
    library = ctypes.CDLL(None)
    library.xe_device_counter_name.restype = ctypes.c_char_p
    library.xe_device_counter.restype = ctypes.c_ulonglong
    names = list(takewhile(bool, map(library.xe_device_counter_name, count())))
    return [library.xe_device_counter(names.index(name)) for name in (b"gpu_walker", b"gpu_walker_unmapped")]


@pytest.fixture(autouse=True)
def all_compute():
    before = walkers()
    yield
    after = walkers()
    assert after[0] > before[0] or after == before
    assert after[1] == before[1]


def test_vectors_are_added():
    with l0rt.Module(BASIC) as module:
        x, y = np.arange(1000, dtype="f4"), np.full(1000, 0.5, "f4")
        to = l0rt.empty(x.nbytes)
        module["vector_add"][8, 128](to, l0rt.from_numpy(x), l0rt.from_numpy(y), 1000)
        assert np.array_equal(to.numpy("f4"), x + y)


@pytest.mark.parametrize(
    ("groups", "size"), [((4, 1), (64, 1)), ((3, 2), (7, 5)), ((1, 3), (24, 1)), ((2, 2), (16, 8))]
)
def test_work_items_have_their_numbers(groups, size):
    """The hardware makes them itself only for some sizes of groups."""
    width, height = groups[0] * size[0], groups[1] * size[1]
    with l0rt.compile(SIZES) as module:
        to = l0rt.empty(4 * width * height)
        module["numbers"].launch(to, width, height, groups=groups, group_size=size)
        found = to.numpy("u4", (height, width))
    y, x = np.mgrid[:height, :width]
    assert np.array_equal(found, x % size[0] + 100 * (y % size[1]) + 10000 * (x // size[0]) + 1000000 * (y // size[1]))


@pytest.mark.parametrize("size", [1, 5, 16, 24, 100, 256])
def test_a_kernel_that_asks_for_no_number_has_all_its_work_items(size):
    with l0rt.compile(SIZES) as module:
        to, items = l0rt.empty(4).fill(0), l0rt.empty(4 * size).fill(0)
        module["count"].launch(to, groups=3, group_size=size)
        module["items"].launch(items, groups=1, group_size=size)
        assert to.numpy("u4", 1)[0] == 3 * size
        assert np.array_equal(items.numpy("u4"), np.arange(size))


def test_local_memory_has_the_sizes_that_the_launch_gives():
    with l0rt.compile(LOCAL) as module:
        x = np.arange(192, dtype="i4")
        to, local = l0rt.empty(x.nbytes), l0rt.LocalMemory(4 * 48)
        module["turn"].launch(to, local, l0rt.from_numpy(x), local, 10, groups=4, group_size=48)
        expected = 11 * x.reshape(4, 48)[:, ::-1] + np.arange(48) % 16
        assert np.array_equal(to.numpy("i4", (4, 48)), expected)


@pytest.mark.parametrize("size", [512, 1 << 10, 5000, 16 << 10, 20_000, 30_000, 48 << 10, 64 << 10])
def test_local_memory_is_as_large_as_the_launch_says(size):
    with l0rt.compile(FILL) as module:
        to = l0rt.empty(4)
        module["sum"].launch(to, l0rt.LocalMemory(size), size // 4, groups=1, group_size=32)
        assert to.numpy("u4", 1)[0] == sum(range(size // 4))


def test_the_driver_copies_and_fills():
    """With its own kernels, where it has no copy engine or takes it for slower: at odd places and of odd sizes."""
    rng, size = random.Random(1), 70_001
    model = np.zeros(size, "u1")
    buffer, other = l0rt.empty(size).fill(0), l0rt.empty(size)
    for value in range(1, 60):
        begin, end = sorted(rng.sample(range(size), 2))
        if value % 3 == 0:
            buffer[begin:end].fill(value)
            model[begin:end] = value
        elif value % 3 == 1:
            data = np.arange(end - begin, dtype="u1")
            buffer[begin:end].copy_from(data)
            model[begin:end] = data
        else:
            other[: end - begin].copy_from(buffer[begin:end])
            buffer[: end - begin].copy_from(other[: end - begin])
            model[: end - begin] = model[begin:end].copy()
        assert np.array_equal(buffer.numpy("u1"), model), value


def test_a_kernel_that_runs_sees_what_the_host_writes_and_memory_is_bound_meanwhile():
    flag, stream = l0rt.empty(4, kind="host"), acc.Stream()
    word = np.frombuffer(flag, "i4")
    word[0] = 0
    with l0rt.Module(BASIC) as module:
        module["wait_until"].launch(flag, 1, groups=1, group_size=1, stream=stream)
        held = [l0rt.empty(3 << 20, kind=kind) for kind in ("host", "device", "shared")]
        assert not stream.query()
        word[0] = 1
        stream.synchronize()
        del held


def test_a_wrong_address_is_named_and_the_device_is_lost(tmp_path):
    result = run_python(FAULT, {"XE_DEVICE_FAILURES": tmp_path / "failures"}, timeout=120)
    assert result.stdout == "lost\n", str(result)
    assert "kernel store" in (tmp_path / "failures").read_text()


def test_kernels_that_do_not_compute_are_named_and_counted(tmp_path):
    env = {
        "XE_DEVICE_ENGINE": None,
        "XE_DEVICE_UNMAPPED": tmp_path / "unmapped",
        "XE_DEVICE_COUNTERS": tmp_path / "all",
    }
    result = run_python(WITHOUT, env, timeout=120)
    assert result.returncode == 0, str(result)
    assert "no engine" in (tmp_path / "unmapped").read_text()
    assert " gpu_walker_unmapped " in (tmp_path / "all").read_text()
