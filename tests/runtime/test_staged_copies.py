# SPDX-License-Identifier: Apache-2.0
"""Copies of pageable memory, through pinned chunks; what the host waits for at the end of a copy."""

import re

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt.ze import quirks

from helpers.process import run_python
from helpers.source import ROOT

CHUNK, LEAST = 4 << 20, 512 << 10  # staging copies pageable memory in pieces of these sizes


@pytest.mark.checks_data
@pytest.mark.parametrize(
    ("width", "height"),
    [(3, 5), (1000, 9000), (CHUNK - 1, 3), (CHUNK + 1, 3), (CHUNK, 4),
     (LEAST, 9), (LEAST - 1, 2), (LEAST + 1, 2), (700_000, 7), (3, 600_000)],
)  # fmt: skip
def test_rows_of_pageable_memory_are_staged_in_chunks(width, height):
    pitch = width + 5
    data = np.random.default_rng(width).integers(0, 256, (height, pitch), "u1")
    x = l0rt.empty(width * height)
    l0rt.memcpy2d(x, width, data, pitch, width, height)
    assert np.array_equal(x.numpy(shape=(height, width)), data[:, :width])
    out = np.zeros_like(data)
    l0rt.memcpy2d(out, pitch, x, width, width, height)
    assert np.array_equal(out[:, :width], data[:, :width])
    assert not out[:, width:].any()


STAGED = """
import ctypes
import l0rt, numpy as np
charged = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_charged
charged.restype, charged.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
for nbytes in SIZES:
    x, data = l0rt.empty(nbytes), np.random.default_rng(nbytes).integers(0, 256, nbytes, "u1")
    counts = []
    for copy in (lambda: x.copy_from(data), lambda: x.copy_to(out)):
        before, out = charged(b"append_copy"), np.zeros(nbytes, "u1")
        copy()
        counts.append((charged(b"append_copy") - before) // 1000)
    assert np.array_equal(out, data)
    print(*counts)
"""


