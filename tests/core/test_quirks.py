# SPDX-License-Identifier: Apache-2.0
"""Quirks: which rows of the table apply to which device, build and kernel driver, and what l0rt then does without."""

import json
import os
import re

import pytest
from l0rt import config
from l0rt.ze import pci, quirks

from helpers.process import run_python
from helpers.source import ROOT

ALCHEMIST, BATTLEMAGE, PONTE_VECCHIO, LUNAR_LAKE, PANTHER_LAKE = 0x56A0, 0xE20B, 0x0BDA, 0x64A0, 0xB080
OLD, MIDDLE, NEW = 33578, 36300, 39395  # 25.18, 25.48, 26.31
ALWAYS = {  # of Intel's driver
    "racing_maps", "racing_queries", "single_device_imports", "peer_counters", "unjoined_captures",
    "listed_symbols", "fatal_enqueues",
}  # fmt: skip
OLDEST = {"unordered_lists", "raw_memory_handles"}  # of builds without a number and an old API, too
CACHES = {"cached_imports"}  # of devices that keep freed host memory, or may
SKIPS = {"uncounted_signals"}  # of Lunar Lake and later, from 26.01 on
EVERY = ALWAYS | CACHES | SKIPS | {
    "unflushed_counters", "no_vm_bind", "untyped_mappings", "raw_event_handles", "outlasting_waits", "early_graphs",
    "fast_link", *OLDEST,
}  # fmt: skip
OF_OLD_ALCHEMIST = EVERY - ALWAYS - CACHES - SKIPS - {"fast_link"}
RAW = {"raw_event_handles", "raw_memory_handles"}  # of Alchemist and Ponte Vecchio, in every build
BY_RULE = {"fast_link"}  # a property of the device, and no defect that could be planted


def names(device_id, build, kernel_driver, vendor_id=quirks.INTEL, switches=None, api=(1, 6)):
    found = quirks.mended(vendor_id, device_id, build, kernel_driver, switches or {}, api[0] << 16 | api[1])
    return {quirk.name for quirk in found}


@pytest.mark.parametrize(
    ("device_id", "build", "kernel_driver", "expected"),
    [
        (ALCHEMIST, OLD, "i915", OF_OLD_ALCHEMIST - {"unordered_lists", "outlasting_waits"}),
        (ALCHEMIST, 0, "i915", OF_OLD_ALCHEMIST - {"unordered_lists"}),  # 1.6: lists are in order
        (BATTLEMAGE, 30872, "xe", CACHES | OLDEST | {"untyped_mappings", "raw_event_handles", "early_graphs"}),
        (ALCHEMIST, NEW, "i915", RAW | {"no_vm_bind", "outlasting_waits"}),
        (ALCHEMIST, NEW, "i915-prelim", RAW | {"outlasting_waits"}),
        (ALCHEMIST, MIDDLE, "xe", RAW | {"unflushed_counters", "early_graphs"}),
        (BATTLEMAGE, OLD, "xe", CACHES | {"untyped_mappings", "raw_event_handles", "early_graphs"}),
        (BATTLEMAGE, NEW, "xe", CACHES),
        (PANTHER_LAKE, NEW, "xe", CACHES | SKIPS),
        (PONTE_VECCHIO, MIDDLE, "i915-prelim", RAW | {"early_graphs", "fast_link"}),
        (LUNAR_LAKE, MIDDLE, "xe", CACHES | {"unflushed_counters", "raw_event_handles", "early_graphs"}),
        (BATTLEMAGE, NEW, None, CACHES | {"no_vm_bind"}),  # unknown: the careful way
        (0x1234, NEW, "xe", CACHES | SKIPS),
        (LUNAR_LAKE, NEW, "xe", CACHES | SKIPS | {"outlasting_waits"}),
        (BATTLEMAGE, 0, "xe", CACHES | {"untyped_mappings", "raw_event_handles", "raw_memory_handles", "early_graphs"}),
    ],
)
def test_rows_follow_from_device_build_and_kernel_driver(device_id, build, kernel_driver, expected):
    assert names(device_id, build, kernel_driver) == expected | ALWAYS


