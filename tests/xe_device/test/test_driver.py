# SPDX-License-Identifier: Apache-2.0
"""What l0rt makes of Intel's driver where the device runs out of memory, is lost, and is measured."""

import ctypes
import os
import re
import sys
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import numpy as np
import pytest
from l0rt import telemetry

from helpers.process import run, run_python
from helpers.rings import TESTS

DEVICE = os.environ["XE_DEVICE"].partition(",")[0]
VRAM = {"bmg": 12, "pvc": 48, "pvc2": 64, "dg2": 16}  # GiB of a tile
has_vram = pytest.mark.skipif(DEVICE not in VRAM, reason="has no memory of its own")

FULL = """
import l0rt, l0rt.accelerator as acc
held = []
try:
    while True:
        held.append(l0rt.empty(1 << 30))
except l0rt.OutOfMemoryError as error:
    print(len(held), acc.memory_allocated() >> 30, "requested" in str(error))
count = len(held)
del held[-3:]
acc.empty_cache()
held += [l0rt.empty(1 << 30) for _ in range(3)]
held[-1].fill(1)
acc.synchronize()
print(len(held) == count)
"""
LOST = """
import ctypes, time, l0rt, l0rt.accelerator as acc
buffer = l0rt.empty(1 << 20)
buffer.fill(1)
acc.synchronize()
time.sleep(IDLE)
ctypes.CDLL(None).xe_device_reset(0)
try:
    for _ in range(100):
        buffer.fill(2)
        acc.synchronize()
except l0rt.L0Error as error:
    print(type(error).__name__, error.code[0], "reset, which dmesg shows" in str(error))
"""


@has_vram
def test_device_memory_runs_out_at_its_size_and_is_there_again():
    result = run_python(FULL, fresh=True, timeout=300)
    first, second = result.stdout.splitlines()
    number, allocated, explained = first.split()
    assert VRAM[DEVICE] - 2 <= int(number) <= VRAM[DEVICE], str(result)  # the driver needs some itself
    assert (allocated, explained, second) == (number, "True", "True")


@pytest.mark.parametrize("idle", [0, 3])
def test_work_after_a_reset_of_the_engines_is_an_error_that_names_it(idle):
    """The driver says that the device is lost if it waits just then, and no memory if it submits the next work."""
    result = run_python(f"IDLE = {idle}\n{LOST}", fresh=True, timeout=120)
    assert result.stdout in (
        "DeviceLostError ERROR_DEVICE_LOST False\n",
        "OutOfMemoryError ERROR_OUT_OF_DEVICE_MEMORY True\n",
    ), str(result)


@has_vram
def test_sensors_are_read_through_the_driver():
    assert telemetry.temperature(0) == 47
    assert 40_000 <= telemetry.power_draw(0) <= 50_000


def test_frequency_and_usage_are_read_through_the_driver():
    assert telemetry.clock_rate(0) == 1200
    assert 24 <= telemetry.utilization(0) <= 26


UNCOUNTED = """
import ctypes, l0rt, l0rt.accelerator as acc
from l0rt import xpu
from l0rt.selftest.driver import FOREVER, Driver
memory = l0rt.empty(4096, kind="host").fill(1)
acc.synchronize()
bare = Driver(0)
event, other = bare.events(2)
list_ = bare.list()
bare.fill(list_, memory.ptr, 2, 4096, event)
bare.do("zeCommandListHostSynchronize", list_, FOREVER)
print(bare.query(event))
bare.wait(event)
bare.fill(xpu.current_raw_stream(), memory.ptr, 3, 4096, other)  # as other libraries append to l0rt's list
acc.synchronize()
print(ctypes.string_at(memory.ptr, 1)[0])
bare.wait(other)
bare.close()
"""


def test_a_wait_for_a_list_ends_behind_work_that_signals_an_event():
    """By itself the driver's wait ends before it on Lunar and Panther Lake: the quirk uncounted_signals."""
    slow = {"XE_DEVICE_LATENCIES": "gpu_walker=100000000"}
    result = run_python(UNCOUNTED, slow, fresh=True, timeout=120)
    assert result.stdout.split() == [str(DEVICE not in ("lnl", "ptl")), "3"], str(result)


OPENED = """
import sys, l0rt
first, second = (l0rt.Event.from_ipc_handle(0, bytes.fromhex(sys.argv[1])) for _ in range(2))
print(first is second, first.query())
del first
print(second.query())
"""


@pytest.mark.shares_events
def test_an_event_is_opened_once_in_a_process():
    """With two devices the driver closes a handle of Linux's twice where it is opened twice: the device names it."""
    event = l0rt.Event(interprocess=True)
    event.record()
    event.synchronize()
    handle = event.ipc_handle()
    assert l0rt.Event.from_ipc_handle(0, handle) is event
    result = run([sys.executable, "-c", OPENED, handle.hex()])
    assert result.stdout == "True True\nTrue\n", str(result)


def test_copies_of_several_streams_arrive():
    """On Ponte Vecchio the driver's own program on the copy engine chooses which of them is next."""
    size, streams = 16 << 20, [acc.Stream() for _ in range(3)]
    for step in range(4):
        copies = []
        for number, stream in enumerate(streams):
            source, device, target = (l0rt.empty(size, kind=kind) for kind in ("host", "device", "host"))
            np.frombuffer(source, "u1")[:] = 16 * step + number
            np.frombuffer(target, "u1")[:] = 255
            device.copy_from(source, stream=stream, non_blocking=True)
            device.copy_to(target, stream=stream, non_blocking=True)
            copies.append((source, device, target))
        acc.synchronize()
        for source, _, target in copies:
            assert np.array_equal(np.frombuffer(source, "u1"), np.frombuffer(target, "u1"))


def test_requests_of_the_driver_can_be_counted():
    library = ctypes.CDLL(None)
    library.xe_device_counter_name.restype = ctypes.c_char_p
    library.xe_device_counter.restype = ctypes.c_ulonglong
    numbers = {library.xe_device_counter_name(i): i for i in range(40)}
    buffer = l0rt.empty(1 << 20)
    buffer.fill(1)
    acc.synchronize()
    before = library.xe_device_counter(numbers[b"gpu_command"])
    buffer.fill(1)
    acc.synchronize()
    assert library.xe_device_counter(numbers[b"gpu_command"]) > before


WITHOUT = """
mount --bind "$1" /etc/ld.so.cache
for file in /usr/lib/x86_64-linux-gnu/libigc.so.*.*; do mount --bind /dev/null "$file"; done
shift
exec "$@"
"""
USES = """
import l0rt
try:
    l0rt.Module({!r})
except l0rt.L0Error as error:
    print(error)
"""


def test_a_missing_compiler_is_named(tmp_path):
    """From Xe2 on the driver ends the process without it, and l0rt says why before that."""
    cache = Path("/etc/ld.so.cache").read_bytes()
    (tmp_path / "cache").write_bytes(cache.replace(b"libigc.so", b"libabs.so"))
    words = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-ec", WITHOUT, "sh", tmp_path / "cache"]
    words.append(sys.executable)
    result = run([*words, "-c", USES.format(str(TESTS / "kernels/add.spv"))])
    if DEVICE in ("bmg", "lnl", "ptl"):
        assert result.returncode != 0, str(result)
        assert re.search(r"RuntimeWarning: .* apt install libigc2$", result.stderr, re.MULTILINE), str(result)
        assert '"code": "no_compiler"' in run([*words, "-m", "l0rt", "doctor", "--json"]).stdout
    else:
        assert "apt install libigc2" in result.stdout, str(result)
