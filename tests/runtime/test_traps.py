# SPDX-License-Identifier: Apache-2.0
"""The traps of Level Zero that concern memory, by their numbers in the list of them, and the test that each has.

11 out of memory at allocation, residency, map and execution: `test_trap_11`, and `test_memory_ladder.py`
12 size 0, overflow, huge sizes: `test_trap_12`; drivers that ignore the alignment: `make(skew=...)` in
   `test_allocator_model.py`, and the ring "old driver"
13 sizes just over maxMemAllocSize: `test_trap_13`
14 sizes of physical memory: `test_trap_14`
15 a map that is rolled back leaves nothing: `test_trap_15`, and `test_allocator_ranges.py`
16 interior, one past the end, foreign, freed twice, freed with another device current: `test_trap_16`, and
   `test_allocator_pointers.py`
17 a block is not reused on another stream before its last use: `test_stream_order.py` (chaos), `test_cross_stream.py`,
   `test_allocator_machine.py`
18 record_stream, and freed by another thread: `test_stream_order.py`
19 freed by a finaliser that runs inside of an append: `test_trap_19`, and `test_buffer.py`
20 peaks and limits are exact under threads: `test_trap_20`, `test_allocator_model.py`, `test_allocator_threads.py`
28 copies whose ranges overlap are not the driver's: `test_trap_28`
31 free memory that equals the total is not trusted: `test_trap_31`
33 after a trim nothing is left: `test_trap_33`
38 memory is made resident on its owner, and on nobody else: `test_trap_38`
"""

import gc
import threading
from pathlib import Path

import l0rt
import l0rt.accelerator as acc
import pytest
from l0rt import memory

from helpers.door import Door, Failed
from helpers.process import run_python

MIB = 1 << 20
CPU = {
    "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": None, "L0RT_CPU_DEVICES": "2",
    "PYTHONPATH": str(Path(__file__).parents[1]),
}  # fmt: skip
START = """
from helpers import shim
import gc, pytest, l0rt, l0rt.accelerator as acc
from l0rt import memory
MIB = 1 << 20
"""


def check(code, **env):
    result = run_python(START + code, {**CPU, **env}, timeout=30)
    assert (result.returncode, result.stderr) == (0, ""), result


OUT_OF_MEMORY = """
s = acc.Stream()
l0rt.empty(8 * MIB, stream=s).free()            # there is something to give back
x = l0rt.empty(5 * MIB)
acc.synchronize()
if shim.named("zeMemAllocDevice"):              # what is handed out has its memory
    resident = [args[2:4] for name, args, *_ in shim.named("zeContextMakeMemoryResident")]
    assert any(start <= x.ptr and x.ptr + x.nbytes <= start + n for start, n in resident), (x.ptr, resident)
try:
    x.fill(1)
except l0rt.OutOfMemoryError:
    assert at_execution                         # there it is the caller's to try again
    x.fill(1)
else:
    assert not at_execution
assert acc.memory_allocated() == 5 * MIB
x.free()
acc.synchronize()
acc.empty_cache()
assert acc.memory_reserved() == 0
for take, give in (("zeMemAllocDevice", "zeMemFree"), ("zePhysicalMemCreate", "zePhysicalMemDestroy")):
    assert len(shim.named(take)) == len(shim.named(give)), take
"""