def test_a_build_without_a_number_is_judged_by_its_api_where_lists_keep_order():
    assert "unordered_lists" in names(BATTLEMAGE, 0, "xe", api=(1, 5))
    assert "unordered_lists" not in names(BATTLEMAGE, 0, "xe", api=(1, 6))
    assert "unordered_lists" not in names(BATTLEMAGE, NEW, "xe", api=(1, 5))


def test_another_vendors_device_has_none():
    assert names(ALCHEMIST, 0, None, vendor_id=0) == set()
    assert quirks.architecture(0, ALCHEMIST) is None


def test_the_setting_switches_rows_on_and_off():
    switches = {"no_vm_bind": False, "raw_event_handles": True}
    assert names(ALCHEMIST, NEW, "i915", switches=switches) == ALWAYS | RAW | {"outlasting_waits"}
    assert names(0, 0, None, vendor_id=0, switches=switches) == {"raw_event_handles"}


@pytest.mark.parametrize("wrong", ["no_vm_bind", "no_vm_bind=2", "no_vm_bind=", "vm_bind=1", "=1"])
def test_a_wrong_switch_is_told_with_the_names_that_there_are(wrong):
    with pytest.raises(ValueError, match="no_vm_bind"):
        config.set("quirks", wrong)


def test_every_row_is_named_in_the_settings_and_concerns_capabilities():
    assert {quirk.name for quirk in quirks.QUIRKS} == set(config.QUIRKS) == EVERY
    assert {name for quirk in quirks.QUIRKS for name in quirk.without} <= set(config.CAPABILITIES)


@pytest.mark.parametrize(("files", "expected"), [((), "i915"), (("prelim_uapi_version",), "i915-prelim")])
def test_the_i915_with_vm_bind_is_told_by_its_files(tmp_path, files, expected):
    folder = tmp_path / "bus/pci/devices/0000:03:00.0"
    (folder / "drm/card0").mkdir(parents=True)
    for name in files:
        (folder / "drm/card0" / name).touch()
    (tmp_path / "bus/pci/drivers/i915").mkdir(parents=True)
    (folder / "driver").symlink_to(tmp_path / "bus/pci/drivers/i915")
    assert pci.kernel_driver("0000:03:00.0", tmp_path) == expected
    assert pci.kernel_driver("0000:04:00.0", tmp_path) is None
    assert pci.kernel_driver(None, tmp_path) is None


SHARING = ("event_ipc", "memory_ipc")
PROGRAM = """
import json
import l0rt
import l0rt.accelerator as acc
from l0rt.errors import UnsupportedError
from l0rt.runtime.streams import devices
x = l0rt.empty(64 << 20).fill(7)
out = bytearray(16)
l0rt.empty(16).fill(7).copy_to(out)
event = l0rt.Event(interprocess=True)
event.record()
event.synchronize()
try:
    event.ipc_handle()
    shares = True
except UnsupportedError:
    shares = False
acc.synchronize()
able = devices.capabilities(0)
memory_shares = True
try:
    l0rt.empty(4096).ipc_handle()
except UnsupportedError as e:
    memory_shares = "shares" if "interprocess" in str(e) else False
print(json.dumps({
    "quirks": sorted(quirk.name for quirk in devices.mended_quirks(0)),
    "able": {name: able[name] for name in ("inorder", "vmm", "cb_events", "event_ipc", "memory_ipc", "graph",
                                           "graph_forks", "copy_offload")},
    "shares": shares,
    "memory_shares": memory_shares is not False,
    "threads": devices.copy_threads(0),
    "software": devices.properties(0)["is_software"],
    "works": bytes(out) == b"\\7" * 16,
}))
"""