def test_chunks_begin_and_end_small():
    alone = LEAST * 3 // 2
    sizes = {1: 1, LEAST: 1, alone: 1, alone + 1: 2, 2 * LEAST: 2, CHUNK: 5, 16 << 20: 9, 64 << 20: 21}
    whole = {size: -(-size // CHUNK) for size in sizes}  # where no link is to be kept busy
    for profile, expected in (("arc-b580", sizes), (None, whole)):
        env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": profile, "L0RT_CPU_LATENCY": "virtual,append_copy=1"}
        result = run_python(STAGED.replace("SIZES", str(tuple(sizes))), env)
        assert (result.returncode, result.stderr) == (0, ""), result
        assert result.stdout.split("\n")[:-1] == [f"{count} {count}" for count in expected.values()]


HOST = 10e3  # bytes a microsecond that a thread copies


def chunks(nbytes, least):
    """Return how many bytes each chunk has, if they begin with ``least`` and double."""
    sizes, following = [], least
    while nbytes:
        size = min(following, max(least, (nbytes + 1) // 2))
        sizes.append(nbytes if nbytes <= min(CHUNK, least * 3 // 2) else size)
        following, nbytes = min(2 * following, CHUNK), nbytes - sizes[-1]
    return sizes


def microseconds(sizes, append, wake_up, rate, to_device):
    """Return what the host needs to have copied all; it has two chunks, and the device takes them in turn."""
    now, asked, ends = 0.0, 0, [0.0]

    def ask():
        nonlocal now, asked
        now += append
        ends.append(max(now, ends[-1]) + sizes[asked] / rate)
        asked += 1

    for k, size in enumerate(sizes):
        if to_device:  # the chunk is the host's again, is filled, and given to the device
            if k >= 2 and ends[k - 1] > now:
                now = ends[k - 1] + wake_up
            now += size / HOST
            ask()
        else:
            while asked < min(len(sizes), k + 2):
                ask()
            now = (ends[k + 1] + wake_up if ends[k + 1] > now else now) + size / HOST
    return ends[-1] + wake_up if to_device else now


def test_the_times_of_staged_copies_follow_from_the_latencies():
    source = (ROOT / "l0rt/cpu_driver/simulate/latency.c").read_text()
    costs = {name: [float(value) for value in values.split(",")]
             for name, values in re.findall(r'\{"(\w+)",\s*\{([\d., ]+)\}\}', source)}  # fmt: skip
    rows = []
    for column, device in enumerate(("arc-b580", "arc-a770-i915", "pvc")):
        append, wake_up, *rates = (costs[name][column] for name in ("append_copy", "wake_up", "h2d_gbps", "d2h_gbps"))
        for mib in (1, 4, 64):
            row = [
                round(microseconds(chunks(mib << 20, least), append, wake_up, rate * 1e3, to_device))
                for rate, to_device in zip(rates, (True, False), strict=True)
                for least in (CHUNK, LEAST)
            ]
            rows.append(f"| {f'`{device}`' if mib == 1 else ''} | {mib} MiB | {' | '.join(map(str, row))} |")
    table = "\n".join(rows).replace("|  |", "| |")
    assert table in (ROOT / "docs/hardware.md").read_text(), table


RECORDED = """
import ctypes
import l0rt, numpy as np
import l0rt.accelerator as acc
charged = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_charged
charged.restype, charged.argtypes = ctypes.c_uint64, [ctypes.c_char_p]
NAMES = b"append_copy", b"record_host", b"record_scope0", b"record_plain"
data, pinned, array = np.arange(64 << 20, dtype="u1"), l0rt.empty(64 << 20, kind="host"), l0rt.pinned(1 << 20, "u1")
x, out, scalar = l0rt.empty(64 << 20), np.zeros(64 << 20, "u1"), bytearray(4)
for copy in (
    lambda: x.copy_from(data),
    lambda: x.copy_to(out),
    lambda: x[4:8].copy_to(scalar),
    lambda: pinned.copy_from(x),
    lambda: x[: 1 << 20].copy_to(array),
):
    for _ in range(2):  # the first one makes what it needs
        before = [charged(name) for name in NAMES]
        copy()
        acc.synchronize()
    print(*((charged(name) - was) // 1000 for name, was in zip(NAMES, before)))
assert np.array_equal(out, data) and scalar == out[4:8].tobytes() and np.array_equal(array, data[: 1 << 20])
"""


@pytest.mark.parametrize("disable", [None, "cb_events"])
@pytest.mark.parametrize("profile", ["arc-a770-xe", "arc-a770-i915", "arc-b580", "pvc"])
def test_a_copy_that_the_host_waits_for_signals_by_itself(profile, disable):
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": profile, "L0RT_DISABLE": disable, "L0RT_EVENTS": None}
    costs = "virtual,append_copy=1,copy_per_piece=0,record_host=1,record_scope0=1,record_plain=1"
    result = run_python(RECORDED, {**env, "L0RT_CPU_LATENCY": costs})
    assert (result.returncode, result.stderr) == (0, ""), result
    chunks = [21, 21, 1, 1, 1]
    assert result.stdout.split("\n")[:-1] == [f"{count} 0 0 0" for count in chunks]


@pytest.mark.checks_data
def test_what_is_appended_behind_a_copy_that_signals_is_waited_for_too():
    x, host = l0rt.empty(8 << 20), l0rt.empty(8 << 20, kind="host")
    for value in range(1, 9):
        x.copy_from(bytes([value]) * (8 << 20))  # its last chunk's event is the stream's end,
        host.copy_from(x, non_blocking=True)  # but no more from here on
        acc.synchronize()
        assert host[:3].numpy().tolist() == [value] * 3
        assert host[-3:].numpy().tolist() == [value] * 3


OFFLOADED = """
import ctypes
import l0rt, numpy as np
import l0rt.accelerator as acc
from l0rt.runtime.streams import devices
offloaded = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_offloaded
offloaded.restype = ctypes.c_uint64
SETTING
x, y, out = l0rt.empty(5 << 20), l0rt.empty(5 << 20), np.zeros(5 << 20, "u1")
pinned, data = l0rt.empty(5 << 20, kind="host"), np.arange(5 << 20, dtype="u1")
def count(copy):
    before = offloaded()
    copy()
    acc.synchronize()
    return offloaded() - before
def rows(target, source):
    return lambda: l0rt.memcpy2d(target, 4096, source, 4096, 4000, 9)
copies = (lambda: x.copy_from(data), lambda: y.copy_from(x), lambda: y.copy_to(out),
          lambda: pinned.copy_from(x, non_blocking=True), rows(pinned, x), rows(y, x))
print(*map(count, copies), devices.capabilities(0)["copy_offload"])
assert np.array_equal(out, data) and np.array_equal(pinned.numpy()[:4000], data[:4000])
"""
CHUNKS = 6  # of 5 MiB


@pytest.mark.parametrize(
    ("profile", "setting", "disable", "counts", "able"),
    [
        ("arc-b580", (), None, (CHUNKS, 0, CHUNKS, 1, 1, 0), True),
        ("pvc", (), None, (CHUNKS, 0, CHUNKS, 1, 1, 0), True),
        ("pvc", ("copy_engine", "auto"), None, (CHUNKS, 0, CHUNKS, 1, 1, 0), True),
        ("pvc", ("xpu.copy_engine", "compute"), None, (0,) * 6, True),
        ("pvc", ("xpu.d2h.copy_engine", "compute"), None, (0,) * 6, True),
        ("pvc", (), "copy_offload", (0,) * 6, False),
        ("pvc", (), "inorder", (0,) * 6, False),
        ("pvc,neo-25.18", (), None, (0,) * 6, False),  # whose API is older than the hint
        ("arc-a770-xe", (), None, (0,) * 6, True),  # whose driver does not follow it
        (None, (), None, (0,) * 6, True),
        ("neo-22.43", (), None, (0,) * 6, False),
    ],
)
def test_the_driver_may_give_copies_of_host_memory_to_a_copy_engine(profile, setting, disable, counts, able):
    env = {"L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": profile, "L0RT_DISABLE": disable}
    set_it = f"l0rt.config.set{setting}" if setting else ""
    result = run_python(OFFLOADED.replace("SETTING", set_it), env)
    assert (result.returncode, result.stderr) == (0, ""), result
    assert result.stdout.split() == [*map(str, counts), str(able)]


DIVIDED = """
import l0rt, numpy as np
for rows, width in ((1, 33 << 20), (1, (1 << 20) + 5), (5000, 1001), (3, 700_000), (9, 3 << 20)):
    pitch = width + 7
    data = np.random.default_rng(rows).integers(0, 256, (rows, pitch), "u1")
    x, out = l0rt.empty(rows * width), np.zeros_like(data)
    l0rt.memcpy2d(x, width, data, pitch, width, rows)
    assert np.array_equal(x.numpy(shape=(rows, width)), data[:, :width])
    l0rt.memcpy2d(out, pitch, x, width, width, rows)
    assert np.array_equal(out[:, :width], data[:, :width]) and not out[:, width:].any()
print("right")
"""


@pytest.mark.checks_data
@pytest.mark.parametrize(("threads", "profile"), [(1, None), (2, None), (4, None), (None, "pvc,neo-26.31")])
def test_threads_divide_what_the_host_copies(threads, profile):
    env = {"L0RT_DRIVER": "cpu", "L0RT_COPY_THREADS": threads, "L0RT_CPU_PROFILE": profile, "L0RT_DISABLE": None}
    result = run_python(DIVIDED, env)
    assert (result.returncode, result.stdout, result.stderr) == (0, "right\n", ""), result


def test_only_where_the_link_is_faster_do_threads_divide_a_copy():
    def is_fast(vendor_id, device_id):
        return "fast_link" in {row.name for row in quirks.mended(vendor_id, device_id, 0, "i915", {})}

    assert is_fast(quirks.INTEL, 0x0BDA)
    assert not is_fast(quirks.INTEL, 0xE20B)
    assert not is_fast(0, 0x0BDA)