@pytest.mark.parametrize(("fault", "disable"), [
    ("zeMemAllocDevice:2:ERROR_OUT_OF_DEVICE_MEMORY", "vmm"),
    ("zeMemAllocDevice:2:ERROR_OUT_OF_HOST_MEMORY", "vmm"),
    ("zeMemAllocDevice:2:ERROR_UNSUPPORTED_SIZE", "vmm"),
    ("zeMemAllocDevice:2:late_oom", "vmm"),
    ("zeContextMakeMemoryResident:2:ERROR_OUT_OF_DEVICE_MEMORY", "vmm"),
    ("zePhysicalMemCreate:3:ERROR_OUT_OF_DEVICE_MEMORY", ""),
    ("zeVirtualMemMap:3:ERROR_OUT_OF_DEVICE_MEMORY", ""),
    ("zeVirtualMemReserve:3:ERROR_OUT_OF_HOST_MEMORY", ""),
    ("zeCommandListAppendMemoryFill:1:ERROR_OUT_OF_DEVICE_MEMORY", ""),
])  # fmt: skip
def test_trap_11_out_of_memory_in_any_call(fault, disable):
    at_execution = f"at_execution = {fault.startswith('zeCommandList')}\n"
    check(at_execution + OUT_OF_MEMORY, L0RT_CPU_FAIL=fault, L0RT_DISABLE=disable, L0RT_CPU_DEVICES="1")


def test_trap_12_sizes_that_are_none():
    door = Door()
    assert door.malloc(0, -1, None) is None
    assert l0rt.empty(0).ptr == 0
    for size in ((1 << 64) - 1, (1 << 63) + 5, 1 << 62, (1 << 62) - 1, 1 << 50):
        with pytest.raises(Failed, match="out of memory"):
            door.malloc(size, -1, None)
    for size in (1 << 80, 1 << 64, 1 << 50):
        with pytest.raises((l0rt.OutOfMemoryError, ValueError, OverflowError)):
            l0rt.empty(size)
    x = l0rt.empty(4 * MIB + 1)
    assert x.ptr % 512 == 0


JUST_OVER = """
most = shim.max_alloc = 64 * MIB
assert l0rt.xpu.get_device_properties().max_alloc_size == most
for n, extra in ((most, 0), (most + 1, [0x20001, 0, 0, 0, 1])):
    x = l0rt.empty(n)
    name, args, result, found = shim.named("zeMemAllocDevice")[-1]
    assert args[2] >= n and found == extra, (hex(n), found)
    x.free()
    acc.empty_cache()
"""


def test_trap_13_a_size_just_over_what_one_allocation_may_have():
    check(JUST_OVER, L0RT_DISABLE="vmm")


PHYSICAL = """
kept = [l0rt.empty(n) for n in (1, 65536, 2 * MIB, 3 * MIB, 5 * MIB + 7, 200 * MIB)]
page_of = lambda size: 2 * MIB if size >= 2 * MIB else 65536    # what the driver answers for such a size
sizes = [call[3] for call in shim.named("zePhysicalMemCreate")]
assert max(sizes) >= 2 * MIB > min(sizes) and all(size % page_of(size) == 0 for size in sizes), sizes
for name, args, result, _ in shim.named("zeVirtualMemMap"):
    assert args[1] % page_of(args[2]) == args[2] % page_of(args[2]) == 0
"""


def test_trap_14_physical_memory_comes_in_pages():
    check(PHYSICAL)


ROLLED_BACK = """
memory.set_memory_limit(64 * MIB)
x = l0rt.empty(3 * MIB)
before = acc.memory_reserved(), {n: len(shim.named(n)) for n in shim.ARGUMENTS}
try:
    l0rt.empty(40 * MIB).free()
except l0rt.OutOfMemoryError:
    pass
acc.synchronize()
y = l0rt.empty(40 * MIB)
y.free(), x.free()
acc.synchronize()
acc.empty_cache()
count = lambda name: len(shim.named(name))
assert acc.memory_reserved() == 0
assert count("zePhysicalMemCreate") == count("zePhysicalMemDestroy")
assert count("zeVirtualMemMap") == count("zeVirtualMemUnmap")
assert count("zeVirtualMemReserve") == count("zeVirtualMemFree")
"""


@pytest.mark.parametrize("nth", range(2, 8))
@pytest.mark.parametrize("function", ["zeVirtualMemMap", "zePhysicalMemCreate", "zeVirtualMemSetAccessAttribute"])
def test_trap_15_a_map_that_fails_leaves_nothing(function, nth):
    check(ROLLED_BACK, L0RT_CPU_FAIL=f"{function}:{nth}:ERROR_OUT_OF_DEVICE_MEMORY")