def found_on(profile, **environment):
    cleared = dict.fromkeys(("L0RT_DISABLE", "L0RT_EVENTS", "L0RT_QUIRKS"))
    result = run_python(PROGRAM, {**cleared, "L0RT_DRIVER": "cpu", "L0RT_CPU_PROFILE": profile, **environment})
    assert (result.returncode, result.stderr) == (0, ""), result
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("profile", "lacking"),
    [
        ("arc-a770-i915", {"vmm", "graph_forks", *SHARING}),
        ("arc-a770-xe", {"graph_forks", *SHARING}),
        ("arc-a770-xe,neo-25.18", {"vmm", "cb_events", *SHARING, "graph", "graph_forks", "copy_offload"}),
        ("arc-b580,neo-25.18", {"vmm", "event_ipc", "graph", "graph_forks", "copy_offload"}),
        ("arc-b580,neo-0", {"vmm", "event_ipc", "memory_ipc", "graph", "graph_forks", "copy_offload"}),
        (
            "arc-b580,neo-24.35",
            {"inorder", "vmm", "cb_events", "event_ipc", "memory_ipc", "graph", "graph_forks", "copy_offload"},
        ),
        ("pvc", {"graph_forks", *SHARING}),
        ("lunar-lake,neo-25.18", {"vmm", "cb_events", "event_ipc", "graph", "graph_forks", "copy_offload"}),
        ("meteor-lake", {"vmm", "graph_forks"}),
    ],
)
def test_a_simulated_device_is_used_without_what_its_quirks_concern(profile, lacking):
    found = found_on(profile)
    assert {name for name, able in found["able"].items() if not able} == lacking
    assert found["shares"] == ("event_ipc" not in lacking)
    assert found["memory_shares"] == ("memory_ipc" not in lacking)
    assert found["software"]  # whatever its name is
    assert found["works"]


def test_a_mend_takes_along_what_is_built_on_what_it_does_without():
    able = found_on("arc-b580", L0RT_QUIRKS="unflushed_counters=1")["able"]
    assert not able["cb_events"]
    assert not able["graph"]
    able = found_on("arc-b580", L0RT_QUIRKS="early_graphs=1")["able"]
    assert able["cb_events"]
    assert not able["graph"]
    assert found_on("arc-b580", L0RT_QUIRKS="unjoined_captures=0")["able"]["graph_forks"]


def test_a_fast_link_has_more_copying_threads():
    processors = len(os.sched_getaffinity(0))
    assert found_on("pvc", L0RT_COPY_THREADS=None)["threads"] == min(3, processors)
    assert found_on("pvc", L0RT_COPY_THREADS=None, L0RT_QUIRKS="fast_link=0")["threads"] == 1
    assert found_on("arc-b580", L0RT_COPY_THREADS=None)["threads"] == 1


def test_a_mend_is_switched_off_and_on_in_a_process():
    assert found_on("arc-a770-i915", L0RT_QUIRKS="no_vm_bind=0")["able"]["vmm"]
    assert not found_on(None, L0RT_QUIRKS="no_vm_bind=1")["able"]["vmm"]
    assert found_on("arc-b580", L0RT_DISABLE="event_ipc")["quirks"] == sorted(ALWAYS | CACHES)
    assert not found_on("arc-b580", L0RT_DISABLE="event_ipc")["shares"]


HEAD = """
import ctypes, mmap, os, sys, threading
import l0rt
import l0rt.accelerator as acc

def say(right):
    acc.synchronize()
    print("right" if right else "wrong")

def race(other, one, rounds):
    # Run `one` in this thread, beside `other`, again and again; return whether the driver saw no race. Where the mend
    # is switched off there are as many rounds as it takes: it ends at the first race.
    errors, begun, over = [], threading.Event(), threading.Event()
    def loop():
        try:
            while not over.is_set():
                other()
                begun.set()
        except Exception as e:
            errors.append(e)
            begun.set()
    thread = threading.Thread(target=loop)
    thread.start()
    begun.wait()
    try:
        is_mended = not os.environ.get("L0RT_QUIRKS", "").endswith("=0")
        for _ in range(rounds if is_mended else 1000000):
            one()
            if errors:
                break
    except l0rt.L0Error as e:
        errors.append(e)
    over.set()
    thread.join()
    races = ctypes.CDLL(l0rt.cpu_driver_path()).l0rt_cpu_races
    races.restype = ctypes.c_uint64
    return not errors and races() == 0
"""
DEFECTS = {  # a quirk: a simulated device that has it, and a program that goes wrong there
    "unflushed_counters": (
        {"L0RT_CPU_PROFILE": "lunar-lake,neo-25.18"},
        """
there, here = l0rt.empty(4096), l0rt.empty(4096, kind="host")
event, right = l0rt.Event(), True
for value in range(1, 21):  # one look comes too late where this thread is held up
    there.fill(value)
    here.copy_from(there, non_blocking=True)
    event.record()
    while not event.query():
        pass
    right = right and bytes(here) == bytes([value]) * 4096
say(right)
""",
    ),
    "no_vm_bind": (
        {"L0RT_CPU_PROFILE": "arc-a770-i915", "L0RT_CPU_MEMORY": "256MiB"},
        """
try:
    held = [l0rt.empty(64 << 20) for _ in range(6)]
    told = False
except l0rt.OutOfMemoryError:
    told = True
l0rt.empty(4096, kind="host").fill(1)  # this much always works
say(told)
""",
    ),
    "untyped_mappings": (
        {"L0RT_CPU_PROFILE": "arc-b580,neo-25.18"},
        """
from l0rt.bench import loops
held, context = l0rt.empty(4 << 20), loops.core_objects(0)[0]
told = (ctypes.c_uint64 * 8)()  # ze_memory_allocation_properties_t: the third is the type, 2 a device's
driver, pointer = ctypes.CDLL(l0rt.cpu_driver_path()), ctypes.c_void_p
assert driver.zeMemGetAllocProperties(pointer(context.handle), pointer(held.ptr), told, None) == 0
say(told[2] == 2)
""",
    ),
    "raw_event_handles": (
        {"L0RT_CPU_PROFILE": "arc-b580,neo-25.18"},
        """
import subprocess
event = l0rt.Event(interprocess=True)
event.record()
try:
    handle = event.ipc_handle()
except l0rt.UnsupportedError:
    say(True)
else:
    opens = "import sys, l0rt; l0rt.Event.from_ipc_handle(0, bytes.fromhex(sys.argv[1])).synchronize()"
    say(subprocess.run([sys.executable, "-c", opens, handle.hex()], stderr=subprocess.DEVNULL).returncode == 0)
""",
    ),
    "racing_maps": (
        {"L0RT_CPU_PROFILE": "arc-b580", "L0RT_CPU_LATENCY": "append_copy=2000"},
        """
first, second = l0rt.empty(2 << 20), l0rt.empty(2 << 20)  # in the range that the others come from
def grow_and_shrink():
    l0rt.empty(16 << 20).free()
    l0rt.memory.empty_cache()
say(race(lambda: first.copy_from(second), grow_and_shrink, 200))
""",
    ),
    "unordered_lists": (
        # counter-based events need a list that keeps its order
        {"L0RT_CPU_PROFILE": "arc-b580,neo-24.35", "L0RT_CPU_CHAOS": 1, "L0RT_EVENTS": "pool"},
        """
held, out, right = l0rt.empty(4 << 20), bytearray(4096), True
for value in range(1, 21):
    held.fill(value)
    held[-4096:].fill(value + 1)
    held[-4096:].copy_to(out)
    right = right and out == bytes([value + 1]) * 4096
say(right)
""",
    ),
    "raw_memory_handles": (
        {"L0RT_CPU_PROFILE": "arc-b580,neo-24.35"},
        """
import subprocess
with l0rt.memory.use_mem_pool(l0rt.memory.MemPool(interprocess=True)):
    held = l0rt.empty(4096).fill(7)
acc.synchronize()
try:
    handle = held.ipc_handle()
except l0rt.UnsupportedError:
    say(True)
else:
    opens = "import sys, l0rt; sys.exit(int(l0rt.Buffer.from_ipc_handle(bytes.fromhex(sys.argv[1])).numpy()[0]))"
    say(subprocess.run([sys.executable, "-c", opens, handle.hex()], stderr=subprocess.DEVNULL).returncode == 7)
""",
    ),
    "early_graphs": (
        {"L0RT_CPU_PROFILE": "arc-b580", "L0RT_CPU_QUIRKS": "early_graphs"},
        """
held, out, graph = l0rt.empty(4096), bytearray(4096), acc.Graph()
try:
    with acc.graph(graph):
        held.fill(7)
    graph.replay()
    held.copy_to(out)
except l0rt.L0Error:
    pass
say(out == b"\\7" * 4096)
""",
    ),
    "unjoined_captures": (
        {"L0RT_CPU_PROFILE": "arc-b580"},
        """
held, other, out, graph = l0rt.empty(4096), l0rt.empty(4096), bytearray(4096), acc.Graph()
one, two = acc.Stream(), acc.Stream()
try:
    with acc.graph(graph, stream=one):
        two.wait_stream(one)
        for value in (1, 7):
            held.fill(value, stream=two)
            one.wait_stream(two)
            other.fill(value, stream=one)
    for _ in range(2):
        held.fill(9), other.fill(9)
        acc.synchronize()
        graph.replay()
        acc.synchronize()
    held.copy_to(out)
except l0rt.L0Error:
    pass
say(out == b"\\7" * 4096)
""",
    ),
    "racing_queries": (
        {"L0RT_CPU_PROFILE": "arc-a770-xe,neo-25.18"},
        """
held, event = l0rt.empty(64 << 20), l0rt.Event()
def record_and_wait():
    held.fill(1)
    event.record()
    event.synchronize()
event.record()
say(race(lambda: event.query(), record_and_wait, 50))
""",
    ),
    "outlasting_waits": (
        {"L0RT_CPU_PROFILE": "arc-a770-xe"},
        """
held, event, ended = l0rt.empty(256 << 20), l0rt.Event(), False
for _ in range(10):  # the work may be over before the wait begins where this thread is held up
    for _ in range(4):
        held.fill(1)
    event.record()
    ended = ended or event.synchronize(timeout=0.001) is False
say(ended)
""",
    ),
    "single_device_imports": (
        {"L0RT_CPU_PROFILE": "arc-a770-xe", "L0RT_CPU_DEVICES": 2},
        """
mine, out = mmap.mmap(-1, 8192), bytearray(8192)
mine[:] = b"x" * 8192
with l0rt.memory.register(mine, device=0):
    there = l0rt.empty(8192, device=1)
    try:
        there.copy_from(mine)
        there.copy_to(out)
    except l0rt.L0Error:
        pass
say(out == mine[:])
""",
    ),
    "cached_imports": (
        {"L0RT_CPU_PROFILE": "arc-b580"},
        """
mine, out = mmap.mmap(-1, 64 << 20), bytearray(64 << 20)
mine[:] = b"x" * len(mine)
with l0rt.memory.register(mine):
    l0rt.empty(len(mine)).copy_from(mine).copy_to(out)
other = l0rt.empty(40 << 20, kind="host").fill(1)
acc.synchronize()
say(out == mine[:] == b"x" * len(mine))
""",
    ),
    "listed_symbols": (
        {"L0RT_CPU_PROFILE": "arc-b580"},
        f"""
module = l0rt.Module({str(ROOT / "tests/kernels/offsets.spv")!r})
try:
    module["Intel_Symbol_Table_Void_Program"]
    is_made = True
except (KeyError, l0rt.L0Error):
    is_made = False
say(not is_made and "Intel_Symbol_Table_Void_Program" not in module)
""",
    ),
    "fatal_enqueues": (
        {"L0RT_CPU_PROFILE": "arc-b580"},
        f"""
try:
    l0rt.Module({str(ROOT / "tests/kernels/refused.spv")!r})
    is_refused = False
except l0rt.ModuleBuildError as e:
    is_refused = "trusted=True" in str(e)
say(is_refused)
""",
    ),
    "uncounted_signals": (
        {"L0RT_CPU_PROFILE": "lunar-lake", "L0RT_EVENTS": "pool", "L0RT_CPU_LATENCY": "h2d_gbps=0.01"},
        """
first, second, right = l0rt.empty(256 << 10), l0rt.empty(256 << 10), True
for value in b"abcde":
    mine = bytes([value]) * first.nbytes
    first.copy_from(mine)  # takes 26 ms, and signals: its chunk is used again
    second.copy_from(mine)
    is_idle = acc.current_stream().query()
    right = right and (not is_idle or ctypes.string_at(second.ptr, second.nbytes) == mine)
    acc.synchronize()
say(right)
""",
    ),
    "peer_counters": (
        {"L0RT_CPU_PROFILE": "arc-b580", "L0RT_CPU_DEVICES": 2},
        """
held, event, there, right = l0rt.empty(64 << 20), l0rt.Event(), acc.current_stream(1), True
for _ in range(10):  # the work may be over before where this thread is held up
    held.fill(1)
    event.record()
    there.wait_event(event)
    acc.synchronize(1)
    right = right and event.query()
say(right)
""",
    ),
}