def test_trap_16_pointers_that_are_not_the_start_of_an_allocation():
    door = Door()
    address = door.malloc(3 * MIB, -1, None)
    outside = bytearray(64)
    for wrong in (address + 1, address + 512, address + 3 * MIB - 1, 8, id(outside), (1 << 63) + 512):
        with pytest.raises(Failed, match="is not the start|freed already"):
            door.free(wrong)
    assert memory.pointer_info(address + 3 * MIB - 1)["base"] == address
    beyond = memory.pointer_info(address + 3 * MIB)
    assert beyond is None or beyond["base"] != address
    assert memory.pointer_info(id(outside)) is None
    with acc.device_index(acc.device_count() - 1):      # another device is current, if there is one
        door.free(address)
    with pytest.raises(Failed, match="freed already|is not the start"):
        door.free(address)


def test_trap_19_finalisers_free_inside_of_whatever_runs():
    class Cycle:
        def __init__(self):
            self.me, self.buffer = self, l0rt.empty(3 * MIB)

        def __del__(self):
            l0rt.empty(64).free()
            self.buffer.free()

    before = acc.memory_allocated()
    streams = [acc.Stream() for _ in range(3)]
    old = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for i in range(60):
            Cycle()
            l0rt.empty(4096 * (i + 1), stream=streams[i % 3]).fill(i, stream=streams[(i + 1) % 3]).free()
            l0rt.Event().record(streams[i % 3])
    finally:
        gc.set_threshold(*old)
    gc.collect()
    assert acc.memory_allocated() == before


WARNED = """
import gc, warnings
import l0rt, l0rt.accelerator as acc
MIB, told = 1 << 20, []
class Cycle:
    ended = 0

    def __init__(self):
        self.me = self

    def __del__(self):
        Cycle.ended += 1
        acc.empty_cache()
        if Cycle.ended < 100:
            Cycle()

l0rt.empty(8 * MIB).free()
gc.disable()
Cycle()

def show(message, category, *where):
    told.append(category)
    for _ in range(3):
        gc.collect()  # at this moment: when Python collects by itself differs between its versions

with warnings.catch_warnings():
    warnings.simplefilter("always")
    warnings.showwarning = show
    acc.empty_cache()
    l0rt.empty(64).free()
assert told == [ResourceWarning], told
assert Cycle.ended > 2
"""


def test_trap_19_finalisers_take_the_locks_of_the_call_that_a_warning_is_about():
    """To warn runs Python, and with it finalisers: not before the allocator has let go of everything."""
    fault = {"L0RT_DISABLE": "vmm", "L0RT_CPU_FAIL": "zeMemFree:1:ERROR_UNKNOWN"}
    result = run_python(WARNED, {**CPU, **fault}, timeout=30)  # without the shim, which is Python under the locks
    assert (result.returncode, result.stderr) == (0, ""), result


def test_trap_20_peaks_and_limits_hold_under_threads():
    acc.synchronize()
    acc.empty_cache()
    base, limit = acc.memory_allocated(), acc.memory_reserved() + 48 * MIB
    memory.set_memory_limit(limit)
    acc.reset_peak_memory_stats()
    streams = [acc.Stream() for _ in range(3)]
    barrier, most = threading.Barrier(3), []

    def work(stream):
        for _ in range(40):
            kept = [l0rt.empty(n, stream=stream) for n in (512, MIB, 5 * MIB)]
            if barrier.wait() == 0:
                most.append(acc.memory_allocated())
                assert acc.memory_reserved() <= limit
            barrier.wait()
            for x in kept:
                x.free()
            barrier.wait()

    threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory.set_memory_limit(None)
    assert set(most) == {base + 3 * (512 + 6 * MIB)}
    assert acc.max_memory_allocated() == max(most)
    assert acc.max_memory_reserved() <= limit
    assert acc.memory_allocated() == base