ENDS = {  # what ends the program without the mend
    "no_vm_bind": "OutOfMemoryError",
    "fatal_enqueues": "l0rt CPU driver: aborting: a module whose kernels enqueue others",
    "peer_counters": "l0rt CPU driver: aborting: a wait for another device's counter-based event",
}


PLANTED = {  # what the plain CPU driver has to be besides: its events are a pool's, and nothing takes time
    "outlasting_waits": {"L0RT_EVENTS": "cb"},
    "uncounted_signals": {"L0RT_EVENTS": "pool"},
    "peer_counters": {"L0RT_EVENTS": "cb"},
    "unflushed_counters": {"L0RT_EVENTS": "cb"},
    "unordered_lists": {"L0RT_CPU_CHAOS": "1"},
}
PLACES = ("simulated", "planted")


def outcome_of(quirk, place, switches):
    environment, program = DEFECTS[quirk]
    if place == "planted":
        environment = {**environment, "L0RT_CPU_PROFILE": None, "L0RT_CPU_QUIRKS": quirk, **PLANTED.get(quirk, {})}
    cleared = dict.fromkeys((
        "L0RT_DISABLE", "L0RT_EVENTS", "L0RT_CPU_DEVICES", "L0RT_CPU_QUIRKS", "L0RT_CPU_CHAOS", "ZE_ENABLE_ALT_DRIVERS",
    ))  # fmt: skip
    return run_python(HEAD + program, {**cleared, "L0RT_DRIVER": "cpu", "L0RT_QUIRKS": switches, **environment})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("quirk", sorted(EVERY - BY_RULE))
def test_a_program_is_right_where_the_device_has_the_quirk(quirk, place):
    # To the plain CPU driver, no row applies by itself, nor to a device that was given another build's defect.
    by_itself = place == "simulated" and "L0RT_CPU_QUIRKS" not in DEFECTS[quirk][0]
    result = outcome_of(quirk, place, None if by_itself else f"{quirk}=1")
    assert (result.returncode, result.stdout, result.stderr) == (0, "right\n", ""), result


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("quirk", sorted(EVERY - BY_RULE))
def test_the_same_program_goes_wrong_without_the_mend(quirk, place):
    result = outcome_of(quirk, place, f"{quirk}=0")
    if quirk in ENDS:
        assert result.returncode != 0, result
        assert ENDS[quirk] in result.stderr, result
    else:
        assert (result.returncode, result.stdout) == (0, "wrong\n"), result


def test_every_row_has_a_program_that_bites_and_a_defect_that_can_be_planted():
    source = (ROOT / "l0rt/cpu_driver/simulate/quirk.c").read_text()
    plantable = re.findall(r'^ {4}\{"(\w+)", CPU_QUIRK_', source, re.MULTILINE)
    assert sorted(plantable) == sorted({quirk.name for quirk in quirks.QUIRKS} - BY_RULE) == sorted(DEFECTS)