OVERLAPPING = """
s = acc.Stream()
for kind in ("device", "host", "shared"):
    x, data = l0rt.empty(3 * MIB, kind=kind), bytes(range(256)) * (3 * MIB // 256)
    x.copy_from(data)
    x.copy_from(x)
    x.copy_to(x, stream=s)
    if kind != "device":
        x.copy_from(memoryview(x))
        x.copy_to(memoryview(x), stream=s)
    acc.synchronize()
    assert bytes(x.copy_to(bytearray(3 * MIB))) == data
copies = [args[1:4] for name, args, *_ in shim.named("zeCommandListAppendMemoryCopy")]
assert copies
for target, source, nbytes in copies:
    assert target + nbytes <= source or source + nbytes <= target, (target, source, nbytes)
"""


def test_trap_28_copies_do_not_overlap():
    """The specification leaves open what such a copy does."""
    check(OVERLAPPING)


def test_trap_31_free_memory_is_never_all_there_is_while_some_is_reserved():
    x = l0rt.empty(64 * MIB)
    info = memory.memory_info()
    assert info["free"] <= info["total"] - 64 * MIB or "driver" in info["source"]
    assert 0 <= info["free"] <= info["total"]
    x.free()


TRIMMED = """
pool, s = memory.MemPool(), acc.Stream()
for kind in ("device", "host", "shared"):
    for n in (1, 4096, MIB, 3 * MIB, 50 * MIB):
        for _ in range(3):
            x = l0rt.empty(n, kind=kind, stream=s)
            x.fill(1)
            x.record_use(acc.default_stream())
            x.free(stream=acc.default_stream())
            with memory.use_mem_pool(pool):
                y = l0rt.empty(n)
            y.record_stream(s)
            del y
            z = l0rt.empty(n, device=1)
            z.free()
del x, z, pool
gc.collect()
acc.empty_cache(), acc.empty_host_cache() if hasattr(acc, "empty_host_cache") else memory.empty_host_cache()
from collections import Counter
taken = Counter(name for name, args, result, _ in shim.calls if result == 0)
clocks = 0                                      # l0rt holds no other memory here: no event with timing was made
assert taken["zeMemAllocDevice"] + taken["zeMemAllocHost"] + taken["zeMemAllocShared"] == (
    taken["zeMemFree"] + taken["zeMemFreeExt"] + clocks), taken
assert taken["zePhysicalMemCreate"] == taken["zePhysicalMemDestroy"], taken
assert taken["zeVirtualMemMap"] == taken["zeVirtualMemUnmap"], taken
assert taken["zeVirtualMemReserve"] == taken["zeVirtualMemFree"], taken
"""


@pytest.mark.parametrize("disable", ["", "vmm"])
@pytest.mark.parametrize("conf", ["", "backend:async", "segments:torch"])
def test_trap_33_after_a_trim_nothing_is_left(disable, conf):
    check(TRIMMED, L0RT_DISABLE=disable, L0RT_ALLOC_CONF=conf)


RESIDENT = """
kept = [l0rt.empty(n, device=d) for d in (0, 1) for n in (1, 3 * MIB, 20 * MIB)]
l0rt.empty(4096, kind="host"), l0rt.empty(4096, kind="shared")
kept[0].copy_from(l0rt.empty(1, device=1)), acc.synchronize()
made = [args[4] for name, args, *_ in shim.named("zeMemAllocDevice")]
resident = [args[1] for name, args, *_ in shim.named("zeContextMakeMemoryResident")]
assert resident == made, (resident, made)       # once each, on its own device
assert len(set(made)) == (0 if {vmm} else 2)    # what is mapped is its owner's anyway
assert len({{args[1] for name, args, *_ in shim.named("zePhysicalMemCreate")}}) == (2 if {vmm} else 0)
"""


@pytest.mark.parametrize("vmm", [True, False])
def test_trap_38_memory_is_resident_on_its_owner_only(vmm):
    check(RESIDENT.format(vmm=vmm), L0RT_DISABLE="" if vmm else "vmm")
